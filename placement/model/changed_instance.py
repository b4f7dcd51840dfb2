"""Instances with another demand, or without some sites: what-if questions in one call."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from placement.checks import LARGEST, instance_of, mapping, number
from placement.errors import InputError
from placement.model.instance import Instance
from placement.model.waits import Wait

__all__ = ["scale_demand", "with_waits", "without_sites"]


def scale_demand(instance: Instance, factors: Mapping[str, float]) -> Instance:
    """Return the instance with the demand of some clients multiplied by a factor.

    Parameters
    ----------
    instance
        Sites, clients, RTTs and demand.
    factors
        Name of a client -> factor, >= 0, for all of its operations in all intervals.

    Raises
    ------
    InputError
        For an unknown client, and for a factor that is no number >= 0.

    Examples
    --------
    >>> import placement
    >>> world = placement.load("world27")
    >>> grown = placement.scale_demand(world, {"Tokyo": 3})
    >>> client = world.client_index("Tokyo")
    >>> float(grown.counts[:, client].sum() / world.counts[:, client].sum())
    3.0
    """
    instance_of(instance, Instance, "instance", "a placement.Instance")
    counts = instance.counts.copy()
    for client, factor in mapping(factors, "factors").items():
        counts[:, instance.client_index(str(client))] *= number(
            factor, f"factors[{client!r}]", maximum=LARGEST
        )
    words = ", ".join(f"{client} × {factor:g}" for client, factor in factors.items())
    return instance.replace(
        counts=counts, provenance=(*instance.provenance, f"Demand scaled: {words}.")
    )


def without_sites(instance: Instance, sites: Sequence[str]) -> Instance:
    """Return the instance without some sites; the clients there stay, and use other sites.

    Parameters
    ----------
    instance
        Sites, clients, RTTs and demand.
    sites
        Names of the sites that are gone.

    Raises
    ------
    InputError
        For an unknown site, and when no site is left.
    """
    instance_of(instance, Instance, "instance", "a placement.Instance")
    gone = instance.site_indices(sites, "sites")
    kept = np.setdiff1d(np.arange(len(instance.sites)), gone)
    if not len(kept):
        raise InputError("no site is left", field="sites", value=tuple(sites))
    prices = instance.prices
    if prices is not None:
        prices = prices.at_sites(instance.sites, kept.tolist())
    places = instance.site_coordinates
    names = ", ".join(instance.sites[s] for s in gone)
    return instance.replace(
        sites=tuple(instance.sites[s] for s in kept),
        client_rtt=instance.client_rtt[..., kept],
        site_rtt=instance.site_rtt[..., kept, :][..., kept],
        domains={
            level: tuple(labels[s] for s in kept) for level, labels in instance.domains.items()
        },
        site_coordinates=None if places is None else places[kept],
        prices=prices,
        provenance=(*instance.provenance, f"Without the sites {names}."),
    )


def with_waits(instance: Instance, waits: Mapping[str, Sequence[Wait | str] | str]) -> Instance:
    """Return the instance whose named operations wait for something else than rounds of votes.

    Parameters
    ----------
    instance
        Sites, clients, RTTs and demand.
    waits
        Name of an operation -> its waits, in place of its coefficient δ; its trips stay.

    Raises
    ------
    InputError
        For an unknown operation, and for a text that is no wait.
    """
    instance_of(instance, Instance, "instance", "a placement.Instance")
    known = {operation.name: operation for operation in instance.operations}
    for name, given in mapping(waits, "waits", "operation -> its waits").items():
        if name not in known:
            raise InputError(
                "unknown operation",
                field="waits",
                value=name,
                expected="one of " + ", ".join(known),
            )
        known[name] = dataclasses.replace(known[name], quorum=0.0, waits=given)  # type: ignore[arg-type]  # checked there
    return instance.replace(operations=tuple(known.values()))
