#!/bin/bash
# HiGHS 1.16.0: in an MPS file the right-hand side of a second row of type N, which is no objective and restricts nothing,
# is taken for the constant of the objective. The plan is right and its cost is not; without a word.
#
# Guess before the run: a second row of type N is left out, with its right-hand side.
# Seen: the least cost is 4; HiGHS says 1, 4 less the 3 of the other row. CBC and SCIP (pyscipopt 6.3.0) say 4. Where
# the objective has a constant of its own, later in the file, that one is lost: HiGHS still says 1, the others 14.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check highspy==1.16.0 pulp==3.3.2 pyscipopt==6.3.0
cat > ask.py <<'PY'
import subprocess
import sys
import highspy
import pulp
import pyscipopt


def ask(constant):
    with open("model.mps", "w") as file:
        file.write(f"""NAME          model
ROWS
 N  cost
 N  other
 G  c1
COLUMNS
    x         cost               1.0   other              5.0
    x         c1                 1.0
RHS
    RHS       c1                 4.0   other              3.0
{constant}ENDATA
""")
    highs = highspy.Highs()
    highs.silent()
    highs.readModel("model.mps")
    highs.run()
    scip = pyscipopt.Model()
    scip.hideOutput()
    scip.readProblem("model.mps")
    scip.optimize()
    subprocess.run([pulp.PULP_CBC_CMD().path, "model.mps", "solve", "solution", "found"], capture_output=True)
    cbc = float(open("found").readline().split()[-1])
    found = [highs.getObjectiveValue(), scip.getObjVal(), cbc]
    print(dict(zip(["HiGHS", "SCIP", "CBC"], found)), "x =", highs.getSolution().col_value[0])
    return found


alone = ask("")
both = ask("    RHS       cost             -10.0\n")
sys.exit(0 if (alone, both) == ([1, 4, 4], [1, 14, 14]) else "the behaviour has changed")
PY
env/bin/python ask.py
