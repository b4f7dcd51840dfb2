"""Check of a certificate about measures (format ``replica-placement/thresholds/1``).

=============  ====================================================================================
"clients"      indices of the clients that count, in the order of the multipliers
"proofs"       [{"leader": ℓ, "events": […]}, …]: at most one for each leader
=============  ====================================================================================

The scenarios are the rows of the question (:mod:`placement.measures.scenarios`): those of its
limits one after the other, then those of what it minimises. They are worked out here from the
question. The threshold of a limit is the value above which the evaluator refuses a configuration.
That of what is minimised is the claim, or none where it is claimed that nothing keeps the limits:
then the bound is +∞. With the weights λ_i of the limits and λ of the minimised function in a bound,
μ_i = λ_i / λ is the multiplier of a limit:

    Σ_i λ_i (X_i − T_i) + λ (X − T) >= 0

for every configuration of a state says that none is better than T within the limits
(:mod:`placement.proof.threshold_proof`).

Every row has a grid of its own in int64. Costs, waits and prices, of either sign, are rounded down
to it, and thresholds are rounded up. A leader without a proof is closed by the checker: every
client at its best site, the closest quorum and the cheapest replicas reach a threshold. Under a
leader there are at most as many replicas as the limits let in where they are the cheapest.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from placement.errors import CertificateError
from placement.evaluation.score import closest_first
from placement.measures.measure import Measure
from placement.measures.rows import Row
from placement.measures.scenarios import Function, beyond_thresholds, counted_clients, functions
from placement.measures.values import focused, percentile_of
from placement.model.constraints import Rules
from placement.problem import Problem
from placement.proof.choice.site_choice import SiteChoice
from placement.proof.choice.sorted_sites import SortedSites
from placement.proof.claim import Scale
from placement.proof.costs.rounded_costs import TableCosts
from placement.proof.event_tree import CELLS_PER_STEP, State
from placement.proof.late.late_claim import LateClaim, LateTables
from placement.proof.late.late_votes import SHARE_BITS
from placement.proof.threshold_proof import (
    NO_BETAS,
    BoundPart,
    VotersProof,
    check_clients,
    prove_leaders,
)
from placement.support.checks import FloatArray, IntArray
from placement.support.work import Work

__all__ = ["FORMAT", "MeasuresClaim", "MeasuresProof", "check_measures"]

FORMAT = "replica-placement/thresholds/1"

_ROUNDING = 1e-12
"""Relative: more than the sums of the evaluator can be wrong by."""

_BITS = 60
_MOST_SHIFT = 500
_BELOW = 2.0**-51
_WHOLE = 1e-6  # a claim so little above a whole number claims no more than this number


class MeasuresClaim:
    """A question about measures, and the bound that is claimed of it.

    Parameters
    ----------
    problem
        The question.
    bound
        In the unit of what is minimised; None: it is claimed that no configuration keeps the
        limits.
    ties
        Given: of the plans whose minimised value is at most this none has a mean below the bound.

    Attributes
    ----------
    clients
        Indices of the clients that count.
    rank
        Place of each site in the order of each of them, shape (clients, sites).
    """

    def __init__(self, problem: Problem, bound: float | None, *, ties: float = math.inf) -> None:
        self.problem, self.rules, self.bound, self.ties = problem, problem.rules, bound, ties
        reason = beyond_thresholds(problem)
        if self.rules.witnesses or not self.rules.nested_replica_caps:
            reason = "witnesses, or other rules for replicas than caps on nested levels"
        if reason is not None:
            raise ValueError(f"certificates of this format do not take it: {reason}")
        self.clients = counted_clients(problem)
        self._late: dict[Measure, LateClaim] = {}
        rtt = problem.demand.client_rtt[0][self.clients]
        places = np.int16 if rtt.shape[1] < 2**15 else np.int32
        self.rank: IntArray = np.argsort(closest_first(rtt), axis=1).astype(places)

    def late(self, measure: Measure) -> LateClaim:
        """Return what the late operations of a measure are worked out from."""
        if measure not in self._late:
            part = focused(self.problem, measure.operations, measure.clients)
            goal = percentile_of(self.problem, measure)
            self._late[measure] = LateClaim(part, None, goal)
        return self._late[measure]

    def thresholds(self, leader: int) -> list[tuple[Row, float | None, Measure | None]]:
        """Return the rows under a leader, with the threshold that each must reach; None: none."""
        *limits, minimised = functions(self.problem, leader, ties=self.ties)
        found: list[tuple[Row, float | None, Measure | None]] = [
            (row, limit.allowed + limit.rounding, limit.measure)
            for limit in limits
            for row in limit.rows
        ]
        needed = None if self.bound is None else _needed(minimised, self.bound)
        return [*found, *((row, needed, minimised.measure) for row in minimised.rows)]


def _needed(minimised: Function, bound: float) -> float:
    """Return the X that shows a bound: of whole numbers anything above the one before."""
    claimed = bound * minimised.scale
    if minimised.whole:
        return math.ceil(claimed - _WHOLE) - 0.5
    return claimed - _ROUNDING * abs(claimed)


@dataclasses.dataclass(frozen=True)
class _Led:
    """Constant and waits by site of one who may lead after a loss, and the sites by their waits."""

    leader: int
    constant: int
    waits: list[int]
    near: list[int]


class _RowTable:
    """A row under a leader on a grid, rounded down."""

    def __init__(
        self, claim: MeasuresClaim, leader: int, row: Row, threshold: float | None
    ) -> None:
        rules, sites = claim.rules, len(claim.rules.may_hold)
        self.rules, self.leader = rules, leader
        near = np.zeros((len(claim.clients), sites))
        if row.costs is not None:
            if np.delete(row.costs, claim.clients, axis=1).any():
                raise ValueError("a client that does not count has costs")
            near = row.costs.T[claim.clients]
        waits = np.zeros(sites) if row.waits is None else row.waits[0]
        if (near < 0).any() or (waits < 0).any():
            raise ValueError("negative costs of a client or of a wait")
        votes = np.zeros(sites) if row.votes is None else row.votes
        prices = np.zeros(sites) if row.prices is None else row.prices
        total = abs(row.constant) + float(np.abs(prices).sum() + np.abs(votes).sum())
        total += float(near.max(axis=1).sum()) if len(near) else 0.0
        total += float(waits[rules.may_vote].max(initial=0.0)) + abs(threshold or 0.0)
        for one in row.successors:
            assert one.waits is not None
            if (one.waits < 0).any() or one.votes is not None or one.prices is not None:
                raise ValueError("prices, or negative waits, of a site that leads after a loss")
            total += abs(one.constant) + float(one.waits[0].max())
        if not total < math.inf:
            raise ValueError("the costs are too large to be proved")
        self.bits = _BITS - math.frexp(2 * (rules.replicas_max + 4) * max(total, 1e-300))[1]
        if total and abs(self.bits) > _MOST_SHIFT:
            raise ValueError("the costs are too large or too small to be proved")
        self.bits = self.bits if total else 0
        scale = Scale(self.bits, math.ldexp(total, self.bits))
        self.costs = TableCosts(claim.rank, scale, self._whole(near))
        self.costs.constant = int(self._whole(np.array(row.constant + votes[leader])))
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
        self.waits: list[int] = self._whole(waits).tolist()
        self._near = sorted(able, key=self.waits.__getitem__)
        self._led = [self._led_by(one, able) for one in row.successors]

    def _led_by(self, row: Row, able: list[int]) -> _Led:
        """Return the constant and the waits of a site that may lead after the loss."""
        assert row.waits is not None
        waits: list[int] = self._whole(row.waits[0]).tolist()
        constant = int(self._whole(np.array(row.constant)))
        return _Led(row.leader, constant, waits, sorted(able, key=waits.__getitem__))

    def rest_after(self, state: State, most: int) -> int | None:
        """Return constant and wait of the best who may lead after the loss, from below.

        None where nobody leads with a quorum.
        """
        room = most - len(state.inside)
        state = State(state.inside - self.lost, state.outside | self.lost)
        most = room + len(state.inside)
        if not self._led:
            near = self._first(self._near, state, most, self.rules.quorum)
            return None if near is None else self.costs.constant + self.waits[near[-1]]
        found = []
        for led in self._led:
            if led.leader in state.inside or (led.leader not in state.outside and room > 0):
                near = self._first(led.near, state, most, self.rules.quorum)
                if near is not None:
                    found.append(led.constant + led.waits[near[-1]])
        return min(found, default=None)

    def rest(self, state: State, most: int) -> int | None:
        """Return constant, votes and wait from below in a state with so many replicas at most.

        None where it has too few sites for the voters.
        """
        if self.lost:
            return self.rest_after(state, most)
        votes = self._first(self._paid, state, most, self.rules.voters - 1)
        near = self._first(self._near, state, most, self.rules.quorum)
        if votes is None or near is None:
            return None
        return self.costs.constant + sum(self.votes[s] for s in votes) + self.waits[near[-1]]

    def least_prices(self, rules: Rules, state: State, free: Sequence[int]) -> int:
        """Least sum of prices of replicas: those fixed, and the cheapest that complete them."""
        held = sum(int(self.costs.price[s]) for s in state.inside)
        missing = rules.replicas_min - len(state.inside)
        room = max(0, rules.replicas_max - len(state.inside))
        cheapest = sorted(int(self.costs.price[s]) for s in free)[:room]
        return held + sum(price for at, price in enumerate(cheapest) if at < missing or price < 0)

    def of(self, reads: int, voters: Sequence[int]) -> int:
        """Return X from below of the replicas that cost `reads` and a set of voters."""
        votes = sum(self.votes[v] for v in voters if v != self.leader)
        return reads + votes + sorted(self.waits[v] for v in voters)[self.rules.quorum - 1]

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
        self.threshold: int | None = math.ceil(math.ldexp(threshold, SHARE_BITS)) + 1
        self._known: dict[frozenset[int], int] = {}

    def rest(self, state: State, most: int) -> int | None:
        """Return the late operations at the leader from below; None: too few voters."""
        del most  # the rules of the question say it
        return self.tables.led(state)

    def least_prices(self, rules: Rules, state: State, free: Sequence[int]) -> int:
        """Return 0: there are no prices."""
        del rules, state, free
        return 0

    def of(self, reads: int, voters: Sequence[int]) -> int:
        """Return X from below of the replicas that cost `reads` and a set of voters."""
        key = frozenset(voters)
        if key not in self._known:
            self._known[key] = self.tables.of(key)
        return reads + self._known[key]


class MeasuresProof(VotersProof[None]):
    """The proof of one leader.

    Parameters
    ----------
    claim
        What is to be proved.
    leader
        ℓ.
    work
        Steps that may still be taken.
    """

    def __init__(self, claim: MeasuresClaim, leader: int, work: Work) -> None:
        self.claim, self.leader, rules = claim, leader, claim.rules
        self._given = work
        self._rows = claim.thresholds(leader)
        self._tables: dict[int, _RowTable | _LateTable] = {}
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
        grids = [(None, CELLS_PER_STEP)]
        super().__init__(choice, whom, work, clients, len(self._rows), grids)

    def _table(self, scenario: int) -> _RowTable | _LateTable:
        if scenario not in self._tables:
            row, threshold, measure = self._rows[scenario]
            table: _RowTable | _LateTable
            if row.late is None:
                table = _RowTable(self.claim, self.leader, row, threshold)
            else:
                assert measure is not None
                assert threshold is not None
                known = self.claim.late(measure)
                _ = known.nearby  # which copies share
                question = copy.copy(known)
                question.rules = self.choice.rules
                table = _LateTable(self.claim, question, row, threshold, self._given)
            self._tables[scenario] = table
        return self._tables[scenario]

    def _no_voters(self, form: None, state: State, parts: Sequence[BoundPart]) -> bool:
        """Return whether the clients' bound of each scenario leaves too little for any voters."""
        late: list[tuple[LateTables, int]] = []
        near: list[set[int] | None] = [None]
        for part in parts:
            table = self._table(part.scenario)
            if table.lost or table.threshold is None:
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
        hit = (lost & state.inside for lost in self._losses)
        return {
            s
            for s, (lost, some) in enumerate(zip(self._losses, hit, strict=True))
            if some or not lost
        }

    def _lost(self, scenario: int) -> frozenset[int]:
        return self._losses[scenario]

    def _costs(self, form: None, scenario: int) -> TableCosts:
        return self._table(scenario).costs

    def _threshold(self, form: None, scenario: int) -> int | None:
        return self._table(scenario).threshold

    def _bits(self, form: None, scenario: int) -> int:
        return self._table(scenario).bits

    def _rest(self, form: None, scenario: int, state: State) -> int | None:
        rules, table = self.choice.rules, self._table(scenario)
        rest = table.rest(state, rules.replicas_max)
        if rest is None or table.threshold is None or self._rows[scenario][0].costs is not None:
            return rest
        reached = rest + table.least_prices(rules, state, self._free(state)) >= table.threshold
        return None if reached else rest

    def closed_at_once(self, state: State) -> bool:
        """Return whether every client at its best site, and the best voters, reach a threshold."""
        free, rules = self._free(state), self.choice.rules
        for scenario, (row, threshold, _) in enumerate(self._rows):
            if row.constant == math.inf and threshold is not None:
                return True  # the leader's own loss, after which nobody can lead
            if self._losses[scenario]:
                continue
            self._take(None, CELLS_PER_STEP)
            table = self._table(scenario)
            rest = table.rest(state, rules.replicas_max)
            if rest is None:
                return True
            if table.threshold is None:
                continue
            reads = table.costs.least(state.inside, free) - table.costs.constant
            if reads + table.least_prices(rules, state, free) + rest >= table.threshold:
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
        force = self._in_force(state)
        for scenario in [s for s in self._order if s in force]:
            table = self._table(scenario)
            rest = table.rest(state, len(replicas))
            left = [r for r in replicas if r not in table.lost]
            if rest is None or not left:
                return True
            if table.threshold is None:
                continue
            reads[scenario] = table.costs.reads(left)
            if reads[scenario] - table.costs.constant + rest >= table.threshold:
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
        for scenario in [s for s in self._order if s in reads]:
            table = self._table(scenario)
            assert table.threshold is not None
            if table.lost:
                over = self._over_after(scenario, replicas, voters)
            else:
                over = table.of(reads[scenario], voters) >= table.threshold
            if over:
                return self._ruled_out_by(scenario)
        return False

    def _over_after(self, scenario: int, replicas: frozenset[int], voters: Sequence[int]) -> bool:
        """Return whether a plan reaches a threshold after a loss, whoever may lead then."""
        row, threshold, _ = self._rows[scenario]
        rules, lost = self.claim.rules, self._losses[scenario]
        alive = [v for v in voters if v not in lost]
        by_leader = {one.leader: one for one in row.successors} or {self.leader: row}
        elected = [v for v in alive if rules.may_lead[v]] or alive
        for leader in elected if row.successors else (self.leader,):
            if leader not in by_leader:
                continue
            if (scenario, leader) not in self._led:
                alone = dataclasses.replace(by_leader[leader], lost=None)
                self._led[scenario, leader] = _RowTable(self.claim, leader, alone, threshold)
            table = self._led[scenario, leader]
            assert table.threshold is not None
            if table.of(table.costs.reads(sorted(replicas - lost)), alive) < table.threshold:
                return False
        return True

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
    """Prove that no configuration within the limits is below a bound, or refuse.

    Parameters
    ----------
    problem
        Of one RTT matrix, with caps on nested levels for replicas.
    bound
        What is to be proved; +∞: nothing is within the limits.
    certificate
        See the module.
    work
        Steps that may be taken.
    ties
        As of :class:`MeasuresClaim`.

    Returns
    -------
    tuple of int
        How many leaders, events and bounds there were.

    Raises
    ------
    CertificateError
        When a step of the proof does not hold, or something is not covered.
    """
    try:
        claim = MeasuresClaim(problem, None if bound == math.inf else bound, ties=ties)
    except ValueError as flaw:
        raise CertificateError(str(flaw)) from None
    leaders: list[int] = np.nonzero(claim.rules.may_lead)[0].tolist()
    if bound <= 0:  # no measure is negative
        return len(leaders), 0, 0
    check_clients(certificate, claim.clients.tolist())
    return prove_leaders(certificate, leaders, lambda leader, _: MeasuresProof(claim, leader, work))
