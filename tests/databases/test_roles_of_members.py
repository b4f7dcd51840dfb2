"""Roles that members of real configurations have, by hand from the manuals of the systems."""

import json

import pytest

from placement.databases import Deployment, Localities, Locality, load_system
from placement.databases.findings import broken, lint_deployment
from placement.databases.system import read_deployment, write_deployment
from placement.errors import InputError
from placement.testing import random_instance

SITES = ("ams", "bom", "cdg")
ROWS = [Locality(f"{site[0]}1", site, {"peer_url": f"https://{site[0]}1:2380"}) for site in SITES]
NAMES = Localities(SITES, (*ROWS, Locality("c2", "cdg")))
WORLD = random_instance(2, sites=3, clients=3).replace(sites=SITES, domains={})


def mongodb(**members):
    """Return rs.conf() with members at a1, b1, …; the numbers and the hosts are given."""
    rows = [
        {"_id": i, "host": f"{name}:27017", **more}
        for i, (name, more) in enumerate(members.items())
    ]
    return [json.dumps({"_id": "rs", "version": 7, "settings": {"x": 1}, "members": rows})]


def patroni(config, **tags):
    """Return the configuration and the list: the first server leads, roles by tags["role"]."""
    rows = [
        {"Member": name, "Role": more.get("role", "Replica" if i else "Leader"),
         "State": more.get("state", "streaming"),
         "Tags": {key: value for key, value in more.items() if key not in ("role", "state")}}
        for i, (name, more) in enumerate(tags.items())
    ]  # fmt: skip
    return [config, json.dumps(rows)]


def postgresql(value, *states):
    rows = "\n".join(["application_name,sync_state", *states])
    return [f"synchronous_standby_names = '{value}'", *([rows] if states else [])]


def etcd(*members):
    numbers = ("8e9e05c52164694d", 2, 3, 4)
    return [
        json.dumps({"members": [{"ID": i, **m} for i, m in zip(numbers, members, strict=False)]})
    ]


ARBITER = {"arbiterOnly": True, "priority": 0}
HIDDEN = {"hidden": True, "priority": 0}
LATE = {**HIDDEN, "secondaryDelaySecs": 600, "tags": {"use": "backup"}}
NEVER = {"priority": 0}
SYNC, QUORUM = {"role": "Sync Standby"}, {"role": "Quorum Standby"}
ON = "synchronous_mode: on\n"
STRICT = f"{ON}synchronous_mode_strict: true\n"
VOTES = "synchronous_mode: quorum\n"
LEARNER = {"peerURLs": ["https://c1:2380"], "isLearner": True}


