"""The best normal plan among those whose worst case is nearly the best possible."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from placement.errors import InputError
from placement.support.checks import number

if TYPE_CHECKING:
    from placement.methods.options import Progress
    from placement.plan import Plan
    from placement.problem import Problem

__all__ = ["solve_within"]


def solve_within(
    problem: Problem,
    slack: float,
    method: str = "exact",
    *,
    time_limit: float | None = None,
    gap_limit: float = 0.0,
    seed: int = 0,
    threads: int = 1,
    progress: Callable[[Progress], None] | None = None,
    settings: Mapping[str, object] | None = None,
) -> tuple[Plan, Plan]:
    """Return the best normal plan whose worst case is at most (1 + slack) × the best possible.

    Parameters
    ----------
    problem
        With a contingency objective of the goal "worst".
    slack
        ε >= 0; 0.05 gives up five per cent of the best worst case.
    method, gap_limit, seed, threads, progress, settings
        As for :func:`placement.solve`, of both searches.
    time_limit
        Seconds for both searches together.

    Returns
    -------
    (plan of the goal "worst", plan of the goal "bounded")
        The limit of the second is (1 + slack) times the worst case of the first: without a proof of
        the first, of the best that was found. The first comes twice when nothing was found. After
        Ctrl-C in the first search the second has no time to improve on its plan.
    """
    from time import perf_counter

    from placement.contingency.objective import Contingency
    from placement.methods.registry import solve
    from placement.support.status import Termination

    goal = problem.objective
    if not isinstance(goal, Contingency) or goal.goal != "worst":
        raise InputError(
            "needs a contingency objective",
            field="objective",
            value=goal.kind,
            expected="Contingency(goal='worst')",
        )
    slack = number(slack, "slack")
    began = perf_counter()
    search = partial(
        solve,
        method=method,
        gap_limit=gap_limit,
        seed=seed,
        threads=threads,
        progress=progress,
        settings=settings,
    )
    first = search(problem, time_limit=time_limit)
    if not first.found:
        return first, first
    interrupted = first.termination is Termination.INTERRUPTED
    left = None if time_limit is None else max(0.0, time_limit - (perf_counter() - began))
    limit = (1 + slack) * goal.in_ms(problem, first.objective)
    second = search(
        problem.replace(objective=replace(goal, goal="bounded", limit=limit)),
        time_limit=0.0 if interrupted else left,
        start=first,
    )
    if interrupted:
        second = second.replace(termination=first.termination)
    return first, second
