"""Search over all replica sets of the tables for the smallest value of a goal, with all ties.

A block of sets is screened against the incumbent, the survivors are tested exactly, the incumbent
falls, and so on. Where "value <= t" is a limit on thresholds (:meth:`Goal.monotone`), the least t
that some survivor reaches is found by bisection over the grid of all threshold values, on a
shrinking list of survivors; otherwise each survivor's thresholds are computed.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from formulations.quorumstore import tuning
from formulations.quorumstore.enumeration.exact_tests import Candidates, RankLimits
from formulations.quorumstore.enumeration.nearest_sites import NearestSites
from formulations.quorumstore.enumeration.prefix_tree import passing, passing_sets
from formulations.quorumstore.enumeration.screening import (
    RequestWeights,
    Screen,
    StoreSide,
    sides_of,
)
from placement.quorumstore import (
    Goal,
    LossScope,
    Metrics,
    QuorumProblem,
    Target,
    ThresholdLimits,
    metrics,
)
from placement.quorumstore.latency import SortedSets, costs
from placement.support.checks import FloatArray, IntArray

__all__ = ["SetSearch", "Ties"]


@dataclass(frozen=True, slots=True, eq=False)
class Ties:
    """Replica sets of one size under one (R, W), all with the best value found so far.

    Attributes
    ----------
    sets
        Rows of increasing site indices, shape (m, N).
    read, write
        R and W.
    """

    sets: IntArray
    read: int
    write: int


@dataclass(slots=True)
class SetSearch:
    """Search for one key and one goal: the incumbent value and all configurations that reach it.

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
    every
        Yields the sets of an (N, R, W) within limits; None: those that pass the screen.
    """

    problem: QuorumProblem
    goal: Goal
    geometry: NearestSites
    caps: ThresholdLimits = field(default_factory=ThresholdLimits)
    every: Callable[[tuple[int, int, int], ThresholdLimits], Iterator[IntArray]] | None = None
    value: float = math.inf
    ties: list[Ties] = field(default_factory=list)
    sides: tuple[StoreSide, StoreSide] = field(init=False)
    weights: RequestWeights = field(init=False)
    contingency: bool = field(init=False)
    ranked: bool = field(init=False)
    """Whether losses can be tested on ranks: single sites, each holding at most one replica."""
    monotone: bool = field(init=False)
    lost: int = field(init=False)
    """Number of sites lost at once, for the screen; 0 where losses are left to the evaluator."""

    def __post_init__(self) -> None:
        rules = self.problem.rules
        self.sides = sides_of(self.problem)
        self.weights = RequestWeights.of(self.problem)
        self.contingency = rules.contingency and bool(self.problem.losses)
        single = rules.loss is LossScope.SITE and rules.failures == 1
        self.ranked = single or not self.contingency
        self.lost = rules.failures if self.contingency and rules.loss is LossScope.SITE else 0
        self.monotone = (
            self.ranked
            and self.goal.monotone(rules.contingency)
            and not math.isfinite(self.goal.cost_bound)
        )

    def run(self) -> None:
        """Evaluate every replica set under every (R, W) and collect the ties."""
        for pair in self.problem.pairs:
            total, read, write = pair
            if math.isinf(self.value) and self.goal.target is not Target.COST:
                self.probe(_scattered(len(self.problem.sites), total), read, write)
            for sets in self._grown(pair):
                self._look(sets, read, write)

    def choose(self, ties: Sequence[Ties]) -> None:
        """Evaluate some configurations only."""
        for group in ties:
            self._look(self._screened(group.sets, group.read, group.write), group.read, group.write)

    def probe(self, sets: IntArray, read: int, write: int) -> None:
        """Lower the incumbent value with some sets, without recording them as ties."""
        before, kept = self.value, self.ties
        self.ties = []
        self._test(self._allowed(sets, read, write), read, write)
        # What tied with the old value does not tie with a lower one.
        self.ties = kept if self.value == before else []

    def _look(self, sets: IntArray, read: int, write: int) -> None:
        if self.goal.target is Target.COST or math.isfinite(self.goal.cost_bound):
            sets = self._cheapest_first(sets, read)
        while self.goal.target is not Target.COST and len(sets) > tuning.SAMPLED_SURVIVORS:
            before = self.value
            step = len(sets) // (tuning.SAMPLED_SURVIVORS // 4)
            self.probe(sets[::step], read, write)
            if not self.value < before:
                break
            sets = self._screened(sets, read, write)
        self._test(self._allowed(sets, read, write), read, write)

    def _grown(self, pair: tuple[int, int, int]) -> Iterator[IntArray]:
        if self.every is None:
            yield from passing_sets(self.problem, self._screen(pair))
            return
        held: list[IntArray] = []
        for sets in self.every(pair, self._limits(self.value)):
            held.append(sets)
            if sum(len(rows) for rows in held) >= tuning.SURVIVOR_CHUNK:
                yield np.concatenate(held)
                held = []
        if held:
            yield np.concatenate(held)

    def _screen(self, pair: tuple[int, int, int]) -> Screen:
        return Screen.of(
            self.problem,
            self.weights,
            pair,
            self._limits(self.value),
            failures=self.lost,
            moved=self.geometry.moved_rtt if self.geometry.redirected else None,
        )

    def _screened(self, sets: IntArray, read: int, write: int) -> IntArray:
        kept: IntArray = sets[passing(self._screen((sets.shape[1], read, write)), sets)]
        return kept

    def _allowed(self, sets: IntArray, read: int, write: int) -> IntArray:
        kept: IntArray = sets[self.problem.admissible(sets, max(read, write))]
        return kept

    def _cheapest_first(self, sets: IntArray, read: int) -> IntArray:
        bill = np.empty(len(sets))
        for low in range(0, len(sets), tuning.SURVIVOR_CHUNK):
            rows = sets[low : low + tuning.SURVIVOR_CHUNK]
            ordered = SortedSets.of(self.problem, rows)
            bill[low : low + tuning.SURVIVOR_CHUNK] = costs(self.problem, rows, ordered, read)
        order = np.argsort(bill, kind="stable")
        kept: IntArray = sets[order[bill[order] <= self.goal.cost_bound]]
        return kept

    def _test(self, sets: IntArray, read: int, write: int) -> None:
        # The evaluator lays all scenarios side by side, so its chunks shrink with their number.
        size = (
            tuning.SURVIVOR_CHUNK
            if self.ranked
            else max(16, tuning.SURVIVOR_CHUNK // (1 + len(self.problem.losses)))
        )
        for low in range(0, len(sets), size):
            chunk = sets[low : low + size]
            if not self.ranked:
                self._offer_exact(chunk, read, write)
                continue
            found = Candidates.of(
                self.geometry, chunk, self.sides, (read, write), losses=self.contingency
            )
            if self.monotone:
                self._bisect(found, read, write)
            else:
                self._offer(found, read, write)

    def _limits(self, value: float) -> ThresholdLimits:
        return self.goal.limits(value, self.problem.rules.contingency).tightened(self.caps)

    def _rank_limits(self, value: float) -> RankLimits:
        limits = self._limits(value)
        steps = self.geometry.steps
        return RankLimits(
            bisect_right(steps, limits.normal_read),
            bisect_right(steps, limits.normal_write),
            bisect_right(steps, limits.worst_read),
            bisect_right(steps, limits.worst_write),
        )

    def _bisect(self, found: Candidates, read: int, write: int) -> None:
        """Lower the incumbent to the least value some candidate reaches; keep who reaches it."""
        grid = self.geometry.grid
        found = found.take(found.within(self._rank_limits(self.value)))
        if not len(found.sets):
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
        self._record(float(values[top]), Ties(found.sets, read, write))

    def _offer(self, found: Candidates, read: int, write: int) -> None:
        """Compute the thresholds of candidates within the limits, and their values."""
        found = found.take(found.within(self._rank_limits(self.value)))
        if not len(found.sets):
            return
        normal_read, normal_write = found.normal_thresholds(self.geometry)
        worst_read, worst_write = normal_read, normal_write
        if self.contingency:
            worst_read, worst_write = found.worst_thresholds(self.geometry)
        nothing = np.zeros(len(found.sets))
        bill = nothing
        if self.problem.prices is not None:
            ordered = SortedSets.of(self.problem, found.sets)
            bill = costs(self.problem, found.sets, ordered, read)
        figures = Metrics(normal_read, normal_write, worst_read, worst_write, nothing, bill)
        self._offer_values(found.sets, read, write, figures)

    def _offer_exact(self, sets: IntArray, read: int, write: int) -> None:
        """Let the evaluator judge every candidate: losses of several sites or of regions."""
        if len(sets):
            figures = metrics(self.problem, sets, read, write)
            kept = (
                (figures.normal_read <= self.caps.normal_read)
                & (figures.normal_write <= self.caps.normal_write)
                & (figures.worst_read <= self.caps.worst_read)
                & (figures.worst_write <= self.caps.worst_write)
            ).nonzero()[0]
            self._offer_values(sets[kept], read, write, figures.take(kept))

    def _offer_values(self, sets: IntArray, read: int, write: int, figures: Metrics) -> None:
        if not len(sets):
            return
        values: FloatArray = self.goal.values(figures, self.problem.rules.contingency)
        best = float(values.min())
        if best <= self.value and math.isfinite(best):
            self._record(best, Ties(sets[values == best], read, write))

    def _record(self, value: float, ties: Ties) -> None:
        if value < self.value:
            self.value, self.ties = value, []
        self.ties.append(ties)


def _scattered(sites: int, size: int) -> IntArray:
    """Return some sets of `size` sites from all over the place, to begin with a finite value."""
    starts = np.arange(sites)[:, np.newaxis]
    sets = (starts + np.arange(size) * (sites // size)) % sites
    sets.sort(axis=1)
    rows: IntArray = sets
    return rows
