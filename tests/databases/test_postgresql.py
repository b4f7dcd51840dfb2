"""PostgreSQL and Patroni: settings as servers have them, and the steps on a model."""

import pytest

from placement.databases import Deployment, Localities, Locality, load_system
from placement.databases.system import read_deployment, write_deployment
from placement.errors import InputError, UnsupportedError
from tests.databases.worlds import AFTER, localities, pairs

SYSTEM = load_system("postgresql")
PATRONI = load_system("patroni")
ROWS = tuple(
    Locality(name, site) for name, site in (("p", "a"), ("s1", "a"), ("s-2", "b"), ("s3", "c"))
)
NAMES = Localities(("a", "b", "c"), ROWS)


def read(*texts, system=SYSTEM, **settings):
    request = system.request(NAMES, "", settings)
    return read_deployment(system, [(f"f{i}", text) for i, text in enumerate(texts)], request)


@pytest.mark.parametrize(
    ("value", "commit", "voters"),
    [
        ('ANY 1 (s1, "s-2")', None, {"a": 2, "b": 1}),
        ('any 2 ("s1", "s-2")', 3, {"a": 2, "b": 1}),
        ('FIRST 1 (s1, "s-2")', None, {"a": 2, "b": 1}),
        ('1 (s1, "s-2")', None, {"a": 2, "b": 1}),
        ("s1, s3", None, {"a": 2, "c": 1}),
        ("", None, {"a": 1}),
    ],
)
def test_forms_of_the_setting(value, commit, voters):
    quoted = value.replace("'", "''")
    for text in (
        f"synchronous_standby_names = '{quoted}'  # comment\nport = 5432\n",
        f"ALTER SYSTEM SET synchronous_standby_names TO '{quoted}';",
        f" synchronous_standby_names \n---------------------------\n {value}\n(1 row)\n",
    ):
        found = read(text, primary="p").deployment
        assert (found.commit, found.voters_at, found.leaders) == (commit, voters, ("a",))


@pytest.mark.parametrize(
    "value",
    ["ANY 0 (s1)", "ANY 1 (*)", "us-east-1", "ANY (s1)", "ANY 1 (s1", "ANY 1 (s1, S1)", "nobody",
     "ANY 1 ()", "ANY x (s1)", "s1 s3"],
)  # fmt: skip
def test_values_that_are_refused_name_the_file(value):
    with pytest.raises(InputError, match="f0"):
        read(f"synchronous_standby_names = '{value}'", primary="p")


def test_a_missing_quote_is_named():
    with pytest.raises(InputError, match="closing quote"):
        read("synchronous_standby_names = 'ANY 1 (s1)\n", primary="p")


def test_the_primary_must_be_known():
    with pytest.raises(InputError, match="primary"):
        read("synchronous_standby_names = 's1'")


def test_standbys_that_are_asynchronous():
    shown = "application_name,sync_state\ns1,quorum\ns3,async\n"
    found = read("synchronous_standby_names = 'ANY 1 (s1)'", shown, primary="p").deployment
    assert found.non_voters_at == {"c": 1}
    with pytest.raises(InputError, match="f1"):
        read("synchronous_standby_names = 's1'", "application_name,state\ns1,x\n", primary="p")


@pytest.mark.parametrize("system", [SYSTEM, PATRONI], ids=["postgresql", "patroni"])
def test_what_cannot_be_said(system):
    alone = Deployment.of("x", {"us-east-1": 2}, leaders=("us-east-1",), commit=1)
    with pytest.raises(UnsupportedError, match="no standby"):
        write_deployment(system, alone, system.request(localities(system)))
    for name in ("*", "x" * 64, "é"):
        names = Localities(("s",), (Locality(name, "s"),))
        alone = Deployment.of("x", {"s": 1}, leaders=("s",))
        with pytest.raises(UnsupportedError):
            write_deployment(system, alone, system.request(names))


def carried_out(before, after, request):
    """Follow the steps: who is a standby, who is primary; each list names standbys alone."""
    first = write_deployment(SYSTEM, before, request)
    present = read_deployment(SYSTEM, (("f", first.text),), request).deployment
    text = write_deployment(SYSTEM, after, request, present).text
    running = {member.name for member in present.members}
    primary = present.members[0].name
    least = min(before.voters, after.voters)
    for line in text.splitlines():
        words = line.removeprefix("-- step ").partition(": ")[2].split()
        if "a standby:" in line:
            running.add(words[1])
        elif "switch over" in line:
            primary = line.split("wait for ")[1].split(",")[0]
            assert primary in running
        elif "stop the standby" in line:
            running.remove(words[-1])
            assert words[-1] != primary
        elif "ALTER SYSTEM" in line:
            value = line.split("'")[1]
            listed = [name.strip(' "') for name in value.partition("(")[2].rstrip(")").split(",")]
            listed = [name for name in listed if name]
            assert set(listed) <= running - {primary}
            assert len(listed) + 1 >= least
            if listed:
                votes = int(value.split()[1]) + 1
                assert 2 * votes > len(listed) + 1  # a majority, at every step
        assert not line.startswith("ALTER SYSTEM") or "step 1" not in text
    end = read_deployment(SYSTEM, (("f", text),), request).deployment
    assert running == {member.name for member in end.members}
    assert primary == end.members[0].name


