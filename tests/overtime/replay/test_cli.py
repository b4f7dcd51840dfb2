"""The verb ``replay`` from outside."""

from __future__ import annotations

import csv
from itertools import pairwise

import numpy as np
import pytest

import placement
from placement.cli import main
from placement.io import save_instance
from tests.overtime.replay.cases import WITHOUT_SHARES

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
    shown = command(*asked, "-o", table)
    assert shown.code == 0
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
    merged = command(*asked, "--deployments", held, "--merge", "2")
    assert merged.code == 1
    assert "only learnt from" in merged.err


def test_a_fleet_parquet_and_a_picture(command, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    pytest.importorskip("matplotlib")
    table, picture = tmp_path / "rows.parquet", tmp_path / "over.png"
    asked = ("lab", "replay", "world27", *ASKED, "--fleet", "4", "--minutes", "120", "--tiers", "2")
    shown = command(*asked, "-o", table, "--plot", picture, "--progress")
    assert shown.code == 0
    assert "replayed 4/4 databases" in shown.err
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert pq.read_table(table).num_rows == 4 * 11 * len(WITHOUT_SHARES)
    again = command(*asked, "-o", table)
    assert again.code == 1
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
    shown = command(*asked, "--json")
    assert shown.code == 0
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
    shown = command("lab", "replay", "world27", *ASKED, *options)
    assert shown.code == 1
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
    bad = command(*asked, "--tiers", "1,3", "--max-moves", "1")
    assert bad.code == 1
    assert "tier 3 only" in bad.err
