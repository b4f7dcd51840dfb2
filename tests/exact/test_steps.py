"""The subgradient steps, in the metric of the weights: a heavy client sets no pace for others."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations.exact.kernel import Incumbent, open_kernel
from formulations.exact.reduced_problem import ReducedProblem
from tests.exact.test_engine import assert_proven, each_kernel
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
@settings(max_examples=20)
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
@settings(max_examples=40)
@given(st.integers(0, 10**9), st.booleans())
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
