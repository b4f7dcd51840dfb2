"""Characters, their widths in a terminal, and numbers as text."""

from __future__ import annotations

import math
import unicodedata

from placement.text.page_width import page_width

__all__ = ["clip", "display_width", "escape", "number_text", "spreadsheet_text", "wrap"]

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

    Without a width, the lines are those of the page (:func:`placement.text.page_width`).
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
