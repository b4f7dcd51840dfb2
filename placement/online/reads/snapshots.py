"""Read transactions over several keys: whether each saw one moment, and all of them one order.

Let the order of the writes of each key be known (their versions). A transaction that returned
version v of a key saw a moment after the start of write v and before the end of write v + 1. It is
*torn* when no moment within the transaction satisfies this for all its keys. Two transactions are
*crossed* when each saw a newer version than the other of some key: no order explains both.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from placement.online.reads.linearizability import History

__all__ = ["ReadTransaction", "SnapshotViolations", "check_snapshots"]


@dataclass(frozen=True, slots=True)
class ReadTransaction:
    """Read of several keys at once.

    Attributes
    ----------
    start, end
        When the client issued it and got its answer, ms.
    seen
        Pairs of a key and its version.
    """

    start: float
    end: float
    seen: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class SnapshotViolations:
    """Numbers of transactions, of torn ones, and of those that cross another one.

    A transaction counts as crossing once for each pair of keys of which an earlier version of the
    first was seen with a later one of the second.
    """

    transactions: int
    torn: int
    crossed: int


def check_snapshots(writes: History, transactions: Sequence[ReadTransaction]) -> SnapshotViolations:
    """Find transactions that are no snapshots; O(T·k²·log T) for T transactions of k keys.

    Parameters
    ----------
    writes
        All writes; reads among them are ignored.
    transactions
        What was read.
    """
    spans = {(op.key, op.version): (op.start, op.end) for op in writes if not op.read}
    torn = 0
    pairs: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for each in transactions:
        first, last = each.start, each.end
        for key, version in each.seen:
            if version:
                first = max(first, spans[key, version][0])
            last = min(last, spans.get((key, version + 1), (0.0, math.inf))[1])
        torn += first > last
        for (a, v), (b, w) in combinations(sorted(each.seen), 2):
            pairs[a, b].append((v, w))
    crossed = 0
    for seen in pairs.values():
        newest = before = present = -1  # of the second key: with older, and with this version
        for v, w in sorted(seen):
            if v > before:
                newest, before = max(newest, present), v
            crossed += w < newest
            present = max(present, w)
    return SnapshotViolations(len(transactions), torn, crossed)
