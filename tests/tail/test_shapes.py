"""One pair: where the mass goes between percentiles, beyond the last, and on the edge of a bin."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.errors import InputError
from placement.tail import Distributions
from placement.tail.bin_grid import bins_for, bins_within, reach_of_family, reach_of_percentiles
from placement.tail.histograms import (
    means_of_percentiles,
    of_family,
    of_percentiles,
    of_samples,
    of_weights,
)
from placement.testing import random_instance
from tests.tail.worlds import drawn

VALUES = st.lists(st.floats(0, 400), min_size=2, max_size=6).map(sorted)


@given(VALUES, st.sampled_from([0.25, 1.0, 3.0]))
def test_percentiles_come_back_and_mass_is_explicit(values, width):
    percents = [5, 25, 50, 90, 99, 99.9][: len(values)]
    bins = math.floor(800 / width)
    d = of_percentiles(dict(zip(percents, values, strict=True)), width=width, bins=bins)
    assert (d >= 0).all()
    assert d.sum() <= 1 + 1e-12
    reached = np.cumsum(d)
    for percent, value in zip(percents, values, strict=True):
        place = np.searchsorted(reached, percent / 100 - 1e-9) * width
        assert place <= value + width / 2 + 1e-9  # atoms may put more below a value, never less
        below = np.searchsorted(reached, percent / 100 + 1e-9) * width
        assert below >= value - width / 2 - 1e-9


def test_the_tail_is_exponential_with_the_last_slope():
    """P(X > v) falls by the same factor over as many ms as between the last two points."""
    d = of_percentiles({50: 100.0, 90: 120.0, 99: 150.0}, width=0.1, bins=6000)
    above = 1 - np.cumsum(d)
    # Between p90 and p99 the odds of more fall tenfold in 30 ms; so they do from there on.
    assert above[1800] == pytest.approx(0.001, rel=0.02)
    assert above[2100] == pytest.approx(0.0001, rel=0.02)
    short = of_percentiles({50: 100.0, 90: 120.0, 99: 150.0}, width=0.1, bins=1800)
    assert 1 - short.sum() == pytest.approx(0.001, rel=0.02)  # what is beyond is overflow


def test_linear_between_points_and_no_tail_without_a_slope():
    d = of_percentiles({20: 10.0, 40: 20.0, 80: 20.0}, width=1, bins=40)
    assert d[12:18] == pytest.approx(np.full(6, 0.02))  # 0.2 over 10 ms
    assert d[20] == pytest.approx(0.6 + 0.01)  # the atom, what is above p80, and half a ms before
    assert d[21:].sum() == 0
    assert d[:1] == pytest.approx([0.01])  # the first slope goes on down to 0 ms


def test_atoms_on_the_edge_of_a_bin_round_as_samples_do():
    assert np.nonzero(of_percentiles({10: 2.5, 90: 2.5}, width=1, bins=9))[0].tolist() == [3]
    assert np.nonzero(of_samples([2.5], width=1, bins=9))[0].tolist() == [3]
    assert np.nonzero(of_percentiles({10: 0.0, 90: 0.0}, width=1, bins=9))[0].tolist() == [0]


@given(VALUES)
def test_mean_is_that_of_the_bins(values):
    told = dict(zip([5, 25, 50, 90, 99, 99.9], values, strict=False))
    d = of_percentiles(told, width=0.5, bins=40_000)
    if 1 - d.sum() < 1e-9:
        mean = float(d @ np.arange(len(d))) * 0.5
        found = means_of_percentiles(list(told), [list(told.values())])
        assert found[0] == pytest.approx(mean, abs=0.3)


@pytest.mark.parametrize("percents", [(50, 99), (5, 25, 50, 75, 90, 95, 99, 99.9, 99.99)])
def test_many_means_at_once_are_those_of_each_pair_to_the_last_bit(percents):
    rng = np.random.default_rng(len(percents))
    values = np.sort(rng.gamma(2.0, 30.0, (200, len(percents))), axis=1)
    values[::7, 1] = values[::7, 0]
    means = means_of_percentiles(percents, values)
    for row, mean in zip(values, means, strict=True):
        shares = np.append(0.0, np.array(percents) / 100)
        slope = shares[1] * (row[1] - row[0]) / (shares[2] - shares[1])
        knots = np.append(max(0.0, row[0] - slope), row)
        scale = (row[-1] - row[-2]) / math.log((1 - shares[-2]) / (1 - shares[-1]))
        inner = float((np.diff(shares) * (knots[1:] + knots[:-1]) / 2).sum())
        assert mean == inner + (1 - float(shares[-1])) * (float(knots[-1]) + float(scale))
    values[3, 0] = values[3, 1] + 1
    with pytest.raises(InputError, match=f"{values[3, 0]}"):
        means_of_percentiles(percents, values)


def test_weights_are_scaled_and_samples_are_weights():
    assert of_weights([1, 3], [1, 3], width=1, bins=5) == pytest.approx([0, 0.25, 0, 0.75, 0])
    assert of_weights([1, 3], [0.1, 0.3], width=1, bins=2) == pytest.approx([0, 0.25])
    for values, weights in (([1], [0]), ([1, 2], [1]), ([-1], [1]), ([1], [math.nan])):
        with pytest.raises(InputError, match="bad histogram"):
            of_weights(values, weights, width=1, bins=5)


@pytest.mark.parametrize("family", ["lognormal", "gamma"])
@pytest.mark.parametrize("variation", [1e-12, 0.01, 0.3, 1.5])
def test_reach_is_hardly_ever_exceeded(family, variation):
    reach = reach_of_family(40, variation, family)
    d = of_family(40, variation, family, width=1, bins=math.ceil(reach) + 2)
    assert 1 - d.sum() <= 1.1e-6
    assert reach >= 40


def test_grid():
    instance = random_instance(0)  # two-phase commit: three round trips
    longest = max(instance.client_rtt.max(), instance.site_rtt.max())
    assert bins_for(instance, [100.0] * 10, 1.0) == round(max(300, 2 * longest)) + 1
    assert bins_for(instance, [100.0] * 10, 1.0, endless=False) == 101
    assert bins_for(instance, [100.0] * 99 + [9e9], 1.0) < 1000  # one wild pair is overflow
    assert bins_within(instance, 100, 0.5) == 201
    assert reach_of_percentiles((90, 99), (100.0, 110.0)) == pytest.approx(150.0)
    with pytest.raises(InputError, match=r"bin width: out of range"):
        bins_within(instance, 100, 0)
    with pytest.raises(InputError, match="too fine"):
        bins_within(instance, 1e9, 1e-3)


def test_a_changed_copy_forgets_what_it_was_made_from():
    instance = random_instance(0)
    made = Distributions.parametric(instance, variation=0.1, bins=300)
    assert made.recipe is not None
    assert dataclasses.replace(made, width=2.0).recipe is None
    to_sites, between = np.ones((7, 6, 2)), np.ones((6, 6, 2))
    between[1, 0] = [2, 1]
    with pytest.raises(InputError, match="site-1 → site-0: percentiles: percentiles must not fall"):
        Distributions.from_percentiles(instance, (50, 99), to_sites, between)


def test_the_mass_beyond_the_horizon_is_summed_once():
    """Searches ask for it under every leader: at 500 sites that took minutes."""
    spread = drawn(random_instance(1, sites=3, clients=2), 1)
    assert 0 < spread.overflow <= 0.02
    assert spread.overflow is spread.overflow
