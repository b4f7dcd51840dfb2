"""Choices of dynamic copies: votes round after round, local, greedy.

Votes are those of Matri et al. 2018, sections 6 and 7: after each round every site takes the k
objects with most votes. They depend on the copies that exist, so the map from copies to copies can
cycle; the paper does not say so.

Greedy adds the copy that saves most, until nothing saves or nothing fits. The saving on reads is a
monotone submodular function of the set of copies (a copy is worth less beside others), and "at most
C_j at site j" is a partition matroid; so greedy saves at least half of what an optimum saves, when
writes cost nothing. Fisher, Nemhauser, Wolsey, "An analysis of approximations for maximizing
submodular set functions II", 1978.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from placement.online.dynamic.replication_problem import (
    ReplicationPlan,
    ReplicationProblem,
    base_cost,
    evaluate,
    single_savings,
)
from placement.online.dynamic.vote_counting import CopySet, most_voted, vote_rates
from placement.support.checks import BoolArray, FloatArray, instance_of, whole


@dataclass(frozen=True, eq=False)
class VoteRun:
    """Rounds of voting."""

    #: cost of the copies in force in each round, shape (rounds,); the first round has none
    cost: FloatArray
    replicas: FloatArray  #: copies of each site in each round, shape (rounds, sites)
    #: rounds after which the state repeats, 1 when nothing changes any more; 0 when no repetition
    #: was seen
    period: int
    settled: int  #: first round of the repetition; the number of rounds when none was seen
    copies: BoolArray  #: copies in force in the last round, shape (sites, objects)

    @property
    def mean_cost(self) -> float:
        """Mean cost over the cycle; over the second half of the rounds when none was seen."""
        return float(self.cost[self._window].mean())

    @property
    def mean_replicas(self) -> FloatArray:
        """Mean number of copies of each site over the same rounds, shape (sites,)."""
        return np.asarray(self.replicas[self._window].mean(axis=0), dtype=np.float64)

    @property
    def _window(self) -> slice:
        if self.period:
            return slice(self.settled, self.settled + self.period)
        return slice(len(self.cost) // 2, len(self.cost))


def popular_lists(problem: ReplicationProblem, copies: BoolArray, in_ms: bool = False) -> BoolArray:
    """Return the k most voted-for objects of each site, k its capacity, shape (sites, objects)."""
    votes = vote_rates(problem, copies, in_ms)
    result = np.zeros(problem.static.shape, dtype=bool)
    for site, k in enumerate(problem.capacity.tolist()):
        result[site, most_voted(votes[site], min(k, problem.objects))] = True
    return result


def run_votes(
    problem: ReplicationProblem,
    *,
    grace: int = 1,
    rounds: int = 40,
    in_ms: bool = False,
) -> VoteRun:
    """Vote for `rounds` rounds, starting without dynamic copies; stop early once states repeat.

    The capacity is k of each site; with a grace period sites exceed it: a copy goes at the g-th
    consecutive list without it. Votes count the ms that a copy saves (`in_ms`), or 1 as in the
    paper; writes do not vote. O(rounds · sites · objects · log objects).
    """
    instance_of(problem, ReplicationProblem, "problem", "a ReplicationProblem")
    rounds = whole(rounds, "rounds", minimum=1)
    state = CopySet(problem.static, grace)
    costs: list[float] = []
    sizes: list[FloatArray] = []
    seen: dict[bytes, int] = {}
    period, settled = 0, rounds
    for turn in range(rounds):
        key = state.fingerprint()
        if key in seen:
            period, settled = turn - seen[key], seen[key]
            break
        seen[key] = turn
        result = evaluate(problem, state.active)
        costs.append(result.cost)
        sizes.append(result.replicas.astype(np.float64))
        copies = state.active.copy()
        popular = popular_lists(problem, copies, in_ms)
        state.create(popular)
        state.judge(popular)
    return VoteRun(np.array(costs), np.array(sizes), period, settled, copies)


_LOCAL = "local weighted top-k"


def local_topk(problem: ReplicationProblem) -> ReplicationPlan:
    """Give each site the copies of largest positive local saving; ties to the smaller object.

    That of a copy at j: reads[j, o] · (rtt to the closest static copy − rtt within j) −
    write_cost[j, o]; −∞ where there is a static copy. Optimal when no site prefers another. O(sites
    · objects · log objects).
    """
    own = np.diag(problem.geography.rtt)[:, None]
    saving = problem.reads * (problem.static_rtt - own) - problem.write_cost
    saving[problem.static] = -np.inf
    copies = problem.none.copy()
    for site, k in enumerate(problem.capacity.tolist()):
        copies[site, most_voted(saving[site], min(k, problem.objects))] = True
    return ReplicationPlan.of(problem, copies, _LOCAL)


_GREEDY = "greedy"


def greedy(problem: ReplicationProblem) -> ReplicationPlan:
    """Add the copy of largest gain while there is a positive one and room for it.

    Ties go to the smaller object, then the smaller site. Gains are evaluated lazily: each site
    walks its candidates in the order of their gain when alone, which bounds their gain later.
    Without costs of writes the bound is base − 2·saved, from the guarantee, or 0. O(S·M log M +
    P·S²), S sites, M objects, P = Σ capacity copies placed.
    """
    alone, rtt = single_savings(problem), problem.geography.rtt
    wanted_by: list[list[int]] = [[] for _ in range(problem.sites)]
    for site, row in enumerate(problem.geography.preferred):
        for j in row:
            wanted_by[j].append(site)
    near: dict[int, FloatArray] = {}  # objects with copies: RTT of each site to the closest
    # −gain and the object first: ties go to the smaller object, then to the smaller site.
    heap: list[tuple[float, int, int]] = []
    orders = [np.argsort(-row, kind="stable") for row in alone]
    reached = [0] * problem.sites

    def gain_of(j: int, thing: int) -> float:
        """Gain of one more copy beside the chosen copies of the object."""
        clients = wanted_by[j]
        now = near.get(thing, problem.static_rtt[:, thing])[clients]
        saved = np.maximum(now - rtt[clients, j], 0.0)
        return float(problem.reads[clients, thing] @ saved) - float(problem.write_cost[j, thing])

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
        gain = gain_of(site, thing)
        if gain <= 0:
            continue
        if -claimed > gain:
            heapq.heappush(heap, (-gain, thing, site))
            continue
        copies[site, thing] = True
        room[site] -= 1
        closest = near.setdefault(thing, problem.static_rtt[:, thing].copy())
        clients = wanted_by[site]
        closest[clients] = np.minimum(closest[clients], rtt[clients, site])
    if problem.write_cost.any():
        return ReplicationPlan.of(problem, copies, _GREEDY)
    base, cost = base_cost(problem), evaluate(problem, copies).cost
    bound = max(0.0, base - 2 * (base - cost))
    notes = ("bound: greedy saves at least half of what an optimum saves",)
    return ReplicationPlan.of(problem, copies, _GREEDY, bound=bound, notes=notes)


def heuristic_costs(
    problem: ReplicationProblem,
) -> dict[str, Callable[[], tuple[float, float]]]:
    """Return the heuristics by name; each gives its cost and its copies per site with room.

    Votes are the mean over the cycle that the rounds end in. With a grace period they hold more
    copies than the capacity: their cost may then be below the optimum.
    """
    room = problem.capacity > 0

    def votes(grace: int, in_ms: bool = False) -> tuple[float, float]:
        run = run_votes(problem, grace=grace, in_ms=in_ms)
        return run.mean_cost, float(run.mean_replicas[room].mean())

    def planned(method: Callable[[ReplicationProblem], ReplicationPlan]) -> tuple[float, float]:
        plan = method(problem)
        return plan.cost, float(plan.evaluation.replicas[room].mean())

    return {
        "votes": partial(votes, 1),
        "votes, grace 3": partial(votes, 3),
        "votes weighted by ms saved": partial(votes, 1, in_ms=True),
        "local top-k": partial(planned, local_topk),
        "greedy": partial(planned, greedy),
    }
