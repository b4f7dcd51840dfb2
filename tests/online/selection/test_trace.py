"""Traces of users: what is read, what is refused, and the sample path of a trace."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from formulations.online.selection.fluid_bound import path_bound
from heuristics.online.selection.blind_policies import NearestReplica
from heuristics.online.selection.oracle_policies import EarliestCompletion
from heuristics.online.selection.run_policy import run
from placement.errors import InputError, UnsupportedError
from placement.online import read_trace
from placement.online.selection import LoadGenerators, ServerCluster, cut, draw, path_of_trace
from tests.online.selection.worlds import ALL

TABLE = """time,client,key,size,op,note
30,b,x,2,read,late
10,a,y,1,update,
20,a,x,3,write,
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text(TABLE, encoding="utf-8")
    return path


def test_rows_in_the_order_of_time(file):
    trace = read_trace(file)
    assert trace.time.tolist() == [0.0, 10.0, 20.0]
    assert [trace.clients[c] for c in trace.client] == ["a", "a", "b"]
    assert [trace.keys[k] for k in trace.key] == ["y", "x", "x"]
    assert trace.size.tolist() == [1.0, 3.0, 2.0]
    assert trace.update.tolist() == [True, True, False]
    assert trace.group is None


def test_parquet_and_csv_are_one_trace(file, tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    pd.read_csv(file).to_parquet(tmp_path / "trace.parquet")
    one, other = read_trace(file), read_trace(tmp_path / "trace.parquet")
    assert np.array_equal(one.time, other.time)
    assert np.array_equal(one.size, other.size)
    assert (one.clients, one.keys) == (other.clients, other.keys)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("20,a,x,3,write", "-20,a,x,3,write", "row 4: time: "),
        ("20,a,x,3,write", "20,a,x,0,write", "row 4: size: out of range"),
        ("20,a,x,3,write", "20,,x,3,write", "row 4: client: "),
        ("20,a,x,3,write", "20,a,x,3,delete", "row 4: op: no such operation"),
        ("time,client", "when,client", "time: no such column"),
        ("client,key", "client,kee", "key: no such column"),
        ("client,key", "client,group", "group: "),
    ],
)
def test_mistakes_name_file_row_and_field(file, before, after, words):
    file.write_text(TABLE.replace(before, after), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_trace(file)
    assert words in str(caught.value)
    assert "trace.csv" in str(caught.value)


def test_groups_and_clients_that_are_not_there(tmp_path):
    file = tmp_path / "trace.csv"
    file.write_text("time,client,group\n1,a,0\n2,b,3\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"row 3: group: .*got '3', expected .*<= 1"):
        read_trace(file, groups=2)
    with pytest.raises(InputError, match="row 3: client: no such client: got 'b'"):
        read_trace(file, clients=["a", "c"])
    trace = read_trace(file)
    with pytest.raises(InputError, match="no such group"):
        path_of_trace(ServerCluster(3, 1, 2, 2), trace, 1)
    with pytest.raises(InputError, match="more clients"):
        path_of_trace(ServerCluster(4, 1, 2, 1), trace, 1)


def test_the_path_of_a_trace(file):
    trace = read_trace(file)
    cluster = ServerCluster(3, 1, 2, 2, utilisation=0.5, shadow=0.0)
    path = path_of_trace(cluster, trace, 5, exponential=False)
    assert path.arrival.tolist() == [0.0, 10.0, 20.0]
    assert path.client.tolist() == trace.client.tolist()
    assert path.work.tolist() == [0.5, 1.5, 1.0]  # sizes over their mean
    assert path.group[1] == path.group[2]  # one key, one group
    for policy in ALL:
        assert run(path, policy).update.tolist() == [True, True, False]
    stretched = path_of_trace(cluster, trace, 5, rescale=True)
    assert stretched.size / stretched.arrival[-1] == pytest.approx(cluster.arrivals_per_ms)
    other = path_of_trace(cluster, trace, 6)
    assert not np.array_equal(other.work, path_of_trace(cluster, trace, 5).work)


def world(seed, **changes):
    """Return a path on a grid with RTTs, groups, speeds and sizes of its own."""
    rng = np.random.default_rng(seed)
    cluster = ServerCluster(
        6, 2, 3, 4, utilisation=0.6, requests=250, epoch_ms=50.0, shadow=0.0,
        rtt_ms=tuple(map(tuple, rng.uniform(0, 40, (4, 6)).tolist())),
        group_servers=tuple(tuple(rng.permutation(6)[:3].tolist()) for _ in range(4)),
        group_zipf=1.0, slowness=(1.0, 2.0, 1.0, 1.5, 1.0, 1.0), largest_record=20,
    )  # fmt: skip
    return draw(dataclasses.replace(cluster, **changes), seed).on_grid()


@pytest.mark.parametrize("seed", range(2))
def test_no_policy_beats_the_bound_with_inputs_of_its_own(seed):
    for changes in ({}, {"update_share": 0.4}):
        path = world(seed, **changes)
        bound = path_bound(path, bins=30, steps=3)
        for policy in ALL:
            outcome = run(path, policy)
            assert outcome.latencies().mean >= bound * (1 - 1e-9), policy.name


def test_the_bound_is_met_when_nothing_waits():
    """One read now and then: the nearest replica serves it at once, and no rule is faster."""
    path = world(1, utilisation=0.001, fluctuation=1.0, slowness=(), largest_record=1)
    bound = path_bound(path, bins=30, steps=0)
    mean = run(path, NearestReplica()).latencies().mean
    assert bound <= mean <= bound * 1.02
    assert run(path, EarliestCompletion(future=True)).latencies().mean <= mean * (1 + 1e-9)


def test_windows_take_reads_that_arrive_alone():
    for changes in ({"update_share": 0.4}, {"closed": (LoadGenerators(3),)}):
        with pytest.raises(UnsupportedError, match="no updates and no closed loop"):
            cut(world(2, **changes), NearestReplica(), 0, 5)
    with pytest.raises(UnsupportedError, match="do not support RTTs of clients"):
        cut(world(2), NearestReplica(), 3, 5).delay  # noqa: B018 - the property raises
