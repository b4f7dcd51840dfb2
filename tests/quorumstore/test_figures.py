"""The figures that a plan and a row of a table show: the evaluator's, worked out once."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from formulations.quorumstore.enumeration import solve
from placement.quorumstore import QuorumProblem, evaluate, metrics
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
