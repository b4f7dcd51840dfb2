"""Prices in the manifest of an instance and its tables, and inside other files.

Scalars and mappings stand under the key ``prices``; ``storage`` has one row per site, with a column
for each price of a site; ``transfer``, ``to_clients`` and ``from_clients`` are matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from placement.errors import InputError
from placement.io.formats.document import Document
from placement.io.labelled_arrays import Labelled, to_rows
from placement.model.prices import Prices
from placement.support.checks import FloatArray

if TYPE_CHECKING:
    from placement.model.instance import Instance

__all__ = [
    "PER_SITE",
    "PRICE",
    "PRICE_TABLES",
    "prices_embedded",
    "prices_from_embedded",
    "prices_from_tables",
    "prices_head",
    "prices_tables",
]

PRICE = "a finite price >= 0"

PER_SITE = ("machines", "machines_non_voting", "requests")
"""Columns of the table of prices of sites beside the price of storage."""

_FOR_CLIENTS = ("to_clients", "from_clients")

PRICE_TABLES = ("storage", "transfer", *_FOR_CLIENTS)
"""Tables of an instance that hold prices."""

_SCALARS = (
    "currency",
    "written_gb",
    "gb_per_op",
    "interval_hours",
    "replication",
    "client_sites",
    "stored_gb",
    "present",
    "migration_months",
    "source",
)

Rows = Iterable[Sequence[str | float | None]]


class _Scalars(TypedDict):
    currency: str
    written_gb: float
    gb_per_op: dict[str, float]
    interval_hours: float | None
    replication: str
    client_sites: dict[str, str]
    stored_gb: float
    present: tuple[str, ...]
    migration_months: float
    witness_share: float
    source: str


def prices_head(prices: Prices) -> dict[str, object]:
    """Return the fields of a manifest about prices, without the tables; defaults are left out."""
    head: dict[str, object] = {"currency": prices.currency, "written_gb": prices.written_gb}
    return head | {key: value for key, value in prices.given.items() if key in _SCALARS}


def prices_tables(instance: Instance) -> list[tuple[str, Sequence[str], Rows]]:
    """Return name, header and rows of every table of the prices of an instance."""
    prices = instance.prices
    if prices is None:
        return []
    sites, clients = instance.sites, instance.clients
    columns = {"price": prices.storage}
    for name in PER_SITE:
        values: FloatArray | None = getattr(prices, name)
        if values is not None:
            columns[name] = values
    table = np.column_stack(list(columns.values()))
    found: list[tuple[str, Sequence[str], Rows]] = [
        ("storage", *to_rows(table, "site", (), sites, list(columns)))
    ]
    if prices.transfer is not None:
        found.append(("transfer", *to_rows(prices.transfer, "site", (), sites, sites)))
    for name in _FOR_CLIENTS:
        values = getattr(prices, name)
        if values is not None:
            found.append((name, *to_rows(values, "client", (), clients, sites)))
    return found


def prices_from_tables(
    document: Document,
    files: Document,
    matrix: Callable[[str, str, str], Labelled],
    sites: tuple[str, ...],
    clients: tuple[str, ...],
) -> Prices:
    """Read the prices of an instance folder.

    Parameters
    ----------
    document
        The key ``prices`` of the manifest.
    files
        Its key ``tables``.
    matrix
        Reads a table: (name, word for a row, quantity).
    sites, clients
        Names in their order.

    Raises
    ------
    InputError
        Naming the file, or the key, and what was expected.
    """
    document.only(_SCALARS)
    storage = matrix("storage", "site", PRICE)
    for name in storage.columns:
        if name not in ("price", *PER_SITE):
            raise InputError(
                "unknown column",
                source=storage.source,
                field=name,
                expected="one of price, " + ", ".join(PER_SITE),
            )
    of_site = storage.ordered(None, ("site", sites), ("column", storage.columns))

    def column(name: str) -> FloatArray | None:
        if name in storage.columns:
            return np.ascontiguousarray(of_site[:, storage.columns.index(name)])
        return None

    def table(name: str, word: str, rows: tuple[str, ...]) -> FloatArray | None:
        if not files.has(name):
            return None
        return matrix(name, word, PRICE).ordered(None, (word, rows), ("site", sites))

    price = column("price")
    if price is None:
        raise InputError(
            "missing column", source=storage.source, field="price", expected="the price of storage"
        )
    return Prices(
        storage=price,
        transfer=table("transfer", "site", sites),
        machines=column("machines"),
        machines_non_voting=column("machines_non_voting"),
        requests=column("requests"),
        to_clients=table("to_clients", "client", clients),
        from_clients=table("from_clients", "client", clients),
        **_scalars(document),  # type: ignore[arg-type]  # Prices checks `replication`
    )


def _scalars(document: Document) -> _Scalars:
    gb, homes = document.table("gb_per_op"), document.table("client_sites")
    return {
        "currency": document.text("currency", "USD"),
        "written_gb": document.number("written_gb", 0.0),
        "gb_per_op": {name: gb.number(name) for name in gb.values},
        "interval_hours": (
            document.number("interval_hours") if document.has("interval_hours") else None
        ),
        "replication": document.text("replication", "leader"),
        "client_sites": {name: homes.text(name) for name in homes.values},
        "stored_gb": document.number("stored_gb", 0.0),
        "present": document.names("present", ()),
        "migration_months": document.number("migration_months", 1.0),
        "witness_share": document.number("witness_share", 0.0),
        "source": document.text("source", ""),
    }


def prices_embedded(prices: Prices) -> dict[str, object]:
    """Return prices as one JSON object: every number, no tables."""
    return {
        "currency": prices.currency,
        "written_gb": prices.written_gb,
        "storage": prices.storage.tolist(),
        "transfer": None if prices.transfer is None else prices.transfer.tolist(),
        **prices.given,
    }


def prices_from_embedded(
    document: Document, array: Callable[[Document, str], FloatArray]
) -> Prices:
    """Read the document of :func:`prices_embedded`; `array` reads a table of numbers by its key."""

    def optional(key: str) -> FloatArray | None:
        return array(document, key) if document.has(key) else None

    return Prices(
        storage=array(document, "storage"),
        transfer=optional("transfer"),
        machines=optional("machines"),
        machines_non_voting=optional("machines_non_voting"),
        requests=optional("requests"),
        to_clients=optional("to_clients"),
        from_clients=optional("from_clients"),
        **_scalars(document),  # type: ignore[arg-type]  # Prices checks `replication`
    )
