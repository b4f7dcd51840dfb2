"""Check of a certificate about measures (format ``replica-placement/thresholds/1``).

=============  ====================================================================================
"clients"      indices of the clients that count, in the order of the multipliers
"proofs"       [{"leader": ℓ, "events": […]}, …]: at most one for each leader, or one with a
               "successor" for each site that may take over when its own is lost; with a "deadline"
               in bins where it is about a later one than the claim
"floors"       [[site, bits, u], …]: multipliers that rule out sites as leaders, or, where measures
               are taken after losses, as successors, or as both
=============  ====================================================================================

The scenarios are the rows of the question (:mod:`placement.measures.scenarios`): those of its
limits one after the other, then those of what it minimises. They are worked out here from the
question. The threshold of a limit is the value above which the evaluator refuses a configuration.
That of what is minimised is the claim, or none where it is claimed that nothing keeps the limits:
then the bound is +∞. Where a percentile is minimised, all rows have thresholds: its own are those
of late operations at the last deadline before the bound. With the weights λ_i of the limits and λ
of the minimised function in a bound, μ_i = λ_i / λ is the multiplier of a limit:

    Σ_i λ_i (X_i − T_i) + λ (X − T) >= 0

for every configuration of a state says that none is better than T within the limits
(:mod:`placement.proof.threshold_proof`).

**Losses.** The row of a loss bounds every plan from below, whether or not the loss hits it: a plan
that it misses has its normal value. After a loss that takes ℓ another voter leads, one of a group
Γ: the costs of the row are the least of Γ, and so is the rest. Γ are all sites that may vote and
are not ruled out, or the "successor" of a proof, who then holds a vote. A site is ruled out as a
leader where the row of a mean, with no site but its own fixed, reaches its threshold, and as a
successor where it reaches that of the losses: with fewer sites no bound falls. Where the measure is
that of the losses, and each plan loses a replica while its leader stays, there is one replica less.
Where clients move, no successor is ruled out: clients may come closer to the remaining sites.

A mean over outages has one threshold, for Σ p_s X_s. Weights are null in its events, and the
checker takes the probabilities p of the losses that hit a fixed replica. The rest up to 1 is the
weight of the normal row, since a loss that hits none costs at least the normal bound without the
sites that it takes.

Every row has a grid of its own in int64. Costs, waits and prices, of either sign, are rounded down
to it, and thresholds are rounded up. A leader without a proof is closed by the checker: every
client at its best site, the closest quorum and the cheapest replicas reach a threshold. Under a
leader there are at most as many replicas as the limits let in where they are the cheapest.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from operator import index
from typing import Any

import numpy as np

from placement.errors import CertificateError
from placement.evaluation.score import closest_first
from placement.measures.measure import Measure, MeasureKind
from placement.measures.question import MeasureQuestion
from placement.measures.rows import Row, led_by_any
from placement.measures.scenarios import beyond_thresholds, counted_clients, functions, last_bin
from placement.measures.values import focused, percentile_of
from placement.model.constraints import Rules
from placement.model.site_families import FamilyCount, site_families
from placement.problem import Problem
from placement.proof.choice.site_choice import SiteChoice
from placement.proof.choice.sorted_sites import SortedSites
from placement.proof.claim import Scale, finest_bit, integers
from placement.proof.costs.rounded_costs import TableCosts
from placement.proof.event_tree import CELLS_PER_STEP, State
from placement.proof.late.late_claim import LateClaim, LateTables, LossTables, whole_share
from placement.proof.late.late_votes import SHARE_BITS
from placement.proof.threshold_proof import (
    NO_BETAS,
    BoundPart,
    ThresholdProof,
    check_clients,
    read_multipliers,
)
from placement.support.checks import FloatArray, IntArray
from placement.support.work import Work

FORMAT = "replica-placement/thresholds/1"

_SAME_BIN = 1e-12

_BITS = 60
_MOST_SHIFT = 500
_BELOW = 2.0**-51


class MeasuresClaim:
    """A question about measures, and the bound that is claimed of it.

    `bound` is in the unit of what is minimised; None: it is claimed that no configuration keeps the
    limits. With `ties`: of the plans whose minimised value is at most this none has a mean below
    the bound. `clients` are the indices of the clients that count, and `rank` is the place of each
    site in the order of each client, shape (clients, sites).
    """

    def __init__(self, problem: Problem, bound: float | None, *, ties: float = math.inf) -> None:
        self.problem, self.rules, self.bound, self.ties = problem, problem.rules, bound, ties
        reason = beyond_thresholds(problem)
        if self.rules.witnesses:
            reason = "witnesses"
        if reason is not None:
            raise ValueError(f"certificates of this format do not take it: {reason}")
        self.clients = counted_clients(problem)
        self.last = 0  # the latest deadline of a percentile that says anything, in bins
        self._late: dict[tuple[Measure, int], LateClaim] = {}
        self._after: dict[tuple[Measure, int, int, int], LossTables] = {}
        rtt = problem.demand.client_rtt.reshape(-1, len(self.rules.may_hold))[self.clients]
        self.rank = _ranks(closest_first(rtt))
        families = site_families(self.rules, "voters")
        self.voter_family = families[0] if len(families) == 1 else None

    def late(self, measure: Measure, rules: Rules) -> LateClaim:
        """Return what the late operations of a measure are worked out from."""
        key = measure, rules.replicas_max
        if key not in self._late:
            part = focused(self.problem, measure.operations, measure.clients)
            self._late[key] = LateClaim(part, percentile_of(self.problem, measure), rules)
        return self._late[key]

    def late_after(
        self, measure: Measure, rules: Rules, deadline: int, threshold: int, work: Work
    ) -> LossTables:
        """Return the late operations of a measure under everyone who may lead after a loss."""
        key = measure, rules.replicas_max, deadline, threshold
        if key not in self._after:
            question = self.late(measure, rules)
            self._after[key] = LossTables(question, deadline, threshold, work)
        return self._after[key]

    @cached_property
    def shares(self) -> tuple[list[int], int] | None:
        """Weights of the rows of a mean over outages as whole numbers of 2^-bits, and the bits.

        None where nothing is weighted.
        """
        weights = functions(self.problem, 0, ties=self.ties)[-1].weights
        if weights is None:
            return None
        bits = finest_bit(weights[1:])
        chances: list[int] = integers(weights[1:], bits).tolist()
        normal = (1 << bits) - sum(chances)
        if normal < 0:
            raise ValueError("the probabilities of the losses sum to more than 1")
        return [normal, *chances], bits

    @cached_property
    def deadline(self) -> int | None:
        """Where a percentile is minimised, the last deadline before the bound, in bins."""
        asked = self.problem.objective
        if not isinstance(asked, MeasureQuestion) or math.isfinite(self.ties):
            return None
        if asked.aim.kind is not MeasureKind.PERCENTILE:
            return None
        self.last = last_bin(self.problem, asked.aim, math.inf)
        if self.bound is None:
            return self.last
        width = percentile_of(self.problem, asked.aim).distributions.width
        return min(self.last, math.ceil(self.bound / width * (1 - _SAME_BIN)) - 1)

    def thresholds(
        self, leader: int, deadline: int | None = None
    ) -> list[tuple[Row, float | None, Measure | None]]:
        """Return the rows under a leader, with the threshold that each must reach; None: none.

        `deadline`: of a percentile that is minimised; None: that of the claim. At an earlier one no
        share is smaller.
        """
        deadline = self.deadline if deadline is None else deadline
        found: list[tuple[Row, float | None, Measure | None]] = []
        each = functions(self.problem, leader, ties=self.ties, deadline=deadline)
        for one in each:
            needed: float | None = one.allowed + one.rounding
            if one is each[-1] and deadline is None:
                needed = None if self.bound is None else one.needed(self.bound * one.scale)
            found += [(row, needed, one.measure) for row in one.rows]
        return found


class _LeaderWaits:
    """Constant and waits, by interval and site, of one who leads, from below."""

    def __init__(
        self, claim: MeasuresClaim, leader: int, constant: int, waits: list[list[int]]
    ) -> None:
        self.leader, self.constant, self.waits = leader, constant, waits
        self._rules, self._family = claim.rules, claim.voter_family
        able: list[int] = np.nonzero(claim.rules.may_vote)[0].tolist()
        self._near = [sorted(able, key=row.__getitem__) for row in waits]

    def least(self, state: State, lost: frozenset[int], most: int) -> int | None:
        """Return the least wait in a state with so many replicas at most; None: no quorum.

        The voters are replicas, obey their rules, and none of the lost sites answers: so the wait
        is at least the m-th among known voters and as many more as there may be voters, of whom no
        more are free sites than replicas may be added.
        """
        room = most - len(state.inside), self._rules.voters - len(state.voters)
        if min(room) < 0:
            return None
        total = self.constant
        for order, waits in zip(self._near, self.waits, strict=True):
            last = self._last(order, lost, state, room)
            if last is None:
                return None
            total += waits[last]
        return total

    def _last(
        self, order: Sequence[int], lost: frozenset[int], state: State, room: tuple[int, int]
    ) -> int | None:
        rules, family = self._rules, self._family
        load = None if family is None else FamilyCount(family, rules.voters, rules.voters)
        voting = held = added = fitting = 0
        for site in order:
            if site in state.outside or site in state.others or site in lost:
                continue
            if site in state.voters:
                voting += 1
            elif site in state.inside:
                held += 1
            else:
                added += 1
            fitting += load is None or load.take(site)
            able = voting + min(held + min(added, room[0]), room[1])
            if fitting >= rules.quorum and able >= rules.quorum:
                return site
        return None

    def of(self, voters: Sequence[int]) -> int:
        """Return constant and wait of a set of voters, at least m of them."""
        place = self._rules.quorum - 1
        return self.constant + sum(sorted(row[v] for v in voters)[place] for row in self.waits)


def _ranks(orders: IntArray) -> IntArray:
    """Return the place of each site in the order of each client, shape (clients, sites)."""
    places = np.int16 if orders.shape[1] < 2**15 else np.int32
    return np.argsort(orders, axis=1).astype(places)


def _total(claim: MeasuresClaim, row: Row, threshold: float | None) -> float:
    """Return more than a row can be, without a factor for its grid."""
    total = abs(threshold or 0.0)
    for one in (row, *row.successors):
        if one.costs is not None and (one.costs < 0).any():
            raise ValueError("negative costs of a client")
        for prices in (one.prices, one.votes):
            total += 0.0 if prices is None else float(np.abs(prices).sum())
        total += abs(one.constant) if one.constant < math.inf else 0.0
        if one.waits is not None:
            if (one.waits < 0).any():
                raise ValueError("negative costs of a wait")
            total += float(one.waits.max(axis=1).sum())
    if row.costs is not None and len(claim.clients):
        total += float(row.costs[:, claim.clients].max(axis=0).sum())
    if not total < math.inf:
        raise ValueError("the costs are too large to be proved")
    return total


def _least_prices(costs: TableCosts, rules: Rules, state: State, free: Sequence[int]) -> int:
    """Least sum of prices of replicas: those fixed, and the cheapest that complete them."""
    held = sum(int(costs.price[s]) for s in state.inside)
    missing = rules.replicas_min - len(state.inside)
    room = max(0, rules.replicas_max - len(state.inside))
    cheapest = sorted(int(costs.price[s]) for s in free)[:room]
    return held + sum(price for at, price in enumerate(cheapest) if at < missing or price < 0)


_Known = dict[tuple[int, int, int], TableCosts]


class _RowTable:
    """A row under a leader on a grid, rounded down.

    `total`: of the grid, at least `_total`; `known`: costs of clients that are rounded already, by
    the arrays that they are made of and the grid.
    """

    def __init__(
        self,
        claim: MeasuresClaim,
        leader: int,
        row: Row,
        threshold: float | None,
        total: float | None = None,
        known: _Known | None = None,
    ) -> None:
        rules, sites = claim.rules, len(claim.rules.may_hold)
        self.rules, self.leader = rules, leader
        total = _total(claim, row, threshold) if total is None else total
        self.bits = _BITS - math.frexp(2 * (rules.replicas_max + 4) * max(total, 1e-300))[1]
        if total and abs(self.bits) > _MOST_SHIFT:
            raise ValueError("the costs are too large or too small to be proved")
        self.bits = self.bits if total else 0
        scale = Scale(self.bits, math.ldexp(total, self.bits))
        known, key = {} if known is None else known, (id(row.costs), id(row.orders), self.bits)
        if key not in known:
            near = np.zeros((len(claim.clients), sites))
            if row.costs is not None:
                if np.delete(row.costs, claim.clients, axis=1).any():
                    raise ValueError("a client that does not count has costs")
                near = row.costs.T[claim.clients]
            rank = claim.rank if row.orders is None else _ranks(row.orders[claim.clients])
            known[key] = TableCosts(rank, scale, self._whole(near))
        self.costs = known[key].for_row(scale)
        votes = np.zeros(sites) if row.votes is None else row.votes
        prices = np.zeros(sites) if row.prices is None else row.prices
        self.nobody = row.constant == math.inf
        fixed = 0.0 if self.nobody else row.constant + votes[leader]
        self.costs.constant = int(self._whole(np.array(fixed)))
        self.costs.price = self._whole(prices)
        self.threshold = None
        if threshold is not None:
            self.threshold = math.ceil(math.ldexp(threshold, self.bits)) + 1
        able: list[int] = np.nonzero(rules.may_vote)[0].tolist()
        self.lost = frozenset[int]()
        if row.lost is not None:
            self.lost = frozenset(np.nonzero(row.lost)[0].tolist())
        self.votes: list[int] = self._whole(votes).tolist()
        self._paid = sorted((s for s in able if s != leader), key=self.votes.__getitem__)
        self._own = self._waits_of(claim, row, self.costs.constant)
        self._led = [
            self._waits_of(claim, one, int(self._whole(np.array(one.constant))))
            for one in row.successors
        ]

    def _waits_of(self, claim: MeasuresClaim, row: Row, constant: int) -> _LeaderWaits:
        """Return the constant and the waits of the site that leads in a row."""
        waits = np.zeros((1, len(claim.rules.may_hold))) if row.waits is None else row.waits
        return _LeaderWaits(claim, row.leader, constant, self._whole(waits).tolist())

    @property
    def waits(self) -> list[int]:
        """Waits of the leader by site, of the first interval."""
        return self._own.waits[0]

    def rest(self, state: State, most: int) -> int | None:
        """Return constant, votes and wait from below in a state with so many replicas at most.

        After a loss: of the best who may lead then. None where it has too few sites for the voters,
        or nobody leads with a quorum.
        """
        if self.nobody:
            return None
        if self._led:
            room = most - len(state.inside)
            out = state.outside | state.others | self.lost
            able = (
                led
                for led in self._led
                if led.leader not in out and (led.leader in state.inside or room > 0)
            )
            found = (led.least(state, self.lost, most) for led in able)
            return min((one for one in found if one is not None), default=None)
        rest = self._own.least(state, self.lost, most)
        if rest is None or self.lost:
            return rest
        votes = self._first(self._paid, state, most, self.rules.voters - 1)
        return None if votes is None else rest + sum(self.votes[s] for s in votes)

    def of(self, reads: int, voters: Sequence[int]) -> int:
        """Return X from below of the replicas that cost `reads` and a set of voters."""
        votes = sum(self.votes[v] for v in voters if v != self.leader)
        return reads - self.costs.constant + votes + self._own.of(voters)

    def admitted(self) -> int:
        """Return how many replicas the limit lets in at most, where they are the cheapest."""
        rules, prices = self.rules, self.costs.price.tolist()
        if self.threshold is None:
            return rules.replicas_max
        fixed = {int(s) for s in np.nonzero(rules.must_hold)[0]} | {self.leader}
        others = [s for s in np.nonzero(rules.may_hold)[0].tolist() if s not in fixed]
        spent, count = self.costs.constant + sum(prices[s] for s in fixed), len(fixed)
        spent += sum(self.votes[s] for s in self._paid[: rules.voters - 1])
        for more, price in enumerate(sorted(prices[s] for s in others), 1):
            spent += price
            if spent < self.threshold:
                count = len(fixed) + more
        return max(rules.replicas_min, min(rules.replicas_max, count))

    def _first(
        self, order: Sequence[int], state: State, most: int, wanted: int
    ) -> list[int] | None:
        """Return the first sites of an order that can vote together; None: too few."""
        room = most - len(state.inside)
        found: list[int] = []
        for site in order:
            if len(found) == wanted:
                break
            if site in state.inside or (site not in state.outside and room > 0):
                room -= site not in state.inside
                found.append(site)
        return found if len(found) == wanted else None

    def _whole(self, values: FloatArray) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        scaled = np.ldexp(values, self.bits)
        below = np.floor(scaled - np.abs(scaled) * _BELOW)
        return np.asarray(below.astype(np.int64))


class _LateTable:
    """Late operations under a leader at a deadline, as a row: see `LateTables`."""

    bits, lost = SHARE_BITS, frozenset[int]()

    def __init__(
        self, claim: MeasuresClaim, question: LateClaim, row: Row, threshold: float, work: Work
    ) -> None:
        assert row.late is not None
        sites, times = len(claim.rules.may_hold), row.late.deadline + 1
        cells = sites * (len(question.claim.clients) + sites) * times * (1 + len(question.flows))
        work.take(cells // CELLS_PER_STEP)
        self.tables = LateTables(question, row.leader, row.late.deadline, work)
        shares = np.zeros((len(claim.clients), sites), dtype=np.int64)
        shares[np.searchsorted(claim.clients, question.claim.clients)] = self.tables.shares
        self.costs = TableCosts(claim.rank, self.tables.costs.grid, shares)
        self.threshold: int | None = whole_share(threshold)
        self._known: dict[frozenset[int], int] = {}

    def rest(self, state: State, most: int) -> int | None:
        """Return the late operations at the leader from below; None: too few voters."""
        del most  # the rules of the question say it
        return self.tables.led(state)

    def of(self, reads: int, voters: Sequence[int]) -> int:
        """Return X from below of the replicas that cost `reads` and a set of voters."""
        key = frozenset(voters)
        if key not in self._known:
            self._known[key] = self.tables.of(key)
        return reads + self._known[key]


class _LateAfterTable:
    """Late operations after a loss, under the best of those who may lead then."""

    bits = SHARE_BITS

    def __init__(self, tables: LossTables, leader: int, row: Row) -> None:
        assert row.lost is not None
        self.losses, self.leader, self.threshold = tables, leader, tables.threshold
        self.lost = frozenset(np.nonzero(row.lost)[0].tolist())
        able = [one.leader for one in row.successors] or [leader]
        self.leaders = tuple(h for h in able if h in tables.successors)
        # without anyone who can lead in time, `rest` says that nothing is left
        self.costs = tables.costs(self.leaders or (leader,))
        self.elected = bool(row.successors)

    def rest(self, state: State, most: int) -> int | None:
        """Return the late operations at the leader from below; None: nobody leads in time."""
        del most  # the rules of the question say it
        return self.losses.led(self.leader, self.leaders, self.lost, state)

    def least(self, replicas: frozenset[int], voters: Sequence[int]) -> int | None:
        """Return the share of a plan from below, of the best who may lead; None: nobody may."""
        alive = frozenset(voters) - self.lost
        able = self.losses.elected(alive) if self.elected else [self.leader]
        left = replicas - self.lost
        shares = (self.losses.share(h, left, alive) for h in able if h in self.leaders)
        return min(shares, default=None)


_Table = _RowTable | _LateTable | _LateAfterTable


class MeasuresProof(ThresholdProof):
    """The proof of one leader.

    One of `group` leads after a loss that takes the leader, or moves it; None: of all that may
    vote. `deadline`, in bins, is that of a percentile that is minimised; None: that of the claim.
    """

    def __init__(
        self,
        claim: MeasuresClaim,
        leader: int,
        work: Work,
        group: Collection[int] | None = None,
        deadline: int | None = None,
    ) -> None:
        self.claim, self.leader, rules = claim, leader, claim.rules
        self._given = work
        self._rows = [
            (row if group is None else _led_by(row, {*group, leader}), threshold, measure)
            for row, threshold, measure in claim.thresholds(leader, deadline)
        ]
        self._weighted = claim.shares
        self._common = None  # of the rows of a weighted sum, which share a grid
        if self._weighted is not None:
            self._common = max(_total(claim, row, threshold) for row, threshold, _ in self._rows)
        self._tables: dict[int, _Table] = {}
        self._costs_known: _Known = {}  # losses of others cost what none does
        self._losses = [
            frozenset[int]() if row.lost is None else frozenset(np.nonzero(row.lost)[0].tolist())
            for row, _, _ in self._rows
        ]
        self._led: dict[tuple[int, int], _RowTable] = {}  # by scenario and who leads after its loss
        self._order = list(range(len(self._rows)))  # what ruled out something last comes first
        most = rules.replicas_max
        for scenario, (row, threshold, _) in enumerate(self._rows):
            if row.prices is not None and threshold is not None:
                table = self._table(scenario)
                assert isinstance(table, _RowTable)
                most = min(most, table.admitted())
        choice = SiteChoice(dataclasses.replace(rules, replicas_max=most), leader, None)
        whom, clients = f"leader {leader}", len(claim.clients)
        super().__init__(choice, whom, work, clients, len(self._rows))

    def start(self, *held: int) -> State:
        """Return the state in which nothing is decided but pins, and `held`, who vote."""
        pinned = np.nonzero(self.claim.rules.must_vote)[0].tolist()
        return dataclasses.replace(super().start(*held), voters=frozenset((*pinned, *held)))

    def _table(self, scenario: int) -> _Table:
        if scenario not in self._tables:
            row, threshold, measure = self._rows[scenario]
            table: _Table
            if row.deadline is None:
                table = _RowTable(
                    self.claim, self.leader, row, threshold, self._common, self._costs_known
                )
            else:
                assert measure is not None
                threshold = 2.0 if threshold is None else threshold  # more than any share
                rules, work, t = self.choice.rules, self._given, row.deadline
                if row.lost is None:
                    question = self.claim.late(measure, rules)
                    table = _LateTable(self.claim, question, row, threshold, work)
                else:
                    whole = whole_share(threshold)
                    tables = self.claim.late_after(measure, rules, t, whole, work)
                    table = _LateAfterTable(tables, self.leader, row)
            self._tables[scenario] = table
        return self._tables[scenario]

    def _no_voters(self, state: State, parts: Sequence[BoundPart]) -> bool:
        """Return whether the clients' bound of each scenario leaves too little for any voters."""
        late: list[tuple[LateTables, int]] = []
        near: list[set[int] | None] = [None]
        for part in parts:
            table = self._table(part.scenario)
            if isinstance(table, _LateAfterTable) or table.lost or table.threshold is None:
                continue
            self.bounds += 1
            free = self._open_sites(state)
            fixed, rho = table.costs.evaluation(state.inside, free, part.u, NO_BETAS)
            longer = table.costs.detours(state.inside, free)
            rho = [saved + more for saved, more in zip(rho, longer, strict=True)]
            least = self.choice.least_sum(SortedSites(state.inside, free, rho))
            if least is None:
                return True
            left = table.threshold - fixed - least
            if isinstance(table, _LateTable):
                late.append((table.tables, left))
            elif self._rows[part.scenario][0].votes is None:
                close = {site for site, wait in enumerate(table.waits) if wait < left}
                if self.leader not in close:
                    return True
                near.append(close)
        far = self.claim.rules.voters - self.claim.rules.quorum
        return any(
            tables.none_below(state, left, some, far) for tables, left in late for some in near
        )

    # --- bounds -----------------------------------------------------------------------------

    def _in_force(self, state: State) -> set[int]:
        if self._weighted is not None:
            return self._hit(state.inside)
        return set(range(len(self._rows)))

    def _hit(self, replicas: Collection[int]) -> set[int]:
        """Return the rows of normal operation and of losses that some plans notice."""
        chosen = frozenset(replicas)
        return {
            s
            for s, (lost, (row, _, _)) in enumerate(zip(self._losses, self._rows, strict=True))
            if not lost or lost & chosen or row.orders is not None
        }

    def _weights(self, state: State, parts: Sequence[BoundPart]) -> tuple[list[int], int]:
        if self._weighted is None:
            return super()._weights(state, parts)
        shares, bits = self._weighted
        left = sum(share for s, share in enumerate(shares) if s not in self._in_force(state))
        threshold = self._threshold(0)
        if threshold is None:
            raise CertificateError(f"proof for {self.whom}: a bound on a weighted sum is finite")
        weights = [shares[part.scenario] + (0 if part.scenario else left) for part in parts]
        return weights, threshold << bits

    def _less(self, scenario: int, state: State) -> list[int]:
        if scenario or self._weighted is None:
            return super()._less(scenario, state)
        less, force = [0] * self.sites, self._in_force(state)
        for s, lost in enumerate(self._losses):
            for site in () if s in force else lost:
                less[site] += self._weighted[0][s]
        return less

    def _lost(self, scenario: int) -> frozenset[int]:
        return self._losses[scenario]

    def _costs(self, scenario: int) -> TableCosts:
        return self._table(scenario).costs

    def _threshold(self, scenario: int) -> int | None:
        return self._table(scenario).threshold

    def _bits(self, scenario: int) -> int:
        return self._table(scenario).bits

    def _rest(self, scenario: int, state: State) -> int | None:
        rules, table = self.choice.rules, self._table(scenario)
        rest = table.rest(state, rules.replicas_max)
        if rest is None or table.threshold is None or self._rows[scenario][0].costs is not None:
            return rest
        least = rest + _least_prices(table.costs, rules, state, self._free(state))
        return None if least >= table.threshold else rest

    def closed_at_once(self, state: State) -> bool:
        """Return whether every client at its best site, and the best voters, reach a threshold."""
        free, rules = self._free(state), self.choice.rules
        for scenario, (row, _, _) in enumerate(self._rows):
            if row.constant == math.inf:
                return True  # the leader's own loss, after which nobody can lead
            if self._losses[scenario] or self._weighted is not None:
                continue
            self._take(None, CELLS_PER_STEP)
            table = self._table(scenario)
            rest = table.rest(state, rules.replicas_max)
            if rest is None:
                return True
            if table.threshold is None:
                continue
            reads = table.costs.least(state.inside, free) - table.costs.constant
            if reads + _least_prices(table.costs, rules, state, free) + rest >= table.threshold:
                return True
        return False

    # --- sets of replicas -------------------------------------------------------------------

    def _no_better(self, form: None, replicas: list[int]) -> bool:
        rules = self.claim.rules
        if not all(group.satisfied(replicas) for group in rules.of("replicas")):
            return True
        able = [r for r in replicas if rules.may_vote[r]]
        pinned = {int(s) for s in np.nonzero(rules.must_vote)[0]} | {self.leader}
        spare = rules.voters - len(pinned)
        if len(able) < rules.voters or not pinned <= set(able) or spare < 0:
            return True
        chosen = frozenset(replicas)
        state = State(chosen, frozenset(range(self.sites)) - chosen)
        reads: dict[int, int] = {}
        force = self._hit(chosen)
        for scenario in [s for s in self._order if s in force]:
            table = self._table(scenario)
            rest = table.rest(state, len(replicas))
            left = [r for r in replicas if r not in table.lost]
            if rest is None or not left:
                return True
            if table.threshold is None:
                continue
            reads[scenario] = table.costs.reads(left)
            least = reads[scenario] - table.costs.constant + rest
            if self._weighted is None and least >= table.threshold:
                return self._ruled_out_by(scenario)
        others = [r for r in able if r not in pinned]
        self.work.take(math.comb(len(others), spare) * rules.voters)
        return all(
            self._reached(chosen, [*pinned, *more], reads)
            for more in itertools.combinations(others, spare)
        )

    def _reached(
        self, replicas: frozenset[int], voters: Sequence[int], reads: Mapping[int, int]
    ) -> bool:
        """Return whether voters break a rule, a limit or the claim."""
        if not all(group.satisfied(voters) for group in self.claim.rules.of("voters")):
            return True
        left = [
            len([v for v in voters if v not in lost]) for lost in self._losses if lost & replicas
        ]
        if min(left, default=math.inf) < self.claim.rules.quorum:
            return True  # the service stops
        total, weighed = 0, 0
        for scenario in [s for s in self._order if s in reads]:
            table = self._table(scenario)
            assert table.threshold is not None
            x: int | None
            if isinstance(table, _LateAfterTable):
                x = table.least(replicas, voters)
            elif table.lost:
                x = self._after(scenario, replicas, voters)
            else:
                x = table.of(reads[scenario], voters)
            if x is None:
                return True  # nobody of the group can lead
            if self._weighted is not None:
                total += self._weighted[0][scenario] * x
                weighed += self._weighted[0][scenario]
            elif x >= table.threshold:
                return self._ruled_out_by(scenario)
        if self._weighted is None or not reads:
            return False
        normal, bits = self._table(0), self._weighted[1]
        assert normal.threshold is not None
        assert not isinstance(normal, _LateAfterTable)
        total += ((1 << bits) - weighed) * normal.of(reads[0], voters)
        return total >= normal.threshold << bits

    def _after(self, scenario: int, replicas: frozenset[int], voters: Sequence[int]) -> int | None:
        """Return X from below after a loss, of the best who may lead then; None: nobody may."""
        row, threshold, _ = self._rows[scenario]
        rules, lost = self.claim.rules, self._losses[scenario]
        alive = [v for v in voters if v not in lost]
        by_leader = {one.leader: one for one in row.successors} or {self.leader: row}
        elected = [v for v in alive if rules.may_lead[v]] or alive
        best: int | None = None
        for leader in elected if row.successors else (self.leader,):
            if leader not in by_leader:
                continue
            if (scenario, leader) not in self._led:
                alone = dataclasses.replace(by_leader[leader], lost=None)
                table = _RowTable(self.claim, leader, alone, threshold, self._grid(scenario))
                self._led[scenario, leader] = table
            table = self._led[scenario, leader]
            x = table.of(table.costs.reads(sorted(replicas - lost)), alive)
            best = x if best is None else min(best, x)
        return best

    def _grid(self, scenario: int) -> float:
        """Return what gives the row of a loss, and those of its leaders, one grid."""
        row, threshold, _ = self._rows[scenario]
        return _total(self.claim, row, threshold) if self._common is None else self._common

    def _ruled_out_by(self, scenario: int) -> bool:
        """Look at a row before the other rows from now on."""
        self._order = [scenario, *(other for other in self._order if other != scenario)]
        return True


