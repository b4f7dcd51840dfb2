"""Replica selection: which of a group's servers answers a read, and when it is sent.

After L. Suresh, M. Canini, S. Schmid, A. Feldmann, "C3: Cutting tail latency in cloud data stores
via adaptive replica selection", NSDI 2015. This package has the cluster, the sample path, the
simulator and the interface of policies; C3 and what it is compared with are in
``heuristics.online.selection``, optima in ``formulations.online.selection``.
"""

from placement.online.selection.cluster import ServerCluster
from placement.online.selection.hedging import Hedged
from placement.online.selection.load_generators import LoadGenerators
from placement.online.selection.offline_window import Ticks, Window, cut
from placement.online.selection.policy import Clairvoyant, Passive, Policy, Selector, Servers
from placement.online.selection.policy_handover import Assigned, Handover
from placement.online.selection.rate_limiter import Limiter, LimiterRules, cubic, inflection_ms
from placement.online.selection.sample_path import ServerSamplePath, draw
from placement.online.selection.server_load import TimeLine, busiest_load, server_load, time_line
from placement.online.selection.simulator import SelectionRun, simulate
from placement.online.selection.trace_path import path_of_trace

__all__ = [
    "Assigned",
    "Clairvoyant",
    "Handover",
    "Hedged",
    "Limiter",
    "LimiterRules",
    "LoadGenerators",
    "Passive",
    "Policy",
    "SelectionRun",
    "Selector",
    "ServerCluster",
    "ServerSamplePath",
    "Servers",
    "Ticks",
    "TimeLine",
    "Window",
    "busiest_load",
    "cubic",
    "cut",
    "draw",
    "inflection_ms",
    "path_of_trace",
    "server_load",
    "simulate",
    "time_line",
]
