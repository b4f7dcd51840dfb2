#!/bin/bash
# OR-Tools 9.14: SimpleMinCostFlow takes costs that are not whole numbers when they come as a numpy array,
# and cuts off their fractions: 1.9 is 1. The same cost of one arc is refused with a TypeError. RTTs below
# a few ms lose most of what tells sites apart.
#
# Guess before the run: add_arcs_with_capacity_and_unit_cost refuses an array of floats as
# add_arc_with_capacity_and_unit_cost refuses a float.
# Seen: costs 1.9 and 1.2 are taken as 1 and 1, without a warning; the single cost 1.9 is a TypeError.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check ortools==9.14.6206
cat > ask.py << 'PY'
import sys
import warnings
import numpy as np
import ortools
from ortools.graph.python import min_cost_flow
warnings.simplefilter("error")
network = min_cost_flow.SimpleMinCostFlow()
arcs = network.add_arcs_with_capacity_and_unit_cost(
    np.array([0, 0]), np.array([1, 2]), np.array([1, 1]), np.array([1.9, 1.2]))
taken = [network.unit_cost(int(arc)) for arc in arcs]
try:
    network.add_arc_with_capacity_and_unit_cost(0, 3, 1, 1.9)
    alone = "taken"
except TypeError:
    alone = "TypeError"
print(f"OR-Tools {ortools.__version__}: array of costs 1.9, 1.2 taken as {taken}; cost 1.9 alone: {alone}")
sys.exit(0 if (taken, alone) == ([1, 1], "TypeError") else "the behaviour has changed")
PY
env/bin/python ask.py
