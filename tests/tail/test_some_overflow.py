"""Percentiles where trips to some sites alone have mass beyond the horizon.

A plan without these sites may then have a percentile beyond the horizon of one trip, which a
search over deadlines must not rule out.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from placement import Instance, Options, Problem
from placement.contingency.objective import Contingency
from placement.methods.registry import load_method, run
from placement.proof.certificate_check import check_certificate
from placement.tail import Distributions, Percentile
from placement.testing import random_instance
from tests.effort import seeds

pytestmark = pytest.mark.filterwarnings("ignore::placement.errors.UnitsWarning")

EXACT, EXHAUSTIVE = load_method("exact"), load_method("exhaustive")


def spread(instance: Instance, rng: np.random.Generator, bins: int) -> Distributions:
    """Distributions of few bins, late ones likely; about half of the sites have overflow."""
    sites = len(instance.sites)
    some = rng.random(sites) < 0.5

    def table(rows: int) -> np.ndarray:
        values = rng.random((rows, sites, bins)) * (rng.random((rows, sites, bins)) < 0.4)
        values[..., rng.integers(0, bins)] += 1e-3
        late = rng.random((rows, sites, 1)) < 0.5
        values = np.where(late, values * np.linspace(0, 1, bins) ** 4 + 1e-6, values)
        return np.asarray(values / values.sum(axis=-1, keepdims=True))

    between, reads = table(sites), table(len(instance.clients))
    between[some] *= 0.7
    between[:, some] *= 0.7
    reads[:, some] *= 0.7
    own = np.arange(sites)
    between[own, own] = np.eye(1, bins)[0]
    return Distributions(reads, between, 1.0, instance.sites, instance.clients)


def question(seed: int, goal: str) -> Problem:
    """A question about a percentile, or about that after the loss of any one site."""
    rng = np.random.default_rng(seed)
    sites = int(rng.integers(3, 7))
    instance = random_instance(seed, sites=sites, clients=int(rng.integers(1, 5)))
    bins = int(rng.integers(4, 16))
    percentile = Percentile(float(rng.choice([50, 90, 99])), spread(instance, rng, bins))
    replicas = int(rng.integers(2, sites + 1))
    objective: Percentile | Contingency = percentile
    if goal == "worst":
        objective = Contingency("site", "worst", percentile=percentile)
    if goal == "bounded":
        limit = float(rng.uniform(2, 4 * bins))
        objective = Contingency("site", "bounded", limit=limit, percentile=percentile)
    voters = int(rng.integers(1 if goal == "percentile" else 2, replicas + 1))
    return Problem(instance, replicas=replicas, voters=voters, objective=objective)


@pytest.mark.parametrize("goal", ["percentile", "worst", "bounded"])
@pytest.mark.parametrize("block", seeds(1, 100))
def test_the_search_finds_what_enumeration_finds(block: int, goal: str) -> None:
    """The bounded goal was called infeasible before, and certificates were refused."""
    beyond = 0
    for seed in range(10 * block, 10 * block + 10):
        problem = question(seed, goal)
        plan = run(EXACT, problem, Options())
        truth = run(EXHAUSTIVE, problem, Options())
        assert plan.status is truth.status, seed
        checked = check_certificate(plan)
        if not plan.found:
            assert checked.bound == math.inf
            continue
        assert plan.objective == pytest.approx(truth.objective, rel=1e-9), seed
        assert checked.bound == pytest.approx(truth.objective, rel=1e-9), seed
        goal_of = problem.objective
        one = goal_of.percentile if isinstance(goal_of, Contingency) else goal_of
        assert isinstance(one, Percentile)
        beyond += plan.objective >= one.distributions.bins
    assert goal != "percentile" or beyond
