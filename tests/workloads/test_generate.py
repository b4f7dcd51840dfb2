"""Workloads, fleets and their parts: acceptance of what comes out, and the streams."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import combinations
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import placement
from placement import Problem, datasets, workloads
from placement.datasets import cities
from placement.errors import InputError, MissingDependencyError
from placement.overtime.replay import Deployments, replay
from placement.overtime.replay.generated_fleets import client_ground, trace_of
from placement.overtime.replay.results import gains
from placement.workloads import (
    AR1,
    MIXES,
    Clients,
    Consumer,
    Database,
    FlashCrowd,
    Flat,
    Holiday,
    Launch,
    Migration,
    NightlyBatch,
    Office,
    Outage,
    Scene,
    Timeline,
    apart_groups,
    database_sizes,
    everywhere,
    expected_demand,
    fleet,
    generate,
    mix_shares,
    standard_database,
)

CLIENTS = Clients.from_cities(cities()[::6])
WEEK = Timeline.of_day(date(2026, 6, 1), 7 * 48)  # a Monday; no clock changes
TWO_WEEKS = Timeline.of_day(date(2026, 6, 1), 14 * 48)
QUIET = AR1(0.5, 0.0)


def database(**changes: object) -> Database:
    base = Database(
        index=0,
        name="db",
        rate=100_000.0,
        weights=workloads.everywhere(CLIENTS),
        mix=workloads.mix_shares("social"),
        daily=QUIET,
        cluster=QUIET,
    )
    return replace(base, **changes)


def draw(databases, timeline=WEEK, *, clients=CLIENTS, seed=0, **options) -> np.ndarray:
    blocks = workloads.generate(databases, clients, timeline, seed=seed, **options)
    return np.concatenate([block.counts for block in blocks])


# --- means, ratios, mixes ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "curve", [Consumer(ratio=2.5), Consumer(ratio=5), Office(ratio=3), Office(ratio=15), Flat()]
)
def test_the_mean_over_a_week_is_the_rate(curve):
    counts = draw([database(curve=curve)], law="expected")[0]
    assert counts.sum() / WEEK.intervals == pytest.approx(100_000, rel=5e-3)
    share = counts.sum(axis=(0, 2)) / counts.sum()
    np.testing.assert_allclose(share, workloads.everywhere(CLIENTS), rtol=5e-3)


@pytest.mark.parametrize(
    ("curve", "low", "high"),
    [
        (Consumer(ratio=2.5), 2.4, 2.51),
        (Consumer(ratio=5), 4.8, 5.01),
        (Office(ratio=3), 2.99, 3.01),
        (Office(ratio=15), 14.9, 15.01),
        (Flat(), 1.0, 1.0 + 1e-9),
    ],
)
def test_peak_over_trough_of_a_working_day(curve, low, high):
    tuesday = draw([database(curve=curve)], law="expected")[0, 48:96].sum(axis=-1)
    ratio = tuesday.max(axis=0) / tuesday.min(axis=0)
    for column, country in enumerate(CLIENTS.countries):
        if country in workloads.FRIDAY_SATURDAY:
            continue
        assert low <= ratio[column] <= high, CLIENTS.names[column]


def test_cluster_noise_has_its_autocorrelation_and_spread():
    noisy = database(curve=Flat(), cluster=AR1(0.7, 0.2))
    counts = draw([noisy], Timeline.of_day(date(2026, 6, 1), 100 * 48), law="expected")[0]
    assert counts.sum() / len(counts) == pytest.approx(100_000, rel=0.01), "of mean 1"
    logs = np.log(counts.sum(axis=-1))
    logs -= logs.mean(axis=0)
    assert logs.std() == pytest.approx(0.2, rel=0.05)
    for lag in (1, 2, 4):
        product = (logs[lag:] * logs[:-lag]).mean() / logs.var()
        assert product == pytest.approx(0.7**lag, abs=0.02)
    across = np.corrcoef(logs.T)
    assert np.abs(across[~np.eye(len(across), dtype=bool)]).mean() < 0.06, "clusters are apart"


def test_daily_noise_is_common_to_clusters_and_steps_by_the_day():
    noisy = database(curve=Flat(), daily=AR1(0.5, 0.2))
    counts = draw([noisy], Timeline.of_day(date(2026, 6, 1), 400 * 48), law="expected")[0]
    logs = np.log(counts.sum(axis=-1)).reshape(400, 48, -1)
    assert (logs.max(axis=1) - logs.min(axis=1)).max() < 1e-9, "one step a day"
    levels = logs[:, 0, :] - logs[:, 0, :].mean(axis=0)
    assert np.abs(levels - levels[:, :1]).max() < 1e-9, "the same at all clusters"
    series = levels[:, 0]
    assert series.std() == pytest.approx(0.2, rel=0.15)
    assert (series[1:] * series[:-1]).mean() / series.var() == pytest.approx(0.5, abs=0.12)


# --- laws of counts ----------------------------------------------------------------------------


def test_poisson_counts_have_their_variance():
    steady = database(curve=Flat(), rate=20_000.0)
    means = draw([steady], law="expected")[0, 0]
    counts = draw([steady], TWO_WEEKS, law="poisson")[0]
    assert counts.dtype == np.int64
    seen = means > 5
    np.testing.assert_allclose(counts.mean(axis=0)[seen], means[seen], rtol=0.08)
    ratio = counts.var(axis=0)[seen] / means[seen]
    assert ratio.mean() == pytest.approx(1, abs=0.05)


# --- streams -----------------------------------------------------------------------------------


def test_seeds_decide_everything():
    tenants = workloads.fleet(CLIENTS, 6, seed=4, timeline=WEEK)
    again = workloads.fleet(CLIENTS, 6, seed=4, timeline=WEEK)
    assert (draw(tenants, seed=1) == draw(again, seed=1)).all()
    assert (draw(tenants, seed=1) != draw(tenants, seed=2)).any()
    other = workloads.fleet(CLIENTS, 6, seed=5, timeline=WEEK)
    assert [each.rate for each in tenants] != [each.rate for each in other]


@pytest.mark.parametrize("law", ["poisson", "expected"])
def test_neither_blocks_nor_neighbours_matter(law):
    tenants = workloads.fleet(CLIENTS, 7, seed=4, timeline=WEEK)
    whole = draw(tenants, law=law, block=16)
    assert (draw(tenants, law=law, block=3) == whole).all()
    assert (draw(tenants[2:5], law=law) == whole[2:5]).all()
    assert (draw(tenants[::-1], law=law) == whole[::-1]).all()


def test_a_smaller_fleet_is_the_head_of_a_larger_one():
    small = workloads.fleet(CLIENTS, 3, seed=4)
    large = workloads.fleet(CLIENTS, 9, seed=4)
    for a, b in zip(small, large[:3], strict=True):
        assert (a.name, a.rate, a.footprint) == (b.name, b.rate, b.footprint)
        assert (a.weights == b.weights).all()
        assert (a.mix == b.mix).all()


def test_blocks_stream():
    """A block is there before the next is drawn: the memory is that of one."""
    stream = workloads.generate(workloads.fleet(CLIENTS, 5, seed=1), CLIENTS, WEEK, seed=0, block=2)
    sizes = [len(next(stream).databases) for _ in range(3)]
    assert sizes == [2, 2, 1]
    assert next(stream, None) is None


# --- events and batches in place ---------------------------------------------------------------


def test_events_are_those_of_one_database():
    outage = Outage(1, at=24, hours=6)
    rest = Holiday(CLIENTS.countries[0], date(2026, 6, 3), 0.5)
    plain = draw([database(), database(index=1)], law="expected")
    found = draw([database(events=(outage,)), database(index=1, events=(rest,))], law="expected")
    assert (found[0, 48:60, 1] == 0).all()
    assert (np.delete(found[0], 1, axis=1) == np.delete(plain[0], 1, axis=1)).all()
    assert found[1].sum() < plain[1].sum()


# --- fleets ------------------------------------------------------------------------------------


def test_a_fleet_has_its_distributions():
    sites = [f"near {name}" for name in CLIENTS.names]
    tenants = workloads.fleet(
        CLIENTS, 1000, seed=8, timeline=TWO_WEEKS, median_rate=500.0, nearest_sites=sites
    )
    logs = np.log([each.rate for each in tenants])
    assert np.median(logs) == pytest.approx(np.log(500), abs=0.2)
    assert logs.std() == pytest.approx(2, rel=0.1)
    kinds = [each.kind for each in tenants]
    assert {kind: kinds.count(kind) for kind in workloads.MIXES}.keys() == set(kinds)
    assert min(kinds.count(kind) for kind in workloads.MIXES) > 70
    shapes = [each.footprint for each in tenants]
    for shape, share in workloads.FOOTPRINTS.items():
        assert shapes.count(shape) / 1000 == pytest.approx(share, abs=0.05)
    wishing = [each for each in tenants if each.preferred_leader is not None]
    assert len(wishing) / 1000 == pytest.approx(0.25, abs=0.05)
    for each in wishing:
        assert each.preferred_leader == sites[int(np.argmax(each.weights))]
    happening = [each for each in tenants if each.events or each.batches]
    assert len(happening) / 1000 == pytest.approx(0.2, abs=0.05)
    kinds_of_event = {type(e).__name__ for each in tenants for e in (*each.events, *each.batches)}
    assert kinds_of_event == {
        "FlashCrowd",
        "Holiday",
        "Outage",
        "Launch",
        "Migration",
        "NightlyBatch",
    }
    assert len({each.name for each in tenants}) == 1000
    for each in tenants:
        assert 0.12 <= each.daily.sd <= 0.22
        assert 0.10 <= each.cluster.sd <= 0.25
        assert 0.60 <= each.cluster.lag1 <= 0.75
        expected = {"consumer": Consumer, "office": Office, "batch": Flat}
        assert isinstance(each.curve, expected[workloads.TENANTS[each.kind]])


def test_a_fleet_at_a_single_cluster():
    alone = replace(
        CLIENTS,
        names=("x",),
        countries=("JP",),
        continents=("Asia",),
        timezones=("Asia/Tokyo",),
        users=np.array([1.0]),
    )
    tenants = workloads.fleet(alone, 60, seed=1, timeline=WEEK)
    counts = draw(tenants, clients=alone)
    assert counts.shape == (60, 7 * 48, 1, 5)
    assert all((each.weights == 1).all() for each in tenants)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"databases": 0}, "databases: out of range"),
        ({"median_rate": 0.0}, "median_rate"),
        ({"sigma": float("nan")}, "sigma"),
        ({"nearest_sites": ["a"]}, "nearest_sites: one site per client"),
    ],
)
def test_bad_fleets_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        workloads.fleet(CLIENTS, seed=0, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"law": "normal"}, "unknown law: got 'normal'"), ({"block": 0}, "block: out of range")],
)
def test_bad_options_are_refused_before_the_first_block(options, message):
    with pytest.raises(InputError, match=message):
        workloads.generate([database()], CLIENTS, WEEK, seed=0, **options)


def test_databases_that_do_not_fit_are_refused_before_the_first_block():
    with pytest.raises(InputError, match="'db' has other clients"):
        workloads.generate([database(weights=np.array([0.5, 0.5]))], CLIENTS, WEEK, seed=0)
    with pytest.raises(InputError, match="has the random stream of another database"):
        workloads.generate([database(), database()], CLIENTS, WEEK, seed=0)
    with pytest.raises(InputError, match="weights: shares that do not add up"):
        database(weights=workloads.everywhere(CLIENTS) * 0.9)
    with pytest.raises(InputError, match="mix: wrong shape"):
        database(mix=np.array([1.0]))


# --- Parquet -----------------------------------------------------------------------------------


def test_parquet_holds_the_counts(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    day = Timeline.of_day(date(2026, 6, 1))
    tenants = workloads.fleet(CLIENTS, 5, seed=2, timeline=day, median_rate=50.0)
    counts = draw(tenants, day)
    path = tmp_path / "fleet.parquet"
    rows = workloads.write_parquet(
        path, workloads.generate(tenants, CLIENTS, day, seed=0, block=2), CLIENTS, day
    )
    assert rows == np.count_nonzero(counts.any(axis=-1))
    assert [each.name for each in tmp_path.iterdir()] == ["fleet.parquet"]
    table = parquet.read_table(path).to_pydict()
    assert len(table["database"]) == rows
    back = np.zeros_like(counts)
    names = {each.name: i for i, each in enumerate(tenants)}
    starts = {begin: i for i, begin in enumerate(day.starts)}
    for row in range(rows):
        place = (
            names[table["database"][row]],
            starts[table["interval"][row]],
            CLIENTS.names.index(table["client"][row]),
        )
        back[place] = [
            table[name][row]
            for name in ("weak_read", "bounded_read", "strong_read", "single_group", "multi_group")
        ]
    assert (back == counts).all()
    assert parquet.ParquetFile(path).num_row_groups == 3


def test_parquet_is_written_whole_or_not_at_all(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "fleet.parquet"
    path.write_bytes(b"what was there")
    day = Timeline.of_day(date(2026, 6, 1))
    tenants = workloads.fleet(CLIENTS, 3, seed=2)

    def broken():
        yield next(workloads.generate(tenants, CLIENTS, day, seed=0, block=2))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        workloads.write_parquet(path, broken(), CLIENTS, day, force=True)
    with pytest.raises(InputError, match="a block of another workload"):
        workloads.write_parquet(
            path, workloads.generate(tenants, CLIENTS, day, seed=0), CLIENTS, WEEK, force=True
        )
    with pytest.raises(InputError, match="nothing to write"):
        workloads.write_parquet(path, [], CLIENTS, day, force=True)
    with pytest.raises(InputError, match="exists already"):
        workloads.write_parquet(
            path, workloads.generate(tenants, CLIENTS, day, seed=0), CLIENTS, day
        )
    with pytest.raises(InputError, match="the folder to write into does not exist"):
        workloads.write_parquet(tmp_path / "no" / "x", [], CLIENTS, day)
    assert path.read_bytes() == b"what was there"
    assert [each.name for each in tmp_path.iterdir()] == ["fleet.parquet"]
    rows = workloads.write_parquet(
        path, workloads.generate(tenants, CLIENTS, day, seed=0), CLIENTS, day, force=True
    )
    assert rows > 0
    assert path.read_bytes()[:4] == b"PAR1"


def test_parquet_without_pyarrow_names_the_extra(tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingDependencyError, match=r"pip install '\.\[parquet\]'"):
        workloads.write_parquet(tmp_path / "x.parquet", [], CLIENTS, WEEK)
    assert not list(tmp_path.iterdir())


# --- at full size ------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_thousand_databases_for_two_weeks():
    """The size of the papers' fleets: 200 million counts, never more than a block in memory."""
    sixty = Clients.from_cities(sorted(cities(), key=lambda city: -city.users)[:60])
    tenants = workloads.fleet(sixty, 1000, seed=7)
    drawn, rates, seen = 0, 0.0, 0
    for block in workloads.generate(tenants, sixty, TWO_WEEKS, seed=7):
        assert block.counts.shape[1:] == (672, 60, 5)
        assert (block.counts >= 0).all()
        drawn += int(block.counts.sum())
        rates += sum(each.rate for each in block.databases)
        seen += len(block.databases)
    assert seen == 1000
    # the largest of a log-normal fleet carry much of it: their daily noise does not average out
    assert drawn / (rates * 672) == pytest.approx(1, rel=0.05)


