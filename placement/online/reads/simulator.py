"""Clients in a closed loop on a Raft group: leaseholder, local, quorum and strong quorum reads.

A read visits its gateway, then the nodes that its rule names, half an RTT away. It is done when all
of them but the spare ones of the rule have answered. It returns the highest version of the answers,
among equal ones the version with a value. Later answers cost work and are ignored. Under ``strong``
a replica with an unresolved intent on the key answers with its version and no value. If the winner
has no value, the gateway backs off, asks its rule again and retries, for ever if need be.

A write visits its gateway, then L: propose; append at every follower; commit once m of them have
answered; apply; resolve; then it is acknowledged. Writes on one key wait for each other at L.
Followers hear of the commit and of the resolution half an RTT later and take their lag to apply it.

A read transaction asks for several keys in parallel, each from the leader or a majority of its own
group. Under ``snapshot`` it reads all keys again until two rounds in a row agree. No key then
changed in between, so all versions were current at the end of the first of the two rounds.

What this leaves out: elections, failures and lost messages
(:mod:`placement.online.reads.elections` has them), range splits, writes to several keys,
batching.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count

from placement.errors import InputError
from placement.online.reads.cluster import RaftCluster, ReadWorkload
from placement.online.reads.linearizability import HistoryEntry
from placement.online.reads.quorum_systems import Quorum
from placement.online.reads.read_rules import Answered, ReadRule, answers_needed
from placement.online.reads.replicas import LogEntry, Replicas
from placement.online.reads.run_result import ReadRun
from placement.online.reads.sample_path import ReadSamplePath, draw_path, uniforms
from placement.online.reads.snapshots import ReadTransaction
from placement.support.checks import flag, number

__all__ = ["simulate"]

Progress = Callable[[int, int], None]


def simulate(
    cluster: RaftCluster,
    workload: ReadWorkload,
    rule: ReadRule,
    *,
    strong: bool = False,
    snapshot: bool = False,
    operations: int = 50_000,
    seed: int = 0,
    warm_up: float = 0.1,
    progress: Progress | None = None,
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
    snapshot
        Whether read transactions read until two rounds agree.
    operations
        How many are issued; all are answered before the run ends.
    seed
        Of the sample path; the same seed gives every rule the same operations and work.
    warm_up
        Part of the operations whose completions do not count.
    progress
        Called now and then with operations issued and in all.

    Raises
    ------
    InputError
        For bad arguments, or a rule that names a set from which nothing can be read: neither one
        node nor enough for m + 1 answers.

    Notes
    -----
    About seven events for a quorum read of five nodes, each O(log of what is in flight). A run ends
    with the last answer; figures are taken from the end of the warm-up to the last issue, while
    all clients are at work.
    """
    if not isinstance(rule, ReadRule):
        raise InputError(
            "not a rule", field="rule", value=rule, expected="name, learns, spare and start()"
        )
    flag(strong, "strong")
    flag(snapshot, "snapshot")
    number(warm_up, "warm_up", maximum=math.nextafter(1.0, 0.0))
    path = draw_path(cluster, workload, operations, seed)
    run = _ReadSimulation(cluster, rule, path, strong, snapshot)
    run.go(min(workload.clients, path.operations), progress)
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
        tuple(run.transactions),
        run.collects,
    )


@dataclass(slots=True)
class _Attempt:
    """Attempt of a read of one key: answers of an earlier one may still be on their way."""

    operation: int
    part: int
    key: int
    gateway: int
    sent: float
    pending: int
    best: tuple[int, bool] = (-1, False)


@dataclass(slots=True)
class _PendingRead:
    """A read under way: its keys, what they showed in this round, and in the one before."""

    gateway: int
    keys: list[int]
    waiting: int
    versions: list[int]
    earlier: list[int] | None = None


@dataclass(slots=True)
class _Write:
    """A write under way."""

    entry: LogEntry | None = None
    acks: int = 0
    answered: bool = False


