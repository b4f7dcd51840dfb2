"""Shares of late operations at a deadline, from below, in whole numbers.

The p-th percentile of a configuration is at most t only if no more than a share 1 − p of all
operations takes longer than t (docs/tail.md). Under a leader ℓ that share is

    late(R, V) = Σ_c s(c, near(c, R)) + d(V)
    s(c, r) = Σ n_c · P(α H_cr + β H_rℓ > t)      operations that ask nearby
    d(V)    = Σ n_c · P(γ H_cℓ + δ Q_ℓ(V) > t)    operations that ask the leader

Both are computed here a second time, without the transforms of the evaluator. Every probability of
being in time is a sum of products of doubles >= 0, with a relative error of less than
`terms` · 2^-52; it is raised by that before it is taken from 1, and shares are rounded down to
multiples of 2^-50. What follows is whole numbers.

**Voters.** d falls when any voter answers by any time with a higher probability. Let A be the
sites that may vote, by their mean RTT from ℓ, and G_p(τ) the highest P(d(ℓ, x) <= τ) of the places
p and beyond. Of V ⊆ I ∪ F with at most k sites of F, match the sites of I with themselves and the
i-th free one with the i-th of A: distinct places, none behind its own. So V answers no sooner than
as many sites with the rows G of I and of the first k free ones, and since G falls with the place,
the first v − 1 of these bound d from below.

The evaluator cuts off probabilities below 1e-13 and allows 1e-12 for its transforms. So a
configuration that it says to keep t has a share of late operations of at most 1 − p + 2e-12 + 1e-13
for each bin of the longest sum.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from placement.checks import FloatArray, IntArray
from placement.contingency.objective import Contingency
from placement.evaluation.score import closest_first
from placement.problem import Problem
from placement.proof.claim import Claim, Scale
from placement.proof.event_tree import CELLS_PER_STEP, State, Work
from placement.proof.rounded_costs import TableCosts
from placement.tail.latency_mixture import Flow, flows
from placement.tail.objective import Percentile

__all__ = ["LateClaim", "LateTables"]

_BITS = 50
_STEPS_OF_A_SHARE = 1000  # beside those of its cells: some twenty calls
_UNIT = 2.0**-52
_TOLERANCE, _PER_BIN = Fraction(2, 10**12), Fraction(1, 10**13)
_OVERFLOWS = 1 - 3e-9  # the evaluator calls a latency of mass below 1 - 1e-9 one that overflows
_LESS, _MORE = 1 - 2.0**-44, 1 + 2.0**-44  # weights are quotients of sums of doubles


class LateClaim:
    """A question about a percentile, and the deadline that is claimed to be out of reach.

    Parameters
    ----------
    problem
        Whose objective is a percentile that is a sum for each deadline, or that after losses.
    bound
        For the second claim: no plan that keeps the deadline has a mean below it. None: no plan
        keeps the deadline.

    Raises
    ------
    ValueError
        Where some operation asks a replica nearby and the leader besides.

    Attributes
    ----------
    budget
        Share that may be late, rounded up to the grid.
    last
        The latest deadline that says anything, in bins: of one that is kept for too few the
        percentile is infinite.
    losses
        Sites of each loss that is to be survived.
    leader_may_move
        Whether a leader that survives a loss may hand over.
    limit
        The latest deadline that counts after a loss, in bins; None: that of the claim.
    """

    def __init__(self, problem: Problem, bound: float | None) -> None:
        asked = problem.objective
        goal = asked.percentile if isinstance(asked, Contingency) else asked
        assert isinstance(goal, Percentile)
        self.losses: list[frozenset[int]] = []
        self.leader_may_move, self.limit = False, None
        if isinstance(asked, Contingency):
            self.losses = [loss.sites for loss in asked.losses(problem)]
            self.leader_may_move = asked.leader_may_move
        self.problem, self.rules, self.bound = problem, problem.rules, bound
        self.distributions = goal.distributions
        self.claim = Claim(problem, bound or 0.0, 0.0)
        found = flows(problem)
        total = sum(float(flow.weight.sum()) for flow in found)
        self.flows = [(flow, flow.weight / total) for flow in found]
        if any((f.near or f.relay) and (f.direct or f.quorum) for f in found):
            raise ValueError("an operation asks a replica nearby and the leader besides")
        self.last = max((f.hops for f in found), default=0) * (self.distributions.bins - 1)
        late = 1 - Fraction(goal.percent / 100) + _TOLERANCE + _PER_BIN * (self.last + 1)
        masses = self.distributions.client_site.sum(axis=2)
        if masses.max() <= _OVERFLOWS and all(flow.near + flow.direct for flow in found):
            # then every latency has mass beyond the horizon, behind which percentiles are infinite
            self.last = min(self.last, self.distributions.bins - 1)
        if isinstance(asked, Contingency) and asked.limit is not None:
            bins = asked.ceiling(problem) / self.distributions.width * (1 + 1e-12)
            self.limit = self.last = min(self.last, math.floor(min(bins, self.last)))
        self.budget = math.ceil(late * (1 << _BITS))

    @cached_property
    def nearby(self) -> FloatArray:
        """P(H_cr = u) of the active clients, site after site, shape (sites, clients, bins)."""
        by_site = self.distributions.client_site.transpose(1, 0, 2)
        return np.ascontiguousarray(by_site[:, self.claim.clients])


@dataclass(frozen=True)
class _Asked:
    """Operations that ask the leader and wait for `votes` quorums.

    Attributes
    ----------
    share
        Of all operations.
    arrived
        Σ n_c · P(γ H_cℓ = u), from u = t down to 0.
    """

    votes: int
    share: float
    arrived: FloatArray


class LateTables:
    """Shares of late operations under one leader at one deadline.

    Parameters
    ----------
    question
        The claim.
    leader
        ℓ.
    deadline
        t, in bins, >= 0.
    work
        Steps that may still be taken: those of each share d are counted when it is worked out.

    Attributes
    ----------
    shares
        s, of the clients that ask a replica nearby, shape (clients, sites).
    costs
        Bounds with them.
    """

    bits = _BITS

    def __init__(self, question: LateClaim, leader: int, deadline: int, work: Work) -> None:
        self.question, self.leader, self.deadline = question, leader, deadline
        claim, rules = question.claim, question.rules
        self._work, times = work, deadline + 1
        rows = rules.voters * rules.quorum + 2 * len(rules.may_hold)
        several = max((flow.quorum for flow, _ in question.flows), default=0) > 1
        self._steps = _STEPS_OF_A_SHARE + times * (rows + several * times) // CELLS_PER_STEP
        scale = Scale(_BITS, math.ldexp(1.0, _BITS))
        self.shares = self._nearby()
        self.costs = TableCosts(claim.rank, scale, self.shares)
        table = question.distributions.site_site[leader]
        able = np.nonzero(question.rules.may_vote)[0]
        able = able[able != leader]
        self._order: IntArray = able[closest_first(claim.site_rtt[leader, able])]
        answered = np.cumsum(table[self._order], axis=1)
        answered = np.minimum(_raised(answered, table.shape[1]), 1.0)
        self._answered = _prolonged(answered, deadline)
        self._asked = self._by_votes()
        self._known: dict[bytes, int] = {}

    # --- operations that ask nearby -----------------------------------------------------------

    def _nearby(self) -> IntArray:
        """Shares s of the active clients, shape (clients, sites)."""
        question, clients = self.question, self.question.claim.clients
        late = np.zeros((len(clients), len(question.rules.may_hold)))
        for flow, weight in question.flows:
            if flow.near or flow.relay:
                for site in range(late.shape[1]):
                    in_time = self._in_time(flow, site)
                    late[:, site] += weight[clients] * np.maximum(0.0, 1 - in_time - _UNIT)
        return np.floor(np.ldexp(late * _LESS * _LESS, _BITS)).astype(np.int64)

    def _in_time(self, flow: Flow, site: int) -> FloatArray:
        """P(α H_cr + β H_rℓ <= t), rounded up, shape (clients,)."""
        distributions, times = self.question.distributions, self.deadline + 1
        near = self.question.nearby[site]
        first = _repeated(near, flow.near)[:, :times]
        if not flow.relay:
            return _raised(first.sum(axis=1), first.shape[1] * max(1, flow.near))
        hop = distributions.site_site[site, self.leader][np.newaxis]
        relayed = np.cumsum(_repeated(hop, flow.relay)[0])
        left = np.minimum(self.deadline - np.arange(first.shape[1]), len(relayed) - 1)
        terms = (first.shape[1] + len(relayed)) * (flow.near + flow.relay)
        return _raised(first @ relayed[left], terms)

    # --- operations that ask the leader ---------------------------------------------------------

    def _by_votes(self) -> list[_Asked]:
        distributions, times = self.question.distributions, self.deadline + 1
        to_leader = np.ascontiguousarray(distributions.client_site[:, self.leader])
        found: dict[int, tuple[float, FloatArray]] = {}
        for flow, weight in self.question.flows:
            if flow.near or flow.relay:
                continue
            share, arrived = found.get(flow.quorum, (0.0, np.zeros(times)))
            some = (weight * _MORE @ _repeated(to_leader, flow.direct))[:times]
            arrived[: len(some)] += _raised(some, len(weight) * max(1, flow.direct))
            found[flow.quorum] = share + float(weight.sum()) * _LESS * _LESS, arrived
        return [_Asked(votes, share, row[::-1]) for votes, (share, row) in sorted(found.items())]

    def led(
        self,
        state: State,
        lost: frozenset[int] = frozenset(),
        most: int | None = None,
        fewest: int | None = None,
    ) -> int | None:
        """Return d from below for the voters that a state leaves; None: there are too few.

        Parameters
        ----------
        state
            I, O and free sites.
        lost
            Sites that do not vote.
        most, fewest
            Voters beside the leader, at most and at least; None: v − 1.
        """
        rules = self.question.rules
        room = rules.replicas_max - len(state.inside | {self.leader})
        if room < 0:
            return None
        others = rules.voters - 1 if most is None else most
        sites: list[int] = self._order.tolist()
        able = [
            place
            for place, site in enumerate(sites)
            if (site in state.inside or (room > 0 and site not in state.outside))
            and site not in lost
        ]
        chosen = []
        for place in able:
            if sites[place] not in state.inside:
                room -= 1
            if sites[place] in state.inside or room >= 0:
                chosen.append(place)
        if len(chosen) < (others if fewest is None else fewest):
            return None
        chosen = chosen[:others]
        key = np.array([*able, -1, *chosen]).tobytes()
        if key not in self._known:
            rows = self._answered[able]
            if len(able) > others:  # else these are the voters
                rows = np.maximum.accumulate(rows[::-1])[::-1]
            at = [able.index(place) for place in chosen]
            self._known[key] = self._late(rows[at])
        return self._known[key]

    def none_below(self, state: State, cutoff: int, near: Collection[int] | None, far: int) -> bool:
        """Return whether every set of voters that a state leaves has a d of at least `cutoff`.

        Parameters
        ----------
        state
            I, O and F.
        cutoff
            A share on the grid.
        near, far
            Given: all voters but at most `far` and the leader are of these sites, the closest ones.
        """
        rules = self.question.rules
        room, members = rules.replicas_max - len(state.inside), rules.voters - 1
        sites = [s for s in self._order.tolist() if s not in state.outside]
        if room <= 0:
            sites = [s for s in sites if s in state.inside]
        place = {s: p for p, s in enumerate(self._order.tolist())}
        rows = self._answered[[place[s] for s in sites]]
        first = len(sites)
        if near is not None:
            first = next((i for i, s in enumerate(sites) if s not in near), len(sites))
        beyond = np.maximum.accumulate(rows[::-1])[::-1]
        close = np.maximum.accumulate(rows[:first][::-1])[::-1]
        spread = members if near is None else far

        def none(chosen: list[FloatArray], start: int, room: int, far: int) -> bool:
            left = members - len(chosen)
            while True:
                if len(sites) - start < left or (far < left and first - start < left - far):
                    return True
                some = [(close if i < left - far else beyond)[start + i] for i in range(left)]
                if self._late(np.array([*chosen, *some]).reshape(members, -1)) >= cutoff:
                    return True
                if not left:
                    return False
                added, out = sites[start] not in state.inside, start >= first
                if (
                    added <= room
                    and out <= far
                    and not none([*chosen, rows[start]], start + 1, room - added, far - out)
                ):
                    return False
                start += 1

        return none([], 0, room, spread)

    def of(self, voters: Collection[int]) -> int:
        """Return d of a set of voters from below."""
        places = [p for p, s in enumerate(self._order.tolist()) if s in voters]
        return self._late(self._answered[places])

    def _late(self, answered: FloatArray) -> int:
        """Share that is late when the others answer with these probabilities."""
        self._work.take(self._steps)
        once = self._quorum(answered)
        terms = (self.deadline + 2) * 4
        total, by_then, votes = 0, once, 1
        for asked in self._asked:
            if asked.votes == 0:
                in_time = float(asked.arrived.sum())
            else:
                while votes < asked.votes:
                    steps = np.diff(once, prepend=0.0)
                    summed = np.convolve(steps, by_then)[: len(once)]
                    # a step is a difference, with an absolute error
                    by_then = np.minimum(_raised(summed, terms) + terms * _UNIT, 1.0)
                    votes += 1
                in_time = float(asked.arrived @ by_then)
            late = asked.share - in_time * (1 + (terms + 16) * _UNIT) - _UNIT
            total += max(0, math.floor(math.ldexp(late, _BITS)))
        return total

    def _quorum(self, answered: FloatArray) -> FloatArray:
        """P(at least m − 1 of some have answered), raised, by time; it never falls."""
        needed = self.question.rules.quorum - 1
        exactly = np.zeros((needed + 1, self.deadline + 1))
        exactly[0] = 1.0
        for row in answered if needed else ():
            exactly[needed] += exactly[needed - 1] * row
            for count in range(needed - 1, 0, -1):
                exactly[count] = exactly[count] * (1 - row) + exactly[count - 1] * row
            exactly[0] *= 1 - row
        raised = _raised(exactly[needed], 8 * (len(answered) + 1))
        return np.asarray(np.maximum.accumulate(np.minimum(raised, 1.0)))


def _raised(values: FloatArray, terms: int) -> FloatArray:
    """Sums of products of doubles >= 0, raised by what rounding may have taken from them."""
    return np.asarray(values * (1 + (terms + 16) * _UNIT))


def _repeated(rows: FloatArray, times: int) -> FloatArray:
    """Distributions of a sum of `times` variables alike, one a row."""
    if times == 0:
        return np.ones((len(rows), 1))
    if times == 1:
        return rows
    summed: Sequence[FloatArray] = list(rows)
    for _ in range(times - 1):
        summed = [np.convolve(one, row) for one, row in zip(summed, rows, strict=True)]
    return np.array(summed)


def _prolonged(rows: FloatArray, deadline: int) -> FloatArray:
    """Rows up to a deadline; behind the last bin nothing more is known."""
    missing = max(0, deadline + 1 - rows.shape[1])
    return np.pad(rows[:, : deadline + 1], ((0, 0), (0, missing)), mode="edge")
