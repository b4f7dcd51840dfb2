"""Optimal read strategies, proven: the leaseholder or which majority, for every gateway.

- :func:`solve_enumerated` (Q1): one column per gateway and quorum;
- :func:`solve_compact` (Q2): O(n³) variables; the one to use for majorities;
- :func:`solve_columns` (Q3): column generation, for any quorum system;
- :func:`solve_deterministic` (Q4): one fixed set per gateway.

The model, its evaluator and its bound are :mod:`placement.online.reads`.
"""

from formulations.online.reads.mixed_strategies import (
    solve_columns,
    solve_compact,
    solve_enumerated,
)
from formulations.online.reads.one_quorum_each import solve_deterministic

__all__ = [
    "solve_columns",
    "solve_compact",
    "solve_deterministic",
    "solve_enumerated",
]
