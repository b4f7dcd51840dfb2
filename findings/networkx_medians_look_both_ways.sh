#!/bin/bash
# networkx 3.6.1: two functions that find the 1-median of a graph look in opposite directions where RTTs or
# costs depend on the direction. barycenter adds up the ways from a node to the others, closeness_centrality
# the ways from the others to it. On one directed graph they name two nodes.
#
# Guess before the run: the node of largest closeness is in the barycenter, as both minimise the sum of distances.
# Seen: of three sites barycenter names a and closeness names c.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --target lib networkx==3.6.1
cat > ask.py << 'PY'
import sys
import networkx as nx
graph = nx.DiGraph()
graph.add_weighted_edges_from(
    [("a", "b", 1), ("a", "c", 1), ("b", "a", 9), ("b", "c", 2), ("c", "a", 9), ("c", "b", 9)], "cost")
found = nx.barycenter(graph, weight="cost")
close = nx.closeness_centrality(graph, distance="cost")
best = max(graph, key=close.get)
ways = dict(nx.all_pairs_dijkstra_path_length(graph, weight="cost"))
print(f"networkx {nx.__version__}: barycenter {found}, largest closeness {best!r}")
for node in graph:
    print(f"{node}: to the others {sum(ways[node].values())}, from the others {sum(ways[u][node] for u in graph)}")
sys.exit(0 if (found, best) == (["a"], "c") else "the behaviour has changed")
PY
PYTHONPATH=lib python3 ask.py
