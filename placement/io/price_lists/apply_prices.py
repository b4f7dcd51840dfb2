"""An instance with the prices of price lists."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from placement.errors import InputError
from placement.io.price_lists.price_tables import (
    INTERNET,
    PriceList,
    SitePrices,
    TransferTable,
    one_currency,
)
from placement.model.instance import Instance
from placement.model.prices import Prices, gb_of_operations
from placement.support.checks import FloatArray

__all__ = ["PriceInput", "nearest_sites", "with_prices"]


@dataclass(frozen=True, eq=False)
class PriceInput:
    """Prices by name that replace those of an instance; None and empty: no change.

    Attributes
    ----------
    sites
        Prices of sites, or one price of storage for all.
    transfer
        Prices of traffic.
    zones
        Level of failure domains whose names stand in `transfer` in place of sites.
    client_places
        Client -> site, domain of `zones`, or "internet", whose prices of traffic it has. When
        operations move data, every client that has no site's name needs a place.
    gb_per_op, written_gb, interval_hours, replication, stored_gb, present
        As in :class:`placement.Prices`.
    """

    sites: SitePrices | float | None = None
    transfer: TransferTable | None = None
    zones: str | None = None
    client_places: Mapping[str, str] = field(default_factory=dict)
    gb_per_op: Mapping[str, float] = field(default_factory=dict)
    written_gb: float | None = None
    interval_hours: float | None = None
    replication: Literal["leader", "gateway"] | None = None
    stored_gb: float | None = None
    present: Sequence[str] = ()


def with_prices(instance: Instance, given: PriceInput) -> Instance:
    """Return the instance with other prices.

    Raises
    ------
    InputError
        For a site or a pair without a price, two currencies, a client that moves data and has no
        place, and as :class:`placement.Prices`.
    """
    before = instance.prices
    fields: dict[str, object] = {}
    lists: list[PriceList] = []
    if before is not None:
        fields = {one.name: getattr(before, one.name) for one in dataclasses.fields(before)}
        if given.sites is None or given.transfer is None:
            lists.append(PriceList(f"the instance {instance.name!r}", before.currency))
    for name in ("written_gb", "interval_hours", "replication", "stored_gb"):
        if getattr(given, name) is not None:
            fields[name] = getattr(given, name)
    for name in ("gb_per_op", "present"):
        if getattr(given, name):
            fields[name] = getattr(given, name)
    if isinstance(given.sites, SitePrices):
        lists.append(given.sites)
        fields |= _site_fields(instance, given.sites, fields.get("stored_gb", 0.0))
    elif given.sites is not None:
        fields["storage"] = np.full(len(instance.sites), given.sites)
    if "storage" not in fields:
        raise InputError(
            "no prices of the sites",
            field="prices",
            expected="a table of prices, or one price of a replica for all sites",
        )
    if given.transfer is not None:
        lists.append(given.transfer)
        fields |= _transfer_fields(instance, given, given.transfer, fields.get("gb_per_op", {}))
    elif given.client_places:
        fields["client_sites"] = dict(given.client_places)
    if fields.get("transfer") is None:
        for name in ("written_gb", "gb_per_op"):
            if getattr(given, name):
                raise InputError(
                    "traffic without a price",
                    field=name,
                    value=getattr(given, name),
                    expected="prices per GB too (--transfer)",
                )
    fields["currency"] = one_currency(lists)
    named = [prices.source for prices in lists if prices.source]
    if named:
        fields["source"] = "; ".join(dict.fromkeys(named))
    return instance.replace(prices=Prices(**fields))  # type: ignore[arg-type]  # checked there


def _site_fields(instance: Instance, given: SitePrices, stored_gb: object) -> dict[str, object]:
    sites = instance.sites
    fields: dict[str, object] = {
        name: given.of(name, sites) for name in ("machines", "machines_non_voting", "requests")
    }
    storage, each = given.of("storage", sites), given.of("storage_gb", sites)
    if each is not None:
        if not isinstance(stored_gb, (int, float)) or not stored_gb:
            raise InputError(
                "storage has a price per GB",
                source=given.source,
                field="stored_gb",
                value=stored_gb,
                expected="the GB of one replica",
            )
        storage = each * float(stored_gb) + (0.0 if storage is None else storage)
    fields["storage"] = np.zeros(len(sites)) if storage is None else storage
    return fields


def _transfer_fields(
    instance: Instance, given: PriceInput, table: TransferTable, gb_per_op: object
) -> dict[str, object]:
    """Return the matrices of an instance: between sites, and from and to its clients."""
    sites = instance.sites
    if "continent" in instance.domains:
        table = table.by_continent(sites, instance.domains["continent"])
    zones = _zone_names(instance, given.zones)
    count = len(sites)
    transfer = table.between(zones, zones, np.eye(count, dtype=bool))
    gb = gb_of_operations(Prices(np.zeros(1), gb_per_op=gb_per_op), instance.operations)  # type: ignore[arg-type]  # checked there
    unknown = set(given.client_places) - set(instance.clients)
    if unknown:
        raise InputError(
            "unknown client",
            field="client_sites",
            value=min(unknown),
            expected="one of the clients of the instance",
        )
    if not gb.any() and given.replication != "gateway":
        homes = {c: place for c, place in given.client_places.items() if place in sites}
        none = {"to_clients": None, "from_clients": None}
        return {"transfer": transfer, "client_sites": homes, **none}
    index = {name: s for s, name in enumerate(sites)}
    to_clients: FloatArray = np.zeros((len(instance.clients), count))
    from_clients: FloatArray = np.zeros_like(to_clients)
    for c, client in enumerate(instance.clients):
        place = given.client_places.get(client, client)
        if place in index:
            to_clients[c], from_clients[c] = transfer[:, index[place]], transfer[index[place]]
        elif place == INTERNET or place in zones:
            apart = np.zeros((count, 1), dtype=bool)
            to_clients[c] = table.between(zones, [place], apart)[:, 0]
            from_clients[c] = table.between([place], zones, apart.T)[0]
        else:
            raise InputError(
                f"client {client!r} moves data and is at no site, so its traffic has no price",
                field="client_sites",
                value=place,
                expected="a site, a domain of the price list, or 'internet' for it",
            )
    return {
        "transfer": transfer,
        "client_sites": {},
        "to_clients": to_clients,
        "from_clients": from_clients,
    }


def _zone_names(instance: Instance, level: str | None) -> tuple[str, ...]:
    """Return the name under which each site stands in a price list."""
    if level is None:
        return instance.sites
    found = []
    for site, label in zip(instance.sites, instance.labels(level), strict=True):
        if label is None:
            raise InputError(
                f"site {site!r} has no {level}",
                field="zones",
                value=level,
                expected="a level at which every site has a domain",
            )
        found.append(label)
    return tuple(found)


def nearest_sites(instance: Instance) -> dict[str, str]:
    """Return client -> site of the smallest RTT; with RTTs that vary, in the mean."""
    rtt = instance.client_rtt
    near = (rtt.mean(axis=0) if rtt.ndim == 3 else rtt).argmin(axis=1)
    return {
        client: instance.sites[s] for client, s in zip(instance.clients, near.tolist(), strict=True)
    }
