"""Strategies where everything is free (tier 3): a plan per database and interval.

Plans come from a registered method, by default the exact one, which starts each search from the
plan before. Every plan is paid for with :func:`placement.evaluation.score.score`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from placement.checks import FloatArray
from placement.errors import InputError
from placement.evaluation.score import score
from placement.methods import load_method
from placement.model.configuration import Configuration
from placement.model.constraints import majority
from placement.model.demand import Demand, aggregate
from placement.overtime.decayed_counts import Decay, decayed_counts
from placement.overtime.replay.deployments import NOBODY, Deployments
from placement.overtime.replay.interval_plans import at_interval, interval_problem, plan_of_interval
from placement.overtime.replay.results import SiteSets, StrategyCosts
from placement.overtime.replay.trace import Trace
from placement.plan import Plan
from placement.problem import Problem
from placement.status import Status

__all__ = ["Tier3Result", "replay_tier3"]


@dataclass(frozen=True, eq=False)
class Tier3Result:
    """Outcomes of tier 3, and how many of the oracle's plans are proven optimal."""

    outcomes: list[StrategyCosts]
    proven: int
    plans: int


def replay_tier3(
    problem: Problem,
    trace: Trace,
    deployments: Deployments,
    strategies: Sequence[str],
    sets: SiteSets,
    *,
    method: str,
    tick: Callable[[], None] | None = None,
) -> Tier3Result:
    """Replay some strategies in tier 3.

    Parameters
    ----------
    problem
        Network, constraints, decay.
    trace
        The demand.
    deployments
        What a database runs on until its first operation was seen; and the preferred leaders.
    strategies
        Names; see :mod:`placement.overtime.replay.run_replay`.
    sets
        Where the sets of voters and replicas are numbered.
    method
        Name of a registered method that takes tier 3.
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
        one = _DatabaseReplay.of(problem, counts, deployments, database, method, tick)
        try:
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
                else:
                    leader[place] = plan.leader
                    scores[place] = one.paid(interval, plan)
    outcomes = [
        StrategyCosts(
            3, strategy, leader[row, :, 1:], voters[row, :, 1:], replicas[row, :, 1:], paid
        )
        for row, (strategy, paid) in enumerate(zip(strategies, scores[:, :, 1:], strict=True))
    ]
    return Tier3Result(outcomes, proven, plans)


@dataclass(frozen=True, eq=False)
class _DatabaseReplay:
    """Replay of one database: its demand by interval, and its initial configuration."""

    problem: Problem
    counts: FloatArray
    demands: list[Demand | None]
    start: Configuration
    preferred: int
    method: str
    tick: Callable[[], None] | None

    @classmethod
    def of(
        cls,
        problem: Problem,
        counts: FloatArray,
        deployments: Deployments,
        database: int,
        method: str,
        tick: Callable[[], None] | None,
    ) -> _DatabaseReplay:
        demands = [
            aggregate(at_interval(problem.instance, each, interval)) if each.any() else None
            for interval, each in enumerate(counts)
        ]
        votes = np.nonzero(deployments.voters[database])[0].tolist()
        wish = int(deployments.preferred[database])
        start = Configuration.of(
            votes[0] if wish == NOBODY else wish,
            votes,
            np.nonzero(deployments.replicas[database])[0].tolist(),
        )
        return cls(problem, counts, demands, start, wish, method, tick)

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
        if strategy == "preferred":
            if self.preferred == NOBODY or not self.problem.rules.may_lead[self.preferred]:
                return [None] * length
            return self.followed(self.problem.instance.sites[self.preferred])
        if strategy == "static":
            return [self._in_hindsight()] * length
        assert strategy in ("closest-to-writes", "smallest-quorum"), strategy
        first = self.counts[0]
        if strategy == "closest-to-writes":
            voted = [operation.is_transaction for operation in self.problem.instance.operations]
            first = first[:, np.array(voted)]
        if not first.any():  # no transactions to be close to
            return [None] * length
        plan = plan_of_interval(
            load_method(strategy), interval_problem(self.problem, self.counts[0], 0)
        )
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
            before = self._ask(asked, before)
            assert before.configuration is not None
            chosen.append(before.configuration)
        return chosen

    def oracle(self) -> list[tuple[Configuration, bool]]:
        """Plan every interval from itself, and say whether each plan is proven optimal."""
        found = []
        before: Plan | None = None
        current = self.start
        for interval, counts in enumerate(self.counts):
            proven = True  # where nothing is issued, anything is optimal
            if counts.any() and interval > 0:
                before = self._ask(interval_problem(self.problem, counts, interval), before)
                assert before.configuration is not None
                current, proven = before.configuration, before.status is Status.OPTIMAL
            found.append((current, proven))
        return found

    def paid(self, interval: int, plan: Configuration) -> float:
        """Eq. 1 of a configuration with the demand and RTTs of an interval."""
        demand = self.demands[interval]
        if demand is None:
            return 0.0
        return score(
            demand, plan.leader, plan.voters, plan.replicas, self._quorum(len(plan.voters))
        )

    def spread(self, interval: int, plan: Configuration) -> float:
        """Mean of Eq. 1 over the voters that may lead."""
        able = [v for v in plan.voters if self.problem.rules.may_lead[v]]
        each = [self.paid(interval, Configuration(v, plan.voters, plan.replicas)) for v in able]
        return math.fsum(each) / len(each) if each else math.nan

    def _in_hindsight(self) -> Configuration:
        """Best configuration that never changes over the intervals that are paid for."""
        later = self.counts.copy()
        later[0] = 0.0
        if not later.any():
            return self.start
        flat = self.problem.replace(decay=1.0)
        if self.problem.instance.varying_rtt:
            plan = self._ask(interval_problem(flat, later, None), None)
        else:
            plan = self._ask(interval_problem(flat, later.sum(axis=0), 0), None)
        assert plan.configuration is not None
        return plan.configuration

    def _ask(self, asked: Problem, before: Plan | None) -> Plan:
        plan = plan_of_interval(load_method(self.method), asked, before)
        if self.tick is not None:
            self.tick()
        return plan

    def _quorum(self, voters: int) -> int:
        return self.problem.rules.quorum if self.problem.quorum is not None else majority(voters)
