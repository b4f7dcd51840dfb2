"""Votes of reads: how they are cast, counted, merged, and what copies they make and delete.

A read carries the preferred sites that rank above the site it is sent to; the node that serves it
counts one vote for each. A dynamic copy that serves a read also gets a vote for its own site, so
that it stays. Matri et al. 2018, sections 6.1 and 6.2 (Algorithm 1).

Space-Saving: the most frequent keys of a stream in fixed memory.

Metwally, Agrawal, El Abbadi, "Efficient computation of frequent and top-k elements in data
streams", ICDT 2005. Used by every node to count the votes for every site (Matri et al. 2018,
section 6.2).

Matri et al. 2018, section 6.3, merge pairwise as summaries arrive, truncating to k counters each
time, and conclude from the commutativity of the merge that all nodes end up with the same view.
That does not follow: a truncated merge is not associative, so nodes that hear from their peers in
different orders may disagree about what is popular. Here all
summaries of a round are kept and merged at once, with one truncation, which does not depend on
their order.

Copies are created, and deleted after a grace period, as in sections 7.1 and 7.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from placement.online.dynamic.replication_problem import ReplicationProblem
from placement.support.checks import BoolArray, FloatArray, IntArray, whole


def vote_rates(problem: ReplicationProblem, copies: BoolArray, in_ms: bool = False) -> FloatArray:
    """Return expected votes per unit of time for each site and object, shape (sites, objects).

    Clients know which copies exist. A vote counts 1 as in the paper, or the ms that a copy saves
    the client against the closest static copy. O(Σ_i |preferred_i| · objects).
    """
    rtt, static = problem.geography.rtt, problem.static
    result = np.zeros(static.shape)
    for site, row in enumerate(problem.geography.preferred):
        looking = np.ones(problem.objects, dtype=bool)
        for j in row:
            # A static copy that serves gets no vote, and ends the search like a dynamic one.
            voting = looking & ~static[j]
            worth = problem.static_rtt[site] - rtt[site, j] if in_ms else np.ones(problem.objects)
            result[j] += np.where(voting, problem.reads[site] * np.maximum(worth, 0.0), 0.0)
            looking &= ~(static[j] | copies[j])
    return result


def most_voted(votes: FloatArray | IntArray, k: int) -> IntArray:
    """Return the k keys with most votes, most first; ties go to the smaller key.

    Keys without votes are never among them, so that there may be fewer than k. `votes` has shape
    (keys,). O(keys + c log c), c the number of keys with at least as many votes as the k-th.
    """
    k = whole(k, "k")
    candidates = np.flatnonzero(votes > 0)
    if k == 0:
        return candidates[:0]
    if len(candidates) > k:
        counts = votes[candidates]
        least = np.partition(counts, len(counts) - k)[len(counts) - k]
        candidates = candidates[counts >= least]
    order = np.argsort(-votes[candidates], kind="stable")  # candidates ascend: ties by key
    return candidates[order[:k]].astype(np.intp)


Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Summary:
    """Summary of one node about the votes for one site."""

    keys: Counts  #: monitored keys, increasing, shape (n,)
    counts: Counts  #: upper bounds on their frequencies, shape (n,)
    errors: Counts  #: by how much each may be too large, shape (n,)
    #: upper bound on the frequency of every other key: the least count, or 0 while counters are
    #: free
    floor: int


class SpaceSaving:
    """Counters for the most frequent keys of a stream.

    After n additions to c counters, with f the true frequency of a monitored key, e its error and
    mn the least count: f <= count <= f + e, e <= mn <= n/c, and every key with f > n/c is
    monitored. Keys of one count share a bucket, so that an addition takes O(1): a key moves to the
    next count, or replaces the key that has had the least count for longest.
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


def summary_of(stream: npt.ArrayLike, counters: int) -> Summary:
    """Return the Space-Saving summary of a stream of keys.

    With no more distinct keys than counters nothing is ever evicted: then counting is enough.
    """
    keys, counts = np.unique(np.asarray(stream, dtype=np.int64), return_counts=True)
    if len(keys) <= counters:
        floor = int(counts.min()) if len(keys) == counters else 0
        return Summary(keys, counts.astype(np.int64), np.zeros(len(keys), dtype=np.int64), floor)
    sketch = SpaceSaving(counters)
    sketch.extend(np.asarray(stream).tolist())
    return sketch.summary()


