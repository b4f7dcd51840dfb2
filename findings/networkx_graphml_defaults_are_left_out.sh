#!/bin/bash
# networkx 3.6.1: read_graphml gives edges and nodes without a value none, where the file's key has a
# <default>. The default lies in graph.graph["edge_default"], which no algorithm reads: a weight that is not
# there counts as 1. So a link of 10 ms is one of 1 ms. igraph 1.0.0 reads 10 ms.
#
# Guess before the run: each reader of GraphML gives an edge without data the default of the key, as the
# format's primer says.
# Seen: a path of 10 (by default) and 2.5 ms is 3.5 ms long in networkx, 12.5 ms in igraph; no warning.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --target lib networkx==3.6.1 igraph==1.0.0
cat > ask.py << 'PY'
import sys
import warnings
import igraph
import networkx as nx
warnings.simplefilter("error")
with open("links.graphml", "w") as file:
    file.write("""<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="k" for="edge" attr.name="rtt" attr.type="double"><default>10.0</default></key>
<graph edgedefault="undirected"><node id="a"/><node id="b"/><node id="c"/>
<edge source="a" target="b"/><edge source="b" target="c"><data key="k">2.5</data></edge>
</graph></graphml>
""")
graph = nx.read_graphml("links.graphml")
first = nx.shortest_path_length(graph, "a", "c", weight="rtt")
other = igraph.Graph.Read_GraphML("links.graphml")
second = other.distances(0, 2, weights="rtt")[0][0]
print(f"networkx {nx.__version__}: {dict(graph.edges)}, a to c {first} ms; beside them {graph.graph}")
print(f"igraph {igraph.__version__}: rtt {other.es['rtt']}, a to c {second} ms")
sys.exit(0 if (first, second) == (3.5, 12.5) else "the behaviour has changed")
PY
PYTHONPATH=lib python3 ask.py
