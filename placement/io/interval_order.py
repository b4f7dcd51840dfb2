"""The order of time of interval labels, and the intervals between them that have no rows."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TypeVar

import numpy as np

from placement.errors import InputError, refused
from placement.support.checks import IntArray

T = TypeVar("T")

Place = Callable[[int], str]
"""Names the place in the file where a label stands first, from the label's position."""

_MICROSECOND = timedelta(microseconds=1)
_NUMBER = re.compile(r"[+-]?\d{1,18}(?:\.\d{1,18})?", re.ASCII)


@dataclass(frozen=True, eq=False)
class IntervalOrder:
    """Intervals from the oldest to the newest.

    Attributes
    ----------
    labels
        All labels, oldest first, with those of intervals that the table does not name.
    place
        Position in `labels` of each label that was given.
    notes
        Sentences that say what was done, for the user; empty when the order was right.
    """

    labels: tuple[str, ...]
    place: IntArray
    notes: tuple[str, ...] = ()


def most_intervals(named: int) -> int:
    """Return the largest number of intervals, silent ones included, of a table that names `named`.

    One time stamp that is a second off would otherwise make seconds of all half hours.
    """
    return 1_000 + 100 * named


def order_intervals(
    labels: Sequence[str], source: str, at: Place | None = None, *, fill: bool = True
) -> IntervalOrder:
    """Sort interval labels by time, or by size where they are numbers.

    Parameters
    ----------
    labels
        Distinct labels in the order of the file. ISO 8601 dates and times are sorted by time,
        numbers by size. Labels of any other kind, or of several kinds, keep the order given.
    source
        The file, for messages.
    at
        Returns file and row of a label's first row, from its position; None: the file alone.
    fill
        Whether to add the intervals between the first and the last that are not named, where times
        or whole numbers lie on a regular grid.

    Raises
    ------
    InputError
        For two labels of one interval, times with and without a time zone, and labels so uneven
        that the intervals between them would be more than :func:`most_intervals`.

    Examples
    --------
    >>> found = order_intervals(["10", "2", "4"], "counts.csv")
    >>> found.labels, found.place.tolist()
    (('2', '4', '6', '8', '10'), [4, 0, 1])
    >>> print(*found.notes, sep="; ")
    sorted 3 intervals by number; 2 intervals have no rows: no operations are counted there
    """

    def where(position: int) -> str:
        return source if at is None else at(position)

    times = _all(labels, datetime.fromisoformat)  # before numbers: 20260302 is a date
    if times is not None:
        aware = [time.tzinfo is not None for time in times]
        if any(aware) and not all(aware):
            odd = aware.index(not aware[0])
            words = "times with and without a time zone"
            expected = "a zone in all labels, or in none"
            raise refused(where(odd), "interval", words, labels[odd], expected)
        start = min(times)
        ticks = [(time - start) // _MICROSECOND for time in times]
        _distinct(labels, ticks, where)

        def name(after: int) -> str:
            return (start + after * _MICROSECOND).isoformat()

        return _ordered(labels, ticks, name if fill else None, "time", where)
    numbers = _all(labels, _number)
    if numbers is None:
        notes: tuple[str, ...] = ()
        if len(labels) > 1:
            notes = (
                f"the labels of {len(labels)} intervals are neither all times nor all numbers: "
                "the order of the file was kept",
            )
        return IntervalOrder(tuple(labels), np.arange(len(labels)), notes)
    _distinct(labels, numbers, where)
    whole = [int(value) for value in numbers]
    grid = fill and whole == numbers
    return _ordered(labels, whole if grid else numbers, str if grid else None, "number", where)


def _number(label: str) -> float | int:
    if not _NUMBER.fullmatch(label):
        raise ValueError(label)
    return float(label) if "." in label else int(label)


def _all(labels: Sequence[str], read: Callable[[str], T]) -> list[T] | None:
    try:
        return [read(label) for label in labels]
    except ValueError:
        return None


def _distinct(labels: Sequence[str], values: Sequence[float], where: Callable[[int], str]) -> None:
    """Refuse two labels for one interval, such as 1 and 01."""
    first: dict[float, int] = {}
    for position, value in enumerate(values):
        before = first.setdefault(value, position)
        if before != position:
            raise InputError(
                "two names for one interval",
                source=where(position),
                field="interval",
                value=f"{labels[before]}, {labels[position]}",
                expected=f"one label per interval (the other is in {where(before)})",
            )


def _ordered(
    labels: Sequence[str],
    values: Sequence[float],
    name: Callable[[int], str] | None,
    kind: str,
    where: Callable[[int], str],
) -> IntervalOrder:
    """Order labels by distinct values; `name` names the values of a grid that have no label."""
    ordered = sorted(values)
    notes = []
    if ordered != list(values):
        notes.append(f"sorted {len(labels)} intervals by {kind}")
    grid: Sequence[float] = ordered
    if name is not None and len(ordered) > 1:
        grid = _grid([int(value) for value in ordered], name, where)
        silent = len(grid) - len(ordered)
        if silent:
            notes.append(
                f"{silent} interval{'s have' if silent > 1 else ' has'} no rows: no operations are "
                "counted there"
            )
    given = dict(zip(values, labels, strict=True))
    place = {value: i for i, value in enumerate(grid)}
    return IntervalOrder(
        tuple(
            given[value] if value in given or name is None else name(int(value)) for value in grid
        ),
        np.array([place[value] for value in values], dtype=np.intp),
        tuple(notes),
    )


def _grid(ordered: Sequence[int], name: Callable[[int], str], where: Place) -> Sequence[int]:
    """Return every value of the regular grid through rising values; them alone if there is none."""
    steps = [b - a for a, b in pairwise(ordered)]
    step = min(steps)
    if math.gcd(*steps) != step:
        return ordered
    count = (ordered[-1] - ordered[0]) // step + 1
    if count > most_intervals(len(ordered)):
        raise InputError(
            f"{count:,} intervals between the first and the last, and only {len(ordered):,} of "
            "them in the table",
            source=where(0).split(", row ")[0],
            field="interval",
            value=f"{name(ordered[0])} to {name(ordered[-1])}",
            expected="labels on one grid",
        )
    return range(ordered[0], ordered[-1] + 1, step)