def test_an_instance_takes_what_was_generated():
    import placement
    from placement.datasets.bundled import world27_cities

    world = placement.load("world27")
    clients = Clients.from_cities(world27_cities())
    (tenant,) = workloads.fleet(clients, 1, seed=3)
    (block,) = workloads.generate([tenant], clients, WEEK, seed=3)
    instance = world.replace(counts=block.counts[0], intervals=WEEK.labels, name=tenant.name)
    assert instance.counts.shape == (336, 60, 5)
    assert instance.counts.sum() == block.counts.sum()


def test_batches_add_single_group_transactions_only():
    job = NightlyBatch(client=2, rate=5_000.0, begin=1.0, hours=2.0)
    plain = draw([database()], law="expected")[0]
    with_job = draw([database(batches=(job,))], law="expected")[0]
    extra = with_job - plain
    assert np.delete(extra, 3, axis=2).max() == pytest.approx(0)
    assert np.delete(extra[:, :, 3], 2, axis=1).max() == pytest.approx(0)
    assert extra[:, 2, 3].max() == pytest.approx(5_000)
    assert (extra[:, 2, 3] > 1).sum() == 7 * 4


WORLD = placement.load("world27")
# What was found elsewhere on measured networks: moving in every half hour gains 0 to 1 % for
# world-wide consumers, 0 to 9 % for tenants with two or three poles and an evening peak, 6 to 27 %
# for such tenants in offices; the best constant leader beats the worst by 21 to 53 %. Such figures
# come from voters that stand close together, as the best constant plan for leader-bound operations
# puts them. A mix of weak reads wants its replicas far apart; where all of them vote, the same
# demand gains several times as much (docs/over-time.md). The tests hold both, and tell them apart.
GROUND = client_ground(WORLD)
GROUNDED: Clients = GROUND.clients
DAYS = 2
TIMELINE = Timeline.of_day(date(2026, 3, 3), DAYS * 48)  # Tuesday and Wednesday
POLES = ("New York", "Los Angeles", "Sao Paulo", "London", "Mumbai", "Tokyo")


