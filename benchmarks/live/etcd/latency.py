"""Means, rankings of leaders and percentiles: what the model says, and what etcd does."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from benchmarks.harness.result_files import Row
from benchmarks.live.emulated_wan import EmulatedWan, Jitter, RttSample, rtt_samples
from benchmarks.live.etcd.clients import Measured
from benchmarks.live.etcd.world import EtcdBench
from benchmarks.live.latency_tables import latency_row
from benchmarks.live.layouts import Layout, azure_part, drawn, planned
from benchmarks.live.live_world import (
    PUT,
    measured_distributions,
    network,
    predicted,
    predicted_percentile,
)
from placement import Instance, Operation

__all__ = ["busy_read", "check_network", "mean_latencies", "percentiles", "quorum_wait"]


def busy_read(rate: float, quorum: float, name: str = "busy read") -> Operation:
    """Return the linearizable read of a leader that others ask too.

    etcd has one round of votes for reads in flight at a time. A read that comes during a round
    waits for its end, half of it on average, and then for its own. Reads that come at random find a
    round in flight with probability ρ = λq·e^(λq) / (1 + λq·e^(λq)): rounds follow each other until
    no read came during the last one.

    Parameters
    ----------
    rate
        λ, linearizable reads of all clients, per ms.
    quorum
        q, ms that the leader waits for a quorum.
    name
        Of the operation.
    """
    rounds = rate * quorum * math.exp(rate * quorum)
    return Operation(name, direct=1, quorum=1 + rounds / (1 + rounds) / 2, kind="read")


def check_network(instance: Instance, count: int) -> list[Row]:
    """Measure the RTTs of the empty network of an instance, clients to sites and between sites."""
    rows: list[Row] = []
    with network(instance) as wan:
        for sample in _all_samples(instance, wan, count):
            i, j = wan.names.index(sample.source), wan.names.index(sample.target)
            rows.append(
                {
                    "from": sample.source,
                    "to": sample.target,
                    "asked": float(wan.rtt[i, j]),
                    "mean": round(float(np.mean(sample.ms)), 3),
                    "least": min(sample.ms),
                    "most": max(sample.ms),
                }
            )
    return rows


def _all_samples(instance: Instance, wan: EmulatedWan, count: int) -> list[RttSample]:
    """Return RTTs of all pairs that an operation may wait for, measured from all nodes at once."""
    sites = list(instance.sites)
    work = [
        (source, sites[number + 1 :] if number < len(sites) else sites)
        for number, source in enumerate(wan.names)
    ]
    with ThreadPoolExecutor(len(work)) as pool:
        parts = pool.map(lambda one: rtt_samples(wan, one[0], one[1], count), work)
        return [sample for part in parts for sample in part]


def layouts(instance: Instance, quick: bool) -> tuple[list[Layout], list[Layout]]:
    """Return the layouts for the fit of the software's share, and the layouts to predict."""
    fitted = [drawn(instance, 4, 3, seed=3)]
    if quick:
        return fitted, [planned(instance, 4, 3)]
    tried = [planned(instance, 5, 3), planned(instance, 7, 5)]
    return fitted, [*tried, drawn(instance, 3, 3, seed=1), drawn(instance, 6, 5, seed=2)]


def mean_latencies(quick: bool) -> Iterator[Row]:
    """Yield a row per configuration, client and operation, with mean latencies.

    Columns: part ("fit" or "test"), layout, voters, learners, leader, client, operation,
    predicted, measured (ms), n.
    """
    instance = azure_part()
    with EtcdBench(instance) as bench:
        fitted, tried = layouts(instance, quick)
        for part, group in (("fit", fitted), ("test", tried)):
            for layout in group:
                bench.start(layout, layout.leaders[0])
                for leader in layout.leaders[: 1 if quick and part == "fit" else None]:
                    yield from _configuration(bench, layout, leader, part, 8 if quick else 16)


def _configuration(
    bench: EtcdBench, layout: Layout, leader: str, part: str, count: int
) -> Iterator[Row]:
    """Measure one configuration; again when an election came between."""
    for _ in range(3):
        bench.reach(layout.deployment(leader))
        found = bench.measure(bench.mix(layout, "put", "local"), 120, count=2 * count)
        for client in bench.instance.clients:  # alone: no other read is on its way
            mix = {client: bench.operations(client, layout, ["read"])}
            found += bench.measure(mix, 60, count=count // 2)
        busy = bench.measure(
            bench.mix(layout, "read"), 120, count=count // 2, workers=6, pause="150ms"
        )
        if bench.leader() == leader:
            break
        print(f"{layout.name}: {leader} was not elected again", file=sys.stderr)
    else:
        raise AssertionError(f"{leader} does not stay the leader of {layout.name}")
    model = predicted(bench.instance, leader, layout.voters, layout.replicas)
    starts = [one.start for one in busy]
    rate = len(busy) / (max(starts) - min(starts)) / 1000
    together = bench.instance.replace(
        counts=np.ones((len(bench.instance.clients), 1)),
        operations=(busy_read(rate, quorum_wait(bench.instance, layout, leader)),),
    )
    model |= predicted(together, leader, layout.voters, layout.replicas)
    for (client, operation), ms in model.items():
        here, kind = (busy, "read") if operation == "busy read" else (found, operation)
        values = [one.ms for one in here if (one.client, one.operation) == (client, kind)]
        yield latency_row(part, layout, leader, (client, operation), ms, values)


def quorum_wait(instance: Instance, layout: Layout, leader: str) -> float:
    """Return the time in ms that a leader waits for its quorum: a write of a client beside it."""
    beside = Instance(
        sites=instance.sites,
        clients=instance.sites,
        client_rtt=instance.site_rtt,
        site_rtt=instance.site_rtt,
        counts=np.ones((len(instance.sites), 1)),
        operations=(PUT,),
    )
    return predicted(beside, leader, layout.voters, layout.replicas)[leader, PUT.name]


def percentiles(quick: bool) -> Iterator[Row]:
    """Yield a row per configuration, client and operation with means and 99th percentiles.

    RTTs vary; the model has the distributions that probes measured in the same network.
    """
    instance = azure_part()
    with EtcdBench(instance, Jitter.gamma(0.1)) as bench:
        assert isinstance(bench.wan, EmulatedWan)
        samples = _all_samples(instance, bench.wan, 60 if quick else 300)
        known = measured_distributions(instance, samples, width=1.0, bins=1500)
        tried = layouts(instance, quick)[1]
        cases = [(tried[0], 0)] if quick else [(tried[1], 0), (tried[1], 2), (tried[2], 0)]
        for layout, number in cases:
            leader = layout.leaders[number]
            bench.start(layout, leader)
            found: Sequence[Measured] = bench.measure(
                bench.mix(layout, "put", "local"), 300, seconds=20 if quick else 75, workers=5
            )
            assert bench.leader() == leader, "an election came between"
            means = predicted(instance, leader, layout.voters, layout.replicas)
            tails = predicted_percentile(
                instance, 99, known, leader, layout.voters, layout.replicas
            )
            for (client, operation), ms in tails.items():
                values = [
                    one.ms for one in found if (one.client, one.operation) == (client, operation)
                ]
                if not values:  # reads are not measured here
                    continue
                yield {
                    "layout": layout.name,
                    "leader": leader,
                    "client": client,
                    "operation": operation,
                    "mean of the matrix": round(means[client, operation], 3),
                    "predicted": round(ms, 3),
                    "measured": round(float(np.quantile(values, 0.99)), 3),
                    "measured mean": round(float(np.mean(values)), 3),
                    "n": len(values),
                }
