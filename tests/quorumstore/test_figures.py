"""The figures that a plan and a row of a table show: the evaluator's, worked out once."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from formulations.quorumstore.enumeration import solve
from formulations.quorumstore.keys import solve_batch
from placement.quorumstore import QuorumProblem, evaluate, metrics
from placement.quorumstore import plan as plan_module
from tests.effort import seeds
from tests.quorumstore.instances import random_problem, random_rules


def drawn(seed: int, **fixed: object) -> QuorumProblem:
    rng = np.random.default_rng([40, seed])
    return random_problem(rng, sites=6, rules=random_rules(rng, **fixed))


@pytest.mark.parametrize("seed", seeds(8, 40))
def test_figures_are_the_evaluators_with_all_losses(seed):
    problem = drawn(seed)
    found = solve(problem)
    assert found.configuration is not None
    read, write = found.read_quorum, found.write_quorum
    other = evaluate(problem, found.replicas, read, write)
    truth = metrics(problem, [found.configuration.replicas], read, write, losses=True)
    for plan in (found, other, dataclasses.replace(found, seconds=1.0)):
        for field in dataclasses.fields(truth):
            name = field.name
            assert getattr(plan.figures, name).tolist() == getattr(truth, name).tolist(), name
        assert plan.mean_latency == truth.mean[0]
        worst_read = max(effect.read_threshold for effect in plan.losses)
        worst_write = max(effect.write_threshold for effect in plan.losses)
        assert (plan.figures.worst_read[0], plan.figures.worst_write[0]) == (
            worst_read, worst_write,
        )  # fmt: skip


@pytest.mark.parametrize("contingency", [False, True])
def test_a_key_is_evaluated_once(contingency, monkeypatch):
    problem = drawn(1, contingency=contingency)
    rng = np.random.default_rng(5)
    reads, writes = rng.integers(1, 9, (2, 12, 6))
    expected = solve_batch(problem, reads, writes)
    assert all(row.status == "optimal" for row in expected)
    seen = []

    def counted(*given, **options):
        seen.append(given)
        return metrics(*given, **options)

    monkeypatch.setattr(plan_module, "metrics", counted)
    monkeypatch.setattr("formulations.quorumstore.keys.metrics", counted, raising=False)
    assert solve_batch(problem, reads, writes) == expected
    assert len(seen) == 12
