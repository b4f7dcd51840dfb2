"""Back-of-the-envelope figures of the mechanism, each with where it comes from."""

from __future__ import annotations

import math

import numpy as np

from placement.errors import InputError
from placement.support.checks import FloatArray, number, whole

__all__ = [
    "bloom_bits",
    "hit_share",
    "replacement_ratio",
    "replicas_conservative",
    "replicas_exact",
]


def bloom_bits(keys: int, error: float) -> int:
    """Bits of a Bloom filter for `keys` keys at false-positive rate `error`: ⌈n·ln(1/p)/(ln 2)²⌉.

    Examples
    --------
    >>> bloom_bits(10_000, 0.001)
    143776
    """
    keys = whole(keys, "keys", minimum=1)
    number(error, "error", above=True, maximum=math.nextafter(1.0, 0.0))
    return math.ceil(keys * math.log(1 / error) / math.log(2) ** 2)


def replicas_conservative(k: float, turnover: float, grace: int) -> float:
    """Dynamic copies of a site by Eq. 2 of Matri et al.: k·(1 + λ·g).

    `turnover` λ is the share of the top-k that is new in each round. One round more than the grace
    period: the text has g = 1 delete at the first absence, and the formula still adds λ·k. It is
    the count between the creation by a list and the deletion by the same list. See
    :func:`replicas_exact`.
    """
    return k * (1 + turnover * grace)


def replicas_exact(k: float, turnover: float, grace: int) -> float:
    """Dynamic copies of a site under the rule as described: k·(1 + λ·(g − 1)).

    For keys that leave the list permanently: a copy stays for g − 1 rounds after the first list
    without it, so that g = 1 has exactly the k of the list. A key that comes back to the list
    before its copy is gone makes it fewer. It is the count just after a deletion.

    Parameters
    ----------
    k
        Length of the list.
    turnover
        λ, the share of the list that is new in each round.
    grace
        g >= 1.
    """
    grace = whole(grace, "grace", minimum=1)
    return k * (1 + turnover * (grace - 1))


def replacement_ratio(replicas: float, k: float, grace: int) -> float:
    """λ that Eq. 2 implies for an observed number of copies: (R/k − 1)/g.

    Examples
    --------
    >>> round(replacement_ratio(10_600, 10_000, 3), 12)
    0.02
    """
    return (replicas / k - 1) / grace


def hit_share(popularity: FloatArray, counts: FloatArray, size: float, rule: str) -> float:
    """Share of requests that a cache of `size` objects answers in the steady state.

    Parameters
    ----------
    popularity
        Request rate of one object of each class, shape (classes,), decreasing.
    counts
        Objects in each class, shape (classes,).
    size
        Of the cache, in objects.
    rule
        "top": the most popular objects are held. "lru" and "random": Che's approximation
        (Che, Tung, Wang 2002; Fricker, Robert, Roberts 2012), an object of rate p being held
        for the share 1 − e^(−p·T) or p·T/(1 + p·T) of time, with T such that `size` are held.

    Notes
    -----
    O(classes · log(1/tolerance)).
    """
    weight = popularity * counts
    total = float(weight.sum())
    if total <= 0 or size < 0:
        raise InputError(
            "nothing is asked for, or no size",
            field="popularity, size",
            value=(total, size),
            expected="a positive total and a size >= 0",
        )
    if size >= counts[popularity > 0].sum():
        return 1.0
    if rule == "top":
        before = np.concatenate([[0.0], np.cumsum(counts)[:-1]])
        held = np.clip((size - before) / counts, 0.0, 1.0)
        return float(held @ weight) / total
    if rule not in ("lru", "random"):
        raise InputError("unknown rule", field="rule", value=rule, expected="top, lru or random")

    def occupancy(window: float) -> FloatArray:
        scaled = popularity * window
        share: FloatArray = -np.expm1(-scaled) if rule == "lru" else scaled / (1 + scaled)
        return share

    low, high = 0.0, 1.0 / float(popularity[popularity > 0].min())
    while float(occupancy(high) @ counts) < size:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if float(occupancy(middle) @ counts) < size else (low, middle)
    return float(occupancy(high) @ weight) / total
