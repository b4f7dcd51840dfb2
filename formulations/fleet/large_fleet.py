"""Plans of large fleets, without a linear program over all databases.

1. The prices of a weighted sample. One pass over all
   databases at these prices gives a bound, and the use of every limit by all and by the sample.
   Their difference corrects what the sample may use, and the sample gives better prices: two to
   four times.
2. Passes at prices that differ a little from batch to batch. Many databases have two sites that
   cost them nearly the same, so they need columns for both.
3. Column generation in blocks of 2,500 databases. Each block has a part of every limit: what its
   program used of it in the round before, over what all blocks used.
4. The plan: two blocks of the largest databases, then blocks of those of the others that the last
   programs split, a few in a hundred, in order of size. Databases that the program of such a block
   splits are placed with the next block, so the last ones split are the smallest.

The bound holds whatever the sample is: any prices prove one. What the master does for a database
does not grow with their number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from formulations.fleet import tuning
from formulations.fleet.column_pool import MasterResult
from formulations.fleet.price_member import PricedMember
from formulations.fleet.pricing_workers import batches_of
from placement.fleet.fleet_problem import FleetProblem
from placement.support.checks import BoolArray, FloatArray, IntArray
from placement.support.status import relative_gap

if TYPE_CHECKING:
    from formulations.fleet.column_generation import Generation

__all__ = ["LargeFleet", "sample_of", "weighted_sample"]


def sample_of(search: Generation, alone: IntArray) -> tuple[FleetProblem, IntArray, FloatArray]:
    """Return the fleet of a sample, its databases by their numbers, and the copies of each.

    Parameters
    ----------
    search
        The search over all databases.
    alone
        Column of each database without the others, shape (members,).
    """
    fleet = search.fleet
    size = search.copies * search.pool.relative_sizes(alone)
    named = {name for group in fleet.limits.apart for name in group}
    certain = np.array([member.name in named for member in fleet.members])
    chosen, weights = weighted_sample(size, search.copies, certain, tuning.SAMPLE_DATABASES)
    sample = FleetProblem([fleet.members[one] for one in chosen.tolist()], fleet.limits)
    return sample, chosen, weights


class LargeFleet:
    """Search for prices and a plan of a large fleet.

    Parameters
    ----------
    search
        Over all databases; its pool, bound and prices are carried on.
    alone
        Answers for every database without the others.
    """

    def __init__(self, search: Generation, alone: list[PricedMember]) -> None:
        self.search, self.pool = search, search.pool
        self.copies, self.capacity = search.copies, search.rows.capacity
        self.columns = search.columns_of(alone)
        self.size = self.pool.relative_sizes(self.columns)
        self.worth = np.array([each.least for each in alone])
        self.rng = np.random.default_rng(search.settings.seed)
        self.weights: FloatArray = np.zeros(0)
        self.count = max(1, round(len(batches_of(len(alone))) / tuning.BLOCK_BATCHES))

    def fits(self) -> bool:
        """Return whether the columns of the last pass keep within the limits."""
        return bool((self.pool.use(self.columns, self.copies) <= self.capacity).all())

    def last_pass(self) -> MasterResult:
        """Return the choices of the last pass at common prices, instead of a master's choices."""
        weights = np.zeros(len(self.pool))
        weights[self.columns] = self.copies
        return self.result(weights)

    def result(self, weights: FloatArray) -> MasterResult:
        """Return weights of columns with the best prices."""
        used = np.flatnonzero(weights)
        over = np.maximum(self.pool.use(used, weights[used]) - self.capacity, 0.0)
        return MasterResult(self.search.bound, weights, over, self.search.prices, self.worth)

    def correct_prices(self, sample: Generation, chosen: IntArray) -> None:
        """Find prices by the sample, and correct it by passes over all databases."""
        search = self.search
        wanted = search.share_of_gap
        for _ in range(tuning.MOST_CORRECTIONS):
            sample.generate()
            before = search.bound
            priced = search.price(sample.prices)
            self.columns = search.columns_of(priced)
            if search.bound > before:
                self.worth = np.array([each.least for each in priced])
            search.master = self.last_pass()
            if search.bound > search.worst:
                return
            mine = self.pool.use(self.columns[chosen], sample.copies)
            room = self.capacity - self.pool.use(self.columns, self.copies) + mine
            sample.change_room(np.maximum(room, tuning.LEAST_ROOM * self.capacity))
            estimate = search.bound + max(0.0, sample.solve_master().value - sample.bound)
            search.note_round(estimate)
            if relative_gap(estimate, search.bound) <= wanted:
                return

    def vary_prices(self) -> None:
        """Find columns for databases that have several sites of nearly the same cost."""
        batches = len(batches_of(len(self.copies)))
        for spread in tuning.PRICE_SPREADS:
            noise = self.rng.standard_normal((batches, len(self.capacity)))
            self.search.collect(self.search.prices * np.exp(spread * noise))

    def balance(self) -> None:
        """Generate columns in blocks, each with its part of the limits."""
        search, count = self.search, self.count
        batches = batches_of(len(self.copies))
        blocks = [np.arange(first, len(batches), count) for first in range(count)]
        inside = [
            np.concatenate([np.arange(*batches[batch]) for batch in block.tolist()])
            for block in blocks
        ]
        used = [self.pool.use(self.columns[each], self.copies[each]) for each in inside]
        for left in range(tuning.MOST_BALANCES, 0, -1):
            total = np.sum(used, axis=0)
            prices = np.zeros((len(batches), len(self.capacity)))
            self.weights = np.zeros(len(self.pool))
            value, overloaded = 0.0, False
            for number, (block, each) in enumerate(zip(blocks, inside, strict=True)):
                room = self.capacity * _part(used[number], total, 1 / count)
                columns = self.pool.columns_of(each)
                found = self.relax(columns, each, room)
                value += found.value
                overloaded |= bool((found.overload > 1e-9 * np.maximum(room, 1.0)).any())
                mixed = (
                    tuning.BLOCK_SMOOTHING * search.prices
                    + (1 - tuning.BLOCK_SMOOTHING) * found.prices
                )
                prices[block] = mixed
                used[number] = self.pool.use(columns, found.weights)
                self.weights[columns] = found.weights
            search.note_round(value)
            wanted = tuning.BLOCK_SHARE_OF_GAP * search.settings.gap
            if left == 1 or (not overloaded and relative_gap(value, search.bound) <= wanted):
                return
            search.collect(prices)

    def place(self) -> MasterResult:
        """Place the databases whole, block by block, the largest ones first.

        The last few of them, which the program of the last block splits, have no weights.
        """
        room, weights = self.capacity.copy(), np.zeros(len(self.pool))
        blocks, stay = self.blocks_by_size()
        weights[stay] = np.round(self.weights[stay])
        room -= self.pool.use(stay, weights[stay])
        used = []
        for block in blocks:
            columns = self.pool.columns_of(block)
            columns = columns[columns < len(self.weights)]
            used.append(self.pool.use(columns, self.weights[columns]))
        left = np.sum(used, axis=0)
        carried, of_carried = np.zeros(0, dtype=np.intp), np.zeros(len(room))
        for number, block in enumerate(blocks):
            each = np.concatenate([carried, block])
            columns, owner = (
                self.pool.columns_of(each),
                self.pool.owners(self.pool.columns_of(each)),
            )
            part = _part(used[number] + of_carried, left + of_carried, 1 / (len(blocks) - number))
            chosen = self.choose(columns, owner, each, room * part, number < tuning.LARGE_BLOCKS)
            whole = np.floor(chosen + 1e-6)
            placed = np.bincount(owner, whole, len(self.copies))
            split = placed[owner] < self.copies[owner]
            weights[columns] = np.where(split, 0.0, whole)
            room -= self.pool.use(columns, weights[columns])
            left = left - used[number]
            carried = each[placed[each] < self.copies[each]]
            of_carried = self.pool.use(columns[split], chosen[split])
        return self.result(weights)

    def blocks_by_size(self) -> tuple[list[IntArray], IntArray]:
        """Return the blocks of databases to place, the largest first, and columns that stay.

        Databases of the first blocks are placed again. Of the smaller ones, those stay that the
        last programs left whole: a few in a hundred are split.
        """
        order = np.argsort(-self.size, kind="stable")
        length = -(-len(order) // self.count)
        first, others = order[: tuning.LARGE_BLOCKS * length], order[tuning.LARGE_BLOCKS * length :]
        used = np.flatnonzero(self.weights)
        owner, whole = self.pool.owners(used), np.floor(self.weights[used] + 1e-6)
        split = np.bincount(owner, whole, len(order)) < self.copies
        kept = ~split
        kept[first] = False
        blocks = np.array_split(first, -(-len(first) // length))
        left = others[split[others]]
        if len(left):
            blocks += np.array_split(left, -(-len(left) // length))
        return blocks, used[kept[owner] & (whole > 0)]

    def choose(
        self, columns: IntArray, owner: IntArray, each: IntArray, room: FloatArray, large: bool
    ) -> FloatArray:
        """Return weights of the columns of a block, whole ones for its largest databases.

        Of the large databases that the program splits, the larger half take their column of most
        weight, and the program is solved again for the others, as long as some are split.
        """
        weights, room = np.zeros(len(columns)), room.copy()
        largest = np.zeros(len(self.copies), dtype=np.bool_)
        if large:
            largest[each[np.argsort(-self.size[each], kind="stable")[: tuning.LARGE_DATABASES]]] = (
                True
            )
        free = np.ones(len(columns), dtype=np.bool_)
        for _ in range(tuning.MOST_DIVES):
            left = np.flatnonzero(free)
            found = self.relax(columns[left], np.unique(owner[left]), room)
            weights[left] = found.weights
            whole = np.bincount(owner[left], np.floor(found.weights + 1e-6), len(self.copies))
            split = np.unique(owner[left][(largest & (whole < self.copies))[owner[left]]])
            if not len(split):
                break
            split = split[np.argsort(-self.size[split], kind="stable")[: (len(split) + 1) // 2]]
            for member in split.tolist():
                mine = left[owner[left] == member]
                chosen = mine[int(found.weights[owner[left] == member].argmax())]
                weights[mine], free[mine] = 0.0, False
                weights[chosen] = self.copies[member]
                room -= self.pool.use(columns[[chosen]], weights[[chosen]])
        return weights

    def relax(self, columns: IntArray, each: IntArray, room: FloatArray) -> MasterResult:
        """Solve the master over some databases."""
        search = self.search
        return self.pool.relax(
            columns, self.only(each), room, search.penalty, search.unit, search.deadline
        )

    def only(self, each: IntArray) -> FloatArray:
        """Return the copies of some databases, 0 for the others, shape (members,)."""
        copies = np.zeros(len(self.copies))
        copies[each] = self.copies[each]
        return copies


def _part(mine: FloatArray, total: FloatArray, otherwise: float) -> FloatArray:
    """Return mine / total, or a special value if the total is 0."""
    part = np.full(len(total), otherwise)
    return np.asarray(np.divide(mine, total, out=part, where=total > 0))


def weighted_sample(
    size: FloatArray, copies: FloatArray, certain: BoolArray, count: int
) -> tuple[IntArray, FloatArray]:
    """Choose databases with a probability that grows with their size; return them and weights.

    Systematic sampling in order of size: half of the probability in proportion to the size, half
    in proportion to the copies. A database with probability p stands for 1/p like it, so the
    largest ones stand for themselves alone. O(databases · log databases).

    Parameters
    ----------
    size
        Use of the limits by all copies of each database, in any unit, >= 0, shape (databases,).
    copies
        Copies of each database, shape (databases,).
    certain
        Databases that take part in any case, shape (databases,).
    count
        Databases to choose, about.

    Returns
    -------
    chosen
        Their numbers in ascending order, shape (chosen,).
    weights
        Copies that each of them stands for, shape (chosen,).
    """
    size = np.maximum(size, 0.0)
    share = 0.5 * size / max(size.sum(), 1e-300) + 0.5 * copies / copies.sum()
    chance = np.where(certain, 1.0, 0.0)
    while True:
        left = chance < 1
        wanted = count - int((~left).sum())
        if wanted <= 0 or not left.any():
            break
        chance[left] = wanted * share[left] / share[left].sum()
        if not (chance[left] >= 1).any():
            break
        chance = np.minimum(chance, 1.0)
    order = np.argsort(-size, kind="stable")
    ends = np.floor(np.cumsum(np.where(chance >= 1, 0.0, chance)[order]) + 0.5)
    drawn = np.zeros(len(size), dtype=np.bool_)
    drawn[order] = np.diff(ends, prepend=0.0) > 0
    chosen = np.flatnonzero(drawn | (chance >= 1))
    return chosen, copies[chosen] / chance[chosen]
