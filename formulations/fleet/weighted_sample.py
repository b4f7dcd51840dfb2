"""Sample of a fleet's databases whose weighted use of the limits is close to the fleet's use."""

from __future__ import annotations

import numpy as np

from placement.support.checks import BoolArray, FloatArray, IntArray

__all__ = ["weighted_sample"]


def weighted_sample(
    size: FloatArray, copies: FloatArray, certain: BoolArray, count: int
) -> tuple[IntArray, FloatArray]:
    """Choose databases with a probability that grows with their size; return them and weights.

    Systematic sampling in order of size: half of the probability in proportion to the size, half
    in proportion to the copies. A database with probability p stands for 1/p like it, so the
    largest ones stand for themselves alone. O(databases · log databases).

    Parameters
    ----------
    size
        Use of the limits by all copies of each database, in any unit, >= 0, shape (databases,).
    copies
        Copies of each database, shape (databases,).
    certain
        Databases that take part in any case, shape (databases,).
    count
        Databases to choose, about.

    Returns
    -------
    chosen
        Their numbers in ascending order, shape (chosen,).
    weights
        Copies that each of them stands for, shape (chosen,).
    """
    size = np.maximum(size, 0.0)
    share = 0.5 * size / max(size.sum(), 1e-300) + 0.5 * copies / copies.sum()
    chance = np.where(certain, 1.0, 0.0)
    while True:
        left = chance < 1
        wanted = count - int((~left).sum())
        if wanted <= 0 or not left.any():
            break
        chance[left] = wanted * share[left] / share[left].sum()
        if not (chance[left] >= 1).any():
            break
        chance = np.minimum(chance, 1.0)
    order = np.argsort(-size, kind="stable")
    ends = np.floor(np.cumsum(np.where(chance >= 1, 0.0, chance)[order]) + 0.5)
    drawn = np.zeros(len(size), dtype=np.bool_)
    drawn[order] = np.diff(ends, prepend=0.0) > 0
    chosen = np.flatnonzero(drawn | (chance >= 1))
    return chosen, copies[chosen] / chance[chosen]
