"""Every heuristic on every kind of problem, against plain enumeration.

A plan exactly when one exists, never better than the optimum, with a bound never above it, and the
same plan for the same seed.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings

from placement import Problem, Status
from placement.methods.options import Options
from placement.methods.registry import load_method, refusal, run
from tests import reference
from tests.effort import examples
from tests.strategies import ALL, Kind, problems

HARD: frozenset[Kind] = frozenset(
    {"budget", "crossing", "min_domains", "nested_caps", "pinned", "range", "replica_caps"}
)
"""Kinds that shut sites out one by one; drawn from all kinds they seldom meet."""

METHODS = (
    "best-cov", "best-mean", "best-of", "closest-to-writes", "kq", "local-search", "max-diversity",
    "most-writes", "nearest-centroid", "p-median-first", "qk", "smallest-quorum",
)  # fmt: skip


def located(problem: Problem) -> Problem:
    """Give sites and clients coordinates, which one baseline asks for."""
    instance = problem.instance
    rng = np.random.default_rng(len(instance.sites))

    def places(count: int) -> np.ndarray:
        return rng.uniform([-60, -180], [70, 180], (count, 2))

    return problem.replace(
        instance=instance.replace(
            site_coordinates=places(len(instance.sites)),
            client_coordinates=places(len(instance.clients)),
        )
    )


def check(problem: Problem) -> dict[str, float]:
    """Hold every method's plan against all configurations; return the objectives."""
    problem = located(problem)
    best = reference.solve(problem)
    found = {}
    for name in METHODS:
        method = load_method(name)
        if refusal(method, problem) is not None:
            continue
        plan = run(method, problem, Options(seed=3))
        assert plan.found == (best is not None), name
        if best is None:
            assert plan.status is Status.INFEASIBLE, name
            assert plan.reasons, name
            continue
        slack = 1e-9 * abs(best.objective) + 1e-12
        assert plan.objective >= best.objective - slack, name
        assert plan.bound <= best.objective + slack, name
        if plan.status is Status.OPTIMAL:
            assert plan.objective <= best.objective + slack, name
        again = run(method, problem, Options(seed=3))
        assert again.configuration == plan.configuration, name
        found[name] = plan.objective
    return found


@pytest.mark.parametrize("tier", [1, 2, 3])
def test_a_plan_whenever_there_is_one(tier: int) -> None:
    @settings(max_examples=examples(125, 5))
    @given(problems(kinds=ALL, max_sites=6, max_clients=6, tier=tier))
    def drawn(problem: Problem) -> None:
        found = check(problem)
        if found:
            assert found["best-of"] == min(found["kq"], found["qk"])
            assert found["local-search"] <= found["best-of"] * (1 + 1e-12)

    drawn()


@given(problems(kinds=HARD, min_sites=4, max_sites=6, max_clients=5))
def test_a_plan_whenever_there_is_one_in_spite_of_hard_rules(problem: Problem) -> None:
    check(problem)


@given(problems(kinds=ALL, max_sites=7, tier=2))
def test_tier_2_is_solved_by_those_that_contain_algorithm_2(problem: Problem) -> None:
    """With the replicas given KQ is Algorithm 2, which is exact, and QK tries every leader."""
    best = reference.solve(problem)
    for name in ("kq", "qk", "best-of", "local-search", "p-median-first"):
        plan = run(load_method(name), problem, Options())
        expected = math.inf if best is None else best.objective
        assert plan.objective == pytest.approx(expected, rel=1e-9, abs=1e-12), name
