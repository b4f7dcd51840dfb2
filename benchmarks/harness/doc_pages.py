"""Tables of pages of the documentation, and their place on a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

__all__ = ["markdown_table", "put_between"]


def markdown_table(
    heads: Sequence[str], rows: Iterable[Iterable[object]], rule: str = "---"
) -> str:
    """Return a table as Markdown, without an end of the last line.

    Parameters
    ----------
    heads
        Names of the columns.
    rows
        Cells in the order of `heads`; a bar within a cell must be escaped.
    rule
        Text of each cell of the line below the names.
    """
    lines = [f"| {' | '.join(heads)} |", f"|{rule}" * len(heads) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(map(str, row))} |" for row in rows)])


def put_between(page: Path, begin: str, end: str, text: str) -> None:
    """Replace what stands on a page between a mark, which occurs once, and the next end mark."""
    before, rest = page.read_text(encoding="utf-8").split(begin)
    after = rest.split(end, maxsplit=1)[1]
    page.write_text(f"{before}{begin}{text}\n{end}{after}", encoding="utf-8")
