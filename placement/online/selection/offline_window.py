"""A few reads cut out of a warm run: the offline problem of the exact methods, and its check.

Everything before the window is as a warm policy left it: reads and copies that are still in service
or in line when the window opens are intervals that stay where they are. The window's own reads are
to be put on servers. Times are whole ticks, so that an integer program and the simulator compute
the same numbers.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from placement.errors import InputError, SolverError, UnsupportedError
from placement.online.selection.policy import Policy, Servers
from placement.online.selection.policy_handover import Assigned, Handover
from placement.online.selection.sample_path import ServerSamplePath
from placement.online.selection.simulator import check_run, simulate
from placement.support.checks import FloatArray, IntArray, whole

__all__ = ["Ticks", "Window", "cut"]

Ticks = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Window:
    """Reads first, …, first + size − 1 of a path on a grid.

    Attributes
    ----------
    path
        The path up to the last read of the window, without copies of the window's reads: what is
        added to a system can only delay it, so that optima without copies bound those with.
    warm
        Who decided the reads before.
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
    warm: Policy
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

    def play(self, policy: Policy) -> FloatArray:
        """Let a policy that has watched the warm run decide the window; flow times in ms, (N,).

        Its rate control, if it has one, is left aside: see :class:`Handover`.
        """
        outcome = simulate(self.path, Handover(self.warm, policy, self.first))
        return outcome.latency[self.first :]

    def assign(self, servers: npt.ArrayLike) -> FloatArray:
        """Flow times in ms of sending each read to a given server at once; shape (N,)."""
        chosen = tuple(np.asarray(servers, dtype=np.intp).tolist())
        return self.play(Assigned(chosen, self.first))

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


def cut(
    sample: ServerSamplePath, warm: Policy, first: int, count: int, *, ticks_per_ms: int = 128
) -> Window:
    """Cut a window out of a path on which a policy has decided so far.

    Parameters
    ----------
    sample
        Put on the grid first (:meth:`ServerSamplePath.on_grid`); a path that is on it stays.
    warm
        Decides the reads before the window; rate control is left aside.
    first, count
        The window: reads first, …, first + count − 1.
    ticks_per_ms
        The grid.

    Raises
    ------
    InputError
        When the path has no such reads, or does not fit the grid.
    UnsupportedError
        For updates, or generators in a closed loop.
    """
    check_run(sample, warm)
    if sample.cluster.closed or sample.cluster.update_share:
        raise UnsupportedError("a window has reads that arrive, no updates and no closed loop")
    first, count = whole(first, "first"), whole(count, "count", minimum=1)
    ticks_per_ms = whole(ticks_per_ms, "ticks_per_ms", minimum=1)
    if first + count > sample.size:
        raise InputError(
            "fewer reads than that",
            field="count",
            value=(first, count),
            expected=f"first + count <= {sample.size}",
        )
    for name in ("one_way_ms", "epoch_ms"):
        value = getattr(sample.cluster, name) * ticks_per_ms
        if np.isfinite(value) and value != round(value):
            raise InputError(
                "not on the grid",
                field=name,
                value=getattr(sample.cluster, name),
                expected=f"multiples of 1/{ticks_per_ms} ms",
            )
    on_grid = bool(np.all(np.rint(sample.means) == sample.means)) and all(
        np.array_equal(times * ticks_per_ms, np.rint(times * ticks_per_ms))
        for times in (sample.arrival, sample.work, sample.shadow_work, sample.cluster.one_way)
    )
    path = (sample if on_grid else sample.on_grid(ticks_per_ms)).first(
        first + count, plain_from=first
    )

    def ticks(values: FloatArray) -> Ticks:
        return np.rint(values[first:] * ticks_per_ms).astype(np.int64)

    release = ticks(path.arrival)
    fixed = _before(path.first(first), warm, int(release[0]), ticks_per_ms)
    return Window(path, warm, first, ticks_per_ms, release, ticks(path.work), fixed)


def _before(path: ServerSamplePath, warm: Policy, opens: int, ticks_per_ms: int) -> Ticks:
    """Return the reads that a policy has sent, as intervals on servers that end after `opens`."""
    seen: list[tuple[float, int, int]] = []  # reaches its server, number, server

    class Watched:
        """The warm policy, with a note of everything it sends."""

        name, limiter = warm.name, None

        def start(self, sample: ServerSamplePath, servers: Servers) -> object:
            selector = warm.start(sample, servers)
            plain = selector.sent

            class Noting:
                rank, answered = selector.rank, selector.answered

                def sent(
                    self, number: int, read: int, client: int, server: int, now: float
                ) -> None:
                    seen.append((now + float(path.cluster.one_way[client, server]), number, server))
                    plain(number, read, client, server, now)

            return Noting()

    simulate(path, Watched())  # type: ignore[arg-type]  # a selector by shape
    cluster, servers = path.cluster, Servers.idle(path)
    free = [[0.0] * cluster.slots for _ in range(cluster.servers)]
    rows = []
    for reach, number, server in sorted(seen, key=lambda each: each[0]):  # first come, first served
        begin = max(heapq.heappop(free[server]), reach)
        end = begin + servers.work_of(number) * path.mean_at(server, begin)
        heapq.heappush(free[server], end)
        if end * ticks_per_ms > opens:
            rows.append((server, round(begin * ticks_per_ms), round(end * ticks_per_ms)))
    return np.array(sorted(rows), dtype=np.int64).reshape(-1, 3)
