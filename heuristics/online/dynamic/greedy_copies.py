"""Greedy: add the copy that saves most, until nothing saves or nothing fits.

The saving on reads is a monotone submodular function of the set of copies (a copy is worth less
beside others), and "at most C_j at site j" is a partition matroid; so greedy saves at least half of
what an optimum saves, when writes cost nothing. Fisher, Nemhauser, Wolsey, "An analysis of
approximations for maximizing submodular set functions II", 1978.
"""

from __future__ import annotations

import heapq

import numpy as np

from placement.online.dynamic.evaluator import base_cost, evaluate
from placement.online.dynamic.plan import ReplicationPlan
from placement.online.dynamic.problem import ReplicationProblem
from placement.support.checks import FloatArray

__all__ = ["first_gains", "greedy"]

METHOD = "greedy"


def first_gains(problem: ReplicationProblem) -> FloatArray:
    """Return the savings of each copy alone, shape (sites, objects); −∞ beside a static copy.

    Σ_i reads[i, o] · max(0, rtt to the closest static copy − rtt[i, j]) over the clients that
    prefer j, less what its writes cost.
    """
    geography = problem.geography
    gains = -problem.forward_cost
    for site, row in enumerate(geography.preferred):
        for j in row:
            saved = np.maximum(problem.static_rtt[site] - geography.rtt[site, j], 0.0)
            gains[j] += problem.reads[site] * saved
    if problem.wait is not None:
        held = np.where(problem.static, problem.wait, 0.0).max(axis=0)
        gains -= problem.write_rates * np.maximum(problem.wait - held, 0.0)
    return np.where(problem.static, -np.inf, gains)


class _Gains:
    """Gains of further copies of single objects beside the chosen copies."""

    def __init__(self, problem: ReplicationProblem) -> None:
        self._problem = problem
        self._rtt = problem.geography.rtt
        self._wanted_by: list[list[int]] = [[] for _ in range(problem.sites)]
        for site, row in enumerate(problem.geography.preferred):
            for j in row:
                self._wanted_by[j].append(site)
        self._near: dict[int, FloatArray] = {}
        self._waits: dict[int, float] = {}

    def of(self, j: int, thing: int) -> float:
        problem = self._problem
        near = self._near.get(thing)
        if near is None:
            near = problem.static_rtt[:, thing]
        clients = self._wanted_by[j]
        saved = np.maximum(near[clients] - self._rtt[clients, j], 0.0)
        gain = float(problem.reads[clients, thing] @ saved) - float(problem.forward_cost[j, thing])
        if problem.wait is not None:
            more = max(0.0, float(problem.wait[j, thing]) - self._waiting(thing))
            gain -= float(problem.write_rates[thing]) * more
        return gain

    def add(self, j: int, thing: int) -> None:
        near = self._near.setdefault(thing, self._problem.static_rtt[:, thing].copy())
        clients = self._wanted_by[j]
        near[clients] = np.minimum(near[clients], self._rtt[clients, j])
        if self._problem.wait is not None:
            waits = max(self._waiting(thing), float(self._problem.wait[j, thing]))
            self._waits[thing] = waits

    def _waiting(self, thing: int) -> float:
        known = self._waits.get(thing)
        if known is None:
            assert self._problem.wait is not None
            held = self._problem.static[:, thing]
            known = float(self._problem.wait[held, thing].max())
        return known


def greedy(problem: ReplicationProblem) -> ReplicationPlan:
    """Add the copy of largest gain while there is a positive one and room for it.

    Ties go to the smaller object, then the smaller site. Gains are evaluated lazily: each site
    walks its candidates in the order of their gain when alone, which bounds their gain later.

    Returns
    -------
    The plan. Without costs of writes its bound is base − 2·saved, from the guarantee, or 0.

    Notes
    -----
    O(S·M log M + P·S² log), S sites, M objects, P = Σ capacity copies placed. With synchronous
    writes (`wait`) a gain may grow when another copy is added; gains of the other copies of the
    object are then offered again, but the guarantee is lost.
    """
    alone = first_gains(problem)
    gains = _Gains(problem)
    # −gain and the object first: ties go to the smaller object, then to the smaller site.
    heap: list[tuple[float, int, int]] = []
    orders = [np.argsort(-row, kind="stable") for row in alone]
    reached = [0] * problem.sites

    def advance(site: int) -> None:
        """Put the site's next candidate on the heap."""
        place = reached[site]
        if place < problem.objects and alone[site, orders[site][place]] > 0:
            thing = int(orders[site][place])
            reached[site] += 1
            heapq.heappush(heap, (-float(alone[site, thing]), thing, site))

    copies = problem.none.copy()
    room = problem.capacity.copy()
    for site in range(problem.sites):
        advance(site)
    while heap:
        claimed, thing, site = heapq.heappop(heap)
        if room[site] == 0:
            continue
        if claimed == -float(alone[site, thing]):
            advance(site)
        if copies[site, thing]:
            continue
        gain = gains.of(site, thing)
        if gain <= 0:
            continue
        if -claimed > gain:
            heapq.heappush(heap, (-gain, thing, site))
            continue
        copies[site, thing] = True
        room[site] -= 1
        gains.add(site, thing)
        if problem.wait is not None:
            for j in np.flatnonzero(~copies[:, thing] & ~problem.static[:, thing]).tolist():
                heapq.heappush(heap, (-gains.of(j, thing), thing, j))
    if problem.forward_cost.any() or (problem.wait is not None and problem.write_rates.any()):
        return ReplicationPlan.of(problem, copies, METHOD)
    base, cost = base_cost(problem), evaluate(problem, copies).cost
    bound = max(0.0, base - 2 * (base - cost))
    notes = ("bound: greedy saves at least half of what an optimum saves",)
    return ReplicationPlan.of(problem, copies, METHOD, bound=bound, notes=notes)