def check_measures(
    problem: Problem,
    bound: float,
    certificate: Mapping[str, Any],
    work: Work,
    *,
    ties: float = math.inf,
) -> tuple[int, int, int]:
    """Prove that no configuration within the limits is below a bound, or refuse; see the module.

    The bound +∞: nothing is within the limits. `ties` as of :class:`MeasuresClaim`. Return how many
    leaders, events and bounds there were. CertificateError when a step of the proof does not hold,
    or something is not covered.
    """
    try:
        claim = MeasuresClaim(problem, None if bound == math.inf else bound, ties=ties)
        claim.shares  # noqa: B018 - whether they are probabilities
    except ValueError as flaw:
        raise CertificateError(str(flaw)) from None
    leaders: list[int] = np.nonzero(claim.rules.may_lead)[0].tolist()
    if bound <= 0:  # no measure is negative
        return len(leaders), 0, 0
    check_clients(certificate, claim.clients.tolist())
    out, ruled = _ruled_out(claim, certificate.get("floors", ()), work)
    able: set[int] = set(np.nonzero(claim.rules.may_vote)[0].tolist()) - ruled
    proofs: dict[int, dict[int | None, Mapping[str, Any]]] = {}
    for proof in certificate["proofs"]:
        leader, successor = index(proof["leader"]), proof.get("successor")
        each = proofs.setdefault(leader, {})
        if leader not in leaders or successor in each:
            raise CertificateError(f"two proofs for leader {leader}, or it may not lead")
        each[None if successor is None else index(successor)] = proof
    events = bounds = 0
    for leader in leaders:
        given = proofs.get(leader, {})
        if not given and leader in out:
            continue
        own = _successors(claim, leader, able) if any(s is not None for s in given) else able
        if None not in given and given and (own - given.keys()):
            raise CertificateError(
                f"nothing is proved of leader {leader} before {own - given.keys()}"
            )
        own_proofs: dict[int | None, Mapping[str, Any] | None] = {**given} or {None: None}
        for successor, proof in own_proofs.items():
            if successor is not None and successor not in own:
                continue  # who cannot take over, or is ruled out, needs no proof
            group = (successor,) if successor is not None else own if ruled else None
            deadline: int | None = None
            if claim.deadline is not None and proof is not None and "deadline" in proof:
                deadline = min(index(proof["deadline"]), claim.last)
                if deadline < claim.deadline:
                    raise CertificateError(
                        f"the proof of leader {leader} is of an earlier deadline"
                    )
            tree = MeasuresProof(claim, leader, work, group, deadline)
            held = (leader,) if successor is None else (leader, successor)
            if proof is not None:
                tree.run(proof["events"], tree.start(*held))
            elif not tree.closed_at_once(tree.start(leader)):
                raise CertificateError(f"there is no proof for leader {leader}")
            events, bounds = events + tree.events, bounds + tree.bounds
    return len(leaders), events, bounds


