#!/bin/bash
# spopt 0.7.0: perc_cov of a maximal covering (MCLP), which maximises the demand that is covered, is the percentage of the
# clients, each counted once. A plan that covers 97 % of the demand is one of 25 %, and a better plan may have a lower number.
#
# Guess before the run: the share of the demand, as mean_dist of the p-median is weighted by demand.
# Seen: of clients with the demands 97, 1, 1 and 1 one facility covers the first one: objective 97, perc_cov 25.0. The other
# facility would have had 75.0, and a demand of 3.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check spopt==0.7.0 pulp==3.3.2 numpy==2.4.6
cat > ask.py <<'PY'
import sys

import numpy as np
import pulp
from spopt.locate import MCLP

cost = np.array([[1.0, 9.0], [9.0, 1.0], [9.0, 1.0], [9.0, 1.0]])
demand = np.array([97, 1, 1, 1])
found = []
for weights in (demand, np.ones(4, int)):
    plan = MCLP.from_cost_matrix(cost, weights, service_radius=2, p_facilities=1)
    plan = plan.solve(pulp.PULP_CBC_CMD(msg=False))
    chosen = [int(variable.value()) for variable in plan.fac_vars]
    found.append((chosen, plan.problem.objective.value(), plan.perc_cov))
    print("demand", weights, "chosen", chosen, "demand covered", found[-1][1], "perc_cov", plan.perc_cov)
sys.exit(0 if found == [([1, 0], 97, 25.0), ([0, 1], 3, 75.0)] else "the behaviour has changed")
PY
env/bin/python ask.py
