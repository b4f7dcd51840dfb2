#!/bin/bash
# HiGHS 1.16.0 (by scipy 1.17.1 too) and SCIP (pyscipopt 6.3.0) take coefficients of 10^-9 and less for 0. Egress costs
# 9 x 10^-11 $ a byte and more, so a budget over bytes becomes a row of zeros, which every plan keeps. The answer is "optimal",
# and above the budget; scipy and SCIP say nothing of it. (highspy's addConstr raises an error; HiGHS warns in its log when it
# reads a file.)
#
# Guess before the run: the row counts, or the model is refused as badly scaled.
# Seen: 10^6 bytes over a near path (9 x 10^-10 $) and a far one (2 x 10^-10 $), budget 0.0005 $. HiGHS and SCIP send all bytes
# over the near path, for 0.0009 $. CBC (of PuLP 3.3.2) and GLOP (OR-Tools 9.15) keep the budget, with 428,571 near.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check scipy==1.17.1 highspy==1.16.0 pyscipopt==6.3.0 pulp==3.3.2 ortools==9.15.6755
cat > ask.py <<'PY'
import sys
import highspy
import numpy as np
import pulp
import pyscipopt
from ortools.linear_solver import pywraplp
from scipy.optimize import LinearConstraint, milp

RTT, PRICE, BYTES, BUDGET = (10, 50), (9e-10, 2e-10), 1e6, 5e-4
found = {}
rows = [LinearConstraint([[1, 1]], BYTES, np.inf), LinearConstraint([PRICE], -np.inf, BUDGET)]
answer = milp(RTT, constraints=rows)
found["scipy"] = answer.message.split(".")[0], answer.x[0]

scip = pyscipopt.Model()
scip.hideOutput()
near, far = scip.addVar("near"), scip.addVar("far")
scip.addCons(near + far >= BYTES)
scip.addCons(PRICE[0] * near + PRICE[1] * far <= BUDGET)
scip.setObjective(RTT[0] * near + RTT[1] * far)
scip.optimize()
found["SCIP"] = scip.getStatus(), scip.getVal(near)

problem = pulp.LpProblem("paths", pulp.LpMinimize)
near, far = pulp.LpVariable("near", 0), pulp.LpVariable("far", 0)
problem += RTT[0] * near + RTT[1] * far
problem += near + far >= BYTES
problem += PRICE[0] * near + PRICE[1] * far <= BUDGET
problem.solve(pulp.PULP_CBC_CMD(msg=False))
found["CBC"] = pulp.LpStatus[problem.status], near.value()

problem.writeMPS("paths.mps")
highs = highspy.Highs()
highs.silent()
highs.readModel("paths.mps")
highs.run()
sent = dict(zip(highs.getLp().col_names_, highs.getSolution().col_value))
found["HiGHS"] = highs.modelStatusToString(highs.getModelStatus()), sent["near"]

glop = pywraplp.Solver.CreateSolver("GLOP")
near, far = (glop.NumVar(0, glop.infinity(), name) for name in ("near", "far"))
glop.Add(near + far >= BYTES)
glop.Add(PRICE[0] * near + PRICE[1] * far <= BUDGET)
glop.Minimize(RTT[0] * near + RTT[1] * far)
found["GLOP"] = str(glop.Solve()), near.solution_value()

for name, (status, sent) in found.items():
    print(f"{name}: {status}, near {sent:,.0f} bytes, {PRICE[0] * sent + PRICE[1] * (BYTES - sent):.6f} $ of {BUDGET} $")
near = {name: round(sent) for name, (_, sent) in found.items()}
right = {"scipy": 1_000_000, "SCIP": 1_000_000, "CBC": 428_571, "HiGHS": 1_000_000, "GLOP": 428_571}
sys.exit(0 if near == right else "the behaviour has changed")
PY
env/bin/python ask.py
