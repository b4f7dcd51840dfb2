"""Read, export, read: nothing changes that was not asked for. ``placement db`` does the same."""

import dataclasses
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import placement as package
from placement.databases import (
    Deployment,
    Localities,
    Locality,
    SiteReplicas,
    available,
    load_system,
)
from placement.databases.system import read_deployment, write_deployment
from placement.errors import InputError, UnsupportedError
from placement.io import save_instance
from placement.testing import random_instance
from tests.effort import examples

SITES = ("n", "s", "e", "w")
NAMES = Localities(SITES, tuple(Locality(f"r-{site}", site) for site in SITES))
PLACES = st.sampled_from([f"r-{site}" for site in SITES])
COUNTS = st.dictionaries(PLACES, st.integers(1, 3), min_size=1, max_size=4)
LEVELS = st.sampled_from(("ONE", "QUORUM", "ALL", "LOCAL_QUORUM", "EACH_QUORUM", "LOCAL_ONE"))


def labels(place, more):
    return ",".join((f"+region={place}", *more))


MORE = st.sampled_from(((), ("+disk=ssd",), ("-disk=hdd", "+rack=r1")))


@st.composite
def zone_statements(draw):
    """Return statements of CockroachDB on one database, some of which change others."""
    voters, others = draw(COUNTS), draw(st.dictionaries(PLACES, st.integers(1, 2), max_size=2))
    more = draw(MORE)
    every = {k: voters.get(k, 0) + others.get(k, 0) for k in {**voters, **others}}
    free = draw(st.integers(0, 2))
    fields = [
        f"num_replicas = {sum(every.values()) + free}",
        f"num_voters = {sum(voters.values())}",
        f"constraints = '{json.dumps({labels(k, more): n for k, n in every.items()})}'",
        f"voter_constraints = '{json.dumps({labels(k, more): n for k, n in voters.items()})}'",
    ]
    order = draw(st.lists(st.sampled_from(("+", "-")), max_size=3))
    preferences = [[f"{sign}region={place}"] for sign, place in zip(order, voters, strict=False)]
    fields.append(f"lease_preferences = '{json.dumps(preferences)}'")
    cut = draw(st.integers(1, len(fields)))
    parts = [fields[:cut], fields[cut:]]
    return "\n".join(
        f"ALTER DATABASE app CONFIGURE ZONE USING {', '.join(part)};" for part in parts if part
    )


@st.composite
def policies(draw):
    options = [f"LEADER_CONSTRAINTS='[+region={draw(PLACES)}]'"]
    evict = draw(st.sampled_from(((), ("#evict-leader",), ("+disk=ssd",))))
    followers = {labels(k, evict): n for k, n in draw(COUNTS).items()}
    options.append(f"FOLLOWER_CONSTRAINTS='{json.dumps(followers)}'")
    if draw(st.booleans()):
        options.append("SURVIVAL_PREFERENCES='[region, host]'")
    if draw(st.booleans()):
        options.append(f"LEARNERS={draw(st.integers(1, 2))}")
    if draw(st.booleans()):
        options.append("CONSTRAINTS='[-engine=tiflash]'")
    return f"CREATE PLACEMENT POLICY app {' '.join(options)};"


@st.composite
def rules(draw):
    """Return a group of rules of PD, with everything that a rule may have."""
    found = []
    for number in range(draw(st.integers(1, 4))):
        places = draw(st.lists(PLACES, min_size=1, max_size=2, unique=True))
        rule = {
            "group_id": "pd", "id": str(number), "index": draw(st.integers(0, 2)),
            "start_key": "", "end_key": "", "count": draw(st.integers(1, 3)),
            "role": draw(st.sampled_from(("voter", "follower", "learner"))),
            "override": draw(st.booleans()),
            "label_constraints": [
                {"key": "region", "op": draw(st.sampled_from(("in", "notIn"))), "values": places},
                {"key": "engine", "op": "notIn", "values": ["tiflash"]},
            ],
            "location_labels": ["region", "host"], "isolation_level": "host",
        }  # fmt: skip
        rule["is_witness"] = rule["role"] == "voter" and draw(st.booleans())
        found.append(rule)
    return json.dumps(
        [{"group_id": "pd", "group_index": 3, "group_override": True, "rules": found}]
    )


