"""cp-sat on the bundled data sets."""

import numpy as np
import pytest

import placement
from placement import Diversity, Problem, Status


def agree(problem):
    plan = placement.solve(problem, method="cp-sat")
    truth = placement.solve(problem, method="exhaustive", settings={"limit": 10**9})
    assert plan.status is truth.status is Status.OPTIMAL
    assert plan.objective == pytest.approx(truth.objective, rel=1e-9)


def test_world27_with_constraints_of_every_kind():
    instance = placement.load("world27")
    prices = placement.Prices(np.random.default_rng(4).uniform(20, 100, len(instance.sites)))
    agree(
        Problem(
            instance.replace(prices=prices),
            replicas=(4, 5),
            voters=3,
            survive="country",
            diversity=[Diversity("provider", cap=1), Diversity("continent", "replicas", cap=2)],
            pinned=["us-east-1"],
            forbidden=["UK South"],
            budget=230.0,
            cost_weight=1e4,
        )
    )
