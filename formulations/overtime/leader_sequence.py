"""The best sequence of leaders, or of configurations, in hindsight, when moves have a price.

Sharov et al., PVLDB 8(12), 2015, section 3, leave open when a move pays. With all intervals known
the answer is a shortest path over (interval, candidate), found by dynamic programming:

    f(1, j) = s(1, j) + price(start → j)                    (no price when the start is free)
    f(t, j) = s(t, j) + min over k of ( f(t−1, k) + price(k → j) )

The least f(T, ·) is the optimum: O(T·n²) for a table of prices. When every move costs the same p,
the inner minimum is min( f(t−1, j), min_k f(t−1, k) + p ): O(T·n). The value is that of the path
found, summed up again by :func:`placement.overtime.moves.move_prices.path_cost`; a difference is
an error.

The minimum is exact, so the bound is the value itself, to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from placement.errors import InputError, SolverError
from placement.evaluation.score import TIE
from placement.overtime.moves.move_prices import (
    PathCost,
    checked_prices,
    checked_scores,
    path_cost,
)
from placement.support.checks import FloatArray, IntArray

_TOLERANCE = 1e-9
_BLOCK = 4_000_000  # elements of the largest temporary of a step: 32 MB


@dataclass(frozen=True, eq=False)
class Sequence:
    """An optimal path."""

    path: IntArray  #: candidate of each interval, shape (..., T)
    cost: PathCost  #: what it costs, by the evaluator of paths


def best_sequence(
    scores: npt.ArrayLike, prices: npt.ArrayLike, *, start: int | None = None
) -> Sequence:
    """Return a path of least total cost for one database and any prices.

    Parameters
    ----------
    scores
        Score of every interval under every candidate, shape (T, n), infinite where a candidate is
        not allowed in an interval.
    prices
        One number for every move, or a table of shape (n, n) indexed [before, after] with a zero
        diagonal; infinite: that move is forbidden.
    start
        Candidate before the first interval; None: the first one is free.

    Returns
    -------
    Sequence

    Raises
    ------
    InputError
        For shapes that do not fit, NaN, negative numbers, or when no path has a finite cost.

    Notes
    -----
    O(T·n²) time, O(T·n) memory. Of paths that tie: the first in order of the last candidates; going
    back in time, the path stays where it is if that ties, and else comes from the first candidate
    in order. Costs tie within a relative 1e-12 per step, and within a relative 1e-10 over all
    steps.
    """
    true = checked_scores(scores)
    if true.ndim != 2:
        raise InputError(
            "wrong shape", field="scores", value=true.shape, expected="(intervals, candidates)"
        )
    table = checked_prices(prices, true.shape[1])
    if table.ndim == 0:
        found = best_sequences(
            true[np.newaxis], table, start=None if start is None else np.array([start])
        )
        return Sequence(found.path[0], path_cost(true, table, found.path[0], start=start))
    _check_start(start, true.shape[1])
    values = np.empty_like(true)
    values[0] = true[0] if start is None else true[0] + table[start]
    for step in range(1, len(true)):
        values[step] = true[step] + _cheapest_way(values[step - 1], table)
    slack = _slack(len(true))
    path = np.empty(len(true), dtype=np.intp)
    path[-1] = _first(values[-1], slack)
    for step in range(len(true) - 1, 0, -1):
        ways = values[step - 1] + table[:, path[step]]
        here = int(path[step])
        stays = ways[here] <= ways.min() * (1 + slack)
        path[step - 1] = here if stays else int(_first(ways, slack))
    return _checked(true, table, path, start, values[-1].min())


def best_sequences(
    scores: npt.ArrayLike, price: npt.ArrayLike, *, start: npt.ArrayLike | None = None
) -> Sequence:
    """Return paths of least total cost for many databases whose moves all cost the same.

    Scores have the shape (..., T, n); the price of any move, and the candidate before the first
    interval (None: free), the shape (...). An infinite price: never move. O(T·n) per database. The
    same values as :func:`best_sequence` with a table of equal prices, and the same rule for ties
    and errors.
    """
    true = checked_scores(scores)
    heads = true.shape[:-2]
    cost = _price(price, heads)
    origin = None
    if start is not None:
        origin = np.broadcast_to(np.asarray(start, dtype=np.intp), heads)
        _check_start(origin, true.shape[-1])
    values = _forward(true, cost, origin)
    path = np.empty(true.shape[:-1], dtype=np.intp)
    slack = _slack(true.shape[-2])
    here = _first(values[..., -1, :], slack)
    path[..., -1] = here
    for step in range(true.shape[-2] - 1, 0, -1):
        before = values[..., step - 1, :]
        stay = np.take_along_axis(before, here[..., np.newaxis], axis=-1)[..., 0]
        least = before.min(axis=-1) + cost
        here = np.where(stay <= least * (1 + slack), here, _first(before, slack))
        path[..., step - 1] = here
    return _checked(true, cost, path, origin, values[..., -1, :].min(axis=-1))


def work_function(
    scores: npt.ArrayLike, price: npt.ArrayLike, *, start: npt.ArrayLike | None = None
) -> FloatArray:
    """Return f(t, j), the least cost of the intervals up to t that ends at j, shape (..., T, n).

    O(T·n) per database. An online rule can follow it (metrical task systems: Borodin, Linial, Saks,
    JACM 39(4), 1992), to the least f(t, j) + price; their guarantees see an interval before it.
    """
    true = checked_scores(scores)
    origin = None if start is None else np.asarray(start, dtype=np.intp)
    return _forward(true, _price(price, true.shape[:-2]), origin)


def _price(price: npt.ArrayLike, heads: tuple[int, ...]) -> FloatArray:
    cost = np.asarray(price, dtype=np.float64)
    if cost.size and not cost.min() >= 0:
        raise InputError("out of range", field="price", expected="numbers >= 0, or infinity")
    if cost.shape not in ((), heads):
        raise InputError(
            "wrong shape", field="price", value=cost.shape, expected=f"a number, or {heads}"
        )
    return np.broadcast_to(cost, heads)


def _check_start(start: npt.ArrayLike | None, candidates: int) -> None:
    if start is None:
        return
    array = np.asarray(start)
    if array.size and not (array.min() >= 0 and array.max() < candidates):
        raise InputError(
            "no such candidate",
            field="start",
            value=array.tolist(),
            expected=f"0 to {candidates - 1}",
        )


def _slack(intervals: int) -> float:
    """Relative difference in which two ways tie at a step: small even when each step adds one."""
    return TIE * min(1.0, 100.0 / intervals)


def _first(values: FloatArray, slack: float) -> IntArray:
    """Index of the first value along the last axis that ties with the least."""
    least = values.min(axis=-1, keepdims=True)
    return np.asarray((values <= least * (1 + slack)).argmax(axis=-1), dtype=np.intp)


def _forward(true: FloatArray, cost: FloatArray, start: IntArray | None) -> FloatArray:
    values = np.empty_like(true)
    values[..., 0, :] = true[..., 0, :]
    if start is not None:
        moved = np.arange(true.shape[-1]) != start[..., np.newaxis]
        charge = np.broadcast_to(cost[..., np.newaxis], moved.shape)
        values[..., 0, :] += np.where(moved, charge, 0.0)
    for step in range(1, true.shape[-2]):
        before = values[..., step - 1, :]
        elsewhere = (before.min(axis=-1) + cost)[..., np.newaxis]
        values[..., step, :] = true[..., step, :] + np.minimum(before, elsewhere)
    return values


def _cheapest_way(before: FloatArray, table: FloatArray) -> FloatArray:
    """Minimum over k of before[k] + table[k, j], in blocks of j that fit in memory."""
    size = len(before)
    least = np.empty(size)
    for first in range(0, size, max(1, _BLOCK // size)):
        columns = slice(first, first + max(1, _BLOCK // size))
        least[columns] = (before[:, np.newaxis] + table[:, columns]).min(axis=0)
    return least


def _checked(
    true: FloatArray,
    prices: FloatArray,
    path: IntArray,
    start: npt.ArrayLike | None,
    claimed: npt.ArrayLike,
) -> Sequence:
    """Sum the paths up by the evaluator, and compare the sums with those of the recursion."""
    said = np.asarray(claimed, dtype=np.float64)
    if not np.isfinite(said).all():
        raise InputError(
            "no sequence has a finite cost",
            field="scores",
            expected="candidates that are allowed throughout, or moves between them that are",
        )
    cost = path_cost(true, prices, path, start=start)
    if not np.allclose(cost.total, said, rtol=_TOLERANCE, atol=0.0):
        raise SolverError(f"the recursion claims {said.tolist()}, the paths cost {cost.total!r}")
    return Sequence(path, cost)
