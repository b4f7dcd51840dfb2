#!/bin/bash
# SCIP (pyscipopt 6.3.0) writes a name with a space, as the regions of Azure have them, into an MPS
# file as it stands, and reads its own file back without a word as another program.
#
# Guess before the run: the space is replaced or quoted, or the file is refused.
# Seen: two sites that must both be open cost 3; the file that SCIP wrote costs 0 when SCIP reads it.
# HiGHS makes four columns of the two sites, with a warning. SCIP's own CIP file keeps the names. The
# name of the row has a space too; where it has none, SCIP finds its file infeasible.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check pyscipopt==6.3.0 highspy==1.16.0
cat > ask.py <<'PY'
import sys
from importlib.metadata import version
import highspy
import pyscipopt
print("pyscipopt", version("pyscipopt"), "highspy", version("highspy"))
model = pyscipopt.Model()
model.hideOutput()
open_ = [model.addVar(f"open[{site}]", vtype="B", obj=cost) for site, cost in (("East US", 1), ("West US", 2))]
model.addCons(open_[0] + open_[1] >= 2, name="at least")
model.optimize()
found = [model.getObjVal()]
print("as it was stated:", found[0])
for file in ("sites.mps", "sites.cip"):
    model.writeProblem(file, trans=False, verbose=False)
    again = pyscipopt.Model()
    again.hideOutput()
    again.readProblem(file)
    names = [one.name for one in again.getVars()]
    again.optimize()
    found.append(again.getObjVal())
    print(f"{file} read again: {found[-1]}", names)
highs = highspy.Highs()
highs.silent()
status = highs.readModel("sites.mps")
print("HiGHS:", status, highs.getNumCol(), "columns")
sys.exit(0 if found == [3, 0, 3] and highs.getNumCol() == 4 else "the behaviour has changed")
PY
env/bin/python ask.py
