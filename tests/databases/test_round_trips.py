"""Read, export, read: nothing changes that was not asked for, in texts as people write them."""

import dataclasses
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.databases import Deployment, Localities, Locality, SiteReplicas, load_system
from placement.databases.system import read_deployment, write_deployment
from placement.errors import InputError, UnsupportedError
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
    """Return a policy of TiDB."""
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


def read(name, text, localities=NAMES, **settings):
    system = load_system(name)
    request = system.request(localities, "" if name == "pd" else "app", settings)
    return read_deployment(system, (("text", text),), request)


@pytest.mark.parametrize("name", TEXTS)
def test_read_export_read_changes_nothing(name):
    system = load_system(name)

    @settings(max_examples=examples(100), deadline=None)
    @given(TEXTS[name])
    def check(text):
        first = read(name, text)
        request = system.request(NAMES, first.deployment.name)
        script = write_deployment(system, first.deployment, request)
        again = read(name, script.text)
        assert again.deployment == first.deployment
        assert again.findings == first.findings or name in ("pd", "cockroachdb", "tidb", "spanner")

    check()


@pytest.mark.parametrize("name", TEXTS)
def test_a_change_of_one_number_changes_no_other_role(name):
    system = load_system(name)

    @settings(max_examples=examples(100), deadline=None)
    @given(TEXTS[name], st.sampled_from(SITES))
    def check(text, site):
        first = read(name, text).deployment
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
        assert not system.keeps(wanted).differences(read(name, script.text).deployment)

    check()


def test_what_the_roles_do_not_hold_goes_into_the_next_text():
    after = Deployment.of("plan", {"n": 1, "s": 1, "e": 1}, leaders=("s", "n", "e"))

    def moved(name, text):
        system = load_system(name)
        present = read(name, text).deployment
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
    present = read("yugabytedb", f"CREATE TABLESPACE app WITH (replica_placement='{placement}');")
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
    """Return the statements of ScyllaDB from one keyspace to another."""
    system = load_system("scylla")
    rows = tuple(Locality(f"r-{site}", site, facts or {}) for site in SITES)
    names = Localities(SITES, rows)
    now, goal = (
        read("scylla", KEYSPACE.format(text), names).deployment for text in (before, after)
    )
    text = write_deployment(system, goal, system.request(names, "app"), now).text
    assert read("scylla", KEYSPACE.format(before) + text, names).deployment.held == goal.held
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
    assert read("cassandra", text).deployment.voters_at == {"n": 1}
    assert read("scylla", text).deployment.voters_at == {"n": 1, "s": 1}
