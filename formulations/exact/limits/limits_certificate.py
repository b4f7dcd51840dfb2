"""Certificates of plans within limits: what the compiled search recorded, as a document.

The format, and what a checker makes of it, stands in :mod:`placement.proof.limits_proof`; how
records become events, in :mod:`formulations.exact.thresholds.threshold_events`. The multiplier μ of
a limit is the quotient of its weight in a bound and that of the objective.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from formulations.exact.thresholds.threshold_events import ThresholdEvents
from placement.model.configuration import Configuration
from placement.proof.limits_proof import FORMAT
from placement.support.checks import FloatArray, IntArray

__all__ = ["CLAIMED_LESS", "SEARCHED_LESS", "LeaderRecord", "LimitsCertificate"]

CLAIMED_LESS = 9e-10
"""Share of the best objective by which the bound is below it."""

SEARCHED_LESS = 5e-10
"""Share of the best objective by which the search asks for less than it."""

_LIMIT_SLACK = 8e-12  # what a checker asks less of a limit than the search


@dataclass(frozen=True, eq=False)
class LeaderRecord:
    """Record of the tree of a leader.

    Attributes
    ----------
    events
        As the kernel recorded them.
    scales
        What the weights of the limits and of the objective are divided by.
    """

    events: FloatArray
    scales: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class LimitsCertificate:
    """The certificate of the best plan within limits, or that there is none.

    Attributes
    ----------
    configuration, value, bound
        The plan, its objective and the bound on it; None and +∞: there is no plan.
    clients
        Indices of the clients that count, which are those of the records.
    replicas
        The most replicas.
    allowed
        The largest value of each limited function.
    records
        By leader; a leader that needs no tree has none.
    """

    configuration: Configuration | None
    value: float
    bound: float
    clients: IntArray
    replicas: int
    allowed: tuple[float, ...]
    records: Mapping[int, LeaderRecord]

    def to_json(self) -> Mapping[str, object]:
        """Return the certificate as JSON-like data; site and client numbers are indices."""
        document: dict[str, object] = {"format": FORMAT, "score": self.value, "bound": self.bound}
        if self.configuration is not None:
            document |= self.configuration.to_document()
        document["clients"] = self.clients.tolist()
        document["proofs"] = [
            {"leader": leader, "events": self._events(record)}
            for leader, record in self.records.items()
        ]
        return document

    def _events(self, record: LeaderRecord) -> list[object]:
        found = self.configuration is not None
        slacks = (
            *(_LIMIT_SLACK * allowed for allowed in self.allowed),
            (CLAIMED_LESS - SEARCHED_LESS) * abs(self.value) if found else 0.0,
        )
        written = ThresholdEvents(
            len(self.clients), np.arange(len(self.clients)), self.replicas,
            slack=lambda scenario: slacks[scenario],
            scale=lambda scenario: record.scales[scenario],
        )  # fmt: skip
        return list(written.of(record.events))
