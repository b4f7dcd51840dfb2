"""Screening: which replica sets of a block can still lie within given limits.

Four necessary conditions, cheapest first, each on small-integer tables (see `tables`):

1. A client whose requests exceed the slack A − ⌈pA⌉ must be within the threshold itself. Under N-1C
   it must be so after any loss: if exactly R replicas were within the limit, the loss of one of
   them (not the client's own site: R >= 2) would leave R − 1; so R + 1 must be ("two bits instead
   of N scenarios").
2. Normal operation, with all clients: the requests that miss the limit may not exceed the slack.
3. N-1C, averaged over the N losses of a replica: a client with R replicas within the limit misses
   in
   R of them, one with fewer in all, so

       Σ_i a_i · ( (N−R)·[fewer than R within] + (R−e)·[fewer than R+1 within] ) <= N · slack ,

   with e = 1 when clients of a lost site are redirected (they may escape in that one scenario).
4. N-1C, for each lost replica by itself ("P6"), the redirected client of its site counted as
   within.

All of them hold for every set that obeys the limits, so nothing is lost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from formulations.quorumstore.tables import Geometry, SetBlock
from placement.checks import BoolArray, FloatArray, IntArray
from placement.quorumstore import Limits, QuorumProblem

__all__ = ["Side", "screen", "sides_of"]

_FEW = 4096
"""Sets up to which all clients are looked at together, by one matrix product."""

_SPARSE = 0.4
"""Share of sets left at which the others are dropped from the arrays."""

_LANES = 8
"""Clients whose misses are packed into one byte, to be weighed by one table look-up."""


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """Reads or writes of one key.

    Attributes
    ----------
    clients
        Sites with requests, most requests first.
    counts
        Their requests, float64 (exact: totals stay below 2^48).
    needed
        Requests that must be within the threshold.
    slack
        Requests that may miss it.
    """

    clients: IntArray
    counts: FloatArray
    needed: int
    slack: float


def sides_of(problem: QuorumProblem) -> tuple[Side, Side]:
    """Reads and writes of `problem`."""
    sides = []
    for counts, needed in (
        (problem.reads, problem.needed_reads),
        (problem.writes, problem.needed_writes),
    ):
        clients = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
        total = int(counts.sum())
        sides.append(Side(clients, counts[clients].astype(np.float64), needed, total - needed))
    return sides[0], sides[1]


def screen(
    geometry: Geometry,
    block: SetBlock,
    sides: tuple[Side, Side],
    quorums: tuple[int, int],
    limits: Limits,
    *,
    losses: bool,
    start: IntArray | None = None,
) -> IntArray:
    """Return the sets of `block` that pass the necessary conditions.

    Parameters
    ----------
    geometry, block
        Tables of the store.
    sides, quorums
        Reads and writes; R and W.
    limits
        Thresholds not to be exceeded.
    losses
        Whether conditions on the loss of single sites are used (needs R, W < N).
    start
        Sets to look at; None: all.

    Returns
    -------
    Indices into the block, increasing.
    """
    tests = []
    pairs = (
        (sides[0], quorums[0], limits.normal_read, limits.worst_read),
        (sides[1], quorums[1], limits.normal_write, limits.worst_write),
    )
    for side, quorum, normal, worst in pairs:
        if side.needed == 0:
            continue
        test = _SideTest.of(geometry, side, quorum, normal, worst if losses else None)
        if test is None:
            return np.empty(0, dtype=np.intp)
        tests.append(test)
    # The larger quorum is harder to fit and leaves fewer sets for the other side.
    tests.sort(key=lambda test: -test.quorum)
    kept = start
    for test in tests:
        kept = test.must_cover(block, kept)
    for test in tests:
        kept = test.misses(block, kept)
    if losses:
        for test in tests:
            kept = test.each_loss(block, kept)
    return np.arange(block.sets.shape[0]) if kept is None else kept


@dataclass(frozen=True, slots=True, eq=False)
class _SideTest:
    """The conditions of one side, prepared for one pair of limits."""

    geometry: Geometry
    side: Side
    quorum: int
    within: IntArray
    """Sites within the normal limit of each client."""
    within_worst: IntArray | None
    """Sites within the limit after a loss; None: losses are not looked at."""
    moved_within: IntArray | None
    """Sites within the limit of the clients of a lost site, after redirection."""
    must: BoolArray
    """Which of the side's clients must be within the limit."""

    @property
    def redirected(self) -> bool:
        """Whether clients of a lost site are served by another one."""
        return bool((self.geometry.survivor != np.arange(len(self.within))).any())

    @classmethod
    def of(
        cls, geometry: Geometry, side: Side, quorum: int, normal: float, worst: float | None
    ) -> _SideTest | None:
        """Prepare the conditions; None when so many clients lack sites that nothing passes."""
        within = geometry.within(normal)
        hopeless = within[side.clients] < quorum
        slack = side.slack - side.counts[hopeless].sum()
        if slack < 0:
            return None
        within_worst = moved_within = None
        if worst is not None:
            within_worst = geometry.within(worst)
            moved_within = (geometry.moved <= worst).sum(axis=1)
            lost = side.counts[within_worst[side.clients] < quorum]
            # A redirected client may escape in the one scenario that loses its own site.
            slack = side.slack - (lost.sum() - lost.max(initial=0.0))
        must = (side.counts > slack) & ~hopeless
        return cls(geometry, side, quorum, within, within_worst, moved_within, must)

    def must_cover(self, block: SetBlock, kept: IntArray | None) -> IntArray | None:
        """Condition 1."""
        alive: BoolArray | None = None
        for client in self.side.clients[self.must]:
            for level, row, bound in self._demands(int(client)):
                lane = block.place[level, row]
                fits = (lane if kept is None else lane.take(kept)) < bound
                alive = fits if alive is None else np.logical_and(alive, fits, out=alive)
        if alive is None:
            return kept
        chosen = np.flatnonzero(alive)
        return chosen if kept is None else kept.take(chosen)

    def _demands(self, client: int) -> list[tuple[int, int, int]]:
        """Look-ups place[level, row] < bound that a client of `must` needs: (level, row, bound)."""
        found = []
        count = len(self.within)
        if self.within[client] < count:
            found.append((self.quorum - 1, client, int(self.within[client])))
        if self.within_worst is not None and self.moved_within is not None:
            if self.within_worst[client] < count:
                found.append((self.quorum, client, int(self.within_worst[client])))
            survivor = int(self.geometry.survivor[client])
            if survivor != client and self.moved_within[client] < count:
                found.append((self.quorum - 1, survivor, int(self.moved_within[client])))
        return found

    def misses(self, block: SetBlock, kept: IntArray | None) -> IntArray | None:
        """Conditions 2 and 3."""
        # Clients of `must` miss nothing any more; those with all sites within the limit never do.
        rest = ~self.must & (self.within[self.side.clients] < len(self.within))
        # Condition 3 is much the stronger one; 2 is worth its time only where its limit is tighter.
        if self.within_worst is None or (self.within < self.within_worst).any():
            kept = self._weigh(block, kept, rest, (self.quorum - 1,), self.within, (1.0,), 1.0)
        if self.within_worst is None:
            return kept
        rest = ~self.must & (self.within_worst[self.side.clients] < len(self.within))
        size = block.size
        escapes = 1 if self.redirected else 0
        weights = (float(size - self.quorum), float(self.quorum - escapes))
        levels = (self.quorum - 1, self.quorum)
        return self._weigh(block, kept, rest, levels, self.within_worst, weights, float(size))

    def each_loss(self, block: SetBlock, kept: IntArray | None) -> IntArray | None:
        """Condition 4, one lost replica after the other, on what is left."""
        if self.within_worst is None:
            return kept
        rest = ~self.must & (self.within_worst[self.side.clients] < len(self.within))
        clients, counts = self.side.clients[rest], self.side.counts[rest]
        bounds = self.within_worst[clients][:, np.newaxis]
        position = self.geometry.position_small[clients]
        row_of = np.full(len(self.within), -1, dtype=np.intp)
        if self.redirected:
            row_of[clients] = np.arange(len(clients))
        for number in range(block.size):
            index = np.arange(block.sets.shape[0]) if kept is None else kept
            if not index.size:
                return index
            if number == 0:
                lanes = np.ix_(clients, index)
                last = block.place[self.quorum - 1][lanes]
                following = block.place[self.quorum][lanes] >= bounds
                missing = last >= bounds
            member = block.sets[index, number]
            uncovered = missing | (following & (position.take(member, axis=1) <= last))
            missed = counts @ uncovered
            own = row_of[member]
            some = np.flatnonzero(own >= 0)
            missed[some] -= counts[own[some]] * uncovered[own[some], some]
            alive = np.flatnonzero(missed <= self.side.slack)
            if len(alive) < len(index):
                kept = index.take(alive)
                last, following, missing = (
                    array.take(alive, axis=1) for array in (last, following, missing)
                )
        return kept

    def _weigh(
        self,
        block: SetBlock,
        kept: IntArray | None,
        which: BoolArray,
        levels: tuple[int, ...],
        within: IntArray,
        weights: tuple[float, ...],
        scale: float,
    ) -> IntArray | None:
        """Keep sets with Σ_levels weight · Σ_i counts_i · [place >= within] <= scale · slack."""
        clients, counts = self.side.clients[which], self.side.counts[which]
        # Those who are likely to miss most requests first: most sets die early.
        order = np.argsort(-counts * (len(within) - within[clients]), kind="stable")
        clients, counts = clients[order], counts[order]
        budget = scale * self.side.slack
        width = block.sets.shape[0] if kept is None else len(kept)
        missed = np.zeros(width)
        done = 0
        while done < len(clients) and width:
            step = len(clients) - done if width <= _FEW else _LANES
            some, heavy = clients[done : done + step], counts[done : done + step]
            for level, weight in zip(levels, weights, strict=True):
                lanes = block.place[level]
                if width <= _FEW:
                    part = lanes[some] if kept is None else lanes[np.ix_(some, kept)]
                    missed += (weight * heavy) @ (part >= within[some][:, np.newaxis])
                else:
                    missed += _packed_misses(lanes, some, weight * heavy, kept, within)
            done += step
            alive = missed <= budget
            left = int(np.count_nonzero(alive))
            # Reading whole rows is faster than picking most of them one by one.
            if left < width and (left < _SPARSE * width or done >= len(clients)):
                chosen = np.flatnonzero(alive)
                kept = chosen if kept is None else kept.take(chosen)
                missed = missed.take(chosen)
                width = left
        return kept


def _packed_misses(
    lanes: npt.NDArray[np.unsignedinteger],
    clients: IntArray,
    counts: FloatArray,
    kept: IntArray | None,
    within: IntArray,
) -> FloatArray:
    """Σ counts · [place >= within] over up to eight clients, for many sets.

    The misses of a set become one byte, and one look-up in a table of 2^clients sums weighs them.
    """
    code = np.zeros(lanes.shape[1] if kept is None else len(kept), dtype=np.uint8)
    for client in clients:
        lane = lanes[client]
        missed = (lane if kept is None else lane.take(kept)) >= within[client]
        code += code
        code += missed.view(np.uint8)
    table = np.zeros(1)
    for count in counts[::-1]:
        table = np.concatenate([table, table + count])
    weighed: FloatArray = table.take(code)
    return weighed
