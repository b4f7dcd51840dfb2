"""Instances with distributions of RTTs: measured percentiles of AWS, and generated spreads.

Sites are clients too, demand and operation mixes are those of
:mod:`benchmarks.harness.tier3_worlds`.

* ``aws-2024``: percentiles 10 to 99 that cloudping.co measured between 21 regions (April 2024),
  read from the folder that ``--latency DIR`` names. Without it these instances are left out.
* ``equal spread``: modelled RTTs, log-normal, the standard deviation 0.2 times the mean everywhere.
* ``unequal spread``: the same, but each pair's standard deviation drawn log-normally, median 0.15
  and sigma 0.8, so that some links are steady and others are not.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from benchmarks.harness.tier3_worlds import demand, modelled_network
from placement import Instance
from placement.errors import InputError
from placement.io import read_rtt
from placement.io.rtt_distributions import PairTable, distributions_of, read_pairs
from placement.model.operations import STANDARD_OPERATIONS
from placement.support.checks import FloatArray
from placement.tail import Distributions
from placement.tail.bin_grid import bins_for, reach_of_family
from placement.tail.histograms import of_family
from placement.workloads import MIXES, mix_shares

__all__ = ["NETWORKS", "TABLE", "distributions_around", "world"]

TABLE = "aws_cloudping_2024-04-19_percentiles.csv"
"""Measured percentiles, in the folder that ``--latency`` names."""

NETWORKS = ("aws-2024", "equal spread", "unequal spread")

EQUAL, MEDIAN, SIGMA = 0.2, 0.15, 0.8
SITES = 27


@lru_cache(maxsize=1)
def _measured(latency: Path) -> tuple[PairTable, tuple[str, ...], FloatArray] | None:
    path = latency / TABLE
    if not path.exists():
        return None
    rtt = read_rtt(path, "percentiles")
    values, _ = rtt.between(rtt.sources, rtt.sources)
    return read_pairs(path), rtt.sources, values


def world(
    network: str,
    mix: str,
    seed: int,
    *,
    sites: int | None = None,
    clients: int = SITES,
    latency: Path | None = None,
) -> tuple[Instance, Distributions] | None:
    """Build an instance and its distributions; None when the measured table is absent.

    Parameters
    ----------
    network
        One of `NETWORKS`.
    mix
        A key of ``MIXES``.
    seed
        Of the choice of sites, the modelled RTTs, the spreads and the demand.
    sites
        How many candidate sites, drawn among the clients' places; None: all of them.
    clients
        How many clients at most.
    latency
        Folder of measured latencies; None: there is none.
    """
    numbers = [seed, sorted(MIXES).index(mix), NETWORKS.index(network)]
    rng = np.random.default_rng(numbers)
    measured = None if latency is None else _measured(latency)
    if network == "aws-2024":
        if measured is None:
            return None
        table, names, rtt = measured
    else:
        names, rtt = modelled_network(rng, clients)
    places = np.sort(rng.permutation(len(names))[: len(names) if sites is None else sites])
    between = rtt[np.ix_(places, places)].copy()
    np.fill_diagonal(between, 0.0)
    instance = Instance(
        sites=tuple(names[i] for i in places),
        clients=names,
        client_rtt=rtt[:, places],
        site_rtt=between,
        counts=demand(mix_shares(mix), len(names), rng),
        operations=STANDARD_OPERATIONS,
        name=f"{network}, {mix}, seed {seed}",
    )
    if network == "aws-2024":
        return instance, distributions_of(table, instance, clients=table)
    return instance, distributions_around(instance, network, rng)


def distributions_around(
    instance: Instance, network: str, rng: np.random.Generator
) -> Distributions:
    """Log-normal distributions around the RTTs of an instance, as the name of the network says."""
    if network not in NETWORKS:
        raise InputError("unknown network", field="network", value=network)
    known: dict[tuple[str, str], float] = {}
    for a in dict.fromkeys((*instance.clients, *instance.sites)):
        for b in instance.sites:
            drawn = MEDIAN * float(np.exp(SIGMA * rng.standard_normal()))
            known[a, b] = EQUAL if network == "equal spread" else drawn
    reaches = [
        reach_of_family(float(instance.client_rtt[i, j]), known[a, b], "lognormal")
        for i, a in enumerate(instance.clients)
        for j, b in enumerate(instance.sites)
    ]
    bins = bins_for(instance, reaches, 1.0)
    return Distributions.build(
        instance,
        lambda mean, a, b: of_family(mean, known[a, b], "lognormal", width=1.0, bins=bins),
    )
