"""Policies: frozen descriptions, each of which starts a selector that ranks replicas."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from placement.online.selection.rate_limiter import LimiterRules
from placement.online.selection.sample_path import ServerSamplePath

__all__ = ["Passive", "Policy", "Selector", "Servers"]


@dataclass(slots=True)
class Servers:
    """The servers as they truly are, which only clairvoyant policies may look at.

    Attributes
    ----------
    busy
        Slots in use, per server.
    ends
        When the reads in service will end, per server, unordered.
    line
        Reads sent and not yet started, per server, first come first: those waiting, then those
        still on the network. A number below the size of the sample path is a read, one at or above
        it one of the extra copies (see :meth:`work_of`).
    in_flight
        How many of the line are still on the network.
    sent
        When each of the line left its client, by number.
    """

    sample: ServerSamplePath
    busy: list[int]
    ends: list[list[float]]
    line: list[deque[int]]
    in_flight: list[int]
    sent: dict[int, float]

    @classmethod
    def idle(cls, sample: ServerSamplePath) -> Servers:
        """Return servers with nothing to do."""
        count = sample.cluster.servers
        return cls(
            sample,
            [0] * count,
            [[] for _ in range(count)],
            [deque() for _ in range(count)],
            [0] * count,
            {},
        )

    def work_of(self, number: int) -> float:
        """Return the work of a read, or of copy (number − n) = read·(replication − 1) + place."""
        n = self.sample.size
        if number < n:
            return float(self.sample.work[number])
        read, place = divmod(number - n, self.sample.cluster.replication - 1)
        return float(self.sample.shadow_work[read, place])


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
        """Learn that a read, or an extra copy of it (number >= n), left for a server."""
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
        """Return a selector for one run; only clairvoyant policies may look at the servers."""
        ...
