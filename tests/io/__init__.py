"""Files: exact round trips, atomic writes, importers, pandas, plain text."""
