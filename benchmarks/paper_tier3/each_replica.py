"""Reduction of the mean latency by each further replica, on bundled data sets.

Sharov et al., PVLDB 8(12), 2015, section 6.4: "initially each new replica halves the average
operation latency". Every number is a proven optimum, from :func:`placement.sweep`.
"""

from __future__ import annotations

import numpy as np

import placement
from placement import Instance
from placement.errors import MissingDependencyError
from placement.model.operations import STANDARD_OPERATIONS
from placement.support.checks import FloatArray

__all__ = ["concentrated", "gains"]

DATA_SETS = ("world27", "azure")
MIXES = ("social", "cache")
RATIOS = (1.0, 0.7, 0.5)
STEPS = 7
"""Numbers of replicas per line, from |V| on."""


def concentrated(base: Instance, ratio: float, rng: np.random.Generator) -> Instance:
    """Return an instance of weak reads only, with demand that falls from client to client.

    Parameters
    ----------
    base
        Where the sites, the clients and the RTTs come from.
    ratio
        Demand of a client over the demand of the client before it; 1 spreads it evenly.
    rng
        Source of the order of the clients.
    """
    clients = len(base.clients)
    weight: FloatArray = ratio ** rng.permutation(clients).astype(np.float64)
    counts = np.zeros((clients, len(STANDARD_OPERATIONS)))
    counts[:, 0] = np.round(1e9 * weight / weight.sum())
    return Instance(
        sites=base.sites,
        clients=base.clients,
        client_rtt=base.client_rtt,
        site_rtt=base.site_rtt,
        counts=counts,
        operations=STANDARD_OPERATIONS,
        name=f"{base.name}, weak reads, ratio {ratio:g}",
    )


def _line(instances: list[Instance], voters: int) -> dict[str, object]:
    """Return the mean latency by |R|, averaged over instances, and the gains in per cent."""
    sizes = range(voters, voters + STEPS)
    tables = [placement.sweep(instance, replicas=sizes, voters=voters) for instance in instances]
    mean = np.mean([table["mean_latency"].to_numpy(dtype=float) for table in tables], axis=0)
    return {
        "proven": bool(all((table["status"] == "optimal").all() for table in tables)),
        "mean ms": {str(size): round(float(ms), 2) for size, ms in zip(sizes, mean, strict=True)},
        "gain %": {
            str(size): round(float(gain), 1)
            for size, gain in zip(sizes[1:], 100 * (1 - mean[1:] / mean[:-1]), strict=True)
        },
    }


def gains(seeds: int) -> list[dict[str, object]]:
    """Return one line for each data set, demand and |V|.

    Parameters
    ----------
    seeds
        Orders of the clients for each ratio; a line is the mean over them.
    """
    lines: list[dict[str, object]] = []
    for name in DATA_SETS:
        try:
            demands = {f"its own, mix {mix}": [placement.load(name, mix=mix)] for mix in MIXES}
        except MissingDependencyError:
            continue
        base = placement.load(name)
        for ratio in RATIOS:
            demands[f"weak reads, ratio {ratio:g}"] = [
                concentrated(base, ratio, np.random.default_rng(seed)) for seed in range(seeds)
            ]
        lines += [
            {"data set": name, "demand": demand, "voters": voters, **_line(instances, voters)}
            for demand, instances in demands.items()
            for voters in (1, 3)
        ]
    return lines