def _led_by(row: Row, group: Collection[int]) -> Row:
    """Return the row of a loss after which one of a group leads."""
    if not row.successors:
        return row
    each = tuple(one for one in row.successors if one.leader in group)
    if not each:
        return dataclasses.replace(row, constant=math.inf, successors=())
    return led_by_any(dataclasses.replace(row, costs=None), each)


def _successors(claim: MeasuresClaim, leader: int, able: set[int]) -> set[int]:
    """Return who may take over from a leader, where each has a proof of its own, or refuse."""
    rows = [row for row, _, _ in claim.thresholds(leader) if row.successors]
    taken = [frozenset(np.nonzero(row.lost)[0].tolist()) for row in rows if row.lost is not None]
    if len(set(taken)) != 1 or leader not in taken[0] or len(rows) > 1:
        raise CertificateError(f"leader {leader} has more than one successor, by loss")
    return able - taken[0]


def _ruled_out(
    claim: MeasuresClaim, floors: Sequence[Sequence[Any]], work: Work
) -> tuple[set[int], set[int]]:
    """Return the sites that multipliers rule out as leaders, and as successors; see the module."""
    leaders, successors = set[int](), set[int]()
    for given, bits, numbers in floors:
        site = index(given)
        if not 0 <= site < len(claim.rules.may_vote):
            raise CertificateError(f"no site {site}")
        rows = claim.thresholds(site)
        lost = {measure for row, _, measure in rows if row.lost is not None}
        if claim.shares is not None:
            raise CertificateError("no site is ruled out where a sum over outages is minimised")
        stay = all(row.orders is None for row, _, _ in rows)
        hit = stay and _always_hit(claim.rules, site, [row for row, _, _ in rows])
        u = read_multipliers(numbers, bits, len(claim.clients))
        for row, threshold, measure in rows:
            if row.lost is not None or row.deadline is not None:
                continue
            least = max(1, claim.rules.replicas_max - int(hit and measure in lost))
            if len(lost) == 1 and _floor_reaches(claim, site, row, threshold, u, work, least):
                leaders.add(site)
                if measure in lost and stay:
                    successors.add(site)
            elif site not in leaders and _floor_reaches(claim, site, row, threshold, u, work):
                leaders.add(site)
    return leaders, successors


