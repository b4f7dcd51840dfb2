"""Linear programs as arrays: of rows in formulas, or of blocks of columns and rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from placement.support.checks import BoolArray, FloatArray, IntArray

_ROWS_PER_STEP = 1000
"""Rows read between two calls of a step: some 20 ms."""


@dataclass(frozen=True, eq=False)
class LinearProgram:
    """min offset + cost·x  subject to  row_lower ≤ A x ≤ row_upper,  lower ≤ x ≤ upper.

    Attributes
    ----------
    cost, lower, upper, integer
        Per column.
    offset
        Constant of the objective.
    start, index, value
        A by rows (compressed): shapes (rows + 1,), (non-zeros,), (non-zeros,).
    row_lower, row_upper
        Per row; infinite where there is no such side.
    columns
        Their names, such as ``x[3]``; empty where nobody gave any.
    """

    cost: FloatArray
    offset: float
    lower: FloatArray
    upper: FloatArray
    integer: BoolArray
    start: IntArray
    index: IntArray
    value: FloatArray
    row_lower: FloatArray
    row_upper: FloatArray
    columns: tuple[str, ...]

    def activity(self, x: FloatArray) -> FloatArray:
        """A x, shape (rows,)."""
        products = self.value * x[self.index]
        rows = np.repeat(np.arange(len(self.row_lower)), np.diff(self.start))
        return np.bincount(rows, products, len(self.row_lower)).astype(np.float64)

    def violation(self, x: FloatArray) -> float:
        """Largest amount by which a row or a bound does not hold at x; 0 when all hold."""
        activity = self.activity(x)
        parts = (
            self.lower - x,
            x - self.upper,
            self.row_lower - activity,
            activity - self.row_upper,
        )
        return max(0.0, *(float(part.max(initial=0.0)) for part in parts))

    def objective(self, x: FloatArray) -> float:
        """Objective at x."""
        return self.offset + float(self.cost @ x)


# Programs written in formulas: columns by name, rows one by one

Key = TypeVar("Key", bound="int | tuple[int, ...]")


@dataclass(eq=False)
class Columns:
    """Columns within [0, 1]: their names, their lower bounds, and which are binary."""

    names: list[str] = field(default_factory=list)
    lower: list[float] = field(default_factory=list)
    binary: list[bool] = field(default_factory=list)

    def add(
        self, name: str, keys: Sequence[Key], *, binary: bool = False, ones: Collection[Key] = ()
    ) -> dict[Key, int]:
        """Add a column per key, in the order of the sorted keys; those of `ones` are at least 1.

        Return the columns by key, in the order that was given.
        """
        place = {key: len(self.names) + n for n, key in enumerate(sorted(keys))}
        for key in place:
            label = ",".join(map(str, key)) if isinstance(key, tuple) else str(key)
            self.names.append(f"{name}[{label}]")
            self.lower.append(float(key in ones))
            self.binary.append(binary)
        return {key: place[key] for key in keys}


@dataclass(frozen=True, slots=True)
class Affine:
    """A linear expression: constant plus (coefficient, column) pairs."""

    pairs: tuple[tuple[float, int], ...] = ()
    constant: float = 0.0

    def times(self, factor: float) -> Affine:
        """Return the expression scaled."""
        return Affine(tuple((factor * a, j) for a, j in self.pairs), factor * self.constant)

    @staticmethod
    def total(parts: Iterable[Affine]) -> Affine:
        """Return the sum of expressions."""
        pairs: list[tuple[float, int]] = []
        constant = 0.0
        for part in parts:
            pairs.extend(part.pairs)
            constant += part.constant
        return Affine(tuple(pairs), constant)

    @staticmethod
    def of(columns: Iterable[int], factor: float = 1.0) -> Affine:
        """Return factor times the sum of columns."""
        return Affine(tuple((factor, j) for j in columns))

    def minus(self, other: Affine) -> Affine:
        """Return the difference of two expressions."""
        return Affine.total((self, other.times(-1.0)))

    def summed(self) -> dict[int, float]:
        """Return the coefficient of every column, without zeros."""
        entries: dict[int, float] = {}
        for a, j in self.pairs:
            entries[j] = entries.get(j, 0.0) + a
        return {j: a for j, a in entries.items() if a}

    def at_least(self, least: float) -> LinearRow:
        """Return the row self ≥ least."""
        return LinearRow(self, least, np.inf)

    def at_most(self, most: float) -> LinearRow:
        """Return the row self ≤ most."""
        return LinearRow(self, -np.inf, most)

    def equals(self, value: float) -> LinearRow:
        """Return the row self = value."""
        return LinearRow(self, value, value)


@dataclass(frozen=True, slots=True)
class LinearRow:
    """A row: lower ≤ expression ≤ upper."""

    expression: Affine
    lower: float
    upper: float


def compile_program(
    columns: Columns, rows: Sequence[LinearRow], objective: Affine, step: Callable[[], None]
) -> LinearProgram:
    """Turn columns, rows and what is to be least into arrays.

    `step` is called now and then; what it raises ends the work. O(non-zeros).
    """
    index: list[int] = []
    value: list[float] = []
    start = [0]
    for number, row in enumerate(rows):
        if number % _ROWS_PER_STEP == 0:
            step()
        entries = row.expression.summed()
        index.extend(entries)
        value.extend(entries.values())
        start.append(len(index))
    cost = np.zeros(len(columns.names))
    for j, a in objective.summed().items():
        cost[j] = a
    return LinearProgram(
        cost=cost,
        offset=objective.constant,
        lower=np.array(columns.lower, dtype=np.float64),
        upper=np.ones(len(cost)),
        integer=np.array(columns.binary, dtype=bool),
        start=np.array(start, dtype=np.intp),
        index=np.array(index, dtype=np.intp),
        value=np.array(value, dtype=np.float64),
        row_lower=np.array([row.lower - row.expression.constant for row in rows], dtype=float),
        row_upper=np.array([row.upper - row.expression.constant for row in rows], dtype=float),
        columns=tuple(columns.names),
    )


# Sparse programs put together from blocks of columns and rows


class Builder:
    """Collects columns and rows as arrays, and makes a :class:`LinearProgram` of them.

    The programs of this package have some ten thousand columns of few kinds; a modelling language
    would spend longer on them than HiGHS.
    """

    def __init__(self) -> None:
        self.columns = 0
        self.rows = 0
        self.offset = 0.0
        self._cost: list[FloatArray] = []
        self._upper: list[FloatArray] = []
        self._integer: list[npt.NDArray[np.bool_]] = []
        self._row_lower: list[FloatArray] = []
        self._row_upper: list[FloatArray] = []
        self._entries: list[tuple[IntArray, IntArray, FloatArray]] = []

    def add_columns(
        self, cost: npt.ArrayLike, upper: npt.ArrayLike = 1.0, integer: npt.ArrayLike = False
    ) -> IntArray:
        """Add columns within [0, upper]; return their indices, in the shape of `cost`."""
        costs = np.atleast_1d(np.asarray(cost, dtype=np.float64)).ravel()
        index = np.arange(self.columns, self.columns + len(costs), dtype=np.intp)
        self.columns += len(costs)
        self._cost.append(costs)
        self._upper.append(np.broadcast_to(np.asarray(upper, float).ravel(), costs.shape))
        self._integer.append(np.broadcast_to(np.asarray(integer, bool).ravel(), costs.shape))
        return index

    def add_rows(self, lower: npt.ArrayLike, upper: npt.ArrayLike, count: int) -> IntArray:
        """Add `count` empty rows lower <= … <= upper; return their indices."""
        index = np.arange(self.rows, self.rows + count, dtype=np.intp)
        self.rows += count
        for side, given in ((self._row_lower, lower), (self._row_upper, upper)):
            side.append(np.broadcast_to(np.asarray(given, dtype=np.float64), (count,)))
        return index

    def put(self, rows: IntArray, columns: IntArray, values: npt.ArrayLike) -> None:
        """Put coefficients at (row, column) pairs; one value for all will do."""
        value = np.broadcast_to(np.asarray(values, dtype=np.float64), rows.shape)
        self._entries.append((rows.ravel(), columns.ravel(), value.ravel()))

    def program(self) -> LinearProgram:
        """Return the program; coefficients of a row in the order of columns."""
        empty = np.zeros(0, dtype=np.intp)
        rows = np.concatenate([entry[0] for entry in self._entries] or [empty])
        columns = np.concatenate([entry[1] for entry in self._entries] or [empty])
        values = np.concatenate([entry[2] for entry in self._entries] or [np.zeros(0)])
        order = np.lexsort((columns, rows))
        start = np.zeros(self.rows + 1, dtype=np.intp)
        np.cumsum(np.bincount(rows, minlength=self.rows), out=start[1:])
        none = np.zeros(0)
        return LinearProgram(
            cost=np.concatenate(self._cost or [none]),
            offset=self.offset,
            lower=np.zeros(self.columns),
            upper=np.concatenate(self._upper or [none]),
            integer=np.concatenate(self._integer or [np.zeros(0, dtype=bool)]),
            start=start,
            index=columns[order],
            value=values[order],
            row_lower=np.concatenate(self._row_lower or [none]),
            row_upper=np.concatenate(self._row_upper or [none]),
            columns=(),
        )
