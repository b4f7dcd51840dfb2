#!/bin/bash
# spopt 0.7.0: the maximal covering problem (MCLP) maximises the demand that is covered, but its perc_cov is a share of
# the clients, each counted once. After a p-median mean_dist is a mean over the demand. So two figures of one package
# weigh clients in two ways, and a coverage of "75 %" may be 3 % of the demand.
#
# Guess before the run: perc_cov is the objective as a share of all demand, as mean_dist is.
# Seen: three clients of weight 1 are covered and one of 97 is not: perc_cov is 75.0, and 3 % of the demand is
# covered. mean_dist of the same four is 3.91, over the demand; over the clients it would be 1.75.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --no-compile --disable-pip-version-check spopt==0.7.0 pulp==3.3.2 numpy==2.4.6
cat > ask.py << 'PY'
import sys
from importlib.metadata import version
import numpy as np
import pulp
from spopt.locate import MCLP, PMedian
print("spopt", version("spopt"))
cost, demand = np.array([[1.0], [1.0], [1.0], [4.0]]), np.array([1, 1, 1, 97])
solver = pulp.PULP_CBC_CMD(msg=False)
cover = MCLP.from_cost_matrix(cost, demand, 2, p_facilities=1).solve(solver)
median = PMedian.from_cost_matrix(cost, demand, p_facilities=1).solve(solver)
covered = 100 * cover.problem.objective.value() / demand.sum()
print(f"MCLP: perc_cov {cover.perc_cov}, of the demand {covered:.0f} %; p-median: mean_dist {median.mean_dist:.2f}")
sys.exit(0 if (cover.perc_cov, covered, round(median.mean_dist, 2)) == (75, 3, 3.91) else "the behaviour has changed")
PY
env/bin/python ask.py 2> log || { cat log; exit 1; }
