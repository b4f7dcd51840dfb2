"""Demand from exports of databases and dashboards: SQL results, psql's tables, Grafana's CSV.

* rows with the columns client, operation and count under any usual names, or a column per
  operation;
* Grafana, wide: a column of times and one column per series;
* Grafana, long: series, time, value.

Rows of the same interval, client and operation are added up.
"""

from __future__ import annotations

import dataclasses
import math
import os
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from placement.errors import InputError, for_each, refused
from placement.io.demand_tables import DemandTable, demand_of
from placement.io.feeds.blocks import labels_of
from placement.io.feeds.headers import DEMAND_ROLES, check_given, the_column
from placement.io.feeds.quantity_text import Decimal, clean_counts, is_missing
from placement.io.feeds.registry import Content
from placement.io.formats.column_reader import ColumnTable
from placement.io.formats.tables import PARQUET, Cell, Table, name_cell, quantity_cell
from placement.model.operations import NAMED_OPERATIONS

_OPTION = "--count-columns"
_UNIT = re.compile(r"\s*[\d.,]+\s*\D.*")
_COUNT = "a finite number of operations >= 0"
_ANY = "*"
"""Name for every operation in a map, and for series without the label of an operation."""

_SQL = {
    "select": "strong_read",
    **dict.fromkeys(("insert", "update", "delete", "upsert", "merge", "replace"), "single_group"),
}
"""Operation of a statement of SQL, unless the user or the table says another."""

_Row = tuple[str, str, str, float]
"""Interval, client, operation, count."""


@dataclass(frozen=True, slots=True)
class DemandRequest:
    """Facts about a table of demand that the user told."""

    columns: Mapping[str, str] = field(default_factory=dict)  #: role -> column
    #: name in the table -> operation; `*` stands for every other name
    operations: Mapping[str, str] = field(default_factory=dict)
    clients: Mapping[str, str] = field(default_factory=dict)  #: name in the table -> client
    decimal: Decimal = "auto"


def is_standard(path: str | os.PathLike[str], request: DemandRequest) -> bool:
    """Return whether a table has the columns of the package, with plain numbers.

    Such a table may have millions of rows; :func:`placement.io.demand_tables.read_demand` reads it
    by column. A Parquet file without a request counts as one.
    """
    if request.columns or request.operations or request.clients or request.decimal != "auto":
        return False
    if Path(path).suffix.lower() in PARQUET:
        return True
    content = Content.of(path)
    if content.is_page or content.braced:
        return False
    head = content.head[: content.head.rfind("\n") + 1] or content.head
    (table,) = Content(content.source, head).blocks
    names = [name.strip().lower() for name in table.columns]
    if "client" not in names and "client" in _roles(table, {}):
        return False
    keys = ("database", "interval", "client", "operation")
    numbers = [i for i, name in enumerate(table.columns) if name not in keys]
    texts = [str(row[i]) for row in table.rows for i in numbers if isinstance(row[i], str)]
    plain = not any("," in text or _UNIT.fullmatch(text) for text in texts if len(text) <= 100)
    long = {"operation", "count"} & set(table.columns)
    if "operation" in table.columns:
        verb = table.column("operation")
        plain = plain and not any(str(row[verb]).strip().lower() in _SQL for row in table.rows)
    return names[0] not in ("time", "series") and plain and bool(long or not _words(table, numbers))


def _words(table: Table, columns: Sequence[int]) -> list[int]:
    """Return columns with a word such as SELECT, apart from columns named like an operation."""
    known = {kind.name for kind in NAMED_OPERATIONS}
    word = re.compile(r"\s*(?!inf|nan)[A-Za-z_][\w ./-]*", re.IGNORECASE)
    return [
        i
        for i in columns
        if table.columns[i] not in known
        and any(word.fullmatch(str(row[i])) and not is_missing(row[i]) for row in table.rows)
    ]


def _roles(table: Table, given: Mapping[str, str]) -> dict[str, str]:
    """Return role -> column for the roles that are given, or that exactly one column fits."""
    check_given(given, table.columns, table.source, _OPTION)
    found = dict(given)
    for role, names in DEMAND_ROLES.items():
        free = [name for name in table.columns if name not in found.values()]
        fitting = [name for name in free if name == names[0]] or [
            name for name in free if "_".join(re.findall(r"[^\W_]+", name.lower())) in names
        ]
        if role not in found and fitting:
            found[role] = str(the_column(fitting, role, table.source, _OPTION))
    return found


