"""Text in columns: widths of characters, numbers as text, aligned tables, blocks of a page."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = [
    "clip",
    "display_width",
    "escape",
    "facts",
    "number_text",
    "page_width",
    "section",
    "sentences",
    "spreadsheet_text",
    "table",
    "use_page_width",
    "wrap",
]


# The number of columns that text for people is laid out in

_USUAL = 80
_NARROWEST = 40
_WIDEST = 120

_columns: ContextVar[int] = ContextVar("page_width", default=_USUAL)


def page_width() -> int:
    """Return the columns of the page: 80, unless :func:`use_page_width` says otherwise.

    Examples
    --------
    >>> page_width()
    80
    """
    return _columns.get()


@contextmanager
def use_page_width(columns: int) -> Iterator[None]:
    """Lay text out in other columns, in this thread and until the block ends.

    Parameters
    ----------
    columns
        Columns of the terminal. A page has at least 40, since numbers are never cut, and at most
        120, since longer lines are hard to read.

    Examples
    --------
    >>> with use_page_width(100):
    ...     page_width()
    100
    """
    token = _columns.set(min(max(columns, _NARROWEST), _WIDEST))
    try:
        yield
    finally:
        _columns.reset(token)


# Characters, their widths in a terminal, and numbers as text

_LARGE = 1e15


def escape(text: str) -> str:
    r"""Show control, format and other invisible characters as escapes.

    Examples
    --------
    >>> print(escape("a\tb\x1b[31m"))
    a\tb\x1b[31m
    """
    return "".join(
        character.encode("unicode_escape").decode("ascii")
        if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
        else character
        for character in text
    )


def spreadsheet_text(text: str) -> str:
    r"""Return text for a cell of a table that people open with a spreadsheet program.

    Invisible characters are shown as escapes. An apostrophe stands in front of text that a
    spreadsheet program would compute as a formula.

    Examples
    --------
    >>> print(spreadsheet_text("=cmd|'/c calc'!A1"), spreadsheet_text("a‮b"))
    '=cmd|'/c calc'!A1 a‮b
    """
    shown = escape(text)
    return "'" + shown if shown.lstrip().startswith(("=", "+", "-", "@")) else shown


def display_width(text: str) -> int:
    """Columns that `text` takes in a terminal.

    Examples
    --------
    >>> display_width("東京"), display_width("São"), display_width("e\u0301")
    (4, 3, 1)
    """
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
    """Show a number with a fixed number of decimals and commas; NaN is a dash.

    Examples
    --------
    >>> number_text(12345.678), number_text(float("nan")), number_text(float("inf"))
    ('12,345.68', '–', '∞')
    """
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
    """Return an aligned table.

    Parameters
    ----------
    header
        Column names.
    rows
        Cells, escaped here.
    right
        Positions of the columns that are set flush right (numbers); these are never clipped.
    width
        Most columns; the widest text columns are clipped to fit, the first one last. None: those of
        the page.
    indent
        In front of every line.
    """
    cells = [[escape(cell) for cell in row] for row in (header, *rows)]
    widths = [max(map(display_width, column)) for column in zip(*cells, strict=True)]
    texts = [position for position in range(len(header)) if position not in right]
    room = (page_width() if width is None else width) - len(indent) - 2 * (len(header) - 1)
    while sum(widths) > room:
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


def facts(pairs: Sequence[tuple[str, str]]) -> str:
    """Return names and their texts in two columns, long texts wrapped."""
    return "\n".join(
        wrap(f"{name:<{LABEL}}{escape(text)}", indent=" " * LABEL) for name, text in pairs
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
