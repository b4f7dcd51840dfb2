#!/bin/bash
# PuLP 3.3.0 reads an integer column without bounds of an MPS file as a whole number of any size. HiGHS
# 1.12.0 and CBC, which PuLP itself brings and calls, read it as 0 or 1. So one file has two optima, and
# no warning says so: a number of replicas is a choice of yes or no, or the other way round.
#
# Guess before the run: all three read the same problem, a whole number >= 0 without upper bound.
# Seen: maximising x + y with x + y <= 7.5, x whole and y <= 2 gives 3 by HiGHS and by CBC alone (x <= 1), and
# 7.5 by fromMPS and the same CBC.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check pulp==3.3.0 highspy==1.12.0
cat > counts.mps << 'MPS'
NAME          counts
ROWS
 N  cost
 L  c1
COLUMNS
    MARKER    'MARKER'                 'INTORG'
    x         cost              -1.0   c1                 1.0
    MARKER    'MARKER'                 'INTEND'
    y         cost              -1.0   c1                 1.0
RHS
    RHS       c1                 7.5
BOUNDS
 UP BND       y                  2.0
ENDATA
MPS
cat > ask.py << 'PY'
import subprocess
import sys
import highspy
import pulp
highs = highspy.Highs()
highs.setOptionValue("output_flag", False)
highs.readModel("counts.mps")
highs.run()
columns, problem = pulp.LpProblem.fromMPS("counts.mps")
solver = pulp.PULP_CBC_CMD(msg=False)
problem.solve(solver)
said = subprocess.run([solver.path, "counts.mps", "solve", "solution", "found"], capture_output=True, text=True)
cbc = float(open("found").readline().split()[-1])
found = [-highs.getObjectiveValue(), -cbc, -pulp.value(problem.objective)]
print(f"HiGHS {highs.version()}: {found[0]}; CBC alone: {found[1]}; "
      f"PuLP {pulp.__version__} and CBC: {found[2]}, upper bound of x {columns['x'].upBound}")
sys.exit(0 if found == [3, 3, 7.5] else "the behaviour has changed")
PY
env/bin/python ask.py
