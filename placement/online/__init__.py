"""Systems that decide at run time: what they share, and one package per system.

``selection`` chooses the replica that serves a read; ``reads`` and ``dynamic`` are its siblings.
Each has a frozen problem, a simulator whose randomness is drawn beforehand, and results as one
:class:`RunRecord` per run. Policies live in ``heuristics.online``, proofs in
``formulations.online``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from placement.lazy import lazy_names

if TYPE_CHECKING:
    from placement.online.random_streams import CAUSES, spawn_streams
    from placement.online.request_trace import RequestTrace, read_trace
    from placement.online.run_records import Latencies, RunRecord, summarise

__all__ = [
    "CAUSES",
    "Latencies",
    "RequestTrace",
    "RunRecord",
    "read_trace",
    "spawn_streams",
    "summarise",
]

# `placement --help` loads this package on the way to the verbs: nothing heavy is imported here
_HOME = {
    "CAUSES": "placement.online.random_streams",
    "Latencies": "placement.online.run_records",
    "RequestTrace": "placement.online.request_trace",
    "RunRecord": "placement.online.run_records",
    "read_trace": "placement.online.request_trace",
    "spawn_streams": "placement.online.random_streams",
    "summarise": "placement.online.run_records",
}

__getattr__, __dir__ = lazy_names(__name__, _HOME)
