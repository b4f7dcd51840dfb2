"""Systems that decide at run time: what they share, and one package per system.

``selection`` chooses the replica that serves a read; ``reads`` and ``dynamic`` are its siblings.
Each has a frozen problem, a simulator whose randomness is drawn beforehand, and results as one
:class:`RunRecord` per run. Policies live in ``heuristics.online``, proofs in
``formulations.online``.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from placement.support.lazy import lazy_names

if TYPE_CHECKING:
    from placement.online.random_streams import CAUSES as CAUSES
    from placement.online.random_streams import spawn_streams as spawn_streams
    from placement.online.request_trace import RequestTrace as RequestTrace
    from placement.online.request_trace import read_trace as read_trace
    from placement.online.run_records import Latencies as Latencies
    from placement.online.run_records import RunRecord as RunRecord
    from placement.online.run_records import summarise as summarise

# `placement --help` loads this package on the way to the verbs: nothing heavy is imported here
_HOME = {
    "placement.online.random_streams": ("CAUSES", "spawn_streams"),
    "placement.online.request_trace": ("RequestTrace", "read_trace"),
    "placement.online.run_records": ("Latencies", "RunRecord", "summarise"),
}

__all__ = [*chain.from_iterable(_HOME.values())]

__getattr__, __dir__ = lazy_names(__name__, _HOME)
