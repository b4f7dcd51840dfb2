"""Lower bound on the share of operations at the leader that are late, in whole numbers.

Let t be a deadline, ℓ a leader, and V its voters. For the operations of one interval,

    d(V) = Σ n_c · P(γ H_cℓ + δ Q_ℓ(V) > t)

is the share that is late: n_c is the share of client c, γ H_cℓ its RTTs to the leader, and δ Q_ℓ(V)
the waits for votes. Where RTTs vary, d is the sum over the intervals.

**Rounding.** The probability of being in time is a sum of products of doubles >= 0. The relative
error of such a sum is less than `terms` · 2^-52. The checker raises the probability by this error,
and then subtracts it from 1. The result is never more than d.

**Voters.** d falls when a voter answers by any time with a higher probability. So d of faster
voters, real or not, is a lower bound. Number the sites that may vote by their mean RTT from ℓ:
places 1, 2, …. Let G_p(τ) be the highest P(d(ℓ, x) <= τ) of the sites x at place p and later. Let
I be the sites with a replica, F the free sites, and k the replicas that may still be added.

- A voter at place p answers by τ with probability G_p(τ) at most, and G falls with the place.
- V is a part of I and at most k sites of F. Move every voter from F to one of the first k places
  of F, in order. No voter moves to a later place.
- So the first v − 1 places of I and of these k, each with the row G of its place, bound d.

Three sites by hand: ℓ leads, x has the smaller mean RTT, and y is more reliable. The rows are the
probabilities of an answer by 0, 1 and 2 ms. One vote beside the leader's completes a commit.

>>> import numpy as np
>>> answered = np.array([[0.5, 0.6, 0.7], [0.1, 0.8, 0.9]])  # x at place 1, y at place 2
>>> highest = np.maximum.accumulate(answered[::-1])[::-1]  # G
>>> highest.tolist()
[[0.5, 0.8, 0.9], [0.1, 0.8, 0.9]]

With v = 2 there is one voter beside the leader. At t = 2 ms, x leaves 0.3 of the operations late,
and y leaves 0.1. The row of place 1 gives 1 − 0.9 = 0.1, which is not more than either.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from placement.evaluation.score import closest_first
from placement.model.constraints import Rules
from placement.proof.event_tree import CELLS_PER_STEP, State
from placement.support.checks import FloatArray, IntArray
from placement.support.work import Work
from placement.tail.objective import Flow
from placement.tail.rtt_distributions import Distributions

SHARE_BITS = 50
"""Shares are rounded down to multiples of 2^-SHARE_BITS."""

UNIT = 2.0**-52
"""Relative error of a product of doubles, or of a sum."""

LESS = 1 - 2.0**-44
"""Factor that lowers weights: they are quotients of sums of doubles."""

_MORE = 1 + 2.0**-44
_STEPS_OF_A_SHARE = 1000  # beside those of its cells: some twenty calls


@dataclass(frozen=True)
class _Asked:
    """Operations that ask the leader and wait for `votes` quorums: their share of all.

    `arrived` is Σ n_c · P(γ H_cℓ = u), from u = t down to 0.
    """

    votes: int
    share: float
    arrived: FloatArray


class LateVotes:
    """Shares d of one leader at one deadline, in bins, of the operations of one scenario.

    RTTs, ways with their shares, and mean RTTs between sites are those of the scenario. Steps of
    each share are counted when it is worked out.
    """

    def __init__(
        self, rules: Rules, distributions: Distributions,
        flows: Sequence[tuple[Flow, FloatArray]], site_rtt: FloatArray,
        leader: int, deadline: int, work: Work,
    ) -> None:  # fmt: skip
        self.rules, self.leader, self.deadline = rules, leader, deadline
        self._distributions, self._flows = distributions, flows
        self._work, times = work, deadline + 1
        rows = rules.voters * rules.quorum + 2 * len(rules.may_hold)
        several = max((flow.quorum for flow, _ in flows), default=0) > 1
        self._steps = _STEPS_OF_A_SHARE + times * (rows + several * times) // CELLS_PER_STEP
        table = distributions.site_site[leader]
        able = np.nonzero(rules.may_vote)[0]
        able = able[able != leader]
        self._order: IntArray = able[closest_first(site_rtt[leader, able])]
        answered = np.cumsum(table[self._order], axis=1)
        answered = np.minimum(raised(answered, table.shape[1]), 1.0)
        self._answered = _prolonged(answered, deadline)
        self._asked = self._by_votes()
        self._known: dict[bytes, int] = {}

    def _by_votes(self) -> list[_Asked]:
        distributions, times = self._distributions, self.deadline + 1
        to_leader = np.ascontiguousarray(distributions.client_site[:, self.leader])
        found: dict[int, tuple[float, FloatArray]] = {}
        for flow, weight in self._flows:
            if flow.near or flow.relay:
                continue
            share, arrived = found.get(flow.quorum, (0.0, np.zeros(times)))
            some = (weight * _MORE @ repeated(to_leader, flow.direct))[:times]
            arrived[: len(some)] += raised(some, len(weight) * max(1, flow.direct))
            found[flow.quorum] = share + float(weight.sum()) * LESS * LESS, arrived
        return [_Asked(votes, share, row[::-1]) for votes, (share, row) in sorted(found.items())]

    def led(
        self,
        state: State,
        lost: frozenset[int] = frozenset(),
        most: int | None = None,
        fewest: int | None = None,
    ) -> int | None:
        """Return d from below; parameters as of `LateTables.led`."""
        rules = self.rules
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
        """Return whether d is `cutoff` at least; parameters as of `LateTables.none_below`."""
        rules = self.rules
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
                    by_then = np.minimum(raised(summed, terms) + terms * UNIT, 1.0)
                    votes += 1
                in_time = float(asked.arrived @ by_then)
            late = asked.share - in_time * (1 + (terms + 16) * UNIT) - UNIT
            total += max(0, math.floor(math.ldexp(late, SHARE_BITS)))
        return total

    def _quorum(self, answered: FloatArray) -> FloatArray:
        """P(at least m − 1 of some have answered), raised, by time; it never falls."""
        needed = self.rules.quorum - 1
        exactly = np.zeros((needed + 1, self.deadline + 1))
        exactly[0] = 1.0
        for row in answered if needed else ():
            exactly[needed] += exactly[needed - 1] * row
            for count in range(needed - 1, 0, -1):
                exactly[count] = exactly[count] * (1 - row) + exactly[count - 1] * row
            exactly[0] *= 1 - row
        reached = raised(exactly[needed], 8 * (len(answered) + 1))
        return np.asarray(np.maximum.accumulate(np.minimum(reached, 1.0)))


def raised(values: FloatArray, terms: int) -> FloatArray:
    """Return sums of products of doubles >= 0, raised by the largest rounding error."""
    return np.asarray(values * (1 + (terms + 16) * UNIT))


def repeated(rows: FloatArray, times: int) -> FloatArray:
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
