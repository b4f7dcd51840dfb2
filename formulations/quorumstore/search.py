"""Search over all replica sets of the tables for the smallest value of a goal, with all ties.

A block of sets is screened against the incumbent, the survivors are tested exactly, the incumbent
falls, and so on. Where "value <= t" is a limit on thresholds (:meth:`Goal.monotone`), the least t
that some survivor reaches is found by bisection over the grid of all threshold values, on a
shrinking list of survivors; otherwise each survivor's thresholds are computed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from formulations.quorumstore.candidates import Candidates, RankLimits
from formulations.quorumstore.screen import Side, screen, sides_of
from formulations.quorumstore.tables import Geometry, SetBlock
from placement.checks import FloatArray, IntArray
from placement.quorumstore import Goal, Limits, Loss, Metrics, QuorumProblem, Target, metrics
from placement.quorumstore.latency import SortedSets, costs

__all__ = ["Search", "Ties", "restart"]

_CHUNK = 2048
"""Survivors gathered at a time: about 2 MB of ranks at 27 sites and N = 5."""

_MANY = 512
"""Survivors above which a sample of them is tried first, to lower the incumbent."""


@dataclass(frozen=True, slots=True, eq=False)
class Ties:
    """Sets of one block under one (R, W), all with the best value found so far."""

    block: SetBlock
    index: IntArray
    read: int
    write: int

    @property
    def sets(self) -> IntArray:
        """The replica sets, rows of increasing site indices."""
        rows: IntArray = self.block.sets[self.index].astype(np.intp)
        return rows


@dataclass(slots=True)
class Search:
    """One key, one goal: the incumbent value and everything that reaches it.

    Parameters
    ----------
    problem
        The key. Its own goal is not used.
    goal
        What to minimise.
    geometry
        Tables of the store.
    caps
        Limits besides those of the goal.
    """

    problem: QuorumProblem
    goal: Goal
    geometry: Geometry
    caps: Limits = field(default_factory=Limits)
    value: float = math.inf
    ties: list[Ties] = field(default_factory=list)
    sides: tuple[Side, Side] = field(init=False)
    contingency: bool = field(init=False)
    ranked: bool = field(init=False)
    """Whether losses can be tested on ranks: single sites, each holding at most one replica."""
    monotone: bool = field(init=False)

    def __post_init__(self) -> None:
        rules = self.problem.rules
        self.sides = sides_of(self.problem)
        self.contingency = rules.contingency and bool(self.problem.losses)
        single = rules.loss is Loss.SITE and rules.failures == 1
        self.ranked = single or not self.contingency
        self.monotone = (
            self.ranked
            and self.goal.monotone(rules.contingency)
            and not math.isfinite(self.goal.cost_bound)
        )

    def run(self, sources: Iterable[tuple[SetBlock, IntArray | None, int, int]]) -> None:
        """Look at every (block, sets or None for all, R, W) and collect the ties."""
        for block, start, read, write in sources:
            self._look(block, start, read, write)

    def probe(self, block: SetBlock, index: IntArray, read: int, write: int) -> None:
        """Lower the incumbent value with some sets, without recording them as ties."""
        before, kept = self.value, self.ties
        self.ties = []
        self._test(block, self._allowed(block, index, read, write), read, write)
        # What tied with the old value does not tie with a lower one.
        self.ties = kept if self.value == before else []

    def _look(self, block: SetBlock, start: IntArray | None, read: int, write: int) -> None:
        kept = self._screened(block, start, read, write)
        if self.goal.target is Target.COST or math.isfinite(self.goal.cost_bound):
            kept = self._cheapest_first(block, kept, read)
        while self.goal.target is not Target.COST and len(kept) > _MANY:
            before = self.value
            step = len(kept) // (_MANY // 4)
            self.probe(block, kept[::step], read, write)
            if not self.value < before:
                break
            kept = self._screened(block, kept, read, write)
        self._test(block, self._allowed(block, kept, read, write), read, write)

    def _screened(self, block: SetBlock, start: IntArray | None, read: int, write: int) -> IntArray:
        limits = self._limits(self.value)
        return screen(
            self.geometry,
            block,
            self.sides,
            (read, write),
            limits,
            losses=self.contingency and self.ranked,
            start=start,
        )

    def _allowed(self, block: SetBlock, index: IntArray, read: int, write: int) -> IntArray:
        if self.problem.rules.loss is Loss.SITE:
            return index  # the rule on distinct regions is already in the tables
        rows = block.sets[index].astype(np.intp)
        return index[self.problem.admissible(rows, max(read, write))]

    def _cheapest_first(self, block: SetBlock, index: IntArray, read: int) -> IntArray:
        bill = np.empty(len(index))
        for low in range(0, len(index), _CHUNK):
            rows = block.sets[index[low : low + _CHUNK]].astype(np.intp)
            ordered = SortedSets.of(self.problem, rows)
            bill[low : low + _CHUNK] = costs(self.problem, rows, ordered, read)
        order = np.argsort(bill, kind="stable")
        return index[order[bill[order] <= self.goal.cost_bound]]

    def _test(self, block: SetBlock, index: IntArray, read: int, write: int) -> None:
        # The evaluator lays all scenarios side by side, so its chunks shrink with their number.
        size = _CHUNK if self.ranked else max(16, _CHUNK // (1 + len(self.problem.losses)))
        for low in range(0, len(index), size):
            chunk = index[low : low + size]
            if not self.ranked:
                self._offer_exact(block, chunk, read, write)
                continue
            found = Candidates.of(
                self.geometry, block, chunk, self.sides, (read, write), losses=self.contingency
            )
            if self.monotone:
                self._bisect(block, found, read, write)
            else:
                self._offer(block, found, read, write)

    def _limits(self, value: float) -> Limits:
        return self.goal.limits(value, self.problem.rules.contingency).meet(self.caps)

    def _rank_limits(self, value: float) -> RankLimits:
        limits = self._limits(value)
        ranks = np.searchsorted(
            self.geometry.grid,
            [limits.normal_read, limits.normal_write, limits.worst_read, limits.worst_write],
            side="right",
        )
        return RankLimits(*(int(rank) for rank in ranks))

    def _bisect(self, block: SetBlock, found: Candidates, read: int, write: int) -> None:
        """Lower the incumbent to the least value some candidate reaches; keep who reaches it."""
        grid = self.geometry.grid
        found = found.take(found.within(self._rank_limits(self.value)))
        if not len(found.index):
            return
        # A value is 0 (nothing needs to be in time) or a grid value: step t stands for grid[t − 1].
        values = np.concatenate([[0.0], grid])
        top = int(np.searchsorted(values, self.value, side="right")) - 1
        infeasible, step = -1, 1
        while top - infeasible > 1:
            # First ask for any improvement at all, then halve.
            middle = top - 1 if step == 1 else (top + infeasible) // 2
            step += 1
            better = found.within(self._rank_limits(float(values[middle])))
            if better.any():
                found, top = found.take(better), middle
            else:
                infeasible = middle
        self._record(float(values[top]), Ties(block, found.index, read, write))

    def _offer(self, block: SetBlock, found: Candidates, read: int, write: int) -> None:
        """Compute the thresholds of candidates within the limits, and their values."""
        found = found.take(found.within(self._rank_limits(self.value)))
        if not len(found.index):
            return
        normal_read, normal_write = found.normal_thresholds(self.geometry)
        worst_read, worst_write = normal_read, normal_write
        if self.contingency:
            worst_read, worst_write = found.worst_thresholds(self.geometry)
        nothing = np.zeros(len(found.index))
        bill = nothing
        if self.problem.prices is not None:
            rows = block.sets[found.index].astype(np.intp)
            bill = costs(self.problem, rows, SortedSets.of(self.problem, rows), read)
        figures = Metrics(normal_read, normal_write, worst_read, worst_write, nothing, bill)
        self._offer_values(block, found.index, read, write, figures)

    def _offer_exact(self, block: SetBlock, index: IntArray, read: int, write: int) -> None:
        """Let the evaluator judge every candidate: losses of several sites or of regions."""
        if len(index):
            rows = block.sets[index].astype(np.intp)
            figures = metrics(self.problem, rows, read, write)
            kept = (
                (figures.normal_read <= self.caps.normal_read)
                & (figures.normal_write <= self.caps.normal_write)
                & (figures.worst_read <= self.caps.worst_read)
                & (figures.worst_write <= self.caps.worst_write)
            ).nonzero()[0]
            index, figures = index[kept], figures.take(kept)
            self._offer_values(block, index, read, write, figures)

    def _offer_values(
        self, block: SetBlock, index: IntArray, read: int, write: int, figures: Metrics
    ) -> None:
        if not len(index):
            return
        values: FloatArray = self.goal.values(figures, self.problem.rules.contingency)
        best = float(values.min())
        if best <= self.value and math.isfinite(best):
            self._record(best, Ties(block, index[values == best], read, write))

    def _record(self, value: float, ties: Ties) -> None:
        if value < self.value:
            self.value, self.ties = value, []
        self.ties.append(ties)


def restart(ties: Sequence[Ties]) -> list[tuple[SetBlock, IntArray | None, int, int]]:
    """Sources for a further search among `ties`."""
    return [(group.block, group.index, group.read, group.write) for group in ties]
