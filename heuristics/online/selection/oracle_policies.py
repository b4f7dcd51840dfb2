"""Policies with data that no client has: the servers as they are, work, speeds to come.

ORA is the paper's oracle; the other three are ours and show how much better than it one can do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from heuristics.online.selection.tie_orders import Tied, in_tie_order
from placement.online.selection import (
    Clairvoyant,
    Passive,
    Selector,
    Servers,
    ServerSamplePath,
)
from placement.support.checks import flag

__all__ = ["EarliestCompletion", "Oracle"]


@dataclass(frozen=True)
class Oracle(Tied):
    """ORA: least (1 + in service + waiting)·(mean service time now), without rate control.

    Parameters
    ----------
    in_flight
        Whether reads still on the network count too (ORAF).
    """

    _: KW_ONLY
    in_flight: bool = False

    def __post_init__(self) -> None:
        flag(self.in_flight, "in_flight")
        super().__post_init__()

    @property
    def name(self) -> str:
        """ORA, or ORAF with reads in flight."""
        return "ORAF" if self.in_flight else "ORA"

    def start(self, sample: ServerSamplePath, servers: Servers) -> Selector:
        """Start with the true state of the servers."""
        return _Watcher(self, sample, servers)


class _Watcher(Passive):
    def __init__(self, policy: Oracle, sample: ServerSamplePath, servers: Servers) -> None:
        self._policy, self._sample, self._servers = policy, sample, servers

    def rank(self, read: int, client: int, replicas: Sequence[int], now: float) -> Sequence[int]:
        servers = self._servers

        def delay(server: int) -> float:
            ahead = servers.busy[server] + len(servers.line[server])
            if self._policy.in_flight:
                ahead += len(servers.coming[server])
            return (1 + ahead) * self._sample.mean_at(server, now)

        return sorted(in_tie_order(self._sample, self._policy.tie, read, replicas), key=delay)


@dataclass(frozen=True)
class EarliestCompletion(Tied):
    """ECT: where this read would end first, by replaying the queues with known work.

    Parameters
    ----------
    future
        False: as if servers kept the speed they have now (ECT). True: with the speeds to come
        (ECTF), where the replay is exact, the clairvoyant greedy choice. With different RTTs of
        clients, with updates to come and with duplicates the replay is an estimate.
    """

    _: KW_ONLY
    future: bool = False

    def __post_init__(self) -> None:
        flag(self.future, "future")
        super().__post_init__()

    @property
    def name(self) -> str:
        """ECT, or ECTF with the speeds to come."""
        return "ECTF" if self.future else "ECT"

    def start(self, sample: ServerSamplePath, servers: Servers) -> Selector:
        """Start with the true speeds of the servers, or with a record of their slots."""
        if self.future:
            return _SlotBooks(self, sample, servers)
        return _QueueReplay(self, sample, servers)


class _QueueReplay(Passive):
    """O(replication·(slots·queue)) per read."""

    def __init__(
        self, policy: EarliestCompletion, sample: ServerSamplePath, servers: Servers
    ) -> None:
        self._policy, self._sample, self._servers = policy, sample, servers

    def rank(self, read: int, client: int, replicas: Sequence[int], now: float) -> Sequence[int]:
        order = in_tie_order(self._sample, self._policy.tie, read, replicas)
        return sorted(order, key=lambda server: self._end(read, client, server, now))

    def _end(self, read: int, client: int, server: int, now: float) -> float:
        """Return the end of `read` at `server` if it left now and no speed changed."""
        servers, cluster = self._servers, self._sample.cluster
        mean = self._sample.mean_at(server, now)
        free = servers.ends[server] + [now] * (cluster.slots - servers.busy[server])
        there = now + float(cluster.one_way[client, server])
        for number in (*servers.line[server], *servers.coming[server]):
            if servers.reach[number] > there:  # it comes after this read
                break
            slot = free.index(min(free))
            begin = max(free[slot], servers.reach[number])
            free[slot] = begin + servers.work_of(number) * mean
        return max(min(free), there) + float(self._sample.work[read]) * mean


class _SlotBooks(Clairvoyant):
    """Keeps the books of all slots; O(replication·slots) per read.

    Service is first come, first served. Where all delays are equal the end of a read is thus known
    when it is sent; with different RTTs of clients it is an estimate, in the order of sending.
    """

    def __init__(
        self, policy: EarliestCompletion, sample: ServerSamplePath, servers: Servers
    ) -> None:
        self._tie, self._sample, self._servers = policy.tie, sample, servers
        cluster = sample.cluster
        self._delay: list[list[float]] = cluster.one_way.tolist()
        self._free = [[0.0] * cluster.slots for _ in range(cluster.servers)]

    def rank(self, read: int, client: int, replicas: Sequence[int], now: float) -> Sequence[int]:
        work = float(self._sample.work[read])
        order = in_tie_order(self._sample, self._tie, read, replicas)
        return sorted(order, key=lambda server: self.end(work, client, server, now))

    def end(self, work: float, client: int, server: int, now: float) -> float:
        """Return the end of work that a client sends to a server now."""
        begin = max(min(self._free[server]), now + self._delay[client][server])
        return begin + work * self._sample.mean_at(server, begin)

    def sent(self, number: int, read: int, client: int, server: int, now: float) -> None:
        free = self._free[server]
        free[free.index(min(free))] = self.end(self._servers.work_of(number), client, server, now)
