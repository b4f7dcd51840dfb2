#!/bin/bash
# python-sat 1.9.dev24: a clause that is added with weight 0 to a weighted formula becomes a hard one,
# which every solution must keep. A cost of 0 thus forbids what it should make free.
#
# Guess before the run: a clause of weight 0 is left out, or kept as a soft clause that costs nothing.
# Seen: "site 1 or site 2", where site 1 costs 0 and site 2 costs 3, has the optimum 3: site 1 is
# forbidden. With a cost of 0.001 for site 1 the optimum is 0.001.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check python-sat==1.9.dev24
cat > ask.py <<'PY'
import sys
from importlib.metadata import version
from pysat.examples.rc2 import RC2
from pysat.formula import WCNF
print("python-sat", version("python-sat"))
found = []
for cost in (0, 0.001):
    formula = WCNF()
    formula.append([1, 2])
    formula.append([-1], weight=cost)
    formula.append([-2], weight=3)
    with RC2(formula) as solver:
        model = solver.compute()
        found.append(float(solver.cost))
    print(f"site 1 costs {cost}: hard {formula.hard}, soft {formula.soft}, solution {model}, cost {found[-1]}")
sys.exit(0 if found == [3, 0.001] else "the behaviour has changed")
PY
env/bin/python ask.py
