r"""Text in columns: widths of characters, numbers as text, aligned tables, blocks of a page.

Widths are those of a terminal: East Asian wide characters take two columns, combining marks none.
Control characters in names are shown escaped, so that no name can move the cursor.

>>> print(escape("a\tb\x1b[31m"), spreadsheet_text("=cmd|'/c calc'!A1"))
a\tb\x1b[31m '=cmd|'/c calc'!A1
>>> display_width("東京"), display_width("São"), display_width("e\u0301")
(4, 3, 1)
>>> number_text(12345.678), number_text(float("nan")), number_text(float("inf"))
('12,345.68', '–', '∞')
"""

from __future__ import annotations

import csv
import io
import math
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

# The number of columns that text for people is laid out in

_USUAL = 80
_NARROWEST = 40
_WIDEST = 120

_columns: ContextVar[int] = ContextVar("page_width", default=_USUAL)
_whole: ContextVar[bool] = ContextVar("whole_tables", default=False)


def page_width() -> int:
    """Return the columns of the page: 80, unless :func:`use_page_width` says otherwise."""
    return _columns.get()


@contextmanager
def use_page_width(columns: int, *, whole: bool = False) -> Iterator[None]:
    """Lay text out in other columns, in this thread and until the block ends.

    At least 40, since numbers are never cut, and at most 120, since longer lines are hard to read.
    With `whole`, tables have no limit.
    """
    tokens = _columns.set(min(max(columns, _NARROWEST), _WIDEST)), _whole.set(whole)
    try:
        yield
    finally:
        _columns.reset(tokens[0])
        _whole.reset(tokens[1])


# Tables as CSV in place of text

_kept: ContextVar[list[str] | None] = ContextVar("csv_tables", default=None)


@contextmanager
def csv_tables() -> Iterator[list[str]]:
    """Give a list that gets each table that is laid out inside, as CSV with whole numbers."""
    kept: list[str] = []
    token = _kept.set(kept)
    try:
        yield kept
    finally:
        _kept.reset(token)


def makes_csv() -> bool:
    """Return whether tables are made as CSV, inside :func:`csv_tables`."""
    return _kept.get() is not None


def laid_out(header: Sequence[str], rows: Sequence[Sequence[str]], text: str) -> str:
    """Return the text of a table that is laid out; inside :func:`csv_tables` it is kept there."""
    kept = _kept.get()
    if kept is not None:
        kept.append(csv_text(header, rows))
    return text


def keep_table(text: str) -> None:
    """Keep a table in place of those before it, inside :func:`csv_tables`."""
    kept = _kept.get()
    if kept is not None:
        kept[:] = [text]


