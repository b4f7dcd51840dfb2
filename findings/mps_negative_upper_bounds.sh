#!/bin/bash
# MPS: a column whose upper bound is negative and whose lower bound is not given. CBC and PuLP 3.3.2 let the
# lower bound be minus infinity; HiGHS 1.16.0 keeps it at 0, so that no plan is left. One file is solved by
# one program and proven infeasible by the other.
#
# Guess before the run: both take minus infinity, as CPLEX's manual says.
# Seen: with x <= -3, y <= 0 and x + y >= -20, minimising x + y: -20 by CBC and PuLP, infeasible by HiGHS.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --target lib pulp==3.3.2 highspy==1.16.0 numpy==2.4.6
cat > ask.py << 'PY'
import subprocess
import sys
import highspy
import pulp
with open("model.mps", "w") as file:
    file.write("""NAME          model
ROWS
 N  cost
 G  c1
COLUMNS
    x         cost               1.0   c1                 1.0
    y         cost               1.0   c1                 1.0
RHS
    RHS       c1               -20.0
BOUNDS
 UP BND       x                 -3.0
 UP BND       y                  0.0
ENDATA
""")
highs = highspy.Highs()
highs.setOptionValue("output_flag", False)
highs.readModel("model.mps")
highs.run()
status = highs.modelStatusToString(highs.getModelStatus())
_, problem = pulp.LpProblem.fromMPS("model.mps")
solver = pulp.PULP_CBC_CMD(msg=False)
problem.solve(solver)
subprocess.run([solver.path, "model.mps", "solve", "solution", "found"], capture_output=True)
cbc = open("found").readline().strip()
print(f"HiGHS {highs.version()}: {status}; CBC alone: {cbc}; PuLP {pulp.__version__}: {pulp.value(problem.objective)}")
same = float(cbc.split()[-1]) == pulp.value(problem.objective) == -20
sys.exit(0 if status == "Infeasible" and same else "the behaviour has changed")
PY
PYTHONPATH=lib python3 ask.py
