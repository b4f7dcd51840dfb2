"""Number of late operations at the leader, for the best voters among some sites.

With t the deadline, d_ℓ(V) = Σ P(γ H_{c,ℓ} + δ Q_ℓ(V) > t) falls when any voter x answers by any
time τ <= t with a higher probability: "at least m − 1 of v − 1 have answered" rises in each of
them, and so does the chance that the sum is in time. So for V out of sites A:

* where the RTTs from ℓ are stochastically ordered, the first v − 1 of A are best;
* else sort A by mean RTT and let E_i(τ) be the highest P(d(ℓ, x) <= τ) of the places i and beyond.
  The i-th of V stands at place i or beyond, so that voters with E_1 … E_{v−1} bound d from below.

After a loss fewer voters may be left. Those that are lost never answer, and the bound holds.

Ours; Sharov et al. (PVLDB 8(12), 2015) choose voters by mean RTT.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from placement.evaluation.score import closest_first
from placement.support.checks import BoolArray, IntArray
from placement.tail.objective import LateOperations

if TYPE_CHECKING:
    from formulations.exact._scenarios import _LateVoters

_NONE = 1e299  # what is at least as large stands for "too few"

_ALIKE = 1e-12
"""Probabilities closer than this are the same."""


@lru_cache(maxsize=1024)
def _voter_order(late: LateOperations, leader: int) -> tuple[IntArray, bool]:
    """Return the sites that may vote beside a leader, by mean RTT from it.

    And whether each answers stochastically no later than the next.
    """
    able = np.nonzero(late.problem.rules.may_vote)[0]
    able = able[able != leader]
    sites = able[closest_first(late.problem.demand.site_rtt[late.scenario][leader, able])]
    answered = late.answered(leader)[sites]
    return sites, bool((answered[1:] - answered[:-1] <= _ALIKE).all())


@dataclass(eq=False)
class LateVoters:
    """The voters' part of the late operations of one leader and one deadline, in bins.

    Beside the leader vote at most `most` and at least `fewest` sites; None: |V| − 1.
    """

    late: LateOperations
    leader: int
    deadline: int
    most: int | None = None
    fewest: int | None = None

    @property
    def ordered(self) -> bool:
        """Return whether the closest voters are the best."""
        return _voter_order(self.late, self.leader)[1]

    @cached_property
    def compiled(self) -> _LateVoters:
        """Compiled kernel object with the tables of this part."""
        from formulations.exact import _scenarios

        late, leader, times = self.late, self.leader, self.deadline + 1
        sites, ordered = _voter_order(late, leader)
        most = late.problem.rules.voters - 1 if self.most is None else self.most
        rows = late.answered(leader)[sites, :times]
        if rows.shape[1] < times:  # beyond the horizon nothing more is known
            rows = np.pad(rows, ((0, 0), (0, times - rows.shape[1])), mode="edge")
        kinds = sorted(late.asked.items())
        asked = np.zeros((len(kinds), times))  # backwards: from the deadline down
        for row, (_, given) in zip(asked, kinds, strict=True):
            row[max(0, times - given.shape[1]) :] = given[leader, :times][::-1]
        return _scenarios.late_voters(
            sites.astype(np.int32),
            np.minimum(rows, 1.0),
            np.array([votes for votes, _ in kinds], dtype=np.int32),
            np.array([late.led_shares[votes] for votes, _ in kinds], dtype=np.float64),
            asked,
            (
                leader,
                len(sites),
                most,
                most if self.fewest is None else self.fewest,
                late.problem.rules.quorum - 1,
                times,
                len(kinds),
                ordered,
            ),
        )

    def least(self, inside: BoolArray, free: BoolArray, room: int) -> float:
        """Least d for voters out of sites with a replica and at most `room` of the free ones.

        Infinite where there are too few of them.
        """
        from formulations.exact import _scenarios

        state = np.where(inside, 1, np.where(free, 0, 2)).astype(np.uint8)
        found = _scenarios.least_late(self.compiled, state.tobytes(), room)
        return found if found < _NONE else math.inf

    def of(self, voters: tuple[int, ...]) -> float:
        """Share that is late for a set of voters, the leader among them."""
        chosen = np.zeros(len(self.late.problem.rules.may_vote), dtype=bool)
        chosen[list(voters)] = True
        return self.least(chosen, np.zeros_like(chosen), 0)
