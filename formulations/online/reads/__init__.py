"""Optimal read strategies, proven: the leaseholder or which majority, for every gateway.

- :func:`solve_enumerated` (Q1): one column per gateway and quorum;
- :func:`solve_compact` (Q2): O(n³) variables; the one to use for majorities;
- :func:`solve_columns` (Q3): column generation, for any quorum system;
- :func:`solve_deterministic` (Q4): one fixed set per gateway;
- :func:`solve_leases` (Q4): the leases of several ranges together with their strategies.

The model, its evaluator and its bound are :mod:`placement.online.reads`.
"""

from formulations.online.reads.compact_program import solve_compact
from formulations.online.reads.lease_placement import solve_leases
from formulations.online.reads.one_quorum_each import solve_deterministic
from formulations.online.reads.quorum_columns import solve_columns, solve_enumerated

__all__ = [
    "solve_columns",
    "solve_compact",
    "solve_deterministic",
    "solve_enumerated",
    "solve_leases",
]
