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
from placement.quorumstore.traffic_prices import TrafficPrices
from placement.support.checks import (
    BoolArray,
    FloatArray,
    IntArray,
    elements,
    instance_of,
    nonnegative,
    number,
    read_only,
    text,
    unique_names,
)
from placement.support.work import Work, large_count

if TYPE_CHECKING:
    from placement.model.instance import Instance

__all__ = ["CountArray", "QuorumProblem", "from_instance", "whole_counts"]

CountArray = npt.NDArray[np.int64]

_MOST_REQUESTS = 2**48
"""Sums of counts, weighted by up to N = 27 losses, stay exact in float64 below this."""

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
    prices
        For goals with a cost.
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
    prices: TrafficPrices | None = None
    name: str = "key"

    def __post_init__(self) -> None:
        put = object.__setattr__
        count = np.shape(self.rtt)[0] if np.ndim(self.rtt) == 2 else 0
        instance_of(self.rules, StoreRules, "rules", "a StoreRules")
        instance_of(self.goal, Goal, "goal", "a Goal")
        instance_of(self.name, str, "name", "a string")
        if self.prices is not None:
            instance_of(self.prices, TrafficPrices, "prices", "a TrafficPrices")
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
        if self.prices is not None:
            put(self, "prices", self.prices.checked(self.sites))
        elif np.isfinite(self.goal.cost_bound) or self.goal.target.value == "cost":
            raise InputError(
                "the goal has a cost but there are no prices",
                field="prices",
                expected="TrafficPrices, or message_prices(sites) to count messages",
            )

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
    if array.sum() >= _MOST_REQUESTS:
        raise InputError(
            "too many requests to count exactly",
            field=field,
            value=float(array.sum()),
            expected=f"a total below {_MOST_REQUESTS}; divide all counts by a common factor",
        )
    return read_only(array.astype(np.int64))


def from_instance(
    instance: Instance,
    *,
    read_operations: Sequence[str],
    write_operations: Sequence[str],
    resolution: int = 1,
    local_rtt: float | None = None,
    region_level: str | None = None,
    rules: StoreRules | None = None,
    goal: Goal | None = None,
) -> QuorumProblem:
    """Take a key from an instance whose clients are its sites.

    Parameters
    ----------
    instance
        Its clients must carry the names of its sites; RTTs must not vary by interval. The RTT from
        coordinator to replica is the instance's `client_rtt`, which keeps the intra-site figure.
    read_operations, write_operations
        Names of the operations that count as reads and as writes.
    resolution
        Counts are multiplied by this and rounded: instances may count in fractions, a percentile
        over requests needs whole numbers.
    local_rtt
        RTT within a site in ms, in place of the diagonal; None keeps what the instance has.
    region_level
        Failure-domain level that plays the region; None: every site is its own.

    Raises
    ------
    InputError
        Where the instance does not fit this description.
    """
    from placement.model.instance import Instance

    instance_of(instance, Instance, "instance", "a placement.Instance")
    number(resolution, "resolution", above=True)
    if local_rtt is not None:
        number(local_rtt, "local_rtt")
    if region_level is not None:
        text(region_level, "region_level")
    if set(instance.clients) != set(instance.sites):
        stray = sorted(set(instance.clients) ^ set(instance.sites))[0]
        raise InputError(
            "a quorum store's coordinators sit at the sites, so clients must be named like sites",
            field="clients",
            value=stray,
            expected="the same names as in sites",
        )
    if instance.client_rtt.ndim != 2:
        raise InputError(
            "RTTs vary by interval",
            field="client_rtt",
            value=instance.client_rtt.shape,
            expected="one matrix; take the median over the intervals",
        )
    rows = [instance.clients.index(site) for site in instance.sites]
    rtt = instance.client_rtt[rows].copy()
    if local_rtt is not None:
        np.fill_diagonal(rtt, local_rtt)
    total = instance.counts.sum(axis=0)[rows] * resolution
    regions: tuple[str, ...] = ()
    if region_level is not None:
        if region_level not in instance.domains:
            raise InputError(
                "no such failure-domain level",
                field="region_level",
                value=region_level,
                expected=f"one of {sorted(instance.domains)}",
            )
        regions = tuple(str(label or "") for label in instance.domains[region_level])
    return QuorumProblem(
        rtt,
        np.rint(total[:, _columns(instance, read_operations, "read_operations")].sum(axis=1)),
        np.rint(total[:, _columns(instance, write_operations, "write_operations")].sum(axis=1)),
        sites=instance.sites,
        regions=regions,
        rules=StoreRules() if rules is None else rules,
        goal=Goal() if goal is None else goal,
        name=instance.name,
    )


def _columns(instance: Instance, names: Sequence[str], field: str) -> list[int]:
    known = [operation.name for operation in instance.operations]
    chosen = unique_names(names, field)
    for name in chosen:
        if name not in known:
            raise InputError(
                "unknown operation", field=field, value=name, expected=f"one of {known}"
            )
    return [known.index(name) for name in chosen]
