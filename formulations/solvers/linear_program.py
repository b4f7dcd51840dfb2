"""Linear programs as arrays: of a Pyomo model, or put together from blocks of columns and rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from placement.support.checks import BoolArray, FloatArray, IntArray

_ROWS_PER_STEP = 1000
"""Rows read between two calls of a step: some 20 ms."""


@dataclass(frozen=True, eq=False)
class LinearProgram:
    """min offset + cost·x  subject to  row_lower ≤ A x ≤ row_upper,  lower ≤ x ≤ upper."""

    #: `cost`, `lower`, `upper`, `integer`: per column
    cost: FloatArray
    offset: float  #: constant of the objective
    lower: FloatArray
    upper: FloatArray
    integer: BoolArray
    #: `start`, `index`, `value`: A by rows (compressed): shapes (rows + 1,), (non-zeros,),
    #: (non-zeros,)
    start: IntArray
    index: IntArray
    value: FloatArray
    #: `row_lower`, `row_upper`: per row; infinite where there is no such side
    row_lower: FloatArray
    row_upper: FloatArray
    columns: tuple[Any, ...]  #: the Pyomo variables, in column order

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

    def size(self) -> dict[str, int]:
        """Return the numbers of variables, binaries, rows and nonzeros."""
        return {
            "variables": len(self.cost),
            "binaries": int(self.integer.sum()),
            "rows": len(self.row_lower),
            "nonzeros": len(self.value),
        }

    def objective(self, x: FloatArray) -> float:
        """Objective at x."""
        return self.offset + float(self.cost @ x)


def compile_program(model: Any, step: Callable[[], None] | None = None) -> LinearProgram:
    """Turn a linear Pyomo model into arrays.

    Pyomo's own HiGHS interfaces take neither warm starts nor callbacks, which a guarded run needs,
    so the expressions are read with ``pyomo.repn`` and handed over as they are. Pyomo's LP
    standard form would do the same but needs SciPy. `step` is called now and then; what it raises
    ends the reading.

    O(non-zeros).
    """
    import pyomo.environ as pyo
    from pyomo.repn import generate_standard_repn

    columns = list(model.component_data_objects(pyo.Var, sort=True))
    place = {id(var): j for j, var in enumerate(columns)}
    index: list[int] = []
    value: list[float] = []
    start = [0]
    row_lower: list[float] = []
    row_upper: list[float] = []
    rows = model.component_data_objects(pyo.Constraint, active=True)
    for number, row in enumerate(rows):
        if step is not None and number % _ROWS_PER_STEP == 0:
            step()
        low, body, high = row.to_bounded_expression(evaluate_bounds=True)
        form = generate_standard_repn(body, compute_values=True, quadratic=False)
        index.extend(place[id(var)] for var in form.linear_vars)
        value.extend(form.linear_coefs)
        start.append(len(index))
        row_lower.append(-np.inf if low is None else low - form.constant)
        row_upper.append(np.inf if high is None else high - form.constant)
    target = next(iter(model.component_data_objects(pyo.Objective, active=True)))
    form = generate_standard_repn(target.expr, compute_values=True, quadratic=False)
    cost = np.zeros(len(columns))
    cost[[place[id(var)] for var in form.linear_vars]] = form.linear_coefs
    return LinearProgram(
        cost=cost,
        offset=float(form.constant),
        lower=np.array([var.lb for var in columns], dtype=np.float64),
        upper=np.array([np.inf if var.ub is None else var.ub for var in columns], dtype=np.float64),
        integer=np.array([var.is_integer() for var in columns], dtype=bool),
        start=np.array(start, dtype=np.intp),
        index=np.array(index, dtype=np.intp),
        value=np.array(value, dtype=np.float64),
        row_lower=np.array(row_lower, dtype=np.float64),
        row_upper=np.array(row_upper, dtype=np.float64),
        columns=tuple(columns),
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
