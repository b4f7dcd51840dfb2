"""A real Cassandra cluster of three datacentres: replicas by the token map, levels by requests."""

import dataclasses

import pytest

from benchmarks.commit_paths.study import SYSTEMS, Bench
from benchmarks.live.programs import answer
from placement.databases import Deployment, Localities, load_system
from placement.databases.system import read_deployment, write_deployment
from tests.databases.real.tools import or_skip

pytestmark = pytest.mark.databases

SYSTEM = load_system("cassandra")
_, US, *_ = HOSTS = [f"127.0.45.{number}" for number in range(1, 5)]
SERVERS = dataclasses.replace(
    SYSTEMS["cassandra"], values={"datacentre": "ap"}, follower={"datacentre": "us"},
    learner={"datacentre": "eu"},
)  # fmt: skip


class Cluster(Bench):
    """Servers on loopback, of which one in the datacentre us is asked."""

    def works(self, cql, level="ONE"):
        return "ok" in answer(self.clients[0], {"op": "cql", "at": US, "once": [cql, level]})

    def run(self, cql, level="ONE"):
        return self.ask(0, op="cql", at=US, once=[cql, level])


@pytest.fixture(scope="module")
def cassandra(tmp_path_factory):
    """Start the cluster once: the tests use keyspaces of their own, and the last stops nodes."""
    with Cluster(SERVERS, tmp_path_factory.mktemp("cassandra"), HOSTS) as found:
        or_skip(found.begin)()
        yield found


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
    found = cassandra.ask(0, op="replicas", at=US, once="moved")
    assert found == [{"ap": 1, "eu": 1, "us": 2}] * 20
    for statement in shrink:
        cassandra.run(statement)
    assert cassandra.ask(0, op="replicas", at=US, once="moved") == [{"eu": 1, "us": 1}] * 20


def test_what_the_server_refuses(cassandra):
    bad = [
        "CREATE KEYSPACE x WITH replication = {'class': 'NetworkTopologyStrategy', 'mars': 1}",
        "CREATE KEYSPACE x WITH replication = {'class': 'NetworkTopologyStrategy', 'us': -1}",
        "CREATE KEYSPACE us-x WITH replication = {'class': 'NetworkTopologyStrategy', 'us': 1}",
    ]
    for statement in bad:
        assert not cassandra.works(statement), statement


def test_the_keyspace_and_its_levels(cassandra):
    names = SYSTEM.request(Localities.plain(("us", "eu", "ap")), "app")
    first = Deployment.of("x", {"us": 2, "eu": 1, "ap": 1}, read=3, commit=3)
    now, later = statements(write_deployment(SYSTEM, first, names).text)
    assert (len(now), later) == (1, [])
    cassandra.run(now[0])
    cassandra.run("CREATE TABLE app.t (k int PRIMARY KEY, v int)")
    assert cassandra.ask(0, op="replicas", at=US, once="app") == [{"ap": 1, "eu": 1, "us": 2}] * 20
    described = cassandra.run("DESCRIBE KEYSPACE app")[0][-1]
    present = read_deployment(SYSTEM, (("keyspace", described),), names).deployment
    assert not present.differences(first)

    write, read = "INSERT INTO app.t (k, v) VALUES (1, 2)", "SELECT v FROM app.t WHERE k = 1"
    for level in ("ONE", "QUORUM", "EACH_QUORUM", "ALL"):
        cassandra.run(write, level)
    for level in ("ONE", "QUORUM", "ALL"):
        assert cassandra.run(read, level) == [["2"]]
    cassandra.stop(cassandra.started[0])  # the datacentre ap: 3 of 4 replicas are left
    for level, works in (("ONE", True), ("QUORUM", True), ("EACH_QUORUM", False), ("ALL", False)):
        assert cassandra.works(write, level) == works, level
    cassandra.stop(cassandra.started[3])  # and eu: 2 of 4 are left, and a quorum is 3
    for level, works in (("ONE", True), ("TWO", True), ("QUORUM", False), ("LOCAL_QUORUM", True)):
        assert cassandra.works(write, level) == works, level