def _always_hit(rules: Rules, leader: int, rows: Sequence[Row]) -> bool:
    """Return whether each plan under a leader loses one of its replicas while the leader stays.

    This holds where a loss takes each site, and the leader stays after all losses of other sites: a
    plan with no replica outside the loss of its leader has no quorum after it. The replicas that
    are left may break rules for replicas, so there must be none.
    """
    taken, stays = np.zeros(len(rules.may_hold), dtype=bool), not rules.of("replicas")
    for row in rows:
        if row.lost is not None:
            taken |= row.lost
            stays &= not row.successors or bool(row.lost[leader])
    return stays and bool(taken[rules.may_hold].all())


def _floor_reaches(
    claim: MeasuresClaim,
    site: int,
    row: Row,
    threshold: float | None,
    u: FloatArray,
    work: Work,
    left: int | None = None,
) -> bool:
    """Return whether a row reaches its threshold with any replicas of a leader.

    `left`: most replicas that a loss leaves, one of which leads then; None: nothing is lost.
    """
    rules, table = claim.rules, _RowTable(claim, site, row, threshold)
    if table.threshold is None or row.prices is not None or row.votes is not None:
        return False
    if not table.costs.fits(u, NO_BETAS):
        return False
    work.take(len(rules.may_hold) * (len(claim.clients) // CELLS_PER_STEP + 1) + 1000)
    held, may_hold = {site}, set(np.nonzero(rules.may_hold)[0].tolist())
    if left is None:
        held.update(np.nonzero(rules.must_hold)[0].tolist())
    free = sorted(may_hold - held)
    fixed, rho = table.costs.evaluation(held, free, u, NO_BETAS)
    if left is None:  # the wait is that for the votes of the replicas that are added
        waits = None if row.waits is None else np.array(table.waits)
        of_leader = SiteChoice(rules, site, waits)
        ordered = SortedSites(held, of_leader.open_sites(held, free), rho)
        radii: list[int] = of_leader.radii.astype(np.int64).tolist()
        return not of_leader.open_radii(table.threshold - fixed, ordered, radii)
    # Survivors alone may break a minimum, but they cost no less than all replicas, which obey it.
    any_set = dataclasses.replace(
        rules,
        replicas_min=min(max(rules.replicas_min, rules.voters), left),
        replicas_max=left,
        voters=0,
        must_hold=np.zeros(len(rules.may_hold), dtype=bool),
        must_vote=np.zeros(len(rules.may_hold), dtype=bool),
        groups=rules.of("replicas"),
    )
    closed = frozenset(range(len(rules.may_hold))) - may_hold - held
    state = State(frozenset(held), closed)
    rest = table.rest(state, rules.replicas_max)  # all voters have room, lost ones too
    if rest is None:
        return True
    needed = table.threshold - fixed + table.costs.constant - rest
    choice = SiteChoice(any_set, None, None)
    return not choice.open_radii(needed, SortedSites(held, free, rho), [0])
