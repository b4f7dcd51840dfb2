"""pbp-pmedian: exact p-median by reduced models or Benders decomposition."""

from __future__ import annotations

from collections.abc import Iterable

import pbp_pmedian  # type: ignore[import-not-found]  # an optional extra without types

from benchmarks.peers.pmedian import plan_of, refuses
from placement.errors import SolverError
from placement.methods.options import Options
from placement.methods.registry import Method
from placement.plan import Plan
from placement.problem import Problem
from placement.support.checks import FloatArray

__all__ = ["METHOD"]


def _call(problem: Problem, options: Options) -> Plan:
    limit = 600.0 if options.time_limit is None else options.time_limit

    def solve(cost: FloatArray, p: int) -> tuple[Iterable[int], bool]:
        # its rows are facilities, its columns clients
        _, sites, _, status, engine = pbp_pmedian.solve(cost.T.copy(), p, time_limit=limit)
        if sites is None:  # its only answer at a limit
            raise SolverError(f"pbp-pmedian ({engine}) gave no sites: status {status}")
        return sites, status == 0

    return plan_of(problem, METHOD.name, solve, options)


METHOD = Method(
    name="peer/pbp-pmedian",
    call=_call,
    summary="the p-median special case by pbp-pmedian",
    exact=True,
    refuses=refuses,
    reference="PyPI pbp-pmedian; Duran-Mateluna et al. 2023",
)
