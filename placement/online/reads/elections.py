"""Reads of a Raft group while its leaders change: simulated message by message, and checked.

Raft as in D. Ongaro and J. Ousterhout, "In search of an understandable consensus algorithm", USENIX
ATC 2014, with leases: a node that has heard of a leader casts no vote for `election_ms`, and a
leader answers reads for `lease_ms` from the time at which it sent what a majority has answered.
Reads of majorities are those of :mod:`placement.online.reads`; nothing else is needed for them than
that m + 1 nodes meet every majority. One log holds all keys. Nodes do not queue: latency is that of
messages, of waits and of elections. Histories are checked by
:func:`placement.online.reads.linearizability.check`, which knows nothing of all this.

Why reads under a lease are linearizable: the majority that answered at least one message sent at s
contains a voter of every later leader, who did not vote before s + election_ms by its clock; if
leases end before, no two leaders answer at a time, and the later one has all committed entries and
applies them before its own first one.
Why strong reads of majorities are: a committed entry stays in the logs of a majority, so that one
of the m + 1 answers shows it or a newer one, and only committed entries come with a value.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from enum import StrEnum
from functools import cached_property

import numpy as np

from placement.errors import require
from placement.online.reads.linearizability import HistoryEntry, Violations, check
from placement.online.simulation import (
    EventLoop,
    Latencies,
    check_fields,
    checked_seed,
    summarise,
)
from placement.support.checks import instance_of, number


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

    Means are exponential. Requests come at random nodes that are up, as Poisson processes. Messages
    may overtake each other.
    """

    nodes: int = 5  #: n >= 3
    keys: int = 3  #: in the log of the group
    _: KW_ONLY
    duration_ms: float = 20_000.0
    path: ReadPath = ReadPath.LEASEHOLDER  #: kind of node that answers reads
    reads: float = 200.0  #: per second, on average
    writes: float = 50.0  #: per second, on average
    delay_ms: float = 1.0  #: mean of a message's way
    slow: float = 0.05  #: part of the messages that take `slow_factor` times as long
    slow_factor: float = 20.0
    loss: float = 0.0  #: probability that a message is lost
    lag_ms: float = 1.0  #: mean of how long a node takes to apply what it knows to be committed
    heartbeat_ms: float = 20.0  #: between two messages of a leader to every follower
    #: least time without a leader until a node stands for election (at most twice that), and for
    #: which a node that has heard of a leader votes for no other
    election_ms: float = 150.0
    lease_ms: float = 120.0  #: from the time at which a leader sent what a majority has answered
    #: until a refused or unfinished request is tried again; four times that for a read without an
    #: answer
    retry_ms: float = 10.0
    drift: float = 0.0  #: clocks run at 1 − drift to 1 + drift, drawn again every `election_ms`
    crashes: float = 0.5  #: of the leader per second, on average
    down_ms: float = 500.0  #: mean time until it restarts
    crash_any: bool = False  #: a crash hits a random node in place of the leader
    #: times per second that the leader is cut off from all nodes, but not from its clients
    cuts: float = 0.0
    cut_ms: float = 500.0  #: mean length of a cut
    #: leaders read under a lease only; otherwise a node that believes to lead answers
    lease: bool = True
    #: a new leader answers reads only once an entry of its own term is applied
    own_entry: bool = True
    #: a restarted node neither votes nor stands for election for `election_ms`
    patient: bool = True
    persist: bool = True  #: nodes keep term, vote, log and state over a restart

    def __post_init__(self) -> None:
        instance_of(self.path, ReadPath, "path", "a ReadPath")
        rates = ("reads", "writes", "lag_ms", "crashes", "cuts")
        check_fields(
            self,
            counts={"nodes": 3, "keys": 1},
            least={**dict.fromkeys(rates, 0.0), "slow_factor": 1.0},
            positive=("duration_ms", "delay_ms", "heartbeat_ms", "election_ms", "lease_ms",
                      "retry_ms", "down_ms", "cut_ms"),
            flags=("crash_any", "lease", "own_entry", "patient", "persist"),
        )  # fmt: skip
        for name in ("slow", "loss", "drift"):
            number(getattr(self, name), name, maximum=0.99)
        words = "followers would stand for election between two heartbeats"
        expected = f"less than election_ms = {self.election_ms:g}"
        require(
            self.heartbeat_ms < self.election_ms, "heartbeat_ms", words, self.heartbeat_ms, expected
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
    """History of a group and of its leaders."""

    #: `settings`, `seed`: what was simulated
    settings: ElectionSettings
    seed: int
    #: reads that were answered, and writes; a write without an acknowledgement has an infinite end.
    #: Versions are numbered per key in the order of commitment; writes that never were committed
    #: come last.
    history: tuple[HistoryEntry, ...]
    terms: int  #: leaders that were elected
    failures: tuple[float, ...]  #: times at which a leader crashed or was cut off
    unanswered: int  #: reads that got no answer, among those whose node did not fail

    @cached_property
    def violations(self) -> Violations:
        """Return the observations of clients that contradict a single register."""
        return check(self.history)

    def latency(self, *, reads: bool, after_ms: float = math.inf) -> Latencies:
        """Latencies in ms of answered reads or writes, within `after_ms` after leaders fail."""
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


def simulate_elections(settings: ElectionSettings, seed: int) -> ElectionRun:
    """Simulate one group in O(messages log messages): some 1,000 events per 100 ms at the defaults.

    The same seed gives the same requests at the same times.
    """
    instance_of(settings, ElectionSettings, "settings", "ElectionSettings")
    run = _ElectionSimulation(settings, np.random.SeedSequence(checked_seed(seed)))
    run.go()
    return ElectionRun(
        settings, seed, tuple(run.history()), run.terms, tuple(run.failures), run.unanswered()
    )


class _ElectionSimulation(EventLoop):
    """Nodes, clients and faults; every handler is called at the time of its event."""

    def __init__(self, settings: ElectionSettings, seed: np.random.SeedSequence) -> None:
        super().__init__()
        self.settings = s = settings
        children = [np.random.default_rng(child) for child in seed.spawn(4)]
        self.load, self.faults, self.network, self.draws = children
        self.nodes = [RaftNode(1.0) for _ in range(s.nodes)]
        self.majority = s.nodes // 2 + 1
        self.end = s.duration_ms
        self.requests: list[RaftRequest] = []
        self.committed = [0] * s.keys
        self.terms = 0
        self.failures: list[float] = []

    # Time and messages

    def local(self, node: RaftNode) -> float:
        """Return the time on the clock of a node."""
        return node.clock + (self.now - node.since) * node.rate

    def drift(self) -> None:
        """Draw new rates of the clocks, again and again."""
        s = self.settings
        for node in self.nodes:
            node.clock, node.since = self.local(node), self.now
            node.rate = float(self.faults.uniform(1 - s.drift, 1 + s.drift))
        self.at(self.now + s.election_ms, self.drift)

    def later(self, node: int, wait: float, handler: Callable[..., None], *more: object) -> None:
        """Call a handler after a wait on the clock of a node, unless it fails before."""
        life, rate = self.nodes[node].life, self.nodes[node].rate
        self.at(self.now + wait / rate, self.alive, node, life, handler, *more)

    def alive(self, node: int, life: int, handler: Callable[..., None], *more: object) -> None:
        if self.nodes[node].up and self.nodes[node].life == life:
            handler(node, *more)

    def send(self, sender: int, receiver: int, handler: Callable[..., None], *more: object) -> None:
        s = self.settings
        if sender == receiver:
            handler(receiver, *more)
            return
        delay = self.network.exponential(s.delay_ms)
        if self.network.random() < s.slow:
            delay *= s.slow_factor
        if self.network.random() >= s.loss and not self.nodes[sender].cut:
            self.at(self.now + delay, self.deliver, receiver, handler, *more)

    def deliver(self, receiver: int, handler: Callable[..., None], *more: object) -> None:
        if self.nodes[receiver].up and not self.nodes[receiver].cut:
            handler(receiver, *more)

    def go(self) -> None:
        """Draw load and faults, then work off all events until some time after the end."""
        s = self.settings
        for node in range(s.nodes):
            self.watch(node)
        if s.drift:
            self.drift()
        for rate, read in ((s.reads, True), (s.writes, False)):
            times = self.load.uniform(0, self.end, self.load.poisson(rate * self.end / 1000))
            for time in np.sort(times).tolist():
                key, node = (int(self.load.integers(most)) for most in (s.keys, s.nodes))
                self.at(time, self.ask, key, node, read)
        for rate, fault in ((s.crashes, self.crash), (s.cuts, self.cut_off)):
            times = self.faults.uniform(0, self.end, self.faults.poisson(rate * self.end / 1000))
            for time in times.tolist():
                self.at(time, fault, int(self.faults.integers(s.nodes)))
        self.run_events(self.end + 20 * s.election_ms)

    # Faults

    def present_leader(self) -> int:
        """Return the leader of the latest term that is up, or −1."""
        leading = [i for i, node in enumerate(self.nodes) if node.up and node.leads]
        return max(leading, key=lambda i: self.nodes[i].term, default=-1)

    def crash(self, any_node: int) -> None:
        node = any_node if self.settings.crash_any else self.present_leader()
        if node < 0 or not self.nodes[node].up:
            return
        self.failures.append(self.now)
        self.nodes[node].up = False
        wait = self.faults.exponential(self.settings.down_ms)
        self.at(self.now + wait, self.restart, node)

    def restart(self, number: int) -> None:
        node, s = self.nodes[number], self.settings
        node.up, node.leads, node.leader = True, False, -1
        node.life += 1
        node.heard = self.local(node) if s.patient else -math.inf
        if not s.persist:
            node.log, node.commit, node.applied, node.term, node.vote = [], 0, 0, 0, -1
        if s.patient:
            self.watch(number)
        else:
            self.later(number, s.election_ms * self.draws.random(), self.stand)

    def cut_off(self, _: int) -> None:
        node = self.present_leader()
        if node < 0 or self.nodes[node].cut:
            return
        self.failures.append(self.now)
        self.nodes[node].cut = True
        wait = self.faults.exponential(self.settings.cut_ms)
        self.at(self.now + wait, self.join, node)

    def join(self, node: int) -> None:
        self.nodes[node].cut = False

    # Elections

    def watch(self, number: int) -> None:
        """Draw a new time after which this node stands for election without a leader."""
        node = self.nodes[number]
        node.timeout = self.settings.election_ms * (1 + self.draws.random())
        self.later(number, node.timeout, self.stand)

    def silent(self, node: RaftNode) -> float:
        """Time since a node has heard of a leader, on its own clock."""
        return self.local(node) - node.heard

    def stand(self, number: int) -> None:
        node = self.nodes[number]
        if node.leads or self.silent(node) < node.timeout:
            wait = node.timeout if node.leads else node.timeout - self.silent(node)
            self.later(number, max(wait, 1e-6), self.stand)
            return
        node.term += 1
        node.vote, node.votes, node.leader = number, {number}, -1
        last = node.log[-1].term if node.log else 0
        for other in range(self.settings.nodes):
            if other != number:
                self.send(number, other, self.asked_to_vote, number, node.term, last, len(node.log))
        self.watch(number)

    def asked_to_vote(self, number: int, candidate: int, term: int, last: int, length: int) -> None:
        node = self.nodes[number]
        bound = node.leads or self.silent(node) < self.settings.election_ms
        if bound or term < node.term:
            return
        self.hear_term(node, term)
        mine = (node.log[-1].term if node.log else 0, len(node.log))
        if node.vote in (-1, candidate) and (last, length) >= mine:
            node.vote = candidate
            self.send(number, candidate, self.voted, number, term)

    def hear_term(self, node: RaftNode, term: int) -> None:
        if term > node.term:
            node.term, node.vote, node.leads, node.leader = term, -1, False, -1

    def voted(self, number: int, voter: int, term: int) -> None:
        node = self.nodes[number]
        if node.leads or term != node.term or node.vote != number:
            return
        node.votes.add(voter)
        if len(node.votes) >= self.majority:
            self.terms += 1
            nodes = self.settings.nodes
            node.leads, node.leader = True, number
            node.next, node.match = [len(node.log)] * nodes, [0] * nodes
            node.answered = [-math.inf] * nodes
            self.append(number, RaftEntry(node.term, -1, None))
            self.beat(number, node.term)

    def beat(self, number: int, term: int) -> None:
        node = self.nodes[number]
        if node.leads and node.term == term:
            self.replicate(number)
            self.later(number, self.settings.heartbeat_ms, self.beat, term)

    # The log

    def append(self, number: int, entry: RaftEntry) -> None:
        node = self.nodes[number]
        node.log.append(entry)
        node.match[number] = len(node.log)

    def replicate(self, number: int) -> None:
        """Send every follower the entries that it lacks, as far as the leader knows."""
        node = self.nodes[number]
        for other in range(self.settings.nodes):
            if other != number:
                start = node.next[other]
                before = node.log[start - 1].term if start else 0
                self.send(
                    number, other, self.appended, number, node.term, start, before,
                    node.log[start:], node.commit, self.local(node),
                )  # fmt: skip

    def appended(
        self, number: int, leader: int, term: int, start: int, before: int,
        entries: list[RaftEntry], commit: int, sent: float,
    ) -> None:  # fmt: skip
        node = self.nodes[number]
        fits = False
        if term >= node.term:
            self.hear_term(node, term)
            node.leader, node.heard = leader, self.local(node)
            fits = start <= len(node.log) and (not start or node.log[start - 1].term == before)
        if fits:
            for index, entry in enumerate(entries, start=start):
                if index < len(node.log) and node.log[index].term != entry.term:
                    del node.log[index:]
                    # Only nodes that forget can be told to drop what was committed.
                    node.commit, node.applied = min(node.commit, index), min(node.applied, index)
                if index == len(node.log):
                    node.log.append(entry)
            node.commit = max(node.commit, min(commit, start + len(entries)))
            self.learn(number)
        reached = start + len(entries) if fits else min(start, len(node.log))
        self.send(number, leader, self.replied, number, node.term, term, fits, reached, sent)

    def learn(self, number: int) -> None:
        """Apply committed entries, a lag later."""
        node = self.nodes[number]
        if node.commit > node.applied:
            wait = self.draws.exponential(self.settings.lag_ms) if self.settings.lag_ms else 0.0
            self.later(number, wait, self.apply, node.commit)

    def apply(self, number: int, index: int) -> None:
        node = self.nodes[number]
        first, node.applied = node.applied, max(node.applied, min(index, len(node.log)))
        if node.leads:
            for entry in node.log[first : node.applied]:
                if entry.write is not None and entry.term == node.term:
                    self.send(number, entry.write.gateway, self.finish, entry.write)

    def replied(
        self, number: int, follower: int, term: int, asked: int, fits: bool, reached: int,
        sent: float,
    ) -> None:  # fmt: skip
        node = self.nodes[number]
        self.hear_term(node, term)
        if not node.leads or node.term != asked:
            return
        node.answered[follower] = max(node.answered[follower], sent)
        if not fits:
            node.next[follower] = max(0, min(reached, node.next[follower] - 1))
            return
        node.match[follower] = max(node.match[follower], reached)
        node.next[follower] = max(node.next[follower], reached)
        index = sorted(node.match)[-self.majority]
        if index > node.commit and node.log[index - 1].term == node.term:
            for entry in node.log[node.commit : index]:
                if entry.write is not None and not entry.write.committed:
                    self.committed[entry.key] += 1
                    entry.write.committed = self.committed[entry.key]
            node.commit = index
            self.learn(number)

    # Clients

    def ask(self, key: int, node: int, read: bool) -> None:
        """A client asks a node; one that finds it down goes away."""
        if self.nodes[node].up:
            request = RaftRequest(key, read, self.now, node, self.nodes[node].life)
            self.requests.append(request)
            self.try_read(node, request) if read else self.try_write(node, request)

    def again(self, request: RaftRequest, wait: float) -> None:
        action = self.try_read if request.read else self.try_write
        self.later(request.gateway, wait, action, request)

    def finish(self, _: int, request: RaftRequest) -> None:
        if math.isinf(request.end) and self.nodes[request.gateway].life == request.life:
            request.end = self.now

    def try_write(self, number: int, request: RaftRequest) -> None:
        leader = self.nodes[number].leader
        if leader < 0:
            self.again(request, self.settings.retry_ms)
        else:
            self.send(number, leader, self.proposed, request)

    def proposed(self, number: int, request: RaftRequest) -> None:
        node = self.nodes[number]
        if node.leads:
            self.append(number, RaftEntry(node.term, request.key, request))
            self.replicate(number)
        else:
            self.send(number, request.gateway, self.refused, request, request.attempt)

    def refused(self, _: int, request: RaftRequest, attempt: int) -> None:
        if attempt == request.attempt:
            request.attempt += 1
            self.again(request, self.settings.retry_ms)

    def holds_lease(self, node: RaftNode) -> bool:
        """Return whether a leader may answer reads from its own state."""
        s = self.settings
        if not node.leads:
            return False
        if s.own_entry and not (node.applied and node.log[node.applied - 1].term == node.term):
            return False
        if not s.lease:
            return True
        sent = sorted([*node.answered, math.inf])[-self.majority]  # itself last of all
        return self.local(node) - sent < s.lease_ms

    def try_read(self, number: int, request: RaftRequest) -> None:
        s, node = self.settings, self.nodes[number]
        if math.isfinite(request.end):
            return
        request.attempt += 1
        request.newest, request.settled, request.seen = (0, 0), True, None
        request.waiting = 1
        asked = [number]
        if s.path is ReadPath.LEASEHOLDER:
            asked = [node.leader]
        elif s.path is not ReadPath.LOCAL and not self.holds_lease(node):
            others = [i for i in range(s.nodes) if i not in (number, node.leader)]
            self.draws.shuffle(others)
            asked += others[: self.majority - 1]
            request.waiting = self.majority
        if asked == [-1]:
            self.again(request, s.retry_ms)
            return
        alone = s.path is ReadPath.LEASEHOLDER or len(asked) == 1
        self.later(number, 4 * s.retry_ms, self.timed_out, request, request.attempt)
        for other in asked:
            self.send(number, other, self.read_at, request, request.attempt, alone)

    def timed_out(self, number: int, request: RaftRequest, attempt: int) -> None:
        if math.isinf(request.end) and attempt == request.attempt:
            self.try_read(number, request)

    def read_at(self, number: int, request: RaftRequest, attempt: int, alone: bool) -> None:
        """Return the newest entry of the key at a node."""
        node, path = self.nodes[number], self.settings.path
        if path is ReadPath.LEASEHOLDER and not self.holds_lease(node):
            self.send(number, request.gateway, self.refused, request, attempt)
            return
        below = node.applied
        if path in (ReadPath.LOG, ReadPath.STRONG) and not alone:
            below = len(node.log)
        elif path is ReadPath.STRONG:  # majorities show what the leader may not have applied yet
            below = node.commit
        index = node.newest(request.key, below)
        entry = node.log[index - 1] if index else None
        settled = path is not ReadPath.STRONG or alone or index <= node.commit
        place = (0, 0) if entry is None else (entry.term, index)
        self.send(number, request.gateway, self.shown, request, attempt, place, settled, entry)

    def shown(
        self, _: int, request: RaftRequest, attempt: int, place: tuple[int, int],
        settled: bool, entry: RaftEntry | None,
    ) -> None:  # fmt: skip
        """An answer is back: the newest entry counts, of equal ones that with a value."""
        if attempt != request.attempt or math.isfinite(request.end):
            return
        if place > request.newest:
            request.newest, request.settled, request.seen = place, settled, entry
        elif place == request.newest:
            request.settled |= settled
        request.waiting -= 1
        if request.waiting:
            return
        if request.settled:
            self.finish(request.gateway, request)
        else:
            self.refused(request.gateway, request, attempt)

    # The end

    def history(self) -> list[HistoryEntry]:
        """Return answered reads and all writes, with versions in the order of commitment."""
        version: dict[int, int] = {}
        last = list(self.committed)
        for request in self.requests:
            if not request.read:
                if not request.committed:
                    last[request.key] += 1
                version[id(request)] = request.committed or last[request.key]
        found = []
        for one in self.requests:
            if not one.read or math.isfinite(one.end):
                write: RaftRequest | None = one
                if one.read:
                    write = None if one.seen is None else one.seen.write
                number = 0 if write is None else version[id(write)]
                found.append(HistoryEntry(one.key, one.read, one.start, one.end, number))
        return found

    def unanswered(self) -> int:
        """Reads without an answer whose node did not fail."""
        return sum(
            request.read and math.isinf(request.end) and node.up and node.life == request.life
            for request in self.requests
            for node in [self.nodes[request.gateway]]
        )
