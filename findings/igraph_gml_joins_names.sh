#!/bin/bash
# igraph 0.11.9 (python): write_gml leaves the underscores out of the names of attributes. A graph whose
# links have rtt_ms comes back with rttms; where it has both rtt_ms and rttms, one of the two is lost.
#
# Guess before the run: names of attributes are written as they are, or a name that GML does not allow
# is refused.
# Seen: neither error nor warning; rtt_ms 12.5 beside rttms 1.0 comes back as rttms 1.0 alone.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check igraph==0.11.9
cat > ask.py << 'PY'
import sys
import warnings
import igraph
warnings.simplefilter("error")
print("igraph", igraph.__version__)
seen = []
for given in {"rtt_ms": 12.5}, {"rtt_ms": 12.5, "rttms": 1.0}:
    graph = igraph.Graph([(0, 1)])
    for name, value in given.items():
        graph.es[name] = [value]
    graph.write_gml("links.gml")
    found = igraph.Graph.Read_GML("links.gml")
    seen.append(found.es[0].attributes())
    print(f"written {given}, read {seen[-1]}")
sys.exit(0 if seen == [{"rttms": 12.5}, {"rttms": 1.0}] else "the behaviour has changed")
PY
env/bin/python ask.py
