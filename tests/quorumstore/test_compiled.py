"""The compiled search against the NumPy one: the same plans, to the last bit."""

from __future__ import annotations

import dataclasses
import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulations.quorumstore.enumeration import compiled_search as compiled_module
from formulations.quorumstore.enumeration.compiled_search import CompiledSearch, compiled_available
from formulations.quorumstore.enumeration.compiled_store import CompiledStore
from formulations.quorumstore.enumeration.enumeration import Enumeration, solve
from formulations.quorumstore.enumeration.nearest_sites import SetTables
from placement.errors import InputError
from placement.quorumstore import (
    Goal,
    LossScope,
    QuorumProblem,
    Redirect,
    StoreRules,
    Target,
    ThresholdLimits,
)
from placement.support.status import Termination
from tests.effort import seeds
from tests.quorumstore.instances import random_problem, random_rules

needs_kernel = pytest.mark.skipif(not compiled_available(), reason="the C kernel was not built")


def assert_alike(problem: QuorumProblem) -> None:
    """Assert equal value, status and configuration; same ties, whatever order they come in."""
    ours = Enumeration(SetTables.of(problem), "compiled")
    theirs = Enumeration(SetTables.of(problem), "numpy")
    one, other = ours.solve(problem), theirs.solve(problem)
    assert (one.value, one.bound, one.status) == (other.value, other.bound, other.status)
    assert one.configuration == other.configuration
    values, ties = zip(ours.optima(problem), theirs.optima(problem), strict=True)
    assert values[0] == values[1]
    listed = [
        sorted((tuple(row), group.read) for group in some for row in group.sets.tolist())
        for some in ties
    ]
    assert listed[0] == listed[1]


@needs_kernel
@given(st.integers(0, 2**32 - 1), st.integers(4, 9), st.sampled_from([1, 1, 2, 3]))
def test_same_plans(seed, sites, failures):
    """All rules and percentiles, ties and silent sites, up to three sites lost."""
    rng = np.random.default_rng([50, seed])
    largest = 2 * failures + 1 + int(rng.integers(0, 3))
    rules = random_rules(rng, max_replicas=largest, failures=failures)
    problem = random_problem(rng, sites=sites, rules=rules)
    target = list(Target)[rng.integers(4)]
    bounds = {}
    if rng.integers(2):
        bounds["read_bound"] = float(rng.choice(problem.rtt.ravel()))
    if rules.contingency and rng.integers(2):
        bounds |= {"normal_weight": 1.0, "worst_weight": float(rng.integers(0, 2))}
    problem = problem.with_goal(Goal(target, **bounds))
    if not problem.pairs:
        return
    assert_alike(problem)


@needs_kernel
@pytest.mark.parametrize("seed", seeds(8, 24))
def test_regions(seed):
    """Regions lost, or kept apart."""
    rng = np.random.default_rng([51, seed])
    loss = {"loss": LossScope.REGION} if seed % 2 else {}
    rules = random_rules(rng, distinct_regions=seed % 3 == 0, max_replicas=6, **loss)
    problem = random_problem(rng, sites=9, rules=rules)
    regions = tuple(rng.choice(["p", "q", "r", "s", "t"], 9))
    assert_alike(dataclasses.replace(problem, regions=regions))


@needs_kernel
@pytest.mark.parametrize("sites", [63, 64, 65, 130])
@pytest.mark.parametrize("redirect", [None, Redirect.KEEP, Redirect.HOP])
def test_more_clients_than_bits_of_a_word(sites, redirect):
    """One word, exactly one, one more, three."""
    rng = np.random.default_rng([52, sites])
    rtt = rng.integers(1, 300, (sites, sites)).astype(float)
    rules = StoreRules(
        redirect is not None,
        redirect=redirect or Redirect.HOP,
        replicas=3,
        read_fraction=0.5,
        write_fraction=0.3,
    )
    assert_alike(
        QuorumProblem(rtt, rng.integers(1, 9, sites), rng.integers(0, 4, sites), rules=rules)
    )


