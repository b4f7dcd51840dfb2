"""Exact tests on the few replica sets that pass the screening: every scenario, on integer ranks.

Latencies are ranks in the grid of all values a threshold can take. For each candidate and each
client with requests they are gathered once: for normal operation, for the loss of each of its N
replicas ("P6": one look-up), and for the loss of the client's own site if requests are redirected.
"Within limits" is then one comparison and one matrix product.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from formulations.quorumstore.enumeration.nearest_sites import NearestSites, SetBlock
from formulations.quorumstore.enumeration.screening import StoreSide
from placement.support.checks import BoolArray, FloatArray, IntArray

__all__ = ["Candidates", "RankLimits"]

Ranks = npt.NDArray[np.unsignedinteger]


@dataclass(frozen=True, slots=True)
class RankLimits:
    """Limits as numbers of allowed grid values: a latency is within if its rank is less."""

    normal_read: int
    normal_write: int
    worst_read: int
    worst_write: int


@dataclass(frozen=True, slots=True, eq=False)
class _SideRanks:
    """Ranks of the latencies of one side for m candidates; c clients have requests.

    Attributes
    ----------
    side
        Requests.
    normal
        Shape (c, m).
    lost
        After losing each replica in turn, redirection included; shape (N, c, m), or None.
    moved
        Of a client whose own site is lost but holds no replica; shape (c, m), or None.
    """

    side: StoreSide
    normal: Ranks
    lost: Ranks | None
    moved: Ranks | None

    def within_normal(self, limit: int) -> BoolArray:
        """Return whether each candidate serves enough requests in time in normal operation."""
        return np.asarray(self.side.counts @ (self.normal < limit) >= self.side.needed)

    def within_worst(self, limit: int | IntArray) -> BoolArray:
        """Return whether each candidate does so in every scenario; `limit` may have shape (m,)."""
        needed, counts = self.side.needed, self.side.counts
        inside = self.normal < limit
        covered = counts @ inside
        kept = covered >= needed
        if self.lost is not None:
            kept &= (counts @ (self.lost < limit) >= needed).all(axis=0)
        if self.moved is not None:
            # One client's latency changes per scenario. Where its site also holds a replica this
            # is weaker than the test on `lost`, hence harmless.
            change = ((self.moved < limit).astype(np.int8) - inside) * counts[:, np.newaxis]
            kept &= covered + change.min(axis=0) >= needed
        return np.asarray(kept)

    def within(self, normal_limit: int, worst_limit: int) -> BoolArray:
        """Return whether each candidate obeys the limits; without losses the first one counts."""
        if self.lost is None:
            return self.within_normal(normal_limit)
        kept = self.within_worst(worst_limit)
        # The worst scenario includes normal operation, so an equal limit has been tested already.
        return kept & self.within_normal(normal_limit) if normal_limit < worst_limit else kept

    def worst_threshold(self, values: int) -> IntArray:
        """Rank of the largest percentile over all scenarios, by bisection per candidate.

        Parameters
        ----------
        values
            Number of grid values.

        Returns
        -------
        Shape (m,); -1 if nothing is needed.
        """
        width = self.normal.shape[1]
        if self.side.needed == 0:
            return np.full(width, -1, dtype=np.intp)
        low, high = np.zeros(width, dtype=np.intp), np.full(width, values, dtype=np.intp)
        while (high - low > 1).any():
            middle = (low + high) // 2
            good = self.within_worst(middle)
            high, low = np.where(good, middle, high), np.where(good, low, middle)
        return high - 1

    def normal_threshold(self) -> IntArray:
        """Rank of the weighted percentile in normal operation, shape (m,); -1 if none is needed."""
        if self.side.needed == 0:
            return np.full(self.normal.shape[1], -1, dtype=np.intp)
        clients = len(self.side.counts)
        bits = max(1, (clients - 1).bit_length())
        packed = (self.normal.T.astype(np.uint32) << bits) | np.arange(clients, dtype=np.uint32)
        packed.sort(axis=1)
        weights = self.side.counts.take(packed & ((1 << bits) - 1))
        place = np.argmax(np.cumsum(weights, axis=1) >= self.side.needed, axis=1)
        ranks: IntArray = (packed[np.arange(len(packed)), place] >> bits).astype(np.intp)
        return ranks


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Replica sets of one size under one (R, W), with the ranks of all their latencies.

    Attributes
    ----------
    sets
        Rows of increasing site indices, shape (m, N).
    reads, writes
        Ranks of either side.
    """

    sets: IntArray
    reads: _SideRanks
    writes: _SideRanks

    @classmethod
    def of(
        cls,
        geometry: NearestSites,
        sets: IntArray,
        sides: tuple[StoreSide, StoreSide],
        quorums: tuple[int, int],
        *,
        losses: bool,
    ) -> Candidates:
        """Gather the ranks of `sets`, rows of increasing site indices. O(N·(n + N)) per set."""
        block = SetBlock.of(geometry, sets)
        read, write = (
            _gather(geometry, block, side, quorum, losses=losses)
            for side, quorum in zip(sides, quorums, strict=True)
        )
        return cls(sets, read, write)

    def within(self, limits: RankLimits) -> BoolArray:
        """Return whether each candidate obeys the limits in every scenario."""
        kept = np.ones(len(self.sets), dtype=bool)
        if self.reads.side.needed:
            kept &= self.reads.within(limits.normal_read, limits.worst_read)
        if self.writes.side.needed:
            kept &= self.writes.within(limits.normal_write, limits.worst_write)
        return kept

    def take(self, chosen: IntArray | BoolArray) -> Candidates:
        """Return the candidates `chosen` (indices or a mask) only."""
        return Candidates(
            self.sets[chosen], _taken(self.reads, chosen), _taken(self.writes, chosen)
        )

    def worst_thresholds(self, geometry: NearestSites) -> tuple[FloatArray, FloatArray]:
        """T_r and T_w in the worst scenario, ms, shape (m,)."""
        values = np.append(geometry.grid, 0.0)
        return (
            values[self.reads.worst_threshold(len(geometry.grid))],
            values[self.writes.worst_threshold(len(geometry.grid))],
        )

    def normal_thresholds(self, geometry: NearestSites) -> tuple[FloatArray, FloatArray]:
        """T_r and T_w in normal operation, ms, shape (m,)."""
        values = np.append(geometry.grid, 0.0)  # rank -1: nothing is needed, threshold 0
        return (
            values[self.reads.normal_threshold()],
            values[self.writes.normal_threshold()],
        )

    def total_latency(self, geometry: NearestSites) -> FloatArray:
        """Latency summed over all requests in normal operation, ms, up to rounding; shape (m,)."""
        total = np.zeros(len(self.sets))
        for part in (self.reads, self.writes):
            total = total + part.side.counts @ geometry.grid.take(part.normal)
        return total


