"""Spanner: configurations as gcloud prints them, and the statement that chooses the leader."""

import json

import pytest

from placement.databases import Deployment, Localities, Locality, load_system
from placement.databases.system import read_deployment, write_deployment
from placement.errors import InputError, UnsupportedError

SPANNER = load_system("spanner")
SITES = ("east", "central", "west", "tokyo")
REGIONS = Localities(SITES, tuple(Locality(f"r-{site}1", site) for site in SITES))
MULTI = {"east": 2, "west": 2, "central": 1}


def replica(site, kind="READ_WRITE", **more):
    return {"location": f"r-{site}1", "type": kind, **more}


def config(*replicas):
    return json.dumps({"name": "projects/p/instanceConfigs/x", "replicas": list(replicas)})


NAM = config(
    replica("east", defaultLeaderLocation=True), replica("east"), replica("west"), replica("west"),
    replica("central", "WITNESS"), replica("tokyo", "READ_ONLY"),
)  # fmt: skip


def read(text, *statements, name=""):
    texts = [("config.json", text), *(("schema.ddl", words) for words in statements)]
    return read_deployment(SPANNER, texts, SPANNER.request(REGIONS, name))


def written(deployment, name="app", regions=REGIONS, **settings):
    return write_deployment(SPANNER, deployment, SPANNER.request(regions, name, settings))


def test_a_multi_region_configuration_is_read():
    found = read(NAM)
    assert found.deployment.voters_at == MULTI
    assert found.deployment.non_voters_at == {"tokyo": 1}
    assert found.deployment.leaders == ("east", "west")
    assert {f.rule for f in found.findings} == {"witness"}


def test_a_database_chooses_its_leader():
    table = "CREATE TABLE t (a INT64) PRIMARY KEY (a);"
    chosen = "ALTER DATABASE `app` SET OPTIONS (version_retention_period = '1d', default_leader = "
    found = read(NAM, f"{table}\n{chosen}'r-west1');")
    assert (found.deployment.leaders, found.deployment.name) == (("west", "east"), "app")
    assert read(NAM, f"{chosen}'r-west1')", name="other").deployment.leaders == ("east", "west")
    assert read(NAM, f"{chosen}NULL)").deployment.leaders == ("east", "west")
    with pytest.raises(InputError, match=r"schema\.ddl.*default_leader.*central"):
        read(NAM, f"{chosen}'r-central1')")


@pytest.mark.parametrize(
    "text",
    [
        config(),
        config(replica("east"), replica("west")),
        config(replica("east", "WITNESS")),
        config(replica("east", "LEADER")),
        config(replica("east", "WITNESS", defaultLeaderLocation=True), replica("east")),
        config(replica("paris")),
        "[]",
        "{}",
        "CREATE TABLE t (a INT64) PRIMARY KEY (a)",
    ],
)
def test_bad_configurations_name_the_file(text):
    with pytest.raises(InputError, match=r"config\.json"):
        read(text)


@pytest.mark.parametrize(
    ("deployment", "word"),
    [
        (Deployment.of("x", {"east": 1, "west": 1, "central": 1}), "2, 2 and 1"),
        (Deployment.of("x", MULTI, leaders=("central",)), "witness"),
    ],
)
def test_what_spanner_cannot_be_told(deployment, word):
    with pytest.raises(UnsupportedError, match=word):
        written(deployment)


def test_names_are_those_that_spanner_takes():
    for name in ("", "App", "a`b", "app'", "x" * 31):
        with pytest.raises(UnsupportedError, match="not the name of a database"):
            written(Deployment.of("x", {"east": 3}), name)
    with pytest.raises(UnsupportedError, match="no escape"):
        written(Deployment.of("x", {"east": 3}), base_config="nam3 --force")


@pytest.mark.parametrize(
    ("voters", "types"),
    [
        ({"east": 3}, ["READ_WRITE"] * 3),
        ({"east": 3, "west": 3}, ["READ_WRITE"] * 4 + ["WITNESS"] * 2),
        (MULTI, ["READ_WRITE"] * 4 + ["WITNESS"]),
    ],
)
def test_the_three_kinds_of_base_configuration(voters, types):
    deployment = Deployment.of("x", voters, leaders=("east",))
    document = json.loads(written(deployment).text)
    assert sorted(one["type"] for one in document["config"]["replicas"]) == types
    leads = [one for one in document["config"]["replicas"] if "defaultLeaderLocation" in one]
    assert {one["location"] for one in leads} == {"r-east1"}
    assert document["commands"] == []


def test_read_only_replicas_make_a_custom_configuration():
    deployment = Deployment.of("x", MULTI, {"tokyo": 2}, leaders=("west", "east"))
    without = written(deployment)
    assert json.loads(without.text)["commands"] == []
    assert any("--set base_config" in note for note in without.notes)
    document = json.loads(written(deployment, base_config="nam3").text)
    assert document["commands"] == [
        ["gcloud", "spanner", "instance-configs", "create", "custom-app", "--clone-config=nam3",
         "--add-replicas=location=r-tokyo1,type=READ_ONLY:location=r-tokyo1,type=READ_ONLY"]
    ]  # fmt: skip
    assert document["statements"] == [
        "ALTER DATABASE `app` SET OPTIONS (default_leader = 'r-west1')"
    ]
