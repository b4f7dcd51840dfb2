"""Spread of votes: no domain of a level holds so many votes that its loss stops the service.

With Σ votes of all voters, of which a commit needs W, an election needs Σ − W + 1. After the loss
of a domain d both must be left, so that d may hold at most Σ − max(W, Σ − W + 1) votes. For a
majority, W = ⌊Σ/2⌋ + 1 > Σ − W, this is 2·votes(d) < Σ. Σ depends on the voters that are chosen, so
the rule is linear in them and no cap.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placement.support.checks import BoolArray, IntArray

__all__ = ["VoteSpread"]


@dataclass(frozen=True, eq=False)
class VoteSpread:
    """At most so many votes in each domain of a level.

    Attributes
    ----------
    level
        Of the domains.
    labels
        Domain number of each site, shape (sites,).
    votes
        Of each site, shape (sites,).
    quorum
        W; None: a majority of the votes of the voters.
    """

    level: str
    labels: IntArray
    votes: IntArray
    quorum: int | None

    @property
    def why(self) -> str:
        """Return the rule in words."""
        return (
            f"survive the loss of any one {self.level} (enough votes to commit and to elect a "
            "leader lie outside each)"
        )

    def obeyed(self, chosen: IntArray) -> BoolArray:
        """Return whether each of many choices of voters obeys the rule, shape (choices,)."""
        votes, labels = self.votes[chosen], self.labels[chosen]
        total = votes.sum(axis=1)
        held = np.zeros((len(chosen), int(self.labels.max(initial=0)) + 1), dtype=np.intp)
        np.add.at(held, (np.arange(len(chosen)).reshape(-1, 1), labels), votes)
        needed = total // 2 + 1 if self.quorum is None else np.full_like(total, self.quorum)
        spare = total - np.maximum(needed, total - needed + 1)
        return np.asarray(held.max(axis=1, initial=0) <= spare)

    def rows(self, able: BoolArray) -> list[tuple[dict[int, int], int]]:
        """Return the rule as inequalities Σ a_r v_r >= least over the sites that may vote.

        For a majority Σ_V w − 2·votes(d) >= 1; else Σ_V w − votes(d) >= W and −votes(d) >= 1 − W.
        """
        sites = np.nonzero(able)[0].tolist()
        found: list[tuple[dict[int, int], int]] = []
        for domain in np.unique(self.labels[able]).tolist():
            inside = {r: int(self.labels[r] == domain) for r in sites}
            votes = {r: int(self.votes[r]) for r in sites}
            if self.quorum is None:
                found.append(({r: votes[r] * (1 - 2 * inside[r]) for r in sites}, 1))
                continue
            found.append(({r: votes[r] * (1 - inside[r]) for r in sites}, self.quorum))
            found.append(({r: -votes[r] * inside[r] for r in sites}, 1 - self.quorum))
        return found
