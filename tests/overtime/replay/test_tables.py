"""Traces, deployments and shares of leaders, and the verb ``replay`` from outside."""

from __future__ import annotations

import csv
import importlib.util
from datetime import date
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import placement
from placement import Configuration, Instance, Problem
from placement.cli import main
from placement.errors import InputError
from placement.io import save_instance
from placement.io.formats import column_reader as frames
from placement.overtime.replay import NOBODY, Deployments, Trace, replay
from placement.overtime.replay.deployments import read_deployments, read_trace
from placement.overtime.replay.generated_fleets import client_ground, fleet_trace, trace_of
from placement.plan import objective_value
from placement.testing import random_instance
from placement.workloads import Timeline, fleet, generate
from tests.overtime.replay.cases import WITHOUT_SHARES, world27

WORLD = Instance(
    sites=("fra", "iad"),
    clients=("Paris", "Washington, DC", "Rome"),
    client_rtt=np.ones((3, 2)),
    site_rtt=np.array([[0.0, 80.0], [80.0, 0.0]]),
    counts=np.ones((3, 5)),
    name="world",
)


def _trace(path, instance):
    return read_trace(path, instance)[0]


LONG = "database,interval,client,operation,count\n"


@pytest.fixture
def table(tmp_path):
    def write(text: str, name: str = "demand.csv"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_good_tables_are_read_fast_and_to_the_last_bit(table, tmp_path, monkeypatch):
    """Pandas and Python read equal numbers."""
    rng = np.random.default_rng(1)
    values = [*rng.exponential(size=200), 0.1 + 0.2, 1e-310, 123456789012345678.0, 5]
    rows = "".join(f"a,{i},Paris,weak_read,{value!r}\n".replace("np.float64(", "").replace(")", "")
                   for i, value in enumerate(values))  # fmt: skip
    path = table(LONG + rows)

    def careful(*arguments: object) -> None:
        raise AssertionError("the slow way was taken")

    monkeypatch.setattr(frames, "_SMALL", 0)
    monkeypatch.setattr(frames, "read_table", careful)
    assert _trace(path, WORLD).counts[0, :, 0, 0].tolist() == [float(v) for v in values]
    if importlib.util.find_spec("pyarrow") is not None:
        pd.read_csv(path).to_parquet(tmp_path / "demand.parquet")
        trace = _trace(tmp_path / "demand.parquet", WORLD)
        assert trace.counts.sum() == pytest.approx(sum(values))


def test_names_that_look_like_numbers_stay_names(table):
    """Neither way to read may make one database of 1, 01 and 1.0."""
    rows = "1,1,Paris,weak_read,1\n01,1,Paris,weak_read,2\n1.0,1,Paris,weak_read,3\n"
    for text in (LONG + rows, LONG + rows + "\n   \n"):
        trace = _trace(table(text), WORLD)
        assert trace.databases == ("1", "01", "1.0")
        assert trace.counts[:, 0, 0, 0].tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("labels", "order"),
    [
        (["10", "2", "4"], ["2", "4", "6", "8", "10"]),
        (["night", "day"], ["night", "day"]),
        (["2026-03-02T01:00Z", "2026-03-02T00:30Z"], ["2026-03-02T00:30Z", "2026-03-02T01:00Z"]),
        (
            ["2026-03-28", "2026-03-31", "2026-03-30"],
            ["2026-03-28", "2026-03-29T00:00:00", "2026-03-30", "2026-03-31"],
        ),
        # time stands still for no clock change: 01:30+01:00 is half an hour before 03:00+02:00
        (
            ["2026-03-29T03:30+02:00", "2026-03-29T01:30+01:00", "2026-03-29T03:00+02:00"],
            ["2026-03-29T01:30+01:00", "2026-03-29T03:00+02:00", "2026-03-29T03:30+02:00"],
        ),
        # months are no grid: they follow one another as they are
        (["2026-01-01", "2026-02-01", "2026-03-01"], ["2026-01-01", "2026-02-01", "2026-03-01"]),
    ],
)
def test_the_order_of_intervals(table, labels, order):
    rows = "".join(f"a,{label},Paris,weak_read,{i + 1}\n" for i, label in enumerate(labels))
    trace = _trace(table(LONG + rows), WORLD)
    assert list(trace.intervals) == order
    counts = dict(zip(trace.intervals, trace.counts[0, :, 0, 0], strict=True))
    for i, label in enumerate(labels):
        assert counts.pop(label) == i + 1
    assert not any(counts.values())


