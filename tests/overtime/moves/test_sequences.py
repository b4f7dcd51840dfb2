"""Dynamic programming against every sequence there is, and against its two extremes."""

from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulations.overtime.leader_sequence import best_sequence, best_sequences, work_function
from placement.errors import InputError


def cost_by_hand(scores, table, path, start):
    """The cost of a path, in a loop."""
    before = path[0] if start is None else start
    total = 0.0
    for t, now in enumerate(path):
        total += scores[t][now] + (0.0 if now == before else table[before][now])
        before = now
    return total


def every_path(scores, table, start):
    intervals, size = scores.shape
    return min(
        cost_by_hand(scores, table, path, start)
        for path in itertools.product(range(size), repeat=intervals)
    )


@st.composite
def worlds(draw: st.DrawFn) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], int | None]:
    """Scores, a table of prices, a start; full of ties, with some candidates not allowed."""
    intervals, size = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    if draw(st.booleans()):
        scores = rng.integers(0, 4, (intervals, size)).astype(float)
        table = rng.integers(0, 4, (size, size)).astype(float)
    else:
        scores, table = rng.exponential(10, (intervals, size)), rng.exponential(5, (size, size))
    if draw(st.booleans()):
        table[rng.random((size, size)) < 0.2] = np.inf
    if draw(st.booleans()):
        scores[:, 1:][rng.random((intervals, size - 1)) < 0.2] = np.inf
    np.fill_diagonal(table, 0.0)
    start = draw(st.one_of(st.none(), st.integers(0, size - 1)))
    return scores, table, start


@given(worlds())
def test_equals_brute_force_over_all_sequences(world) -> None:
    scores, table, start = world
    least = every_path(scores, table, start)
    if math.isinf(least):
        with pytest.raises(InputError, match="no sequence has a finite cost"):
            best_sequence(scores, table, start=start)
        return
    found = best_sequence(scores, table, start=start)
    assert float(found.cost.total) == pytest.approx(least, rel=1e-12)
    by_hand = cost_by_hand(scores, table, found.path.tolist(), start)
    assert by_hand == pytest.approx(least, rel=1e-12)
    stops = found.path.tolist() if start is None else [start, *found.path.tolist()]
    assert int(found.cost.moves) == sum(a != b for a, b in itertools.pairwise(stops))


@given(worlds(), st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.7, math.inf]))
def test_one_price_for_all_moves_equals_the_table(world, price) -> None:
    scores, table, start = world
    table = np.where(np.eye(len(table), dtype=bool), 0.0, price)
    least = every_path(scores, table, start)
    if math.isinf(least):
        with pytest.raises(InputError):
            best_sequence(scores, price, start=start)
        return
    by_table, by_number = (best_sequence(scores, p, start=start) for p in (table, price))
    assert by_table.path.tolist() == by_number.path.tolist()  # the same rule for ties
    assert float(by_number.cost.total) == pytest.approx(least, rel=1e-12)
    assert work_function(scores, price, start=start)[-1].min() == pytest.approx(least, rel=1e-12)


def test_many_databases_at_once_are_each_alone() -> None:
    rng = np.random.default_rng(4)
    scores = rng.exponential(10, (3, 2, 20, 5))
    price = rng.exponential(10, (3, 2))
    start = rng.integers(0, 5, (3, 2))
    for first in (None, start):
        together = best_sequences(scores, price, start=first)
        for i, j in itertools.product(range(3), range(2)):
            alone = best_sequence(
                scores[i, j], float(price[i, j]), start=None if first is None else int(first[i, j])
            )
            assert together.path[i, j].tolist() == alone.path.tolist()
            assert together.cost.total[i, j] == alone.cost.total


def test_small_differences_add_up() -> None:
    # the second leader is better by 1e-8 in each of 20,000 intervals but the last: less than 1e-12
    # of the cost so far, but not in sum. (With ties that wide the path stayed with the first.)
    scores = np.ones((20_000, 2))
    scores[:, 1] -= 1e-8
    scores[-1] = [0.0, 5.0]
    for prices in (1e-6, np.array([[0.0, 1e-6], [1e-6, 0.0]])):
        found = best_sequence(scores, prices)
        least = float(scores[:-1, 1].sum()) + 1e-6
        assert float(found.cost.total) == pytest.approx(least, rel=2e-10)


def test_ties_stay_and_go_to_the_first() -> None:
    assert best_sequence(np.ones((4, 3)), 0.0).path.tolist() == [0, 0, 0, 0]
    # moving at 1 or at 2 costs the same: the path stays where it ends as long as it can
    scores = np.array([[0.0, 9.0], [1.0, 1.0], [9.0, 0.0]])
    assert best_sequence(scores, 1.0).path.tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("scores", "prices", "words"),
    [
        ([[1.0, math.nan]], 1.0, "out of range"),
        ([[1.0, -1.0]], 1.0, "out of range"),
        ([[]], 1.0, "wrong shape"),
        ([1.0, 2.0], 1.0, "wrong shape"),
        ([[1.0, 2.0]], -1.0, "out of range"),
        ([[1.0, 2.0]], math.nan, "out of range"),
        ([[1.0, 2.0]], [[0.0, 1.0]], "wrong shape"),
        ([[1.0, 2.0]], [[1.0, 1.0], [1.0, 0.0]], "a move to the same candidate has a price"),
    ],
)
def test_bad_input(scores, prices, words) -> None:
    with pytest.raises(InputError, match=words):
        best_sequence(scores, prices)


def test_a_start_that_is_no_candidate() -> None:
    with pytest.raises(InputError, match="no such candidate"):
        best_sequence([[1.0, 2.0]], 1.0, start=2)
    with pytest.raises(InputError, match="no such candidate"):
        best_sequence([[1.0, 2.0]], [[0.0, 1.0], [1.0, 0.0]], start=-1)
