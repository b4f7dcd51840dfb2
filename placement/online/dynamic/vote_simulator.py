"""The whole system of votes, second by second: servers, summaries of clients, copies, latencies.

A client knows one Bloom filter per preferred site (Matri et al. 2018, section 8). Filters are
rbloom's (extra ``online``), with a hash of our own: Python's default hash differs between processes
for strings, and a filter travels.

The servers are those of sections 6 and 7. With rounds of t seconds, the summary of round q is
*active* in [q·t, (q + 1)·t). It is *complete* once gossip has brought all summaries to all nodes;
copies are created then. It is *serving* in [(q + 2)·t, (q + 3)·t): from then on it counts for
deletions, for the filters of clients, and for flagging their errors. Clocks are synchronous. All
nodes have the same view, since they merge the same summaries in a way that does not depend on
order.

Latency is network time only: nodes never queue. A tick's requests see the state at its beginning.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any

import numpy as np

from placement.errors import MissingDependencyError, require
from placement.online.dynamic.store_demand import (
    Generators,
    HotSetWorld,
    RequestWorkload,
    Tick,
    TickLog,
    WriteKeys,
    requests,
)
from placement.online.dynamic.vote_counting import CopySet, merge, most_voted, summary_of, top
from placement.online.simulation import check_fields
from placement.support.checks import BoolArray, FloatArray, IntArray, instance_of, number

_MASK = (1 << 64) - 1

_ROUND_S, _GOSSIP_S = 10.0, 2.0
"""Seconds of a round, and from its end until its summary is complete."""


def spread(key: int) -> int:
    """Return a 127-bit hash of a whole number >= 0, the same everywhere: SplitMix64, twice."""
    first = _mix(key + 0x9E3779B97F4A7C15)
    second = _mix(first ^ 0xD1B54A32D192ED03)
    return (first >> 1) << 64 | second


def _mix(value: int) -> int:
    value &= _MASK
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB & _MASK
    return value ^ (value >> 31)


class BloomSummary:
    """The dynamic copies of one site, approximately, with `error` false positives for `room` keys.

    More keys raise the error. Size it for the copies there may be, R = k·(1 + λ·g), not for k.
    """

    def __init__(self, keys: Iterable[int], room: int, error: float = 0.001) -> None:
        try:
            from rbloom import Bloom
        except ImportError:
            raise MissingDependencyError.of("Bloom filters need rbloom", "online") from None
        expected = "room for one key, and an error between 0 and 1"
        require(room >= 1 and 0 < error < 1, "room, error", "out of range", (room, error), expected)
        self._bloom: Any = Bloom(room, error, spread)
        self._bloom.update(keys)

    def __contains__(self, key: int) -> bool:
        return key in self._bloom

    def among(self, keys: IntArray) -> BoolArray:
        """Return whether each key seems to be in, shape (keys,)."""
        inside = self._bloom
        return np.array([key in inside for key in keys.tolist()], dtype=bool)

    @property
    def bits(self) -> int:
        """Size in bits."""
        return int(self._bloom.size_in_bits)


def refresh_due(requests: IntArray, errors: IntArray) -> BoolArray:
    """Return whether clients fetch new summaries: at 5 % of errors in at least 100 requests."""
    return np.asarray((requests >= 100) & (errors >= 0.05 * requests))


class WriteForwarding(StrEnum):
    """Moment at which a write is done. The paper does not say; the store's own protocol decides."""

    ALL = "all"
    """When every copy has it, static and dynamic."""
    SITES = "sites"
    """When every site has answered: evictions from caches, broadcast and acknowledged."""


def write_rtt(
    rtt: FloatArray,
    coordinator: IntArray,
    held: BoolArray,
    home: IntArray,
    key: IntArray,
    forwarding: WriteForwarding,
) -> FloatArray:
    """Latency in ms of writes of `key` from `home`, shape (writes,).

    rtt[i, a] + max over the other sites j that must answer of rtt[a, j], a the coordinator: the
    closest static site, shape (sites, objects) as `held`, the static and dynamic copies. Another
    copy within a's site is not waited for.
    """
    first = coordinator[home, key]
    result: FloatArray = rtt[home, first].copy()
    slowest = np.zeros(len(key))
    for site in range(len(rtt)):
        waited = (first != site) & ((forwarding is WriteForwarding.SITES) | held[site, key])
        np.maximum(slowest, np.where(waited, rtt[first, site], 0.0), out=slowest)
    return result + slowest


