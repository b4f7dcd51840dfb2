"""Floors of the wait for votes where RTTs vary by interval: one distance in the place of several.

With one RTT matrix a leader waits for one order statistic of the distances to its voters. With
several scenarios it waits Σ_k D_k·q_k(V), where q_k(V) is the m-th smallest RTT of scenario k.

**Lemma.** Let the sites be in any order s_1, s_2, … and

    e(s_r) = Σ_k D_k · min { d_k(ℓ, s_i) : i >= r }.

For every set V, the m-th smallest of { e(x) : x ∈ V } is at most Σ_k D_k·q_k(V).

*Proof.* e rises along the order. Let s_r be the m-th site of V in the order. At most m − 1 sites of
V come before it, so in every scenario one of the m nearest voters is s_r or comes after it, and
q_k(V) >= min { d_k(ℓ, s_i) : i >= r }. The weighted sum over k is e(s_r).

Where all scenarios rank the sites alike, that order makes e(s_r) = Σ_k D_k·d_k(ℓ, s_r), and nothing
is lost. The order by the weighted sum of RTTs is the one used here.
"""

from __future__ import annotations

import numpy as np

from placement.checks import FloatArray, IntArray

__all__ = ["wait_floors", "wait_order"]

_ROUNDING = 2.0 * float(np.finfo(np.float64).eps)


def wait_order(waits: FloatArray, weights: FloatArray) -> IntArray:
    """Return the sites by Σ_k D_k·d_k(ℓ, ·), ties in site order, shape (sites,).

    Parameters
    ----------
    waits
        RTT from the leader to every site in each scenario, ms, shape (scenarios, sites).
    weights
        D of each scenario, shape (scenarios,).
    """
    total = np.zeros(waits.shape[1])
    for weight, row in zip(weights.tolist(), waits, strict=True):
        total += weight * row
    return np.asarray(np.argsort(total, kind="stable"))


def wait_floors(waits: FloatArray, weights: FloatArray) -> FloatArray:
    """Return e of every site, rounded down, in ms times rounds of votes, shape (sites,).

    Parameters
    ----------
    waits, weights
        As in :func:`wait_order`.

    Notes
    -----
    O(scenarios · sites + sites log sites). Where products and sums are whole numbers below 2^52,
    nothing is rounded.

    Examples
    --------
    >>> wait_floors(np.array([[0.0, 1.0, 9.0], [0.0, 9.0, 1.0]]), np.ones(2))
    array([ 0.,  2., 10.])
    """
    order = wait_order(waits, weights)
    out = np.zeros(waits.shape[1])
    for weight, row in zip(weights.tolist(), waits, strict=True):
        out[order] += weight * np.minimum.accumulate(row[order][::-1])[::-1]
    if (out == np.floor(out)).all() and float(out.max(initial=0.0)) < 2.0**52:
        whole = (waits == np.floor(waits)).all() and (weights == np.floor(weights)).all()
        if whole:
            return out
    return np.asarray(out * (1.0 - _ROUNDING * (len(weights) + 2)))
