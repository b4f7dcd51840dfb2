"""Whole plans of a fleet: dives, and an integer program over all configurations of a small fleet.

A dive fixes the largest databases in whole configurations, then solves the master again over the
others, with new columns at its prices, and so on to the smallest. What the large ones leave of the
limits is so divided anew each time, and only the smallest are placed in what happens to be left.
"""

from __future__ import annotations

import math
import time
import zlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from formulations.fleet import tuning
from formulations.fleet.column_pool import Master, MasterResult
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


@dataclass
class Rounding:
    """Search for whole numbers of columns for every database.

    A search that was stopped gets what the last master gives within a second and a millisecond
    for each database.
    """

    relaxation: Master  #: the master, with its columns
    tables: FleetTables  #: all configurations of databases that have few
    master: MasterResult  #: its last weights and prices
    bound: float  #: a plan within `settings.gap` of it is good enough
    settings: FleetSearch  #: gap and seed
    unit: float  #: scale of the objective
    deadline: float  #: time of ``time.perf_counter`` at which the plan is no longer improved
    termination: Termination  #: why the search for columns ended
    #: that of the integer program over all configurations of a small fleet; −∞: there was none
    whole_bound: float = -math.inf

    def __post_init__(self) -> None:
        self.pool, self.copies = self.relaxation.pool, self.relaxation.copies
        self.members = self.pool.rows.fleet.members
        self.rng = np.random.default_rng(self.settings.seed)
        self.counts: FloatArray = np.zeros(len(self.pool))
        self.misfits: set[int] = set()

    def run(self) -> list[list[Placed]] | None:
        """Return the copies of every database, None where none were found.

        The best of an integer program of a small fleet and of some dives.
        """
        if self.termination is Termination.FINISHED:
            with end_early(self):
                self.dive_often(1)
                self.choose_of_all()
                self.dive_often(tuning.DIVES, tuning.DRAWN, tuning.TRIED)
        self.pool.drop_unfinished()
        if self.termination is not Termination.FINISHED and not self.is_plan(self.counts):
            seconds = tuning.LAST_SECONDS + tuning.LAST_SECONDS_EACH * len(self.members)
            self.deadline = time.perf_counter() + seconds
            with end_early(SearchEnd()):
                whole = np.floor(self.master.weights + 1e-6)
                order = np.argsort(-self.sizes(), kind="stable").tolist()
                kept = np.zeros(0) if self.overload(whole).any() else whole
                counts = self.place_in_order(kept, self.master, order)
                self.counts = self.counts if counts is None else counts
        if not self.is_plan(self.counts):
            return None
        found: dict[int, list[Placed]] = defaultdict(list)
        for column in np.flatnonzero(self.counts).tolist():
            each = Placed(self.pool.configurations[column], int(self.counts[column]))
            found[self.pool.owner[column]].append(each)
        return [found[member] for member in range(len(self.members))]

    def dive_often(self, times: int, spread: float = 0.0, tried_from: float = math.inf) -> None:
        """Dive until the plan is good, in drawn orders; what has fitted nowhere comes first."""
        sizes = self.sizes()
        for _ in range(times):
            if self.is_good():
                return
            drawn = sizes * self.rng.lognormal(0.0, spread, len(sizes))
            drawn[list(self.misfits)] += 1.0
            counts = self.dive(drawn, tried_from)
            if counts is not None and self.paid(counts) < self.value_of_plan():
                self.counts = counts

    def dive(self, sizes: FloatArray, tried_from: float) -> FloatArray | None:
        """Fix databases whole, the largest first; None: one fits nowhere, or no better plan.

        Those of a size `tried_from` on are fixed alone where the master splits them.
        """
        fixed, counts = np.zeros(len(sizes), dtype=np.bool_), np.zeros(0)
        master, best = self.master, self.value_of_plan()
        while not fixed.all():
            least = tuning.TOGETHER * sizes[~fixed].max()
            if (~fixed).sum() <= tuning.LAST_TOGETHER:
                least = 0.0
            chosen = np.flatnonzero(~fixed & (sizes >= least))
            tried = self.best_of_split(master, chosen[sizes[chosen] >= tried_from], fixed, counts)
            if tried is not None:
                number, counts = tried
                fixed[number] = True
            else:
                whole = np.floor(master.weights + 1e-6)
                whole[~np.isin(self.pool.owners(np.arange(len(whole))), chosen)] = 0.0
                whole[: len(counts)] += counts
                if self.overload(whole).any():
                    whole = self.padded(counts)
                order = chosen[np.argsort(-sizes[chosen], kind="stable")].tolist()
                placed = self.place_in_order(whole, master, order)
                if placed is None:
                    return None
                counts, fixed[chosen] = placed, True
            master = self.priced_again(fixed, counts)
            if master.value >= best:
                return None
        return counts

    def best_of_split(
        self, master: MasterResult, among: IntArray, fixed: BoolArray, counts: FloatArray
    ) -> tuple[int, FloatArray] | None:
        """Fix one large database that a master splits, in the part that costs the others least."""
        owner, tried = self.pool.owners(np.arange(len(master.weights))), dict[float, FloatArray]()
        parts = (master.weights > 1e-6) & (master.weights < 1 - 1e-6) & np.isin(owner, among)
        parts &= self.copies[owner] == 1
        if not parts.any():
            return None
        number = int(owner[np.flatnonzero(parts)[master.weights[parts].argmax()]])
        mine = np.arange(len(self.copies)) == number
        for column in np.flatnonzero(parts & (owner == number)).tolist():
            total = self.padded(counts)
            total[column] = 1.0
            if not self.overload(total).any():
                tried[self.relaxation.solve(self.deadline, fixed | mine, total).value] = total
        return (number, tried[min(tried)]) if tried else None

    def priced_again(self, fixed: BoolArray, counts: FloatArray) -> MasterResult:
        """Solve the master with some databases fixed, and price the others."""
        master, new = self.relaxation.solve(self.deadline, fixed, counts), False
        free = np.flatnonzero(~fixed).tolist()
        answers = price_members(self.tables, free, master.prices)
        for number, priced in zip(free, answers, strict=True):
            self.check_time()
            assert priced.configuration is not None  # the first round has found one
            new |= self.pool.add(number, priced.configuration)
        return self.relaxation.solve(self.deadline, fixed, counts) if new else master

    def sizes(self) -> FloatArray:
        """Return the largest part of a limit that a column of each database takes."""
        size = np.zeros(len(self.members))
        np.maximum.at(size, self.pool.owner, self.pool.largest_parts())
        return size

    def padded(self, counts: FloatArray) -> FloatArray:
        """Return numbers of all columns of the pool: 0 of a new column."""
        return np.append(counts, np.zeros(len(self.pool) - len(counts)))

    def missing(self, counts: FloatArray) -> IntArray:
        """Return the copies of each database that have no configuration yet, shape (members,)."""
        placed = np.bincount(self.pool.owner[: len(counts)], counts, len(self.members))
        return np.asarray(np.round(self.copies - placed).astype(np.int64))

    def is_plan(self, counts: FloatArray) -> bool:
        """Return whether whole columns place all copies within the limits."""
        return not self.missing(counts).any() and not self.overload(counts).any()

    def place_in_order(
        self, counts: FloatArray, master: MasterResult, order: Sequence[int]
    ) -> FloatArray | None:
        """Place the copies that are missing of some databases where there is room left.

        Each gets the configuration of the largest weight in a master that still fits, or else the
        best at its prices among the sites where it fits. None when one fits nowhere any more, or a
        limit is exceeded already.
        """
        rows, fixed = self.pool.rows, np.flatnonzero(counts)
        if self.overload(counts).any():
            return None
        room = rows.capacity - self.pool.use(fixed, counts[fixed])
        missing = self.missing(counts)
        chosen: list[tuple[int, int]] = []
        split = defaultdict[int, list[int]](list)
        parts = master.weights - np.floor(master.weights + 1e-6)
        for column in np.argsort(-parts, kind="stable")[: int((parts > 1e-6).sum())].tolist():
            split[self.pool.owner[column]].append(column)
        for number, row in self.tables.each([n for n in order if missing[n]], master.prices):
            member, left = self.members[number], int(missing[number])
            while left:
                self.check_time()
                weighed = [self.pool.configurations[column] for column in split[number]]
                fits = (one for one in weighed if (rows.use(member, one) <= room).all())
                found = next(fits, None)
                if found is None and row is None:
                    found = price_member(rows, member, master.prices, room).configuration
                elif found is None and row is not None:
                    found = row.best(*rows.fitting_sites(member, room))
                if found is None:
                    self.misfits.add(number)
                    return None
                use = rows.use(member, found)
                taken = np.flatnonzero(use)
                fitting = int((room[taken] / use[taken]).min(initial=left))
                if fitting < 1:  # more replicas than the fewest allowed, or several new ones
                    self.misfits.add(number)
                    return None
                copies = min(left, fitting)
                room -= copies * use
                left -= copies
                chosen.append((self.pool.index(number, found), copies))
        total = self.padded(counts)
        for column, copies in chosen:
            total[column] += copies
        return total

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
        if count > tuning.SMALL_FLEET or self.is_good():
            return
        above = [np.zeros(0)] * count
        least = -float(prices @ self.pool.rows.capacity)
        for number, row in self.tables.each(range(count), prices):
            if row is None:
                return
            above[number] = row.priced - row.priced.min()
            least += float(self.copies[number] * row.priced.min())
        top = max(float(row[np.isfinite(row)].max()) for row in above)
        step = tuning.FIRST_STEP * max(abs(least), self.unit)
        counting, most, value = prices > 0, least + step, self.value_of_plan()
        while True:
            most = min(most, value)
            # the value of a plan may be below the least by rounding
            columns = self.columns_within(above, max(0.0, most - least), counting)
            if columns is None:
                return
            room = np.where(counting, self.pool.rows.capacity, np.inf)
            self.check_time()
            guard = Guard(
                deadline=self.deadline, most_nodes=tuning.SMALL_FLEET_NODES, own_gap=_OWN_GAP
            )
            found, bound = self.pool.choose(columns, self.copies, room, guard, self.unit)
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
        rows, found = self.pool.rows, list[tuple[int, Configuration, float]]()
        for table, mine in self.tables.by_table(range(len(self.members))).items():
            assert table is not None
            costs = self.tables.costs(table, mine)
            members = [self.members[number] for number in mine]
            ones = counting.astype(np.float64)
            amounts, added = rows.amounts(members, ones)
            used = amounts[:, :, np.newaxis] * rows.unit_prices(ones) > 0
            used[:, 0] |= added > 0
            rng = np.random.default_rng(self.settings.seed)
            keys = (used.reshape(len(mine), -1) * rng.random(len(table.sites))) @ table.sites
            for number, cost, key in zip(mine, costs, keys, strict=True):
                ties = np.random.default_rng(zlib.crc32(self.members[number].name.encode()))
                self.check_time()
                near = np.flatnonzero(above[number] <= most)
                tied = np.floor(np.log(np.maximum(cost[near], 1e-300)) / _TIE)
                near = near[np.lexsort((ties.random(len(cost))[near], tied, key[near]))]
                near = near[np.unique(key[near], return_index=True)[1]]
                found += [(number, table.configurations[k], float(cost[k])) for k in near.tolist()]
                if len(found) > tuning.SMALL_FLEET_COLUMNS:
                    return None
        return np.sort(np.array([self.pool.index(*each) for each in found], dtype=np.intp))

    def value_of_plan(self) -> float:
        """Return the value of the plan; +∞ when there is none."""
        return self.paid(self.counts) if self.is_plan(self.counts) else math.inf

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
        """Return the cost of whole columns."""
        chosen = np.flatnonzero(counts)
        return float(self.pool.costs_of(chosen) @ counts[chosen])
