"""Simulator of reads and writes of a Raft group: cluster, path, rules, replicas, events, result.

The sample path is drawn beforehand: operation number o has the same kind, key, gateway and work
under every rule; clients take the numbers in the order in which they become free, which does depend
on the rule (a closed loop).

A rule is asked at the gateway, once per attempt, which nodes to read from. The rules of the paper
are in ``heuristics.online.reads``.

Clients run in a closed loop. A read visits its gateway, then the nodes that its rule names, half an
RTT away. It is done when all of them have answered. It returns the highest version of the answers,
among equal ones the version with a value. Under ``strong`` a replica with an unresolved intent on
the key answers with its version and no value. If the winner has no value, the gateway backs off,
asks its rule again and retries, for ever if need be.

A write visits its gateway, then L: propose; append at every follower; commit once m of them have
answered; apply; resolve; then it is acknowledged. Writes on one key wait for each other at L.
Followers hear of the commit and of the resolution half an RTT later and take their lag to apply it.

What this leaves out: elections, failures and lost messages
(:mod:`placement.online.reads.elections` has them), range splits, operations on several keys,
batching. :func:`bottleneck` has the laws that bound what the database can do.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from placement.errors import InputError, require
from placement.online.reads.linearizability import HistoryEntry, Violations, check
from placement.online.reads.read_problem import Quorum, ReadStrategy
from placement.online.simulation import EventLoop, Latencies, check_fields, spawn_streams, summarise
from placement.support.checks import (
    BoolArray,
    FloatArray,
    elements,
    flag,
    frozen,
    instance_of,
    nonnegative,
    number,
    numbers_of,
    text,
    whole,
)


class Visibility(StrEnum):
    """State of the log from which a follower answers a read."""

    APPLIED = "applied"
    """The state machine: entries whose commit the follower has heard of. So the authors' code."""
    LOG = "log"
    """The log too: an entry counts from the moment the follower has appended it."""


def back_off(retry: int, uniform: float) -> float:
    """Wait in ms before retry j = 0, 1, …: U[0.85, 1.15]·min(50·2^j, 5000).

    As the authors' branch of CockroachDB, which retries without limit.
    """
    return min(50.0 * 2.0 ** min(retry, 1000), 5000.0) * (1.0 + 0.15 * (2.0 * uniform - 1.0))


@dataclass(frozen=True, eq=False)
class RaftCluster:
    """n machines with all data on each; one of them, L, holds the lease.

    All work is exponential with the means given, in ms; every machine serves requests first come,
    first served on `cores` cores. The defaults are those of the reference shape and are not
    calibrated to any database.

    Parameters
    ----------
    nodes
        n >= 3.
    leader
        L.
    cores
        Per machine.
    gateway_ms
        Work of the gateway on every operation.
    read_ms
        Work of a read at each node it asks.
    write_ms
        Work of each of the four visits a write pays to L, one after the other: propose, commit,
        apply, resolve. It is acknowledged after the fourth.
    append_ms
        Work of a write at each follower.
    rtt
        Round trips in ms, half each way: one number for all pairs of machines, or a matrix of shape
        (n, n). A machine reaches itself in no time.
    visibility
        See :class:`Visibility`.
    apply_lag_ms
        Mean (exponential) of how long a follower takes to apply what L tells it was committed or
        resolved, after the message has arrived. Takes no core.
    intent_ms
        Mean (exponential) of how long followers wait for L's word that an intent is resolved,
        beyond the write's acknowledgement; 0: it is sent at once. Long ones stand for asynchronous
        resolution under load.
    """

    nodes: int = 5
    leader: int = 0
    cores: int = 8
    gateway_ms: float = 0.9
    read_ms: float = 0.4
    write_ms: float = 0.5
    append_ms: float = 0.4
    rtt: FloatArray = field(default_factory=lambda: np.array(0.3))
    visibility: Visibility = Visibility.APPLIED
    apply_lag_ms: float = 1.0
    intent_ms: float = 0.0

    def __post_init__(self) -> None:
        times = ("gateway_ms", "read_ms", "write_ms", "append_ms", "apply_lag_ms", "intent_ms")
        check_fields(
            self, counts={"nodes": 3, "cores": 1, "leader": 0}, least=dict.fromkeys(times, 0.0)
        )
        expected = f"below {self.nodes}"
        require(self.leader < self.nodes, "leader", "no such node", self.leader, expected)
        matrix = numbers_of(self.rtt, "rtt")
        if matrix.ndim == 0:
            matrix = np.full((self.nodes, self.nodes), number(float(matrix), "rtt"))
        if matrix.shape == (self.nodes, self.nodes):
            np.fill_diagonal(matrix, 0.0)
        axis = ("node", tuple(map(str, range(self.nodes))))
        object.__setattr__(self, "rtt", nonnegative(matrix, "rtt", [axis, axis]))
        known = text(self.visibility, "visibility", choices=[each.value for each in Visibility])
        object.__setattr__(self, "visibility", Visibility(known))

    @property
    def followers_needed(self) -> int:
        """M = ⌊n/2⌋: with L they are a majority."""
        return self.nodes // 2


