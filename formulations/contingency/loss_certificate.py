"""Certificates about losses: what the compiled search recorded, as a document.

The format, and what a checker makes of it, stands in :mod:`placement.proof.loss_check`. The kernel
records the multipliers of every bound that closed a part of the search or fixed sites, and by how
much the bound proved it. Any multipliers are valid, and what is to spare says how far they may be
rounded: they are written as whole numbers of few digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from placement.checks import FloatArray, IntArray
from placement.contingency.objective import Goal
from placement.model.configuration import Configuration

__all__ = ["FORMAT", "MOST_RECORDED", "LossCertificate", "LossClaimRecord", "TreeRecords"]

FORMAT = "replica-placement/losses/1"
"""Name and version of the format."""

MOST_RECORDED = 8_000_000
"""Numbers that a search records at most, 64 MB; with more there is no certificate."""

_CLOSE, _FIX, _BRANCH, _ENUMERATE, _NONE = 1, 2, 3, 4, 5
_FINEST = 52  # bits of a whole number that a double holds for certain


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

    def keep(self, leader: int, heir: int, record: FloatArray | None) -> None:
        """Keep the record of a closed tree; None: it had no room."""
        self.left -= self.left if record is None else len(record)
        if self.complete and record is not None:
            self.trees[leader, heir] = record
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
        where nothing limits it.
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

    def to_json(self) -> dict[str, object]:
        """Return the claim and its proof as JSON-like data."""
        out = [[], []] if self.goal == "weighted" else [self._out(case) for case in (0, 1)]
        leaders = [s for s in range(len(self.may_lead)) if self.may_lead[s] and s not in out[0]]
        proofs = [
            {
                "leader": leader,
                "heir": None if heir < 0 else heir,
                "events": list(self._events(record)),
            }
            for (leader, heir), record in self.trees.items()
            if leader in leaders and heir not in out[1]
        ]
        return {
            "bound": self.bound,
            "granularity": self.granularity,
            "clients": self.clients.tolist(),
            "floors": [self._floor(site) for site in sorted({*out[0], *out[1]})],
            "proofs": proofs,
        }

    def _out(self, case: int) -> list[int]:
        """Sites whose normal bound reaches the threshold of the normal case, or of losses."""
        least = self.reached[case]
        return [s for s, votes in enumerate(self.may_vote) if votes and self.floors[s] >= least]

    def _floor(self, site: int) -> list[object]:
        met = [x for x in self.required if x <= self.floors[site]]
        u = self.multipliers[site, : len(self.clients)]
        bits = self._bits(u, self.floors[site] - max(met), 1.0)
        return [site, bits, _whole(u, bits)]

    def _bits(self, u: FloatArray, spare: float, weight: float) -> int:
        """Grid on which rounding costs a bound no more than what it has to spare.

        A bound changes by at most max(1, replicas) of what a multiplier does.
        """
        finest = _FINEST - math.frexp(max(float(np.abs(u).max(initial=0.0)), 1e-300))[1]
        finest = min(finest, 900)
        if not spare > 0:
            return finest
        error = 0.5 * weight * max(1, len(self.clients)) * (self.replicas + 1)
        return max(-900, min(finest, math.ceil(math.log2(error / spare))))

    def _events(self, record: FloatArray) -> Iterator[list[object]]:
        at, clients = 0, len(self.clients)

        def numbers(count: int) -> FloatArray:
            nonlocal at
            at += count
            return record[at - count : at]

        def sites() -> list[int]:
            (count,) = numbers(1)
            return list(map(int, numbers(int(count))))

        while at < len(record):
            kind = int(numbers(1)[0])
            if kind in (_CLOSE, _FIX):
                spare, count = numbers(2)
                rows = numbers(int(count) * (2 + clients)).reshape(int(count), 2 + clients)
                named = "close" if kind == _CLOSE else "fix"
                decided = [] if kind == _CLOSE else [sites(), sites()]
                yield [named, self._parts(float(spare), rows), *decided]
            elif kind == _BRANCH:
                yield ["branch", int(numbers(1)[0])]
            elif kind == _ENUMERATE:
                yield ["enumerate"]
            elif kind == _NONE:
                yield ["close", []]
            else:
                raise AssertionError(f"a kernel recorded an unknown event {kind}")

    def _parts(self, spare: float, rows: FloatArray) -> list[object]:
        """Scenario, weight, bits and multipliers of every scenario of a bound."""
        weights: list[float] = rows[:, 1].tolist()
        slack = [a - b for a, b in zip(self.reached, self.required, strict=True)]
        scenarios = list(map(int, rows[:, 0]))
        if self.goal == "weighted":
            spare += slack[0]
        else:
            for scenario, weight in zip(scenarios, weights, strict=True):
                own = slack[int(scenario > 0)]
                spare += weight * own if math.isfinite(own) else 0.0
        parts: list[object] = []
        for scenario, weight, u in zip(scenarios, weights, rows[:, 2:], strict=True):
            bits = self._bits(u, spare / len(weights), weight)
            given = None if self.goal == "weighted" else weight
            parts.append([scenario, given, bits, _whole(u, bits)])
        return parts


def _whole(u: FloatArray, bits: int) -> list[int]:
    """The nearest whole multiples of 2^-bits."""
    return [int(x) for x in np.rint(np.ldexp(u, bits)).tolist()]


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
            document |= {
                "leader": self.configuration.leader,
                "voters": list(self.configuration.voters),
                "replicas": list(self.configuration.replicas),
            }
        document |= self.claim.to_json()
        if self.ties is not None:
            document["ties"] = self.ties()
        return document
