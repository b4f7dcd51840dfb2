"""The map of the report: projection, land, marks, and its section on the page of a plan."""
