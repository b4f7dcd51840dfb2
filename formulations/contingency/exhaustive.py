"""Contingency placement by enumeration: method ``exhaustive`` when the objective is a contingency.

With one RTT matrix and clients that stay where they are, replica sets are evaluated by the thousand
(:mod:`formulations.contingency.enumerate`); otherwise every configuration is evaluated on its own.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator

import numpy as np

from formulations.contingency.enumerate import best_of_block
from placement.breakdown import objective
from placement.checks import IntArray
from placement.configuration import Configuration
from placement.contingency import Contingency
from placement.errors import LimitError
from placement.feasibility import violations
from placement.methods import Options, Progress
from placement.plan import Plan
from placement.problem import Problem
from placement.score import TIE
from placement.status import Termination

__all__ = ["solve"]

_BLOCK = 4_000


def solve(problem: Problem, options: Options) -> Plan:
    """Evaluate every replica set, voter set and leader under every loss.

    Raises
    ------
    LimitError
        When there are more replica sets than the setting ``limit``.
    """
    contingency = problem.objective
    assert isinstance(contingency, Contingency)
    rules = problem.rules
    pinned = np.nonzero(rules.must_hold)[0].tolist()
    free = np.nonzero(rules.may_hold & ~rules.must_hold)[0].tolist()
    sizes = range(rules.replicas_min, rules.replicas_max + 1)
    total = sum(math.comb(len(free), size - len(pinned)) for size in sizes)
    limit = int(str(options.settings["limit"]))
    if total > limit:
        raise LimitError(
            f"{total:,} replica sets are more than the limit of {limit:,}; use 'milp', or raise "
            "the setting 'limit'"
        )
    fast = problem.demand.scenarios == 1 and not contingency.clients_move
    look = best_of_block if fast else _one_by_one
    best: tuple[float, float, Configuration] | None = None
    termination = Termination.FINISHED
    done = 0
    started = time.perf_counter()
    try:
        for size in sizes:
            for block in _blocks(free, pinned, size, _BLOCK if fast else 16):
                found = look(problem, contingency, block)
                if found is not None and (best is None or _better(found, best)):
                    best = found
                done += len(block)
                seconds = time.perf_counter() - started
                incumbent = math.inf if best is None else best[0]
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
        None if best is None else best[2],
        method="exhaustive",
        bound=objective(problem, best[2]) if best is not None and finished else -math.inf,
        termination=termination,
        stats={"sets": done, "of": total},
    )


def _better(
    one: tuple[float, float, Configuration], other: tuple[float, float, Configuration]
) -> bool:
    if one[0] < other[0] * (1 - TIE):
        return True
    return one[0] <= other[0] * (1 + TIE) and one[1] < other[1] * (1 - TIE)


def _blocks(free: list[int], pinned: list[int], size: int, rows: int) -> Iterator[IntArray]:
    if size < len(pinned):
        return
    sets = itertools.combinations(free, size - len(pinned))
    while chunk := list(itertools.islice(sets, rows)):
        yield np.sort(np.array([[*pinned, *more] for more in chunk], dtype=np.intp), axis=1)


def _one_by_one(
    problem: Problem, contingency: Contingency, block: IntArray
) -> tuple[float, float, Configuration] | None:
    best: tuple[float, float, Configuration] | None = None
    for row in block.tolist():
        for voters in itertools.combinations(row, problem.rules.voters):
            for leader in voters:
                configuration = Configuration.of(leader, voters, row)
                if violations(problem, configuration):
                    continue
                found = (
                    objective(problem, configuration),
                    contingency.tie_break(problem, configuration),
                    configuration,
                )
                if best is None or _better(found, best):
                    best = found
    return best