def merge(summaries: Sequence[Summary], counters: int) -> Summary:
    """Merge summaries of disjoint streams at once.

    A key's count is the sum of its counts, with the floor of a summary that does not monitor it;
    its error likewise. The `counters` keys of largest count stay, ties going to the smaller key.
    Upper and lower bounds remain bounds. Agarwal et al., "Mergeable summaries", PODS 2012.

    O(n log n), n the number of counters in all.
    """
    counters = whole(counters, "counters", minimum=1)
    floors = sum(summary.floor for summary in summaries)
    empty = np.zeros(0, dtype=np.int64)
    every = np.concatenate([summary.keys for summary in summaries] or [empty])
    keys, place = np.unique(every, return_inverse=True)
    counts = np.full(len(keys), floors, dtype=np.int64)
    errors = counts.copy()
    start = 0
    for summary in summaries:
        mine = place[start : start + len(summary.keys)]
        start += len(summary.keys)
        counts[mine] += summary.counts - summary.floor
        errors[mine] += summary.errors - summary.floor
    best = np.lexsort((keys, -counts))[:counters]
    best.sort()
    dropped = np.delete(counts, best)
    floor = max(int(dropped.max(initial=0)), floors)
    return Summary(keys[best], counts[best], errors[best], floor)


def top(summary: Summary, k: int) -> IntArray:
    """Return the k keys of largest count, largest first; ties go to the smaller key."""
    order = np.lexsort((summary.keys, -summary.counts))[: max(k, 0)]
    return summary.keys[order].astype(np.intp)


class CopySet:
    """Dynamic copies of all sites, with the number of rounds each has been absent from the lists.

    `static` are the static copies, shape (sites, objects); they never come or go. A copy is deleted
    at the `grace`-th consecutive list without it; 1 deletes at once.
    """

    def __init__(self, static: BoolArray, grace: int) -> None:
        grace = whole(grace, "grace", minimum=1)
        self.static = static
        self.grace = grace
        self.active: BoolArray = np.zeros(static.shape, dtype=bool)
        self._absent: npt.NDArray[np.int32] = np.zeros(static.shape, dtype=np.int32)

    def create(self, popular: BoolArray) -> int:
        """Create the copies that a complete list asks for; return how many are new."""
        new = popular & ~self.static & ~self.active
        self.active |= new
        self._absent[new] = 0
        return int(new.sum())

    def judge(self, popular: BoolArray) -> int:
        """Apply a complete serving list, shape (sites, objects): count absences and delete.

        Returns how many go. An incomplete list must not be given: it neither deletes nor counts.
        """
        missing = self.active & ~popular
        self._absent[missing] += 1
        self._absent[popular] = 0
        gone = missing & (self._absent >= self.grace)
        self.active &= ~gone
        self._absent[gone] = 0
        return int(gone.sum())

    def fingerprint(self) -> bytes:
        """Return bytes that are equal exactly for equal states."""
        held = np.packbits(self.active).tobytes()
        return held + self._absent[self.active].tobytes()


def replicas_conservative(k: float, turnover: float, grace: int) -> float:
    """Dynamic copies of a site by Eq. 2 of Matri et al.: k·(1 + λ·g), g rounds of grace.

    λ is the share of the list that is new in a round. One round more than :func:`replicas_exact`:
    the count between the creation by a list and the deletion by the same list.
    """
    return k * (1 + turnover * grace)


def replicas_exact(k: float, turnover: float, grace: int) -> float:
    """Dynamic copies of a site under the rule as described: k·(1 + λ·(g − 1)).

    For keys that leave the list for good, just after a deletion: with g = 1 the k of the list.
    """
    grace = whole(grace, "grace", minimum=1)
    return k * (1 + turnover * (grace - 1))
