"""Cost of a sequence of decisions: the one evaluator of paths over time.

    cost = Σ_t score(t, x_t) + Σ_t price(x_{t−1} → x_t)

A candidate x is a leader, or a whole configuration; scores and prices are in one unit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from placement.errors import InputError
from placement.support.checks import FloatArray, IntArray

__all__ = ["PathCost", "checked_prices", "checked_scores", "path_cost"]


@dataclass(frozen=True, eq=False)
class PathCost:
    """The two parts of a path's cost, and how often it moves; each of shape (...).

    Attributes
    ----------
    served
        Σ of the true scores.
    moving
        Σ of the prices of the moves.
    moves
        Number of intervals that begin with a move.
    """

    served: FloatArray
    moving: FloatArray
    moves: IntArray

    @property
    def total(self) -> FloatArray:
        """Served + moving."""
        return np.asarray(self.served + self.moving)


def checked_scores(scores: npt.ArrayLike) -> FloatArray:
    """Check scores of shape (..., T, n): T, n >= 1, >= 0, infinite allowed, no NaN."""
    try:
        array = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"not a table of numbers ({error})", field="scores", expected="numbers"
        ) from None
    if array.ndim < 2 or 0 in array.shape[-2:]:
        raise InputError(
            "wrong shape",
            field="scores",
            value=array.shape,
            expected="(…, intervals, candidates), at least one of each",
        )
    if array.size and not array.min() >= 0:
        raise InputError(
            "out of range", field="scores", expected="numbers >= 0; infinity where not allowed"
        )
    return array


def checked_prices(prices: npt.ArrayLike, candidates: int) -> FloatArray:
    """Check prices: one number for any move, or a table (candidates, candidates), zero diagonal."""
    try:
        array = np.asarray(prices, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"not a table of numbers ({error})", field="prices", expected="numbers"
        ) from None
    if array.shape not in ((), (candidates, candidates)):
        raise InputError(
            "wrong shape",
            field="prices",
            value=array.shape,
            expected=f"a number, or {candidates} × {candidates}",
        )
    if not array.min() >= 0:
        raise InputError("out of range", field="prices", expected="numbers >= 0, or infinity")
    if array.ndim and array.diagonal().any():
        raise InputError(
            "a move to the same candidate has a price",
            field="prices",
            value=int(np.nonzero(array.diagonal())[0][0]),
            expected="0 on the diagonal",
        )
    return array


def path_cost(
    scores: npt.ArrayLike,
    prices: npt.ArrayLike,
    path: npt.ArrayLike,
    *,
    start: npt.ArrayLike | None = None,
) -> PathCost:
    """Return the costs of paths.

    Parameters
    ----------
    scores
        Shape (..., T, n).
    prices
        Of a move: one number per path, shape (...), or one for all; for a single path also a table
        of shape (n, n) indexed [before, after].
    path
        Candidate of each interval, shape (..., T).
    start
        Candidate before the first interval, shape (...); None: the first one is free.

    Notes
    -----
    O(T) per path.
    """
    true = np.asarray(scores, dtype=np.float64)
    chosen = np.asarray(path, dtype=np.intp)
    if start is not None:
        first = np.broadcast_to(np.asarray(start, dtype=np.intp), chosen.shape[:-1])
        chosen = np.concatenate([first[..., np.newaxis], chosen], axis=-1)
    before, after = chosen[..., :-1], chosen[..., 1:]
    moved = before != after
    each = np.asarray(prices, dtype=np.float64)
    if true.ndim == 2 and each.ndim == 2:
        paid = each[before, after]
    else:
        paid = np.broadcast_to(each[..., np.newaxis], moved.shape)
    now = chosen if start is None else after
    served = np.take_along_axis(true, now[..., np.newaxis], axis=-1)[..., 0]
    return PathCost(
        served=np.asarray(served.sum(axis=-1)),
        moving=np.where(moved, paid, 0.0).sum(axis=-1),
        moves=np.asarray(moved.sum(axis=-1), dtype=np.intp),
    )
