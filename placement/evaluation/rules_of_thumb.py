"""Baseline rules: simple leader strategies of administrators, to compare a plan with.

Sharov et al., PVLDB 8(12), 2015, section 6.1: for given replicas and voters,

- ``closest-to-writes``: the candidate with the smallest RTT to the client cluster that issued most
  transactions in the first interval; undefined when there were none;
- ``smallest-quorum``: the candidate that gathers a quorum fastest, argmin q_ℓ(V);
- ``average``: leaders spread evenly over the voters; the score is the mean over them (Eq. 4).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placement.evaluation.objective import quorum_size
from placement.evaluation.score import first_best, overhead, quorum_latency, score
from placement.model.configuration import Configuration

if TYPE_CHECKING:
    from placement.problem import Problem


@dataclass(frozen=True, slots=True)
class RuleOfThumb:
    """A naive leader for the replicas and voters of a plan.

    Attributes
    ----------
    strategy
        "closest-to-writes", "smallest-quorum" or "average".
    leader
        Name; None for the average, or when the strategy is undefined.
    mean_latency
        ms; NaN when undefined.
    overhead
        In % of the configuration it is compared with; NaN when undefined.
    why
        Why it is undefined; empty otherwise.
    """

    strategy: str
    leader: str | None
    mean_latency: float
    overhead: float
    why: str = ""


def rules_of_thumb(problem: Problem, configuration: Configuration) -> tuple[RuleOfThumb, ...]:
    """Score the naive leaders for the replicas and voters of a feasible configuration.

    Candidates are the voters that may lead. Scores are Eq. 1; prices do not enter. Nothing where
    no operation needs a leader.
    """
    if problem.demand.leaderless:
        return ()
    witnesses = set(configuration.witnesses)
    voters = sorted(site for site in configuration.voters if site not in witnesses)
    candidates = [s for s in voters if problem.rules.may_lead[s]] or [configuration.leader]
    demand, quorum = problem.demand, quorum_size(problem, configuration)
    instance, sites = problem.instance, (configuration.voters, configuration.replicas)

    def value(leader: int) -> float:
        return score(demand, leader, *sites, quorum)

    best = value(configuration.leader)

    def choice(strategy: str, leader: int | None, total: float) -> RuleOfThumb:
        return RuleOfThumb(
            strategy,
            None if leader is None else instance.sites[leader],
            total / demand.operations,
            overhead(total, best),
        )

    writes = instance.counts[0][:, [o.is_transaction for o in instance.operations]].sum(axis=-1)
    if writes.any():  # ties go to the client, and the site, that comes first
        rtt = instance.client_rtt if instance.client_rtt.ndim == 2 else instance.client_rtt[0]
        near = candidates[int(np.argmin(rtt[int(np.argmax(writes)), candidates]))]
        closest = choice("closest-to-writes", near, value(near))
    else:
        why = "no transactions in the first interval"
        closest = RuleOfThumb("closest-to-writes", None, math.nan, math.nan, why)
    waits = [  # averaged over the scenarios
        sum(float(quorum_latency(rtt, ell, sites[0], quorum)) for rtt in demand.site_rtt)
        for ell in candidates
    ]
    quick = candidates[int(first_best(np.array(waits)))]
    return (
        closest,
        choice("smallest-quorum", quick, value(quick)),
        choice("average", None, float(np.mean([value(ell) for ell in candidates]))),
    )
