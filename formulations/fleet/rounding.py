"""Whole plans of a fleet: an integer program for the databases that the master splits."""

from __future__ import annotations

import time
from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from formulations.fleet.column_pool import ColumnPool, MasterResult
from formulations.fleet.pricing import price_member
from formulations.solvers.highs import Guard
from placement.checks import BoolArray, FloatArray, IntArray
from placement.fleet.fleet_plan import Placed

if TYPE_CHECKING:
    from formulations.fleet.column_generation import FleetSearch

__all__ = ["round_master"]

_MOST_COLUMNS = 12
"""Columns of each database in the integer program: those of least reduced cost."""

_LARGE = 150
"""Databases that are placed whole before all others: those that take most of some limit."""

_PLACED_AGAIN = 60
"""Databases that pay most, and as many times four others, which are placed again at a time."""

_TOLERANCE = 1e-9
"""Part of a limit by which a sum of doubles may be beyond it."""

_SECONDS = 5.0
"""Time of one integer program."""

_PRICINGS = 4
"""Rounds of pricing before such an integer program."""

_POLISHES = 8
"""Integer programs that improve the plan."""


def round_master(
    pool: ColumnPool, master: MasterResult, bound: float, settings: FleetSearch, unit: float
) -> list[list[Placed]] | None:
    """Return whole numbers of columns for every database; None when none were found.

    Parameters
    ----------
    pool
        The columns.
    master
        Weights, prices and worths.
    bound
        A plan within `settings.gap` of it is good enough.
    settings
        Gap and seed.
    unit
        Scale of the objective.
    """
    return _Rounding(pool, master, bound, settings, unit).run()


