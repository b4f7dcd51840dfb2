"""Shares of late operations that ask the leader, from below, in whole numbers.

    d(V) = Σ n_c · P(γ H_cℓ + δ Q_ℓ(V) > t)

of the operations of one interval: where RTTs vary, d is the sum over the intervals. Every
probability of being in time is a sum of products of doubles >= 0, with a relative error of less
than `terms` · 2^-52; it is raised by that before it is taken from 1.

**Voters.** d falls when any voter answers by any time with a higher probability. Let A be the
sites that may vote, by their mean RTT from ℓ, and G_p(τ) the highest P(d(ℓ, x) <= τ) of the places
p and beyond. Of V ⊆ I ∪ F with at most k sites of F, match the sites of I with themselves and the
i-th free one with the i-th of A: distinct places, none behind its own. So V answers no sooner than
as many sites with the rows G of I and of the first k free ones, and since G falls with the place,
the first v − 1 of these bound d from below.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from placement.checks import FloatArray, IntArray
from placement.evaluation.score import closest_first
from placement.model.constraints import Rules
from placement.proof.event_tree import CELLS_PER_STEP, State, Work
from placement.tail.latency_mixture import Flow
from placement.tail.rtt_distributions import Distributions

__all__ = ["LESS", "SHARE_BITS", "UNIT", "LateVotes", "raised", "repeated"]

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


class LateVotes:
    """Shares d of one leader at one deadline, of the operations of one scenario.

    Parameters
    ----------
    rules
        Of the problem.
    distributions, flows
        Of the scenario: RTTs, and ways that operations go with their shares.
    site_rtt
        Mean RTTs between sites, shape (sites, sites).
    leader
        ℓ.
    deadline
        t, in bins, >= 0.
    work
        Steps that may still be taken: those of each share are counted when it is worked out.
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
