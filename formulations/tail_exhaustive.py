"""Percentile placement by enumeration: method ``exhaustive`` when the objective is a percentile.

Every replica set with its best roles (:mod:`placement.tail.roles`). A percentile is no sum, so
nothing is shared between sets and each takes milliseconds: for small instances.
"""

from __future__ import annotations

import itertools
import math
import time

import numpy as np

from placement.breakdown import objective
from placement.configuration import Configuration
from placement.errors import LimitError
from placement.methods import Options, Progress
from placement.plan import Plan, cheapest
from placement.problem import Problem
from placement.status import Termination
from placement.tail.roles import best_roles

__all__ = ["solve"]


def solve(problem: Problem, options: Options) -> Plan:
    """Evaluate every replica set with its best roles.

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
            f"{total:,} replica sets are more than the limit of {limit:,}; use 'local-search', or "
            "raise the setting 'limit'"
        )
    started = time.perf_counter()
    best: Configuration | None = None
    termination = Termination.FINISHED
    done = enumerated = 0
    try:
        for size in sizes:
            for more in itertools.combinations(free, size - len(pinned)):
                found, by_hand = best_roles(problem, sorted([*pinned, *more]))
                enumerated += by_hand
                done += 1
                if found is not None:
                    best = cheapest(problem, [found] if best is None else [best, found])
                seconds = time.perf_counter() - started
                incumbent = math.inf if best is None else objective(problem, best)
                options.report(Progress(seconds, incumbent, -math.inf, done, total))
                if options.time_limit is not None and seconds > options.time_limit and done < total:
                    raise TimeoutError
    except TimeoutError:
        termination = Termination.TIME_LIMIT
    except KeyboardInterrupt:
        termination = Termination.INTERRUPTED
    finished = termination is Termination.FINISHED
    if best is None and finished:
        return Plan.infeasible(
            problem,
            method="exhaustive",
            reasons=(f"none of the {total:,} replica sets has a plan that obeys all rules",),
        )
    return Plan.of(
        problem,
        best,
        method="exhaustive",
        bound=objective(problem, best) if best is not None and finished else -math.inf,
        termination=termination,
        stats={"sets": done, "of": total, "leaders with enumerated voters": enumerated},
    )
