"""Instances as folders: a manifest, and tables as CSV or Parquet.

    mine/
      instance.json      what the rest means, and a fingerprint of the whole
      sites.csv          site, lat, lon, one column per failure-domain level
      clients.csv        client, lat, lon
      site_rtt.csv       rows wait for columns, ms
      client_rtt.csv     rows are clients, ms
      counts.csv         interval, client, one column per operation
      storage.csv        if money matters: prices of each site; transfer.csv: of a GB sent

The manifest may be written by hand, as JSON or TOML (``instance.toml``); only the three tables of
numbers are needed then. What is loaded equals what was saved to the last bit.
"""

from __future__ import annotations

import dataclasses
import math
import os
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from placement.errors import (
    Gathered,
    InputError,
    PlacementWarning,
    for_each,
    located,
    refused,
    require,
)
from placement.io.demand_tables import order_intervals
from placement.io.feeds.headers import coordinate_columns, read_header
from placement.io.formats.column_reader import (
    ColumnTable,
    Labelled,
    read_matrix,
    text_numbers,
    to_rows,
)
from placement.io.formats.document import Document, encode_json, read_document
from placement.io.formats.files import write_folder
from placement.io.formats.tables import (
    Cell,
    Table,
    csv_bytes,
    free_column,
    is_blank,
    name_cell,
    number_cell,
    parquet_bytes,
    read_table,
)
from placement.io.problem_document import GONE, read_protocol
from placement.model.instance import SITE_LEVEL, Instance
from placement.model.operations import NAMED_OPERATIONS, Operation
from placement.model.prices import PER_SITE, Prices
from placement.support.checks import FloatArray

FORMAT = "replica-placement instance"
VERSION = 2
"""Version 2 has waits, constants and a protocol; others are of version 1."""
MANIFEST = "instance.json"
_MANIFESTS = (MANIFEST, "instance.toml")

PRICE = "a finite price >= 0"
_FOR_CLIENTS = ("to_clients", "from_clients")
_PRICE_TABLES = ("storage", "transfer", *_FOR_CLIENTS)
_PRICES = (
    "currency", "written_gb", "gb_per_op", "interval_hours", "replication", "client_sites",
    "stored_gb", "present", "migration_months", "witness_share", "source",
)  # fmt: skip

_COUNT = "a finite number >= 0"
_RTT = "a finite number of milliseconds >= 0"
_KEYS = (
    "format",
    "version",
    "name",
    "provenance",
    "fingerprint",
    "operations",
    "protocol",
    "intervals",
    "levels",
    "prices",
    "tables",
)
_TABLES = ("sites", "clients", "site_rtt", "client_rtt", "counts", *_PRICE_TABLES)

Rows = Iterable[Sequence[str | float | None]]
Writer = Callable[[Sequence[str], Rows], bytes]


# --- saving ----------------------------------------------------------------------------------


def save_instance(
    instance: Instance,
    folder: str | os.PathLike[str],
    *,
    tables: Literal["csv", "parquet"] = "csv",
    force: bool = False,
) -> Path:
    """Write an instance as a folder, whole or not at all.

    Parameters
    ----------
    instance
        The instance.
    folder
        Created when absent; its parent must exist.
    tables
        "csv", or "parquet" (needs the extra ``parquet``).
    force
        Replace the instance in the folder; the old one stays whole until the new one is. Other
        files in the folder are left alone.

    Returns
    -------
    Path
        The manifest.

    Raises
    ------
    InputError
        When the folder is in use and `force` is false; nothing is written then.
    MissingDependencyError
        For Parquet without pyarrow.
    """
    known = tables in ("csv", "parquet")
    require(known, "tables", "unknown format", tables, "'csv' or 'parquet'")
    path = Path(folder)
    if (path / "instance.toml").exists():
        words = "the folder has a manifest that was written by hand"
        expected = "another folder, or remove it first"
        raise InputError(words, source=str(path / "instance.toml"), expected=expected)
    writer: Writer = csv_bytes if tables == "csv" else parquet_bytes
    content = {f"{name}.{tables}": writer(header, rows) for name, header, rows in _tables(instance)}

    def manifest(names: Mapping[str, str]) -> bytes:
        return encode_json(
            {**head(instance), "tables": {Path(plain).stem: name for plain, name in names.items()}}
        )

    return write_folder(path, content, MANIFEST, manifest, force=force, stale=_old_tables(path))


