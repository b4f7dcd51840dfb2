"""Tier 3 by enumeration (method ``exhaustive``): every replica set, and tier 2 for each.

The brute force of Sharov et al., PVLDB 8(12), 2015, section 5, and the reference of all other exact
methods: simple on purpose, vectorised over replica sets
(:mod:`formulations.enumeration.replica_sets`). Every leader of every set is scored with the m-th
closest replica as its quorum wait. Where rules bind the voters, or RTTs vary by interval, that is a
lower bound, and the leaders that it does not exclude get their true voters from
:mod:`placement.evaluation.voter_choice`, best bound first. O(C(|S|, |R|)·(C + |R|²·m)).
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from formulations.enumeration.enumerate_sets import enumerate_sets, solve_waits
from formulations.enumeration.replica_sets import ReplicaSets, SetEvaluator, replica_sets
from placement.errors import SolverError
from placement.evaluation.score import TIE, quorum_latency
from placement.evaluation.voter_choice import best_voters, greedy_waits
from placement.methods.options import Options, Setting
from placement.methods.registry import Method
from placement.model.configuration import Configuration
from placement.plan import Plan
from placement.problem import Problem
from placement.support.checks import FloatArray, IntArray


class _ExhaustiveSearch:
    """Best (leader, replicas) so far; ties go to the lower leader, then the smaller, lower R."""

    def __init__(self, problem: Problem) -> None:
        rules = problem.rules
        self.problem = problem
        self.value = math.inf
        self.best: tuple[int, int, tuple[int, ...]] | None = None
        alone_leads = (
            int(rules.may_lead.sum()) == 1 and not (rules.must_vote & ~rules.may_lead).any()
        )
        # With nothing to bind the voters but the leader's own vote the bounds are exact.
        self.free_votes = (
            problem.demand.scenarios == 1
            and not rules.of("voters")
            and bool(rules.may_vote[rules.may_hold].all())
            and (not rules.must_vote.any() or alone_leads)
        )

    def evaluate_sets(self, evaluator: SetEvaluator, sets: ReplicaSets) -> None:
        """Take the best leader of a block of sets if it is the best so far."""
        bounds, waits = evaluator.scores(sets)
        bounds[:, ~self.problem.rules.obeyed("replicas", sets.members)] = math.inf
        least = float(bounds.min())
        if math.isnan(least):  # nothing is known of the set, and it must not be passed over
            raise SolverError("a score is not a number: RTTs or counts are too large")
        if not least <= self.value * (1 + TIE) or math.isinf(least):
            return
        if self.free_votes:
            place, row = np.nonzero(bounds <= least * (1 + TIE))
            self._offer(place, row, bounds, sets.members)
            return
        # Few leaders of a block pass their bound once a good configuration is known: take the most
        # promising first, and more at a time as long as they fail.
        place, row = np.nonzero(bounds <= self.value * (1 + TIE))
        order = np.argsort(bounds[place, row], kind="stable")
        place, row = place[order], row[order]
        done, width = 0, 8
        while done < len(row) and bounds[place[done], row[done]] <= self.value * (1 + TIE):
            p, n = place[done : done + width], row[done : done + width]
            true = _true_waits(self.problem, sets.members[n, p], sets.members[n])
            bounds[p, n] += true - waits[p, n]
            self._offer(p, n, bounds, sets.members)
            done, width = done + width, min(2 * width, 4096)

    def _offer(self, place: IntArray, row: IntArray, values: FloatArray, members: IntArray) -> None:
        offered = values[place, row]
        least = float(offered.min())
        if math.isinf(least) or not least <= self.value * (1 + TIE):
            return
        tied = offered <= min(least, self.value) * (1 + TIE)
        first = min(
            (int(members[n, p]), members.shape[1], tuple(members[n].tolist()))
            for p, n in zip(place[tied], row[tied], strict=True)
        )
        if self.best is None or least < self.value * (1 - TIE) or first < self.best:
            self.best = first
        self.value = min(self.value, least)

    def configuration(self) -> Configuration | None:
        """Return the best configuration so far, with its voters."""
        if self.best is None:
            return None
        leader, _, replicas = self.best
        voters = best_voters(self.problem.demand, self.problem.rules, leader, replicas)
        assert voters is not None  # its value is finite
        return Configuration.of(leader, voters, replicas)


def solve(problem: Problem, options: Options) -> Plan:
    """Score every replica set under every leader."""
    if problem.moves is not None:
        return solve_waits(problem, options)
    rules, search, evaluator = problem.rules, _ExhaustiveSearch(problem), SetEvaluator.of(problem)
    sizes = range(rules.replicas_min, rules.replicas_max + 1)

    def look(sets: ReplicaSets) -> tuple[int, float]:
        search.evaluate_sets(evaluator, sets)
        return len(sets.members), search.value

    blocks = (replica_sets(evaluator, rules.may_hold, rules.must_hold, size) for size in sizes)
    every = itertools.chain.from_iterable(blocks)
    return enumerate_sets(
        problem, options, every, look, lambda: (search.configuration(), search.value)
    )


def _true_waits(problem: Problem, leaders: IntArray, replicas: IntArray) -> FloatArray:
    """Σ D·q_ℓ of the best voters of many (leader, R) pairs; infinite if none are feasible."""
    rules, demand = problem.rules, problem.demand
    if demand.scenarios == 1 and rules.nested_voter_caps:
        waits = greedy_waits(rules, demand.site_rtt[0], leaders, replicas)
        found = np.isfinite(waits)
        return np.where(found, demand.quorum[0] * np.where(found, waits, 0.0), math.inf)
    total = np.full(len(leaders), math.inf)
    for i, (leader, row) in enumerate(zip(leaders.tolist(), replicas, strict=True)):
        voters = best_voters(demand, rules, leader, row)
        if voters is not None:
            total[i] = sum(
                weight * float(quorum_latency(rtt, leader, voters, rules.quorum))
                for weight, rtt in zip(demand.quorum.tolist(), demand.site_rtt, strict=True)
            )
    return total


METHOD = Method(
    name="exhaustive",
    call=solve,
    summary="every replica set with its best roles: the reference method",
    exact=True,
    objectives=("mean", "measures", "waits"),
    cost_parts=("near reads", "moves"),
    settings={"limit": Setting(20_000_000, "most replica sets to enumerate", minimum=1)},
    complexity="O(C(|S|, |R|)·(C + |R|²·|V|))",
    reference="Sharov et al. 2015, section 5",
)
