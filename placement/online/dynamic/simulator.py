"""Simulation of the whole system: clients, nodes, votes, copies, second by second.

Latency is network time only: nodes never queue. A tick's requests see the state at its beginning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from placement.errors import InputError
from placement.online.dynamic.bloom_summaries import BloomSummary, ErrorCounter
from placement.online.dynamic.hot_set_demand import HotSetWorld, RequestSource
from placement.online.dynamic.read_votes import most_voted
from placement.online.dynamic.request_traffic import (
    CAUSES,
    RequestWorkload,
    Tick,
    WriteKeys,
    requests,
)
from placement.online.dynamic.site_geography import Geography
from placement.online.dynamic.trace_traffic import trace_ticks
from placement.online.dynamic.vote_servers import VoteCluster, VoteSettings
from placement.online.dynamic.write_wait import WriteForwarding, write_rtt
from placement.online.random_streams import spawn_streams
from placement.online.request_trace import RequestTrace
from placement.support.checks import BoolArray, FloatArray, IntArray, instance_of

__all__ = ["SimulationTrace", "hot_sets", "simulate", "simulate_trace"]


@dataclass(frozen=True, eq=False)
class SimulationTrace:
    """Figures of a run per tick; NaN without reads or writes, or before anything is identified.

    Attributes
    ----------
    time
        Start of each tick in s.
    read_ms, write_ms
        Mean latency.
    false_positive, false_negative
        Share of reads whose client expected a copy that was not there, or missed a better one.
    identified, identified_best
        Share of the hot (object, site) pairs, and of the hottest tenth, in the newest complete
        summary. Hot are the k objects that the clients at a site read most by their current
        chances, those with a static copy there left out.
    active, correct
        Mean number of dynamic copies per site, and of those that are hot.
    restarts
        Seconds at which a generator restarted.
    refreshes
        Summaries fetched by all clients in the whole run.
    created
        Copies created in the whole run.
    recall
        Per complete summary, the share of the exact k most voted-for pairs of its round that it
        has.
    reads
        Latencies of all reads in ms with their number, as (values, counts).
    """

    time: FloatArray
    read_ms: FloatArray
    write_ms: FloatArray
    false_positive: FloatArray
    false_negative: FloatArray
    identified: FloatArray
    identified_best: FloatArray
    active: FloatArray
    correct: FloatArray
    restarts: tuple[float, ...]
    refreshes: int
    created: int
    recall: FloatArray
    reads: tuple[FloatArray, IntArray]


def hot_sets(generators: RequestSource, static: BoolArray, k: int) -> BoolArray:
    """Return the k objects that clients at each site read most, shape (sites, objects).

    By their chances, without objects that have a static copy there; ties to the smaller object.
    """
    rates = np.where(static, 0.0, generators.reads(len(static)))
    result = np.zeros(static.shape, dtype=bool)
    for site, row in enumerate(rates):
        result[site, most_voted(row, k)] = True
    return result


def simulate(
    world: HotSetWorld,
    workload: RequestWorkload,
    settings: VoteSettings,
    seed: int,
    *,
    forwarding: WriteForwarding = WriteForwarding.ALL,
) -> SimulationTrace:
    """Simulate one run.

    Parameters
    ----------
    world
        The store.
    workload
        Requests and restarts.
    settings
        Of the mechanism.
    seed
        Of the requests; the same for every policy that is compared.
    forwarding
        What a write waits for.

    Notes
    -----
    O(requests · longest preference list + ticks · sites · objects).
    """
    instance_of(
        workload, RequestWorkload, "workload", "a RequestWorkload of placement.online.dynamic"
    )
    return _simulated(
        world, requests(world, workload, seed), settings, seed, workload.tick, forwarding,
        workload.write_keys,
    )  # fmt: skip


def simulate_trace(
    world: HotSetWorld,
    trace: RequestTrace,
    settings: VoteSettings,
    seed: int = 0,
    *,
    tick: float = 0.5,
    scale: float = 1.0,
    forwarding: WriteForwarding = WriteForwarding.ALL,
) -> SimulationTrace:
    """Simulate the requests of a trace.

    Parameters
    ----------
    world
        Of :func:`placement.online.dynamic.trace_traffic.trace_world` for this trace; "hot" are the
        objects that clients at a site read most in the whole trace.
    trace
        Of :func:`placement.online.read_trace`.
    settings
        Of the mechanism.
    seed
        Of the nodes that miss a summary.
    tick, scale
        Seconds that are simulated at once; factor on the times of the trace.
    forwarding
        What a write waits for.
    """
    ticks = trace_ticks(trace, world, tick=tick, scale=scale)
    return _simulated(world, ticks, settings, seed, tick, forwarding, "read")


def _simulated(
    world: HotSetWorld,
    ticks: Iterable[Tick],
    settings: VoteSettings,
    seed: int,
    length: float,
    forwarding: WriteForwarding,
    write_keys: WriteKeys,
) -> SimulationTrace:
    instance_of(world, HotSetWorld, "world", "a HotSetWorld of placement.online.dynamic")
    instance_of(settings, VoteSettings, "settings", "VoteSettings of placement.online.dynamic")
    instance_of(forwarding, WriteForwarding, "forwarding", "a WriteForwarding")
    if length > settings.round_s:
        raise InputError(
            "a tick spans more than a round",
            field="tick",
            value=length,
            expected=f"at most round_s = {settings.round_s}",
        )
    rng = spawn_streams(seed, CAUSES)["policy"]
    run = _ReplicationRun(world, settings, forwarding, write_keys, rng)
    for tick in ticks:
        run.step(tick)
    return run.trace()


class _ReplicationRun:
    """State of a simulation."""

    def __init__(
        self,
        world: HotSetWorld,
        settings: VoteSettings,
        forwarding: WriteForwarding,
        write_keys: WriteKeys,
        rng: np.random.Generator,
    ) -> None:
        self._settings, self._forwarding = settings, forwarding
        self._write_keys = write_keys
        self._cluster = VoteCluster(world, settings, rng)
        self._clients = VotingClients(world, settings)
        problem = world.problem(settings.k)
        self._rtt = world.geography.delay
        self._static = problem.static
        self._closest = _closest_static(world.geography, self._static)
        self._hot = hot_sets(world.generators, self._static, settings.k)
        self._best = hot_sets(world.generators, self._static, max(1, settings.k // 10))
        lists = world.geography.preferred
        self._lists = np.full((len(lists), max(map(len, lists))), -1, dtype=np.intp)
        for site, row in enumerate(lists):
            self._lists[site, : len(row)] = row
        self._rows: list[tuple[float, ...]] = []
        self._restarts: list[float] = []
        self._recall: list[float] = []
        self._judged: BoolArray | None = None
        self._latencies: Counter[float] = Counter()

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
            self._forwarding,
        )
        values, counts = np.unique(latency, return_counts=True)
        self._latencies.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))
        active = self._cluster.copies.active
        sites = len(active)
        self._rows.append(
            (
                tick.start,
                _mean(latency),
                _mean(writes),
                _mean(positive),
                _mean(negative),
                self._share(self._hot),
                self._share(self._best),
                float(active.sum()) / sites,
                float((active & self._hot).sum()) / sites,
            )
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
        self._cast(ballots, contact, key)
        latency = self._rtt[home, contact]
        # A node without the copy relays to the closest static one and hands the answer back.
        latency += np.where(absent, self._rtt[contact, self._closest[contact, key]], 0.0)
        errors = np.bincount(client[absent | missed], minlength=len(clients.site))
        clients.note(np.bincount(client, minlength=len(clients.site)), errors, cluster)
        return latency, absent, missed

    def _cast(
        self, ballots: list[tuple[IntArray, IntArray]], contact: IntArray, key: IntArray
    ) -> None:
        """Hand the votes to the nodes that were asked, in the order of the requests."""
        request = np.concatenate([part for part, _ in ballots])
        site = np.concatenate([part for _, part in ballots])
        order = np.argsort(request, kind="stable")
        request, site = request[order], site[order]
        self._cluster.vote(contact[request], site, key[request])

    def trace(self) -> SimulationTrace:
        """Return the trace of the run."""
        table = np.array(self._rows)
        values = np.array(sorted(self._latencies))
        counts = np.array([self._latencies[value] for value in values.tolist()], dtype=np.intp)
        return SimulationTrace(
            time=table[:, 0],
            read_ms=table[:, 1],
            write_ms=table[:, 2],
            false_positive=table[:, 3],
            false_negative=table[:, 4],
            identified=table[:, 5],
            identified_best=table[:, 6],
            active=table[:, 7],
            correct=table[:, 8],
            restarts=tuple(self._restarts),
            refreshes=self._clients.refreshes,
            created=self._cluster.created,
            recall=np.array(self._recall),
            reads=(values, counts),
        )


def _closest_static(geography: Geography, static: BoolArray) -> IntArray:
    """Return the best static site of each object for each site: by metric, RTT, then index."""
    order = np.lexsort((geography.delay, geography.rtt))
    held = static[order]  # (sites, rank, objects)
    return np.take_along_axis(order, held.argmax(axis=1), axis=1)


def _mean(values: FloatArray | BoolArray) -> float:
    return float(values.mean()) if len(values) else float("nan")


class VotingClients:
    """Clients, one per generator, each with its summaries and its count of errors.

    Parameters
    ----------
    world
        Preference lists, generators.
    settings
        Filters and threshold.
    """

    def __init__(self, world: HotSetWorld, settings: VoteSettings) -> None:
        self._settings = settings
        self._preferred = world.geography.preferred
        self.site: IntArray = world.generators.site
        self.refreshes = 0
        sites, objects = world.geography.count, len(world.keys)
        self.believed: BoolArray = np.zeros((len(self.site), sites, objects), dtype=bool)
        """Whether client c believes that site s has an object, shape (clients, sites, objects)."""
        self._counters = [
            ErrorCounter(settings.threshold, settings.least, settings.memory) for _ in self.site
        ]
        self._made: dict[int, BoolArray] = {}
        self._version = -1

    def note(self, requests: IntArray, errors: IntArray, cluster: VoteCluster) -> None:
        """Count a tick's requests and errors per client; refresh where that is due."""
        for client, counter in enumerate(self._counters):
            if counter.note(int(requests[client]), int(errors[client])):
                for site in self._preferred[self.site[client]]:
                    self.believed[client, site] = self._summary(site, cluster)
                counter.reset()
                self.refreshes += 1

    def _summary(self, site: int, cluster: VoteCluster) -> BoolArray:
        """The summary of a site as it is now, looked up for every object; made once a round."""
        if self._version != cluster.version:
            self._made, self._version = {}, cluster.version
        if site not in self._made:
            keys = np.flatnonzero(cluster.told[site])
            if self._settings.bloom_error == 0:
                inside = cluster.told[site].copy()
            else:
                room = max(1, round(self._settings.bloom_room * self._settings.k))
                bloom = BloomSummary(keys.tolist(), room, self._settings.bloom_error)
                inside = bloom.among(np.arange(cluster.objects))
            self._made[site] = inside
        return self._made[site]