def at(cities: tuple[str, ...]) -> np.ndarray:
    there = np.array([name in cities for name in GROUNDED.names])
    tail = np.where(there, 0.0, everywhere(GROUNDED))
    return np.where(there, 0.9 / len(cities), 0.1 * tail / tail.sum())


def classes() -> dict[str, list[tuple[np.ndarray, object]]]:
    found: dict[str, list[tuple[np.ndarray, object]]] = {
        "world": [(everywhere(GROUNDED), Consumer(ratio=ratio)) for ratio in (2.5, 3.5, 5.0)]
    }
    for name, curve in (("evening", Consumer()), ("office", Office()), ("flat", Flat())):
        found[name] = [
            (at(cities), curve) for count in (2, 3) for cities in combinations(POLES, count)
        ][::3]
    return found


def measured(mix: str, candidates: str) -> dict[str, dict[str, np.ndarray]]:
    """Gains per class of tenant, and leader changes of the oracle per day."""
    result: dict[str, dict[str, np.ndarray]] = {}
    for name, tenants in classes().items():
        databases = [
            Database(i, f"{name}{i}", 1e5, weights, mix_shares(mix), curve)
            for i, (weights, curve) in enumerate(tenants)
        ]
        trace = trace_of(GROUND, WORLD, databases, TIMELINE, seed=4, law="expected")
        held = np.ones((len(trace), len(WORLD.sites)), dtype=bool)
        if candidates == "planned":
            for row in range(len(trace)):
                total = WORLD.replace(counts=trace.counts[row].sum(axis=0), intervals=())
                plan = placement.solve(Problem(total, replicas=5, voters=5))
                held[row] = np.isin(WORLD.sites, plan.replicas)
        deployments = Deployments(held, held, np.full(len(trace), -1))
        problem = Problem(WORLD, replicas=5, voters=5, decay=2.0)
        replayed = replay(problem, trace, deployments, tiers=(1,))
        table = gains(replayed)
        result[name] = {
            **{key: table[key].to_numpy() for key in ("dynamic", "realised", "static")},
            "moves": replayed.moves(1, "oracle") / DAYS,
            "optimized moves": replayed.moves(1, "optimized") / DAYS,
        }
    return result