GOOD = "a,1,Paris,weak_read,3\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LONG + "\n" + GOOD + "a,1,Lyon,weak_read,3\n", r"row 4: client: no client.*got 'Lyon'"),
        (LONG + GOOD + "a,1,Rome,weak_read,nan\n", r"row 3: count: not a number"),
        (LONG + GOOD + "a,1,Rome,weak_read,inf\n", r"row 3: count: infinite"),
        (LONG + GOOD + "a,1,Rome,weak_read,\n", r"row 3: count: missing value"),
        (LONG + GOOD + "a,1,Rome,weak_read,1_0\n", r"row 3: count: not a number"),
        (LONG + GOOD + "a,1,,weak_read,1\n", r"row 3: client: no name"),
        (LONG + GOOD + ",1,Paris,weak_read,1\n", r"row 3: database: no name"),
        (LONG + GOOD + "a,1,Paris,weak_read\n", r"row 3: a row of another length"),
        (LONG, "no rows"),
        ("", "empty"),
        ("interval,client,weak_read,reads\n1,Paris,1,2\n", "reads: a column that is no operation"),
        (LONG + "a,1,Rome,weak_read,1\na,99999999999,Rome,weak_read,1\na,2,Rome,weak_read,1\n",
         "99,999,999,999 intervals between the first and the last, and only 3"),
        (LONG + "a,2026-03-02T00:00:01,Rome,weak_read,1\n"
         + "".join(f"a,2026-03-02T{hour:02}:00:00,Rome,weak_read,1\n" for hour in range(24)),
         "82,801 intervals.* only 25"),
    ],
)  # fmt: skip
def test_bad_demand_is_refused(table, text, message):
    with pytest.raises(InputError, match=message) as caught:
        _trace(table(text), WORLD)
    assert "demand.csv" in str(caught.value)


def test_parquet_is_checked_too(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "demand.parquet"

    def write(**columns: list) -> None:
        base = {
            "database": ["a", "a"],
            "interval": [1, 2],
            "client": ["Paris"] * 2,
            "weak_read": [1, 2],
        }
        parquet.write_table(pa.table({**base, **columns}), path)

    write()
    assert _trace(path, WORLD).counts[0, :, 0, 0].tolist() == [1, 2]
    write(weak_read=[1, -2])
    with pytest.raises(InputError, match=r"demand.parquet, row 2: weak_read: negative"):
        _trace(path, WORLD)
    write(weak_read=[1, None])
    with pytest.raises(InputError, match="row 2: weak_read: missing value"):
        _trace(path, WORLD)
    write(client=["Paris", "Oslo"])
    with pytest.raises(InputError, match="row 2: client: no client"):
        _trace(path, WORLD)
    write(interval=[1, 1])
    with pytest.raises(InputError, match="row 2: database, interval, client: a row given twice"):
        _trace(path, WORLD)
    path.write_text("no parquet")
    with pytest.raises(InputError, match="not a Parquet file"):
        _trace(path, WORLD)


DEPLOYED = "database,site,role\na,fra,leader\na,iad,replica\nb,iad,voter\n"


def test_deployments(table):
    found = read_deployments(table(DEPLOYED), WORLD, ("b", "a"))
    assert found.replicas.tolist() == [[False, True], [True, True]]
    assert found.voters.tolist() == [[False, True], [True, False]]
    assert found.preferred.tolist() == [NOBODY, 0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (DEPLOYED + "c,iad,voter\n", r"row 5: database: a database without demand: got 'c'"),
        (DEPLOYED + "b,lhr,voter\n", r"row 5, .*unknown site: got 'lhr'|row 5.*unknown site"),
        (DEPLOYED + "b,fra,master\n", r"row 5: role: unknown role: got 'master'"),
        (DEPLOYED + "b,iad,replica\n", r"row 5: site: a site of b given twice"),
        ("database,site,role\na,fra,leader\nb,fra,leader\nb,iad,leader\n", "row 4: role: a second"),
        ("database,site,role\na,fra,leader\nb,fra,replica\n", "database b has no voter"),
        ("database,site,role\na,fra,leader\n", "database b has no voter"),
        ("database,site\na,fra\n", "role: no such column"),
    ],
)
def test_bad_deployments_are_refused(table, text, message):
    with pytest.raises(InputError, match=message):
        read_deployments(table(text, "held.csv"), WORLD, ("a", "b"))


