"""Prices of sites and of traffic from CSV."""

from __future__ import annotations

import math
import os

from placement.errors import InputError
from placement.io.formats.tables import (
    Cell,
    Table,
    is_blank,
    name_cell,
    number_cell,
    quantity_cell,
    read_table,
)
from placement.io.price_lists.price_tables import SitePrices, Tiers, TransferTable
from placement.io.prices_document import PER_SITE, PRICE

__all__ = ["read_site_prices", "read_tiers", "read_transfer"]

_COLUMNS = ("storage", *PER_SITE)
_SENDER, _RECEIVER, _COST = ("from", "src"), ("to", "dst"), ("price", "cost")
_UP_TO = "up_to_gb"


def read_site_prices(path: str | os.PathLike[str]) -> SitePrices:
    """Read a table of prices per month.

    Parameters
    ----------
    path
        CSV: ``site``, and one or more of ``storage`` (or ``price``), ``machines``,
        ``machines_non_voting``, ``requests`` (per million operations); ``currency`` if named.

    Raises
    ------
    InputError
        For an unknown column, a site given twice, a blank or negative price, two currencies.
    """
    table = read_table(path)
    names = {"price": "storage"}
    columns: dict[str, dict[str, float]] = {}
    for column in table.columns[1:]:
        if column == "currency":
            continue
        kind = names.get(column, column)
        if kind not in _COLUMNS:
            raise InputError(
                "unknown column",
                source=table.source,
                field=column,
                expected="one of " + ", ".join((*_COLUMNS, "currency")),
            )
        columns[kind] = {}
        for row, cells in enumerate(table.rows):
            site = name_cell(cells[0], table.at(row), table.columns[0]).strip()
            if site in columns[kind]:
                raise InputError(
                    "a site given twice",
                    source=table.at(row),
                    field=table.columns[0],
                    value=site,
                    expected="one row for each site",
                )
            cell = cells[table.column(column)]
            columns[kind][site] = quantity_cell(cell, table.at(row), f"{column}, {site}", PRICE)
    return SitePrices(table.source, _currency(table), columns)


def read_transfer(path: str | os.PathLike[str]) -> TransferTable:
    """Read prices per GB sent.

    Parameters
    ----------
    path
        CSV. *Long*: ``from``, ``to`` and ``price`` (or ``src``, ``dst``, ``cost``), with
        ``up_to_gb`` where prices depend on the volume per month. *Square*: the sender in the first
        column, one column per receiver; a blank cell is a pair without a price.

    Raises
    ------
    InputError
        For a pair given twice, a negative price, tiers that do not ascend, two currencies.
    """
    table = read_table(path)
    if not any(name in table.columns for name in _RECEIVER):
        return _square(table)
    sender, receiver, cost = (_first(table, names) for names in (_SENDER, _RECEIVER, _COST))
    limits = table.column(_UP_TO) if _UP_TO in table.columns else None
    prices: dict[tuple[str, str], float] = {}
    steps: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for row, cells in enumerate(table.rows):
        where = table.at(row)
        pair = (
            name_cell(cells[sender], where, table.columns[sender]).strip(),
            name_cell(cells[receiver], where, table.columns[receiver]).strip(),
        )
        words = f"{pair[0]} to {pair[1]}"
        price = quantity_cell(cells[cost], where, f"{table.columns[cost]}, {words}", PRICE)
        if limits is None:
            if pair in prices:
                raise InputError(
                    "a pair given twice",
                    source=where,
                    field="to",
                    value=words,
                    expected=f"one price, or a column {_UP_TO} with the volume of each tier",
                )
            prices[pair] = price
            continue
        most = _limit(cells[limits], where)
        steps.setdefault(pair, []).append((most, price))
    tiers = {pair: checked_tiers(found, table.source, pair) for pair, found in steps.items()}
    flat = {pair: found[0][1] for pair, found in tiers.items() if len(found) == 1}
    return TransferTable(
        table.source,
        _currency(table),
        prices | flat,
        {pair: found for pair, found in tiers.items() if len(found) > 1},
    )


def read_tiers(path: str | os.PathLike[str]) -> dict[str, Tiers]:
    """Read the tiers of each sender: ``from``, ``up_to_gb`` (blank: no limit) and ``price``.

    Raises
    ------
    InputError
        For tiers that do not ascend or do not end without a limit, and negative prices.
    """
    table = read_table(path)
    sender, cost, limits = _first(table, _SENDER), _first(table, _COST), table.column(_UP_TO)
    steps: dict[str, list[tuple[float, float]]] = {}
    for row, cells in enumerate(table.rows):
        where = table.at(row)
        name = name_cell(cells[sender], where, table.columns[sender]).strip()
        price = quantity_cell(cells[cost], where, f"{table.columns[cost]}, {name}", PRICE)
        steps.setdefault(name, []).append((_limit(cells[limits], where), price))
    return {
        name: checked_tiers(found, table.source, (name, "all")) for name, found in steps.items()
    }


def checked_tiers(found: list[tuple[float, float]], source: str, pair: tuple[str, str]) -> Tiers:
    """Return tiers in ascending order.

    Raises
    ------
    InputError
        For two tiers of one volume, and where the last has a limit.
    """
    ordered = sorted(found)
    limits = [most for most, _ in ordered]
    if len(set(limits)) < len(limits) or limits[-1] != math.inf:
        raise InputError(
            "tiers that do not ascend to one without a limit",
            source=source,
            field=_UP_TO,
            value=f"{pair[0]} to {pair[1]}: {', '.join(f'{most:g}' for most in limits)}",
            expected="volumes in GB per month, each once, and a blank for the last tier",
        )
    return tuple(ordered)


def _limit(cell: Cell, where: str) -> float:
    if is_blank(cell):
        return math.inf
    most = number_cell(cell, where, _UP_TO, "GB per month, or blank")
    if not most > 0:
        raise InputError(
            "not a volume", source=where, field=_UP_TO, value=cell, expected="GB > 0, or blank"
        )
    return most


def _square(table: Table) -> TransferTable:
    prices: dict[tuple[str, str], float] = {}
    for row, cells in enumerate(table.rows):
        sender = name_cell(cells[0], table.at(row), table.columns[0]).strip()
        for receiver, cell in zip(table.columns[1:], cells[1:], strict=True):
            if receiver == "currency" or is_blank(cell):
                continue
            if (sender, receiver) in prices:
                raise InputError(
                    "a row given twice",
                    source=table.at(row),
                    field=table.columns[0],
                    value=sender,
                    expected="one row for each sender",
                )
            words = f"{sender} to {receiver}"
            prices[sender, receiver] = quantity_cell(cell, table.at(row), words, PRICE)
    return TransferTable(table.source, _currency(table), prices)


def _first(table: Table, names: tuple[str, ...]) -> int:
    for name in names:
        if name in table.columns:
            return table.columns.index(name)
    return table.column(names[0])


def _currency(table: Table) -> str:
    if "currency" not in table.columns:
        return ""
    place, found = table.column("currency"), ""
    for row, cells in enumerate(table.rows):
        name = name_cell(cells[place], table.at(row), "currency").strip()
        if found and name != found:
            raise InputError(
                "two currencies",
                source=table.at(row),
                field="currency",
                value=name,
                expected=f"{found} in every row",
            )
        found = name
    return found
