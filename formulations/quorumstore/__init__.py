"""Exact methods for leaderless quorum stores.

One entry per question:

- :func:`place`: the proven best configuration of a key, or why there is none;
- :func:`tie_envelope`: all best configurations, and the ranges over them;
- :func:`pareto_front`: the trade-off between read and write thresholds;
- :func:`solve_keys`: a table of keys in, a table of configurations out.

The model is :mod:`placement.quorumstore`.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from placement.support.lazy import lazy_names

if TYPE_CHECKING:
    from formulations.quorumstore.keys.solve_keys import KeysProgress as KeysProgress
    from formulations.quorumstore.keys.solve_keys import KeysSummary as KeysSummary
    from formulations.quorumstore.keys.solve_keys import progress_to as progress_to
    from formulations.quorumstore.keys.solve_keys import solve_keys as solve_keys
    from formulations.quorumstore.one_key import QuorumMethod as QuorumMethod
    from formulations.quorumstore.one_key import place as place
    from formulations.quorumstore.optimal_ties import TieEnvelope as TieEnvelope
    from formulations.quorumstore.optimal_ties import TieRange as TieRange
    from formulations.quorumstore.optimal_ties import tie_envelope as tie_envelope
    from formulations.quorumstore.threshold_fronts import ParetoPoint as ParetoPoint
    from formulations.quorumstore.threshold_fronts import pareto_front as pareto_front

_HOME = {
    "formulations.quorumstore.keys.solve_keys": (
        "KeysProgress",
        "KeysSummary",
        "progress_to",
        "solve_keys",
    ),
    "formulations.quorumstore.one_key": ("QuorumMethod", "place"),
    "formulations.quorumstore.optimal_ties": ("TieEnvelope", "TieRange", "tie_envelope"),
    "formulations.quorumstore.threshold_fronts": ("ParetoPoint", "pareto_front"),
}

__all__ = [*chain.from_iterable(_HOME.values())]

__getattr__, __dir__ = lazy_names(__name__, _HOME)
