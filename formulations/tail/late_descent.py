"""Swap descent on the number of late operations: a plan that keeps a deadline, without a proof.

The search for percentiles proves the last bin below its best plan. Its work on earlier deadlines,
or on trees that only improve the plan, is lost. The plan is therefore improved first. At a deadline
the late operations of a replica set are a sum over clients, of a table, and a term of the voters
(:mod:`placement.tail.late_operations`). Swaps of one site lower this sum, best swap first (Teitz
and Bart, Operations Research 16(5), 1968, for the p-median).
"""

from __future__ import annotations

import math

import numpy as np

from formulations.exact import tuning
from formulations.exact.late_voters import VotersByInterval
from placement.support.checks import BoolArray, FloatArray, IntArray

__all__ = ["fewer_late"]

_LESS = 1e-12
"""Share of operations by which a swap must lower those that are late."""


def fewer_late(
    replicas: list[int],
    table: FloatArray,
    rank: IntArray,
    voters: VotersByInterval,
    movable: BoolArray,
    allowed: float,
) -> list[int] | None:
    """Swap sites until few enough operations are late.

    Parameters
    ----------
    replicas
        A set with the leader.
    table
        Share of operations that is late, of each client at each site, shape (sites, clients).
    rank
        Place of each site in the order of each client, shape (sites, clients).
    voters
        The part of the voters.
    movable
        Sites that may hold a replica or not, shape (sites,).
    allowed
        Share of operations that may be late.

    Returns
    -------
    list of int or None
        Ascending; rules for sites are ignored. None where no swap helps, of those that serve
        the clients best.

    Notes
    -----
    O(replicas · sites · clients) for a swap.
    """
    chosen = sorted(replicas)
    here = _nearby(chosen, table, rank) + voters.of(tuple(chosen))
    while here > allowed:
        sums = np.full((len(chosen), len(table)), math.inf)
        for place, site in enumerate(chosen):
            if movable[site] and len(chosen) > 1:
                sums[place] = _with_another(chosen[:place] + chosen[place + 1 :], table, rank)
        sums[:, ~movable] = math.inf
        sums[:, chosen] = math.inf
        lowest, move = here - _LESS, None
        for flat in np.argsort(sums, axis=None, kind="stable")[: tuning.LATE_SWAPS].tolist():
            place, site = divmod(flat, len(table))
            if sums[place, site] >= lowest:
                break
            after = sorted([*chosen[:place], *chosen[place + 1 :], site])
            late = float(sums[place, site]) + voters.of(tuple(after))
            if late < lowest:
                lowest, move = late, after
        if move is None:
            return None
        here, chosen = lowest, move
    return chosen


def _nearby(chosen: list[int], table: FloatArray, rank: IntArray) -> float:
    """Late operations of the clients, each at its first replica."""
    near = np.array(chosen)[rank[chosen].argmin(axis=0)]
    return float(table[near, np.arange(table.shape[1])].sum())


def _with_another(rest: list[int], table: FloatArray, rank: IntArray) -> FloatArray:
    """Late operations of the clients with each site besides some, shape (sites,)."""
    near, each = np.array(rest)[rank[rest].argmin(axis=0)], np.arange(table.shape[1])
    sums: FloatArray = np.where(rank < rank[near, each], table, table[near, each]).sum(axis=1)
    return sums