def test_steps_on_a_model():
    for before, after, names in pairs(SYSTEM, led=True):
        carried_out(before, after, SYSTEM.request(names))


# --- Patroni ---------------------------------------------------------------------------------

CONFIG = """\
loop_wait: 10
postgresql:
  parameters:
    max_connections: 100
  pg_hba:
  - host all all 0.0.0.0/0 md5
  - {type: host, database: all}
synchronous_mode: quorum  # since 4.0
synchronous_node_count: 1
ttl: 30
"""
LISTED = """[
 {"Cluster": "x", "Member": "p", "Role": "Leader", "State": "running", "TL": 3},
 {"Cluster": "x", "Member": "s1", "Role": "Quorum Standby", "State": "streaming", "TL": 3,
  "Tags": {"failover_priority": 5}},
 {"Cluster": "x", "Member": "s-2", "Role": "Quorum Standby", "State": "streaming", "TL": 3},
 {"Cluster": "x", "Member": "s3", "Role": "Replica", "State": "streaming", "TL": 3,
  "Tags": {"nosync": true, "nofailover": true}}]
"""


def test_configuration_and_list_of_patroni():
    found = read(CONFIG, LISTED, system=PATRONI)
    assert found.deployment.voters_at == {"a": 2, "b": 1}
    assert found.deployment.non_voters_at == {"c": 1}
    assert (found.deployment.leaders, found.deployment.commit) == (("a",), None)
    assert [finding.rule for finding in found.findings] == ["priority-without-effect"]


def test_files_of_servers():
    server = "name: s-2\nscope: x\ntags:\n  failover_priority: 3\n  noloadbalance: false\n"
    other = "bootstrap:\n  dcs:\n    synchronous_mode: quorum\nname: 'p'\ntags: {nosync: false}\n"
    found = read(server, other, system=PATRONI).deployment
    assert (found.voters_at, found.leaders, found.commit) == ({"a": 1, "b": 1}, (), None)


EXCLUDE = "tags-exclude-each-other"
STRICT = "synchronous_mode: quorum\nsynchronous_mode_strict: true\nname: p"


@pytest.mark.parametrize(
    ("text", "rule", "severity"),
    [
        ("name: p\ntags: {failover_priority: 2, nofailover: true}", EXCLUDE, "error"),
        ("name: p\ntags: {sync_priority: 2, nosync: true}", EXCLUDE, "error"),
        (STRICT.replace("strict: true", "strict: false"), "too-few-standbys", "warning"),
        ("name: p\ntags: {nofailover: true}", "never-leads", "note"),
    ],
)
def test_findings_of_patroni(text, rule, severity):
    assert (rule, severity) in {(f.rule, f.severity) for f in read(text, system=PATRONI).findings}


@pytest.mark.parametrize(
    "text",
    [
        "synchronous_mode: often\nname: p",
        "synchronous_node_count: x\nsynchronous_mode: quorum\nname: p",
        "name: p\ntags: {nosync: perhaps}",
        "name: p\nname: s1",
        "name: nobody",
        "ttl: 30",
        "name: [p]",
        "name: *a",
        "no yaml",
        "name: p\n---\nname: p",
    ],
)
def test_bad_files_are_named(text):
    with pytest.raises(InputError, match="f0"):
        read(text, system=PATRONI)


def test_the_failover_order_is_a_priority():
    text = write_deployment(PATRONI, AFTER, PATRONI.request(localities(PATRONI))).text
    assert "failover_priority" not in text  # without effect under a quorum
    request = PATRONI.request(localities(PATRONI), "", {"synchronous_mode": "on"})
    text = write_deployment(PATRONI, AFTER, request).text
    assert read_deployment(PATRONI, (("f", text),), request).deployment.leaders == AFTER.leaders
    found = [line.split(": ")[1] for line in text.splitlines() if "failover_priority" in line]
    assert found == ["4", "3", "2"]
