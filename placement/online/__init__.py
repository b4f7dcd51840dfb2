"""Systems that decide at run time: what they share, and one package per system.

``selection`` chooses the replica that serves a read, ``reads`` leader or majority, ``dynamic`` the
sites of extra copies. Each has a frozen problem and a simulator whose randomness is drawn
beforehand. Policies live in ``heuristics.online``, proofs in ``formulations.online``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from placement.support.lazy import lazy_names

if TYPE_CHECKING:
    from placement.online.simulation import CAUSES as CAUSES
    from placement.online.simulation import Latencies as Latencies
    from placement.online.simulation import spawn_streams as spawn_streams
    from placement.online.simulation import summarise as summarise

# `placement --help` loads this package on the way to the verbs: nothing heavy is imported here
_HOME = {"placement.online.simulation": ("CAUSES", "Latencies", "spawn_streams", "summarise")}

__all__ = [*_HOME["placement.online.simulation"]]

__getattr__, __dir__ = lazy_names(__name__, _HOME)
