"""Strategies that plan: tier 3, and every tier of an objective that is no sum over operations.

A plan per database and interval comes from a registered method, by default the exact one, which
starts each search from the plan before. Every plan is paid for by the objective of the problem.
In tiers 1 and 2 the replicas, and in tier 1 the voters, are those of the deployment.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from placement.errors import InputError
from placement.evaluation.moves import Moves
from placement.evaluation.objective import MEAN_LATENCY
from placement.methods.registry import load_method
from placement.model.configuration import Configuration
from placement.overtime.decayed_counts import Decay, decayed_counts
from placement.overtime.replay.deployments import (
    NOBODY,
    Deployments,
    Trace,
    interval_problem,
    plan_of_interval,
)
from placement.overtime.replay.results import SiteSets, StrategyCosts
from placement.plan import Plan, objective_value
from placement.problem import Problem
from placement.support.checks import FloatArray
from placement.support.status import Status

__all__ = ["PlannedResult", "replay_planned"]


@dataclass(frozen=True, eq=False)
class PlannedResult:
    """Outcomes of a tier, and how many of the oracle's plans are proven optimal."""

    outcomes: list[StrategyCosts]
    proven: int
    plans: int


def replay_planned(
    problem: Problem,
    trace: Trace,
    deployments: Deployments,
    strategies: Sequence[str],
    sets: SiteSets,
    *,
    tier: int,
    method: str,
    tick: Callable[[], None] | None = None,
) -> PlannedResult:
    """Replay some strategies that plan.

    Parameters
    ----------
    problem
        Network, constraints, objective, decay.
    trace
        The demand.
    deployments
        What a database runs on until its first operation was seen, its replicas (tiers 1 and 2) and
        voters (tier 1) in all intervals, and the preferred leaders.
    strategies
        Names; see :mod:`placement.overtime.replay.run_replay`.
    sets
        Where the sets of voters and replicas are numbered.
    tier
        1, 2 or 3.
    method
        Name of a registered method that takes the tier and the objective.
    tick
        Called after every plan.

    Notes
    -----
    One plan per database, interval, and strategy that plans: 2 ms each by ``exact`` on 27 sites.
    """
    shape = (len(strategies), *trace.counts.shape[:2])
    leader = np.full(shape, NOBODY, dtype=np.intp)
    voters = np.full(shape, -1, dtype=np.intp)
    replicas = np.full(shape, -1, dtype=np.intp)
    scores = np.full(shape, np.nan)
    proven = plans = 0
    for database, counts in enumerate(trace.counts):
        try:
            one = _DatabaseReplay.of(problem, counts, deployments, database, tier, method, tick)
            chosen_by, sure = one.all_chosen(strategies)
        except InputError as error:
            raise error.at(f"database {trace.databases[database]!r}") from None
        proven += sum(sure)
        plans += len(sure)
        for row, (strategy, chosen) in enumerate(chosen_by.items()):
            for interval, plan in enumerate(chosen):
                if plan is None:
                    continue
                place = (row, database, interval)
                voters[place], replicas[place] = sets.code(plan.voters), sets.code(plan.replicas)
                if strategy == "average":
                    scores[place] = one.spread(interval, plan)
                elif strategy == "given":
                    scores[place] = one.given(interval)
                else:
                    leader[place] = plan.leader
                    scores[place] = one.paid(interval, plan)
    outcomes = [
        StrategyCosts(
            tier, strategy, leader[row, :, 1:], voters[row, :, 1:], replicas[row, :, 1:], paid
        )
        for row, (strategy, paid) in enumerate(zip(strategies, scores[:, :, 1:], strict=True))
    ]
    return PlannedResult(outcomes, proven, plans)


