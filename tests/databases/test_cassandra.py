"""Cassandra and ScyllaDB: what DESCRIBE prints, and levels by number."""

import pytest

from placement.databases import Deployment, Localities, load_system
from placement.databases.system import read_deployment, write_deployment
from placement.errors import InputError, UnsupportedError

SITES = ("dc1", "dc2", "dc3")
DESCRIBED = """
CREATE KEYSPACE app WITH replication = {
 'class': 'org.apache.cassandra.locator.NetworkTopologyStrategy',
 'dc1': '3', 'dc2': '2', 'dc3': '0'}  AND durable_writes = true;

CREATE TABLE app.users (id uuid PRIMARY KEY, "Name" text) WITH comment = 'it''s; here';
"""


def read(text, system="cassandra", name="", **settings):
    found = load_system(system)
    request = found.request(Localities.plain(SITES), name, settings)
    return read_deployment(found, (("keyspace.cql", text),), request)


def test_what_describe_prints():
    found = read(DESCRIBED).deployment
    assert found.voters_at == {"dc1": 3, "dc2": 2}
    assert (found.name, found.read, found.commit) == ("app", 3, 3)


@pytest.mark.parametrize(
    ("level", "votes"),
    [("ONE", 1), ("TWO", 2), ("QUORUM", 3), ("ALL", 5), ("LOCAL_QUORUM", 2), ("EACH_QUORUM", 4)],
)
def test_levels_are_numbers_of_replicas(level, votes):
    assert read(DESCRIBED, read_level=level).deployment.read == votes
    assert read(DESCRIBED, write_level=level).deployment.commit == votes


def test_bare_names_are_folded_and_quoted_ones_are_not():
    text = DESCRIBED.replace("KEYSPACE app", "KEYSPACE App")
    assert read(text, name="app").deployment.name == "app"
    text = DESCRIBED.replace("KEYSPACE app", 'KEYSPACE "App"')
    assert read(text, name="App").deployment.name == "App"
    with pytest.raises(InputError, match=r"keyspace\.cql"):
        read(text, name="app")


def test_simple_strategy_has_no_places():
    text = (
        "CREATE KEYSPACE a WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3};"
    )
    found = read(text)
    assert found.deployment.free_voters == 3
    assert {f.rule for f in found.findings} == {"simple-strategy"}


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ("'class': 'NetworkTopologyStrategy', 'dc1': '3/1'", "dc1"),
        ("'class': 'NetworkTopologyStrategy', 'dc1': -1", "dc1"),
        ("'class': 'NetworkTopologyStrategy', 'dcx': 1", "dcx"),
        ("'class': 'NetworkTopologyStrategy', 'replication_factor': 3", "replication_factor"),
        ("'class': 'OldStrategy', 'dc1': 3", "class"),
        ("'class': 'NetworkTopologyStrategy', 'dc1': ['r1', 'r2']", "racks"),
        ("'dc1': 1, 'dc1': 2", "dc1"),
        ("'class': 'NetworkTopologyStrategy', 'dc1': ['r1', 'r1']", "dc1"),
    ],
)
def test_what_has_no_counterpart_names_file_and_field(options, word):
    system = "scylla" if word == "dc1" else "cassandra"
    with pytest.raises(InputError, match=r"keyspace\.cql") as found:
        read(f"CREATE KEYSPACE a WITH replication = {{{options}}};", system)
    assert word in str(found.value)


def test_racks_of_scylla_hold_one_replica_each():
    text = (
        "CREATE KEYSPACE a WITH replication = {'class': 'NetworkTopologyStrategy', "
        "'dc1': ['r1', 'r2'], 'dc2': 1} AND tablets = {'enabled': true};"
    )
    assert read(text, "scylla").deployment.voters_at == {"dc1": 2, "dc2": 1}


def write(deployment, name="app", present=None):
    system = load_system("cassandra")
    return write_deployment(
        system, deployment, system.request(Localities.plain(SITES), name), present
    )


def test_replicas_are_added_before_others_go():
    before = Deployment.of("x", {"dc1": 3, "dc2": 1}, read=1, commit=3)
    after = Deployment.of("x", {"dc2": 2, "dc3": 1}, read=2, commit=2)
    text = write(after, present=before).text
    (first,) = [line for line in text.splitlines() if line.startswith("ALTER")]
    (second,) = [line for line in text.splitlines() if line.startswith("-- later: ALTER")]
    assert "'dc1': 3, 'dc2': 2, 'dc3': 1" in first
    assert "'dc1'" not in second
    between = text[text.index(first) : text.index(second)]
    assert "repair --full" in between


@pytest.mark.parametrize(
    ("deployment", "word"),
    [
        (Deployment.of("x", {"dc1": 3}), "no leader"),
        (Deployment.of("x", {"dc1": 7}, read=5, commit=7), "5 of 7"),
        (Deployment.of("x", {"dc1": 3}, {"dc2": 1}, read=1, commit=1), "without a vote"),
    ],
)
def test_what_cannot_be_said(deployment, word):
    with pytest.raises(UnsupportedError, match=word):
        write(deployment)


def test_names_of_keyspaces():
    good = Deployment.of("x", {"dc1": 3}, read=2, commit=2)
    for name in ("a-b", "x" * 49, "", "a b"):
        with pytest.raises(UnsupportedError, match="keyspace"):
            write(good, name)
    assert '"Mixed_1"' in write(good, "Mixed_1").text


@pytest.mark.parametrize("system", ["cassandra", "scylla"])
def test_writes_that_skip_the_commit_log_are_told_and_kept(system):
    """durable_writes = false was read over."""
    made = load_system(system)
    text = "CREATE KEYSPACE k WITH replication = {'class': 'NetworkTopologyStrategy', 'a': 3}"
    request = made.request(Localities.plain(("a",)))
    found = read_deployment(made, (("k", f"{text} AND DURABLE_WRITES = False;"),), request)
    assert {f.rule: f.severity for f in found.findings} == {"writes-not-durable": "warning"}
    again = write_deployment(made, found.deployment, made.request(request.localities, "k"))
    assert "AND durable_writes = false;" in again.text
    on = read_deployment(made, (("k", f"{text} AND durable_writes = true;"),), request)
    assert not on.findings
    for tail in (" AND durable_write = false;", " AND consistency = 'global';", " replication;"):
        with pytest.raises(InputError, match="k, row 1"):
            read_deployment(made, (("k", text + tail),), request)