SHARES = {"site-0": 0.5, "site-1": 0.2, "site-2": 0.3}


def world(varying=False):
    return random_instance(5, sites=5, clients=4, intervals=4, varying=varying)


def held_on(instance, shares=SHARES):
    held = Deployments.same(instance, 1, instance.sites[:4], instance.sites[:3])
    return held.leading(instance, shares)


@pytest.mark.parametrize("varying", [False, True])
@pytest.mark.parametrize("tiers", [(1,), (2,), (3,), (1, 2, 3)])
def test_the_score_is_that_of_each_leader_with_its_share(varying, tiers):
    instance = world(varying)
    problem = Problem(instance, replicas=4, voters=3, decay=2.0)
    trace = Trace.of_instance(instance)
    result = replay(problem, trace, held_on(instance), tiers=tiers)
    for tier in tiers:
        given = result.outcome(tier, "given")
        assert (given.leader == NOBODY).all()
        for column in range(3):
            asked = problem.replace(
                instance=instance.at_interval(column + 1, trace.counts[0, column + 1]), decay=1.0
            )
            values = [
                objective_value(asked, Configuration.of(leader, (0, 1, 2), (0, 1, 2, 3)))
                for leader in range(3)
            ]
            assert given.score[0, column] == pytest.approx(float(np.dot([0.5, 0.2, 0.3], values)))
            assert result.sets[given.voters[0, column]] == (0, 1, 2)
            assert result.sets[given.replicas[0, column]] == (0, 1, 2, 3)


@pytest.mark.parametrize(
    "shares", [{"site-3": 1.0}, {"site-0": 0.7}, {"site-0": -1.0, "site-1": 2.0}, {"x": 1.0}]
)
def test_shares_are_checked(shares):
    with pytest.raises(InputError):
        held_on(world(), shares)


def test_shares_come_from_a_file_or_an_option(command, tmp_path):
    instance = world()
    save_instance(instance, tmp_path / "world")
    table = tmp_path / "held.csv"
    rows = [("site-0", "voter", 0.5), ("site-1", "voter", 0.2), ("site-2", "voter", 0.3)]
    lines = [f"{instance.name},{site},{role},{share}" for site, role, share in rows]
    text = "database,site,role,share\n" + "\n".join(lines) + f"\n{instance.name},site-3,replica,\n"
    table.write_text(text)
    read = read_deployments(table, instance, [instance.name])
    assert read.leader_shares is not None
    assert read.leader_shares[0].tolist() == [0.5, 0.2, 0.3, 0, 0]
    asked = (
        "lab", "replay", tmp_path / "world", "--replicas", 4, "--voters", 3, "--tiers", 1, "--json",
    )  # fmt: skip
    by_file = command(*asked, "--deployments", table).document["strategies"]
    options = [f"--leader-shares={site}={share}" for site, _, share in rows]
    by_option = command(
        "lab", "replay", tmp_path / "world", "--replicas", ",".join(instance.sites[:4]), "--voters",
        ",".join(instance.sites[:3]), "--tiers", 1, "--json", *options,
    ).document["strategies"]  # fmt: skip
    assert by_file == by_option
    assert "given" in {row["strategy"] for row in by_file}
    for wrong, message in (
        ("0.5,", "do not sum to 1"), ("-1", "negative"), ("x", "share"),
    ):  # fmt: skip
        table.write_text(text.replace("0.3", wrong.rstrip(",")))
        refused = command(*asked, "--deployments", table, code=1)
        assert message in refused.err
    table.write_text(text.replace("site-3,replica,", "site-3,replica,0.1"))
    assert "does not vote" in command(*asked, "--deployments", table).err
    for options in (["a"], ["a=b"], ["site-0=1", "site-0=1"]):
        given = [f"--leader-shares={option}" for option in options]
        assert command(*asked, *given).code == 1


