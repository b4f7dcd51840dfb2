"""Prices of a move from one configuration to another, and the rule when a move is made.

Sharov et al., PVLDB 8(12), 2015, section 3 ("recommendation oscillation"), ask for a second level
of defence beside the decay, which weighs the gain of a move against its cost. Here
the price of a move is a sum over what changes:

    price(c → c') = leader·[ℓ ≠ ℓ'] + voter·|V Δ V'| + add·|R' ∖ R| + remove·|R ∖ R'|

It is 0 only for what stays, and never more than the price of a detour over a third configuration.

Cost of a sequence of decisions: the one evaluator of paths over time.

    cost = Σ_t score(t, x_t) + Σ_t price(x_{t−1} → x_t)

A candidate x is a leader, or a whole configuration; scores and prices are in one unit.

A move is made only if the gain that is predicted over a horizon pays for it. The demand of an
interval is predicted (the decayed mean of past demand). Staying at c for the next H intervals then
costs H·score(c), and moving to c' costs price(c → c') + H·score(c'). The rule takes the cheapest,
and of equals the first, which is to stay:

    argmin over c' of  H·score(c') + price(c → c')

It moves only after the move has paid for `confirm` intervals in a row, so that one odd interval
that slipped through the decay moves nothing. H = ∞ moves for any gain, however small, unless the
price is infinite too; H = 0 never moves. One function decides, for one database or a thousand;
:func:`leader_path` runs it over a series of intervals with every site as a candidate leader.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from placement.errors import refused, require
from placement.evaluation.moves import RoleChanges
from placement.evaluation.score import TIE, first_best
from placement.overtime.decayed_counts import Decay, decayed_counts
from placement.support.checks import FloatArray, IntArray, number, numbers_of, whole


@dataclass(frozen=True, slots=True)
class MovePrices:
    """Prices of the parts of a move, all in one unit.

    Stated in **ms**, a price of P says that the move is as bad as an interval in which every
    operation takes P ms longer: a number that does not depend on how busy the database is.
    :meth:`times` the operations of an interval, it is in **ms·operations**, the unit of the score.
    (A leader that is away for w seconds once in an interval of L seconds delays the operations of
    that time by w/2 on average, which is w²/2L seconds per operation: :func:`outage_price`.)

    Parameters
    ----------
    leader
        Of another leader.
    voter
        Of every vote given or taken; a swap of voters is two.
    add
        Of every replica copied to a new site.
    remove
        Of every replica given up.

    Raises
    ------
    InputError
        For a price that is negative or NaN. Infinite prices forbid what they stand for.

    Examples
    --------
    >>> MovePrices(leader=20.0, add=100.0).times(1000.0)
    MovePrices(leader=20000.0, voter=0.0, add=100000.0, remove=0.0)
    """

    leader: float = 0.0
    voter: float = 0.0
    add: float = 0.0
    remove: float = 0.0

    def __post_init__(self) -> None:
        for field in ("leader", "voter", "add", "remove"):
            object.__setattr__(self, field, number(getattr(self, field), field, infinite=True))

    def of(self, change: RoleChanges) -> float:
        """Return the price of the changes between two configurations.

        Examples
        --------
        >>> from placement.evaluation.moves import changes
        >>> from placement.model.configuration import Configuration
        >>> prices = MovePrices(leader=20.0, voter=5.0, add=100.0)
        >>> before = Configuration.of(0, [0, 1], [0, 1])
        >>> prices.of(changes(before, Configuration.of(0, [0, 2], [0, 2])))
        110.0
        """
        parts = (
            (self.leader, int(change.leader)),
            (self.voter, len(change.promoted) + len(change.demoted)),
            (self.add, len(change.added)),
            (self.remove, len(change.removed)),
        )
        # an infinite price of something that does not happen is nothing, not NaN
        return float(sum(price * number for price, number in parts if number))

    def times(self, operations: float) -> MovePrices:
        """Return the prices in ms·operations, for an interval with so many operations."""
        scale = float(operations)
        require(0 <= scale < np.inf, "operations", "out of range", operations, "a number >= 0")

        prices = dataclasses.astuple(self)
        return MovePrices(*(price if np.isinf(price) else price * scale for price in prices))


def outage_price(seconds: float, interval_seconds: float) -> float:
    """Price in ms of `seconds` without a leader in an interval: 1000·w²/2L.

    Operations arrive evenly and those of the outage wait for its end, w/2 on average; a share w/L
    of the interval's operations does.

    Raises
    ------
    InputError
        Unless 0 <= seconds <= interval_seconds and the interval has a length.

    Examples
    --------
    >>> round(outage_price(10.0, 1800.0), 3)
    27.778
    """
    fits = 0 <= seconds <= interval_seconds and 0 < interval_seconds < np.inf
    words = "an outage that does not fit into its interval"
    require(fits, "seconds", words, seconds, f"0 to {interval_seconds}")
    return 1000.0 * seconds * seconds / (2.0 * interval_seconds)


@dataclass(frozen=True, eq=False)
class PathCost:
    """The two parts of a path's cost, and how often it moves; each of shape (...)."""

    served: FloatArray  #: Σ of the true scores
    moving: FloatArray  #: Σ of the prices of the moves
    moves: IntArray  #: number of intervals that begin with a move

    @property
    def total(self) -> FloatArray:
        """Served + moving."""
        return np.asarray(self.served + self.moving)


def checked_scores(scores: npt.ArrayLike) -> FloatArray:
    """Check scores of shape (..., T, n): T, n >= 1, >= 0, infinite allowed, no NaN."""
    array = numbers_of(scores, "scores")
    words = "wrong shape"
    expected = "(…, intervals, candidates), at least one of each"
    require(array.ndim >= 2 and 0 not in array.shape[-2:], "scores", words, array.shape, expected)
    expected = "numbers >= 0; infinity where not allowed"
    require(not array.size or array.min() >= 0, "scores", "out of range", expected=expected)
    return array


def checked_prices(prices: npt.ArrayLike, candidates: int) -> FloatArray:
    """Check prices: one number for any move, or a table (candidates, candidates), zero diagonal."""
    array = numbers_of(prices, "prices")
    words = "wrong shape"
    expected = f"a number, or {candidates} × {candidates}"
    require(array.shape in ((), (candidates, candidates)), "prices", words, array.shape, expected)
    require(array.min() >= 0, "prices", "out of range", expected="numbers >= 0, or infinity")
    if array.ndim and array.diagonal().any():
        first, words = int(array.diagonal().argmax()), "a move to the same candidate has a price"
        raise refused("", "prices", words, first, "0 on the diagonal")
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


# --- the rule -----------------------------------------------------------------------------------


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
    """Decide for any number of databases at once: the next candidate and the new streak of each.

    `predicted` is the score of an interval under every candidate, shape (..., n), infinite where a
    candidate is not allowed; `prices` those of the move from the `current` candidate, in the same
    unit. `streak` counts the intervals in a row, up to the last, in which a move paid; it is 0
    after a move. A current candidate that is no longer allowed is left at once. O(n) per database.
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
