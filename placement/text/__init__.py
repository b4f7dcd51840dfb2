"""Plain text for people: aligned tables, plans and instances, in the columns of the page."""
