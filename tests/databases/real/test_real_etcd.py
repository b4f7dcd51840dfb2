"""A real etcd cluster on loopback: the runbook makes it, changes it, and brings its leader back."""

import json

import pytest

from benchmarks.live.etcd.cluster import EtcdCluster
from placement.databases import Deployment, load_system
from placement.databases.system import write_deployment
from tests.databases.real.tools import awaited, etcd_program, free_port

pytestmark = pytest.mark.databases

SYSTEM = load_system("etcd")
SITES = ("a", "b", "c", "d", "e", "f", "g")
FIRST = Deployment.of("x", dict.fromkeys("abcde", 1), {"f": 1}, leaders=("b", "a"))
THEN = Deployment.of("x", dict.fromkeys("bcdeg", 1), {"a": 1}, leaders=("g", "b", "c"))


@pytest.fixture
def cluster(tmp_path):
    addresses = {
        site: (f"http://127.0.0.1:{free_port()}", f"http://127.0.0.1:{free_port()}")
        for site in SITES
    }
    with EtcdCluster(etcd_program(), tmp_path, addresses) as found:
        yield found


def test_the_runbook_makes_changes_and_restores_a_cluster(cluster):
    cluster.carry_out(write_deployment(SYSTEM, FIRST, cluster.request()))
    now = cluster.becomes(FIRST)
    assert cluster.ask("b", "put", "key", "value") is not None

    cluster.carry_out(write_deployment(SYSTEM, THEN, cluster.request(), now))
    now = cluster.becomes(THEN)
    assert "value" in cluster.ask("g", "get", "key")
    assert "n-f" not in [member.name for member in now.members]

    cluster.kill("g")  # the leader is lost: another voter leads, and it comes back as a follower
    lost = awaited(cluster.deployment, lambda found: found.leaders not in ((), ("g",)))
    assert lost.leaders[0] in ("b", "c", "d", "e")
    cluster.restart("g")
    awaited(lambda: cluster.ask("g", "get", "key"),
            lambda text: text is not None)  # fmt: skip
    back = cluster.deployment()
    script = write_deployment(SYSTEM, THEN, cluster.request(), back)
    assert [step["argv"][2] for step in json.loads(script.text)["steps"]] == ["move-leader"]
    cluster.carry_out(script)
    cluster.becomes(THEN)
