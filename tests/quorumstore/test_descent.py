"""The tree of prefixes against every set tested by the definitions."""

from __future__ import annotations

import dataclasses
from itertools import combinations

import numpy as np
import pytest

from formulations.quorumstore import tuning
from formulations.quorumstore.covering.model import scenario_rtt
from formulations.quorumstore.enumeration import screening as misses_module
from formulations.quorumstore.enumeration.compiled_search import CompiledSearch, compiled_available
from formulations.quorumstore.enumeration.compiled_store import CompiledStore
from formulations.quorumstore.enumeration.nearest_sites import NearestSites
from formulations.quorumstore.enumeration.prefix_tree import passing, passing_sets
from formulations.quorumstore.enumeration.screening import RequestWeights, Screen
from placement.quorumstore import (
    LossScope,
    QuorumProblem,
    Redirect,
    StoreRules,
    ThresholdLimits,
    loss_thresholds,
    metrics,
)
from tests.effort import seeds
from tests.quorumstore.instances import random_problem, random_rules


def screens(rng, monkeypatch):
    """A random key with one screen for each of its (N, R, W)."""
    monkeypatch.setattr(tuning, "LANE_CLIENTS", int(rng.choice([2, 3, 14])))
    failures = int(rng.integers(1, 3))
    rules = random_rules(rng, max_replicas=2 * failures + 3, failures=failures)
    problem = random_problem(rng, sites=8, rules=rules)
    values = np.unique(problem.rtt)
    normal, worst = np.sort(rng.choice(values, 2))
    limits = ThresholdLimits(normal, normal, worst, worst)
    lost = failures if rules.contingency else 0
    weights = RequestWeights.of(problem)
    moved = NearestSites.of(problem).moved_rtt if problem.redirects else None
    for pair in problem.pairs:
        screen = Screen.of(problem, weights, pair, limits, failures=lost, moved=moved)
        yield problem, limits, pair, screen


def obeying(problem, limits, pair):
    """Every set within the limits, by the evaluator under every loss."""
    every = np.array(list(combinations(range(len(problem.sites)), pair[0])))
    read, write = loss_thresholds(problem, every, *pair[1:])
    kept = (read[0] <= limits.normal_read) & (write[0] <= limits.normal_write)
    if problem.rules.contingency:
        kept &= (read.max(axis=0) <= limits.worst_read) & (write.max(axis=0) <= limits.worst_write)
    return every, kept


@pytest.mark.parametrize("seed", seeds(12, 60))
def test_nothing_is_lost_and_order_is_kept(seed, monkeypatch):
    """Every set within the limits comes out of the tree, in lexicographic order, once."""
    rng = np.random.default_rng([20, seed])
    for problem, limits, pair, screen in screens(rng, monkeypatch):
        every, kept = obeying(problem, limits, pair)
        found = [tuple(row) for sets in passing_sets(problem, screen) for row in sets.tolist()]
        assert found == sorted(set(found))
        assert {tuple(row) for row in every[kept].tolist()} <= set(found)
        # Complete sets pass on their own iff they pass as leaves of the tree.
        alone = every[passing(screen, every)]
        assert [tuple(row) for row in alone.tolist()] == found


@pytest.mark.parametrize("seed", seeds(8, 40))
def test_without_redirection_the_screen_is_exact(seed, monkeypatch):
    """With clients that stay, or nothing lost, what passes is what obeys the limits."""
    rng = np.random.default_rng([21, seed])
    monkeypatch.setattr(tuning, "LANE_CLIENTS", 3)
    rules = StoreRules(bool(seed % 2), redirect=Redirect.KEEP, read_fraction=0.7, max_replicas=5)
    problem = random_problem(rng, sites=8, rules=rules)
    worst = float(rng.choice(np.unique(problem.rtt)))
    limits = ThresholdLimits(worst, worst, worst, worst)
    weights = RequestWeights.of(problem)
    for pair in problem.pairs:
        screen = Screen.of(problem, weights, pair, limits, failures=seed % 2)
        every, kept = obeying(problem, limits, pair)
        assert passing(screen, every).tolist() == np.flatnonzero(kept).tolist()


