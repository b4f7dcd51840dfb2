"""Systems, each as the servers that a study measures: how they are had, started and asked.

A system starts its servers at nodes of an emulated network, voters first, and knows which one
leads. A setting differs from the default where commits would else not be durable, or where the
leader would change while RTTs of 300 ms and slow disks come and go.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.live.cassandra.cluster import CassandraCluster, cassandra_programs
from benchmarks.live.programs import (
    ETCD,
    as_account,
    cargo_program,
    go_program,
    java_classpath,
    postgresql_account,
    postgresql_programs,
)
from benchmarks.live.zookeeper.cluster import zookeeper_classpath
from placement.errors import UnsupportedError

__all__ = ["SYSTEMS", "System"]

GO, RUST, KAFKA, HAZELCAST = map(Path(__file__).with_name, ("go", "rust", "kafka", "hazelcast"))
Ask = Callable[..., Any]
"""(server, operation, number) -> answer of one operation, asked by a client near the server."""


class System(ABC):
    """Servers of a system at nodes ``0``, ``1``, …; `voters` of them vote, `learners` follow.

    Attributes
    ----------
    name, package, requirements
        What users call it, where it comes from, and the packages of its client.
    client
        Its function in ``client.py``.
    elects
        Whether a server takes over when the leader is lost, without any help.
    pause
        ms between writes on measured RTTs.
    """

    name: ClassVar[str]
    package: ClassVar[str]
    client: ClassVar[str]
    requirements: ClassVar[tuple[str, ...]] = ()
    voters: ClassVar[int] = 3
    learners: ClassVar[int] = 0
    elects: ClassVar[bool] = True
    pause: ClassVar[int] = 0

    def __init__(self, hosts: Sequence[str], folder: Path, bench: Any) -> None:
        self.hosts, self.folder, self.launch = list(hosts), folder, bench.launch
        self.bench = bench

    def data(self, number: int) -> Path:
        """Return the folder of a server, made when it is asked for first."""
        found = self.folder / f"data{number}"
        found.mkdir(exist_ok=True)
        return found

    @classmethod
    @abstractmethod
    def version(cls) -> str:
        """Return the version; UnsupportedError, with the package, where it is not installed."""

    @abstractmethod
    def start(self) -> None:
        """Start all servers."""

    @abstractmethod
    def leader(self, ask: Ask) -> int:
        """Return the number of the server that leads; any exception while there is none."""


def _installed(program: str, package: str) -> str:
    found = shutil.which(program)
    if found is None:
        raise UnsupportedError(f"{program} is not installed: the Debian package {package} has it")
    return found


def _said(*command: str | Path) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).strip()


def _jar(classpath: str, name: str) -> str:
    """Return the version of a package on a class path."""
    found = next(Path(classpath[:-1]).glob(f"{name}-[0-9]*.jar"))
    return found.stem.removeprefix(f"{name}-")


def _module(name: str) -> str:
    go_program(GO)
    line = next(x for x in (GO / "go.mod").read_text().splitlines() if x.strip().startswith(name))
    return line.split()[-1]


class _Library(System):
    """A program of this study around a library."""

    client = "library"
    learners = 1
    word: ClassVar[str]

    @classmethod
    def version(cls) -> str:
        return _module(cls.package)

    @classmethod
    def program(cls) -> list[str | Path]:
        """Return program and first words of a server."""
        return [go_program(GO), cls.word]

    def start(self) -> None:
        for i in range(len(self.hosts)):
            words = (str(i), ",".join(self.hosts), str(self.voters), self.data(i))
            self.launch(i, [*self.program(), *words])

    def leader(self, ask: Ask) -> int:
        return int(ask(0, "leader", 0))


class Hashicorp(_Library):
    name, word, package = "hashicorp-raft", "hashicorp", "github.com/hashicorp/raft"


class Dragonboat(_Library):
    name, word, package = "dragonboat", "dragonboat", "github.com/lni/dragonboat/v4"
    learners = 0


class Openraft(_Library):
    name, word, package = "openraft", "openraft", "openraft"
    learners, pause = 0, 300

    @classmethod
    def version(cls) -> str:
        cargo_program(RUST)
        text = (RUST / "Cargo.toml").read_text()
        return text.partition('openraft = { version = "=')[2].partition('"')[0]

    @classmethod
    def program(cls) -> list[str | Path]:
        return [cargo_program(RUST), cls.word]


class Redis(System):
    """A primary with replicas; WAIT counts acknowledgements. Nothing is elected."""

    name, client, package, elects = "redis", "redis", "redis-server", False

    @classmethod
    def version(cls) -> str:
        return _said(_installed("redis-server", cls.package), "--version").split()[2][2:]

    def start(self) -> None:
        for i, host in enumerate(self.hosts):
            follow = ("--replicaof", f"{self.hosts[0]} 6379") if i else ()
            words = ("--dir", self.data(i), "--appendonly", "yes", "--appendfsync", "always")
            free = ("--protected-mode", "no", "--repl-diskless-sync-delay", "0", "--save", "")
            self.launch(i, ["redis-server", "--bind", host, *words, *free, *follow])

    def leader(self, ask: Ask) -> int:
        ask(0, "write-all", 1)
        return 0


class Postgresql(System):
    """A primary with two synchronous standbys, of which any one is waited for."""

    name, client, package, elects = "postgresql", "postgresql", "postgresql", False
    requirements = ("psycopg[binary]==3.3.4",)
    synchronous: ClassVar[str] = "ANY 1 (s1, s2)"

    @classmethod
    def version(cls) -> str:
        return _said(postgresql_programs() / "postgres", "--version").split()[2]

    def start(self) -> None:
        account = postgresql_account()
        if account:
            shutil.chown(self.folder, account)
        first = self.folder / "data0"
        initdb = (postgresql_programs() / "initdb", "-D", first, "-U", "postgres", "-A", "trust")
        make: list[str | Path] = [*as_account(account), "--", *initdb]
        subprocess.run(make, capture_output=True, check=True, cwd=self.folder)
        with (first / "postgresql.conf").open("a") as file:
            file.write(
                "listen_addresses = '*'\nhot_standby = on\n"
                f"synchronous_standby_names = '{self.synchronous}'\nwal_keep_size = '64MB'\n"
            )
        with (first / "pg_hba.conf").open("a") as file:
            file.write("host all all 10.77.0.0/24 trust\nhost replication all 10.77.0.0/24 trust\n")
        for i in range(1, len(self.hosts)):
            subprocess.run(["cp", "-a", first, self.folder / f"data{i}"], check=True)
            data = self.folder / f"data{i}"
            (data / "standby.signal").touch()
            with (data / "postgresql.auto.conf").open("a") as file:
                file.write(
                    f"primary_conninfo = 'host={self.hosts[0]} user=postgres "
                    f"application_name=s{i}'\n"
                )
        for i in range(len(self.hosts)):
            data = self.folder / f"data{i}"
            if account:
                subprocess.run(["chown", "-R", account, data], check=True)
            self.launch(
                i, [postgresql_programs() / "postgres", "-D", data, "-k", ""], account=account
            )
            time.sleep(1)

    def leader(self, ask: Ask) -> int:
        return int(ask(0, "leader", 0))


class Etcd(System):
    name, client, package, learners = "etcd", "etcd", "go.etcd.io/etcd/server/v3", 0

    @classmethod
    def version(cls) -> str:
        return _said(go_program(ETCD), "--version").split()[2]

    def start(self) -> None:
        group = ",".join(f"e{i}=http://{host}:2380" for i, host in enumerate(self.hosts))
        for i, host in enumerate(self.hosts):
            urls = [
                f"--{which}-urls=http://{host}:{port}"
                for which, port in (("listen-client", 2379), ("advertise-client", 2379),
                                    ("listen-peer", 2380), ("initial-advertise-peer", 2380))
            ]  # fmt: skip
            self.launch(i, [
                go_program(ETCD), f"--name=e{i}", f"--data-dir={self.data(i)}", *urls,
                f"--initial-cluster={group}", "--heartbeat-interval=300", "--election-timeout=3000",
                "--log-level=error",
            ])  # fmt: skip

    def leader(self, ask: Ask) -> int:
        return int(ask(0, "leader", 0))


class Nats(System):
    """JetStream with three copies, each message written to the disk before it is confirmed."""

    name, client, package = "nats", "nats", "github.com/nats-io/nats-server/v2"

    @classmethod
    def version(cls) -> str:
        return _module(cls.package)

    def start(self) -> None:
        routes = ",".join(f'"nats://{host}:6222"' for host in self.hosts)
        for i, host in enumerate(self.hosts):
            file = self.data(i) / "nats.conf"
            file.write_text(
                f'server_name: n{i}\nlisten: "{host}:4222"\n'
                f'jetstream {{ store_dir: "{self.data(i)}", sync_interval: always }}\n'
                f'cluster {{ name: c, listen: "{host}:6222", routes: [{routes}] }}\n'
            )
            self.launch(i, [go_program(GO), "nats", file])

    def leader(self, ask: Ask) -> int:
        said = json.loads(ask(0, "info", 0))
        if "error" in said:
            said = json.loads(ask(0, "create", 0))
        return int(said["cluster"]["leader"][1:])


class ZooKeeper(System):
    name, client, package = "zookeeper", "zookeeper", "org.apache.zookeeper:zookeeper"
    requirements = ("kazoo==2.10.0",)
    learners = 1

    @classmethod
    def version(cls) -> str:
        return _jar(zookeeper_classpath(), "zookeeper")

    def start(self) -> None:
        for i, host in enumerate(self.hosts):
            data = self.data(i)
            (data / "myid").write_text(str(self._number(i)))
            observes = "peerType=observer\n" if i >= self.voters else ""
            servers = "".join(
                f"server.{self._number(k)}={h}:2888:3888{':observer' * (k >= self.voters)}\n"
                for k, h in enumerate(self.hosts)
            )
            (data / "zoo.cfg").write_text(
                f"dataDir={data}\nclientPort=2181\nclientPortAddress={host}\ntickTime=1000\n"
                f"initLimit=20\nsyncLimit=10\nadmin.enableServer=false\n{observes}{servers}"
            )
            self.launch(i, [
                "java", "-Xmx96m", "-XX:TieredStopAtLevel=1", "-cp", zookeeper_classpath(),
                "org.apache.zookeeper.server.quorum.QuorumPeerMain", data / "zoo.cfg",
            ])  # fmt: skip

    def _number(self, i: int) -> int:
        return 9 - i  # the largest number is elected

    def leader(self, ask: Ask) -> int:
        ask(0, "write", 1)
        return 0


class RabbitMq(System):
    """A quorum queue with three members; one classic cluster."""

    name, client, package = "rabbitmq", "rabbitmq", "rabbitmq-server"
    requirements = ("pika==1.3.2",)

    @classmethod
    def version(cls) -> str:
        _installed("rabbitmq-server", cls.package)
        found = next(Path("/usr/lib/rabbitmq/lib").glob("rabbitmq_server-*"), None)
        return found.name.partition("-")[2] if found else "unknown"

    def start(self) -> None:
        program = next(Path("/usr/lib/rabbitmq/lib").glob("*/sbin")) / "rabbitmq-server"
        nodes = "".join(
            f"cluster_formation.classic_config.nodes.{i + 1} = r{i}@{host}\n"
            for i, host in enumerate(self.hosts)
        )
        for i, host in enumerate(self.hosts):
            data = self.data(i)
            (data / ".erlang.cookie").write_text("commitpaths")
            (data / ".erlang.cookie").chmod(0o400)
            (data / "rabbitmq.conf").write_text(
                f"listeners.tcp.1 = {host}:5672\nloopback_users = none\n"
                f"cluster_formation.peer_discovery_backend = classic_config\n{nodes}"
            )
            self.launch(i, [program], environment={
                "HOME": str(data), "RABBITMQ_NODENAME": f"r{i}@{host}", "RABBITMQ_BASE": str(data),
                "RABBITMQ_USE_LONGNAME": "true", "RABBITMQ_MNESIA_BASE": str(data),
                "RABBITMQ_LOG_BASE": str(data), "RABBITMQ_CONFIG_FILE": str(data / "rabbitmq.conf"),
                "RABBITMQ_ENABLED_PLUGINS_FILE": str(data / "plugins"),
                "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel net_ticktime 60 +sbwt none +S 2:2",
            })  # fmt: skip
            time.sleep(6 if i == 0 else 1)

    def leader(self, ask: Ask) -> int:
        for i in range(len(self.hosts)):
            ask(i, "ping", 0)  # each has joined before it listens
        ask(0, "declare", 0)  # the leader is where the queue is declared
        return 0


class Kafka(System):
    """Three brokers that are controllers too; a partition whose every message is flushed."""

    name, client, package = "kafka", "kafka", "org.apache.kafka:kafka_2.13"
    requirements = ("confluent-kafka==2.12.1",)

    @classmethod
    def version(cls) -> str:
        return _jar(java_classpath(KAFKA), "kafka_2.13")

    def start(self) -> None:
        java = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp",
                java_classpath(KAFKA)]  # fmt: skip
        voters = ",".join(f"{i + 1}@{h}:9093" for i, h in enumerate(self.hosts))
        for i, host in enumerate(self.hosts):
            file = self.data(i) / "kafka.properties"
            file.write_text(
                f"process.roles=broker,controller\nnode.id={i + 1}\n"
                f"controller.quorum.voters={voters}\ncontroller.listener.names=CONTROLLER\n"
                f"listeners=PLAINTEXT://{host}:9092,CONTROLLER://{host}:9093\n"
                f"advertised.listeners=PLAINTEXT://{host}:9092\nlog.dirs={self.data(i)}/log\n"
                "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT\n"
                "offsets.topic.replication.factor=1\nlog.flush.interval.messages=1\n"
                "default.replication.factor=3\nmin.insync.replicas=2\nnum.partitions=1\n"
                "controller.quorum.election.timeout.ms=5000\n"
                "controller.quorum.fetch.timeout.ms=8000\n"
            )
            _said(*java, "kafka.tools.StorageTool", "format", "-t", "A" * 22, "-c", file)
            self.launch(i, [*java, "kafka.Kafka", file])

    def leader(self, ask: Ask) -> int:
        return int(ask(0, "leader", 0))


class Cassandra(System):
    """Three datacentres of one node; a write waits for the commit log."""

    name, client, package = "cassandra", "cassandra", "org.apache.cassandra:cassandra-all"
    requirements = ("cassandra-driver==3.30.1",)

    @classmethod
    def version(cls) -> str:
        return _jar(cassandra_programs()[0], "cassandra-all")

    def start(self) -> None:
        nodes = {str(i): (f"dc{i}", host) for i, host in enumerate(self.hosts)}
        cluster = _Flushing(cassandra_programs(), self.folder, nodes, self.bench, self.bench.inside)
        cluster.form()
        copies = ", ".join(f"'{datacentre}': 1" for datacentre, _ in nodes.values())
        cluster.run(f"CREATE KEYSPACE live WITH replication = {{'class': "
                    f"'NetworkTopologyStrategy', {copies}}}")  # fmt: skip
        cluster.run("CREATE TABLE live.t (k int PRIMARY KEY, v bigint)")
        for key in range(27):
            cluster.run(f"INSERT INTO live.t (k, v) VALUES ({key}, 0)", "ALL")

    def leader(self, ask: Ask) -> int:
        ask(0, "each-quorum", 1)
        return 0


class _Flushing(CassandraCluster):
    commitlog = "commitlog_sync: batch"


class Hazelcast(System):
    """The consensus subsystem of three members; it keeps nothing on disk."""

    name, client, package = "hazelcast", "hazelcast", "com.hazelcast:hazelcast"
    requirements = ("hazelcast-python-client==5.5.0",)

    @classmethod
    def version(cls) -> str:
        return _jar(java_classpath(HAZELCAST), "hazelcast")

    def start(self) -> None:
        members = "".join(f"<member>{host}</member>" for host in self.hosts)
        for i, host in enumerate(self.hosts):
            file = self.data(i) / "hazelcast.xml"
            file.write_text(
                '<hazelcast xmlns="http://www.hazelcast.com/schema/config"><network>'
                '<port auto-increment="false">5701</port><join><multicast enabled="false"/>'
                f'<auto-detection enabled="false"/><tcp-ip enabled="true">{members}</tcp-ip></join>'
                f'<interfaces enabled="true"><interface>{host}</interface></interfaces></network>'
                "<cp-subsystem><cp-member-count>3</cp-member-count></cp-subsystem></hazelcast>"
            )
            self.launch(i, [
                "java", "-Xmx200m", "-XX:TieredStopAtLevel=1", "-cp",
                java_classpath(HAZELCAST),
                f"-Dhazelcast.config={file}", f"-Dhazelcast.local.localAddress={host}",
                "-Dhazelcast.phone.home.enabled=false",
                "com.hazelcast.core.server.HazelcastMemberStarter",
            ])  # fmt: skip

    def leader(self, ask: Ask) -> int:
        ask(0, "write", 1)
        said = [(self.folder / f"log{i}").read_text(errors="replace") for i in range(3)]
        (found,) = (
            i for i, text in enumerate(said) if re.search(r"\(default\).*\n.*We are the L", text)
        )
        return found


SYSTEMS: Mapping[str, type[System]] = {
    one.name: one
    for one in (Etcd, Hashicorp, Dragonboat, Openraft, Nats, ZooKeeper, Kafka, Cassandra,
                Postgresql, Redis, RabbitMq, Hazelcast)
}  # fmt: skip
"""Systems by name."""
