"""A measuring client of any system: lines of JSON are questions, each answered by a line.

    client.py SYSTEM NUMBER

It runs with a Python that has the client library of the system alone. Questions are

- ``{"op": "write", "at": HOST, "count": 20}``: latencies in ms of so many operations, one after the
  other, after two that do not count; ``pause``: ms between them; ``once`` in place of ``count``:
  the answer of one operation with this number;
- ``{"fresh": 10, "write": HOST, "near": HOST}``: ms from the acknowledgement of a write until the
  near server shows it, of so many writes;
- ``{"until": 30, "hosts": [HOST, …]}``: ms until a write succeeds at one of the hosts;
- ``{"port": 5432, "at": HOST}``: whether a host takes connections at a port.

A system is a function: host -> operations by name, each a function of a whole number. ``write``
stores the number, and ``stale`` returns the number that a server has.
"""

import base64
import contextlib
import http.client
import itertools
import json
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

Operations = Mapping[str, Callable[[Any], Any]]
NUMBER = int(sys.argv[2])
KEY = f"k{NUMBER}"
socket.setdefaulttimeout(10)


def posting(host: str, port: int) -> Callable[..., bytes]:
    """Return what a server answers to (path, fields of JSON); RuntimeError when it refuses."""
    wire = http.client.HTTPConnection(host, port)

    def once(path: str, fields: object) -> bytes:
        wire.request("POST", path, json.dumps(fields))
        answer = wire.getresponse()
        said = answer.read()
        if answer.status != 200:
            raise RuntimeError(said)
        return said

    def ask(path: str, **fields: object) -> bytes:
        try:
            return once(path, fields)
        except ConnectionError:  # a server closes what was idle for long
            wire.close()
            return once(path, fields)

    return ask


def library(host: str) -> Operations:
    """Operations of a program of this study around a library; it answers by numbers."""
    ask = posting(host, 7000)

    def run(name: str, number: int) -> int:
        return int(ask(f"/{name}/{number}"))

    names = ("write", "barrier", "leader", "verified", "lease", "stale")
    return {name: partial(run, name) for name in names}


def redis(host: str) -> Operations:
    """SET, with WAIT in the same packet."""
    from redis import Redis

    wire = Redis(host)

    def write(wait: int, number: int) -> None:
        both = wire.pipeline(transaction=False).set(KEY, number)
        if both.execute_command("WAIT", wait, 0).execute()[1] < wait:
            raise RuntimeError("too few replicas")

    def read(_: int) -> int:
        return int(wire.get(KEY) or -1)

    waits = {"write": 1, "write-all": 2, "write-none": 0}
    writes = {name: partial(write, wait) for name, wait in waits.items()}
    return {**writes, "read": read, "stale": read}


def postgresql(host: str) -> Operations:
    """A statement is an operation, committed by itself; a connection per level."""
    import psycopg

    def connected(level: str) -> Any:
        return psycopg.connect(host=host, user="postgres", dbname="postgres", autocommit=True,
                               options=f"-c synchronous_commit={level}")  # fmt: skip

    wires = {level: connected(level) for level in ("on", "remote_write", "remote_apply", "local")}
    local = wires["local"]

    def write(level: str, number: int) -> None:
        wires[level].execute(f"INSERT INTO t VALUES ({NUMBER}, {number}) "
                             f"ON CONFLICT (key) DO UPDATE SET x = {number}")  # fmt: skip

    def read(_: int) -> int:
        row = local.execute(f"SELECT x FROM t WHERE key = {NUMBER}").fetchone()
        return row[0] if row else -1

    def leader(_: int) -> int:
        local.execute("CREATE TABLE IF NOT EXISTS t (key int PRIMARY KEY, x bigint)")
        asked = "SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('quorum', 'sync')"
        if local.execute(asked).fetchone()[0] < 2:
            raise RuntimeError("standbys are missing")
        return 0

    writes = {level: partial(write, level) for level in wires}
    return {**writes, "write": writes["on"], "read": read, "stale": read, "leader": leader}


def etcd(host: str) -> Operations:
    """The JSON form of the API, which the server has itself."""
    ask = posting(host, 2379)
    key = base64.b64encode(KEY.encode()).decode()

    def write(number: int) -> None:
        ask("/v3/kv/put", key=key, value=base64.b64encode(str(number).encode()).decode())

    def read(serializable: bool, _: int) -> int:
        rows = json.loads(ask("/v3/kv/range", key=key, serializable=serializable)).get("kvs")
        return int(base64.b64decode(rows[0]["value"])) if rows else -1

    def leader(_: int) -> int:
        leads = json.loads(ask("/v3/maintenance/status"))["leader"]
        members = json.loads(ask("/v3/cluster/member/list"))["members"]
        return next(int(one["name"][1:]) for one in members if one["ID"] == leads)

    reads = {"read": partial(read, False), "stale": partial(read, True)}
    return {**reads, "write": write, "leader": leader}


