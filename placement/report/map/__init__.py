"""The world map of the report."""