@st.composite
def tablespaces(draw):
    """Return a tablespace of YugabyteDB over several zones of some regions."""
    blocks = [
        {
            "cloud": "c1", "region": region, "zone": f"{region}{zone}",
            "min_num_replicas": draw(st.integers(1, 2)),
            **({"leader_preference": 1} if draw(st.booleans()) else {}),
        }
        for region in draw(st.lists(PLACES, min_size=1, max_size=3, unique=True))
        for zone in "abc"[: draw(st.integers(1, 3))]
    ]  # fmt: skip
    total = sum(one["min_num_replicas"] for one in blocks) + draw(st.integers(0, 2))
    placement = json.dumps({"num_replicas": total, "placement_blocks": blocks})
    return f"CREATE TABLESPACE app WITH (replica_placement='{placement}');"


@st.composite
def keyspaces(draw, racks=False):
    """Return a keyspace with consistency levels; for ScyllaDB with lists of racks."""
    held = {
        place: str([f"k{n}" for n in range(count)]) if racks and draw(st.booleans()) else count
        for place, count in draw(COUNTS).items()
    }
    options = ", ".join(f"'{place}': {value}" for place, value in held.items())
    levels = json.dumps({"read_level": draw(LEVELS), "write_level": draw(LEVELS)})
    tail = " AND tablets = {'enabled': false}" if racks and draw(st.booleans()) else ""
    return (
        f"-- placement: {levels}\nCREATE KEYSPACE app WITH replication = "
        f"{{'class': 'NetworkTopologyStrategy', {options}}}{tail};"
    )


@st.composite
def configurations(draw):
    """Return an instance configuration of Spanner."""
    a, b, c = draw(st.permutations([f"r-{site}" for site in SITES]))[:3]
    replicas = [
        {"location": a, "type": "READ_WRITE", "defaultLeaderLocation": True},
        *({"location": place, "type": "READ_WRITE"} for place in (a, b, b)),
        {"location": c, "type": "WITNESS"},
        *({"location": draw(PLACES), "type": "READ_ONLY"} for _ in range(draw(st.integers(0, 2)))),
    ]
    config = {"name": "custom", "baseConfig": "base", "replicas": replicas, "displayName": "x"}
    statement = f"ALTER DATABASE app SET OPTIONS (default_leader = '{b}');"
    return json.dumps({"system": "spanner", "config": config, "statements": [statement]})


TEXTS = {
    "cockroachdb": zone_statements(),
    "tidb": policies(),
    "pd": rules(),
    "yugabytedb": tablespaces(),
    "cassandra": keyspaces(),
    "scylla": keyspaces(racks=True),
    "spanner": configurations(),
}


def read_text(name, text, localities=NAMES, **settings):
    system = load_system(name)
    request = system.request(localities, "" if name == "pd" else "app", settings)
    return read_deployment(system, (("text", text),), request)


@pytest.mark.parametrize("name", TEXTS)
def test_read_export_read_changes_nothing(name):
    system = load_system(name)

    @settings(max_examples=examples(100), deadline=None)
    @given(TEXTS[name])
    def check(text):
        first = read_text(name, text)
        request = system.request(NAMES, first.deployment.name)
        script = write_deployment(system, first.deployment, request)
        again = read_text(name, script.text)
        assert again.deployment == first.deployment
        assert again.findings == first.findings or name in ("pd", "cockroachdb", "tidb", "spanner")

    check()


