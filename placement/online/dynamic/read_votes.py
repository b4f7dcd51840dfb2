"""Votes that reads cast, and the most voted-for objects of each site.

A read carries the preferred sites that rank above the site it is sent to; the node that serves it
counts one vote for each. A dynamic copy that serves a read also gets a vote for its own site, so
that it stays. Matri et al. 2018, sections 6.1 and 6.2 (Algorithm 1).
"""

from __future__ import annotations

from enum import StrEnum

import numpy as np

from placement.online.dynamic.problem import ReplicationProblem
from placement.support.checks import BoolArray, FloatArray, IntArray, whole

__all__ = ["Weight", "most_voted", "vote_rates"]


class Weight(StrEnum):
    """Weight of one vote."""

    COUNT = "count"
    """1: the rule of the paper."""
    SAVED = "saved"
    """The ms a copy saves the client against the closest static copy."""
    MARGINAL = "marginal"
    """The ms a copy saves the client against the best copy besides it."""


def vote_rates(
    problem: ReplicationProblem, copies: BoolArray, weight: Weight = Weight.COUNT
) -> FloatArray:
    """Return expected votes per unit of time for each site and object, shape (sites, objects).

    Clients know which copies exist.

    Parameters
    ----------
    problem
        Rates and preference lists.
    copies
        Dynamic copies that exist now.
    weight
        What a vote counts.

    Notes
    -----
    O(Σ_i |preferred_i| · objects); :attr:`Weight.MARGINAL` costs another factor |preferred_i|.
    """
    rtt, static = problem.geography.rtt, problem.static
    result = np.zeros(static.shape)
    for site, row in enumerate(problem.geography.preferred):
        looking = np.ones(problem.objects, dtype=bool)
        for j in row:
            # A static copy that serves gets no vote, and ends the search like a dynamic one.
            voting = looking & ~static[j]
            if weight is Weight.COUNT:
                worth = np.ones(problem.objects)
            elif weight is Weight.SAVED:
                worth = problem.static_rtt[site] - rtt[site, j]
            else:
                worth = _best_without(problem, copies, site, j) - rtt[site, j]
            result[j] += np.where(voting, problem.reads[site] * np.maximum(worth, 0.0), 0.0)
            looking &= ~(static[j] | copies[j])
    return result


def _best_without(
    problem: ReplicationProblem, copies: BoolArray, site: int, left_out: int
) -> FloatArray:
    best: FloatArray = problem.static_rtt[site].copy()
    for j in problem.geography.preferred[site]:
        if j != left_out:
            distance = problem.geography.rtt[site, j]
            np.minimum(best, np.where(copies[j], distance, np.inf), out=best)
    return best


def most_voted(votes: FloatArray | IntArray, k: int) -> IntArray:
    """Return the k keys with most votes, most first; ties go to the smaller key.

    Keys without votes are never among them, so that there may be fewer than k.

    Parameters
    ----------
    votes
        Votes of each key, shape (keys,).
    k
        How many.

    Notes
    -----
    O(keys + c log c), c the number of keys with at least as many votes as the k-th.

    Examples
    --------
    >>> most_voted(np.array([3, 0, 5, 3]), 2).tolist()
    [2, 0]
    """
    k = whole(k, "k")
    candidates = np.flatnonzero(votes > 0)
    if k == 0:
        return candidates[:0]
    if len(candidates) > k:
        counts = votes[candidates]
        least = np.partition(counts, len(counts) - k)[len(counts) - k]
        candidates = candidates[counts >= least]
    order = np.argsort(-votes[candidates], kind="stable")  # candidates ascend: ties by key
    return candidates[order[:k]].astype(np.intp)