def read_demand_feed(path: str | os.PathLike[str], request: DemandRequest) -> DemandTable:
    """Read demand of any of the layouts; its notes say what was done.

    Refused, with file, row, column and value: a role with no column or several, a cell that is no
    count, a series without client or operation, an operation of the map that the table lacks.
    """
    content = Content.of(path)
    tables = content.blocks if content.tabular else []
    if len(tables) != 1 or not tables[0].rows:
        words = "no rows" if tables and not tables[0].rows else f"{len(tables)} tables"
        expected = "one table with a row per count: CSV, of psql, or JSON objects"
        raise InputError(words, source=content.source, expected=expected)
    (table,) = tables
    plain = [name.strip().lower() for name in table.columns]
    if set(plain) == {"series", "time", "value"} and not request.columns:
        series, time, value = (plain.index(name) for name in ("series", "time", "value"))
        rows, notes = _series_rows(table, series, time, value, request)
        notes = ["Grafana, a row per series and time", *notes]
    elif plain[0] == "time" and not request.columns and "client" not in _roles(table, {}):
        rows, notes = [], [f"Grafana, {len(plain) - 1} series as columns"]
        for column in range(1, len(plain)):
            more, said = _series_rows(table, -1, 0, column, request)
            rows.extend(more)
            notes.extend(said)
    else:
        rows, notes = _by_role(table, request)
    known = {operation for _, _, operation, _ in rows}
    for name in request.operations:
        if name != _ANY and name not in known:
            words = "no such operation in the demand"
            expected = "one of " + ", ".join(sorted(known))
            raise refused(table.source, "--operation", words, name, expected)
    other = request.operations.get(_ANY)
    preset = {name: _SQL[name.lower()] for name in sorted(known) if name.lower() in _SQL}
    operations = {**({} if other else preset), **request.operations}
    sums: dict[tuple[str, str, str], float] = defaultdict(float)
    for interval, client, operation, count in rows:
        kind = operations.get(operation, other or operation)
        sums[interval, request.clients.get(client, client), kind] += count
    first = 0 if any(interval for interval, *_ in rows) else 1
    done: list[tuple[Cell, ...]] = [(*key[first:], repr(count)) for key, count in sums.items()]
    columns = ("interval", "client", "operation", "count")[first:]
    said = [*dict.fromkeys(notes)]
    if len(done) < len(rows):
        said.append(f"{len(rows)} counts were added up to {len(done)}")
    if operations:
        named = (f"{name} is {operation}" for name, operation in operations.items())
        said.append("operations: " + ", ".join(named))
    clean = Table(table.source, columns, tuple(done), tuple(range(1, len(done) + 1)))
    demand = demand_of(ColumnTable.of(clean))
    return dataclasses.replace(demand, notes=(*said, *demand.notes))


def _counts(
    table: Table, column: int, request: DemandRequest, *, blank: bool
) -> tuple[list[float], list[str]]:
    """Return the counts of a column, 0 for a blank cell where it is allowed, and notes."""
    name = table.columns[column]
    clean = clean_counts(
        [row[column] for row in table.rows], table.at, name, decimal=request.decimal
    )
    gone = [blank and is_missing(cell) for cell in clean.cells]
    values = for_each(
        lambda i: 0.0 if gone[i] else quantity_cell(clean.cells[i], table.at(i), name, _COUNT),
        range(len(gone)),
        math.nan,
    )
    notes = [*clean.notes, *(["values are rates"] if clean.per_second else [])]
    if any(gone):
        notes.append(f"{sum(gone)} cells without a value count as 0 operations")
    return values, notes


def _by_role(table: Table, request: DemandRequest) -> tuple[list[_Row], list[str]]:
    roles = _roles(table, request.columns)
    place = {role: table.column(name) for role, name in roles.items()}
    long = "count" in roles and ("operation" in roles or _ANY in request.operations)
    wide = [place["count"]] if long else []
    if "client" in roles and not long:
        keys = {place[role] for role in ("client", "interval", "database") if role in place}
        wide = [i for i in range(len(table.columns)) if i not in keys]
        roles = {role: name for role, name in roles.items() if role in ("client", "interval")}
        words = [i for i in _words(table, wide) if table.columns[i] not in request.operations]
        if words:
            counts = [table.columns[i] for i in wide if i not in words]
            name = table.columns[words[0]]
            told = "a column of names, where counts are expected"
            expected = f"{_OPTION} operation={name},count={[*counts, 'COLUMN'][0]}"
            cell, expected = table.rows[0][words[0]], f"{expected}, or no such column"
            raise refused(table.at(0), name, told, cell, expected)
    if "client" not in roles or not wide:
        role = "count" if "client" in roles else "client"
        expected = f"a column {role}, or {_OPTION} {role}=COLUMN"
        raise refused(
            table.source, "header", f"no column for the {role}", ", ".join(table.columns), expected
        )
    notes = ["columns: " + ", ".join(f"{role} is {name!r}" for role, name in roles.items())]
    rows: list[_Row] = []
    for column in wide:
        values, said = _counts(table, column, request, blank=False)
        notes.extend(said)
        for i, cells in enumerate(table.rows):
            names = {"operation": _ANY if long else table.columns[column], "interval": ""}
            for role in roles.keys() - {"count"}:
                names[role] = name_cell(cells[place[role]], table.at(i), roles[role]).strip()
            rows.append((names["interval"], names["client"], names["operation"], values[i]))
    return rows, notes


def _series_rows(
    table: Table, series: int, time: int, value: int, request: DemandRequest
) -> tuple[list[_Row], list[str]]:
    """Return the rows of a column of values; `series` < 0: the header names the one series."""
    values, notes = _counts(table, value, request, blank=True)
    rows: list[_Row] = []
    ends = _series(table.columns[value], table.source, request) if series < 0 else None
    for i, cells in enumerate(table.rows):
        at = table.at(i)
        interval = name_cell(cells[time], at, table.columns[time])
        client, operation = ends or _series(name_cell(cells[series], at, "series"), at, request)
        rows.append((interval, client, operation, values[i]))
    return rows, notes


def _series(name: str, at: str, request: DemandRequest) -> tuple[str, str]:
    """Return client and operation of a series: labels in braces, or the client alone."""
    text = name.strip()
    client, operation = text, _ANY
    if text.endswith("}") and "{" in text:
        labels = labels_of(text[text.index("{") + 1 : -1], at)
        client = next((labels[k] for k in DEMAND_ROLES["client"] if k in labels), "")
        operation = next((labels[k] for k in DEMAND_ROLES["operation"] if k in labels), _ANY)
    lacks = "client" if not client.strip() else "operation"
    if lacks == "client" or (operation == _ANY and _ANY not in request.operations):
        expected = (
            'a label such as region="us-east"'
            if lacks == "client"
            else "a label such as op=\"read\", or --operation '*=strong_read'"
        )
        raise refused(at, "series", f"a series without a label for the {lacks}", name, expected)
    return client, operation
