"""Constraints as people and servers write them: what they place, and what is said of them."""

import json

import pytest

from placement.databases import Localities, Locality, OpenReplicas, load_system
from placement.databases.findings import lint_deployment
from placement.databases.localities import load_localities
from placement.databases.system import read_deployment
from placement.errors import InputError
from placement.testing import random_instance
from tests.expected import refused

SITES = ("oslo", "bonn", "rome", "lima")
FACTS = {"oslo": "eu", "bonn": "eu", "rome": "eu", "lima": "sa"}
NAMES = Localities(
    SITES,
    tuple(
        Locality(name, site, {"cloud": "c", "zone": f"{name}-a", "continent": FACTS[site]})
        for name, site in zip(("no", "de", "it", "pe"), SITES, strict=True)
    ),
)
WORLD = random_instance(3, sites=4, clients=3).replace(sites=SITES, domains={})


def read(system, *texts, localities=NAMES, name="", **settings):
    found = load_system(system)
    request = found.request(localities, name, settings)
    pairs = [(f"file{k}", text) for k, text in enumerate(texts)]
    return read_deployment(found, pairs, request)


def lint(system, *texts, survive=None, **more):
    """Return the severity of each rule that is found."""
    reading = read(system, *texts, **more)
    found = lint_deployment(reading.deployment, WORLD, NAMES, survive=survive)
    return {f.rule: f.severity for f in (*reading.findings, *found)}


def zone(*fields, target="DATABASE d"):
    return "".join(f"ALTER {target} CONFIGURE ZONE USING {one};\n" for one in fields)


def policy(options):
    return f"CREATE PLACEMENT POLICY p {options};"


def rule(role, count, place="no", **more):
    labels = [{"key": "region", "op": "in", "values": [place] if isinstance(place, str) else place}]
    return {"group_id": "g", "role": role, "count": count, "label_constraints": labels, **more}


def group(*rules, name="g", index=0, override=False):
    rules = [{**one, "group_id": name} for one in rules]
    head = {"group_id": name, "group_index": index, "group_override": override}
    return {**head, "rules": rules}


def pd(*groups, **settings):
    return read("pd", json.dumps(list(groups)), **{"group": "g", **settings})


def space(*blocks, total=3):
    made = [
        {"cloud": "c", "region": region, "zone": z, "min_num_replicas": count, **more}
        for region, z, count, more in blocks
    ]
    value = json.dumps({"num_replicas": total, "placement_blocks": made})
    return f"CREATE TABLESPACE t WITH (replica_placement='{value}');"


# --- several statements, other labels, negative preferences ----------------------------------


@pytest.mark.parametrize(
    ("text", "voters", "others"),
    [
        (zone("num_replicas = 4", "constraints = '{+region=no: 4}'"), {"oslo": 4}, {}),
        (zone("num_replicas = 4, constraints = '{+region=no: 4}'", "num_voters = 3, "
              "voter_constraints = '[+region=no]'"), {"oslo": 3}, {"oslo": 1}),
        (zone("num_replicas = 3, constraints = '[+region=no]'", "constraints = '[+region=de]'"),
         {"bonn": 3}, {}),
        (zone("num_replicas = 5", target="RANGE default") + zone("num_replicas = 1, "
              "constraints = '[+region=it]'") + zone("num_replicas = COPY FROM PARENT"),
         {"rome": 5}, {}),
        (zone("num_replicas = 7") + "ALTER DATABASE d CONFIGURE ZONE DISCARD;"
         + zone("constraints = '[+region=de]'"), {"bonn": 3}, {}),
        ("SET override_multi_region_zone_config = true; " + zone("constraints = '[+region=de]'"),
         {"bonn": 3}, {}),
    ],
)  # fmt: skip
def test_each_statement_changes_what_it_names(text, voters, others):
    found = read("cockroachdb", text).deployment
    assert (found.voters_at, found.non_voters_at) == (voters, others)


