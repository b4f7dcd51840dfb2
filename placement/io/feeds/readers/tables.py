"""Tables of RTTs: long, percentiles, histograms, samples and square; CSV, TSV, Parquet, Markdown.

Columns are found by role (:mod:`placement.io.feeds.column_roles`), and cells may have units
(:mod:`placement.io.feeds.quantity_text`).
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Sequence

from placement.errors import InputError
from placement.io.feeds.column_roles import RTT_ROLES, guess_roles
from placement.io.feeds.merged import merge
from placement.io.feeds.pair_samples import table_of
from placement.io.feeds.quantity_text import clean_rtts, is_missing, unit_of_header
from placement.io.feeds.registry import Content, Feed, FeedRequest, RttReading
from placement.io.formats.column_reader import text_numbers
from placement.io.formats.tables import Table, check_row_length, check_unique
from placement.io.rtt_distributions import pairs_of, percentile_columns, percentile_rtts, weight_of
from placement.io.rtt_importers import LongColumns, long_rtts, square_rtts

__all__ = ["HISTOGRAM", "LONG", "MARKDOWN", "PERCENTILES", "SAMPLES", "SQUARE"]

_OPTION = "--columns"


def _is_table(content: Content) -> bool:
    return content.text is None or not (content.braced or _pipes(content.head))


def _roles(table: Table, request: FeedRequest) -> dict[str, str]:
    given = {role: name for role, name in request.columns.items() if role != "interval"}
    roles = guess_roles(table.columns, RTT_ROLES, given, table.source, _OPTION)
    rest = [name for name in table.columns if name not in roles.values()]
    if {"src", "dst"} <= set(roles) and "rtt" not in roles and len(rest) == 1:
        roles["rtt"] = rest[0]
    if "interval" in request.columns:
        roles["interval"] = request.columns["interval"]
    return roles


def _layout(content: Content) -> str:
    """Return the layout that the header of a table has; empty where the content is no table."""
    if not _is_table(content):
        return ""
    table = content.table
    try:
        roles = _roles(table, FeedRequest())
    except InputError:
        return "long"  # several columns fit a role: the reader says which
    if not {"src", "dst"} <= set(roles):
        return "square"
    if "rtt" not in table.columns and len(percentile_columns(table)) > 1:
        return "percentiles"
    if "rtt" in roles and weight_of(table) is not None:
        return "histogram"
    return "long" if "rtt" in roles else "square"


def _long(content: Content, request: FeedRequest) -> RttReading:
    return _long_table(content.table, request)


def _long_table(table: Table, request: FeedRequest) -> RttReading:
    roles = _needed(table, request)
    table, known, notes = _clean(table, [roles["rtt"]], request)
    columns = LongColumns(roles["src"], roles["dst"], roles["rtt"], roles.get("interval"))
    return RttReading(long_rtts(table, columns), None, known, (_said(roles), *notes))


def _needed(table: Table, request: FeedRequest) -> dict[str, str]:
    roles = _roles(table, request)
    for role in ("src", "dst", "rtt"):
        if role not in roles:
            raise InputError(
                f"no column for the {role}",
                source=table.source,
                field="header",
                value=", ".join(table.columns),
                expected=f"a column {role}, or {_OPTION} {role}=COLUMN",
            )
    return roles


def _said(roles: dict[str, str]) -> str:
    return "columns: " + ", ".join(f"{role} is {name!r}" for role, name in roles.items())


def _clean(
    table: Table, columns: Sequence[str], request: FeedRequest, *, header: str | None = None
) -> tuple[Table, bool, tuple[str, ...]]:
    """Return the table with RTTs in ms in some columns, whether the unit is known, and notes."""
    places = [table.columns.index(name) for name in columns]
    label = columns[0] if len(columns) == 1 else "rtt"
    told = request.unit or unit_of_header(label if header is None else header)
    if told in (None, "ms") and text_numbers(table, places).size:
        return table, told is not None, ()
    done = clean_rtts(
        [row[place] for row in table.rows for place in places],
        lambda i: table.at(i // len(places)),
        label,
        unit=request.unit,
        decimal=request.decimal,
        header=header,
    )
    rows = [list(row) for row in table.rows]
    for number, cell in enumerate(done.cells):
        row, column = divmod(number, len(places))
        rows[row][places[column]] = cell
    clean = dataclasses.replace(table, rows=tuple(map(tuple, rows)))
    return clean, done.unit_known, done.notes


def _renamed(table: Table, roles: dict[str, str]) -> Table:
    names = {roles[role]: role for role in ("src", "dst", "rtt") if role in roles}
    return dataclasses.replace(
        table, columns=tuple(names.get(name, name) for name in table.columns)
    )


def _percentiles(content: Content, request: FeedRequest) -> RttReading:
    roles = _roles(content.table, request)
    roles = {role: roles[role] for role in ("src", "dst") if role in roles}
    table = _renamed(content.table, roles)
    columns = [table.columns[place] for place in percentile_columns(table).values()]
    table, known, notes = _clean(table, columns, request) if columns else (table, False, ())
    known = known or any(name.endswith("_ms") for name in columns)
    return RttReading(percentile_rtts(table), pairs_of(table), known, (_said(roles), *notes))


def _bars(content: Content, request: FeedRequest) -> RttReading:
    roles = _needed(content.table, request)
    table, known, notes = _clean(content.table, [roles["rtt"]], request)
    table = _renamed(table, roles)
    pairs = pairs_of(table)
    means = {
        pair: math.fsum(v * w for v, w in zip(*curve, strict=True)) / math.fsum(curve[1])
        for pair, curve in pairs.pairs.items()
    }
    what = "means of the distributions"
    rtts = table_of(table.source, means, (f"RTTs were imported from {table.source}, {what}.",))
    return RttReading(
        rtts, pairs, known, (_said(roles), f"{len(means)} pairs; RTTs are {what}", *notes)
    )


def _square(content: Content, request: FeedRequest) -> RttReading:
    return _square_table(content.table, request)


def _square_table(table: Table, request: FeedRequest) -> RttReading:
    if request.columns:
        _needed(table, request)  # a user who names columns has a long table
    columns = table.columns[1:]
    if not columns or not table.rows:
        return RttReading(square_rtts(table))
    names = [row[0] for row in table.rows]
    if len(set(names)) < len(names) and len(set(table.columns) & set(names)) == 0:
        raise InputError(
            "neither a square table nor a long one whose columns are known by their names",
            source=table.source,
            field="header",
            value=", ".join(table.columns),
            expected=f"{_OPTION} src=COLUMN,dst=COLUMN,rtt=COLUMN",
        )
    done, known, notes = _clean(table, columns, request, header=table.columns[0])
    rtts = square_rtts(done)
    note = f"a square table, {len(rtts.sources)} × {len(rtts.destinations)}; rows wait for columns"
    return RttReading(rtts, None, known, (note, *notes))


# --- Markdown --------------------------------------------------------------------------------

# Each blank can be matched in one way only, so that a hostile line takes linear time.
_RULE = re.compile(r"\|?(?:[ \t]*:?-{2,}:?[ \t]*\|)*(?:[ \t]*:?-{2,}:?)?")
_LINK = re.compile(r"\[([^\[\]\n]*)\]\([^()\n]*\)")


def _pipes(text: str) -> bool:
    return any(line.lstrip().startswith("|") and _is_rule(line) for line in text.splitlines())


def _is_rule(line: str) -> bool:
    """Return whether a line separates the header of a Markdown table from its rows."""
    return "|" in line and "--" in line and _RULE.fullmatch(line.strip()) is not None


def _markdown(content: Content, request: FeedRequest) -> RttReading:
    found: list[RttReading] = []
    left_out = 0
    for table in _blocks(content):
        numbers = [cell for row in table.rows for cell in row[1:] if not is_missing(cell)]
        if not any(re.search(r"\d", str(cell)) for cell in numbers):
            left_out += 1
            continue
        roles = _roles(table, request)
        long = {"src", "dst", "rtt"} <= set(roles)
        found.append(_long_table(table, request) if long else _square_table(table, request))
    if not found:
        raise InputError(
            "no table of RTTs", source=content.source, field="table", expected="a Markdown table"
        )
    merged = merge(found)
    note = f"{len(found)} Markdown tables" + (f"; {left_out} without numbers" if left_out else "")
    return dataclasses.replace(merged, notes=(note, *merged.notes))


def _blocks(content: Content) -> list[Table]:
    lines = (content.text or "").splitlines()
    tables: list[Table] = []
    for i, line in enumerate(lines):
        if i == 0 or not _is_rule(line) or "|" not in lines[i - 1]:
            continue
        header = _row(lines[i - 1])
        rows, numbers = [], []
        for number, text in enumerate(lines[i + 1 :], i + 2):
            if not text.lstrip().startswith("|"):
                break
            cells = _row(text)
            check_row_length(cells, header, f"{content.source}, row {number}")
            rows.append(tuple(cells))
            numbers.append(number)
        check_unique(header, f"{content.source}, row {i}")
        tables.append(Table(content.source, tuple(header), tuple(rows), tuple(numbers)))
    return tables


def _row(line: str) -> list[str]:
    text = line.strip()
    text = text.removeprefix("|")
    text = text[:-1] if text.endswith("|") and not text.endswith("\\|") else text
    cells = re.split(r"(?<!\\)\|", text)
    return [
        _LINK.sub(r"\1", cell).replace("\\|", "|").strip().strip("*`").strip() for cell in cells
    ]


LONG = Feed(
    "long",
    "table with a row per pair",
    lambda content: _layout(content) == "long",
    _long,
    table=True,
)
PERCENTILES = Feed(
    "percentiles",
    "table with a row per pair and columns p50, p99, …",
    lambda content: _layout(content) == "percentiles",
    _percentiles,
    table=True,
)
HISTOGRAM = Feed(
    "histogram",
    "table with rows of RTT and count (or weight) per pair",
    lambda content: _layout(content) == "histogram",
    _bars,
    table=True,
)
SAMPLES = Feed(
    "samples",
    "table with a row per sample (only by --format)",
    lambda content: False,
    _bars,
    table=True,
)
SQUARE = Feed(
    "square",
    "table with a row per source and a column per destination",
    lambda content: _layout(content) == "square",
    _square,
    last=True,
    table=True,
)
MARKDOWN = Feed(
    "markdown",
    "Markdown tables, as clouds publish them",
    lambda content: _pipes(content.head),
    _markdown,
    table=True,
)
