"""Floors of the wait for votes where RTTs vary by interval.

With one RTT matrix a leader waits for one order statistic of the distances to its voters. With
several scenarios it waits Σ_k D_k·q_k(V), where q_k(V) is the m-th smallest RTT of scenario k.

**Lemma 1.** Let a_k be the m-th smallest RTT of scenario k from ℓ to all sites that may vote, the
sites be in any order s_1, s_2, …, and

    f_k(r) = min { d_k(ℓ, s_i) : i >= r },
    e(s_r) = Σ_k D_k · f_k(r)             for r < m,
    e(s_r) = Σ_k D_k · max(a_k, f_k(r))   for r >= m.

For every set V of sites that may vote, the m-th smallest of { e(x) : x ∈ V } is at most
Σ_k D_k·q_k(V).

*Proof.* e rises along the order. Let s_r be the m-th site of V in the order, so r >= m. At most
m − 1 sites of V come before it: in every scenario one of the m nearest voters is s_r or comes after
it, and q_k(V) >= f_k(r). V is among the sites that may vote: q_k(V) >= a_k. The weighted sum over k
is e(s_r).

Where all scenarios rank the sites alike, that order makes e(s_r) = Σ_k D_k·d_k(ℓ, s_r), and nothing
is lost. The order by the weighted sum of RTTs is the one used here. Where they do not, f_k(m) may
belong to one site in one scenario and to another in the next, though both are nearer than a_k: that
is why a_k is there. The least e of an m-th site is then Σ_k D_k·a_k, which is the least wait of all
where some v voters hold the m nearest of every scenario. Where no v voters do:

**Lemma 2.** Let N_k be m nearest sites of scenario k that may vote, b_k >= a_k the next RTT after
them, and ∪_k N_k more than v sites. For every set V of at most v sites that may vote,

    Σ_k D_k·q_k(V)  >=  min over x ∈ ∪_k N_k of  Σ_k D_k · (b_k where x ∈ N_k, else a_k).

*Proof.* V lacks some x ∈ ∪_k N_k. Where x ∈ N_k, m sites without x are no nearer than b_k. So e may
be raised to this number for r >= m: e still rises along the order, and the m-th site of V comes at
r >= m.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from placement.support.checks import BoolArray, FloatArray, IntArray

Costs = npt.NDArray[Any]

_ROUNDING = 2.0 * float(np.finfo(np.float64).eps)


def wait_order(waits: FloatArray, weights: FloatArray) -> IntArray:
    """Return the sites by Σ_k D_k·d_k(ℓ, ·), ties in site order, shape (…, sites).

    `waits` are RTTs from the leaders in ms, shape (scenarios, …, sites); `weights` are D_k.
    """
    total = np.zeros(waits.shape[1:])
    for weight, row in zip(weights.tolist(), waits, strict=True):
        total += weight * row
    return np.asarray(np.argsort(total, axis=-1, kind="stable"))


def nearest_voters(waits: FloatArray, quorum: int, may_vote: BoolArray) -> IntArray:
    """Return the m + 1 nearest voters (N_k and the next), shape (scenarios, …, m + 1) or fewer."""
    last = min(quorum + 1, int(may_vote.sum()))
    order = np.argsort(np.where(may_vote, waits, np.inf), axis=-1, kind="stable")
    return np.asarray(order[..., :last])


def floor_costs(
    costs: Costs, order: IntArray, nearest: IntArray, quorum: int, voters: int
) -> Costs:
    """Return e by place in an order, shape (…, sites), from D_k·d_k(ℓ, ·) of any type of number.

    `order` is that of the lemma, `nearest` comes from :func:`nearest_voters`.
    """
    placed = np.take_along_axis(costs, np.broadcast_to(order, costs.shape), axis=-1)
    from_end = np.minimum.accumulate(placed[..., ::-1], axis=-1)[..., ::-1]
    if nearest.shape[-1] < quorum:
        return np.asarray(from_end.sum(axis=0))
    near = np.take_along_axis(costs, nearest, axis=-1)
    least = near[..., quorum - 1 : quorum]
    later = np.maximum(from_end[..., quorum - 1 :], least).sum(axis=0)
    if nearest.shape[-1] > quorum:
        member = np.zeros(costs.shape[1:], dtype=bool)
        without = np.zeros(costs.shape[1:], dtype=costs.dtype)
        for sites, rise in zip(nearest[..., :quorum], near[..., quorum:] - least, strict=True):
            np.put_along_axis(member, sites, values=True, axis=-1)
            risen = np.take_along_axis(without, sites, axis=-1) + rise
            np.put_along_axis(without, sites, risen, axis=-1)
        missed = np.where(member, without, without.max(axis=-1, keepdims=True))
        missed = missed.min(axis=-1, keepdims=True)
        missed = np.where(member.sum(axis=-1, keepdims=True) > voters, missed, 0 * missed)
        later = np.maximum(later, least.sum(axis=0) + missed)
    earlier = from_end[..., : quorum - 1].sum(axis=0)
    return np.concatenate((earlier, later), axis=-1)


def wait_floors(
    waits: FloatArray, weights: FloatArray, *, quorum: int, voters: int, may_vote: BoolArray
) -> FloatArray:
    """Return e of every site, rounded down, in ms times rounds of votes, shape (…, sites).

    For each leader O(scenarios · sites · log sites). Where products and sums are whole numbers
    below 2^52, nothing is rounded.
    """
    order = wait_order(waits, weights)
    costs = weights.reshape(-1, *[1] * (waits.ndim - 1)) * waits
    placed = floor_costs(costs, order, nearest_voters(waits, quorum, may_vote), quorum, voters)
    out = np.empty_like(placed)
    np.put_along_axis(out, order, placed, axis=-1)
    if (out == np.floor(out)).all() and float(out.max(initial=0.0)) < 2.0**52:
        whole = (waits == np.floor(waits)).all() and (weights == np.floor(weights)).all()
        if whole:
            return out
    return np.asarray(out * (1.0 - _ROUNDING * (len(weights) + 2)))
