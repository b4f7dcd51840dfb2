"""Enumeration of replica sets for objectives that do not share work between them.

The loop behind method ``exhaustive`` for contingencies and percentiles: blocks of replica sets, the
best of each, limits, progress and Ctrl-C. (For the mean latency
:mod:`formulations.enumeration.exhaustive` shares the nearest replicas between sets instead.)
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator

import numpy as np

from placement.errors import LimitError
from placement.evaluation.breakdown import objective_value
from placement.evaluation.score import TIE
from placement.feasibility.feasible_plans import role_choices, violations
from placement.measures.question import MeasureQuestion
from placement.methods.options import Options, Progress
from placement.model.configuration import Configuration
from placement.plan import Plan
from placement.problem import Problem
from placement.support.checks import IntArray
from placement.support.status import SearchEnd, Termination, end_early

Found = tuple[float, float, Configuration]
"""Value, second criterion, configuration."""


def is_better(one: Found, other: Found) -> bool:
    """Return whether `one` has the smaller value or, in a tie, the smaller second criterion."""
    if one[0] < other[0] * (1 - TIE):
        return True
    return one[0] <= other[0] * (1 + TIE) and one[1] < other[1] * (1 - TIE)


def enumerate_sets(
    problem: Problem,
    options: Options,
    look: Callable[[IntArray], Found | None],
    *,
    block: int,
    instead: str,
) -> Plan:
    """Return the best configuration over all replica sets, proven when all were evaluated.

    Parameters
    ----------
    problem, options
        The problem, and the limits of work; the setting ``limit`` is the most sets to evaluate.
    look
        Replica sets of one size, shape (sets, size), rows ascending -> the best configuration among
        them, or None.
    block
        Number of sets that `look` gets at a time.
    instead
        The alternative when there are too many sets, in words.

    Raises
    ------
    LimitError
        When there are more replica sets than the setting ``limit``.
    """
    rules = problem.rules
    pinned = np.nonzero(rules.must_hold)[0].tolist()
    free = np.nonzero(rules.may_hold & ~rules.must_hold)[0].tolist()
    sizes = range(max(rules.replicas_min, len(pinned)), rules.replicas_max + 1)
    total = sum(math.comb(len(free), size - len(pinned)) for size in sizes)
    limit = int(str(options.settings["limit"]))
    if total > limit:
        raise LimitError(
            f"{total:,} replica sets are more than the limit of {limit:,}; use {instead}, or "
            "raise the setting 'limit'"
        )
    best: Found | None = None
    end = SearchEnd()
    done = 0
    started = time.perf_counter()
    with end_early(end):
        for size in sizes:
            for sets in _blocks(free, pinned, size, block):
                found = look(sets)
                if found is not None and (best is None or is_better(found, best)):
                    best = found
                done += len(sets)
                seconds = time.perf_counter() - started
                incumbent = math.inf if best is None else best[0]
                options.report(Progress(seconds, incumbent, -math.inf, done, total))
                if options.time_limit is not None and seconds > options.time_limit and done < total:
                    raise TimeoutError
    finished = end.termination is Termination.FINISHED
    if best is None and finished:
        return Plan.infeasible(
            problem,
            method="exhaustive",
            reasons=(f"none of the {total:,} replica sets has a plan that obeys all rules",),
        )
    return Plan.of(
        problem,
        None if best is None else best[2],
        method="exhaustive",
        bound=objective_value(problem, best[2]) if best is not None and finished else -math.inf,
        termination=end.termination,
        stats={"sets": done, "of": total},
    )


def _blocks(free: list[int], pinned: list[int], size: int, rows: int) -> Iterator[IntArray]:
    sets = itertools.combinations(free, size - len(pinned))
    while chunk := list(itertools.islice(sets, rows)):
        yield np.sort(np.array([[*pinned, *more] for more in chunk], dtype=np.intp), axis=1)


def solve_measures(problem: Problem, options: Options) -> Plan:
    """Evaluate every configuration: method ``exhaustive`` of a question of measures.

    Raises
    ------
    LimitError
        When there are more replica sets than the setting ``limit``.
    """
    goal, best = problem.objective, math.inf
    assert isinstance(goal, MeasureQuestion)

    def look(sets: IntArray) -> Found | None:
        nonlocal best
        plans = [plan for row in sets.tolist() for plan in role_choices(problem, tuple(row))]
        worth = goal.quick_values(problem, plans)
        chosen: Found | None = None
        for place in np.argsort(worth, kind="stable").tolist():
            value, plan = float(worth[place]), plans[place]
            if math.isinf(value) or value > best * (1 + TIE):
                break
            found = (value, goal.tie_break(problem, plan), plan)
            if (chosen is None or is_better(found, chosen)) and not violations(problem, plan):
                chosen, best = found, min(best, value)
        return chosen

    return enumerate_sets(problem, options, look, block=64, instead="'exact'")
