"""Changing policy in the middle of a run, so that every policy meets the same warm system."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from placement.online.selection.policy import Passive, Policy, Selector, Servers
from placement.online.selection.rate_limiter import LimiterRules
from placement.online.selection.sample_path import ServerSamplePath

__all__ = ["Assigned", "Handover"]


@dataclass(frozen=True)
class Handover:
    """Two policies: the first decides the reads before `at`, the second all later reads.

    Neither is rate limited here: a backlog would cross the border.
    """

    before: Policy
    after: Policy
    at: int

    @property
    def name(self) -> str:
        """Name of the policy that takes over."""
        return self.after.name

    @property
    def limiter(self) -> LimiterRules | None:
        """Return None: no limiter."""
        return None

    def start(self, sample: ServerSamplePath, servers: Servers) -> Selector:
        """Start the selectors of the two policies."""
        return _Both(self.before.start(sample, servers), self.after.start(sample, servers), self.at)


class _Both:
    def __init__(self, before: Selector, after: Selector, at: int) -> None:
        self._before, self._after, self._at = before, after, at

    def rank(self, read: int, client: int, replicas: Sequence[int], now: float) -> Sequence[int]:
        who = self._before if read < self._at else self._after
        return who.rank(read, client, replicas, now)

    def sent(self, number: int, read: int, client: int, server: int, now: float) -> None:
        self._before.sent(number, read, client, server, now)
        self._after.sent(number, read, client, server, now)

    def answered(
        self,
        client: int,
        server: int,
        response_ms: float,
        service_ms: float,
        queue: int,
        now: float,
    ) -> None:
        self._before.answered(client, server, response_ms, service_ms, queue, now)
        self._after.answered(client, server, response_ms, service_ms, queue, now)


@dataclass(frozen=True)
class Assigned:
    """Send each read from `first` on where a list says."""

    servers: tuple[int, ...]
    first: int = 0
    name: str = "assigned"

    @property
    def limiter(self) -> LimiterRules | None:
        """Return None: no limiter."""
        return None

    def start(self, sample: ServerSamplePath, servers: Servers) -> Selector:
        """Start at the first of the list."""
        return _List(self)


class _List(Passive):
    def __init__(self, policy: Assigned) -> None:
        self._servers, self._first = policy.servers, policy.first

    def rank(self, read: int, client: int, replicas: Sequence[int], now: float) -> Sequence[int]:
        return [self._servers[read - self._first]]
