"""Real etcd on the emulated network runs what `placement watch` recommends; no write is lost."""

import time

import pytest

from benchmarks.live.etcd.day import day
from benchmarks.live.etcd.world import EtcdBench
from benchmarks.live.layouts import Layout, azure_part
from placement.errors import UnsupportedError

pytestmark = pytest.mark.live


def test_a_move_is_carried_out_while_clients_run():
    try:
        *hours, whole = day(quick=True)
    except UnsupportedError as error:
        pytest.skip(str(error))
    assert whole["moves"] >= 1
    assert whole["operations"] > 300
    assert whole["writes missing"] == 0  # no acknowledged write is lost
    assert whole["failed"] == 0  # and none given up, in 20 s each
    actions = [row["action"] for row in hours]
    moved = hours[actions.index("move")]
    assert moved["leader"] != hours[0]["leader"]
    for row in hours[: actions.index("move")]:
        if row["mix"]["put"] >= 20:
            assert abs(row["measured"] - row["predicted"]) < max(0.25 * row["predicted"], 30)


def test_clients_reach_a_leader_that_was_away_for_long():
    sites = ("North Europe", "UK South", "East US")
    layout = Layout("three", sites, (), ("East US",))
    try:
        with EtcdBench(azure_part(sites, ("West Europe",))) as bench:
            cluster = bench.start(layout, "East US")
            clients = bench.clients(
                {"West Europe": ["put:1:leader"]}, pause="50ms", patience="60s", attempt="2s"
            )
            time.sleep(3)  # a connection that was never used would not be kept up
            cluster.kill("East US")
            time.sleep(47)  # gRPC alone would pause for some 25 s then, between two attempts
            cluster.restart("East US")
            bench.reach(layout.deployment("East US"))
            moved = time.time()
            time.sleep(10)
            clients.end()
            found, missing = clients.finish(120)
    except UnsupportedError as error:
        pytest.skip(str(error))
    assert missing == 0
    assert all(one.done for one in found)
    # without a bound on that pause, operations hang until it is over
    assert max(one.ms for one in found if one.start > moved - 5) < 6000
