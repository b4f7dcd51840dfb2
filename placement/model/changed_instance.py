"""Instances with another demand, other sites, or several replicas at a site: what-if questions."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping, Sequence

import numpy as np

from placement.datasets.distance_rtt import RouteModel
from placement.errors import InputError, UnitsWarning
from placement.model.distances import great_circle_km
from placement.model.instance import Instance
from placement.model.operations import Wait
from placement.model.protocols import operation_path
from placement.support.checks import (
    LARGEST,
    FloatArray,
    IntArray,
    instance_of,
    mapping,
    number,
    text,
)


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
        raise InputError(
            "no site is left", field="sites", value=tuple(sites), expected="fewer sites than all"
        )
    names = ", ".join(instance.sites[s] for s in gone)
    provenance = (*instance.provenance, f"Without the sites {names}.")
    return at_sites(instance, kept).replace(provenance=provenance)


def at_sites(
    instance: Instance, kept: Sequence[int] | IntArray, names: Sequence[str] | None = None
) -> Instance:
    """Return the instance with the `kept` of its sites, in another order or several times over.

    `names` are the unique ones of the new sites; None: their own.
    """
    kept = np.asarray(kept, dtype=np.intp)
    places, prices = instance.site_coordinates, instance.prices
    return instance.replace(
        sites=tuple(instance.sites[s] for s in kept) if names is None else tuple(names),
        client_rtt=instance.client_rtt[..., kept],
        site_rtt=instance.site_rtt[..., kept[:, None], kept],
        domains={
            level: tuple(labels[s] for s in kept) for level, labels in instance.domains.items()
        },
        site_coordinates=None if places is None else places[kept],
        prices=None if prices is None else prices.at_sites(instance.sites, kept.tolist()),
    )


def with_mix(instance: Instance, shares: Mapping[str, float]) -> Instance:
    """Return the instance with another operation mix; the number of operations stays.

    Every operation is scaled by one factor for all clients and intervals. One that no client issued
    is spread like all operations together; one without a share is issued no more. InputError for an
    unknown operation, and for shares that are no numbers >= 0 or are all 0.

    >>> import placement
    >>> mixed = with_mix(placement.load("world27"), {"weak_read": 3, "single_group": 1})
    >>> [round(float(n), 3) for n in mixed.counts.sum(axis=(0, 1)) / mixed.counts.sum()]
    [0.75, 0.0, 0.0, 0.25, 0.0]
    """
    instance_of(instance, Instance, "instance", "a placement.Instance")
    known = [operation.name for operation in instance.operations]
    share = np.zeros(len(known))
    for name, given in mapping(shares, "shares", "operation -> its share").items():
        if name not in known:
            expected = "one of " + ", ".join(known)
            raise InputError("unknown operation", field="shares", value=name, expected=expected)
        share[known.index(name)] = number(given, f"shares[{name!r}]", maximum=LARGEST)
    if not share.sum() > 0:
        raise InputError("no share is above 0", field="shares", value=dict(shares))
    issued = instance.counts.sum(axis=(0, 1))
    goal = issued.sum() * share / share.sum()
    everything = instance.counts.sum(axis=2)
    counts = np.empty_like(instance.counts)
    for o in range(len(known)):
        if issued[o] > 0:
            counts[:, :, o] = instance.counts[:, :, o] * (goal[o] / issued[o])
        else:
            counts[:, :, o] = everything * (goal[o] / max(issued.sum(), 1.0))
    words = ", ".join(
        f"{name} {100 * x / share.sum():.3g} %" for name, x in zip(known, share, strict=True)
    )
    return instance.replace(
        counts=counts, provenance=(*instance.provenance, f"Operation mix changed: {words}.")
    )


def with_site(instance: Instance, name: str, latitude: float, longitude: float) -> Instance:
    """Return the instance with one more site, whose RTTs are modelled from distance.

    The RTTs are those of :meth:`placement.datasets.distance_rtt.RouteModel.expected_ms`, in both
    directions and in every interval; a client with the name of a site is there. The failure domains
    are those of the closest site. InputError for a name that exists, a place off the globe, a site
    or client without coordinates, and an instance with prices, which has none for the new site.
    """
    instance_of(instance, Instance, "instance", "a placement.Instance")
    if text(name, "name") in instance.sites:
        raise InputError("there is a site with this name", field="name", value=name)
    if instance.prices is not None:
        raise InputError(
            "an added site has no price", field="name", value=name, expected="no prices"
        )
    sites = _known_places(instance.site_coordinates, instance.sites, "site", {})
    homes = dict(zip(instance.sites, sites, strict=True))
    clients = _known_places(instance.client_coordinates, instance.clients, "client", homes)
    place = np.array([[latitude, longitude]], dtype=np.float64)
    model = RouteModel()
    to_clients = model.expected_ms(great_circle_km(clients, place)).round(model.decimals)
    away = great_circle_km(sites, place)[:, 0]
    to_sites = model.expected_ms(away).round(model.decimals)
    closest = int(np.argmin(away))
    client_rtt = instance.client_rtt
    site_rtt = instance.site_rtt
    shape = (*client_rtt.shape[:-1], 1)
    edge = np.zeros((*site_rtt.shape[:-2], len(sites) + 1, len(sites) + 1))
    edge[..., :-1, :-1] = site_rtt
    edge[..., :-1, -1] = edge[..., -1, :-1] = to_sites
    where = f"{latitude:.2f}, {longitude:.2f}"
    return instance.replace(
        sites=(*instance.sites, name),
        client_rtt=np.concatenate([client_rtt, np.broadcast_to(to_clients, shape)], axis=-1),
        site_rtt=edge,
        domains={level: (*labels, labels[closest]) for level, labels in instance.domains.items()},
        site_coordinates=np.concatenate([sites, place]),
        provenance=(
            *instance.provenance,
            f"The site {name} was added at {where}; its RTTs are modelled from distance, "
            f"its failure domains are those of {instance.sites[closest]}.",
        ),
    )


def _known_places(
    places: FloatArray | None, names: Sequence[str], kind: str, homes: Mapping[str, FloatArray]
) -> FloatArray:
    """Return the coordinates of sites or clients; if unknown, the coordinates of `homes`."""
    known = np.full((len(names), 2), np.nan) if places is None else places.copy()
    for i, name in enumerate(names):
        if not np.isfinite(known[i]).all():
            if name not in homes:
                raise InputError(
                    f"the {kind} {name!r} has no coordinates, so no RTT to an added site can be "
                    "modelled",
                    field=f"{kind}_coordinates",
                )
            known[i] = homes[name]
    return known


def with_waits(instance: Instance, waits: Mapping[str, Sequence[Wait | str] | str]) -> Instance:
    """Return the instance whose named operations wait for something else than rounds of votes.

    Parameters
    ----------
    instance
        Sites, clients, RTTs and demand.
    waits
        Name of an operation -> its waits, in place of its coefficient δ; its trips stay. A kind
        of path (weak_read, bounded_read, strong_read, write, multi_write) that is no name stands
        for all operations of that kind; operations that are named come before their kind.

    Raises
    ------
    InputError
        For an unknown operation, and for a text that is no wait.
    """
    instance_of(instance, Instance, "instance", "a placement.Instance")
    known = {operation.name: operation for operation in instance.operations}
    asked = mapping(waits, "waits", "operation -> its waits")
    by_kind: dict[str, list[str]] = {}
    for name, operation in known.items():
        if name not in asked:
            by_kind.setdefault(operation_path(operation), []).append(name)
    for name, given in asked.items():
        named = [name] if name in known else by_kind.get(name, [])
        if not named or (name not in known and name == "other"):
            kinds = [kind for kind in by_kind if kind not in known and kind != "other"]
            raise InputError(
                "unknown operation",
                field="waits",
                value=name,
                expected="one of "
                + ", ".join(known)
                + (f"; or a kind: {', '.join(kinds)}" if kinds else ""),
            )
        for one in named:
            known[one] = dataclasses.replace(known[one], quorum=0.0, waits=given)  # type: ignore[arg-type]  # checked there
    return instance.replace(operations=tuple(known.values()))


# Instances whose sites can hold several replicas: copies of sites, in one place each

PLACE = "place"
"""Level of an instance with copies whose domains are the sites of the instance it was made of."""


def with_copies(instance: Instance, copies: int) -> Instance:
    """Return the instance with every site `copies` times, in groups; itself for one copy.

    Copy k of a site is called ``NAME (k)``. The new level ``place`` (:data:`PLACE`) has the sites
    of the instance as domains; InputError where there is a level of that name.
    """
    if copies == 1:
        return instance
    if PLACE in instance.domains:
        words = "the level is needed for sites with several replicas"
        expected = "another name for this level"
        raise InputError(words, field="domains", value=PLACE, expected=expected)
    names = tuple(
        name if k == 0 else f"{name} ({k + 1})" for name in instance.sites for k in range(copies)
    )
    place = np.repeat(np.arange(len(instance.sites)), copies)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnitsWarning)  # an RTT of 0 between copies is meant
        made = at_sites(instance, place, names)
        domains = {**made.domains, PLACE: tuple(instance.sites[i] for i in place)}
        return made.replace(domains=domains)
