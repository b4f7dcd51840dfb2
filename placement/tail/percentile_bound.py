"""A lower bound on the percentile: operations that are late for any replicas and voters.

For a deadline t and leader ℓ, with s and d of :mod:`placement.tail.late_operations`,

    late_ℓ(R, V) >= Σ_c min { s_ℓ(c, r) : r ⪯_c ℓ, r may hold a replica } + d_ℓ(all that may vote)

since a client is served by ℓ or by something it prefers to ℓ, and the m-th answer of more voters
comes no later. Where that exceeds 1 − p for every leader, every percentile lies beyond t. The bound
falls as t grows, so that bisection finds the least t that it does not rule out.

Three sites by hand: a and b are 10 ms apart, c is 20 ms from both. Clients at a, b and c issue 60,
30 and 10 strong reads, 1 ms from their own site. At a deadline of 1 ms only the leader's own client
is in time: 40, 70 and 90 % are late under the leaders a, b and c. At 10 ms, a and b serve each
other's client, and 10 % are late. The 60th percentile may therefore be 1 ms, the 90th is at least
10 ms, and the 95th at least 20 ms:

>>> from placement import Instance, Problem
>>> from placement.model.operations import STRONG_READ
>>> from placement.tail.rtt_distributions import Distributions
>>> sites, apart = ["a", "b", "c"], [[0, 10, 20], [10, 0, 20], [20, 20, 0]]
>>> to_sites = np.array(apart) + np.eye(3)
>>> reads = [[60], [30], [10]]
>>> world = Instance(sites, sites, to_sites, apart, reads, operations=[STRONG_READ])
>>> constant = Distributions.constant(world, bins=50)
>>> late = LateOperations(Problem(world, replicas=2, voters=2), constant)
>>> leaders = np.arange(3)
>>> least_late(late, leaders, late.summands(leaders, 1), 1).round(3).tolist()
[0.4, 0.7, 0.9]
>>> [percentile_bound(late, share) for share in (0.6, 0.9, 0.95)]
[1.0, 10.0, 20.0]
"""

from __future__ import annotations

import math

import numpy as np

from placement.evaluation.score import closest_first
from placement.support.checks import FloatArray, IntArray
from placement.tail.late_operations import LateOperations

__all__ = ["SLACK", "least_late", "percentile_bound"]

SLACK = 1e-9
"""Share of all operations within which rounding and the evaluator's tolerance lie."""


def least_late(
    late: LateOperations, leaders: IntArray, summands: FloatArray, deadline: int
) -> FloatArray:
    """Share that is late at least under each leader, shape (B,).

    Parameters
    ----------
    late
        Shares of late operations.
    leaders
        Site indices, shape (B,).
    summands
        Of these leaders and this deadline, from :meth:`LateOperations.summands`.
    deadline
        t, in bins.
    """
    rules = late.problem.rules
    rank = np.argsort(closest_first(late.problem.demand.client_rtt[0]), axis=1, kind="stable")
    voters = tuple(np.nonzero(rules.may_vote)[0].tolist())
    least = np.zeros(len(leaders))
    for i, leader in enumerate(leaders.tolist()):
        usable = rules.may_hold & (rank <= rank[:, [leader]])
        each = np.where(usable.T, summands[i, :-1], math.inf).min(axis=0)
        led = late.led_late(leader, voters, deadline, rules.quorum)
        least[i] = float(each.sum()) + led
    return least


def percentile_bound(late: LateOperations, share: float) -> float:
    """Lower bound on the latency in ms within which a share of all operations ends.

    Parameters
    ----------
    late
        Shares of late operations.
    share
        p in (0, 1].

    Notes
    -----
    O(log bins) tables of summands for all leaders.
    """
    leaders = np.nonzero(late.problem.rules.may_lead)[0]
    low, high = 0, late.distributions.bins
    while low < high:
        middle = (low + high) // 2
        least = least_late(late, leaders, late.summands(leaders, middle), middle)
        if least.min(initial=math.inf) > 1 - share + SLACK:
            low = middle + 1
        else:
            high = middle
    return low * late.distributions.width
