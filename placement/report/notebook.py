"""Small HTML tables for notebooks, which show ``_repr_html_`` of the last value of a cell.

The tables carry no script, no style sheet and no link, and everything that comes from data is
escaped.
"""

from __future__ import annotations

from collections.abc import Iterable

from placement.report.charts.markup import clipped, tag

_LONGEST = 400
"""Most characters of a cell; names can be of any length."""


def facts_table(caption: str, rows: Iterable[tuple[str, str]]) -> str:
    """Return labels and values as an HTML table of two columns."""
    left = {"style": "text-align: left; overflow-wrap: anywhere"}
    body = [
        tag("tr", None, tag("th", left, name), tag("td", left, clipped(value, _LONGEST)))
        for name, value in rows
    ]
    return tag("table", None, tag("caption", left, caption), tag("tbody", None, body))
