"""The sample path: what is drawn, from which stream, and how it is cut and rounded."""

import dataclasses

import numpy as np
import pytest

from placement.errors import InputError
from placement.online.selection import ServerCluster, draw


def test_the_rate_of_the_published_simulation():
    cluster = ServerCluster(utilisation=0.45)
    assert cluster.arrivals_per_ms == pytest.approx(45.0)  # 100·utilisation
    assert [round(0.01 * u * ServerCluster().offered_load / 0.7, 3) for u in (45, 70, 80)] == [
        0.54,
        0.84,
        0.96,
    ]


@pytest.mark.parametrize("arrivals", ["grid", "poisson"])
def test_arrivals_have_the_rate_asked_for(arrivals):
    sample = draw(ServerCluster(requests=200_000, arrivals=arrivals), 0)
    # The sources of grid arrivals make equally many each, so that the end thins out.
    assert (sample.arrival < 1000.0).sum() == pytest.approx(70_000, rel=0.02)
    assert (np.diff(sample.arrival) >= 0).all()
    assert sample.means.shape[0] * 100.0 > sample.arrival[-1]


def test_grid_arrivals_burst_at_whole_milliseconds():
    sample = draw(ServerCluster(requests=10_000, arrivals="grid"), 0)
    assert np.array_equal(sample.arrival, np.floor(sample.arrival))
    assert (sample.arrival[:200] == 0).all()


def test_speeds_are_two_sided_coins():
    sample = draw(ServerCluster(requests=100_000, epoch_ms=1.0), 0)
    assert set(np.unique(sample.means)) == {4.0, 4.0 / 3.0}
    assert (sample.means == 4.0).mean() == pytest.approx(0.5, abs=0.01)


def test_heavy_clients_make_heavy_demand():
    """Heavy means that few make much: 20 % of the clients make 80 %, not the other way round."""
    cluster = ServerCluster(clients=100, heavy_clients=0.2, heavy_demand=0.8, requests=100_000)
    weights = cluster.client_weights
    assert weights.sum() == pytest.approx(100.0)
    assert weights[:20].sum() == pytest.approx(80.0)
    assert (draw(cluster, 0).client < 20).mean() == pytest.approx(0.8, abs=0.01)


def test_settings_share_what_they_can():
    """Speeds, work and copies are the same when only who asks, or how often, changes."""
    one, other = (
        draw(ServerCluster(requests=1000), 5),
        draw(ServerCluster(requests=1000, clients=7), 5),
    )
    assert np.array_equal(one.work, other.work)
    assert np.array_equal(one.means, other.means)
    assert np.array_equal(one.arrival, other.arrival)
    assert np.array_equal(one.shadowed, other.shadowed)


def test_epochs_repeat_after_the_last_one_drawn():
    sample = draw(ServerCluster(requests=100, epoch_ms=10.0), 0)
    far = sample.epochs * 10.0 + 5.0
    assert sample.mean_at(3, far) == sample.mean_at(3, 5.0)


def test_the_first_reads_alone():
    sample = draw(ServerCluster(requests=100, shadow=1.0), 0)
    cut = sample.first(30, plain_from=10)
    assert cut.size == 30
    assert cut.shadowed.tolist() == [True] * 10 + [False] * 20
    assert sample.shadowed.all()
    with pytest.raises(InputError, match="count"):
        sample.first(101)


def test_the_grid_is_exact():
    sample = draw(ServerCluster(requests=500, epoch_ms=50.0), 0).on_grid(128)
    for times in (sample.arrival, sample.work, sample.work[:, None] * sample.means[:1, :20]):
        assert np.array_equal(times * 128, np.rint(times * 128))
    assert set(np.unique(sample.means)) == {1.0, 3.0}
    assert sample.work.min() > 0


@pytest.mark.parametrize(
    ("changes", "ticks", "field"),
    [
        ({}, 100, "ticks_per_ms"),
        ({"one_way_ms": 0.1}, 128, "one_way_ms"),
        ({"epoch_ms": 33.3}, 128, "epoch_ms"),
        ({"fluctuation": 3.14159265}, 128, "fluctuation"),
    ],
)
def test_what_does_not_fit_the_grid(changes, ticks, field):
    sample = draw(dataclasses.replace(ServerCluster(requests=50), **changes), 0)
    with pytest.raises(InputError, match=field):
        sample.on_grid(ticks)


@pytest.mark.parametrize(("field", "value"), [("replication", 51), ("heavy_demand", 0.8)])
def test_fields_that_do_not_fit_together(field, value):
    with pytest.raises(InputError, match=field):
        ServerCluster(**{field: value})
