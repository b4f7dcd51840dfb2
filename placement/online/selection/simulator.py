"""The event loop: reads reach clients, policies choose, servers serve, responses come back.

A plain heap, in the order (time, order of creation); of reads and events at the same instant the
read comes first. All randomness is in the sample path. The compiled kernel of
``heuristics.online.selection`` computes the same numbers to the last bit; this is the reference.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from dataclasses import asdict, dataclass

import numpy as np

from placement.errors import InputError, SolverError
from placement.online.run_records import Latencies, RunRecord, summarise
from placement.online.selection.hedging import Hedged
from placement.online.selection.policy import Clairvoyant, Policy, Servers
from placement.online.selection.rate_limiter import Limiter, LimiterRules
from placement.online.selection.sample_path import ServerSamplePath
from placement.support.checks import BoolArray, FloatArray, IntArray, instance_of

__all__ = ["SelectionRun", "check_run", "simulate"]

_REACH, _DONE, _ANSWER, _WAKE, _RETRY, _ISSUE, _HEDGE = range(7)
_Event = tuple[float, int, int, int, float]


@dataclass(frozen=True, eq=False)
class SelectionRun:
    """Run of one policy on one sample path.

    Attributes
    ----------
    policy
        Its name.
    sample
        The path.
    issued
        ms at which each operation reached its client, shape (n,).
    latency
        End-to-end ms of every operation, from reaching the client to the first response that
        counts; shape (n,).
    server
        Server of that response, shape (n,).
    start
        When service began there, ms, shape (n,).
    update
        Whether the operation is an update, shape (n,).
    end_ms
        When the last read was answered; 0 without reads.
    tries, refused
        How often a read asked the bucket of a replica for a token, and got none; both 0 without a
        limiter.
    events
        Operations, network arrivals, completions, responses, wakes, retries, and ends of the wait
        for a duplicate that were processed.
    hedged
        Reads that were sent to a second replica.
    """

    policy: str
    sample: ServerSamplePath
    issued: FloatArray
    latency: FloatArray
    server: IntArray
    start: FloatArray
    update: BoolArray
    end_ms: float
    tries: int
    refused: int
    events: int
    hedged: int

    def latencies(self, warm_up_ms: float = 0.0) -> Latencies:
        """Summarise the reads that reached their client at or after `warm_up_ms`."""
        return summarise(self.latency[(self.issued >= warm_up_ms) & ~self.update])

    def record(self, *, warm_up_ms: float = 0.0, wall_s: float = math.nan) -> RunRecord:
        """Return the simulation as the record of a run; `params` are the fields of the cluster."""
        return RunRecord(
            "selection",
            self.policy,
            {**asdict(self.sample.cluster), "warm_up_ms": warm_up_ms},
            self.sample.seed,
            self.latencies(warm_up_ms),
            throughput=self.throughput,
            wall_s=wall_s,
            extra={"tries": self.tries, "refused": self.refused, "events": self.events},
        )

    @property
    def refused_share(self) -> float:
        """Refused over tries; 0 without tries."""
        return self.refused / self.tries if self.tries else 0.0

    @property
    def throughput(self) -> float:
        """Operations answered per second of simulated time; NaN when no time passed."""
        return self.sample.size / self.end_ms * 1000.0 if self.end_ms else math.nan


def simulate(sample: ServerSamplePath, policy: Policy) -> SelectionRun:
    """Run a policy on a sample path until the last read is answered.

    Parameters
    ----------
    sample
        What happens.
    policy
        Who decides.

    Raises
    ------
    InputError
        When an argument is of another type.
    SolverError
        When the policy ranks a server that is not in the group.

    Notes
    -----
    Per read and copy three events of O(log events pending).
    """
    check_run(sample, policy)
    return _EventLoop(sample, policy).go()


def check_run(sample: object, policy: object) -> None:
    """Check the types of a path and a policy."""
    instance_of(
        sample, ServerSamplePath, "sample", "a ServerSamplePath of placement.online.selection"
    )
    if not isinstance(policy, Policy):
        raise InputError(
            "not a policy", field="policy", value=policy, expected="name, limiter and start()"
        )
    if policy.limiter is not None:
        instance_of(policy.limiter, LimiterRules, "limiter", "LimiterRules or None")


class _EventLoop:
    """State of one run."""

    def __init__(self, sample: ServerSamplePath, policy: Policy) -> None:
        cluster, n = sample.cluster, sample.size
        self.sample, self.name, self.n = sample, policy.name, n
        self.servers = Servers.idle(sample)
        self.selector = policy.start(sample, self.servers)
        self.sees_all = isinstance(self.selector, Clairvoyant)
        pairs = cluster.clients * cluster.servers
        self.limiter = None if policy.limiter is None else Limiter(policy.limiter, pairs)
        self.groups = len(cluster.groups)
        queues = cluster.clients * self.groups
        self.backlogs: list[deque[int]] = [deque() for _ in range(queues if self.limiter else 0)]
        # Lists of Python numbers: an element of an array costs ten times as much to read.
        self.issued: list[float] = [math.nan] * n if cluster.closed else sample.arrival.tolist()
        self.client: list[int] = sample.client.tolist()
        self.group: list[int] = sample.group.tolist()
        self.shadowed: list[bool] = sample.shadowed.tolist()
        self.mix: list[float] = sample.mix.tolist()
        self.replicas: list[list[int]] = cluster.groups.tolist()
        self.means: list[list[float]] = sample.means.tolist()
        self.delay: list[list[float]] = cluster.one_way.tolist()
        self.others = cluster.replication - 1
        self.slots, self.count = cluster.slots, cluster.servers
        self.period = cluster.epoch_ms
        self.closed = cluster.closed
        self.shares = [each.update_share for each in cluster.closed] or [cluster.update_share]
        self.generators = [0] * n  # which of `closed` issued an operation
        self.coming = 0  # operations that were issued
        self.answered = 0
        self.hedge = policy if isinstance(policy, Hedged) else None
        first = self.hedge.initial_ms if self.hedge else math.inf
        self.patience = [first] * cluster.clients
        self.hedged: set[int] = set()
        self.latency = [math.nan] * n
        self.server = [-1] * n
        self.started = [math.nan] * n
        self.heap: list[_Event] = []
        self.sequence = 0
        self.tries = self.refused = self.events = 0
        self.placed: dict[int, int] = {}  # number -> server, of what is on its way or served
        self.begun: dict[int, tuple[float, float]] = {}  # number -> start, time in service

    def push(self, time: float, kind: int, what: int, value: float = 0.0) -> None:
        self.sequence += 1
        heapq.heappush(self.heap, (time, self.sequence, kind, what, value))

    def go(self) -> SelectionRun:
        heap, arrival, n = self.heap, self.issued, self.n
        handle = (
            self.reach, self.done, self.answer, self.wake, self.retry, self.issue, self.duplicate,
        )  # fmt: skip
        for kind, generators in enumerate(self.closed):
            for _ in range(generators.count):
                self.push(generators.joins_ms, _ISSUE, kind)
        coming, waits = 0, 0 if self.closed else n
        now = 0.0
        while self.answered < n:
            self.events += 1
            if coming < waits and (not heap or arrival[coming] <= heap[0][0]):
                self.arrive(coming, arrival[coming])
                coming += 1
                continue
            now, _, kind, what, value = heapq.heappop(heap)
            handle[kind](now, what, value)
        return SelectionRun(
            self.name,
            self.sample,
            np.array(self.issued),
            np.array(self.latency),
            np.array(self.server, dtype=np.intp),
            np.array(self.started),
            np.array(self.servers.update, dtype=np.bool_),
            now,
            self.tries,
            self.refused,
            self.events,
            len(self.hedged),
        )

    def issue(self, now: float, kind: int, _: float) -> None:
        """Let a generator in a closed loop issue the next operation, if there is one."""
        if self.coming < self.n:
            operation = self.coming
            self.coming += 1
            self.issued[operation] = now
            self.generators[operation] = kind
            self.arrive(operation, now)

    def arrive(self, read: int, now: float) -> None:
        client, group = self.client[read], self.group[read]
        if self.mix[read] < self.shares[self.generators[read]]:
            self.update(read, client, group, now)
            return
        if self.limiter is None:
            best = self.selector.rank(read, client, self.replicas[group], now)[0]
            self.dispatch(read, client, group, best, now)
            return
        index = client * self.groups + group
        self.backlogs[index].append(read)
        if len(self.backlogs[index]) == 1:  # else it is asleep, and serves its head first
            self.serve(index, now)

    def update(self, operation: int, client: int, group: int, now: float) -> None:
        """Send an update to all replicas."""
        self.servers.update[operation] = True
        number = operation
        for place, server in enumerate(self.replicas[group]):
            self.send(number, operation, client, server, now, told=self.sees_all)
            number = self.n + operation * self.others + place

    def serve(self, index: int, now: float) -> None:
        """Send the head of a backlog, and the next, until a token is missing."""
        limiter, backlog = self.limiter, self.backlogs[index]
        assert limiter is not None
        client, group = divmod(index, self.groups)
        replicas, base = self.replicas[group], client * self.count
        while backlog:
            read = backlog[0]
            for server in self.selector.rank(read, client, replicas, now):
                self.tries += 1
                if limiter.take(base + server, now):
                    self.dispatch(read, client, group, server, now)
                    backlog.popleft()
                    break
                self.refused += 1
            else:
                waits = [limiter.wait_ms(base + server, now) for server in replicas]
                least = min(waits)
                # Late in a long run a wait may be lost in rounding; time has to pass all the same.
                due = max(now + least, math.nextafter(now, math.inf))
                self.push(due, _WAKE, index, float(replicas[waits.index(least)]))
                return

    def wake(self, now: float, index: int, server: float) -> None:
        assert self.limiter is not None
        self.limiter.wake(index // self.groups * self.count + int(server), now)
        self.push(now, _RETRY, index)  # a separate event: all that wake now, wake before it

    def retry(self, now: float, index: int, _: float) -> None:
        self.serve(index, now)

    def dispatch(self, read: int, client: int, group: int, server: int, now: float) -> None:
        replicas = self.replicas[group]
        if server not in replicas:
            raise SolverError(
                f"{self.name} sends read {read} to server {server}, not one of {replicas}"
            )
        self.server[read] = server
        self.send(read, read, client, server, now)
        if not self.shadowed[read]:
            if self.hedge is not None and self.others:
                due = self.issued[read] + self.patience[client]
                self.push(max(now, due), _HEDGE, read)
            return
        copy = self.n + read * self.others
        for other in replicas:
            if other != server:
                if self.limiter is not None:
                    self.limiter.debit(client * self.count + other)
                self.send(copy, read, client, other, now)
                copy += 1

    def duplicate(self, now: float, read: int, _: float) -> None:
        """Send a read that is not answered yet to the best of the other replicas."""
        if not math.isnan(self.latency[read]):
            return
        client, first = self.client[read], self.server[read]
        ranked = self.selector.rank(read, client, self.replicas[self.group[read]], now)
        other = next((server for server in ranked if server != first), None)
        if other is None:
            return
        if self.limiter is not None:
            self.limiter.debit(client * self.count + other)
        self.hedged.add(read)
        self.send(self.n + read * self.others, read, client, other, now)

    def send(
        self, number: int, read: int, client: int, server: int, now: float, *, told: bool = True
    ) -> None:
        reach = now + self.delay[client][server]
        self.servers.send(number, server, now, reach)
        self.placed[number] = server
        if told:
            self.selector.sent(number, read, client, server, now)
        self.push(reach, _REACH, number)

    def reach(self, now: float, number: int, _: float) -> None:
        server = self.placed[number]
        self.servers.coming[server].pop(0)  # the first to reach it
        self.servers.line[server].append(number)
        if self.servers.busy[server] < self.slots:
            self.begin(server, now)

    def begin(self, server: int, now: float) -> None:
        """Start the first in line."""
        servers = self.servers
        number = servers.line[server].popleft()
        epoch = math.floor(now / self.period) % len(self.means) if len(self.means) > 1 else 0
        service = servers.work_of(number) * self.means[epoch][server]
        servers.busy[server] += 1
        servers.ends[server].append(now + service)
        self.begun[number] = now, service
        self.push(now + service, _DONE, number)

    def done(self, now: float, number: int, _: float) -> None:
        servers, server = self.servers, self.placed[number]
        servers.busy[server] -= 1
        servers.ends[server].remove(now)
        if servers.line[server]:
            self.begin(server, now)
        waiting = len(servers.line[server])
        back = self.delay[self.client[self.operation(number)]][server]
        self.push(now + back, _ANSWER, number, float(waiting))

    def operation(self, number: int) -> int:
        """Operation that a number belongs to."""
        return number if number < self.n else (number - self.n) // self.others

    def answer(self, now: float, number: int, waiting: float) -> None:
        server = self.placed.pop(number)
        start, service = self.begun.pop(number)
        sent = self.servers.sent.pop(number)
        del self.servers.reach[number]
        read = self.operation(number)
        client, update = self.client[read], self.servers.update[read]
        if not update:
            self.selector.answered(client, server, now - sent, service, int(waiting), now)
            if self.limiter is not None:
                self.limiter.answered(client * self.count + server, now)
        if not (number < self.n or update or read in self.hedged):
            return
        if math.isnan(self.latency[read]):
            self.started[read] = start
            self.first_answer(read, client, server, now)

    def first_answer(self, read: int, client: int, server: int, now: float) -> None:
        latency = self.latency[read] = now - self.issued[read]
        self.server[read] = server
        self.answered += 1
        if self.hedge is not None and not self.servers.update[read]:
            slower, other = self.hedge.factors
            self.patience[client] *= slower if latency > self.patience[client] else other
        if self.closed:
            self.issue(now, self.generators[read], 0.0)
