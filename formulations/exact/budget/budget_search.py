r"""The best plan within a budget, with a proof: one threshold tree for each leader.

Under a leader ℓ the objective and the cost are both sums over clients, replicas and votes
(:mod:`placement.evaluation.cost_model`). Let B be the budget and T the best objective known. A plan
under ℓ that is better keeps two thresholds, objective < T and cost <= B, and for any weight μ >= 0

    objective − T + μ (cost − B) < 0

So μ is a multiplier of the budget: it is optimised together with the multipliers of the clients, in
every part of the tree (``csrc/scenarios/scenario.h``). A part is also closed where the replicas
that are fixed, and the cheapest ones that complete them, exceed the budget. A complete set of
replicas that is better lowers T for the rest of the search.

Under a leader there are at most as many replicas as the budget pays where they are the cheapest
ones; where prices are alike, this alone is nearly all of the budget.

The search begins with the plan of the same question without a budget, whose proof is a proof of
this one where the plan fits.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from formulations.exact.budget.affordable_set import affordable_set
from formulations.exact.budget.budget_certificate import (
    CLAIMED_LESS,
    SEARCHED_LESS,
    BudgetCertificate,
    LeaderRecord,
)
from formulations.exact.threshold_events import MOST_RECORDED
from formulations.exact.threshold_search import (
    QuorumWait,
    Scenario,
    SearchCounters,
    VotePrices,
    search_leader,
)
from placement.checks import FloatArray, IntArray
from placement.evaluation.cost_model import CostModel, cost_model
from placement.evaluation.voter_choice import best_voters
from placement.feasibility.feasible_plans import violations
from placement.methods import Options, Progress
from placement.model.configuration import Configuration
from placement.model.constraints import Rules
from placement.plan import objective_value
from placement.problem import Problem
from placement.status import Termination

__all__ = ["BudgetSearch", "allowed_cost"]

_ABOVE = 1e-11
"""Relative: the budget of the search is above that of the evaluator, so that rounding is safe."""

_SCALE = 5.0
"""The cost is divided by so many budgets, the objective by itself, before they are weighed."""

_PROPOSED = 12
"""Leaders under which a first plan is looked for."""


def allowed_cost(budget: float) -> float:
    """Return the largest cost that the evaluator takes under a budget."""
    return budget + 1e-9 * (1 + abs(budget))


@dataclass
class BudgetSearch:
    """The search for one problem with a budget.

    Parameters
    ----------
    problem
        Minimises the mean latency, with or without a weight of the cost; caps on nested levels for
        the replicas at most.
    options
        Of the method.
    end
        A time.perf_counter() at which to stop.
    floor
        A bound on the question without the budget.

    Attributes
    ----------
    best, value
        The best configuration within the budget, and its objective; None and +∞: none is known.
    records
        What closed each leader, for a certificate; None: too long, or not wanted.
    """

    problem: Problem
    options: Options
    end: float
    floor: float = -math.inf
    best: Configuration | None = None
    value: float = math.inf
    termination: Termination = Termination.FINISHED
    counters: SearchCounters = field(default_factory=SearchCounters)
    records: dict[int, LeaderRecord] | None = None
    floors: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        model, budget = cost_model(self.problem.instance), self.problem.budget
        assert model is not None
        assert budget is not None
        self._model: CostModel = model
        self.allowed = allowed_cost(budget) * (1 + _ABOVE)
        if self.allowed == 0.0:
            self.allowed = math.ulp(0.0)
        demand = self.problem.demand
        counted = (demand.near[0] > 0) | (demand.relay[0] > 0)
        if model.nearest is not None:
            counted |= model.nearest.any(axis=1)
        self.clients: IntArray = np.nonzero(counted)[0]
        rtt = demand.client_rtt[0][self.clients]
        self._orders: IntArray = np.argsort(rtt, axis=1, kind="stable").astype(np.int32)
        self._started = time.perf_counter()
        if self.options.settings["certificate"]:
            self.records = {}

    @property
    def certificate(self) -> BudgetCertificate | None:
        """Certificate of the result; None: not recorded, or a checker counts other clients."""
        demand = self.problem.demand
        active = (demand.near[0] > 0) | (demand.relay[0] > 0)
        if self.records is None or self.floors or not active[self.clients].all():
            return None
        return BudgetCertificate(
            configuration=self.best,
            value=self.value,
            bound=self.bound,
            clients=self.clients,
            replicas=self.problem.rules.replicas_max,
            allowed=self.allowed,
            records=self.records,
        )

    @property
    def bound(self) -> float:
        """Least objective that any plan may still have."""
        closed = math.inf if self.best is None else self.value * (1 - CLAIMED_LESS)
        least = min([closed, *self.floors.values()])
        return least if self.best is None and not self.floors else max(least, self.floor)

    def run(self) -> None:
        """Search until the best plan is proven, or until the time limit or Ctrl-C."""
        try:
            leaders = self._leaders()
            self._propose(leaders)
            for leader, floor in leaders:
                if floor < self.threshold:
                    self._tree(leader)
                del self.floors[leader]
                self._report()
        except TimeoutError:
            self.termination = Termination.TIME_LIMIT
        except KeyboardInterrupt:
            self.termination = Termination.INTERRUPTED

    def _report(self) -> None:
        seconds = time.perf_counter() - self._started
        self.options.report(Progress(seconds, self.value, self.bound))

    @property
    def threshold(self) -> float:
        """T: a little below the best objective known."""
        return self.value * (1 - SEARCHED_LESS)

    # --- plans ------------------------------------------------------------------------------

    def accept(self, configuration: Configuration) -> bool:
        """Keep a configuration that obeys everything if it is the best so far."""
        value = objective_value(self.problem, configuration)
        if value >= self.value or violations(self.problem, configuration):
            return False
        self.value, self.best = value, configuration
        return True

    def _propose(self, leaders: list[tuple[int, float]]) -> None:
        """Find a first plan: a greedy one and swaps, under the most promising leaders."""
        if self.options.start is not None:
            self.accept(self.options.start)
        for leader, floor in leaders[:_PROPOSED]:
            if time.perf_counter() > self.end:
                raise TimeoutError
            if floor < self.threshold:
                cost, objective = self._scenarios(leader)
                found = affordable_set(self._affordable(leader), leader, cost, objective)
                for one in () if found is None else self._kept(leader, found):
                    self.accept(one)

    def _kept(self, leader: int, replicas: list[int]) -> Iterator[Configuration]:
        """Yield the configurations of a set of replicas, the best voters of each cost first."""
        rules, priced = self.problem.rules, self._model.linear(leader).voter is not None
        if rules.nested_voter_caps:
            best = best_voters(self.problem.demand, rules, leader, replicas)
            if best is None:
                return
            yield Configuration.of(leader, best, replicas)
            if not priced:
                return
        able = [r for r in replicas if rules.may_vote[r] and r != leader]
        pinned = set(np.nonzero(rules.must_vote)[0].tolist())
        for others in itertools.combinations(able, rules.voters - 1):
            chosen = tuple(sorted((leader, *others)))
            if pinned <= set(chosen) and rules.obeyed("voters", np.array([chosen]))[0]:
                yield Configuration.of(leader, chosen, replicas)

    # --- leaders ----------------------------------------------------------------------------

    def _leaders(self) -> list[tuple[int, float]]:
        """Leaders and what they cost at least: every client at its best site, and the quorum."""
        demand, rules = self.problem.demand, self.problem.rules
        rtt, between = demand.client_rtt[0], demand.site_rtt[0]
        near, relay = demand.near[0][self.clients], demand.relay[0][self.clients]
        hold = np.nonzero(rules.may_hold)[0]
        floors = []
        for leader in np.nonzero(rules.may_lead)[0].tolist():
            costs = near * rtt[np.ix_(self.clients, hold)].T + relay * between[hold, leader, None]
            waits = np.sort(between[leader][rules.may_vote])
            floor = float(costs.min(axis=0).sum() + demand.direct[0] @ rtt[:, leader])
            floor += float(demand.quorum[0] * waits[rules.quorum - 1])
            floors.append((floor * (1 - 1e-12), leader))
        self.floors = {leader: max(floor, self.floor) for floor, leader in floors}
        return [(leader, floor) for floor, leader in sorted(floors)]

    def _affordable(self, leader: int) -> Rules:
        """Return the rules with no more replicas than the budget pays at their least prices."""
        rules, linear = self.problem.rules, self._model.linear(leader)
        fixed = rules.must_hold.copy()
        fixed[leader] = True
        spent = self._constant(leader) + float(linear.replica[fixed].sum())
        free = np.sort(linear.replica[rules.may_hold & ~fixed])
        count = int(fixed.sum() + (spent + np.cumsum(free) <= self.allowed).sum())
        most = max(rules.replicas_min, min(rules.replicas_max, count))
        return dataclasses.replace(rules, replicas_max=most)

    def _constant(self, leader: int) -> float:
        """Return what every plan under a leader costs, its vote included."""
        linear = self._model.linear(leader)
        return linear.constant + (0.0 if linear.voter is None else float(linear.voter[leader]))

    def _scenarios(self, leader: int) -> list[Scenario]:
        """The cost, and the objective, whose threshold falls."""
        demand, rules = self.problem.demand, self.problem.rules
        rtt, between = demand.client_rtt[0], demand.site_rtt[0]
        linear = self._model.linear(leader)
        near = None if linear.nearest is None else linear.nearest[self.clients].T
        cost = Scenario(
            near,
            self._constant(leader),
            VotePrices.of(rules, linear.voter, leader),
            self.allowed,
            _SCALE * self.allowed,
            linear.replica,
        )
        reads = demand.near[0][self.clients] * rtt[self.clients].T
        reads = reads + demand.relay[0][self.clients] * between[:, leader, np.newaxis]
        direct = float(demand.direct[0] @ rtt[:, leader])
        waits = QuorumWait.of(rules, between[leader], float(demand.quorum[0]))
        weighed = None
        if rules.cost_weight:
            prices = self.problem.site_costs(leader)
            assert prices is not None
            weighed = rules.cost_weight * prices
        threshold = self.threshold
        scale = threshold if math.isfinite(threshold) else self.floors[leader]
        objective = Scenario(reads, direct, waits, threshold, max(scale, 1e-300), weighed)
        return [cost, objective]

    def _tree(self, leader: int) -> None:
        scenarios = self._scenarios(leader)
        objective, scales = scenarios[-1], (scenarios[0].scale, scenarios[1].scale)

        def leaf(replicas: list[int]) -> None:
            for one in self._kept(leader, replicas):
                self.accept(one)
            objective.threshold = min(objective.threshold, self.threshold)

        def keep(events: FloatArray | None) -> None:
            if events is None:
                self.records = None
            elif self.records is not None:
                self.records[leader] = LeaderRecord(events, scales)

        used = 0 if self.records is None else sum(len(r.events) for r in self.records.values())
        search_leader(
            self._affordable(leader),
            self._orders,
            leader,
            scenarios,
            leaf,
            end=self.end,
            counters=self.counters,
            record=0 if self.records is None else max(MOST_RECORDED - used, 1),
            keep=None if self.records is None else keep,
        )
