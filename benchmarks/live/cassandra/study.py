"""Real Cassandra clusters under an emulated wide-area network, held against the model.

    python -m benchmarks run live.cassandra                    some minutes
    python -m benchmarks run live.cassandra --quick            a short form; writes nothing

Five replicas, each in a separate datacentre. A client asks its closest node, which coordinates. A
write goes to all replicas, and waits for as many as its consistency level says, the coordinator
counted. A read goes to that many alone: those of the coordinator's datacentre first, then others in
the order of the ring, which is one at random for each key. So a read at QUORUM waits for the slower
of two of the four others, drawn at random, and not for the third closest replica.

Needs Linux with the right to make network namespaces, Java and Maven. Writes
``benchmarks/results/live_cassandra.json``; with ``--write-docs``, its tables of the page.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

import placement
from benchmarks.live.harness import Latencies, Layout, LiveSystem, client_node, drawn, live_study
from benchmarks.live.programs import (
    Processes,
    Servers,
    answer,
    asked,
    awaited,
    java_classpath,
    python_with,
)
from placement import Operation, Problem
from placement.databases import Deployment, Localities, Locality, load_system
from placement.databases.system import write_deployment

__all__ = [
    "PORT",
    "STUDY",
    "Cassandra",
    "CassandraCluster",
    "cassandra_programs",
]


PORT = 19042
_CLIENT = Path(__file__).with_name("client.py")
_OPENED = (
    "java.base/java.io", "java.base/java.lang", "java.base/java.lang.ref", "java.base/java.math",
    "java.base/java.net", "java.base/java.nio", "java.base/java.util",
    "java.base/java.util.concurrent", "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.math", "java.base/jdk.internal.misc", "java.base/jdk.internal.module",
    "java.base/jdk.internal.ref", "java.base/jdk.internal.reflect",
    "java.base/jdk.internal.util.jar", "java.base/sun.nio.ch",
    "java.management/com.sun.jmx.remote.security",
    "java.management.rmi/javax.management.remote.rmi", "java.rmi/sun.rmi.registry",
    "java.rmi/sun.rmi.server", "java.rmi/sun.rmi.transport", "java.rmi/sun.rmi.transport.tcp",
    "jdk.management/com.sun.management.internal",
)  # fmt: skip
"""Packages that the server reaches into, from the list of its own start script."""
_CONFIG = """
cluster_name: check
num_tokens: 16
initial_token: {tokens}
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
commitlog_sync: periodic
commitlog_sync_period: 10000ms
endpoint_snitch: GossipingPropertyFileSnitch
dynamic_snitch: false
listen_address: {address}
rpc_address: {address}
storage_port: 17000
native_transport_port: {port}
auto_bootstrap: false
memtable_heap_space: 16MiB
memtable_offheap_space: 16MiB
file_cache_size: 32MiB
networking_cache_size: 16MiB
write_request_timeout: 2000ms
read_request_timeout: 2000ms
data_file_directories: [{folder}/data]
commitlog_directory: {folder}/commitlog
saved_caches_directory: {folder}/caches
hints_directory: {folder}/hints
cdc_raw_directory: {folder}/cdc
hinted_handoff_enabled: false
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters:
      - seeds: "{seed}:17000"
