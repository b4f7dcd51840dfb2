"""Plain text for people: aligned tables, plans and instances, in the columns of the page.

Widths are those of a terminal: East Asian wide characters take two columns, combining marks none.
Control characters in names are shown escaped, so that no name can move the cursor.
"""

from placement.text.plans import (
    MOST_FAILURES,
    failures_table,
    instance_text,
    plan_text,
    values_text,
)
from placement.text.text_tables import (
    clip,
    display_width,
    escape,
    number_text,
    page_width,
    spreadsheet_text,
    table,
    use_page_width,
    wrap,
)

__all__ = [
    "MOST_FAILURES",
    "clip",
    "display_width",
    "escape",
    "failures_table",
    "instance_text",
    "number_text",
    "page_width",
    "plan_text",
    "spreadsheet_text",
    "table",
    "use_page_width",
    "values_text",
    "wrap",
]