@pytest.mark.parametrize("typed", ["PARTITION eu OF INDEX d.t@i", "eu OF INDEX d.t@i", "d"])
def test_choices_of_an_error_are_accepted_when_typed(typed):
    text = zone("num_replicas = 5") + zone(
        "constraints = '[+region=no]'", target="PARTITION eu OF INDEX d.t@i"
    )
    with pytest.raises(InputError, match=r"PARTITION eu OF INDEX d\.t@i"):
        read("cockroachdb", text)
    found = read("cockroachdb", text, name=typed).deployment
    assert found.replicas == 5  # a partition inherits from its database
    assert found.voters_at == ({} if typed == "d" else {"oslo": 5})


@pytest.mark.parametrize(
    ("system", "text", "held"),
    [
        ("cockroachdb", zone("constraints = '[+region=no,+rack=r1]'"), {"oslo": 3}),
        ("cockroachdb", zone("constraints = '[+region=no,+ssd]'"), {"oslo": 3}),
        ("tidb", policy("LEADER_CONSTRAINTS='[+region=no,+rack=r1]'"), {"oslo": 1}),
        ("pd", json.dumps([rule("voter", 3, label_constraints=[
            {"key": "region", "op": "in", "values": ["no"]},
            {"key": "engine", "op": "notIn", "values": ["tiflash"]},
            {"key": "$mode", "op": "notExists"}])]), {"oslo": 3}),
    ],
)  # fmt: skip
def test_other_labels_are_noted_and_the_places_are_read(system, text, held):
    settings = {"group": "g"} if system == "pd" else {}
    reading = read(system, text, **settings)
    assert reading.deployment.voters_at == held
    assert {f.rule: f.severity for f in reading.findings}["other-labels"] == "note"


@pytest.mark.parametrize(
    ("constraint", "sites"),
    [
        ("[+continent=eu]", ("bonn", "oslo", "rome")),
        ("[+continent=sa]", ("lima",)),
        ("[-continent=eu]", ("lima",)),
        ("[+continent=eu,-region=no]", ("bonn", "rome")),
        ("[-region=no]", ("bonn", "lima", "rome")),
        ("[+zone=de-a]", ("bonn",)),
    ],
)
def test_a_label_in_a_column_of_the_table_gives_sites(constraint, sites):
    for system, text in (
        ("cockroachdb", zone(f"constraints = '{constraint}'")),
        ("tidb", policy(f"CONSTRAINTS='{constraint}'")),
    ):
        found = read(system, text).deployment
        if len(sites) == 1:
            assert found.voters_at == {sites[0]: 3}
        else:
            assert {one.sites for one in found.open} == {sites}


@pytest.mark.parametrize(
    ("system", "text"),
    [
        ("tidb", policy("CONSTRAINTS='[+region=no]' FOLLOWER_CONSTRAINTS='{+region=de: 2}'")),
        ("tidb", policy("CONSTRAINTS='[-region=de]' FOLLOWER_CONSTRAINTS='{+region=de: 2}'")),
        ("tidb", policy("CONSTRAINTS='[+disk=a]' LEADER_CONSTRAINTS='[-disk=a]'")),
        ("tidb", policy("CONSTRAINTS='[+region=no]' LEARNER_CONSTRAINTS='{+region=de: 1}'")),
        ("cockroachdb", zone("constraints = '[+region=no,-region=no]'")),
        ("cockroachdb", zone("num_voters = 3, num_replicas = 3, constraints = '[-region=no]', "
                             "voter_constraints = '{+region=no: 1}'")),
        ("pd", json.dumps([rule("voter", 3, label_constraints=[
            {"key": "region", "op": "in", "values": ["no"]},
            {"key": "region", "op": "notIn", "values": ["no", "de"]}])])),
    ],
)  # fmt: skip
def test_constraints_that_no_node_meets(system, text):
    settings = {"group": "g"} if system == "pd" else {}
    assert lint(system, text, **settings)["contradiction"] == "error"


def test_constraints_that_the_table_contradicts():
    assert lint("cockroachdb", zone("constraints = '[+region=no,+zone=de-a]'"))["table-differs"]


PREFERENCES = [
    ("[[+region=no], [-region=it]]", (("oslo",), ("bonn",))),
    ("[[-region=no]]", (("bonn", "rome"),)),
    ("[[+region=no], [+continent=eu]]", (("oslo",), ("bonn", "rome"))),
    ("[[+rack=r1], [+region=de]]", (("bonn",),)),
]


