"""Small worlds with a fixed seed, shared by the tests of the mixed-integer program."""

import dataclasses

import numpy as np

from formulations.solvers.highs import Guard, run_highs
from placement import Instance, Prices
from placement.errors import LimitError

__all__ = ["hopeless", "sphere", "values_at", "with_prices"]


def sphere(sites=8, clients=None, seed=0, mix=(0.3, 0.3, 0.2, 0.15, 0.05)):
    """Sites on a globe with jittered RTTs, heavy-tailed demand, the five standard operations."""
    rng = np.random.default_rng(seed)
    count = sites if clients is None else clients
    points = rng.normal(size=(sites + count, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    if clients is None:
        points[sites:] = points[:sites]
    arc = np.arccos(np.clip(points @ points[:sites].T, -1, 1))
    rtt = 100 * arc + rng.gamma(2, 4, arc.shape)
    between = (rtt[:sites] + rtt[:sites].T) / 2
    np.fill_diagonal(between, 0)
    counts = (rng.pareto(1.2, count) + 0.1)[:, None] * np.array(mix) * 1e4
    return Instance(
        sites=tuple(f"s{i}" for i in range(sites)),
        clients=tuple(f"c{i}" for i in range(count)),
        client_rtt=rtt[sites:],
        site_rtt=between,
        counts=counts,
    )


def with_prices(instance, seed=0):
    rng = np.random.default_rng(seed)
    size = len(instance.sites)
    transfer = rng.uniform(0.01, 0.2, (size, size))
    np.fill_diagonal(transfer, 0)
    return instance.replace(prices=Prices(rng.uniform(1, 10, size), transfer, written_gb=20.0))


def hopeless(*args, **kwargs):
    raise LimitError("hopeless")


def values_at(milp, program, configuration):
    """Return the best values of the columns with the roles of a configuration.

    Where no row allows these roles, values that break a row or a bound.
    """
    start = milp.start(program, configuration)
    lower, upper = np.where(np.isnan(start), [program.lower, program.upper], start)
    found = run_highs(dataclasses.replace(program, lower=lower, upper=upper), Guard()).values
    return np.nan_to_num(start, nan=-1.0) if found is None else found
