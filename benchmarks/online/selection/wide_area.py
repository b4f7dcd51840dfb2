"""Replica selection over a wide area: where C3's time goes, and until when it only explores.

    python -m benchmarks run online.selection.wide_area [--seeds 3] [--reads 200000]

world27 with the five replicas of its optimal plan, three servers each, RTTs and demand of its 60
clients. The mean latency is taken apart into network, waiting (rate control and queue) and service.
From the run of C3 without rate control, the reads that passed the nearest replica over: what its
client had outstanding there, how much of that was at the server, and what the detour cost. Writes
benchmarks/results/online_selection_wide_area.json.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.online.experiments import Experiments
from heuristics.online.selection import (
    C3,
    EarliestCompletion,
    LeastOutstanding,
    LeastResponseTime,
    NearestReplica,
    Policy,
    RandomChoice,
    run,
)
from placement.api import load
from placement.model.read_write_counts import reads_and_writes
from placement.online.selection import SelectionRun, ServerCluster, ServerSamplePath, draw
from placement.online.verbs import client_rtt

__all__ = ["EXPERIMENTS", "STUDY", "detours", "wide_path"]

SITES = ("South Central US", "sa-east-1", "europe-west4", "East Asia", "ap-northeast-1")
"""Replicas of ``placement solve world27 --replicas 5 --voters 3``."""
SERVERS = 3
LENGTHS = (4_000, 20_000, 200_000)
PLAIN = C3(limiter=None, name="C3, no limiter")
POLICIES: tuple[Policy, ...] = (
    NearestReplica(),
    RandomChoice(limiter=None),
    LeastResponseTime(),
    LeastOutstanding(),
    C3(),
    PLAIN,
    C3(limiter=None, weight=0.0, name="C3, no limiter, w = 0"),
    C3(limiter=None, exponent=1.0, name="C3, no limiter, b = 1"),
    C3(limiter=None, exponent=0.5, name="C3, no limiter, b = 1/2"),
    EarliestCompletion(future=True),
)


def wide_path(reads: int, seed: int, utilisation: float = 0.7) -> ServerSamplePath:
    """Return the requests that ``placement online selection world27`` simulates."""
    world = load("world27")
    sites = world.site_indices(SITES, "sites")
    cluster = ServerCluster(
        len(sites) * SERVERS, 4, len(sites), utilisation=utilisation, requests=reads, shadow=0.0
    )
    demand = reads_and_writes(world)[0]
    return draw(cluster.at_sites(client_rtt(world)[:, sites], demand), seed).on_grid()


def _parts(outcome: SelectionRun) -> dict[str, float]:
    """Mean latency and its parts, ms; per cent of the reads at the nearest replica."""
    sample = outcome.sample
    network = sample.cluster.one_way[sample.client, outcome.server]
    wait = outcome.start - outcome.issued - network
    found = outcome.latencies()
    return {
        "mean": found.mean,
        "network": 2 * float(network.mean()),
        "waiting": float(wait.mean()),
        "service": found.mean - 2 * float(network.mean()) - float(wait.mean()),
        "p99": found.p99,
        "nearest": 100 * float(outcome.at_nearest.mean()),
    }


def detours(outcome: SelectionRun) -> dict[str, float]:
    """Take the choices of a run without rate control apart, from its history alone.

    Returns
    -------
    dict
        ``passed``: reads that passed the nearest replica over, per cent. Means over them:
        ``outstanding`` requests of the client there, ``arrived`` of these in line or in service,
        ``there``: requests of all clients in line or in service there, ``further``: network time of
        the replica taken beyond the nearest, ms. ``unknown``: reads of a client that had not heard
        of all replicas of the group, per cent; ``known_ms``: when the last of them was issued.
    """
    sample, n = outcome.sample, outcome.sample.size
    servers = sample.cluster.servers
    way, groups = sample.cluster.one_way[sample.client], sample.cluster.groups[sample.group]
    reads = np.arange(n)
    network = way[reads, outcome.server]
    nearest = np.take_along_axis(groups, np.take_along_axis(way, groups, 1).argmin(1)[:, None], 1)
    near, pair = nearest[:, 0], sample.client * servers + outcome.server
    answer = outcome.issued + outcome.latency
    times = np.stack([outcome.issued, outcome.issued + network, answer - network, answer])
    order = np.argsort(times, axis=None, kind="stable").tolist()
    outstanding = [0] * (sample.cluster.clients * servers)
    arrived, there, heard = outstanding.copy(), [0] * servers, set[int]()
    passed: list[tuple[float, ...]] = []
    unknown, known_ms = 0, 0.0
    for event in order:
        kind, read = divmod(event, n)
        at, server = int(pair[read]), int(outcome.server[read])
        if kind == 0:
            base = int(sample.client[read]) * servers
            if any(base + s not in heard for s in groups[read].tolist()):
                unknown, known_ms = unknown + 1, float(outcome.issued[read])
            elif way[read, server] > way[read, near[read]]:
                close = base + int(near[read])
                further = 2 * float(network[read] - way[read, near[read]])
                passed.append((outstanding[close], arrived[close], there[near[read]], further))
            outstanding[at] += 1
        elif kind == 3:
            outstanding[at] -= 1
            heard.add(at)
        else:
            arrived[at] += 1 if kind == 1 else -1
            there[server] += 1 if kind == 1 else -1
    means = np.mean(passed, axis=0).tolist() if passed else [float("nan")] * 4
    return {
        "passed": 100 * len(passed) / n,
        **dict(zip(("outstanding", "arrived", "there", "further"), means, strict=True)),
        "unknown": 100 * unknown / n,
        "known_ms": known_ms,
    }


def latency_parts(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the parts of every policy's latency."""
    for utilisation in (0.4, 0.7, 0.85):
        for seed in range(options.seeds):
            path = wide_path(options.reads, seed, utilisation)
            for policy in POLICIES:
                row = {"utilisation": utilisation, "policy": policy.name, "seed": seed}
                yield row | _parts(run(path, policy))


def _lengths(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for reads in sorted({*LENGTHS, options.reads}):
        yield {"reads": reads, **detours(run(wide_path(reads, 0), PLAIN))}


EXPERIMENTS = Experiments(
    "online_selection_wide_area",
    {"policies": latency_parts, "C3": _lengths},
    {"seeds": 3, "reads": 200_000},
)

STUDY = EXPERIMENTS.study(__doc__)
