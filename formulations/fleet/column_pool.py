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
from formulations.solvers.linear_program import Builder, LinearProgram
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
    #: of each database: its dual, shape (members,), 0 for those without a part. A column with a
    #: smaller objective plus price improves the master.
    worth: FloatArray


class ColumnPool:
    """Columns of all databases of a fleet, each configuration of a database once.

    Parameters
    ----------
    rows
        The shared limits.
    """

    def __init__(self, rows: SharedRows) -> None:
        self.rows = rows
        self.owner: list[int] = []
        self.configurations: list[Configuration] = []
        self.costs: list[float] = []
        self._known: dict[tuple[int, Configuration], int] = {}
        self._entries: list[tuple[IntArray, FloatArray]] = []

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, member: int, configuration: Configuration) -> bool:
        """Add a configuration of a database; return whether it is new."""
        if (member, configuration) in self._known:
            return False
        asked = self.rows.fleet.members[member]
        use = self.rows.use(asked, configuration)
        taken = np.flatnonzero(use)
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

    def index(self, member: int, configuration: Configuration) -> int:
        """Return the column of a configuration of a database, added where it is new."""
        self.add(member, configuration)
        return self._known[member, configuration]

    def owners(self, columns: IntArray) -> IntArray:
        """Return the database of each of some columns, shape (columns given,)."""
        return np.array([self.owner[column] for column in columns.tolist()], dtype=np.intp)

    def costs_of(self, columns: IntArray) -> FloatArray:
        """Return the objective of each of some columns, shape (columns given,)."""
        return np.array([self.costs[column] for column in columns.tolist()])

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

    def takes(self, column: int, rows: BoolArray) -> bool:
        """Return whether a column uses any of some rows."""
        return bool(rows[self._entries[column][0]].any())

    def largest_parts(self) -> FloatArray:
        """Return the largest part of any limit that each column takes, shape (columns,)."""
        scale = np.maximum(self.rows.capacity, 1e-300)
        return np.array([(use / scale[taken]).max(initial=0.0) for taken, use in self._entries])

    def reduced_costs(self, master: MasterResult, columns: IntArray) -> FloatArray:
        """Return objective plus price minus worth of some columns, shape (columns given,)."""
        place, rows, amount = self.entries(columns)
        price = np.bincount(place, amount * master.prices[rows], len(columns))
        return np.asarray(self.costs_of(columns) + price - master.worth[self.owners(columns)])

    def relax(
        self,
        columns: IntArray,
        copies: FloatArray,
        room: FloatArray,
        penalty: FloatArray,
        unit: float,
        deadline: float = math.inf,
    ) -> MasterResult:
        """Solve the relaxation of the master over some columns.

        Parameters
        ----------
        columns
            The columns.
        copies
            Copies to place of each database, shape (members,); 0: the database takes no part.
        room
            Remaining capacity of each shared limit, shape (rows,).
        penalty
            Of each unit beyond the room, shape (rows,).
        unit
            Scale of the objective for the solver.
        deadline
            Time of ``time.perf_counter`` at which to give up.

        Raises
        ------
        KeyboardInterrupt, TimeoutError
            After Ctrl-C, and after the deadline.
        SolverError
            When HiGHS proves no optimum.
        """
        none = np.zeros(len(columns), dtype=np.bool_)
        relaxation = Relaxation(self.program(columns, none, copies, room, penalty / unit, unit))
        verdict = relaxation.solve(deadline=deadline, presolve=True)
        if verdict is Verdict.STOPPED:
            raise TimeoutError
        values, duals = relaxation.values, relaxation.duals
        if verdict is not Verdict.OPTIMAL or values is None or duals is None:
            raise SolverError(f"HiGHS ended the master of a fleet with {verdict.value!r}")
        shared = len(room)
        scale = np.maximum(self.rows.capacity, 1.0)
        worth = np.zeros(len(copies))
        worth[np.flatnonzero(copies)] = duals[shared:] * unit
        return MasterResult(
            value=relaxation.objective * unit,
            weights=values[: len(columns)],
            overload=values[len(columns) :] * scale,
            prices=np.maximum(-duals[:shared], 0.0) * unit / scale,
            worth=worth,
        )

    def choose(
        self,
        columns: IntArray,
        whole: BoolArray,
        copies: FloatArray,
        room: FloatArray,
        penalty: FloatArray,
        guard: Guard,
        unit: float,
    ) -> tuple[FloatArray | None, float]:
        """Choose columns for some databases at the least cost, overloads of a room included.

        Parameters
        ----------
        columns
            The columns to choose from.
        whole
            Which of them are chosen whole or not at all, shape (chosen from,).
        copies
            Copies to place of each database, shape (members,); 0: the database takes no part.
        room
            Remaining capacity of each shared limit, shape (rows,).
        penalty
            Of each unit beyond the room, shape (rows,); +∞: no unit is allowed.
        guard
            Limits of HiGHS.
        unit
            Scale of the objective.

        Returns
        -------
        array or None, float
            Number of each of `columns`, None when none was found; and a bound on the costs of any
            choice, +∞ when there is none.

        Raises
        ------
        KeyboardInterrupt
            After Ctrl-C.
        """
        program = self.program(columns, whole, copies, room, penalty / unit, unit)
        found = run_highs(program, guard)
        if found.stop is StopReason.INTERRUPTED:
            raise KeyboardInterrupt
        bound = math.inf if found.verdict is Verdict.INFEASIBLE else found.bound * unit
        if found.values is None:
            return None, bound
        numbers = found.values[: len(columns)]
        return np.where(whole, np.round(numbers), numbers), bound

    def program(
        self,
        columns: IntArray,
        whole: BoolArray,
        copies: FloatArray,
        room: FloatArray,
        penalty: FloatArray,
        unit: float,
    ) -> LinearProgram:
        """Return the master over some columns; rows of shared limits first, scaled by capacity."""
        builder = Builder()
        shared = len(room)
        scale = np.maximum(self.rows.capacity, 1.0)
        costs = self.costs_of(columns) / unit
        chosen = builder.add_columns(costs, np.inf, integer=whole)
        builder.add_rows(-np.inf, room / scale, shared)
        taking = np.flatnonzero(copies)
        place = np.full(len(copies), -1)
        place[taking] = shared + np.arange(len(taking))
        builder.add_rows(copies[taking], copies[taking], len(taking))
        own, index, amount = self.entries(columns)
        builder.put(index, chosen[own], amount / scale[index])
        builder.put(place[self.owners(columns)], chosen, 1.0)
        soft = np.isfinite(penalty)
        costs = np.where(soft, penalty, 0.0) * scale
        over = builder.add_columns(costs, np.where(soft, np.inf, 0.0))
        builder.put(np.arange(shared), over, -1.0)
        return builder.program()
