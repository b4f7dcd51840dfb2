"""A few reads cut out of a warm run: the offline problem of the exact methods, and its check.

Everything before the window is as a policy left it: reads and copies that are still in service or
in line when the window opens are intervals that stay where they are. The window's own reads are to
be put on servers. Times are whole ticks, so that an integer program and the simulator compute the
same numbers.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from placement.errors import InputError, SolverError, UnsupportedError, require
from placement.online.selection.sample_path import ServerSamplePath
from placement.support.checks import FloatArray, IntArray, instance_of, numbers_of, whole

Ticks = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Window:
    """Reads first, …, first + size − 1 of a path on a grid.

    Attributes
    ----------
    path
        The path up to the last read of the window, without copies of the window's reads: what is
        added to a system can only delay it, so that optima without copies bound those with.
    before
        Server of each read before the window, shape (first,).
    first
        Index of the first read of the window.
    ticks_per_ms
        The grid.
    release
        When each read reaches its client, ticks; shape (N,).
    work
        Service time on a server of factor 1, ticks; shape (N,).
    fixed
        Rows (server, start, end) in ticks: what was sent before the window and ends after its
        first release. Ordered by server, then by start.
    """

    path: ServerSamplePath
    before: IntArray
    first: int
    ticks_per_ms: int
    release: Ticks
    work: Ticks
    fixed: Ticks

    @property
    def size(self) -> int:
        """Number of reads in the window."""
        return len(self.release)

    @property
    def delay(self) -> int:
        """Network delay one way, ticks, where it is the same for all.

        Raises
        ------
        UnsupportedError
            When RTTs differ between clients.
        """
        if self.path.cluster.rtt_ms:
            raise UnsupportedError(
                "exact models do not support RTTs of clients; the bounds from prices do"
            )
        return round(self.path.cluster.one_way_ms * self.ticks_per_ms)

    @cached_property
    def replicas(self) -> IntArray:
        """Servers that may serve each read, shape (N, replication)."""
        return self.path.cluster.groups[self.path.group[self.first :]]

    @cached_property
    def delays(self) -> Ticks:
        """Network delay one way from each read's client to each of its replicas, ticks."""
        client = self.path.client[self.first :, np.newaxis]
        way = self.path.cluster.one_way[client, self.replicas]
        return np.rint(way * self.ticks_per_ms).astype(np.int64)

    @cached_property
    def factors(self) -> Ticks:
        """Slowness of servers, shape (epochs, servers): a read of work w takes w·factor ticks."""
        return np.rint(self.path.means).astype(np.int64)

    @property
    def epoch(self) -> int:
        """Length of an epoch in ticks; 0: speeds never change."""
        if len(self.path.means) == 1:
            return 0
        return round(self.path.cluster.epoch_ms * self.ticks_per_ms)

    def factor(self, server: npt.ArrayLike, start: npt.ArrayLike) -> Ticks:
        """Slowness of servers for service that starts at the given ticks (broadcast)."""
        where, when = np.broadcast_arrays(np.asarray(server), np.asarray(start))
        epoch = when // self.epoch % len(self.factors) if self.epoch else np.zeros_like(when)
        return np.asarray(self.factors[epoch, where], dtype=np.int64)

    def assign(self, servers: npt.ArrayLike) -> FloatArray:
        """Flow times in ms of sending each read to a given server at once; shape (N,)."""
        chosen = np.concatenate([self.before, np.asarray(servers, dtype=np.intp)])
        served = serve_in_order(self.path, chosen)
        ends = np.array([end for _, _, end, read in served if read >= self.first])
        place = [read - self.first for _, _, _, read in served if read >= self.first]
        back = self.path.cluster.one_way[self.path.client, chosen][self.first :]
        flow: FloatArray = ends[np.argsort(place)] + back - self.path.arrival[self.first :]
        return flow

    def schedule(self, servers: npt.ArrayLike, starts: npt.ArrayLike) -> FloatArray:
        """Check a schedule in any order, with any idling, and return its flow times in ms.

        Parameters
        ----------
        servers
            Who serves each read, shape (N,).
        starts
            When its service starts, ticks, shape (N,).

        Raises
        ------
        SolverError
            When a read is on a server outside its group, starts before it can have arrived, or a
            server has more in service than it has slots.
        """
        where = np.asarray(servers, dtype=np.int64)
        when = np.asarray(starts, dtype=np.int64)
        if not (self.replicas == where[:, np.newaxis]).any(axis=1).all():
            raise SolverError("a read was put on a server outside its group")
        if (when < self.release + self.delay).any():
            raise SolverError("a read was started before it can have arrived")
        ends = when + self.work * self.factor(where, when)
        jobs = np.concatenate([self.fixed, np.stack([where, when, ends], axis=1)])
        for server in range(self.path.cluster.servers):
            mine = jobs[jobs[:, 0] == server]
            # At equal times what ends makes room for what starts: -1 sorts before +1.
            events = sorted([(int(e), -1) for e in mine[:, 2]] + [(int(b), 1) for b in mine[:, 1]])
            running = 0
            for _, change in events:
                running += change
                if running > self.path.cluster.slots:
                    raise SolverError(f"server {server} was given more reads than it has slots")
        return (ends + self.delay - self.release) / self.ticks_per_ms

    @cached_property
    def least(self) -> Ticks:
        """No read can be done sooner than this, ticks from its release; shape (N,).

        Its work on one of its replicas when that is fastest, and the network to it.
        """
        fastest = self.factors.min(axis=0)[self.replicas]
        alone = self.work[:, np.newaxis] * fastest + 2 * self.delays
        return np.asarray(alone.min(axis=1), dtype=np.int64)


