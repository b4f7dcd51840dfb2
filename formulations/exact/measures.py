"""The best plan within limits on any measures: one threshold tree per leader.

Under a leader ℓ a measure is one row or several (:mod:`placement.measures.scenarios`), and each row
X is a sum over clients, replicas and votes and the wait for a quorum. A limit says X <= B_i for its
rows. Let T be the best value known of what is minimised. A plan under ℓ that is better keeps
X < T and X_i <= B_i, and for any weights μ_i >= 0

    X − T + Σ_i μ_i (X_i − B_i) < 0

So μ_i is a multiplier of limit i: all are optimised together with the multipliers of the clients,
in every part of the tree (``csrc/scenarios/scenario.h``). A part is also closed where the replicas
that are fixed, and the cheapest ones that complete them, exceed a limit of prices alone. A complete
set of replicas goes to the evaluator. A better one lowers T for the rest of the search.

Leaders come in the order of their floors: every client at its best site, the closest quorum, the
cheapest replicas. A leader is closed where the floor of the minimised measure reaches T, or that of
a limit exceeds B_i. Under a leader there are at most as many replicas as the limits let in where
they are the cheapest ones; where prices are alike, this alone is nearly all of a budget.

A measure of many rows, such as the slowest client, begins with none of them. The row that a
complete set breaks most enters, and the tree of the leader begins anew.

The search begins with the plan of least mean latency without limits, whose proof is a proof of the
question where the plan keeps the limits and the mean is minimised.

Certificates are what the compiled search recorded, as a document: the format, and what a checker
makes of it, stands in :mod:`placement.proof.measures_proof`; how records become events, in
:mod:`formulations.exact.threshold_search`.
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
from formulations.exact.late_voters import LateIntervals, VotersByInterval
from formulations.exact.reduced_problem import weighs_more_than_sites
from formulations.exact.threshold_search import (
    MOST_RECORDED,
    LedWaits,
    QuorumWait,
    Scenario,
    SearchCounters,
    ThresholdEvents,
    VotePrices,
    search_leader,
)
from placement.evaluation.objective import MEAN_LATENCY, score_of
from placement.evaluation.score import TIE, closest_first
from placement.evaluation.voter_choice import best_voters
from placement.feasibility.feasible_plans import neighbours, violations
from placement.measures.measure import Measure, MeasureKind
from placement.measures.question import MeasureQuestion
from placement.measures.rows import Row, row_value
from placement.measures.scenarios import Function, counted_clients, functions
from placement.methods.options import Options, Progress
from placement.model.configuration import Configuration
from placement.model.constraints import Rules
from placement.plan import Plan, objective_value
from placement.problem import Problem
from placement.proof.late.late_claim import rounding_of_shares
from placement.proof.measures_proof import FORMAT
from placement.support.checks import FloatArray, IntArray
from placement.support.status import Status, Termination, end_early, relative_gap
from placement.tail.late_operations import LateOperations
from placement.tail.percentile_bound import SLACK

__all__ = [
    "CLAIMED_LESS",
    "SEARCHED_LESS",
    "LeaderRecord",
    "MeasuresCertificate",
    "MeasuresSearch",
    "affordable_set",
    "answers",
    "plan_without_limits",
    "solve_within_limits",
    "without_limits",
]


def affordable_set(
    rules: Rules, leader: int, limits: Sequence[Scenario], minimised: Sequence[Scenario]
) -> list[int] | None:
    """Return replicas that are hard to improve by one swap, and near or within the limits.

    Caps and prices of votes are left out of account, and every client is at its cheapest replica.

    Parameters
    ----------
    rules
        With the number of replicas that the limits let in at most.
    leader
        ℓ.
    limits, minimised
        The scenarios of a leader; the thresholds of the first are the limits.

    Returns
    -------
    list of int or None
        None where the greedy choice finds nothing within the limits of prices alone.

    Notes
    -----
    O(|R|·|C|·|S|) for every scenario and replica that is added or swapped.
    """
    start = np.nonzero(rules.must_hold)[0].tolist()
    chosen = [*dict.fromkeys([*start, leader])]
    fixed = len(chosen)
    search = _Trials(rules, limits, minimised)
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
    """Worth of a set of replicas and one more, by site: what is minimised, and any excess."""

    def __init__(
        self, rules: Rules, limits: Sequence[Scenario], minimised: Sequence[Scenario]
    ) -> None:
        self.may_hold, self.minimised = rules.may_hold, minimised
        self.strict = [one for one in limits if one.costs is None]
        self.limits = [one for one in limits if one.costs is not None]

    def values(self, chosen: list[int], more: int) -> FloatArray:
        """Worth of `chosen` and each site; infinite where so many `more` are too expensive."""
        open_sites = self.may_hold.copy()
        open_sites[chosen] = False
        worth = self._worth(chosen)
        for one in self.strict:
            assert one.prices is not None
            spare = np.sort(one.prices[open_sites])[:more].sum()
            worth[self._x(one, chosen) + spare > one.threshold] = np.inf
        return np.where(open_sites, worth, np.inf)

    def value(self, chosen: list[int]) -> float:
        """Worth of `chosen`."""
        return float(self._worth(chosen[:-1])[chosen[-1]])

    def _worth(self, chosen: list[int]) -> FloatArray:
        """Return the largest X that is minimised, and a large multiple of all excess."""
        rows = [self._x(one, chosen) / one.scale for one in self.minimised]
        worth = np.maximum.reduce(rows) if rows else np.zeros(len(self.may_hold))
        for one in self.limits:
            excess = np.maximum(0.0, self._x(one, chosen) - one.threshold)
            worth = worth + tuning.LIMIT_EXCESS * excess / one.scale
        return worth

    def _x(self, one: Scenario, chosen: list[int]) -> FloatArray:
        """X of `chosen` and each site, without prices of votes."""
        values = np.full(len(self.may_hold), one.constant)
        if one.costs is not None:
            near = one.costs[chosen].min(axis=0) if chosen else np.inf
            values += np.minimum(one.costs, near).sum(axis=1)
        if one.prices is not None:
            values += one.prices + one.prices[chosen].sum()
        if isinstance(one.voters, QuorumWait):
            values += _wait_with_each(one.voters, chosen, len(values))
        return values


def _wait_with_each(voters: QuorumWait, chosen: list[int], sites: int) -> FloatArray:
    """Return the wait for a quorum of some sites and each site; where too few, less if near."""
    waits, place = np.full(sites, np.inf), voters.place
    waits[voters.sites] = voters.waits
    known = np.append(np.sort(waits[chosen]), [np.inf] * (place + 1))
    least = float(known[place - 1]) if place else 0.0
    if not place:
        return np.full(sites, known[0])
    if math.isfinite(known[place]):
        return np.asarray(np.clip(waits, least, known[place]))
    if math.isfinite(least):
        return np.where(np.isinf(waits), 1e3 * least + 1.0, waits)
    return np.zeros(sites)


CLAIMED_LESS = 9e-10
"""Share of the best value by which the bound is below it."""

SEARCHED_LESS = 5e-10
"""Share of the best value by which the search asks for less than it."""

_ABOVE = 1e-10
"""Relative: limits of the search are above those of the evaluator, so that rounding is safe."""

_CLAIM_SLACK = CLAIMED_LESS - SEARCHED_LESS  # what a certificate leaves unclaimed, for rounding
_BELOW_WHOLE = 0.25  # a whole number that is better is lower by more than this
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class LeaderRecord:
    """Record of the tree of a leader.

    Attributes
    ----------
    events
        As the kernel recorded them.
    numbers
        Of its scenarios in a certificate.
    scales
        What the weights of each are divided by.
    slacks
        How far the threshold of each was above what a checker asks; NaN for what is minimised.
    """

    events: FloatArray
    numbers: tuple[int, ...]
    scales: tuple[float, ...]
    slacks: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class MeasuresCertificate:
    """The certificate of the best plan within limits, or that there is none.

    Attributes
    ----------
    configuration, value, bound
        The plan, its value and the bound on it; None and +∞: there is no plan.
    slack
        By how much X of what is minimised was to be lower than what is claimed.
    clients
        Indices of the clients that count, which are those of the records.
    replicas
        The most replicas.
    records
        By leader; a leader that needs no tree has none.
    """

    configuration: Configuration | None
    value: float
    bound: float
    slack: float
    clients: IntArray
    replicas: int
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
        slacks = [self.slack if math.isnan(slack) else slack for slack in record.slacks]
        written = ThresholdEvents(
            len(self.clients), np.arange(len(self.clients)), self.replicas,
            slack=lambda scenario: slacks[scenario],
            scale=lambda scenario: record.scales[scenario],
            number=lambda scenario: record.numbers[scenario],
        )  # fmt: skip
        return list(written.of(record.events))


@dataclass(frozen=True, eq=False)
class _Numbered:
    """A scenario and its row, with its number in a certificate."""

    number: int
    scenario: Scenario
    slack: float

    @property
    def falls(self) -> bool:
        """Return whether it is of what is minimised."""
        return math.isnan(self.slack)


@dataclass
class MeasuresSearch:
    """The search for one problem with limits, or that minimises more than the mean of replicas.

    Parameters
    ----------
    problem
        Of one RTT matrix; caps on nested levels for the replicas at most.
    options
        Of the method.
    end
        A time.perf_counter() at which to stop.
    floor
        A bound on the question of :func:`without_limits`, where it bounds the problem.

    Attributes
    ----------
    best, value
        The best configuration within the limits, and its value; None and +∞: none is known.
    records
        What closed each leader, for a certificate; None: too long, or not wanted.
    floors
        Bound of each leader that is not closed; None before the search.
    entered
        Numbers of the rows of measures with many of them that are in the trees.
    ties
        Given: of the plans whose minimised value is at most this the mean is minimised.
    """

    problem: Problem
    options: Options
    end: float
    floor: float = -math.inf
    ties: float = math.inf
    best: Configuration | None = None
    value: float = math.inf
    termination: Termination = Termination.FINISHED
    counters: SearchCounters = field(default_factory=SearchCounters)
    records: dict[int, LeaderRecord] | None = None
    floors: dict[int, float] | None = None
    entered: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.clients: IntArray = counted_clients(self.problem)
        self._orders: IntArray = closest_first(
            self.problem.demand.client_rtt[0][self.clients]
        ).astype(np.int32)
        self._rules: dict[int, Rules] = {}
        self._costs: dict[int, tuple[FloatArray, FloatArray]] = {}  # by the array that is counted
        self._intervals: dict[tuple[LateOperations, ...], LateIntervals] = {}
        self._known: tuple[int, tuple[Function, ...]] | None = None
        self._started = time.perf_counter()
        if self.options.settings["certificate"]:
            self.records = {}

    @property
    def certificate(self) -> MeasuresCertificate | None:
        """Certificate of the result; None: not recorded."""
        open_leaders = self.floors is None or self.floors
        if self.records is None or open_leaders:
            return None
        scale = self._minimised(int(np.argmax(self.problem.rules.may_lead))).scale
        return MeasuresCertificate(
            configuration=self.best,
            value=self.value,
            bound=self.bound,
            slack=_CLAIM_SLACK * abs(self.value) * scale if self.best is not None else 0.0,
            clients=self.clients,
            replicas=self.problem.rules.replicas_max,
            records=self.records,
        )

    @property
    def bound(self) -> float:
        """Least value that any plan may still have."""
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
            self._in_time()
            leaders = self._leaders()
            self.floors = floors = {leader: max(floor, self.floor) for leader, floor in leaders}
            self._propose(leaders)
            for leader, floor in leaders:
                if floor < self.threshold:
                    self._close(leader)
                del floors[leader]
                self._report()
            if relative_gap(self.value, self.bound) > 2 * CLAIMED_LESS:
                self.termination = Termination.GAP_LIMIT

    def _in_time(self) -> None:
        if time.perf_counter() > self.end:
            raise TimeoutError

    def _report(self) -> None:
        seconds = time.perf_counter() - self._started
        self.options.report(Progress(seconds, self.value, self.bound))

    @property
    def threshold(self) -> float:
        """Value that is good enough: below the best one by the gap limit, or a little."""
        return self.value * (1 - max(SEARCHED_LESS, self.options.gap_limit - _CLAIM_SLACK))

    # --- plans ------------------------------------------------------------------------------

    def accept(self, *configurations: Configuration) -> bool:
        """Keep the best of some configurations that obey everything if it is the best so far."""
        values = self._values(configurations)
        for place in np.argsort(values, kind="stable").tolist():
            if values[place] >= self.value:
                return False
            if not violations(self.problem, configurations[place]):
                self.value, self.best = float(values[place]), configurations[place]
                return True
        return False

    def _values(self, configurations: Sequence[Configuration]) -> FloatArray:
        """Values by the evaluator; infinite where a limit on a measure is broken."""
        values = self.problem.objective.values(self.problem, configurations)
        if math.isinf(self.ties):
            if not self.problem.objective.minimises_mean:
                return values
            return np.array([objective_value(self.problem, one) for one in configurations])
        means = np.array([score_of(self.problem, one) for one in configurations])
        return np.where(values <= self.ties * (1 + TIE), means, np.inf)

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
            self._in_time()
            if floor < self.threshold:
                numbered = self._numbered(leader)
                normal = [one for one in numbered if one.scenario.lost is None]
                limits = [one.scenario for one in normal if not one.falls]
                minimised = [one.scenario for one in normal if one.falls]
                found = affordable_set(self._affordable(leader), leader, limits, minimised)
                if found is not None:
                    self.accept(*self._kept(leader, found))

    def _descend(self) -> None:
        """Take the best single change to the best plan until none improves it."""
        for _ in range(tuning.LIMIT_DESCENT_STEPS):
            before = self.best
            assert before is not None
            self._in_time()
            around = list(neighbours(self.problem, before))
            values = self._values(around)
            for place in np.argsort(values, kind="stable").tolist():
                if values[place] >= self.value or self.accept(around[place]):
                    break
            if self.best is before:
                return

    def _kept(self, leader: int, replicas: list[int]) -> Iterator[Configuration]:
        """Yield the configurations of a set of replicas, the best voters of each cost first."""
        rules = self.problem.rules
        if rules.nested_voter_caps:
            best = best_voters(self.problem.demand, rules, leader, replicas)
            if best is None:
                return
            yield Configuration.of(leader, best, replicas)
            rows = [row for one in self._functions(leader) for row in one.rows]
            if all(row.votes is None and row.late is None and row.lost is None for row in rows):
                return
        able = [r for r in replicas if rules.may_vote[r] and r != leader]
        pinned = set(np.nonzero(rules.must_vote)[0].tolist())
        for others in itertools.combinations(able, rules.voters - 1):
            chosen = tuple(sorted((leader, *others)))
            if pinned <= set(chosen) and rules.obeyed("voters", np.array([chosen]))[0]:
                yield Configuration.of(leader, chosen, replicas)

    # --- leaders ----------------------------------------------------------------------------

    def _functions(self, leader: int) -> tuple[Function, ...]:
        """Return the limits under a leader, and last what is minimised."""
        if self._known is None or self._known[0] != leader:
            self._known = (leader, functions(self.problem, leader, ties=self.ties))
        return self._known[1]

    def _minimised(self, leader: int) -> Function:
        return self._functions(leader)[-1]

    def _leaders(self) -> list[tuple[int, float]]:
        """Return the leaders with a least value each, none under which a limit cannot be kept."""
        floors = []
        for leader in np.nonzero(self.problem.rules.may_lead)[0].tolist():
            *limits, minimised = self._functions(leader)
            if all(self._floor(one, leader) <= self._above(one) for one in limits):
                floor = self._floor(minimised, leader) / minimised.scale
                floors.append((floor - _ROUNDING * abs(floor), leader))
        return [(leader, floor) for floor, leader in sorted(floors)]

    def _checked(self, limit: Function) -> float:
        """Return by how much the table of a checker, and its threshold, may be off in X."""
        if limit.bins:
            return rounding_of_shares(limit.bins, len(self.clients))
        return 2 * limit.rounding

    def _above(self, limit: Function) -> float:
        """Return the X up to which the search keeps a limit."""
        if limit.bins:
            return limit.allowed + max(SLACK, 2 * self._checked(limit))
        return limit.allowed + _ABOVE * abs(limit.allowed) or math.ulp(0.0)

    def _floor(self, function: Function, leader: int) -> float:
        """Return the least X of the largest row: clients, prices and wait each at their least."""
        return max(
            self._least(row, leader)
            for row in function.rows
            if row.lost is None or math.isinf(row.constant)
        )

    def _least(self, row: Row, leader: int) -> float:
        rules, least = self.problem.rules, row.constant
        if row.costs is not None:
            least += float(row.costs[rules.may_hold].min(axis=0).sum())
        if row.prices is not None:
            fixed = rules.must_hold.copy()
            fixed[leader] = True
            free = np.sort(row.prices[rules.may_hold & ~fixed])
            held = int(fixed.sum())
            free = free[: max(0, rules.replicas_max - held)]
            taken = (np.arange(len(free)) < rules.replicas_min - held) | (free < 0)
            least += float(row.prices[fixed].sum() + free[taken].sum())
        if row.votes is not None:
            votes = VotePrices.of(rules, row.votes, leader)
            least += float(row.votes[leader] + votes.prices[: votes.others].sum())
        if row.waits is not None:
            least += float(np.sort(row.waits[0][rules.may_vote])[rules.quorum - 1])
        return least

    def _affordable(self, leader: int) -> Rules:
        """Return the rules with no more replicas than every limit lets in at their least prices."""
        rules, most = self.problem.rules, self.problem.rules.replicas_max
        fixed = rules.must_hold.copy()
        fixed[leader] = True
        limits = self._functions(leader)[:-1]
        bounded = [(row, self._above(one)) for one in limits for row in one.rows]
        for row, allowed in bounded:
            if row.prices is None:
                continue
            spent = row.constant + float(row.prices[fixed].sum())
            if row.votes is not None:
                votes = VotePrices.of(rules, row.votes, leader)
                spent += float(row.votes[leader] + votes.prices[: votes.others].sum())
            free = np.sort(row.prices[rules.may_hold & ~fixed])
            within = np.nonzero(spent + np.cumsum(free) <= allowed)[0]
            count = int(fixed.sum()) + (int(within[-1]) + 1 if len(within) else 0)
            most = min(most, count)
        most = max(rules.replicas_min, most)
        if most not in self._rules:
            self._rules[most] = dataclasses.replace(rules, replicas_max=most)
        return self._rules[most]

    # --- trees ------------------------------------------------------------------------------

    def _numbered(self, leader: int) -> list[_Numbered]:
        """Return the scenarios of the tree of a leader; last are those of what is minimised."""
        *limits, minimised = self._functions(leader)
        found, number = [], 0
        for one in limits:
            allowed = self._above(one)
            slack = allowed - one.allowed - self._checked(one)
            for row in one.rows:
                if not one.lazy or number in self.entered:
                    scale = max(allowed, _size(row))
                    if row.costs is None:
                        scale *= tuning.LIMIT_SCALE
                    scenario = self._scenario(row, leader, allowed, scale)
                    found.append(_Numbered(number, scenario, max(slack, 0.0)))
                number += 1
        asked, last = self._asked(minimised), range(number, number + len(minimised.rows))
        if minimised.lazy and not self.entered.intersection(last):
            floors = [self._least(row, leader) for row in minimised.rows]
            self.entered.add(number + int(np.argmax(floors)))
        for row in minimised.rows:
            if not minimised.lazy or number in self.entered:
                scale = max(asked, 0.0) if math.isfinite(asked) else self._least(row, leader)
                scale = scale if scale > 0 else max(_size(row), 1e-300)
                scenario = self._scenario(row, leader, asked, scale)
                found.append(_Numbered(number, scenario, math.nan))
            number += 1
        return found

    def _asked(self, minimised: Function) -> float:
        """Return the X that a better plan is below."""
        if minimised.whole and math.isfinite(self.value):
            less = max(CLAIMED_LESS, self.options.gap_limit)
            claimed = math.ceil(self.value * minimised.scale * (1 - less) - 1e-6)
            return claimed - _BELOW_WHOLE
        return self.threshold * minimised.scale

    def _scenario(self, row: Row, leader: int, threshold: float, scale: float) -> Scenario:
        rules = self.problem.rules
        votes = VotePrices.of(rules, row.votes, leader)
        constant = row.constant
        constant += 0.0 if row.votes is None else float(row.votes[leader])
        costs = None if row.costs is None else self._counted(row.costs)
        if row.successors:
            led = LedWaits(
                tuple((one.leader, one.constant, self._waits(one)) for one in row.successors)
            )
            return Scenario(costs, 0.0, led, threshold, scale, lost=row.lost)
        if row.waits is None:
            return Scenario(costs, constant, votes, threshold, scale, row.prices)
        paid = None if row.votes is None else votes
        return Scenario(
            costs, constant, self._waits(row), threshold, scale, row.prices, row.lost, paid
        )

    def _waits(self, row: Row) -> QuorumWait:
        assert row.waits is not None
        return QuorumWait.of(self.problem.rules, row.waits[0], 1.0)

    def _late(self, row: Row) -> VotersByInterval:
        assert row.late is not None
        each = row.late.intervals
        if each not in self._intervals:
            self._intervals[each] = LateIntervals(each)
        return self._intervals[each].voters(row.leader, row.late.deadline)

    def _counted(self, costs: FloatArray) -> FloatArray:
        """Return the costs of the clients that count, one array for rows that share theirs."""
        known = self._costs.get(id(costs))
        if known is None:
            known = self._costs[id(costs)] = (costs, costs[:, self.clients])
        return known[1]

    def _close(self, leader: int) -> None:
        """Search the tree of a leader until it is closed, with more and more rows."""
        while not self._tree(leader):
            self._in_time()

    def _tree(self, leader: int) -> bool:
        """Search the tree of a leader; False: another row has entered, or more may be below T."""
        self._costs.clear()
        numbered, minimised = self._numbered(leader), self._minimised(leader)
        scenarios = [one.scenario for one in numbered]
        falling = [one.scenario for one in numbered if one.falls]

        def leaf(replicas: list[int]) -> Configuration | None:
            kept = list(self._kept(leader, replicas))
            if not self.accept(*kept) and kept and self._enter(leader, kept[0]):
                return kept[0]
            asked = self._asked(minimised)
            if falling:
                falling[-1].threshold = min(falling[-1].threshold, asked)
            return None

        def keep(events: FloatArray | None) -> None:
            if events is None:
                self.records = None
            elif self.records is not None:
                self.records[leader] = LeaderRecord(
                    events,
                    tuple(one.number for one in numbered),
                    tuple(one.scenario.scale for one in numbered),
                    tuple(one.slack for one in numbered),
                )

        used = 0 if self.records is None else sum(len(r.events) for r in self.records.values())
        found = search_leader(
            self._affordable(leader),
            self._orders,
            leader,
            scenarios,
            leaf,
            falling=len(falling),
            end=self.end,
            counters=self.counters,
            record=0 if self.records is None else max(MOST_RECORDED - used, 1),
            keep=None if self.records is None else keep,
        )
        return found is None

    def _enter(self, leader: int, configuration: Configuration) -> bool:
        """Let the rows that a configuration breaks most enter; False: all that it breaks are in."""
        outside: list[tuple[float, int]] = []
        number, each = 0, self._functions(leader)
        for one in each:
            most = one.allowed if one is not each[-1] else self._asked(one)
            for row in one.rows:
                if one.lazy and number not in self.entered:
                    x = row_value(self.problem, row, configuration)
                    if x > most:
                        outside.append(((x - most) / max(abs(most), 1e-300), number))
                number += 1
        outside.sort(reverse=True)
        self.entered.update(number for _, number in outside[: tuning.LIMIT_ROWS])
        return bool(outside)


def _size(row: Row) -> float:
    """Return the largest price of a replica."""
    return 0.0 if row.prices is None else float(np.abs(row.prices).max())


_PROOF = "a search within the limits under every leader"


def without_limits(problem: Problem) -> Problem:
    """Return the question of the mean without limits, prices of moves, of votes and of near reads.

    What no configuration undercuts there, none does in the problem where the mean is minimised.
    """
    weight = 0.0 if weighs_more_than_sites(problem) else problem.cost_weight
    return problem.replace(
        objective=MEAN_LATENCY, budget=None, cost_weight=weight, current=None, moves=None
    )


def minimises_mean(problem: Problem) -> bool:
    """Return whether a question with or without limits minimises the mean of all operations."""
    asked = problem.objective
    return not isinstance(asked, MeasureQuestion) or asked.aim == Measure(MeasureKind.MEAN)


def answers(problem: Problem, plan: Plan) -> bool:
    """Return whether the plan of the question without limits is the answer to the problem.

    A proof that there is no plan holds too; else the plan keeps the limits, at the same value.
    """
    found = plan.configuration
    if found is None:
        return plan.termination is Termination.FINISHED
    if not minimises_mean(problem) or violations(problem, found):
        return False
    return isinstance(problem.objective, MeasureQuestion) or (
        objective_value(problem, found) <= plan.objective
    )


def plan_without_limits(problem: Problem, plan: Plan) -> Plan:
    """Return the answer to a problem from the plan of the question without limits."""
    found, certificate = plan.configuration, plan.certificate
    if found is None or not isinstance(problem.objective, MeasureQuestion):
        return plan.replace(problem=problem)
    bound = plan.bound / problem.demand.operations
    document: dict[str, object] | None = None
    if certificate is not None:
        value = objective_value(problem, found)
        document = {"format": FORMAT, "score": value, "bound": bound, **found.to_document()}
        document["mean"] = certificate
    return Plan.of(
        problem,
        found,
        method=plan.method,
        bound=bound,
        termination=plan.termination,
        notes=plan.notes,
        stats=plan.stats,
        certificate=document,
        warm_start=plan.warm_start,
    )


def solve_within_limits(problem: Problem, options: Options, plan: Plan, end: float) -> Plan:
    """Solve a problem within its limits.

    Parameters
    ----------
    problem, options
        The question, and the options of the method.
    plan
        Of the question without limits, of the same method.
    end
        A time.perf_counter() at which to stop.
    """
    floor = plan.bound if minimises_mean(problem) else -math.inf
    if isinstance(problem.objective, MeasureQuestion):
        floor /= problem.demand.operations
    search = MeasuresSearch(problem, options, end, floor)
    if plan.configuration is not None:
        search.accept(plan.configuration)
    if plan.termination is Termination.INTERRUPTED:
        search.accept_known()
        search.termination = plan.termination
        return plan_of_search(search, plan.method)
    search.run()
    proven = search.termination is Termination.FINISHED and search.best is not None
    if minimises_mean(problem) or not proven:
        return plan_of_search(search, plan.method)
    quiet = dataclasses.replace(options, start=search.best, gap_limit=0.0, progress=None)
    ties = MeasuresSearch(problem, quiet, end, plan.bound, search.value)
    ties.accept_known()
    if plan.status is not Status.OPTIMAL or ties.value > plan.objective * (1 + TIE):
        ties.run()
        return plan_of_search(search, plan.method, ties)
    return plan_of_search(search, plan.method, ties, plan.certificate)


def plan_of_search(
    search: MeasuresSearch,
    method: str,
    ties: MeasuresSearch | None = None,
    least_mean: Mapping[str, object] | None = None,
) -> Plan:
    """Return the plan of a search, or that there is none, or that time ran out.

    `ties`: the search for the least mean among the plans of the least value; `least_mean`: the
    certificate that no configuration at all has a lower mean.
    """
    certificate = search.certificate

    def document() -> Mapping[str, object]:
        assert certificate is not None
        found = dict(certificate.to_json())
        if ties is not None and ties.best is not None:
            found |= ties.best.to_document()
            of_ties = ties.certificate if least_mean is None else None
            second = least_mean if of_ties is None else of_ties.to_json()
            if second is not None:
                found["ties"] = second
        return found

    # an interrupted search may have closed the last leader before it saw the interrupt
    closed = search.termination is Termination.FINISHED or search.bound == math.inf
    proven = search.best is None and closed
    reasons: tuple[str, ...] = ()
    asked = search.problem.objective
    if proven:
        leaders = int(search.problem.rules.may_lead.sum())
        limits = [f"{limit.name} {limit.most:g}" for limit in search.problem.limits]
        if isinstance(asked, MeasureQuestion):
            limits += map(str, asked.keep)
        reasons = (
            f"no configuration keeps the limit ({' and '.join(limits)}), under any of the "
            f"{leaders} possible leaders (proved by a search)",
        )
    notes = []
    if ties is not None and least_mean is None and ties.termination is not Termination.FINISHED:
        notes.append("whether another plan of this value has a lower mean was not decided")
    each = [search] if ties is None else [search, ties]
    plan = Plan.of(
        search.problem,
        search.best if ties is None else ties.best,
        method=method,
        bound=math.inf if proven else search.bound,
        termination=search.termination,
        reasons=reasons,
        notes=notes,
        stats={
            "nodes": sum(one.counters.nodes for one in each),
            "leaves": sum(one.counters.leaves for one in each),
            "bounds": sum(one.counters.bounds for one in each),
        },
        certificate=None if certificate is None else document,
    )
    return certified_or_named(plan, _PROOF, wanted=bool(search.options.settings["certificate"]))
