"""Baseline rules: simple leader strategies of administrators, to compare a plan with.

Sharov et al., PVLDB 8(12), 2015, section 6.1: for given replicas and voters,

- ``closest-to-writes``: the candidate with the smallest RTT to the client cluster that issued most
  transactions in the first interval; undefined when there were none;
- ``smallest-quorum``: the candidate that gathers a quorum fastest, argmin q_ℓ(V);
- ``average``: leaders spread evenly over the voters; the score is the mean over them (Eq. 4).
"""

from __future__ import annotations

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


def closest_to_writes(problem: Problem, candidates: list[int]) -> int | None:
    """Candidate closest to the client that wrote most in the first interval; None without writes.

    Ties go to the client, and the site, that comes first.
    """
    instance = problem.instance
    writing = [o.is_transaction for o in instance.operations]
    writes = instance.counts[0][:, writing].sum(axis=-1)
    if not writes.any():
        return None
    rtt = instance.client_rtt if instance.client_rtt.ndim == 2 else instance.client_rtt[0]
    row = rtt[int(np.argmax(writes)), candidates]
    return candidates[int(np.argmin(row))]


def smallest_quorum(
    problem: Problem, candidates: list[int], voters: tuple[int, ...], quorum: int
) -> int:
    """Candidate with the smallest q_ℓ(V), averaged over the scenarios; the first of equal ones.

    `voters` are the votes a leader may gather, `quorum` how many it waits for.
    """
    waits = [
        sum(float(quorum_latency(rtt, ell, voters, quorum)) for rtt in problem.demand.site_rtt)
        for ell in candidates
    ]
    return candidates[int(first_best(np.array(waits)))]


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

    def value(leader: int) -> float:
        sites = (configuration.voters, configuration.replicas)
        return score(demand, leader, *sites, quorum)

    best = value(configuration.leader)

    def choice(strategy: str, leader: int | None, total: float) -> RuleOfThumb:
        return RuleOfThumb(
            strategy,
            None if leader is None else problem.instance.sites[leader],
            total / demand.operations,
            overhead(total, best),
        )

    writer = closest_to_writes(problem, candidates)
    quick = smallest_quorum(problem, candidates, configuration.voters, quorum)
    return (
        RuleOfThumb(
            "closest-to-writes",
            None,
            float("nan"),
            float("nan"),
            "no transactions in the first interval",
        )
        if writer is None
        else choice("closest-to-writes", writer, value(writer)),
        choice("smallest-quorum", quick, value(quick)),
        choice("average", None, float(np.mean([value(ell) for ell in candidates]))),
    )
