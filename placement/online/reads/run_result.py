"""Result of a simulated run: latencies, throughput, load, and the history to be checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from placement.online.reads.cluster import RaftCluster, ReadWorkload
from placement.online.reads.linearizability import HistoryEntry, Violations, check
from placement.online.reads.snapshots import (
    ReadTransaction,
    SnapshotViolations,
    check_snapshots,
)
from placement.online.run_records import Latencies, RunRecord, summarise

__all__ = ["ReadRun"]


@dataclass(frozen=True, eq=False)
class ReadRun:
    """A run of :func:`placement.online.reads.simulate`.

    Attributes
    ----------
    cluster, workload, rule, strong, seed
        What was run.
    history
        All operations, in order of their ends.
    retries
        Attempts of reads beyond their first.
    last_issue
        When the last operation was issued, ms.
    busy
        Core-milliseconds of work per node, over the whole run.
    warm_up
        Part of the operations whose completions do not count.
    transactions
        Read transactions, where reads ask for several keys; `history` has their first keys.
    collects
        Rounds of reading all keys of a transaction beyond the first.
    """

    cluster: RaftCluster
    workload: ReadWorkload
    rule: str
    strong: bool
    seed: int
    history: tuple[HistoryEntry, ...]
    retries: int
    last_issue: float
    busy: tuple[float, ...]
    warm_up: float
    transactions: tuple[ReadTransaction, ...] = ()
    collects: int = 0

    @cached_property
    def counted(self) -> tuple[HistoryEntry, ...]:
        """Operations that ended after the warm-up and not after the last issue."""
        skipped = self.history[int(self.warm_up * len(self.history)) :]
        return tuple(op for op in skipped if op.end <= self.last_issue)

    @property
    def throughput(self) -> float:
        """Operations per second among the counted; NaN when they are too few."""
        if len(self.counted) < 2:
            return math.nan
        span = self.counted[-1].end - self.counted[0].end
        return 1000.0 * (len(self.counted) - 1) / span if span > 0 else math.nan

    def _latencies(self, read: bool) -> Latencies:
        return summarise([op.end - op.start for op in self.counted if op.read is read])

    @cached_property
    def read_latency(self) -> Latencies:
        """Latency of counted reads, ms."""
        return self._latencies(True)

    @cached_property
    def write_latency(self) -> Latencies:
        """Latency of counted writes, ms."""
        return self._latencies(False)

    @cached_property
    def latency(self) -> Latencies:
        """Latency of all counted operations, ms."""
        return summarise([op.end - op.start for op in self.counted])

    @property
    def utilisation(self) -> tuple[float, ...]:
        """Part of its cores that each node used until the last answer."""
        span = max((op.end for op in self.history), default=0.0)
        return tuple(busy / (self.cluster.cores * span) if span else 0.0 for busy in self.busy)

    @property
    def mean_attempts(self) -> float:
        """Per read, over the whole run; NaN without reads."""
        reads = sum(op.read for op in self.history)
        return 1.0 + self.retries / reads if reads else math.nan

    @cached_property
    def violations(self) -> Violations:
        """Return the observations in the whole history that contradict a single register."""
        further = [
            HistoryEntry(key, True, each.start, each.end, version)
            for each in self.transactions
            for key, version in each.seen[1:]
        ]
        return check([*self.history, *further])

    @cached_property
    def snapshots(self) -> SnapshotViolations:
        """Return which read transactions saw no single moment."""
        return check_snapshots(self.history, self.transactions)

    def record(
        self,
        params: Mapping[str, object],
        *,
        lower_bound: float = math.nan,
        bound_kind: str = "",
        wall_s: float = math.nan,
    ) -> RunRecord:
        """Row of a file of results.

        Parameters
        ----------
        params
            What defines the run besides the seed.
        lower_bound, bound_kind
            On the mean latency in ms, and where it is from; see
            :func:`placement.online.reads.bottleneck`.
        wall_s
            Seconds the run took.
        """
        found = self.violations
        return RunRecord(
            system="reads",
            policy=self.rule + (", strong" if self.strong else ""),
            params=params,
            seed=self.seed,
            latencies=self.latency,
            throughput=self.throughput,
            lower_bound=lower_bound,
            bound_kind=bound_kind,
            wall_s=wall_s,
            extra={
                "read_ms": self.read_latency.mean,
                "read_p99_ms": self.read_latency.p99,
                "write_ms": self.write_latency.mean,
                "write_p99_ms": self.write_latency.p99,
                "attempts": self.mean_attempts,
                "utilisation": [round(part, 4) for part in self.utilisation],
                "stale": found.stale,
                "backwards": found.backwards,
                "reads": found.reads,
            },
        )
