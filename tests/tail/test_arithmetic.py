"""Sums, percentiles and shapes of one pair: against sampling, hand work and the mean model."""

import dataclasses
import itertools
import math
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import placement
from placement.errors import InputError, LimitError
from placement.evaluation.score import operation_latency, score
from placement.measures.question import percentile_question
from placement.model.configuration import Configuration
from placement.tail import Distributions, Percentile
from placement.tail.histograms import (
    PairBins,
    at_least,
    fft_length,
    means_of_percentiles,
    of_families,
    of_family,
    of_percentiles,
    of_weights,
    percentile,
    product,
    quorum_distribution,
    sum_of_independent,
)
from placement.tail.objective import mixture
from placement.tail.rtt_distributions import (
    bins_for,
    bins_within,
    reach_of_family,
    reach_of_percentiles,
)
from placement.testing import every_configuration, random_instance
from tests.effort import examples
from tests.tail.worlds import drawn, sampled, whole


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


def test_percentiles():
    d = np.array([0.5, 0.25, 0.25])
    found = [percentile(d, p, horizon=3) for p in (0.1, 0.5, 0.51, 0.75, 0.9, 1.0)]
    assert found == [0, 0, 1, 1, 2, 2]
    still = Distributions.parametric(random_instance(1), variation=0.0, bins=250)
    parts = [(0.8, np.eye(250)[3]), (0.2, np.eye(250)[7])]
    assert [Percentile(p, still).of_mixture(parts) for p in (80, 81)] == [3.0, 7.0]
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


def weighted_percentile(values, weights, share):
    order = np.argsort(values)
    reached = np.cumsum(weights[order]) / weights.sum()
    return values[order][np.searchsorted(reached, share - 1e-12)]


@settings(deadline=None, max_examples=examples(40))
@given(st.integers(0, 10_000), st.sampled_from([1, 25, 50, 90, 99, 99.9, 100]))
def test_constant_rtts_give_the_mean_model(seed, percent):
    problem = placement.Problem(whole(random_instance(seed)), replicas=4, voters=3)
    chosen = next(every_configuration(problem))
    still = Distributions.parametric(problem.instance, variation=0.0, bins=250)
    latency = operation_latency(problem.demand, chosen, 2)[0]
    counts = problem.demand.counts[0]
    used = counts > 0
    expected = weighted_percentile(latency[used], counts[used], percent / 100)
    assert Percentile(percent, still).value(problem, chosen) == expected
    distribution = mixture(problem, chosen, still)
    mean = distribution @ np.arange(len(distribution))
    eq1 = score(problem.demand, chosen.leader, chosen.voters, chosen.replicas, 2)
    assert mean == pytest.approx(eq1 / problem.demand.operations, rel=1e-9)
    assert distribution.sum() == pytest.approx(1, abs=1e-12)


def test_mixture_equals_monte_carlo():
    """Every message flow drawn by hand, with independent copies and a fractional coefficient."""
    instance = whole(random_instance(3, sites=4, clients=3)).replace(
        operations=(
            placement.Operation("weak", near=1),
            placement.Operation("bounded", near=1, relay=0.3),
            placement.Operation("strong", direct=1),
            placement.Operation("write", direct=1, quorum=1),
            placement.Operation("two-phase", direct=1, quorum=2),
        )
    )
    problem = placement.Problem(instance, replicas=4, voters=3)
    spread = Distributions.parametric(instance, "lognormal", variation=0.4, bins=1500)
    chosen = Configuration.of(1, (1, 2, 3), (0, 1, 2, 3))
    draws = 60_000
    total = sampled(problem, chosen, spread, np.random.default_rng(8), draws)
    exact = np.cumsum(mixture(problem, chosen, spread))
    empirical = (np.sort(total).searchsorted(np.arange(len(exact)), side="right")) / draws
    error = 5 * np.sqrt(np.maximum(exact * (1 - exact), 1e-5) / draws)
    assert (np.abs(empirical - exact) <= error).all()


