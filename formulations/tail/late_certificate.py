"""Certificates about percentiles: what the compiled search recorded, as a document.

The format, and what a checker makes of it, stands in :mod:`placement.proof.late.late_check`; how
records become events, in :mod:`formulations.exact.threshold_search`. A leader that is
late with every client at its best site needs no record: the checker sees that for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from formulations.exact.threshold_search import MOST_RECORDED, ThresholdEvents
from placement.model.configuration import Configuration
from placement.support.checks import FloatArray, IntArray

__all__ = [
    "CLAIMED_LESS",
    "FORMAT",
    "LateCertificate",
    "LateRecords",
    "TreeRecord",
]

FORMAT = "replica-placement/percentile/1"
"""Name and version of the format."""

CLAIMED_LESS = 9e-10
"""Share of the least mean by which a second claim is below it."""


@dataclass(frozen=True, eq=False)
class TreeRecord:
    """Record of a tree that was closed.

    Attributes
    ----------
    deadline
        In bins.
    events
        As the kernel recorded them.
    scales
        What weights of each scenario are divided by.
    scenarios
        Their numbers in a certificate: 0 late operations, 1 the mean, 2 + L those after the loss L.
    """

    deadline: int
    events: FloatArray
    scales: tuple[float, ...]
    scenarios: tuple[int, ...]


@dataclass
class LateRecords:
    """Records of the trees that ruled a deadline out, the last one of each leader.

    Attributes
    ----------
    left
        Numbers that may still be recorded; 0: nothing is kept any more.
    trees
        By leader; a leader that needs no tree has none.
    """

    left: int = MOST_RECORDED
    trees: dict[int, TreeRecord] = field(default_factory=dict)

    def close(self, leader: int, record: TreeRecord | None) -> None:
        """Record the proof that rules a deadline out: a tree; None: a sum that a checker sees."""
        before = self.trees.pop(leader, None)
        self.left += 0 if before is None else len(before.events)
        if record is not None:
            self.trees[leader] = record
            self.left -= len(record.events)

    def fail(self) -> None:
        """Give up: something cannot be recorded, or not be proved."""
        self.left = 0

    @property
    def complete(self) -> bool:
        """Return whether every event was kept."""
        return self.left > 0


@dataclass(frozen=True, eq=False)
class LateCertificate:
    """The certificate of a plan for a percentile.

    Attributes
    ----------
    configuration, score, bound
        The plan, its percentile in ms, and the bound on it; None and +∞: there is no plan.
    deadline
        The deadline that cannot be kept, in bins.
    clients, recorded
        Indices of the clients that a certificate counts, and how many the records count.
    replicas
        The most replicas.
    late_slack
        Late operations that the search needs beyond those of a checker.
    trees
        As in :class:`LateRecords`.
    ties
        Makes the document of the second claim; None: it was not recorded.
    """

    configuration: Configuration | None
    score: float
    bound: float
    deadline: int
    clients: IntArray
    recorded: int
    replicas: int
    late_slack: float
    trees: Mapping[int, TreeRecord]
    ties: Callable[[], Mapping[str, object]] | None = None

    def to_json(self) -> Mapping[str, object]:
        """Return the certificate as JSON-like data; site and client numbers are indices."""
        document: dict[str, object] = {"format": FORMAT, "score": self.score, "bound": self.bound}
        if self.configuration is not None:
            document |= self.configuration.to_document()
        document |= self.claim(self.deadline, self.trees)
        if self.ties is not None:
            document["ties"] = self.ties()
        return document

    def claim(
        self, deadline: int, trees: Mapping[int, TreeRecord], mean_slack: float = 0.0
    ) -> dict[str, object]:
        """Return a claim and its proof: keys "clients", "deadline" and "proofs".

        Parameters
        ----------
        deadline
            In bins.
        trees
            By leader.
        mean_slack
            By how much the threshold of the mean was above what is claimed of it.
        """

        def events(tree: TreeRecord) -> list[object]:
            written = ThresholdEvents(
                self.recorded, self.clients, self.replicas,
                slack=lambda k: mean_slack if tree.scenarios[k] == 1 else self.late_slack,
                scale=lambda k: tree.scales[k],
                number=lambda k: tree.scenarios[k],
            )  # fmt: skip
            return list(written.of(tree.events))

        return {
            "clients": self.clients.tolist(),
            "deadline": deadline,
            "proofs": [
                {"leader": leader, "deadline": tree.deadline, "events": events(tree)}
                for leader, tree in trees.items()
                if tree.deadline >= deadline
            ],
        }
