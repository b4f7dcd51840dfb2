"""Configurations that pricing has found, as columns of the restricted master problem.

    min Σ_d Σ_k c_dk λ_dk + Σ_i penalty_i s_i
        Σ_k λ_dk = copies_d                        for every database d
        Σ_d Σ_k a_dki λ_dk − s_i <= capacity_i     for every shared limit i
        λ, s >= 0

The overloads s let the master start from any columns; their penalties bound the prices.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from formulations.solvers.highs import Guard, Relaxation, run_highs
from formulations.solvers.linear_program import Builder
from formulations.solvers.statuses import StopReason, Verdict
from placement.errors import SolverError
from placement.fleet.fleet_plan import SharedRows
from placement.model.configuration import Configuration
from placement.support.checks import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class MasterResult:
    """Optimum of the master problem over the columns of a pool."""

    value: float  #: of the relaxation, penalties included
    weights: FloatArray  #: λ of each column that took part, shape (columns,)
    overload: FloatArray  #: s, shape (rows,)
    prices: FloatArray  #: of the shared limits, >= 0, shape (rows,)


class ColumnPool:
    """Columns of all databases of a fleet, each configuration of a database once."""

    def __init__(self, rows: SharedRows) -> None:
        self.rows = rows
        self.owner: list[int] = []
        self.configurations: list[Configuration] = []
        self.costs: list[float] = []
        self._known: dict[tuple[int, Configuration], int] = {}
        self._entries: list[tuple[IntArray, FloatArray]] = []

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, member: int, configuration: Configuration, cost: float | None = None) -> bool:
        """Add a configuration of a database, and its objective if known; return if it is new."""
        if (member, configuration) in self._known:
            return False
        asked = self.rows.fleet.members[member]
        use = self.rows.use(asked, configuration)
        taken = np.flatnonzero(use)
        if cost is None:
            cost = asked.problem.objective.value(asked.problem, configuration)
        self.owner.append(member)
        self.configurations.append(configuration)
        self.costs.append(cost)
        self._entries.append((taken, use[taken]))  # the last list: it counts the columns
        self._known[member, configuration] = len(self) - 1
        return True

    def drop_unfinished(self) -> None:
        """Drop the parts of a column whose addition Ctrl-C has interrupted."""
        for each in (self.owner, self.configurations, self.costs):
            del each[len(self) :]

    def index(self, member: int, configuration: Configuration, cost: float | None = None) -> int:
        """Return the column of a configuration of a database, added where it is new."""
        self.add(member, configuration, cost)
        return self._known[member, configuration]

    def owners(self, columns: IntArray) -> IntArray:
        """Return the database of each of some columns, shape (columns given,)."""
        return np.array(self.owner, dtype=np.intp)[columns]

    def costs_of(self, columns: IntArray) -> FloatArray:
        """Return the objective of each of some columns, shape (columns given,)."""
        return np.array(self.costs, dtype=np.float64)[columns]

    def entries(self, columns: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
        """Return the entries of some columns: place in `columns`, row and amount of each."""
        found = [self._entries[column] for column in columns.tolist()]
        if not found:
            return np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp), np.zeros(0)
        place = np.repeat(np.arange(len(found)), [len(taken) for taken, _ in found])
        rows = np.concatenate([taken for taken, _ in found])
        return place, rows, np.concatenate([amount for _, amount in found])

    def use(self, columns: IntArray, weights: FloatArray) -> FloatArray:
        """Return the use of each row by weighted columns, shape (rows,)."""
        place, rows, amount = self.entries(columns)
        return np.asarray(
            np.bincount(rows, weights[place] * amount, len(self.rows.capacity)), float
        )

    def largest_parts(self) -> FloatArray:
        """Return the largest part of any limit that each column takes, shape (columns,)."""
        scale = np.maximum(self.rows.capacity, 1e-300)
        return np.array([(use / scale[taken]).max(initial=0.0) for taken, use in self._entries])

    def choose(
        self, columns: IntArray, copies: FloatArray, room: FloatArray, guard: Guard, unit: float
    ) -> tuple[FloatArray | None, float]:
        """Choose whole columns for all databases at the least cost, of those in `columns`.

        `copies` of each database are placed, shape (members,), within the `room` of each shared
        limit, +∞ where it does not count, shape (rows,). Returns the number of each of `columns`,
        None when none was found, and a bound on the costs of any choice, +∞ when there is none.
        """
        builder, scale = Builder(), np.maximum(self.rows.capacity, 1.0)
        chosen = builder.add_columns(self.costs_of(columns) / unit, np.inf, integer=True)
        builder.add_rows(-np.inf, room / scale, len(room))
        builder.add_rows(copies, copies, len(copies))
        own, rows, amount = self.entries(columns)
        builder.put(rows, chosen[own], amount / scale[rows])
        builder.put(len(room) + self.owners(columns), chosen, 1.0)
        found = run_highs(builder.program(), guard)
        if found.stop is StopReason.INTERRUPTED:
            raise KeyboardInterrupt
        bound = math.inf if found.verdict is Verdict.INFEASIBLE else found.bound * unit
        return None if found.values is None else np.round(found.values), bound


class Master:
    """The relaxation over all columns of a pool; HiGHS starts from the basis of the last one.

    `copies` of each database have shape (members,); `penalty` is that of each unit beyond a shared
    limit, shape (rows,); `unit` scales the objective for the solver.
    """

    def __init__(
        self, pool: ColumnPool, copies: FloatArray, penalty: FloatArray, unit: float
    ) -> None:
        self.pool, self.copies, self.penalty, self.unit = pool, copies, penalty, unit
        self._scale = np.maximum(pool.rows.capacity, 1.0)
        self._relaxation: Relaxation | None = None
        self._known = 0

    def solve(
        self,
        deadline: float = math.inf,
        fixed: BoolArray | None = None,
        counts: FloatArray | None = None,
    ) -> MasterResult:
        """Solve the relaxation; TimeoutError after the deadline, SolverError without an optimum.

        The columns of the databases in `fixed`, shape (members,), keep their numbers in `counts`,
        shape (columns or less,); the columns behind these have none.
        """
        relaxation, self._relaxation = self._relaxation or self._empty(), None
        self._extend(relaxation)
        shared, columns = len(self._scale), self._known
        lower, upper = np.zeros(shared + columns), np.full(shared + columns, np.inf)
        if fixed is not None and counts is not None:
            keep = fixed[self.pool.owners(np.arange(columns))]
            number = np.append(counts, np.zeros(columns - len(counts)))
            lower[shared:] = np.where(keep, number, 0.0)
            upper[shared:] = np.where(keep, number, np.inf)
        relaxation.set_bounds(lower, upper)
        verdict = relaxation.solve(deadline=deadline)
        if verdict is Verdict.STOPPED:
            raise TimeoutError
        values, duals = relaxation.values, relaxation.duals
        if verdict is not Verdict.OPTIMAL or values is None or duals is None:
            raise SolverError(f"HiGHS ended the master of a fleet with {verdict.value!r}")
        self._relaxation = relaxation  # one that was stopped may still run
        return MasterResult(
            value=relaxation.objective * self.unit,
            weights=values[shared:],
            overload=values[:shared] * self._scale,
            prices=np.maximum(-duals[:shared], 0.0) * self.unit / self._scale,
        )

    def _empty(self) -> Relaxation:
        """Return the relaxation without columns; rows of limits first, scaled by capacity."""
        builder, shared = Builder(), np.arange(len(self._scale))
        over = builder.add_columns(self.penalty * self._scale / self.unit, np.inf)
        builder.add_rows(-np.inf, self.pool.rows.capacity / self._scale, len(shared))
        builder.add_rows(self.copies, self.copies, len(self.copies))
        builder.put(shared, over, -1.0)
        self._known = 0
        return Relaxation(builder.program())

    def _extend(self, relaxation: Relaxation) -> None:
        """Add the columns of the pool that the relaxation does not have yet."""
        new = np.arange(self._known, len(self.pool))
        place, rows, amount = self.pool.entries(new)
        order = np.argsort(np.append(place, np.arange(len(new))), kind="stable")
        values = np.append(amount / self._scale[rows], np.ones(len(new)))[order]
        rows = np.append(rows, len(self._scale) + self.pool.owners(new))[order]
        starts = np.append(0, np.cumsum(np.bincount(place, minlength=len(new)) + 1))[:-1]
        relaxation.add_columns(self.pool.costs_of(new) / self.unit, starts, rows, values)
        self._known = len(self.pool)