def nats(host: str) -> Operations:
    """Messages of a stream, each acknowledged by itself."""
    import asyncio

    import nats as client
    from nats.js.errors import NotFoundError

    run = asyncio.new_event_loop().run_until_complete
    stream = run(client.connect(f"nats://{host}")).jetstream(timeout=socket.getdefaulttimeout())
    subject = f"s.{KEY}"

    def write(number: int) -> None:
        run(stream.publish(subject, str(number).encode()))

    def read(direct: bool, _: int) -> int:
        with contextlib.suppress(NotFoundError):
            return int(run(stream.get_last_msg("S", subject, direct)).data)
        return -1

    def leader(_: int) -> int:
        try:
            found = run(stream.stream_info("S"))
        except NotFoundError:
            found = run(stream.add_stream(name="S", subjects=["s.>"], num_replicas=3,
                                          allow_direct=True, max_msgs_per_subject=1))  # fmt: skip
        return int(found.cluster.leader[1:])

    reads = {"read": partial(read, False), "stale": partial(read, True)}
    return {**reads, "write": write, "leader": leader}


def zookeeper(host: str) -> Operations:
    """A session with one server."""
    from kazoo.client import KazooClient
    from kazoo.exceptions import NodeExistsError

    client = KazooClient(hosts=f"{host}:2181", timeout=10)
    client.start(timeout=60)
    with contextlib.suppress(NodeExistsError):
        client.create(f"/{KEY}", b"0")
    return {
        "write": lambda number: client.set(f"/{KEY}", str(number).encode()),
        "sync": lambda _: client.sync(f"/{KEY}"),
        "stale": lambda _: int(client.get(f"/{KEY}")[0]),
    }


def rabbitmq(host: str) -> Operations:
    """A confirmed message to a quorum queue."""
    import pika

    channel = pika.BlockingConnection(pika.ConnectionParameters(host, heartbeat=0)).channel()
    channel.confirm_delivery()
    lasting = pika.BasicProperties(delivery_mode=2)
    quorum = {"x-queue-type": "quorum"}
    return {
        "write": lambda number: channel.basic_publish("", "q", str(number).encode(), lasting),
        "read": lambda _: channel.basic_get("q", auto_ack=True),
        "declare": lambda _: channel.queue_declare("q", durable=True, arguments=quorum),
    }


def kafka(host: str) -> Operations:
    """Messages of one partition, acknowledged by all in-sync replicas or by the leader."""
    from confluent_kafka import Consumer, Producer, TopicPartition

    servers = {"bootstrap.servers": f"{host}:9092", "socket.nagle.disable": True}
    producers = {acks: Producer({**servers, "acks": acks, "linger.ms": 0}) for acks in ("all", "1")}
    reader = Consumer({**servers, "group.id": KEY, "enable.auto.commit": False})

    def write(acks: str, number: int) -> None:
        failed: list[object] = []
        producers[acks].produce(
            "t", str(number), partition=0, on_delivery=lambda error, _: failed.append(error)
        )
        producers[acks].flush(20)
        if failed != [None]:
            raise RuntimeError(failed)

    def read(_: int) -> int:
        return int(reader.get_watermark_offsets(TopicPartition("t", 0), timeout=20)[1])

    def leader(_: int) -> int:
        part = producers["all"].list_topics("t", 9).topics["t"].partitions[0]
        if len(part.isrs) < 3:
            raise RuntimeError("copies are missing")
        return int(part.leader) - 1

    writes = {"write": partial(write, "all"), "leader-write": partial(write, "1")}
    return {**writes, "last-offset": read, "leader": leader}