"""


def cassandra_programs() -> tuple[str, Path]:
    """Return the class path of the server, and a Python that has its driver.

    Raises
    ------
    UnsupportedError
        Without Java or Maven, or when the packages cannot be downloaded.
    """
    return java_classpath(Path(__file__).parent), python_with(
        "cassandra", "cassandra-driver==3.30.1"
    )


class CassandraCluster(Servers):
    """Servers that know each other, and a client that asks one of them.

    Parameters
    ----------
    programs
        Of :func:`cassandra_programs`.
    nodes
        Name of a server -> its datacentre and its address; all learn of each other from the first.
    folder, processes, inside
        As :class:`benchmarks.live.programs.Servers` takes them.
    """

    def __init__(
        self,
        programs: tuple[str, Path],
        folder: Path,
        nodes: Mapping[str, tuple[str, str]],
        processes: Processes,
        inside: Callable[[str], Sequence[str]] = lambda _name: (),
    ) -> None:
        super().__init__(folder, processes, inside)
        self.classpath, self.python = programs
        self.nodes = dict(nodes)
        self._first = next(iter(nodes))
        self._client = processes.talk([*inside(self._first), self.python, _CLIENT])

    def form(self) -> None:
        """Start all servers, the first one first, and wait until each knows the others."""
        first, *others = self.nodes
        self.start(first)
        self.sees(first, 0)
        for name in others:
            self.start(name)
        for name in self.nodes:
            self.sees(name, len(others))

    def start(self, name: str) -> None:
        """Start a server."""
        (datacentre, address), number = self.nodes[name], list(self.nodes).index(name) + 1
        folder = self.folder / f"node{number}"
        folder.mkdir()
        tokens = random.Random(number).sample(range(-(2**63), 2**63, 2**40), 16)
        (folder / "cassandra.yaml").write_text(
            _CONFIG.format(
                address=address,
                port=PORT,
                folder=folder,
                tokens=",".join(map(str, tokens)),
                seed=self.nodes[self._first][1],
            )
        )
        (folder / "cassandra-rackdc.properties").write_text(f"dc={datacentre}\nrack=r1\n")
        (folder / "logback.xml").write_text(
            "<configuration><appender name='A' class='ch.qos.logback.core.ConsoleAppender'>"
            "<encoder><pattern>%level %msg%n</pattern></encoder></appender>"
            "<root level='WARN'><appender-ref ref='A'/></root></configuration>"
        )
        opened = [
            f"--add-{how}={name}=ALL-UNNAMED" for name in _OPENED for how in ("opens", "exports")
        ]
        self.running[name] = self.processes.start(
            [shutil.which("java") or "java", "-Xms300m", "-Xmx300m", "-XX:+UseSerialGC",
             "-Xss512k", "-XX:TieredStopAtLevel=1", *opened,
             "-Djdk.attach.allowAttachSelf=true", "-Djava.awt.headless=true",
             f"-Dcassandra.config=file://{folder}/cassandra.yaml",
             f"-Dcassandra.storagedir={folder}", f"-Dcassandra.logdir={folder}",
             "-Dcassandra.ring_delay_ms=2000", "-Dcassandra.skip_wait_for_gossip_to_settle=0",
             "-Dcassandra.superuser_setup_delay_ms=0", "-Dcassandra-foreground=yes",
             "-cp", f"{folder}:{self.classpath}",
             "org.apache.cassandra.service.CassandraDaemon"],
            folder / "log",
            inside=self.inside(name),
        )  # fmt: skip

    def ask(self, name: str = "", **question: Any) -> dict[str, Any]:
        """Return the client's answer to a question, asked at a server (by default the first)."""
        address = self.nodes[name or self._first][1]
        asked(self._client, {**question, "contact": [address, PORT]})
        found: dict[str, Any] = answer(self._client)
        return found

    def run(self, cql: str, level: str = "ONE", name: str = "") -> list[list[str]]:
        """Return the rows of a statement."""
        found = self.ask(name, cql=cql, level=level)
        assert "error" not in found, found
        rows: list[list[str]] = found["rows"]
        return rows

    def sees(self, name: str, others: int) -> None:
        """Wait until a server answers and knows that many others."""
        awaited(
            lambda: self.ask(name, cql="SELECT peer FROM system.peers_v2"),
            lambda said: len(said.get("rows", (None,) * 99)) == others,
            240,
        )

    def stop(self) -> None:
        """End the client and all servers."""
        self.processes.stop(self._client)
        super().stop()


_REPLICAS, _QUORUM = 5, 3
_STATEMENTS = {
    "write": "INSERT INTO live.t (k, v) VALUES ({key}, 2)",
    "read": "SELECT v FROM live.t WHERE k = %(turn)d",
}
_SYSTEM = load_system("cassandra")


