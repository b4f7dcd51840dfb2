"""Tables in a text: CSV, TSV, Markdown, HTML, the shells of SQL (aligned, boxed, expanded), JSON.

Readers of RTTs and of demand ask for
the tables of a file, whatever its form.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from placement.errors import refused
from placement.io.feeds.headers import read_header
from placement.io.formats.tables import Cell, Table, check_row_length, parse_csv, table_of_cells

_LABEL = re.compile(r'\s*([A-Za-z_]\w*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(?:,|$)\s*')

# Each blank can be matched in one way only, so that a hostile line takes linear time.
_RULE = re.compile(r"\|?(?:[ \t]*:?-+:?[ \t]*\|)*(?:[ \t]*:?-+:?)?")
_ALIGNED = re.compile(r"-+(?:\+-+)*")
_BORDER = re.compile(r"\+(?:[-=]+\+)+")
_RECORD = re.compile(r"(?:-\[ RECORD (\d+) \][-+]*|\*+ (\d+)\. row \*+)")
_ROWS = re.compile(r"\((\d+) rows?\)|(\d+) rows? in set.*")
_LINK = re.compile(r"!?\[([^\[\]\n]*)\]\([^()\n]*\)")


def is_page(text: str) -> bool:
    """Return whether a text has tables with rules or tags, in place of CSV."""
    lines = [line.strip() for line in text.splitlines()]
    return _is_html(text) or any(
        _BORDER.fullmatch(line) or _RECORD.fullmatch(line) or _is_rule(lines, place)
        for place, line in enumerate(lines)
    )


def _is_html(text: str) -> bool:
    return re.search(r"<table\b", text, re.IGNORECASE) is not None


def _is_rule(lines: Sequence[str], place: int) -> bool:
    """Return whether a line separates the header above it from rows: Markdown, or psql."""
    line = lines[place]
    if place == 0 or "-" not in line or not line.startswith(("|", "-", ":", "+")):
        return False
    if "|" in line:
        dashes = "--" in line or set(line) <= {"|", "-", ":"}
        return dashes and "|" in lines[place - 1] and _RULE.fullmatch(line) is not None
    aligned = _ALIGNED.fullmatch(line) is not None and len(line) > 2
    if not aligned or line.count("+") != lines[place - 1].count("|"):
        return False
    return "+" in line or (bool(lines[place - 1]) and any(map(_ROWS.fullmatch, lines[place:])))


def blocks_of(text: str, source: str) -> list[Table]:
    """Return the tables of a text in their order; refuse a table that is cut off."""
    read = _html if _is_html(text) else _ruled
    found = list(read(text, source)) if is_page(text[: 2**16]) else []
    delimiter = "\t" if Path(source).suffix.lower() == ".tsv" else None
    return found or [parse_csv(text, source, delimiter)]


def _block(
    source: str,
    header: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    numbers: Sequence[int],
    heading: str,
    form: str,
) -> Table:
    table = table_of_cells(source, header, rows, numbers)
    return replace(table, heading=heading, form=form)


def _ruled(text: str, source: str) -> Iterator[Table]:
    lines = text.splitlines()
    plain = [line.strip() for line in lines]
    heading = ""
    place = 0
    while place < len(lines):
        line = plain[place]
        if match := re.match(r"#{1,6}\s+(.*)", line):
            heading = match[1].strip("# *_")
        if _RECORD.fullmatch(line):
            block, place = _expanded(plain, place, source, heading)
            yield block
        elif _BORDER.fullmatch(line) and place + 2 < len(lines) and "|" in plain[place + 1]:
            header, place = place + 1, place + 2
            block, place = _rows(plain, header, place, source, heading, "sql")
            yield block
        elif _is_rule(plain, place):
            form = "markdown" if "|" in line else "sql"
            block, place = _rows(plain, place - 1, place, source, heading, form)
            yield block
        else:
            place += 1


def _rows(
    lines: Sequence[str], header: int, rule: int, source: str, heading: str, form: str
) -> tuple[Table, int]:
    """Return the table whose header and rule are given, and the line after it."""
    names = _cells(lines[header], form)
    rows, numbers = [], []
    place = rule + 1
    while place < len(lines):
        line = lines[place]
        count = _ROWS.fullmatch(line)
        if count or not line or (form == "markdown" and "|" not in line):
            break
        if not _BORDER.fullmatch(line):
            rows.append(_cells(line, form))
            numbers.append(place + 1)
        elif not lines[place + 1 : place + 2] or "|" not in lines[place + 1]:
            place += 1
            break
        place += 1
    told = next(filter(None, map(_ROWS.fullmatch, lines[place : place + 1])), None)
    if told is not None and int(told[1] or told[2]) != len(rows):
        words = "a table that is cut off"
        expected = f"{told[1] or told[2]} rows, as the last line says"
        raise refused(f"{source}, row {place + 1}", "rows", words, len(rows), expected)
    return _block(source, names, rows, numbers, heading, form), place


def _expanded(lines: Sequence[str], place: int, source: str, heading: str) -> tuple[Table, int]:
    """Return the table of psql's expanded form, a line for each cell."""
    found: list[tuple[int, dict[str, str]]] = []
    while place < len(lines) and lines[place]:
        line = lines[place]
        if _RECORD.fullmatch(line):
            found.append((place + 1, {}))
        elif match := re.match(r"([^|:]+?)\s*[|:]\s?(.*)", line):
            found[-1][1][match[1]] = match[2].strip()
        elif not _ROWS.fullmatch(line):
            break
        place += 1
    names = list(found[0][1]) or [""]
    for number, record in found:
        check_row_length(list(record), names, f"{source}, row {number}")
    rows = [[record.get(name, "") for name in names] for _, record in found]
    numbers = [number for number, _ in found]
    return _block(source, names, rows, numbers, heading, "sql"), max(place, found[0][0])


