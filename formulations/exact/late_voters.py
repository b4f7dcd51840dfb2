"""Number of late operations at the leader, for the best voters among some sites.

With t the deadline, d_ℓ(V) = Σ P(γ H_{c,ℓ} + δ Q_ℓ(V) > t) falls when any voter x answers by any
time τ <= t with a higher probability: "at least m − 1 of v − 1 have answered" rises in each of
them, and so does the chance that the sum is in time. So for V out of sites A:

* where the RTTs from ℓ are stochastically ordered, the first v − 1 of A are best;
* else sort A by mean RTT and let E_i(τ) be the highest P(d(ℓ, x) <= τ) of the places i and beyond.
  The i-th of V stands at place i or beyond, so that voters with E_1 … E_{v−1} bound d from below.

Where RTTs vary by interval, the bounds of the intervals are added up.

After a loss fewer voters may be left. Those that are lost never answer, and the bound holds.

Ours; Sharov et al. (PVLDB 8(12), 2015) choose voters by mean RTT.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from placement.evaluation.score import closest_first
from placement.evaluation.voter_choice import best_voters
from placement.proof.late.late_claim import last_deadline
from placement.support.checks import BoolArray, FloatArray, IntArray
from placement.tail.distribution_arithmetic import at_least
from placement.tail.late_operations import LateOperations

if TYPE_CHECKING:
    from formulations.exact._scenarios import _LateVoters
    from placement.problem import Problem
    from placement.tail.objective import Percentile
    from placement.tail.rtt_distributions import Distributions

__all__ = [
    "LateIntervals",
    "LateSuccessors",
    "LateVoters",
    "VoterOrder",
    "VotersByInterval",
    "voter_sets",
]

_AT_ONCE = 4096
"""Sets of voters that are checked against the rules at once."""

_KNOWN = 20_000
"""Sets of sites whose bound is remembered."""

_ALIKE = 1e-12
"""Probabilities closer than this are the same, as in :mod:`placement.tail.role_choice`."""


@dataclass(frozen=True, eq=False)
class VoterOrder:
    """Sites that may vote under a leader, without itself.

    Attributes
    ----------
    sites
        By mean RTT from the leader.
    ordered
        Whether each answers stochastically no later than the next.
    """

    sites: IntArray
    ordered: bool

    @classmethod
    def of(cls, late: LateOperations, leader: int) -> VoterOrder:
        """Order the sites around a leader."""
        able = np.nonzero(late.problem.rules.may_vote)[0]
        able = able[able != leader]
        sites = able[closest_first(late.problem.demand.site_rtt[late.scenario][leader, able])]
        answered = late.answered[leader, sites]
        return cls(sites, bool((answered[1:] - answered[:-1] <= _ALIKE).all()))


@dataclass(eq=False)
class LateVoters:
    """The voters' part of the late operations of one leader and one deadline.

    Attributes
    ----------
    late
        Of the problem.
    leader
        Site index.
    deadline
        t, in bins.
    order
        Around the leader.
    most, fewest
        Voters beside the leader: at most, and at least. None: |V| − 1.
    """

    late: LateOperations
    leader: int
    deadline: int
    order: VoterOrder
    most: int | None = None
    fewest: int | None = None
    _answered: FloatArray = field(init=False, repr=False)
    _asked: tuple[tuple[int, float, FloatArray], ...] = field(init=False, repr=False)
    _known: dict[bytes, float] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        late, leader = self.late, self.leader
        times = self.deadline + 1
        rows = late.answered[leader, self.order.sites, :times]
        if rows.shape[1] < times:  # beyond the horizon nothing more is known
            rows = np.pad(rows, ((0, 0), (0, times - rows.shape[1])), mode="edge")
        self._answered = np.minimum(rows, 1.0)
        asked = []
        for votes, given in sorted(late.asked.items()):
            row = np.zeros(times)
            row[: given.shape[1]] = given[leader, :times]
            asked.append((votes, late.led_shares[votes], row[::-1]))
        self._asked = tuple(asked)

    @property
    def others(self) -> int:
        """Voters beside the leader, at most."""
        return self.late.problem.rules.voters - 1 if self.most is None else self.most

    @cached_property
    def compiled(self) -> _LateVoters:
        """Compiled kernel object with the tables of this part."""
        from formulations.exact import _scenarios

        rules = self.late.problem.rules
        return _scenarios.late_voters(
            self.order.sites.astype(np.int32),
            np.ascontiguousarray(self._answered),
            np.array([votes for votes, _, _ in self._asked], dtype=np.int32),
            np.array([share for _, share, _ in self._asked], dtype=np.float64),
            np.array([row for _, _, row in self._asked], dtype=np.float64),
            (
                self.leader,
                len(self.order.sites),
                self.others,
                self.others if self.fewest is None else self.fewest,
                rules.quorum - 1,
                self.deadline + 1,
                len(self._asked),
                self.order.ordered,
            ),
        )

    def least(self, inside: BoolArray, free: BoolArray, room: int) -> float:
        """Least d for voters out of sites with a replica and at most `room` of the free ones.

        Infinite where there are too few of them.
        """
        others, sites = self.others, self.order.sites
        fewest = others if self.fewest is None else self.fewest
        if others == 0:
            return self._late(self._answered[:0])
        able = inside[sites] | free[sites] if room else inside[sites]
        places = np.nonzero(able)[0]
        if self.order.ordered:
            extra = ~inside[sites[places]]
            places = places[~extra | (np.cumsum(extra) <= room)][:others]
        if len(places) < fewest:
            return math.inf
        key = places.tobytes()
        value = self._known.get(key)
        if value is None:
            rows = self._answered[places]
            if len(places) > others:
                rows = np.maximum.accumulate(rows[::-1])[::-1][:others]
            if len(self._known) >= _KNOWN:
                self._known.clear()
            value = self._known[key] = self._late(rows)
        return value

    def of(self, voters: tuple[int, ...]) -> float:
        """Share that is late for a set of voters, the leader among them."""
        from formulations.exact import _scenarios

        state = bytearray(b"\x02" * len(self.late.problem.rules.may_vote))
        for voter in voters:
            state[voter] = 1
        return _scenarios.least_late(self.compiled, bytes(state), 0)

    def _late(self, answered: FloatArray) -> float:
        """Share of all operations that is late when others answer with these probabilities."""
        quorum = self.late.problem.rules.quorum
        once = at_least(quorum - 1, answered)
        steps = np.diff(once, prepend=0.0)
        total = 0.0
        by_then, votes_so_far = once, 1
        for votes, share, asked in self._asked:
            if votes == 0:
                in_time = float(asked.sum())
            else:
                while votes_so_far < votes:
                    by_then = np.convolve(steps, by_then)[: len(once)]
                    votes_so_far += 1
                in_time = float(asked @ by_then)
            total += max(0.0, share - in_time)
        return total


@dataclass(frozen=True, eq=False)
class LateSuccessors:
    """The voters' part after a loss that the leader does not survive, or may leave after.

    Attributes
    ----------
    each
        Of everyone who may lead then: the least of them counts.
    """

    each: tuple[VotersByInterval, ...]

    @property
    def handle(self) -> list[tuple[_LateVoters, ...]]:
        """Return the voters' part for the compiled search, of every leader."""
        return [part for one in self.each for part in one.handle]


