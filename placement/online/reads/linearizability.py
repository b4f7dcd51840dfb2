"""Was a history linearizable? Versions are whole numbers, so the answer takes one sweep per key.

The leaseholder numbers the writes of a key 1, 2, …; a read returns the number it saw (0: none).
One operation precedes another when it ended no later than the other started (operations that take
no time at the same instant are concurrent). With the order of writes known, a history is
linearizable if and only if

* no read returns less than a write that was acknowledged before it started   (stale),
* no read returns less than a read that ended before it started               (backwards),
* no read returns a write that had not started when the read ended            (phantom),
* no write has a number <= that of anything that ended before it started      (disorder),

because then sorting by version, writes before their reads, and reads by start, respects precedence.
Source of the problem: P. Gibbons and E. Korach, "Testing shared memories", SIAM J. Computing 26
(1997). A read that is both stale and backwards counts as stale.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """Operation on a key.

    Attributes
    ----------
    key, read
        Which key; whether it reads.
    start, end
        When the client issued it and got its answer, ms; an infinite end: never answered.
    version
        Written or returned.
    """

    key: int
    read: bool
    start: float
    end: float
    version: int


History = Sequence[HistoryEntry]


@dataclass(frozen=True, slots=True)
class Violation:
    """An operation that breaks linearizability, and the version it should at least have met."""

    kind: str
    operation: HistoryEntry
    expected: int


@dataclass(frozen=True, slots=True)
class Violations:
    """Numbers of wrong reads (writes for disorder), and the first few of each.

    Attributes
    ----------
    reads
        Answered reads in the history.
    stale, backwards, phantom, disorder
        See the module.
    examples
        Up to ten.
    """

    reads: int
    stale: int
    backwards: int
    phantom: int
    disorder: int
    examples: tuple[Violation, ...] = field(default=(), compare=False)

    @property
    def linearizable(self) -> bool:
        """Return whether there is none."""
        return self.total == 0

    @property
    def total(self) -> int:
        """All kinds together."""
        return self.stale + self.backwards + self.phantom + self.disorder


def check(history: History) -> Violations:
    """Find every operation that breaks linearizability; O(N log N).

    Reads without an answer are ignored; writes without one may have happened.
    """
    keys: dict[int, list[HistoryEntry]] = {}
    for operation in history:
        if not (operation.read and math.isinf(operation.end)):
            keys.setdefault(operation.key, []).append(operation)
    counts = {"stale": 0, "backwards": 0, "phantom": 0, "disorder": 0}
    examples: list[Violation] = []
    for operations in keys.values():
        for found in _check_key(operations):
            counts[found.kind] += 1
            if len(examples) < 10:
                examples.append(found)
    reads = sum(op.read for operations in keys.values() for op in operations)
    return Violations(reads, **counts, examples=tuple(examples))


def _end(op: HistoryEntry) -> float:
    """Return the end of an operation; a little later if it takes no time, to not precede itself."""
    return op.end if op.end > op.start else math.nextafter(op.end, math.inf)


def _check_key(operations: list[HistoryEntry]) -> list[Violation]:
    began = {op.version: op.start for op in operations if not op.read}
    ended = sorted(operations, key=_end)
    ends = np.array([_end(op) for op in ended])
    written = np.maximum.accumulate([0 if op.read else op.version for op in ended])
    returned = np.maximum.accumulate([op.version if op.read else 0 for op in ended])
    found = []
    for op in operations:
        before = int(np.searchsorted(ends, op.start, side="right"))
        acked = int(written[before - 1]) if before else 0
        seen = int(returned[before - 1]) if before else 0
        if not op.read:
            if op.version <= max(acked, seen):
                found.append(Violation("disorder", op, max(acked, seen) + 1))
        elif op.version < acked:
            found.append(Violation("stale", op, acked))
        elif op.version < seen:
            found.append(Violation("backwards", op, seen))
        elif op.version and began.get(op.version, math.inf) >= _end(op):
            found.append(Violation("phantom", op, 0))
    return found
