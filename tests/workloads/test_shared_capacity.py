"""Sizes, groups and demand by the local clock of fleets that share capacity."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest

from placement import datasets
from placement.errors import InputError
from placement.workloads import (
    Clients,
    Timeline,
    apart_groups,
    database_sizes,
    expected_demand,
    fleet,
    standard_database,
)

CLIENTS = Clients.from_cities(datasets.cities())


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
    drawn = fleet(CLIENTS, 20, seed=3)
    whole = expected_demand(drawn, CLIENTS)
    week = Timeline(datetime(2026, 3, 16, tzinfo=UTC), 7 * 24, 60)
    assert expected_demand(drawn, CLIENTS, week).sum() == pytest.approx(whole.sum(), rel=0.02)
    people = [standard_database(CLIENTS)]
    issued = {}
    for hour in (12, 21):  # nine in the evening in Tokyo, and in London
        timeline = Timeline(datetime(2026, 3, 18, hour, tzinfo=UTC), 1, 60)
        total = expected_demand(people, CLIENTS, timeline).sum(axis=(0, 2))
        issued[hour] = dict(zip(CLIENTS.names, total.tolist(), strict=True))
    assert issued[12]["Tokyo"] > 2 * issued[21]["Tokyo"]
    assert issued[21]["London"] > 1.5 * issued[12]["London"]