def _cells(line: str, form: str) -> list[str]:
    text = line.strip()
    if form == "markdown" or (text.startswith("|") and text.endswith("|")):
        text = text.removeprefix("|")
        text = text[:-1] if text.endswith("|") and not text.endswith("\\|") else text
    cells = re.split(r"(?<!\\)\|", text) if form == "markdown" else text.split("|")
    if form == "sql":
        return [cell.strip() for cell in cells]
    return [_words(_LINK.sub(r"\1", cell).replace("\\|", "|")) for cell in cells]


def _words(text: str) -> str:
    """Return the text of a cell of a page, without tags, marks and footnotes."""
    text = html.unescape(re.sub(r"<[^<>]{0,200}>", " ", text)).strip().strip("*`").strip()
    return re.sub(r"\s+", " ", text)


def _html(text: str, source: str) -> Iterator[Table]:
    """Yield the tables of a page; each row has the number of its line."""
    before, *parts = re.split(r"(?i)<table\b[^<>]*>", text)
    line = 1 + before.count("\n")
    for part in parts:
        titles = re.findall(r"(?i)<(?:h[1-6]|caption)\b[^<>]*>([^<]*)", before)
        body = re.split(r"(?i)</table", part, maxsplit=1)[0]
        first, *rows = re.split(r"(?i)<tr\b[^<>]*>", body)
        at, found = line + first.count("\n"), []
        for row in rows:
            cells = re.split(r"(?i)<t[dh]\b[^<>]*>", row)[1:]
            found.append(([_words(cell) for cell in cells], at))
            at += row.count("\n")
        filled = [one for one in found if one[0]]
        if len(filled) > 1:
            (names, _), *rest = filled
            block = [cells for cells, _ in rest], [place for _, place in rest]
            yield _block(source, names, *block, _words(titles[-1]) if titles else "", "html")
        before, line = part, line + part.count("\n")


# --- JSON ------------------------------------------------------------------------------------
#
# Records [{"from": …, "to": …, "ms": …}, …], or values by place in objects by place; and either in
# an object whose other values (a unit, a metric) hold for every row.

_WRAPPERS = (
    "body data entries items links list matrix pairs paths payload records response result results "
    "rows series values"
)


