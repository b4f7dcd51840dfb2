#!/bin/bash
# pandana 0.8 (shortest paths in networks): the weight of every link is cut to a thousandth, and a link of 0 becomes 0.001. With
# round-trip times in seconds each link loses up to 1 ms, ten links of 0.1 ms take 10 ms, and 4.3 million stands for "no way".
#
# Guess before the run: weights are floats and stay so; two sites without a path are infinitely far.
# Seen: ten links of 0.0001 are 0.01 long (0.001), of 0.0105 0.1 (0.105), of 0 0.01 (0). A site without links is 4294967.295
# away, with a warning.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --target lib pandana==0.8
cat > ask.py <<'PY'
import sys
import warnings

import pandana
import pandas as pd

warnings.simplefilter("ignore")
found = []
for weight in (0.0001, 0.0105, 0.0):
    sites = pd.DataFrame({"x": [float(place) for place in range(12)], "y": [0.0] * 12})
    links = pd.DataFrame({"from": range(10), "to": range(1, 11), "seconds": [weight] * 10})
    network = pandana.Network(sites.x, sites.y, links["from"], links["to"], links[["seconds"]], twoway=True)
    found.append((network.shortest_path_length(0, 10), network.shortest_path_length(0, 11)))
    print(f"\nten links of {weight} s: {found[-1][0]} s; a site without links: {found[-1][1]} s")
sys.exit(0 if found == [(length, 4294967.295) for length in (0.01, 0.1, 0.01)] else "the behaviour has changed")
PY
PYTHONPATH=lib python3 ask.py
