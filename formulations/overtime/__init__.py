"""Optimal sequences of leaders over time."""
