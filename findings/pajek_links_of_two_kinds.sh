#!/bin/bash
# Pajek files may have one-way links (*Arcs) and two-way links (*Edges) together. networkx 3.6.1 and igraph 1.0.0
# turn the one kind into the other, without a word: networkx has all links of the kind that stands first in the file,
# igraph of the kind that stands last. So the two readers contradict each other on every such file.
#
# Guess before the run: an arc is one link, from its first end to its second; an edge is a link each way.
# Seen: with *Arcs before *Edges networkx has no way back over the edge, and igraph a way back over the arc; with *Edges
# before *Arcs it is the other way round.
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
from importlib.metadata import version
import igraph
import networkx as nx
sites = '*Vertices 3\n1 "a"\n2 "b"\n3 "c"\n'
arcs, edges = "*Arcs\n1 2 10\n", "*Edges\n2 3 5\n"
print(f"networkx {version('networkx')}, igraph {version('igraph')}: a one-way link from a to b, a two-way one of b and c")
seen = {}
for name, text in ("arcs first", sites + arcs + edges), ("edges first", sites + edges + arcs):
    with open("links.net", "w") as file:
        file.write(text)
    one = nx.read_pajek("links.net")
    two = igraph.Graph.Read_Pajek("links.net")
    for reader, finds in (
        ("networkx", lambda x, y: nx.has_path(one, x, y)),
        ("igraph", lambda x, y: two.distances("abc".index(x), "abc".index(y))[0][0] < 9),
    ):
        back = finds("b", "a"), finds("c", "b")
        seen[name, reader] = back
        print(f"{name}, {reader}: a way from b to a {back[0]} (right: False), from c to b {back[1]} (right: True)")
wrong = {("arcs first", "networkx"): False, ("arcs first", "igraph"): True}
wrong |= {("edges first", "networkx"): True, ("edges first", "igraph"): False}
sys.exit(0 if seen == {key: (kind, kind) for key, kind in wrong.items()} else "the behaviour has changed")
PY
env/bin/python ask.py