@pytest.fixture(scope="module")
def close() -> dict[str, dict[str, np.ndarray]]:
    """Strong reads and few writes, five voters planned for them: they stand close together."""
    return measured("ycsb-b", "planned")


@pytest.fixture(scope="module")
def apart() -> dict[str, dict[str, np.ndarray]]:
    """The social mix, five voters planned for it: they stand where weak reads are."""
    return measured("social", "planned")


def test_the_dynamic_gain_of_each_class(close):
    """The published ranges, with a little room: another network, other poles."""
    dynamic = {name: found["dynamic"] for name, found in close.items()}
    assert dynamic["world"].max() < 2
    assert np.median(dynamic["evening"]) < 3
    assert dynamic["evening"].max() < 12
    assert dynamic["office"].max() < 30
    assert np.median(dynamic["office"]) > np.median(dynamic["evening"])
    # machines keep no hours: what is left is the noise of clusters, which decides between ties
    assert dynamic["flat"].mean() < 0.8
    assert dynamic["flat"].max() < 4
    for found in dynamic.values():
        assert (found >= -1e-9).all(), "nobody beats the oracle"


def test_replicas_far_apart_make_moving_worth_while(close, apart):
    """Why the social mix gains more than its class: its candidates, not its demand."""
    assert apart["world"]["dynamic"].min() > close["world"]["dynamic"].max()
    assert 2 < np.median(apart["world"]["dynamic"]) < 6
    for name in ("evening", "office"):
        assert np.median(apart[name]["dynamic"]) > 3 * np.median(close[name]["dynamic"])


