"""Time limits of nothing and of moments on large worlds, for the engine and its kernels."""

from __future__ import annotations

import time

import numpy as np
import pytest

from formulations.exact.branch_and_bound import SearchLimits, search
from formulations.exact.kernel import compiled_available, open_kernel
from formulations.exact.reduced_problem import ReducedProblem
from placement.support.status import Status

needs_compiled = pytest.mark.skipif(not compiled_available(), reason="no compiled kernel")

LATE = 1.0
"""Seconds that a busy machine may be late; without a clock these searches take many times that."""


def world(
    sites: int, replicas: tuple[int, int], voters: int, relayed: bool = True
) -> ReducedProblem:
    """Return a drawn problem whose clients sit between the sites."""
    rng = np.random.default_rng(sites)
    points, homes = rng.random((sites, 2)), rng.random((sites, 2))
    between = 100 * np.linalg.norm(points[:, None] - points, axis=-1)
    weight = rng.lognormal(0, 1, sites)
    zero = np.zeros(sites)
    return ReducedProblem.of_arrays(
        100 * np.linalg.norm(homes[:, None] - points, axis=-1),
        between,
        (weight, weight, weight, float(weight.sum())) if relayed else (weight, zero, zero, 0.0),
        replicas=replicas,
        voters=voters,
    )


@pytest.mark.parametrize("limit", [0.0, 0.05, pytest.param(0.5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("replicas", [(9, 9), (60, 60), (5, 40)])
@pytest.mark.parametrize("relayed", [True, False])
@needs_compiled
def test_a_search_ends_at_its_limit(relayed, replicas, limit):
    core = world(400, replicas, 5 if relayed else 1, relayed)
    opened = open_kernel(core)
    began = time.perf_counter()
    result = search(core, limits=SearchLimits(seconds=limit), kernel=opened, certify=False)
    assert time.perf_counter() - began < limit + LATE
    assert result.status in (Status.FEASIBLE, Status.OPTIMAL)


@needs_compiled
def test_growing_to_another_size_ends_at_its_limit():
    core = world(400, (5, 5), 3)
    opened = open_kernel(core)
    search(core, limits=SearchLimits(seconds=0.0), kernel=opened, certify=False)
    assert opened.incumbent() is not None
    began = time.perf_counter()
    opened.resize(world(400, (300, 300), 3), 0.0)
    assert time.perf_counter() - began < LATE
    assert opened.incumbent() is None