@dataclass(frozen=True, eq=False)
class LateIntervals:
    """Late operations of every interval whose RTTs differ: rows of clients, interval by interval.

    Attributes
    ----------
    each
        Of each scenario of the demand; one where RTTs do not vary.
    """

    each: tuple[LateOperations, ...]
    _orders: dict[int, tuple[VoterOrder, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, problem: Problem, goal: Percentile) -> LateIntervals:
        """Collect the intervals of a question."""
        scenarios = enumerate(goal.by_scenario(problem))
        return cls(tuple(LateOperations(problem, one, scenario) for scenario, one in scenarios))

    @property
    def problem(self) -> Problem:
        """The question."""
        return self.each[0].problem

    @property
    def distributions(self) -> Distributions:
        """Distributions of the first interval: all intervals are on one grid."""
        return self.each[0].distributions

    @cached_property
    def last(self) -> int:
        """Latest deadline that says anything, in bins."""
        ways = [flow for one in self.each for flow in one.flows]
        return last_deadline(ways, [one.distributions for one in self.each])

    @property
    def hops(self) -> int:
        """Most round trips of an operation."""
        return max((flow.hops for one in self.each for flow in one.flows), default=0)

    @property
    def relays(self) -> bool:
        """Return whether the operations at nearby replicas may depend on the leader."""
        return any(flow.relay for one in self.each for flow in one.nearby)

    def summands(self, leaders: IntArray, deadline: int) -> FloatArray:
        """s_ℓ(c, r) of all rows for some leaders, shape (leaders, sites + 1, rows)."""
        return np.concatenate([one.summands(leaders, deadline) for one in self.each], axis=2)

    def voters(
        self, leader: int, deadline: int, most: int | None = None, fewest: int | None = None
    ) -> VotersByInterval:
        """Return the voters' part of a leader; parameters as of :class:`LateVoters`."""
        if leader not in self._orders:
            self._orders[leader] = tuple(VoterOrder.of(one, leader) for one in self.each)
        parts = zip(self.each, self._orders[leader], strict=True)
        return VotersByInterval(
            tuple(LateVoters(one, leader, deadline, order, most, fewest) for one, order in parts)
        )


@dataclass(frozen=True, eq=False)
class VotersByInterval:
    """The voters' part of a leader and a deadline, added up over the intervals.

    Attributes
    ----------
    parts
        Of each interval. The sum of their bounds is a bound, and is reached by one set of voters
        only with one interval.
    """

    parts: tuple[LateVoters, ...]

    @property
    def leader(self) -> int:
        """Site index."""
        return self.parts[0].leader

    @property
    def deadline(self) -> int:
        """t, in bins."""
        return self.parts[0].deadline

    @property
    def ordered(self) -> bool:
        """Return whether the closest voters are the best."""
        return len(self.parts) == 1 and self.parts[0].order.ordered

    @property
    def handle(self) -> list[tuple[_LateVoters, ...]]:
        """Return the voters' part for the compiled search, of every leader: always this one."""
        return [tuple(part.compiled for part in self.parts)]

    def least(self, inside: BoolArray, free: BoolArray, room: int) -> float:
        """Return a lower bound; parameters as of :meth:`LateVoters.least`."""
        return sum(part.least(inside, free, room) for part in self.parts)

    def of(self, voters: tuple[int, ...]) -> float:
        """Share that is late for a set of voters, the leader among them."""
        return sum(part.of(voters) for part in self.parts)


def voter_sets(
    problem: Problem, voters: VotersByInterval, replicas: list[int], *, lost: bool
) -> Iterator[tuple[int, ...]]:
    """Yield the voter sets of a replica set that may have the fewest late operations.

    Parameters
    ----------
    problem
        The question.
    voters
        The voters under the leader.
    replicas
        The replica set; the leader is one of them.
    lost
        Whether losses are asked about: then the closest voters need not be the best.

    Notes
    -----
    One set where the RTTs are stochastically ordered, else O(C(|R| − 1, |V| − 1)).
    """
    rules, leader = problem.rules, voters.leader
    if voters.ordered and rules.nested_voter_caps and not lost:
        best = best_voters(problem.demand, rules, leader, replicas)
        if best is not None:
            yield best
        return
    able = [r for r in replicas if rules.may_vote[r] and r != leader]
    pinned = set(np.nonzero(rules.must_vote)[0].tolist())
    others = itertools.combinations(able, rules.voters - 1)
    while block := [(leader, *some) for some in itertools.islice(others, _AT_ONCE)]:
        obeyed = rules.obeyed("voters", np.array(block))
        for chosen in itertools.compress(block, obeyed.tolist()):
            if pinned.issubset(chosen):
                yield tuple(sorted(chosen))
