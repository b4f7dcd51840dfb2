#!/bin/bash
# scipy 1.17.1: minimum_spanning_tree returns no link for a link of length 0, also where the sparse matrix holds the 0
# explicitly and shortest paths go over it. The tree of a network with two sites in one place (RTT 0) falls into two parts.
#
# Guess before the run: an explicit 0 is a link, as for dijkstra, floyd_warshall, johnson and connected_components, so a
# connected network of three sites has a tree of two links.
# Seen: one link, and two parts; the four other functions go over the link of length 0.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check scipy==1.17.1 numpy==2.4.6
cat > ask.py <<'PY'
import sys

import numpy as np
from scipy.sparse import csgraph, csr_array

ends = [(0, 1), (1, 0), (1, 2), (2, 1)]
network = csr_array(([0.0, 0.0, 5.0, 5.0], np.transpose(ends)), shape=(3, 3))
ways = [csgraph.dijkstra, csgraph.floyd_warshall, csgraph.johnson, csgraph.bellman_ford]
lengths = {way.__name__: way(network)[0].tolist() for way in ways}
tree = csgraph.minimum_spanning_tree(network)
parts = [int(csgraph.connected_components(graph, directed=False)[0]) for graph in (network, tree)]
print(lengths, "\nlinks of the tree", tree.nnz, "parts of the network and of its tree", parts)
same = all(way == [0, 0, 5] for way in lengths.values()) and tree.nnz == 1 and parts == [1, 2]
sys.exit(0 if same else "the behaviour has changed")
PY
env/bin/python ask.py
