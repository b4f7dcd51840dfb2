"""Clients over a limit as bits: necessary conditions that discard whole families of sets.

For one limit T let a site be *outside* for client i when its latency exceeds T. For a set P of
sites, complete or still growing,

    O_k(P) = the clients for whom at least k sites of P are outside ,

one bit per client. Adding site j, which is outside for the clients M_j, costs one "and" and one
"or" for each k:

    O_k(P + j) = O_k(P) ∪ ( O_{k−1}(P) ∩ M_j ) ,

and O_k only grows with P. With N replicas a client lacks a quorum of q iff it is in O_{N−q+1}; once
the replica at j is lost, iff it is in O_{N−q+1}, or in O_{N−q} with j inside. So the conditions
below, which bound the requests in some O_k from above, refute every set that contains P as soon as
P breaks them.

1. Normal operation: requests(O_{N−q+1}) <= A − ⌈pA⌉, the slack.
2. Under N-1C a client in O_{N−q} lacks a quorum after the loss of some other site (q >= 2), so
   its requests may not exceed the slack.
3. Under N-1C, summed over all C(N, F) ways to lose F replicas: a client with k replicas outside
   lacks its quorum in m(k) of them, in m'(k) even if it escapes whenever its own site is among the
   lost ones and its requests are redirected. Hence Σ_k (m(k) − m(k−1)) · requests(O_k) is at most
   C(N, F) · slack. For F = 1 the only differences are q (q − 1 with redirection) at k = N − q, and
   N − q at k = N − q + 1.
4. For F = 1, each lost replica j by itself, clients of a redirected j counted as within.
5. For F = 1, a client whose requests exceed the slack must be in time when its own site is lost:
   it may not be in O_{N−q+1} of the latencies after redirection, whether its site holds a replica
   or not.

All of them hold for every set that obeys the limits, so nothing is lost.

Three sites by hand: A and B are 30 ms apart, A and C 90, B and C 70; of 100 reads 60 enter at A, 30
at B, 10 at C, and 90 must be answered within 50 ms, so the slack is 10. Outside 50 ms are C for the
clients at A and B, and A and B for the client at C. With N = 2 and R = 2 a client lacks its quorum
iff it is in O_1 (condition 1). O_1({A}) = O_1({B}) = {C}, 10 reads: within the slack. O_1({C}) =
{A, B}, 90 reads: beyond it, so that every set with C is discarded while it still has one site.
O_1({A, B}) = {C}, which passes: the only set that is left.

>>> from placement.quorumstore import StoreRules
>>> rtt = np.array([[0.0, 30, 90], [30, 0, 70], [90, 70, 0]])
>>> rules = StoreRules(contingency=False, replicas=2)
>>> key = QuorumProblem(rtt, [60, 30, 10], [0, 0, 0], rules=rules)
>>> weights = RequestWeights.of(key)
>>> limits = ThresholdLimits(50, 50, 50, 50)
>>> (outside,) = Screen.of(key, weights, (2, 2, 1), limits, failures=0).outside
>>> a, b, c = outside[0].tolist()  # one bit per client: A is 1, B is 2, C is 4
>>> a, b, c, a | b
(4, 4, 3, 4)
>>> reads = weights.tables[0][0]  # reads of every set of clients
>>> [float(reads[bits]) for bits in (a, b, c, a | b)]
[10.0, 10.0, 90.0, 10.0]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import comb

import numpy as np
import numpy.typing as npt

from formulations.quorumstore import tuning
from placement.quorumstore import QuorumProblem, ThresholdLimits
from placement.support.checks import BoolArray, FloatArray, IntArray, read_only

__all__ = [
    "Bits",
    "MissCondition",
    "RequestWeights",
    "Screen",
    "StoreSide",
    "miss_steps",
    "sides_of",
]

Bits = npt.NDArray[np.uint16]
"""Clients as bits, shape (lanes, …)."""


_ROUNDING = 1.0 + 1e-9
"""Loosens sums that may exceed 2^53 (several losses at once): a screen may keep too much."""


@dataclass(frozen=True, slots=True, eq=False)
class StoreSide:
    """Reads or writes of one key.

    Attributes
    ----------
    clients
        Sites with requests, most requests first.
    counts
        Their requests, float64 (exact: totals stay below 2^48).
    needed
        Requests that must be within the threshold.
    slack
        Requests that may miss it.
    """

    clients: IntArray
    counts: FloatArray
    needed: int
    slack: float


def sides_of(problem: QuorumProblem) -> tuple[StoreSide, StoreSide]:
    """Reads and writes of `problem`."""
    sides = []
    for counts, needed in (
        (problem.reads, problem.needed_reads),
        (problem.writes, problem.needed_writes),
    ):
        clients = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
        total = int(counts.sum())
        sides.append(StoreSide(clients, counts[clients].astype(np.float64), needed, total - needed))
    return sides[0], sides[1]


@dataclass(frozen=True, slots=True, eq=False)
class RequestWeights:
    """Clients of a key as bits, and the requests of every subset of a lane.

    Attributes
    ----------
    clients
        Sites with requests of either side.
    powers
        2 to the place of each client in its own lane, else 0; shape (lanes, clients), float64.
    counts
        Requests of each client, reads and writes; shape (2, clients).
    tables
        tables[side][lane][bits]: requests of the clients in `bits`.
    own
        The bit of each site's own clients, 0 where it has none; shape (lanes, sites).
    """

    clients: IntArray
    powers: FloatArray
    counts: FloatArray
    tables: tuple[tuple[FloatArray, ...], tuple[FloatArray, ...]]
    own: Bits

    @classmethod
    def of(cls, problem: QuorumProblem) -> RequestWeights:
        """Number the clients of `problem` and tabulate their requests."""
        clients = np.flatnonzero(problem.reads + problem.writes)
        lanes = -(-len(clients) // tuning.LANE_CLIENTS)
        lane, bit = np.arange(len(clients)) % lanes, np.arange(len(clients)) // lanes
        powers = np.where(lane == np.arange(lanes)[:, np.newaxis], 2.0**bit, 0.0)
        counts = np.stack([problem.reads[clients], problem.writes[clients]]).astype(np.float64)
        reads, writes = (
            tuple(_subset_sums(side[lane == one]) for one in range(lanes)) for side in counts
        )
        own = powers @ (clients[:, np.newaxis] == np.arange(len(problem.sites)))
        return cls(clients, powers, counts, (reads, writes), own.astype(np.uint16))

    @property
    def lanes(self) -> int:
        """Number of lanes."""
        return len(self.powers)

    def pack(self, chosen: BoolArray) -> Bits:
        """Bits of the chosen clients: shape (clients, …) to (lanes, …)."""
        return np.asarray(self.powers @ chosen, dtype=np.uint16)


def _subset_sums(counts: FloatArray) -> FloatArray:
    """Sum of `counts` over every subset of them, by its bits."""
    table = np.zeros(1)
    for count in counts:
        table = np.concatenate([table, table + count])
    return table


@dataclass(frozen=True, slots=True, eq=False)
class MissCondition:
    """Conditions 1 to 3 for one side and one limit.

    Attributes
    ----------
    ball
        Which of the screen's limits.
    tables
        Requests of the side, by lane.
    terms
        (k, factor, bits of the clients counted, None for all):
        Σ factor · requests(O_k ∩ bits) <= budget.
    budget
        See `terms`; clients whom no set can serve are charged in advance.
    must
        (k, bits): O_k contains none of them; None: no such condition.
    """

    ball: int
    tables: tuple[FloatArray, ...]
    terms: tuple[tuple[int, float, Bits | None], ...]
    budget: float
    must: tuple[int, Bits] | None

    @property
    def deepest(self) -> int:
        """Largest k that is tested."""
        return max(self.levels, default=0)

    @property
    def first(self) -> int:
        """Smallest k that is tested: smaller sets cannot break the condition."""
        return min(self.levels, default=0)

    @property
    def levels(self) -> tuple[int, ...]:
        """Every k that is tested."""
        of_must = () if self.must is None else (self.must[0],)
        return (*of_must, *(k for k, _, _ in self.terms))

    def must_hold(self, level: Bits) -> BoolArray:
        """Return whether O_k, with the k of `must`, has none of its clients; shape (sets,)."""
        hit = np.zeros(level.shape[1], dtype=np.uint16)
        if self.must is not None:
            for lane, bits in zip(level, self.must[1], strict=True):
                if bits:
                    hit |= lane & bits
        return np.asarray(hit == 0)

    def missed(self, number: int, level: Bits) -> FloatArray:
        """Term `number` of the sum, given its O_k; shape (sets,)."""
        _, factor, counted = self.terms[number]
        if counted is not None:
            level = level & counted[:, np.newaxis]
        total: FloatArray = self.tables[0].take(level[0])
        for lane in range(1, len(level)):
            total += self.tables[lane].take(level[lane])
        if factor != 1.0:
            total *= factor
        return total


@dataclass(frozen=True, slots=True, eq=False)
class _EachLoss:
    """Condition 4 for one side."""

    ball: int
    tables: tuple[FloatArray, ...]
    level: int
    """N − q"""
    slack: float
    redirected: bool
    """Return whether the clients of a lost site may be served in time elsewhere."""


@dataclass(frozen=True, slots=True, eq=False)
class Screen:
    """The conditions of one key for one (N, R, W) and given limits.

    Attributes
    ----------
    size
        N.
    weights
        The clients as bits.
    outside
        For each limit: the clients for whom each site is outside, shape (lanes, sites).
    conditions
        Strongest first.
    each_loss
        Condition 4, for complete sets.
    hopeless
        Whether no set at all can pass.
    """

    size: int
    weights: RequestWeights
    outside: tuple[Bits, ...]
    conditions: tuple[MissCondition, ...]
    each_loss: tuple[_EachLoss, ...]
    hopeless: bool

    @classmethod
    def of(
        cls,
        problem: QuorumProblem,
        weights: RequestWeights,
        pair: tuple[int, int, int],
        limits: ThresholdLimits,
        *,
        failures: int,
        moved: FloatArray | None = None,
    ) -> Screen:
        """Prepare the conditions.

        Parameters
        ----------
        problem, weights
            The key.
        pair
            (N, R, W).
        limits
            Thresholds not to be exceeded.
        failures
            F for conditions 2 to 5 (needs R, W <= N − F); 0: only normal operation is tested.
        moved
            Latency of the clients of each site to each replica once that site alone is lost, shape
            (sites, sites); None: clients stay.
        """
        size = pair[0]
        balls: dict[tuple[float, bool], int] = {}
        rows = problem.rtt[weights.clients]
        conditions: list[MissCondition] = []
        losses: list[_EachLoss] = []
        hopeless = False
        sides = (
            (pair[1], problem.needed_reads, limits.normal_read, limits.worst_read),
            (pair[2], problem.needed_writes, limits.normal_write, limits.worst_write),
        )
        for side, (quorum, needed, normal, worst) in enumerate(sides):
            if needed == 0:
                continue
            counts = weights.counts[side]
            slack = counts.sum() - needed
            asked = [(normal, 0), (worst, failures)] if failures else [(normal, 0)]
            for limit, lost in asked:
                # The worst scenario includes normal operation: an equal limit is tested with it.
                if lost == 0 and failures and normal >= worst:
                    continue
                ball = balls.setdefault((float(limit), False), len(balls))
                within = (rows <= limit).sum(axis=1)
                steps = miss_steps(size, quorum, lost, escapes=lost > 0 and problem.redirects)
                terms, charged = _terms(weights, side, within, steps)
                budget = slack * comb(size, lost) - charged
                hopeless |= budget < 0
                must = None
                if lost:
                    escapes = lost if problem.redirects else 0
                    large = _large(counts, within, quorum, slack, escapes)
                    must = (size - quorum - lost + 1, weights.pack(large)) if large.any() else None
                if lost > 1:
                    budget *= _ROUNDING
                conditions.append(MissCondition(ball, weights.tables[side], terms, budget, must))
                if lost == 1 and moved is not None:
                    own = _own_site(weights, side, within < quorum, slack)
                    if own.any():
                        number = balls.setdefault((float(limit), True), len(balls))
                        bits = weights.pack(own)
                        conditions.append(
                            MissCondition(
                                number, weights.tables[side], (), 0.0, (size - quorum + 1, bits)
                            )
                        )
                if lost == 1:
                    losses.append(
                        _EachLoss(
                            ball,
                            weights.tables[side],
                            size - quorum,
                            float(slack),
                            problem.redirects,
                        )
                    )
        conditions.sort(key=lambda condition: condition.first)
        losses.sort(key=lambda loss: loss.level)
        after = rows if moved is None else moved[weights.clients]
        outside = tuple(
            weights.pack((after if redirected else rows) > limit) for limit, redirected in balls
        )
        return cls(size, weights, outside, tuple(conditions), tuple(losses), hopeless)

    def deepest(self, ball: int) -> int:
        """Return the largest k that any condition uses for this limit."""
        return max((one.deepest for one in self.conditions if one.ball == ball), default=0)

    def after_each_loss(
        self, levels: Sequence[Sequence[Bits]], rows: npt.NDArray[np.integer]
    ) -> IntArray:
        """Apply condition 4 to complete sets.

        Parameters
        ----------
        levels
            levels[ball][k − 1] = O_k, shape (lanes, m).
        rows
            The sets as columns, shape (N, m).

        Returns
        -------
        Indices of those that pass.
        """
        kept = np.arange(rows.shape[1])
        for loss in self.each_loss:
            mine = levels[loss.ball]
            for member in rows:
                if not len(kept):
                    return kept
                site = member[kept]
                missed: FloatArray | None = None
                for lane, table in enumerate(loss.tables):
                    inside = ~self.outside[loss.ball][lane].take(site)
                    bits = mine[loss.level - 1][lane].take(kept) & inside
                    bits |= mine[loss.level][lane].take(kept)
                    if loss.redirected:
                        bits &= ~self.weights.own[lane].take(site)
                    part = table.take(bits)
                    missed = part if missed is None else missed + part
                if missed is not None:
                    kept = kept[missed <= loss.slack]
        return kept


def _terms(
    weights: RequestWeights, side: int, within: IntArray, steps: FloatArray
) -> tuple[tuple[tuple[int, float, Bits | None], ...], float]:
    """Return the terms of condition 1 or 3, and the charge in advance.

    A client with few sites within the limit has, in any set of N, at least N − `within` outside;
    that much of the sum is known before the first site is chosen.
    """
    counts = weights.counts[side]
    least = np.maximum(len(steps) - 1 - within, 0)
    charged = float(counts @ np.cumsum(steps)[least])
    levels = np.flatnonzero(steps)
    # A client in `least` has been charged for the levels up to it, and counts for those above.
    bits = weights.pack(least[:, np.newaxis] < levels)
    terms = tuple(
        (int(k), float(steps[k]), bits[:, place] if least.any() else None)
        for place, k in enumerate(levels)
    )
    return terms, charged


@cache
def miss_steps(size: int, quorum: int, failures: int, *, escapes: bool) -> FloatArray:
    """m(k) − m(k−1) of condition 3 at index k = 0..N; condition 1 for F = 0.

    With k of N replicas outside, a loss of F replicas, h of them inside, leaves N − k − h inside:
    too few for a quorum iff h > N − k − q.
    """

    def lacking(outside: int) -> int:
        inside = size - outside
        everywhere = _ways(inside, outside, failures, inside - quorum)
        if not escapes:
            return everywhere
        # Ways that spare a given replica, be it inside or outside: the client's own may be either.
        spared = []
        if inside:
            spared.append(_ways(inside - 1, outside, failures, inside - quorum))
        if outside:
            spared.append(_ways(inside, outside - 1, failures, inside - quorum))
        return min(everywhere, *spared)

    totals = [lacking(outside) for outside in range(size + 1)]
    # min() above could dip; what a set breaks, a larger one breaks.
    return read_only(np.diff(np.maximum.accumulate(np.array([0, *totals], dtype=np.float64))))


def _ways(inside: int, outside: int, failures: int, over: int) -> int:
    """Ways to lose `failures` of inside + outside replicas with more than `over` inside ones."""
    return sum(
        comb(inside, hit) * comb(outside, failures - hit)
        for hit in range(max(0, over + 1), failures + 1)
    )


def _own_site(weights: RequestWeights, side: int, hopeless: BoolArray, slack: float) -> BoolArray:
    """Clients of condition 5: with the requests of other unserved clients they exceed the slack."""
    counts = weights.counts[side]
    others = counts[hopeless].sum() - np.where(hopeless, counts, 0.0)
    return np.asarray((counts > 0) & (counts > slack - others))


def _large(
    counts: FloatArray, within: IntArray, quorum: int, slack: float, escapes: int
) -> BoolArray:
    """Clients who may not miss in any scenario: more requests than the slack others leave."""
    lost = np.where(within < quorum, counts, 0.0)
    # Redirected clients may escape in the scenarios that lose their own sites, F of them at once.
    left = slack - np.sort(lost)[: max(0, len(lost) - escapes)].sum()
    return np.asarray((counts > left) & (within >= quorum))
