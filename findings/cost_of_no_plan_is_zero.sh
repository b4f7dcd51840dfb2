#!/bin/bash
# A search that has not found a plan yet has a cost of 0 by two libraries, the best of all: objective_value of CP-SAT (OR-Tools
# 9.15), also after INFEASIBLE, and problem.value of CVXPY 1.9.3 with HiGHS, whose variables are 0 as well. Who keeps the
# cheapest of several runs and forgets one status keeps a plan that does not exist.
#
# Guess before the run: an error, None or infinity; CVXPY's value is None before a run and inf when there is no plan.
# Seen: UNKNOWN 0.0 and INFEASIBLE 0.0 (bound 0.0 too) by CP-SAT; user_limit 0.0 by CVXPY, with no median open where 8
# must be. SCIP (pyscipopt 6.3.0) has 1e20, and CVXPY itself inf after "infeasible".
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check ortools==9.15.6755 cvxpy==1.9.3 highspy==1.16.0 pyscipopt==6.3.0 numpy==2.4.6
cat > ask.py <<'PY'
import sys
import warnings

import cvxpy as cp
import numpy as np
import pyscipopt
from ortools.sat.python import cp_model

warnings.simplefilter("ignore")
CLIENTS, SITES, MEDIANS = 80, 40, 8
rtt = np.random.default_rng(1).integers(1, 1000, (CLIENTS, SITES))


def ask_cpsat(limit, rows):
    model = cp_model.CpModel()
    serves = [[model.new_bool_var("") for _ in range(SITES)] for _ in range(CLIENTS)]
    is_open = [model.new_bool_var("") for _ in range(SITES)]
    for row in serves:
        model.add_exactly_one(row)
        for one, site in zip(row, is_open):
            model.add_implication(one, site)
    for wanted in rows:
        model.add(sum(is_open) == wanted)
    model.minimize(sum(int(cost) * one for costs, row in zip(rtt, serves) for cost, one in zip(costs, row)))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = limit
    solver.parameters.num_workers = 1
    return solver.status_name(solver.solve(model)), solver.objective_value, solver.best_objective_bound


is_open = cp.Variable(SITES, boolean=True)
serves = cp.Variable((CLIENTS, SITES), nonneg=True)
rows = [cp.sum(serves, axis=1) == 1, serves <= cp.vstack([is_open] * CLIENTS), cp.sum(is_open) == MEDIANS]
problem = cp.Problem(cp.Minimize(cp.sum(cp.multiply(rtt, serves))), rows)
problem.solve(solver="HIGHS", time_limit=0.0)
by_cvxpy = problem.status, float(problem.value), float(is_open.value.sum())

impossible = cp.Problem(problem.objective, [*rows, cp.sum(is_open) == MEDIANS + 1])
impossible.solve(solver="HIGHS")
scip = pyscipopt.Model()
scip.hideOutput()
scip.setObjective(scip.addVar(vtype="I", lb=1))
scip.setParam("limits/time", 0.0)
scip.optimize()

by_cpsat = [ask_cpsat(0.0, [MEDIANS]), ask_cpsat(60, [MEDIANS, MEDIANS + 1])]
print("CP-SAT", *by_cpsat, "| CVXPY", by_cvxpy, impossible.status, impossible.value, "| SCIP", scip.getStatus(), scip.getPrimalbound())
same = by_cpsat == [("UNKNOWN", 0, 0), ("INFEASIBLE", 0, 0)] and by_cvxpy == ("user_limit", 0, 0)
sys.exit(0 if same and impossible.value == np.inf and scip.getPrimalbound() == 1e20 else "the behaviour has changed")
PY
env/bin/python ask.py
