"""Exact methods for leaderless quorum stores.

One entry per question:

- :func:`place`: the proven best configuration of a key, or why there is none;
- :func:`tie_envelope`: all best configurations, and the ranges over them;
- :func:`pareto_front`: the trade-off between read and write thresholds;
- :func:`solve_keys`: a table of keys in, a table of configurations out.

The model is :mod:`placement.quorumstore`.
"""

from formulations.quorumstore.entry import Method, place
from formulations.quorumstore.envelope import Range, TieEnvelope, tie_envelope
from formulations.quorumstore.keys import KeysProgress, KeysSummary, progress_to, solve_keys
from formulations.quorumstore.pareto import ParetoPoint, pareto_front
from formulations.quorumstore.unreachable import explain

__all__ = [
    "KeysProgress",
    "KeysSummary",
    "Method",
    "ParetoPoint",
    "Range",
    "TieEnvelope",
    "explain",
    "pareto_front",
    "place",
    "progress_to",
    "solve_keys",
    "tie_envelope",
]
