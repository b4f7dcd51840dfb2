"""Columns of quantities as people and tools write them: units, thousands, decimal commas.

``12.63 ms``, ``1,234.5``, ``22,462``, ``0.12 s``. The decimal sign is decided once per column,
because one cell alone ("22,462") may mean two things.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from placement.errors import Gathered, refused
from placement.io.feeds.headers import UNITS, time_unit
from placement.io.formats.tables import Cell, is_blank
from placement.support.checks import LARGEST

Decimal = Literal["auto", "point", "comma"]
"""Decimal sign of the numbers in a text."""

_MULTIPLES = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "Mil": 1e6, "G": 1e9, "B": 1e9, "Bil": 1e9}
_PER_SECOND = re.compile(r"(?:[a-z]*/s(?:ec)?|[a-z]+ps|per second)", re.IGNORECASE)
_CELL = re.compile(r"([+-]?[\d.,]*\d(?:[.,](?!\d))?(?:[eE][+-]?\d+)?)\s*(\D.*)?", re.DOTALL)
_MOST_LIKELY_MS = 10_000.0
_NOTHING = re.compile(
    r"-{1,2}|[–—*]|n/a|na|nan|none|[(\[]?null[)\]]?|timeout|unreachable", re.IGNORECASE
)
_Part = tuple[str, str] | None  # number and unit of a text


@dataclass(frozen=True, eq=False)
class Cleaned:
    """A column of quantities that the table readers accept."""

    #: numbers; cells that are no number stay as they were, so that a reader can refuse them
    cells: tuple[Cell, ...]
    unit_known: bool = False  #: whether a unit stood in the header, in the cells or in the call
    per_second: bool = False  #: whether the cells are rates, such as `12 req/s`
    notes: tuple[str, ...] = ()  #: sentences for the user


def clean_rtts(
    cells: Sequence[Cell],
    at: Callable[[int], str],
    column: str,
    *,
    unit: str | None = None,
    decimal: Decimal = "auto",
    default: str | None = None,
) -> Cleaned:
    """Return a column of RTTs in milliseconds.

    `at` is the place of a row, for messages. `unit` is what the user said, and `default` what the
    header says, for cells that have none; without both they are milliseconds. An unknown unit,
    one that contradicts `unit`, and numbers such as ``1,234`` that may be thousands or fractions
    are refused.
    """
    told = unit or default
    parts = [_split(cell) for cell in cells]
    units = []
    gathered = Gathered()
    for row, part in enumerate(parts):
        found = time_unit(part[1]) if part and part[1] else told
        if part and part[1] and (found is None or unit not in (None, found)):
            several = re.match(r"[^\w\sµμ(\[]", part[1]) is not None
            unknown = "not one number" if several else "an unknown unit"
            words = unknown if found is None else f"another unit than {unit}"
            expected = "a number with ms, s, us or ns" if found is None else f"{unit}"
            gathered.add(refused(at(row), column, words, cells[row], expected))
        units.append(found)
    gathered.check()
    comma = _comma(parts, at, column, decimal, UNITS[told or "ms"], cells)
    values = tuple(
        _value(cell, part, comma, UNITS[found or "ms"])
        for cell, part, found in zip(cells, parts, units, strict=True)
    )
    used = {found for part, found in zip(parts, units, strict=True) if part and found}
    used |= {told} if told else set()
    notes = _notes(column, parts, comma)
    if used and used != {"ms"}:
        words = ", ".join(one for one in UNITS if one in used)
        notes.append(f"column {column!r}: {words} were converted to ms")
    return Cleaned(values, bool(used), notes=tuple(notes))


def clean_counts(
    cells: Sequence[Cell], at: Callable[[int], str], column: str, *, decimal: Decimal = "auto"
) -> Cleaned:
    """Return a column of counts or rates: ``22,462``, ``1.20 K``, ``35.2 req/s``.

    A cell with another word after its number is refused.
    """
    parts = [_split(cell) for cell in cells]
    factors: list[float] = []
    gathered = Gathered()
    rates: set[bool] = set()
    for row, part in enumerate(parts):
        words = part[1] if part else ""
        multiple, _, rest = words.partition(" ")
        if multiple not in _MULTIPLES:
            multiple, rest = "", words
        rate = bool(_PER_SECOND.fullmatch(rest.strip()))
        if rest.strip() and not rate and rest.strip().lower() not in ("ops", "req", "short"):
            expected = "a count such as 22,462 or 1.2 K, or a rate such as 35 req/s"
            gathered.add(refused(at(row), column, "a word after the number", cells[row], expected))
        rates |= {rate} if part is not None else set()
        factors.append(_MULTIPLES[multiple])
    gathered.check()
    comma = _comma(parts, at, column, decimal, None, cells)
    values = tuple(
        _value(cell, part, comma, factor)
        for cell, part, factor in zip(cells, parts, factors, strict=True)
    )
    return Cleaned(values, per_second=rates == {True}, notes=tuple(_notes(column, parts, comma)))


def is_missing(cell: Cell) -> bool:
    """Return whether a cell says that nothing was measured: blank, ``-``, ``n/a``, ``NaN``."""
    return is_blank(cell) or (
        isinstance(cell, str) and _NOTHING.fullmatch(cell.strip()) is not None
    )


def _split(cell: Cell) -> _Part:
    if not isinstance(cell, str) or len(cell) > 100:
        return None
    match = _CELL.fullmatch(cell.strip().replace("\u00a0", " ").replace("\u202f", " "))
    return (match[1], (match[2] or "").strip()) if match else None


def _value(cell: Cell, part: _Part, comma: bool, factor: float) -> Cell:
    if part is None:
        if isinstance(cell, int | float) and not isinstance(cell, bool):
            return cell * factor
        return "" if isinstance(cell, str) and is_missing(cell) else cell
    if factor == 1 and "," not in part[0] and not part[1]:
        return cell
    plain = part[0].replace(".", "").replace(",", ".") if comma else part[0].replace(",", "")
    try:
        value = float(plain) * factor
    except ValueError:
        return cell
    # A product such as 0.1 s · 1000 keeps the digits of the text.
    return float(f"{value:.15g}") if abs(value) <= LARGEST else value


def _comma(
    parts: Sequence[_Part],
    at: Callable[[int], str],
    column: str,
    decimal: Decimal,
    factor: float | None,
    cells: Sequence[Cell],
) -> bool:
    """Return whether the comma is the decimal sign; `factor` is None for counts."""
    if decimal != "auto":
        return decimal == "comma"
    first: dict[str, int] = {}  # what a cell shows -> its first row
    for row, part in enumerate(parts):
        number = part[0] if part else ""
        if "," not in number:
            shows = "point" if "." in number else ""
        elif "." in number:
            shows = "comma" if number.rfind(",") > number.rfind(".") else "point"
        elif number.count(",") > 1:
            shows = "point"
        else:
            thousands = re.fullmatch(r"[+-]?[1-9]\d{0,2},\d{3}", number)
            shows = "unclear" if thousands else "comma"
        first.setdefault(shows, row)
    if "point" in first and "comma" in first:
        point, comma = first["point"], first["comma"]
        words = "decimal points and decimal commas in one column"
        expected = (
            f"numbers such as {cells[point]!r} in {at(point).rpartition(', ')[2]}; "
            "--decimal comma or --decimal point decides"
        )
        raise refused(at(comma), column, words, cells[comma], expected)
    if {"comma", "point"} & set(first) or "unclear" not in first or factor is None:
        return "comma" in first
    largest = max(float(part[0].replace(",", "")) for part in parts if part and "," in part[0])
    if largest * factor > _MOST_LIKELY_MS:
        return True  # as thousands it would be a round trip of more than ten seconds
    words = "ambiguous: thousands or a fraction"
    expected = "--decimal comma for 1.234, --decimal point for 1234"
    raise refused(at(first["unclear"]), column, words, cells[first["unclear"]], expected)


def _notes(column: str, parts: Sequence[_Part], comma: bool) -> list[str]:
    meaning = "the decimal sign" if comma else "the separator of thousands"
    some = any(part and "," in part[0] for part in parts)
    return [f"column {column!r}: the comma is {meaning}"] if some else []