@pytest.mark.parametrize("name", TEXTS)
def test_a_change_of_one_number_changes_no_other_role(name):
    system = load_system(name)

    @settings(max_examples=examples(100), deadline=None)
    @given(TEXTS[name], st.sampled_from(SITES))
    def check(text, site):
        first = read_text(name, text).deployment
        held = [one for one in first.held if one.site != site]
        one = next((one for one in first.held if one.site == site), None)
        if one is None or one.zones or one.special:
            return
        held.append(dataclasses.replace(one, voters=one.voters + 1))
        wanted = dataclasses.replace(first, held=tuple(held))
        request = system.request(NAMES, first.name)
        try:
            script = write_deployment(system, wanted, request)
        except (UnsupportedError, InputError):  # refused with the reason
            return
        assert not system.keeps(wanted).differences(read_text(name, script.text).deployment)

    check()


def test_what_the_roles_do_not_hold_goes_into_the_next_text():
    after = Deployment.of("plan", {"n": 1, "s": 1, "e": 1}, leaders=("s", "n", "e"))

    def moved(name, text):
        system = load_system(name)
        present = read_text(name, text).deployment
        request = system.request(NAMES, "app")
        return write_deployment(system, after, request, present)

    policy = "CREATE PLACEMENT POLICY app FOLLOWERS=2 LEADER_CONSTRAINTS='[+region=r-n,+disk=ssd]'"
    policy += " FOLLOWER_CONSTRAINTS='{+region=r-n: 1, +region=r-w: 1}'"
    script = moved("tidb", f"{policy} SURVIVAL_PREFERENCES='[region, host]';")
    assert "SURVIVAL_PREFERENCES='[region, host]'" in script.text
    assert any("disk" in note for note in script.notes)
    rule = {"group_id": "pd", "id": "1", "role": "voter", "count": 3, "location_labels": ["host"]}
    rule["label_constraints"] = [{"key": "region", "op": "in", "values": ["r-n"]}]
    bundle = {"group_id": "pd", "group_index": 7, "group_override": True, "rules": [rule]}
    document = json.loads(moved("pd", json.dumps(bundle)).text)
    assert (document["group_index"], document["group_override"]) == (7, True)
    assert {tuple(one["location_labels"]) for one in document["rules"]} == {("host",)}


def test_zones_keep_their_preference_when_another_site_changes():
    blocks = [
        {"cloud": "c", "region": region, "zone": zone, "min_num_replicas": 1, **more}
        for region, zone, more in (
            ("r-n", "a", {"leader_preference": 1}), ("r-n", "b", {}), ("r-s", "a", {}),
        )
    ]  # fmt: skip
    placement = json.dumps({"num_replicas": 3, "placement_blocks": blocks})
    present = read_text(
        "yugabytedb", f"CREATE TABLESPACE app WITH (replica_placement='{placement}');"
    )
    names = Localities(
        SITES, tuple(Locality(f"r-{s}", s, {"cloud": "c", "zone": "a"}) for s in SITES)
    )
    held = [one for one in present.deployment.held if one.site != "s"]
    held += [SiteReplicas("e", 1), SiteReplicas("w", 1)]
    wanted = dataclasses.replace(present.deployment, held=tuple(held))
    system = load_system("yugabytedb")
    request = system.request(names, "app")
    text = write_deployment(system, wanted, request, present.deployment).text
    assert text.count('"leader_preference": 1') == 1
    assert text.count('"zone": "b"') == 1


KEYSPACE = "CREATE KEYSPACE app WITH replication = {{'class': 'NetworkTopologyStrategy', {}}};"


def steps(before, after, facts=None):
    system = load_system("scylla")
    rows = tuple(Locality(f"r-{site}", site, facts or {}) for site in SITES)
    names = Localities(SITES, rows)
    now, goal = (
        read_text("scylla", KEYSPACE.format(text), names).deployment for text in (before, after)
    )
    text = write_deployment(system, goal, system.request(names, "app"), now).text
    assert read_text("scylla", KEYSPACE.format(before) + text, names).deployment.held == goal.held
    lines = [line.removeprefix("-- later: ") for line in text.splitlines()]
    return [line for line in lines if line.startswith("ALTER")]


