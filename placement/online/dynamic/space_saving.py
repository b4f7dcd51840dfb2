"""Space-Saving: the most frequent keys of a stream in fixed memory.

Metwally, Agrawal, El Abbadi, "Efficient computation of frequent and top-k elements in data
streams", ICDT 2005. Used by every node to count the votes for every site (Matri et al. 2018,
section 6.2).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from placement.support.checks import whole

__all__ = ["SpaceSaving", "Summary", "exact_summary"]

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Summary:
    """Summary of one node about the votes for one site.

    Attributes
    ----------
    keys
        Monitored keys, increasing, shape (n,).
    counts
        Upper bounds on their frequencies, shape (n,).
    errors
        By how much each may be too large, shape (n,).
    floor
        Upper bound on the frequency of every other key: the least count, or 0 while counters are
        free.
    """

    keys: Counts
    counts: Counts
    errors: Counts
    floor: int


class SpaceSaving:
    """Counters for the most frequent keys of a stream.

    After n additions to c counters, with f the true frequency of a monitored key, e its error and
    mn the least count: f <= count <= f + e, e <= mn <= n/c, and every key with f > n/c is
    monitored.

    Parameters
    ----------
    counters
        c >= 1.

    Notes
    -----
    Keys of one count share a bucket, so that an addition takes O(1): a key moves to the next count,
    or replaces the key that has had the least count for longest.

    Examples
    --------
    >>> sketch = SpaceSaving(2)
    >>> sketch.extend([7, 7, 8, 9])
    >>> summary = sketch.summary()
    >>> summary.keys.tolist(), summary.counts.tolist(), summary.errors.tolist()
    ([7, 9], [2, 2], [0, 1])
    """

    def __init__(self, counters: int) -> None:
        counters = whole(counters, "counters", minimum=1)
        self.counters = counters
        self._count: dict[int, int] = {}
        self._error: dict[int, int] = {}
        # Dictionaries keep insertion order: the first key of a bucket has been there longest.
        self._buckets: dict[int, dict[int, None]] = {}
        self._least = 0

    def add(self, key: int) -> None:
        """Count one occurrence."""
        count = self._count.get(key)
        if count is not None:
            self._leave(key, count)
        elif len(self._count) < self.counters:
            count = 0
            self._error[key] = 0
            self._least = 1
        else:
            count = self._least
            victim = next(iter(self._buckets[count]))
            del self._count[victim], self._error[victim]
            self._leave(victim, count)
            self._error[key] = count
        self._count[key] = count + 1
        self._buckets.setdefault(count + 1, {})[key] = None

    def _leave(self, key: int, count: int) -> None:
        bucket = self._buckets[count]
        del bucket[key]
        if not bucket:
            del self._buckets[count]
            if count == self._least:
                # The key that left goes to count + 1, so that this bucket is the lowest, or will
                # be.
                self._least = count + 1

    def extend(self, keys: Iterable[int]) -> None:
        """Count the keys of a stream in their order."""
        for key in keys:
            self.add(key)

    def summary(self) -> Summary:
        """Return the counters."""
        keys = np.array(sorted(self._count), dtype=np.int64)
        counts = np.array([self._count[key] for key in keys.tolist()], dtype=np.int64)
        errors = np.array([self._error[key] for key in keys.tolist()], dtype=np.int64)
        floor = int(counts.min()) if len(keys) == self.counters else 0
        return Summary(keys, counts, errors, floor)


def exact_summary(votes: npt.ArrayLike, counters: int) -> Summary | None:
    """Return the Space-Saving summary of a stream that can be counted exactly, else None.

    With no more distinct keys than counters nothing is ever evicted, so that the order of the
    stream does not matter and the counters are exact.

    Parameters
    ----------
    votes
        Frequency of each key, whole numbers, shape (keys,).
    counters
        Of the sketch.
    """
    frequency = np.asarray(votes, dtype=np.int64)
    keys = np.flatnonzero(frequency)
    if len(keys) > counters:
        return None
    counts = frequency[keys]
    floor = int(counts.min()) if len(keys) == counters and len(keys) else 0
    return Summary(keys.astype(np.int64), counts, np.zeros(len(keys), dtype=np.int64), floor)
