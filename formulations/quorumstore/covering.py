"""The fixed-threshold covering model: whether N replicas within given thresholds exist.

With x_j = 1 for a replica at j, B^f_i(T) = { j ≠ lost : E^f[i, j] <= T } and y_if = 1 for "client i
is within its threshold in scenario f",

    Σ_j x_j = N
    Σ_{j ∈ B^f_i(T_r)} x_j >= R · y_if          for every client i with reads, every scenario f
    Σ_i reads_i · y_if     >= needed reads      for every scenario f            (writes likewise)

is feasible iff some replica set obeys the thresholds under (R, W): y_if can be 1 iff at least R
surviving replicas are within T_r of i. x_f does not appear in scenario f, so nothing needs to be
conditioned on f holding a replica, and there is no big-M: R is the natural coefficient.

Rows with the same ball and quorum share their y: that merges the copies of a client over all
scenarios whose loss lies outside its ball, and zones with equal balls. Rows of percentiles that
become equal are merged as well.

A budget is linear too, with nearest-first routing: sort the sites by RTT from client i, let u_k say
that position k is still looked at (u falls from 1 to 0 once) and q_k = x_k ∧ u_k that its replica
answers; then Σ_k q_k = R makes q the R nearest replicas, and the bill is a sum over x and q.

The model is only described here; the modules `covering_milp` and
`covering_cpsat` hand it to a solver.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from placement.checks import FloatArray
from placement.quorumstore import Limits, QuorumProblem, Redirect

__all__ = [
    "Bill",
    "Cover",
    "CoveringModel",
    "Demand",
    "Routed",
    "bill_of",
    "covering_model",
    "scenario_rtt",
]


@dataclass(frozen=True, slots=True)
class Cover:
    """y = 1 needs at least `quorum` replicas among the sites of `ball`."""

    ball: tuple[int, ...]
    quorum: int


@dataclass(frozen=True, slots=True)
class Demand:
    """Σ count · y over `terms` (index of a cover, count) is at least `needed`."""

    terms: tuple[tuple[int, int], ...]
    needed: int


@dataclass(frozen=True, slots=True)
class Routed:
    """What one client's reads cost: a price for each of its `quorum` nearest replicas.

    Attributes
    ----------
    order
        Sites, nearest first.
    prices
        Of each site, in that order.
    quorum
        How many answer.
    """

    order: tuple[int, ...]
    prices: tuple[float, ...]
    quorum: int


@dataclass(frozen=True, slots=True)
class Bill:
    """Cost of a replica set: `fixed` prices of its sites, and the routed reads."""

    fixed: tuple[float, ...]
    routed: tuple[Routed, ...]

    def of(self, replicas: tuple[int, ...]) -> float:
        """Cost of a replica set, up to rounding."""
        total = math.fsum(self.fixed[site] for site in replicas)
        for one in self.routed:
            held = [k for k, site in enumerate(one.order) if site in replicas]
            total += math.fsum(one.prices[k] for k in held[: one.quorum])
        return total


@dataclass(frozen=True, slots=True)
class CoveringModel:
    """A yes-no question about replica sets, free of any solver.

    Attributes
    ----------
    sites
        Number of candidate sites.
    replicas
        N.
    covers, demands
        The rows.
    caps
        (sites, at most so many replicas among them).
    bill
        What replica sets cost; None: nothing.
    budget
        Most they may cost. Solvers may exceed it within their tolerances, never fall short of it.
    excluded
        Replica sets that are no answer.
    """

    sites: int
    replicas: int
    covers: tuple[Cover, ...]
    demands: tuple[Demand, ...]
    caps: tuple[tuple[tuple[int, ...], int], ...]
    bill: Bill | None = None
    budget: float = math.inf
    excluded: tuple[tuple[int, ...], ...] = ()

    def holds(self, replicas: tuple[int, ...]) -> bool:
        """Check a replica set in exact arithmetic; the budget is left to the evaluator."""
        chosen = set(replicas)
        if len(chosen) != self.replicas or any(chosen == set(one) for one in self.excluded):
            return False
        if any(len(chosen.intersection(members)) > cap for members, cap in self.caps):
            return False
        within = [len(chosen.intersection(cover.ball)) >= cover.quorum for cover in self.covers]
        return all(
            sum(count for index, count in demand.terms if within[index]) >= demand.needed
            for demand in self.demands
        )

    @property
    def hopeless(self) -> bool:
        """Whether some percentile cannot be met even by all sites together."""
        return any(
            sum(count for _, count in demand.terms) < demand.needed for demand in self.demands
        )


def scenario_rtt(problem: QuorumProblem, lost: tuple[int, ...]) -> FloatArray:
    """E^f[i, j]: latency of client i to a replica at j once `lost` is down; ∞ for j lost."""
    matrix: FloatArray = problem.rtt.copy()
    for site in lost:
        if problem.redirects:
            survivor = problem.closest_survivor(site, lost)
            hop = problem.rtt[site, survivor] if problem.rules.redirect is Redirect.HOP else 0.0
            matrix[site] = hop + problem.rtt[survivor]
    matrix[:, list(lost)] = np.inf
    return matrix


def bill_of(problem: QuorumProblem, read: int) -> Bill | None:
    """Return the cost of :mod:`placement.quorumstore.prices` as a bill; None without prices."""
    prices = problem.prices
    if prices is None:
        return None
    routed = []
    for client in np.flatnonzero(problem.reads).tolist():
        order = np.argsort(problem.rtt[client], kind="stable")
        each = float(problem.reads[client]) * prices.traffic[order, client]
        # Every one of the R nearest sends a digest; the nearest sends the object in its place.
        for quorum, size in ((read, prices.digest_gb), (1, prices.object_gb - prices.digest_gb)):
            paid = size * each
            if paid.any():
                routed.append(Routed(tuple(order.tolist()), tuple(paid.tolist()), quorum))
    fixed = prices.fixed(problem.writes.astype(np.float64))
    return Bill(tuple(fixed.tolist()), tuple(routed))


def covering_model(
    problem: QuorumProblem,
    replicas: int,
    read: int,
    write: int,
    limits: Limits,
    budget: float = math.inf,
    excluded: tuple[tuple[int, ...], ...] = (),
) -> CoveringModel:
    """Describe "some set of `replicas` sites obeys `limits` and `budget` under (R, W)".

    Sets in `excluded` do not count.

    O(n²) per scenario; the losses are those of the problem where its rules ask for contingency.
    """
    covers: dict[Cover, int] = {}
    demands: dict[Demand, None] = {}
    scenarios: tuple[tuple[int, ...], ...] = ((),)
    if problem.rules.contingency:
        scenarios += problem.losses
    for lost in scenarios:
        matrix = scenario_rtt(problem, lost)
        for quorum, counts, needed, normal, worst in (
            (read, problem.reads, problem.needed_reads, limits.normal_read, limits.worst_read),
            (write, problem.writes, problem.needed_writes, limits.normal_write, limits.worst_write),
        ):
            if needed == 0:
                continue
            limit = worst if lost else normal
            inside = (matrix <= limit) & np.isfinite(matrix)
            terms: dict[int, int] = {}
            for client in np.flatnonzero(counts).tolist():
                ball = tuple(np.flatnonzero(inside[client]).tolist())
                if len(ball) < quorum:
                    continue  # y = 0
                index = covers.setdefault(Cover(ball, quorum), len(covers))
                terms[index] = terms.get(index, 0) + int(counts[client])
            demands[Demand(tuple(sorted(terms.items())), needed)] = None
    return CoveringModel(
        len(problem.sites),
        replicas,
        tuple(covers),
        tuple(demands),
        _caps(problem, replicas, read, write),
        bill_of(problem, read),
        budget,
        excluded,
    )


def _caps(
    problem: QuorumProblem, replicas: int, read: int, write: int
) -> tuple[tuple[tuple[int, ...], int], ...]:
    """Regional rules: replicas apart, or enough of them left after a region is lost."""
    cap = problem.region_cap(replicas, max(read, write))
    if cap >= replicas:
        return ()
    groups = []
    for label in range(int(problem.region_index.max()) + 1):
        members = tuple(np.flatnonzero(problem.region_index == label).tolist())
        if len(members) > cap:
            groups.append((members, cap))
    return tuple(groups)
