#!/bin/bash
# igraph 1.0.0 (python): files of type NCOL, which the program LGL has for links without a direction, are read as links of one
# way. The file says "a b 10", and there is no way from b to a.
#
# Guess before the run: a link without a direction, as LGL draws it.
# Seen: Read_Ncol and load give directed graphs; from c to a there is no way. With directed=False there is one of 13 ms. networkx
# 3.6.1 reads the same file as a graph of two-way links.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check igraph==1.0.0 networkx==3.6.1
printf 'a b 10\nb c 3\n' > links.ncol
cat > ask.py <<'PY'
import sys
import igraph
import networkx
print("igraph", igraph.__version__, "networkx", networkx.__version__)
graphs = {
    "Read_Ncol": igraph.Graph.Read_Ncol("links.ncol"),
    "load": igraph.load("links.ncol"),
    "Read_Ncol, directed=False": igraph.Graph.Read_Ncol("links.ncol", directed=False),
}
seen = {name: graph.distances("c", "a", weights="weight")[0][0] for name, graph in graphs.items()}
links = networkx.read_weighted_edgelist("links.ncol")
seen["networkx"] = networkx.dijkstra_path_length(links, "c", "a")
for name, length in seen.items():
    print(f"{name}: from c to a {length} ms")
sys.exit(0 if [*seen.values()] == [float("inf"), float("inf"), 13, 13] else "the behaviour has changed")
PY
env/bin/python ask.py
