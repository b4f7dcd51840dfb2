"""A watch that is killed at any moment and started again ends where one does that never was."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from placement.overtime.watch.state_store import Store, read_log
from tests.effort import SHORT
from tests.overtime.watch.worlds import Run, csv_text, demand, drop, settings, world

ROOT = Path(__file__).resolve().parents[3]


def mess(folder: Path, intervals: int) -> None:
    """Intervals in files of one to three, with one twice, one in conflict and one malformed."""
    counts = demand(intervals)
    rng = np.random.default_rng(intervals)
    first = 0
    while first < intervals:
        last = min(intervals, first + int(rng.integers(1, 4)))
        text = csv_text(world(), range(first, last), counts[first:last])
        drop(folder, f"{first:04}.csv", text)
        first = last
    drop(folder, "again.csv", csv_text(world(), [3], counts[3:4]))
    drop(folder, "other.csv", csv_text(world(), [5], counts[6:7]))
    drop(folder, "wrong.csv", "interval,client,operation,count\n7,nobody,weak_read,1\n")


class Crash(BaseException):
    """The process dies here."""


@contextmanager
def dying(monkeypatch: pytest.MonkeyPatch, at: int) -> Iterator[list[int]]:
    """Die at the `at`-th moment at which a transaction begins, is about to end, or has ended."""
    moments = [0]
    true = Store._transaction

    def tick() -> None:
        moments[0] += 1
        if moments[0] == at:
            raise Crash

    @contextmanager
    def transaction(self: Store) -> Iterator[None]:
        tick()
        with true(self):
            yield
            tick()
        tick()

    with monkeypatch.context() as patch:
        patch.setattr(Store, "_transaction", transaction)
        yield moments


def messy_table(path: Path) -> None:
    """Five intervals in one table; one comes twice, one again with other counts, one too late."""
    counts = demand(6)
    order = [(0, 0), (2, 2), (1, 1), (2, 2), (3, 3), (2, 5), (4, 4)]
    labels = [label for label, _ in order]
    path.write_text(csv_text(world(), labels, counts[[row for _, row in order]]))


@pytest.mark.parametrize(
    ("fill", "name", "used", "kinds"),
    [
        (lambda path: mess(path, 8), "in", 8, ["conflict", "duplicate", "malformed"]),
        (messy_table, "all.csv", 4, ["conflict", "duplicate", "late"]),
    ],
)
def test_a_crash_at_every_moment_there_is(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fill: Callable[[Path], None],
    name: str,
    used: int,
    kinds: list[str],
) -> None:
    source, asked = tmp_path / name, settings(1)
    fill(source)
    final = name != "in"
    with (
        dying(monkeypatch, 0) as moments,
        Run(asked, source, tmp_path / "whole.db", final=final) as whole,
    ):
        whole.look()
    total = moments[0]
    wanted, reports = read_log(tmp_path / "whole.db")
    assert len(wanted) == used
    assert sorted(report.kind for report in reports) == kinds
    for at in range(1, total + 1, 3 if SHORT else 1):
        state = tmp_path / f"{at}.db"
        with (
            dying(monkeypatch, at),
            Run(asked, source, state, final=final) as first,
            pytest.raises(Crash),
        ):
            first.look()
        with Run(asked, source, state, final=final) as second:
            second.look()
        documents, again = read_log(state)
        assert documents == wanted, at
        assert sorted(again) == sorted(reports), at
        # printed: all of them, in order, at most the one in flight twice
        printed = [document["sequence"] for document in first.shown + second.shown]
        assert len(printed) <= used + 1, at
        once = [number for number, _ in itertools.groupby(printed)]
        assert once == list(range(1, used + 1)), at
