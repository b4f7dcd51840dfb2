"""Writes to objects with dynamic copies, message by message, and a check that copies keep up.

Matri et al. 2018, section 7.3, argue that every write reaches every dynamic copy: a copy is created
only after all static nodes have acknowledged its registration, and they hear of its deletion only
after it was made inactive. Here one object, its static nodes and the sites of its dynamic copies
exchange messages with delays of an adversary. Most delays are short, some are very long, and lost
messages are sent again. A separate checker (:func:`placement.online.reads.linearizability.check`)
then looks for reads that returned less than a write which was acknowledged before they began.

The paper leaves four things open on which the claim depends; each is a field of
:class:`ProtocolSettings`:

- `in_order`: what one node sends another arrives in the order of sending. Otherwise a write that
  was under way before a registration may reach the primary after it has sent the copy.
- `keep_early`: a site keeps writes that reach it before its copy does.
- `incarnations`: a deletion names the copy that it deletes. Otherwise a late deletion of an earlier
  copy removes the registration of the next one.
- `persist`: static nodes remember registrations over a restart (the paper asks for it).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from itertools import count

import numpy as np

from placement.online.reads.linearizability import HistoryEntry, Violations, check
from placement.online.simulation import EventLoop, check_fields, checked_seed
from placement.support.checks import instance_of, number


@dataclass(frozen=True, slots=True)
class ProtocolSettings:
    """Sites, load, adversary, and assumptions of the protocol; for the last four see the module."""

    static: int = 3  #: static nodes, the first is the primary
    dynamic: int = 3  #: sites for dynamic copies
    _: KW_ONLY
    rounds: int = 40  #: in each, each site is popular with probability 1/2
    round_ms: float = 100.0
    reads: float = 30.0  #: per round, on average
    #: per round; acknowledged when all copies have it that its coordinator, a random static node,
    #: knows
    writes: float = 10.0
    delay_ms: float = 2.0  #: mean delay of a message (exponential)
    slow: float = 0.1  #: part of the messages that take `slow_factor` times as long
    slow_factor: float = 40.0
    loss: float = 0.0  #: probability; a lost message is sent again after ten mean delays
    lost_rounds: float = 0.1  #: probability that a node misses the popularity list of a round
    skew_ms: float = 30.0  #: largest error of the clock of a node
    #: of static nodes per round, on average; writes that such a node coordinates are never
    #: acknowledged
    restarts: float = 0.0
    in_order: bool = True
    keep_early: bool = True
    incarnations: bool = True
    persist: bool = True

    def __post_init__(self) -> None:
        rates = ("reads", "writes", "skew_ms", "restarts")
        check_fields(
            self,
            counts={"static": 1, "dynamic": 1, "rounds": 1},
            least={**dict.fromkeys(rates, 0.0), "slow_factor": 1.0},
            positive=("round_ms", "delay_ms"),
            flags=("in_order", "keep_early", "incarnations", "persist"),
        )
        for name in ("slow", "loss", "lost_rounds"):
            number(getattr(self, name), name, maximum=0.99)


@dataclass(frozen=True, eq=False)
class ProtocolRun:
    """History of one object, and the state in which it ended."""

    #: `settings`, `seed`: what was simulated
    settings: ProtocolSettings
    seed: int
    #: reads and writes; a write that was never acknowledged has an infinite end
    history: tuple[HistoryEntry, ...]
    #: active copies, static and dynamic, that have not the last version once all messages have
    #: arrived
    behind: int
    #: `created`, `deleted`: dynamic copies
    created: int
    deleted: int
    dynamic_reads: int  #: reads that a dynamic copy served

    def violations(self) -> Violations:
        """Check the history; only `stale` reads are against the claim.

        Reads from one copy may go backwards while a write is under way, with static copies alone
        too, and writes of several coordinators take numbers before they are ordered.
        """
        return check(self.history)


def simulate_protocol(settings: ProtocolSettings, seed: int) -> ProtocolRun:
    """Simulate one object in O(messages log messages).

    The same seed gives settings that differ in their assumptions alone the same popularity and the
    same clocks.
    """
    instance_of(settings, ProtocolSettings, "settings", "ProtocolSettings")
    run = _ProtocolSimulation(settings, np.random.SeedSequence(checked_seed(seed)))
    run.go()
    return ProtocolRun(
        settings, seed, tuple(run.history()), run.behind(), run.created, run.deleted,
        run.dynamic_reads,
    )  # fmt: skip


@dataclass(slots=True)
class _PendingWrite:
    """A write under way at its coordinator."""

    version: int
    start: float
    coordinator: int
    waiting: int = 0
    end: float = float("inf")
    dropped: bool = False


class _ProtocolSimulation(EventLoop):
    """Nodes 0 … static − 1 hold static copies, the others may hold a dynamic one each."""

    def __init__(self, settings: ProtocolSettings, seed: np.random.SeedSequence) -> None:
        super().__init__()
        self.settings = s = settings
        load, lists, clocks, network = (np.random.default_rng(child) for child in seed.spawn(4))
        self.load, self.network = load, network
        self.nodes = s.static + s.dynamic
        self.popular = lists.random((s.rounds, self.nodes)) < 0.5
        self.missed = lists.random((s.rounds, self.nodes)) < s.lost_rounds
        self.skew = clocks.uniform(-s.skew_ms, s.skew_ms, self.nodes)
        self.version = [0] * self.nodes
        self.early = [0] * self.nodes
        self.active = [node < s.static for node in range(self.nodes)]
        self.incarnation = [0] * self.nodes
        self.registered: list[dict[int, int]] = [{} for _ in range(s.static)]
        self.creating: dict[int, tuple[int, set[int]]] = {}
        self.copies = count(1)
        self.written: list[_PendingWrite] = []
        self.entries: list[HistoryEntry] = []
        self.latest: dict[tuple[int, int], float] = {}
        self.created = self.deleted = self.dynamic_reads = 0

    # Time and messages

    def send(
        self, sender: int, receiver: int, handler: Callable[..., None], *arguments: object
    ) -> None:
        s = self.settings
        delay = self.network.exponential(s.delay_ms)
        if self.network.random() < s.slow:
            delay *= s.slow_factor
        while s.loss and self.network.random() < s.loss:
            delay += 10 * s.delay_ms
        due = self.now + delay
        if s.in_order:
            due = max(due, self.latest.get((sender, receiver), 0.0))
            self.latest[sender, receiver] = due
        self.at(due, handler, *arguments)

    def go(self) -> None:
        """Draw the load and the rounds, then work off all events."""
        s, load = self.settings, self.load
        end = s.rounds * s.round_ms
        for turn in range(s.rounds):
            for node in [0, *range(s.static, self.nodes)]:
                if not self.missed[turn, node]:
                    wait = 0.2 if node == 0 else 1.0  # complete, serving
                    due = (turn + 1 + wait) * s.round_ms + self.skew[node]
                    self.at(due, self.create if node == 0 else self.judge, turn, node)
        for times, handler in (
            (s.writes, self.write),
            (s.reads, self.read),
            (s.restarts, self.restart),
        ):
            for time in np.sort(load.uniform(0, end, load.poisson(times * s.rounds))).tolist():
                below = self.nodes if handler == self.read else s.static
                self.at(time, handler, int(load.integers(below)))
        self.run_events()

    # Life of copies

    def create(self, turn: int, primary: int) -> None:
        """Register, at all other static nodes, each popular site that has no copy."""
        for site in range(self.settings.static, self.nodes):
            known = site in self.registered[primary] or site in self.creating
            if self.popular[turn, site] and not known:
                incarnation = next(self.copies)
                others = set(range(1, self.settings.static))
                self.creating[site] = incarnation, others
                for node in others:
                    self.send(primary, node, self.register, node, site, incarnation)
                if not others:
                    self.copy(site, incarnation)

    def register(self, node: int, site: int, incarnation: int) -> None:
        self.registered[node][site] = incarnation
        self.send(node, 0, self.acknowledged, node, site, incarnation)

    def acknowledged(self, node: int, site: int, incarnation: int) -> None:
        expected, missing = self.creating.get(site, (0, set()))
        if expected == incarnation:
            missing.discard(node)
            if not missing:
                self.copy(site, incarnation)

    def copy(self, site: int, incarnation: int) -> None:
        """Register at the primary too, and send the object."""
        del self.creating[site]
        self.registered[0][site] = incarnation
        self.send(0, site, self.install, site, incarnation, self.version[0])

    def install(self, site: int, incarnation: int, version: int) -> None:
        self.version[site] = max(version, self.early[site] if self.settings.keep_early else 0)
        self.active[site] = True
        self.incarnation[site] = incarnation
        self.created += 1

    def judge(self, turn: int, site: int) -> None:
        """Delete the copy of a site that is no longer popular: first make it inactive."""
        if self.active[site] and not self.popular[turn, site]:
            self.active[site] = False
            self.deleted += 1
            for node in range(self.settings.static):
                self.send(site, node, self.unregister, node, site, self.incarnation[site])

    def unregister(self, node: int, site: int, incarnation: int) -> None:
        current = self.registered[node].get(site)
        if current is not None and (current == incarnation or not self.settings.incarnations):
            del self.registered[node][site]

    def restart(self, node: int) -> None:
        """Restart a static node: its open rounds are lost."""
        if not self.settings.persist:
            self.registered[node] = {}
        if node == 0:
            self.creating = {}
        for write in self.written:
            if write.coordinator == node and write.waiting:
                write.dropped = True

    # Operations

    def write(self, node: int) -> None:
        write = _PendingWrite(len(self.written) + 1, self.now, node)
        self.written.append(write)
        self.version[node] = max(self.version[node], write.version)
        targets = [other for other in range(self.settings.static) if other != node]
        targets += list(self.registered[node])
        write.waiting = len(targets)
        for target in targets:
            self.send(node, target, self.apply, target, write)
        if not targets:
            write.end = self.now

    def apply(self, node: int, write: _PendingWrite) -> None:
        if self.active[node]:
            self.version[node] = max(self.version[node], write.version)
        self.early[node] = max(self.early[node], write.version)
        self.send(node, write.coordinator, self.answered, write)

    def answered(self, write: _PendingWrite) -> None:
        if not write.dropped:
            write.waiting -= 1
            if not write.waiting:
                write.end = self.now

    def read(self, node: int) -> None:
        """Read the copy of a site, or have a static node answer."""
        if self.active[node]:
            self.dynamic_reads += node >= self.settings.static
            self.entries.append(HistoryEntry(0, True, self.now, self.now, self.version[node]))
            return
        nearest = int(self.load.integers(self.settings.static))
        self.send(node, nearest, self.relay, nearest, node, self.now)

    def relay(self, node: int, site: int, start: float) -> None:
        self.send(node, site, self.relayed, start, self.version[node])

    def relayed(self, start: float, version: int) -> None:
        self.entries.append(HistoryEntry(0, True, start, self.now, version))

    # The end

    def history(self) -> list[HistoryEntry]:
        """Return reads and writes."""
        writes = [HistoryEntry(0, False, w.start, w.end, w.version) for w in self.written]
        return [*writes, *self.entries]

    def behind(self) -> int:
        """Number of active copies without the last version."""
        last = len(self.written)
        return sum(a and v < last for a, v in zip(self.active, self.version, strict=True))
