#!/bin/bash
# cassandra-driver 3.30.1 (Python): its map of replicas, by which requests go to a replica, names a host twice and
# leaves another replica out, for some tokens. It takes two replicas more than a data centre has racks, and virtual nodes: a
# host that was skipped because of its rack is skipped once per token, and fills two places later.
#
# Guess before the run: each token has five different hosts, as in the server.
# Seen: with three racks of two hosts, 16 tokens each and five replicas, 12 of 96 tokens have four hosts. (Of 3,489 tokens of
# 200 drawn rings 30 had other hosts than by the server's own code, Cassandra 4.1.5; the Java driver 4.18.1 had none.)
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check cassandra-driver==3.30.1
cat > ask.py << 'PY'
import random
import sys
import cassandra
from cassandra.metadata import Murmur3Token, NetworkTopologyStrategy
from cassandra.policies import SimpleConvictionPolicy
from cassandra.pool import Host
print("cassandra-driver", cassandra.__version__)
draw = random.Random(1)
owners = {}
for rack in "abc":
    for number in 1, 2:
        host = Host(f"10.0.{ord(rack) - 96}.{number}", SimpleConvictionPolicy)
        host.set_location_info("dc", rack)
        owners |= {Murmur3Token(draw.randrange(-(2**63), 2**63)): host for _ in range(16)}
ring = sorted(owners)
found = []
for factor in 3, 5:
    replicas = NetworkTopologyStrategy({"dc": str(factor)}).make_token_replica_map(owners, ring)
    short = [hosts for hosts in map(replicas.get, ring) if len(set(hosts)) < factor]
    found.append(len(short))
    print(f"{factor} replicas: {len(short)} of {len(ring)} tokens have fewer hosts")
print("one of them:", [host.address for host in short[0]])
sys.exit(0 if found == [0, 12] else f"the behaviour has changed: {found}")
PY
env/bin/python ask.py
