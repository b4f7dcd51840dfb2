#!/bin/bash
# SCIP (pyscipopt 6.3.0) solves a program in which two variables have the same name, and writes it
# without a word. The files hold three different programs: LP and MPS have one variable, CIP has two.
#
# Guess before the run: a second variable of a name is refused or renamed when the program is written.
# Seen: two variables of costs 1 and 2, of which both are needed, cost 3. The LP file has one variable
# of cost 3 (by chance the same value), the MPS file one of cost 2, and in the CIP file the row asks
# twice for the second variable, which costs 2.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check pyscipopt==6.3.0
cat > ask.py <<'PY'
import sys
from importlib.metadata import version
import pyscipopt
print("pyscipopt", version("pyscipopt"))
model = pyscipopt.Model()
model.hideOutput()
first, second = model.addVar("paris", vtype="B", obj=1), model.addVar("paris", vtype="B", obj=2)
model.addCons(first + second >= 2)
model.optimize()
found = [(2, model.getObjVal())]
print("as it was stated:", found[0])
for file in ("sites.lp", "sites.mps", "sites.cip"):
    model.writeProblem(file, trans=False, verbose=False)
    again = pyscipopt.Model()
    again.hideOutput()
    again.readProblem(file)
    again.optimize()
    found.append((again.getNVars(False), again.getObjVal()))
    print(file, "variables and value:", found[-1])
sys.exit(0 if found == [(2, 3), (1, 3), (1, 2), (2, 2)] else "the behaviour has changed")
PY
env/bin/python ask.py