@dataclass(frozen=True, eq=False)
class ReadWorkload:
    """Clients that each issue one operation after the other, without a pause.

    Parameters
    ----------
    clients
        How many.
    read_share
        Part of the operations that read, 0 to 1.
    keys
        How many there are.
    hot_share, hot_fraction
        `hot_share` of the operations go to `hot_fraction` of the keys, the others to the rest; both
        0: all keys alike.
    gateways
        Weight of each node as the gateway of an operation; empty: all alike.
    """

    clients: int = 70
    read_share: float = 0.95
    keys: int = 100_000
    hot_share: float = 0.0
    hot_fraction: float = 0.0
    gateways: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        shares = ("read_share", "hot_share", "hot_fraction")
        check_fields(self, counts={"clients": 1, "keys": 1}, shares=shares)
        weights = elements(self.gateways, "gateways", "a list of weights")
        weights = tuple(number(weight, f"gateways[{k}]") for k, weight in enumerate(weights))
        object.__setattr__(self, "gateways", weights)
        if (self.hot_share > 0) != (self.hot_fraction > 0):
            raise InputError(
                "hot requests need hot keys, and hot keys hot requests",
                field="hot_fraction",
                value=self.hot_fraction,
                expected="both > 0 or both 0",
            )

    @property
    def hot_keys(self) -> int:
        """Return the number of hot keys: hot_fraction·keys, at least one with hot requests."""
        return max(1, round(self.hot_fraction * self.keys)) if self.hot_fraction else 0

    def gateway_shares(self, nodes: int) -> FloatArray:
        """Part of the operations that enters at each of `nodes` nodes, shape (nodes,)."""
        if not self.gateways:
            return frozen(np.full(nodes, 1.0 / nodes))
        names = tuple(str(node) for node in range(nodes))
        weights = nonnegative(self.gateways, "gateways", [("node", names)])
        if not weights.any():
            raise InputError("no gateway", field="gateways", value=0.0, expected="a weight > 0")
        return frozen(weights / weights.sum())


@dataclass(frozen=True, eq=False)
class Bottleneck:
    """Bounds on a closed loop."""

    #: core-milliseconds that an operation costs each node on average, shape (n,)
    demand: FloatArray
    idle_ms: float  #: at most the mean latency of an operation that meets no other operation
    #: operations per second: at most cores/max demand (utilisation law) and clients/idle latency
    throughput: float
    latency: float  #: least mean latency in ms, clients/throughput (Little)