def test_how_often_the_best_leader_moves(close, apart):
    """A few times a day with the sun; only a tie between equal poles flips with the noise."""
    for found in (close, apart):
        for name in ("world", "evening", "office"):
            assert found[name]["moves"].max() <= 16, name
            assert found[name]["optimized moves"].mean() <= found[name]["moves"].mean() + 0.5
        restless = found["flat"]["moves"] > 12
        assert (found["flat"]["dynamic"][restless] < 4).all(), "many moves that bring little"
        assert found["flat"]["optimized moves"].mean() < found["flat"]["moves"].mean()
    assert apart["office"]["moves"].min() >= 2, "there in the morning, back in the evening"


def test_following_the_past_brings_most_of_it(apart):
    for name in ("world", "evening", "office"):
        found = apart[name]
        assert (found["realised"] <= found["dynamic"] + 1e-9).all()
        assert found["realised"].mean() > 0.75 * found["dynamic"].mean(), name


# --- what a fleet looks like -----------------------------------------------------------------


def test_the_shares_of_a_fleets_operations_are_its_mixes():
    day = Timeline.of_day(date(2026, 3, 3))
    drawn = fleet(GROUNDED, 270, seed=2, sigma=0.0)
    shares: dict[str, list[np.ndarray]] = {kind: [] for kind in MIXES}
    for block in generate(drawn, GROUNDED, day, seed=2, law="expected"):
        for database, counts in zip(block.databases, block.counts, strict=True):
            share = counts.sum(axis=(0, 1)) / counts.sum()
            np.testing.assert_allclose(share, database.mix, atol=1e-12)
            shares[database.kind].append(share)
    for kind, found in shares.items():
        assert len(found) > 10
        # of Dirichlet(100 p) a share has standard deviation sqrt(p(1 − p)/101) <= 5 %
        np.testing.assert_allclose(np.mean(found, axis=0), mix_shares(kind), atol=0.05)


def test_a_day_of_a_fleet_peaks_when_its_people_are_up():
    """Consumers at 20 to 22 h of their own clock, offices between 9 and 17, each class as one."""
    day = Timeline.of_day(date(2026, 3, 3))
    drawn = fleet(GROUNDED, 120, seed=3, sigma=0.0)
    from placement.workloads import local_time

    hours = local_time(day, GROUNDED.timezones, GROUNDED.countries).hour
    total = {Consumer: np.zeros(24), Office: np.zeros(24), Flat: np.zeros(24)}
    seen = {kind: np.zeros(24) for kind in total}
    for block in generate(drawn, GROUNDED, day, seed=3, law="expected"):
        for database, counts in zip(block.databases, block.counts, strict=True):
            rate = counts.sum(axis=-1) / (database.rate * database.weights)
            kind = type(database.curve)
            np.add.at(total[kind], hours.astype(int), rate)
            np.add.at(seen[kind], hours.astype(int), 1.0)
    mean = {kind: total[kind] / seen[kind] for kind in total}
    assert mean[Consumer].argmax() in (20, 21)
    assert mean[Consumer].argmin() in (4, 5)
    assert 2.4 < mean[Consumer].max() / mean[Consumer].min() < 5
    assert 9 <= mean[Office].argmax() < 17
    assert 3 < mean[Office].max() / mean[Office].min() < 15
    assert mean[Flat].max() / mean[Flat].min() < 1.3


def test_autocorrelation_of_a_fleets_total():
    """Demand of one half hour says much about the next, and about the same hour tomorrow."""
    week = Timeline.of_day(date(2026, 3, 2), 7 * 48)
    drawn = [
        each for each in fleet(GROUNDED, 60, seed=5, sigma=0.0) if isinstance(each.curve, Consumer)
    ]
    lags: dict[int, list[float]] = {1: [], 24: [], 48: []}
    for block in generate(drawn, GROUNDED, week, seed=5):
        for counts in block.counts:
            series = np.log(counts.sum(axis=(1, 2)) + 1.0)
            series -= series.mean()
            for lag, found in lags.items():
                found.append(float((series[lag:] * series[:-lag]).mean() / series.var()))
    assert np.median(lags[1]) > 0.9
    assert np.median(lags[48]) > 0.6
    assert np.median(lags[24]) < 0.2


OF_ALL_CITIES = Clients.from_cities(datasets.cities())


def test_sizes_have_the_median_a_heavy_tail_and_a_prefix() -> None:
    sizes = database_sizes(20_000, seed=1)
    assert np.median(sizes) == pytest.approx(10.0, rel=0.05)
    assert sizes.max() > 100 > sizes.min() * 100
    assert (database_sizes(7, seed=1) == sizes[:7]).all()
    assert not (database_sizes(7, seed=2) == sizes[:7]).any()
    assert database_sizes(500, seed=1, sigma=5.0, largest=3.0).max() == 30.0


def test_groups_hold_each_database_once() -> None:
    names = [f"db-{number}" for number in range(10)]
    groups = apart_groups(names, 3, seed=4)
    assert [len(group) for group in groups] == [3, 3, 3]
    assert len({name for group in groups for name in group}) == 9
    assert groups == apart_groups(names, 3, seed=4)
    assert apart_groups(names, 0, seed=4) == ()
    with pytest.raises(InputError, match="groups"):
        apart_groups(names, 4, seed=4)