@pytest.mark.parametrize(
    ("system", "texts", "roles", "order", "quorums", "stops", "rules"),
    [
        # a word for each of a1, b1, c1: V a voter, - a replica, a special role; two with +
        ("mongodb", mongodb(a1={"priority": 3}, b1={}, c1=ARBITER), "V V arbiter", "ams", (2, 2),
         "ams bom", "arbiter"),
        ("mongodb", mongodb(a1={}, b1=ARBITER, c1=ARBITER), "V arbiter arbiter", "no preference",
         (1, 2), "ams", "arbiter"),
        ("mongodb", mongodb(a1={}, b1={}, c1=LATE), "V V delayed", "no preference", (2, 2),
         "ams bom", "delayed-voter"),
        ("mongodb", mongodb(a1={}, b1={}, c1={**LATE, "votes": 0}), "V V unread", "no preference",
         (2, 2), "ams bom", "even-voters"),
        ("mongodb", mongodb(a1={}, b1={}, c1=HIDDEN), "V V hidden", "no preference",
         (2, 2), "", ""),
        ("mongodb", mongodb(a1={}, b1=NEVER, c1=NEVER), "V follower follower", "no preference",
         (2, 2), "ams", "never-leads"),
        ("mongodb", mongodb(a1=NEVER, b1=NEVER, c1=NEVER), "follower follower follower",
         "no preference", (2, 2), "ams bom cdg", "nobody-leads!"),
        ("mongodb", mongodb(a1={"priority": 2}, b1={"priority": 2}, c1={}), "V V V", "ams or bom",
         (2, 2), "", "equal-preferences"),
        ("mongodb", mongodb(a1={}, b1={}, c1={"priority": 0.5}), "V V V", "ams or bom", (2, 2), "",
         "equal-preferences"),
        ("mongodb", mongodb(a1={}, b1={"votes": 0}, c1={}), "V - V", "no preference", (2, 2),
         "ams cdg", "priority-without-vote!"),
        ("mongodb", mongodb(a1={}, b1={}, c1={"slaveDelay": 600, "priority": 1}), "V V delayed",
         "no preference", (2, 2), "ams bom", "priority-of-a-hidden-member!"),
        ("mongodb", mongodb(a1={}, b1={}, c1={**ARBITER, "votes": 0}), "V V unread",
         "no preference", (2, 2), "ams bom", "arbiter-without-vote!"),
        # not strict: commits go on without the standby, strict: they stop
        ("patroni", patroni(ON, a1={}, b1=SYNC), "V V", "ams", (2, 1), "", ""),
        ("patroni", patroni(STRICT, a1={}, b1=SYNC), "V V", "ams", (2, 1), "ams bom", ""),
        ("patroni", patroni("ttl: 30", a1={}, b1=SYNC), "V V", "ams", (2, 1), "", ""),
        ("patroni", patroni(STRICT, a1={}, b1=SYNC, c1={}), "V V spare", "ams", (2, 1), "",
         "priority-standbys"),
        ("patroni", patroni(ON, a1={}, b1={"nosync": True}, c1={"sync_priority": 0}), "V - -",
         "ams", (1, 1), "ams", "nobody-takes-over"),
        ("patroni", patroni(STRICT, a1={}, b1={"nosync": True}), "V -", "ams", (2, 1), "ams bom",
         "too-few-standbys!"),
        ("patroni", patroni(ON, a1={}, b1={**SYNC, "nofailover": True}, c1={}),
         "V follower spare", "ams", (2, 1), "ams", "nobody-takes-over"),
        ("patroni", patroni(ON, a1={}, b1=SYNC, c1={"failover_priority": 9}), "V V spare", "ams",
         (2, 1), "", "priority-of-a-spare"),
        ("patroni", patroni(ON, a1={}, b1=SYNC, c1={"nostream": True}), "V V -", "ams", (2, 1), "",
         ""),
        ("patroni", patroni(ON, a1={}, b1=SYNC, c1={"replicatefrom": "b1"}), "V V -", "ams",
         (2, 1), "", ""),
        ("patroni", patroni(VOTES, a1={}, b1={**QUORUM, "failover_priority": 5}, c1=QUORUM),
         "V V V", "ams, bom (the system ignores the order)", (2, 2), "",
         "priority-without-effect"),
        ("patroni", patroni(VOTES, a1={}, b1=QUORUM, c1=QUORUM, c2=QUORUM), "V V V+V", "ams",
         (2, 3), "", ""),
        ("patroni", patroni("ttl: 30\n", a1={}, b1={"nofailover": True}, c1={"nosync": True}),
         "V - V", "ams", (1, 1), "", "asynchronous"),
        ("patroni", patroni(ON, a1={}, b1=SYNC, c1={"state": "stopped"}), "V V down", "ams",
         (2, 1), "", "server-down"),
        ("postgresql", postgresql("ANY 1 (b1, c1)", "b1,quorum", "c1,async"), "V V -", "ams",
         (2, 2), "ams bom", "listed-and-not-synchronous"),
        ("postgresql", postgresql("ANY 2 (b1, c1)", "b1,quorum", "c1,async"), "V V -", "ams",
         (3, 1), "", "too-few-standbys!"),
        ("postgresql", postgresql("ANY 2 (b1, c1)", "b1,quorum"), "V V down", "ams", (3, 1), "",
         "too-few-standbys!"),
        ("postgresql", postgresql("ANY 1 (b1, c1)", "B1,quorum", "c1,quorum"), "V V V", "ams",
         (2, 2), "", ""),
        ("postgresql", postgresql("ANY 2 (b1)"), "V V", "ams", (3, 1), "", "too-few-standbys!"),
        ("postgresql", postgresql("ANY 1 (b1, c1)", "b1,quorum", "b1,quorum", "c1,quorum"),
         "V V+V V", "ams", (2, 3), "", "standby-twice"),
        ("postgresql", postgresql("ANY 2 (b1, c1)", "b1,quorum", "b1,quorum"), "V V+V down", "ams",
         (3, 3), "ams bom", "standby-twice"),
        ("postgresql", postgresql("ANY 1 (b1, c1)", "b1,quorum", "b1,async", "c1,quorum"),
         "V V+down V", "ams", (2, 3), "ams", "standby-twice"),
        ("postgresql", postgresql("FIRST 1 (b1, c1)", "b1,potential", "c1,sync"), "V spare V",
         "ams", (2, 1), "", "priority-standbys"),  # b1 catches up
        ("postgresql", postgresql("FIRST 1 (b1, c1)", "c1,sync"), "V down V", "ams", (2, 2),
         "ams cdg", "listed-and-not-synchronous"),
        ("postgresql", postgresql("FIRST 2 (b1, c1)", "b1,sync", "c1,potential", "b1,sync"),
         "V V+V spare", "ams", (3, 1), "bom", "standby-twice priority-standbys"),
        ("postgresql", postgresql("FIRST 2 (b1, c1)", "b1,sync"), "V V down", "ams", (3, 1), "",
         "too-few-standbys!"),
        *(
            ("postgresql", postgresql("ANY 1 (b1, c1)", "b1,quorum", *more), "V V down", "ams",
             (2, 2), "ams bom", "listed-and-not-synchronous")
            for more in ((), ("c1,potential",), ("c1,sync",))  # it catches up, or under FIRST
        ),
        ("postgresql", postgresql("FIRST 1 (b1, c1)"), "V V spare", "ams", (2, 1), "",
         "priority-standbys"),
        ("postgresql", postgresql("FIRST 1 (b1, c1)", "b1,sync", "c1,potential"), "V V spare",
         "ams", (2, 1), "", "priority-standbys"),
        ("postgresql", ["synchronous_standby_names = 'ANY 1 (b1)'",
         " application_name | sync_state\n------------------+------------\n b1 | quorum\n(1 row)"],
         "V V", "ams", (2, 2), "ams bom", ""),
        ("etcd", etcd({"name": "a1"}, {"name": "b1"}, LEARNER), "V V unread", "no preference",
         (2, 2), "ams bom", "member-not-started"),
        ("etcd", etcd({"name": "a1"}, {"name": "b1"}, {**LEARNER, "isLearner": False}), "V V down",
         "no preference", (2, 2), "ams bom", "member-not-started!"),
        ("zookeeper", ["server.1=a1:1:2\nserver.2=b1:1:2:observer\nserver.3=c1:1:2\n"
         "weight.3=0\n"], "V - -", "no preference", (1, 1), "ams", "weight-zero"),
    ],
)  # fmt: skip
def test_roles(system, texts, roles, order, quorums, stops, rules):
    made = load_system(system)
    request = made.request(NAMES, "", {"primary": "a1"} if system == "postgresql" else {})
    found = read_deployment(made, [(f"f{i}", text) for i, text in enumerate(texts)], request)
    deployment = found.deployment
    held = {one.site: one for one in deployment.held}
    for site, word in zip(SITES, roles.split(), strict=False):
        assert held[site].role_names == tuple(word.strip("V-").split("+"))
        assert held[site].voters == (0 if word in ("-", "unread") else held[site].replicas)
    assert deployment.order == order
    assert (deployment.quorum, deployment.election) == quorums
    findings = [*found.findings, *lint_deployment(deployment, WORLD, NAMES)]
    able = deployment.leaders[:1] or [*deployment.may_lead_at] or [None]
    if not broken(findings) or rules == "nobody-leads!":  # whoever leads
        fatal = {site for site in held if any(deployment.outage({site}, one) for one in able)}
        assert fatal == {*stops.split()}
    for rule in rules.split():
        severity = {one.rule: one.severity for one in findings}[rule.rstrip("!")]
        assert (severity == "error") == rule.endswith("!")
    if broken(found.findings):
        return
    script = write_deployment(made, deployment, made.request(NAMES, "rs"))
    state = {"down", "unread"} & {*roles.split()} if system != "mongodb" else set()
    if system != "zookeeper" and not state and "standby-twice" not in rules:
        again = read_deployment(made, [("again", script.text)], request).deployment
        assert again.differences(deployment) == ()


