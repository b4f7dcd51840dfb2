"""Decisions over time: replay of strategies, moves between configurations, watch."""
