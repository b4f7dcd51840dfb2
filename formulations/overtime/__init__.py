"""Optimal sequences over time: leaders, and whole configurations."""