def bottleneck(cluster: RaftCluster, workload: ReadWorkload, strategy: ReadStrategy) -> Bottleneck:
    """Apply the laws to reads that follow a fixed strategy, and are not retried.

    Parameters
    ----------
    cluster, workload
        What runs where, and what is asked of it.
    strategy
        Per gateway the sets read from, with probabilities.

    Notes
    -----
    The bounds hold for long-run means. The idle latency takes, of a quorum, the longest of the mean
    answers; of a write's followers the way to the m-th nearest without work, since the fastest of
    several need not be the nearest.
    """
    n, leader = cluster.nodes, cluster.leader
    words = "not one mixture per gateway"
    require(len(strategy.mixtures) == n, "strategy", words, len(strategy.mixtures), str(n))
    shares, reads = workload.gateway_shares(n), workload.read_share
    rtt = cluster.rtt
    demand = cluster.gateway_ms * shares
    demand = demand + (1.0 - reads) * np.where(
        np.arange(n) == leader, 4.0 * cluster.write_ms, cluster.append_ms
    )
    way = sorted(float(rtt[leader, v]) for v in range(n) if v != leader)
    commit = way[cluster.followers_needed - 1]
    idle = float(cluster.gateway_ms * float(shares.sum()))
    for gateway, mixture in enumerate(strategy.mixtures):
        write = float(rtt[gateway, leader]) + 4.0 * cluster.write_ms + commit
        idle += shares[gateway] * (1.0 - reads) * write
        for quorum, probability in mixture:
            weight = float(shares[gateway]) * reads * probability
            members = list(quorum)
            demand[members] += weight * cluster.read_ms
            idle += weight * float((rtt[gateway, members] + cluster.read_ms).max())
    most = workload.clients / idle if idle > 0 else np.inf
    busiest = float(demand.max())
    if busiest > 0:
        most = min(most, cluster.cores / busiest)
    return Bottleneck(demand, float(idle), 1000.0 * float(most), workload.clients / float(most))


CAUSES = ("arrivals", "work", "lags", "waits", "rule")
"""Kind, key, gateway; work; lags of followers; back-off; what a rule draws for itself."""


@dataclass(frozen=True, eq=False)
class ReadSamplePath:
    """Draws for a number of operations."""

    reads: BoolArray  #: whether an operation reads, shape (operations,)
    #: `key`, `gateway`: shape (operations,)
    key: npt.NDArray[np.int64]
    gateway: npt.NDArray[np.int64]
    #: unit-mean exponentials, shape (operations, 1 + n + 3): column 0 for the gateway, 1 + v for
    #: the visit to node v, the last three for L's further visits of a write
    work: FloatArray
    #: unit-mean exponentials of the two messages to each follower and of the life of the intent,
    #: shape (operations, 2n + 1); only writes use them
    lag: FloatArray
    #: `rule`, `wait`: generators for the rule and for the jitter of back-offs
    rule: np.random.Generator
    wait: np.random.Generator

    @property
    def operations(self) -> int:
        """Return the number of sampled operations."""
        return len(self.reads)


def draw_path(
    cluster: RaftCluster, workload: ReadWorkload, operations: int, seed: int
) -> ReadSamplePath:
    """Draw a sample path from independent streams of `seed`, one per cause."""
    instance_of(cluster, RaftCluster, "cluster", "a RaftCluster of placement.online.reads")
    instance_of(workload, ReadWorkload, "workload", "a ReadWorkload of placement.online.reads")
    operations = whole(operations, "operations", minimum=1)
    streams = spawn_streams(seed, CAUSES)
    arrivals = streams["arrivals"]
    reads = arrivals.random(operations) < workload.read_share
    hot = arrivals.random(operations) < workload.hot_share
    place = arrivals.random(operations)
    warm, cold = workload.hot_keys, workload.keys - workload.hot_keys
    key = np.where(
        hot | (cold == 0),
        np.floor(place * max(warm, 1)),
        warm + np.floor(place * max(cold, 1)),
    ).astype(np.int64)
    shares = workload.gateway_shares(cluster.nodes)
    gateway = np.searchsorted(np.cumsum(shares)[:-1], arrivals.random(operations), side="right")
    work = streams["work"].exponential(size=(operations, cluster.nodes + 4))
    return ReadSamplePath(
        reads,
        key,
        gateway.astype(np.int64),
        work,
        streams["lags"].exponential(size=(operations, 2 * cluster.nodes + 1)),
        streams["rule"],
        streams["waits"],
    )


def uniforms(rng: np.random.Generator, block: int = 4096) -> Iterator[float]:
    """Numbers from U[0, 1) without end, drawn in blocks: far cheaper than one by one."""
    while True:
        yield from rng.random(block).tolist()


Choose = Callable[[int], Quorum]
"""Returns the nodes that a gateway reads from: one node is read there alone, more are a quorum."""


