#!/bin/bash
# uhashring 2.5: on a ring of hash_fn="ketama" a new node with a larger weight also moves keys between the old
# nodes, which consistent hashing is to avoid: the points of a node follow from its share of all weights, so the
# old nodes lose points. On the default ring of the same package no key moves so.
#
# Guess before the run: keys move to the new node alone, for any weights and either ring.
# Seen: a fifth node of weight 3 gets 21,063 of 50,000 keys, and 4,427 more go from one old node to another one.
# With the default ring none do, and with a fifth node of weight 1 none do by either.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --target lib uhashring==2.5
cat > ask.py << 'PY'
import sys
from importlib.metadata import version
from uhashring import HashRing
print("uhashring", version("uhashring"))
keys = [f"key{i}" for i in range(50_000)]
found = []
for name, options in (("ketama", {"hash_fn": "ketama"}), ("default", {})):
    for weight in 1, 3:
        ring = HashRing({node: {"weight": 1} for node in "abcd"}, **options)
        before = [ring.get_node(key) for key in keys]
        ring.add_node("e", {"weight": weight})
        moves = [(old, new) for old, new in zip(before, map(ring.get_node, keys)) if old != new]
        others = sum(new != "e" for _, new in moves)
        found.append(others)
        print(f"{name}, e has weight {weight}: {len(moves) - others} keys move to e, {others} between the others")
sys.exit(0 if found == [0, 4427, 0, 0] else f"the behaviour has changed: {found}")
PY
PYTHONPATH=lib python3 ask.py