def test_deployments_are_the_plans_for_the_first_interval():
    problem, trace, _ = world27(3)
    counts = trace.counts.copy()
    counts[1, 0] = 0  # silent at first: gets what suits all of them
    counts[:, 1:] *= 7  # what comes later plays no part
    reports: list[tuple[int, int]] = []
    quiet = Trace(trace.databases, trace.intervals, counts)
    asked = problem.replace(survive="country")
    held = Deployments.solved(asked, quiet, progress=lambda *at: reports.append(at))
    assert reports == [(1, 3), (2, 3), (3, 3)]
    for row, demand in enumerate((counts[0, 0], counts[:, 0].sum(axis=0), counts[2, 0])):
        plan = placement.solve(
            asked.replace(instance=asked.instance.replace(counts=demand, intervals=()), decay=1.0)
        )
        names = asked.instance.sites
        assert {names[i] for i in np.nonzero(held.replicas[row])[0]} == set(plan.replicas)
        assert {names[i] for i in np.nonzero(held.voters[row])[0]} == set(plan.voters)
    counts[:, 0] = 0
    with pytest.raises(InputError, match="nothing was issued in the first interval"):
        Deployments.solved(asked, Trace(trace.databases, trace.intervals, counts))


def test_a_wish_becomes_the_closest_voter():
    world = placement.load("world27")
    voters = ("us-east-1", "eu-central-1", "ap-northeast-1")
    held = Deployments.same(world, 3, [*voters, "us-west-2"], voters)
    wished = held.preferring(world, ["eu-central-1", "eu-west-1", None])
    assert wished.preferred.tolist()[2] == NOBODY
    assert world.sites[wished.preferred[0]] == "eu-central-1"
    assert world.sites[wished.preferred[1]] == "eu-central-1"
    with pytest.raises(InputError, match="unknown site"):
        held.preferring(world, ["mars", None, None])
    with pytest.raises(InputError, match="one preferred leader per database is needed"):
        held.preferring(world, [None])


@pytest.mark.parametrize(
    ("replicas", "voters", "preferred", "message"),
    [
        ([[1, 0]], [[0, 1]], [NOBODY], "holds no replica there"),
        ([[1, 0]], [[0, 0]], [NOBODY], "no voters"),
        ([[1, 1]], [[1, 0]], [1], "no voter there"),
        ([[1, 1]], [[1, 0]], [7], "no voter there"),
        ([[1, 1]], [[1, 0]], [0, 0], "preferred: wrong shape"),
        ([[1, 1]], [[1]], [NOBODY], "voters: wrong shape"),
    ],
)
def test_deployments_that_contradict_themselves(replicas, voters, preferred, message):
    with pytest.raises(InputError, match=message):
        Deployments(np.array(replicas, dtype=bool), np.array(voters, dtype=bool), preferred)
    with pytest.raises(InputError, match="replicas: wrong shape"):
        Deployments(np.ones((1, 2)), np.ones((1, 2), dtype=bool), np.array([NOBODY]))


@pytest.mark.parametrize(
    ("databases", "intervals", "counts", "message"),
    [
        (("a", "a"), ("1",), np.ones((2, 1, 1, 1)), "duplicate name"),
        (("a",), ("1", "1"), np.ones((1, 2, 1, 1)), "duplicate name"),
        (("a",), ("1",), np.ones((1, 1, 1)), "wrong shape"),
        (("a",), ("1",), np.ones((1, 2, 1, 1)), "wrong shape"),
        (("a",), ("1",), np.full((1, 1, 1, 1), np.nan), "database 'a', interval '1'"),
        (("a",), ("1",), np.full((1, 1, 1, 1), -1.0), "out of range"),
        (("a",), ("1",), np.full((1, 1, 1, 1), np.inf), "out of range"),
        (("a",), ("1",), "counts", "not a table of numbers"),
        ((), ("1",), np.ones((0, 1, 1, 1)), "nothing to replay"),
    ],
)
def test_bad_traces(databases, intervals, counts, message):
    with pytest.raises(InputError, match=message):
        Trace(databases, intervals, counts)


