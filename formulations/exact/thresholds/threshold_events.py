"""The record of a tree over scenarios, as events of a certificate.

The compiled search records the weights and multipliers of every bound that closed a part of the
search or fixed sites, and by how much the bound proved it (``csrc/scenarios/threshold_tree.c``).
Any multipliers are valid, and what is to spare says how far they may be rounded: they are written
as whole numbers of few digits. The events are those of :mod:`placement.proof.event_tree`, and what
they prove stands in :mod:`placement.proof.threshold_proof`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from placement.support.checks import FloatArray, IntArray

__all__ = ["MOST_RECORDED", "ThresholdEvents"]

MOST_RECORDED = 24_000_000
"""Numbers that a search records at most, 192 MB; with more there is no certificate."""

_CLOSE, _FIX, _BRANCH, _ENUMERATE, _NONE, _VOTERS, _VOTE = 1, 2, 3, 4, 5, 6, 7
_NAMES = {_CLOSE: "close", _FIX: "fix", _VOTERS: "voters"}
_FINEST = 52  # bits of a whole number that a double holds for certain
_WIDEST = 900  # bits before or behind the point, at most


@dataclass(frozen=True, eq=False)
class ThresholdEvents:
    """Form in which the records of a claim are written.

    Attributes
    ----------
    recorded
        Clients of the record.
    clients
        Those of them that a certificate counts, shape (clients,).
    replicas
        The most replicas.
    slack
        By how much the threshold of a scenario was above what a checker asks, at the least.
    scale
        What weights of a scenario are divided by.
    shared
        The same as `slack` for questions with one threshold for all scenarios, whose weights the
        checker knows; None: every scenario has its own.
    number
        Number of a scenario in the certificate, from that of the record.
    """

    recorded: int
    clients: IntArray
    replicas: int
    slack: Callable[[int], float]
    scale: Callable[[int], float]
    shared: float | None = None
    number: Callable[[int], int] = int

    def of(self, record: FloatArray) -> Iterator[list[object]]:
        """Yield the events of a tree."""
        at = 0

        def numbers(count: int) -> FloatArray:
            nonlocal at
            at += count
            return record[at - count : at]

        def sites() -> list[int]:
            (count,) = numbers(1)
            return list(map(int, numbers(int(count))))

        width = 2 + self.recorded
        while at < len(record):
            kind = int(numbers(1)[0])
            if kind in _NAMES:
                spare, count = numbers(2)
                rows = numbers(int(count) * width).reshape(int(count), width)
                decided = [sites(), sites()] if kind == _FIX else []
                yield [_NAMES[kind], self._parts(float(spare), rows), *decided]
            elif kind in {_BRANCH, _VOTE}:
                yield ["branch" if kind == _BRANCH else "vote", int(numbers(1)[0])]
            elif kind == _ENUMERATE:
                yield ["enumerate"]
            elif kind == _NONE:
                yield ["close", []]
            else:
                raise AssertionError(f"a kernel recorded an unknown event {kind}")

    def _parts(self, spare: float, rows: FloatArray) -> list[object]:
        """Scenario, weight, bits and multipliers of every scenario of a bound."""
        scenarios = [int(number) for number in rows[:, 0]]
        weights = [
            weight / self.scale(scenario)
            for scenario, weight in zip(scenarios, rows[:, 1].tolist(), strict=True)
        ]
        if self.shared is not None:
            spare += self.shared
        else:
            for scenario, weight in zip(scenarios, weights, strict=True):
                own = self.slack(scenario)
                spare += weight * own if math.isfinite(own) else 0.0
        parts: list[object] = []
        for scenario, weight, u in zip(scenarios, weights, rows[:, 2:], strict=True):
            bits, whole = self.rounded(u, spare / len(weights), weight)
            told = weight if self.shared is None else None
            parts.append([self.number(scenario), told, bits, whole])
        return parts

    def rounded(self, u: FloatArray, spare: float, weight: float) -> tuple[int, list[int]]:
        """Multipliers as whole multiples of 2^-bits, which cost a bound no more than `spare`.

        A bound changes by at most max(1, replicas) of what a multiplier does.
        """
        u = u[self.clients]
        largest = max(float(np.abs(u).max(initial=0.0)), 1e-300)
        bits = min(_FINEST - math.frexp(largest)[1], _WIDEST)
        if spare > 0:
            error = 0.5 * weight * max(1, len(u)) * (self.replicas + 1)
            bits = max(-_WIDEST, min(bits, math.ceil(math.log2(error / spare))))
        return bits, [int(x) for x in np.rint(np.ldexp(u, bits)).tolist()]
