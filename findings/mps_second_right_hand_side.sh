#!/bin/bash
# An MPS file may hold several right-hand sides and several sets of bounds, each with its name. HiGHS 1.16.0, SCIP (pyscipopt
# 6.3.0) and CBC use the first right-hand side; OR-Tools 9.15 and PuLP 3.3.2 let each later one overwrite what they
# read before. One file is two problems, and each reader calls its answer optimal.
#
# Guess before the run: every reader takes the first set, as the format's description has it (a program may let the user choose
# another one).
# Seen: with demand 4 (LOW) and 9 (HIGH) the least x is 4 by the first three and 9 by the two others. With two sets of bounds
# OR-Tools and PuLP take the last one too.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check pulp==3.3.2 highspy==1.16.0 pyscipopt==6.3.0 ortools==9.15.6755
cat > ask.py <<'PY'
import subprocess
import sys
import highspy
import pulp
import pyscipopt
from ortools.linear_solver.python import model_builder


def highs(name):
    solver = highspy.Highs()
    solver.silent()
    solver.readModel(name)
    solver.run()
    return solver.getObjectiveValue()


def scip(name):
    model = pyscipopt.Model()
    model.hideOutput()
    model.readProblem(name)
    model.optimize()
    return model.getObjVal()


def cbc(name):
    subprocess.run([pulp.PULP_CBC_CMD().path, name, "solve", "solution", "found"], capture_output=True)
    return float(open("found").readline().split()[-1])


def ortools(name):
    model = model_builder.Model()
    assert model.import_from_mps_file(name)
    solver = model_builder.Solver("glop")
    assert str(solver.solve(model)) == "SolveStatus.OPTIMAL"
    return solver.objective_value


def by_pulp(name):
    _, problem = pulp.LpProblem.fromMPS(name)
    problem.solve(pulp.PULP_CBC_CMD(msg=False))
    return pulp.value(problem.objective)


def ask(name, text, readers):
    with open("model.mps", "w") as file:
        file.write(text)
    found = {reader.__name__: round(reader("model.mps"), 6) for reader in readers}
    print(f"{name}: {found}")
    return [*found.values()]


START = """NAME          model
ROWS
 N  cost
 G  c1
COLUMNS
    x         cost               1.0   c1                 1.0
    y         cost               2.0   c1                 1.0
RHS
    LOW       c1                 4.0
"""
sides = ask("two right-hand sides", START + "    HIGH      c1                 9.0\nENDATA\n", [highs, scip, cbc, ortools, by_pulp])
bounds = """BOUNDS
 UP FIRST     x                  3.0
 UP SECOND    x                  1.0
ENDATA
"""
sets = ask("two sets of bounds", START + bounds, [highs, scip, ortools, by_pulp])
sys.exit(0 if (sides, sets) == ([4, 4, 4, 9, 9], [5, 5, 7, 7]) else "the behaviour has changed")
PY
env/bin/python ask.py