def _old_tables(folder: Path) -> tuple[str, ...]:
    """Names of the tables of the instance in a folder, if there is one that can be read."""
    try:
        document = read_document(folder / MANIFEST)
        document.check_format(FORMAT, VERSION)
        listed = document.table("tables").values.values()
        return tuple(name for name in listed if isinstance(name, str))
    except InputError:
        return ()


def _level_columns(instance: Instance) -> dict[str, str]:
    """Column of each level in the table of sites: its name, unless that is taken."""
    taken = ["site", "lat", "lon"]
    columns = {}
    for level in instance.domains:
        columns[level] = free_column(level, taken)
        taken.append(columns[level])
    return columns


def head(instance: Instance) -> dict[str, object]:
    """Return the fields of a manifest about an instance, without its tables."""
    money: dict[str, object] | None = None
    if instance.prices is not None:
        every = prices_embedded(instance.prices)
        money = {key: value for key, value in every.items() if key in _PRICES}
    late = instance.protocol is not None or any(one.has_waits for one in instance.operations)
    return {
        "format": FORMAT,
        "version": VERSION if late else 1,
        "name": instance.name,
        "provenance": list(instance.provenance),
        "fingerprint": instance.fingerprint,
        "operations": [
            {
                "name": operation.name,
                "near": operation.near,
                "relay": operation.relay,
                "direct": operation.direct,
                "quorum": operation.quorum,
                # left out where it goes without saying, as in files of older versions
                **({} if operation.kind == operation.usual_kind else {"kind": operation.kind}),
                **({"waits": list(map(str, operation.waits))} if operation.waits else {}),
                **({"constant": operation.constant} if operation.constant else {}),
            }
            for operation in instance.operations
        ],
        **({} if instance.protocol is None else {"protocol": str(instance.protocol)}),
        "intervals": list(instance.intervals),
        "levels": _level_columns(instance),
        "prices": money,
    }


def _tables(instance: Instance) -> list[tuple[str, Sequence[str], Rows]]:
    """Name, header and rows of every table of an instance."""
    columns, found = _level_columns(instance), list[tuple[str, Sequence[str], Rows]]()
    for name, word, names, places, levels in (
        ("sites", "site", instance.sites, instance.site_coordinates, instance.domains),
        ("clients", "client", instance.clients, instance.client_coordinates, {}),
    ):
        degrees = [[] for _ in names] if places is None else places.tolist()
        globe = [] if places is None else ["lat", "lon"]
        lines = [
            [one, *at, *(labels[k] for labels in levels.values())]
            for k, (one, at) in enumerate(zip(names, degrees, strict=True))
        ]
        found.append((name, [word, *globe, *(columns[level] for level in levels)], lines))
    operations = [operation.name for operation in instance.operations]
    for name, values, word, rows, header in (
        ("site_rtt", instance.site_rtt, "site", instance.sites, instance.sites),
        ("client_rtt", instance.client_rtt, "client", instance.clients, instance.sites),
        ("counts", instance.counts, "client", instance.clients, operations),
    ):
        found.append((name, *to_rows(values, word, instance.intervals, rows, header)))
    return [*found, *_price_tables(instance)]


# --- loading ---------------------------------------------------------------------------------