@needs_kernel
def test_counts_near_the_largest():
    """Totals just below 2^48: sums of requests are exact, one too few is too few."""
    heavy = 2**48 // 12
    rng = np.random.default_rng(53)
    for _ in range(20):
        rtt = rng.uniform(1, 100, (7, 7))
        reads = rng.integers(heavy // 2, heavy, 7) + rng.integers(0, 2, 7)
        for redirect in Redirect:
            rules = StoreRules(True, redirect=redirect, failures=int(rng.integers(1, 3)))
            assert_alike(QuorumProblem(rtt, reads, reads[::-1] // 3, rules=rules))


@needs_kernel
@pytest.mark.parametrize("model", [StoreRules(), StoreRules(True)])
def test_one_value_for_everything(model):
    """Every set is optimal: the tie rule decides among all of them."""
    assert_alike(QuorumProblem(np.full((9, 9), 3.0), [1] * 9, [1] * 9, rules=model))
    assert_alike(QuorumProblem(np.zeros((8, 8)), [0, 0, 2] + [0] * 5, [0] * 8, rules=model))


@needs_kernel
def test_probing_keeps_to_the_rules():
    """A set that breaks the regional rules is no incumbent; one that obeys them is."""
    rng = np.random.default_rng(54)
    regions = ("x", "x", "y", "z", "u")
    problem = QuorumProblem(
        rng.uniform(1, 9, (5, 5)),
        [1] * 5,
        [1] * 5,
        regions=regions,
        rules=StoreRules(True, distinct_regions=True, replicas=3),
    )
    search = CompiledSearch(CompiledStore.of(problem), problem, problem.goal)
    search.probe(np.array([[0, 1, 2]]), 2, 2)
    assert (search.value, search.incumbent) == (math.inf, None)
    search.probe(np.array([[0, 1, 2], [0, 2, 4]]), 2, 2)
    assert search.incumbent is not None
    assert search.incumbent.replicas == (0, 2, 4)
    assert math.isfinite(search.value)


@needs_kernel
def test_malformed_input_is_refused():
    """Arrays that do not fit raise an error; nothing is read beyond a buffer."""
    problem = QuorumProblem(np.ones((5, 5)), [1] * 5, [1] * 5, rules=StoreRules(True))
    search = CompiledSearch(CompiledStore.of(problem), problem, problem.goal)
    for rows in ([[0, 1, 5]], [[0, 2, 1]], [[-1, 0, 1]], [[1, 1, 2]]):
        with pytest.raises(ValueError, match=r"rows|range"):
            search.probe(np.array(rows), 2, 2)
    with pytest.raises(ValueError, match="no such"):
        search.sets((3, 2, 2), 7, ThresholdLimits())


def test_choice_of_kernel(monkeypatch):
    """Unknown names and kernels that were not built are refused, "auto" takes what there is."""
    problem = random_problem(np.random.default_rng(55))
    with pytest.raises(InputError, match="unknown kernel"):
        solve(problem, kernel="fortran")
    monkeypatch.setattr(compiled_module, "compiled_available", lambda: False)
    with pytest.raises(InputError, match="not built"):
        solve(problem, kernel="compiled")
    assert not Enumeration(SetTables.of(problem)).compiled


INTERRUPTED = """
import json, os, signal, sys, threading
import numpy as np
from formulations.quorumstore.enumeration.enumeration import Enumeration
from formulations.quorumstore.enumeration.nearest_sites import SetTables
from placement.quorumstore import QuorumProblem, StoreRules

rng = np.random.default_rng(1)
rtt = rng.uniform(1, 300, (100, 100))
problem = QuorumProblem(
    rtt, rng.integers(1, 50, 100), rng.integers(1, 50, 100),
    rules=StoreRules(True, max_replicas=9, replicas=9),
)
solver = Enumeration(SetTables.of(problem, most_sets=10**15), "compiled")
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
plan = solver.solve(problem)
json.dump([plan.termination, plan.bound, plan.value], sys.stdout)
"""


@needs_kernel
def test_signal_reaches_the_compiled_search():
    """In a process of its own, so that a signal that came late would interrupt nothing else."""
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=300, cwd=root
    )
    assert done.returncode == 0, done.stderr
    termination, bound, value = json.loads(done.stdout)
    assert termination == Termination.INTERRUPTED
    assert 0 < bound <= value
