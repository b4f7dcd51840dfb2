#!/bin/bash
# HiGHS 1.16.0: the plan of a model with whole numbers goes past a row by the whole tolerance of 10^-6, even in a model of two
# columns, and the bound that proves it goes with it. So the "optimal" value is better than that of any plan, and a check
# with exact numbers refuses plan and bound.
#
# Guess before the run: x + 2y with x + y <= 5.5, x <= 4 and y <= 3 whole has the optimum 8.5 to the last digits.
# Seen: 8.500001 as value and as bound, with x = 2.500001 and y = 3. Without whole numbers HiGHS says 8.5; SCIP (pyscipopt
# 6.3.0) and CBC (of PuLP 3.3.2) say 8.5 with them.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check highspy==1.16.0 pyscipopt==6.3.0 pulp==3.3.2
cat > ask.py <<'PY'
import sys
import highspy
import pulp
import pyscipopt


def highs(whole):
    solver = highspy.Highs()
    solver.silent()
    x = solver.addVariable(0, 4)
    y = solver.addIntegral(0, 3) if whole else solver.addVariable(0, 3)
    solver.addConstr(x + y <= 5.5)
    solver.maximize(x + 2 * y)
    status = solver.modelStatusToString(solver.getModelStatus())
    bound = solver.getInfo().mip_dual_bound if whole else solver.getObjectiveValue()
    print(f"HiGHS, y whole: {whole}: {status}, {solver.getObjectiveValue():.9f}, bound {bound:.9f}, x {solver.val(x):.9f}, y {solver.val(y)}")
    return [round(value, 9) for value in (solver.getObjectiveValue(), bound)]


found = [highs(True), highs(False)]
scip = pyscipopt.Model()
scip.hideOutput()
x, y = scip.addVar("x", ub=4), scip.addVar("y", vtype="I", ub=3)
scip.addCons(x + y <= 5.5)
scip.setObjective(x + 2 * y, "maximize")
scip.optimize()
problem = pulp.LpProblem("two", pulp.LpMaximize)
x, y = pulp.LpVariable("x", 0, 4), pulp.LpVariable("y", 0, 3, pulp.LpInteger)
problem += x + 2 * y
problem += x + y <= 5.5
problem.solve(pulp.PULP_CBC_CMD(msg=False))
others = [round(scip.getObjVal(), 9), round(pulp.value(problem.objective), 9)]
print("SCIP and CBC:", others)
same = found == [[8.500001, 8.500001], [8.5, 8.5]] and others == [8.5, 8.5]
sys.exit(0 if same else "the behaviour has changed")
PY
env/bin/python ask.py
