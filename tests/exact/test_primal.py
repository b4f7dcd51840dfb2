"""Swap descents among promising sites, and the engine that looks there for an incumbent."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulations.exact import branch_and_bound as engine
from formulations.exact import tuning
from formulations.exact.p_median import p_median_descents as primal
from formulations.exact.p_median.p_median_descents import descents, promising_sites, reduced_costs
from formulations.exact.reduced_problem import ReducedProblem
from placement.support.status import Status
from tests.effort import seeds
from tests.exact.rational import Checker
from tests.exact.test_linear import drawn, p_median
from tests.exact.worlds import brute_force


def cost_of(core: ReducedProblem, replicas: tuple[int, ...]) -> float:
    """Objective of a p-median set, written out client by client; +∞ when it breaks a cap."""
    for group in core.rules.of("replicas"):
        labels = [int(group.labels[site]) for site in replicas]
        if group.cap is not None and any(labels.count(one) > group.cap for one in labels):
            return math.inf
    total = 0.0 if core.price is None else sum(float(core.price[0, r]) for r in replicas)
    for weight, row in zip(core.demand.near[0], core.client_rtt, strict=True):
        total += float(weight) * min(float(row[r]) for r in replicas)
    return total


@given(st.integers(0, 10**9))
def test_descents_end_in_local_optima_that_obey_the_rules(seed):
    core = p_median(seed)
    rules = core.rules
    sites = promising_sites(core, np.zeros(core.sites))
    starts = [
        one
        for one in combinations(sites.tolist(), rules.replicas_min)
        if set(np.nonzero(rules.must_hold)[0]) <= set(one) and cost_of(core, one) < math.inf
    ]
    if not starts:
        return
    start = starts[seed % len(starts)]
    found = list(descents(core, sites, start, 60, math.inf))
    assert found
    assert cost_of(core, found[0]) <= cost_of(core, start) * (1 + 1e-9)
    for replicas in found[:-1]:  # the passes may end before the last descent does
        assert len(replicas) == len(start)
        value = cost_of(core, replicas)
        for old in set(replicas) - set(np.nonzero(rules.must_hold)[0].tolist()):
            for new in set(sites.tolist()) - set(replicas):
                changed = tuple({*replicas, new} - {old})
                assert cost_of(core, changed) >= value * (1 - 2e-9) - 1e-12


@given(st.integers(0, 10**9))
def test_reduced_costs_are_those_of_the_definition(seed):
    core = p_median(seed)
    u = np.random.default_rng(seed).random(len(core.active)) * core.client_rtt.max()
    expected = np.zeros(core.sites) if core.price is None else core.price[0].copy()
    for site in range(core.sites):
        for value, client in zip(u, core.active, strict=True):
            cost = core.demand.near[0][client] * core.client_rtt[client, site]
            expected[site] += min(0.0, cost - value)
    assert reduced_costs(core, u) == pytest.approx(expected, rel=1e-12, abs=1e-9)


def test_promising_are_the_cheapest_and_those_that_must_be_there():
    rng = np.random.default_rng(7)
    must, may = np.zeros(500, dtype=bool), np.ones(500, dtype=bool)
    must[[3, 499]], may[:3] = True, False
    zero = np.zeros(4)
    core = ReducedProblem.of_arrays(
        rng.random((4, 500)),
        np.zeros((500, 500)),
        (np.ones(4), zero, zero, 0.0),
        replicas=(4, 5),
        voters=1,
        must_hold=must,
        may_hold=may,
    )
    reduced = -np.arange(500.0)[::-1]  # the first are the cheapest
    chosen = promising_sites(core, reduced)
    assert chosen.tolist() == [*range(3, 202), 499]


@pytest.mark.parametrize("seed", seeds(1, 4))
def test_descents_find_the_optimum_of_a_network(seed):
    core = drawn(40, 3, seed)
    start = (0, 1, 2)
    best = min(cost_of(core, one) for one in combinations(range(40), 3))
    found = descents(core, np.arange(40), start, 150, math.inf)
    assert min(cost_of(core, replicas) for replicas in found) == best


@pytest.mark.parametrize("exponent", [0.0, 9.0])
@given(st.integers(0, 10**9))
def test_engine_that_begins_anew_proves_the_optimum(exponent, seed):
    core = p_median(seed)
    best = brute_force(core)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tuning, "PREPARE_BOUNDS", 0.0)
        patch.setattr(tuning, "LONG_STEPS", 25)
        patch.setattr(tuning, "RELAX_EXPONENT", exponent)
        patch.setattr(tuning, "CHUNK_WORK", 1.0)
        patch.setattr(tuning, "SCAN_STEPS", 1)
        patch.setattr(tuning, "SCAN_SWAPS", 1)
        result = engine.search(core)
    if math.isinf(best):
        assert result.status is Status.INFEASIBLE
        return
    assert result.status is Status.OPTIMAL
    assert result.score == pytest.approx(best, rel=1e-9, abs=1e-12)
    assert result.certificate is not None
    Checker(core, result.certificate).check()


@pytest.mark.parametrize("when", ["root bound", "descents"])
def test_interrupt_while_beginning_anew_claims_no_more_than_was_proven(when, monkeypatch):
    core = drawn(120, 8, 1)
    optimum = engine.search(core).score
    monkeypatch.setattr(tuning, "PREPARE_BOUNDS", 0.0)
    monkeypatch.setattr(tuning, "CHUNK_WORK", 1.0)
    monkeypatch.setattr(tuning, "SCAN_STEPS", 1)
    began = engine._BranchAndBound.restart_tree

    def stop(*arguments: object) -> None:
        raise KeyboardInterrupt

    def anew(work, leader, u, steps, swaps):
        if when == "root bound":
            # what a kernel is like when Ctrl-C comes in the middle of a root bound: without a tree
            bound_root = work.kernel.bound_root

            def half(*arguments):
                bound_root(*arguments)
                raise KeyboardInterrupt

            work.kernel.bound_root = half
        began(work, leader, u, steps, swaps)

    monkeypatch.setattr(engine._BranchAndBound, "restart_tree", anew)
    if when == "descents":
        monkeypatch.setattr(primal, "descents", stop)
    result = engine.search(core)
    assert result.termination is engine.Termination.INTERRUPTED
    assert result.status is Status.FEASIBLE
    assert result.bound < optimum <= result.score
