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
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from formulations.exact import tuning
from formulations.exact.late_voters import LateVoters
from formulations.exact.threshold_certificate import ANY, Part
from formulations.exact.threshold_driver import ABOVE, CLAIM_SLACK, CLAIMED_LESS, ThresholdDriver
from formulations.exact.threshold_search import Scenario, VoterCosts, search_leader
from placement.evaluation.score import closest_first
from placement.evaluation.voter_choice import best_voters
from placement.measures.measure import Measure, MeasureKind
from placement.measures.question import MEAN, MeasureQuestion
from placement.measures.rows import ClientRows, Row, row_values
from placement.measures.scenarios import Function, counted_clients, functions
from placement.measures.values import focused, losses_of
from placement.model.configuration import Configuration
from placement.model.constraints import Rules
from placement.proof.late.late_claim import rounding_of_shares, rounding_of_tables
from placement.support.checks import BoolArray, FloatArray, IntArray
from placement.support.status import OPTIMALITY_TOLERANCE
from placement.tail.histograms import SMALL
from placement.tail.objective import LateOperations

_SLACK = 1e-9
"""Share of late operations within which rounding and the evaluator's tolerance lie."""

_ABOVE_ZERO = 1e-300  # of limits of 0: it stays above 0 when it is scaled
_BLOCK = 16  # leaders whose late operations are worked out at once where all are wanted
_AT_ONCE = 1_000_000  # leaders · sites · clients whose floors are worked out at once
_FEW_STEPS = 64  # asked about one by one: a tree of few replicas is small, even without a plan
_BELOW_WHOLE = 0.25  # the search for a lower whole number asks for so much more than a checker
_ROUNDING = 1e-12


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
class MeasuresSearch(ThresholdDriver):
    """The search for one problem with limits, or that minimises more than the mean of replicas.

    The problem is of one RTT matrix, with caps on nested levels for the replicas at most. A part is
    a leader. `entered` has the numbers of the rows of measures with many of them that are in the
    trees.
    """

    entered: set[int] = field(init=False, default_factory=set)
    _ceiling: float = field(init=False, default=math.inf)  # of what trees ask for

    def __post_init__(self) -> None:
        super().__post_init__()
        self.clients = counted_clients(self.problem)
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

    @property
    def slack(self) -> float:
        """By how much X of what is minimised was to be lower than what is claimed."""
        minimised = self._functions(int(np.argmax(self.problem.rules.may_lead)))[-1]
        if minimised.bins:
            return rounding_of_tables(minimised.bins, len(self.clients))
        return CLAIM_SLACK * abs(self.value) * minimised.scale if self.best is not None else 0.0

    @property
    def less(self) -> float:
        """Share of the best value by which the bound is below it when all leaders are closed."""
        gap = self.options.gap_limit
        # less than 1, so that +∞, the bound where there is no plan, stays what it is
        return min(gap, 1 - CLAIM_SLACK) if gap > OPTIMALITY_TOLERANCE else CLAIMED_LESS

    @property
    def threshold(self) -> float:
        """Value that is good enough: below the best one by the gap limit, or a little."""
        return self.value * (1 - self.less + CLAIM_SLACK)

    def parts(self) -> Mapping[Part, float]:
        """Return the leaders with a least value each."""
        self.in_time()
        floors, leaders = {}, np.nonzero(self.problem.rules.may_lead)[0].tolist()
        for at, leader in enumerate(leaders):
            if at % _BLOCK == 0:
                self._prepare(leaders[at : at + _BLOCK], minimised=True)
            minimised = self._functions(leader)[-1]
            floor = self._floor(minimised, leader) / minimised.scale
            floors[leader, ANY] = floor - _ROUNDING * abs(floor)
        self._waiting = [leader for leader, _ in sorted(floors, key=floors.__getitem__)]
        return floors

    def close(self, part: Part, nodes: int) -> Iterable[tuple[Part, int]]:
        """Close a leader; return it where rows have entered its tree, and for the next step."""
        leader, _ = part
        if self.open_bounds[part] >= self.threshold or not self._keeps_limits(leader, late=False):
            return []
        aim = self._functions(leader)[-1]
        if aim.measure == MEAN and self.mean_reaches(leader, self.threshold * aim.scale):
            return []
        if not self._keeps_limits(leader, late=True):
            return []
        self._ceiling = self._next_step(leader, self.open_bounds[part])
        if self._tree(leader):
            if self._ceiling >= self.threshold:
                return []
            self.open_bounds[part] = self._ceiling
        return [(part, nodes)]

    def _next_step(self, leader: int, bound: float) -> float:
        """Return the least value above a bound of what is minimised in few whole steps, or +∞."""
        aim, rules = self._functions(leader)[-1], self.problem.rules
        if aim.bins or not aim.step or (prices := aim.rows[0].prices) is None:
            return math.inf
        most = aim.rows[0].constant + float(np.sort(prices)[-rules.replicas_max :].sum())
        step = math.floor(bound * aim.scale + _BELOW_WHOLE) + 1
        return math.inf if step > most or most > _FEW_STEPS else step / aim.scale

    # --- plans ------------------------------------------------------------------------------

    def _kept(self, leader: int, replicas: list[int]) -> Iterator[list[Configuration]]:
        """Yield the configurations of a set of replicas, the best voters of each cost first."""
        rules = self.problem.rules
        if rules.nested_voter_caps:
            best = best_voters(self.problem.demand, rules, leader, replicas)
            if best is None:
                return
            yield [Configuration.of(leader, best, replicas)]
            if all(
                row.votes is None
                and row.lost is None
                and (row.late is None or self._late(row).ordered)
                for one in self._functions(leader)
                if not one.lazy
                for row in one.rows
            ):
                return  # the closest voters are the best
        others = [r for r in replicas if rules.may_vote[r] and r != leader]
        each = itertools.combinations(others, rules.voters - 1)
        while some := list(itertools.islice(each, self._at_once)):
            self.in_time()  # a large set of replicas has very many sets of voters
            sets = np.sort([(leader, *one) for one in some], axis=1)
            pinned = rules.must_vote[sets].sum(axis=1) == rules.must_vote.sum()
            fine = sets[pinned & rules.obeyed("voters", sets)].tolist()
            yield [Configuration.of(leader, one, replicas) for one in fine]

    @cached_property
    def _at_once(self) -> int:
        asked = self.problem.objective
        return asked.at_once(self.problem) if isinstance(asked, MeasureQuestion) else 4096

    def _promising(
        self, leader: int, numbered: Sequence[_Numbered], replicas: list[int]
    ) -> Iterator[list[tuple[Configuration, bool]]]:
        """Yield configurations of a set with few enough late operations, by the search's tables.

        And whether a checker would say the same of all of them.
        """
        tables = [_LateSet(self, one, replicas) for one in numbered if one.row.deadline is not None]
        for some in self._kept(leader, replicas):
            late = [(one, [table.of(one.voters) for table in tables]) for one in some]
            yield [
                (one, all(x <= t.sure for x, t in zip(of, tables, strict=True)))
                for one, of in late
                if all(x <= t.allowed for x, t in zip(of, tables, strict=True))
            ]

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

    def _keeps_limits(self, leader: int, *, late: bool) -> bool:
        """Return whether the floors under a leader are within the limits of one kind."""
        *limits, _ = self._functions(leader)
        for one in (one for one in limits if bool(one.bins) is late):
            if late and leader in self._waiting:
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
        return limit.allowed + ABOVE * abs(limit.allowed) or _ABOVE_ZERO

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
        rules, kept = self.problem.rules, self.clients
        (rtt,), (hop,), (counts,) = demand.client_rtt, demand.site_rtt, demand.counts
        waits = np.partition(hop[leaders, rules.may_vote], rules.quorum - 1)[:, rules.quorum - 1]
        least = demand.direct[0] * rtt[:, leaders].T
        least += counts @ demand.coefficients[:, 3] * waits[:, np.newaxis]
        # a site that is farther than the leader costs no less: relayed operations take a detour
        near, relay = (one[0, kept] for one in (demand.near, demand.relay))
        costs = np.full((len(least), len(kept)), math.inf)
        for site in np.nonzero(rules.may_hold)[0].tolist():
            by_leader = hop[site, leaders, np.newaxis] * relay
            by_leader += near * rtt[kept, site]
            np.minimum(costs, by_leader, out=costs)
        least[:, kept] += costs
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
            votes = VoterCosts.of_votes(rules, row.votes, leader)
            least += float(row.votes[leader]) + votes.least
        if row.waits is not None:
            least += float(np.sort(row.waits[0][rules.may_vote])[rules.quorum - 1])
        return least

    def _affordable(self, leader: int) -> Rules:
        """Return the rules with no more replicas than every limit lets in at their least prices."""
        rules, most = self.problem.rules, self.problem.rules.replicas_max
        fixed = rules.must_hold.copy()
        fixed[leader] = True
        *limits, aim = self._functions(leader)
        bounded = [(row, self._above(one)) for one in limits if not one.lazy for row in one.rows]
        if not aim.bins and aim.step:  # the step of a percentile needs its tables
            bounded += [(row, self._asked(aim)) for row in aim.rows]
        for row, allowed in bounded:
            if row.prices is None:
                continue
            spent = row.constant + float(row.prices[fixed].sum())
            if row.votes is not None:
                votes = VoterCosts.of_votes(rules, row.votes, leader)
                spent += float(row.votes[leader]) + votes.least
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
        claimed = min(self.value * (1 - self.less), self._ceiling * (1 - CLAIMED_LESS))
        if minimised.step and math.isfinite(claimed):
            claimed *= minimised.scale
            if not minimised.bins:
                return minimised.needed(claimed) + _BELOW_WHOLE
            return minimised.needed(claimed) + 2 * rounding_of_tables(
                minimised.bins, len(self.clients)
            )
        return self.threshold * minimised.scale

    def _scenario(self, row: Row, leader: int, threshold: float, scale: float) -> Scenario:
        rules = self.problem.rules
        votes = VoterCosts.of_votes(rules, row.votes, leader)
        constant = row.constant
        constant += 0.0 if row.votes is None else float(row.votes[leader])
        if row.deadline is not None and row.lost is not None:
            return self._late_after(row, leader, threshold, scale)
        costs = None if row.costs is None else self.counted(row.costs)
        if row.successors:
            led = tuple(
                dataclasses.replace(self._waits(one), leader=one.leader, constant=one.constant)
                for one in row.successors
            )
            return Scenario(costs, 0.0, led, threshold, scale, lost=row.lost)
        if row.waits is None and row.late is None:
            return Scenario(costs, constant, (votes,), threshold, scale, row.prices)
        paid = None if row.votes is None else votes
        part = (self._waits(row),) if row.late is None else (self._late(row),)
        return Scenario(costs, constant, part, threshold, scale, row.prices, row.lost, paid)

    def _late_after(self, row: Row, leader: int, threshold: float, scale: float) -> Scenario:
        """Late operations after a loss, under the best of those who can lead in time then."""
        rules, lost = self.problem.rules, row.lost
        assert lost is not None
        each = [one for one in row.successors or (row,) if self._can_lead(one, threshold)]
        taken = int(lost[leader])  # the leader voted
        if not each or rules.voters - taken < rules.quorum:  # every leader is late, or none leads
            nobody = VoterCosts.of_votes(rules, None, leader)
            return Scenario(None, 2.0, (nobody,), threshold, scale, lost=lost)
        gone = min(int((lost & rules.may_vote).sum()), rules.voters - rules.quorum)
        most = rules.voters - 1 - taken
        fewest = min(most, rules.voters - 1 - gone)
        parts = tuple(self._late(one, most, fewest) for one in each)
        costs = self.counted(row.costs)
        if row.successors and len(each) < len(row.successors):
            costs = np.minimum.reduce([self.counted(one.costs) for one in each])
        return Scenario(costs, 0.0, parts, threshold, scale, lost=lost)

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

    def _waits(self, row: Row) -> VoterCosts:
        assert row.waits is not None
        order = self._voters_by_wait[row.leader]
        return VoterCosts(order, row.waits[0, order], self.problem.rules.quorum - 1)

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
            self._voters[key] = LateVoters(late, leader, deadline, most, fewest)
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
            kept, better = list[tuple[Configuration, bool]](), False
            for some in self._promising(leader, numbered, replicas):
                better = self.accept(*(one for one, _ in some)) or better
                kept += some
            if better and self.deadline is not None:
                return self.best
            if not better and kept and self._enter(leader, kept[0][0]):
                return kept[0][0]
            for one in falling:
                one.threshold = min(one.threshold, self._asked(minimised))
            if better and not self.quick_is_exact:  # a checker has to show the best plan's value
                kept = [one for some in self._promising(leader, numbered, replicas) for one in some]
            self._note_undecided(kept)
            return None

        found, events = search_leader(
            self._affordable(leader),
            self._orders,
            leader,
            [one.scenario for one in numbered],
            leaf,
            self.counters,
            falling=sum(one.falls for one in numbered),
            seconds=self.seconds_left,
            record=self.room,
        )
        if found is None:
            numbers = tuple(one.number for one in numbered)
            scales = tuple(one.scenario.scale for one in numbered)
            slacks = tuple(one.slack for one in numbered)
            self.keep((leader, ANY), events, numbers, scales, slacks)
        return found is None or found is self.best

    def _note_undecided(self, refused: Sequence[tuple[Configuration, bool]]) -> None:
        """Note that rounding keeps a checker from a conclusion of the evaluator."""
        limits = self.problem.limits
        asked = refused if self.room and not self.quick_is_exact else ()
        doubtful = [c for c, sure in asked if sure and not any(x.broken(c) for x in limits)]
        if doubtful and (self.quick_values(doubtful) < self.value).any():
            self.drop_records("rounding hides a conclusion from a checker")

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
        self.elected = bool(row.successors)
        rows = {one.leader: one for one in row.successors or (row,)}
        left = [site for site in replicas if site not in self.lost]
        self.leaders: dict[int, tuple[float, LateVoters]] = {}
        if not (left and self.hit):
            return
        near = np.array(left)[search.rank[left].argmin(axis=0)]
        for part in scenario.voters:
            if isinstance(part, LateVoters):  # else every leader is late, or none leads
                costs = search.counted(rows[part.leader].costs)
                nearby = float(costs[near, np.arange(len(near))].sum())
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
