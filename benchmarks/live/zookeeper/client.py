"""A measuring client of ZooKeeper: operations one after the other, latencies as JSON lists.

    client.py ADDRESS PORT KEY SECONDS
    client.py ADDRESS PORT KEY SECONDS until-written

It runs with a Python that has kazoo, and connects to one server; SECONDS is how long it tries. It
prints an empty line when it is connected, and then answers lines ``write 20``, ``sync 20``,
``read 20`` by a list of so many latencies in ms, after two operations that do not count. A line
``load 16 10`` keeps 16 writes in flight for 10 s; the answer is a list of [end in seconds since the
epoch, latency in ms]. With
``until-written`` it tries to write until that succeeds, on a new session each time, and prints when
(seconds since the epoch).
"""

import contextlib
import json
import sys
import threading
import time

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NodeExistsError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.interfaces import IAsyncResult


def connected(address: str, port: str, seconds: float) -> KazooClient:
    """Return a client of one server that has a session; the limit for one answer is that too."""
    client = KazooClient(
        hosts=f"{address}:{port}",
        timeout=10,
        connection_retry={"max_tries": -1, "delay": 0.1, "backoff": 1, "max_jitter": 0},
    )
    client.start(timeout=seconds)
    return client


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


def keep_writing(client: KazooClient, path: str, writes: int, seconds: float) -> list[list[float]]:
    """Return the end and the latency of each write; as many as `writes` are always in flight."""
    found: list[list[float]] = []
    stop, idle = time.time() + seconds, threading.Semaphore(0)

    def write() -> None:
        begun = time.perf_counter()
        client.set_async(path, b"x" * 64).rawlink(lambda result: written(result, begun))

    def written(result: IAsyncResult, begun: float) -> None:
        result.get()
        found.append([time.time(), (time.perf_counter() - begun) * 1000])
        if time.time() < stop:
            write()
        else:
            idle.release()

    for _ in range(writes):
        write()
    for _ in range(writes):
        idle.acquire()
    return found


def answer_lines(address: str, port: str, path: str, seconds: float) -> None:
    """Answer the lines of the standard input."""
    client = connected(address, port, seconds)
    with contextlib.suppress(NodeExistsError):
        client.create(path, b"")
    print(flush=True)
    for line in sys.stdin:
        operation, count, *duration = line.split()
        if operation == "load":
            print(json.dumps(keep_writing(client, path, int(count), float(*duration))), flush=True)
            continue
        values = []
        for _ in range(int(count) + 2):
            start = time.perf_counter()
            carry_out(client, operation, path)
            values.append((time.perf_counter() - start) * 1000)
        print(json.dumps(values[2:]), flush=True)
    client.stop()


def first_success(address: str, port: str, path: str, seconds: float) -> float:
    """Return when a write first succeeded."""
    end = time.time() + seconds
    while time.time() < end:
        client = None
        try:
            client = connected(address, port, 2)
            client.set_async(path, b"y").get(timeout=2)
            return time.time()
        except (KazooException, KazooTimeoutError):
            continue
        finally:
            if client is not None:
                client.stop()
    raise SystemExit("no write succeeded")


def main(address: str, port: str, key: str, seconds: str, *until_written: str) -> None:
    """Do what the command line says."""
    path = f"/key{key}"
    if until_written:
        print(first_success(address, port, path, float(seconds)))
    else:
        answer_lines(address, port, path, float(seconds))


main(*sys.argv[1:])
