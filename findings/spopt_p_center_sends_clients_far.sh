#!/bin/bash
# spopt 0.6.1: after a p-center, fac2cli need not give a client to its nearest open site: every
# assignment within the largest distance has the same value, and one is taken as the solver left it.
# Mean distances and loads that are read from it are those of no sensible assignment.
#
# Guess before the run: clients are with the nearest open site, as after a p-median.
# Seen: one client has to go 50 far; another, 0.5 from one open site, is given to the other at 2.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check spopt==0.6.1 pulp==3.3.2 numpy==2.3.4
cat > ask.py <<'PY'
import sys
from importlib.metadata import version
import numpy as np
import pulp
from spopt.locate import PCenter, PMedian
print("spopt", version("spopt"))
cost = np.array([[1, 9, 9.0], [9, 0, 9], [0.5, 2, 9], [50, 60, 70]])
solver = pulp.PULP_CBC_CMD(msg=False)
center = PCenter.from_cost_matrix(cost, p_facilities=2).solve(solver)
median = PMedian.from_cost_matrix(cost, np.ones(4), p_facilities=2).solve(solver)
found = []
for name, answer in (("p-center", center), ("p-median", median)):
    open_ = [site for site, clients in enumerate(answer.fac2cli) if clients]
    far = [(client, cost[client, site], cost[client, open_].min()) for site, clients in enumerate(answer.fac2cli)
           for client in clients if cost[client, site] > cost[client, open_].min()]
    found.append(len(far))
    print(name, "sites", open_, "clients by site", answer.fac2cli)
    for client, has, nearest in far:
        print(f"  client {client} is {has} from its site, and {nearest} from an open one")
sys.exit(0 if found == [1, 0] else "the behaviour has changed")
PY
env/bin/python ask.py 2> log || { cat log; exit 1; }
