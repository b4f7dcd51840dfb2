"""A measuring client of ZooKeeper: operations one after the other, latencies as JSON lists.

    client.py ADDRESS PORT KEY SECONDS

It runs with a Python that has kazoo, and connects to one server; SECONDS is how long it tries. It
prints an empty list when it is connected, and then answers lines ``["write", 20]``, also ``sync``
and ``read``, by a list of so many latencies in ms, after two operations that do not count.
"""

import contextlib
import json
import sys
import time

from kazoo.client import KazooClient
from kazoo.exceptions import NodeExistsError


def carry_out(client: KazooClient, operation: str, path: str) -> None:
    """Carry out one operation."""
    if operation == "write":
        client.set(path, b"x" * 64)
    elif operation == "read":
        client.get(path)
    elif operation == "sync":
        client.sync(path)
    else:
        raise ValueError(operation)


def main(address: str, port: str, key: str, seconds: str) -> None:
    """Answer the lines of the standard input."""
    client = KazooClient(
        hosts=f"{address}:{port}",
        timeout=10,
        connection_retry={"max_tries": -1, "delay": 0.1, "backoff": 1, "max_jitter": 0},
    )
    client.start(timeout=float(seconds))
    path = f"/key{key}"
    with contextlib.suppress(NodeExistsError):
        client.create(path, b"")
    print([], flush=True)
    for line in sys.stdin:
        operation, count = json.loads(line)
        values = []
        for _ in range(count + 2):
            start = time.perf_counter()
            carry_out(client, operation, path)
            values.append((time.perf_counter() - start) * 1000)
        print(json.dumps(values[2:]), flush=True)
    client.stop()


main(*sys.argv[1:])
