"""Contents of each replica over time: log entries with the times at which they become visible."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from placement.online.reads.cluster import Visibility

__all__ = ["LogEntry", "Replicas"]


@dataclass(slots=True)
class LogEntry:
    """Write in the log; times in ms, infinite until known.

    Attributes
    ----------
    version
        1, 2, … per key; 0 before the first write of the key.
    applied
        When L has applied it.
    appended
        When each node has it in its log.
    intent
        When each node has applied the write itself, so that its state shows an unresolved intent.
    value
        When each node knows the intent resolved, so that its state shows a value.
    """

    version: int
    applied: float
    appended: list[float]
    intent: list[float]
    value: list[float]


@dataclass(slots=True)
class Replicas:
    """The logs of all keys.

    Attributes
    ----------
    nodes, leader, visibility
        Of the cluster.
    strong
        Whether a replica shows unresolved intents (as a timestamp without a value).
    entries
        Per key, oldest first.
    """

    nodes: int
    leader: int
    visibility: Visibility
    strong: bool
    entries: dict[int, list[LogEntry]] = field(default_factory=dict)

    def append(self, key: int, now: float) -> LogEntry:
        """Add an entry to the log of L."""
        log = self.entries.setdefault(key, [])
        unknown = [math.inf] * self.nodes
        entry = LogEntry(len(log) + 1, math.inf, unknown, unknown.copy(), unknown.copy())
        entry.appended[self.leader] = now
        log.append(entry)
        return entry

    def see(self, node: int, key: int, now: float) -> tuple[int, bool]:
        """Newest version that a read at `node` sees at `now`, and whether it comes with a value.

        L answers from the state it has applied. All times up to `now` must be known. O(versions of
        the key not yet visible).
        """
        log = self.entries.get(key)
        if log is None:
            return 0, True
        from_log = self.visibility is Visibility.LOG
        for entry in reversed(log):
            if node == self.leader:
                if entry.applied <= now:
                    return entry.version, True
            elif not self.strong:
                if (entry.appended if from_log else entry.value)[node] <= now:
                    return entry.version, True
            elif entry.value[node] <= now:
                return entry.version, True
            elif (entry.appended if from_log else entry.intent)[node] <= now:
                return entry.version, False
        return 0, True