@pytest.mark.parametrize(
    ("system", "text", "word"),
    [
        ("mongodb", mongodb(a1={"newField": 1})[0], "newField"),
        ("mongodb", mongodb(a1={"arbiterOnly": "no"})[0], "arbiterOnly"),
        ("patroni", "standby_cluster: {host: x}\nname: a1", "standby_cluster"),
        ("patroni", "name: a1\nsynchronus_mode: on", "synchronous_mode"),
        ("patroni", "name: a1\npostgresql: {parameters: {synchronous_commit: 'off'}}", "commit"),
        ("patroni", '[{"Member": "a1", "Role": "Leader", "Group": 1}]', "Group"),
        ("patroni", '[{"Member": "a1", "Role": "Standby Leader"}]', "no writes"),
        ("postgresql", "synchronous_standby_names = 'b1'\nsynchronous_commit = local", "commit"),
        ("postgresql", "synchronous_standby_names = 'b-1, c1'", '"b-1", in double quotes'),
        ("etcd", etcd({"name": "a1", "role": "witness"})[0], "role"),
        ("zookeeper", "server.1=a1:1:2\nleaderServes=no", "leaderServes"),
        ("zookeeper", "server.1=a1:1:2\noraclePath=/x", "oraclePath"),
    ],
)
def test_keys_that_change_the_meaning_are_refused(system, text, word):
    made = load_system(system)
    request = made.request(NAMES, "", {"primary": "a1"} if system == "postgresql" else {})
    with pytest.raises(InputError, match=word):
        read_deployment(made, [("f", text)], request)


