#!/bin/bash
# rustworkx 0.18.1: distance_matrix has 0 for a node that cannot be reached, the same as for the node itself (its null_value
# is 0.0 by default). The site that the network has lost is the nearest of all, and the 1-median of its row sums.
#
# Guess before the run: infinity, as floyd_warshall_numpy of the package has it, and scipy and networkx.
# Seen: of a path of three sites and a fourth one without links the sums are 3, 2, 3 and 0; the fourth one is the best.
# With null_value=inf it is infinitely far. (The matrix counts links, as its help says.)
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check rustworkx==0.18.1 numpy==2.4.6
cat > ask.py <<'PY'
import sys

import numpy as np
import rustworkx as rx

graph = rx.PyGraph()
graph.add_nodes_from(["fra", "lon", "nyc", "cut off"])
graph.add_edges_from([(0, 1, 1.0), (1, 2, 1.0)])
default = rx.distance_matrix(graph)
infinite = rx.distance_matrix(graph, null_value=np.inf)
floyd = rx.floyd_warshall_numpy(graph, weight_fn=float)
sums = default.sum(axis=1)
print(default, "\nrow sums", sums, "best", graph[int(sums.argmin())], "\nfloyd_warshall_numpy\n", floyd)
same = sums.tolist() == [3, 2, 3, 0] and (infinite == floyd).all() and np.isinf(floyd[0, 3])
sys.exit(0 if same else "the behaviour has changed")
PY
env/bin/python ask.py
