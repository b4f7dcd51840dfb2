#!/bin/bash
# clandestined 1.1.0 (rendezvous hashing with zones): with more replicas than zones find_nodes lists a node
# twice. Three replicas over two zones of three nodes are two copies of each key, and four are two as well.
# A new zone, too, moves more than its share: it sends keys from old nodes to other old nodes.
#
# Guess before the run: three different nodes, one zone giving two; and a new zone takes keys for itself alone.
# Seen: two different nodes for each of 20,000 keys. With two replicas over three zones a fourth zone takes
# 10,000 of the 40,000 copies, as it should, and 10,015 copies more move between the old nodes.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --target lib clandestined==1.1.0
cat > ask.py << 'PY'
import sys
from importlib.metadata import version
from clandestined import Cluster
print("clandestined", version("clandestined"))
keys = [f"k{i}" for i in range(20_000)]
def cluster(zones, replicas):
    return Cluster({str(i): {"name": str(i), "zone": zones[i % len(zones)]} for i in range(6)}, replicas=replicas)
found = []
for replicas in 2, 3, 4:
    nodes = [cluster("ab", replicas).find_nodes(key) for key in keys[:2000]]
    found.append({len(set(names)) for names in nodes})
    print(f"{replicas} replicas, two zones: key {keys[1]} on {nodes[1]}; different nodes: {found[-1]}")
three = cluster("abc", 2)
before = [set(three.find_nodes(key)) for key in keys]
three.add_node("new", node_zone="d", node_name="new")
moved = [set(three.find_nodes(key)) - old for key, old in zip(keys, before)]
to_new = sum("new" in nodes for nodes in moved)
found.append((to_new, sum(map(len, moved)) - to_new))
print(f"a fourth zone: {found[-1][0]} copies move to it, {found[-1][1]} between the old nodes")
sys.exit(0 if found == [{2}, {2}, {2}, (10000, 10015)] else f"the behaviour has changed: {found}")
PY
PYTHONPATH=lib python3 ask.py
