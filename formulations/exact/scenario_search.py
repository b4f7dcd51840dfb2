"""Is there a plan under one leader that keeps several thresholds? A tree search, in NumPy.

A *scenario* is a function of a plan that is a sum over clients and a term of the voters,

    X(R, V) = K + Σ_c w[near(c, R), c] + voters(V)

with near(c, R) the replica that client c prefers. Wanted is a configuration with X_s <= T_s in
every scenario s, or the proof that there is none. A part of the search is closed when for some
weights λ >= 0, not all 0,  Σ_s λ_s (X_s − T_s) > 0  for all of its configurations: one of them
misses its threshold then. For a part with replicas at I, none at O and at most k of the free sites
F, and any multipliers u (Lagrangean relaxation of "every client has one replica"):

    X_s >= K + Σ_c min(u_c, w_c,f(c)) + Σ_{j ∈ R∩F} ρ_j + voters(I, F, k)
    ρ_j  = Σ_{c prefers j to f(c)} min(0, w_cj − u_c)        f(c): the client's choice among I

so that the sum over scenarios is bounded by taking the k least ρ. Multipliers rise by subgradient
steps, λ by exponentiated gradient.

This is the reference of the compiled search and takes its place where no kernel was built.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from placement.checks import BoolArray, FloatArray, IntArray
from placement.evaluation.score import closest_first
from placement.model.configuration import Configuration
from placement.model.constraints import Rules

__all__ = ["QuorumWait", "Scenario", "SearchCounters", "VoterTerm", "search_leader"]


class VoterTerm(Protocol):
    """What the voters add to a scenario."""

    @property
    def handle(self) -> object:
        """The same for the compiled search: its late_voters, or (sites in order, waits, m − 1)."""
        ...

    def least(self, inside: BoolArray, free: BoolArray, room: int, /) -> float:
        """Least value for voters out of sites with a replica and at most `room` free ones.

        Infinite where there are too few of them.
        """
        ...


class QuorumWait:
    """A weight times the wait of a leader for its quorum.

    Parameters
    ----------
    rules
        Who may vote, and m.
    waits
        RTT from the leader to each site, shape (sites,).
    weight
        D.
    """

    def __init__(self, rules: Rules, waits: FloatArray, weight: float) -> None:
        able = np.nonzero(rules.may_vote)[0]
        self._order = able[closest_first(waits[able])]
        self._waits = weight * waits[self._order]
        self._place = rules.quorum - 1

    @property
    def handle(self) -> object:
        """Sites in order, their weighted waits, how many, and m − 1."""
        return self._order.astype(np.int32), self._waits, len(self._order), self._place

    def least(self, inside: BoolArray, free: BoolArray, room: int) -> float:
        """Return the m-th least wait, weighted."""
        extra = free[self._order] & ~inside[self._order]
        able = inside[self._order] | (extra & (np.cumsum(extra) <= room))
        found = np.nonzero(able)[0]
        if len(found) <= self._place:
            return math.inf
        return float(self._waits[found[self._place]])


Leaf = Callable[[list[int]], Configuration | None]
"""A complete R -> a configuration that keeps all thresholds, or None."""

_ROOT_STEPS = 80
_STEPS = 12
_LEAST_WEIGHT = 1e-3
_OUT_OF_TIME = 2  # an outcome of the compiled search
_SLOW, _COOLING, _COLD = (
    0.01,
    0.6,
    0.05,
)  # progress of 5 steps below which θ falls, by what, the end


@dataclass(eq=False)
class Scenario:
    """A function of a plan, and what it may be at most.

    Attributes
    ----------
    costs
        w, >= 0, shape (sites, clients).
    constant
        K.
    voters
        Lower bound of the voters' term over a part of the search.
    threshold
        T; a leaf may lower it.
    scale
        What X and T are divided by before scenarios are weighed against each other, > 0.
    """

    costs: FloatArray
    constant: float
    voters: VoterTerm
    threshold: float
    scale: float = 1.0


@dataclass
class SearchCounters:
    """How much was done.

    Attributes
    ----------
    nodes, bounds, leaves
        Parts of the search, bounds computed, and complete sets looked at.
    """

    nodes: int = 0
    bounds: int = 0
    leaves: int = 0


class _Bound(NamedTuple):
    value: float  # Σ λ (X − T) at least
    gains: FloatArray  # Σ λ ρ of every site, 0 where it is not free
    chosen: IntArray  # the k free sites of least ρ


@dataclass
class _LeaderSearch:
    rules: Rules
    rank: IntArray  # of each site for each client, shape (sites, clients)
    scenarios: list[Scenario]
    leaf: Leaf
    end: float
    counters: SearchCounters = field(default_factory=SearchCounters)

    def run(self, leader: int) -> Configuration | None:
        """Return the first configuration that a leaf gives, or None when there is none."""
        inside = self.rules.must_hold.copy()
        inside[leader] = True
        free = self.rules.may_hold & ~inside
        weights = np.full(len(self.scenarios), 1 / len(self.scenarios))
        multipliers = [self._first_multipliers(s, inside) for s in self.scenarios]
        return self._part(inside, free, weights, multipliers, _ROOT_STEPS)

    def _first_multipliers(self, scenario: Scenario, inside: BoolArray) -> FloatArray:
        alone = self._served(inside)[1]
        return np.asarray(0.5 * np.take_along_axis(scenario.costs, alone[np.newaxis], axis=0)[0])

    def _served(self, inside: BoolArray) -> tuple[IntArray, IntArray]:
        """Rank of each client's choice among I, and the choice."""
        sites = np.nonzero(inside)[0]
        ranks = self.rank[sites]
        place = ranks.argmin(axis=0)
        return np.take_along_axis(ranks, place[np.newaxis], axis=0)[0], sites[place]

    def _without_full_domains(self, inside: BoolArray, free: BoolArray) -> BoolArray | None:
        """Free sites that no cap rules out; None where I itself breaks a cap."""
        free = free.copy()
        for group in self.rules.of("replicas"):
            if group.cap is None:
                continue
            held = np.bincount(group.labels[inside], minlength=len(group.names))
            if (held > group.cap).any():
                return None
            free &= (held < group.cap)[group.labels]
        return free

    def _part(
        self,
        inside: BoolArray,
        free: BoolArray,
        weights: FloatArray,
        multipliers: list[FloatArray],
        steps: int,
    ) -> Configuration | None:
        if time.perf_counter() > self.end:
            raise TimeoutError
        self.counters.nodes += 1
        held = int(inside.sum())
        left = self._without_full_domains(inside, free)
        if left is None or held > self.rules.replicas_max:
            return None
        room = min(self.rules.replicas_max - held, int(left.sum()))
        if held + room < self.rules.replicas_min:
            return None
        if not room:
            self.counters.leaves += 1
            return self.leaf(np.nonzero(inside)[0].tolist())
        bound, weights, multipliers, drops = self._bound(
            inside, left, room, weights, multipliers, steps
        )
        if bound.value > 0:
            return None
        selected = np.zeros(len(inside), dtype=bool)
        selected[bound.chosen] = True
        # The gain of leaving a site out: the next best one takes its place among the k least.
        others = bound.gains[left & ~selected]
        after = float(others.min()) if others.size else 0.0
        last = float(bound.gains[bound.chosen].max())
        out = np.where(left, np.where(selected, after - bound.gains, 0.0) + drops, -math.inf)
        if bound.chosen.size:
            useless = left & ~selected & (bound.value - last + bound.gains > 0)
            left = left & ~useless
        needed = left & (bound.value + out > 0)
        if needed.any():
            return self._part(inside | needed, left & ~needed, weights, multipliers, _STEPS)
        if not left.any():
            return self._part(inside, left, weights, multipliers, _STEPS)
        out[~left] = -math.inf
        site = int(out.argmax())
        with_it, without = inside.copy(), left.copy()
        with_it[site], without[site] = True, False
        found = self._part(with_it, without, weights, multipliers, _STEPS)
        if found is not None:
            return found
        return self._part(inside, without, weights, multipliers, _STEPS)

    def _bound(
        self,
        inside: BoolArray,
        free: BoolArray,
        room: int,
        weights: FloatArray,
        multipliers: list[FloatArray],
        steps: int,
    ) -> tuple[_Bound, FloatArray, list[FloatArray], FloatArray]:
        """Best bound of some steps, with its weights and multipliers, and the rise without a site.

        The last is what the voters' terms rise by when a site is left out.
        """
        served, home = self._served(inside)
        before = self.rank < served  # sites that a client prefers to its choice among I
        before[~free] = False
        terms = np.array([s.voters.least(inside, free, room) for s in self.scenarios])
        nothing = np.zeros(len(inside))
        if not np.isfinite(terms).all():
            dead = _Bound(math.inf, nothing, np.zeros(0, dtype=np.intp))
            return dead, weights, multipliers, nothing
        heat, best, slow, reached = 1.0, None, 0, -math.inf
        weights, multipliers = weights.copy(), list(multipliers)
        kept = weights, multipliers
        for _ in range(max(steps, 1)):
            self.counters.bounds += 1
            values, gains, slopes = [], nothing.copy(), []
            chosen_values = []
            parts = []
            for s, u, weight in zip(self.scenarios, multipliers, weights, strict=True):
                at_home = np.take_along_axis(s.costs, home[np.newaxis], axis=0)[0]
                saved = np.where(before, np.minimum(0.0, s.costs - u), 0.0)
                rho = saved.sum(axis=1) / s.scale
                parts.append((at_home, saved, rho))
                gains += weight * rho
            order = np.argsort(np.where(free, gains, math.inf), kind="stable")
            chosen = order[:room]
            for s, u, term, (at_home, saved, rho) in zip(
                self.scenarios, multipliers, terms, parts, strict=True
            ):
                base = s.constant + float(np.minimum(u, at_home).sum()) + term - s.threshold
                values.append(base / s.scale + float(rho[chosen].sum()))
                slopes.append((u < at_home) - (saved[chosen] < 0).sum(axis=0))
                chosen_values.append(self._selection(s, inside, chosen, term))
            value = float(weights @ values)
            if best is None or value > best.value:
                best, kept = _Bound(value, gains, chosen), (weights.copy(), list(multipliers))
            if best.value > 0:
                break
            slow += 1
            if slow == 5:
                if best.value < reached + _SLOW * abs(reached):
                    heat *= _COOLING
                slow, reached = 0, best.value
                if heat < _COLD:
                    break
            norm = sum(
                w / s.scale * float((g * g).sum())
                for w, s, g in zip(weights, self.scenarios, slopes, strict=True)
            )
            if norm > 0:
                goal = sum(
                    w * s.threshold / s.scale for w, s in zip(weights, self.scenarios, strict=True)
                )
                step = heat * (1e-4 * goal - value) / norm
                multipliers = [
                    np.maximum(0.0, u + step * g) for u, g in zip(multipliers, slopes, strict=True)
                ]
            if len(weights) > 1:
                missed = np.array(chosen_values)
                spread = float(np.abs(missed - missed.mean()).max())
                if spread > 0:
                    weights = weights * np.exp(0.4 * heat * (missed - missed.mean()) / spread)
                    weights = np.maximum(weights / weights.sum(), _LEAST_WEIGHT)
                    weights /= weights.sum()
        assert best is not None
        drops = nothing.copy()
        for site in np.nonzero(free)[0].tolist():
            without = free.copy()
            without[site] = False
            for s, weight, term in zip(self.scenarios, kept[0], terms, strict=True):
                drops[site] += weight * (s.voters.least(inside, without, room) - term) / s.scale
        return best, *kept, drops

    def _selection(
        self, scenario: Scenario, inside: BoolArray, chosen: IntArray, term: float
    ) -> float:
        """(X − T) of the sites chosen, with the bound of the voters' term."""
        taken = inside.copy()
        taken[chosen] = True
        home = self._served(taken)[1]
        cost = float(np.take_along_axis(scenario.costs, home[np.newaxis], axis=0).sum())
        return (scenario.constant + cost + term - scenario.threshold) / scenario.scale


