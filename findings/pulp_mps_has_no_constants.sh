#!/bin/bash
# PuLP 3.3.2: fromMPS ends with a KeyError where the objective has a constant, which MPS files hold as a right-hand
# side of the objective's row and which HiGHS, SCIP and OR-Tools write so. CBC, which PuLP brings, reads it.
# The other way round, writeMPS leaves a constant out.
#
# Guess before the run: fromMPS takes minus the right-hand side as the constant, as CBC and HiGHS do.
# Seen: the file with the constant 10 has the optimum 22 by CBC and is a KeyError by PuLP; the same problem of
# PuLP, written by writeMPS, has the optimum 12 by CBC.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --target lib pulp==3.3.2
cat > ask.py << 'PY'
import subprocess
import sys
import pulp
with open("model.mps", "w") as file:
    file.write("""NAME          model
ROWS
 N  cost
 G  c1
COLUMNS
    x         cost               3.0   c1                 1.0
    y         cost               5.0   c1                 1.0
RHS
    RHS       cost             -10.0   c1                 4.0
ENDATA
""")
problem = pulp.LpProblem("model", pulp.LpMinimize)
x, y = pulp.LpVariable("x", 0), pulp.LpVariable("y", 0)
problem += 3 * x + 5 * y + 10
problem += x + y >= 4, "c1"
problem.writeMPS("written.mps")
solver = pulp.PULP_CBC_CMD(msg=False)
found = []
for name in "model.mps", "written.mps":
    subprocess.run([solver.path, name, "solve", "solution", "found"], capture_output=True)
    found.append(float(open("found").readline().split()[-1]))
    print(f"CBC, {name}: {found[-1]}")
try:
    pulp.LpProblem.fromMPS("model.mps")
    read = "read"
except KeyError as error:
    read = repr(error)
problem.solve(solver)
print(f"PuLP {pulp.__version__}, model.mps: {read}; its own problem: {pulp.value(problem.objective)}")
good = (found, read, pulp.value(problem.objective)) == ([22, 12], "KeyError('cost')", 22)
sys.exit(0 if good else "the behaviour has changed")
PY
PYTHONPATH=lib python3 ask.py
