"""Replica selection: which of a group's servers answers a read, and when it is sent.

After L. Suresh, M. Canini, S. Schmid, A. Feldmann, "C3: Cutting tail latency in cloud data stores
via adaptive replica selection", NSDI 2015. This package has the cluster, the sample path, the
result of a run and the offline window; the policies and the compiled simulator are in
``heuristics.online.selection``, optima in ``formulations.online.selection``.
"""

from placement.online.selection.cluster import LoadGenerators, ServerCluster
from placement.online.selection.offline_window import Ticks, Window, cut, serve_in_order
from placement.online.selection.sample_path import ServerSamplePath, draw
from placement.online.selection.selection_run import (
    SelectionRun,
    TimeLine,
    busiest_load,
    server_load,
    time_line,
)

__all__ = [
    "LoadGenerators",
    "SelectionRun",
    "ServerCluster",
    "ServerSamplePath",
    "Ticks",
    "TimeLine",
    "Window",
    "busiest_load",
    "cut",
    "draw",
    "serve_in_order",
    "server_load",
    "time_line",
]
