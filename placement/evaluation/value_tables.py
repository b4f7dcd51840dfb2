"""Tables that an objective adds to a plan, for its text and its page alike."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ValueColumn:
    """A column of a table of values.

    Attributes
    ----------
    name
        The heading.
    decimals
        Decimals of the numbers; None: the column holds text.
    beyond
        Text in place of an infinite number.
    unit
        Unit behind each number of a text, and in the heading of a page: "%".
    signed
        Whether a text shows the sign of positive numbers.
    """

    name: str
    decimals: int | None = None
    beyond: str = "∞"
    unit: str = ""
    signed: bool = False


@dataclass(frozen=True, slots=True)
class ValueTable:
    """A table of values with its title.

    Attributes
    ----------
    title
        The subject of the table.
    columns
        The headings and formats.
    rows
        The cells, each a text or a number as its column says.
    chosen
        The position of the row that belongs to the plan; None: no row does.
    """

    title: str
    columns: tuple[ValueColumn, ...]
    rows: tuple[tuple[str | float, ...], ...]
    chosen: int | None = None