def load_instance(path: str | os.PathLike[str]) -> Instance:
    """Read an instance from its folder or its manifest.

    Raises
    ------
    InputError
        For anything wrong, naming file, row, column or key, value and what was expected; also when
        the tables were changed after the manifest was written (its fingerprint no longer fits).
    MissingDependencyError
        For Parquet tables without pyarrow.
    """
    manifest = _manifest(Path(path))
    document = read_document(manifest)
    document.check_format(FORMAT, VERSION)
    document.only(_KEYS, GONE)
    files = document.table("tables")
    files.only(_TABLES, GONE)

    def table(name: str) -> Table | None:
        if not files.has(name):
            return None
        return read_table(manifest.parent / files.text(name))

    def matrix(name: str, word: str, quantity: str) -> Labelled:
        files.need(files.has(name), name, "missing table", "the name of a file")
        return read_matrix(manifest.parent / files.text(name), word, quantity)

    wanted = (("counts", "client", _COUNT), ("site_rtt", "site", _RTT))
    gathered = Gathered()  # the errors of all tables are told at once
    with gathered.part():
        counts, site_rtt, client_rtt = for_each(
            lambda one: matrix(*one), (*wanted, ("client_rtt", "client", _RTT))
        )
    with gathered.part():
        listed, people = for_each(table, ("sites", "clients"))
        of_sites = None if listed is None else read_sites(listed, _levels(document))
        of_clients = None if people is None else read_sites(people, {}, "client")
    gathered.check()
    intervals = document.names("intervals", ())
    if not intervals and counts.intervals:
        intervals = order_intervals(counts.intervals, counts.source, fill=False).labels
    sites, places, domains = of_sites or (site_rtt.rows, None, {})
    clients, homes, _ = of_clients or (client_rtt.rows, None, {})
    operations = _operations(document, counts)
    names = [operation.name for operation in operations]

    def ordered(
        found: Labelled, rows: tuple[str, Sequence[str]], columns: tuple[str, Sequence[str]]
    ) -> FloatArray:
        return found.ordered((intervals or ("1",)) if found.intervals else None, rows, columns)

    prices = None
    if document.has("prices") or files.has("storage"):
        prices = _prices_from(document.table("prices"), files, matrix, sites, clients)
    with located(str(manifest)):
        instance = Instance(
            sites=sites,
            clients=clients,
            client_rtt=ordered(client_rtt, ("client", clients), ("site", sites)),
            site_rtt=ordered(site_rtt, ("site", sites), ("site", sites)),
            counts=ordered(counts, ("client", clients), ("operation", names)),
            operations=operations,
            domains=domains,
            intervals=intervals,
            site_coordinates=places,
            client_coordinates=homes,
            prices=prices,
            name=document.text("name", manifest.parent.resolve().name),
            provenance=document.names("provenance", ()),
            protocol=read_protocol(document),
        )
    check_fingerprint(document, instance)
    return instance


def _manifest(path: Path) -> Path:
    if not path.is_dir():
        require(path.exists(), "", "no such file or folder", source=str(path))
        return path
    found = [path / name for name in _MANIFESTS if (path / name).exists()]
    if len(found) != 1:
        words = "two manifests" if found else "a folder without a manifest"
        raise InputError(words, source=str(path), expected="one of " + " and ".join(_MANIFESTS))
    return found[0]


def check_fingerprint(document: Document, instance: Instance) -> None:
    """Refuse an instance that is not the one its fingerprint was written for."""
    if document.has("fingerprint") and document.text("fingerprint") != instance.fingerprint:
        raise document.refuse(
            "fingerprint",
            "the tables are not those that this manifest was written for",
            f"{instance.fingerprint!r}; remove the key to accept the tables as they are now",
        )


def _levels(document: Document) -> Mapping[str, str] | None:
    if not document.has("levels"):
        return None
    table = document.table("levels")
    return {level: table.text(level) for level in table.values}


