"""Rule for moves: only if the gain that is predicted over a horizon pays for the move.

The demand of an interval is predicted (the decayed mean of past demand). Staying at c for the next
H intervals then costs H·score(c), and moving to c' costs price(c → c') + H·score(c'). The rule
takes the cheapest, and of equals the first, which is to stay:

    argmin over c' of  H·score(c') + price(c → c')

It moves only after the move has paid for `confirm` intervals in a row, so that one odd interval
that slipped through the decay moves nothing. H = ∞ moves for any gain, however small, unless the
price is infinite too; H = 0 never moves.

One function decides, for one database or a thousand; :func:`leader_path` runs it over a series of
intervals with every site as a candidate leader.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from placement.evaluation.score import TIE, first_best
from placement.overtime.decayed_counts import Decay, decayed_counts
from placement.support.checks import FloatArray, IntArray, number, whole


@dataclass(frozen=True, slots=True)
class Hysteresis:
    """Least gain that a move must promise.

    Parameters
    ----------
    horizon
        H >= 0, intervals over which a gain is expected to last; infinity: for ever.
    confirm
        Intervals in a row in which moving must pay before anything moves, >= 1.
    """

    horizon: float
    confirm: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "horizon", number(self.horizon, "horizon", infinite=True))
        object.__setattr__(self, "confirm", whole(self.confirm, "confirm", minimum=1))


def choose(
    rule: Hysteresis,
    predicted: npt.ArrayLike,
    prices: npt.ArrayLike,
    current: npt.ArrayLike,
    streak: npt.ArrayLike,
) -> tuple[IntArray, IntArray]:
    """Decide for any number of databases at once.

    Parameters
    ----------
    rule
        How much a move must promise.
    predicted
        Predicted score of an interval under every candidate, shape (..., n); infinite where a
        candidate is not allowed.
    prices
        Price of the move from the current candidate to each, in the same unit, shape (..., n); 0
        for the current one.
    current
        Index of the current candidate, shape (...).
    streak
        Intervals in a row, up to the last, in which a move paid; shape (...).

    Returns
    -------
    chosen
        Index of the candidate of the next interval, shape (...).
    streak
        The new streak, 0 after a move.

    Notes
    -----
    A current candidate that is no longer allowed (infinite) is left at once. O(n) per database.
    """
    scores = np.asarray(predicted, dtype=np.float64)
    here = np.asarray(current, dtype=np.intp)
    stay = np.take_along_axis(scores, here[..., np.newaxis], axis=-1)
    target = _target(rule, scores, np.asarray(prices, dtype=np.float64), here)
    pays = target != here
    count = np.where(pays, np.asarray(streak, dtype=np.intp) + 1, 0)
    move = pays & ((count >= rule.confirm) | np.isinf(stay[..., 0]))
    return np.where(move, target, here), np.where(move, 0, count)


def _target(rule: Hysteresis, scores: FloatArray, prices: FloatArray, here: IntArray) -> IntArray:
    """Candidate of least H·score + price; the current one when it is among the cheapest."""
    with np.errstate(invalid="ignore"):
        if math.isinf(rule.horizon):  # any gain pays for any finite price
            total = np.where(np.isinf(prices), np.inf, scores)
        elif rule.horizon == 0:
            total = np.where(np.isinf(scores), np.inf, prices)
        elif rule.horizon < 1:
            total = rule.horizon * scores + prices
        else:  # divided by H, so that no horizon makes the sum overflow
            total = scores + prices / rule.horizon
    best = first_best(total)
    worth = np.take_along_axis(total, here[..., np.newaxis], axis=-1)[..., 0]
    least = np.take_along_axis(total, best[..., np.newaxis], axis=-1)[..., 0]
    # first_best takes the first that ties with the least; the current one goes before it
    return np.where((worth <= least * (1 + TIE)) | np.isinf(least), here, best)


def leader_path(
    scores: npt.ArrayLike,
    price: npt.ArrayLike,
    rule: Hysteresis,
    decay: Decay,
    *,
    start: npt.ArrayLike | None = None,
) -> IntArray:
    """Leaders that the rule sets for intervals 2 … T, each from the intervals before it.

    Parameters
    ----------
    scores
        True score of every interval under every leader, shape (..., T, n); infinite for sites that
        may not lead.
    price
        Of a leader change, in the unit of the scores, shape (...) or a number.
    rule, decay
        How much a move must promise, and how fast the past is forgotten in the prediction.
    start
        Leader before interval 2, shape (...); None: the best of interval 1, for which nothing is
        charged.

    Returns
    -------
    ndarray
        Site indices, shape (..., T − 1).

    Notes
    -----
    O(T·n) per database, vectorised over databases.
    """
    true = np.asarray(scores, dtype=np.float64)
    weights = decayed_counts(np.ones(true.shape[-2]), decay)
    mean = decayed_counts(true, decay, axis=-2) / weights[:, np.newaxis]
    cost = np.broadcast_to(np.asarray(price, dtype=np.float64), true.shape[:-2])
    here = first_best(true[..., 0, :]) if start is None else np.asarray(start, dtype=np.intp)
    here = np.broadcast_to(here, true.shape[:-2])
    streak = np.zeros(true.shape[:-2], dtype=np.intp)
    sites = np.arange(true.shape[-1])
    path = np.empty((*true.shape[:-2], true.shape[-2] - 1), dtype=np.intp)
    for step in range(true.shape[-2] - 1):
        prices = np.where(sites == here[..., np.newaxis], 0.0, cost[..., np.newaxis])
        here, streak = choose(rule, mean[..., step, :], prices, here, streak)
        path[..., step] = here
    return path
