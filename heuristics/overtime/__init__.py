"""Heuristics over time: tiers 1 and 2 for a fleet of databases."""