@pytest.mark.parametrize(("text", "tiers"), PREFERENCES)
def test_a_preference_may_leave_several_sites(text, tiers):
    three = "constraints = '{+region=no: 1, +region=de: 1, +region=it: 1}'"
    found = read("cockroachdb", zone(f"num_replicas = 3, {three}, lease_preferences = '{text}'"))
    assert found.deployment.tiers == tiers


def test_preferences_that_nothing_guarantees_or_that_are_forbidden():
    maybe = zone("constraints = '{+region=de: 2}', lease_preferences = '[[+region=no]]', "
                 "num_replicas = 3")  # fmt: skip
    assert lint("cockroachdb", maybe)["preference-not-guaranteed"] == "warning"
    never = zone("constraints = '[-region=no]', lease_preferences = '[[+region=no]]'")
    assert lint("cockroachdb", never)["preference-without-voter"] == "error"
    nowhere = zone("constraints = '[+region=no]', lease_preferences = '[[-region=no]]'")
    assert lint("cockroachdb", nowhere)["preference-without-voter"] == "error"
    lead = policy("CONSTRAINTS='[-region=de]' LEADER_CONSTRAINTS='[+region=no]'")
    assert lint("tidb", lead)["forbidden-places"] == "note"


def test_a_preference_for_a_label_without_a_column_is_no_missing_preference():
    text = zone("num_replicas = 3, constraints = '[+region=no]', lease_preferences = '[[+rack=a]]'")
    assert lint("cockroachdb", text)["preference-not-known"] == "warning"
    assert "no-leader-preference" not in lint("cockroachdb", text)


def test_a_replica_with_a_place_and_an_open_role_is_not_free():
    text = zone(
        "num_replicas = 4, num_voters = 3, constraints = '{+region=no: 2, +region=de: 1, "
        "+region=it: 1}', voter_constraints = '{+region=no: 2}'"
    )
    found = read("cockroachdb", text).deployment
    assert found.open == (OpenReplicas(("bonn",), 1), OpenReplicas(("rome",), 1))
    rules = lint("cockroachdb", text, survive="site")
    assert rules["survival-goal"] == "error"
    assert "free-replicas" not in rules
    # two of three votes are placed; if neither open replica had to vote, this would be unknown
    assert found.votes_within({"oslo"}, SITES) == (2, 2)
    assert found.votes_within({"bonn", "rome"}, SITES) == (1, 1)


def test_replicas_without_a_vote_stay_where_the_constraints_of_all_allow_them():
    text = zone("num_replicas = 5, num_voters = 3, constraints = '[+continent=eu]', "
                "voter_constraints = '{+region=no: 3}'")  # fmt: skip
    found = read("cockroachdb", text).deployment
    assert found.open == (OpenReplicas(("bonn", "oslo", "rome"), 2, "non-voter"),)


def test_goals_that_the_file_itself_states():
    text = policy("CONSTRAINTS='[+region=no]' SURVIVAL_PREFERENCES='[region, host]'")
    assert lint("tidb", text)["survival-preference"] == "warning"
    spread = policy("LEADER_CONSTRAINTS='[+region=no]' SURVIVAL_PREFERENCES='[region]' "
                    "FOLLOWER_CONSTRAINTS='{+region=de: 1, +region=it: 1}'")  # fmt: skip
    assert "survival-preference" not in lint("tidb", spread)
    three = {"location_labels": ["region", "host"], "isolation_level": "host"}
    host = pd(group(rule("voter", 3, **three)))
    assert {f.rule: f.severity for f in host.findings} == {"isolation-not-checked": "note"}


# --- rules that replace each other -----------------------------------------------------------


def test_rules_of_pd_are_stacked():
    """An overriding rule replaces those before it in its group, an overriding group all others."""
    base, new = rule("voter", 3, "no", index=1), rule("voter", 5, "de", index=4, override=True)
    assert pd(group(new, base)).deployment.voters_at == {"bonn": 5}
    late = rule("voter", 1, "it", index=9)
    assert pd(group(late, new, base)).deployment.voters_at == {"bonn": 5, "rome": 1}
    over = group(rule("voter", 3, "it"), name="h", index=3, override=True)
    assert pd(group(base), over).deployment.voters_at == {"rome": 3}
    assert {f.rule for f in pd(group(base), over).findings} == {"overridden"}
    below = {**over, "group_index": -1}
    assert pd(group(base), below).deployment.voters_at == {"oslo": 3, "rome": 3}