@dataclass(frozen=True, eq=False)
class _DatabaseReplay:
    """Replay of one database: its demand by interval, and its initial configuration."""

    problem: Problem
    counts: FloatArray
    start: Configuration
    preferred: int
    leader_shares: FloatArray | None
    method: str
    tick: Callable[[], None] | None
    moves: Moves | None = None  # from each interval to the next

    @classmethod
    def of(
        cls,
        problem: Problem,
        counts: FloatArray,
        deployments: Deployments,
        database: int,
        tier: int,
        method: str,
        tick: Callable[[], None] | None,
    ) -> _DatabaseReplay:
        votes = np.nonzero(deployments.voters[database])[0].tolist()
        wish = int(deployments.preferred[database])
        held = np.nonzero(deployments.replicas[database])[0].tolist()
        moves = problem.moves
        problem = problem.replace(current=None, moves=None)
        if tier < 3:
            names = problem.instance.sites
            problem = problem.replace(
                replicas=[names[site] for site in held],
                voters=[names[site] for site in votes] if tier == 1 else len(votes),
            )
        start = deployments.start(database, problem.rules.may_lead)
        shares = deployments.leader_shares
        known = shares is not None and bool(shares[database].any())
        given = shares[database] if shares is not None and known else None
        return cls(problem, counts, start, wish, given, method, tick, moves)

    @cached_property
    def asked(self) -> list[Problem | None]:
        """Problem of every interval alone; None for intervals without demand."""
        return [
            interval_problem(self.problem, each, interval) if each.any() else None
            for interval, each in enumerate(self.counts)
        ]

    def all_chosen(
        self, strategies: Sequence[str]
    ) -> tuple[dict[str, Sequence[Configuration | None]], list[bool]]:
        """Choices of every strategy, and which plans of the oracle, if asked for, are proven."""
        optimized = self.followed(None) if {"optimized", "average"} & set(strategies) else None
        oracle = self.oracle() if "oracle" in strategies else []
        chosen = {
            name: [plan for plan, _ in oracle] if name == "oracle" else self.chosen(name, optimized)
            for name in strategies
        }
        return chosen, [sure for _, sure in oracle[1:]]

    def chosen(
        self, strategy: str, optimized: Sequence[Configuration] | None
    ) -> Sequence[Configuration | None]:
        """Return the configuration of every interval; None where the strategy is undefined."""
        length = len(self.counts)
        if strategy in ("optimized", "average"):
            assert optimized is not None
            return optimized
        if strategy == "given":
            return [None if self.leader_shares is None else self.start] * length
        if strategy == "preferred":
            if self.preferred == NOBODY or not self.problem.rules.may_lead[self.preferred]:
                return [None] * length
            return self.followed(self.problem.instance.sites[self.preferred])
        if strategy == "static":
            return [self._in_hindsight()] * length
        if strategy == "worst":
            return [self._worst_in_hindsight()] * length
        assert strategy in ("closest-to-writes", "smallest-quorum"), strategy
        first = self.counts[0]
        if strategy == "closest-to-writes":
            voted = [operation.is_transaction for operation in self.problem.instance.operations]
            first = first[:, np.array(voted)]
        if not first.any():  # no transactions to be close to
            return [None] * length
        plain = self.problem.replace(objective=MEAN_LATENCY)  # such a rule knows no other
        plan = plan_of_interval(load_method(strategy), interval_problem(plain, self.counts[0], 0))
        return [plan.configuration] * length

    def followed(self, leader: str | None) -> list[Configuration]:
        """Plan every interval from those before it, under a leader or any."""
        base = self.problem if leader is None else self.problem.replace(leader=leader)
        varying = base.instance.varying_rtt
        memory = decayed_counts(self.counts, Decay(base.decay))
        chosen = [self.start]
        before: Plan | None = None
        for interval in range(1, len(self.counts)):
            seen = memory[interval - 1]
            if not seen.any():
                chosen.append(chosen[-1])  # nothing was issued in what the decay leaves
                continue
            asked = (
                interval_problem(base, self.counts[:interval], None)
                if varying
                else interval_problem(base, seen, interval - 1)
            )
            if self.moves is not None and leader is None:
                asked = asked.replace(current=chosen[-1], moves=self.moves)
            before = self._ask(asked, before)
            assert before.configuration is not None
            chosen.append(before.configuration)
        return chosen

    def oracle(self) -> list[tuple[Configuration, bool]]:
        """Plan every interval from itself, and say whether each plan is proven optimal."""
        found = []
        before: Plan | None = None
        current = self.start
        for interval, asked in enumerate(self.asked):
            proven = True  # without demand, every configuration is optimal
            if asked is not None and interval > 0:
                before = self._ask(asked, before)
                assert before.configuration is not None
                current, proven = before.configuration, before.status is Status.OPTIMAL
            found.append((current, proven))
        return found

    def paid(self, interval: int, plan: Configuration) -> float:
        """Objective with the demand and RTTs of an interval, in ms times its operations."""
        asked = self.asked[interval]
        return 0.0 if asked is None else _times_operations(asked, objective_value(asked, plan))

    def spread(self, interval: int, plan: Configuration) -> float:
        """Objective with groups led by each voter that may lead, in equal shares."""
        able = [v for v in plan.voters if self.problem.rules.may_lead[v]]
        asked = self.asked[interval]
        if not able or asked is None:
            return 0.0 if able else math.nan
        return self._mixed(asked, plan, dict.fromkeys(able, 1 / len(able)))

    def given(self, interval: int) -> float:
        """Objective of the deployment with its leaders distributed as given."""
        asked = self.asked[interval]
        if asked is None or self.leader_shares is None:
            return 0.0
        leaders = np.nonzero(self.leader_shares)[0].tolist()
        shares = {site: float(self.leader_shares[site]) for site in leaders}
        return self._mixed(asked, self.start, shares)

    @staticmethod
    def _mixed(asked: Problem, plan: Configuration, shares: Mapping[int, float]) -> float:
        each = [Configuration(site, plan.voters, plan.replicas) for site in shares]
        return _times_operations(asked, asked.objective.mixed(asked, each, list(shares.values())))

    @cached_property
    def _whole(self) -> Problem | None:
        """Problem of all intervals that are paid for together; None without demand."""
        later = self.counts.copy()
        later[0] = 0.0
        if not later.any():
            return None
        flat = self.problem.replace(decay=1.0)
        if self.problem.instance.varying_rtt:
            return interval_problem(flat, later, None)
        return interval_problem(flat, later.sum(axis=0), 0)

    def _in_hindsight(self) -> Configuration:
        """Best configuration that never changes over the intervals that are paid for."""
        if self._whole is None:
            return self.start
        plan = self._ask(self._whole, None)
        assert plan.configuration is not None
        return plan.configuration

    def _worst_in_hindsight(self) -> Configuration:
        """Best configuration under the worst leader that never changes, the first of those."""
        worst, value = self.start, -math.inf
        if self._whole is None:
            return worst
        for site in self.start.replicas:
            if self.problem.rules.may_lead[site]:
                name = self.problem.instance.sites[site]
                plan = self._ask(self._whole.replace(leader=name), None)
                if plan.objective > value:
                    assert plan.configuration is not None
                    worst, value = plan.configuration, plan.objective
        return worst

    def _ask(self, asked: Problem, before: Plan | None) -> Plan:
        plan = plan_of_interval(load_method(self.method), asked, before)
        if self.tick is not None:
            self.tick()
        return plan


def _times_operations(problem: Problem, value: float) -> float:
    """Value of an objective as ms times operations, the unit of Eq. 1."""
    if problem.objective.minimises_mean:
        return value
    return problem.objective.in_ms(problem, value) * problem.demand.operations