def test_demand_of_an_hour_follows_the_clock_of_the_clients() -> None:
    """The mean over a week is the demand without hours; an hour differs by continent."""
    drawn = fleet(OF_ALL_CITIES, 20, seed=3)
    whole = expected_demand(drawn, OF_ALL_CITIES)
    week = Timeline(datetime(2026, 3, 16, tzinfo=UTC), 7 * 24, 60)
    assert expected_demand(drawn, OF_ALL_CITIES, week).sum() == pytest.approx(whole.sum(), rel=0.02)
    people = [standard_database(OF_ALL_CITIES)]
    issued = {}
    for hour in (12, 21):  # nine in the evening in Tokyo, and in London
        timeline = Timeline(datetime(2026, 3, 18, hour, tzinfo=UTC), 1, 60)
        total = expected_demand(people, OF_ALL_CITIES, timeline).sum(axis=(0, 2))
        issued[hour] = dict(zip(OF_ALL_CITIES.names, total.tolist(), strict=True))
    assert issued[12]["Tokyo"] > 2 * issued[21]["Tokyo"]
    assert issued[21]["London"] > 1.5 * issued[12]["London"]


THE_WORLD = Clients.from_cities(cities())


def scene(days: int = 7, start: date = date(2026, 3, 2), clients: Clients = THE_WORLD) -> Scene:
    timeline = Timeline.of_day(start, days * 48)
    local = workloads.local_time(timeline, clients.timezones, clients.countries)
    return Scene(timeline, clients, local)


# --- mixes -----------------------------------------------------------------------------------


def test_ycsb_mixes_read_and_update_as_published():
    assert workloads.mix_shares("ycsb-a")[2:4].tolist() == [0.5, 0.5]
    assert workloads.mix_shares("ycsb-b")[2:4].tolist() == [0.95, 0.05]


@pytest.mark.parametrize("name", MIXES)
def test_drawn_mixes_centre_on_the_named_one(name):
    rng = np.random.default_rng(1)
    shares = workloads.mix_shares(name)
    drawn = np.array([workloads.sample_mix(name, rng) for _ in range(4000)])
    np.testing.assert_allclose(drawn.sum(axis=1), 1)
    assert (drawn[:, shares == 0] == 0).all()
    np.testing.assert_allclose(drawn.mean(axis=0), shares, atol=0.004)
    # variance of a Dirichlet law: p (1 − p)/(concentration + 1)
    np.testing.assert_allclose(drawn.var(axis=0), shares * (1 - shares) / 101, atol=3e-4)


# --- calendar --------------------------------------------------------------------------------


def test_local_time_is_that_of_each_moment():
    view = scene(days=2, start=date(2026, 3, 28))  # Europe goes to summer time on the 29th
    for t in range(0, 96, 5):
        middle = view.timeline.starts[t] + timedelta(minutes=15)
        for c in range(0, len(THE_WORLD), 7):
            local = middle.astimezone(ZoneInfo(THE_WORLD.timezones[c]))
            hour = local.hour + local.minute / 60
            assert view.local.hour[t, c] == pytest.approx(hour)
            assert view.local.ordinal[t, c] == local.toordinal()
            if THE_WORLD.countries[c] not in workloads.FRIDAY_SATURDAY:
                assert view.local.weekend[t, c] == (local.weekday() >= 5)


def test_summer_time_shifts_the_clock_by_an_hour():
    view = scene(days=2, start=date(2026, 3, 28))
    london = THE_WORLD.names.index("London")
    noon = 24
    assert view.local.hour[noon, london] == 12.25
    assert view.local.hour[noon + 48, london] == 13.25


def test_weekends_fall_where_they_do():
    view = scene(start=date(2026, 3, 2))  # a Monday
    noon = np.arange(7) * 48 + 24
    resting = {
        "London": [5, 6],
        "Cairo": [4, 5],
        "Riyadh": [4, 5],
        "Dubai": [5, 6],  # since 2022
    }
    for city, days in resting.items():
        column = view.local.weekend[noon, THE_WORLD.names.index(city)]
        assert np.nonzero(column)[0].tolist() == days, city


def test_timeline_labels_and_days():
    line = Timeline(datetime(2026, 12, 31, 23, tzinfo=UTC), 4)
    assert line.labels == (
        "2026-12-31T23:00Z",
        "2026-12-31T23:30Z",
        "2027-01-01T00:00Z",
        "2027-01-01T00:30Z",
    )
    assert line.days == 1
    assert Timeline.of_day(date(2026, 1, 1), 49).days == 2
    assert Timeline.of_day(date(2026, 1, 1), 49).day.tolist() == [0] * 48 + [1]
    east = Timeline(datetime(2026, 1, 1, 1, tzinfo=ZoneInfo("Asia/Tokyo")), 1)
    assert east.labels == ("2025-12-31T16:00Z",)


def test_bad_timelines_are_refused():
    with pytest.raises(InputError, match="a start without a time zone"):
        Timeline(datetime(2026, 1, 1))
    with pytest.raises(InputError, match="intervals: out of range: got 0"):
        Timeline.of_day(date(2026, 1, 1), 0)
    with pytest.raises(InputError, match="unknown time zone: got 'Mars/Olympus'"):
        workloads.local_time(Timeline.of_day(date(2026, 1, 1)), ["Mars/Olympus"], ["XX"])


# --- curves ----------------------------------------------------------------------------------

consumers = st.builds(Consumer, st.floats(2.5, 5), st.floats(20, 22), weekend=st.floats(1.0, 1.1))
offices = st.builds(Office, st.floats(3, 15), weekend=st.floats(0.45, 0.65))


def a_week(curve: workloads.Curve) -> np.ndarray:
    """Factor by the minute, five working days and two of rest; shape (7, 1440)."""
    hour = np.tile((np.arange(1440) + 0.5) / 60, (7, 1))
    weekend = np.repeat(np.arange(7)[:, None] >= 5, 1440, axis=1)
    return curve(hour, weekend)


