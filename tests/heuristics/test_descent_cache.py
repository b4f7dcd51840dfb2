"""Descents that meet come out where each of them would have come out alone."""

from __future__ import annotations

import numpy as np
import pytest

from heuristics import tuning
from heuristics.local_search import steepest_descent
from heuristics.local_search.steepest_descent import SteepestDescent
from heuristics.local_search.swap_neighbourhood import Pairs, SwapNeighbourhood
from heuristics.objective_terms import objective_terms
from placement import Diversity, Problem
from placement.testing import random_instance

PROBLEMS = (
    Problem(random_instance(5, sites=9, clients=12), replicas=4, voters=3),
    Problem(random_instance(6, sites=9, clients=12), replicas=4, voters=3, survive="region"),
    Problem(
        random_instance(7, sites=9, clients=12),
        replicas=(3, 5),
        voters=3,
        diversity=Diversity("region", min_domains=2),
    ),
)


def starts(problem: Problem, seed: int, count: int) -> Pairs:
    """Sets of three leaders, some of them twice, with their places in different order."""
    rng = np.random.default_rng(seed)
    none, width = len(problem.rules.may_hold), problem.rules.replicas_max + 1
    leaders = rng.integers(0, 3, count)
    sets = np.full((count, width), none)
    for row, leader in enumerate(leaders):
        others = rng.permutation(np.delete(np.arange(none), leader))[:3]
        sets[row, :4] = rng.permutation([leader, *others])
    return Pairs(np.append(leaders, leaders[:5]), np.vstack([sets, sets[:5, ::-1]]))


@pytest.mark.parametrize("problem", PROBLEMS)
def test_meeting_changes_no_end(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one batch, and over batches that go on from what the first has found out."""
    field = SwapNeighbourhood(problem, objective_terms(problem), problem.rules)
    together = SteepestDescent(field, lambda: False)
    met = 0
    unvisited = steepest_descent.DescentCache.unvisited

    def counted(self: steepest_descent.DescentCache, rows: np.ndarray, pairs: Pairs) -> np.ndarray:
        nonlocal met
        left = unvisited(self, rows, pairs)
        met += len(rows) - len(left)
        return left

    for seed in range(4):
        pairs = starts(problem, seed, 30)
        alone = pairs.take(np.arange(len(pairs)))
        monkeypatch.setattr(steepest_descent.DescentCache, "unvisited", counted)
        values = together.run(pairs)
        monkeypatch.setattr(steepest_descent.DescentCache, "unvisited", unvisited)
        for row in range(len(pairs)):
            one = alone.take(np.array([row]))
            assert values[row] == pytest.approx(
                float(SteepestDescent(field, lambda: False).run(one)[0])
            )
            if np.isfinite(values[row]):
                assert sorted(one.replicas[0]) == sorted(pairs.replicas[row])
    assert met > 60  # of 140 descents


def test_known_descents_cost_no_step() -> None:
    field = SwapNeighbourhood(PROBLEMS[0], objective_terms(PROBLEMS[0]), PROBLEMS[0].rules)
    descent = SteepestDescent(field, lambda: False)
    pairs = starts(PROBLEMS[0], 0, 30)
    again = pairs.take(np.arange(len(pairs)))
    values = descent.run(pairs)
    steps = descent.steps
    assert steps > 0
    assert descent.run(again).tolist() == values.tolist()
    assert descent.steps == steps
    assert again.replicas.tolist() == pairs.replicas.tolist()


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of more than it may remember it keeps the last batch alone; only work is lost."""
    field = SwapNeighbourhood(PROBLEMS[0], objective_terms(PROBLEMS[0]), PROBLEMS[0].rules)
    monkeypatch.setattr(tuning, "REMEMBERED_DESCENTS", 0)
    descent = SteepestDescent(field, lambda: False)
    descent.run(starts(PROBLEMS[0], 0, 30))
    before = set(descent.ends)
    alone = SteepestDescent(field, lambda: False)
    expected = alone.run(starts(PROBLEMS[0], 1, 30))
    assert descent.run(starts(PROBLEMS[0], 1, 30)).tolist() == expected.tolist()
    assert before - set(alone.ends)
    assert set(descent.ends) <= set(alone.ends)


def test_a_broken_off_descent_leaves_nothing_behind() -> None:
    """Where it stood is no end: the next descent from there goes all the way."""
    field = SwapNeighbourhood(PROBLEMS[0], objective_terms(PROBLEMS[0]), PROBLEMS[0].rules)
    late = iter([False, True])
    descent = SteepestDescent(field, lambda: next(late, False))
    pairs = starts(PROBLEMS[0], 3, 30)
    again = pairs.take(np.arange(len(pairs)))
    halfway = descent.run(pairs)
    assert not descent.ends
    assert (halfway[30:] == halfway[:5]).all()  # the same sets again stand where those stand
    assert descent.run(again).sum() < halfway.sum()
