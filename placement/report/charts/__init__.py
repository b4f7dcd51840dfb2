"""The SVG charts and HTML tables of the report."""
