#!/bin/bash
# PuLP 3.3.2 writes names into an LP file that are words of the format: sites that are called by airports (BIN is
# Bamyan, END is Enid) begin a section where they stand. Each reader makes another program of the file. PuLP itself
# solves by way of an MPS file and is right.
#
# Guess before the run: writeLP renames such a name, as it does with a hyphen, or refuses it.
# Seen: costs 1 and 2, whole numbers to 5, and 6.5 or more to cover. The optimum is 9. From the file HiGHS 1.16.0 finds 8.5
# with a site BIN (4.5 replicas) and refuses END; SCIP (pyscipopt 6.3.0) finds 0 with END, as nothing is left, and
# refuses BIN; CBC finds 8 with END, and is right with BIN. A site FRA is 9 everywhere.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --target lib pulp==3.3.2 \
    highspy==1.16.0 pyscipopt==6.3.0 numpy==2.4.6
cat > ask.py << 'PY'
import subprocess
import sys
import highspy
import pulp
import pyscipopt
def highs():
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    if solver.readModel("model.lp") == highspy.HighsStatus.kError:
        return "refused"
    solver.run()
    return solver.getObjectiveValue()
def scip():
    solver = pyscipopt.Model()
    solver.hideOutput()
    try:
        solver.readProblem("model.lp")
    except OSError:
        return "refused"
    solver.optimize()
    return solver.getObjVal()
def cbc():
    program = pulp.PULP_CBC_CMD(msg=False).path
    subprocess.run([program, "model.lp", "solve", "solution", "found"], capture_output=True)
    return float(open("found").readline().split()[-1])
found = {}
for name in "FRA", "BIN", "END":
    problem = pulp.LpProblem("replicas")
    first, second = (pulp.LpVariable(site, 0, 5, cat="Integer") for site in (name, "OSL"))
    problem += first + 2 * second
    problem += first + second >= 6.5
    problem.writeLP("model.lp")
    problem.solve(pulp.PULP_CBC_CMD(msg=False))
    found[name] = [pulp.value(problem.objective), highs(), scip(), cbc()]
    print(f"a site {name}: PuLP {found[name][0]}; its LP file by HiGHS {found[name][1]}, SCIP {found[name][2]}, CBC {found[name][3]}")
good = {"FRA": [9, 9, 9, 9], "BIN": [9, 8.5, "refused", 9], "END": [9, "refused", 0, 8]}
sys.exit(0 if found == good else f"the behaviour has changed: {found}")
PY
PYTHONPATH=lib python3 ask.py 2> log || { cat log; exit 1; }
