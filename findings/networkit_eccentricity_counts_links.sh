#!/bin/bash
# networkit 11.3: Eccentricity counts links, also in a weighted graph, while APSP and Diameter of the same package add up
# weights. Its help speaks of the length of the shortest path. So the site with the smallest largest RTT (the 1-center) that
# is read from eccentricities is another one.
#
# Guess before the run: the eccentricity is the largest entry of a row of APSP, and the largest one is the diameter.
# Seen: 2, 2, 2 and 1 for sites whose farthest ones are 20, 10, 20 and 15 ms away; the diameter is 20. The center is the
# last site by links and the second one by RTT.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check networkit==11.3
cat > ask.py <<'PY'
import sys

import networkit as nk

graph = nk.Graph(4, weighted=True)
for link in [(0, 3, 5), (1, 2, 10), (1, 3, 5), (2, 3, 15)]:
    graph.addEdge(*link)
by_links = [nk.distance.Eccentricity.getValue(graph, node)[1] for node in range(4)]
by_weight = [max(row) for row in nk.distance.APSP(graph).run().getDistances()]
diameter = nk.distance.Diameter(graph, nk.distance.DiameterAlgo.EXACT).run().getDiameter()[0]
print("Eccentricity", by_links, "| largest distances of APSP", by_weight, "| Diameter", diameter)
same = by_links == [2, 2, 2, 1] and by_weight == [20, 10, 20, 15] and diameter == 20
sys.exit(0 if same else "the behaviour has changed")
PY
env/bin/python ask.py