def read_sites(
    table: Table, levels: Mapping[str, str] | None, word: str = "site"
) -> tuple[tuple[str, ...], FloatArray | None, dict[str, tuple[str | None, ...]]]:
    """Read a table of sites (or clients): names, coordinates, failure domains.

    The first column has the names. ``lat`` and ``lon`` (or ``latitude``, ``lng``, …) are degrees,
    shape (n, 2), blank where unknown; None without such columns. `levels` are level -> column;
    without them every other column of names is a level, and a column of numbers is left out with a
    warning. Labels by level are None in a blank cell. A duplicate name, one of the two columns of
    coordinates alone, and coordinates off the globe are refused.
    """
    names, which = ColumnTable.of(table).found(table.columns[0], strip=False)
    if len(names) < len(table.rows):
        again = int((which != np.arange(len(which))).argmax())
        words = f"duplicate {word}"
        expected = f"once (first in row {table.numbers[int(which[again])]})"
        raise refused(table.at(again), table.columns[0], words, names[which[again]], expected)
    others = table.columns[1:]
    coordinates = None
    globe = coordinate_columns([n for n in others if n not in (levels or {}).values()])
    if globe:
        at = [table.column(globe.get("lat", "lat")), table.column(globe.get("lon", "lon"))]
        limits = (90.0, 180.0)
        coordinates = text_numbers(table, at)
        if not (coordinates.size and (np.abs(coordinates) <= limits).all()):  # also for NaN
            every = [
                (row[p], table.at(i), table.columns[p], limit)
                for i, row in enumerate(table.rows)
                for p, limit in zip(at, limits, strict=True)
            ]
            degrees = for_each(lambda given: _degrees(*given), every)
            coordinates = np.array(degrees).reshape(-1, 2)
    if levels is None:
        named = [name for name in others if name not in globe.values()]
        levels = {name: name for name in named if _names_domains(table, name)}
        if out := [name for name in named if name not in levels]:
            warnings.warn(
                f"{table.source}: {', '.join(out)}: numbers are no failure domains; left out",
                PlacementWarning,
                stacklevel=2,
            )
    domains = {}
    for level, column in levels.items():
        position = table.column(column)
        labels: dict[Cell, str | None] = {}
        for i, cells in enumerate(table.rows):
            cell = cells[position]
            if cell not in labels:
                labels[cell] = None if is_blank(cell) else name_cell(cell, table.at(i), column)
        domains[level] = tuple(labels[cells[position]] for cells in table.rows)
    return names, coordinates, domains


def _names_domains(table: Table, column: str) -> bool:
    """Return whether a column holds names of failure domains: no quantity, no mere numbers."""
    head = read_header(column)
    place = table.column(column)
    cells = [cells[place] for cells in table.rows if not is_blank(cells[place])]
    numbers = bool(cells) and all(re.fullmatch(r"[-+\d.,;\s°eE]+", str(cell)) for cell in cells)
    labels = head.place and not any(re.search(r"[.,;]", str(cell)) for cell in cells)
    return head.quantity != "coordinate" and (labels or not numbers)


def _degrees(cell: object, source: str, field: str, limit: float) -> float:
    if is_blank(cell):
        return math.nan
    expected = f"degrees within ±{limit:g}, or blank"
    value = number_cell(cell, source, field, expected)
    if math.isnan(value):  # a blank of Parquet
        return math.nan
    if abs(value) > limit:
        raise refused(source, field, "coordinate out of range", cell, expected)
    return value


def _operations(document: Document, counts: Labelled) -> tuple[Operation, ...]:
    rows = document.tables("operations")
    if not rows:
        standard = {operation.name: operation for operation in NAMED_OPERATIONS}
        for name in counts.columns:
            if name not in standard:
                expected = (
                    "one of " + ", ".join(standard) + ", or its coefficients in the "
                    "manifest under 'operations'"
                )
                raise refused(counts.source, "header", "unknown operation", name, expected)
        return tuple(standard[name] for name in counts.columns)
    return tuple(map(operation_from, rows))


def operation_from(row: Document) -> Operation:
    """Return the operation that a row of a manifest describes."""
    row.only([field.name for field in dataclasses.fields(Operation)], GONE)
    with located(f"{row.source}, {row.place}"):
        return Operation(**row.fields(Operation))