def test_parts_of_a_trace():
    _, trace, _ = world27(4)
    assert trace.part(1, 3).databases == ("db1", "db2")
    some = trace.of(["db3", "db0"])
    np.testing.assert_array_equal(some.counts, trace.counts[[3, 0]])
    with pytest.raises(InputError, match="no such database"):
        trace.of(["db9"])
    with pytest.raises(InputError, match="at least one block"):
        Trace.of_blocks([], Timeline.of_day(date(2026, 3, 2)))


def test_a_fleet_on_cities_is_the_generators():
    world = placement.load("world27")
    ground = client_ground(world)
    assert ground.clients.names == world.clients
    day = Timeline.of_day(date(2026, 3, 2), 4)
    trace, wishes = fleet_trace(world, 5, day, seed=9)
    drawn = fleet(ground.clients, 5, seed=9, timeline=day, nearest_sites=ground.nearest_sites)
    wanted = Trace.of_blocks(generate(drawn, ground.clients, day, seed=9), day)
    np.testing.assert_array_equal(trace.counts, wanted.counts)
    assert trace.databases == wanted.databases
    assert wishes == tuple(each.preferred_leader for each in drawn)
    fewer, _ = fleet_trace(world, 2, day, seed=9)
    np.testing.assert_array_equal(fewer.counts, trace.counts[:2])


def test_cities_belong_to_the_closest_client():
    """Clients that are no cities: every operation goes somewhere, and to the closest."""
    world = placement.load("world27")
    at = np.array([[50.0, 8.0], [40.0, -75.0], [35.0, 139.0]])  # Frankfurt, New York, Tokyo
    three = placement.Instance(
        sites=world.sites,
        clients=("west of Asia", "Americas", "Far East"),
        client_rtt=world.client_rtt[:3],
        site_rtt=world.site_rtt,
        counts=np.ones((3, 5)),
        client_coordinates=at,
    )
    ground = client_ground(three)
    owner = dict(zip(ground.clients.names, ground.owner.tolist(), strict=True))
    assert (owner["Paris"], owner["Chicago"], owner["Seoul"]) == (0, 1, 2)
    day = Timeline.of_day(date(2026, 3, 2), 3)
    drawn = fleet(ground.clients, 3, seed=1)
    trace = trace_of(ground, three, drawn, day, seed=1)
    whole = Trace.of_blocks(generate(drawn, ground.clients, day, seed=1), day)
    np.testing.assert_array_equal(trace.counts.sum(axis=2), whole.counts.sum(axis=2))
    nowhere = placement.Instance(
        sites=("a",), clients=("b",), client_rtt=[[1.0]], site_rtt=[[0.0]], counts=np.ones((1, 5))
    )
    with pytest.raises(InputError, match="the places of the clients are unknown"):
        client_ground(nowhere)
    weak = nowhere.replace(operations=placement.STANDARD_OPERATIONS[:1], counts=np.ones((1, 1)))
    with pytest.raises(InputError, match="five standard operations"):
        client_ground(weak)


def test_a_problem_needs_no_demand_of_its_own():
    problem, trace, held = world27(2)
    other = problem.replace(
        instance=problem.instance.replace(counts=np.ones((60, 5)), intervals=())
    )
    one, two = (replay(asked, trace, held, tiers=(1, 2)).to_frame() for asked in (problem, other))
    assert one.equals(two)
    assert isinstance(other, Problem)


ASKED = ("--replicas", "4", "--voters", "3")


@pytest.fixture
def towns(tmp_path):
    """Three towns, a client each, four intervals."""
    rng = np.random.default_rng(2)
    rtt = np.array([[1.0, 40.0, 90.0], [40.0, 1.0, 70.0], [90.0, 70.0, 1.0]])
    world = placement.Instance(
        sites=("ams", "bos", "cai"),
        clients=("ann", "bob", "cyd"),
        client_rtt=rtt,
        site_rtt=rtt - np.eye(3),
        counts=rng.integers(1, 40, (4, 3, 5)),
        intervals=("00:00", "00:30", "01:00", "01:30"),
        name="towns",
    )
    save_instance(world, tmp_path / "towns")
    return tmp_path / "towns"


def demand(path, rows: str):
    path.write_text("database,interval,client,operation,count\n" + rows, encoding="utf-8")
    return path


