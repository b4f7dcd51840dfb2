"""Limits in the method ``exact``: a threshold search with every limit as a further scenario.

A set of replicas within limits under one leader, by a greedy choice and swaps: no proof.

Certificates of plans within limits: what the compiled search recorded, as a document.

The format, and what a checker makes of it, stands in :mod:`placement.proof.limits_proof`; how
records become events, in :mod:`formulations.exact.threshold_search`. The multiplier μ of
a limit is the quotient of its weight in a bound and that of the objective.

The best plan within limits, with prices of moves and votes: one threshold tree per leader.

Under a leader ℓ the objective, the cost and the number of changes to the present configuration are
all sums over clients, replicas and votes (:mod:`placement.evaluation.move_costs`). Let B_i be the
limit of the function f_i and T the best objective known. A plan under ℓ that is better keeps the
thresholds objective < T and f_i <= B_i, and for any weights μ_i >= 0

    objective − T + Σ_i μ_i (f_i − B_i) < 0

So μ_i is a multiplier of limit i: all are optimised together with the multipliers of the clients,
in every part of the tree (``csrc/scenarios/scenario.h``). A part is also closed where the replicas
that are fixed, and the cheapest ones that complete them, exceed a limit. A complete set of replicas
that is better lowers T for the rest of the search. Prices of moves and the weighed cost are part of
the objective. A near read has the price of the client's nearest replica, also where another is
cheaper.

Under a leader there are at most as many replicas as the limits let in where they are the cheapest
ones; where prices are alike, this alone is nearly all of a budget.

The search begins with the plan of the same question without limits and prices of moves, whose
proof is a proof of this one where the plan keeps the limits and has no price.

The plan that is made of a search within limits.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from formulations.exact import tuning
from formulations.exact.enumeration_claim import certified_or_named
from formulations.exact.reduced_problem import weighs_more_than_sites
from formulations.exact.threshold_search import (
    MOST_RECORDED,
    QuorumWait,
    Scenario,
    SearchCounters,
    ThresholdEvents,
    VotePrices,
    search_leader,
)
from placement.evaluation.cost_model import LinearCost
from placement.evaluation.voter_choice import best_voters
from placement.feasibility.feasible_plans import violations
from placement.feasibility.neighbours import neighbours
from placement.methods.options import Options, Progress
from placement.model.configuration import Configuration
from placement.model.constraints import Rules
from placement.plan import Plan, objective_value
from placement.problem import Problem
from placement.proof.limits_proof import FORMAT
from placement.support.checks import FloatArray, IntArray
from placement.support.status import Termination, end_early, relative_gap

__all__ = [
    "CLAIMED_LESS",
    "SEARCHED_LESS",
    "LeaderRecord",
    "LimitsCertificate",
    "LimitsSearch",
    "affordable_set",
    "answers",
    "plan_of_search",
    "without_limits",
]


def affordable_set(
    rules: Rules, leader: int, limits: Sequence[Scenario], objective: Scenario
) -> list[int] | None:
    """Return replicas within the limits that are hard to improve by one swap.

    Caps, prices of votes and of near reads are left out of account.

    Parameters
    ----------
    rules
        With the number of replicas that the limits let in at most.
    leader
        ℓ.
    limits, objective
        The scenarios of a leader; the thresholds of the first are the limits.

    Returns
    -------
    list of int or None
        None where the greedy choice finds nothing within the limits.

    Notes
    -----
    O(|R|·|C|·|S|) for every replica that is added or swapped.
    """
    start = np.nonzero(rules.must_hold)[0].tolist()
    chosen = [*dict.fromkeys([*start, leader])]
    fixed = len(chosen)
    search = _Trials(rules, leader, limits, objective)
    while len(chosen) < rules.replicas_max:
        more = max(0, rules.replicas_min - len(chosen) - 1)
        values = search.values(chosen, more)
        site = int(values.argmin())
        if math.isinf(values[site]):
            break
        if len(chosen) >= rules.replicas_min and values[site] >= search.value(chosen):
            break
        chosen.append(site)
    if len(chosen) < rules.replicas_min:
        return None
    best = search.value(chosen)
    for _ in range(tuning.AFFORDABLE_SWAPS):
        swaps = []
        for out in range(fixed, len(chosen)):
            values = search.values(chosen[:out] + chosen[out + 1 :], 0)
            swaps.append((float(values.min()), out, int(values.argmin())))
        if not swaps or min(swaps)[0] >= best * (1 - 1e-12):
            break
        best, out, site = min(swaps)
        chosen[out] = site
    return sorted(chosen)


class _Trials:
    """Objective of a set of replicas and one more, for every site."""

    def __init__(
        self, rules: Rules, leader: int, limits: Sequence[Scenario], objective: Scenario
    ) -> None:
        assert objective.costs is not None
        assert isinstance(objective.voters, QuorumWait)
        self.may_hold, self.leader = rules.may_hold, leader
        self.reads: FloatArray = objective.costs
        self.limits = [
            (one.prices, one.threshold - one.constant) for one in limits if one.prices is not None
        ]
        self.weighed = objective.prices
        self.place = objective.voters.place
        self.waits = np.full(len(self.reads), np.inf)
        self.waits[objective.voters.sites] = objective.voters.waits

    def values(self, chosen: list[int], more: int) -> FloatArray:
        """Objective of `chosen` and each site; infinite where so many `more` are too expensive."""
        near = self.reads[chosen].min(axis=0)
        values = np.minimum(self.reads, near).sum(axis=1)
        known = np.append(np.sort(self.waits[chosen]), [np.inf] * (self.place + 1))
        least = known[self.place - 1] if self.place else 0.0
        if not self.place:
            values += self.waits[self.leader]
        elif math.isfinite(known[self.place]):
            values += np.clip(self.waits, least, known[self.place])
        elif math.isfinite(least):
            values += np.where(np.isinf(self.waits), 1e3 * least + 1.0, self.waits)
        if self.weighed is not None:
            values += self.weighed + self.weighed[chosen].sum()
        open_sites = self.may_hold.copy()
        open_sites[chosen] = False
        for prices, most in self.limits:
            spare = np.sort(prices[open_sites])[:more].sum()
            values[prices[chosen].sum() + prices + spare > most] = np.inf
        return np.where(open_sites, values, np.inf)

    def value(self, chosen: list[int]) -> float:
        """Objective of `chosen`."""
        reads = float(self.reads[chosen].min(axis=0).sum())
        prices = 0.0 if self.weighed is None else float(self.weighed[chosen].sum())
        return reads + prices + float(np.sort(self.waits[chosen])[self.place])


CLAIMED_LESS = 9e-10
"""Share of the best objective by which the bound is below it."""

SEARCHED_LESS = 5e-10
"""Share of the best objective by which the search asks for less than it."""

_LIMIT_SLACK = 8e-12  # what a checker asks less of a limit than the search


@dataclass(frozen=True, eq=False)
class LeaderRecord:
    """Record of the tree of a leader.

    Attributes
    ----------
    events
        As the kernel recorded them.
    scales
        What the weights of the limits and of the objective are divided by.
    """

    events: FloatArray
    scales: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class LimitsCertificate:
    """The certificate of the best plan within limits, or that there is none.

    Attributes
    ----------
    configuration, value, bound
        The plan, its objective and the bound on it; None and +∞: there is no plan.
    clients
        Indices of the clients that count, which are those of the records.
    replicas
        The most replicas.
    allowed
        The largest value of each limited function.
    records
        By leader; a leader that needs no tree has none.
    """

    configuration: Configuration | None
    value: float
    bound: float
    clients: IntArray
    replicas: int
    allowed: tuple[float, ...]
    records: Mapping[int, LeaderRecord]

    def to_json(self) -> Mapping[str, object]:
        """Return the certificate as JSON-like data; site and client numbers are indices."""
        document: dict[str, object] = {"format": FORMAT, "score": self.value, "bound": self.bound}
        if self.configuration is not None:
            document |= self.configuration.to_document()
        document["clients"] = self.clients.tolist()
        document["proofs"] = [
            {"leader": leader, "events": self._events(record)}
            for leader, record in self.records.items()
        ]
        return document

    def _events(self, record: LeaderRecord) -> list[object]:
        found = self.configuration is not None
        slacks = (
            *(_LIMIT_SLACK * allowed for allowed in self.allowed),
            (CLAIMED_LESS - SEARCHED_LESS) * abs(self.value) if found else 0.0,
        )
        written = ThresholdEvents(
            len(self.clients), np.arange(len(self.clients)), self.replicas,
            slack=lambda scenario: slacks[scenario],
            scale=lambda scenario: record.scales[scenario],
        )  # fmt: skip
        return list(written.of(record.events))


_ABOVE = 1e-11
"""Relative: the budget of the search is above that of the evaluator, so that rounding is safe."""

_CLAIM_SLACK = CLAIMED_LESS - SEARCHED_LESS
"""Part of the objective that a certificate leaves unclaimed, for the checker rounds down."""


@dataclass
class LimitsSearch:
    """The search for one problem with limits, or with prices of moves, votes or near reads.

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
        A bound on the question of :func:`~formulations.exact.limits.without_limits`.

    Attributes
    ----------
    best, value
        The best configuration within the limits, and its objective; None and +∞: none is known.
    records
        What closed each leader, for a certificate; None: too long, or not wanted.
    floors
        A bound for each leader that is not closed yet; None: the search has not begun.
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
    floors: dict[int, float] | None = None

    def __post_init__(self) -> None:
        self._limits = self.problem.limits
        self.allowed = tuple(
            limit.allowed * (1 + _ABOVE) or math.ulp(0.0) for limit in self._limits
        )
        demand = self.problem.demand
        counted = (demand.near[0] > 0) | (demand.relay[0] > 0)
        for one in (*(limit.linear(0) for limit in self._limits), self.problem.added_cost(0)):
            if one is not None and one.nearest is not None:
                counted |= one.nearest.any(axis=1)
        self.clients: IntArray = np.nonzero(counted)[0]
        rtt = demand.client_rtt[0][self.clients]
        self._orders: IntArray = np.argsort(rtt, axis=1, kind="stable").astype(np.int32)
        near, self._relay = demand.near[0][self.clients], demand.relay[0][self.clients]
        self._near_costs = near[:, np.newaxis] * rtt
        self._direct = demand.direct[0] @ demand.client_rtt[0]
        self._rules: dict[int, Rules] = {}
        self._started = time.perf_counter()
        if self.options.settings["certificate"]:
            self.records = {}

    @property
    def certificate(self) -> LimitsCertificate | None:
        """Certificate of the result; None: not recorded, or a checker counts other clients."""
        demand = self.problem.demand
        active = (demand.near[0] > 0) | (demand.relay[0] > 0)
        open_leaders = self.floors is None or self.floors
        if self.records is None or open_leaders or not active[self.clients].all():
            return None
        return LimitsCertificate(
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
        less = max(CLAIMED_LESS, self.options.gap_limit)
        if self.floors is None:
            return self.floor
        closed = math.inf if self.best is None else self.value * (1 - less)
        least = min([closed, *self.floors.values()])
        if not self.floors:
            return least  # no more than the certificate proves
        return max(least, self.floor)

    def run(self) -> None:
        """Search until the best plan is proven, or until the time limit or Ctrl-C."""
        with end_early(self):
            self.accept_known()
            if time.perf_counter() > self.end:
                raise TimeoutError
            leaders = self._leaders()
            self.floors = floors = {leader: max(floor, self.floor) for leader, floor in leaders}
            self._propose(leaders)
            for leader, floor in leaders:
                if floor < self.threshold:
                    self._tree(leader)
                del floors[leader]
                self._report()
            if relative_gap(self.value, self.bound) > 2 * CLAIMED_LESS:
                self.termination = Termination.GAP_LIMIT

    def _report(self) -> None:
        seconds = time.perf_counter() - self._started
        self.options.report(Progress(seconds, self.value, self.bound))

    @property
    def threshold(self) -> float:
        """T: below the best objective known by the gap that is good enough, or a little."""
        return self.value * (1 - max(SEARCHED_LESS, self.options.gap_limit - _CLAIM_SLACK))

    # --- plans ------------------------------------------------------------------------------

    def accept(self, configuration: Configuration) -> bool:
        """Keep a configuration that obeys everything if it is the best so far."""
        value = objective_value(self.problem, configuration)
        if value >= self.value or violations(self.problem, configuration):
            return False
        self.value, self.best = value, configuration
        return True

    def accept_known(self) -> None:
        """Keep the better of the start and of the present configuration, where they obey all."""
        for start in (self.options.start, self.problem.present):
            if start is not None:
                self.accept(start)

    def _propose(self, leaders: list[tuple[int, float]]) -> None:
        """Find a first plan: near what runs, else a greedy one and swaps for promising leaders."""
        if self.problem.moves is not None and self.best is not None:
            self._descend()
            return
        for leader, floor in leaders[: tuning.LIMIT_LEADERS]:
            if time.perf_counter() > self.end:
                raise TimeoutError
            if floor < self.threshold:
                *limits, objective = self._scenarios(leader)
                found = affordable_set(self._affordable(leader), leader, limits, objective)
                for one in () if found is None else self._kept(leader, found):
                    self.accept(one)

    def _descend(self) -> None:
        """Take the best single change to the best plan until none improves it."""
        for _ in range(tuning.LIMIT_DESCENT_STEPS):
            before = self.best
            assert before is not None
            if time.perf_counter() > self.end:
                raise TimeoutError
            around = list(neighbours(self.problem, before))
            values = self.problem.objective.values(self.problem, around)
            for place in np.argsort(values, kind="stable").tolist():
                if values[place] >= self.value or self.accept(around[place]):
                    break
            if self.best is before:
                return

    def _kept(self, leader: int, replicas: list[int]) -> Iterator[Configuration]:
        """Yield the configurations of a set of replicas, the best voters of each cost first."""
        rules = self.problem.rules
        functions = [limit.linear(leader) for limit in self._limits]
        added = self.problem.added_cost(leader)
        priced = any(one is not None and one.voter is not None for one in (*functions, added))
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
        """Return leaders with a least cost: every client at its best site, and the quorum."""
        demand, rules = self.problem.demand, self.problem.rules
        between, hold = demand.site_rtt[0], np.nonzero(rules.may_hold)[0]
        nearby = np.ascontiguousarray(self._near_costs[:, hold])
        least = float(nearby.min(axis=1).sum())
        floors = []
        for leader in np.nonzero(rules.may_lead)[0].tolist():
            if self._relay.any():
                costs = nearby + np.multiply.outer(self._relay, between[hold, leader])
                least = float(costs.min(axis=1).sum())
            waits = np.partition(between[leader][rules.may_vote], rules.quorum - 1)
            floor = least + float(self._direct[leader])
            floor += float(demand.quorum[0] * waits[rules.quorum - 1])
            floors.append((floor * (1 - 1e-12), leader))
        return [(leader, floor) for floor, leader in sorted(floors)]

    def _affordable(self, leader: int) -> Rules:
        """Return the rules with no more replicas than every limit lets in at their least prices."""
        rules, most = self.problem.rules, self.problem.rules.replicas_max
        fixed = rules.must_hold.copy()
        fixed[leader] = True
        for limit, allowed in zip(self._limits, self.allowed, strict=True):
            linear = self._linear(limit.linear(leader))
            spent = constant_of(linear, leader) + float(linear.replica[fixed].sum())
            votes = VotePrices.of(rules, linear.voter, leader)
            spent += float(votes.prices[: votes.others].sum())
            free = np.sort(linear.replica[rules.may_hold & ~fixed])
            within = np.nonzero(spent + np.cumsum(free) <= allowed)[0]
            count = int(fixed.sum()) + (int(within[-1]) + 1 if len(within) else 0)
            most = min(most, count)
        most = max(rules.replicas_min, most)
        if most not in self._rules:
            self._rules[most] = dataclasses.replace(rules, replicas_max=most)
        return self._rules[most]

    def _linear(self, linear: LinearCost) -> LinearCost:
        """Return a function with the votes in the prices of replicas where all of them vote."""
        rules = self.problem.rules
        alike = rules.replicas_max == rules.voters
        return linear.with_votes_in_replicas() if alike else linear

    def _scenarios(self, leader: int) -> list[Scenario]:
        """The limits, and the objective, whose threshold falls."""
        demand, rules = self.problem.demand, self.problem.rules
        between = demand.site_rtt[0]
        scenarios = []
        for limit, allowed in zip(self._limits, self.allowed, strict=True):
            linear = self._linear(limit.linear(leader))
            near = None if linear.nearest is None else linear.nearest[self.clients].T
            least = 0.0 if limit.name == "budget" else float(np.abs(linear.replica).max())
            scenarios.append(
                Scenario(
                    near,
                    constant_of(linear, leader),
                    VotePrices.of(rules, linear.voter, leader),
                    allowed,
                    tuning.LIMIT_SCALE * max(allowed, least),
                    linear.replica,
                )
            )
        reads = (self._near_costs + np.multiply.outer(self._relay, between[:, leader])).T
        direct = float(self._direct[leader])
        waits = QuorumWait.of(rules, between[leader], float(demand.quorum[0]))
        prices, votes, added = None, None, self.problem.added_cost(leader)
        if added is not None:
            added = self._linear(added)
            direct += constant_of(added, leader)
            prices = added.replica
            if added.nearest is not None:
                reads = reads + added.nearest[self.clients].T
            if added.voter is not None:
                votes = VotePrices.of(rules, added.voter, leader)
        threshold = self.threshold
        assert self.floors is not None
        scale = threshold if math.isfinite(threshold) else self.floors[leader]
        return [
            *scenarios,
            Scenario(reads, direct, waits, threshold, max(scale, 1e-300), prices, votes=votes),
        ]

    def _tree(self, leader: int) -> None:
        scenarios = self._scenarios(leader)
        objective, scales = scenarios[-1], tuple(one.scale for one in scenarios)

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


def constant_of(linear: LinearCost, leader: int) -> float:
    """Return the constant cost of every plan under a leader, the leader's vote included."""
    return linear.constant + (0.0 if linear.voter is None else float(linear.voter[leader]))


_PROOF = "a search within the limits under every leader"


def without_limits(problem: Problem) -> Problem:
    """Return the question without limits, prices of moves, of votes and of near reads.

    What no configuration undercuts there, none does in the problem.
    """
    weight = 0.0 if weighs_more_than_sites(problem) else problem.cost_weight
    return problem.replace(budget=None, cost_weight=weight, current=None, moves=None)


def answers(problem: Problem, plan: Plan) -> bool:
    """Return whether the plan of the question without limits is the answer to the problem.

    A proof that there is no plan holds too; else the plan keeps the limits, at the same value.
    """
    found = plan.configuration
    if found is None:
        return plan.termination is Termination.FINISHED
    if any(limit.broken(found) for limit in problem.limits):
        return False
    return objective_value(problem, found) <= plan.objective


def plan_of_search(search: LimitsSearch, method: str) -> Plan:
    """Return the plan of a search, or that there is none, or that time ran out."""
    certificate = search.certificate
    document = None if certificate is None else certificate.to_json
    # an interrupted search may have closed the last leader before it saw the interrupt
    closed = search.termination is Termination.FINISHED or search.bound == math.inf
    proven = search.best is None and closed
    reasons: tuple[str, ...] = ()
    if proven:
        leaders = int(search.problem.rules.may_lead.sum())
        limits = " and ".join(f"{limit.name} {limit.most:g}" for limit in search.problem.limits)
        reasons = (
            f"no configuration keeps the limit ({limits}), under any of the {leaders} possible "
            "leaders (proved by a search)",
        )
    plan = Plan.of(
        search.problem,
        search.best,
        method=method,
        bound=math.inf if proven else search.bound,
        termination=search.termination,
        reasons=reasons,
        stats={
            "nodes": search.counters.nodes,
            "leaves": search.counters.leaves,
            "bounds": search.counters.bounds,
        },
        certificate=document,
    )
    return certified_or_named(plan, _PROOF, wanted=bool(search.options.settings["certificate"]))
