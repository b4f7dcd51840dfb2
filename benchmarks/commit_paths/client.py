"""A measuring client of any system: lines of JSON are questions, each answered by a line.

    client.py SYSTEM NUMBER

It runs with a Python that has the client library of the system alone. Questions are

- ``{"op": "write", "at": HOST, "count": 20}``: latencies in ms of so many operations, one after the
  other, after two that do not count;
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
import uuid
from collections.abc import Callable, Mapping
from typing import Any

Operations = Mapping[str, Callable[[int], Any]]
KEY = f"k{sys.argv[2]}"
socket.setdefaulttimeout(10)


class Wire:
    """A connection that sends bytes and reads lines."""

    def __init__(self, host: str, port: int) -> None:
        self.socket = socket.create_connection((host, port), socket.getdefaulttimeout())
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")

    def ask(self, text: str) -> bytes:
        """Send text, and return the line that answers."""
        self.socket.sendall(text.encode())
        line = self.file.readline()
        if not line:
            raise ConnectionError("closed")
        return line


def library(host: str) -> Operations:
    """Operations of a program of this study around a library, a word and a number in a line."""
    wire = Wire(host, 7000)

    def run(name: str) -> Callable[[int], int]:
        def ask(number: int) -> int:
            said = wire.ask(f"{name} {KEY} {number}\n").split()
            if said[0] != b"ok":
                raise RuntimeError(said)
            return int(said[1])

        return ask

    names = ("write", "barrier", "leader", "verified", "lease", "stale")
    return {name: run(name) for name in names}


def redis(host: str) -> Operations:
    """SET, with WAIT in the same packet."""
    wire = Wire(host, 6379)

    def write(wait: int) -> Callable[[int], None]:
        def run(number: int) -> None:
            said = wire.ask(f"SET {KEY} {number}\r\n" + (f"WAIT {wait} 0\r\n" if wait else ""))
            if said != b"+OK\r\n":
                raise RuntimeError(said)
            if wait and int(wire.file.readline()[1:]) < wait:
                raise RuntimeError("too few replicas")

        return run

    def read(_: int) -> int:
        if int(wire.ask(f"GET {KEY}\r\n")[1:]) < 0:
            return -1
        return int(wire.file.readline())

    writes = {"write": write(1), "write-all": write(2), "write-none": write(0)}
    return {**writes, "read": read, "stale": read}


def postgresql(host: str) -> Operations:
    """A statement is an operation, committed by itself."""
    import psycopg

    wire = psycopg.connect(host=host, user="postgres", dbname="postgres", autocommit=True)
    key = int(KEY[1:])
    level = ""

    def write(wanted: str) -> Callable[[int], None]:
        def run(number: int) -> None:
            nonlocal level
            if level != wanted:
                wire.execute(f"SET synchronous_commit = {wanted}")
                level = wanted
            wire.execute(f"UPDATE t SET x = {number} WHERE key = {key}")

        return run

    def read(_: int) -> int:
        row = wire.execute(f"SELECT x FROM t WHERE key = {key}").fetchone()
        return row[0] if row else -1

    def setup(_: int) -> int:
        wire.execute("SET synchronous_commit = local")
        wire.execute("CREATE TABLE IF NOT EXISTS t (key int PRIMARY KEY, x bigint)")
        wire.execute(
            "INSERT INTO t SELECT k, 0 FROM generate_series(0, 9) k ON CONFLICT DO NOTHING"
        )
        asks = "SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('quorum', 'sync')"
        if wire.execute(asks).fetchone()[0] < 2:
            raise RuntimeError("standbys are missing")
        return 0

    levels = {"write": "on", "remote_write": "remote_write", "remote_apply": "remote_apply",
              "local": "local"}  # fmt: skip
    return {**{key: write(level) for key, level in levels.items()},
            "read": read, "stale": read, "leader": setup}  # fmt: skip


def etcd(host: str) -> Operations:
    """The JSON form of the API, which the server has itself."""
    wire = http.client.HTTPConnection(host, 2379)
    key = base64.b64encode(KEY.encode()).decode()

    def ask(path: str, **fields: object) -> Any:
        wire.request("POST", f"/v3/{path}", json.dumps(fields))
        answer = wire.getresponse()
        said = json.loads(answer.read())
        if answer.status != 200:
            raise RuntimeError(said)
        return said

    def read(**fields: object) -> Callable[[int], int]:
        def run(_: int) -> int:
            rows = ask("kv/range", key=key, **fields).get("kvs")
            return int(base64.b64decode(rows[0]["value"])) if rows else -1

        return run

    def write(number: int) -> None:
        ask("kv/put", key=key, value=base64.b64encode(str(number).encode()).decode())

    def leader(_: int) -> int:
        leads = ask("maintenance/status")["leader"]
        members = ask("cluster/member/list")["members"]
        return next(int(one["name"][1:]) for one in members if one["ID"] == leads)

    found = {"write": write, "read": read(), "stale": read(serializable=True)}
    return {**found, "leader": leader}


def nats(host: str) -> Operations:
    """The protocol of NATS itself: a request is a message with a subject for the answer."""
    wire = Wire(host, 4222)
    inbox, numbers = f"_INBOX.{uuid.uuid4().hex}", itertools.count()
    wire.file.readline()
    wire.socket.sendall(f'CONNECT {{"verbose":false}}\r\nSUB {inbox}.* 1\r\n'.encode())

    def request(subject: str, data: str = "") -> str:
        mine = f"{inbox}.{next(numbers)}"
        wire.socket.sendall(f"PUB {subject} {mine} {len(data)}\r\n{data}\r\n".encode())
        while True:
            words = wire.file.readline().decode().split()
            if words[0] == "PING":
                wire.socket.sendall(b"PONG\r\n")
            elif words[0] in ("MSG", "HMSG"):
                body = wire.file.read(int(words[-1]) + 2)[int(words[-2]) * (words[0] == "HMSG") :]
                if words[1] == mine:
                    return body.decode().strip()
            elif words[0] != "INFO":
                raise RuntimeError(words)

    def write(number: int) -> None:
        said = json.loads(request(f"s.{KEY}", str(number)))
        if "error" in said:
            raise RuntimeError(said)

    def read(_: int) -> int:
        said = json.loads(request("$JS.API.STREAM.MSG.GET.S", f'{{"last_by_subj":"s.{KEY}"}}'))
        return int(base64.b64decode(said["message"]["data"])) if "message" in said else -1

    def stale(_: int) -> int:
        said = request(f"$JS.API.DIRECT.GET.S.s.{KEY}")
        return int(said) if said.isdigit() else -1

    def leader(_: int) -> int:
        said = json.loads(request("$JS.API.STREAM.INFO.S"))
        if "error" in said:
            settings = {"name": "S", "subjects": ["s.>"], "num_replicas": 3, "allow_direct": True,
                        "max_msgs_per_subject": 1}  # fmt: skip
            said = json.loads(request("$JS.API.STREAM.CREATE.S", json.dumps(settings)))
        return int(said["cluster"]["leader"][1:])

    return {"write": write, "read": read, "stale": stale, "leader": leader}


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

    login = pika.PlainCredentials("guest", "guest")
    settings = pika.ConnectionParameters(host, credentials=login, heartbeat=0)
    channel = pika.BlockingConnection(settings).channel()
    channel.confirm_delivery()
    lasting = pika.BasicProperties(delivery_mode=2)

    def write(number: int) -> None:
        channel.basic_publish("", "q", str(number).encode(), lasting)

    def read(_: int) -> int:
        found, _, body = channel.basic_get("q", auto_ack=True)
        return int(body) if found else -1

    def declare(_: int) -> None:
        channel.queue_declare("q", durable=True, arguments={"x-queue-type": "quorum"})

    return {"write": write, "read": read, "declare": declare}


def kafka(host: str) -> Operations:
    """Messages of one partition, acknowledged by all in-sync replicas or by the leader."""
    from confluent_kafka import Consumer, Producer, TopicPartition

    servers = {"bootstrap.servers": f"{host}:9092", "socket.nagle.disable": True}

    producers: dict[str, Producer] = {}

    def write(acks: str) -> Callable[[int], None]:
        producer = producers.setdefault(acks, Producer({**servers, "acks": acks, "linger.ms": 0}))

        def run(number: int) -> None:
            failed: list[object] = []
            producer.produce(
                "t", str(number), partition=0, on_delivery=lambda e, _: failed.append(e)
            )
            producer.flush(20)
            if failed != [None]:
                raise RuntimeError(failed)

        return run

    reader = Consumer({**servers, "group.id": KEY, "enable.auto.commit": False})

    def read(_: int) -> int:
        return int(reader.get_watermark_offsets(TopicPartition("t", 0), timeout=20)[1])

    def leader(_: int) -> int:
        part = producers["all"].list_topics("t", 9).topics["t"].partitions[0]
        if len(part.isrs) < 3:
            raise RuntimeError("copies are missing")
        return int(part.leader) - 1

    writes = {"write": write("all"), "leader-write": write("1")}
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

    def run(cql: str, level: int, serial: int | None = None) -> Callable[[int], int]:
        def ask(number: int) -> int:
            text = cql.format(number=number, key=int(KEY[1:]), drawn=number % 27)
            asked = SimpleStatement(text, consistency_level=level, serial_consistency_level=serial)
            rows = list(session.execute(asked))
            return int(rows[0][0]) if rows else -1

        return ask

    put = "INSERT INTO live.t (k, v) VALUES ({key}, {number})"
    light = "UPDATE live.t SET v = {number} WHERE k = {drawn} IF EXISTS"
    get, draw = (f"SELECT v FROM live.t WHERE k = {{{key}}}" for key in ("key", "drawn"))
    return {
        "write": run(put, Level.QUORUM),
        "each-quorum": run(put, Level.EACH_QUORUM),
        "light": run(light, Level.QUORUM, Level.SERIAL),
        "serial-read": run(draw, Level.SERIAL),
        "read": run(draw, Level.QUORUM),
        "stale": run(get, Level.ONE),
    }


def hazelcast(host: str) -> Operations:
    """A number that the consensus of the members keeps."""
    import hazelcast as library

    client = library.HazelcastClient(cluster_members=[f"{host}:5701"], smart_routing=False)
    number = client.cp_subsystem.get_atomic_long(KEY).blocking()
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
    print(json.dumps(said), flush=True)
