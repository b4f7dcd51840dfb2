"""The next best plans after the optimum, in order, each proven.

Plans are told apart by leader and replicas; voters that do not make the quorum are of no
consequence. The set of all plans but the best is split (Lawler 1972, Murty 1968) into

- those with another leader,
- those with the same leader that lack r_i but hold r_1 … r_{i−1}, for each replica r_i of the best
  but
  the leader,
- those that hold all of them and more, where |R| is a range,

each of which is a problem of the same kind with pins and forbidden sites. Where no operation needs
a leader, replicas alone tell plans apart. The best of a part is next, and its part is split again.
One more plan costs at most |R| + 1 further solves.

Candidates for leader are also those after a loss. An objective about losses is therefore split into
one part for each leader at first: with a given leader, every voter may lead after the leader is
lost, as in the whole question. A part is solved when no plan is below its bound: the optimum of
normal times under that leader, which the value of no plan is below
(:meth:`.Contingency.normal_share`).
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterator

from placement.contingency.objective import Contingency
from placement.errors import InputError, UnsupportedError
from placement.evaluation.objective import MEAN_LATENCY
from placement.evaluation.waits.wait_checks import refuse_witnesses
from placement.methods.prove import prove
from placement.plan import Plan
from placement.problem import Problem
from placement.support.checks import instance_of, whole

__all__ = ["best_plans", "next_best_plans"]


def best_plans(problem: Problem, method: str = "exact") -> Iterator[Plan]:
    """Yield all plans of a problem from the best on, told apart by leader and replicas.

    Each plan's own problem is the part of the whole that it is the optimum of.

    Parameters
    ----------
    problem
        The question.
    method
        An exact method.

    Raises
    ------
    SolverError
        When the method does not prove one of the parts.
    UnsupportedError
        For a question with witnesses: a site without a replica may still be one. For losses with
        candidates for leader, or a leader that moves: who leads after a loss depends on them.
    """
    refuse_witnesses(problem, "the list of the next best plans")
    count = itertools.count()
    heap: list[tuple[float, int, Plan | Problem]] = []

    def add(part: Problem) -> None:
        plan = prove(part, method)
        if plan.found:
            heapq.heappush(heap, (plan.objective, next(count), plan))

    if isinstance(problem.objective, Contingency) and not problem.demand.leaderless:
        _refuse_candidates(problem, problem.objective)
        for bound, led in _by_leader(problem, problem.objective, method):
            heapq.heappush(heap, (bound, next(count), led))
    else:
        add(problem)
    while heap:
        _, _, best = heapq.heappop(heap)
        if isinstance(best, Problem):
            add(best)
            continue
        yield best
        for part in _rest(best):
            add(part)


def _refuse_candidates(problem: Problem, goal: Contingency) -> None:
    """Refuse losses after which other sites lead in a part than in the whole question."""
    for field, value, given in (
        ("leaders", problem.leaders, problem.leaders is not None),
        ("objective", "leader_may_move", goal.leader_may_move),
    ):
        if given:
            raise UnsupportedError(
                f"{field}: the list of the next best plans under losses does not know who leads "
                f"after a loss: got {value!r}, expected every voter as candidate after the loss of "
                "the leader, and a leader that stays otherwise"
            )


def _by_leader(problem: Problem, goal: Contingency, method: str) -> Iterator[tuple[float, Problem]]:
    """Return the question under every leader, and a bound on its value."""
    share = goal.normal_share(problem)
    usual = problem.replace(objective=MEAN_LATENCY)
    for site in problem.rules.may_lead.nonzero()[0].tolist():
        led = {"leader": problem.instance.sites[site]}
        try:
            part = problem.replace(**led)
            bound = 0.0
            if goal.percentile is None:
                plan = prove(usual.replace(**led), method)
                bound = share * plan.objective if plan.found else math.inf
        except InputError:
            continue  # the site cannot lead a plan that obeys the other rules
        if bound < math.inf:
            yield bound, part


def _rest(plan: Plan) -> Iterator[Problem]:
    """Split a part into smaller parts that together hold all plans of it but the best one."""
    problem = plan.problem
    sites, rules = problem.instance.sites, problem.rules
    leaders = [sites[s] for s in rules.may_lead.nonzero()[0] if sites[s] != plan.leader]
    forbidden = list(problem.forbidden)
    pinned = list(problem.pinned)

    def part(**changes: object) -> Iterator[Problem]:
        try:
            yield problem.replace(**changes)
        except InputError:
            return  # pins and counts contradict each other: nothing is there

    led: dict[str, object] = {"leader": plan.leader, "leaders": None}
    if plan.leader is None:  # no operation needs one
        led = {}
    elif leaders and problem.leader is None:
        yield from part(leaders=leaders)
    others = [name for name in plan.replicas if name != plan.leader]
    held: list[str] = []
    for name in others:
        if not rules.must_hold[sites.index(name)]:
            yield from part(**led, pinned=sorted({*pinned, *held}), forbidden=[*forbidden, name])
        held.append(name)
    if len(plan.replicas) < rules.replicas_max:
        yield from part(
            **led,
            pinned=sorted({*pinned, *plan.replicas}),
            replicas=(len(plan.replicas) + 1, rules.replicas_max),
        )


def next_best_plans(plan: Plan, count: int = 5, method: str = "exact") -> tuple[Plan, ...]:
    """Return the `count` best plans after the best one, of the problem of a plan.

    Parameters
    ----------
    plan
        Any plan of the problem.
    count
        How many; fewer when there are no more.
    method
        An exact method.
    """
    instance_of(plan, Plan, "plan", "a plan (placement.solve returns one)")
    whole(count, "count")
    found = itertools.islice(best_plans(plan.problem, method), 1, 1 + count)
    return tuple(p.replace(problem=plan.problem) for p in found)
