"""Drawn calls of the three C kernels: thousands under ``make sanitize``, a few in every run.

The sanitizers find reads and writes out of bounds and undefined arithmetic. That a kernel answers
as its counterpart in Python does is tested where the kernel belongs.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulations.exact.branch_and_bound import SearchLimits, search
from formulations.exact.kernel import compiled_available as exact_available
from formulations.quorumstore.enumeration import Enumeration
from formulations.quorumstore.enumeration import compiled_available as sets_available
from heuristics.online.selection import run
from heuristics.online.selection.run_policy import compiled_available as selection_available
from placement.support.status import Status
from tests.exact.worlds import random_core
from tests.online.selection.worlds import ALL, paths
from tests.quorumstore.instances import random_problem, random_rules


@pytest.mark.skipif(not exact_available(), reason="the C kernel was not built")
@given(
    st.integers(0, 10**9),
    st.sampled_from(["compiled", "tight", "sparse"]),
    st.sampled_from([1, 5, 12]),
    st.sampled_from([1, 9, 40]),
    st.sampled_from([0.0, 0.002, math.inf]),
)
def test_exact(seed: int, kernel: str, sites: int, clients: int, seconds: float) -> None:
    core = random_core(seed, max_sites=sites, max_clients=clients, plain=seed % 2 == 0)
    result = search(core, kernel=kernel, limits=SearchLimits(seconds=seconds))
    if result.configuration is not None:
        assert core.score(result.configuration) == result.score
        assert result.bound <= result.score
    elif math.isinf(seconds):
        assert result.status is Status.INFEASIBLE


@pytest.mark.skipif(not sets_available(), reason="the C kernel was not built")
@given(st.integers(0, 2**32 - 1), st.integers(4, 10), st.sampled_from([1, 1, 2, 3]))
def test_sets(seed: int, sites: int, failures: int) -> None:
    rng = np.random.default_rng(seed)
    largest = 2 * failures + 1 + int(rng.integers(0, 3))
    rules = random_rules(rng, max_replicas=largest, failures=failures)
    problem = random_problem(rng, sites=sites, rules=rules)
    if not problem.pairs:
        return
    search = Enumeration()
    plan = search.solve(problem)
    assert plan.bound <= plan.value
    assert search.optima(problem)[0] == plan.value


@pytest.mark.skipif(not selection_available(), reason="the C kernel was not built")
@given(paths(), st.sampled_from(ALL))
def test_selection(sample, policy) -> None:
    done = run(sample, policy)
    assert len(done.latency) == len(sample.arrival)
    assert (np.asarray(done.latency) >= 0).all()
