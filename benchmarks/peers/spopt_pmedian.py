"""spopt: p-median through PuLP."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pulp  # type: ignore[import-untyped]  # an optional extra without types
from spopt.locate import PMedian  # type: ignore[import-not-found]  # the same

from benchmarks.peers.pmedian import TOLERANCE, plan_of, refuses
from placement.errors import SolverError
from placement.methods.options import Options
from placement.methods.registry import Method
from placement.plan import Plan
from placement.problem import Problem
from placement.support.checks import FloatArray

__all__ = ["METHOD"]


def _call(problem: Problem, options: Options) -> Plan:
    def solve(cost: FloatArray, p: int) -> tuple[Iterable[int], bool]:
        # the weights are in the costs: spopt multiplies both, and gives the mean only
        model = PMedian.from_cost_matrix(cost, np.ones(len(cost)), p_facilities=p)
        solver = pulp.HiGHS(
            msg=False,
            timeLimit=options.time_limit,
            gapRel=TOLERANCE,
            threads=options.threads,
        )
        try:
            model = model.solve(solver)
        except RuntimeError as error:  # its only answer to anything but "optimal"
            raise SolverError(f"spopt: {error}") from error
        opened = [i for i, variable in enumerate(model.fac_vars) if variable.value() > 0.5]
        # at a limit PuLP calls an incumbent "Optimal"; its solution status tells them apart
        return opened, model.problem.sol_status == pulp.LpSolutionOptimal

    return plan_of(problem, METHOD.name, solve, options)


METHOD = Method(
    name="peer/spopt",
    call=_call,
    summary="the p-median special case by spopt",
    exact=True,
    refuses=refuses,
    reference="PySAL spopt, locate.PMedian",
)