def test_sources_of_distributions():
    assert of_weights([1, 2.4, 9], [2, 1, 1], width=1, bins=5) == pytest.approx(
        [0, 0.5, 0.25, 0, 0]
    )
    for family in ("lognormal", "gamma"):
        d = of_family(50, 0.2, family, width=1, bins=400)
        x = np.arange(400)
        assert d.sum() == pytest.approx(1, abs=1e-9)
        assert d @ x == pytest.approx(50, rel=1e-3)
        assert math.sqrt(d @ (x - 50) ** 2) == pytest.approx(10, rel=1e-2)
    measured = {10: 80.0, 25: 82.0, 50: 85.0, 75: 90.0, 90: 100.0, 99: 130.0}
    d = of_percentiles(measured, width=0.5, bins=2000)
    reached = np.cumsum(d)
    for percent, value in measured.items():
        assert abs(np.searchsorted(reached, percent / 100 - 1e-12) * 0.5 - value) <= 0.5
    assert d.sum() == pytest.approx(1, abs=1e-6)
    flat = of_percentiles({10: 5.0, 50: 5.0, 90: 5.0, 99: 5.0}, width=1, bins=20)
    assert flat[5] == pytest.approx(1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: of_percentiles({50: 3.0}, width=1, bins=9), "two or more between 0 and 100"),
        (lambda: of_percentiles({10: 3.0, 50: 2.0}, width=1, bins=9), "must not fall"),
        (lambda: of_family(3, 0.1, "cauchy", width=1, bins=9), "unknown family"),
        (lambda: of_family(3, -0.1, "gamma", width=1, bins=9), "variation: out of range"),
    ],
)
def test_bad_sources(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_bad_distributions():
    instance = whole(random_instance(0, sites=2, clients=1))
    good = Distributions.parametric(instance, variation=0.0, bins=300)
    with pytest.raises(InputError, match="percentile: out of range"):
        Percentile(0, good)
    heavy = np.array(good.client_site) * 1.5
    with pytest.raises(InputError, match="no distribution at 'client-0'"):
        dataclasses.replace(good, client_site=heavy)
    with pytest.raises(InputError, match="takes time to reach itself"):
        dataclasses.replace(good, site_site=np.roll(good.site_site, 1, axis=-1))
    other = whole(random_instance(1))
    with pytest.raises(InputError, match="belong to another instance"):
        placement.Problem(other, replicas=3, voters=3, objective=percentile_question(99, good))


def test_percentile_beyond_the_horizon_is_said():
    instance = whole(random_instance(2))
    short = Distributions.parametric(instance, variation=0.5, bins=40)
    problem = placement.Problem(
        instance,
        replicas=list(instance.sites[:3]),
        voters=3,
        objective=percentile_question(99, short),
    )
    plan = placement.evaluate(
        problem, leader="site-0", voters=instance.sites[:3], replicas=instance.sites[:3]
    )
    assert plan.status == "violating"
    assert "beyond the horizon" in plan.reasons[0]


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
    assert np.nonzero(of_weights([2.5], [1], width=1, bins=9))[0].tolist() == [3]
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
    for wrong in ({"width": 0}, {"width": 5e-324}, {"variation": 1e300}):
        with pytest.raises(InputError, match=f"{next(iter(wrong))}: out of range"):
            Distributions.parametric(instance, **wrong)
    trips = [placement.Operation(one.name, relay=1e18) for one in instance.operations]
    far = instance.replace(operations=trips)
    problem = placement.Problem(far, replicas=3, voters=3)
    with pytest.raises(LimitError, match="so many round trips"):
        mixture(problem, Configuration.of(0, [0], [0, 1, 2]), Distributions.parametric(far))


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


def test_the_compiled_error_function_is_that_of_the_standard_library() -> None:
    compiled = pytest.importorskip("placement.tail._error_function")
    given = np.linspace(-30, 30, 6001)
    found = given.copy()
    compiled.erfc(found)
    np.testing.assert_allclose(found, list(map(math.erfc, given)), rtol=1e-13, atol=0)
    for wrong in (np.zeros(3, np.float32), np.zeros(3, np.intp), np.zeros(6)[::2], b"12345678"):
        with pytest.raises((ValueError, BufferError)):
            compiled.erfc(wrong)


def test_without_the_compiled_error_function_the_distributions_are_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = (np.array([0.0, 3.0, 40.0, 900.0]), 0.3, "lognormal")
    compiled = of_families(*asked, width=1.0, bins=500)
    monkeypatch.setitem(sys.modules, "placement.tail._error_function", None)
    monkeypatch.delattr("placement.tail._error_function", raising=False)
    plain = of_families(*asked, width=1.0, bins=500)
    np.testing.assert_array_equal(plain.first, compiled.first)
    np.testing.assert_allclose(plain.values, compiled.values, rtol=0, atol=1e-15)
