#!/bin/bash
# networkx 3.6.1: matrices of a graph with parallel links (most graphs of the Topology Zoo have some) have the sum of their
# lengths, so a second link makes two sites farther apart. Other functions of the package take the shorter one, and
# Graph(multigraph) the one that was added last.
#
# Guess before the run: to_numpy_array takes the shorter of two links, as its functions for shortest paths do.
# Seen: links of 10 and 12 ms give 22 in to_numpy_array, to_scipy_sparse_array and to_pandas_adjacency, 10 in
# floyd_warshall_numpy and 12 in Graph(multigraph). scipy's shortest path over that matrix is 22 long.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check networkx==3.6.1 scipy==1.17.1 pandas==3.1.1 numpy==2.4.6
cat > ask.py <<'PY'
import sys
import networkx as nx
from scipy.sparse.csgraph import shortest_path
print("networkx", nx.__version__)
links = nx.MultiGraph()
links.add_edge("a", "b", weight=10)
links.add_edge("a", "b", weight=12)
sparse = nx.to_scipy_sparse_array(links)
seen = {
    "to_numpy_array": nx.to_numpy_array(links)[0, 1],
    "to_scipy_sparse_array": sparse.toarray()[0, 1],
    "to_pandas_adjacency": nx.to_pandas_adjacency(links).loc["a", "b"],
    "scipy's shortest path": shortest_path(sparse)[0, 1],
    "floyd_warshall_numpy": nx.floyd_warshall_numpy(links)[0, 1],
    "dijkstra_path_length": nx.dijkstra_path_length(links, "a", "b"),
    "Graph(links)": nx.Graph(links)["a"]["b"]["weight"],
}
for name, length in seen.items():
    print(f"{name}: {length:g} ms")
sys.exit(0 if [*seen.values()] == [22, 22, 22, 22, 10, 10, 12] else "the behaviour has changed")
PY
env/bin/python ask.py
