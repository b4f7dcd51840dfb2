"""A Raft group whose leaders fail: what is simulated, and what its clients saw.

The simulator of it is :mod:`placement.online.reads.elections.election_simulator`.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from functools import cached_property

from placement.errors import InputError
from placement.online.reads.linearizability import HistoryEntry, Violations, check
from placement.online.run_records import Latencies, summarise
from placement.support.checks import flag, instance_of, number, whole

__all__ = ["ElectionRun", "ElectionSettings", "ReadPath"]


class ReadPath(StrEnum):
    """Nodes that answer a read, and the state from which they answer."""

    LEASEHOLDER = "leaseholder"
    """The leader, from the state it has applied."""
    LOCAL = "local"
    """The node that the client asks, from the state it has applied."""
    APPLIED = "majority, applied"
    """m + 1 nodes without the leader, from their applied states; the newest answer counts."""
    LOG = "majority, log"
    """m + 1 nodes without the leader, from their logs, with entries that may never be committed."""
    STRONG = "majority, strong"
    """m + 1 nodes from their logs; an entry not known to be committed is shown without its value,
    and the read tries again while the newest entry has none. A leader with a lease answers
    alone, from the committed entries of its log: other nodes show these before it applies them."""


@dataclass(frozen=True, slots=True)
class ElectionSettings:
    """Group, load, faults, and the rules that make reads safe.

    Parameters
    ----------
    nodes, keys
        n >= 3, and the keys in the log of the group.
    duration_ms
        Length of the run.
    path
        Kind of node that answers reads.
    reads, writes
        Per second, on average (Poisson), at random nodes that are up.
    delay_ms, slow, slow_factor
        Mean (exponential) of a message's way; part of the messages that take `slow_factor` times
        as long. Messages may overtake each other.
    loss
        Probability that a message is lost.
    lag_ms
        Mean (exponential) of how long a node takes to apply what it knows to be committed.
    heartbeat_ms
        Time between two messages of a leader to every follower.
    election_ms
        Least time without a leader after which a node stands for election (at most twice that),
        and for which a node that has heard of a leader votes for no other.
    lease_ms
        Length of a lease: from the time at which a leader sent what a majority has answered.
    retry_ms
        Wait before a refused or unfinished request is tried again; reads without an answer try
        again after four times that.
    drift
        Rates of the clocks are between 1 − drift and 1 + drift, drawn again every `election_ms`.
    crashes, down_ms
        Crashes of the leader per second, on average, and mean time until it restarts.
    crash_any
        Whether a crash hits a random node in place of the leader.
    cuts, cut_ms
        Times per second that the leader is cut off from all other nodes, while it goes on to serve
        its own clients; and for how long, on average.
    lease
        Leaders read under a lease only; otherwise a node that believes to lead answers.
    own_entry
        A new leader answers reads only once an entry of its own term is applied.
    patient
        A node that restarts neither votes nor stands for election for `election_ms`.
    persist
        Nodes keep term, vote, log and state over a restart.
    """

    nodes: int = 5
    keys: int = 3
    _: KW_ONLY
    duration_ms: float = 20_000.0
    path: ReadPath = ReadPath.LEASEHOLDER
    reads: float = 200.0
    writes: float = 50.0
    delay_ms: float = 1.0
    slow: float = 0.05
    slow_factor: float = 20.0
    loss: float = 0.0
    lag_ms: float = 1.0
    heartbeat_ms: float = 20.0
    election_ms: float = 150.0
    lease_ms: float = 120.0
    retry_ms: float = 10.0
    drift: float = 0.0
    crashes: float = 0.5
    down_ms: float = 500.0
    crash_any: bool = False
    cuts: float = 0.0
    cut_ms: float = 500.0
    lease: bool = True
    own_entry: bool = True
    patient: bool = True
    persist: bool = True

    def __post_init__(self) -> None:
        for name, least in (("nodes", 3), ("keys", 1)):
            object.__setattr__(self, name, whole(getattr(self, name), name, minimum=least))
        instance_of(self.path, ReadPath, "path", "a ReadPath")
        for name in (
            "duration_ms", "delay_ms", "heartbeat_ms", "election_ms", "lease_ms", "retry_ms",
            "down_ms", "cut_ms",
        ):  # fmt: skip
            number(getattr(self, name), name, above=True)
        for name in ("reads", "writes", "lag_ms", "crashes", "cuts"):
            number(getattr(self, name), name)
        number(self.slow_factor, "slow_factor", minimum=1.0)
        for name in ("slow", "loss", "drift"):
            number(getattr(self, name), name, maximum=0.99)
        for name in ("crash_any", "lease", "own_entry", "patient", "persist"):
            flag(getattr(self, name), name)
        if self.heartbeat_ms >= self.election_ms:
            raise InputError(
                "followers would stand for election between two heartbeats",
                field="heartbeat_ms",
                value=self.heartbeat_ms,
                expected=f"less than election_ms = {self.election_ms:g}",
            )

    @property
    def safe(self) -> bool:
        """Return whether reads of a leader are linearizable by the argument of the simulator.

        With a lease, entries of the leader's own term, patient and persistent nodes, and a lease
        that ends on the slowest clock before the fastest clock lets a follower vote.
        """
        kept = self.lease and self.own_entry and self.patient and self.persist
        return kept and self.lease_ms * (1 + self.drift) <= self.election_ms * (1 - self.drift)


@dataclass(frozen=True, eq=False)
class ElectionRun:
    """History of a group and of its leaders.

    Attributes
    ----------
    settings, seed
        What was simulated.
    history
        Reads that were answered, and writes; a write without an acknowledgement has an infinite
        end. Versions are numbered per key in the order of commitment; writes that never were
        committed come last.
    terms
        Leaders that were elected.
    failures
        Times at which a leader crashed or was cut off.
    unanswered
        Reads that got no answer, among those whose node did not fail.
    """

    settings: ElectionSettings
    seed: int
    history: tuple[HistoryEntry, ...]
    terms: int
    failures: tuple[float, ...]
    unanswered: int

    @cached_property
    def violations(self) -> Violations:
        """Return the observations of clients that contradict a single register."""
        return check(self.history)

    def latency(self, *, reads: bool, after_ms: float = math.inf) -> Latencies:
        """Latencies of answered reads or writes, ms.

        Parameters
        ----------
        reads
            Reads, or writes.
        after_ms
            Only those that started within this time after a failure of the leader.
        """
        return summarise(
            [
                op.end - op.start
                for op in self.history
                if op.read is reads
                and math.isfinite(op.end)
                and (math.isinf(after_ms) or self._since_failure(op.start) <= after_ms)
            ]
        )

    def _since_failure(self, time: float) -> float:
        return min((time - each for each in self.failures if each <= time), default=math.inf)
