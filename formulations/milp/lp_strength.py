"""Strength and size of a recipe: its LP bound, its rows and columns."""

from __future__ import annotations

import math
import time

from formulations.milp.program_data import program_data, reduce_terms
from formulations.milp.program_model import build
from formulations.milp.recipes import Recipe
from formulations.solvers.highs import Relaxation
from formulations.solvers.statuses import Verdict
from placement.problem import Problem


def strength(
    problem: Problem,
    recipe: Recipe,
    *,
    cutoff: float | None = None,
    time_limit: float = math.inf,
) -> dict[str, float]:
    """Return size and LP bound of a recipe, by name, with the seconds of building and solving.

    The program is reduced with `cutoff`, the objective of a known configuration. The bound has the
    units of the objective, to HiGHS's tolerances: +∞ when the relaxation is infeasible, −∞ when it
    was not solved in time. SolverError when HiGHS fails.
    """
    began = time.perf_counter()
    terms = program_data(problem)
    if cutoff is not None:
        terms = reduce_terms(terms, cutoff)
    # Any feasible order of magnitude will do for the scale of an LP.
    milp = build(terms, recipe.rows, cutoff if cutoff else max(1.0, *terms.direct.values()))
    program = milp.program()
    built = time.perf_counter()
    relaxation = Relaxation(program)
    verdict = relaxation.solve(deadline=built + time_limit, presolve=True)
    bound = math.inf if verdict is Verdict.INFEASIBLE else -math.inf
    if verdict is Verdict.OPTIMAL:
        bound = relaxation.objective / milp.scale
    seconds = {"build_seconds": built - began, "lp_seconds": time.perf_counter() - built}
    return {"bound": bound, **program.size(), **seconds}
