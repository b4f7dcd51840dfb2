"""Question sets of :mod:`benchmarks.tuning.study`: constants with other values, and questions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from types import ModuleType

import numpy as np

import placement
from formulations.exact import tuning as exact_tuning
from formulations.fleet import FleetSearch, solve_fleet
from formulations.fleet import tuning as fleet_tuning
from heuristics import tuning as heuristic_tuning
from placement import Moves, Prices, Problem
from placement.fleet import FleetPlan, FleetProblem, synthetic_fleet
from placement.overtime.replay.generated_fleets import client_ground
from placement.tail import Distributions, Percentile
from placement.workloads import MIXES

__all__ = ["QUESTION_SETS", "QuestionSet", "TunedQuestion"]

_SHARE = 0.2
"""Of the way from the cheapest replicas to the plan without a budget."""


@dataclass(frozen=True)
class TunedQuestion:
    """Question, and a function that returns the value of an answer, which is minimised."""

    name: str
    answer: Callable[[], float]


@dataclass(frozen=True)
class QuestionSet:
    """Questions for some constants of a table.

    Attributes
    ----------
    table
        Module of constants.
    values
        Constant -> other values.
    questions
        Returns the questions.
    """

    table: ModuleType
    values: Mapping[str, tuple[object, ...]]
    questions: Callable[[], Iterator[TunedQuestion]]


def _value(problem: Problem, method: str) -> float:
    settings = {"certificate": False} if method == "exact" else None
    return placement.solve(problem, method, settings=settings).objective


def _limits() -> Iterator[TunedQuestion]:
    """Yield questions with a budget, at most three changes, or both; prices are log-normal."""
    mixes = list(MIXES)
    for name in ("world27", "azure", "aws", "gcp"):
        sites = len(placement.load(name).sites)
        rng = np.random.default_rng([1, sites])
        prices = Prices(storage=np.round(100 * rng.lognormal(0, 0.5, sites)))
        for mix, (few, many, voters) in itertools.product(
            mixes[::3], ((5, 5, 3), (7, 7, 5), (3, 7, 3))
        ):
            instance = placement.load(name, mix=mix).replace(prices=prices)
            free = Problem(instance, replicas=range(few, many + 1), voters=voters)
            other = placement.load(name, mix=mixes[(mixes.index(mix) + 1) % len(mixes)])
            now = placement.solve(free.replace(instance=other)).configuration
            cost = placement.solve(free).cost
            assert cost is not None
            least = float(np.sort(prices.storage)[:few].sum())
            budget = least + _SHARE * (cost - least)
            moves = free.replace(current=now, moves=Moves(at_most=3))
            for kind, asked in (
                ("budget", free.replace(budget=budget)),
                ("moves", moves),
                ("both", moves.replace(budget=max(budget, cost))),
            ):
                about = f"{name} {mix} {few}..{many}/{voters} {kind}"
                yield TunedQuestion(about, partial(_value, asked, "exact"))


def _local_search() -> Iterator[TunedQuestion]:
    """Yield questions for ``local-search``: the bundled data sets, with and without ``survive``."""
    for name, mix in itertools.product(("world27", "azure"), list(MIXES)):
        instance = placement.load(name, mix=mix)
        for (replicas, voters), level in itertools.product(((5, 3), (9, 5)), (None, "country")):
            asked = Problem(instance, replicas=replicas, voters=voters, survive=level)
            about = f"{name} {mix} {replicas}/{voters} {level or 'no rules'}"
            yield TunedQuestion(about, partial(_value, asked, "local-search"))


def _percentiles() -> Iterator[TunedQuestion]:
    """Yield questions for ``local-search`` that minimise the 99th percentile on ``world27``."""
    for mix, spread in itertools.product(("social", "oltp", "ledger"), (0.1, 0.3)):
        instance = placement.load("world27", mix=mix)
        given = Distributions.parametric(instance, "lognormal", variation=spread, width=4, bins=400)
        asked = Problem(instance, replicas=5, voters=3, objective=Percentile(99, given))
        yield TunedQuestion(f"world27 {mix} {spread}", partial(_value, asked, "local-search"))


def _fleet_value(fleet: FleetProblem) -> float:
    plan = solve_fleet(fleet, FleetSearch(gap=5e-3))
    return plan.value if isinstance(plan, FleetPlan) else float("inf")


def _fleets() -> Iterator[TunedQuestion]:
    """Yield fleets of 40 databases on ``world27``, to a gap of 0.5 %."""
    instance = placement.load("world27")
    ground = client_ground(instance)
    for seed, slack in ((0, 1.5), (1, 1.8)):
        fleet = synthetic_fleet(
            instance, ground.clients, 40, seed=seed, slack=slack, owner=ground.owner
        )
        yield TunedQuestion(
            f"40 databases, slack {slack}, seed {seed}", partial(_fleet_value, fleet)
        )


QUESTION_SETS = {
    "limits": QuestionSet(
        exact_tuning,
        {
            "LIMIT_SCALE": (1.0, 2.0, 10.0, 20.0),
            "LIMIT_LEADERS": (1, 2, 8, 16),
            "LIMIT_DESCENT_STEPS": (1, 5, 100),
            "AFFORDABLE_SWAPS": (0, 5, 200),
        },
        _limits,
    ),
    "local-search": QuestionSet(
        heuristic_tuning,
        {
            "GROWN_LEADERS": (2, 8),
            "GROWN_COPIES": (4, 16),
            "GROWN_AMONG": (3, 12),
            "SHAKES": ((3,), (8,)),
            "INSERTION_PAIRS": (1, 16),
            "EXACT_MOVES": (2, 32),
        },
        _local_search,
    ),
    "percentiles": QuestionSet(
        heuristic_tuning,
        {
            "LATE_LEADERS": (2, 8),
            "LATE_COPIES": (2, 8),
            "LATE_SHAKES": ((3,), (8,)),
            "LATE_ROLES": (200, 20_000),
        },
        _percentiles,
    ),
    "fleet": QuestionSet(
        fleet_tuning,
        {
            "SMOOTHING": (0.0, 0.8),
            "SHARE_OF_GAP": (0.1, 0.5),
            "PRICE_STEPS": (1, 16),
            "ROUNDED_COLUMNS": (6, 24),
            "ROUNDING_NODES": (5, 80),
            "PRICINGS": (1, 8),
            "POLISHES": (2, 16),
        },
        _fleets,
    ),
}
"""Question sets by name."""
