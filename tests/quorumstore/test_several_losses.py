"""Several sites lost at once: the evaluator against every scenario, written out."""

from __future__ import annotations

import dataclasses
from itertools import combinations

import numpy as np
import pytest

from placement.quorumstore import LossScope, Redirect, loss_thresholds, metrics
from placement.quorumstore import latency as latency_module
from tests.effort import seeds
from tests.quorumstore.instances import random_problem, random_rules
from tests.quorumstore.referee import scenario_matrix, thresholds


@pytest.mark.parametrize("seed", seeds(8, 30))
def test_every_scenario_by_the_definition(seed, monkeypatch):
    """Pairs, triples and regions lost: each scenario as its latency matrix says, in any slices."""
    monkeypatch.setattr(latency_module, "_CELLS", int(10 ** (seed % 3 * 3)))
    rng = np.random.default_rng([31, seed])
    fixed = {"failures": 2 + seed % 2} if seed % 5 else {"loss": LossScope.REGION}
    rules = random_rules(rng, contingency=True, redirect=list(Redirect)[seed % 3], **fixed)
    problem = random_problem(rng, sites=6, rules=rules)
    regions = tuple(rng.choice(["x", "y", "z"], 6))
    problem = dataclasses.replace(problem, regions=regions)
    for size in (4, 5):
        sets = np.array(list(combinations(range(6), size)))[:: 1 + seed % 3]
        read, write = (int(quorum) for quorum in rng.integers(1, size + 1, 2))
        reads, writes = loss_thresholds(problem, sets, read, write)
        for row, lost in enumerate([(), *problem.losses]):
            matrix = scenario_matrix(problem, lost)
            for column, replicas in enumerate(sets.tolist()):
                truth = thresholds(problem, matrix, replicas, read, write)
                assert (reads[row, column], writes[row, column]) == truth


@pytest.mark.parametrize("seed", seeds(8, 40))
def test_worst_of_all_scenarios(seed):
    """The worst thresholds are the maxima over all losses of F sites, replicas or not."""
    rng = np.random.default_rng([30, seed])
    rules = random_rules(
        rng, contingency=True, redirect=list(Redirect)[seed % 3], failures=2 + seed % 2
    )
    problem = random_problem(rng, sites=6, rules=rules)
    for size in (3, 4, 5):
        sets = np.array(list(combinations(range(6), size)))
        read, write = (int(quorum) for quorum in rng.integers(1, size + 1, 2))
        figures = metrics(problem, sets, read, write)
        reads, writes = loss_thresholds(problem, sets, read, write)
        assert figures.worst_read.tolist() == reads.max(axis=0).tolist()
        assert figures.worst_write.tolist() == writes.max(axis=0).tolist()