class ReadRule:
    """A rule: immutable, and asked for a fresh choice by every run."""

    label: ClassVar[str]

    @property
    def name(self) -> str:
        """For tables."""
        return self.label

    def start(self, nodes: int, leader: int, rng: np.random.Generator) -> Choose:
        """Begin a run on `nodes` nodes."""
        raise NotImplementedError


@dataclass(frozen=True)
class FromStrategy(ReadRule):
    """Draws from a fixed strategy, for example an optimal one."""

    strategy: ReadStrategy
    name: str = "strategy"

    def __post_init__(self) -> None:
        instance_of(self.strategy, ReadStrategy, "strategy", "a ReadStrategy")
        text(self.name, "name")

    def start(self, nodes: int, leader: int, rng: np.random.Generator) -> Choose:
        """Begin a run."""
        draws = uniforms(rng)
        return lambda gateway: self.strategy.draw(gateway, next(draws))


@dataclass(slots=True)
class LogEntry:
    """Write in the log; times in ms, infinite until known."""

    version: int  #: 1, 2, … per key; 0 before the first write of the key
    applied: float  #: when L has applied it
    appended: list[float]  #: when each node has it in its log
    #: when each node has applied the write itself, so that its state shows an unresolved intent
    intent: list[float]
    value: list[float]  #: when each node knows the intent resolved, so that its state shows a value


@dataclass(slots=True)
class Replicas:
    """The logs of all keys."""

    #: `nodes`, `leader`, `visibility`: of the cluster
    nodes: int
    leader: int
    visibility: Visibility
    strong: bool  #: whether a replica shows unresolved intents (as a timestamp without a value)
    entries: dict[int, list[LogEntry]] = field(default_factory=dict)  #: per key, oldest first

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

    @cached_property
    def read_latency(self) -> Latencies:
        """Latency of counted reads, ms."""
        return summarise([op.end - op.start for op in self.counted if op.read])

    @cached_property
    def write_latency(self) -> Latencies:
        """Latency of counted writes, ms."""
        return summarise([op.end - op.start for op in self.counted if not op.read])

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
        return check(self.history)


def simulate(
    cluster: RaftCluster,
    workload: ReadWorkload,
    rule: ReadRule,
    *,
    strong: bool = False,
    operations: int = 50_000,
    seed: int = 0,
    warm_up: float = 0.1,
) -> ReadRun:
    """Run a workload and return the observations of every client.

    Parameters
    ----------
    cluster, workload
        What runs where, and what is asked of it.
    rule
        Where reads go.
    strong
        Whether replicas show intents and gateways retry: strongly consistent quorum reads.
    operations
        How many are issued; all are answered before the run ends.
    seed
        Of the sample path; the same seed gives every rule the same operations and work.
    warm_up
        Part of the operations whose completions do not count.

    Raises
    ------
    InputError
        For bad arguments, or a rule that names a set from which nothing can be read: neither one
        node nor m + 1.

    Notes
    -----
    About seven events for a quorum read of five nodes, each O(log of what is in flight). A run ends
    with the last answer; figures are taken from the end of the warm-up to the last issue, while
    all clients are at work.
    """
    instance_of(rule, ReadRule, "rule", "a ReadRule")
    flag(strong, "strong")
    number(warm_up, "warm_up", maximum=math.nextafter(1.0, 0.0))
    path = draw_path(cluster, workload, operations, seed)
    run = _ReadSimulation(cluster, rule, path, strong)
    for _ in range(min(workload.clients, path.operations)):
        run.issue()
    run.run_events()
    return ReadRun(
        cluster,
        workload,
        rule.name,
        strong,
        seed,
        tuple(run.done),
        run.retries,
        run.last_issue,
        tuple(machine.busy for machine in run.machines),
        warm_up,
    )


@dataclass(slots=True)
class _Attempt:
    """Attempt of a read."""

    operation: int
    key: int
    gateway: int
    sent: float
    pending: int
    best: tuple[int, bool] = (-1, False)


@dataclass(slots=True)
class _Write:
    """A write under way."""

    entry: LogEntry | None = None
    acks: int = 0
    answered: bool = False