class _Rounding:
    """State of the rounding; :func:`round_master` is its only user."""

    def __init__(
        self,
        pool: ColumnPool,
        master: MasterResult,
        bound: float,
        settings: FleetSearch,
        unit: float,
    ) -> None:
        self.pool = pool
        self.bound, self.settings, self.unit = bound, settings, unit
        self.rng = np.random.default_rng(settings.seed)
        self.members = pool.rows.fleet.members
        self.copies = np.array([member.copies for member in self.members], dtype=np.float64)
        self.master = master
        # an overload of a hundredth of a limit costs a hundredth of the whole value
        self.penalty = max(bound, 1e-12) / np.maximum(pool.rows.capacity, 1.0)

    def run(self) -> list[list[Placed]] | None:
        """Place the large databases, then those that are split, then improve."""
        weights = self.place_large()
        counts = np.floor(weights + 1e-6)
        owner = np.array(self.pool.owner)
        placed = np.bincount(owner, counts, len(self.members))
        counts = self.place_again(counts, np.flatnonzero(placed < self.copies))
        counts = self.polish(counts)
        if not self.is_plan(counts):
            in_order = self.place_in_order()
            if in_order is None:
                return None
            counts = self.polish(in_order)
        found: dict[int, list[Placed]] = defaultdict(list)
        for column in np.flatnonzero(counts).tolist():
            each = Placed(self.pool.configurations[column], int(counts[column]))
            found[self.pool.owner[column]].append(each)
        return [found[member] for member in range(len(self.members))]

    def place_large(self) -> FloatArray:
        """Place the databases that take most of some limit whole, all others in parts.

        Small databases that are split cost little when they are placed whole later.
        """
        owner = np.array(self.pool.owner)
        size = np.zeros(len(self.members))
        np.maximum.at(size, owner, self.pool.largest_parts())
        large = np.argsort(-size, kind="stable")[:_LARGE]
        columns = self.best_columns(np.arange(len(self.members)), self.master)
        whole = np.isin(owner[columns], large)
        found = self.choose(columns, whole, self.copies, self.pool.rows.capacity)
        if found is None:
            return self.master.weights
        weights = np.zeros(len(owner))
        weights[columns] = found
        return weights

    def is_plan(self, counts: FloatArray) -> bool:
        """Return whether whole columns place all copies within the limits."""
        placed = np.bincount(self.pool.owner[: len(counts)], counts, len(self.members))
        return bool((placed == self.copies).all()) and not self.overload(counts).any()

    def place_in_order(self) -> FloatArray | None:
        """Place the databases one after another, the largest first, where there is room left.

        Each gets its best configuration at the prices of the master among the sites where it still
        fits. None when one fits nowhere any more.
        """
        rows, room = self.pool.rows, self.pool.rows.capacity.copy()
        size = np.zeros(len(self.members))
        np.maximum.at(size, self.pool.owner, self.pool.largest_parts())
        chosen: list[tuple[int, int]] = []
        for number in np.argsort(-size, kind="stable").tolist():
            member, left = self.members[number], self.members[number].copies
            while left:
                found = price_member(rows, member, self.master.prices, room).configuration
                if found is None:
                    return None
                use = rows.use(member, found)
                taken = np.flatnonzero(use)
                fitting = int((room[taken] / use[taken]).min(initial=left))
                if fitting < 1:  # more replicas than the fewest allowed, or several new ones
                    return None
                copies = min(left, fitting)
                room -= copies * use
                left -= copies
                chosen.append((self.pool.index(number, found), copies))
        counts = np.zeros(len(self.pool))
        for column, copies in chosen:
            counts[column] += copies
        return counts

    def polish(self, counts: FloatArray) -> FloatArray:
        """Place databases again that pay most for sharing, with others drawn at random."""
        for _ in range(_POLISHES):
            value = self.paid(counts)
            if value - self.bound <= self.settings.gap * value:
                break
            better = self.place_again(counts, self.worst_placed(counts))
            if self.paid(better) < value and (self.is_plan(better) or not self.is_plan(counts)):
                counts = better
        return counts

    def worst_placed(self, counts: FloatArray) -> IntArray:
        """Return databases to place again: on limits that are exceeded, dear ones, some others."""
        chosen = np.flatnonzero(counts)
        reduced = self.pool.reduced_costs(self.master, chosen)
        owner = np.array(self.pool.owner)[chosen]
        paid = np.bincount(owner, reduced * counts[chosen], len(self.members))
        dearest = np.argsort(-paid, kind="stable")[:_PLACED_AGAIN]
        count = min(4 * _PLACED_AGAIN, len(self.members))
        drawn = self.rng.choice(len(self.members), count, replace=False)
        over = self.overload(counts)
        columns = chosen.tolist() if over.any() else []
        taking = [self.pool.owner[column] for column in columns if self.pool.takes(column, over)]
        crowd = self.rng.permutation(np.unique(taking).astype(np.intp))[: 2 * _PLACED_AGAIN]
        return np.union1d(np.union1d(dearest, drawn), crowd)

    def place_again(self, counts: FloatArray, chosen: IntArray) -> FloatArray:
        """Place all copies of some databases anew, the others staying.

        New columns are priced for them at the prices of what the others leave.
        """
        if not len(chosen):
            return counts
        kept = np.where(np.isin(self.pool.owner[: len(counts)], chosen), 0.0, counts)
        fixed = np.flatnonzero(kept)
        room = self.pool.rows.capacity - self.pool.use(fixed, kept[fixed])
        copies = np.zeros(len(self.members))
        copies[chosen] = self.copies[chosen]
        master = self.new_columns(chosen, copies, room)
        free = np.flatnonzero(np.isin(self.pool.owner, chosen))
        used = np.flatnonzero(np.isin(self.pool.owner[: len(counts)], chosen) & (counts > 0))
        # the present choice stays possible
        columns = np.union1d(self.best_columns(chosen, master, free), used)
        whole = np.ones(len(columns), dtype=np.bool_)
        found = self.choose(columns, whole, copies, room)
        if found is None:
            return counts
        total = np.zeros(len(self.pool))
        total[: len(kept)] = kept
        total[columns] = found
        return total

    def new_columns(self, chosen: IntArray, copies: FloatArray, room: FloatArray) -> MasterResult:
        """Price some databases at the prices of the room that the others leave; return the last."""
        for _ in range(_PRICINGS):
            columns = np.flatnonzero(np.isin(self.pool.owner, chosen))
            master = self.pool.relax(columns, copies, room, self.penalty, self.unit)
            new = False
            for member in chosen.tolist():
                priced = price_member(self.pool.rows, self.members[member], master.prices)
                assert priced.configuration is not None  # the first round has found one
                new |= self.pool.add(member, priced.configuration)
            if not new:
                break
        return master

    def best_columns(
        self, chosen: IntArray, master: MasterResult, among: IntArray | None = None
    ) -> IntArray:
        """Return the columns of least reduced cost of each of some databases."""
        columns = np.arange(len(self.pool)) if among is None else among
        owner = np.array(self.pool.owner)[columns]
        order = np.lexsort((self.pool.reduced_costs(master, columns), owner))
        starts = np.searchsorted(owner[order], chosen)
        ends = np.minimum(np.searchsorted(owner[order], chosen, "right"), starts + _MOST_COLUMNS)
        parts = [columns[order[a:b]] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
        return np.sort(np.concatenate(parts))

    def choose(
        self, columns: IntArray, whole: BoolArray, copies: FloatArray, room: FloatArray
    ) -> FloatArray | None:
        """Run one integer program."""
        guard = Guard(deadline=time.perf_counter() + _SECONDS, gap_limit=self.settings.gap / 10)
        return self.pool.choose(columns, whole, copies, room, self.penalty, guard, self.unit)

    def overload(self, counts: FloatArray) -> BoolArray:
        """Return the limits that whole columns exceed, shape (rows,)."""
        limit, chosen = self.pool.rows.capacity, np.flatnonzero(counts)
        beyond = self.pool.use(chosen, counts[chosen]) - limit
        return np.asarray(beyond > _TOLERANCE * np.maximum(limit, 1.0))

    def paid(self, counts: FloatArray) -> float:
        """Return the cost of whole columns with the penalties of overloads."""
        chosen = np.flatnonzero(counts)
        beyond = self.pool.use(chosen, counts[chosen]) - self.pool.rows.capacity
        costs = np.array(self.pool.costs)[chosen]
        return float(costs @ counts[chosen] + self.penalty @ np.maximum(beyond, 0.0))