@given(st.one_of(consumers, offices, st.just(Flat())))
def test_curves_have_mean_one_over_a_week(curve):
    assert a_week(curve).mean() == pytest.approx(1, abs=2e-4)


@given(consumers)
def test_consumers_peak_in_the_evening_and_sleep_before_dawn(curve):
    day = a_week(curve)[0]
    assert day.max() / day.min() == pytest.approx(curve.ratio, rel=1e-3)
    assert np.argmin(day) / 60 == pytest.approx(4.5, abs=0.05)
    assert np.argmax(day) / 60 == pytest.approx(curve.peak, abs=0.05)
    rising = day[round(4.6 * 60) : round(curve.peak * 60) - 6]
    assert (np.diff(rising) > 0).all()


@given(st.one_of(consumers, offices))
def test_days_of_rest_have_their_ratio(curve):
    week = a_week(curve)
    assert week[5:].mean() / week[:5].mean() == pytest.approx(curve.weekend)


@given(offices)
def test_offices_work_from_nine_to_five(curve):
    day = a_week(curve)[0]
    assert day.max() / day.min() == pytest.approx(curve.ratio)
    hour = (np.arange(1440) + 0.5) / 60
    assert (day[(hour > 9.5) & (hour < 16.5)] == day.max()).all()
    assert (day[(hour < 8.5) | (hour > 17.5)] == day.min()).all()
    middle = (day.max() + day.min()) / 2
    slopes = curve(np.array([9.0, 17.0]), np.array([False, False]))
    np.testing.assert_allclose(slopes, middle)


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: Consumer(ratio=0.5), "ratio"),
        (lambda: Consumer(peak=3.0), "peak"),
        (lambda: Consumer(peak=24.0), "24 h - peak"),
        (lambda: Office(begin=9, end=9.5), "end"),
        (lambda: Office(end=24), "23.5 h - end"),
        (lambda: Office(weekend=-1), "weekend"),
        (lambda: AR1(1.0, 0.1), "lag1"),
        (lambda: AR1(0.5, -0.1), "sd"),
        (lambda: FlashCrowd("US", 0, peak=0.5), "peak"),
        (lambda: FlashCrowd("US", 0, ramp=0), "ramp"),
        (lambda: Holiday("US", date(2026, 1, 1), -1), "factor"),
        (lambda: Outage(1, 0, 1, redirect=1), "redirect"),
        (lambda: Migration(1, 1, 0), "target"),
        (lambda: Launch("Asia", 0, days=-1), "days"),
        (lambda: NightlyBatch(0, 1, begin=24), "24 h - begin"),
        (lambda: NightlyBatch(0, 1, hours=25), "24 h - hours"),
    ],
)
def test_laws_out_of_range_are_refused(make, field):
    with pytest.raises(InputError, match=field):
        make()


# --- noise -----------------------------------------------------------------------------------


def test_autoregression_is_the_recursion():
    normals = np.random.default_rng(3).standard_normal((6, 2))
    lag1, sd = np.array([0.5, 0.7]), np.array([0.2, 0.1])
    kept = normals.copy()
    series = workloads.autoregress(normals, lag1, sd)
    x = sd * kept[0]
    np.testing.assert_allclose(series[0], x)
    for t in range(1, 6):
        x = lag1 * x + sd * np.sqrt(1 - lag1**2) * kept[t]
        np.testing.assert_allclose(series[t], x)
    assert (normals == kept).all()


# --- footprints ------------------------------------------------------------------------------


def test_footprints_have_their_shares():
    continent = np.array(THE_WORLD.continents)
    country = np.array(THE_WORLD.countries)
    footprints = {
        "global": workloads.everywhere(THE_WORLD),
        "regional": workloads.regional(THE_WORLD, "Europe"),
        "national": workloads.national(THE_WORLD, "BR"),
        "home": workloads.home_and_tail(THE_WORLD, 3),
        "poles": workloads.two_poles(THE_WORLD, 3, 9),
    }
    for name, weights in footprints.items():
        assert weights.sum() == pytest.approx(1), name
        assert (weights > 0).all(), name
    assert footprints["regional"][continent == "Europe"].sum() == pytest.approx(0.90)
    assert footprints["national"][country == "BR"].sum() == pytest.approx(0.97)
    assert footprints["home"][3] == pytest.approx(0.85)
    assert footprints["poles"][[3, 9]].tolist() == pytest.approx([0.45, 0.45])


def test_inside_and_outside_demand_goes_with_users():
    base = THE_WORLD.users**0.7
    for weights, inside in (
        (workloads.everywhere(THE_WORLD), np.ones(len(THE_WORLD), bool)),
        (workloads.regional(THE_WORLD, "Asia"), np.array(THE_WORLD.continents) == "Asia"),
        (workloads.two_poles(THE_WORLD, 0, 1), np.arange(len(THE_WORLD)) < 2),
    ):
        for part in (inside, ~inside) if inside.sum() > 2 else (~inside,):
            if part.any():
                ratio = weights[part] / base[part]
                assert ratio.max() == pytest.approx(ratio.min())


