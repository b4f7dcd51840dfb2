"""Proof of the best plan under losses with waits: everything is evaluated while that is quick."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from placement.evaluation.objective import ProofMethod

if TYPE_CHECKING:
    from placement.problem import Problem

__all__ = ["enumerated_with_waits"]

_MOST = 15_000_000
"""Choices of replicas, voters, leader, witnesses and lease holders that are evaluated: about two
minutes."""


_MOST_PERCENTILES = 20_000
"""The same where a percentile of each is computed after every loss: some minutes."""


def enumerated_with_waits(problem: Problem, sets: int, *, percentile: bool = False) -> ProofMethod:
    """Return ``exhaustive``, with a refusal where there is too much to evaluate.

    Without witnesses, chosen lease holders, a budget and RTTs that vary, a search over sets
    evaluates few of them, and nothing is refused.

    Parameters
    ----------
    problem
        The question.
    sets
        Replica sets.
    percentile
        Whether a percentile is minimised, which the search over sets does not bound.
    """
    reason = "it minimises over losses with waits, witnesses or a vote layout"
    rules = problem.rules
    aside = rules.witnesses or rules.lease_holders or rules.budget is not None
    if not (aside or percentile) and problem.demand.scenarios == 1:
        return ProofMethod("exhaustive", reason)
    count = sets * math.comb(rules.replicas_max, rules.data_voters)
    count *= 1 if problem.demand.leaderless else rules.data_voters
    if rules.witnesses and rules.may_witness is not None:
        count *= math.comb(int(rules.may_witness.sum()), rules.witnesses)
    if rules.lease_holders and not rules.voters_hold_leases:
        count *= math.comb(rules.replicas_max - 1, rules.lease_holders - 1)
    most = _MOST_PERCENTILES if percentile else _MOST
    if count <= most:
        return ProofMethod("exhaustive", reason)
    way_out = "use 'local-search', or 'exhaustive', which may take hours"
    if percentile:
        way_out = "name the replicas, leave out candidate sites (forbidden), or minimise the mean"
    elif rules.witnesses or rules.lease_holders:
        way_out = "leave out candidate sites (forbidden)"
    many = (
        f"{reason}, and {count:,} configurations are many to evaluate (at most {most:,}): {way_out}"
    )
    return ProofMethod("exhaustive", reason, many)