@dataclass(frozen=True, slots=True)
class VoteSettings:
    """Parameters of the mechanism; the defaults are the paper's, with k and counters scaled."""

    k: int  #: objects that get a dynamic copy at each site; 10 000 of 20 million in the paper
    counters: int | None = None  #: Space-Saving counters of each node for each site; None: k
    grace: int = 3  #: g: serving summaries in a row without a key before its copy is deleted
    bloom_error: float = 0.001  #: false positives that filters are sized for; 0: exact lists

    def __post_init__(self) -> None:
        counts = {"k": 1, "grace": 1}
        if self.counters is not None:
            counts["counters"] = 1
        check_fields(self, counts=counts)
        number(self.bloom_error, "bloom_error", maximum=math.nextafter(1.0, 0.0))


class VoteCluster:
    """State of the servers of one instance."""

    def __init__(self, world: HotSetWorld, settings: VoteSettings) -> None:
        self.settings = settings
        self.sites = world.geography.count
        self.objects = len(world.keys)
        self.static: BoolArray = world.ring.static_sites(world.keys, world.static_copies)
        self.contact: IntArray = world.ring.contacts(world.keys, world.static_copies)
        self.copies = CopySet(self.static, settings.grace)
        self.complete: BoolArray | None = None
        """Top-k of the newest complete summary, shape (sites, objects)."""
        self.votes_of_complete: IntArray | None = None
        """Exact votes of the round it is about, shape (sites, objects)."""
        self.told: BoolArray = np.zeros_like(self.static)
        """Union of the last g serving lists: told to clients, and the reference for errors."""
        self.version = 0
        """Number of serving summaries so far."""
        self.created = 0
        """Copies created so far."""
        self._ballots: list[tuple[IntArray, IntArray, IntArray]] = []
        self._pending: dict[int, tuple[BoolArray, IntArray]] = {}
        self._serving: deque[BoolArray] = deque(maxlen=settings.grace)
        self._round = 0
        self._completed = 0
        self._served = 0

    def vote(self, contact: IntArray, site: IntArray, key: IntArray) -> None:
        """Count votes: the site whose node was asked, the site voted for, and the key, in order."""
        self._ballots.append((contact, site, key))

    def advance(self, now: float) -> None:
        """Carry out the events due by second `now`: close rounds, complete and serve summaries."""
        while now >= (self._round + 1) * _ROUND_S - 1e-9:
            self._pending[self._round] = self._close()
            self._ballots = []
            self._round += 1
        while now >= (self._completed + 1) * _ROUND_S + _GOSSIP_S - 1e-9:
            found = self._pending.get(self._completed)
            if found is not None:
                self.complete, self.votes_of_complete = found
                self.created += self.copies.create(found[0])
            self._completed += 1
        while now >= (self._served + 2) * _ROUND_S - 1e-9:
            found = self._pending.pop(self._served, None)
            if found is not None:
                self.copies.judge(found[0])
                self._serving.append(found[0])
                self.told = np.logical_or.reduce(list(self._serving))
                self.version += 1
            self._served += 1

    def _close(self) -> tuple[BoolArray, IntArray]:
        """Merge the counters of all nodes; the top-k of each site, and the exact votes."""
        empty = np.zeros(0, dtype=np.intp)
        contact, site, key = (
            np.concatenate([ballot[part] for ballot in self._ballots] or [empty])
            for part in range(3)
        )
        popular = np.zeros_like(self.static)
        exact = np.zeros(self.static.shape, dtype=np.intp)
        node = self.contact[contact, key]
        counters = self.settings.counters or self.settings.k
        for target in range(self.sites):
            mine = site == target
            nodes, keys = node[mine], key[mine]
            exact[target] = np.bincount(keys, minlength=self.objects)
            order = np.argsort(nodes, kind="stable")
            starts = np.searchsorted(nodes[order], np.arange(self.contact.max(initial=0) + 2))
            summaries = [
                summary_of(keys[order[a:b]], counters)
                for a, b in pairwise(starts.tolist())
                if b > a
            ]
            merged = merge(summaries, max(counters, self.settings.k))
            popular[target, top(merged, self.settings.k)] = True
        return popular, exact


