"""Policies: frozen descriptions, each of which starts a selector that ranks replicas."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from placement.online.selection.rate_limiter import LimiterRules
from placement.online.selection.sample_path import ServerSamplePath

__all__ = ["Clairvoyant", "Passive", "Policy", "Selector", "Servers"]


@dataclass(slots=True)
class Servers:
    """The true state of the servers, which only clairvoyant policies may read.

    Attributes
    ----------
    busy
        Slots in use, per server.
    ends
        When the reads in service will end, per server, unordered.
    line
        Operations that wait at each server, first come first. A number below the size of the
        sample path is an operation, one at or above it an extra copy (see :meth:`work_of`).
    coming
        Numbers on the network to each server, by the time at which they reach it.
    reach
        When each of them does, or did, reach its server, ms, by number.
    sent
        When each number that is not answered left its client.
    update
        Whether each operation that was issued is an update, by operation.
    """

    sample: ServerSamplePath
    busy: list[int]
    ends: list[list[float]]
    line: list[deque[int]]
    coming: list[list[int]]
    reach: dict[int, float]
    sent: dict[int, float]
    update: list[bool]

    @classmethod
    def idle(cls, sample: ServerSamplePath) -> Servers:
        """Return servers with nothing to do."""
        count = sample.cluster.servers
        return cls(
            sample,
            [0] * count,
            [[] for _ in range(count)],
            [deque() for _ in range(count)],
            [[] for _ in range(count)],
            {},
            {},
            [False] * sample.size,
        )

    def send(self, number: int, server: int, now: float, reach: float) -> None:
        """Put a number on the network; of equal times the one that was sent first comes first."""
        coming = self.coming[server]
        place = len(coming)
        while place > 0 and self.reach[coming[place - 1]] > reach:
            place -= 1
        coming.insert(place, number)
        self.sent[number], self.reach[number] = now, reach

    def work_of(self, number: int) -> float:
        """Return the work of an operation, or of copy (number − n) = op·(replication − 1) + place.

        The work of an update is that of the path times `update_work`.
        """
        n, sample = self.sample.size, self.sample
        if number < n:
            read, work = number, float(sample.work[number])
        else:
            read, place = divmod(number - n, sample.cluster.replication - 1)
            work = float(sample.shadow_work[read, place])
        return work * sample.cluster.update_work if self.update[read] else work


class Selector(Protocol):
    """A policy at work on one run. What it knows, it learns from these calls."""

    def rank(self, read: int, client: int, replicas: Sequence[int], now: float) -> Sequence[int]:
        """Return the replicas, best first; asked again when the limiter held the read back.

        Without a limiter the first alone counts, and the list may stop there.

        Parameters
        ----------
        read
            Index into the sample path.
        client
            Which client asks.
        replicas
            Servers of the group in ring order.
        now
            ms.
        """
        ...

    def sent(self, number: int, read: int, client: int, server: int, now: float) -> None:
        """Learn that a read, or an extra copy of it (number >= n), left for a server.

        Updates are told to :class:`Clairvoyant` selectors alone.
        """
        ...

    def answered(
        self,
        client: int,
        server: int,
        response_ms: float,
        service_ms: float,
        queue: int,
        now: float,
    ) -> None:
        """Learn from a response.

        Parameters
        ----------
        client, server
            Between whom.
        response_ms
            From sending to receiving.
        service_ms
            Time in service, reported by the server.
        queue
            Reads that waited at the server when this one was done and the next had started.
        now
            ms.
        """
        ...


class Passive:
    """A selector's ears for policies that do not listen."""

    def sent(self, number: int, read: int, client: int, server: int, now: float) -> None:
        """Ignore."""

    def answered(
        self,
        client: int,
        server: int,
        response_ms: float,
        service_ms: float,
        queue: int,
        now: float,
    ) -> None:
        """Ignore."""


class Clairvoyant(Passive):
    """Base of selectors that are told of updates and duplicates too, which clients do not see."""


@runtime_checkable
class Policy(Protocol):
    """A frozen description of a policy."""

    @property
    def name(self) -> str:
        """Short name, as in tables."""
        ...

    @property
    def limiter(self) -> LimiterRules | None:
        """Rate control that holds reads back; None: none."""
        ...

    def start(self, sample: ServerSamplePath, servers: Servers) -> Selector:
        """Return a selector for one run; only clairvoyant policies may read the servers' state."""
        ...
