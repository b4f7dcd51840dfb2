"""The checker of histories against the definition: some order of all operations explains them."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.online.reads import HistoryEntry, check


def linearizable(history) -> bool:
    """Try every order that respects precedence; a register that counts its writes explains it."""
    for order in permutations(history):
        place = {id(op): i for i, op in enumerate(order)}
        if any(
            a.end <= b.start and place[id(a)] > place[id(b)]
            for a in history
            for b in history
            if a is not b
        ):
            continue
        value = 0
        for op in order:
            if op.read and op.version != value:
                break
            if not op.read:
                if op.version != value + 1:
                    break
                value += 1
        else:
            return True
    return False


@st.composite
def histories(draw):
    """Up to five operations; the writes carry 1, 2, … in some order of their starts or not."""
    count = draw(st.integers(1, 5))
    writes = draw(st.integers(0, min(3, count)))
    versions = draw(st.permutations(range(1, writes + 1)))
    made = []
    for i in range(count):
        start = draw(st.integers(0, 8))
        end = start + draw(st.integers(1, 5))
        read = i >= writes
        version = draw(st.integers(0, writes)) if read else versions[i]
        made.append(HistoryEntry(0, read, start, end, version))
    return made


@given(histories())
def test_equals_the_definition(history):
    assert check(history).linearizable == linearizable(history)


def test_kinds():
    write = HistoryEntry(1, False, 0, 2, 1)
    assert check([write, HistoryEntry(1, True, 2, 3, 0)]).stale == 1
    assert check([write, HistoryEntry(1, True, 1.9, 3, 0)]).linearizable
    assert check([write, HistoryEntry(2, True, 5, 6, 0)]).linearizable  # another key
    seen = [HistoryEntry(1, True, 0.2, 0.5, 1), HistoryEntry(1, True, 0.6, 0.9, 0)]
    found = check([write, *seen])
    assert (found.stale, found.backwards, found.total) == (0, 1, 1)
    assert found.examples[0].operation is seen[1]
    assert check([HistoryEntry(1, True, 0, 1, 1), HistoryEntry(1, False, 2, 3, 1)]).phantom == 1
    assert check([HistoryEntry(1, True, 0, 1, 7)]).phantom == 1
    late = HistoryEntry(1, False, 5, 6, 1)
    assert check([HistoryEntry(1, False, 0, 1, 2), late]).disorder == 1


def test_unanswered_operations():
    never = float("inf")
    write = HistoryEntry(0, False, 0, never, 1)
    assert check(
        [write, HistoryEntry(0, True, 5, 6, 0), HistoryEntry(0, True, 7, 8, 1)]
    ).linearizable
    assert (
        check([write, HistoryEntry(0, True, 5, 6, 1), HistoryEntry(0, True, 7, 8, 0)]).backwards
        == 1
    )
    assert check([HistoryEntry(0, True, 0, never, 9)]).reads == 0
    assert check([]).linearizable


def test_operations_without_duration():
    assert check([HistoryEntry(0, False, 1, 1, 1), HistoryEntry(0, True, 1, 1, 1)]).linearizable


@pytest.mark.parametrize("seed", range(5))
def test_long_histories_of_one_register(seed):
    """Operations that take effect at one instant within their span are never blamed."""
    rng = np.random.default_rng(seed)
    count = 3000
    instant = np.sort(rng.uniform(0, 1000, count))
    kinds, keys = rng.random(count) < 0.7, rng.integers(0, 5, count)
    before, after = rng.exponential(5, (2, count))
    value = [0] * 5
    history = []
    for t, read, key, early, late in zip(instant, kinds, keys, before, after, strict=True):
        value[key] += not read
        history.append(HistoryEntry(int(key), bool(read), t - early, t + late, value[key]))
    assert check(history).linearizable
    # Shift one read's answer back by two versions after its key was written long before.
    broken = max(range(count), key=lambda i: history[i].version if kinds[i] else -1)
    op = history[broken]
    history[broken] = HistoryEntry(op.key, True, op.start, op.end, op.version - 10)
    assert check(history).stale == 1
