#!/bin/bash
# quoracle 0.0.4: a system with majorities as its reads has the smallest sets that meet them as its writes. Of an even number of
# replicas that is half of them: two writes need not meet, and latency and load of a write are of fewer replicas than
# a commit has.
#
# Guess before the run: reads=majority(…) and nothing else makes majorities of both, as a consensus protocol has.
# Seen: of 4 replicas reads take 3 and writes 2; the write latency is 2 ms, that of the second nearest replica, where a majority
# takes 3 ms; a, b and c, d are two write quorums. With writes=majority(…) it is the other way round.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check quoracle==0.0.4
cat > ask.py <<'PY'
import sys
from datetime import timedelta
from importlib.metadata import version

from quoracle import Node, QuorumSystem, majority

replicas = [Node(name, latency=timedelta(milliseconds=ms)) for name, ms in zip("abcd", (1, 2, 3, 4))]
found = []
for system in (QuorumSystem(reads=majority(replicas)), QuorumSystem(writes=majority(replicas))):
    sizes = [{len(quorum) for quorum in quorums()} for quorums in (system.read_quorums, system.write_quorums)]
    plan = system.strategy(optimize="latency", read_fraction=0)
    wait = plan.latency(read_fraction=0) / timedelta(milliseconds=1)
    apart = system.is_write_quorum({"a", "b"}) and system.is_write_quorum({"c", "d"})
    found.append((*sizes, round(wait, 3), apart))
    print(f"quoracle {version('quoracle')}: reads of {sizes[0]}, writes of {sizes[1]}, write {wait:g} ms, writes apart: {apart}")
sys.exit(0 if found == [({3}, {2}, 2.0, True), ({2}, {3}, 3.0, False)] else "the behaviour has changed")
PY
env/bin/python ask.py
