"""Aligned tables, and the blocks that a page of text is made of."""

from __future__ import annotations

from collections.abc import Sequence

from placement.text.characters import clip, display_width, escape, wrap
from placement.text.page_width import page_width

__all__ = ["facts", "section", "sentences", "table"]

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
