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
complete set breaks most enters, and the tree of the leader begins anew. A row of one client is
below its threshold only where a site that serves the client quickly enough holds a replica. The
tree branches on the client with the fewest such sites; where there is one, it is taken in, and
where there is none, the part is closed (``csrc/scenarios/threshold_tree.c``).

The search begins with the plan of least mean latency without limits, whose proof is a proof of the
question where the plan keeps the limits and the mean is minimised. At the root of each tree swaps
lead from the sites that the bound selects towards the limits (``csrc/scenarios/late.c``).

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
from functools import cached_property

import numpy as np

from formulations.exact import tuning
from formulations.exact.late_voters import LateSuccessors, LateVoters, VoterOrder
from formulations.exact.reduced_problem import weighs_more_than_sites
from formulations.exact.threshold_search import (
    MOST_RECORDED,
    Leaf,
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
from placement.feasibility.feasible_plans import violations
from placement.measures.measure import Measure, MeasureKind
from placement.measures.question import MeasureQuestion
from placement.measures.rows import ClientRows, Row, mean_costs, row_values
from placement.measures.scenarios import Function, counted_clients, functions
from placement.measures.values import focused, losses_of
from placement.methods.options import Options, Progress
from placement.model.configuration import Configuration
from placement.model.constraints import Rules
from placement.plan import Plan, objective_value
from placement.problem import Problem
from placement.proof.enumeration_check import certified_or_named
from placement.proof.late.late_claim import rounding_of_shares, rounding_of_tables
from placement.proof.measures_proof import FORMAT
from placement.support.checks import BoolArray, FloatArray, IntArray
from placement.support.status import Status, Termination, end_early, relative_gap
from placement.tail.late_operations import LateOperations
from placement.tail.pair_bins import SMALL

CLAIMED_LESS = 9e-10
"""Share of the best value by which the bound is below it. A smaller gap limit asks for no ties."""

SEARCHED_LESS = 5e-10
"""Share of the best value by which the search asks for less than it."""

_ABOVE = 1e-10
"""Relative: limits of the search are above those of the evaluator, so that rounding is safe."""

_SLACK = 1e-9
"""Share of late operations within which rounding and the evaluator's tolerance lie."""

_ABOVE_ZERO = 1e-300  # of limits of 0: it stays above 0 when it is scaled
_CLAIM_SLACK = CLAIMED_LESS - SEARCHED_LESS  # what a certificate leaves unclaimed, for rounding
_BLOCK = 16  # leaders whose late operations are worked out at once where all are wanted
_AT_ONCE = 1_000_000  # leaders · sites · clients whose floors are worked out at once
_BELOW_WHOLE = 0.25  # the search for a lower whole number asks for so much more than a checker
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class LeaderRecord:
    """Record of the tree of a leader: its events, and of each scenario what they are written with.

    Of each scenario the number in a certificate, the divisor of its weights, and how far its
    threshold was above what a checker asks (NaN for what is minimised). The deadline is that of a
    percentile that is minimised.
    """

    events: FloatArray
    numbers: tuple[int, ...]
    scales: tuple[float, ...]
    slacks: tuple[float, ...]
    deadline: int | None = None


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
            | ({} if record.deadline is None else {"deadline": record.deadline})
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
    row: Row
    sure: float = math.inf  # of late operations: more than this are too many for a checker too

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
    deadline
        Of a percentile that is minimised: the deadline that is asked about, in bins.
    """

    problem: Problem
    options: Options
    end: float
    floor: float = -math.inf
    ties: float = math.inf
    deadline: int | None = field(init=False, default=None)
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
        self.rank: IntArray = np.argsort(self._orders, axis=1, kind="stable").T
        self._rules: dict[int, Rules] = {}
        self._costs: dict[int, tuple[FloatArray, FloatArray]] = {}  # by the array that is counted
        self._waiting: list[int] = []  # their late operations are not worked out
        self._in_time_at: dict[tuple[object, ...], bool] = {}
        self._voters: dict[tuple[object, ...], LateVoters] = {}
        self._known: tuple[tuple[int, int | None], tuple[Function, ...]] | None = None
        self._latency_floors: dict[Measure, FloatArray] = {}
        self._started = time.perf_counter()
        if self.options.settings["certificate"]:
            self.records = {}

    @property
    def certificate(self) -> MeasuresCertificate | None:
        """Certificate of the result; None: not recorded."""
        open_leaders = self.floors is None or self.floors
        if self.records is None or open_leaders:
            return None
        minimised = self._functions(int(np.argmax(self.problem.rules.may_lead)))[-1]
        slack = _CLAIM_SLACK * abs(self.value) * minimised.scale if self.best is not None else 0.0
        if minimised.bins:
            slack = rounding_of_tables(minimised.bins, len(self.clients))
        return MeasuresCertificate(
            configuration=self.best,
            value=self.value,
            bound=self.bound,
            slack=slack,
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
        # once all leaders are closed, no more than the certificate proves
        return max(least, self.floor) if self.floors else least

    def run(self) -> None:
        """Search until the best plan is proven, or until the time limit or Ctrl-C."""
        with end_early(self):
            self.accept_known()
            self._in_time()
            leaders = self._leaders()
            self.floors = floors = {leader: max(floor, self.floor) for leader, floor in leaders}
            for leader, floor in leaders:
                if floor < self.threshold and self._keeps_limits(leader):
                    while not self._tree(leader):  # with more and more rows
                        self._in_time()
                del floors[leader]
                self._report()
            if relative_gap(self.value, self.bound) > 2 * CLAIMED_LESS:
                self.termination = Termination.GAP_LIMIT

    @property
    def stop(self) -> float:
        """A time.perf_counter() at which to stop."""
        return self.end

    def _in_time(self) -> None:
        if time.perf_counter() > self.stop:
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
        """Keep the best of some configurations that obey the rules if it is the best so far.

        They are evaluated in the order of bounds that are quick to tell, as long as these are low.
        """
        quick, better = self._quick(configurations), False
        asked, known = self.problem.objective, False  # the quick bounds are values
        if isinstance(asked, MeasureQuestion) and math.isinf(self.ties):
            known = not any(one.kind.of_distributions for one in asked.measures)
        for place in np.argsort(quick, kind="stable").tolist():
            if quick[place] >= self.value:
                break
            value = quick[place] if known else self._values([configurations[place]])[0]
            one = configurations[place]
            if value < self.value and not any(x.broken(one) for x in self.problem.limits):
                self.value, self.best, better = float(value), one, True
        return better

    def _quick(self, configurations: Sequence[Configuration]) -> FloatArray:
        """Lower bounds on what :meth:`_values` gives, without distributions."""
        asked = self.problem.objective
        if not isinstance(asked, MeasureQuestion):
            return self._values(configurations)
        if math.isfinite(self.ties):
            return np.array([score_of(self.problem, one) for one in configurations])
        if asked.aim.kind.of_distributions:
            return np.full(len(configurations), -math.inf)
        return asked.quick_values(self.problem, configurations)

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
            if start is not None and not violations(self.problem, start):
                self.accept(start)

    def _kept(self, leader: int, replicas: list[int]) -> Iterator[Configuration]:
        """Yield the configurations of a set of replicas, the best voters of each cost first."""
        rules = self.problem.rules
        if rules.nested_voter_caps:
            best = best_voters(self.problem.demand, rules, leader, replicas)
            if best is None:
                return
            yield Configuration.of(leader, best, replicas)
            if all(
                row.votes is None
                and row.lost is None
                and (row.late is None or self._late(row).ordered)
                for one in self._functions(leader)
                if not one.lazy
                for row in one.rows
            ):
                return  # the closest voters are the best
        able = [r for r in replicas if rules.may_vote[r] and r != leader]
        pinned = set(np.nonzero(rules.must_vote)[0].tolist())
        for others in itertools.combinations(able, rules.voters - 1):
            chosen = tuple(sorted((leader, *others)))
            if pinned <= set(chosen) and rules.obeyed("voters", np.array([chosen]))[0]:
                yield Configuration.of(leader, chosen, replicas)

    def _promising(
        self, leader: int, numbered: Sequence[_Numbered], replicas: list[int]
    ) -> Iterator[tuple[Configuration, bool]]:
        """Yield configurations of a set with few enough late operations, by the search's tables.

        And whether a checker would say the same of all of them.
        """
        tables = [_LateSet(self, one, replicas) for one in numbered if one.row.deadline is not None]
        for one in self._kept(leader, replicas):
            late = [table.of(one.voters) for table in tables]
            if all(x <= t.allowed for x, t in zip(late, tables, strict=True)):
                yield one, all(x <= t.sure for x, t in zip(late, tables, strict=True))

    # --- leaders ----------------------------------------------------------------------------

    def _functions(self, leader: int) -> tuple[Function, ...]:
        """Return the limits under a leader, and last what is minimised."""
        key = leader, self.deadline
        if self._known is None or self._known[0] != key:
            found = functions(self.problem, leader, ties=self.ties, deadline=self.deadline)
            self._known = key, found
        return self._known[1]

    def _usable_sites(self, leader: int) -> BoolArray:
        """Return which sites may serve each client under a leader, shape (sites, clients)."""
        may_hold = self.problem.rules.may_hold[:, np.newaxis]
        return np.asarray(may_hold & (self.rank <= self.rank[leader]))

    def _leaders(self) -> list[tuple[int, float]]:
        """Return the leaders with a least value each."""
        floors, leaders = [], np.nonzero(self.problem.rules.may_lead)[0].tolist()
        for at, leader in enumerate(leaders):
            if at % _BLOCK == 0:
                self._prepare(leaders[at : at + _BLOCK], minimised=True)
            minimised = self._functions(leader)[-1]
            floor = self._floor(minimised, leader) / minimised.scale
            floors.append((floor - _ROUNDING * abs(floor), leader))
        self._waiting = [leader for _, leader in sorted(floors)]
        return [(leader, floor) for floor, leader in sorted(floors)]

    def _keeps_limits(self, leader: int) -> bool:
        """Return whether the floors under a leader are within the limits."""
        *limits, _ = self._functions(leader)
        for one in sorted(limits, key=lambda one: one.bins):
            if one.bins and leader in self._waiting:
                at = self._waiting.index(leader)
                block = self._waiting[at : at + tuning.LATE_LEADERS]
                del self._waiting[: at + tuning.LATE_LEADERS]
                self._prepare(block)
            if self._floor(one, leader) > self._above(one):
                return False
        return True

    def _prepare(self, leaders: list[int], *, minimised: bool = False) -> None:
        """Work out the late operations of some leaders at once, of the limits or of the aim."""
        *limits, aim = self._functions(leaders[0])
        for one in [aim] if minimised else limits:
            if one.bins:
                assert one.measure is not None
                late = one.rows[0].late
                assert late is not None
                for interval in late.intervals:
                    interval.prepare(leaders, late.deadline)

    def _checked(self, limit: Function) -> float:
        """Return by how much the table of a checker, and its threshold, may be off in X."""
        if limit.bins:
            return rounding_of_shares(limit.bins, len(self.clients))
        return 2 * limit.rounding

    def _above(self, limit: Function) -> float:
        """Return the X up to which the search keeps a limit."""
        if limit.bins:
            return limit.allowed + max(_SLACK, 2 * self._checked(limit))
        return limit.allowed + _ABOVE * abs(limit.allowed) or _ABOVE_ZERO

    def _floor(self, function: Function, leader: int) -> float:
        """Return the least X of the largest row: clients, prices and wait each at their least."""
        measure = function.measure
        if measure is None or measure.kind not in {MeasureKind.MEAN, MeasureKind.SLOWEST}:
            found = (row for row in function.rows if row.lost is None or math.isinf(row.constant))
            return max((self._least(row, leader) for row in found), default=0.0)
        if measure not in self._latency_floors:
            self._latency_floors[measure] = self._floors_of(measure)
        return float(self._latency_floors[measure][leader])

    def _floors_of(self, measure: Measure) -> FloatArray:
        """Return the floor of a mean, or of the slowest client, under each leader."""
        rules, floors = self.problem.rules, np.zeros(len(self.rank))
        total: np.ufunc = np.add if measure.kind is MeasureKind.MEAN else np.maximum
        size = max(1, _AT_ONCE // (self.rank.size + 1))
        for block in (slice(at, at + size) for at in range(0, len(floors), size)):
            floors[block] = total.reduce(self._least_by_client(measure, block), axis=1)
        for loss in losses_of(self.problem, measure):
            left = rules.may_vote & rules.may_hold
            left[list(loss.sites)] = False
            assert measure.after is not None
            if not left.any():  # nobody can lead then
                floors[slice(None) if measure.after.leader_moves else list(loss.sites)] = math.inf
        return floors

    def _least_by_client(self, measure: Measure, leaders: slice) -> FloatArray:
        """Return the part of each client in a mean, or its own mean, at the least.

        At its best site and with the closest quorum; shape (leaders, clients that count there).
        """
        demand = focused(self.problem, measure.operations, measure.clients).demand
        rules, kept, costs = self.problem.rules, self.clients, mean_costs(demand, leaders)
        (rtt,), (hop,), (counts,) = demand.client_rtt, demand.site_rtt, demand.counts
        usable = rules.may_hold[:, np.newaxis] & (self.rank <= self.rank[leaders, np.newaxis])
        waits = np.partition(hop[leaders, rules.may_vote], rules.quorum - 1)[:, rules.quorum - 1]
        least = demand.direct[0] * rtt[:, leaders].T
        least += counts @ demand.coefficients[:, 3] * waits[:, np.newaxis]
        least[:, kept] += np.where(usable, costs[:, :, kept], math.inf).min(axis=1)
        issued = counts.sum(axis=1)
        if measure.kind is MeasureKind.MEAN:
            return np.asarray(least)
        return np.asarray(least[:, issued > 0] / issued[issued > 0])

    def _least(self, row: Row, leader: int) -> float:
        rules, least = self.problem.rules, row.constant
        if row.costs is not None:
            costs = np.where(self._usable_sites(leader), self.counted(row.costs), math.inf)
            least += float(costs.min(axis=0, initial=math.inf).sum())
        if row.late is not None:
            least += self.least_led(self._late(row))
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
        bounded = [(row, self._above(one)) for one in limits if not one.lazy for row in one.rows]
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
        each = self._functions(leader)
        alone = len(each) == 1 and len(each[0].rows) == 1
        found: list[_Numbered] = []
        number = 0
        for one in each:
            falls = one is each[-1] and self.deadline is None
            allowed = self._asked(one) if falls else self._above(one)
            slack = math.nan if falls else max(allowed - one.allowed - self._checked(one), 0.0)
            sure = one.allowed + self._checked(one) if one.bins and not falls else math.inf
            last = range(number, number + len(one.rows))
            inside: Iterator[tuple[int, Row]] = enumerate(one.rows, number)
            if isinstance(one.rows, ClientRows):
                if falls and not self.entered.intersection(last):
                    able = np.nonzero(self.problem.rules.may_vote)[0].tolist()
                    at_leader = one.rows.values(
                        one.rows.costs[leader], able, self.problem.rules.quorum
                    )
                    self.entered.add(number + int(at_leader.argmax()))
                binding = sorted(self.entered.intersection(last))
                inside = zip(binding, [one.rows[k - number] for k in binding], strict=True)
            for at, row in inside:
                size = 0.0 if row.prices is None else float(np.abs(row.prices).max())
                if falls:
                    scale = max(allowed, 0.0)
                    scale = scale if math.isfinite(allowed) else self._least(row, leader)
                    scale = scale if scale > 0 else max(size, 1e-300)
                else:
                    scale = max(allowed, size, 1e-6 if one.bins else 0.0)
                    if row.costs is None:
                        scale *= tuning.LIMIT_SCALE
                if one.bins and not alone:
                    scale *= tuning.LATE_SCALE
                scenario = self._scenario(row, leader, allowed, scale)
                found.append(_Numbered(at, scenario, slack, row, sure))
            number += len(one.rows)
        return found

    def _asked(self, minimised: Function) -> float:
        """Return the X that a better plan is below."""
        if minimised.step and math.isfinite(self.value):
            less = max(CLAIMED_LESS, self.options.gap_limit)
            claimed = self.value * minimised.scale * (1 - less)
            if not minimised.bins:
                return minimised.needed(claimed) + _BELOW_WHOLE
            return minimised.needed(claimed) + 2 * rounding_of_tables(
                minimised.bins, len(self.clients)
            )
        return self.threshold * minimised.scale

    def _scenario(self, row: Row, leader: int, threshold: float, scale: float) -> Scenario:
        rules = self.problem.rules
        votes = VotePrices.of(rules, row.votes, leader)
        constant = row.constant
        constant += 0.0 if row.votes is None else float(row.votes[leader])
        if row.deadline is not None and row.lost is not None:
            return self._late_after(row, leader, threshold, scale)
        costs = None if row.costs is None else self.counted(row.costs)
        if row.successors:
            led = LedWaits(
                tuple((one.leader, one.constant, self._waits(one)) for one in row.successors)
            )
            return Scenario(costs, 0.0, led, threshold, scale, lost=row.lost)
        if row.waits is None and row.late is None:
            return Scenario(costs, constant, votes, threshold, scale, row.prices)
        paid = None if row.votes is None else votes
        part = self._waits(row) if row.late is None else self._late(row)
        return Scenario(costs, constant, part, threshold, scale, row.prices, row.lost, paid)

    def _late_after(self, row: Row, leader: int, threshold: float, scale: float) -> Scenario:
        """Late operations after a loss, under the best of those who can lead in time then."""
        rules, lost = self.problem.rules, row.lost
        assert lost is not None
        each = [one for one in row.successors or (row,) if self._can_lead(one, threshold)]
        taken = int(lost[leader])  # the leader voted
        if not each or rules.voters - taken < rules.quorum:  # every leader is late, or none leads
            nobody = VotePrices.of(rules, None, leader)
            return Scenario(None, 2.0, nobody, threshold, scale, lost=lost)
        gone = min(int((lost & rules.may_vote).sum()), rules.voters - rules.quorum)
        most = rules.voters - 1 - taken
        fewest = min(most, rules.voters - 1 - gone)
        parts = tuple(self._late(one, most, fewest) for one in each)
        costs = self.counted(row.costs)
        if row.successors and len(each) < len(row.successors):
            costs = np.minimum.reduce([self.counted(one.costs) for one in each])
        return Scenario(costs, 0.0, LateSuccessors(parts), threshold, scale, lost=lost)

    def _can_lead(self, row: Row, threshold: float) -> bool:
        """Return whether few enough operations may be late with a leader, if nothing is lost."""
        assert row.late is not None
        key = row.leader, row.late.deadline, threshold, id(row.late.intervals)
        if key not in self._in_time_at:
            rules, sites = self.problem.rules, len(self.problem.rules.may_hold)
            costs = np.where(self._usable_sites(row.leader), self.counted(row.costs), math.inf)
            least = float(costs.min(axis=0, initial=math.inf).sum())
            least += self._late(row).least(np.zeros(sites, dtype=bool), rules.may_hold, sites)
            self._in_time_at[key] = least <= threshold
        return self._in_time_at[key]

    def _waits(self, row: Row) -> QuorumWait:
        assert row.waits is not None
        order = self._voters_by_wait[row.leader]
        return QuorumWait(order, row.waits[0, order], self.problem.rules.quorum - 1)

    @cached_property
    def _voters_by_wait(self) -> IntArray:
        """Sites that may vote, as they answer each leader, int32."""
        able = np.nonzero(self.problem.rules.may_vote)[0]
        order = closest_first(self.problem.demand.site_rtt[0][:, able])
        return able[order].astype(np.int32)

    def _late(self, row: Row, most: int | None = None, fewest: int | None = None) -> LateVoters:
        """Return the late operations at the leader; `most` and `fewest` as of `LateVoters`."""
        assert row.late is not None
        (late,) = row.late.intervals
        return self.late_voters(late, row.leader, row.late.deadline, most, fewest)

    def late_voters(
        self,
        late: LateOperations,
        leader: int,
        deadline: int,
        most: int | None = None,
        fewest: int | None = None,
    ) -> LateVoters:
        """Return the late operations at a leader; parameters as of `LateVoters`."""
        key = late, leader, deadline, most, fewest
        if key not in self._voters:
            if len(self._voters) * len(self.rank) * (deadline + 1) > SMALL // 8:  # cells
                self._voters.clear()
            order = VoterOrder.of(late, leader)
            self._voters[key] = LateVoters(late, leader, deadline, order, most, fewest)
        return self._voters[key]

    def least_led(self, voters: LateVoters) -> float:
        """Return the least share of late operations at a leader."""
        rules = self.problem.rules
        inside = rules.must_hold.copy()
        inside[voters.leader] = True
        room = rules.replicas_max - int(inside.sum())
        return voters.least(inside, rules.may_hold & ~inside, room)

    def counted(self, costs: FloatArray | None) -> FloatArray:
        """Return the costs of the clients that count, one array for rows that share theirs."""
        assert costs is not None
        if len(self.clients) == costs.shape[1]:
            return costs
        known = self._costs.get(id(costs))
        if known is None:
            known = self._costs[id(costs)] = (costs, costs[:, self.clients])
        return known[1]

    def _tree(self, leader: int) -> bool:
        """Search the tree of a leader; False: another row has entered, or more may be below T.

        Where a deadline is asked about, the first plan that keeps it is the end.
        """
        self._costs.clear()
        numbered, minimised = self._numbered(leader), self._functions(leader)[-1]
        falling = [one.scenario for one in numbered if one.falls][-1:]

        def leaf(replicas: list[int]) -> Configuration | None:
            kept = list(self._promising(leader, numbered, replicas))
            better = self.accept(*(one for one, _ in kept))
            if better and self.deadline is not None:
                return self.best
            if not better and kept and self._enter(leader, kept[0][0]):
                return kept[0][0]
            for one in falling:
                one.threshold = min(one.threshold, self._asked(minimised))
            if better:  # at the new threshold: a checker has to show the best plan's own value
                kept = list(self._promising(leader, numbered, replicas))
            self._note_undecided(kept)
            return None

        found = self._search(leader, numbered, leaf)
        return found is None or found is self.best

    def _note_undecided(self, refused: Sequence[tuple[Configuration, bool]]) -> None:
        """Note that rounding keeps a checker from a conclusion of the evaluator."""
        limits = self.problem.limits
        doubtful = [c for c, sure in refused if sure and not any(x.broken(c) for x in limits)]
        if self.records is not None and doubtful and (self._quick(doubtful) < self.value).any():
            self.records = None

    def _search(
        self, leader: int, numbered: Sequence[_Numbered], leaf: Leaf
    ) -> Configuration | None:
        """Search the tree of a leader, and keep its record."""

        def keep(events: FloatArray | None) -> None:
            if events is None:
                self.records = None
            elif self.records is not None:
                self.records[leader] = LeaderRecord(
                    events,
                    tuple(one.number for one in numbered),
                    tuple(one.scenario.scale for one in numbered),
                    tuple(one.slack for one in numbered),
                    self.deadline,
                )

        used = 0 if self.records is None else sum(len(r.events) for r in self.records.values())
        return search_leader(
            self._affordable(leader),
            self._orders,
            leader,
            [one.scenario for one in numbered],
            leaf,
            falling=sum(one.falls for one in numbered),
            end=self.stop,
            counters=self.counters,
            record=0 if self.records is None else max(MOST_RECORDED - used, 1),
            keep=None if self.records is None else keep,
        )

    def _enter(self, leader: int, configuration: Configuration) -> bool:
        """Let the rows that a configuration breaks most enter; False: all that it breaks are in."""
        outside: list[tuple[float, int]] = []
        number, each = 0, self._functions(leader)
        for one in each:
            falls = one is each[-1] and self.deadline is None
            most = self._asked(one) if falls else one.allowed
            if one.lazy:
                excess = (row_values(self.problem, one.rows, configuration) - most).tolist()
                outside += [
                    (x / max(abs(most), 1e-300), at)
                    for at, x in enumerate(excess, number)
                    if x > 0 and at not in self.entered
                ]
            number += len(one.rows)
        outside.sort(reverse=True)
        self.entered.update(number for _, number in outside[: tuning.LIMIT_ROWS])
        return bool(outside)


class _LateSet:
    """Late operations of a set of replicas by its voters, from the tables of a search."""

    def __init__(self, search: MeasuresSearch, numbered: _Numbered, replicas: list[int]) -> None:
        row, scenario = numbered.row, numbered.scenario
        self.allowed, self.sure = scenario.threshold, numbered.sure
        self.rules = search.problem.rules
        gone: list[int] = [] if row.lost is None else np.nonzero(row.lost)[0].tolist()
        self.lost = frozenset(gone)
        self.hit = not self.lost or not self.lost.isdisjoint(replicas)
        parts = scenario.voters
        each = parts.each if isinstance(parts, LateSuccessors) else ()
        each = (parts,) if isinstance(parts, LateVoters) else each
        self.elected = bool(row.successors)
        rows = {one.leader: one for one in row.successors or (row,)}
        left = [site for site in replicas if site not in self.lost]
        self.leaders: dict[int, tuple[float, LateVoters]] = {}
        if not (left and self.hit):
            return
        near = np.array(left)[search.rank[left].argmin(axis=0)]
        for part in each:
            costs = rows[part.leader].costs
            assert costs is not None
            nearby = float(search.counted(costs)[near, np.arange(len(near))].sum())
            self.leaders[part.leader] = (rows[part.leader].constant + nearby, part)

    def of(self, voters: tuple[int, ...]) -> float:
        """Share that is late with some voters; infinite where the service stops."""
        if not self.hit:
            return 0.0
        left = tuple(v for v in voters if v not in self.lost)
        if len(left) < self.rules.quorum:
            return math.inf
        able = list(self.leaders)
        if self.elected:
            elected = [v for v in left if self.rules.may_lead[v]] or left
            able = [v for v in elected if v in self.leaders]
        late = [nearby + part.of(left) for nearby, part in map(self.leaders.__getitem__, able)]
        return min(late, default=math.inf)


_PROOF = "a search within the limits under every leader"


def without_limits(problem: Problem) -> Problem:
    """Return the question of the mean without limits, prices of moves, of votes and of near reads.

    What no configuration undercuts there, none does in the problem where the mean is minimised.
    """
    weight = 0.0 if weighs_more_than_sites(problem) else problem.cost_weight
    implied = problem.objective.diversity(problem.rules.voters, problem.rules.quorum)
    return problem.replace(
        objective=MEAN_LATENCY,
        diversity=(*problem.diversity, *implied),
        budget=None,
        cost_weight=weight,
        current=None,
        moves=None,
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
    search = _search_for(problem, options, end, floor)
    if plan.configuration is not None:
        search.accept(plan.configuration)
    if plan.termination is Termination.INTERRUPTED:
        search.accept_known()
        search.termination = plan.termination
        return plan_of_search(search, plan.method)
    search.run()
    proven = search.termination is Termination.FINISHED and search.best is not None
    if minimises_mean(problem) or not proven or 0 < options.gap_limit < CLAIMED_LESS:
        return plan_of_search(search, plan.method)
    quiet = dataclasses.replace(options, start=search.best, gap_limit=0.0, progress=None)
    ties = MeasuresSearch(problem, quiet, end, plan.bound, search.value)
    ties.accept_known()
    if plan.status is not Status.OPTIMAL or ties.value > plan.objective * (1 + TIE):
        ties.run()
        return plan_of_search(search, plan.method, ties)
    return plan_of_search(search, plan.method, ties, plan.certificate)


def _search_for(problem: Problem, options: Options, end: float, floor: float) -> MeasuresSearch:
    asked = problem.objective
    if isinstance(asked, MeasureQuestion) and asked.aim.kind is MeasureKind.PERCENTILE:
        from formulations.exact.deadline_search import DeadlineSearch

        return DeadlineSearch(problem, options, end)
    return MeasuresSearch(problem, options, end, floor)


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
            if asked.aim.kind is MeasureKind.PERCENTILE:
                limits.append(f"{asked.aim} within the horizon of the distributions")
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