# Instances inside another file, as one JSON object: every number and name, no tables


def instance_document(instance: Instance) -> dict[str, object]:
    """Return an instance as one JSON object, to stand inside another file."""

    def degrees(values: FloatArray | None) -> object:
        if values is None:
            return None
        return [[None if math.isnan(x) else x for x in row] for row in values.tolist()]

    prices = instance.prices
    found = head(instance)
    found["levels"] = {level: list(labels) for level, labels in instance.domains.items()}
    found["coordinates"] = {
        "sites": degrees(instance.site_coordinates),
        "clients": degrees(instance.client_coordinates),
    }
    if prices is not None:
        found["prices"] = prices_embedded(prices)
    return {
        **found,
        "sites": list(instance.sites),
        "clients": list(instance.clients),
        "site_rtt": instance.site_rtt.tolist(),
        "client_rtt": instance.client_rtt.tolist(),
        "counts": instance.counts.tolist(),
    }


def instance_from_document(document: Document) -> Instance:
    """Build an instance from the object that :func:`instance_document` made."""
    document.check_format(FORMAT, VERSION)
    document.only((*_KEYS, *_TABLES[:5], "coordinates"), GONE)
    prices = None
    if document.has("prices"):
        prices = Prices(**document.table("prices").fields(Prices))
    places, levels = document.table("coordinates"), document.table("levels")
    domains: dict[str, tuple[str | None, ...]] = {}
    for level, labels in levels.values.items():
        if not isinstance(labels, list) or level == SITE_LEVEL:
            raise levels.refuse(level, "not a level", "one label per site")
        domains[level] = tuple(None if label is None else str(label) for label in labels)
    with located(f"{document.source}, {document.place}"):
        instance = Instance(
            sites=document.names("sites"),
            clients=document.names("clients"),
            client_rtt=document.array("client_rtt"),
            site_rtt=document.array("site_rtt"),
            counts=document.array("counts"),
            operations=tuple(operation_from(row) for row in document.tables("operations")),
            domains=domains,
            intervals=document.names("intervals"),
            site_coordinates=places.array("sites") if places.has("sites") else None,
            client_coordinates=places.array("clients") if places.has("clients") else None,
            prices=prices,
            name=document.text("name"),
            provenance=document.names("provenance"),
            protocol=read_protocol(document),
        )
    check_fingerprint(document, instance)
    return instance


# --- prices: tables of an instance, and inside other files -----------------------------------


def _price_tables(instance: Instance) -> list[tuple[str, Sequence[str], Rows]]:
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


def _prices_from(
    document: Document,
    files: Document,
    matrix: Callable[[str, str, str], Labelled],
    sites: tuple[str, ...],
    clients: tuple[str, ...],
) -> Prices:
    """Return the prices of the manifest and its tables, which `matrix` reads."""
    document.only(_PRICES)
    storage = matrix("storage", "site", PRICE)
    for name in storage.columns:
        if name not in ("price", *PER_SITE):
            expected = "one of price, " + ", ".join(PER_SITE)
            raise InputError("unknown column", source=storage.source, field=name, expected=expected)
    numbers = storage.ordered(None, ("site", sites), ("column", storage.columns))
    columns: dict[str, Any] = dict(
        zip(storage.columns, np.ascontiguousarray(numbers.T), strict=True)
    )
    there, expected = "price" in columns, "the price of storage"
    require(there, "price", "missing column", expected=expected, source=storage.source)

    def table(name: str, word: str, rows: tuple[str, ...]) -> FloatArray | None:
        if not files.has(name):
            return None
        return matrix(name, word, PRICE).ordered(None, (word, rows), ("site", sites))

    return Prices(
        storage=columns.pop("price"),
        transfer=table("transfer", "site", sites),
        **columns,
        to_clients=table("to_clients", "client", clients),
        from_clients=table("from_clients", "client", clients),
        **document.fields(Prices, _PRICES),
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
