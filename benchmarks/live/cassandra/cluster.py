"""A cluster of Cassandra, as the tests of the export start it, and a client that asks it."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.live.programs import (
    Processes,
    Servers,
    answer,
    awaited,
    built,
    python_with,
)

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
{commitlog}
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
    """Return the class path of the server, and a Python that has its driver."""
    classpath = str(built(Path(__file__).parent))
    return classpath, python_with("cassandra", "cassandra-driver==3.30.1")


class CassandraCluster(Servers):
    """Servers that know each other, and a client that asks one of them.

    A server has a datacentre and an address by its name; all learn of each other from the first.
    `inside` gives the words before a command that take it to a server.
    """

    commitlog = "commitlog_sync: periodic\ncommitlog_sync_period: 10000ms"

    def __init__(
        self,
        programs: tuple[str, Path],
        folder: Path,
        nodes: Mapping[str, tuple[str, str]],
        processes: Processes,
        inside: Callable[[str], Sequence[str]] = lambda _name: (),
    ) -> None:
        super().__init__(folder, processes)
        self.inside = inside
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
                commitlog=self.commitlog,
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
        found: dict[str, Any] = answer(self._client, {**question, "contact": [address, PORT]})
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