def test_where_there_is_no_outside_the_inside_is_everything():
    one = replace(
        THE_WORLD,
        names=("a", "b"),
        countries=("JP", "JP"),
        continents=("Asia", "Asia"),
        timezones=("Asia/Tokyo",) * 2,
        users=np.array([1.0, 3.0]),
    )
    assert workloads.regional(one, "Asia").sum() == pytest.approx(1)
    assert workloads.two_poles(one, 0, 1).tolist() == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: workloads.regional(THE_WORLD, "Atlantis"), "continent: no client there"),
        (lambda: workloads.national(THE_WORLD, "XX"), "country: no client there"),
        (lambda: workloads.home_and_tail(THE_WORLD, -1), "no such client: got -1"),
        (lambda: workloads.home_and_tail(THE_WORLD, 10**6), "no such client"),
        (lambda: workloads.two_poles(THE_WORLD, 4, 4), "two poles at one place"),
        (lambda: replace(THE_WORLD, countries=("US",)), "countries: as many labels"),
        (lambda: replace(THE_WORLD, users=THE_WORLD.users * 0), "no users at all"),
        (lambda: replace(THE_WORLD, users=-THE_WORLD.users), "users: out of range"),
    ],
)
def test_bad_footprints_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


# --- events ----------------------------------------------------------------------------------


def flat(view: Scene) -> np.ndarray:
    rates = np.ones((view.timeline.intervals, len(view.clients)))
    rates.flags.writeable = False  # an event must leave its argument alone
    return rates


def test_flash_crowd_ramps_up_and_halves():
    view = scene()
    crowd = FlashCrowd("US", at=10.0, peak=9.0, ramp=1.0, half_life=2.0)
    factor = crowd.factor(np.array([9.9, 10.0, 10.5, 11.0, 13.0, 15.0]))
    np.testing.assert_allclose(factor, [1, 1, 5, 9, 5, 3])
    changed = crowd.apply(flat(view), view)
    us = np.array(THE_WORLD.countries) == "US"
    assert (changed[:, ~us] == 1).all()
    assert (changed[:20] == 1).all()
    assert changed[:, us].max() == pytest.approx(9, rel=0.1)
    np.testing.assert_allclose(
        changed[:, us], crowd.factor(view.timeline.middle_hours)[:, None] * np.ones(us.sum())
    )


def test_holiday_is_a_local_date():
    view = scene()
    changed = Holiday("JP", date(2026, 3, 4), 0.25).apply(flat(view), view)
    japan = np.array(THE_WORLD.countries) == "JP"
    assert (changed[:, ~japan] == 1).all()
    # Japan is nine hours ahead: its fourth of March begins on the third at 15:00 UTC
    off = np.nonzero(changed[:, np.argmax(japan)] == 0.25)[0]
    assert view.timeline.labels[off[0]] == "2026-03-03T15:00Z"
    assert view.timeline.labels[off[-1]] == "2026-03-04T14:30Z"
    assert len(off) == 48


def test_outage_silences_or_moves():
    view = scene()
    rates = flat(view)
    silent = Outage(4, at=24, hours=3).apply(rates, view)
    assert (silent[48:54, 4] == 0).all()
    assert silent.sum() == rates.sum() - 6
    moved = Outage(4, at=24, hours=3, redirect=7).apply(rates, view)
    assert (moved[48:54, 7] == 2).all()
    assert moved.sum() == rates.sum()
    assert (np.delete(moved, [4, 7], axis=1) == 1).all()


def test_launch_ramps_from_nothing():
    view = scene()
    changed = Launch("Africa", at=48.0, days=2.0).apply(flat(view), view)
    there = np.array(THE_WORLD.continents) == "Africa"
    column = changed[:, np.argmax(there)]
    assert (changed[:, ~there] == 1).all()
    assert (column[:96] == 0).all()
    assert column[96 + 48] == pytest.approx(0.5, abs=0.02)
    assert (column[96 * 2 :] == 1).all()
    assert (np.diff(column) >= 0).all()
    at_once = Launch("Africa", at=48.0, days=0.0).apply(flat(view), view)
    assert set(np.unique(at_once)) == {0.0, 1.0}


def test_migration_keeps_the_sum():
    view = scene()
    rates = np.random.default_rng(0).random((view.timeline.intervals, len(THE_WORLD)))
    changed = Migration(2, 5, at=24.0, days=3.0).apply(rates, view)
    np.testing.assert_allclose(changed.sum(axis=1), rates.sum(axis=1))
    np.testing.assert_allclose(changed[:48], rates[:48])
    assert changed[-1, 2] == pytest.approx(0)
    assert changed[-1, 5] == pytest.approx(rates[-1, 2] + rates[-1, 5])
    untouched = np.delete(np.arange(len(THE_WORLD)), [2, 5])
    assert (changed[:, untouched] == rates[:, untouched]).all()


def test_nightly_batch_runs_at_the_same_local_hours():
    view = scene()
    new_york = THE_WORLD.names.index("New York")
    written = NightlyBatch(new_york, 500.0, begin=23.0, hours=3.0).written(view)
    hour = view.local.hour[:, new_york]
    assert ((written == 500) == ((hour >= 23) | (hour < 2))).all()
    # a night that springs to summer time lacks an hour: 2 h becomes 3 h, after the job
    assert (written > 0).sum() == 7 * 6


@pytest.mark.parametrize("event", [FlashCrowd("XX", 0), Holiday("XX", date(2026, 3, 4))])
def test_events_in_no_country_are_refused(event):
    view = scene(days=1)
    with pytest.raises(InputError, match="no client there: got 'XX'"):
        event.apply(flat(view), view)
