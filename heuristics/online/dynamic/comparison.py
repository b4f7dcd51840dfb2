"""Heuristics for dynamic copies, as a comparison calls them."""

from __future__ import annotations

from collections.abc import Callable

from heuristics.online.dynamic.greedy_copies import greedy
from heuristics.online.dynamic.local_topk import local_topk
from heuristics.online.dynamic.vote_rounds import run_votes
from placement.online.dynamic import ReplicationPlan, ReplicationProblem
from placement.online.dynamic.read_votes import Weight

__all__ = ["heuristic_costs"]


def heuristic_costs(
    problem: ReplicationProblem,
) -> dict[str, Callable[[], tuple[float, float]]]:
    """Return the heuristics by name; each gives its cost and its copies per site with room.

    Votes are the mean over the cycle that the rounds end in. With a grace period they hold more
    copies than the capacity: their cost may then be below the optimum.
    """
    room = problem.capacity > 0

    def votes(grace: int, weight: Weight) -> Callable[[], tuple[float, float]]:
        def step() -> tuple[float, float]:
            run = run_votes(problem, grace=grace, weight=weight)
            return run.mean_cost, float(run.mean_replicas[room].mean())

        return step

    def planned(
        method: Callable[[ReplicationProblem], ReplicationPlan],
    ) -> Callable[[], tuple[float, float]]:
        def step() -> tuple[float, float]:
            plan = method(problem)
            return plan.cost, float(plan.evaluation.replicas[room].mean())

        return step

    return {
        "votes": votes(1, Weight.COUNT),
        "votes, grace 3": votes(3, Weight.COUNT),
        "votes weighted by ms saved": votes(1, Weight.SAVED),
        "local top-k": planned(local_topk),
        "greedy": planned(greedy),
    }
