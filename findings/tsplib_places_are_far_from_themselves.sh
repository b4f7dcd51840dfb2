#!/bin/bash
# TSPLIB's type GEO adds 1 before it cuts a distance to whole kilometres, so a place is 1 km from
# itself. In a tour nobody asks; in a p-median every client at an open site pays 1 km. Its coordinates
# are degrees and minutes too: 48.86 is 48 degrees and 86 minutes. tsplib95 0.7.1 follows the format.
#
# Guess before the run: a place is 0 from itself, and 48.30 and 48.50 are a fifth of a degree apart.
# Seen: 1 km from itself; 48.30 and 48.50 are 38 km apart, 20 minutes, where a fifth of a degree is 22 km.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check tsplib95==0.7.1
cat > ask.py <<'PY'
import sys
from importlib.metadata import version
import tsplib95
print("tsplib95", version("tsplib95"))
found = []
for kind in ("GEO", "EUC_2D"):
    problem = tsplib95.parse(f"NAME : sites\nTYPE : TSP\nDIMENSION : 2\nEDGE_WEIGHT_TYPE : {kind}\n"
                             "NODE_COORD_SECTION\n1 48.30 2.00\n2 48.50 2.00\nEOF\n")
    found.append((problem.get_weight(1, 1), problem.get_weight(1, 2)))
    print(f"{kind}: a place to itself {found[-1][0]}, to the other {found[-1][1]}")
sys.exit(0 if found == [(1, 38), (0, 0)] else "the behaviour has changed")
PY
env/bin/python ask.py
