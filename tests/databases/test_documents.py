"""MongoDB and YugabyteDB: documents as servers and people have them."""

import json
from dataclasses import replace

import pytest

from placement.databases import Deployment, Localities, Locality, OpenReplicas, load_system
from placement.databases.findings import broken
from placement.databases.system import read_deployment, write_deployment
from placement.errors import InputError, UnsupportedError
from tests.databases.worlds import pairs

MONGODB = load_system("mongodb")
YUGABYTEDB = load_system("yugabytedb")
SERVERS = Localities(("a", "b", "c"), tuple(Locality(f"m{i}", s) for i, s in enumerate("aabc", 1)))
REGIONS = Localities(
    ("a", "b", "c"),
    tuple(Locality(f"r-{s}", s, {"cloud": "aws", "zone": f"r-{s}1"}) for s in "abc"),
)


def conf(*members):
    return json.dumps({"_id": "rs0", "version": 3, "members": list(members), "settings": {}})


def member(number, **more):
    return {"_id": number, "host": f"m{number}:27017", **more}


def read_mongodb(text):
    return read_deployment(MONGODB, (("conf.json", text),), MONGODB.request(SERVERS, "rs0"))


def test_a_replica_set_is_read():
    found = read_mongodb(
        conf(member(1, priority=2), member(2), member(3, priority=3, tags={"x": "y"}),
             member(4, votes=0, priority=0, hidden=True))
    )  # fmt: skip
    assert found.deployment.voters_at == {"a": 2, "b": 1}
    assert found.deployment.non_voters_at == {"c": 1}
    assert (found.deployment.leaders, found.deployment.name) == (("b", "a"), "rs0")
    assert not found.findings


@pytest.mark.parametrize(
    "text",
    [conf(), conf(member(9)), conf(member(1, votes=2)), conf(member(1, priority=-1)),
     conf(member(1), member(1)), conf({"_id": 1}), "[]"],
)  # fmt: skip
def test_bad_documents_name_the_file(text):
    with pytest.raises(InputError, match=r"conf\.json"):
        read_mongodb(text)


def test_what_another_system_keeps_is_not_written():
    read = read_mongodb(conf(member(1, priority=2), member(2), member(3))).deployment
    members = tuple(replace(one, identity="8e9f", kept={"p": 1}) for one in read.members)
    other = replace(read, system="etcd", members=members, kept="CREATE")
    request = MONGODB.request(SERVERS, "rs0")
    text = write_deployment(MONGODB, other, request).text
    assert [one["_id"] for one in json.loads(text)["config"]["members"]] == [0, 1, 2]
    for changes in ({}, {"kept": ""}, {"kept": "[1]"}):
        with pytest.raises(InputError, match=r"kept|identity: no _id: got '8e9f'"):
            write_deployment(MONGODB, replace(other, system="mongodb", **changes), request)


def test_more_than_seven_votes():
    many = Localities(("a",), tuple(Locality(f"m{i}", "a") for i in range(9)))
    request = MONGODB.request(many, "rs0")
    with pytest.raises(UnsupportedError, match="7 voting"):
        write_deployment(MONGODB, Deployment.of("x", {"a": 8}), request)
    text = conf(*({"_id": i, "host": f"m{i}"} for i in range(8)))
    found = read_deployment(MONGODB, (("c", text),), request).findings
    assert "too-many-members" in {f.rule for f in found if f.severity == "error"}


def test_each_step_of_a_replica_set_changes_one_vote():
    for one, other, names in pairs(MONGODB, 20, voters=7):
        request = MONGODB.request(names, "rs0")
        first = write_deployment(MONGODB, one, request).text
        present = read_deployment(MONGODB, (("f", first),), request).deployment
        document = json.loads(write_deployment(MONGODB, other, request, present).text)
        before = json.loads(first)["config"]["members"]
        hosts = {member["_id"]: member["host"] for member in before}
        stages = [step["members"] for step in document["steps"] if "members" in step]
        for members in [*stages, document["config"]["members"]]:
            old = {member["host"] for member in before if member["votes"]}
            new = {member["host"] for member in members if member["votes"]}
            assert len(old ^ new) <= 1
            assert new
            assert all(m["votes"] or not m["priority"] for m in members)
            for member in members:  # a number stays with its host
                assert hosts.setdefault(member["_id"], member["host"]) == member["host"]
            before = members