class _ReadSimulation(EventLoop):
    """Reads and writes under way; every handler is called at the time of its event."""

    def __init__(
        self,
        cluster: RaftCluster,
        rule: ReadRule,
        path: ReadSamplePath,
        strong: bool,
    ) -> None:
        super().__init__()
        self.cluster, self.path = cluster, path
        self.leader = cluster.leader
        self.choose = rule.start(cluster.nodes, self.leader, path.rule)
        self.machines = [Machine(cluster.cores) for _ in range(cluster.nodes)]
        self.replicas = Replicas(cluster.nodes, self.leader, cluster.visibility, strong)
        self.half: list[list[float]] = (cluster.rtt / 2.0).tolist()
        self.size = cluster.followers_needed + 1
        self.waits = uniforms(path.wait)
        self.next = 0
        self.last_issue = 0.0
        self.starts = [0.0] * path.operations
        self.retries = 0
        self.done: list[HistoryEntry] = []
        self.attempts: dict[int, int] = {}
        self.writes: dict[int, _Write] = {}
        self.queues: dict[int, deque[int]] = {}

    def issue(self) -> None:
        """A client is free: it issues the next operation, if there is one."""
        o = self.next
        if o >= self.path.operations:
            return
        self.next += 1
        self.starts[o] = self.last_issue = self.now
        gateway = int(self.path.gateway[o])
        work = self.cluster.gateway_ms * float(self.path.work[o, 0])
        end = self.machines[gateway].visit(self.now, work)
        if self.path.reads[o]:
            self.attempts[o] = 0
            self.at(end, self.route, o)
        else:
            self.writes[o] = _Write()
            self.at(end + self.half[gateway][self.leader], self.arrive_write, o)

    def finish(self, o: int, version: int) -> None:
        """An operation is answered; its client goes on."""
        path = self.path
        self.done.append(
            HistoryEntry(int(path.key[o]), bool(path.reads[o]), self.starts[o], self.now, version)
        )
        self.issue()

    # Reads

    def route(self, o: int) -> None:
        """Ask the rule and send to the nodes it names."""
        gateway = int(self.path.gateway[o])
        quorum = self.choose(gateway)
        many, known = len(quorum), all(0 <= node < self.cluster.nodes for node in quorum)
        if not known or not (many == 1 or self.size <= many == len(set(quorum))):
            raise InputError(  # nodes that are not there, or a quorum that may miss a write
                "the rule named no quorum", field="rule", value=quorum,
                expected=f"one node, or at least {self.size} different ones",
            )  # fmt: skip
        attempt = _Attempt(o, int(self.path.key[o]), gateway, self.now, len(quorum))
        for node in quorum:
            if node == gateway:
                self.read_at(attempt, node)
            else:
                self.at(self.now + self.half[gateway][node], self.read_at, attempt, node)

    def read_at(self, attempt: _Attempt, node: int) -> None:
        """The read arrives at a node; its answer is put on the way."""
        work = self.cluster.read_ms * float(self.path.work[attempt.operation, 1 + node])
        end = self.machines[node].visit(self.now, work)
        self.at(end + self.half[node][attempt.gateway], self.reply, attempt, node, end)

    def reply(self, attempt: _Attempt, node: int, served: float) -> None:
        """An answer is back: what the replica showed at the end of its service counts."""
        o, key = attempt.operation, attempt.key
        attempt.pending -= 1
        seen = self.replicas.see(node, key, served)
        if seen > attempt.best:
            attempt.best = seen
        if attempt.pending:
            return
        version, has_value = attempt.best
        if has_value:
            del self.attempts[o]
            self.finish(o, version)
            return
        wait = back_off(self.attempts[o], next(self.waits))
        self.attempts[o] += 1
        self.retries += 1
        self.at(self.now + wait, self.route, o)

    # Writes

    def arrive_write(self, o: int) -> None:
        """The write is at L; it waits for the earlier writes of its key."""
        queue = self.queues.setdefault(int(self.path.key[o]), deque())
        queue.append(o)
        if len(queue) == 1:
            self.propose(o)

    def propose(self, o: int) -> None:
        """First visit to L."""
        self.at(self._visit_leader(o, 1 + self.leader), self.proposed, o)

    def _visit_leader(self, o: int, column: int) -> float:
        work = self.cluster.write_ms * float(self.path.work[o, column])
        return self.machines[self.leader].visit(self.now, work)

    def proposed(self, o: int) -> None:
        """In the log of L; sent to the followers."""
        key, leader = int(self.path.key[o]), self.leader
        self.writes[o].entry = self.replicas.append(key, self.now)
        for node in range(self.cluster.nodes):
            if node != leader:
                self.at(self.now + self.half[leader][node], self.append_at, o, node)

    def append_at(self, o: int, node: int) -> None:
        """The entry arrives at a follower."""
        work = self.cluster.append_ms * float(self.path.work[o, 1 + node])
        end = self.machines[node].visit(self.now, work)
        entry = self.writes[o].entry
        assert entry is not None
        key = int(self.path.key[o])
        log = self.replicas.entries[key]
        if entry.version > 1:  # a log has no holes
            end = max(end, log[entry.version - 2].appended[node])
        entry.appended[node] = end
        # What the follower was told while the entry was on its way waits for it.
        entry.intent[node] = max(entry.intent[node], end)
        entry.value[node] = max(entry.value[node], end)
        self.at(end + self.half[node][self.leader], self.acked, o)

    def acked(self, o: int) -> None:
        """A follower has the entry; with m of them the entry is committed."""
        write = self.writes[o]
        write.acks += 1
        if write.acks == self.cluster.followers_needed:
            self.at(self._visit_leader(o, self.cluster.nodes + 1), self.committed, o)
        self._forget(o)

    def committed(self, o: int) -> None:
        """Followers are told; L applies."""
        entry = self.writes[o].entry
        assert entry is not None
        self._tell(o, entry.intent, entry.appended, 0.0, 0)
        self.at(self._visit_leader(o, self.cluster.nodes + 2), self.applied, o)

    def applied(self, o: int) -> None:
        """L has applied it, so that its own reads see it; L resolves the intent."""
        entry = self.writes[o].entry
        assert entry is not None
        entry.applied = self.now
        self.at(self._visit_leader(o, self.cluster.nodes + 3), self.resolved, o)

    def resolved(self, o: int) -> None:
        """The intent is resolved at L: followers are told, the client is answered."""
        write = self.writes[o]
        entry = write.entry
        assert entry is not None
        nodes = self.cluster.nodes
        late = self.cluster.intent_ms * float(self.path.lag[o, 2 * nodes])
        self._tell(o, entry.value, entry.intent, late, nodes)
        gateway = int(self.path.gateway[o])
        self.at(self.now + self.half[self.leader][gateway], self.answer, o, entry.version)
        queue = self.queues[int(self.path.key[o])]
        queue.popleft()
        if queue:
            self.propose(queue[0])
        else:
            del self.queues[int(self.path.key[o])]

    def _tell(
        self, o: int, times: list[float], after: Sequence[float], late: float, column: int
    ) -> None:
        """Set when each follower applies a message that L sends `late` ms from now."""
        leader = self.leader
        for node in range(self.cluster.nodes):
            if node == leader:
                continue
            lag = self.cluster.apply_lag_ms * float(self.path.lag[o, column + node])
            heard = self.now + late + self.half[leader][node] + lag
            times[node] = heard if math.isinf(after[node]) else max(heard, after[node])

    def answer(self, o: int, version: int) -> None:
        """The acknowledgement is at the client."""
        self.finish(o, version)
        self.writes[o].answered = True
        self._forget(o)

    def _forget(self, o: int) -> None:
        """Drop a write that was answered and of which no follower will be heard any more."""
        write = self.writes[o]
        if write.answered and write.acks == self.cluster.nodes - 1:
            del self.writes[o]


class Machine:
    """A machine that is told of every visit in the order of arrival.

    Because service is first come first served, the end of a visit is known on its arrival: the
    first core to be free takes it. No event is needed for that.
    """

    __slots__ = ("_free", "busy")

    def __init__(self, cores: int) -> None:
        self._free = [0.0] * cores
        self.busy = 0.0
        """Core-milliseconds of work accepted so far."""

    def visit(self, now: float, work: float) -> float:
        """Arrive at `now` with `work` ms; return when it is done. O(log cores)."""
        start = self._free[0]
        end = (start if start > now else now) + work
        heapq.heapreplace(self._free, end)
        self.busy += work
        return end
