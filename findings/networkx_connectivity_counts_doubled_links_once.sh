#!/bin/bash
# networkx 3.6.1: edge_connectivity, edge_disjoint_paths and minimum_edge_cut count two parallel links once, so a network in
# which every link is doubled has a connectivity of 1. bridges() of the same graph, a link whose loss cuts it, finds none.
# (Many networks of the Topology Zoo have parallel links.)
#
# Guess before the run: two disjoint paths over two links, a cut of two links and a connectivity of 2, as no link is a bridge.
# Seen: 1, one path, a cut of one pair of nodes; and no bridge. igraph 1.0.0 has a connectivity of 2 and a cut of two links.
# Two nodes with two links are an exception: their connectivity is 2, and 1 when the two are named.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check networkx==3.6.1 igraph==1.0.0
cat > ask.py <<'PY'
import sys

import igraph
import networkx as nx

links = [("fra", "lon"), ("fra", "lon"), ("lon", "nyc"), ("lon", "nyc")]
graph = nx.MultiGraph(links)
connectivity = nx.edge_connectivity(graph)
paths = list(nx.edge_disjoint_paths(graph, "fra", "nyc"))
cut = nx.minimum_edge_cut(graph)
bridges = list(nx.bridges(graph))
pair = nx.MultiGraph(links[:2])
of_pair = nx.edge_connectivity(pair), nx.edge_connectivity(pair, "fra", "lon")
other = igraph.Graph.TupleList(links)
by_igraph = other.edge_connectivity(), len(other.mincut().cut)
print("networkx: connectivity", connectivity, "disjoint paths", paths, "cut", cut, "bridges", bridges, "of a pair", of_pair)
print("igraph: connectivity, links of the cut", by_igraph)
same = connectivity == len(paths) == len(cut) == 1 and not bridges and of_pair == (2, 1)
sys.exit(0 if same and by_igraph == (2, 2) else "the behaviour has changed")
PY
env/bin/python ask.py
