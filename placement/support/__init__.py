"""Modules that all rooms use: checks of input, entry points, lazy names, statuses."""
