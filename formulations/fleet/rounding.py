"""Whole plans of a fleet: an integer program for the databases that the master splits."""

from __future__ import annotations

import math
import time
import zlib
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from formulations.fleet import tuning
from formulations.fleet.column_pool import ColumnPool, MasterResult
from formulations.fleet.configuration_table import FleetTables
from formulations.fleet.pricing import price_member, price_members
from formulations.solvers.highs import Guard
from placement.fleet.fleet_plan import FleetSearch, Placed
from placement.model.configuration import Configuration
from placement.support.checks import BoolArray, FloatArray, IntArray
from placement.support.status import SearchEnd, Termination, end_early

_FURTHER = 1.02  # so that the next choice is hardly above it
_TIE = 1e-10  # of the logarithms of two costs
_OWN_GAP = 1e-7  # of the program over all configurations, which may pass over plans within it
_TOLERANCE = 1e-9
"""Part of a limit by which a sum of doubles may be beyond it, and of a bound that is left out."""


class Rounding:
    """Search for whole numbers of columns for every database.

    A search that was stopped gets what the last master gives within a second and a millisecond
    for each database.

    Parameters
    ----------
    pool
        The columns.
    tables
        All configurations of databases that have few.
    master
        Weights, prices and worths.
    bound
        A plan within `settings.gap` of it is good enough.
    settings
        Gap and seed.
    unit
        Scale of the objective.
    deadline
        Time of ``time.perf_counter`` at which the plan is no longer improved.
    termination
        Why the search for columns ended.

    Attributes
    ----------
    whole_bound
        That of the integer program over all configurations of a small fleet; −∞: there was none.
    """

    def __init__(
        self,
        pool: ColumnPool,
        tables: FleetTables,
        master: MasterResult,
        bound: float,
        settings: FleetSearch,
        unit: float,
        deadline: float,
        termination: Termination,
    ) -> None:
        self.pool, self.tables = pool, tables
        self.bound, self.settings, self.unit = bound, settings, unit
        self.rng = np.random.default_rng(settings.seed)
        self.deadline = deadline
        self.termination = termination
        self.whole_bound = -math.inf
        self.members = pool.rows.fleet.members
        self.copies = np.array([member.copies for member in self.members], dtype=np.float64)
        self.master = master
        self.counts: FloatArray = np.zeros(len(pool))
        self.whole: FloatArray = np.floor(master.weights + 1e-6)
        # an overload of a hundredth of a limit costs a hundredth of the whole value
        self.penalty = max(bound, 1e-12) / np.maximum(pool.rows.capacity, 1.0)

    def run(self) -> list[list[Placed]] | None:
        """Return the copies of every database, None where none were found.

        Whole copies are placed under limits with a margin, then the rest; then the plan improves.
        """
        if self.termination is Termination.FINISHED:
            with end_early(self):
                self.choose_of_all()
                if not self.is_good():
                    self.place_all()
                    self.polish()
        self.pool.drop_unfinished()
        if self.termination is not Termination.FINISHED and not self.is_plan(self.counts):
            seconds = tuning.LAST_SECONDS + tuning.LAST_SECONDS_EACH * len(self.members)
            self.deadline = time.perf_counter() + seconds
            with end_early(SearchEnd()):
                counts = self.place_in_order(self.within_limits(self.whole))
                self.counts = self.counts if counts is None else counts
        if not self.is_plan(self.counts):
            return None
        found: dict[int, list[Placed]] = defaultdict(list)
        for column in np.flatnonzero(self.counts).tolist():
            each = Placed(self.pool.configurations[column], int(self.counts[column]))
            found[self.pool.owner[column]].append(each)
        return [found[member] for member in range(len(self.members))]

    def place_all(self) -> None:
        """Place whole copies under limits with a margin, then the rest."""
        for margin in tuning.MARGINS:
            self.whole = np.floor(self.place_large(margin) + 1e-6)
            counts = self.place_in_order(self.whole)
            if counts is not None:
                break
        if counts is None:
            counts = self.place_in_order(np.zeros(len(self.pool)))
        if counts is None:
            counts = self.place_again(self.whole, np.flatnonzero(self.missing(self.whole)))
        self.counts = counts

    def within_limits(self, counts: FloatArray) -> FloatArray:
        """Take copies away from limits that are exceeded, those that use most of one first."""
        chosen = np.flatnonzero(counts)
        left = counts[chosen]
        place, rows, amount = self.pool.entries(chosen)
        for row in np.flatnonzero(self.overload(counts)).tolist():
            self.check_time()
            mine, use = place[rows == row], amount[rows == row]
            beyond = float(use @ left[mine]) - self.pool.rows.capacity[row]
            for index in np.argsort(-use, kind="stable").tolist():
                if beyond <= 0:
                    break
                taken = min(left[mine[index]], math.ceil(beyond / use[index]))
                left[mine[index]] -= taken
                beyond -= taken * use[index]
        total = np.zeros(len(counts))
        total[chosen] = left
        return total

    def largest_first(self) -> list[int]:
        """Return the databases by the largest part of a limit that each can take, descending."""
        size = np.zeros(len(self.members))
        np.maximum.at(size, self.pool.owner, self.pool.largest_parts())
        order: list[int] = np.argsort(-size, kind="stable").tolist()
        return order

    def missing(self, counts: FloatArray) -> IntArray:
        """Return the copies of each database that have no configuration yet, shape (members,)."""
        placed = np.bincount(self.pool.owner[: len(counts)], counts, len(self.members))
        return np.asarray(np.round(self.copies - placed).astype(np.int64))

    def place_large(self, margin: float) -> FloatArray:
        """Place the databases that take most of some limit whole, all others in parts.

        Small databases that are split cost little when they are placed whole later. `margin` is
        the part of every limit that is kept for them.
        """
        owner = np.array(self.pool.owner)
        large = self.largest_first()[: tuning.PLACED_FIRST]
        columns = self.best_columns(np.arange(len(self.members)), self.master)
        whole = np.isin(owner[columns], large)
        room = self.pool.rows.capacity * (1 - margin)
        half = self.settings.gap / 2
        found, _ = self.choose(columns, whole, self.copies, room, most_nodes=1, own_gap=half)
        if found is None:
            return self.master.weights
        weights = np.zeros(len(owner))
        weights[columns] = found
        return weights

    def is_plan(self, counts: FloatArray) -> bool:
        """Return whether whole columns place all copies within the limits."""
        placed = np.bincount(self.pool.owner[: len(counts)], counts, len(self.members))
        return bool((placed == self.copies).all()) and not self.overload(counts).any()

    def place_in_order(self, counts: FloatArray) -> FloatArray | None:
        """Place the copies that are missing, the largest databases first, where there is room left.

        Each gets its best configuration at the prices of the master among the sites where it still
        fits. None when one fits nowhere any more, or a limit is exceeded already.
        """
        rows, fixed = self.pool.rows, np.flatnonzero(counts)
        if self.overload(counts).any():
            return None
        room = rows.capacity - self.pool.use(fixed, counts[fixed])
        missing = self.missing(counts)
        chosen: list[tuple[int, int]] = []
        order = [number for number in self.largest_first() if missing[number]]
        prices = self.master.prices
        for number, row in self.tables.each(order, prices):
            member, left = self.members[number], int(missing[number])
            while left:
                self.check_time()
                if row is None:
                    found = price_member(rows, member, prices, room).configuration
                else:
                    found = row.best(*rows.fitting_sites(member, room))
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
        total = np.zeros(len(self.pool))
        total[: len(counts)] = counts
        for column, copies in chosen:
            total[column] += copies
        return total

    def polish(self) -> None:
        """Place databases again that pay most for sharing, with others drawn at random.

        More at a time once that brings little.
        """
        again = tuning.PLACED_AGAIN
        for _ in range(tuning.POLISHES):
            if self.is_good():
                return
            value, is_plan = self.paid(self.counts), self.is_plan(self.counts)
            self.check_time()
            better = self.place_again(self.counts, self.worst_placed(again), hard=is_plan)
            if self.paid(better) < value and (self.is_plan(better) or not is_plan):
                self.counts = better
            left = tuning.LITTLE * (value - self.bound)
            if value - self.paid(self.counts) < left and again < tuning.MOST_AGAIN:
                again *= 2

    def is_good(self) -> bool:
        """Return whether there is a plan as close to the bound as asked for."""
        value = self.paid(self.counts)
        bound = max(self.bound, self.whole_bound)
        return self.is_plan(self.counts) and value - bound <= self.settings.gap * value

    def choose_of_all(self) -> None:
        """Choose of all configurations of a small fleet that a plan of at most some value can have.

        At any prices the least of each database and the prices of the capacities give a bound. A
        configuration that is further above its least than `most` is above the bound is in no plan
        of at most `most`. A limit enters the program once a choice breaks it. Among configurations
        with the same use of the entered limits, the cheapest is enough. So the integer program
        bounds all plans of at most `most`, and a choice within all limits is the best of them.
        """
        count, prices = len(self.members), self.master.prices
        tables = self.tables.by_table(range(count))
        if None in tables or count > tuning.SMALL_FLEET:
            return
        above = [np.zeros(0)] * count
        least = -float(prices @ self.pool.rows.capacity)
        for table, mine in tables.items():
            assert table is not None
            for number, row in zip(mine, self.tables.priced(table, mine, prices), strict=True):
                above[number] = row - row.min()
                least += float(self.copies[number] * row.min())
        top = max(float(row[np.isfinite(row)].max()) for row in above)
        step = tuning.FIRST_STEP * max(abs(least), self.unit)
        counting, most, value = prices > 0, least + step, self.value_of_plan()
        while True:
            most = min(most, value)
            columns = self.columns_within(above, most - least, counting)
            if columns is None:
                return
            room = np.where(counting, self.pool.rows.capacity, np.inf)
            whole = np.ones(len(columns), dtype=np.bool_)
            found, bound = self.choose(
                columns,
                whole,
                self.copies,
                room,
                hard=True,
                most_nodes=tuning.SMALL_FLEET_NODES,
                own_gap=_OWN_GAP,
            )
            last = most >= value or most - least >= top
            proven = bound if most - least >= top else min(most, bound)
            if math.isfinite(proven):
                self.whole_bound = max(
                    self.whole_bound, proven - (_OWN_GAP + _TOLERANCE) * abs(proven)
                )
            if found is None:
                if last or math.isfinite(bound):
                    return
                most = least + 2 * (most - least)
                continue
            total = np.zeros(len(self.pool))
            total[columns] = found
            if self.is_plan(total) and self.paid(total) < value:
                self.counts, value = total, self.paid(total)
            broken = self.overload(total) & ~counting
            if not broken.any() and (last or value <= most):
                return
            counting = counting | broken
            cost = float(self.pool.costs_of(columns) @ found)
            most = max(most, least + _FURTHER * (cost - least))

    def columns_within(
        self, above: Sequence[FloatArray], most: float, counting: BoolArray
    ) -> IntArray | None:
        """Return columns of all configurations at most so far above the least of their database.

        Of those with the same use of the limits that count only the cheapest; of ties any one.
        None: they are too many.
        """
        rows, chosen = self.pool.rows, dict[int, list[Configuration]]()
        for table, mine in self.tables.by_table(range(len(self.members))).items():
            assert table is not None
            costs = self.tables.costs(table, mine)
            members = [self.members[number] for number in mine]
            used = np.hstack(rows.prices_of(members, counting.astype(np.float64))) > 0
            rng = np.random.default_rng(self.settings.seed)
            keys = (used * rng.random(used.shape[1])) @ table.sites
            for number, cost, key in zip(mine, costs, keys, strict=True):
                ties = np.random.default_rng(zlib.crc32(self.members[number].name.encode()))
                self.check_time()
                near = np.flatnonzero(above[number] <= most)
                tied = np.floor(np.log(np.maximum(cost[near], 1e-300)) / _TIE)
                near = near[np.lexsort((ties.random(len(cost))[near], tied, key[near]))]
                near = near[np.unique(key[near], return_index=True)[1]]
                chosen[number] = [table.configurations[place] for place in near.tolist()]
        if sum(map(len, chosen.values())) > tuning.SMALL_FLEET_COLUMNS:
            return None
        pairs = [(number, one) for number, each in chosen.items() for one in each]
        return np.sort(np.array([self.pool.index(*pair) for pair in pairs], dtype=np.intp))

    def value_of_plan(self) -> float:
        """Return the value of the plan; +∞ when there is none."""
        return self.paid(self.counts) if self.is_plan(self.counts) else math.inf

    def worst_placed(self, most: int) -> IntArray:
        """Return databases to place again: on exceeded limits, expensive ones, some others."""
        counts, chosen = self.counts, np.flatnonzero(self.counts)
        reduced = self.pool.reduced_costs(self.master, chosen)
        owner = self.pool.owners(chosen)
        paid = np.bincount(owner, reduced * counts[chosen], len(self.members))
        dearest = np.argsort(-paid, kind="stable")[:most]
        count = min(4 * most, len(self.members))
        drawn = self.rng.choice(len(self.members), count, replace=False)
        over = self.overload(counts)
        columns = chosen.tolist() if over.any() else []
        taking = [self.pool.owner[column] for column in columns if self.pool.takes(column, over)]
        crowd = self.rng.permutation(np.unique(taking).astype(np.intp))[: 2 * most]
        return np.union1d(np.union1d(dearest, drawn), crowd)

    def place_again(
        self, counts: FloatArray, chosen: IntArray, *, hard: bool = False
    ) -> FloatArray:
        """Place all copies of some databases again; the other databases stay.

        New columns are priced for them at the prices of what the others leave. With `hard` no
        limit may be exceeded.
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
        found, _ = self.choose(columns, whole, copies, room, hard=hard)
        if found is None:
            return counts
        total = np.zeros(len(self.pool))
        total[: len(kept)] = kept
        total[columns] = found
        return total

    def new_columns(self, chosen: IntArray, copies: FloatArray, room: FloatArray) -> MasterResult:
        """Price some databases at the prices of the room that the others leave; return the last."""
        for _ in range(tuning.PRICINGS):
            columns = np.flatnonzero(np.isin(self.pool.owner, chosen))
            master = self.pool.relax(columns, copies, room, self.penalty, self.unit, self.deadline)
            new, numbers = False, chosen.tolist()
            answers = price_members(self.tables, numbers, master.prices)
            for member, priced in zip(numbers, answers, strict=True):
                self.check_time()
                assert priced.configuration is not None  # the first round has found one
                new |= self.pool.add(member, priced.configuration)
            if not new:
                break
        return master

    def best_columns(
        self, chosen: IntArray, master: MasterResult, among: IntArray | None = None
    ) -> IntArray:
        """Return the columns of least reduced cost of each of some databases."""
        most = max(tuning.ROUNDED_COLUMNS, tuning.ALL_ROUNDED_COLUMNS // len(chosen))
        columns = np.arange(len(self.pool)) if among is None else among
        owner = self.pool.owners(columns)
        order = np.lexsort((self.pool.reduced_costs(master, columns), owner))
        starts = np.searchsorted(owner[order], chosen)
        ends = np.minimum(np.searchsorted(owner[order], chosen, "right"), starts + most)
        parts = [columns[order[a:b]] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
        return np.sort(np.concatenate(parts))

    def choose(
        self,
        columns: IntArray,
        whole: BoolArray,
        copies: FloatArray,
        room: FloatArray,
        *,
        hard: bool = False,
        most_nodes: int = tuning.ROUNDING_NODES,
        own_gap: float | None = None,
    ) -> tuple[FloatArray | None, float]:
        """Run one integer program; with `hard` no limit may be exceeded. Return its bound too."""
        self.check_time()
        guard = Guard(
            deadline=self.deadline,
            most_nodes=most_nodes,
            own_gap=self.settings.gap / 10 if own_gap is None else own_gap,
        )
        penalty = np.full(len(room), np.inf) if hard else self.penalty
        return self.pool.choose(columns, whole, copies, room, penalty, guard, self.unit)

    def check_time(self) -> None:
        """Raise TimeoutError once the time is over."""
        if time.perf_counter() >= self.deadline:
            raise TimeoutError

    def overload(self, counts: FloatArray) -> BoolArray:
        """Return the limits that whole columns exceed, shape (rows,)."""
        limit, chosen = self.pool.rows.capacity, np.flatnonzero(counts)
        beyond = self.pool.use(chosen, counts[chosen]) - limit
        return np.asarray(beyond > _TOLERANCE * np.maximum(limit, 1.0))

    def paid(self, counts: FloatArray) -> float:
        """Return the cost of whole columns with the penalties of overloads."""
        chosen = np.flatnonzero(counts)
        beyond = self.pool.use(chosen, counts[chosen]) - self.pool.rows.capacity
        costs = self.pool.costs_of(chosen)
        return float(costs @ counts[chosen] + self.penalty @ np.maximum(beyond, 0.0))
