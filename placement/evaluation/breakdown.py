"""The numbers behind a plan: its value, and the latency by client, operation, leader and voter.

Simple leader strategies of administrators are compared with a plan. For given replicas and voters
(Sharov et al., PVLDB 8(12), 2015, section 6.1):

- ``closest-to-writes``: the candidate with the smallest RTT to the client cluster that issued most
  transactions in the first interval; undefined when there were none;
- ``smallest-quorum``: the candidate that gathers a quorum fastest, argmin q_ℓ(V);
- ``average``: leaders spread evenly over the voters; the score is the mean over them (Eq. 4).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placement.evaluation.objective import quorum_size, score_of
from placement.evaluation.score import (
    closest_first,
    first_best,
    latency_parts,
    nearest,
    operation_latency,
    overhead,
    quorum_latency,
    score,
    wait_latencies,
)
from placement.evaluation.waits.wait_latency import needed
from placement.model.configuration import Configuration
from placement.model.demand import Demand, WaitTerm
from placement.model.operations import Clause, Wait
from placement.support.checks import FloatArray

if TYPE_CHECKING:
    from placement.problem import Problem


@dataclass(frozen=True, slots=True)
class ClientLatency:
    """Latency of one client under a plan; of a client that issued nothing it is NaN."""

    client: str
    nearest: str  #: its nearest replica, of the last scenario when RTTs vary
    operations: float  #: weighted by the decay
    to_nearest: float  #: RTT in ms
    to_leader: float  #: RTT in ms; NaN where no operation needs a leader
    latency: float  #: mean of its operations, ms


@dataclass(frozen=True, slots=True)
class OperationLatency:
    """Latency of one kind of operation: weighted count, share of all, mean latency in ms."""

    operation: str
    operations: float
    share: float
    latency: float


@dataclass(frozen=True, slots=True)
class LeaderValue:
    """A voter as leader, other roles unchanged: score, mean latency in ms, overhead in %."""

    leader: str
    score: float
    mean_latency: float
    overhead: float


@dataclass(frozen=True, slots=True)
class QuorumMember:
    """A voter in order of answer: RTT from the leader in ms, and whether it is waited for."""

    voter: str
    rtt: float
    counted: bool


def objective_value(problem: Problem, configuration: Configuration) -> float:
    """Value of a configuration under the problem's objective: what every method minimises."""
    return problem.objective.value(problem, configuration)


def objective_values(
    problem: Problem, configurations: Sequence[Configuration]
) -> npt.NDArray[np.float64]:
    """Values of many configurations, each as :func:`objective_value` gives it, shape (n,)."""
    return problem.objective.values(problem, configurations)


def mean_latencies(
    problem: Problem, configuration: Configuration, axes: tuple[int, int]
) -> tuple[FloatArray, FloatArray]:
    """Operations issued and their mean latency, summed over two axes of (scenario, client, op)."""
    demand = problem.demand
    latency = operation_latency(demand, configuration, quorum_size(problem, configuration))
    issued = demand.counts.sum(axis=axes)
    if demand.waits:  # a wait of an operation that is not issued may be endless
        latency = np.where(demand.counts > 0, latency, 0.0)
    total = (latency * demand.counts).sum(axis=axes)
    mean = np.divide(total, issued, out=np.full_like(total, math.nan), where=issued > 0)
    return issued, mean


def by_client(problem: Problem, configuration: Configuration) -> tuple[ClientLatency, ...]:
    """Return the latency of each client, in client order."""
    issued, mean = mean_latencies(problem, configuration, (0, 2))
    last = problem.demand.client_rtt[-1]
    near = nearest(last, configuration.replicas)
    led = not problem.demand.leaderless
    return tuple(
        ClientLatency(
            client,
            problem.instance.sites[int(near[c])],
            float(issued[c]),
            float(last[c, near[c]]),
            float(last[c, configuration.leader]) if led else math.nan,
            float(mean[c]),
        )
        for c, client in enumerate(problem.instance.clients)
    )


def by_operation(problem: Problem, configuration: Configuration) -> tuple[OperationLatency, ...]:
    """Return the latency of each kind of operation, in the order of the instance."""
    issued, mean = mean_latencies(problem, configuration, (0, 1))
    return tuple(
        OperationLatency(
            operation.name,
            float(issued[o]),
            float(issued[o] / problem.demand.operations),
            float(mean[o]),
        )
        for o, operation in enumerate(problem.instance.operations)
    )


def by_leader(problem: Problem, configuration: Configuration) -> tuple[LeaderValue, ...]:
    """Every voter that may lead, as leader, best first (Sharov et al., Figure 2).

    Replicas and voters stay as they are; `overhead` is in percent of the best.
    """
    held = set(configuration.replicas)  # a witness cannot lead
    candidates = {s for s in configuration.voters if problem.rules.may_lead[s] and s in held}
    order = sorted(candidates | {configuration.leader})
    scores = np.array(
        [score_of(problem, dataclasses.replace(configuration, leader=site)) for site in order]
    )
    best = float(scores[first_best(scores)])
    return tuple(
        LeaderValue(
            problem.instance.sites[order[i]],
            float(scores[i]),
            float(scores[i] / problem.demand.operations),
            overhead(float(scores[i]), best),
        )
        for i in closest_first(scores)
    )


def answer_times(problem: Problem, configuration: Configuration) -> list[tuple[int, float]]:
    """Voters with RTTs from the leader in ms, of the last scenario, in the order of answer."""
    rtt = problem.demand.site_rtt[-1][configuration.leader]
    voters = [(site, float(rtt[site])) for site in sorted(configuration.voters)]
    return sorted(voters, key=lambda voter: voter[1])


