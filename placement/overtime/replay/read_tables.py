"""Demand and deployments from tables: CSV, TSV or Parquet, checked cell by cell.

Demand is read by :mod:`placement.io.demand_tables`, as ``placement import`` reads it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from placement.errors import InputError
from placement.io.demand_tables import read_demand
from placement.io.formats.tables import is_blank, name_cell, quantity_cell, read_table
from placement.model.instance import Instance
from placement.overtime.replay.deployments import NOBODY, Deployments
from placement.overtime.replay.trace import Trace

__all__ = ["read_deployments", "read_trace"]


def read_trace(path: str | os.PathLike[str], instance: Instance) -> tuple[Trace, tuple[str, ...]]:
    """Read demand per database and interval, by the reader that ``placement import`` uses.

    Parameters
    ----------
    path
        A table as :func:`placement.io.demand_tables.read_demand` takes it, with a column
        ``interval``. Without ``database`` all rows are of one database, named after the instance.
    instance
        Whose clients and operations the table names; where its RTTs vary, its intervals too.

    Returns
    -------
    Trace
        Databases in the order of their first row; intervals oldest first.
    notes
        Sentences that say what the reader did, such as "sorted 48 intervals by time".

    Raises
    ------
    InputError
        Naming file, row and column, as the reader does; and for a table without intervals.
    MissingDependencyError
        For Parquet without pyarrow.
    """
    found = read_demand(
        path,
        clients=instance.clients,
        operations=[operation.name for operation in instance.operations],
        intervals=instance.intervals if instance.varying_rtt else None,
    )
    if not found.intervals:
        raise InputError(
            "no such column",
            source=found.source,
            field="interval",
            expected="a column that says in which interval the operations were issued",
        )
    return Trace(found.databases or (instance.name,), found.intervals, found.counts), found.notes


# --- deployments -----------------------------------------------------------------------------


def read_deployments(
    path: str | os.PathLike[str], instance: Instance, databases: Sequence[str]
) -> Deployments:
    """Read the present configuration of each database.

    Parameters
    ----------
    path
        CSV, TSV or Parquet with the columns ``database``, ``site``, ``role``: a row per replica;
        the role is ``replica`` (read-only), ``voter``, or ``leader`` (a voter that is preferred as
        leader; at most one per database). An optional column ``share`` tells the share of the
        database's groups that each voter leads today; a database has none, or they sum to 1.
    instance
        Whose sites the table names.
    databases
        Those that need a deployment; rows of others are an error.

    Raises
    ------
    InputError
        Naming file, row and column: for an unknown database, site or role, a site given twice, two
        leaders, a database without rows or without a voter, shares that do not sum to 1.
    """
    table = read_table(path)
    columns = [table.column(name) for name in ("database", "site", "role")]
    share_column = table.columns.index("share") if "share" in table.columns else None
    shares = np.zeros((len(databases), len(instance.sites)))
    number = {name: i for i, name in enumerate(databases)}
    held = np.zeros((len(databases), len(instance.sites)), dtype=bool)
    votes = held.copy()
    wishes = np.full(len(databases), NOBODY, dtype=np.intp)
    for row, cells in enumerate(table.rows):
        at = table.at(row)
        database, site, role = (
            name_cell(cells[column], at, table.columns[column]).strip() for column in columns
        )
        if database not in number:
            raise InputError(
                "a database without demand",
                source=at,
                field="database",
                value=database,
                expected=f"one of the {len(number)} databases of the demand",
            )
        try:
            place = int(instance.site_indices([site], "site")[0])
        except InputError as error:
            raise error.at(at) from None
        if role not in ("replica", "voter", "leader"):
            raise InputError(
                "unknown role",
                source=at,
                field="role",
                value=role,
                expected="replica, voter, leader",
            )
        index = number[database]
        if held[index, place]:
            raise InputError(
                f"a site of {database} given twice", source=at, field="site", value=site,
                expected="once",
            )  # fmt: skip
        held[index, place] = True
        votes[index, place] = role != "replica"
        if share_column is not None and not is_blank(cells[share_column]):
            shares[index, place] = quantity_cell(cells[share_column], at, "share", "0 to 1")
            if role == "replica" and shares[index, place]:
                raise InputError(
                    "a share of leaders at a site that does not vote",
                    source=at,
                    field="share",
                    value=cells[share_column],
                    expected="a share of a voter, or nothing",
                )
        if role == "leader":
            if wishes[index] != NOBODY:
                raise InputError(
                    f"a second leader of {database}",
                    source=at,
                    field="role",
                    value=site,
                    expected=f"one (first {instance.sites[wishes[index]]})",
                )
            wishes[index] = place
    for index, database in enumerate(databases):
        if not votes[index].any():
            raise InputError(
                f"database {database} has no voter",
                source=table.source,
                field="database",
                expected="a row with role voter or leader for every database of the demand",
            )
        total = float(shares[index].sum())
        if total and abs(total - 1) > 1e-6:
            raise InputError(
                f"the shares of the leaders of {database} do not sum to 1",
                source=table.source,
                field="share",
                value=total,
                expected="1, or no shares",
            )
    return Deployments(held, votes, wishes, shares if shares.any() else None)
