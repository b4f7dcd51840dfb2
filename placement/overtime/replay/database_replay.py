"""Strategies on one database: what they choose from interval to interval, and what they pay.

A plan per database and interval comes from a registered method, by default the exact one, which
starts each search from the plan before (:class:`DatabaseReplay`). Where the replicas stand and the
mean latency is minimised, a table has the cost of every leader (:class:`TabledReplay`). In tiers 1
and 2 the replicas, and in tier 1 the voters, are those of the deployment.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from placement.evaluation.objective import MEAN_LATENCY
from placement.evaluation.score import TIE, first_best
from placement.methods.registry import load_method
from placement.model.configuration import Configuration
from placement.overtime.decayed_counts import Decay, decayed_counts
from placement.overtime.replay.deployments import (
    NOBODY,
    Deployments,
    interval_problem,
    plan_of_interval,
)
from placement.overtime.replay.leader_table import LeaderTable
from placement.plan import Plan, objective_value
from placement.problem import Problem
from placement.support.checks import FloatArray
from placement.support.status import Status

Choices = Sequence[Configuration | None]
"""Configuration of every interval; None where a strategy is undefined."""


@dataclass(eq=False)
class DatabaseReplay:
    """Replay of one database whose choices are plans: 2 ms each by ``exact`` on 27 sites.

    The method takes the tier and the objective; `tick` is called after every plan. `proven` tells
    whether each plan of the oracle that is paid for is proven optimal.
    """

    problem: Problem  #: network, constraints, objective, decay
    counts: FloatArray  #: demand by interval, shape (T, clients, operations)
    #: what the database runs on until its first operation was seen, where its leaders are today,
    #: and which leader its owner prefers
    deployments: Deployments
    database: int  #: which row of the deployments
    tier: int
    method: str
    tick: Callable[[], None]

    def __post_init__(self) -> None:
        self.proven: list[bool] = []
        self.start = self.deployments.start(self.database, self.problem.rules.may_lead)
        self.preferred = int(self.deployments.preferred[self.database])
        shares = self.deployments.leader_shares
        known = shares is not None and bool(shares[self.database].any())
        self.leader_shares = shares[self.database] if shares is not None and known else None

    @cached_property
    def question(self) -> Problem:
        """Problem with the replicas and voters that the tier gives, without moves."""
        question = self.problem.replace(current=None, moves=None)
        if self.tier == 3:
            return question
        names, held = self.problem.instance.sites, self.deployments
        votes = np.nonzero(held.voters[self.database])[0].tolist()
        replicas = np.nonzero(held.replicas[self.database])[0].tolist()
        return question.replace(
            replicas=[names[site] for site in replicas],
            voters=[names[site] for site in votes] if self.tier == 1 else len(votes),
        )

    def chosen(self, strategy: str) -> Choices:
        """Return what a strategy chooses; see :mod:`placement.overtime.replay.run_replay`."""
        nothing: Choices = [None] * len(self.counts)
        if strategy in ("optimized", "average"):
            return self.optimized
        if strategy == "oracle":
            return self.oracle()
        if strategy == "given":
            return nothing if self.leader_shares is None else [self.start] * len(nothing)
        if strategy == "preferred":
            able = self.preferred != NOBODY and self.may_lead(self.preferred)
            return self.followed(self.preferred) if able else nothing
        if strategy in ("static", "worst"):
            return [self.constant(worst=strategy == "worst")] * len(nothing)
        voted = [operation.is_transaction for operation in self.problem.instance.operations]
        writes = self.counts[0] @ np.array(voted, dtype=np.float64)
        if strategy == "closest-to-writes" and not writes.any():
            return nothing  # undefined without transactions to be close to
        return self.by_rule(strategy, int(writes.argmax()))

    @cached_property
    def optimized(self) -> Choices:
        """The choices of the strategies ``optimized`` and ``average``."""
        return self.followed(None)

    def scores(self, strategy: str, plan: Configuration, when: Sequence[int]) -> FloatArray:
        """Return what a choice pays in some intervals: its objective in ms times the operations."""
        if strategy == "average":
            able = [v for v in plan.voters if self.may_lead(v)]
            if not able:
                return np.full(len(when), np.nan)
            return self.paid(plan, dict.fromkeys(able, 1 / len(able)), when)
        if strategy == "given" and self.leader_shares is not None:
            leaders = np.nonzero(self.leader_shares)[0].tolist()
            return self.paid(plan, {s: float(self.leader_shares[s]) for s in leaders}, when)
        return self.paid(plan, {plan.leader: 1.0}, when)

    def may_lead(self, site: int) -> bool:
        """Return whether a site may lead the database."""
        return bool(self.question.rules.may_lead[site])

    @cached_property
    def asked(self) -> list[Problem | None]:
        """Problem of every interval alone; None for intervals without demand."""
        return [
            interval_problem(self.question, each, interval) if each.any() else None
            for interval, each in enumerate(self.counts)
        ]

    def followed(self, leader: int | None) -> Choices:
        """Plan every interval from those before it, under a leader or any."""
        base, moves = self.question, self.problem.moves  # from each interval to the next
        if leader is not None:
            base = base.replace(leader=base.instance.sites[leader])
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
                if base.instance.varying_rtt
                else interval_problem(base, seen, interval - 1)
            )
            if moves is not None and leader is None:
                asked = asked.replace(current=chosen[-1], moves=moves)
            before = self._ask(asked, before)
            chosen.append(_found(before))
        return chosen

    def oracle(self) -> Choices:
        """Plan every interval from itself."""
        found = [self.start]
        before: Plan | None = None
        for asked in self.asked[1:]:
            if asked is None:  # without demand, every configuration is optimal
                found.append(found[-1])
                self.proven.append(True)
                continue
            before = self._ask(asked, before)
            found.append(_found(before))
            self.proven.append(before.status is Status.OPTIMAL)
        return found

    def constant(self, *, worst: bool) -> Configuration:
        """Plan all intervals that are paid for together, for `worst` under each leader."""
        later = self.counts.copy()
        later[0] = 0.0
        if not later.any():
            return self.start
        flat = self.question.replace(decay=1.0)
        if flat.instance.varying_rtt:
            whole = interval_problem(flat, later, None)
        else:
            whole = interval_problem(flat, later.sum(axis=0), 0)
        if not worst:
            return _found(self._ask(whole, None))
        names = self.problem.instance.sites
        able = [names[site] for site in self.start.replicas if self.may_lead(site)]
        plans = [self._ask(whole.replace(leader=name), None) for name in able]
        # the first of the worst
        return _found(max(plans, key=lambda plan: plan.objective)) if plans else self.start

    def by_rule(self, rule: str, client: int) -> Choices:
        """Run the method of this name on the first interval; it knows the mean latency alone."""
        del client  # the method finds the one with most writes
        if not self.counts[0].any():
            return [None] * len(self.counts)
        plain = self.question.replace(objective=MEAN_LATENCY)
        plan = plan_of_interval(load_method(rule), interval_problem(plain, self.counts[0], 0))
        return [plan.configuration] * len(self.counts)

    def paid(
        self, plan: Configuration, shares: Mapping[int, float], when: Sequence[int]
    ) -> FloatArray:
        """Evaluate a plan whose groups some sites lead, in ms times operations."""
        each = [Configuration(site, plan.voters, plan.replicas) for site in shares]
        found = np.zeros(len(when))
        for place, interval in enumerate(when):
            asked = self.asked[interval]
            if asked is None:
                continue
            if len(each) == 1:
                value = objective_value(asked, each[0])
            else:
                value = asked.objective.mixed(asked, each, list(shares.values()))
            if not asked.objective.minimises_mean:
                value = asked.objective.in_ms(asked, value) * asked.demand.operations
            found[place] = value
        return found

    def _ask(self, asked: Problem, before: Plan | None) -> Plan:
        plan = plan_of_interval(load_method(self.method), asked, before)
        self.tick()
        return plan


def _found(plan: Plan) -> Configuration:
    assert plan.configuration is not None  # `plan_of_interval` saw to that
    return plan.configuration


@dataclass(eq=False)
class TabledReplay(DatabaseReplay):
    """Replay whose choices are looked up: the mean latency in tiers 1 and 2."""

    table: LeaderTable  #: costs of the candidate leaders

    def may_lead(self, site: int) -> bool:
        """Return whether the constraints leave a site voters to lead."""
        return bool(np.isfinite(self.table.waits[0, site]))

    def followed(self, leader: int | None) -> Choices:
        """Take the leader of least agg_score before; the voters are those of the interval before.

        Where the intervals before say nothing, the leader stays.
        """
        length = len(self.counts)
        if leader is not None:
            return [self.table.plan(leader, max(interval - 1, 0)) for interval in range(length)]
        decay = Decay(self.problem.decay)
        best = first_best(decayed_counts(self.table.scores, decay)).tolist()
        issued = np.asarray(self.counts.any(axis=(1, 2)))
        if math.isfinite(decay.factor):
            issued = np.asarray(np.logical_or.accumulate(issued))
        first = int(np.isfinite(self.table.waits[0]).argmax())
        able = self.preferred != NOBODY and self.may_lead(self.preferred)
        leaders = [self.preferred if able else first]
        for interval in range(1, length):
            leaders.append(best[interval - 1] if issued[interval - 1] else leaders[-1])
        return [self.table.plan(site, max(i - 1, 0)) for i, site in enumerate(leaders)]

    def oracle(self) -> Choices:
        """Take the leader of least score in each interval."""
        best = first_best(self.table.scores).tolist()
        return [self.table.plan(site, interval) for interval, site in enumerate(best)]

    def constant(self, *, worst: bool) -> Configuration:
        """Take the leader of least or greatest total, with the best of its sets of voters.

        Where RTTs vary, these are the sets that are best in one interval.
        """
        options: list[tuple[float, Configuration]] = []
        for leader in np.nonzero(np.isfinite(self.table.waits[0]))[0].tolist():
            totals = [
                (float(self.table.scores_with(leader, plan.voters)[1:].sum()), plan)
                for plan in self.table.plans(leader)
            ]
            options.append(min(totals, key=lambda each: each[0]))
        each = np.array([total for total, _ in options])
        place = (each >= each.max() * (1 - TIE)).argmax() if worst else first_best(each)
        return options[int(place)][1]

    def by_rule(self, rule: str, client: int) -> Choices:
        """Take throughout the candidate closest to a client at first, or of least wait before."""
        if rule == "closest-to-writes":
            rtt = self.problem.instance.client_rtt
            away = (rtt if rtt.ndim == 2 else rtt[0])[client]
            leader = int(np.where(np.isfinite(self.table.waits[0]), away, np.inf).argmin())
            return [self.table.plan(leader, 0)] * len(self.counts)
        best = first_best(self.table.waits).tolist()
        before = [max(interval - 1, 0) for interval in range(len(self.counts))]
        return [self.table.plan(best[self.table.basis(i)], i) for i in before]

    def paid(
        self, plan: Configuration, shares: Mapping[int, float], when: Sequence[int]
    ) -> FloatArray:
        """Look up the scores of a plan whose groups some sites lead, in ms times operations."""
        total = np.zeros(len(when))
        for site, share in shares.items():
            total += share * self.table.scores_with(site, plan.voters)[list(when)]
        return total
