"""Certificates about losses: what the compiled search recorded, as a document.

The format, and what a checker makes of it, stands in :mod:`placement.proof.losses`; how
records become events, in :mod:`formulations.exact.threshold_search`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from formulations.exact.threshold_search import ThresholdEvents
from placement.contingency.objective import Goal
from placement.model.configuration import Configuration
from placement.support.checks import FloatArray, IntArray

__all__ = ["FORMAT", "LossCertificate", "LossClaimRecord", "TreeRecords"]

FORMAT = "replica-placement/losses/1"
"""Name and version of the format."""


@dataclass
class TreeRecords:
    """Records of the trees that were closed, as long as there is room.

    Attributes
    ----------
    left
        Numbers that may still be recorded; 0: nothing is kept any more.
    trees
        The record by leader and successor; −1: for all successors.
    """

    left: int
    trees: dict[tuple[int, int], FloatArray] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Return whether every tree that was closed is kept."""
        return self.left > 0

    def keep(self, leader: int, successor: int, record: FloatArray | None) -> None:
        """Keep the record of a closed tree; None: it had no room."""
        self.left -= self.left if record is None else len(record)
        if self.complete and record is not None:
            self.trees[leader, successor] = record
        else:
            self.left = 0
            self.trees.clear()


@dataclass(frozen=True, eq=False)
class LossClaimRecord:
    """Proven result of one search, with its trees.

    Attributes
    ----------
    goal
        "worst", "bounded" or "weighted".
    bound, granularity
        The claim.
    reached
        What the normal score, and that after a loss, had to stay below in the search; infinite
        without a limit.
    required
        What a checker asks of them: no more than `reached`.
    floors, multipliers
        Bound of the normal score under each site, and its multipliers, shapes (sites,) and (sites,
        clients).
    may_vote, may_lead
        Of each site.
    trees
        Records of the kernel.
    clients
        Indices of the active clients.
    replicas
        The most replicas.
    clients_move
        Whether clients of lost sites move: then no bound rules a site out as a successor.
    """

    goal: Goal
    bound: float
    granularity: float
    reached: tuple[float, float]
    required: tuple[float, float]
    floors: FloatArray
    multipliers: FloatArray
    may_vote: Sequence[bool]
    may_lead: Sequence[bool]
    trees: Mapping[tuple[int, int], FloatArray]
    clients: IntArray
    replicas: int
    clients_move: bool = False

    def to_json(self) -> dict[str, object]:
        """Return the claim and its proof as JSON-like data."""
        out = [[], []] if self.goal == "weighted" else [self._out(case) for case in (0, 1)]
        out[1] = [] if self.clients_move else out[1]
        leaders = [s for s in range(len(self.may_lead)) if self.may_lead[s] and s not in out[0]]
        slack = [a - b for a, b in zip(self.reached, self.required, strict=True)]
        count = len(self.clients)
        events = ThresholdEvents(
            count, np.arange(count), self.replicas,
            slack=lambda scenario: slack[int(scenario > 0)],
            scale=lambda _: 1.0,
            shared=slack[0] if self.goal == "weighted" else None,
        )  # fmt: skip
        return {
            "bound": self.bound,
            "granularity": self.granularity,
            "clients": self.clients.tolist(),
            "floors": [self._floor(events, site) for site in sorted({*out[0], *out[1]})],
            "proofs": [
                {
                    "leader": leader,
                    "successor": None if successor < 0 else successor,
                    "events": list(events.of(record)),
                }
                for (leader, successor), record in self.trees.items()
                if leader in leaders and successor not in out[1]
            ],
        }

    def _out(self, case: int) -> list[int]:
        """Sites whose normal bound reaches the threshold of the normal case, or of losses."""
        least = self.reached[case]
        return [s for s, votes in enumerate(self.may_vote) if votes and self.floors[s] >= least]

    def _floor(self, events: ThresholdEvents, site: int) -> list[object]:
        met = [x for x in self.required if x <= self.floors[site]]
        return [site, *events.rounded(self.multipliers[site], self.floors[site] - max(met), 1.0)]


@dataclass(frozen=True, eq=False)
class LossCertificate:
    """The certificate of a plan about losses.

    Attributes
    ----------
    configuration, score
        The plan, and its value by the shared evaluator; None and +∞: there is none.
    claim
        The proof.
    ties
        The same of the normal score among the plans of the best worst case; None: not told.
    """

    configuration: Configuration | None
    score: float
    claim: LossClaimRecord
    ties: Callable[[], Mapping[str, object]] | None = None

    def to_json(self) -> Mapping[str, object]:
        """Return the certificate as JSON-like data; site and client numbers are indices."""
        document: dict[str, object] = {"format": FORMAT, "score": self.score}
        if self.configuration is not None:
            document |= self.configuration.to_document()
        document |= self.claim.to_json()
        if self.ties is not None:
            document["ties"] = self.ties()
        return document
