"""Optima of tiny windows by enumeration: nothing here is shared with the exact methods."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np

from heuristics.online.selection import LeastOutstanding, run
from placement.online.selection import ServerCluster, Window, cut, draw


def tiny(seed: int, reads: int, *, servers: int = 2, slots: int = 1, epoch: int = 0) -> Window:
    """A window on a grid of one tick per ms: work 1 to 3 ticks, all gaps 0 to 2 ticks.

    `epoch`: ticks per epoch of random speeds (factors 1 and 3); 0: constant speeds.
    """
    rng = np.random.default_rng(seed)
    before = 3
    cluster = ServerCluster(
        servers,
        slots,
        min(2, servers),
        2,
        requests=before + reads,
        epoch_ms=float(epoch) if epoch else float("inf"),
        one_way_ms=1.0,
        shadow=0.5,
    )
    path = draw(cluster, seed)
    n, copies = before + reads, cluster.replication - 1
    path = dataclasses.replace(
        path,
        arrival=np.cumsum(rng.integers(0, 3, n)).astype(float),
        work=rng.integers(1, 4, n).astype(float),
        shadow_work=rng.integers(1, 4, (n, copies)).astype(float),
        means=rng.choice([1.0, 3.0], (40 if epoch else 1, servers)),
    )
    return cut(path, run(path, LeastOutstanding()).server, before, reads, ticks_per_ms=1)


def best_schedule(window: Window, latest: int) -> float:
    """Least mean flow over every server and every start up to `latest` ticks after arrival."""
    slots = window.path.cluster.slots
    choices = []
    for read in range(window.size):
        there = int(window.release[read]) + window.delay
        choices.append(
            [
                (s, t, t + int(window.work[read]) * int(window.factor(s, t)))
                for s in dict.fromkeys(window.replicas[read].tolist())
                for t in range(there, there + latest + 1)
            ]
        )
    fixed = [tuple(row) for row in window.fixed.tolist()]
    best = float("inf")
    for picked in itertools.product(*choices):
        jobs = [*fixed, *picked]
        flow = sum(
            end + window.delay - a
            for (_, _, end), a in zip(picked, window.release.tolist(), strict=True)
        )
        if flow < best and all(
            sum(s == server and b <= begin < e for s, b, e in jobs) <= slots
            for server, begin, _ in jobs
        ):
            best = flow
    return best / window.size


def best_assignment(window: Window) -> float:
    """Least mean flow time over all assignments at first-come, first-served servers."""
    return min(
        float(window.assign(list(servers)).mean())
        for servers in itertools.product(*window.replicas.tolist())
    )
