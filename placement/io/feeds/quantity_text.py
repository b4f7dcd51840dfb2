"""Columns of quantities as people and tools write them: units, thousands, decimal commas.

``12.63 ms``, ``1,234.5``, ``22,462``, ``0.12 s``. The decimal sign is decided once per column,
because one cell alone ("22,462") may mean two things.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from placement.errors import InputError
from placement.io.formats.tables import Cell, is_blank
from placement.support.checks import LARGEST

__all__ = [
    "UNITS",
    "Cleaned",
    "Decimal",
    "clean_counts",
    "clean_rtts",
    "is_missing",
    "unit_of_header",
]

Decimal = Literal["auto", "point", "comma"]
"""Decimal sign of the numbers in a text."""

UNITS = {"ms": 1.0, "s": 1000.0, "us": 1e-3, "ns": 1e-6}
"""Unit -> milliseconds."""

_WORDS = {
    **dict.fromkeys(("ms", "msec", "msecs", "millis", "millisecond", "milliseconds"), "ms"),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("us", "µs", "μs", "usec", "microsecond", "microseconds"), "us"),
    **dict.fromkeys(("ns", "nsec", "nanos", "nanosecond", "nanoseconds"), "ns"),
}
_MULTIPLES = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "Mil": 1e6, "G": 1e9, "B": 1e9, "Bil": 1e9}
_PER_SECOND = re.compile(r"(?:[a-z]*/s(?:ec)?|[a-z]+ps|per second)", re.IGNORECASE)
_CELL = re.compile(r"([+-]?[\d.,]*\d(?:[.,](?!\d))?(?:[eE][+-]?\d+)?)\s*(\D.*)?", re.DOTALL)
_HEADER_UNIT = re.compile(r"(?:^|[\s_(\[/.-])([A-Za-zµμ]+)[)\]]?\s*$")
_MOST_LIKELY_MS = 10_000.0
_NOTHING = frozenset({"-", "–", "—", "n/a", "na", "nan", "null", "none", "*"})


@dataclass(frozen=True, eq=False)
class Cleaned:
    """A column of quantities that the table readers accept.

    Attributes
    ----------
    cells
        Numbers; cells that are no number stay as they were, so that a reader can refuse them.
    unit_known
        Whether a unit stood in the header, in the cells or in the call.
    per_second
        Whether the cells are rates, such as ``12 req/s``.
    notes
        Sentences for the user.
    """

    cells: tuple[Cell, ...]
    unit_known: bool = False
    per_second: bool = False
    notes: tuple[str, ...] = ()


def unit_of_header(name: str) -> str | None:
    """Return the unit at the end of a column's name: ``rtt_ms``, ``latency (s)``; else None."""
    match = _HEADER_UNIT.search(name.strip())
    return _WORDS.get(match[1].lower()) if match else None


def clean_rtts(
    cells: Sequence[Cell],
    at: Callable[[int], str],
    column: str,
    *,
    unit: str | None = None,
    decimal: Decimal = "auto",
    header: str | None = None,
) -> Cleaned:
    """Return a column of RTTs in milliseconds.

    Parameters
    ----------
    cells
        The column.
    at
        Place of a row, for messages.
    column
        Its name, for messages; its unit counts (:func:`unit_of_header`) unless `header` is given.
    unit
        Unit of the cells that have none; None: that of the header, else milliseconds.
    decimal
        Decimal sign; "auto": by the cells of the column.
    header
        Text with a unit for the whole column, where it is not `column`.

    Raises
    ------
    InputError
        For a cell with an unknown unit or one that contradicts `unit`, and for numbers such as
        ``1,234`` that may be thousands or fractions.
    """
    told = unit or unit_of_header(column if header is None else header)
    parts = [_split(cell) for cell in cells]
    units: set[str] = set()
    for row, part in enumerate(parts):
        if part is None or not part[1]:
            continue
        found = _WORDS.get(part[1].lower())
        if found is None or (unit is not None and found != unit):
            raise InputError(
                "an unknown unit" if found is None else f"another unit than {unit}",
                source=at(row),
                field=column,
                value=cells[row],
                expected="a number with ms, s, us or ns" if found is None else f"{unit}",
            )
        units.add(found)
    comma = _comma(parts, at, column, decimal, factor=UNITS[told or "ms"], cells=cells)
    values: list[Cell] = []
    for cell, part in zip(cells, parts, strict=True):
        factor = UNITS[_WORDS[part[1].lower()] if part and part[1] else told or "ms"]
        values.append(_value(cell, part, comma, factor))
    notes = _notes(column, parts, comma)
    used = sorted(({told} if told else set()) | units, key=list(UNITS).index)
    if used and used != ["ms"]:
        notes.append(f"column {column!r}: {', '.join(used)} were converted to ms")
    return Cleaned(tuple(values), bool(told or units), notes=tuple(notes))


