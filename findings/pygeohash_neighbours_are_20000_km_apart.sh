#!/bin/bash
# pygeohash 3.5.1: geohash_approximate_distance counts the letters that two geohashes have in common at their beginning. Two sites
# on both sides of a line where the cells of the first letter meet have none: 70 m across the meridian of Greenwich, in
# London, are 20,000 km. The equator and the parallel of 45 degrees are such lines too.
#
# Guess before the run: a distance to within the size of a cell, thus about a factor of two or three.
# Seen: 20,000 km for sites 69 m apart in London and 111 m apart near Turin; London and Singapore, 10,800 km, are
# as far as that. geohash_haversine_distance has them right.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --target lib pygeohash==3.5.1
cat > ask.py <<'PY'
import sys
from importlib.metadata import version

import pygeohash

pairs = {
    "over Greenwich's meridian": ((51.4, -0.0005), (51.4, 0.0005)),
    "over the parallel of 45 degrees": ((45.0005, 7.7), (44.9995, 7.7)),
    "London and Singapore": ((51.5, -0.13), (1.35, 103.8)),
}
found = []
for name, places in pairs.items():
    one, two = (pygeohash.encode(*place) for place in places)
    rough, real = pygeohash.geohash_approximate_distance(one, two), pygeohash.geohash_haversine_distance(one, two)
    found.append((rough, round(real, -1)))
    print(f"pygeohash {version('pygeohash')}, {name}: approximate {rough:,.0f} m, by haversine {real:,.0f} m")
near = all(real < 200 for _, real in found[:2]) and found[2][1] > 10_000_000
sys.exit(0 if near and [rough for rough, _ in found] == [20_000_000] * 3 else "the behaviour has changed")
PY
PYTHONPATH=lib python3 ask.py
