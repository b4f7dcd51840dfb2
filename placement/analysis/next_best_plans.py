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
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator

from placement.errors import InputError
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
        For a question with witnesses: a site without a replica may still be one.
    """
    refuse_witnesses(problem, "the list of the next best plans")
    count = itertools.count()
    heap: list[tuple[float, int, Plan]] = []

    def add(part: Problem) -> None:
        plan = prove(part, method)
        if plan.found:
            heapq.heappush(heap, (plan.objective, next(count), plan))

    add(problem)
    while heap:
        _, _, plan = heapq.heappop(heap)
        yield plan
        for part in _rest(plan):
            add(part)


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
