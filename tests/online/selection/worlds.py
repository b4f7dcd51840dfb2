"""Small clusters and all policies, for the tests of replica selection."""

from __future__ import annotations

from hypothesis import strategies as st

from heuristics.online.selection.blind_policies import RandomChoice, RoundRobin
from heuristics.online.selection.c3 import C3
from heuristics.online.selection.least_outstanding import LeastOutstanding
from heuristics.online.selection.oracle_policies import EarliestCompletion, Oracle
from heuristics.online.selection.response_times import (
    LeastResponseTime,
    TwoChoices,
    WeightedResponseTime,
)
from placement.online.selection import LimiterRules, ServerCluster, ServerSamplePath, draw

COMPILED = [
    EarliestCompletion(future=True, tie="ring"),
    EarliestCompletion(future=True),
    EarliestCompletion(),
    Oracle(),
    Oracle(in_flight=True, tie="ring"),
    C3(),
    C3(tie="ring", exponent=2.0, weight=1.5, smoothing=0.4),
    C3(limiter=None, outstanding=False),
    C3(limiter=LimiterRules(wake="strict")),
    LeastOutstanding(),
    LeastOutstanding(tie="ring", limiter=LimiterRules(rate=1.0, tokens=0.0, capacity=2.0)),
    RoundRobin(),
    RoundRobin(limiter=None),
    RandomChoice(),
    TwoChoices(),
    LeastResponseTime(),
]
ALL = [*COMPILED, WeightedResponseTime()]


@st.composite
def paths(draw_from: st.DrawFn, most: int = 400) -> ServerSamplePath:
    """Sample paths of small clusters, one server and one client included."""
    servers = draw_from(st.integers(1, 6))
    heavy = draw_from(st.sampled_from([(1.0, 1.0), (0.2, 0.8), (0.5, 0.8)]))
    clients = draw_from(st.integers(1 if heavy == (1.0, 1.0) else 2, 8))
    cluster = ServerCluster(
        servers,
        draw_from(st.integers(1, 4)),
        draw_from(st.integers(1, min(3, servers))),
        clients,
        utilisation=draw_from(st.sampled_from([0.1, 0.7, 1.3])),
        epoch_ms=draw_from(st.sampled_from([0.7, 10.0, 50.0, float("inf")])),
        requests=draw_from(st.integers(0, most)),
        fluctuation=draw_from(st.sampled_from([1.0, 3.0])),
        one_way_ms=draw_from(st.sampled_from([0.0, 0.25, 2.0])),
        arrivals=draw_from(st.sampled_from(["grid", "poisson"])),
        generators=draw_from(st.integers(1, 20)),
        shadow=draw_from(st.sampled_from([0.0, 0.1, 1.0])),
        heavy_clients=heavy[0],
        heavy_demand=heavy[1],
    )
    return draw(cluster, draw_from(st.integers(0, 2**32)))