def cassandra(host: str) -> Operations:
    """Statements at several levels, by one coordinator."""
    from cassandra import ConsistencyLevel as Level
    from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
    from cassandra.policies import FallthroughRetryPolicy, WhiteListRoundRobinPolicy
    from cassandra.query import SimpleStatement

    profile = ExecutionProfile(
        WhiteListRoundRobinPolicy([host]), FallthroughRetryPolicy(), request_timeout=20
    )
    cluster = Cluster([host], 19042, execution_profiles={EXEC_PROFILE_DEFAULT: profile},
                      sockopts=[(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)],
                      connect_timeout=20)  # fmt: skip
    session = cluster.connect()

    def run(cql: str, level: int, number: int) -> int:
        text = cql.format(number=number, key=NUMBER, drawn=number % 27)
        rows = list(session.execute(SimpleStatement(text, consistency_level=level)))
        return int(rows[0][0]) if rows else -1

    def declare(servers: int) -> int:
        """Make the table of the study once all servers know each other."""
        known = [*session.execute("SELECT data_center FROM system.local"),
                 *session.execute("SELECT data_center FROM system.peers_v2")]  # fmt: skip
        if len(known) < servers:
            raise RuntimeError("servers are missing")
        copies = {"class": "NetworkTopologyStrategy", **dict.fromkeys((one[0] for one in known), 1)}
        session.execute(f"CREATE KEYSPACE IF NOT EXISTS live WITH replication = {copies}")
        session.execute("CREATE TABLE IF NOT EXISTS live.t (k int PRIMARY KEY, v bigint)")
        for key in range(27):
            put = f"INSERT INTO live.t (k, v) VALUES ({key}, 0)"
            session.execute(SimpleStatement(put, consistency_level=Level.ALL))
        return 0

    def statement(asked: list[str]) -> list[list[str]]:
        """Return the rows of a statement (CQL, level) as text."""
        cql, level = asked
        one = SimpleStatement(cql, consistency_level=Level.name_to_value[level])
        return [list(map(str, row)) for row in session.execute(one)]

    def replicas(keyspace: str) -> list[dict[str, int]]:
        """Return the number of replicas by datacentre, of twenty keys."""
        cluster.refresh_nodes(force_token_rebuild=True)  # else one that joined late may be missing
        cluster.refresh_schema_metadata()
        each = [cluster.metadata.get_replicas(keyspace, key.to_bytes(4, "big"))
                for key in range(20)]  # fmt: skip
        return [dict(sorted(Counter(host.datacenter for host in hosts).items())) for hosts in each]

    put = "INSERT INTO live.t (k, v) VALUES ({key}, {number})"
    light = "UPDATE live.t SET v = {number} WHERE k = {drawn} IF EXISTS"
    get, draw = (f"SELECT v FROM live.t WHERE k = {{{key}}}" for key in ("key", "drawn"))
    return {
        "write": partial(run, put, Level.QUORUM),
        "each-quorum": partial(run, put, Level.EACH_QUORUM),
        "light": partial(run, light, Level.QUORUM),
        "serial-read": partial(run, draw, Level.SERIAL),
        "read": partial(run, draw, Level.QUORUM),
        "stale": partial(run, get, Level.ONE),
        "declare": declare,
        "cql": statement,
        "replicas": replicas,
    }


def hazelcast(host: str) -> Operations:
    """A number that the consensus of the members keeps."""
    import hazelcast as client

    group = client.HazelcastClient(cluster_members=[f"{host}:5701"], smart_routing=False)
    number = group.cp_subsystem.get_atomic_long(KEY).blocking()
    return {"write": number.set, "read": lambda _: number.get()}


SYSTEMS = {
    one.__name__: one
    for one in (library, redis, postgresql, etcd, nats, zookeeper, rabbitmq, kafka, cassandra,
                hazelcast)
}  # fmt: skip
CONNECT = SYSTEMS[sys.argv[1]]
CONNECTED: dict[str, Operations] = {}


def operations(host: str) -> Operations:
    """Return the operations at a host, connected once."""
    if host not in CONNECTED:
        CONNECTED[host] = CONNECT(host)
    return CONNECTED[host]


def timed(run: Callable[[int], object], number: int) -> float:
    """Return the ms of one operation."""
    start = time.perf_counter()
    run(number)
    return (time.perf_counter() - start) * 1000


def shown_after(write: Callable[[int], object], read: Callable[[int], int]) -> float:
    """Return the ms from the acknowledgement of a write to the start of the read that sees it."""
    number = time.monotonic_ns() // 1000
    write(number)
    done = time.perf_counter()
    while True:
        start = time.perf_counter()
        if read(number) >= number:
            return (start - done) * 1000
        time.sleep(0.0005)


def works_again(seconds: float, hosts: list[str]) -> float:
    """Return the ms until a write at one of the hosts succeeds; each is tried in turn."""
    begun = time.perf_counter()
    socket.setdefaulttimeout(1.5)
    for host in itertools.cycle(hosts):
        with contextlib.suppress(Exception):
            operations(host)["write"](1)
            return (time.perf_counter() - begun) * 1000
        CONNECTED.pop(host, None)
        if time.perf_counter() - begun > seconds:
            raise TimeoutError(f"no write in {seconds} s")
        time.sleep(0.02)
    raise AssertionError


def answer(question: dict[str, Any]) -> object:
    """Answer a question, see the module."""
    if "fresh" in question:
        write = operations(question["write"])["write"]
        read = operations(question["near"])["stale"]
        return [shown_after(write, read) for _ in range(question["fresh"])]
    if "until" in question:
        return works_again(question["until"], question["hosts"])
    if "port" in question:
        socket.create_connection((question["at"], question["port"])).close()
        return True
    run = operations(question["at"])[question["op"]]
    if "once" in question:
        return run(question["once"])
    values = []
    for turn in range(question["count"] + 2):
        values.append(timed(run, turn))
        time.sleep(question.get("pause", 0) / 1000)
    return values[2:]


for line in sys.stdin:
    try:
        said = {"ok": answer(json.loads(line))}
    except Exception as error:
        said = {"error": f"{type(error).__name__}: {error}"}
        CONNECTED.clear()  # a connection may be at any point of an answer
    print(json.dumps(said, default=str), flush=True)
