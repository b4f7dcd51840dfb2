#!/bin/bash
# vrplib 2.2.0 and tsplib95 0.7.1 read different distances from one file of type EUC_2D: tsplib95
# rounds each distance to a whole number, as the format says, and vrplib does not. An optimum published
# for the one is not reached, or is beaten, with the other.
#
# Guess before the run: both round, since the type of the file defines the distance.
# Seen: (0,0) to (1,1) is 1 in tsplib95 and 1.414 in vrplib; for CEIL_2D both give 2.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check vrplib==2.2.0 tsplib95==0.7.1
cat > ask.py <<'PY'
import sys
from importlib.metadata import version
import tsplib95
import vrplib
print("vrplib", version("vrplib"), "tsplib95", version("tsplib95"))
found = []
for kind in ("EUC_2D", "CEIL_2D"):
    with open("sites.tsp", "w") as file:
        file.write(f"NAME : sites\nTYPE : TSP\nDIMENSION : 2\nEDGE_WEIGHT_TYPE : {kind}\n"
                   "NODE_COORD_SECTION\n1 0 0\n2 1 1\nEOF\n")
    first = float(vrplib.read_instance("sites.tsp")["edge_weight"][0, 1])
    second = tsplib95.load("sites.tsp").get_weight(1, 2)
    found.append((round(first, 3), second))
    print(f"{kind}: vrplib {first:.3f}, tsplib95 {second}")
sys.exit(0 if found == [(1.414, 1), (2, 2)] else "the behaviour has changed")
PY
env/bin/python ask.py
