"""Small instances whose distributions are drawn at random: crossing, with atoms, with overflow."""

from __future__ import annotations

import itertools

import numpy as np

from placement import Instance, Problem
from placement.model.configuration import Configuration
from placement.tail import Distributions

__all__ = ["drawn", "drawn_by_interval", "sampled", "whole"]


def whole(instance: Instance) -> Instance:
    """The instance with RTTs in whole milliseconds, so that a grid of 1 ms is exact."""
    return instance.replace(
        client_rtt=np.round(instance.client_rtt), site_rtt=np.round(instance.site_rtt)
    )


def drawn(instance: Instance, seed: int, *, bins: int = 60) -> Distributions:
    """Distributions that have nothing to do with the RTTs; odd seeds have overflow everywhere."""
    rng = np.random.default_rng(seed)

    def table(rows: int) -> np.ndarray:
        shape = (rows, len(instance.sites), bins)
        filled = rng.uniform(0.05, 0.6, (*shape[:2], 1))
        values = rng.random(shape) * (rng.random(shape) < filled)
        values[..., 0] += 1e-3
        mass = 1 - rng.uniform(0, 0.02, (*shape[:2], 1)) if seed % 2 else 1.0
        return np.asarray(mass * values / values.sum(axis=-1, keepdims=True))

    between = table(len(instance.sites))
    own = np.arange(len(instance.sites))
    between[own, own] = np.eye(1, bins)[0]
    return Distributions(
        table(len(instance.clients)), between, 1.0, instance.sites, instance.clients
    )


def drawn_by_interval(instance: Instance, seed: int, *, bins: int = 60) -> list[Distributions]:
    """Distributions of every interval as :func:`drawn` makes them; some or all have overflow."""
    return [
        drawn(instance.at_interval(k), seed + k * (1 + seed % 3 % 2), bins=bins)
        for k in range(len(instance.intervals))
    ]


def sampled(
    problem: Problem,
    configuration: Configuration,
    distributions: Distributions,
    rng: np.random.Generator,
    draws: int,
) -> np.ndarray:
    """Latencies in bins, each message drawn by itself: the definition, without any convolution.

    Infinite where a message took longer than the horizon.
    """
    demand = problem.demand
    counts = demand.counts[0]
    cells = rng.choice(counts.size, size=draws, p=(counts / counts.sum()).ravel())
    client, operation = np.divmod(cells, counts.shape[1])
    replicas = np.array(sorted(configuration.replicas))
    near = replicas[demand.client_rtt[0][:, replicas].argmin(axis=1)]
    leader = configuration.leader
    others = [v for v in configuration.voters if v != leader]
    total = np.zeros(draws)

    def draw(pmf: np.ndarray, n: int) -> np.ndarray:
        lost = np.append(pmf, max(0.0, 1 - pmf.sum()))
        values = rng.choice(len(lost), size=n, p=lost / lost.sum()).astype(float)
        values[values == len(pmf)] = np.inf
        return values

    def wait(n: int) -> np.ndarray:
        if problem.rules.quorum == 1:
            return np.zeros(n)
        answers = np.array([draw(distributions.site_site[leader, v], n) for v in others])
        return np.asarray(np.sort(answers, axis=0)[problem.rules.quorum - 2])

    for c, o in itertools.product(range(counts.shape[0]), range(counts.shape[1])):
        rows = np.nonzero((client == c) & (operation == o))[0]
        for coefficient, source in zip(
            demand.coefficients[o],
            (
                lambda n, c=c: draw(distributions.client_site[c, near[c]], n),
                lambda n, c=c: draw(distributions.site_site[near[c], leader], n),
                lambda n, c=c: draw(distributions.client_site[c, leader], n),
                wait,
            ),
            strict=True,
        ):
            sure, rest = divmod(float(coefficient), 1)
            for _ in range(int(sure)):
                total[rows] += source(len(rows))
            if rest:
                some = rows[rng.random(len(rows)) < rest]
                total[some] += source(len(some))
    return total