@dataclass(frozen=True, eq=False)
class SimulationTrace:
    """Figures of a run per tick; NaN without reads or writes, or before anything is identified."""

    time: FloatArray  #: start of each tick in s
    #: `read_ms`, `write_ms`: mean latency
    read_ms: FloatArray
    write_ms: FloatArray
    #: `false_positive`, `false_negative`: share of reads whose client expected a copy that was not
    #: there, or missed a better one
    false_positive: FloatArray
    false_negative: FloatArray
    #: `identified`, `identified_best`: share of the hot (object, site) pairs, and of the hottest
    #: tenth, in the newest complete summary. Hot are the k objects that the clients at a site read
    #: most by their current chances, those with a static copy there left out.
    identified: FloatArray
    identified_best: FloatArray
    #: `active`, `correct`: mean number of dynamic copies per site, and of hot copies among them
    active: FloatArray
    correct: FloatArray
    restarts: tuple[float, ...]  #: seconds at which a generator restarted
    refreshes: int  #: summaries fetched by all clients in the whole run
    created: int  #: copies created in the whole run
    #: per complete summary, the share of the exact k most voted-for pairs of its round that it has
    recall: FloatArray
    #: latencies of all reads in ms with their number, as (values, counts)
    reads: tuple[FloatArray, IntArray]


def hot_sets(generators: Generators, static: BoolArray, k: int) -> BoolArray:
    """Return the k objects that clients at each site read most, shape (sites, objects).

    By their chances, without objects that have a static copy there; ties to the smaller object.
    """
    rates = np.where(static, 0.0, generators.reads(len(static)))
    result = np.zeros(static.shape, dtype=bool)
    for site, row in enumerate(rates):
        result[site, most_voted(row, k)] = True
    return result


def simulate(
    world: HotSetWorld, workload: RequestWorkload, settings: VoteSettings, seed: int
) -> SimulationTrace:
    """Simulate one run; the seed is that of the requests, the same for policies to compare.

    O(requests · longest preference list + ticks · sites · objects).
    """
    instance_of(
        workload, RequestWorkload, "workload", "a RequestWorkload of placement.online.dynamic"
    )
    instance_of(world, HotSetWorld, "world", "a HotSetWorld of placement.online.dynamic")
    instance_of(settings, VoteSettings, "settings", "VoteSettings of placement.online.dynamic")
    words, expected = "a tick spans more than a round", f"at most {_ROUND_S} s"
    require(workload.tick <= _ROUND_S, "tick", words, workload.tick, expected)
    run = _ReplicationRun(world, settings, workload.write_keys)
    for tick in requests(world, workload, seed):
        run.step(tick)
    return run.trace()


