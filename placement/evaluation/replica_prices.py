"""Prices of moves as prices of the replicas of sets of one size, for searches over sets.

A price of a move is linear in the replicas and votes (:mod:`placement.evaluation.move_costs`):
K_ℓ + Σ_{r ∈ R} a_r + Σ_{r ∈ V} b_r. With g = a + b where every replica votes, and g = a + min(0, b)
else, no set of n replicas under a leader ℓ has a lower price than

    (K_ℓ + n·min g) + Σ_{r ∈ R} (g_r − min g),

and where every replica votes this is the price itself. The terms of the second sum are >= 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placement.support.checks import BoolArray, FloatArray

if TYPE_CHECKING:
    from placement.evaluation.cost_model import LinearCost
    from placement.problem import Problem

__all__ = ["ReplicaPrices", "most_new_sites", "new_sites"]

_ROUNDING = 2e-11
"""Relative: constants are lowered by so much of what they were added from."""


@dataclass(frozen=True, eq=False)
class ReplicaPrices:
    """Least price of a move to sets of one size, in ms·operations.

    Attributes
    ----------
    by_site
        Price of a replica at each site, >= 0, shape (sites,).
    constants
        What is added to the sum under each leader, rounded down, shape (sites,); of either sign.
        Where no operation needs a leader, all are equal.
    """

    by_site: FloatArray
    constants: FloatArray

    @classmethod
    def of(cls, problem: Problem, size: int) -> ReplicaPrices | None:
        """Return the prices of sets of so many replicas; None where moves have no prices.

        Parameters
        ----------
        problem
            The question; its cost has no weight.
        size
            |R|.
        """
        if problem.moves is None or not problem.moves.priced:
            return None
        if not problem.objective.minimises_mean:
            return None  # its values hold no prices
        sites = len(problem.instance.sites)
        linear = problem.added_cost(0)
        assert linear is not None
        price = _of_replicas(linear, problem.rules.voters == size)
        able = problem.rules.may_hold
        low = float(price[able].min()) if able.any() else 0.0
        constants = np.zeros(sites)
        for leader in range(sites):
            under = problem.added_cost(leader)
            assert under is not None
            magnitude = abs(under.constant) + abs(low) * size
            constants[leader] = under.constant + low * size - _ROUNDING * magnitude
        return cls(np.where(able, price - low, 0.0), constants)


def _of_replicas(linear: LinearCost, all_vote: bool) -> FloatArray:
    """Return g of each site, shape (sites,)."""
    if linear.voter is None:
        return linear.replica
    return linear.replica + (linear.voter if all_vote else np.minimum(linear.voter, 0.0))


def new_sites(problem: Problem) -> BoolArray:
    """Return which sites hold no replica in the present configuration, shape (sites,)."""
    new = np.ones(len(problem.instance.sites), dtype=bool)
    if problem.present is not None:
        new[list(problem.present.replicas)] = False
    return new


def most_new_sites(problem: Problem, size: int) -> int:
    """Return how many of the replicas of a set may be at new sites by the limits on moves.

    Parameters
    ----------
    problem
        The question.
    size
        |R|.

    Returns
    -------
    int
        At most `size`; −1 where no set of this size keeps the limits.

    Notes
    -----
    O(limits · |S| log |S|): the cheapest replicas of each kind, for each number of new ones.
    """
    new, able = new_sites(problem), problem.rules.may_hold
    possible = [
        n for n in range(size + 1) if n <= (new & able).sum() and size - n <= (~new & able).sum()
    ]
    for limit in problem.limits:
        linear = limit.linear(0 if problem.present is None else problem.present.leader)
        price = _of_replicas(linear, problem.rules.voters == size)
        fresh, old = np.sort(price[new & able]), np.sort(price[~new & able])
        possible = [
            n
            for n in possible
            if linear.constant + fresh[:n].sum() + old[: size - n].sum() <= limit.allowed
        ]
    return max(possible, default=-1)
