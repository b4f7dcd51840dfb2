"""Sparse programs put together from blocks of columns and rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from formulations.solvers.linear_program import LinearProgram
from placement.support.checks import FloatArray, IntArray

__all__ = ["Builder"]


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
