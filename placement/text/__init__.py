"""Plain text for people: aligned tables, plans and instances, readable in 100 columns.

Widths are those of a terminal: East Asian wide characters take two columns, combining marks none.
Control characters in names are shown escaped, so that no name can move the cursor.
"""

from placement.text.characters import (
    WIDTH,
    clip,
    display_width,
    escape,
    number_text,
    spreadsheet_text,
    wrap,
)
from placement.text.instances import instance_text
from placement.text.plans import MOST_FAILURES, failures_table, plan_text, values_text
from placement.text.text_tables import table

__all__ = [
    "MOST_FAILURES",
    "WIDTH",
    "clip",
    "display_width",
    "escape",
    "failures_table",
    "instance_text",
    "number_text",
    "plan_text",
    "spreadsheet_text",
    "table",
    "values_text",
    "wrap",
]
