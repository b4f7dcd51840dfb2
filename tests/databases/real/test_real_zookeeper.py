"""A real ZooKeeper ensemble on loopback: roles as planned, changed by the steps of the export."""

import pytest

from benchmarks.live.zookeeper.cluster import SYSTEM, ZooKeeperEnsemble, zookeeper_classpath
from placement.databases import Deployment, Localities, Locality
from placement.databases.system import read_deployment, write_deployment
from tests.databases.real.tools import awaited, free_port, or_skip

pytestmark = pytest.mark.databases

SITES = ("a", "b", "c", "d", "e")
FIRST = Deployment.of("x", {"a": 1, "b": 1, "c": 1}, {"d": 1})
THEN = Deployment.of("x", {"b": 1, "c": 1, "e": 1}, {"a": 1})


@pytest.fixture
def ensemble(tmp_path):
    rows = tuple(
        Locality(f"127.0.44.{number}", site, {"id": str(number), "client_port": str(free_port())})
        for number, site in enumerate(SITES, 1)
    )
    classpath = or_skip(zookeeper_classpath)()
    with ZooKeeperEnsemble(classpath, tmp_path, Localities(SITES, rows)) as found:
        yield found


def test_the_export_makes_and_changes_an_ensemble(ensemble):
    ensemble.form(FIRST)
    present = ensemble.deployment("b")
    assert not present.differences(FIRST)
    assert ensemble.shell("b", "create", "/key", "value") is not None

    ensemble.carry_out(write_deployment(SYSTEM, THEN, ensemble.request(), present).text, "b")
    ensemble.runs(THEN)
    assert not ensemble.deployment("e").differences(THEN)
    assert "value" in ensemble.shell("a", "get", "/key")

    lead = ensemble.leader(THEN.voters_at)
    ensemble.kill(lead)
    rest = [site for site in THEN.voters_at if site != lead]
    modes = awaited(lambda: sorted(map(ensemble.mode, rest)), lambda m: m == ["follower", "leader"])
    assert modes
    assert ensemble.shell(rest[0], "set", "/key", "again") is not None


def test_a_server_of_weight_zero_counts_for_no_quorum(ensemble):
    all_vote = Deployment.of("x", dict.fromkeys("abcde", 1))
    weights = "group.1=1:2:3:4:5\n" + "".join(
        f"weight.{number}={int(number <= 3)}\n" for number in range(1, 6)
    )
    ensemble.form(all_vote, weights)
    text = awaited(lambda: ensemble.shell("a", "config"), lambda found: found is not None)
    found = read_deployment(SYSTEM, (("config", text),), ensemble.request())
    assert found.deployment.voters_at == {"a": 1, "b": 1, "c": 1}
    assert found.deployment.non_voters_at == {"d": 1, "e": 1}
    assert {f.rule for f in found.findings} == {"weight-zero"}
    # two of five servers are left, and two of three votes
    for site in ("c", "d", "e"):
        ensemble.kill(site)
    awaited(lambda: sorted(map(ensemble.mode, "ab")), lambda m: m == ["follower", "leader"])
    awaited(lambda: ensemble.shell("a", "create", "/key", "value"), lambda out: out is not None)
