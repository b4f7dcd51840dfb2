"""cp-sat on the bundled data sets."""

import itertools

import numpy as np
import pytest

import placement
from placement import Diversity, Problem, Status
from tests.effort import PROFILE


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


NAMES = ["world27", "aws", "azure"]
LARGE = ["gcp"] if PROFILE == "long" else []  # half a minute each


@pytest.mark.slow
@pytest.mark.parametrize("name", [*NAMES, *LARGE])
@pytest.mark.parametrize("replicas", [3, 4, 5])
@pytest.mark.parametrize("voters", [1, 3, 5])
def test_bundled_data_sets_against_exhaustive_search(name, replicas, voters):
    if voters <= replicas:
        agree(Problem(placement.load(name), replicas=replicas, voters=voters))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "replicas", "voters"),
    [("gcp", 6, 3), *itertools.product([*NAMES, *LARGE], [6, 7], [1, 3, 5])],
)
def test_bundled_data_sets_against_the_engine(name, replicas, voters):
    problem = Problem(placement.load(name), replicas=replicas, voters=voters)
    plan, truth = (placement.solve(problem, method=one) for one in ("cp-sat", "exact"))
    assert plan.status is truth.status is Status.OPTIMAL
    assert plan.objective == pytest.approx(truth.objective, rel=1e-9)