def csv_text(header: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """Return a table as CSV: lists joined by ``;``, what does not exist empty.

    Text is safe to open with a spreadsheet program: no formula, no invisible characters.
    """

    def cell(value: object) -> object:
        value = "; ".join(value) if isinstance(value, tuple) else value
        if isinstance(value, str):
            return spreadsheet_text(value)
        return None if value != value or value == "–" else value

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([cell(str(name)) for name in header])
    writer.writerows([cell(value) for value in row] for row in rows)
    return text.getvalue()


# Characters, their widths in a terminal, and numbers as text

_LARGE = 1e15


def escape(text: str) -> str:
    """Show control, format and other invisible characters as escapes."""
    return "".join(
        character.encode("unicode_escape").decode("ascii")
        if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
        else character
        for character in text
    )


def spreadsheet_text(text: str) -> str:
    """Return text for a cell of a table that people open with a spreadsheet program.

    An apostrophe stands in front of text that such a program would compute as a formula.
    """
    shown = escape(text)
    return "'" + shown if shown.lstrip().startswith(("=", "+", "-", "@")) else shown


def display_width(text: str) -> int:
    """Return the columns that `text` takes in a terminal."""
    return sum(map(_character_width, text))


def _character_width(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def clip(text: str, width: int) -> str:
    """Return `text` in at most `width` columns, the last of them an ellipsis when it is cut."""
    if display_width(text) <= width:
        return text
    kept, used = [], 0
    for character in text:
        used += _character_width(character)
        if used > width - 1:
            break
        kept.append(character)
    return "".join(kept) + "…"


def wrap(text: str, width: int | None = None, indent: str = "") -> str:
    """Break `text` at blanks into lines of at most `width` columns; later lines are indented.

    Without a width, the lines are those of the page (:func:`placement.text.text_tables`).
    """
    width = page_width() if width is None else width
    lines: list[str] = []
    first, *rest = text.split(" ")
    line = first
    for word in rest:
        longer = f"{line} {word}"
        room = width - (display_width(indent) if lines else 0)
        if display_width(longer) > room:
            lines.append(line)
            line = word
        else:
            line = longer
    lines.append(line)
    return f"\n{indent}".join(lines)


def number_text(value: float, digits: int = 2) -> str:
    """Show a number with some decimals and commas; NaN is a dash. In CSV it is whole."""
    if makes_csv():
        return "" if math.isnan(value) else repr(float(value))
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    # beyond that the digits are noise, and columns of them burst every table
    return f"{value:.6g}" if abs(value) >= _LARGE else f"{value:,.{digits}f}"


LABEL = 13
"""Columns of the name of a fact."""

_LEAST_CLIPPED = 8
"""Columns that a clipped text keeps."""


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[int] = (),
    width: int | None = None,
    indent: str = "",
) -> str:
    """Return an aligned table of cells, escaped here; inside :func:`csv_tables` it is kept as CSV.

    The columns at the positions `right` are set flush right (numbers) and never clipped. The widest
    text columns are clipped to fit the `width`, the first one last; None: that of the page, or no
    limit where its tables are whole (:func:`use_page_width`).
    """
    if makes_csv():
        return laid_out(header, rows, "")
    cells = [[escape(cell) for cell in row] for row in (header, *rows)]
    widths = [max(map(display_width, column)) for column in zip(*cells, strict=True)]
    texts = [position for position in range(len(header)) if position not in right]
    room = (page_width() if width is None else width) - len(indent) - 2 * (len(header) - 1)
    while sum(widths) > room and not (width is None and _whole.get()):
        long = [position for position in texts if widths[position] > _LEAST_CLIPPED]
        if not long:
            break
        # the first cell names the row: it is clipped last
        widest = max(long, key=lambda position: (position > 0, widths[position]))
        widths[widest] -= 1
    lines = []
    for row in cells:
        parts = []
        for position, cell in enumerate(row):
            shown = clip(cell, widths[position])
            blank = " " * (widths[position] - display_width(shown))
            parts.append(blank + shown if position in right else shown + blank)
        lines.append((indent + "  ".join(parts)).rstrip())
    return "\n".join(lines)


def facts(pairs: Sequence[tuple[str, str]], *, header: Sequence[str] = ()) -> str:
    """Return names and their texts in two columns, long texts wrapped.

    With the names of the two columns, they are a table too (:func:`csv_tables`).
    """
    if header:
        laid_out(header, pairs, "")
    width = max(display_width(name) + 2 for name, _ in pairs) if header else LABEL
    return "\n".join(
        wrap(f"{name:<{width}}{escape(text)}", indent=" " * width) for name, text in pairs
    )


def section(title: str, body: str) -> str:
    """Return a body under its title."""
    return f"{title}\n{body}"


def sentences(title: str, lines: Sequence[str]) -> list[str]:
    """Return the section of some sentences, wrapped; no section when there are none."""
    if not lines:
        return []
    return [
        section(
            title, "\n".join("  " + wrap(escape(s), page_width() - 2, indent="    ") for s in lines)
        )
    ]


# Tables of values, for a text and a page alike


@dataclass(frozen=True, slots=True)
class ValueColumn:
    """A column of a table of values."""

    name: str  #: the heading
    decimals: int | None = None  #: decimals of the numbers; None: the column holds text
    beyond: str = "∞"  #: text in place of an infinite number
    unit: str = ""  #: unit behind each number of a text, and in the heading of a page: "%"
    signed: bool = False  #: whether a text shows the sign of positive numbers


@dataclass(frozen=True, slots=True)
class ValueTable:
    """A table of values with its title."""

    title: str  #: the subject of the table
    columns: tuple[ValueColumn, ...]  #: the headings and formats
    rows: tuple[tuple[str | float, ...], ...]  #: each cell a text or a number as its column says
    chosen: int | None = None  #: position of the row that belongs to the plan; None: no row does