def test_ranges_of_keys_are_told_apart():
    first = rule("voter", 3, "no", start_key="", end_key="AA")
    second = rule("voter", 3, "de", start_key="aa", end_key="")
    with pytest.raises(InputError, match="start_key") as error:
        pd(group(first, second))
    assert "aa" in str(error.value)
    assert pd(group(first, second), start_key="aa").deployment.voters_at == {"bonn": 3}
    same = rule("voter", 3, "no", start_key="aa", end_key="bb")
    assert pd(group(first, same)).deployment.voters_at == {"oslo": 3}


def test_rules_of_pd():
    found = pd(group(rule("leader", 1), rule("voter", 2, "de"), rule("learner", 1, "it")))
    assert found.deployment.voters_at == {"oslo": 1, "bonn": 2}
    assert (found.deployment.leaders, found.findings) == (("oslo",), ())
    bare = {"role": "voter", "count": 3}
    assert pd(group(bare)).deployment.free_voters == 3
    with pytest.raises(InputError, match="group"):
        pd(group(bare, name="x"))


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ([rule("leader", 2)], "count"),
        ([rule("leader", 1), rule("leader", 1, "de")], "two-leaders"),
        ([rule("voter", 0), rule("voter", 3)], "count"),
        ([rule("learner", 1)], "no-voter"),
    ],
)
def test_rules_that_a_real_pd_refused(given, name):
    assert name in {f.rule for f in pd(group(*given)).findings if f.severity == "error"}


@pytest.mark.parametrize(
    "given",
    [
        rule("boss", 1),
        rule("voter", 1, "nowhere"),
        {**rule("voter", 1), "label_constraints": [{"key": "region", "op": "is", "values": []}]},
        {**rule("voter", 1), "label_constraints": [{"key": "disk", "op": "in", "values": []}]},
        rule("voter", 1, witness=True),
        rule("voter", 1, override=1),
        rule("voter", 1, start_key="x"),
    ],
)
def test_bad_rules_name_the_file(given):
    with pytest.raises(InputError, match="file0"):
        pd(group(given))


def test_roles_and_levels_of_rules():
    followers = pd(group(rule("follower", 3)))
    assert {"no-voter"} <= {f.rule for f in followers.findings if f.severity == "error"}
    some = pd(group(rule("leader", 1), rule("follower", 2, "de"))).deployment
    assert some.may_lead_at == {"oslo": 1}
    witness = pd(group(rule("voter", 2), rule("voter", 1, "de", is_witness=True))).deployment
    assert dict(witness.held[0].special) == {"witness": 1}
    level = {"isolation_level": "region", "location_labels": ["region", "host"]}
    apart = pd(group(rule("voter", 3, **level)))
    assert "isolation-level" in {f.rule for f in apart.findings if f.severity == "error"}
    wide = pd(group(rule("voter", 3, ["no", "de", "it"], **level)))
    assert not wide.findings
    assert wide.deployment.open == (OpenReplicas(("bonn", "oslo", "rome"), 3, "voter"),)
    # as the source of PD has it: a level that is no location label stands for the first of these
    first = pd(group(rule("voter", 3, **{**level, "isolation_level": "rack"})))
    assert "isolation-level" in {f.rule for f in first.findings if f.severity == "error"}
    none = pd(group(rule("voter", 3, isolation_level="region")))
    assert {f.rule: f.severity for f in none.findings} == {"isolation-without-labels": "warning"}
    learner = pd(group(rule("voter", 3), rule("learner", 1, "de", is_witness=True)))
    assert dict(learner.deployment.held[0].special) == {"unread": 1}
    leads = pd(group(rule("leader", 1, is_witness=True), rule("voter", 2, "de")))
    assert "witness-leads" in {f.rule for f in leads.findings if f.severity == "error"}