def _taken(ranks: _SideRanks, chosen: IntArray | BoolArray) -> _SideRanks:
    return _SideRanks(
        ranks.side,
        ranks.normal[:, chosen],
        None if ranks.lost is None else ranks.lost[:, :, chosen],
        None if ranks.moved is None else ranks.moved[:, chosen],
    )


def _gather(
    geometry: NearestSites,
    block: SetBlock,
    side: StoreSide,
    quorum: int,
    *,
    losses: bool,
) -> _SideRanks:
    clients = side.clients
    column = clients[:, np.newaxis]
    table = geometry.near_rank_small
    place = block.place[quorum - 1][clients]
    normal = table[column, place]
    if not losses:
        return _SideRanks(side, normal, None, None)

    next_rank = table[column, block.place[quorum][clients]]
    members = block.sets.T.astype(np.intp)
    # hit[i, k, s]: whether the k-th member of set s is among the nearest `quorum` of client i.
    hit = geometry.position_small[clients].take(members, axis=1) <= place[:, np.newaxis]
    after_loss = np.where(hit, next_rank[:, np.newaxis], normal[:, np.newaxis])
    lost = np.ascontiguousarray(after_loss.transpose(1, 0, 2))
    if not geometry.redirected:
        return _SideRanks(side, normal, lost, None)

    moved_place = block.place[quorum - 1][geometry.survivor[clients]]
    moved = geometry.moved_rank_small[column, moved_place]
    row_of = np.full(len(geometry.order), -1, dtype=np.intp)
    row_of[clients] = np.arange(len(clients))
    # The member's own clients, if it has any, are served by its closest survivor.
    rows = row_of.take(members)
    number, some = np.nonzero(rows >= 0)
    site = members[number, some]
    survivor = geometry.survivor.take(site)
    kept_place = block.place[quorum - 1][survivor, some]
    taken = geometry.position_small[survivor, site] <= kept_place
    after = np.where(taken, block.place[quorum][survivor, some], kept_place)
    lost[number, rows[number, some], some] = geometry.moved_rank_small[site, after]
    return _SideRanks(side, normal, lost, moved)
