"""Space-Saving, merging, Bloom summaries: bounds, order, and other people's implementations."""

import itertools
import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.online.dynamic.vote_counting import (
    SpaceSaving,
    Summary,
    merge,
    summary_of,
    top,
)
from placement.online.dynamic.vote_simulator import BloomSummary, refresh_due, spread

streams = st.lists(st.integers(0, 9), max_size=60)


def sketch(stream, counters):
    made = SpaceSaving(counters)
    made.extend(stream)
    return made.summary()


def slow_space_saving(stream, counters):
    """The algorithm as published, with a list; the victim is the one longest at the least count."""
    held = []  # [key, count, error, since]
    for now, key in enumerate(stream):
        known = next((row for row in held if row[0] == key), None)
        if known:
            known[1], known[3] = known[1] + 1, now
        elif len(held) < counters:
            held.append([key, 1, 0, now])
        else:
            victim = min(held, key=lambda row: (row[1], row[3]))
            victim[:] = [key, victim[1] + 1, victim[1], now]
    return sorted((key, count, error) for key, count, error, _ in held)


@given(streams, st.integers(1, 6))
def test_space_saving_keeps_its_promises(stream, counters):
    result = sketch(stream, counters)
    true = Counter(stream)
    assert len(result.keys) <= counters
    assert result.floor <= len(stream) / counters
    for key, count, error in zip(result.keys, result.counts, result.errors, strict=True):
        assert true[key] <= count <= true[key] + error
        assert error <= result.floor or result.floor == 0 == error
    for key, frequency in true.items():
        if frequency > len(stream) / counters:
            assert key in result.keys
        if key not in result.keys:
            assert frequency <= result.floor
    assert result.counts.sum() == len(stream)


@given(streams, st.integers(1, 6))
def test_buckets_do_what_the_list_does(stream, counters):
    result = sketch(stream, counters)
    found = list(zip(result.keys.tolist(), result.counts.tolist(), result.errors.tolist(),
                     strict=True))  # fmt: skip
    assert found == slow_space_saving(stream, counters)


@given(streams, st.integers(1, 12))
def test_counting_is_space_saving_while_nothing_is_evicted(stream, counters):
    assert same(summary_of(np.array(stream, dtype=int), counters), sketch(stream, counters))


def same(a, b):
    return (
        np.array_equal(a.keys, b.keys)
        and np.array_equal(a.counts, b.counts)
        and np.array_equal(a.errors, b.errors)
        and a.floor == b.floor
    )


@given(st.lists(streams, min_size=1, max_size=5), st.integers(1, 6), st.randoms())
def test_the_merge_does_not_depend_on_order_and_bounds(parts, counters, shuffle):
    summaries = [sketch(part, counters) for part in parts]
    result = merge(summaries, counters)
    for _ in range(3):
        shuffle.shuffle(summaries)
        assert same(merge(summaries, counters), result)
    true = Counter(itertools.chain(*parts))
    for key, count, error in zip(result.keys, result.counts, result.errors, strict=True):
        assert count - error <= true[key] <= count
    for key, frequency in true.items():
        if key not in result.keys:
            assert frequency <= result.floor


def merge_two(a, b, k):
    """Add two Misra-Gries summaries, take the (k + 1)-th largest counter from all: the paper's."""
    total = {key: a.get(key, 0) + b.get(key, 0) for key in sorted({*a, *b})}
    less = sorted([*total.values(), *[0] * k, 0], reverse=True)[k]
    return {key: count - less for key, count in total.items() if count > less}


def test_pairwise_truncated_merging_depends_on_order():
    """The finding: commutative, not associative, so nodes may disagree about what is popular."""
    a, b, c = {"c": 2}, {"b": 1}, {"a": 2, "d": 1}
    assert merge_two(a, b, 2) == merge_two(b, a, 2)
    assert merge_two(merge_two(a, b, 2), c, 2) == {"a": 1, "c": 1}
    assert merge_two(a, merge_two(b, c, 2), 2) == {"a": 1, "c": 2}
    assert merge_two(merge_two(a, c, 2), b, 2) == {}


def test_all_nodes_agree_after_one_merge():
    """96 nodes that hear from each other in different orders list the same objects."""
    rng = np.random.default_rng(0)
    chances = np.arange(1, 301) ** -0.99
    chances /= chances.sum()
    summaries = [sketch(rng.choice(300, 200, p=chances).tolist(), 20) for _ in range(96)]
    lists = set()
    shuffle = random.Random(1)
    for _ in range(10):
        shuffle.shuffle(summaries)
        lists.add(tuple(top(merge(summaries, 20), 20).tolist()))
    assert len(lists) == 1


def test_bounds_agree_with_datasketches():
    """Two estimators of one stream must have overlapping intervals for every key."""
    datasketches = pytest.importorskip("datasketches")
    rng = np.random.default_rng(5)
    stream = (rng.zipf(1.2, 20_000) % 5_000).tolist()
    mine = sketch(stream, 96)
    theirs = datasketches.frequent_strings_sketch(7)  # 0.75 · 2^7 = 96 counters
    for key in stream:
        theirs.update(str(key))
    true = Counter(stream)
    for key, count, error in zip(mine.keys.tolist(), mine.counts, mine.errors, strict=True):
        assert count - error <= true[key] <= count
        low, high = theirs.get_lower_bound(str(key)), theirs.get_upper_bound(str(key))
        assert low <= true[key] <= high
        assert max(low, count - error) <= min(high, count)
    heavy = {key for key, frequency in true.items() if frequency > len(stream) / 96}
    assert heavy <= set(mine.keys.tolist())
    assert heavy <= {int(row[0]) for row in theirs.get_frequent_items(
        datasketches.frequent_items_error_type.NO_FALSE_NEGATIVES)}  # fmt: skip


@settings(deadline=None)
@given(st.integers(0, 2**70), st.integers(0, 2**70))
def test_the_hash_is_the_same_everywhere_and_fits(a, b):
    assert 0 <= spread(a) < 2**127
    assert (spread(a) == spread(b)) == (a % 2**64 == b % 2**64)


def test_a_hash_worked_elsewhere():
    """SplitMix64's finaliser maps the golden-ratio increment to 0xE220A8397B1DCDAF."""
    assert spread(0) >> 64 == 0xE220A8397B1DCDAF >> 1


def test_bloom_size_and_error():
    """⌈n·ln(1/p)/(ln 2)²⌉ bits, which is under the published 18 KB."""
    pytest.importorskip("rbloom")
    filter_ = BloomSummary(range(10_000), 10_000, 0.001)
    assert filter_.bits == 143_776 < 18 * 8 * 1024
    assert filter_.among(np.arange(10_000)).all()
    wrong = filter_.among(np.arange(10_000, 110_000)).mean()
    assert 0.0006 < wrong < 0.0014
    assert 5 in filter_


def test_refresh_is_due_at_five_per_cent_and_not_before():
    requests, errors = np.array([99, 1000, 1019, 1000]), np.array([99, 49, 50, 50])
    assert refresh_due(requests, errors).tolist() == [False, False, False, True]


def test_merged_ties_go_to_the_smaller_key():
    one = Summary(np.array([3, 5]), np.array([4, 4]), np.zeros(2, dtype=np.int64), 0)
    two = Summary(np.array([1]), np.array([4]), np.zeros(1, dtype=np.int64), 0)
    assert top(merge([one, two], 3), 2).tolist() == [1, 3]
    assert merge([one, two], 2).keys.tolist() == [1, 3]
    assert merge([], 2).keys.tolist() == []
