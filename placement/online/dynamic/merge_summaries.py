"""Merging the summaries of all nodes into one view of a site, the same at every node.

Matri et al. 2018, section 6.3, merge pairwise as summaries arrive, truncating to k counters each
time, and conclude from the commutativity of the merge that all nodes end up with the same view.
That does not follow: a truncated merge is not associative, so nodes that hear from their peers in
different orders may disagree about what is popular (:func:`merge_two` shows it). Here all
summaries of a round are kept and merged at once, with one truncation, which does not depend on
their order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from placement.online.dynamic.space_saving import Summary
from placement.support.checks import IntArray, whole

__all__ = ["merge", "merge_two", "top"]


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


def merge_two(a: Mapping[str, int], b: Mapping[str, int], k: int) -> dict[str, int]:
    """Merge two Misra-Gries summaries and truncate to k counters, as done pairwise.

    Counters are added and the (k + 1)-th largest is subtracted from all; what is not positive goes.
    Commutative, not associative: do not use it on more than two.

    Examples
    --------
    >>> a, b, c = {"c": 2}, {"b": 1}, {"a": 2, "d": 1}
    >>> merge_two(merge_two(a, b, 2), c, 2) == merge_two(a, merge_two(b, c, 2), 2)
    False
    """
    total = {
        key: a.get(key, 0) + b.get(key, 0) for key in [*a, *(key for key in b if key not in a)]
    }
    ranked = sorted(total.values(), reverse=True)
    less = ranked[k] if len(ranked) > k else 0
    return {key: count - less for key, count in sorted(total.items()) if count > less}
