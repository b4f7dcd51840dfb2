"""Demand from exports of databases and dashboards: SQL results, Grafana's CSV.

* rows with the columns client, operation and count under any usual names, or a column per
  operation;
* Grafana, wide: a column of times and one column per series;
* Grafana, long: series, time, value.

Rows of the same interval, client and operation are added up.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from placement.errors import InputError
from placement.io.feeds.column_roles import DEMAND_ROLES, guess_roles
from placement.io.feeds.quantity_text import Cleaned, Decimal, clean_counts, is_missing
from placement.io.feeds.registry import Content
from placement.io.formats.column_reader import ColumnTable
from placement.io.formats.document import read_text
from placement.io.formats.tables import Cell, Table, name_cell, quantity_cell

__all__ = ["DemandFeed", "DemandRequest", "is_standard", "read_demand_feed"]

_OPTION = "--count-columns"
_COUNT = "a finite number of operations >= 0"
_LABEL = re.compile(r'\s*([A-Za-z_]\w*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(?:,|$)')
_ANY = "*"
"""Name for every operation in a map, and for series without the label of an operation."""

_Key = tuple[str, str, str]
"""Interval, client, operation."""


@dataclass(frozen=True, slots=True)
class DemandRequest:
    """Facts about a table of demand that the user told.

    Attributes
    ----------
    columns
        Role -> column.
    operations
        Name in the table -> operation; ``*`` stands for every other name.
    clients
        Name in the table -> client.
    decimal
        Decimal sign.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    operations: Mapping[str, str] = field(default_factory=dict)
    clients: Mapping[str, str] = field(default_factory=dict)
    decimal: Decimal = "auto"


@dataclass(frozen=True, eq=False)
class DemandFeed:
    """A table of demand in the columns that :func:`placement.io.demand_tables.demand_of` reads.

    Attributes
    ----------
    frame
        Columns interval (where there are several), client, operation, count.
    notes
        Sentences that say what the reader did.
    """

    frame: ColumnTable
    notes: tuple[str, ...]


def is_standard(path: str | os.PathLike[str], request: DemandRequest) -> bool:
    """Return whether a table has the columns of the package, with plain numbers.

    Such a table may have millions of rows; :func:`placement.io.demand_tables.read_demand` reads it
    by column. A Parquet file without a request counts as one.
    """
    if request.columns or request.operations or request.clients or request.decimal != "auto":
        return False
    if Path(path).suffix.lower() in (".parquet", ".pq"):
        return True
    content = Content(os.fspath(path), read_text(path))
    head = content.head[: content.head.rfind("\n") + 1] or content.head
    table = Content(content.source, head).table
    if "client" not in table.columns and _client_column(table) is not None:
        return False
    if table.columns[0].strip().lower() in ("time", "series"):
        return False
    keys = ("database", "interval", "client", "operation")
    numbers = [i for i, name in enumerate(table.columns) if name not in keys]
    return all(
        "," not in str(row[i]) and _split_plain(row[i]) for row in table.rows for i in numbers
    )


def _split_plain(cell: Cell) -> bool:
    """Return whether a cell has no unit: a number, or a text that the careful reader refuses."""
    if not isinstance(cell, str) or len(cell) > 100:
        return True
    return re.fullmatch(r"\s*[\d.,]+\s*\D.*", cell) is None


def read_demand_feed(path: str | os.PathLike[str], request: DemandRequest) -> DemandFeed:
    """Read demand of any of the layouts.

    Raises
    ------
    InputError
        Naming file, row, column and value: for a role that no column or several columns fit, a
        count that is none, a series that does not tell its client or operation, and an operation of
        the map that the table does not have.
    """
    parquet = Path(path).suffix.lower() in (".parquet", ".pq")
    table = Content(os.fspath(path), None if parquet else read_text(path)).table
    if not table.rows:
        raise InputError("no rows", source=table.source, expected="a row per count")
    plain = [name.strip().lower() for name in table.columns]
    if set(plain) == {"series", "time", "value"} and not request.columns:
        rows, notes = _series_rows(table, plain, request)
    elif plain[0] == "time" and not request.columns and _client_column(table) is None:
        rows, notes = _series_columns(table, request)
    else:
        rows, notes = _by_role(table, request)
    return _added(table, rows, request, notes)


def _client_column(table: Table) -> str | None:
    return guess_roles(table.columns, DEMAND_ROLES, {}, table.source, _OPTION).get("client")


@dataclass(frozen=True, slots=True)
class _Row:
    interval: str
    client: str
    operation: str
    count: float


def _counts(
    table: Table, column: int, request: DemandRequest, *, blank: bool
) -> tuple[list[float | None], Cleaned]:
    """Return the counts of a column; None for a blank cell, where it is allowed."""
    name = table.columns[column]
    cells = [row[column] for row in table.rows]
    clean = clean_counts(cells, table.at, name, decimal=request.decimal)
    values: list[float | None] = []
    for i, cell in enumerate(clean.cells):
        missing = blank and is_missing(cell)
        values.append(None if missing else quantity_cell(cell, table.at(i), name, _COUNT))
    return values, clean


