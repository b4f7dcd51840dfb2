"""Heuristics of the papers: each module is a method of its name, ``METHOD`` in it."""
