"""Sums, order statistics and percentiles, against inclusion-exclusion, sampling and hand work."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from placement.tail.distribution_arithmetic import (
    at_least,
    fft_length,
    percentile,
    product,
    quorum_distribution,
    sum_of_independent,
)
from placement.tail.histograms import of_families
from placement.tail.pair_bins import PairBins
from tests.effort import examples


def distributions(rng, rows, bins, overflow=False):
    p = rng.random((rows, bins)) * (rng.random((rows, bins)) < 0.6) + 1e-9
    return p / p.sum(axis=1, keepdims=True) * (0.9 if overflow else 1.0)


def by_inclusion_exclusion(probabilities, successes):
    """P(at least k of n) through all subsets: Σ_{j>=k} (−1)^(j−k) C(j−1, k−1) Σ_{|S|=j} Π p."""
    n = len(probabilities)
    if successes <= 0:
        return np.ones(probabilities.shape[1:])
    total = np.zeros(probabilities.shape[1:])
    for j in range(successes, n + 1):
        sign = (-1) ** (j - successes) * math.comb(j - 1, successes - 1)
        for subset in itertools.combinations(range(n), j):
            total = total + sign * np.prod(probabilities[list(subset)], axis=0)
    return total


@settings(deadline=None)
@given(st.integers(1, 7), st.integers(-1, 8), st.integers(0, 2**32 - 1))
def test_recurrence_equals_inclusion_exclusion(n, k, seed):
    p = np.random.default_rng(seed).random((n, 9))
    p[:, 0], p[:, 1] = 0, 1
    assert at_least(k, p) == pytest.approx(by_inclusion_exclusion(p, k), abs=1e-12)


@settings(deadline=None, max_examples=examples(50))
@given(st.integers(1, 4), st.integers(2, 30), st.booleans(), st.integers(0, 2**32 - 1))
def test_convolution_keeps_mean_and_mass(parts, bins, overflow, seed):
    rng = np.random.default_rng(seed)
    p = [distributions(rng, 3, bins, overflow) for _ in range(parts)]
    total = sum_of_independent(p)
    assert (total >= 0).all()
    mass = np.prod([q.sum(axis=1) for q in p], axis=0)
    assert total.sum(axis=1) == pytest.approx(mass, rel=1e-12)
    if not overflow:
        mean = sum(q @ np.arange(bins) for q in p)
        assert total @ np.arange(total.shape[1]) == pytest.approx(mean, rel=1e-9, abs=1e-9)


def test_convolution_equals_the_definition():
    rng = np.random.default_rng(5)
    a, b = distributions(rng, 2, 6)
    expected = np.zeros(11)
    for i, j in itertools.product(range(6), repeat=2):
        expected[i + j] += a[i] * b[j]
    assert sum_of_independent([a, b]) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (700, 40), (1, 20_000), (9_000, 3)])
@pytest.mark.parametrize("rows", [None, 1, 40])
def test_product_in_blocks(shape, rows):
    rng = np.random.default_rng(shape[1])
    left = rng.random(shape[0] if rows is None else (rows, shape[0]))
    right = rng.random(shape[::-1]).T
    np.testing.assert_allclose(product(left, right), left @ right, rtol=1e-12, atol=1e-12)


def test_quorum_by_hand():
    # Voters answer after 1 or 3 (half each), and after 2 for sure; the leader's own vote is free.
    others = np.array([[0, 0.5, 0, 0.5], [0, 0, 1, 0]])
    # m = 2: the first of the two: 1 with 1/2, else 2.
    assert quorum_distribution(others, 2) == pytest.approx([0, 0.5, 0.5, 0])
    # m = 3: the later of the two: 2 with 1/2, else 3.
    assert quorum_distribution(others, 3) == pytest.approx([0, 0, 0.5, 0.5])
    assert quorum_distribution(others, 1) == pytest.approx([1, 0, 0, 0])


@pytest.mark.parametrize("quorum", [2, 3, 4, 5])
def test_quorum_equals_monte_carlo(quorum):
    rng = np.random.default_rng(11)
    others = distributions(rng, 4, 40)
    exact = np.cumsum(quorum_distribution(others, quorum))
    draws = 200_000
    sampled = np.array([rng.choice(40, size=draws, p=p) for p in others])
    waits = np.sort(sampled, axis=0)[quorum - 2]
    empirical = np.bincount(waits, minlength=40).cumsum() / draws
    error = 5 * np.sqrt(np.maximum(exact * (1 - exact), 1e-6) / draws)
    assert (np.abs(empirical - exact) <= error).all()


def test_percentiles():
    d = np.array([0.5, 0.25, 0.25])
    assert [percentile(d, p, horizon=3) for p in (0.1, 0.5, 0.51, 0.75, 0.9, 1.0)] == [
        0,
        0,
        1,
        1,
        2,
        2,
    ]
    lossy = np.array([0.5, 0.2, 0.1])
    assert percentile(lossy, 0.7, horizon=3) == 1
    assert percentile(lossy, 0.9, horizon=3) == math.inf  # in the overflow
    assert percentile(lossy, 0.75, horizon=2) == math.inf  # beyond the horizon of a part


@given(st.integers(1, 5000), st.integers(0, 6))
def test_transforms_are_long_enough_and_of_small_factors(bins, hops):
    length = fft_length(bins, hops)
    assert length >= hops * (bins - 1) + 1
    assert length % 2 == 0
    for factor in (2, 3, 5):
        while length % factor == 0:
            length //= factor
    assert length == 1
    assert fft_length(bins, hops) <= 2 * max(2, hops * (bins - 1) + 1, bins)


@given(
    npst.arrays(np.float64, (3, 2, 5), elements=st.sampled_from([0.0, 0.0, 0.125, 0.2])),
    st.integers(-1, 6),
)
def test_tables_without_their_zeros_read_as_they_were_given(table, last):
    kept = PairBins.of(table)
    assert kept.shape == table.shape
    assert len(kept.segments.values) <= np.count_nonzero(table.any(axis=2)) * 5
    assert np.array_equal(kept, table)
    assert np.array_equal(kept.segments.filled(kept.row[[2, 0, 2], 1]), table[[2, 0, 2], 1])
    assert kept.within(last) == pytest.approx(table[..., : max(0, last + 1)].sum(axis=2))
    assert kept.mass == pytest.approx(table.sum(axis=2))
    assert not kept.segments.wrong().any()
    bad = table.copy()
    bad[1, 0, 3] = -0.1
    assert PairBins.of(bad).segments.wrong()[kept.row].tolist()[1] == [True, False]


@given(
    st.lists(st.one_of(st.just(0.0), st.floats(0.01, 500)), min_size=1, max_size=4),
    st.sampled_from([0.0, 0.03, 0.1, 0.7]),
    st.sampled_from(["lognormal", "gamma"]),
    st.integers(1, 300),
)
def test_families_of_many_means_are_those_of_each(means, variation, family, bins):
    """Against the distribution functions of SciPy at every edge."""
    from scipy import stats

    rows = of_families(np.array(means), variation, family, width=2.0, bins=bins)
    for row, mean in enumerate(means):
        edges = (np.arange(bins + 1) - 0.5) * 2.0
        if mean == 0 or variation == 0:
            below = (edges > mean).astype(float)
        elif family == "lognormal":
            sigma = math.sqrt(math.log1p(variation**2))
            below = stats.lognorm.cdf(edges, sigma, scale=mean * math.exp(-(sigma**2) / 2))
        else:
            below = stats.gamma.cdf(edges, variation**-2, scale=mean * variation**2)
        assert rows.filled(np.array([row]))[0] == pytest.approx(np.diff(below), abs=1e-12)