def test_text_json_and_table_say_the_same(command, towns, tmp_path):
    table = tmp_path / "rows.csv"
    asked = ("lab", "replay", towns, "--replicas", "3", "--voters", "ams,bos", "--tiers", "1,2,3")
    shown = command(*asked, "-o", table, code=0)
    assert "Leaders of towns after each interval (tier 1)" in shown.out
    assert "00:30: opt " in shown.out
    assert "2nd best " in shown.out
    assert "proven optimal" in shown.out
    document = command(*asked, "--json").document
    assert document["complete"]
    assert document["proven_share"] == 1.0
    assert document["decay"] == 2.0
    best = {(row["tier"], row["strategy"]): row for row in document["strategies"]}
    assert set(best) == {(t, s) for t in (1, 2, 3) for s in WITHOUT_SHARES} - {(3, "worst")}
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 3 * len(best)
    for (tier, strategy), row in best.items():
        mine = [r for r in rows if (r["tier"], r["strategy"]) == (str(tier), strategy)]
        if row["databases"] == 0:
            assert all(r["score"] == "" for r in mine)
            continue
        total = sum(float(r["score"]) for r in mine)
        assert row["mean_latency"] == pytest.approx(
            total / sum(float(r["operations"]) for r in mine)
        )
        assert f"{row['mean_latency']:.3f}" in shown.out
    ranked = document["ranking"]["intervals"]
    assert [each["interval"] for each in ranked] == ["00:00", "00:30", "01:00", "01:30"]
    for each, after in pairwise(ranked):
        used = [r for r in rows if r["interval"] == after["interval"]]
        (row,) = [r for r in used if (r["tier"], r["strategy"]) == ("1", "optimized")]
        assert row["leader"] == each["leaders"][0]


def test_demand_and_deployments_from_files(command, towns, tmp_path):
    rows = "".join(
        f"{db},{hour},{client},strong_read,{count}\n"
        for db, client, count in (("x", "cyd", 9), ("y", "ann", 3))
        for hour in ("1", "2", "3")
    )
    table = demand(tmp_path / "demand.csv", rows)
    held = tmp_path / "held.csv"
    held.write_text("database,site,role\nx,ams,leader\nx,cai,voter\ny,bos,voter\n")
    asked = ("lab", "replay", towns, *("--replicas", "3", "--voters", "2"), "--demand", table)
    document = command(*asked, "--deployments", held, "--tiers", "1", "--json").document
    assert document["databases"] == 2
    assert document["ranking"]["database"] == "x"  # the busiest
    best = {row["strategy"]: row for row in document["strategies"]}
    # x: cai leads at 1 ms; y: only bos may, at 40 ms
    assert best["optimized"]["mean_latency"] == pytest.approx((1 + 40) / 2)
    assert best["preferred"]["databases"] == 1
    assert best["preferred"]["mean_latency"] == pytest.approx(90)
    assert best["preferred"]["overhead_max"] == pytest.approx(8900)
    assert best["closest-to-writes"]["databases"] == 0
    one = command(
        *asked, "--deployments", held, "--tiers", "1", "--database", "y", "--json"
    ).document
    assert one["ranking"]["intervals"][0]["leaders"] == ["bos"]
    merged = command(*asked, "--deployments", held, "--merge", "2", code=1)
    assert "only learnt from" in merged.err


