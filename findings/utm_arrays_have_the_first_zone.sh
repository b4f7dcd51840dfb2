#!/bin/bash
# utm 0.9.0: from_latlon of arrays puts all places into the zone of the first one. Coordinates of places in other zones lie far
# outside that zone's projection, and distances of them are no distances; each place alone gets its own zone.
# Places north and south of the equator are refused, places of other zones are not.
#
# Guess before the run: each place has its own zone, or places of different zones are refused.
# Seen: Paris and Singapore, 10,730 km apart, are 22,065 km apart by the coordinates in zone 31. Two places of Europe are off by
# 0.2 %.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check utm==0.9.0 numpy==2.4.6 geopy==2.5.0
cat > ask.py <<'PY'
import sys
from importlib.metadata import version
import numpy as np
import utm
from geopy.distance import geodesic
print("utm", version("utm"))
places = {"Paris": (48.86, 2.35), "Berlin": (52.52, 13.40), "Singapore": (1.35, 103.82)}
seen = []
for name in "Berlin", "Singapore":
    both = np.array([places["Paris"], places[name]])
    east, north, zone, _ = utm.from_latlon(both[:, 0], both[:, 1])
    plane = float(np.hypot(east[1] - east[0], north[1] - north[0])) / 1000
    true = geodesic(*both).km
    own = utm.from_latlon(*places[name])[2]
    print(f"Paris to {name}: {true:,.0f} km, {plane:,.0f} km by coordinates of zone {zone} (own zone of {name}: {own})")
    seen.append((zone, own, round(plane), round(true)))
try:
    utm.from_latlon(np.array([48.86, -33.87]), np.array([2.35, 151.21]))
except ValueError as error:
    print("Paris and Sydney:", error)
sys.exit(0 if seen == [(31, 33, 881, 879), (31, 48, 22065, 10734)] else "the behaviour has changed")
PY
env/bin/python ask.py
