#!/bin/bash
# PuLP 3.3.0: a problem that is maximised, written by writeMPS, is a problem that is minimised for every
# reader, PuLP's own too: the direction stands in a comment of the file (*SENSE:Maximize).
#
# Guess before the run: the file says OBJSENSE MAX, or the coefficients of the objective change sign, so
# that HiGHS finds the optimum 9 and fromMPS gives the problem back.
# Seen: HiGHS minimises and finds 0; fromMPS returns a problem to minimise; PuLP itself finds 9.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check pulp==3.3.0 highspy==1.12.0
cat > ask.py << 'PY'
import sys
import highspy
import pulp
problem = pulp.LpProblem("sites", pulp.LpMaximize)
x, y = pulp.LpVariable("x", 0, 4), pulp.LpVariable("y", 0, 9)
problem += 2 * x + y
problem += x + y <= 5
problem.solve(pulp.PULP_CBC_CMD(msg=False))
best = pulp.value(problem.objective)
problem.writeMPS("sites.mps")
_, again = pulp.LpProblem.fromMPS("sites.mps")
highs = highspy.Highs()
highs.setOptionValue("output_flag", False)
highs.readModel("sites.mps")
highs.run()
theirs = highs.getObjectiveValue()
print(f"PuLP {pulp.__version__}, HiGHS {highs.version()}: {open('sites.mps').readline().strip()}")
print(f"PuLP finds {best}; HiGHS finds {theirs} in its file; read again: "
      f"{'minimise' if again.sense == pulp.LpMinimize else 'maximise'}")
sys.exit(0 if (best, theirs, again.sense) == (9, 0, pulp.LpMinimize) else "the behaviour has changed")
PY
env/bin/python ask.py
