"""The certificate of threshold trees: what the compiled search recorded, as a document.

The search records the weights and multipliers of every bound that closed a part of a tree or fixed
sites, and by how much the bound proved it (``csrc/scenarios/threshold_tree.c``). Any multipliers
are valid, and what is to spare says how far they may be rounded: they are written as whole numbers
of few digits. The events are those of :mod:`placement.proof.event_tree`; what they prove stands in
:mod:`placement.proof.threshold_proof`, and the format in :mod:`placement.proof.measures_proof`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from placement.model.configuration import Configuration
from placement.proof.measures_proof import FORMAT
from placement.support.checks import FloatArray, IntArray

MOST_RECORDED = 24_000_000
"""Numbers that a search records at most, 192 MB; with more there is no certificate."""

ANY = -1
"""In a part of the search: all who may take over from its leader."""

Part = tuple[int, int]
"""A leader, and who takes over when its own site is lost."""

_CLOSE, _FIX, _BRANCH, _ENUMERATE, _NONE, _VOTERS, _VOTE = 1, 2, 3, 4, 5, 6, 7
_NAMES = {_CLOSE: "close", _FIX: "fix", _VOTERS: "voters"}
_FINEST = 52  # bits of a whole number that a double holds for certain
_WIDEST = 900  # bits before or behind the point, at most


@dataclass(frozen=True, eq=False)
class TreeRecord:
    """Record of a closed tree, and of each of its scenarios what the events are written with.

    A scenario has the number of its row of the question, the divisor of its weights, and a slack:
    how far its threshold was above what a checker asks, NaN for what is minimised. `deadline`: of a
    percentile that is minimised, in bins.
    """

    events: FloatArray
    numbers: tuple[int, ...]
    scales: tuple[float, ...]
    slacks: tuple[float, ...]
    deadline: int | None = None


@dataclass(frozen=True, eq=False)
class ThresholdCertificate:
    """The certificate of the best plan within limits, or that there is none: both numbers are +∞.

    `slack`: X of the minimised measure had to be lower than the claim by this much. `clients` are
    the indices of the clients that count, in the records too. A part that needs no tree has no
    record. `floors` are sites that a bound alone rules out, each with multipliers and what is to
    spare. `weighted`: all scenarios have one threshold and weights that the checker knows.
    """

    configuration: Configuration | None
    value: float
    bound: float
    slack: float
    clients: IntArray
    replicas: int
    records: Mapping[Part, TreeRecord]
    floors: Sequence[tuple[int, FloatArray, float]]
    weighted: bool = False

    def to_json(self) -> Mapping[str, object]:
        """Return the certificate as JSON-like data; site and client numbers are indices."""
        document: dict[str, object] = {"format": FORMAT, "score": self.value, "bound": self.bound}
        if self.configuration is not None:
            document |= self.configuration.to_document()
        document["clients"] = self.clients.tolist()
        document["floors"] = [
            [site, *self._rounded(u, spare, 1.0)] for site, u, spare in self.floors
        ]
        document["proofs"] = [
            {"leader": leader, "events": list(self._events(record))}
            | ({} if successor == ANY else {"successor": successor})
            | ({} if record.deadline is None else {"deadline": record.deadline})
            for (leader, successor), record in self.records.items()
        ]
        return document

    def _events(self, record: TreeRecord) -> Iterator[list[object]]:
        """Yield the events of a tree."""
        at = 0

        def numbers(count: int) -> FloatArray:
            nonlocal at
            at += count
            return record.events[at - count : at]

        def sites() -> list[int]:
            (count,) = numbers(1)
            return list(map(int, numbers(int(count))))

        width = 2 + len(self.clients)
        while at < len(record.events):
            kind = int(numbers(1)[0])
            if kind in _NAMES:
                spare, count = numbers(2)
                rows = numbers(int(count) * width).reshape(int(count), width)
                decided = [sites(), sites()] if kind == _FIX else []
                yield [_NAMES[kind], self._parts(record, float(spare), rows), *decided]
            elif kind in {_BRANCH, _VOTE}:
                yield ["branch" if kind == _BRANCH else "vote", int(numbers(1)[0])]
            elif kind == _ENUMERATE:
                yield ["enumerate"]
            elif kind == _NONE:
                yield ["close", []]
            else:
                raise AssertionError(f"a kernel recorded an unknown event {kind}")

    def _parts(self, record: TreeRecord, spare: float, rows: FloatArray) -> list[object]:
        """Scenario, weight, bits and multipliers of every scenario of a bound.

        Two scenarios may be one row. A bound is concave in its multipliers, so that their mean
        bounds no less.
        """
        spare += self.slack if self.weighted else 0.0
        joined: dict[int, tuple[float, FloatArray]] = {}
        for scenario, weight, u in zip(map(int, rows[:, 0]), rows[:, 1], rows[:, 2:], strict=True):
            weight, slack = float(weight) / record.scales[scenario], record.slacks[scenario]
            slack = self.slack if math.isnan(slack) else slack
            spare += weight * slack if math.isfinite(slack) and not self.weighted else 0.0
            number = record.numbers[scenario]
            before, known = joined.get(number, (0.0, u))
            total = before + weight
            mean = (before * known + weight * u) / total if before and total > 0 else u
            joined[number] = total, mean
        parts: list[object] = []
        for number, (weight, u) in joined.items():
            told = None if self.weighted else weight
            parts.append([number, told, *self._rounded(u, spare / len(rows), weight)])
        return parts

    def _rounded(self, u: FloatArray, spare: float, weight: float) -> tuple[int, list[int]]:
        """Multipliers as whole multiples of 2^-bits, which cost a bound no more than `spare`.

        A bound changes by at most max(1, replicas) of what a multiplier does.
        """
        largest = max(float(np.abs(u).max(initial=0.0)), 1e-300)
        bits = min(_FINEST - math.frexp(largest)[1], _WIDEST)
        if spare > 0:
            error = 0.5 * weight * max(1, len(u)) * (self.replicas + 1)
            bits = max(-_WIDEST, min(bits, math.ceil(math.log2(error / spare))))
        return bits, [int(x) for x in np.rint(np.ldexp(u, bits)).tolist()]
