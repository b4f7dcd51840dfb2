"""A plan of every kind that a file can hold, on worlds small enough to enumerate."""

from __future__ import annotations

from functools import cache

import numpy as np

from placement import Configuration, Contingency, Diversity, Plan, Problem, solve
from placement.measures.question import percentile_question
from placement.model.prices import Prices
from placement.plan import evaluate
from placement.tail.rtt_distributions import Distributions
from placement.testing import random_instance
from tests.io.worlds import small

__all__ = ["plans"]


@cache
def plans() -> dict[str, Plan]:
    world = random_instance(12)
    mean = Problem(world, replicas=3, voters=3)
    given = Configuration.of(0, (0, 1, 2), (0, 1, 2))
    tail = Distributions.parametric(world, "gamma", variation=0.3, width=1.0, bins=600)
    together = Contingency("site", together=2, clients_move=True)
    prices = Prices(storage=np.arange(1.0, len(world.sites) + 1))
    cheap = Problem(world.replace(prices=prices), replicas=3, voters=3, budget=20.0)
    return {
        "mean": solve(mean),
        "gap": solve(mean, "kq"),
        "percentile": evaluate(mean.replace(objective=percentile_question(95.0, tail)), given),
        "contingency": evaluate(
            Problem(world, replicas=5, voters=5, objective=together),
            Configuration.of(0, range(5), range(5)),
        ),
        "budget": solve(cheap),
        "violating": evaluate(mean.replace(forbidden=[world.sites[0]]), given),
        "none": solve(Problem(small(), replicas=3, voters=3, diversity=Diversity("continent"))),
    }