class _ReadSimulation:
    """The event loop; every handler is called at the time of its event."""

    def __init__(
        self,
        cluster: RaftCluster,
        rule: ReadRule,
        path: ReadSamplePath,
        strong: bool,
        snapshot: bool,
    ) -> None:
        self.cluster, self.path = cluster, path
        self.groups, self.leaders = cluster.groups, cluster.leaders
        self.rules = [rule.start(cluster.nodes, leader, path.rule) for leader in self.leaders]
        self.learns, self.spare = rule.learns, rule.spare
        self.strong, self.snapshot = strong, snapshot
        self.machines = [Machine(cluster.cores) for _ in range(cluster.nodes)]
        self.replicas = [
            Replicas(cluster.nodes, leader, cluster.visibility, strong) for leader in self.leaders
        ]
        self.half: list[list[float]] = (cluster.rtts / 2.0).tolist()
        self.speed: list[float] = cluster.speeds.tolist()
        self.size = cluster.followers_needed + 1
        self.heap: list[tuple[float, int, Callable[..., None], tuple[object, ...]]] = []
        self.number = count()
        self.waits = uniforms(path.wait)
        self.next = 0
        self.now = 0.0
        self.last_issue = 0.0
        self.starts = [0.0] * path.operations
        self.retries = 0
        self.done: list[HistoryEntry] = []
        self.attempts: dict[tuple[int, int], int] = {}
        self.reading: dict[int, _PendingRead] = {}
        self.transactions: list[ReadTransaction] = []
        self.collects = 0
        self.writes: dict[int, _Write] = {}
        self.queues: dict[int, deque[int]] = {}

    def go(self, clients: int, progress: Progress | None) -> None:
        """Let the clients issue, and work off all events."""
        for _ in range(clients):
            self.issue()
        heap, events = self.heap, 0
        while heap:
            self.now, _, handler, arguments = heapq.heappop(heap)
            handler(*arguments)
            events += 1
            if progress is not None and events % 50_000 == 0:
                progress(self.next, self.path.operations)

    def at(self, time: float, handler: Callable[..., None], *arguments: object) -> None:
        """Put an event on the heap; events of the same time come in the order they were put."""
        heapq.heappush(self.heap, (time, next(self.number), handler, arguments))

    def leader_of(self, o: int) -> int:
        """Return the leader of the group of an operation's first key."""
        return self.leaders[int(self.path.key[o]) % self.groups]

    def issue(self) -> None:
        """A client is free: it issues the next operation, if there is one."""
        o = self.next
        if o >= self.path.operations:
            return
        self.next += 1
        self.starts[o] = self.last_issue = self.now
        gateway = int(self.path.gateway[o])
        work = self.cluster.gateway_ms * float(self.path.work[o, 0]) / self.speed[gateway]
        end = self.machines[gateway].visit(self.now, work)
        if self.path.reads[o]:
            keys = [int(self.path.key[o]), *self.path.more_keys[o].tolist()]
            self.reading[o] = _PendingRead(gateway, keys, len(keys), [0] * len(keys))
            self.at(end, self.collect, o)
        else:
            self.writes[o] = _Write()
            self.at(end + self.half[gateway][self.leader_of(o)], self.arrive_write, o)

    def finish(self, o: int, version: int) -> None:
        """An operation is answered; its client goes on."""
        path = self.path
        self.done.append(
            HistoryEntry(int(path.key[o]), bool(path.reads[o]), self.starts[o], self.now, version)
        )
        self.issue()

    # Reads

    def collect(self, o: int) -> None:
        """Read all keys, in parallel."""
        for part in range(len(self.reading[o].keys)):
            self.attempts[o, part] = 0
            self.route(o, part)

    def route(self, o: int, part: int) -> None:
        """Ask the rule of the key's group and send to the nodes it names."""
        read = self.reading[o]
        gateway = read.gateway
        key = read.keys[part]
        quorum = self.rules[key % self.groups].choose(gateway, self.now)
        self._check(quorum)
        attempt = _Attempt(o, part, key, gateway, self.now, answers_needed(quorum, self.spare))
        for node in quorum:
            if node == gateway:
                self.read_at(attempt, node)
            else:
                self.at(self.now + self.half[gateway][node], self.read_at, attempt, node)

    def _check(self, quorum: Quorum) -> None:
        many = len(quorum)
        if many != 1 and (
            answers_needed(quorum, self.spare) < self.size or len(set(quorum)) < many
        ):
            self._refuse(quorum)
        for node in quorum:
            if not 0 <= node < self.cluster.nodes:
                self._refuse(quorum)

    def _refuse(self, quorum: Quorum) -> None:
        raise InputError(
            "the rule named no quorum",
            field="rule",
            value=quorum,
            expected=f"one node, or at least {self.size + self.spare} different ones",
        )

    def read_at(self, attempt: _Attempt, node: int) -> None:
        """The read arrives at a node; its answer is put on the way."""
        o, part, path = attempt.operation, attempt.part, self.path
        work = path.more_work[o, part - 1, node] if part else path.work[o, 1 + node]
        service = self.cluster.read_ms * float(work) / self.speed[node]
        machine = self.machines[node]
        queue = 0
        if self.learns:
            end, queue = machine.visit_counted(self.now, service)
        else:
            end = machine.visit(self.now, service)
        back = self.half[node][attempt.gateway]
        self.at(end + back, self.reply, attempt, node, end, service, queue)

    def reply(
        self, attempt: _Attempt, node: int, served: float, service: float, queue: int
    ) -> None:
        """An answer is back: what the replica showed at the end of its service counts."""
        o, part, key = attempt.operation, attempt.part, attempt.key
        if self.learns:
            wait = self.now - attempt.sent
            answer = Answered(attempt.gateway, node, self.now, wait, service, queue)
            self.rules[key % self.groups].answered(answer)
        attempt.pending -= 1
        if attempt.pending < 0:  # a spare one: the attempt went on without it
            return
        seen = self.replicas[key % self.groups].see(node, key, served)
        if seen > attempt.best:
            attempt.best = seen
        if attempt.pending:
            return
        version, has_value = attempt.best
        if has_value:
            del self.attempts[o, part]
            self.part_read(o, part, version)
            return
        wait = self.cluster.backoff.draw(self.attempts[o, part], next(self.waits))
        self.attempts[o, part] += 1
        self.retries += 1
        self.at(self.now + wait, self.route, o, part)

    def part_read(self, o: int, part: int, version: int) -> None:
        """Note the version of one key; with the last key the read ends, or begins another round."""
        read = self.reading[o]
        read.versions[part] = version
        read.waiting -= 1
        if read.waiting:
            return
        many = len(read.keys)
        if many > 1 and self.snapshot and read.versions != read.earlier:
            self.collects += read.earlier is not None
            read.waiting, read.versions, read.earlier = many, [0] * many, read.versions
            self.collect(o)
            return
        del self.reading[o]
        if many > 1:
            seen = tuple(zip(read.keys, read.versions, strict=True))
            self.transactions.append(ReadTransaction(self.starts[o], self.now, seen))
        self.finish(o, read.versions[0])

    # Writes

    def arrive_write(self, o: int) -> None:
        """The write is at L; it waits for the earlier writes of its key."""
        queue = self.queues.setdefault(int(self.path.key[o]), deque())
        queue.append(o)
        if len(queue) == 1:
            self.propose(o)

    def propose(self, o: int) -> None:
        """First visit to L."""
        self.at(self._visit_leader(o, 1 + self.leader_of(o)), self.proposed, o)

    def _visit_leader(self, o: int, column: int) -> float:
        leader = self.leader_of(o)
        work = self.cluster.write_ms * float(self.path.work[o, column]) / self.speed[leader]
        return self.machines[leader].visit(self.now, work)

    def proposed(self, o: int) -> None:
        """In the log of L; sent to the followers."""
        key, leader = int(self.path.key[o]), self.leader_of(o)
        self.writes[o].entry = self.replicas[key % self.groups].append(key, self.now)
        for node in range(self.cluster.nodes):
            if node != leader:
                self.at(self.now + self.half[leader][node], self.append_at, o, node)

    def append_at(self, o: int, node: int) -> None:
        """The entry arrives at a follower."""
        work = self.cluster.append_ms * float(self.path.work[o, 1 + node]) / self.speed[node]
        end = self.machines[node].visit(self.now, work)
        entry = self.writes[o].entry
        assert entry is not None
        key = int(self.path.key[o])
        log = self.replicas[key % self.groups].entries[key]
        if entry.version > 1:  # a log has no holes
            end = max(end, log[entry.version - 2].appended[node])
        entry.appended[node] = end
        # What the follower was told while the entry was on its way waits for it.
        entry.intent[node] = max(entry.intent[node], end)
        entry.value[node] = max(entry.value[node], end)
        self.at(end + self.half[node][self.leader_of(o)], self.acked, o)

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
        self.at(self.now + self.half[self.leader_of(o)][gateway], self.answer, o, entry.version)
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
        leader = self.leader_of(o)
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

    __slots__ = ("_busy", "_free", "_running", "cores")

    def __init__(self, cores: int) -> None:
        self.cores = cores
        self._free = [0.0] * cores
        self._running: list[float] = []
        self._busy = 0.0

    def visit(self, now: float, work: float) -> float:
        """Arrive at `now` with `work` ms; return when it is done. O(log cores)."""
        start = self._free[0]
        end = (start if start > now else now) + work
        heapq.heapreplace(self._free, end)
        self._busy += work
        return end

    def visit_counted(self, now: float, work: float) -> tuple[float, int]:
        """Like `visit`; also return the number of jobs in the queue or in service on arrival."""
        running = self._running
        while running and running[0] <= now:
            heapq.heappop(running)
        found = len(running)
        end = self.visit(now, work)
        heapq.heappush(running, end)
        return end, found

    @property
    def busy(self) -> float:
        """Core-milliseconds of work accepted so far."""
        return self._busy
