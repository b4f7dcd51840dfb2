"""Parts of the latency of a plan: trips and waits by operation, and the member that is last."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placement.evaluation.objective import quorum_size
from placement.evaluation.score import nearest, score_terms, wait_latencies
from placement.evaluation.waits.wait_latency import needed
from placement.model.configuration import Configuration
from placement.model.demand import Demand, WaitTerm
from placement.model.operations import Clause, Wait
from placement.support.checks import FloatArray

if TYPE_CHECKING:
    from placement.problem import Problem


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
    demand, quorum = problem.demand, quorum_size(problem, configuration)
    asked = (configuration.leader, configuration.voters, configuration.replicas, quorum)
    near, relay, direct, votes = score_terms(demand, *asked)
    waits = wait_latencies(demand, *asked)
    found = []
    for row, operation in enumerate(problem.instance.operations):
        alpha, beta, gamma, delta = demand.coefficients[row]
        waiting = np.broadcast_to(delta * votes[:, np.newaxis], near.shape).copy()
        for j, latency in enumerate(waits):
            if demand.times[row, j]:
                waiting += demand.times[row, j] * latency
        constant = float(demand.constants[row]) if demand.constants.size else 0.0
        count = demand.counts[:, :, row]
        parts = (alpha * near, beta * relay + gamma * direct, waiting)
        means = [_mean(part, count) for part in parts]
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
    asked = (configuration.leader, configuration.voters, configuration.replicas, quorum)
    latencies = wait_latencies(demand, *asked)
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
    fewer = wait_latencies(dataclasses.replace(demand, waits=terms), *asked)
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
    asked = (configuration.leader, configuration.voters, configuration.replicas, quorum)
    latency = wait_latencies(dataclasses.replace(demand, waits=(term,)), *asked)[0]
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