def by_voter(problem: Problem, configuration: Configuration) -> tuple[QuorumMember, ...]:
    """Voters in the order in which their answers arrive; the first m are waited for.

    With RTTs that vary by interval, those of the last scenario.
    """
    answers, quorum = answer_times(problem, configuration), quorum_size(problem, configuration)
    return tuple(
        QuorumMember(problem.instance.sites[site], wait, rank < quorum)
        for rank, (site, wait) in enumerate(answers)
    )


# Baseline rules: simple leader strategies of administrators, to compare a plan with


@dataclass(frozen=True, slots=True)
class RuleOfThumb:
    """A naive leader for the replicas and voters of a plan."""

    strategy: str  #: "closest-to-writes", "smallest-quorum" or "average"
    leader: str | None  #: name; None for the average, or when the strategy is undefined
    mean_latency: float  #: ms; NaN when undefined
    overhead: float  #: in % of the configuration it is compared with; NaN when undefined
    why: str = ""  #: why it is undefined; empty otherwise


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


# Parts of the latency: trips and waits by operation, and the member that is last


@dataclass(frozen=True, slots=True)
class OperationParts:
    """Mean latency of one kind of operation, as the sum of its parts in ms."""

    operation: str  #: its name
    to_nearest: float  #: trips from the client to its nearest replica
    to_leader: float  #: trips from there, and from the client, to the leader
    waiting: float  #: waits for votes and other answers
    constant: float  #: the same for every operation of the kind


@dataclass(frozen=True, slots=True)
class WaitLatency:
    """Wait of one kind of operation, over all clients that issue it."""

    operation: str  #: name of the operation
    wait: str  #: the wait in words, such as "near: 2 of voters"; its times to three digits
    latency: float  #: mean of one round in ms
    #: `last`, `last_share`: the member that most often answers last of those waited for, and the
    #: share of the operations for which it does
    last: str
    last_share: float
    one_fewer: float  #: mean of one round in ms if each clause needed one answer fewer


def by_part(problem: Problem, configuration: Configuration) -> tuple[OperationParts, ...]:
    """Return the parts of the mean latency of each operation, in the order of the instance.

    The parts of an operation without demand are NaN.
    """
    demand = problem.demand
    parts = latency_parts(demand, configuration, quorum_size(problem, configuration))
    found = []
    for row, operation in enumerate(problem.instance.operations):
        constant = float(demand.constants[row]) if demand.constants.size else 0.0
        count = demand.counts[:, :, row]
        means = [_mean(part[:, :, row], count) for part in parts]
        means.append(constant if count.any() else math.nan)
        found.append(OperationParts(operation.name, *means))
    return tuple(found)


def _mean(values: FloatArray, count: FloatArray) -> float:
    """Return the mean weighted with the counts; NaN without counts."""
    total = float(count.sum())
    if total == 0:
        return math.nan
    return float((np.where(count > 0, values, 0.0) * count).sum() / total)


def by_wait(problem: Problem, configuration: Configuration) -> tuple[WaitLatency, ...]:
    """Return each wait of each operation that was issued, in the order of the instance.

    Rounds of votes of the four coefficients are left out: ``Plan.quorum_members`` has them.
    """
    demand, quorum = problem.demand, quorum_size(problem, configuration)
    latencies = wait_latencies(demand, configuration, quorum)
    sizes = {"voters": len(configuration.voters), "replicas": len(configuration.replicas)}

    def one_fewer(clause: Clause) -> Clause:
        """Ask for one answer fewer, at least one; the need of a domain's members stays."""
        if clause.scope and not isinstance(clause.need, int):
            return clause
        size = sizes[clause.role]
        need = int(needed(clause, size, quorum, np.array(size)))
        return dataclasses.replace(clause, need=max(1, need - 1))

    terms = tuple(
        dataclasses.replace(term, wait=Wait(term.origin, tuple(map(one_fewer, term.clauses))))
        for term in demand.waits
    )
    fewer = wait_latencies(dataclasses.replace(demand, waits=terms), configuration, quorum)
    last = [_last(demand, term, configuration, quorum) for term in demand.waits]
    found = []
    for row, operation in enumerate(problem.instance.operations):
        for j, term in enumerate(demand.waits):
            count, times = demand.counts[:, :, row], float(demand.times[row, j])
            if not (times and count.any()):
                continue
            share = np.bincount(
                last[j][count > 0], count[count > 0], minlength=len(problem.instance.sites)
            )
            shown = float(f"{times:.3g}")  # a mean over clients may have sixteen digits
            wait = Wait(term.origin, term.clauses, shown)
            slowest = int(share.argmax())
            means = (_mean(latencies[j], count), _mean(fewer[j], count))
            last_one = (problem.instance.sites[slowest], float(share[slowest] / share.sum()))
            found.append(WaitLatency(operation.name, str(wait), means[0], *last_one, means[1]))
    return tuple(found)


def _last(demand: Demand, term: WaitTerm, configuration: Configuration, quorum: int) -> np.ndarray:
    """Return the member that answers last for every scenario and client, (scenarios, clients)."""
    alone = dataclasses.replace(demand, waits=(term,))
    latency = wait_latencies(alone, configuration, quorum)[0]
    members = np.array(sorted({*configuration.voters, *configuration.replicas}), dtype=np.intp)
    rows = []
    for k, (rtt, between) in enumerate(zip(demand.client_rtt, demand.site_rtt, strict=True)):
        if term.origin == "client":
            answers = rtt[:, members]
        else:
            near = nearest(rtt, configuration.replicas)
            origins = near if term.origin == "near" else np.full_like(near, configuration.leader)
            answers = between[origins[:, np.newaxis], members]
        rows.append(members[np.abs(answers - latency[k][:, np.newaxis]).argmin(axis=1)])
    return np.array(rows)
