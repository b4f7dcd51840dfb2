#!/bin/bash
# OR-Tools 9.15 (pywraplp with the solver HIGHS): dual_value of a constraint is the value of its row, and reduced_cost of a variable
# is 0. One more unit of a capacity of 8 that is used up seems to earn 8, and of a capacity of 5 to earn 5. The solver
# GLOP has the price, 3 in both cases; so does HiGHS by way of MathOpt of the same package.
#
# Guess before the run: the price is 3 with every solver.
# Seen: 8 and 5 by HIGHS, with reduced costs of 0; 3 by GLOP, with a reduced cost of -1 for the variable that is not worth
# it. Objective and plan are the same.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check ortools==9.15.6755
cat > ask.py <<'PY'
import sys
from importlib.metadata import version

from ortools.linear_solver import pywraplp
from ortools.math_opt.python import mathopt


def by_wrapper(name, capacity):
    solver = pywraplp.Solver.CreateSolver(name)
    solver.SuppressOutput()
    x, y = solver.NumVar(0, 10, "x"), solver.NumVar(0, 3, "y")
    row = solver.Add(x + y <= capacity)
    solver.Maximize(3 * x + 2 * y)
    solver.Solve()
    return solver.Objective().Value(), row.dual_value(), y.reduced_cost()


def by_mathopt(capacity):
    model = mathopt.Model()
    x, y = model.add_variable(lb=0, ub=10), model.add_variable(lb=0, ub=3)
    row = model.add_linear_constraint(x + y <= capacity)
    model.maximize(3 * x + 2 * y)
    answer = mathopt.solve(model, mathopt.SolverType.HIGHS)
    return answer.objective_value(), answer.dual_values(row), answer.reduced_costs(y)


found = {}
for capacity in (8, 5):
    found[capacity] = [by_wrapper("HIGHS", capacity), by_wrapper("GLOP", capacity), by_mathopt(capacity)]
    names = ("HIGHS", "GLOP", "HiGHS by MathOpt")
    print(f"ortools {version('ortools')}, capacity {capacity}, objective, price, reduced cost:", dict(zip(names, found[capacity])))
good = {room: [(3 * room, room, 0), (3 * room, 3, -1), (3 * room, 3, -1)] for room in (8, 5)}
sys.exit(0 if found == good else "the behaviour has changed")
PY
env/bin/python ask.py
