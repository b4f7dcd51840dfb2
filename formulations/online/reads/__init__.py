"""Optimal read strategies, proven: the lease-holder or which majority, for every gateway.

- :func:`solve_enumerated` (Q1): one column per gateway and quorum;
- :func:`solve_compact` (Q2): O(n³) variables; the one to use for majorities;
- :func:`solve_columns` (Q3): column generation, for any quorum system.

The model, its evaluator and its bound are :mod:`placement.online.reads`.
"""

from formulations.online.reads.columns import solve_columns, solve_enumerated
from formulations.online.reads.compact import solve_compact

__all__ = ["solve_columns", "solve_compact", "solve_enumerated"]
