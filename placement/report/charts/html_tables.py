"""Parts of a page as HTML: sections, facts, lists of reasons, and sortable tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from placement.report.charts.markup import Child, Markup, join, tag
from placement.text.text_tables import ValueTable

_WORDY = 40
"""Letters from which a cell gets room, so that a phone scrolls instead of stacking words."""

_LONG = 40
"""Rows after which a table is folded until asked for (by the script; without it all are shown)."""


TableRow: TypeAlias = Mapping[str, "str | float | None"]
"""Heading -> cell of a row: text, or a number; NaN and None are a dash, infinity is ∞."""


def data_table(
    caption: str,
    rows: Sequence[TableRow],
    *,
    digits: int = 2,
    mark: Sequence[int] = (),
    sortable: bool = True,
) -> Markup:
    """Build a table from rows with the same headings; the caption also names the box that scrolls.

    A column without text holds numbers, which are shown with `digits` decimals unless whole, and
    sorted by value. Rows at the positions `mark` stand out. The headings of a `sortable` table are
    buttons, which the script of the page makes sort.
    """
    heads = list(rows[0]) if rows else []
    numbers = {head for head in heads if not any(isinstance(row[head], str) for row in rows)}
    named = next((name for name in heads if name not in numbers), "")
    head = tag(
        "tr",
        None,
        [
            tag(
                "th",
                {"scope": "col", "class": "number" if name in numbers else None},
                tag("button", {"type": "button", "class": "sort"}, name) if sortable else name,
            )
            for name in heads
        ],
    )
    body: list[Child] = []
    for position, row in enumerate(rows):
        cells: list[Child] = []
        for column, value in row.items():
            name = "th" if column == named else "td"
            attributes: dict[str, str | float | None] = {"scope": "row"} if name == "th" else {}
            if isinstance(value, str):
                attributes["class"] = "wordy" if len(value) > _WORDY else None
                cells.append(tag(name, attributes, tag("bdi", None, value)))
            else:
                number = math.nan if value is None else float(value)
                attributes |= {"class": "number", "data-value": _key(number)}
                cells.append(tag(name, attributes, _shown(number, digits)))
        body.append(tag("tr", {"class": "marked" if position in set(mark) else None}, cells))
    return tag(
        "div",
        {
            "class": "table-box long" if len(rows) > _LONG else "table-box",
            "role": "region",
            "aria-label": caption,
            "tabindex": "0",
        },
        tag(
            "table",
            {"class": "sortable" if sortable else None},
            tag("caption", None, caption),
            tag("thead", None, head),
            tag("tbody", None, body),
        ),
    )


def value_table(values: ValueTable, *, sortable: bool = True) -> Markup:
    """Build a table of values; a heading has its unit, and a number the decimals of its column."""
    heads = [
        ", ".join(filter(None, (column.name[:1].upper() + column.name[1:], column.unit)))
        or "Remark"
        for column in values.columns
    ]
    rows = [dict(zip(heads, row, strict=True)) for row in values.rows]
    mark = () if values.chosen is None else (values.chosen,)
    return data_table(values.title, rows, mark=mark, sortable=sortable)


def _key(value: float) -> str:
    """Sorting key: what is not known comes last."""
    if math.isnan(value):
        return "nan"
    return repr(value) if math.isfinite(value) else ("1e400" if value > 0 else "-1e400")


def _shown(value: float, digits: int) -> str:
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == int(value) and abs(value) < 1e15:
        return f"{value:,.0f}"
    if value != 0 and abs(value) < 10.0**-digits / 2:
        return f"{value:.1e}"
    return f"{value:,.{digits}f}"


def milliseconds(value: float | None) -> str:
    """Return a latency as text."""
    if value is None or math.isnan(value):
        return "–"
    return "∞" if math.isinf(value) else f"{value:,.1f} ms"


def percent(value: float | None) -> str:
    """Return a ratio in per cent as text; 0.05 is 5 %."""
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "unknown"
    if 0 < abs(value) < 1e-9:
        return "0 %"
    return f"{100 * value:.3g} %"


def duration(seconds: float) -> str:
    """Return a duration with three digits, in ms below a second; a dash for NaN.

    >>> duration(0.31), duration(0.9999), duration(1234.5)
    ('310 ms', '1 s', '1,234 s')
    """
    if math.isnan(seconds):
        return "–"
    if seconds >= 1000:
        return f"{seconds:,.0f} s"
    return f"{1000 * seconds:.3g} ms" if seconds < 0.9995 else f"{seconds:.3g} s"


# Pieces that every page is put together from


def section(identifier: str, title: str, *content: Child) -> Markup:
    """Build a section with a heading that it is named by."""
    return tag(
        "section",
        {"id": identifier, "aria-labelledby": f"{identifier}-h"},
        tag("h2", {"id": f"{identifier}-h"}, title),
        *content,
    )


def facts(pairs: Sequence[tuple[str, str, str]]) -> Markup:
    """Build the row of figures at the top: name, value, and a word of explanation."""
    return tag(
        "dl",
        {"class": "facts"},
        [
            tag(
                "div",
                None,
                tag("dt", None, name),
                tag("dd", None, tag("strong", None, tag("bdi", None, value)),
                    tag("small", None, note) if note else None),
            )
            for name, value, note in pairs
        ],
    )  # fmt: skip


def reasons(title: str, sentences: Sequence[str]) -> Markup | None:
    """Build a list of sentences, or nothing."""
    if not sentences:
        return None
    items = [tag("li", None, sentence) for sentence in sentences]
    return join([tag("h3", None, title), tag("ul", None, items)])
