"""Problem of one key of a quorum store: requests per site, replicas, quorums and rules."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placement.errors import InputError, LimitError
from placement.quorumstore.goal import Goal
from placement.quorumstore.rules import LossScope, Redirect, StoreRules
from placement.support.checks import (
    BoolArray,
    FloatArray,
    IntArray,
    elements,
    instance_of,
    nonnegative,
    read_only,
    unique_names,
)
from placement.support.work import Work, large_count

if TYPE_CHECKING:
    from placement.model.instance import Instance

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
    rules: StoreRules = field(default_factory=StoreRules)
    goal: Goal = field(default_factory=Goal)
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
        elif self.rules.failures == 0:
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

    def admissible(self, replicas: IntArray, quorum: int) -> BoolArray:
        """Return whether each replica set obeys :meth:`region_cap` with max(R, W) = `quorum`.

        Parameters
        ----------
        replicas
            Site indices in rows, shape (k, N).
        quorum
            max(R, W).

        Returns
        -------
        Shape (k,).
        """
        size = replicas.shape[1]
        cap = self.region_cap(size, quorum)
        if cap >= size:
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
    from placement.model.instance import Instance
    from placement.model.read_write_counts import reads_and_writes

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
