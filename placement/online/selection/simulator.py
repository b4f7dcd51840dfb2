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

from placement.checks import FloatArray, IntArray, instance_of
from placement.errors import InputError, SolverError
from placement.online.run_records import Latencies, RunRecord, summarise
from placement.online.selection.policy import Policy, Servers
from placement.online.selection.rate_limiter import Limiter, LimiterRules
from placement.online.selection.sample_path import ServerSamplePath

__all__ = ["SelectionRun", "check_run", "simulate"]

_REACH, _DONE, _ANSWER, _WAKE, _RETRY = range(5)
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
    latency
        End-to-end ms of every read, from reaching the client to the response; shape (n,).
    server
        Who served it, shape (n,).
    start
        When service began, ms, shape (n,).
    end_ms
        When the last read was answered; 0 without reads.
    tries, refused
        How often a read asked the bucket of a replica for a token, and got none; both 0 without a
        limiter.
    events
        Reads, network arrivals, completions, responses, wakes and retries that were processed.
    """

    policy: str
    sample: ServerSamplePath
    latency: FloatArray
    server: IntArray
    start: FloatArray
    end_ms: float
    tries: int
    refused: int
    events: int

    def latencies(self, warm_up_ms: float = 0.0) -> Latencies:
        """Summarise the reads that reached their client at or after `warm_up_ms`."""
        return summarise(self.latency[self.sample.arrival >= warm_up_ms])

    def record(self, *, warm_up_ms: float = 0.0, wall_s: float = math.nan) -> RunRecord:
        """Return it as the record of a run; `params` are the fields of the cluster."""
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
        """Reads answered per second of simulated time; NaN when no time passed."""
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
        pairs = cluster.clients * cluster.servers
        self.limiter = None if policy.limiter is None else Limiter(policy.limiter, pairs)
        self.backlogs: list[deque[int]] = [deque() for _ in range(pairs if self.limiter else 0)]
        # Lists of Python numbers: an element of an array costs ten times as much to read.
        self.arrival: list[float] = sample.arrival.tolist()
        self.client: list[int] = sample.client.tolist()
        self.group: list[int] = sample.group.tolist()
        self.shadowed: list[bool] = sample.shadowed.tolist()
        self.replicas: list[list[int]] = cluster.groups.tolist()
        self.means: list[list[float]] = sample.means.tolist()
        self.others = cluster.replication - 1
        self.slots, self.count, self.delay = cluster.slots, cluster.servers, cluster.one_way_ms
        self.period = cluster.epoch_ms
        self.latency = [math.nan] * n
        self.server = [-1] * n
        self.started = [math.nan] * n
        self.heap: list[_Event] = []
        self.sequence = 0
        self.tries = self.refused = self.events = 0
        self.placed: dict[int, int] = {}  # number -> server, of what is on its way or served
        self.begun: dict[int, float] = {}  # number -> start of service

    def push(self, time: float, kind: int, what: int, value: float = 0.0) -> None:
        self.sequence += 1
        heapq.heappush(self.heap, (time, self.sequence, kind, what, value))

    def go(self) -> SelectionRun:
        heap, arrival, n = self.heap, self.arrival, self.n
        handle = (self.reach, self.done, self.answer, self.wake, self.retry)
        coming = answered = 0
        now = 0.0
        while answered < n:
            self.events += 1
            if coming < n and (not heap or arrival[coming] <= heap[0][0]):
                self.arrive(coming, arrival[coming])
                coming += 1
                continue
            now, _, kind, what, value = heapq.heappop(heap)
            handle[kind](now, what, value)
            answered += kind == _ANSWER and what < n
        return SelectionRun(
            self.name,
            self.sample,
            np.array(self.latency),
            np.array(self.server, dtype=np.intp),
            np.array(self.started),
            now,
            self.tries,
            self.refused,
            self.events,
        )

    def arrive(self, read: int, now: float) -> None:
        client, group = self.client[read], self.group[read]
        if self.limiter is None:
            best = self.selector.rank(read, client, self.replicas[group], now)[0]
            self.dispatch(read, client, group, best, now)
            return
        index = client * self.count + group
        self.backlogs[index].append(read)
        if len(self.backlogs[index]) == 1:  # else it is asleep, and serves its head first
            self.serve(index, now)

    def serve(self, index: int, now: float) -> None:
        """Send the head of a backlog, and the next, until a token is missing."""
        limiter, backlog = self.limiter, self.backlogs[index]
        assert limiter is not None
        client, group = divmod(index, self.count)
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
        self.limiter.wake(index // self.count * self.count + int(server), now)
        self.push(now, _RETRY, index)  # an event of its own: all that wake now, wake before it

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
            return
        copy = self.n + read * self.others
        for other in replicas:
            if other != server:
                if self.limiter is not None:
                    self.limiter.debit(client * self.count + other)
                self.send(copy, read, client, other, now)
                copy += 1

    def send(self, number: int, read: int, client: int, server: int, now: float) -> None:
        servers = self.servers
        servers.line[server].append(number)
        servers.in_flight[server] += 1
        servers.sent[number] = now
        self.placed[number] = server
        self.selector.sent(number, read, client, server, now)
        self.push(now + self.delay, _REACH, number)

    def reach(self, now: float, number: int, _: float) -> None:
        server = self.placed[number]
        self.servers.in_flight[server] -= 1
        if self.servers.busy[server] < self.slots:
            self.begin(server, now)

    def begin(self, server: int, now: float) -> None:
        """Start the first in line; delays are equal, so that it has arrived."""
        servers = self.servers
        number = servers.line[server].popleft()
        epoch = math.floor(now / self.period) % len(self.means) if len(self.means) > 1 else 0
        service = servers.work_of(number) * self.means[epoch][server]
        servers.busy[server] += 1
        servers.ends[server].append(now + service)
        self.begun[number] = service
        if number < self.n:
            self.started[number] = now
        self.push(now + service, _DONE, number)

    def done(self, now: float, number: int, _: float) -> None:
        servers, server = self.servers, self.placed[number]
        servers.busy[server] -= 1
        servers.ends[server].remove(now)
        if len(servers.line[server]) > servers.in_flight[server]:
            self.begin(server, now)
        waiting = len(servers.line[server]) - servers.in_flight[server]
        self.push(now + self.delay, _ANSWER, number, float(waiting))

    def answer(self, now: float, number: int, waiting: float) -> None:
        server = self.placed.pop(number)
        service = self.begun.pop(number)
        sent = self.servers.sent.pop(number)
        read = number if number < self.n else (number - self.n) // self.others
        client = self.client[read]
        self.selector.answered(client, server, now - sent, service, int(waiting), now)
        if self.limiter is not None:
            self.limiter.answered(client * self.count + server, now)
        if number < self.n:
            self.latency[read] = now - self.arrival[read]