def test_a_fleet_parquet_and_a_picture(command, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    table, picture = tmp_path / "rows.parquet", tmp_path / "over.svg"
    asked = ("lab", "replay", "world27", *ASKED, "--fleet", "4", "--minutes", "120", "--tiers", "2")
    shown = command(*asked, "-o", table, "--plot", picture, "--progress", code=0)
    assert "replayed 4/4 databases" in shown.err
    assert picture.read_bytes().startswith(b"<?xml")
    assert pq.read_table(table).num_rows == 4 * 11 * len(WITHOUT_SHARES)
    again = command(*asked, "-o", table, code=1)
    assert "exists already" in again.err
    half = command(*asked, "--half-life", "1", "--json").document
    assert half["decay"] == 2.0
    assert half["strategies"] == command(*asked, "--json").document["strategies"]


def test_an_instance_whose_last_interval_is_silent(command, towns, tmp_path):
    world = placement.load(towns)
    counts = world.counts.copy()
    counts[-1] = 0
    save_instance(world.replace(counts=counts), tmp_path / "quiet")
    shown = command("lab", "replay", tmp_path / "quiet", *("--replicas", "3", "--voters", "2"),
                "--decay", "inf", "--tiers", "1,2,3", "--json")  # fmt: skip
    assert shown.code == 0
    assert shown.document["decay"] is None


def test_clients_that_are_no_cities_get_the_closest_ones(command):
    if "azure" not in placement.datasets.names():
        pytest.skip("no such data set")
    shown = command("lab", "replay", "azure", *ASKED, "--fleet", "2", "--minutes", "240", "--json")
    if "pip install" in shown.err:
        pytest.skip("the measurements are not installed")
    assert shown.code == 0
    assert shown.document["databases"] == 2


def test_ctrl_c_shows_what_is_done(command, monkeypatch):
    import placement.overtime.replay.run_replay as module

    real, seen = module.TabledReplay, []

    def interrupted(*arguments):
        if len(seen) == 4:  # two databases in two tiers
            raise KeyboardInterrupt
        seen.append(1)
        return real(*arguments)

    monkeypatch.setattr(module, "TabledReplay", interrupted)
    asked = ("lab", "replay", "world27", *ASKED, "--fleet", "5", "--minutes", "240")
    shown = command(*asked, "--json", code=0)
    assert (shown.document["complete"], shown.document["databases"]) == (False, 2)

    def at_once(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "TabledReplay", at_once)
    assert main(["lab", "replay", "world27", *ASKED]) == 130


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--tiers", "4"), "--tiers: no such tiers"),
        (("--tiers", ""), "--tiers: no name in it"),
        (("--strategies", "best"), "strategies: unknown strategy: got 'best'"),
        (("--decay", "0.5"), "decay"),
        (("--decay", "2", "--half-life", "3"), "--half-life: given twice"),
        (("--half-life", "0"), "--half-life: out of range"),
        (("--fleet", "0"), "--fleet: out of range"),
        (("--fleet", "2", "--days", "0"), "--days"),
        (("--demand", "absent.csv"), "absent.csv"),
        (("--demand", "a.csv", "--fleet", "2"), "not allowed with"),
        (("--deployments", "absent.csv"), "absent.csv"),
        (("--database", "nobody"), "no such database: got 'nobody'"),
        (("--merge", "0"), "merge: out of range"),
        (("--merge", "99"), "merge: out of range"),
        (("--top", "0"), "--top"),
        (("-o", "rows.txt"), "--output: unknown table format"),
        (("--plot", "over.gif"), "plot: unknown picture format"),
        (("--method", "nonsense"), "unknown method"),
        (("--tiers", "3", "--method", "leader"), "does not support this problem"),
    ],
)
def test_bad_options(command, options, message, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    shown = command("lab", "replay", "world27", *ASKED, *options, code=1)
    assert message in shown.err
    assert shown.out == ""
    assert list(tmp_path.iterdir()) == []


def test_prices_and_limits_of_moves_are_weighed_in_tier_3(command, towns):
    asked = ("lab", "replay", towns, "--replicas", "2", "--voters", "1")
    asked = (*asked, "--strategies", "optimized")

    def moved(*options: str) -> tuple[float, float]:
        document = command(*asked, *options, "--json").document
        assert {row["tier"] for row in document["strategies"]} == {3}
        (row,) = (row for row in document["strategies"] if row["strategy"] == "optimized")
        return row["moves"], row["copies"]

    free = moved("--tiers", "3")
    assert sum(free) > 0
    assert moved("--move-price", "0") == free
    assert moved("--move-price", "1e6") == (0, 0)
    assert moved("--move-price", "1e6", "--move-horizon", "1e9") == free
    assert moved("--max-moves", "0") == (0, 0)
    text = command(*asked, "--move-price", "add=20", "--max-moves", "1")
    assert "weighs moves from interval to interval: add 20.0, at_most 1" in text.out
    assert command(*asked, "--move-price", "add=20", "--json").document["moves"] == {"add": 20.0}
    bad = command(*asked, "--tiers", "1,3", "--max-moves", "1", code=1)
    assert "tier 3 only" in bad.err
