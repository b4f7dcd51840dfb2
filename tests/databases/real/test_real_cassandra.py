"""A real Cassandra cluster of three datacentres: replicas by the token map, levels by requests."""

import contextlib
import json
import shutil
import subprocess

import pytest

from placement.databases import Deployment, Localities, load_system
from placement.databases.system import read_deployment, write_deployment
from tests.databases.real.tools import HERE, awaited, java_classpath, python_with

pytestmark = pytest.mark.databases

SYSTEM = load_system("cassandra")
NODES = (("us", 1), ("us", 2), ("eu", 3), ("ap", 4))
PORT = 19042
# what the server reaches into, from the list of its own start script
OPENED = (
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
CONFIG = """
cluster_name: check
num_tokens: 4
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
      - seeds: "127.0.45.1:17000"
"""


class CassandraCluster:
    """Nodes with an address of loopback each, and a client."""

    def __init__(self, classpath, python, folder):
        self.classpath, self.folder = classpath, folder
        self.processes = {}
        self.client = subprocess.Popen(
            [python, HERE / "cassandra" / "client.py"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip

    def start(self, place, number):
        folder = self.folder / f"node{number}"
        folder.mkdir()
        tokens = [(k * len(NODES) + number) * 2**64 // (4 * len(NODES)) - 2**63 for k in range(4)]
        (folder / "cassandra.yaml").write_text(
            CONFIG.format(
                address=f"127.0.45.{number}", port=PORT, folder=folder,
                tokens=",".join(str(token - 1) for token in tokens),
            )
        )  # fmt: skip
        (folder / "cassandra-rackdc.properties").write_text(f"dc={place}\nrack=r1\n")
        (folder / "logback.xml").write_text(
            "<configuration><appender name='A' class='ch.qos.logback.core.ConsoleAppender'>"
            "<encoder><pattern>%level %msg%n</pattern></encoder></appender>"
            "<root level='WARN'><appender-ref ref='A'/></root></configuration>"
        )
        opened = [
            f"--add-{how}={name}=ALL-UNNAMED" for name in OPENED for how in ("opens", "exports")
        ]
        log = (folder / "log").open("ab")
        self.processes[number] = subprocess.Popen(
            [shutil.which("java"), "-Xms300m", "-Xmx300m", "-XX:+UseSerialGC", "-Xss512k",
             "-XX:TieredStopAtLevel=1", *opened,
             "-Djdk.attach.allowAttachSelf=true", "-Djava.awt.headless=true",
             f"-Dcassandra.config=file://{folder}/cassandra.yaml",
             f"-Dcassandra.storagedir={folder}", f"-Dcassandra.logdir={folder}",
             "-Dcassandra.ring_delay_ms=2000", "-Dcassandra.skip_wait_for_gossip_to_settle=0",
             "-Dcassandra.superuser_setup_delay_ms=0", "-Dcassandra-foreground=yes",
             "-cp", f"{folder}:{self.classpath}",
             "org.apache.cassandra.service.CassandraDaemon"],
            stdout=log, stderr=log, cwd=folder,
        )  # fmt: skip
        log.close()

    def ask(self, number=1, **question):
        question["contact"] = [f"127.0.45.{number}", PORT]
        self.client.stdin.write(json.dumps(question) + "\n")
        self.client.stdin.flush()
        return json.loads(self.client.stdout.readline())

    def run(self, cql, level="ONE", number=1):
        found = self.ask(number, cql=cql, level=level)
        assert "error" not in found, found
        return found["rows"]

    def sees(self, number, others):
        """Wait until a node answers and knows that many others."""
        awaited(
            lambda: self.ask(number, cql="SELECT peer FROM system.peers_v2"),
            lambda answer: len(answer.get("rows", (None,) * 99)) == others,
            240,
        )

    def stop(self, number):
        process = self.processes.pop(number)
        process.kill()
        process.wait()

    def stop_all(self):
        self.client.kill()
        for process in self.processes.values():
            process.kill()
        for process in (self.client, *self.processes.values()):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)


@pytest.fixture(scope="module")
def cassandra(tmp_path_factory):
    """Start the cluster once: the tests use keyspaces of their own, and the last stops nodes."""
    python = python_with("cassandra", "cassandra-driver==3.30.1")
    folder = tmp_path_factory.mktemp("cassandra")
    found = CassandraCluster(java_classpath("cassandra"), python, folder)
    try:
        found.start(*NODES[0])  # the seed first, then the others at once
        found.sees(1, 0)
        for place, number in NODES[1:]:
            found.start(place, number)
        for _, number in NODES:
            found.sees(number, len(NODES) - 1)
        yield found
    finally:
        found.stop_all()


def statements(text):
    """Return the statements that run at once, and those that wait for a repair."""
    lines = [line for line in text.splitlines() if line]
    later = [line.removeprefix("-- later: ") for line in lines if line.startswith("-- later: ")]
    return [line for line in lines if not line.startswith("--")], later


def test_the_steps_to_another_keyspace(cassandra):
    names = SYSTEM.request(Localities.plain(("us", "eu", "ap")), "moved")
    first = Deployment.of("x", {"us": 2, "ap": 1}, read=2, commit=2)
    then = Deployment.of("x", {"us": 1, "eu": 1}, read=2, commit=2)
    cassandra.run(statements(write_deployment(SYSTEM, first, names).text)[0][0])
    cassandra.run("CREATE TABLE moved.t (k int PRIMARY KEY, v int)")
    grow, shrink = statements(write_deployment(SYSTEM, then, names, first).text)
    for statement in grow:
        cassandra.run(statement)
    assert cassandra.ask(replicas="moved")["replicas"] == [{"ap": 1, "eu": 1, "us": 2}] * 20
    for statement in shrink:
        cassandra.run(statement)
    assert cassandra.ask(replicas="moved")["replicas"] == [{"eu": 1, "us": 1}] * 20


def test_what_the_server_refuses(cassandra):
    bad = [
        "CREATE KEYSPACE x WITH replication = {'class': 'NetworkTopologyStrategy', 'mars': 1}",
        "CREATE KEYSPACE x WITH replication = {'class': 'NetworkTopologyStrategy', 'us': -1}",
        "CREATE KEYSPACE us-x WITH replication = {'class': 'NetworkTopologyStrategy', 'us': 1}",
    ]
    for statement in bad:
        assert "error" in cassandra.ask(cql=statement), statement


def test_the_keyspace_and_its_levels(cassandra):
    names = SYSTEM.request(Localities.plain(("us", "eu", "ap")), "app")
    first = Deployment.of("x", {"us": 2, "eu": 1, "ap": 1}, read=3, commit=3)
    now, later = statements(write_deployment(SYSTEM, first, names).text)
    assert (len(now), later) == (1, [])
    cassandra.run(now[0])
    cassandra.run("CREATE TABLE app.t (k int PRIMARY KEY, v int)")
    assert cassandra.ask(replicas="app")["replicas"] == [{"ap": 1, "eu": 1, "us": 2}] * 20
    described = cassandra.run("DESCRIBE KEYSPACE app")[0][-1]
    present = read_deployment(SYSTEM, (("keyspace", described),), names).deployment
    assert not present.differences(first)

    write, read = "INSERT INTO app.t (k, v) VALUES (1, 2)", "SELECT v FROM app.t WHERE k = 1"
    for level in ("ONE", "QUORUM", "EACH_QUORUM", "ALL"):
        cassandra.run(write, level)
    for level in ("ONE", "QUORUM", "ALL"):
        assert cassandra.run(read, level) == [["2"]]
    cassandra.stop(4)  # the datacentre ap: 3 of 4 replicas are left
    for level, works in (("ONE", True), ("QUORUM", True), ("EACH_QUORUM", False), ("ALL", False)):
        assert ("rows" in cassandra.ask(cql=write, level=level)) == works, level
    cassandra.stop(3)  # and eu: 2 of 4 are left, and a quorum is 3
    for level, works in (("ONE", True), ("TWO", True), ("QUORUM", False), ("LOCAL_QUORUM", True)):
        assert ("rows" in cassandra.ask(cql=write, level=level)) == works, level
