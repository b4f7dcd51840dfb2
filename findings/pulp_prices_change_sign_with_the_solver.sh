#!/bin/bash
# PuLP 3.3.2: the shadow price of a constraint (pi) and the reduced costs (dj) of a model that is maximised have a sign that depends
# on the solver. One more unit of capacity earns 3 by CBC, which PuLP brings, and costs 3 by HiGHS (highspy 1.16.0). Of a
# model that is minimised both have the same signs.
#
# Guess before the run: the sign is the same with every solver, so a capacity that is worth more has the price +3.
# Seen: CBC has pi = 3 and dj = 0 and -1 in both cases; HiGHS has pi = -3 and dj = 0 and 1 in the one that is maximised.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --target lib pulp==3.3.2 highspy==1.16.0
cat > ask.py <<'PY'
import sys

import pulp

found = {}
for name, solver in (("CBC", pulp.PULP_CBC_CMD(msg=False)), ("HiGHS", pulp.HiGHS(msg=False))):
    for sense in (pulp.LpMaximize, pulp.LpMinimize):
        model = pulp.LpProblem("prices", sense)
        x, y = pulp.LpVariable("x", 0, 10), pulp.LpVariable("y", 0, 3)
        model += 3 * x + 2 * y
        model += (x + y <= 8 if sense == pulp.LpMaximize else x + y >= 8), "capacity"
        model.solve(solver)
        prices = [model.constraints["capacity"].pi, x.dj, y.dj]
        found[name, sense] = (model.objective.value(), *prices)
        word = "maximised" if sense == pulp.LpMaximize else "minimised"
        print(f"pulp {pulp.__version__}, {name}, {word}: objective {model.objective.value()}, pi {prices[0]}, dj {prices[1:]}")
most, least = pulp.LpMaximize, pulp.LpMinimize
good = {("CBC", most): (24, 3, 0, -1), ("HiGHS", most): (24, -3, 0, 1)}
good |= {(name, least): (21, 3, 0, -1) for name in ("CBC", "HiGHS")}
sys.exit(0 if found == good else "the behaviour has changed")
PY
PYTHONPATH=lib python3 ask.py
