"""A gap that is allowed: less to search, the bound still proven, never a gap above it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulations.exact import tuning
from formulations.exact.branch_and_bound import SearchLimits, search
from formulations.exact.kernel import open_kernel
from formulations.exact.method import METHOD
from placement import Problem, load
from placement.methods.options import Options
from placement.methods.registry import run
from placement.proof.certificate_check import check_certificate
from placement.support.status import Status, Termination
from tests.effort import seeds
from tests.exact.rational import Checker
from tests.exact.test_engine import each_kernel, spread_out
from tests.exact.test_linear import drawn
from tests.exact.worlds import brute_force, random_core
from tests.protocols.worlds import world


@each_kernel
@given(st.integers(0, 10**9), st.sampled_from([1e-3, 0.05, 0.5, 2.0]))
def test_bound_and_gap_hold_under_every_rule(kernel, seed, gap):
    core = random_core(seed)
    best = brute_force(core)
    result = search(core, kernel=kernel, limits=SearchLimits(gap=gap))
    if math.isinf(best):
        assert result.status is Status.INFEASIBLE
        return
    assert result.bound <= best * (1 + 1e-12)
    assert best <= result.score * (1 + 1e-12)
    assert result.score - result.bound <= gap * result.score * (1 + 1e-12)
    if result.status is Status.FEASIBLE:
        assert result.termination is Termination.GAP_LIMIT
    if result.certificate is not None:
        assert result.certificate.bound == result.bound
        Checker(core, result.certificate).check()


def test_a_gap_of_one_search_is_not_that_of_the_next():
    core = spread_out(24, 30, seed=3, size=6, voters=3)
    kernel = open_kernel(core)
    search(core, kernel=kernel, limits=SearchLimits(gap=0.2))
    kernel.resize(core, 60.0)
    assert search(core, kernel=kernel).status is Status.OPTIMAL


def test_the_tree_of_the_relaxation_keeps_the_gap(monkeypatch):
    monkeypatch.setattr(tuning, "RELAX_EXPONENT", 0.5)  # the rival comes early
    core = drawn(60, 8, 3)
    proven, near = (search(core, limits=SearchLimits(gap=gap)) for gap in (0.0, 0.02))
    assert near.bound <= proven.score <= near.score
    assert near.score - near.bound <= 0.02 * near.score


def test_the_certificate_of_a_gap_is_checked_and_proves_no_more():
    problem = Problem(load("azure", mix="oltp"), replicas=7, voters=3)
    plan = run(METHOD, problem, Options(gap_limit=0.002))
    assert (plan.status, plan.termination) == ("feasible", "gap limit")
    assert plan.gap <= 0.002
    assert plan.certificate is not None
    checked = check_certificate(plan)
    assert checked.bound == plan.bound < plan.objective


@pytest.mark.parametrize("part", seeds(4, 40))
def test_sites_that_go_out_beyond_the_gap_are_bounded(part):
    """Waits too long for the cutoff are left out where sites are fixed, and may be the best."""
    for seed in range(12 * part, 12 * part + 12):
        rng = np.random.default_rng([seed, 5])
        one = world(seed, sites=int(rng.integers(4, 7)), clients=int(rng.integers(1, 5)))
        lopsided = one.site_rtt + rng.integers(0, 4, one.site_rtt.shape) * 30.0
        np.fill_diagonal(lopsided, 0)
        problem = Problem(
            one.replace(site_rtt=lopsided),
            replicas=4,
            voters=3,
            protocol=str(rng.choice(["leases", "leases", "raft"])),
        )
        best = run(METHOD, problem, Options()).objective
        for gap in (0.05, 0.2):
            plan = run(METHOD, problem, Options(gap_limit=gap))
            assert plan.bound <= best * (1 + 1e-12), seed
            assert plan.objective - plan.bound <= gap * plan.objective * (1 + 1e-9)
            assert check_certificate(plan).bound <= best * (1 + 1e-12)
