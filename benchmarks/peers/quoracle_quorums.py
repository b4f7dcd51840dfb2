"""quoracle: prices the commit of every (leader, voters) that our loop shows it."""

from __future__ import annotations

import datetime
import itertools
import math
import time

import numpy as np
import quoracle

from placement.errors import SolverError
from placement.evaluation.score import nearest
from placement.methods.options import Options, Progress
from placement.methods.registry import Method
from placement.model.configuration import Configuration
from placement.model.constraints import majority
from placement.plan import Plan
from placement.problem import Problem
from placement.support.status import SearchEnd, Termination, end_early

__all__ = ["METHOD", "commit_latency", "resilience"]

_SCALE = 1000.0
"""Seconds that stand for a millisecond: quoracle's timedelta counts in microseconds."""


def commit_latency(rtt: list[float]) -> float:
    """Return what quoracle says a majority commit costs a leader with these RTTs to the voters.

    Parameters
    ----------
    rtt
        ms from the leader to each voter, its own 0 among them.
    """
    nodes = [
        quoracle.Node(f"n{i}", latency=datetime.timedelta(seconds=ms * _SCALE))
        for i, ms in enumerate(rtt)
    ]
    system = quoracle.QuorumSystem(writes=quoracle.majority(nodes))
    strategy = system.strategy(optimize="latency", write_fraction=1)
    latency: datetime.timedelta = strategy.latency(write_fraction=1)
    return latency.total_seconds() / _SCALE


def resilience(voters: int) -> int:
    """Voters that may be lost under a majority system, by quoracle."""
    nodes = [quoracle.Node(f"n{i}") for i in range(voters)]
    found: int = quoracle.QuorumSystem(writes=quoracle.majority(nodes)).write_resilience()
    return found


def _refuses(problem: Problem) -> str | None:
    rules, demand = problem.rules, problem.demand
    if rules.replicas_min != rules.replicas_max or rules.voters != rules.replicas_min:
        return "every node votes in quoracle: it takes |V| = |R| only"
    if rules.quorum != majority(rules.voters):
        return "it is given a majority system here"
    if rules.groups or rules.cost_weight or rules.budget is not None or demand.scenarios != 1:
        return "it knows no failure domains, prices or changing RTTs"
    if not rules.may_hold.all() or rules.must_hold.any() or not rules.may_lead.all():
        return "it is given neither pins nor forbidden sites here"
    return None


def _call(problem: Problem, options: Options) -> Plan:
    demand, size = problem.demand, problem.rules.voters
    client_rtt, site_rtt = demand.client_rtt[0], demand.site_rtt[0]
    rounds = float(demand.quorum[0])
    started = time.perf_counter()
    best, incumbent, done = math.inf, None, 0
    end = SearchEnd()
    sites = range(client_rtt.shape[1])
    total = math.comb(len(sites), size) * size
    with end_early(end):
        for replicas in itertools.combinations(sites, size):
            near = nearest(client_rtt, replicas)
            each = np.arange(len(near))
            reads = float(demand.near[0] @ client_rtt[each, near])
            for leader in replicas:
                if options.time_limit is not None and (
                    time.perf_counter() - started > options.time_limit
                ):
                    raise TimeoutError
                wait = commit_latency([float(site_rtt[leader, v]) for v in replicas])
                value = (
                    reads
                    + float(demand.relay[0] @ site_rtt[near, leader])
                    + float(demand.direct[0] @ client_rtt[:, leader])
                    + rounds * wait
                )
                done += 1
                if value < best:
                    best, incumbent = value, Configuration.of(leader, replicas, replicas)
            options.report(Progress(time.perf_counter() - started, best, done=done, total=total))
    if incumbent is not None:
        worth = problem.objective.value(problem, incumbent)
        if not math.isclose(worth, best, rel_tol=1e-6):
            raise SolverError(f"quoracle's latencies give {best!r}, the evaluator {worth!r}")
    complete = end.termination is Termination.FINISHED
    return Plan.of(
        problem,
        incumbent,
        method=METHOD.name,
        bound=best * (1 - 5e-10) if complete else -math.inf,
        termination=end.termination,
        stats={"linear_programs": done, "of": total, "resilience": resilience(size)},
    )


METHOD = Method(
    name="peer/quoracle",
    call=_call,
    summary="enumeration of leaders and voters, each commit priced by quoracle",
    exact=True,
    refuses=_refuses,
    complexity="C(S, v)·v linear programs over all quorums of v nodes",
    reference="Whittaker et al., Read-Write Quorum Systems Made Practical, PaPoC 2021",
)