def test_keys_of_labels_are_compared_without_case_where_the_database_does_it():
    upper = rule("voter", 3)
    upper["label_constraints"][0]["key"] = "Region"
    assert pd(group(upper)).deployment.voters_at == {"oslo": 3}
    text = policy("LEADER_CONSTRAINTS='[+Region=no]' FOLLOWER_CONSTRAINTS='{+REGION=de: 2}'")
    assert read("tidb", text).deployment.voters_at == {"oslo": 1, "bonn": 2}
    other = zone("num_replicas = 3, constraints = '[+Region=no]'")  # CockroachDB compares exactly
    assert read("cockroachdb", other).deployment.free_voters == 3


@pytest.mark.parametrize(
    ("rules", "field"),
    [
        ([rule("voter", 1, id="a"), rule("voter", 2, id="a")], "id"),
        ([rule("voter", 1, start_key="bb", end_key="AA")], "end_key"),
        ([rule("voter", 1, start_key="aa", end_key="aa")], "end_key"),
    ],
)
def test_rules_of_which_pd_would_keep_another_meaning(rules, field):
    with pytest.raises(InputError, match=field):
        pd(group(*rules))


def test_rules_of_several_groups_without_their_order():
    found = read("pd", json.dumps([rule("voter", 3), {**rule("voter", 1, "de"), "group_id": "h"}]),
                 group="g")  # fmt: skip
    assert {f.rule: f.severity for f in found.findings} == {"order-of-groups": "warning"}
    with pytest.raises(InputError, match="another group"):
        pd({**group(rule("voter", 3)), "group_id": "h"}, group="h")


# --- places of three parts -------------------------------------------------------------------


def test_zones_of_one_region_stay_apart():
    text = space(
        ("no", "z1", 1, {"leader_preference": 1}), ("no", "z2", 1, {}), ("no", "z3", 1, {})
    )
    found = read("yugabytedb", text).deployment
    assert found.voters_at == {"oslo": 3}
    assert [zone.site for zone in found.held[0].zones] == ["c.no.z1", "c.no.z2", "c.no.z3"]


@pytest.mark.parametrize(
    ("block", "severity"),
    [
        (("no", "no-a"), None),
        (("no", "no-b"), "warning"),
        (("no", "de-a"), "error"),
        (("no", "*"), None),
    ],
)
def test_a_zone_is_held_against_the_table(block, severity):
    found = lint("yugabytedb", space((*block, 3, {})))
    assert found.get("zone-not-in-table") == severity


@pytest.mark.parametrize(
    "table",
    [
        "locality,site\nc.no.no-a,oslo\nc.de.de-a,bonn\n",
        "locality,site,cloud,zone\nno,oslo,c,no-a\nde,bonn,c,de-a\n",
        "locality,site,zone\nno,oslo,no-a\nno,rome,no-b\nde,bonn,de-a\n",
        "locality,site\nno,oslo\nde,bonn\n",
    ],
)
def test_forms_of_the_table_of_localities(tmp_path, table):
    (tmp_path / "l.csv").write_text(table)
    names = load_localities(tmp_path / "l.csv", SITES)
    found = read(
        "yugabytedb", space(("no", "no-a", 1, {}), ("de", "de-a", 2, {})), localities=names
    )
    assert found.deployment.voters_at == {"oslo": 1, "bonn": 2}
    assert not found.findings


def test_replicas_above_the_blocks_stay_inside_them():
    found = read("yugabytedb", space(("no", "no-a", 1, {}), ("de", "de-a", 1, {}), total=4))
    assert found.deployment.open == (OpenReplicas(("bonn", "oslo"), 2, "voter"),)
    free = read("yugabytedb", space(("no", "no-a", 1, {}), ("*", "*", 1, {}), total=4))
    assert free.deployment.open == ()


def test_equal_preferences_are_a_tie():
    one = {"leader_preference": 1}
    text = space(("no", "no-a", 1, one), ("de", "de-a", 1, one), ("it", "it-a", 1, {}))
    assert read("yugabytedb", text).deployment.tiers == (("oslo", "bonn"),)


# --- statements that begin, end and exclude each other ---------------------------------------


