"""Questions to a cluster, one JSON object a line; the driver is installed for this script alone.

Each has ``contact``, the server that is asked, and one of

- ``cql`` and ``level``: carry out a statement; the answer has its ``rows``;
- ``replicas``, a keyspace: the number of replicas of twenty keys by datacentre.

What fails is answered with ``error``.
"""

import json
import socket
import sys
from typing import Any

from cassandra import ConsistencyLevel
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import FallthroughRetryPolicy, WhiteListRoundRobinPolicy
from cassandra.query import SimpleStatement


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """Carry out a statement at a level, or count the replicas of keys by datacentre."""
    address, port = question["contact"]
    profile = ExecutionProfile(
        WhiteListRoundRobinPolicy([address]), FallthroughRetryPolicy(), request_timeout=15
    )
    cluster = Cluster(
        [address],
        port,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        connect_timeout=10,
        # without it a request waits until the one before it is acknowledged, up to 40 ms
        sockopts=[(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)],
    )
    try:
        session = cluster.connect()
        if "replicas" in question:
            cluster.refresh_schema_metadata()
            found: list[dict[str, int]] = []
            for key in range(20):
                hosts = cluster.metadata.get_replicas(question["replicas"], key.to_bytes(4, "big"))
                places = [host.datacenter for host in hosts]
                found.append({place: places.count(place) for place in sorted(places)})
            return {"replicas": found}
        level = ConsistencyLevel.name_to_value[question.get("level", "ONE")]
        statement = SimpleStatement(question["cql"], consistency_level=level)
        rows = session.execute(statement)
        return {"rows": [list(map(str, row)) for row in rows]}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    finally:
        cluster.shutdown()


for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), flush=True)