def test_scylla_changes_one_number_by_one():
    found = steps("'r-n': 1, 'r-s': 1, 'r-e': 1", "'r-n': 3, 'r-e': 2")
    assert len(found) == 4
    assert "'r-s': 0" in found[-1]
    assert "'r-n': 2, 'r-s': 1" in found[1]  # replicas are added before another goes


def test_scylla_keeps_lists_of_racks():
    found = steps("'r-n': ['k1', 'k2'], 'r-s': 1", "'r-n': 3, 'r-s': 1", {"racks": "k1 k2 k3"})
    assert found == [found[0]]
    assert "'r-n': ['k1', 'k2', 'k3'], 'r-s': 1" in found[0]
    with pytest.raises(InputError, match="placed by racks"):
        steps("'r-n': ['k1']", "'r-n': 2")


def test_cassandra_replaces_what_scylla_keeps():
    text = KEYSPACE.format("'r-n': 2, 'r-s': 1")
    text += "ALTER KEYSPACE app WITH replication = {'class': 'NetworkTopologyStrategy', 'r-n': 1};"
    assert read_text("cassandra", text).deployment.voters_at == {"n": 1}
    assert read_text("scylla", text).deployment.voters_at == {"n": 1, "s": 1}


ZONES = """ALTER DATABASE app CONFIGURE ZONE USING num_replicas = 4,
constraints = '{+region=a: 2, +region=b: 2}', lease_preferences = '[[+region=b]]';
"""


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    instance = random_instance(2, sites=4, clients=4).replace(sites=tuple("abcd"))
    save_instance(instance, "mine")
    (tmp_path / "zones.sql").write_text(ZONES)
    plan = package.solve(package.Problem(instance, replicas=4, voters=3))
    package.io.save_plan(plan, "plan.json")
    return tmp_path


@pytest.fixture
def command(command, world):
    return command


def read(command, *more):
    return command("db", "read", "cockroachdb", "zones.sql", "--instance", "mine", *more)


def test_short_names_are_the_system(command, world):
    assert load_system("crdb") is load_system("cockroachdb")
    assert "crdb" not in available()
    short = command("db", "export", "crdb", "plan.json", "--database", "app", code=0)
    assert short.out == command("db", "export", "cockroachdb", "plan.json", "--database", "app").out


def test_read_writes_a_deployment_that_the_others_take(command, world):
    assert read(command, "-o", "today.json").code == 0
    assert json.loads((world / "today.json").read_text())["system"] == "cockroachdb"
    assert read(command, "-o", "today.json").code == 1  # it exists
    found = command("db", "evaluate", "today.json", "--instance", "mine", "--json").document
    assert found["best"]["status"] == "optimal"
    assert found["above_best"] >= 0
    assert found["deployment"]["leader"] == "b"
    difference = command("db", "diff", "today.json", "plan.json", "--json").document
    assert not difference["same"]
    assert difference["steps"][0]["step"] == "add-learner"
    text = command("db", "diff", "today.json", "plan.json").out
    assert "Steps, in a safe order" in text
    same = command("db", "diff", "plan.json", "plan.json")
    assert (same.code, same.out) == (0, "The same roles.\n")


def test_evaluate_holds_the_deployment_against_rules(command):
    read(command, "-o", "today.json")
    broken = command("db", "evaluate", "today.json", "--instance", "mine", "--survive", "site")
    assert broken.code == 2
    assert "Breaks" in broken.out