def _by_role(table: Table, request: DemandRequest) -> tuple[list[_Row], list[str]]:
    roles = guess_roles(table.columns, DEMAND_ROLES, request.columns, table.source, _OPTION)
    if "client" not in roles:
        raise InputError(
            "no column for the client",
            source=table.source,
            field="header",
            value=", ".join(table.columns),
            expected=f"a column client, or {_OPTION} client=COLUMN",
        )
    place = {role: table.column(name) for role, name in roles.items()}
    long = "count" in roles and ("operation" in roles or _ANY in request.operations)
    if long:
        wide: list[int] = [place["count"]]
    else:
        keys = {place[role] for role in ("client", "interval", "database") if role in place}
        wide = [i for i in range(len(table.columns)) if i not in keys]
        roles = {role: name for role, name in roles.items() if role in ("client", "interval")}
    if not wide:
        raise InputError(
            "no column of counts",
            source=table.source,
            field="header",
            value=", ".join(table.columns),
            expected=f"a column count, or {_OPTION} count=COLUMN",
        )
    notes = ["columns: " + ", ".join(f"{role} is {name!r}" for role, name in roles.items())]
    rows: list[_Row] = []
    for column in wide:
        counts, clean = _counts(table, column, request, blank=False)
        notes.extend(clean.notes)
        notes.extend(["values are rates"] if clean.per_second else [])
        for i, cells in enumerate(table.rows):
            at = table.at(i)
            operation = table.columns[column] if not long else _ANY
            if long and "operation" in place:
                operation = name_cell(cells[place["operation"]], at, roles["operation"]).strip()
            interval = ""
            if "interval" in place:
                interval = name_cell(cells[place["interval"]], at, roles["interval"])
            client = name_cell(cells[place["client"]], at, roles["client"]).strip()
            rows.append(_Row(interval, client, operation, counts[i] or 0.0))
    return rows, notes


def _series_columns(table: Table, request: DemandRequest) -> tuple[list[_Row], list[str]]:
    rows: list[_Row] = []
    notes = [f"Grafana, {len(table.columns) - 1} series as columns"]
    blanks = 0
    for column, name in enumerate(table.columns[1:], 1):
        client, operation = _series(name, table.source, request)
        counts, clean = _counts(table, column, request, blank=True)
        notes.extend(clean.notes)
        notes.extend(["values are rates"] if clean.per_second else [])
        for i, cells in enumerate(table.rows):
            value = counts[i]
            blanks += value is None
            interval = name_cell(cells[0], table.at(i), table.columns[0])
            rows.append(_Row(interval, client, operation, value or 0.0))
    if blanks:
        notes.append(f"{blanks} cells without a value count as 0 operations")
    return rows, notes


def _series_rows(
    table: Table, plain: Sequence[str], request: DemandRequest
) -> tuple[list[_Row], list[str]]:
    series, time, value = (plain.index(name) for name in ("series", "time", "value"))
    counts, clean = _counts(table, value, request, blank=True)
    rows: list[_Row] = []
    for i, cells in enumerate(table.rows):
        at = table.at(i)
        client, operation = _series(
            name_cell(cells[series], at, table.columns[series]), at, request
        )
        interval = name_cell(cells[time], at, table.columns[time])
        rows.append(_Row(interval, client, operation, counts[i] or 0.0))
    notes = ["Grafana, a row per series and time", *clean.notes]
    blanks = counts.count(None)
    if blanks:
        notes.append(f"{blanks} cells without a value count as 0 operations")
    return rows, [*notes, *(["values are rates"] if clean.per_second else [])]


def _series(name: str, at: str, request: DemandRequest) -> tuple[str, str]:
    """Return client and operation of a series: labels in braces, or the client alone."""
    text = name.strip()
    if text.endswith("}") and "{" in text:
        labels = _labels(text[text.index("{") + 1 : -1], at, name)
        client = next((labels[k] for k in DEMAND_ROLES["client"] if k in labels), "")
        operation = next((labels[k] for k in DEMAND_ROLES["operation"] if k in labels), _ANY)
    else:
        client, operation = text, _ANY
    if not client.strip():
        raise InputError(
            "a series without a label for the client",
            source=at,
            field="series",
            value=name,
            expected='a label such as region="us-east"',
        )
    if operation == _ANY and _ANY not in request.operations:
        raise InputError(
            "a series without a label for the operation",
            source=at,
            field="series",
            value=name,
            expected="a label such as op=\"read\", or --operation '*=strong_read'",
        )
    return client, operation


def _labels(text: str, at: str, name: str) -> dict[str, str]:
    found: dict[str, str] = {}
    place = 0
    while place < len(text):
        match = _LABEL.match(text, place)
        if match is None:
            raise InputError(
                "not labels", source=at, field="series", value=name, expected='{name="value", …}'
            )
        found[match[1]] = re.sub(r"\\(.)", r"\1", match[2])
        place = match.end()
    return found


def _added(
    table: Table, rows: Sequence[_Row], request: DemandRequest, notes: Sequence[str]
) -> DemandFeed:
    """Return the table of the sums, under the names of the model."""
    known = {row.operation for row in rows}
    for name in request.operations:
        if name != _ANY and name not in known:
            raise InputError(
                "no such operation in the demand",
                source=table.source,
                field="--operation",
                value=name,
                expected="one of " + ", ".join(sorted(known)),
            )
    other = request.operations.get(_ANY)
    sums: dict[_Key, float] = defaultdict(float)
    for row in rows:
        operation = request.operations.get(row.operation, other or row.operation)
        key = (row.interval, request.clients.get(row.client, row.client), operation)
        sums[key] += row.count
    timed = any(row.interval for row in rows)
    columns = (*(("interval",) if timed else ()), "client", "operation", "count")
    done: list[tuple[Cell, ...]] = [
        (*((key[0],) if timed else ()), key[1], key[2], repr(count)) for key, count in sums.items()
    ]
    numbers = tuple(range(1, len(done) + 1))
    said = [*dict.fromkeys(notes)]
    if len(done) < len(rows):
        said.append(f"{len(rows)} counts were added up to {len(done)}")
    if request.operations:
        pairs = ", ".join(
            f"{name} is {operation}" for name, operation in request.operations.items()
        )
        said.append(f"operations: {pairs}")
    clean = Table(table.source, columns, tuple(done), numbers)
    return DemandFeed(ColumnTable.of(clean), tuple(said))