def json_table(value: object, source: str, *, by_place: bool = False) -> Table | None:
    """Return a JSON value as a table; None where it has no rows.

    A quantity ``{"value": 12, "unit": "ms"}`` is the cell ``12 ms``; a name over a table, such as
    ``rtt_us``, is the name of its values. `by_place` says that the value holds values by place.
    """
    above: dict[str, Cell] = {}
    name = "rtt"
    while isinstance(value, dict) and not (by_place or _is_by_place(value)):
        inner: dict[str, Cell] = {
            key: one for key, one in value.items() if isinstance(one, dict | list)
        }
        inner = (_square_of(inner) if len(inner) == 2 else None) or inner
        ends = {end for key in value if (end := read_header(key).end)}
        if len(inner) == 1 and "report" not in value:
            above |= {key: one for key, one in value.items() if isinstance(one, str)}
            ((key, value),) = inner.items()
            name = name if key.lower() in _WRAPPERS.split() else key
        elif ends and not inner:
            value = [value]
        elif len(inner) == len(value) > 1 and all(isinstance(one, list) for one in inner.values()):
            value = [{"from": key, "to": one} for key, one in inner.items()]
        else:
            return None
    rows = list(_json_rows(value, name))
    columns = tuple(dict.fromkeys(key for _, row in rows for key in row))
    extra = {key: one for key, one in above.items() if key not in columns}
    cells = [(*(row.get(key) for key in columns), *extra.values()) for _, row in rows]
    nested = isinstance(value, dict)
    deep = any(isinstance(cell, dict | list) for row in cells for cell in row)
    if not columns or (deep and not nested):
        return None
    return Table(
        source,
        (*columns, *extra),
        tuple(cells),
        tuple(range(1, len(rows) + 1)),
        form="nested" if nested else "json",
        places=tuple(place for place, _ in rows) if any(place for place, _ in rows) else (),
    )


def _is_by_place(value: dict[str, object]) -> bool:
    """Return whether the values of an object are objects by place, some of them its own keys."""
    ends = {end for row in value.values() if isinstance(row, dict) for end in row}
    return bool(ends & set(value)) and all(isinstance(row, dict) for row in value.values())


def _square_of(inner: dict[str, Cell]) -> dict[str, Cell] | None:
    """Return names and a square of values as values by place."""
    for key, rows in inner.items():
        (names,) = (one for other, one in inner.items() if other != key)
        if not (isinstance(names, list) and isinstance(rows, list) and len(rows) == len(names)):
            continue
        whole = all(isinstance(row, list) and len(row) == len(names) for row in rows)
        if whole and all(isinstance(name, str) for name in names):
            told = (dict(zip(names, row, strict=True)) for row in rows)
            return {key: dict(zip(names, told, strict=True))}
    return None


def _json_rows(value: object, name: str) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield place and cells of each row; several samples of a pair are several rows."""
    if isinstance(value, dict):
        for start, row in value.items():
            for end, told in row.items() if isinstance(row, dict) else ():
                for cell in map(_plain, told if isinstance(told, list) else [told]):
                    cells = cell if isinstance(cell, dict) else {name: cell}
                    if any(one is not None for one in cells.values()):
                        yield f"{start}.{end}", {"from": start, "to": end, **cells}
    elif isinstance(value, list) and all(isinstance(one, dict) for one in value):
        for number, one in enumerate(value, 1):
            lists = [key for key, told in one.items() if isinstance(told, list)]
            told = one[lists[0]] if len(lists) == 1 else []
            own = {key: _plain(cell) for key, cell in one.items() if key not in lists}
            if told and all(isinstance(row, dict) for row in told):
                for place, row in enumerate(told):
                    cells = {key: _plain(cell) for key, cell in row.items()}
                    yield f"[{number - 1}].{lists[0]}[{place}]", {**own, **cells}
            else:
                yield "", {**own, **{key: one[key] for key in lists}}


def _plain(cell: object) -> object:
    """Return a quantity with its unit as a text, also one in an object of several."""
    if not isinstance(cell, dict):
        return cell
    unit = cell.get("unit", cell.get("units"))
    if isinstance(unit, str) and len(cell) == 2 and "value" in cell:
        return None if cell["value"] is None else f"{cell['value']} {unit}"
    return {key: _plain(one) for key, one in cell.items()}


def labels_of(text: str, place: str) -> dict[str, str]:
    """Return labels such as ``region="fra", op="read"``: name -> value; `place` names their row."""
    found: dict[str, str] = {}
    at = 0
    while at < len(text.rstrip()):
        match = _LABEL.match(text, at)
        if match is None:
            raise refused(place, "series", "not labels", text[at:], 'name="value", …')
        found[match[1]] = re.sub(r"\\(.)", lambda m: {"n": "\n"}.get(m[1], m[1]), match[2])
        at = match.end()
    return found
