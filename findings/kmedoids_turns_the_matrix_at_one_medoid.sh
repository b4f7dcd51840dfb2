#!/bin/bash
# kmedoids 0.5.5: with one medoid, fasterpam adds up the row of the medoid, what it takes from the
# medoid to the points; with two or more it adds up columns, from the points to their medoid. Where
# the matrix is not symmetric, the one medoid is a different site, and its loss is of the other way.
#
# Guess before the run: the distance of a point is diss[point, medoid], for any number of medoids.
# Seen: of three sites it chooses site 0, whose row adds up to 10; columns add up to 14, 3 and 18,
# so site 1 is the best. With a fourth site far away and two medoids, site 1 is chosen, with loss 3.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check kmedoids==0.5.5 numpy==2.3.4
cat > ask.py <<'PY'
import sys
from importlib.metadata import version
import kmedoids
import numpy as np
print("kmedoids", version("kmedoids"))
near = np.array([[0, 1, 9.0], [5, 0, 9], [9, 2, 0]])
far = np.full((4, 4), 50.0)
far[:3, :3], far[3, 3] = near, 0
one = kmedoids.fasterpam(near, 1, random_state=0)
two = kmedoids.fasterpam(far, 2, random_state=0)
print("rows add up to", near.sum(axis=1), "columns to", near.sum(axis=0))
print("one medoid: ", one.medoids, "loss", one.loss)
print("two medoids:", sorted(map(int, two.medoids)), "loss", two.loss)
same = list(one.medoids) == [0] and one.loss == 10 and sorted(two.medoids) == [1, 3] and two.loss == 3
sys.exit(0 if same else "the behaviour has changed")
PY
env/bin/python ask.py
