"""The servers: nodes that count votes, summaries that are merged, copies that come and go.

Matri et al. 2018, sections 6 and 7. With rounds of t seconds, the summary of round q is *active* in
[q·t, (q + 1)·t). It is *complete* once gossip has brought all summaries to all nodes; copies are
created then. It is *serving* in [(q + 2)·t, (q + 3)·t): from then on it counts for deletions, for
the filters of clients, and for flagging their errors. Clocks are synchronous. All nodes have the
same view, since they merge the same summaries in a way that does not depend on order.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from placement.errors import InputError
from placement.online.dynamic.bloom_summaries import ErrorCounter
from placement.online.dynamic.copy_lifecycle import CopySet
from placement.online.dynamic.hot_set_demand import HotSetWorld
from placement.online.dynamic.merge_summaries import merge, top
from placement.online.dynamic.space_saving import SpaceSaving, Summary, exact_summary
from placement.support.checks import BoolArray, IntArray, elements, number, whole

__all__ = ["VoteCluster", "VoteSettings"]


@dataclass(frozen=True, slots=True)
class VoteSettings:
    """Parameters of the mechanism; the defaults are the paper's, with k and counters scaled.

    Parameters
    ----------
    k
        Objects that get a dynamic copy at each site; 10 000 in the paper, for 20 million keys.
    counters
        Space-Saving counters of each node for each site; k where None.
    round_s
        Length of a round.
    gossip_s
        Seconds from the end of a round until its summary is complete; less than a round.
    grace
        g: serving summaries in a row without a key before its copy is deleted.
    lost
        Rounds whose summary stays incomplete: they create and delete nothing, and are not counted
        as absences.
    missed
        Probability that the summary of a round stays incomplete at a node. A primary without it
        creates no copies of its objects in that round, and a holder without it neither deletes its
        copy nor counts an absence.
    copies_per_s
        New copies that reach a site per second, those of most votes first; infinite: all at once.
        A copy that is no longer asked for before it is there is not sent.
    threshold, least, memory
        When clients refresh, see :class:`placement.online.dynamic.bloom_summaries.ErrorCounter`.
    bloom_error
        False-positive rate that filters are sized for; 0: exact lists instead of filters.
    bloom_room
        Copies that filters are sized for, as a multiple of k.
    """

    k: int
    counters: int | None = None
    round_s: float = 10.0
    gossip_s: float = 2.0
    grace: int = 3
    lost: frozenset[int] = frozenset()
    missed: float = 0.0
    copies_per_s: float = math.inf
    threshold: float = 0.05
    least: int = 100
    memory: float | None = None
    bloom_error: float = 0.001
    bloom_room: float = 1.5

    def __post_init__(self) -> None:
        number(self.round_s, "round_s", above=True)
        number(self.gossip_s, "gossip_s")
        number(self.bloom_error, "bloom_error", maximum=math.nextafter(1.0, 0.0))
        number(self.bloom_room, "bloom_room", above=True)
        number(self.missed, "missed", maximum=1.0)
        number(self.copies_per_s, "copies_per_s", above=True, infinite=True)
        put = object.__setattr__
        for name in ("k", "grace"):
            put(self, name, whole(getattr(self, name), name, minimum=1))
        if self.counters is not None:
            put(self, "counters", whole(self.counters, "counters", minimum=1))
        rounds = elements(self.lost, "lost", "a set of rounds")
        put(self, "lost", frozenset(whole(each, "lost") for each in rounds))
        ErrorCounter(self.threshold, self.least, self.memory)
        if self.gossip_s >= self.round_s:
            raise InputError(
                "gossip takes longer than a round",
                field="gossip_s",
                value=self.gossip_s,
                expected=f"less than round_s = {self.round_s}",
            )


class VoteCluster:
    """State of the servers of one instance.

    Parameters
    ----------
    world
        Where objects live.
    settings
        Parameters of the mechanism.
    rng
        Draws the nodes that miss a summary.
    """

    def __init__(
        self, world: HotSetWorld, settings: VoteSettings, rng: np.random.Generator
    ) -> None:
        self.settings = settings
        self._rng = rng
        self._nodes = len(world.ring.position)
        self._primary = world.ring.static_nodes(world.keys, 1)[:, 0]
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
        self._wanted: list[IntArray] = [np.zeros(0, dtype=np.intp) for _ in range(self.sites)]
        self._sent_until = 0.0

    def vote(self, contact: IntArray, site: IntArray, key: IntArray) -> None:
        """Count votes: the site whose node was asked, the site voted for, and the key, in order."""
        self._ballots.append((contact, site, key))

    def advance(self, now: float) -> None:
        """Carry out the events due by second `now`: close rounds, complete and serve summaries."""
        length = self.settings.round_s
        while now >= (self._round + 1) * length - 1e-9:
            if self._round not in self.settings.lost:
                self._pending[self._round] = self._close()
            self._ballots = []
            self._round += 1
        while now >= (self._completed + 1) * length + self.settings.gossip_s - 1e-9:
            found = self._pending.get(self._completed)
            if found is not None:
                self.complete, self.votes_of_complete = found
                self._create((self._completed + 1) * length + self.settings.gossip_s)
            self._completed += 1
        while now >= (self._served + 2) * length - 1e-9:
            found = self._pending.pop(self._served, None)
            if found is not None:
                self.copies.judge(found[0], self._knows()[self.contact])
                self._serving.append(found[0])
                self.told = np.logical_or.reduce(list(self._serving))
                self.version += 1
            self._served += 1
        self._send(now)

    def _knows(self) -> BoolArray:
        """Draw which nodes have the summary of a round, shape (nodes,)."""
        if not self.settings.missed:
            return np.ones(self._nodes, dtype=bool)
        return self._rng.random(self._nodes) >= self.settings.missed

    def _create(self, now: float) -> None:
        """Create the copies that a complete list asks for, or queue them at their sites."""
        assert self.complete is not None
        assert self.votes_of_complete is not None
        asked = self.complete & self._knows()[self._primary]
        if math.isinf(self.settings.copies_per_s):
            self.created += self.copies.create(asked)
            return
        self._send(now)
        new = asked & ~self.static & ~self.copies.active
        for site, votes in enumerate(self.votes_of_complete):
            keys = np.flatnonzero(new[site])
            self._wanted[site] = keys[np.argsort(-votes[keys], kind="stable")]
        self._sent_until = now

    def _send(self, now: float) -> None:
        """Let the copies arrive that had the time to."""
        if math.isinf(self.settings.copies_per_s):
            return
        many = int((now - self._sent_until) * self.settings.copies_per_s + 1e-9)
        if many < 1:
            return
        self._sent_until += many / self.settings.copies_per_s
        here = np.zeros_like(self.static)
        for site, keys in enumerate(self._wanted):
            here[site, keys[:many]] = True
            self._wanted[site] = keys[many:]
        self.created += self.copies.create(here)

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
                _summary(keys[order[a:b]], counters) for a, b in pairwise(starts.tolist()) if b > a
            ]
            merged = merge(summaries, max(counters, self.settings.k))
            popular[target, top(merged, self.settings.k)] = True
        return popular, exact


def _summary(stream: IntArray, counters: int) -> Summary:
    """Space-Saving of a stream, by counting where that is the same."""
    keys, counts = np.unique(stream, return_counts=True)
    known = exact_summary(counts, counters)
    if known is not None:
        return Summary(keys.astype(np.int64), known.counts, known.errors, known.floor)
    sketch = SpaceSaving(counters)
    sketch.extend(stream.tolist())
    return sketch.summary()