@pytest.mark.parametrize(
    ("system", "text"),
    [
        ("tidb", policy("FOLLOWERS=4") + "CREATE PLACEMENT POLICY IF NOT EXISTS p FOLLOWERS=2;"),
        ("tidb", policy("FOLLOWERS=2") + "DROP PLACEMENT POLICY p;" + policy("FOLLOWERS=4")),
        ("tidb", policy("FOLLOWERS=2 LEARNERS=1") + "ALTER PLACEMENT POLICY p FOLLOWERS=4;"),
        ("yugabytedb", space(("no", "no-a", 5, {}), total=5) + "ALTER TABLESPACE t OWNER TO me;"),
        ("cassandra", "CREATE KEYSPACE k WITH replication = {'class': 'NetworkTopologyStrategy', "
         "'no': 5} AND durable_writes = true; CREATE KEYSPACE IF NOT EXISTS k WITH replication = "
         "{'class': 'NetworkTopologyStrategy', 'no': 1}; ALTER KEYSPACE k WITH durable_writes = "
         "false;"),
    ],
)  # fmt: skip
def test_what_is_left_after_all_statements(system, text):
    assert read(system, text).deployment.replicas == 5


def test_a_leader_of_the_dialect_of_postgresql():
    replicas = [{"location": p, "type": "READ_WRITE"} for p in ("no", "no", "de", "de")]
    replicas[0]["defaultLeaderLocation"] = True
    config = {"name": "x", "replicas": [*replicas, {"location": "it", "type": "WITNESS"}]}
    text = "ALTER DATABASE d SET spanner.default_leader = 'de'; CREATE TABLE t (a bigint);"
    assert read("spanner", json.dumps(config), text).deployment.leaders == ("bonn", "oslo")


@pytest.mark.parametrize(
    ("system", "text", "words"),
    [
        ("cockroachdb", 'ALTER DATABASE d ALTER LOCALITY REGIONAL IN "no" CONFIGURE ZONE USING '
         "num_replicas = 3;", "multi-region SQL"),
        ("cockroachdb", 'ALTER DATABASE d SET PRIMARY REGION "no";', "multi-region SQL"),
        ("cockroachdb", "ALTER DATABASE my-app CONFIGURE ZONE USING num_replicas = 3;", "quotes"),
        ("cockroachdb", zone("num_replica = 3"), "unknown field"),
        ("cockroachdb", zone("constraints = '{+region=no:3}'"), "a blank"),
        ("tidb", policy("FOLLOWER_CONSTRAINTS='{+region=no:1}'"), "a blank"),
        ("tidb", "CREATE PLACEMENT POLICY my-p FOLLOWERS=2;", "backticks"),
        ("cassandra", "CREATE KEYSPACE a-b WITH durable_writes = true;", "double quotes"),
        ("cockroachdb", zone("constraints = '[+region=oslo]'"), "'oslo' is called 'no'"),
        ("cassandra", "CREATE KEYSPACE k WITH durable_writes = true;", "replication"),
        ("cassandra", "CONSISTENCY ALL;", "--set write_level"),
        ("tidb", policy("PRIMARY_REGION='no' REGIONS='no' VOTERS=5"), "got '5'"),
        ("tidb", policy("REGIONS='no' VOTER_CONSTRAINTS='{+region=no: 1}'"), "old versions"),
    ],
)  # fmt: skip
def test_errors_say_what_to_change(system, text, words):
    with refused(words, "file0"):
        read(system, text)


@pytest.mark.parametrize(
    ("level", "votes", "stops"),
    [("QUORUM", 4, True), ("EACH_QUORUM", 4, True), ("LOCAL_QUORUM", 2, False), ("ONE", 1, False)],
)
def test_levels_of_a_store_without_a_leader_after_a_loss(level, votes, stops):
    text = (
        "CREATE KEYSPACE k WITH replication = {'class': 'NetworkTopologyStrategy', 'no': 3, "
        "'de': 3};"
    )
    settings = {"read_level": level, "write_level": level}
    assert read("cassandra", text, **settings).deployment.read == votes
    assert ("survival-goal" in lint("cassandra", text, survive="site", **settings)) == stops
