"""Demand and deployments from tables: CSV, TSV or Parquet, checked cell by cell.

Tables of demand may have millions of rows and are read by pandas. Only when something is wrong are
they looked at row by row, to say where.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TypeVar

import numpy as np

from placement.checks import IntArray
from placement.errors import InputError
from placement.io.formats.column_reader import Frame, read_frame
from placement.io.formats.tables import name_cell, read_table
from placement.model.instance import Instance
from placement.overtime.replay.deployments import NOBODY, Deployments
from placement.overtime.replay.trace import Trace

__all__ = ["most_intervals", "read_deployments", "read_trace"]

T = TypeVar("T")

COUNT = "a finite number of operations >= 0"


def most_intervals(named: int) -> int:
    """Most intervals, silent ones included, of a table that names so many.

    One time stamp that is a second off would otherwise make seconds of all half hours.
    """
    return 1_000 + 100 * named


def read_trace(path: str | os.PathLike[str], instance: Instance) -> Trace:
    """Read demand per database and interval.

    Parameters
    ----------
    path
        CSV, TSV or Parquet with the columns ``database``, ``interval``, ``client`` and either
        ``operation`` and ``count`` (long), or one column per operation of the instance, as
        :func:`placement.workloads.write_parquet` writes it. Without ``database`` all rows are of
        one database, named after the instance. What has no row was not issued; operations without
        a column neither.
    instance
        Whose clients and operations the table names.

    Returns
    -------
    Trace
        Databases in the order of their first row. Intervals oldest first: in the order of time
        where all labels are ISO 8601 dates or times, by size where all are whole numbers, else by
        first row. Times and numbers on a regular grid get the intervals in between in which nobody
        issued anything.

    Raises
    ------
    InputError
        Naming file, row and column: for a missing column, a client or operation that the instance
        does not have, a count that is missing, negative or not finite, the same cell given twice,
        labels with and without a time zone.
    MissingDependencyError
        For Parquet without pyarrow.
    """
    frame = read_frame(path)
    names = [operation.name for operation in instance.operations]
    clients = frame.names("client", instance.clients, "client of the instance")
    known = frame.found("interval")
    databases = (
        frame.found("database")
        if "database" in frame.columns
        else ((instance.name,), np.zeros(frame.rows, dtype=np.intp))
    )
    labels, place = _in_order(known[0], instance, frame.source)
    intervals = place[known[1]]
    shape = (len(databases[0]), len(labels), len(instance.clients), len(names))
    keys: list[IntArray] = [databases[1], intervals, clients]
    counts = np.zeros(shape)
    if "operation" in frame.columns or "count" in frame.columns:
        operations = frame.names("operation", names, "operation of the instance")
        values = frame.quantities("count", COUNT)
        _once(frame, [*keys, operations], shape, ("database", "interval", "client", "operation"))
        counts[databases[1], intervals, clients, operations] = values
    else:
        given = [name for name in names if name in frame.columns]
        stray = [
            name for name in frame.columns if name not in (*names, "database", "interval", "client")
        ]
        if not given or stray:
            raise InputError(
                "no column of counts" if not given else "a column that is no operation",
                source=frame.source,
                field=stray[0] if stray else "count",
                expected="columns operation and count, or some of " + ", ".join(names),
            )
        _once(frame, keys, shape[:3], ("database", "interval", "client"))
        for name in given:
            counts[databases[1], intervals, clients, names.index(name)] = frame.quantities(
                name, COUNT
            )
    return Trace(databases[0], labels, counts)


def _once(
    frame: Frame, keys: Sequence[IntArray], shape: tuple[int, ...], columns: Sequence[str]
) -> None:
    """Refuse the second of two rows for the same cell."""
    flat = np.ravel_multi_index(tuple(keys), shape)
    if len(np.unique(flat)) == len(flat):
        return
    order = np.argsort(flat, kind="stable")
    again = order[1:][np.diff(flat[order]) == 0]
    second = int(again.min())
    first = int(np.nonzero(flat == flat[second])[0][0])
    cells = ", ".join(frame.text(column, second) for column in columns if column in frame.columns)
    raise InputError(
        "a row given twice",
        source=frame.at(second),
        field=", ".join(column for column in columns if column in frame.columns),
        value=cells,
        expected=f"once (first in row {frame.number(first)})",
    )


# --- intervals -------------------------------------------------------------------------------


def _in_order(
    labels: Sequence[str], instance: Instance, source: str
) -> tuple[tuple[str, ...], IntArray]:
    """All labels oldest first, silent intervals included, and where each given one stands."""
    if instance.varying_rtt:
        place = {label: i for i, label in enumerate(instance.intervals)}
        for label in labels:
            if label not in place:
                raise InputError(
                    "an interval without RTTs",
                    source=source,
                    field="interval",
                    value=label,
                    expected=f"one of the intervals of {instance.name}, "
                    f"{instance.intervals[0]!r} to {instance.intervals[-1]!r}",
                )
        return instance.intervals, np.array([place[label] for label in labels], dtype=np.intp)
    times = _all(labels, datetime.fromisoformat)  # before numbers: 20260302 is a date
    if times is None:
        numbers = _all(labels, int)
        if numbers is None:
            return tuple(labels), np.arange(len(labels))
        return _filled(labels, numbers, str, source)
    naive = [time.tzinfo is None for time in times]
    if any(naive) and not all(naive):
        raise InputError(
            "times with and without a time zone",
            source=source,
            field="interval",
            value=labels[naive.index(True)],
            expected="a zone in all labels, or in none",
        )
    start = min(times)
    seconds = [round((time - start).total_seconds()) for time in times]
    return _filled(
        labels, seconds, lambda after: (start + timedelta(seconds=after)).isoformat(), source
    )


def _filled(
    labels: Sequence[str], values: Sequence[int], name: Callable[[int], str], source: str
) -> tuple[tuple[str, ...], IntArray]:
    """Order by value; put the silent intervals between where the values lie on a grid."""
    ordered = sorted(values)
    if len(set(values)) < len(values):
        twice = next(a for a, b in pairwise(ordered) if a == b)
        same = [label for label, value in zip(labels, values, strict=True) if value == twice]
        raise InputError(
            "two names for one interval",
            source=source,
            field="interval",
            value=", ".join(same[:2]),
            expected="one label per interval",
        )
    steps = np.diff(ordered)
    step = int(steps.min()) if len(steps) else 1
    regular = len(steps) > 0 and not (steps % step).any()
    if not regular:
        grid = ordered
    elif (count := (ordered[-1] - ordered[0]) // step + 1) > most_intervals(len(values)):
        raise InputError(
            f"{count:,} intervals between the first and the last, and only {len(values):,} of them "
            "in the table",
            source=source,
            field="interval",
            value=f"{name(ordered[0])} to {name(ordered[-1])}",
            expected="labels on one grid; is there one that lies off it?",
        )
    else:
        grid = list(range(ordered[0], ordered[-1] + 1, step))
    given = dict(zip(values, labels, strict=True))
    place = {value: i for i, value in enumerate(grid)}
    return (
        tuple(given[value] if value in given else name(value) for value in grid),
        np.array([place[value] for value in values], dtype=np.intp),
    )


def _all(labels: Sequence[str], read: Callable[[str], T]) -> list[T] | None:
    try:
        return [read(label) for label in labels]
    except ValueError:
        return None


# --- deployments -----------------------------------------------------------------------------


def read_deployments(
    path: str | os.PathLike[str], instance: Instance, databases: Sequence[str]
) -> Deployments:
    """Read what each database runs on.

    Parameters
    ----------
    path
        CSV, TSV or Parquet with the columns ``database``, ``site``, ``role``: a row per replica;
        the role is ``replica`` (read-only), ``voter``, or ``leader`` (a voter that is preferred as
        leader; at most one per database).
    instance
        Whose sites the table names.
    databases
        Those that need a deployment; rows of others are an error.

    Raises
    ------
    InputError
        Naming file, row and column: for an unknown database, site or role, a site given twice, two
        leaders, a database without rows or without a voter.
    """
    table = read_table(path)
    columns = [table.column(name) for name in ("database", "site", "role")]
    number = {name: i for i, name in enumerate(databases)}
    held = np.zeros((len(databases), len(instance.sites)), dtype=bool)
    votes = held.copy()
    wishes = np.full(len(databases), NOBODY, dtype=np.intp)
    for row, cells in enumerate(table.rows):
        at = table.at(row)
        database, site, role = (
            name_cell(cells[column], at, table.columns[column]).strip() for column in columns
        )
        if database not in number:
            raise InputError(
                "a database that issued nothing",
                source=at,
                field="database",
                value=database,
                expected=f"one of the {len(number)} databases of the demand",
            )
        try:
            place = int(instance.site_indices([site], "site")[0])
        except InputError as error:
            raise error.at(at) from None
        if role not in ("replica", "voter", "leader"):
            raise InputError(
                "unknown role",
                source=at,
                field="role",
                value=role,
                expected="replica, voter, leader",
            )
        index = number[database]
        if held[index, place]:
            raise InputError(
                f"a site of {database} given twice", source=at, field="site", value=site,
                expected="once",
            )  # fmt: skip
        held[index, place] = True
        votes[index, place] = role != "replica"
        if role == "leader":
            if wishes[index] != NOBODY:
                raise InputError(
                    f"a second leader of {database}",
                    source=at,
                    field="role",
                    value=site,
                    expected=f"one (first {instance.sites[wishes[index]]})",
                )
            wishes[index] = place
    for index, database in enumerate(databases):
        if not votes[index].any():
            raise InputError(
                f"database {database} has no voter",
                source=table.source,
                field="database",
                expected="a row with role voter or leader for every database of the demand",
            )
    return Deployments(held, votes, wishes)
