"""The subgradient steps, in the metric of the weights: a heavy client sets no pace for others.

Transfers of cost between clients too, which come from such steps.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from formulations.exact.branch_and_bound import search
from formulations.exact.certificate_events import Transfers
from formulations.exact.kernel import Incumbent, Kernel, compiled_available, open_kernel
from formulations.exact.reduced_problem import ReducedProblem
from tests.effort import examples
from tests.exact.rational import Checker
from tests.exact.test_engine import assert_proven, each_kernel
from tests.exact.test_sparse import relayed
from tests.exact.worlds import random_core


def weighted(rng: np.random.Generator, copies: np.ndarray, split: bool) -> ReducedProblem:
    """Return a problem where client c counts `copies[c]` times: by its weight, or in rows."""
    sites, clients = 8, len(copies)
    rtt, between = rng.random((clients, sites)) * 90 + 5, rng.random((sites, sites)) * 90 + 5
    np.fill_diagonal(between, 0)
    relay = rng.random(clients)
    weight = np.ones(int(copies.sum())) if split else copies.astype(float)
    rows = np.repeat(np.arange(clients), copies if split else 1)
    weights = (weight, weight * relay[rows], weight, 0.1 * float(copies.sum()))
    return ReducedProblem.of_arrays(rtt[rows], between, weights, replicas=(3, 3), voters=3)


@each_kernel
@settings(max_examples=examples(20, 8))
@given(st.integers(0, 10**9), st.integers(1, 8))
def test_a_weight_steps_as_so_many_clients_do(kernel, seed, steps):
    copies = np.random.default_rng(seed).integers(1, 40, 12)
    bounds = []
    for split in (False, True):
        core = weighted(np.random.default_rng(seed), copies, split)
        opened = open_kernel(core, kernel)
        opened.propose(Incumbent(100.0 * float(copies.sum()), 0, (0, 1, 2)))
        start = np.zeros(len(core.active))
        bounds.append(
            [opened.bound_root(leader, start.copy(), steps, 0, True, 60.0) for leader in range(8)]
        )
    assert bounds[0] == pytest.approx(bounds[1], rel=1e-9)


@each_kernel
@settings(max_examples=examples(40, 12))
@given(st.integers(0, 10**9), st.booleans())
@example(166, False)  # both sides of a site are closed before its kernel is opened
def test_weights_of_any_size_are_proven(kernel, seed, inflated):
    # from next to nothing to half of everything: lengths of steps stay numbers
    core = random_core(seed, plain=True)
    rng = np.random.default_rng([seed, 1])
    share = 10.0 ** -rng.integers(0, 14, core.clients)
    share[rng.integers(core.clients)] = 1e-290
    weights = [w[0] * share for w in (core.demand.near, core.demand.relay, core.demand.direct)]
    rules = core.rules
    assert_proven(
        ReducedProblem.of_arrays(
            core.client_rtt,
            core.site_rtt,
            (*weights, core.quorum_weight),
            replicas=(rules.replicas_min, rules.replicas_max),
            voters=rules.voters,
        ),
        kernel,
        inflated=inflated,
    )


@pytest.mark.skipif(not compiled_available(), reason="the C kernel was not built")
def test_a_tree_that_begins_anew_keeps_its_bound():
    core = relayed(3, 30, 50, 6, 0.0)
    optimum = search(core, certify=False)
    assert optimum.configuration is not None
    kernel = open_kernel(core, "compiled")
    kernel.compiled.set_size_limits(kernel.context, 1e9, 1.0, 60, 50, 0.0, 0)
    kernel.propose(Incumbent(optimum.score * 1.01, -2, ()))
    leader = optimum.configuration.leader
    kernel.open_trees([leader], np.zeros((1, len(core.active))), np.zeros(1))
    bounds, nodes = [0.0], []
    while not kernel.run(1.0, 60.0):
        nodes.append(kernel.counters().nodes)
        bounds.append(float(kernel.tree_bounds([leader])[0]))
        assert bounds[-1] >= bounds[-2] * (1 - 1e-12)
        assert bounds[-1] <= optimum.score * (1 + 1e-12)
    assert nodes[-1] > 60


# --- transfers of cost -------------------------------------------------------------------------

needs_compiled = pytest.mark.skipif(not compiled_available(), reason="no compiled kernel")


def moved(result) -> int:
    """Return the number of transfers in a certificate."""
    return sum(
        len(event.entries)
        for proof in result.certificate.leaders
        for event in proof.events
        if isinstance(event, Transfers)
    )


@needs_compiled
@settings(max_examples=examples(12), deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["tight", "sparse"]))
def test_proofs_with_transfers_hold_in_rational_numbers(seed, which):
    core = relayed(seed, 12, 16, 4, 0.1)
    usual = search(core, kernel="compiled")
    found = search(core, kernel=which)
    assert found.score == pytest.approx(usual.score, rel=1e-12)
    Checker(core, found.certificate).check()


@needs_compiled
def test_transfers_raise_the_bound_and_shrink_the_tree():
    core = relayed(1, 40, 60, 6, 0.1)
    best = search(core, kernel="compiled", certify=False)
    leader, found = best.configuration.leader, {}
    for transfers in (False, True):
        kernel = Kernel(core)
        kernel.propose(Incumbent(best.score, -2, ()))
        kernel.compiled.set_size_limits(kernel.context, 1e18, 1.0, 1, 50, 1e18, int(transfers))
        kernel.open_trees([leader], np.zeros((1, len(core.active))), np.zeros(1))
        while kernel.counters().nodes < 4 and not kernel.run(1.0, 60.0):
            pass
        bound = float(kernel.tree_bounds([leader])[0])
        assert kernel.run(np.inf, 60.0)
        found[transfers] = bound, kernel.counters().nodes
    assert found[False][0] < found[True][0] <= best.score * (1 + 1e-9)
    assert found[True][1] < found[False][1]


def evaluations(core: ReducedProblem, leaders: list[int], score: float) -> int:
    """Return the bounds that prove leaders in one search, with transfers from the start."""
    kernel = Kernel(core)
    kernel.propose(Incumbent(score, -2, ()))
    kernel.compiled.set_size_limits(kernel.context, 1e18, 1.0, 1, 50, 1e18, 1)
    kernel.open_trees(leaders, np.zeros((len(leaders), len(core.active))), np.zeros(len(leaders)))
    assert kernel.run(np.inf, 60.0)
    return kernel.counters().evaluations


@needs_compiled
@pytest.mark.parametrize(
    "seed", [3, *(pytest.param(k, marks=pytest.mark.slow) for k in range(4, 9))]
)
@pytest.mark.parametrize("inflated", [None, 1.02])
def test_proofs_with_transfers_of_several_leaders_hold(seed, inflated):
    core = relayed(seed, 18, 25, 5, 0.1)
    usual = search(core, kernel="compiled")
    pretended = None if inflated is None else usual.score * inflated
    found = search(core, kernel="tight", pretend=pretended)
    assert found.score == pytest.approx(usual.score, rel=1e-12)
    with_transfers = [
        proof
        for proof in found.certificate.leaders
        if any(isinstance(event, Transfers) for event in proof.events)
    ]
    assert len(with_transfers) >= (2 if seed in (3, 4, 5) else 0)
    Checker(core, found.certificate).check()
