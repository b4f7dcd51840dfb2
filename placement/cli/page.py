"""Pages for people: as wide as the terminal, with colours where it shows them."""

from __future__ import annotations

import os
import re
import shutil
import sys
from contextlib import AbstractContextManager
from typing import TextIO

from placement.text.text_tables import use_page_width

__all__ = ["paint", "print_label", "print_page", "shows_colours", "use_terminal_width"]

_BOLD, _RED, _GREEN, _YELLOW = "1", "31", "32", "33"
_COLOURS = {
    "optimal": _GREEN,
    "proved": _GREEN,
    "feasible": _YELLOW,
    "unknown": _YELLOW,
    "refused": _YELLOW,
    "nothing found": _YELLOW,
    "warning": _YELLOW,
    "infeasible": _RED,
    "failed": _RED,
    "not proved": _RED,
    "evaluated, but it breaks constraints": _RED,
    "error": _RED,
}

_TITLE = re.compile(r"(?:(?<=\n\n)|(?<=\A\n))\S[^\n]*(?=\n  )")
"""First line of a section: after a blank line, before an indented one."""
_WORD = re.compile(
    r"^(?P<before>(?:Answer +|.*?  )?)"
    rf"(?P<word>{'|'.join(sorted(_COLOURS, key=len, reverse=True))})"
    r"(?=[:;,]| \(|  |$)",
    re.MULTILINE,
)
"""First status of a line: the verdict of a plan, a cell of a table, the label of a message."""


def use_terminal_width() -> AbstractContextManager[None]:
    """Lay text out as wide as the terminal (or ``COLUMNS``); in 80 columns without a terminal."""
    return use_page_width(shutil.get_terminal_size((80, 24)).columns)


def shows_colours(stream: TextIO) -> bool:
    """Return whether a stream is a terminal with colours, and the user did not set ``NO_COLOR``."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not stream.isatty():
        return False
    return sys.platform != "win32" or "WT_SESSION" in os.environ


def paint(text: str) -> str:
    r"""Return a page with titles in bold and statuses in their colours.

    The width of the page stays: escape sequences take no columns.

    Examples
    --------
    >>> paint("proved: it is\n\nReplicas\n  ams  leader")
    '\x1b[32mproved\x1b[0m: it is\n\n\x1b[1mReplicas\x1b[0m\n  ams  leader'
    """
    text = _TITLE.sub(lambda found: _painted(found[0], _BOLD), text)
    return _WORD.sub(
        lambda found: found["before"] + _painted(found["word"], _COLOURS[found["word"]]), text
    )


def print_page(text: str) -> None:
    """Print text for people on stdout, painted where the terminal shows colours."""
    print(paint(text) if shows_colours(sys.stdout) else text)


def print_label(label: str, message: str) -> None:
    """Print ``label: message`` on stderr, the label in its colour where the terminal shows it."""
    shown = _painted(label, f"{_BOLD};{_COLOURS[label]}") if shows_colours(sys.stderr) else label
    print(f"{shown}: {message}", file=sys.stderr)


def _painted(text: str, style: str) -> str:
    return f"\x1b[{style}m{text}\x1b[0m"
