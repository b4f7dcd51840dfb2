"""State of a simulated Raft group: entries of the log, requests of clients, nodes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

__all__ = ["RaftEntry", "RaftNode", "RaftRequest"]


@dataclass(slots=True)
class RaftEntry:
    """Entry of the log; the key −1 has no value, a leader's first entry."""

    term: int
    key: int
    write: RaftRequest | None


@dataclass(slots=True)
class RaftRequest:
    """Read or write of a client at its node, the gateway."""

    key: int
    read: bool
    start: float
    gateway: int
    life: int
    end: float = math.inf
    attempt: int = 0
    waiting: int = 0
    newest: tuple[int, int] = (0, 0)
    settled: bool = True
    seen: RaftEntry | None = None
    committed: int = 0


@dataclass(slots=True)
class RaftNode:
    """Node; `life` counts its starts, so that what an earlier life has begun is void.

    Its clock showed `clock` at time `since` and has run at `rate` from then on; `heard` and
    `answered` are times on the clocks of the node.
    """

    rate: float
    clock: float = 0.0
    since: float = 0.0
    up: bool = True
    cut: bool = False
    life: int = 0
    term: int = 0
    vote: int = -1
    leader: int = -1
    leads: bool = False
    log: list[RaftEntry] = field(default_factory=list)
    commit: int = 0
    applied: int = 0
    heard: float = -math.inf
    timeout: float = 0.0
    votes: set[int] = field(default_factory=set)
    next: list[int] = field(default_factory=list)
    match: list[int] = field(default_factory=list)
    answered: list[float] = field(default_factory=list)

    def newest(self, key: int, below: int) -> int:
        """Index of the newest entry of a key among the first `below`, from 1; 0: none."""
        for index in range(below, 0, -1):
            if self.log[index - 1].key == key:
                return index
        return 0
