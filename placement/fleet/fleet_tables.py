"""Tables of fleets: limits and databases in, plans out."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from placement.errors import InputError, require
from placement.fleet.fleet_plan import FleetPlan, NoFleetPlan, SharedRows
from placement.fleet.fleet_problem import SITE_LIMITS
from placement.io.formats.document import Document, parse_json, read_json
from placement.io.formats.files import read_text
from placement.io.formats.tables import (
    PARQUET,
    Table,
    is_blank,
    name_cell,
    parquet_about,
    quantity_cell,
    read_table,
)
from placement.support.checks import FloatArray
from placement.text.text_tables import ValueColumn, ValueTable

if TYPE_CHECKING:
    import pandas as pd

FLEET_FORMAT = "fleet/1"
"""Format of a plan of a fleet, in its JSON."""

_ABOUT = "replica-placement.fleet"
"""Key of the part of a plan that is not in its table, in a Parquet file."""

_PLAN = (
    "database", "copies", "leader", "voters", "replicas", "mean_ms", "alone_ms", "paid",
    "new_replicas",
)  # fmt: skip
"""Columns of the table of plans."""

_AMOUNT = "a finite number >= 0"

_ROUNDING = 1e-12
"""Part of the value that is paid by rounding alone."""

_MEMBER = ("storage_gb", "written_gb", "leader_operations", "copies")


@dataclass(frozen=True, slots=True)
class MemberRow:
    """A row of the table of databases."""

    #: these and the others: as in FleetMember
    storage_gb: float = 0.0
    written_gb: float = 0.0
    leader_operations: float | None = None
    copies: int = 1


def read_site_limits(
    path: str | os.PathLike[str], sites: Sequence[str]
) -> dict[str, FloatArray | None]:
    """Read the limits of each site by column, shape (sites,), +∞ without one; None: no such column.

    The table (CSV, TSV or Parquet) has the column ``site`` and at least one of ``storage_gb``,
    ``leader_operations``, ``egress_gb``. An empty cell, and a site that is not listed, have no
    limit. Errors name file, row and column.
    """
    table = read_table(path)
    key = table.column("site")
    gone, instead = "reads_served", "leader_operations: the operations that need a leader"
    there = gone in table.columns
    require(not there, gone, "this limit is gone", expected=instead, source=table.source)
    found = {name: table.columns.index(name) for name in SITE_LIMITS if name in table.columns}
    header, expected = ", ".join(table.columns), "at least one of the columns "
    expected += ", ".join(SITE_LIMITS)
    require(found, "header", "no limits", header, expected, source=table.source)
    limits = {name: np.full(len(sites), np.inf) for name in found}
    number = {name: i for i, name in enumerate(sites)}
    for row, site in _keyed(table, key, number):
        for name, column in found.items():
            cell = table.rows[row][column]
            if not is_blank(cell):
                limits[name][number[site]] = quantity_cell(cell, table.at(row), name, _AMOUNT)
    return {name: limits.get(name) for name in SITE_LIMITS}


def read_members(path: str | os.PathLike[str], names: Sequence[str]) -> dict[str, MemberRow]:
    """Read the storage, the writes and the number of copies of each database.

    The table (CSV, TSV or Parquet) has the column ``database`` and any of ``storage_gb``,
    ``written_gb``, ``leader_operations``, ``copies``. An empty cell is as a missing column. `names`
    are the databases that have demand. Errors name file, row and column.
    """
    table = read_table(path)
    key = table.column("database")
    found = {name: table.columns.index(name) for name in _MEMBER if name in table.columns}
    members = {}
    for row, database in _keyed(table, key, set(names)):
        given: dict[str, float] = {}
        for name, column in found.items():
            cell, at = table.rows[row][column], table.at(row)
            if is_blank(cell):
                continue
            given[name] = quantity_cell(cell, at, name, _AMOUNT)
            whole = name != "copies" or (given[name] >= 1 and given[name].is_integer())
            require(whole, name, "no number of copies", cell, "a whole number >= 1", source=at)
        copies = int(given.pop("copies", 1))
        members[database] = MemberRow(**given, copies=copies)
    return members


def _keyed(table: Table, key: int, known: Container[str]) -> Iterator[tuple[int, str]]:
    """Yield (row, name) of a table with one row for each name; refuse unknown and repeated ones."""
    seen: set[str] = set()
    field = table.columns[key]
    for row, cells in enumerate(table.rows):
        name = name_cell(cells[key], table.at(row), field).strip()
        at, expected = table.at(row), f"a {field} of the fleet"
        require(name not in seen, field, f"{field} given twice", name, "each once", source=at)
        require(name in known, field, f"unknown {field}", name, expected, source=at)
        seen.add(name)
        yield row, name


def fleet_frame(plan: FleetPlan) -> pd.DataFrame:
    """Return a plan as a table: a row for each database and configuration.

    The mean latency ``alone_ms`` is the least without the other databases; ``paid`` is what all
    copies pay above it, in ms·operations.
    """
    import pandas as pd

    return pd.DataFrame(_plan_rows(plan), columns=list(_PLAN))


def _plan_rows(plan: FleetPlan) -> list[dict[str, Any]]:
    """Return a row for each database and configuration, with the columns of `_PLAN`."""
    sites = plan.fleet.sites
    alone = dict(zip((m.name for m in plan.fleet.members), plan.alone, strict=True))
    rows = []
    for member, each in plan:
        chosen = each.configuration
        value = member.problem.objective.value(member.problem, chosen)
        rate = member.problem.demand.operations
        here = () if member.present is None else member.present.replicas
        rows.append(
            {
                "database": member.name,
                "copies": each.copies,
                "leader": sites[chosen.leader],
                "voters": tuple(sites[site] for site in sorted(chosen.voters)),
                "replicas": tuple(sites[site] for site in chosen.replicas),
                "mean_ms": value / rate,
                "alone_ms": alone[member.name] / rate,
                "paid": each.copies * max(0.0, value - alone[member.name]),
                "new_replicas": len(set(chosen.replicas) - set(here)),
            }
        )
    return rows


def fleet_document(plan: FleetPlan) -> dict[str, object]:
    """Return a plan as JSON values: value, bound, prices and loads of the limits, databases.

    Loads of today are null if the present replicas are not known.
    """
    rows = plan.rows
    prices = np.zeros(len(rows.capacity)) if plan.prices is None else plan.prices
    today = plan.load_today
    before = [None] * len(rows.names) if today is None else today.tolist()
    return {
        "format": FLEET_FORMAT,
        "status": "feasible",
        "databases": plan.fleet.databases,
        "value": plan.value,
        "bound": plan.bound,
        "whole_bound": plan.whole_bound if math.isfinite(plan.whole_bound) else None,
        "gap": plan.gap,
        "alone": plan.value_alone,
        "mean_latency_ms": plan.mean_latency,
        "method": plan.method,
        "stopped": str(plan.termination),
        "rounds": [{"bound": bound, "relaxation": value} for bound, value in plan.rounds],
        "limits": _limits(rows, load=plan.load.tolist(), today=before, price=prices.tolist()),
        "plans": [
            {key: list(cell) if isinstance(cell, tuple) else cell for key, cell in row.items()}
            for row in _plan_rows(plan)
        ],
    }


def _limits(rows: SharedRows, **columns: Sequence[float | None]) -> list[dict[str, object]]:
    """Return the shared limits as JSON values, with more columns of numbers."""
    table = {"name": rows.names, "limit": rows.capacity.tolist(), **columns}
    return [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]


def no_plan_document(found: NoFleetPlan) -> dict[str, object]:
    """Return why there is no plan as JSON values, with the prices that prove it."""
    rows = SharedRows(found.fleet)
    prices = np.zeros(len(rows.capacity)) if found.prices is None else found.prices
    return {
        "format": FLEET_FORMAT,
        "status": "infeasible" if found.proven else "unknown",
        "databases": found.fleet.databases,
        "reasons": list(found.reasons),
        "oversize": list(found.oversize),
        "bound": found.bound if math.isfinite(found.bound) else None,
        "short": [
            {"name": each.name, "short_by": each.short_by, "limit": each.limit, "price": each.price}
            for each in found.short
        ],
        "limits": _limits(rows, price=prices.tolist()),
        "plans": [
            {"database": member.name, "copies": member.copies} for member in found.fleet.members
        ],
    }


def limits_table(document: Document, most: int | None = None) -> ValueTable:
    """Return the shared limits of a plan, the largest cost first; all, or at most some.

    The last column says what one more unit of the limit is worth.
    """
    rows = []
    for one in document.tables("limits"):
        today, load, limit, price = (
            one.number(key, math.nan) for key in ("today", "load", "limit", "price")
        )
        full = 100 * load / limit if limit > 0 else math.nan
        rows.append((one.text("name"), today, load, limit, full, price))
    rows.sort(key=lambda row: (-row[5] * row[3], -row[4] if row[4] == row[4] else 0.0))
    places = _decimals((cell for row in rows for cell in row[1:4]), 1)
    columns = [ValueColumn(name, places) for name in ("load today", "load", "at most")]
    columns.append(ValueColumn("full", 1, unit="%"))
    columns.append(ValueColumn("one more, ms·ops", _decimals((row[5] for row in rows), 4)))
    known = 0 if any(row[1] == row[1] for row in rows) else 1  # the loads of today
    return ValueTable(
        "Limits that cost most",
        (ValueColumn("limit"), *columns[known:]),
        tuple((row[0], *row[1 + known :]) for row in rows[:most]),
    )


def _decimals(numbers: Iterable[float], least: int) -> int:
    """Return the decimals that show three digits of the smallest number above 0."""
    smallest = min((x for x in numbers if 0 < x < math.inf), default=1.0)
    return max(least, 2 - math.floor(math.log10(smallest)))


def payers_table(document: Document, most: int) -> ValueTable:
    """Return the databases of a plan that pay most for sharing."""
    plans, least = document.tables("plans"), _ROUNDING * document.number("value")

    def paid(one: Document) -> float:
        return one.number("paid", 0.0)

    total = sum(map(paid, plans))
    paying = sorted((one for one in plans if paid(one) > least), key=paid, reverse=True)
    columns = [ValueColumn("database"), ValueColumn("copies", 0)]
    columns += [ValueColumn("share of it", 1, unit="%"), ValueColumn("mean ms", 2)]
    columns += [ValueColumn("alone ms", 2), *map(ValueColumn, ("leader", "replicas"))]
    rows = (
        (one.text("database"), one.whole("copies"), 100 * paid(one) / total, one.number("mean_ms"),
         one.number("alone_ms"), one.text("leader"), ", ".join(one.names("replicas")))
        for one in paying[:most]
    )  # fmt: skip
    return ValueTable("Databases that pay most for sharing", tuple(columns), tuple(rows))


def fleet_about(document: Mapping[str, object]) -> dict[str, str]:
    """Return the part of a document that a Parquet file keeps beside the table of plans."""
    return {_ABOUT: json.dumps({k: v for k, v in document.items() if k != "plans"})}


def is_fleet_file(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is a plan of a fleet by its name or its format.

    Parquet files are none of the other plans. False for a file that cannot be read.
    """
    if Path(path).suffix.lower() in PARQUET:
        return True
    try:
        document = read_json(path)
    except InputError:
        return False
    return isinstance(document, dict) and document.get("format") == FLEET_FORMAT


def read_whole_document(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a plan of a fleet with its question: JSON, or the metadata of a Parquet table."""
    parquet = Path(path).suffix.lower() in PARQUET
    written = parquet_about(path, _ABOUT) if parquet else read_text(path)
    expected = "a JSON or Parquet file that placement fleet wrote"
    document = parse_json(written, os.fspath(path), expected)
    if not isinstance(document, dict) or document.get("format") != FLEET_FORMAT:
        words = f"not a plan of a fleet (no format {FLEET_FORMAT})"
        raise InputError(words, source=os.fspath(path), expected=expected)
    return document


def read_fleet_document(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a plan of a fleet without its question: JSON, or Parquet with its table of plans."""
    document = read_whole_document(path)
    document.pop("question", None)
    if Path(path).suffix.lower() in PARQUET:
        table = read_table(path)
        planned = document.get("status", "feasible") == "feasible"
        places = [(name, table.column(name)) for name in (_PLAN if planned else _PLAN[:2])]
        document["plans"] = [{name: cells[at] for name, at in places} for cells in table.rows]
    elif isinstance(plans := document.get("plans"), list):
        document["plans"] = [
            {name: row[name] for name in _PLAN if name in row} if isinstance(row, dict) else row
            for row in plans
        ]
    return document
