"""All replica sets of one size as a tree of growing prefixes, cut where no set can pass.

Sets are rows of increasing site indices, so a set grows from its first sites; the levels of the
tree are walked in arrays, thousands of prefixes at a time. A prefix that breaks a condition of
:mod:`formulations.quorumstore.enumeration.screening` breaks it with whatever sites follow, and is
not grown: most of the C(n, N) sets are never written down.

This is the way without the compiled kernel
(:mod:`formulations.quorumstore.enumeration.compiled_search`), which walks the same tree depth
first.

Complexity: O(n^N) in the worst case, one "and" and one "or" on two bytes for 14 clients each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from formulations.quorumstore import tuning
from formulations.quorumstore.enumeration.screening import Bits, Screen
from placement.quorumstore import QuorumProblem
from placement.support.checks import BoolArray, FloatArray, IntArray

__all__ = ["passing", "passing_sets"]


@dataclass(frozen=True, slots=True, eq=False)
class _PrefixBlock:
    """Prefixes of one length with their O_k.

    Attributes
    ----------
    rows
        Sites, shape (length, m).
    levels
        levels[ball][k − 1] = O_k, shape (lanes, m).
    """

    rows: IntArray
    levels: tuple[tuple[Bits, ...], ...]

    def run(self, low: int, high: int) -> _PrefixBlock:
        """Return some that follow each other."""
        levels = tuple(tuple(level[:, low:high] for level in ball) for ball in self.levels)
        return _PrefixBlock(self.rows[:, low:high], levels)


def passing_sets(problem: QuorumProblem, screen: Screen) -> Iterator[IntArray]:
    """Yield the replica sets that pass the screen, in lexicographic order, as arrays (m, N).

    Parameters
    ----------
    problem
        The key; two replicas never share a region where its rules say so.
    screen
        What every set has to pass.
    """
    if not screen.hopeless:
        yield from _grown(problem, screen, _nothing(screen, 1))


def passing(screen: Screen, sets: IntArray) -> IntArray:
    """Return the indices of those rows of `sets`, shape (m, N), that pass the screen."""
    if screen.hopeless or not len(sets):
        return np.empty(0, dtype=np.intp)
    prefixes, every = _nothing(screen, len(sets)), np.arange(len(sets))
    for column in sets.T[:-1]:
        prefixes = _Step(screen, prefixes, every, column).prefixes()
    step = _Step(screen, prefixes, every, sets[:, -1])
    step.check()
    return step.parent[step.check_losses()]


def _nothing(screen: Screen, count: int) -> _PrefixBlock:
    return _PrefixBlock(np.empty((0, count), dtype=np.intp), ((),) * len(screen.outside))


def _grown(problem: QuorumProblem, screen: Screen, prefixes: _PrefixBlock) -> Iterator[IntArray]:
    """Depth first over runs of prefixes, breadth first within a run."""
    length, many = prefixes.rows.shape
    last = prefixes.rows[-1] if length else np.full(many, -1)
    # The sites that follow must leave enough for the rest of the set.
    children = len(problem.sites) - (screen.size - length) - last
    ends = np.cumsum(children)
    low = 0
    while low < many:
        begun = int(ends[low - 1]) if low else 0
        high = max(low + 1, int(np.searchsorted(ends, begun + tuning.PREFIX_BLOCK, side="right")))
        run = prefixes if high - low == many else prefixes.run(low, high)
        counts = children[low:high]
        parent = np.repeat(np.arange(high - low), counts)
        first = last[low:high] + 1 - (ends[low:high] - counts - begun)
        step = _Step(screen, run, parent, np.arange(len(parent)) + first.take(parent))
        if length:  # one site alone breaks hardly anything
            step.check()
        if problem.rules.distinct_regions and length:
            step.keep(problem.admissible(step.rows().T, 0))
        low = high
        if not len(step.site):
            continue
        if length + 1 < screen.size:
            yield from _grown(problem, screen, step.prefixes())
            continue
        kept = step.check_losses()
        if len(kept):
            yield step.rows()[:, kept].T


class _Step:
    """Prefixes with one more site each; their O_k are worked out when asked for.

    Parameters
    ----------
    screen
        The conditions.
    prefixes
        What grows.
    parent, site
        Which prefix grows by which site; shape (m,).
    """

    def __init__(
        self, screen: Screen, prefixes: _PrefixBlock, parent: IntArray, site: IntArray
    ) -> None:
        self.screen = screen
        self.prefixes_before = prefixes
        self.parent = parent
        self.site = site
        self.length = len(prefixes.rows) + 1
        self.known: dict[tuple[int, int], Bits] = {}

    def level(self, ball: int, k: int) -> Bits:
        """O_k for k up to the length."""
        if (ball, k) not in self.known:
            before = self.prefixes_before.levels[ball]
            bits = self.screen.outside[ball].take(self.site, axis=1)
            if k > 1:
                bits &= before[k - 2].take(self.parent, axis=1)
            if k <= len(before):
                bits |= before[k - 1].take(self.parent, axis=1)
            self.known[ball, k] = bits
        return self.known[ball, k]

    def keep(self, alive: BoolArray) -> None:
        """Keep only the marked partial sets."""
        if not alive.all():
            chosen = np.flatnonzero(alive)
            self.parent, self.site = self.parent.take(chosen), self.site.take(chosen)
            self.known = {key: bits.take(chosen, axis=1) for key, bits in self.known.items()}

    def check(self) -> None:
        """Drop sets that violate a condition."""
        for condition in self.screen.conditions:
            ball = condition.ball
            if condition.must is not None and condition.must[0] <= self.length:
                self.keep(condition.must_hold(self.level(ball, condition.must[0])))
            missed: FloatArray | None = None
            for number, (k, _, _) in enumerate(condition.terms):
                if k > self.length or not len(self.site):
                    break
                part = condition.missed(number, self.level(ball, k))
                missed = part if missed is None else missed + part
                alive = missed <= condition.budget
                if not alive.all():
                    missed = missed[alive]
                    self.keep(alive)

    def check_losses(self) -> IntArray:
        """Indices of the complete sets that pass the loss of each replica by itself."""
        if not self.screen.each_loss:
            return np.arange(len(self.site))
        levels = [
            [self.level(ball, k) for k in range(1, self.screen.deepest(ball) + 1)]
            for ball in range(len(self.screen.outside))
        ]
        return self.screen.after_each_loss(levels, self.rows())

    def rows(self) -> IntArray:
        """The sites of each, shape (length, m)."""
        before = self.prefixes_before.rows.take(self.parent, axis=1)
        rows: IntArray = np.concatenate([before, self.site[np.newaxis]])
        return rows

    def prefixes(self) -> _PrefixBlock:
        """All O_k that longer prefixes will need."""
        levels = tuple(
            tuple(
                self.level(ball, k)
                for k in range(1, min(self.length, self.screen.deepest(ball)) + 1)
            )
            for ball in range(len(self.screen.outside))
        )
        return _PrefixBlock(self.rows(), levels)