class _ReplicationRun:
    """State of a simulation."""

    def __init__(self, world: HotSetWorld, settings: VoteSettings, write_keys: WriteKeys) -> None:
        self._settings, self._write_keys = settings, write_keys
        self._cluster = VoteCluster(world, settings)
        self._clients = VotingClients(world, settings)
        problem = world.problem(settings.k)
        self._rtt = world.geography.rtt
        self._static = problem.static
        self._closest = problem.closest_static
        self._hot = hot_sets(world.generators, self._static, settings.k)
        self._best = hot_sets(world.generators, self._static, max(1, settings.k // 10))
        lists = world.geography.preferred
        self._lists = np.full((len(lists), max(map(len, lists))), -1, dtype=np.intp)
        for site, row in enumerate(lists):
            self._lists[site, : len(row)] = row
        self._log = TickLog()
        self._restarts: list[float] = []
        self._recall: list[float] = []
        self._judged: BoolArray | None = None

    def step(self, tick: Tick) -> None:
        """Simulate one tick."""
        self._cluster.advance(tick.start)
        if tick.restarted:
            self._restarts.append(tick.start)
            k = self._settings.k
            self._hot = hot_sets(tick.generators, self._static, k)
            self._best = hot_sets(tick.generators, self._static, max(1, k // 10))
        self._judge()
        reading = ~tick.write
        latency, positive, negative = self._read(tick.generator[reading], tick.key[reading])
        writes = write_rtt(
            self._rtt,
            self._closest,
            self._static | self._cluster.copies.active
            if self._write_keys == "read"
            else self._static,
            self._clients.site[tick.generator[tick.write]],
            tick.key[tick.write],
            WriteForwarding.ALL,
        )
        active = self._cluster.copies.active
        self._log.add(
            tick.start,
            latency,
            writes,
            positive,
            negative,
            self._share(self._hot),
            self._share(self._best),
            float(active.sum()) / len(active),
            float((active & self._hot).sum()) / len(active),
        )

    def _share(self, wanted: BoolArray) -> float:
        complete, total = self._cluster.complete, int(wanted.sum())
        if complete is None or total == 0:
            return float("nan")
        return float((complete & wanted).sum()) / total

    def _judge(self) -> None:
        """Compare a new complete summary with the exact votes of its round."""
        complete, votes = self._cluster.complete, self._cluster.votes_of_complete
        if complete is None or votes is None or complete is self._judged:
            return
        self._judged = complete
        found = wanted = 0
        for site, row in enumerate(votes):
            best = most_voted(row, self._settings.k)
            wanted += len(best)
            found += int(complete[site, best].sum())
        self._recall.append(found / wanted if wanted else float("nan"))

    def _read(self, client: IntArray, key: IntArray) -> tuple[FloatArray, BoolArray, BoolArray]:
        """Latency, false positive and false negative of each read; casts the votes on the way."""
        clients, cluster, active = self._clients, self._cluster, self._cluster.copies.active
        home, index = clients.site[client], np.arange(len(key))
        contact = self._closest[home, key]
        looking = np.ones(len(key), dtype=bool)
        missed = np.zeros(len(key), dtype=bool)
        ballots: list[tuple[IntArray, IntArray]] = []  # requests, and the site they vote for
        for column in self._lists.T:
            site = column[home]
            asked = looking & (site >= 0)
            here = self._static[site, key]
            going = asked & (here | clients.believed[client, site, key])
            contact = np.where(going, site, contact)
            passed = asked & ~going
            missed |= passed & cluster.told[site, key]
            ballots.append((index[passed], site[passed]))
            looking &= ~going
        dynamic = active[contact, key]
        absent = ~dynamic & ~self._static[contact, key]
        ballots.append((index[dynamic], contact[dynamic]))
        # The nodes that were asked get the votes in the order of the requests.
        request, vote = (np.concatenate(part) for part in zip(*ballots, strict=True))
        order = np.argsort(request, kind="stable")
        request, vote = request[order], vote[order]
        cluster.vote(contact[request], vote, key[request])
        latency = self._rtt[home, contact]
        # A node without the copy relays to the closest static one and hands the answer back.
        latency += np.where(absent, self._rtt[contact, self._closest[contact, key]], 0.0)
        errors = np.bincount(client[absent | missed], minlength=len(clients.site))
        clients.note(np.bincount(client, minlength=len(clients.site)), errors, cluster)
        return latency, absent, missed

    def trace(self) -> SimulationTrace:
        """Return the trace of the run."""
        columns, recall = self._log.columns(), np.array(self._recall)
        rest = (self._clients.refreshes, self._cluster.created, recall, self._log.reads())
        return SimulationTrace(*(*columns, tuple(self._restarts), *rest))


class VotingClients:
    """Clients, one per generator, each with its summaries and its count of errors."""

    def __init__(self, world: HotSetWorld, settings: VoteSettings) -> None:
        self._settings = settings
        self._preferred = world.geography.preferred
        self.site: IntArray = world.generators.site
        self.refreshes = 0
        sites, objects = world.geography.count, len(world.keys)
        self.believed: BoolArray = np.zeros((len(self.site), sites, objects), dtype=bool)
        """Whether client c believes that site s has an object, shape (clients, sites, objects)."""
        self._requests, self._errors = np.zeros((2, len(self.site)), dtype=np.intp)
        self._made: dict[int, BoolArray] = {}
        self._version = -1

    def note(self, requests: IntArray, errors: IntArray, cluster: VoteCluster) -> None:
        """Count a tick's requests and errors per client; refresh where that is due."""
        self._requests += requests
        self._errors += errors
        due = refresh_due(self._requests, self._errors)
        for client in np.flatnonzero(due).tolist():
            for site in self._preferred[self.site[client]]:
                self.believed[client, site] = self._summary(site, cluster)
        self._requests[due] = self._errors[due] = 0
        self.refreshes += int(due.sum())

    def _summary(self, site: int, cluster: VoteCluster) -> BoolArray:
        """The summary of a site as it is now, looked up for every object; made once a round."""
        if self._version != cluster.version:
            self._made, self._version = {}, cluster.version
        if site not in self._made:
            keys = np.flatnonzero(cluster.told[site])
            if self._settings.bloom_error == 0:
                inside = cluster.told[site].copy()
            else:
                room = max(1, round(1.5 * self._settings.k))
                bloom = BloomSummary(keys.tolist(), room, self._settings.bloom_error)
                inside = bloom.among(np.arange(cluster.objects))
            self._made[site] = inside
        return self._made[site]
