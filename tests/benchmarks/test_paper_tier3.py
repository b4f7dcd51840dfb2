"""The study of the paper's placement figures: demand by concentration, summaries, page."""

import itertools
from collections import Counter

import numpy as np
import pytest

from benchmarks.harness.tier3_worlds import SIGMA, world
from benchmarks.paper_tier3 import (
    Point,
    by_demand,
    concentrated,
    gains,
    kept,
    summary_11,
)
from placement import Problem, load
from placement.methods.options import Options
from placement.methods.registry import load_method, run


@pytest.mark.parametrize(("network", "clients"), [("modelled", 27), ("world27", 60)])
def test_sigma_concentrates_the_demand_and_changes_nothing_else(network, clients):
    spread, narrow = (world(network, "cache", 3, sigma=sigma).instance for sigma in (SIGMA, 3.0))
    assert spread.clients == narrow.clients
    assert len(spread.clients) == clients
    assert len(spread.sites) == 27
    np.testing.assert_array_equal(spread.client_rtt, narrow.client_rtt)
    by_client = [np.sort(x.counts.sum(axis=(0, 2)))[::-1] for x in (spread, narrow)]
    top = [weights[:3].sum() / weights.sum() for weights in by_client]
    assert top[1] > top[0] + 0.2
    default = world(network, "cache", 3).instance
    np.testing.assert_array_equal(default.counts, spread.counts)


def test_summaries_keep_clients_and_sigma_apart():
    rows = [
        Point(11, network, "cache", 0, 4, 3, 4, sigma, "free", method, objective, 100.0, True)
        for network, sigma, objective in (
            ("modelled", 1.2, 150.0),
            ("modelled", 3.0, 120.0),
            ("azure-2025", 3.0, 140.0),
            ("world27", 1.2, 110.0),
        )
        for method in ("kq", "qk", "best-of", "local-search", "exact")
    ]
    lines = by_demand(rows, summary_11)
    assert [(line["clients"], line["sigma"], line["kq"]) for line in lines] == [
        ("sites", 1.2, 50.0),
        ("sites", 3.0, 30.0),
        ("cities", 1.2, 10.0),
    ]


def test_demand_halves_from_client_to_client():
    counts = concentrated(load("world27"), 0.5, np.random.default_rng(0)).counts[0]
    weights = np.sort(counts.sum(axis=1))[::-1]
    np.testing.assert_allclose(weights[1:8] / weights[:7], 0.5, rtol=1e-4)
    assert counts[:, 1:].sum() == 0


def test_gains_follow_from_the_means(monkeypatch):
    monkeypatch.setattr("benchmarks.paper_tier3.DATA_SETS", ("world27",))
    monkeypatch.setattr("benchmarks.paper_tier3.STEPS", 3)
    for line in gains(1):
        mean, gain = line["mean ms"], line["gain %"]
        assert line["proven"]
        sizes = list(mean)
        assert [int(size) - line["voters"] for size in sizes] == [0, 1, 2]
        for before, size in itertools.pairwise(sizes):
            assert gain[size] == pytest.approx(100 * (1 - mean[size] / mean[before]), abs=0.06)


@pytest.mark.parametrize("network", ["modelled", "world27"])
@pytest.mark.parametrize("voters", [3, 5])
def test_kept_diversity_is_that_of_a_spread_deployment(network, voters):
    instance = world(network, "cache", 1).instance
    assert set(instance.domains) == {"country", "continent"}
    problem = kept(Problem(instance, replicas=voters + 2, voters=voters))
    plan = run(load_method("exact"), problem, Options())
    free = run(load_method("exact"), problem.replace(diversity=()), Options())
    assert plan.objective >= free.objective
    today = run(
        load_method("max-diversity"), Problem(instance, replicas=voters, voters=voters), Options()
    )
    for level in ("country", "continent"):
        label = dict(zip(instance.sites, instance.labels(level), strict=True))
        fullest = [
            max(Counter(label[site] for site in one.voters).values()) for one in (plan, today)
        ]
        assert fullest[0] <= fullest[1] < voters