def clean_counts(
    cells: Sequence[Cell], at: Callable[[int], str], column: str, *, decimal: Decimal = "auto"
) -> Cleaned:
    """Return a column of counts or rates: ``22,462``, ``1.20 K``, ``35.2 req/s``.

    Raises
    ------
    InputError
        For a cell with another word after its number.
    """
    parts = [_split(cell) for cell in cells]
    factors: list[float] = []
    rates: set[bool] = set()
    for row, part in enumerate(parts):
        words = part[1] if part else ""
        multiple, _, rest = words.partition(" ")
        if multiple not in _MULTIPLES:
            multiple, rest = "", words
        rate = bool(_PER_SECOND.fullmatch(rest.strip()))
        if rest.strip() and not rate and rest.strip().lower() not in ("ops", "req", "short"):
            raise InputError(
                "a word after the number",
                source=at(row),
                field=column,
                value=cells[row],
                expected="a count such as 22,462 or 1.2 K, or a rate such as 35 req/s",
            )
        if part is not None:
            rates.add(rate)
        factors.append(_MULTIPLES[multiple])
    comma = _comma(parts, at, column, decimal, factor=None, cells=cells)
    values = tuple(
        _value(cell, part, comma, factor)
        for cell, part, factor in zip(cells, parts, factors, strict=True)
    )
    return Cleaned(values, per_second=rates == {True}, notes=tuple(_notes(column, parts, comma)))


def _split(cell: Cell) -> tuple[str, str] | None:
    """Return number and unit of a text; None for anything that is no quantity."""
    if not isinstance(cell, str) or len(cell) > 100:
        return None
    match = _CELL.fullmatch(cell.strip().replace("\u00a0", " ").replace("\u202f", " "))
    return (match[1], (match[2] or "").strip()) if match else None


def _value(cell: Cell, part: tuple[str, str] | None, comma: bool, factor: float) -> Cell:
    if part is None:
        if isinstance(cell, int | float) and not isinstance(cell, bool):
            return cell * factor
        blank = isinstance(cell, str) and cell.strip().lower() in _NOTHING
        return "" if blank else cell
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
    parts: Sequence[tuple[str, str] | None],
    at: Callable[[int], str],
    column: str,
    decimal: Decimal,
    *,
    factor: float | None,
    cells: Sequence[Cell],
) -> bool:
    """Return whether the comma is the decimal sign; `factor` is None for counts."""
    if decimal != "auto":
        return decimal == "comma"
    point = comma = unclear = None
    for row, part in enumerate(parts):
        number = part[0] if part else ""
        if "," not in number:
            point = row if "." in number and point is None else point
        elif "." in number:
            if number.rfind(",") > number.rfind("."):
                comma = row if comma is None else comma
            else:
                point = row if point is None else point
        elif number.count(",") > 1:
            point = row if point is None else point
        elif not re.fullmatch(r"[+-]?[1-9]\d{0,2},\d{3}", number):
            comma = row if comma is None else comma
        else:
            unclear = row if unclear is None else unclear
    if point is not None and comma is not None:
        raise InputError(
            "decimal points and decimal commas in one column",
            source=at(comma),
            field=column,
            value=cells[comma],
            expected=f"numbers such as {cells[point]!r} in {at(point).rpartition(', ')[2]}; "
            "--decimal comma or --decimal point decides",
        )
    if comma is not None or point is not None or unclear is None or factor is None:
        return comma is not None
    largest = max(
        float(part[0].replace(",", "")) for part in parts if part and "," in part[0]
    )  # as thousands
    if largest * factor > _MOST_LIKELY_MS:
        return True  # as thousands it would be a round trip of more than ten seconds
    raise InputError(
        "ambiguous: thousands or a fraction",
        source=at(unclear),
        field=column,
        value=cells[unclear],
        expected="--decimal comma for 1.234, --decimal point for 1234",
    )


def _notes(column: str, parts: Sequence[tuple[str, str] | None], comma: bool) -> list[str]:
    commas = any(part and "," in part[0] for part in parts)
    if not commas:
        return []
    meaning = "the decimal sign" if comma else "the separator of thousands"
    return [f"column {column!r}: the comma is {meaning}"]


def is_missing(cell: Cell) -> bool:
    """Return whether a cell says that nothing was measured: blank, ``-``, ``n/a``, ``NaN``."""
    return is_blank(cell) or (isinstance(cell, str) and cell.strip().lower() in _NOTHING)
