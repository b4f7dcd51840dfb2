"""Problem of one key of a quorum store: requests per site, rules, goal, replicas and quorums.

Source: Shankaranarayanan P N, Sivakumar, Rao, Tawarmalani, "Performance sensitive replication in
geo-distributed cloud datastores", DSN 2014; the availability and consistency rules are those of
Dynamo and Cassandra.

A configuration (S, R, W) has four thresholds: the weighted percentiles of read and write latency in
normal operation and in the worst scenario. A :class:`Goal` turns them into one number. It also
turns "at most this number" back into limits on the thresholds, as every exact method here asks for.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from enum import Enum
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from placement.errors import InputError, LimitError
from placement.support import checks
from placement.support.checks import (
    BoolArray,
    FloatArray,
    IntArray,
    elements,
    instance_of,
    nonnegative,
    number,
    read_only,
    unique_names,
)
from placement.support.work import Work, large_count

if TYPE_CHECKING:
    from placement.model.instance import Instance

# The rules a quorum store is placed under: percentiles, quorums, failures, redirection

_DENOMINATOR = 10**6
"""Percentiles are read as the closest fraction with at most this denominator."""


class Redirect(Enum):
    """Sites that serve the clients of a lost site, and the latency of their requests then.

    With c(f) the surviving site closest to f (smallest d[f, c], ties to the lower index):

    - ``KEEP``: only the stored copy at f is lost; its clients and their coordinator stay:
      E[f, j] = d[f, j].
    - ``CLOSEST``: the users move to c(f); latency is measured there: E[f, j] = d[c(f), j].
    - ``HOP``: the application stays in f and asks the store in c(f):
      E[f, j] = d[f, c(f)] + d[c(f), j]. This is the EC2 experiment of the paper.

    In every mode the replica at f answers no request.
    """

    KEEP = "keep"
    CLOSEST = "closest"
    HOP = "hop"


class LossScope(Enum):
    """Sites that may be lost at once.

    - ``SITE``: any `failures` sites.
    - ``REGION``: all sites of any one region.
    """

    SITE = "site"
    REGION = "region"


@dataclass(frozen=True, slots=True)
class StoreRules:
    """Rules for every configuration of a key, and the meaning of "latency".

    Parameters
    ----------
    contingency
        False: only the latency of normal operation counts (BA, basic availability). True: the worst
        latency over normal operation and every loss counts (N-1C, N−1 contingency).
    redirect
        Who serves the clients of a lost site; see :class:`Redirect`.
    read_fraction, write_fraction
        p in (0, 1]: share of the reads (writes) that must lie within the threshold, in each
        scenario on its own.
    max_replicas
        Largest N to consider. Ignored where `replicas` fixes it.
    replicas, read_quorum, write_quorum
        N, R, W where policy fixes them; None leaves them to the optimiser.
    failures
        F, number of sites that may be lost at once with both quorums still available.
    loss
        Sites or regions; see :class:`LossScope`.
    distinct_regions
        Whether two replicas may never share a region.

    Raises
    ------
    InputError
        For a value outside its range. Rules that contradict each other (R above what survives, say)
        are no error: solving gives ``infeasible`` with the reasons.

    Notes
    -----
    Strict quorums: consistency R + W >= N + 1; availability: after any loss at least max(R, W)
    replicas remain, which for the loss of any F sites is R, W <= N − F.
    """

    contingency: bool = False
    _: KW_ONLY
    redirect: Redirect = Redirect.HOP
    read_fraction: float = 0.9
    write_fraction: float = 0.9
    max_replicas: int = 5
    replicas: int | None = None
    read_quorum: int | None = None
    write_quorum: int | None = None
    failures: int = 1
    loss: LossScope = LossScope.SITE
    distinct_regions: bool = False

    def __post_init__(self) -> None:
        checks.flag(self.contingency, "contingency")
        checks.flag(self.distinct_regions, "distinct_regions")
        check_member(self.redirect, Redirect, "redirect")
        check_member(self.loss, LossScope, "loss")
        fractions = (("read_fraction", self.read_fraction), ("write_fraction", self.write_fraction))
        for field, share in fractions:
            if number(share, field, minimum=1 / _DENOMINATOR) > 1:
                raise InputError(
                    "out of range",
                    field=field,
                    value=share,
                    expected="a share in (0, 1], not per cent",
                )
        whole = (
            ("max_replicas", self.max_replicas, 1),
            ("replicas", self.replicas, 1),
            ("read_quorum", self.read_quorum, 1),
            ("write_quorum", self.write_quorum, 1),
            ("failures", self.failures, 0),
        )
        for field, count, least in whole:
            optional = field not in ("max_replicas", "failures")
            if count is None and optional:
                continue
            object.__setattr__(self, field, checks.whole(count, field, minimum=least))
        if self.loss is LossScope.REGION and self.failures != 1:
            raise InputError(
                "only one region is lost at a time",
                field="failures",
                value=self.failures,
                expected="1 with LossScope.REGION",
            )

    def pairs(self, sites: int) -> tuple[tuple[int, int, int], ...]:
        """All (N, R, W) worth looking at among `sites` sites, in the order of the tie rule.

        For a fixed set of replicas every order statistic grows with R and W, in every scenario, so
        a quorum that is larger than R + W = N + 1 asks for is never better ("P2"): only such pairs
        are listed, unless both quorums are fixed by policy. Availability R, W <= N − F then gives
        R, W >= F + 1. One pair for N = 3, two for N = 4, three for N = 5 (F = 1).
        """
        sizes = range(1, min(self.max_replicas, sites) + 1)
        if self.replicas is not None:
            sizes = range(self.replicas, min(self.replicas, sites) + 1)
        found = []
        for total in sizes:
            quorums = [(read, total + 1 - read) for read in range(1, total + 1)]
            if self.read_quorum is not None and self.write_quorum is not None:
                quorums = [(self.read_quorum, self.write_quorum)]
            found += [
                (total, read, write)
                for read, write in quorums
                if self.read_quorum in (None, read)
                and self.write_quorum in (None, write)
                and read + write > total
                and max(read, write) <= total - self.failures
            ]
        return tuple(found)

    def needed(self, fraction: float, total: int) -> int:
        """Requests that must be in time: ⌈p·A⌉ in exact arithmetic.

        p is read as the closest fraction with a denominator of at most 10^6, so 0.9 means 9/10 and
        not the binary number next to it; the result is the same for proportional demands.
        """
        share = Fraction(fraction).limit_denominator(_DENOMINATOR) * total
        return -(-share.numerator // share.denominator)


def check_member(value: object, kind: type[Enum], field: str) -> None:
    """Refuse anything but a member of `kind`, strings included: typos must not pass silently."""
    if not isinstance(value, kind):
        names = ", ".join(f"{kind.__name__}.{member.name}" for member in kind)
        raise InputError("unknown choice", field=field, value=value, expected=names)


# Goal of a key: objective, limits, and tie-breaking

_SLACK = 1.0 + 1e-12
"""Loosens limits found by a division, so that rounding never cuts off a tie."""


class Target(Enum):
    """The latency that a goal minimises.

    - ``THRESHOLD``: T = max(T_r, T_w).
    - ``READS``, ``WRITES``: T_r or T_w alone; ties by the other one (lexicographic).
    - ``WEIGHTED``: α·T_r + β·T_w.
    """

    THRESHOLD = "threshold"
    READS = "reads"
    WRITES = "writes"
    WEIGHTED = "weighted"


class ThresholdLimits(NamedTuple):
    """Largest thresholds (ms) a configuration may have, each on its own.

    The worst scenario includes normal operation, so a limit on it holds for both.
    """

    normal_read: float = math.inf
    normal_write: float = math.inf
    worst_read: float = math.inf
    worst_write: float = math.inf

    def tightened(self, other: ThresholdLimits) -> ThresholdLimits:
        """Return the lower limit of both for each figure."""
        return ThresholdLimits(*map(min, self, other))

    def kept(self, metrics: Metrics) -> BoolArray:
        """Return whether each configuration keeps all four limits."""
        kept = [figure <= limit for figure, limit in zip(metrics.thresholds, self, strict=True)]
        return np.asarray(np.logical_and.reduce(kept))

    def excess(self, metrics: Metrics) -> FloatArray:
        """Return by how much each configuration exceeds the limits, relative; 0 within all."""
        excess = np.zeros_like(metrics.normal_read)
        for figure, limit in zip(metrics.thresholds, self, strict=True):
            if limit < math.inf:
                excess = excess + np.maximum(figure - limit, 0.0) / max(limit, 1e-9)
        return excess


class Metrics(NamedTuple):
    """Figures of k configurations, arrays of shape (k,).

    Parameters
    ----------
    normal_read, normal_write
        T_r and T_w in normal operation, ms.
    worst_read, worst_write
        Their largest values over normal operation and all losses, ms; equal to the normal ones
        where losses are not considered.
    mean
        Mean latency over all reads and writes in normal operation, ms.
    """

    normal_read: FloatArray
    normal_write: FloatArray
    worst_read: FloatArray
    worst_write: FloatArray
    mean: FloatArray

    @property
    def thresholds(self) -> tuple[FloatArray, ...]:
        """The four thresholds, in the order of :class:`ThresholdLimits`."""
        return self[:4]

    def take(self, index: IntArray) -> Metrics:
        """Return the figures of the configurations in `index`."""
        return Metrics(*(figure[index] for figure in self))


@dataclass(frozen=True, slots=True)
class Goal:
    """Objective of a key and its limits.

    The value of a configuration is X(normal) in BA, and in N-1C

        normal_weight · X(normal) + worst_weight · X(worst)

    where `target` names X. The defaults minimise the worst threshold. (1, 0) with
    `read_bound` and `write_bound` is "best normal latency whose worst case stays within the
    bounds"; (1, λ) trades the two.

    Parameters
    ----------
    target
        See :class:`Target`.
    read_weight, write_weight
        α, β >= 0 of ``WEIGHTED``, not both zero.
    normal_weight, worst_weight
        Weights of normal operation and of the worst scenario, N-1C only; not both zero.
    read_bound, write_bound
        Largest T_r, T_w allowed (ms): of the worst scenario in N-1C, of normal operation in BA.
    """

    target: Target = Target.THRESHOLD
    _: KW_ONLY
    read_weight: float = 1.0
    write_weight: float = 1.0
    normal_weight: float = 0.0
    worst_weight: float = 1.0
    read_bound: float = math.inf
    write_bound: float = math.inf

    def __post_init__(self) -> None:
        check_member(self.target, Target, "target")
        finite = {
            "read_weight": self.read_weight,
            "write_weight": self.write_weight,
            "normal_weight": self.normal_weight,
            "worst_weight": self.worst_weight,
        }
        for field, value in finite.items():
            number(value, field)
        for first, second in (("read_weight", "write_weight"), ("normal_weight", "worst_weight")):
            if finite[first] == 0 and finite[second] == 0:
                raise InputError(
                    f"{first} and {second} are both zero: nothing would be minimised",
                    field=first,
                    value=0.0,
                    expected="at least one weight > 0",
                )
        for field, bound in (("read_bound", self.read_bound), ("write_bound", self.write_bound)):
            number(bound, field, infinite=True)

    def weights(self, contingency: bool) -> tuple[float, float]:
        """(weight of normal operation, weight of the worst scenario); (1, 0) in BA."""
        return (self.normal_weight, self.worst_weight) if contingency else (1.0, 0.0)

    def monotone(self, contingency: bool) -> bool:
        """Return whether "value <= t" means limits t on thresholds, so that t can be bisected."""
        single = self.target in (Target.THRESHOLD, Target.READS, Target.WRITES)
        return single and sorted(self.weights(contingency)) == [0.0, 1.0]

    def limits(self, value: float, contingency: bool) -> ThresholdLimits:
        """Limits every configuration with at most `value` obeys, with the bounds of the goal.

        For a :meth:`monotone` goal they are also sufficient. They are valid for any other because
        thresholds are >= 0 and the worst scenario is never below normal operation.
        """
        normal, worst = self.weights(contingency)
        read, write = math.inf, math.inf
        if self.target in (Target.THRESHOLD, Target.READS):
            read = value
        if self.target in (Target.THRESHOLD, Target.WRITES):
            write = value
        if self.target is Target.WEIGHTED:
            read = _quotient(value, self.read_weight)
            write = _quotient(value, self.write_weight)
        bounds = (self.read_bound, self.write_bound)
        if not contingency:
            return ThresholdLimits(min(read, bounds[0]), min(write, bounds[1]))
        worst_limits = [
            min(_quotient(side, worst), bound)
            for side, bound in zip((read, write), bounds, strict=True)
        ]
        # The worst scenario is never below normal operation, so (w₀ + w₁)·X(normal) <= value.
        both = (normal + worst) * (1.0 if 0.0 in (normal, worst) else 1.0 / _SLACK)
        normal_limits = [
            min(_quotient(side, both), limit)
            for side, limit in zip((read, write), worst_limits, strict=True)
        ]
        return ThresholdLimits(normal_limits[0], normal_limits[1], worst_limits[0], worst_limits[1])

    def values(self, metrics: Metrics, contingency: bool) -> FloatArray:
        """Value of each configuration; infinite where a bound is broken or a quorum fails."""
        normal, worst = self.weights(contingency)
        value = np.zeros_like(metrics.normal_read)
        # A weight of zero leaves its term out altogether: 0 · ∞ is not a number.
        if normal > 0:
            value = value + normal * self._latency(metrics.normal_read, metrics.normal_write)
        if worst > 0:
            value = value + worst * self._latency(metrics.worst_read, metrics.worst_write)
        judged = judged_thresholds(metrics, contingency)
        kept = (
            (judged[0] <= self.read_bound)
            & (judged[1] <= self.write_bound)
            & np.isfinite(judged[0])
            & np.isfinite(judged[1])
        )
        return np.where(kept, value, math.inf)

    def _latency(self, read: FloatArray, write: FloatArray) -> FloatArray:
        if self.target is Target.READS:
            return read
        if self.target is Target.WRITES:
            return write
        if self.target is Target.WEIGHTED:
            if self.read_weight == 0:
                return self.write_weight * write
            if self.write_weight == 0:
                return self.read_weight * read
            return self.read_weight * read + self.write_weight * write
        return np.maximum(read, write)


def judged_thresholds(metrics: Metrics, contingency: bool) -> tuple[FloatArray, FloatArray]:
    """(T_r, T_w) that bounds apply to: the worst scenario in N-1C, normal operation in BA."""
    if contingency:
        return metrics.worst_read, metrics.worst_write
    return metrics.normal_read, metrics.normal_write


def second_key(goal: Goal, metrics: Metrics, contingency: bool) -> FloatArray | None:
    """Key 2 of the tie rule; None for ``THRESHOLD``, which has none."""
    read, write = judged_thresholds(metrics, contingency)
    if goal.target is Target.READS:
        return write
    if goal.target is Target.WRITES:
        return read
    return None if goal.target is Target.THRESHOLD else np.maximum(read, write)


def tie_order_of_equals(
    metrics: Metrics, sites: IntArray, replicas: IntArray, read_quorum: IntArray
) -> IntArray:
    """Order of k configurations, best first, that are equal in keys 1 and 2 of the tie rule.

    The rule compares, in this order:

    1. the value of the goal;
    2. the other side's threshold for ``READS`` and ``WRITES``; max(T_r, T_w) for ``WEIGHTED``
       (both of the worst scenario in N-1C);
    3. max(T_r, T_w) in normal operation;
    4. T_r + T_w in normal operation;
    5. the mean latency in normal operation;
    6. N;
    7. the replica set, lexicographically by site index;
    8. R (and so W).

    Parameters
    ----------
    sites
        Replica sets as rows of increasing site indices padded with -1, shape (k, largest N).
    replicas, read_quorum
        N and R, shape (k,).

    Notes
    -----
    Comparisons are exact. All figures are elements of the RTT matrix, or sums formed in one fixed
    order, so the rule gives the same answer whichever method produced the configurations.
    """
    keys = (
        np.maximum(metrics.normal_read, metrics.normal_write),
        metrics.normal_read + metrics.normal_write,
        metrics.mean,
        replicas,
        *sites.T,
        read_quorum,
    )
    return np.lexsort(keys[::-1])


def stages(goal: Goal, contingency: bool) -> tuple[Goal, ...]:
    """Goals in lexicographic order: each is minimised among the optima of the goals before.

    They are keys 1 to 3 of the tie rule for a :meth:`Goal.monotone` goal; for others only key 1.
    """
    found = [goal]
    if not goal.monotone(contingency):
        return (goal,)
    other = {Target.READS: Target.WRITES, Target.WRITES: Target.READS}.get(goal.target)
    if other is not None:
        found.append(replace(goal, target=other, normal_weight=0.0, worst_weight=1.0))
    if contingency and (other is not None or goal.worst_weight > 0):
        found.append(replace(goal, target=Target.THRESHOLD, normal_weight=1.0, worst_weight=0.0))
    return tuple(found)


def _quotient(value: float, weight: float) -> float:
    if weight == 0:
        return math.inf
    if weight == 1:
        return value
    return value / weight * _SLACK


CountArray = npt.NDArray[np.int64]

MOST_REQUESTS = 2**48
"""Sums of counts, weighted by up to N = 27 losses, stay exact in float64 below this."""

_SCALE = 1_000_000
"""Requests in all where an instance counts in fractions: a rounding below a millionth each."""

_MOST_LOSSES = 1_000_000
"""Losses that are listed."""

_CELLS_PER_STEP = 8
"""RTTs of clients to replicas that the evaluator sorts in one step of :class:`Work`."""


@dataclass(frozen=True, eq=False)
class QuorumProblem:
    """Place the replicas of one key of a leaderless quorum store.

    Every site is a possible replica and a possible origin of requests. Requests of site i are
    handled by the coordinator there, which asks replicas in parallel and is done at the R-th
    (W-th) answer:

        L^R_i(S) = R-th smallest of { rtt[i, j] : j ∈ S }

    and the read threshold T_r is the smallest T such that at least ⌈p_r · Σ reads⌉ reads come from
    sites with L^R_i(S) <= T; likewise T_w. A side without requests has threshold 0.

    Parameters
    ----------
    rtt
        d[i, j] in ms from coordinator i to replica j, shape (sites, sites), finite, >= 0. Need not
        be symmetric or metric; the diagonal is the RTT within the site and may be > 0.
    reads, writes
        Requests entering at each site, whole numbers, shape (sites,). Not all zero.
    sites
        Names; "0", "1", … when not given.
    regions
        Region of each site; None: every site is a separate region.
    rules, goal
        See :class:`StoreRules` and :class:`Goal`.
    name
        The key.

    Raises
    ------
    InputError
        Naming field, element, value and what was expected.

    Examples
    --------
    >>> rtt = [[0, 20, 90], [20, 0, 80], [90, 80, 0]]
    >>> problem = QuorumProblem(rtt, reads=[80, 15, 5], writes=[1, 0, 0], sites=["a", "b", "c"])
    >>> problem.needed_reads, problem.needed_writes
    (90, 1)
    """

    rtt: FloatArray
    reads: CountArray
    writes: CountArray
    _: KW_ONLY
    sites: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    rules: StoreRules = dataclasses.field(default_factory=StoreRules)
    goal: Goal = dataclasses.field(default_factory=Goal)
    name: str = "key"

    def __post_init__(self) -> None:
        put = object.__setattr__
        count = np.shape(self.rtt)[0] if np.ndim(self.rtt) == 2 else 0
        instance_of(self.rules, StoreRules, "rules", "a StoreRules")
        instance_of(self.goal, Goal, "goal", "a Goal")
        instance_of(self.name, str, "name", "a string")
        names = elements(self.sites, "sites", "a list of names") or tuple(
            str(index) for index in range(count)
        )
        put(self, "sites", unique_names(names, "sites"))
        if not self.sites:
            raise InputError("no sites", field="rtt", expected="a square table of RTTs")
        axis = ("site", self.sites)
        put(self, "rtt", nonnegative(self.rtt, "rtt", [axis, axis]))
        put(self, "reads", whole_counts(self.reads, "reads", self.sites))
        put(self, "writes", whole_counts(self.writes, "writes", self.sites))
        if not (self.reads.any() or self.writes.any()):
            raise InputError(
                f"key {self.name!r} has no requests: there is nothing to optimise",
                field="reads",
                expected="at least one read or write",
            )
        put(self, "regions", self._checked_regions())

    def _checked_regions(self) -> tuple[str, ...]:
        regions = elements(self.regions, "regions", "a list of names") or self.sites
        if len(regions) != len(self.sites):
            raise InputError(
                "wrong number of regions",
                field="regions",
                value=len(regions),
                expected=f"one label for each of the {len(self.sites)} sites",
            )
        for site, region in zip(self.sites, regions, strict=True):
            if not isinstance(region, str) or not region.strip():
                raise InputError(
                    f"site {site!r} has no region",
                    field="regions",
                    value=region,
                    expected="a non-empty string",
                )
        return tuple(map(str, regions))

    def with_demand(self, reads: object, writes: object, name: str = "key") -> QuorumProblem:
        """Return this question for another key."""
        return dataclasses.replace(
            self,
            reads=whole_counts(reads, "reads", self.sites),
            writes=whole_counts(writes, "writes", self.sites),
            name=name,
        )

    def with_goal(self, goal: Goal) -> QuorumProblem:
        """Return this key with another goal."""
        return dataclasses.replace(self, goal=goal)

    @cached_property
    def total_reads(self) -> int:
        """A^r."""
        return int(self.reads.sum())

    @cached_property
    def total_writes(self) -> int:
        """A^w."""
        return int(self.writes.sum())

    @cached_property
    def needed_reads(self) -> int:
        """Reads that must be within T_r: ⌈p_r·A^r⌉."""
        return self.rules.needed(self.rules.read_fraction, self.total_reads)

    @cached_property
    def needed_writes(self) -> int:
        """Writes that must be within T_w: ⌈p_w·A^w⌉."""
        return self.rules.needed(self.rules.write_fraction, self.total_writes)

    @cached_property
    def pairs(self) -> tuple[tuple[int, int, int], ...]:
        """All (N, R, W) worth looking at; see :meth:`StoreRules.pairs`."""
        return self.rules.pairs(len(self.sites))

    @cached_property
    def region_index(self) -> IntArray:
        """Number of each site's region, in order of first appearance; shape (sites,)."""
        numbers = {region: index for index, region in enumerate(dict.fromkeys(self.regions))}
        return read_only(np.array([numbers[region] for region in self.regions], dtype=np.intp))

    @cached_property
    def losses(self) -> tuple[tuple[int, ...], ...]:
        """Return the possible losses as increasing site indices: F-subsets of sites, or regions.

        A loss that takes every site leaves no site and is left out.

        Raises
        ------
        LimitError
            When there are more than 1,000,000.
        """
        if self.loss_count > _MOST_LOSSES:
            raise LimitError(
                f"{large_count(self.loss_count)} losses of {self.rules.failures} of "
                f"{len(self.sites)} sites: at most {_MOST_LOSSES:,} are listed"
            )
        count = len(self.sites)
        if self.rules.loss is LossScope.REGION:
            labels = self.region_index
            groups = [
                tuple(int(site) for site in np.flatnonzero(labels == label))
                for label in range(int(labels.max()) + 1)
            ]
        elif self.loss_count == 0:
            groups = []
        else:
            groups = list(combinations(range(count), self.rules.failures))
        return tuple(group for group in groups if len(group) < count)

    @cached_property
    def loss_count(self) -> int:
        """Number of :attr:`losses`, counted without a list of them."""
        count, failures = len(self.sites), self.rules.failures
        if self.rules.loss is LossScope.REGION:
            return sum(len(self.sites) > size for size in np.bincount(self.region_index).tolist())
        return math.comb(count, failures) if 0 < failures < count else 0

    def take_evaluations(self, work: Work, *, sets: int, size: int, losses: bool) -> None:
        """Count the evaluations of replica sets of one size before they are made.

        Parameters
        ----------
        work
            The limit.
        sets, size
            Number of sets, and N.
        losses
            Whether thresholds are listed for every loss. The worst loss alone takes fewer where
            the loss of a replica is the worst: N + 2 evaluations for single sites, 1 + C(N, F)
            where clients stay.

        Raises
        ------
        LimitError
            When they take more steps than are left; the message has the figures.
        """
        scenarios, rules = 1 + self.loss_count, self.rules
        if not losses:
            if not rules.contingency:
                scenarios = 1
            elif rules.loss is LossScope.SITE and rules.failures == 1:
                scenarios = min(scenarios, size + 2)
            elif rules.loss is LossScope.SITE and not self.redirects and rules.failures < size:
                scenarios = 1 + math.comb(size, rules.failures)
        steps = sets * scenarios * (1 + len(self.sites) * size // _CELLS_PER_STEP)
        many = "1 replica set" if sets == 1 else f"{large_count(sets)} replica sets"
        work.take(
            steps,
            f"{self.name}: {many} of {size} sites × {large_count(scenarios)} scenarios = "
            f"{large_count(sets * scenarios)} evaluations ({large_count(steps)} steps) take",
        )

    def closest_survivor(self, site: int, lost: Sequence[int]) -> int:
        """Surviving site closest to `site`: smallest rtt[site, c], ties to the lower index."""
        row = self.rtt[site].copy()
        row[list(lost)] = np.inf
        return int(np.argmin(row))

    def rtt_after(self, lost: Sequence[int]) -> FloatArray:
        """RTTs once some sites are lost and their clients have moved; infinite to the lost sites.

        That is E[i, j] of :class:`Redirect`, shape (clients, sites).
        """
        table: FloatArray = self.rtt.copy()
        for site in lost if self.redirects else ():
            survivor = self.closest_survivor(site, lost)
            hop = self.rtt[site, survivor] if self.rules.redirect is Redirect.HOP else 0.0
            table[site] = hop + self.rtt[survivor]
        table[:, list(lost)] = np.inf
        return table

    @cached_property
    def redirects(self) -> bool:
        """Return whether clients of a lost site are served by another one."""
        return self.rules.redirect is not Redirect.KEEP

    def region_cap(self, replicas: int, quorum: int) -> int:
        """Most of N = `replicas` that may share a region with max(R, W) = `quorum`.

        1 where regions must be distinct; N − max(R, W) where a region may be lost; N otherwise.
        """
        cap = replicas
        if self.rules.distinct_regions:
            cap = min(cap, 1)
        if self.rules.loss is LossScope.REGION:
            cap = min(cap, replicas - quorum)
        return cap

    def admissible(self, replicas: IntArray, quorum: int, size: int | None = None) -> BoolArray:
        """Return whether each replica set obeys :meth:`region_cap` with max(R, W) = `quorum`.

        Parameters
        ----------
        replicas
            Site indices in rows, shape (k, N), or fewer of each set.
        quorum
            max(R, W).
        size
            N, where only some replicas of each set are given.

        Returns
        -------
        Shape (k,).
        """
        cap = self.region_cap(replicas.shape[1] if size is None else size, quorum)
        if cap >= replicas.shape[1]:
            return np.ones(len(replicas), dtype=bool)
        labels = self.region_index[replicas]
        largest = np.zeros(len(replicas), dtype=np.intp)
        for label in range(int(self.region_index.max()) + 1):
            largest = np.maximum(largest, (labels == label).sum(axis=1))
        return largest <= cap


def whole_counts(values: object, field: str, sites: Sequence[str]) -> CountArray:
    """Check counts of requests per site: whole numbers >= 0 with a total below 2^48."""
    array = nonnegative(values, field, [("site", sites)])
    broken = np.flatnonzero(array != np.floor(array))
    if broken.size:
        site = int(broken[0])
        raise InputError(
            f"not a whole number of requests at site {sites[site]!r}",
            field=field,
            value=float(array[site]),
            expected="a whole number; percentiles count requests (multiply shares by 1000, say)",
        )
    if array.sum() >= MOST_REQUESTS:
        raise InputError(
            "too many requests to count exactly",
            field=field,
            value=float(array.sum()),
            expected=f"a total below {MOST_REQUESTS}; divide all counts by a common factor",
        )
    return read_only(array.astype(np.int64))


def site_requests(instance: Instance) -> tuple[CountArray, CountArray]:
    """Return the reads and writes that enter at each site, shape (sites,) each.

    Requests of a client enter at the site closest to it (ties: the first). Transactions are writes,
    all other operations reads. Where the counts are not whole numbers they are scaled to a million
    requests in all and rounded, because percentiles count requests.

    Parameters
    ----------
    instance
        Its counts are added over all intervals; RTTs that vary by interval are averaged.

    Raises
    ------
    InputError
        When no client reads.
    """
    from placement.model.demand import reads_and_writes
    from placement.model.instance import Instance

    instance_of(instance, Instance, "instance", "a placement.Instance")
    table = instance.client_rtt
    nearest = (table.mean(axis=0) if table.ndim == 3 else table).argmin(axis=1)
    counts = [
        np.bincount(nearest, weights=issued, minlength=len(instance.sites))
        for issued in reads_and_writes(instance)
    ]
    total = sum(float(side.sum()) for side in counts)
    if any((side != np.floor(side)).any() for side in counts):
        counts = [np.rint(side * (_SCALE / total)) for side in counts]
    return counts[0].astype(np.int64), counts[1].astype(np.int64)


def structural_reasons(
    problem: QuorumProblem,
    replicas: int | None = None,
    read: int | None = None,
    write: int | None = None,
) -> tuple[str, ...]:
    """Rules on N, R, W and regions that cannot hold together, one sentence each.

    Parameters
    ----------
    problem
        The question.
    replicas, read, write
        N, R, W to judge in place of those of the rules.

    Returns
    -------
    Empty when counting finds nothing wrong. It is complete: without a reason some replica set
    obeys all of these rules (bounds on latency or cost are another matter).
    """
    rules, sites = problem.rules, len(problem.sites)
    failures = rules.failures
    size = rules.replicas if replicas is None else replicas
    reading = rules.read_quorum if read is None else read
    writing = rules.write_quorum if write is None else write
    found = []

    if size is not None and size > sites:
        found.append(f"N = {size} replicas were asked for but there are {sites} sites")
    smallest = 2 * failures + 1
    given = "N" if size is not None else "N_max"
    largest = min(sites, rules.max_replicas) if size is None else size
    if largest < smallest:
        limit = (
            f"{given} = {largest}"
            if largest == (rules.max_replicas if size is None else size)
            else f"only {sites} sites exist, so N <= {sites}"
        )
        found.append(
            f"{limit}, but with F = {failures} the quorums need R, W <= N − {failures} to survive "
            f"and R + W >= N + 1 to intersect, which takes N >= {smallest}"
        )
    for letter, quorum in (("R", reading), ("W", writing)):
        if quorum is not None and quorum > largest - failures:
            found.append(
                f"{letter} = {quorum}, but of {given} = {largest} replicas only "
                f"{max(0, largest - failures)} survive the loss of {failures}"
            )
    if size is not None and reading is not None and writing is not None:
        if reading + writing < size + 1:
            found.append(
                f"R + W = {reading} + {writing} = {reading + writing}, but two quorums out of "
                f"N = {size} replicas are sure to intersect only if R + W >= {size + 1}"
            )
    elif size is not None and not found:
        for letter, other, quorum in (("R", "W", reading), ("W", "R", writing)):
            if quorum is not None and size + 1 - quorum > size - failures:
                found.append(
                    f"{letter} = {quorum} of N = {size} needs {other} >= {size + 1 - quorum} to "
                    f"intersect, but only {size - failures} replicas survive the loss of {failures}"
                )
    elif reading is not None and writing is not None and not found:
        if reading + writing - 1 < max(reading, writing) + failures:
            found.append(
                f"R = {reading} and W = {writing} intersect only for N <= {reading + writing - 1}, "
                f"and survive the loss of {failures} only for "
                f"N >= {max(reading, writing) + failures}"
            )
    elif size is None and not found:
        for letter, quorum in (("R", reading), ("W", writing)):
            if quorum is not None and quorum < failures + 1:
                found.append(
                    f"{letter} = {quorum}, but R + W >= N + 1 with the other quorum "
                    f"<= N − {failures} takes {letter} >= {failures + 1}"
                )
    if found:
        return tuple(found)
    if not problem.pairs:
        return (
            f"no N, R, W with {given} = {largest} obeys both R + W >= N + 1 and "
            f"R, W <= N − {failures} under the quorums that are fixed",
        )
    members = np.bincount(problem.region_index).tolist()
    pairs = problem.pairs
    if size is not None and reading is not None and writing is not None:
        pairs = ((size, reading, writing),)
    for total, r, w in pairs:
        cap = problem.region_cap(total, max(r, w))
        room = sum(min(cap, count) for count in members)
        if room >= total:
            return ()
        found.append(
            f"N = {total}, R = {r}, W = {w}: at most {cap} replicas may share a region, and "
            f"{len(members)} regions then hold at most {room} of the {total}"
        )
    return tuple(found)