PLACEMENT = {
    "num_replicas": 5,
    "placement_blocks": [
        {"cloud": "aws", "region": "r-a", "zone": "z1", "min_num_replicas": 1,
         "leader_preference": 1},
        {"cloud": "aws", "region": "r-a", "zone": "z2", "min_num_replicas": 1},
        {"cloud": "aws", "region": "r-b", "zone": "z1", "min_num_replicas": 2,
         "leader_preference": 2},
    ],
}  # fmt: skip


def space(placement, verb="CREATE TABLESPACE ts WITH", **more):
    options = [f"replica_placement='{json.dumps(placement)}'"]
    options += [f"{name}='{json.dumps(value)}'" for name, value in more.items()]
    return f"{verb} ({', '.join(options)});"


def read_yugabytedb(text, name=""):
    request = YUGABYTEDB.request(REGIONS, name)
    return read_deployment(YUGABYTEDB, (("ts.sql", text),), request)


def test_a_tablespace_is_read():
    others = {"num_replicas": 1, "placement_blocks": [
        {"cloud": "aws", "region": "r-c", "zone": "z1", "min_num_replicas": 1}]}  # fmt: skip
    found = read_yugabytedb(space(PLACEMENT, read_replica_placement=others))
    assert found.deployment.voters_at == {"a": 2, "b": 2}
    assert found.deployment.non_voters_at == {"c": 1}
    assert (found.deployment.leaders, found.deployment.free_voters) == (("a", "b"), 1)
    assert {f.rule for f in found.findings} == {"zone-not-in-table"}
    assert not broken(found.findings)
    assert found.deployment.open == (OpenReplicas(("a", "b"), 1, "voter"),)
    changed = space({**PLACEMENT, "num_replicas": 4}, "ALTER TABLESPACE ts SET")
    assert read_yugabytedb(space(PLACEMENT) + changed).deployment.free_voters == 0


def test_findings_of_yugabytedb():
    few = read_yugabytedb(space({**PLACEMENT, "num_replicas": 3}))
    assert "too-many-blocks" in {f.rule for f in few.findings}
    text = space(PLACEMENT).replace('"leader_preference": 2', '"leader_preference": 4')
    assert "preferences-not-contiguous" in {f.rule for f in read_yugabytedb(text).findings}
    lead = read_yugabytedb(space(PLACEMENT, read_replica_placement=PLACEMENT))
    assert "leader-without-vote" in {f.rule for f in lead.findings}


@pytest.mark.parametrize(
    "text",
    [
        space(PLACEMENT).replace("r-b", "nowhere"),
        space(PLACEMENT).replace('"cloud": "aws", ', ""),
        space(PLACEMENT).replace('"min_num_replicas": 2', '"min_num_replicas": 0'),
        space({**PLACEMENT, "num_replicas": 0}),
        "CREATE TABLESPACE ts WITH (seq_page_cost=1);",
        "CREATE TABLESPACE ts WITH (replica_placement='[]');",
        "SELECT 1;",
    ],
)
def test_bad_tablespaces_name_the_file(text):
    with pytest.raises(InputError, match=r"ts\.sql"):
        read_yugabytedb(text)


def test_what_a_tablespace_cannot_say():
    good = Deployment.of("x", {"a": 1})
    for names, name, word in (
        (REGIONS, "pg_x", "not the name of a tablespace"),
        (Localities(("a",)), "ts", "no cloud and zone"),
        (Localities(("a",), (Locality("*", "a", {"cloud": "c", "zone": "z"}),)), "ts", "escape"),
    ):
        with pytest.raises(UnsupportedError, match=word):
            write_deployment(YUGABYTEDB, good, YUGABYTEDB.request(names, name))