class Cassandra(LiveSystem):
    """A cluster without a leader; each client asks its closest node, at several levels."""

    title, results, write = "cassandra", "live_cassandra.json", "write-quorum"
    operations = (
        Operation("write-one", near=1, kind="write"),
        Operation("write-quorum", near=1, kind="write", waits=[f"near: {_QUORUM} of voters"]),
        Operation("write-all", near=1, kind="write", waits=["near: all of voters"]),
        Operation("read-one", near=1, kind="read"),
        # the slower of two of four is the 2nd, 3rd or 4th closest in 1, 2 or 3 of six cases
        Operation(
            "read-quorum",
            near=1,
            kind="read",
            waits=[
                f"{1 / 6!r} × near: {_QUORUM} of voters",
                f"{1 / 3!r} × near: {_QUORUM + 1} of voters",
                "0.5 × near: all of voters",
            ],
        ),
    )
    words: ClassVar[Mapping[str, str]] = {
        "write-one": "write, ONE",
        "write-quorum": "write, QUORUM",
        "write-all": "write, ALL",
        "read-one": "read, ONE",
        "read-quorum": "read, QUORUM",
    }
    _cluster: CassandraCluster | None = None

    @classmethod
    def version(cls) -> str:
        """Return the version of the server."""
        jar = next(Path(cassandra_programs()[0][:-1]).glob("cassandra-all-*.jar"))
        return f"Cassandra {jar.stem.removeprefix('cassandra-all-')}"

    def layouts(self, quick: bool) -> list[tuple[str, Layout]]:
        """Return the proven optimum of writes at QUORUM, and layouts that were drawn."""
        asked = np.zeros_like(self.instance.counts)
        asked[..., [one.name for one in self.instance.operations].index(self.write)] = 1
        instance = self.instance.replace(counts=asked)
        plan = placement.solve(Problem(instance, replicas=_REPLICAS, voters=_REPLICAS), "exact")
        best = Layout(f"planned {_REPLICAS}", tuple(plan.voters), (), ("",))
        others = [drawn(self.instance, _REPLICAS, _REPLICAS, seed) for seed in (3, 2)]
        first, second = (Layout(one.name, one.voters, (), ("",)) for one in others)
        return [("test", best)] if quick else [("fit", first), ("test", best), ("test", second)]

    def start(self, layout: Layout, leader: str) -> None:
        """Start a cluster, and make its keyspace as the export says."""
        del leader
        if self._cluster is not None:
            self._cluster.stop()
        nodes = {site: (site.replace(" ", "-"), self.wan.address(site)) for site in layout.replicas}
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        self._cluster = cluster = CassandraCluster(
            cassandra_programs(), folder, nodes, self.processes, self.wan.inside
        )
        cluster.form()
        rows = tuple(Locality(datacentre, site) for site, (datacentre, _) in nodes.items())
        wanted = Deployment.of(
            "live", dict.fromkeys(layout.replicas, 1), read=_QUORUM, commit=_QUORUM
        )
        request = _SYSTEM.request(Localities(self.instance.sites, rows), "live")
        for line in write_deployment(_SYSTEM, wanted, request).text.splitlines():
            if line and not line.startswith("--"):
                cluster.run(line)
        cluster.run("CREATE TABLE live.t (k int PRIMARY KEY, v int)")

    def measure(self, sites: Sequence[str], leader: str, count: int) -> Latencies:
        """Each operation after the other; reads at QUORUM of many keys, which are a draw each."""
        del leader
        assert self._cluster is not None
        python = self._cluster.python
        clients = {
            client: self.processes.talk([*self.wan.inside(client_node(client)), python, _CLIENT])
            for client in self.instance.clients
        }
        found: Latencies = {}
        for operation in self.words:
            verb, _, level = operation.partition("-")
            times = 5 * count if operation == "read-quorum" else count
            for key, (client, program) in enumerate(clients.items()):
                question = {
                    "contact": [self.wan.address(self.closest(client, sites)), PORT],
                    "cql": _STATEMENTS[verb].format(key=key),
                    "level": level.upper(),
                    "count": times,
                }
                asked(program, question)
            for client, program in clients.items():
                said = answer(program)
                assert "error" not in said, said
                found[client, operation] = said["ms"]
        for program in clients.values():
            self.processes.stop(program)
        return found


STUDY = live_study(__doc__, Cassandra)
