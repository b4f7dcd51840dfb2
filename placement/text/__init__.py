"""Plain text for people: aligned tables, plans and instances, in the columns of the page.

Widths are those of a terminal: East Asian wide characters take two columns, combining marks none.
Control characters in names are shown escaped, so that no name can move the cursor.
"""

from placement.support.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
