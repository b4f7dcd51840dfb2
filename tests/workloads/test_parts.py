"""The parts of a workload: mixes, calendar, curves, noise, footprints, events."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement import workloads
from placement.datasets import cities
from placement.errors import InputError
from placement.workloads import (
    AR1,
    MIXES,
    Clients,
    Consumer,
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
)

WORLD = Clients.from_cities(cities())


def scene(days: int = 7, start: date = date(2026, 3, 2), clients: Clients = WORLD) -> Scene:
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
        for c in range(0, len(WORLD), 7):
            local = middle.astimezone(ZoneInfo(WORLD.timezones[c]))
            hour = local.hour + local.minute / 60
            assert view.local.hour[t, c] == pytest.approx(hour)
            assert view.local.ordinal[t, c] == local.toordinal()
            if WORLD.countries[c] not in workloads.FRIDAY_SATURDAY:
                assert view.local.weekend[t, c] == (local.weekday() >= 5)


def test_summer_time_shifts_the_clock_by_an_hour():
    view = scene(days=2, start=date(2026, 3, 28))
    london = WORLD.names.index("London")
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
        column = view.local.weekend[noon, WORLD.names.index(city)]
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
    continent = np.array(WORLD.continents)
    country = np.array(WORLD.countries)
    footprints = {
        "global": workloads.everywhere(WORLD),
        "regional": workloads.regional(WORLD, "Europe"),
        "national": workloads.national(WORLD, "BR"),
        "home": workloads.home_and_tail(WORLD, 3),
        "poles": workloads.two_poles(WORLD, 3, 9),
    }
    for name, weights in footprints.items():
        assert weights.sum() == pytest.approx(1), name
        assert (weights > 0).all(), name
    assert footprints["regional"][continent == "Europe"].sum() == pytest.approx(0.90)
    assert footprints["national"][country == "BR"].sum() == pytest.approx(0.97)
    assert footprints["home"][3] == pytest.approx(0.85)
    assert footprints["poles"][[3, 9]].tolist() == pytest.approx([0.45, 0.45])


def test_inside_and_outside_demand_goes_with_users():
    base = WORLD.users**0.7
    for weights, inside in (
        (workloads.everywhere(WORLD), np.ones(len(WORLD), bool)),
        (workloads.regional(WORLD, "Asia"), np.array(WORLD.continents) == "Asia"),
        (workloads.two_poles(WORLD, 0, 1), np.arange(len(WORLD)) < 2),
    ):
        for part in (inside, ~inside) if inside.sum() > 2 else (~inside,):
            if part.any():
                ratio = weights[part] / base[part]
                assert ratio.max() == pytest.approx(ratio.min())


def test_where_there_is_no_outside_the_inside_is_everything():
    one = replace(
        WORLD,
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
        (lambda: workloads.regional(WORLD, "Atlantis"), "continent: no client there"),
        (lambda: workloads.national(WORLD, "XX"), "country: no client there"),
        (lambda: workloads.home_and_tail(WORLD, -1), "no such client: got -1"),
        (lambda: workloads.home_and_tail(WORLD, 10**6), "no such client"),
        (lambda: workloads.two_poles(WORLD, 4, 4), "two poles at one place"),
        (lambda: replace(WORLD, countries=("US",)), "countries: as many labels"),
        (lambda: replace(WORLD, users=WORLD.users * 0), "no users at all"),
        (lambda: replace(WORLD, users=-WORLD.users), "users: out of range"),
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
    us = np.array(WORLD.countries) == "US"
    assert (changed[:, ~us] == 1).all()
    assert (changed[:20] == 1).all()
    assert changed[:, us].max() == pytest.approx(9, rel=0.1)
    np.testing.assert_allclose(
        changed[:, us], crowd.factor(view.timeline.middle_hours)[:, None] * np.ones(us.sum())
    )


def test_holiday_is_a_local_date():
    view = scene()
    changed = Holiday("JP", date(2026, 3, 4), 0.25).apply(flat(view), view)
    japan = np.array(WORLD.countries) == "JP"
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
    there = np.array(WORLD.continents) == "Africa"
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
    rates = np.random.default_rng(0).random((view.timeline.intervals, len(WORLD)))
    changed = Migration(2, 5, at=24.0, days=3.0).apply(rates, view)
    np.testing.assert_allclose(changed.sum(axis=1), rates.sum(axis=1))
    np.testing.assert_allclose(changed[:48], rates[:48])
    assert changed[-1, 2] == pytest.approx(0)
    assert changed[-1, 5] == pytest.approx(rates[-1, 2] + rates[-1, 5])
    untouched = np.delete(np.arange(len(WORLD)), [2, 5])
    assert (changed[:, untouched] == rates[:, untouched]).all()


def test_nightly_batch_runs_at_the_same_local_hours():
    view = scene()
    new_york = WORLD.names.index("New York")
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
