"""Strength and size of a recipe: its LP bound, its rows and columns."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from formulations.milp.cutting_rounds import scale_for
from formulations.milp.program_data import program_data, reduce_terms
from formulations.milp.program_model import build, mass_of
from formulations.milp.recipes import Recipe
from formulations.solvers.highs import Relaxation
from formulations.solvers.statuses import Verdict
from placement.problem import Problem


@dataclass(frozen=True, slots=True)
class Strength:
    """Size and LP bound of a recipe on a problem."""

    recipe: Recipe  #: which
    #: optimum of the LP relaxation in units of the objective, to HiGHS's tolerances; +∞ when the
    #: relaxation is infeasible, −∞ when it was not solved in time
    bound: float
    #: `variables`, `binaries`, `rows`, `nonzeros`: size before HiGHS's presolve
    variables: int
    binaries: int
    rows: int
    nonzeros: int
    #: `build_seconds`, `lp_seconds`: wall time of building the program and of solving its
    #: relaxation
    build_seconds: float
    lp_seconds: float


def strength(
    problem: Problem,
    recipe: Recipe,
    *,
    cutoff: float | None = None,
    time_limit: float = math.inf,
) -> Strength:
    """Build a recipe and solve its LP relaxation.

    Parameters
    ----------
    problem
        The question.
    recipe
        The formulation.
    cutoff
        Objective of a known configuration, to reduce the program with; None: the whole program.
    time_limit
        Seconds for the LP.

    Raises
    ------
    SolverError
        When HiGHS fails.
    """
    began = time.perf_counter()
    terms = program_data(problem)
    if cutoff is not None:
        terms = reduce_terms(terms, cutoff)
    # Any feasible order of magnitude will do for the scale of an LP.
    typical = cutoff if cutoff else max(1.0, *terms.direct.values())
    milp = build(terms, recipe.rows, scale_for(typical, mass_of(terms, recipe.rows)))
    program = milp.program()
    built = time.perf_counter()
    relaxation = Relaxation(program)
    verdict = relaxation.solve(deadline=built + time_limit, presolve=True)
    bound = math.inf if verdict is Verdict.INFEASIBLE else -math.inf
    if verdict is Verdict.OPTIMAL:
        bound = relaxation.objective / milp.scale
    return Strength(
        recipe=recipe,
        bound=bound,
        variables=len(program.columns),
        binaries=int(program.integer.sum()),
        rows=len(program.row_lower),
        nonzeros=len(program.value),
        build_seconds=built - began,
        lp_seconds=time.perf_counter() - built,
    )
