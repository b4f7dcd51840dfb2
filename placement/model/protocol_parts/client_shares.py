"""Shares of the paths of a protocol that differ by client, and the operations that they make.

A protocol may send a share p of the operations down another path (`slow`, `interference`, `fresh`,
…). Trips and waits are affine in p, so that an operation of client c is a mixture of two paths:

    path(p_c) = (1 − p_c) · path(0) + p_c · path(1)

So an operation of the instance becomes two (or more, :func:`shares_of_paths`), and its counts are
parted by the shares. Every sum of Eq. 1 is one over clients and operations already.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import InputError
from placement.io.formats.frame_axes import is_frame
from placement.support.checks import FloatArray, elements, number, suggest

if TYPE_CHECKING:
    from placement.model.operations import Operation

__all__ = [
    "COLUMNS",
    "ClientPaths",
    "ClientShare",
    "checked_shares",
    "mixture_weights",
    "share_names",
    "shares_by_client",
    "shares_of_paths",
]

ClientShare = tuple[str, str, float]
"""Client, parameter of a protocol, value from 0 to 1: a row of the table of shares."""

COLUMNS = ("client", "parameter", "value")
"""Header of the table of shares."""


@dataclass(frozen=True)
class ClientPaths:
    """Operations where clients take different shares of paths.

    Attributes
    ----------
    operations
        One or more for each operation of the instance, in its order, names unique.
    of
        Index of the operation of the instance, for each.
    weights
        Part of the counts of each client that each takes; empty: all of them.
    """

    operations: tuple[Operation, ...]
    of: tuple[int, ...]
    weights: tuple[tuple[float, ...], ...]

    def parted(self, counts: FloatArray) -> FloatArray:
        """Return counts by operation of the instance, the last axis, as those of the paths.

        The axis before is that of the clients.
        """
        found = counts[..., list(self.of)]
        for row, weight in enumerate(self.weights):
            if weight:
                found[..., row] *= np.array(weight)
        return found


def share_names() -> tuple[str, ...]:
    """Return the parameters of protocols that are shares."""
    from placement.model.protocol_families import FAMILIES

    return tuple(
        dict.fromkeys(
            key
            for family in FAMILIES.values()
            for key, parameter in family.parameters.items()
            if parameter.kind == "share"
        )
    )


def checked_shares(
    given: object, clients: Sequence[str], at: Callable[[int], str] | None = None
) -> tuple[ClientShare, ...]:
    """Return the rows of a table of shares, in the order of the clients.

    Parameters
    ----------
    given
        Parameter -> client -> value, or rows (client, parameter, value), or a pandas table of
        these columns.
    clients
        Names of all clients.
    at
        File and row of each row, for messages; None: the rows are from no file.

    Raises
    ------
    InputError
        For an unknown client or parameter, a value outside [0, 1], and a pair named twice.
    """
    place = {client: c for c, client in enumerate(clients)}
    parameters = share_names()
    found: dict[tuple[int, str], float] = {}
    for row, cells in enumerate(map(_cells, _rows(given))):
        client, parameter, value = cells
        refuse = _Refusal("" if at is None else at(row), row, cells)
        if client not in place:
            close = suggest(str(client), tuple(clients), "one of the clients")
            raise refuse.of("unknown client", 0, close)
        if parameter not in parameters:
            known = "one of " + ", ".join(parameters)
            raise refuse.of("no parameter of a protocol that is a share", 1, known)
        try:
            share = number(value, "value", maximum=1.0)
        except InputError:
            raise refuse.of("not a share", 2, "a number from 0 to 1") from None
        key = (place[client], parameter)
        if key in found:
            raise refuse.of(f"{parameter} of {client} was given before", 2, "each share once")
        found[key] = share
    return tuple((clients[c], parameter, found[c, parameter]) for c, parameter in sorted(found))


@dataclass(frozen=True)
class _Refusal:
    """A row of a table of shares, for messages."""

    source: str
    row: int
    cells: tuple[str, str, object]

    def of(self, problem: str, column: int, expected: str) -> InputError:
        """Return the error about one cell."""
        field = COLUMNS[column]
        if not self.source:
            field = f"shares, row {self.row + 1}: {field}"
        return InputError(
            problem, source=self.source, field=field, value=self.cells[column], expected=expected
        )


def _cells(row: object) -> tuple[str, str, object]:
    cells = elements(row, "shares", "rows of client, parameter, value")
    if len(cells) != len(COLUMNS) or not all(isinstance(cell, str) for cell in cells[:2]):
        raise InputError(
            "not a row of shares",
            field="shares",
            value=row,
            expected="the name of a client, that of a parameter, and a number from 0 to 1",
        )
    return str(cells[0]), str(cells[1]), cells[2]


def _rows(given: object) -> Iterable[object]:
    if isinstance(given, Mapping):
        found: list[object] = []
        for parameter, values in given.items():
            if not isinstance(values, Mapping):
                raise InputError(
                    "no shares of clients",
                    field=f"shares[{parameter!r}]",
                    value=values,
                    expected="client -> share from 0 to 1",
                )
            found += [(client, parameter, value) for client, value in values.items()]
        return found
    if is_frame(given):
        import pandas as pd

        assert isinstance(given, pd.DataFrame)
        for column in COLUMNS:
            if column not in given.columns:
                raise InputError(
                    "missing column", field="shares", value=column, expected=", ".join(COLUMNS)
                )
        return given[list(COLUMNS)].to_numpy(dtype=object).tolist()
    return elements(given, "shares", "rows of client, parameter, value")


def shares_by_client(
    rows: Sequence[ClientShare], clients: Sequence[str], parameter: str, usual: float
) -> FloatArray:
    """Return a share for every client, shape (clients,): `usual` where the table has none."""
    values = {client: value for client, key, value in rows if key == parameter}
    return np.array([values.get(client, usual) for client in clients])


def shares_of_paths(low: Operation, high: Operation) -> list[float]:
    """Return the shares at which a path is taken, from 0 to 1.

    Between two of them no number of trips or rounds passes a whole number, so that percentiles,
    which take a fraction of a round as a share of the operations, see the same mixture as well.

    Parameters
    ----------
    low, high
        The operation with the shares 0 and 1.
    """
    first, last = _rounds(low), _rounds(high)
    found = {0.0, 1.0}
    for key in first.keys() | last.keys():
        at_low, at_high = first.get(key, 0.0), last.get(key, 0.0)
        inner = range(math.floor(min(at_low, at_high)) + 1, math.ceil(max(at_low, at_high)))
        for whole in inner:
            found.add((whole - at_low) / (at_high - at_low))
    return sorted(found)


def _rounds(operation: Operation) -> dict[str, float]:
    """Return the numbers of trips and of rounds of each wait, by name."""
    from placement.model.waits import Wait

    found = dict(zip(("near", "relay", "direct", "quorum"), operation.coefficients, strict=True))
    for wait in operation.waits:
        assert isinstance(wait, Wait)  # text was read when the operation was made
        found[wait.asked] = found.get(wait.asked, 0.0) + wait.times
    return found


def mixture_weights(shares: FloatArray, knots: Sequence[float]) -> FloatArray:
    """Return the part of each client that takes the path at each knot, shape (knots, clients).

    Examples
    --------
    >>> mixture_weights(np.array([0.0, 0.125, 1.0]), [0.0, 0.5, 1.0]).tolist()
    [[1.0, 0.75, 0.0], [0.0, 0.25, 0.0], [0.0, 0.0, 1.0]]
    """
    at = np.array(knots)
    return np.array([np.interp(shares, at, unit) for unit in np.eye(len(at))])