def test_lint_tells_broken_from_weak_by_the_exit_code(command, world):
    lint = ("db", "lint", "cockroachdb", "zones.sql", "--instance", "mine")
    weak = command(*lint, code=0)
    assert "even-voters" in weak.out
    goal = command(*lint, "--survive", "site", "--json", code=2)
    assert goal.document["broken"]
    assert {f["rule"] for f in goal.document["findings"]} >= {"survival-goal", "arbiter-helps"}
    (world / "zones.sql").write_text(ZONES.replace("num_replicas = 4", "num_replicas = 3"))
    assert command(*lint).code == 2
    assert read(command).code == 2


def test_export_writes_whole_files_and_notes(command, world):
    done = command(
        "db", "export", "cockroachdb", "plan.json", "--database", "app", "-o", "plan.sql"
    )
    assert done.code == 0
    assert "PRIMARY REGION" in done.err
    assert (world / "plan.sql").read_text().count("CONFIGURE ZONE USING") == 1
    again = command(
        "db", "export", "cockroachdb", "plan.json", "--database", "app", "-o", "plan.sql"
    )
    assert again.code == 1
    document = command("db", "export", "etcd", "plan.json", "--from", "plan.json", "--json")
    assert document.code == 1  # a plan does not name its servers
    assert "members" in document.err
    fresh = command("db", "export", "etcd", "plan.json", "--json").document
    assert json.loads(fresh["text"])["system"] == "etcd"


def test_what_cannot_be_said_is_refused_and_nothing_is_written(command, world):
    read(command, "-o", "today.json")
    refused = command("db", "export", "cockroachdb", "plan.json", "-o", "plan.sql")  # no database
    assert refused.code == 1
    assert "cannot express this placement" in refused.err
    assert not (world / "plan.sql").exists()
    deployment = command("db", "export", "cockroachdb", "today.json", "--database", "app")
    assert "--instance" in deployment.err
    done = command("db", "export", "cockroachdb", "today.json", "--instance", "mine")
    assert done.code == 0  # the deployment knows its database
    assert 'ALTER DATABASE "app"' in done.out


def test_every_system_is_listed(command):
    shown = command("db", "export", "--list", code=0)
    listed = command("db", "export", "--list", "--json").document
    assert [one["name"] for one in listed] == [*available()]
    assert all(name in shown.out for name in available())


def test_every_system_has_its_part_of_the_page():
    page = (Path(__file__).parents[2] / "docs" / "databases.md").read_text(encoding="utf-8")
    headings = [line for line in page.splitlines() if line.startswith("### ")]
    for name in available():
        title = load_system(name).title
        assert any(title in heading for heading in headings), title
        assert f"| {title}" in page or f", {title} |" in page or name == "pd", title


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("db", "export"), "SYSTEM"),
        (("db", "export", "oracle", "plan.json"), "unknown system"),
        (("db", "export", "etcd", "zones.sql"), "zones.sql"),
        (("db", "export", "etcd", "plan.json", "--set", "x=1"), "no such setting"),
        (("db", "export", "etcd", "plan.json", "--localities", "none.csv"), "none.csv"),
        (("db", "read", "etcd", "zones.sql", "--instance", "mine"), "zones.sql"),
        (("db", "evaluate", "mine/instance.json", "--instance", "mine"), "another kind"),
    ],
)
def test_mistakes_are_one_line(command, arguments, word):
    done = command(*arguments, code=1)
    assert word in done.err
    assert sum(line.startswith("error: ") for line in done.err.splitlines()) == 1


@pytest.mark.parametrize("system", ["etcd", "mongodb", "zookeeper", "cockroachdb", "cassandra"])
def test_names_that_do_not_fit_are_listed_in_one_sentence(command, world, system):
    instance = random_instance(2, sites=3, clients=2).replace(sites=("A b", "C d", "E f"))
    problem = package.Problem(instance, replicas=3, voters=3)
    package.io.save_plan(package.solve(problem), "spaces.json")
    outcome = command("db", "export", system, "spaces.json", "--database", "app", code=1)
    assert outcome.err.count("'A b', 'C d', 'E f'") == 1
    assert outcome.err.count("--localities") == 1
