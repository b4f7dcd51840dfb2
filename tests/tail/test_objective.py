"""Percentiles as an objective: constant RTTs give the mean model, sampling gives the rest."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import placement
from placement.errors import InputError
from placement.evaluation.score import operation_latency, score
from placement.measures.question import percentile_question
from placement.model.configuration import Configuration
from placement.tail import Distributions, Percentile
from placement.tail.histograms import of_family, of_percentiles, of_samples
from placement.tail.latency_mixture import mixture
from placement.testing import every_configuration, random_instance
from tests.effort import examples
from tests.tail.worlds import sampled, whole


def weighted_percentile(values, weights, share):
    order = np.argsort(values)
    reached = np.cumsum(weights[order]) / weights.sum()
    return values[order][np.searchsorted(reached, share - 1e-12)]


@settings(deadline=None, max_examples=examples(40))
@given(st.integers(0, 10_000), st.sampled_from([1, 25, 50, 90, 99, 99.9, 100]))
def test_constant_rtts_give_the_mean_model(seed, percent):
    problem = placement.Problem(whole(random_instance(seed)), replicas=4, voters=3)
    chosen = next(every_configuration(problem))
    still = Distributions.constant(problem.instance, bins=250)
    latency = operation_latency(problem.demand, chosen.leader, chosen.voters, chosen.replicas, 2)[0]
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
    assert of_samples([1, 1, 2.4, 9], width=1, bins=5) == pytest.approx([0, 0.5, 0.25, 0, 0])
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
        (lambda: of_samples([], width=1, bins=9), "bad samples"),
        (lambda: of_samples([-1.0], width=1, bins=9), "bad samples"),
        (lambda: of_family(3, 0.1, "cauchy", width=1, bins=9), "unknown family"),
        (lambda: of_family(3, -0.1, "gamma", width=1, bins=9), "variation: out of range"),
    ],
)
def test_bad_sources(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_bad_distributions():
    instance = whole(random_instance(0, sites=2, clients=1))
    good = Distributions.constant(instance, bins=300)
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
