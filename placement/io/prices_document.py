"""Prices in the manifest of an instance and its tables, and inside other files.

Scalars and mappings stand under the key ``prices``; ``storage`` has one row per site, with a column
for each price of a site; ``transfer``, ``to_clients`` and ``from_clients`` are matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from placement.errors import InputError
from placement.io.formats.document import Document
from placement.io.labelled_arrays import Labelled, to_rows
from placement.model.prices import PER_SITE, Prices
from placement.support.checks import FloatArray

if TYPE_CHECKING:
    from placement.model.instance import Instance

PRICE = "a finite price >= 0"

_FOR_CLIENTS = ("to_clients", "from_clients")

PRICE_TABLES = ("storage", "transfer", *_FOR_CLIENTS)
"""Tables of an instance that hold prices."""

_SCALARS = (
    "currency", "written_gb", "gb_per_op", "interval_hours", "replication", "client_sites",
    "stored_gb", "present", "migration_months", "witness_share", "source",
)  # fmt: skip

Rows = Iterable[Sequence[str | float | None]]


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
            expected = "one of price, " + ", ".join(PER_SITE)
            raise InputError("unknown column", source=storage.source, field=name, expected=expected)
    numbers = storage.ordered(None, ("site", sites), ("column", storage.columns))

    def column(name: str) -> FloatArray | None:
        if name in storage.columns:
            return np.ascontiguousarray(numbers[:, storage.columns.index(name)])
        return None

    def table(name: str, word: str, rows: tuple[str, ...]) -> FloatArray | None:
        if not files.has(name):
            return None
        return matrix(name, word, PRICE).ordered(None, (word, rows), ("site", sites))

    of_site: dict[str, Any] = {name: column(name) for name in PER_SITE}
    price = column("price")
    if price is None:
        raise InputError(
            "missing column", source=storage.source, field="price", expected="the price of storage"
        )
    return Prices(
        storage=price,
        transfer=table("transfer", "site", sites),
        **of_site,
        to_clients=table("to_clients", "client", clients),
        from_clients=table("from_clients", "client", clients),
        **document.fields(Prices, _SCALARS),
    )


def prices_embedded(prices: Prices) -> dict[str, object]:
    """Return prices as one JSON object: every number, no tables."""
    return {
        "currency": prices.currency,
        "written_gb": prices.written_gb,
        "storage": prices.storage.tolist(),
        "transfer": None if prices.transfer is None else prices.transfer.tolist(),
        **prices.given,
    }