def exported(present):
    """Return the export of a plan with voters at three sites, from a present replica set."""
    system = load_system("mongodb")
    request = system.request(NAMES, "rs")
    now = read_deployment(system, [("f", present)], request).deployment
    wanted = Deployment.of("plan", dict.fromkeys(SITES, 1), leaders=SITES)
    return json.loads(write_deployment(system, wanted, request, now).text)


def test_numbers_of_canonical_json_and_a_default_write_concern():
    members = [
        {"_id": {"$numberInt": str(i)}, "host": host, "votes": {"$numberInt": "1"}}
        for i, host in enumerate(("a1", "b1", "c1"))
    ]
    settings = {"getLastErrorDefaults": {"w": {"$numberLong": "3"}}}
    text = json.dumps({"_id": "r", "members": members, "settings": settings})
    made = load_system("mongodb")
    found = read_deployment(made, [("f", text)], made.request(NAMES, "", {}))
    assert found.deployment.voters == 3
    assert "default-write-concern" in {finding.rule for finding in found.findings}


def test_members_are_written_whole():
    """The server replaces members whole: a delay, tags and the settings of the set are kept."""
    found = exported(mongodb(a1={"priority": 5}, b1={}, c1=LATE)[0])
    assert (found["config"]["version"], found["config"]["settings"]) == (7, {"x": 1})
    late = next(one for one in found["config"]["members"] if one["host"] == "c1:27017")
    assert late == {"_id": 2, "host": "c1:27017", "votes": 1, **LATE}


def test_an_arbiter_is_removed_before_a_member_with_data_comes():
    """The server refuses to change arbiterOnly, and an arbiter without a vote."""
    found = exported(mongodb(a1={"priority": 5}, b1={}, c1=ARBITER)[0])
    stages = [step["members"] for step in found["steps"] if "members" in step]
    assert len(stages[0]) == 2
    for members in stages:
        assert not any(one.get("arbiterOnly") and not one["votes"] for one in members)
    new = next(one for one in found["config"]["members"] if one["host"] == "c1:27017")
    assert new["_id"] not in (0, 1, 2)
    assert "arbiterOnly" not in new
