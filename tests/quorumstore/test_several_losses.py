"""Several sites lost at once: the short way of the evaluator against every scenario."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from placement.quorumstore import Redirect, loss_thresholds, metrics
from tests.quorumstore.instances import random_problem, random_rules


@pytest.mark.parametrize("seed", range(40))
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