def search_leader(
    rules: Rules,
    rank: IntArray,
    leader: int,
    scenarios: list[Scenario],
    leaf: Leaf,
    *,
    end: float = math.inf,
    counters: SearchCounters | None = None,
    compiled: bool = False,
) -> Configuration | None:
    """Search the replica sets of a leader.

    Parameters
    ----------
    rules
        Caps on nested levels at most; what they say of voters is for `leaf`.
    rank
        Place of each site in each client's order, shape (sites, clients).
    leader
        Site index.
    scenarios
        One or more.
    leaf
        Decides about a complete replica set. It may lower thresholds and return None to go on.
    end
        A time.perf_counter() at which to stop.
    counters
        Added to.
    compiled
        Whether to use the compiled search.

    Returns
    -------
    Configuration or None
        The first that `leaf` returns. None is a proof that no set passes it.

    Raises
    ------
    TimeoutError
        At `end`.

    Notes
    -----
    O(scenarios · sites · clients) for each bound; exponentially many parts at worst.
    """
    counters = SearchCounters() if counters is None else counters
    if compiled:
        return _search_compiled(rules, rank, leader, scenarios, leaf, end, counters)
    return _LeaderSearch(rules, rank, scenarios, leaf, end, counters).run(leader)


def _search_compiled(
    rules: Rules,
    rank: IntArray,
    leader: int,
    scenarios: list[Scenario],
    leaf: Leaf,
    end: float,
    counters: SearchCounters,
) -> Configuration | None:
    from formulations.exact import _kernel

    last, found = scenarios[-1], None

    def decide(state: bytes) -> bool | float | None:
        nonlocal found
        threshold = last.threshold
        found = leaf([site for site, chosen in enumerate(state) if chosen])
        if found is not None:
            return True
        return None if last.threshold == threshold else last.threshold

    outcome, nodes, bounds, leaves = _kernel.search_thresholds(
        np.ascontiguousarray(rank, dtype=np.int32),
        tuple(
            (np.ascontiguousarray(s.costs), s.constant, s.threshold, s.scale, s.voters.handle)
            for s in scenarios
        ),
        rules.may_hold,
        rules.must_hold,
        (
            len(rules.may_hold),
            rank.shape[1],
            leader,
            rules.replicas_min,
            rules.replicas_max,
            _ROOT_STEPS,
            _STEPS,
        ),
        tuple(
            (np.ascontiguousarray(group.labels, dtype=np.int32), group.cap, len(group.names))
            for group in rules.of("replicas")
            if group.cap is not None
        ),
        min(max(end - time.perf_counter(), 0.0), 1e9),
        decide,
    )
    counters.nodes += nodes
    counters.bounds += bounds
    counters.leaves += leaves
    if outcome == _OUT_OF_TIME:
        raise TimeoutError
    return found
