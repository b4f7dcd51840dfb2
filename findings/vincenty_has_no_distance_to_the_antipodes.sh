#!/bin/bash
# vincenty 0.1.4: the distance of two places that are nearly opposite on the globe is None, as the method does not converge
# there. Madrid has sites in New Zealand that have a distance and others that have none; a matrix of distances then holds None,
# which NumPy takes for an object or, as a float, for NaN.
#
# Guess before the run: a number within 0.5 %, or an error.
# Seen: Madrid to Wellington is 19,854.6 km, Madrid to Weber (160 km from there) None; geopy 2.5.0 has 20,001.6 km.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check vincenty==0.1.4 geopy==2.5.0
cat > ask.py <<'PY'
import sys

from geopy.distance import geodesic
from vincenty import vincenty

MADRID = (40.42, -3.70)
found = []
for name, place in (("Wellington", (-41.29, 174.78)), ("Weber", (-40.40, 176.33))):
    found.append((vincenty(MADRID, place), round(geodesic(MADRID, place).km, 1)))
    print("Madrid to", name, *found[-1])
same = round(found[0][0], 1) == found[0][1] == 19854.6 and found[1] == (None, 20001.6)
sys.exit(0 if same else "the behaviour has changed")
PY
env/bin/python ask.py
