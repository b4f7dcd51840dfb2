#!/bin/bash
# haversine 2.9.0: haversine_vector(a, b, comb=True), all distances between two lists of places, has a
# row for each place of the second list and a column for each of the first. With as many clients as
# sites nothing shows that the matrix is the wrong way round.
#
# Guess before the run: a row for each place of the first list, as scipy's cdist and scikit-learn's
# haversine_distances have it.
# Seen: two places and three places give shape (3, 2); [0][1] is the distance of b[0] to a[1].
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check haversine==2.9.0 numpy==2.3.4
cat > ask.py << 'PY'
import sys
from importlib.metadata import version
from haversine import haversine, haversine_vector
clients = [(48.86, 2.35), (52.52, 13.40)]  # Paris, Berlin
sites = [(53.34, -6.27), (50.11, 8.68), (38.95, -77.45)]  # Dublin, Frankfurt, Virginia
found = haversine_vector(clients, sites, comb=True)
print("haversine", version("haversine"))
print(f"2 clients, 3 sites: shape {found.shape}")
print(f"[0][1] is {found[0][1]:.0f} km; Paris to Frankfurt {haversine(clients[0], sites[1]):.0f} km, "
      f"Berlin to Dublin {haversine(clients[1], sites[0]):.0f} km")
same = abs(found[0][1] - haversine(clients[1], sites[0])) < 1e-6
sys.exit(0 if found.shape == (3, 2) and same else "the behaviour has changed")
PY
env/bin/python ask.py