def serve_in_order(
    path: ServerSamplePath, servers: Sequence[int] | IntArray
) -> list[tuple[int, float, float, int]]:
    """Serve reads that leave at once for given servers, first come first served.

    Parameters
    ----------
    path
        Reads that arrive, without updates.
    servers
        Server of each read, shape (reads of the path,); copies go to the other replicas.

    Returns
    -------
    list of tuple
        (server, begin ms, end ms, read) of every read and copy in the order of their service; read
        −1 for a copy.

    Notes
    -----
    O(n log n); shares nothing with the compiled event loop.
    """
    way, groups = path.cluster.one_way, path.cluster.groups
    sent: list[tuple[float, int, float, int]] = []  # reaches its server, server, work, read
    for read, server in enumerate(np.asarray(servers, dtype=np.intp).tolist()):
        client, now = int(path.client[read]), float(path.arrival[read])
        sent.append((now + float(way[client, server]), server, float(path.work[read]), read))
        if path.shadowed[read]:
            others = [s for s in groups[path.group[read]].tolist() if s != server]
            for other, work in zip(others, path.shadow_work[read].tolist(), strict=True):
                sent.append((now + float(way[client, other]), other, work, -1))
    free = [[0.0] * path.cluster.slots for _ in range(path.cluster.servers)]
    served = []
    for reach, server, work, read in sorted(sent, key=lambda each: each[0]):
        begin = max(heapq.heappop(free[server]), reach)
        end = begin + work * path.mean_at(server, begin)
        heapq.heappush(free[server], end)
        served.append((server, begin, end, read))
    return served


def cut(
    sample: ServerSamplePath,
    servers: Sequence[int] | IntArray,
    first: int,
    count: int,
    *,
    ticks_per_ms: int = 128,
) -> Window:
    """Cut a window out of a path on which a policy has decided so far.

    Parameters
    ----------
    sample
        A path on the grid (:meth:`ServerSamplePath.on_grid`).
    servers
        Server of each read before the window, as a policy without rate control chose them; more
        are ignored.
    first, count
        The window: reads first, …, first + count − 1.
    ticks_per_ms
        The grid.

    Raises
    ------
    InputError
        When the path has no such reads or is not on the grid, or a server is outside the group of
        its read.
    UnsupportedError
        For updates, or generators in a closed loop.
    """
    instance_of(sample, ServerSamplePath, "sample", "a ServerSamplePath")
    if sample.cluster.closed or sample.cluster.update_share:
        raise UnsupportedError("a window has reads that arrive, no updates and no closed loop")
    first, count = whole(first, "first"), whole(count, "count", minimum=1)
    ticks_per_ms = whole(ticks_per_ms, "ticks_per_ms", minimum=1)
    words = "fewer reads than that"
    expected = f"first + count <= {sample.size}"
    require(first + count <= sample.size, "count", words, (first, count), expected)
    means, cluster = sample.means, sample.cluster
    times = (sample.arrival, sample.work, sample.shadow_work, cluster.one_way)
    epoch = np.array([cluster.epoch_ms] if np.isfinite(cluster.epoch_ms) else [])
    if not np.array_equal(np.rint(means), means) or not all(
        np.array_equal(each * ticks_per_ms, np.rint(each * ticks_per_ms))
        for each in (*times, epoch)
    ):
        raise InputError(
            "not on the grid",
            field="sample",
            expected=f"a path of on_grid(): multiples of 1/{ticks_per_ms} ms",
        )
    chosen = numbers_of(servers, "servers")
    groups = cluster.groups[sample.group[:first]]
    require(
        chosen.ndim == 1
        and len(chosen) >= first
        and (groups == chosen[:first, np.newaxis]).any(axis=1).all(),
        "servers",
        "not the servers of the reads before the window",
        chosen.shape,
        f"a server of its group for each of {first} reads",
    )
    before = chosen[:first].astype(np.intp)
    path = sample.first(first + count, plain_from=first)

    def ticks(values: FloatArray) -> Ticks:
        return np.rint(values[first:] * ticks_per_ms).astype(np.int64)

    release = ticks(path.arrival)
    rows = [
        (server, round(begin * ticks_per_ms), round(end * ticks_per_ms))
        for server, begin, end, _ in serve_in_order(path.first(first), before)
        if end * ticks_per_ms > release[0]
    ]
    fixed = np.array(sorted(rows), dtype=np.int64).reshape(-1, 3)
    return Window(path, before, first, ticks_per_ms, release, ticks(path.work), fixed)
