"""A Cassandra cluster with nodes in separate datacentres, and its client."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.live.processes import Processes
from benchmarks.live.programs import awaited, java_classpath, python_with

__all__ = [
    "PORT",
    "CassandraClient",
    "CassandraCluster",
    "CassandraNode",
    "cassandra_programs",
]

PORT = 19042
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
"""What the server reaches into, from the list of its own start script."""
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


@dataclass(frozen=True, slots=True)
class CassandraNode:
    """A server.

    Attributes
    ----------
    name
        Of the server.
    datacentre
        Name of its datacentre.
    address
        At which it listens.
    site
        What :class:`CassandraCluster` takes it to.
    """

    name: str
    datacentre: str
    address: str
    site: str = ""


class CassandraClient:
    """A program with the driver that answers questions, one after the other.

    Parameters
    ----------
    python
        Of :func:`cassandra_programs`.
    processes
        What stops it.
    inside
        Words before the command that take it to its place.
    """

    def __init__(self, python: Path, processes: Processes, inside: Sequence[str] = ()) -> None:
        self._owner = processes
        self._process = subprocess.Popen(
            [*inside, python, Path(__file__).with_name("client.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        processes.adopt(self._process)

    def send(self, address: str, **question: Any) -> None:
        """Send a question to the server at an address."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({**question, "contact": [address, PORT]}) + "\n")
        self._process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        """Return the answer to the question that was sent."""
        assert self._process.stdout is not None
        found: dict[str, Any] = json.loads(self._process.stdout.readline())
        return found

    def ask(self, address: str, **question: Any) -> dict[str, Any]:
        """Return the answer of the server at an address; see ``client.py`` for questions."""
        self.send(address, **question)
        return self.answer()

    def stop(self) -> None:
        """Kill the program."""
        self._owner.stop(self._process)


class CassandraCluster:
    """Servers that know each other, and a client that asks one of them.

    Parameters
    ----------
    programs
        Of :func:`cassandra_programs`.
    folder
        For data and logs.
    nodes
        Servers; the others learn of each other from the first.
    processes
        What stops the servers.
    inside
        Words before a command that take it to a site.
    """

    def __init__(
        self,
        programs: tuple[str, Path],
        folder: Path,
        nodes: Sequence[CassandraNode],
        processes: Processes,
        inside: Callable[[str], Sequence[str]] = lambda _site: (),
    ) -> None:
        self.classpath, self.python = programs
        self.folder, self.nodes = folder, {node.name: node for node in nodes}
        self._owner, self._inside = processes, inside
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._client = CassandraClient(self.python, processes, inside(nodes[0].site))

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
        node, number = self.nodes[name], list(self.nodes).index(name) + 1
        folder = self.folder / f"node{number}"
        folder.mkdir()
        tokens = random.Random(number).sample(range(-(2**63), 2**63, 2**40), 16)
        (folder / "cassandra.yaml").write_text(
            _CONFIG.format(
                address=node.address,
                port=PORT,
                folder=folder,
                tokens=",".join(map(str, tokens)),
                seed=next(iter(self.nodes.values())).address,
            )
        )
        (folder / "cassandra-rackdc.properties").write_text(f"dc={node.datacentre}\nrack=r1\n")
        (folder / "logback.xml").write_text(
            "<configuration><appender name='A' class='ch.qos.logback.core.ConsoleAppender'>"
            "<encoder><pattern>%level %msg%n</pattern></encoder></appender>"
            "<root level='WARN'><appender-ref ref='A'/></root></configuration>"
        )
        opened = [
            f"--add-{how}={name}=ALL-UNNAMED" for name in _OPENED for how in ("opens", "exports")
        ]
        self._running[name] = self._owner.start(
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
            inside=self._inside(node.site),
        )  # fmt: skip

    def ask(self, name: str = "", **question: Any) -> dict[str, Any]:
        """Return the client's answer to a question, asked at a server (by default the first)."""
        node = self.nodes[name or next(iter(self.nodes))]
        return self._client.ask(node.address, **question)

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
            lambda answer: len(answer.get("rows", (None,) * 99)) == others,
            240,
        )

    def stop(self, name: str) -> None:
        """Kill a server."""
        self._owner.stop(self._running.pop(name))

    def stop_all(self) -> None:
        """Kill the client and every server."""
        self._client.stop()
        for name in list(self._running):
            self.stop(name)
