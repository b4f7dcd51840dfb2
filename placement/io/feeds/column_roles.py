"""Roles of the columns of a table: what is the source, the destination, the RTT, the client.

A role is guessed only where exactly one column fits. ``--columns src=from,dst=to,rtt=ms`` decides
if no column or several columns fit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from placement.errors import InputError
from placement.io.feeds.quantity_text import unit_of_header

__all__ = ["DEMAND_ROLES", "RTT_ROLES", "column_map", "guess_roles"]

_SRC = (
    "src source from origin start region_a from_region source_region src_region region_from "
    "vantage site_a from_site source_site region1 from_dc src_dc agent probe"
)
_DST = (
    "dst dest destination target to end peer region_b to_region target_region destination_region "
    "dst_region region_to site_b to_site target_site region2 to_dc dst_dc remote"
)
_RTT = (
    "rtt latency round_trip round_trip_time roundtrip ping delay avg mean average median avg_rtt "
    "rtt_avg mean_rtt median_rtt avg_latency mean_latency median_latency latency_avg ms"
)
RTT_ROLES: Mapping[str, tuple[str, ...]] = {
    "src": tuple(_SRC.split()),
    "dst": tuple(_DST.split()),
    "rtt": tuple(_RTT.split()),
}
"""Role -> names of columns, units and case left out."""

_CLIENT = (
    "client region site zone dc datacenter data_center location gateway_region client_region "
    "source src from origin"
)
_OPERATION = (
    "operation op operation_type op_type type kind statement statement_type query_type query "
    "method grpc_method command"
)
_COUNT = (
    "count counts calls n total operations ops requests queries executions num value rate "
    "ops_per_s qps rps"
)
DEMAND_ROLES: Mapping[str, tuple[str, ...]] = {
    "client": tuple(_CLIENT.split()),
    "operation": tuple(_OPERATION.split()),
    "count": tuple(_COUNT.split()),
    "interval": ("interval", "time", "timestamp", "ts", "hour", "minute", "bucket", "date"),
    "database": ("database",),
}
"""Role -> names of columns of a table of demand."""


def column_map(text: str | None, roles: Sequence[str], option: str) -> dict[str, str]:
    """Read ``src=from,dst=to,rtt=ms``: role -> column.

    Raises
    ------
    InputError
        For an unknown role, one given twice, or a part that is no pair.
    """
    found: dict[str, str] = {}
    for part in (text or "").split(",") if text is not None else ():
        role, equals, column = (piece.strip() for piece in part.partition("="))
        if not equals or role not in roles or role in found or not column:
            raise InputError(
                "not a column of a role",
                field=option,
                value=part,
                expected=" or ".join(f"{role}=COLUMN" for role in roles) + ", each once",
            )
        found[role] = column
    return found


def guess_roles(
    columns: Sequence[str],
    roles: Mapping[str, Sequence[str]],
    given: Mapping[str, str],
    source: str,
    option: str,
) -> dict[str, str]:
    """Return role -> column for the roles that are given, or that exactly one column fits.

    Parameters
    ----------
    columns
        Header of the table.
    roles
        Role -> names; a column of the first name wins over all others.
    given
        Role -> column, from the user.
    source
        The file, for messages.
    option
        The option that decides, for messages.

    Raises
    ------
    InputError
        For a given column that is not there, and where several columns fit one role.
    """
    found: dict[str, str] = {}
    for role, column in given.items():
        if column not in columns:
            raise InputError(
                "no such column",
                source=source,
                field=f"{option} {role}",
                value=column,
                expected="one of " + ", ".join(map(repr, columns)),
            )
        found[role] = column
    free = [column for column in columns if column not in found.values()]
    for role, names in roles.items():
        if role in found:
            continue
        exact = [column for column in free if column == names[0]]
        fitting = exact or [column for column in free if _plain(column) in names]
        if len(fitting) > 1:
            raise InputError(
                f"several columns may be the {role}",
                source=source,
                field="header",
                value=", ".join(fitting),
                expected=f"{option} {role}={fitting[0]} (or another of them)",
            )
        if fitting:
            found[role] = fitting[0]
            free.remove(fitting[0])
    return found


def _plain(name: str) -> str:
    """Return a column's name in lower case, its unit and marks left out."""
    words = [word for word in re.split(r"[^a-z0-9µμ]+", name.strip().lower()) if word]
    if len(words) > 1 and unit_of_header(name) is not None:
        words = words[:-1]
    return "_".join(words)