def test_clients_of_several_lost_sites_escape_together():
    """Two of three clients that no set can serve are redirected when both their sites are lost.

    What they leave of the slack is then enough for another client; a screen once let only one of
    them escape and dropped the set.
    """
    far = 100.0
    rtt = np.full((7, 7), 10.0)
    for poor in (0, 1, 2):
        rtt[poor] = far
        rtt[poor, poor], rtt[poor, 5] = 1.0, 5.0
    rtt[3, 4], rtt[3, 5], rtt[3, 6] = far, 5.0, 7.0
    rtt[4, 5], rtt[4, 3], rtt[4, 6] = 5.0, 6.0, 7.0
    rules = StoreRules(True, redirect=Redirect.CLOSEST, failures=2, replicas=5)
    problem = QuorumProblem(rtt, [2, 2, 2, 3, 51, 0, 0], [0] * 7, rules=rules)
    limits, pair = ThresholdLimits(10.0, 10.0, 10.0, 10.0), (5, 3, 3)
    every, kept = obeying(problem, limits, pair)
    assert every[kept][0].tolist() == [0, 1, 2, 3, 4]
    moved = NearestSites.of(problem).moved_rtt
    screen = Screen.of(problem, RequestWeights.of(problem), pair, limits, failures=2, moved=moved)
    assert set(np.flatnonzero(kept)) <= set(passing(screen, every))
    if compiled_available():
        assert listed(problem, pair, limits) == every[kept].tolist()


@pytest.mark.skipif(not compiled_available(), reason="the C kernel was not built")
@pytest.mark.parametrize("seed", seeds(24, 120))
def test_the_kernel_lists_exactly_what_obeys(seed):
    """Sites or regions lost, several at once, apart or not: all sets within the limits."""
    rng = np.random.default_rng([23, seed])
    failures = 1 + seed % 3
    fixed = {"failures": failures, "max_replicas": 2 * failures + 2}
    if seed % 6 == 3:
        fixed = {"loss": LossScope.REGION, "distinct_regions": bool(rng.integers(2))}
    problem = random_problem(rng, sites=8, rules=random_rules(rng, **fixed))
    if seed % 6 == 3:
        regions = tuple(rng.choice(["x", "y", "z", "u"], 8))
        problem = dataclasses.replace(problem, regions=regions)
    # Percentiles of the thresholds there are: so that something passes and something does not.
    for pair in problem.pairs:
        every = np.array(list(combinations(range(8), pair[0])))
        figures = metrics(problem, every, *pair[1:])
        columns = (
            figures.normal_read,
            figures.normal_write,
            figures.worst_read,
            figures.worst_write,
        )
        limits = ThresholdLimits(
            *(float(np.quantile(one, 0.7, method="nearest")) for one in columns)
        )
        kept = problem.admissible(every, max(pair[1:])) & np.all(
            [one <= limit for one, limit in zip(columns, dataclasses.astuple(limits), strict=True)],
            axis=0,
        )
        assert listed(problem, pair, limits) == every[kept].tolist()


def listed(problem, pair, limits):
    """Rows that the kernel lists."""
    search = CompiledSearch(CompiledStore.of(problem), problem, problem.goal)
    return [row for sets in search.every(pair, limits) for row in sets.tolist()]


@pytest.mark.parametrize(("size", "quorum", "failures"), [(5, 3, 1), (5, 3, 2), (7, 4, 3)])
def test_missed_losses_are_counted(size, quorum, failures):
    """m(k): ways to lose F of N replicas that leave a client with k outside without a quorum."""
    steps = misses_module.miss_steps(size, quorum, failures, escapes=False)
    for outside in range(size + 1):
        ways = sum(
            len([replica for replica in range(outside, size) if replica not in lost]) < quorum
            for lost in combinations(range(size), failures)
        )
        assert steps[: outside + 1].sum() == ways


@pytest.mark.parametrize("seed", seeds(8, 20))
def test_latency_after_redirection(seed):
    """Rows of the geometry are those of the scenario in which the client's own site is lost."""
    rng = np.random.default_rng([22, seed])
    problem = random_problem(rng, rules=random_rules(rng, contingency=True))
    moved = NearestSites.of(problem).moved_rtt
    for site in range(len(problem.sites)):
        truth = scenario_rtt(problem, (site,))[site]
        kept = np.isfinite(truth)
        assert moved[site, kept].tolist() == truth[kept].tolist()
