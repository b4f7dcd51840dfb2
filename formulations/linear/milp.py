"""Leader by leader by HiGHS (part of the method ``milp``): branch and bound on safe LP bounds.

HiGHS solves the linear relaxations. The bounds come from their row duals by weak duality with the
rounding errors bounded (:mod:`formulations.solvers.safe_bounds`), so that "optimal" and
"infeasible" need no other witness. The leaves of the tree are evaluated.
"""

from __future__ import annotations

import math

from formulations.linear.leader_program import LeaderProgram
from formulations.linear.leader_search import LeaderSearch, solve
from formulations.solvers.safe_bounds import prove_by_branching
from placement.methods.options import Options
from placement.plan import Plan
from placement.problem import Problem
from placement.support.checks import FloatArray

_SIZE = 1e6
"""Objective of the best plan in a program: far above the tolerances of HiGHS."""


class _ProgramChangedError(Exception):
    """A plan was found that is better, or that a row outside the program rules out."""


def solve_measures(problem: Problem, options: Options) -> Plan:
    """Answer a question of measures, or a plain one."""
    return solve(problem, options, "milp", _bound)


def _bound(search: LeaderSearch, program: LeaderProgram, nodes: int | None) -> float:
    """Bound the plans of a program in a tree of linear programs."""
    leader = program.case.leader
    top = search.most(leader)
    if math.isinf(top):
        top = max(part.greatest() for part in program.objective)
    scale = _SIZE / top if top > 0 else 1.0
    factor = scale * search.functions(leader)[-1].scale

    def judge(values: FloatArray) -> bool:
        if search.judge(program.configuration(values)):
            return True
        raise _ProgramChangedError

    try:
        proof = prove_by_branching(
            program.arrays(scale, top),
            search.asked(leader) * scale,
            judge,
            deadline=search.end,
            most=nodes,
            report=lambda bound: search.report(program.case, bound / factor),
        )
    except _ProgramChangedError:
        return -math.inf
    search.stats["nodes"] = search.stats.get("nodes", 0) + proof.nodes
    if proof.interrupted:
        raise KeyboardInterrupt
    return proof.reached / scale * (1 - 1e-15)
