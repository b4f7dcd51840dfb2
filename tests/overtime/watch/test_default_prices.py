"""Prices of moves by default: they follow the demand of the instance, and do not chase it."""

from __future__ import annotations

import numpy as np

import placement
from placement import Problem
from placement.evaluation.objective import score_of
from placement.overtime.decayed_counts import Decay
from placement.overtime.moves import Hysteresis, MovePrices
from placement.overtime.watch import WatchSettings, advise
from placement.overtime.watch.recommend import initial_state
from placement.overtime.watch.watch_settings import default_prices


def moves_of(problem: Problem, prices: MovePrices, days: int = 2) -> int:
    """Return how often a watch with the default decay and horizon moves."""
    settings = WatchSettings(problem, Decay(2.0), Hysteresis(8.0), prices)
    rng = np.random.default_rng(1)
    state, moves = initial_state(settings), 0
    for day in range(days):
        for number, counts in enumerate(problem.instance.counts):
            state, told = advise(
                settings, state, f"{day}-{number:02d}", rng.poisson(counts).astype(float)
            )
            moves += told.action == "move"
    return moves


def test_two_days_give_a_handful_of_moves() -> None:
    problem = Problem(placement.load("world27"), replicas=5, voters=3)
    prices = default_prices(problem)
    assert moves_of(problem, prices) <= 6 < moves_of(problem, MovePrices())


def test_the_prices_are_two_standard_deviations() -> None:
    instance = placement.load("world27")
    problem = Problem(instance, replicas=5, voters=3)
    best = placement.solve(
        problem.replace(instance=instance.replace(counts=instance.counts.sum(axis=0), intervals=()))
    ).configuration
    assert best is not None
    means = []
    for counts in instance.counts:
        alone = problem.replace(instance=instance.replace(counts=counts, intervals=()))
        means.append(score_of(alone, best) / counts.sum())
    prices, twice = default_prices(problem), 2 * float(np.std(means))
    assert np.allclose([prices.leader, prices.voter, prices.add], [twice, twice / 2, twice])
    assert prices.remove == 0


def test_one_interval_says_nothing_about_variability() -> None:
    instance = placement.load("world27")
    one = instance.replace(counts=instance.counts[:1], intervals=())
    assert default_prices(Problem(one, replicas=5, voters=3)) == MovePrices()
