r"""Proofs of leaders that are one bound of the first state, checked for all leaders at once.

Most leaders of a certificate are closed by one list of multipliers. The bound L of
:mod:`placement.proof.leader_proof` then has I = {ℓ}, no β and no detours, and Z(ρ) is at least the
least value over the radii r of

    D·r + Σ_{j∈P} min(ρ_j, 0) + Σ_{j∈Q} ρ_j,

where the m − 1 sites Q of least ρ among those within r are in Y, and P are the sites of least ρ
among the others, as many as replicas are left. (Of the sets that hold m − 1 sites within r, one of
least Σ ρ holds Q; Q and P are then the first sites in the order of ρ, where Q has no place behind
them.) Rules for sites and votes are left out, which can only lower the value.

All numbers are those of :mod:`placement.proof.costs.rounded_costs`, with its reasons why no sum
wraps around. A leader whose bound does not reach the claim is left to its own proof.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from placement.proof.claim import Claim
from placement.proof.costs.cheap_pairs import compiled_sums
from placement.proof.costs.multipliers import SharedMultipliers
from placement.proof.costs.rounded_costs import (
    BELOW,
    Whole,
    rounded_constant,
    whole,
)
from placement.proof.event_tree import CELLS_PER_STEP, STEPS_OF_A_CALL
from placement.support.checks import BoolArray, FloatArray, IntArray
from placement.support.work import Work

_LEADERS = 256  # checked together: their tables of clients and sites stay small


def closed_at_once(
    claim: Claim,
    proofs: Sequence[tuple[int | None, Mapping[str, Any]]],
    shared: Sequence[SharedMultipliers],
    work: Work,
) -> BoolArray:
    """Return whose proof is one bound that holds, shape (proofs,); others are not decided.

    O(leaders · clients · sites); steps are counted for the leaders that are closed.
    """
    closed = np.zeros(len(proofs), dtype=bool)
    steps = 2 * len(claim.rank) * len(claim.rules.may_hold) // CELLS_PER_STEP + STEPS_OF_A_CALL
    plain = not claim.varies and not claim.by_cases and claim.rounded is not None
    if not plain or len(proofs) * steps > work.left or compiled_sums() is None:
        return closed
    for start in range(0, len(proofs), _LEADERS):
        numbers, rows = [], []
        for number, (leader, proof) in enumerate(proofs[start : start + _LEADERS], start):
            u = None if leader is None else _multipliers(claim, leader, proof["events"], shared)
            if u is not None:
                numbers.append(number)
                rows.append(u)
        if rows:
            of = np.array([proofs[number][0] for number in numbers])
            closed[numbers] = _reach(claim, of, np.array(rows))
    work.take(int(closed.sum()) * steps)
    return closed


def _multipliers(
    claim: Claim, leader: int, events: Sequence[Sequence[Any]], shared: Sequence[SharedMultipliers]
) -> FloatArray | None:
    """Return the multipliers of a proof of one event; None for any other proof."""
    if len(events) != 1 or len(events[0]) != 2:
        return None
    kind, given = events[0]
    if kind == "shared" and type(given) is int and 0 <= given < len(shared):
        return claim.moved(shared[given], leader)
    if kind != "close" or not isinstance(given, list) or len(given) != len(claim.clients):
        return None
    return np.array(array("d", given))  # refuses what is no number


def _reach(claim: Claim, leaders: IntArray, u: FloatArray) -> BoolArray:
    """Return for which leaders their multipliers, shape (leaders, clients), prove the claim."""
    from placement.proof import _pair_sums

    grid, rules = claim.rounded, claim.rules
    assert grid is not None
    scaled = grid.scaled(u)
    fits = np.abs(scaled).sum(axis=1) <= 2 * grid.total  # NaN and ∞ are refused too
    scaled[~fits] = 0.0
    multipliers = np.floor(scaled).astype(np.int64)
    rho = np.empty((len(leaders), len(rules.may_hold)), dtype=np.int64)
    near, relay = np.ascontiguousarray(grid.near_costs), np.ascontiguousarray(grid.relay)
    price = grid.whole(np.array([claim.price(leader) for leader in leaders.tolist()]))
    constant = rounded_constant(claim, leaders) + price[np.arange(len(leaders)), leaders]
    reached = grid.up(claim.needed, claim.bits) - constant.astype(object)
    for k, leader in enumerate(leaders.tolist()):
        sizes = (*claim.rank.shape, claim.rank.itemsize, leader)
        to_leader = claim.to_leader(leader)[0]
        reached[k] -= _pair_sums.start_sums(
            sizes, BELOW, claim.rank, multipliers[k], near, relay, to_leader, rho[k]
        )
    rho += price
    rows = np.arange(len(leaders))
    free = np.tile(rules.may_hold, (len(leaders), 1))
    free[rows, leaders] = False
    proved = (_least_choice(claim, leaders, free, rho) >= reached).astype(bool)
    return np.asarray(fits & proved)


def _least_choice(claim: Claim, leaders: IntArray, free: BoolArray, rho: Whole) -> Whole:
    """Return the lower bound of Z(ρ) under each leader; the arrays have a row for each."""
    rules, grid = claim.rules, claim.rounded
    assert grid is not None
    rows = np.arange(len(leaders))[:, np.newaxis]
    count, sites = rho.shape
    rho = np.where(free, rho, np.int64(0))
    order = np.where(free, rho, np.iinfo(np.int64).max).argsort(axis=1, kind="stable")
    sorted_rho = rho[rows, order]
    sums = np.zeros((count, sites + 1), dtype=np.int64)
    np.minimum(sorted_rho, 0).cumsum(axis=1, out=sums[:, 1:])
    more = max(rules.replicas_max - 1, 0)
    need = rules.quorum - 1
    waits = claim.scenario_rtt[0][leaders]
    if not grid.quorum.any() or need < 1:
        return sums[:, min(more, sites)]
    place = np.empty_like(order)
    place[rows, order] = np.arange(sites)
    place[~(free & rules.may_vote)] = sites  # no vote from there
    by_wait = np.where(place < sites, waits, np.inf).argsort(axis=1, kind="stable")
    costs = whole(grid.quorum[0] * waits)[rows, by_wait]
    places = place[rows, by_wait]
    best = np.full(count, np.iinfo(np.int64).max)
    nearest = np.full((count, need + 1), sites)
    sorted_rho = np.append(sorted_rho, np.zeros((count, 1), dtype=np.int64), axis=1)
    floor = sums[:, min(more, sites)]
    for k in range(min(sites, int((places < sites).sum(axis=1).max(initial=0)))):
        nearest[:, need] = places[:, k]
        nearest.sort(axis=1)
        enough = nearest[:, need - 1] < sites
        end = np.full(count, max(more - need, 0))
        beyond = np.zeros(count, dtype=np.int64)
        for chosen in nearest[:, :need].T:
            within = chosen < end
            end = np.minimum(end + within, sites)
            beyond += np.where(within, 0, sorted_rho[rows[:, 0], chosen])
        value = costs[:, k] + sums[rows[:, 0], end] + beyond
        np.minimum(best, value, out=best, where=enough & (places[:, k] < sites))
        if (costs[:, k] + floor >= best).all():
            break
    return best
