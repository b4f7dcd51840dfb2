"""Generated keys: ties, asymmetric and non-metric RTTs, zero diagonals, silent sites."""

from __future__ import annotations

import numpy as np

from placement.quorumstore import Goal, QuorumProblem, Redirect, StoreRules

PERCENTILES = (0.5, 0.8, 0.9, 1.0)


def random_problem(
    rng: np.random.Generator,
    *,
    sites: int | None = None,
    rules: StoreRules | None = None,
    goal: Goal | None = None,
) -> QuorumProblem:
    """One small key, drawn so that ties and odd shapes are common."""
    n = int(rng.integers(4, 7)) if sites is None else sites
    style = rng.integers(5)
    if style == 0:  # few distinct values: ties everywhere, zeros included
        rtt = rng.integers(0, 4, (n, n)) * 10.0
    elif style == 1:  # asymmetric, no metric, no ties
        rtt = rng.uniform(1, 300, (n, n))
    elif style == 2:  # points on a plane, symmetric, small diagonal
        points = rng.uniform(0, 100, (n, 2))
        rtt = np.linalg.norm(points[:, None] - points[None], axis=2).round(1) + 0.5
    elif style == 3:  # zones: pairs of sites next to each other
        points = np.repeat(rng.uniform(0, 100, (n, 2)), 2, axis=0)[:n]
        rtt = np.linalg.norm(points[:, None] - points[None], axis=2).round() + 1.0
        np.fill_diagonal(rtt, 0.5)
    else:  # one value only
        rtt = np.full((n, n), 7.0)
    reads = rng.integers(0, 12, n) * (rng.random(n) < rng.choice([0.3, 0.7, 1.0]))
    writes = rng.integers(0, 5, n) * (rng.random(n) < rng.choice([0.0, 0.5, 1.0]))
    if not (reads.any() or writes.any()):
        reads[rng.integers(n)] = 1
    if rules is None:
        rules = random_rules(rng)
    return QuorumProblem(rtt, reads, writes, rules=rules, goal=goal or Goal())


def random_rules(rng: np.random.Generator, **fixed: object) -> StoreRules:
    """BA or N-1C, any redirection, any of the percentiles."""
    values = {
        "contingency": bool(rng.integers(2)),
        "redirect": list(Redirect)[rng.integers(3)],
        "read_fraction": float(rng.choice(PERCENTILES)),
        "write_fraction": float(rng.choice(PERCENTILES)),
        "max_replicas": int(rng.integers(3, 6)),
    }
    values.update(fixed)
    return StoreRules(**values)
