#!/bin/bash
# networkx 3.5: a number that needs more than 32 bits comes back from GML as text. A link of 10 Gbit/s
# written by write_gml has the capacity '10000000000' after read_gml, while one of 1 Gbit/s is a number;
# the same graph by GraphML keeps both. Sums over links then fail, or sort texts.
#
# Guess before the run: read_gml returns what write_gml was given, for whole numbers of any size.
# Seen: 1000000000 is an int and 10000000000 a str; GraphML: both int. (GML's integers have 32 bits:
# networkx writes larger ones between quotes, and does not turn them back.)
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check networkx==3.5
cat > ask.py << 'PY'
import sys
import networkx as nx
graph = nx.Graph()
graph.add_edge("a", "b", capacity=1_000_000_000)
graph.add_edge("b", "c", capacity=10_000_000_000)
nx.write_gml(graph, "links.gml")
nx.write_graphml(graph, "links.graphml")
gml, graphml = nx.read_gml("links.gml"), nx.read_graphml("links.graphml")
print("networkx", nx.__version__)
kinds = []
for name, found in ("GML", gml), ("GraphML", graphml):
    values = [found.edges[edge]["capacity"] for edge in (("a", "b"), ("b", "c"))]
    kinds.append([type(value).__name__ for value in values])
    print(f"{name}: {values}")
sys.exit(0 if kinds == [["int", "str"], ["int", "int"]] else "the behaviour has changed")
PY
env/bin/python ask.py
