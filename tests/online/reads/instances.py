"""Random read problems."""

from __future__ import annotations

import numpy as np

from placement.online.reads import ReadProblem, ThresholdQuorums


def random_problem(seed: int, *, most: int = 7, spare: bool = True) -> ReadProblem:
    """Random geometry (every third with many ties), capacities, loads, scenarios, rules."""
    rng = np.random.default_rng([41, seed])
    n = int(rng.integers(3, most + 1))
    points = rng.uniform(0, 100, (n, 2))
    rtt = np.linalg.norm(points[:, None] - points[None], axis=2) + rng.uniform(0, 1, (n, n))
    if seed % 3 == 0:
        rtt = np.rint(rtt / 25)
    leader = int(rng.integers(n))
    without = leader if seed % 2 else None
    size, more = n // 2 + 1, int(rng.integers(0, 2)) if spare else 0
    if size + more > n - (without is not None):
        more = 0
    scenarios = int(rng.integers(1, 3))
    reads = rng.uniform(0, 1, n) * (rng.random(n) < 0.8)
    reads[leader] += 0.1
    return ReadProblem(
        rtt,
        reads,
        leader,
        system=ThresholdQuorums(n, size, more, without, bool(rng.integers(2))),
        capacity=rng.uniform(3, 8, n),
        base=rng.uniform(0, 0.3, (scenarios, n)),
        volume=rng.uniform(0.5, 1, scenarios),
        weights=rng.uniform(0, 1, scenarios) + 0.01,
    )
