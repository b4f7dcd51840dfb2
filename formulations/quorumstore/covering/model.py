"""The fixed-threshold covering model: whether N replicas within given thresholds exist.

With x_j = 1 for a replica at j, B^f_i(T) = { j ≠ lost : E^f[i, j] <= T } and y_if = 1 for "client i
is within its threshold in scenario f",

    Σ_j x_j = N
    Σ_{j ∈ B^f_i(T_r)} x_j >= R · y_if          for every client i with reads, every scenario f
    Σ_i reads_i · y_if     >= needed reads      for every scenario f            (writes likewise)

is feasible iff some replica set obeys the thresholds under (R, W): y_if can be 1 iff at least R
surviving replicas are within T_r of i. x_f does not appear in scenario f, so nothing needs to be
conditioned on f holding a replica, and there is no big-M: R is the natural coefficient.

Where one site is lost at a time, clients need no copy for each scenario. A replica at f takes one
from every ball that holds f, so with y_i and z_i for "at least R" and "at least R + 1 replicas
within T_r of i in normal operation"

    Σ_{i: f ∉ B_i} reads_i · y_i + Σ_{i: f ∈ B_i} reads_i · z_i >= needed reads     if x_f = 1

is scenario f: 2n binaries in place of n². Clients that are moved when f is lost
have a separate ball and y in that row, and as they notice the loss of f even if it holds no
replica, there is one more row, with all the other y_i, whatever x_f is.

Rows with the same ball and quorum share their y; rows of percentiles that become equal are merged.

A budget is linear too, with nearest-first routing: sort the sites by RTT from client i, let u_k say
that position k is still asked (u falls from 1 to 0 once) and q_k = x_k ∧ u_k that its replica
answers; then Σ_k q_k = R makes q the R nearest replicas, and the bill is a sum over x and q.

The model is only described here; :mod:`formulations.quorumstore.covering.reduction` decides what is
obvious, and `covering_milp` and `covering_cpsat` hand the rest to a solver.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from placement.quorumstore import LossScope, QuorumProblem, Redirect, ThresholdLimits
from placement.support.checks import FloatArray

__all__ = [
    "Bill",
    "Cover",
    "CoverDemand",
    "CoveringModel",
    "Routed",
    "bill_of",
    "covering_model",
    "relaxed_model",
    "scenario_rtt",
]


@dataclass(frozen=True, slots=True)
class Cover:
    """y = 1 needs at least `quorum` replicas among the sites of `ball`."""

    ball: tuple[int, ...]
    quorum: int


@dataclass(frozen=True, slots=True)
class CoverDemand:
    """Σ count · y over `terms` (index of a cover, count) is at least `needed`.

    With `lost` only for replica sets that hold this site.
    """

    terms: tuple[tuple[int, int], ...]
    needed: int
    lost: int | None = None


@dataclass(frozen=True, slots=True)
class Routed:
    """Cost of one client's reads: a price for each of its `quorum` nearest replicas.

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
    swaps
        For each site j, the sites that may take over its replica without harm to any demand,
        provided that they are in every ball that j is in. Empty: none.
    """

    sites: int
    replicas: int
    covers: tuple[Cover, ...]
    demands: tuple[CoverDemand, ...]
    caps: tuple[tuple[tuple[int, ...], int], ...]
    bill: Bill | None = None
    budget: float = math.inf
    excluded: tuple[tuple[int, ...], ...] = ()
    swaps: tuple[tuple[int, ...], ...] = ()

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
            if demand.lost is None or demand.lost in chosen
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
    """Return the cost of the traffic prices as a bill; None without prices."""
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
    limits: ThresholdLimits,
    budget: float = math.inf,
    excluded: tuple[tuple[int, ...], ...] = (),
) -> CoveringModel:
    """Describe "some set of `replicas` sites obeys `limits` and `budget` under (R, W)".

    Sets in `excluded` do not count.

    O(n²) where single sites are lost, O(n²) per scenario otherwise; the losses are those of the
    problem where its rules ask for contingency.
    """
    rules = problem.rules
    rows = _CoverRows()
    contingency = rules.contingency and bool(problem.losses)
    single = contingency and _single_sites(problem)
    for side in _sides(problem, read, write, limits):
        rows.add(_wanted(side, _balls(problem.rtt, side.clients, side.normal)), side.needed)
        if single:
            _add_single_losses(
                rows,
                problem,
                side,
                _balls(problem.rtt, side.clients, side.worst),
                _moved_balls(problem, side) if problem.redirects else {},
            )
        elif contingency:
            for lost in problem.losses:
                after = scenario_rtt(problem, lost)
                rows.add(_wanted(side, _balls(after, side.clients, side.worst)), side.needed)
    caps = _caps(problem, replicas, read, write)
    bill = bill_of(problem, read)
    swaps: tuple[tuple[int, ...], ...] = ()
    if not caps and bill is None and (single or not contingency):
        swaps = _swaps(problem, _sides(problem, read, write, limits) if single else [])
    return CoveringModel(
        len(problem.sites),
        replicas,
        tuple(rows.covers),
        tuple(rows.demands),
        caps,
        bill,
        budget,
        excluded,
        swaps,
    )


def relaxed_model(
    problem: QuorumProblem, replicas: int, read: int, write: int, limits: ThresholdLimits
) -> CoveringModel | None:
    """Describe a question that is answered by every answer of :func:`covering_model`, but simpler.

    Where clients of a lost site are moved, they are given the ball of before and that of
    afterwards together, in every scenario: then no client needs to be moved, any site may take over
    from any other, and much more can be left out. None where no client is moved, and where prices,
    regional rules or larger losses are in the way.
    """
    if not (
        problem.rules.contingency
        and problem.losses
        and problem.redirects
        and problem.prices is None
        and _single_sites(problem)
        and not _caps(problem, replicas, read, write)
    ):
        return None
    rows = _CoverRows()
    for side in _sides(problem, read, write, limits):
        rows.add(_wanted(side, _balls(problem.rtt, side.clients, side.normal)), side.needed)
        stays, moves = _balls(problem.rtt, side.clients, side.worst), _moved_balls(problem, side)
        either = {i: tuple(sorted({*stays[i], *moves[i]})) for i in side.clients}
        _add_single_losses(rows, problem, side, either, {})
    return CoveringModel(
        len(problem.sites),
        replicas,
        tuple(rows.covers),
        tuple(rows.demands),
        (),
        swaps=_swaps(problem, []),
    )


def _single_sites(problem: QuorumProblem) -> bool:
    return problem.rules.loss is LossScope.SITE and problem.rules.failures == 1


@dataclass(frozen=True, slots=True)
class _Side:
    """Reads or writes: who makes them, how many have to be in time, and within what."""

    quorum: int
    counts: dict[int, int]
    needed: int
    normal: float
    worst: float

    @property
    def clients(self) -> list[int]:
        return list(self.counts)


def _sides(problem: QuorumProblem, read: int, write: int, limits: ThresholdLimits) -> list[_Side]:
    """Return the sides that need anything to be in time."""
    found = []
    for quorum, requests, needed, normal, worst in (
        (read, problem.reads, problem.needed_reads, limits.normal_read, limits.worst_read),
        (write, problem.writes, problem.needed_writes, limits.normal_write, limits.worst_write),
    ):
        counts = {int(i): int(requests[i]) for i in np.flatnonzero(requests)}
        if needed:
            found.append(_Side(quorum, counts, needed, min(normal, worst), worst))
    return found


_Wanted = tuple[tuple[int, ...], int, int]
"""Ball, quorum and requests of a client."""


def _wanted(side: _Side, balls: dict[int, tuple[int, ...]]) -> list[_Wanted]:
    return [(balls[i], side.quorum, count) for i, count in side.counts.items()]


@dataclass(slots=True)
class _CoverRows:
    """Covers and demands, each once."""

    covers: dict[Cover, int] = field(default_factory=dict)
    demands: dict[CoverDemand, None] = field(default_factory=dict)

    def add(self, wanted: Iterable[_Wanted], needed: int, lost: int | None = None) -> None:
        """Add "at least `needed` requests of these are in time"."""
        terms: dict[int, int] = {}
        for ball, quorum, count in wanted:
            if len(ball) < quorum:
                continue  # y = 0
            index = self.covers.setdefault(Cover(ball, quorum), len(self.covers))
            terms[index] = terms.get(index, 0) + count
        self.demands[CoverDemand(tuple(sorted(terms.items())), needed, lost)] = None


def _balls(rtt: FloatArray, clients: list[int], limit: float) -> dict[int, tuple[int, ...]]:
    """Sites within `limit` of each client, by client."""
    inside = (rtt <= limit) & np.isfinite(rtt)
    return {i: tuple(np.flatnonzero(inside[i]).tolist()) for i in clients}


def _moved_balls(problem: QuorumProblem, side: _Side) -> dict[int, tuple[int, ...]]:
    """Sites within the limit of each client once its own site is lost, which is never in it."""
    return {
        i: _balls(scenario_rtt(problem, (i,)), [i], side.worst)[i]
        for i in side.clients
        if (i,) in problem.losses
    }


def _add_single_losses(
    rows: _CoverRows,
    problem: QuorumProblem,
    side: _Side,
    balls: dict[int, tuple[int, ...]],
    moved: dict[int, tuple[int, ...]],
) -> None:
    """Add the constraints for the loss of any one site f.

    A replica at f takes one from every ball that holds f: those clients need quorum + 1 of them.
    Where f holds none, only its own clients notice, and only if they are `moved`.
    """
    for (lost,) in problem.losses:
        own = [(moved[lost], side.quorum, side.counts[lost])] if lost in moved else []
        others = {i: count for i, count in side.counts.items() if not (own and i == lost)}
        after = [(balls[i], side.quorum + (lost in balls[i]), count) for i, count in others.items()]
        rows.add(own + after, side.needed, lost)
        if own:
            stay = [(balls[i], side.quorum, count) for i, count in others.items()]
            rows.add(own + stay, side.needed)


def _swaps(problem: QuorumProblem, sides: list[_Side]) -> tuple[tuple[int, ...], ...]:
    """Return for each site j the sites k that can replace j under every loss.

    "Takes over" supposes that every ball with j holds k as well, which the reduction checks. Then
    the loss of k is survived by what survived that of j: the same replicas are left, and a ball
    with k and without j has gained one. Only the clients of j and k differ if they are moved, on
    one of `sides`: those of k are moved and were not, those of j are not and were. So no ball of k
    may shrink by moving, and none of j by not moving.
    """
    n = len(problem.sites)
    allowed = np.ones((n, n), dtype=bool)
    for side in sides if problem.redirects else []:
        stays = _balls(problem.rtt, side.clients, side.worst)
        for i, ball in _moved_balls(problem, side).items():
            stay, move = set(stays[i]), set(ball)
            for other in range(n):
                pair = {i, other}
                allowed[other, i] &= stay - pair <= move  # i takes over from the other one
                allowed[i, other] &= move - pair <= stay  # the other one takes over from i
    np.fill_diagonal(allowed, False)
    return tuple(tuple(np.flatnonzero(row).tolist()) for row in allowed)


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
