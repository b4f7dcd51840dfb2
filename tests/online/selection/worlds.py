"""Small clusters and all policies, for the tests of replica selection."""

from __future__ import annotations

from hypothesis import strategies as st

from heuristics.online.selection import (
    C3,
    DynamicSnitch,
    EarliestCompletion,
    Hedged,
    LeastOutstanding,
    LeastResponseTime,
    LimiterRules,
    NearestReplica,
    Oracle,
    RandomChoice,
    RoundRobin,
    TwoChoices,
    WeightedResponseTime,
)
from placement.online.selection import LoadGenerators, ServerCluster, ServerSamplePath, draw

ALL = [
    EarliestCompletion(future=True, tie="ring"),
    EarliestCompletion(future=True),
    EarliestCompletion(),
    Oracle(),
    Oracle(in_flight=True, tie="ring"),
    C3(),
    C3(tie="ring", exponent=2.0, weight=1.5, smoothing=0.4),
    C3(limiter=None, weight=0.0),
    C3(limiter=LimiterRules(wake="strict")),
    LeastOutstanding(),
    LeastOutstanding(tie="ring", limiter=LimiterRules(rate=1.0, tokens=0.0, capacity=2.0)),
    DynamicSnitch(),
    DynamicSnitch(update_ms=7.0, reset_ms=40.0, size=4, badness=0.0, limiter=LimiterRules()),
    Hedged(DynamicSnitch(size=3, decay=50.0, update_ms=3.0), initial_ms=5.0),
    RoundRobin(),
    RoundRobin(limiter=None),
    RandomChoice(),
    NearestReplica(),
    NearestReplica(tie="ring"),
    TwoChoices(),
    LeastResponseTime(),
    Hedged(LeastOutstanding(), initial_ms=3.0),
    Hedged(C3(), percentile=0.5, initial_ms=1.0, step=0.5),
    Hedged(EarliestCompletion(future=True), initial_ms=0.5),
    WeightedResponseTime(),
    Hedged(WeightedResponseTime(), initial_ms=5.0),
]


def c3_score(outstanding, queue, service_ms, network_ms, *, weight, exponent=3.0):
    """(R̄ − S̄) + q̂^b·S̄ with q̂ = 1 + os·w + q̄."""
    return network_ms + (1.0 + outstanding * weight + queue) ** exponent * service_ms


def inflection_ms(rules, saddle):
    """K = ∛(R0·β/γ): ms after a decrease at which the cubic is back at R0."""
    return (saddle * rules.decrease / rules.growth) ** (1 / 3)


def cubic(rules, saddle, since_ms):
    """γ·(Δ − K)³ + R0."""
    return rules.growth * (since_ms - inflection_ms(rules, saddle)) ** 3 + saddle


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


@st.composite
def varied_paths(draw_from: st.DrawFn, most: int = 300) -> ServerSamplePath:
    """Sample paths with groups, RTTs, speeds, records, updates and closed loops of their own."""
    servers = draw_from(st.integers(1, 5))
    clients = draw_from(st.integers(1, 5))
    size = draw_from(st.integers(1, min(3, servers)))
    order = st.permutations(range(servers))
    ms = st.sampled_from([0.0, 0.5, 3.0, 40.0])
    closed = draw_from(
        st.sampled_from(
            [
                (),
                (LoadGenerators(3, 0.2),),
                (LoadGenerators(2), LoadGenerators(4, 0.5, 30.0), LoadGenerators(1, 1.0, 31.5)),
            ]
        )
    )
    cluster = ServerCluster(
        servers,
        draw_from(st.integers(1, 3)),
        size,
        clients,
        utilisation=draw_from(st.sampled_from([0.2, 0.8])),
        epoch_ms=draw_from(st.sampled_from([0.7, 20.0, float("inf")])),
        requests=draw_from(st.integers(0, most)),
        shadow=draw_from(st.sampled_from([0.0, 0.3])),
        arrivals=draw_from(st.sampled_from(["grid", "poisson"])),
        group_servers=tuple(
            tuple(draw_from(order)[:size]) for _ in range(draw_from(st.integers(0, 4)))
        ),
        group_zipf=draw_from(st.sampled_from([0.0, 1.2])),
        rtt_ms=tuple(
            tuple(draw_from(ms) for _ in range(servers))
            for _ in range(clients * draw_from(st.integers(0, 1)))
        ),
        slowness=draw_from(st.sampled_from([(), (0.5, 2.0, 1.0, 3.0, 1.5)]))[:servers],
        largest_record=draw_from(st.sampled_from([1, 50])),
        update_share=draw_from(st.sampled_from([0.0, 0.5, 1.0])),
        update_work=draw_from(st.sampled_from([0.25, 1.0])),
        closed=closed,
    )
    return draw(cluster, draw_from(st.integers(0, 2**32)))
