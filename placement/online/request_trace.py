"""A user's own trace of requests: time, client, key or group, size, read or update."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from placement.errors import InputError
from placement.io.formats.column_reader import ColumnTable, read_frame
from placement.support.checks import BoolArray, FloatArray, IntArray

__all__ = ["RequestTrace", "read_trace"]

_NAMES = ("client", "key", "op")
_UPDATES = {"read": False, "update": True, "write": True}
_TIME = "milliseconds, a finite number >= 0"


@dataclass(frozen=True, eq=False)
class RequestTrace:
    """Requests in the order of time.

    Attributes
    ----------
    source
        The file.
    time
        ms since the first request, increasing; shape (n,).
    clients, client
        Names, and the place of each request's client among them.
    keys, key
        Names of keys (or of groups, as they stand in the file), and each request's place.
    group
        Group of each request; None where the file names keys.
    size
        Size of each request in any unit, > 0; 1 where the file has no column ``size``.
    update
        Whether each request is an update.
    """

    source: str
    time: FloatArray
    clients: tuple[str, ...]
    client: IntArray
    keys: tuple[str, ...]
    key: IntArray
    group: IntArray | None
    size: FloatArray
    update: BoolArray

    @property
    def count(self) -> int:
        """Number of requests."""
        return len(self.time)


def read_trace(
    path: str | os.PathLike[str],
    *,
    clients: Sequence[str] | None = None,
    groups: int | None = None,
) -> RequestTrace:
    """Read a trace.

    Parameters
    ----------
    path
        CSV, TSV or Parquet with the columns ``time`` (ms, in any order), ``client``, and ``key`` or
        ``group`` (a whole number from 0); perhaps ``size`` and ``op`` ("read", "update" or
        "write"; all read where it is missing). Other columns are ignored.
    clients
        Names in the order wanted; a request of another client is refused. None: those of the file.
    groups
        Number of groups; a larger group is refused. None: any.

    Raises
    ------
    InputError
        Naming file, row and column: for a missing column, a time or size that is no number in
        range, an unknown client, group or operation.
    MissingDependencyError
        For Parquet without pyarrow.

    Notes
    -----
    O(n log n).
    """
    frame = read_frame(path, lambda header: tuple(name for name in header if name in _NAMES))
    if clients is None:
        names, client = frame.found("client")
    else:
        names, client = tuple(clients), frame.names("client", clients, "such client")
    time = frame.quantities("time", _TIME)
    group = _groups(frame, groups) if "group" in frame.columns else None
    if group is None:
        keys, key = frame.found("key")
    else:
        keys = tuple(map(str, range(int(group.max()) + 1 if groups is None else groups)))
        key = group
    size = np.ones(frame.rows)
    if "size" in frame.columns:
        size = frame.quantities("size", "a finite number > 0")
        _refuse_first(frame, size <= 0, "size", "a number > 0")
    update = np.zeros(frame.rows, dtype=np.bool_)
    if "op" in frame.columns:
        update = np.array(list(_UPDATES.values()))[
            frame.names("op", list(_UPDATES), "such operation")
        ]
    order = np.argsort(time, kind="stable")
    return RequestTrace(
        frame.source,
        time[order] - time[order[0]],
        names,
        client[order],
        keys,
        key[order],
        None if group is None else group[order],
        size[order],
        update[order],
    )


def _groups(frame: ColumnTable, groups: int | None) -> IntArray:
    most = np.inf if groups is None else groups - 1
    words = "a whole number >= 0" + ("" if groups is None else f" and <= {groups - 1}")
    values = frame.quantities("group", words)
    _refuse_first(frame, (values != np.floor(values)) | (values > most), "group", words)
    return values.astype(np.intp)


def _refuse_first(frame: ColumnTable, bad: BoolArray, column: str, expected: str) -> None:
    """Refuse the first row that is bad."""
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            "out of range",
            source=frame.at(row),
            field=column,
            value=frame.text(column, row),
            expected=expected,
        )
