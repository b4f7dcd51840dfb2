#!/bin/bash
# OR-Tools 9.15: CP-SAT behind MPSolver takes a number without an upper bound as one that ends at 10,000,000. Demand in bytes or
# operations needs more sites than it has to, with the status OPTIMAL, or has no plan at all.
#
# Guess before the run: the right plan, as with HiGHS by the same calls, or the status MODEL_INVALID.
# Seen: 30,000,000 operations that one site of three could serve: HiGHS opens 1, SAT opens 3, both OPTIMAL. Of two sites at the
# prices 1 and 2 HiGHS takes the first one for all of them, and SAT says INFEASIBLE.
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

import ortools
from ortools.linear_solver import pywraplp

DEMAND = 30_000_000
status = {pywraplp.Solver.OPTIMAL: "OPTIMAL", pywraplp.Solver.INFEASIBLE: "INFEASIBLE"}


def sites(name):
    solver = pywraplp.Solver.CreateSolver(name)
    solver.SuppressOutput()
    served = [solver.NumVar(0, solver.infinity(), f"served{i}") for i in range(3)]
    opened = [solver.BoolVar(f"open{i}") for i in range(3)]
    solver.Add(sum(served) == DEMAND)
    for amount, site in zip(served, opened):
        solver.Add(amount <= DEMAND * site)
    solver.Minimize(sum(opened))
    found = solver.Solve()
    return status.get(found, found), solver.Objective().Value(), [amount.solution_value() for amount in served]


def prices(name):
    solver = pywraplp.Solver.CreateSolver(name)
    solver.SuppressOutput()
    near, far = (solver.NumVar(0, solver.infinity(), word) for word in ("near", "far"))
    solver.Add(near + far >= DEMAND)
    solver.Minimize(near + 2 * far)
    found = solver.Solve()
    return status.get(found, found), solver.Objective().Value() if found == pywraplp.Solver.OPTIMAL else None


found = {name: (sites(name), prices(name)) for name in ("HIGHS", "SAT")}
for name, (plan, cost) in found.items():
    print(f"OR-Tools {ortools.__version__}, {name}: sites {plan[1]:.0f} {plan[0]}, served {plan[2]}; two prices: {cost}")
same = (
    found["HIGHS"][0][:2] == ("OPTIMAL", 1.0)
    and found["HIGHS"][1] == ("OPTIMAL", 3e7)
    and found["SAT"] == (("OPTIMAL", 3.0, [1e7, 1e7, 1e7]), ("INFEASIBLE", None))
)
sys.exit(0 if same else "the behaviour has changed")
PY
env/bin/python ask.py
