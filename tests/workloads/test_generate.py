"""Whole workloads: acceptance of what comes out, and the streams it comes from."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import numpy as np
import pytest

from placement import workloads
from placement.datasets import cities
from placement.errors import InputError, MissingDependencyError
from placement.workloads import (
    AR1,
    Clients,
    Consumer,
    Database,
    Flat,
    Holiday,
    NightlyBatch,
    Office,
    Outage,
    Timeline,
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


def test_noise_has_mean_one():
    """The mean over 300 noisy databases: sd of the mean is about 1 %."""
    noisy = [
        database(index=i, curve=Flat(), daily=AR1(0.5, 0.22), cluster=AR1(0.75, 0.25))
        for i in range(300)
    ]
    counts = draw(noisy, law="expected", seed=11)
    per_database = counts.sum(axis=(1, 2, 3)) / WEEK.intervals
    assert per_database.mean() == pytest.approx(100_000, rel=0.03)
    assert per_database.std() > 5_000, "there is noise at all"


def test_cluster_noise_has_its_autocorrelation_and_spread():
    noisy = database(curve=Flat(), cluster=AR1(0.7, 0.2))
    counts = draw([noisy], Timeline.of_day(date(2026, 6, 1), 100 * 48), law="expected")[0]
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
    [
        ({"law": "normal"}, "unknown law: got 'normal'"),
        ({"block": 0}, "block: out of range"),
    ],
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
    from placement.datasets.modelled import world27_cities

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
