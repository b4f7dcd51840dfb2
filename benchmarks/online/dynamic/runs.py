"""The runs of the benchmark of dynamic replication: Figures 3 to 7 of Matri et al., scaled down.

The last ones count stale reads of the write protocol, with all assumptions of its proof and without
each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np

from benchmarks.online.dynamic.tables import world_of
from formulations.online.dynamic.belady_min import most_hits
from heuristics.online.dynamic.caches import NAMES, cache_maker
from placement.online import spawn_streams, summarise
from placement.online.dynamic import HotSetWorld, six_sites
from placement.online.dynamic.cache_simulator import accesses, simulate_caches
from placement.online.dynamic.copy_protocol import ProtocolSettings, simulate_protocol
from placement.online.dynamic.sizing_formulas import replicas_conservative, replicas_exact
from placement.online.dynamic.store_demand import CAUSES, RequestWorkload
from placement.online.dynamic.vote_simulator import (
    SimulationTrace,
    VoteSettings,
    WriteForwarding,
    simulate,
)
from placement.support.checks import FloatArray, IntArray

__all__ = [
    "KEYS",
    "K",
    "drops",
    "grace_sweep",
    "latency_runs",
    "mechanism",
    "other_keys_runs",
    "protocol_runs",
    "votes_and_match",
]

KEYS, K = 40_000, 480


def mechanism(seed: int, seconds: float = 400.0, rate: float = 3000.0) -> SimulationTrace:
    """Figures 3 to 5: read-only, one restart every 30 s, all twelve generators."""
    world = world_of(six_sites(), KEYS, 0.0, seed)
    return simulate(world, RequestWorkload(seconds=seconds, rate=rate), VoteSettings(k=K), seed)


def drops(trace: SimulationTrace) -> list[float]:
    """Return the share of the identified hot set that each restart removes."""
    result = []
    for restart in trace.restarts:
        here = int(np.searchsorted(trace.time, restart))
        result.append(1 - float(trace.identified[here] / trace.identified[here - 1]))
    return result


def latency_runs(
    seed: int, seconds: float = 300.0, rate: float = 400.0
) -> Iterator[dict[str, Any]]:
    """Yield Figures 6 and 7: policies at 95/5 and 50/50, the same requests for all."""
    for share in (0.05, 0.5):
        yield from _policies(
            RequestWorkload(seconds=seconds, rate=rate, write_share=share),
            seed,
            WriteForwarding.SITES,
        )


def other_keys_runs(
    seed: int, seconds: float = 300.0, rate: float = 400.0
) -> Iterator[dict[str, Any]]:
    """Yield Figure 6 as published: 5 % writes, to other keys than are read, which evict nothing."""
    workload = RequestWorkload(seconds=seconds, rate=rate, write_share=0.05, write_keys="other")
    yield from _policies(workload, seed, WriteForwarding.ALL)


def _policies(
    workload: RequestWorkload, seed: int, forwarding: WriteForwarding
) -> Iterator[dict[str, Any]]:
    """Yield all policies on one workload; `forwarding` says for what writes wait with caches."""
    world = world_of(six_sites(), KEYS, 0.0, seed)
    share = workload.write_share
    rng = spawn_streams(seed, CAUSES)["policy"]
    yield from votes_and_match(world, workload, seed, forwarding)
    none = simulate_caches(world, workload, None, K, seed, forwarding=WriteForwarding.ALL)
    yield _row("none", share, seed, none.reads, none.time, none.read_ms, none.write_ms)
    for name in NAMES:
        found = simulate_caches(
            world, workload, cache_maker(name, rng), K, seed, forwarding=forwarding
        )
        row = _row(name, share, seed, found.reads, found.time, found.read_ms, found.write_ms)
        yield {**row, "copies": K, "hits": found.hits}
    streams = accesses(world, workload, seed)
    best = sum(most_hits(each, K // 16) for each in streams)
    reads = sum(int((each >= 0).sum()) for each in streams)
    own = float(np.diag(world.geography.rtt).mean())
    yield {"policy": "Belady", "write_share": share, "hits": best / reads, "local_ms": own}


def votes_and_match(
    world: HotSetWorld, workload: RequestWorkload, seed: int, forwarding: WriteForwarding
) -> Iterator[dict[str, Any]]:
    """Yield votes, and ARC with as many places as the copies that votes have held at each site."""
    rng = spawn_streams(seed, CAUSES)["policy"]
    share = workload.write_share
    votes = simulate(world, workload, VoteSettings(k=K), seed)
    row = _row("votes", share, seed, votes.reads, votes.time, votes.read_ms, votes.write_ms)
    held = float(votes.active[votes.time >= 60].mean())
    yield {**row, "copies": held}
    room = 16 * round(held / 16)
    found = simulate_caches(
        world, workload, cache_maker("ARC", rng), room, seed, forwarding=forwarding
    )
    row = _row("ARC, equal", share, seed, found.reads, found.time, found.read_ms, found.write_ms)
    yield {**row, "copies": room, "hits": found.hits}


def _row(
    policy: str,
    share: float,
    seed: int,
    reads: tuple[FloatArray, IntArray],
    time: FloatArray,
    read_ms: FloatArray,
    write_ms: FloatArray,
) -> dict[str, Any]:
    late = time >= 60  # every policy has warmed up
    return {
        "policy": policy,
        "write_share": share,
        "read_ms": float(np.nanmean(read_ms[late])),
        "write_ms": float(np.nanmean(write_ms[late])),
        "record": asdict(summarise(np.repeat(*reads))),
        "series": (time, read_ms),
    }


def grace_sweep(seed: int) -> Iterator[dict[str, Any]]:
    """Yield active copies for g = 1 to 5, and what both formulas make of the turnover at g = 1."""
    world = world_of(six_sites(), KEYS, 0.0, seed)
    workload = RequestWorkload(seconds=200, rate=1000)
    turnover = 0.0
    for grace in (1, 2, 3, 4, 5):
        trace = simulate(world, workload, VoteSettings(k=K, grace=grace), seed)
        late = trace.time >= 100
        lists = len(trace.recall)
        if grace == 1:
            # Every copy created replaces one, once the first list is there.
            turnover = (trace.created / 6 - K) / (lists - 1) / K
        yield {
            "grace": grace,
            "active": float(trace.active[late].mean()),
            "created": trace.created,
            "exact": replicas_exact(K, turnover, grace),
            "conservative": replicas_conservative(K, turnover, grace),
            "read_ms": float(trace.read_ms[late].mean()),
        }


VARIANTS: dict[str, ProtocolSettings] = {
    "all assumptions": ProtocolSettings(),
    "and lost messages, 20 %": ProtocolSettings(loss=0.2),
    "and lost rounds, 50 %": ProtocolSettings(lost_rounds=0.5),
    "and clocks off by 5 rounds": ProtocolSettings(skew_ms=500.0),
    "and restarts of static nodes": ProtocolSettings(restarts=0.5),
    "messages overtake each other": ProtocolSettings(in_order=False),
    "writes before the copy are dropped": ProtocolSettings(keep_early=False),
    "deletions do not name their copy": ProtocolSettings(incarnations=False),
    "restarts, registrations not persisted": ProtocolSettings(restarts=0.5, persist=False),
    "a cache, evictions in the background": ProtocolSettings(cache=True),
    "a cache, one eviction in ten lost": ProtocolSettings(cache=True, lost_evictions=0.1),
}
"""Name of each row -> its settings."""

RUNS = 200


def protocol_runs() -> Iterator[dict[str, Any]]:
    """Yield the sums over 200 seeds of each variant."""
    for name, settings in VARIANTS.items():
        runs = [simulate_protocol(settings, seed) for seed in range(RUNS)]
        found = [run.violations() for run in runs]
        yield {
            "variant": name,
            "runs": RUNS,
            "reads": sum(each.reads for each in found),
            "dynamic_reads": sum(run.dynamic_reads for run in runs),
            "created": sum(run.created for run in runs),
            "stale": sum(each.stale for each in found),
            "runs_with_stale": sum(each.stale > 0 for each in found),
            "behind": sum(run.behind for run in runs),
        }
