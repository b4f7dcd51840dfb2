"""Sparse frames of the compiled kernel: the same optima as dense ones, by trees as good."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations.exact.branch_and_bound import search
from formulations.exact.kernel import compiled_available, open_kernel
from formulations.exact.reduced_problem import ReducedProblem
from placement.support.status import Status
from tests.effort import examples
from tests.exact.rational import Checker

pytestmark = pytest.mark.skipif(not compiled_available(), reason="the C kernel was not built")


def relayed(seed: int, sites: int, clients: int, replicas: int, weak: float) -> ReducedProblem:
    """Points in a square; reads are relayed but for the share `weak`: closest assignment binds."""
    rng = np.random.default_rng(seed)
    points, homes = 100 * rng.random((sites, 2)), 100 * rng.random((clients, 2))
    between = np.linalg.norm(points[:, None] - points, axis=-1)
    noise = 1 + 0.2 * rng.random((clients, sites))
    rtt = noise * np.linalg.norm(homes[:, None] - points, axis=-1)
    reads = rng.integers(1, 50, clients).astype(float)
    relay = np.rint((1 - weak) * reads)
    direct = rng.integers(0, 9, clients)
    return ReducedProblem.of_arrays(
        rtt, between, (reads, relay, direct, 40.0), replicas=(replicas, replicas), voters=3
    )


@settings(max_examples=examples(12), deadline=None)
@given(st.integers(0, 10**6), st.integers(4, 7), st.sampled_from([0.0, 0.1, 0.5, 1.0]))
def test_same_optimum_with_a_proof_in_rational_arithmetic(seed, replicas, weak):
    core = relayed(seed, 16, 25, replicas, weak)
    dense = search(core, kernel="compiled", certify=False)
    sparse = search(core, kernel="sparse")
    assert sparse.status is dense.status is Status.OPTIMAL
    assert sparse.score == pytest.approx(dense.score, rel=1e-9)
    assert sparse.certificate is not None
    Checker(core, sparse.certificate).check()


def test_bounds_under_one_leader_never_pass_the_optimum():
    core = relayed(3, 30, 50, 6, 0.0)
    optimum = search(core, kernel="compiled", certify=False)
    assert optimum.configuration is not None
    kernel = open_kernel(core, "sparse")
    leader = optimum.configuration.leader
    kernel.open_trees([leader], np.zeros((1, len(core.active))), np.zeros(1))
    last, finished, found = 0.0, False, None
    while not finished:
        finished = kernel.run(1e4, 60.0)
        found = kernel.incumbent()
        bound = (
            float(kernel.tree_bounds([leader])[0])
            if found is None
            else min(float(kernel.tree_bounds([leader])[0]), found.score)
        )
        assert last - 1e-9 * abs(last) <= bound <= optimum.score * (1 + 1e-9)
        last = bound
    assert found is not None
    assert found.score == pytest.approx(optimum.score, rel=1e-9)


@pytest.mark.parametrize(("cells", "share"), [(-1.0, 0.5), (float("nan"), 0.5), (0.0, 1.5)])
def test_a_wrong_threshold_is_refused(cells, share):
    import formulations.exact._kernel as compiled

    context = open_kernel(relayed(1, 5, 5, 3, 0.0), "compiled").context
    with pytest.raises(ValueError, match="not a number of cells"):
        compiled.set_size_limits(context, cells, share, 1, 1, 0.0, 0)
