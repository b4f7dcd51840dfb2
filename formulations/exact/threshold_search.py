"""The compiled threshold search (``csrc/scenarios``) under one leader, and its events.

Where it was not built, questions go to other methods, which the plan names.

It records the weights and multipliers of every bound that closed a part of the search or fixed
sites, and by how much the bound proved it (``csrc/scenarios/threshold_tree.c``). Any multipliers
are valid, and what is to spare says how far they may be rounded: they are written as whole numbers
of few digits. The events are those of :mod:`placement.proof.event_tree`, and what they prove stands
in :mod:`placement.proof.threshold_proof`.

The search looks for a plan with X_s <= T_s in each of a few *scenarios*

    X(R, V) = K + Σ_c w[near(c, R), c] + Σ_r p_r x_r + voters(V)

or proves that there is none. near(c, R) is the replica that client c prefers. The part of the
voters is that of late operations, D times the wait of the leader for its quorum, or the prices of
votes. In the scenario of a loss, R and V are without the lost sites.

A state of the tree is closed by one inequality. For weights λ_s >= 0 and multipliers u_sc, no set
of the state keeps all thresholds if

    Σ_s λ_s [ rest_s − T_s + Σ_c min(u_sc, w at the nearest fixed replica) ] + Σ_{j ∈ Y} ρ_j >= 0
    ρ_j = Σ_s λ_s Σ_c min(0, w_s[j, c] − u_sc)      over the clients that j may serve

for the cheapest set Y of free sites that the rules allow: the weighted excess over the thresholds
is then >= 0, so the excess of one scenario is.

Three sites by hand: a, b and c, one replica, and two scenarios with one client each.

>>> import numpy as np
>>> first, second = np.array([0.0, 3.0, 9.0]), np.array([9.0, 7.0, 0.0])  # w at a, b, c
>>> threshold = 2.0

The first scenario alone has the plan a, and the second alone has the plan c. No site keeps both
thresholds: a and c cost 9 in one scenario, and b costs 3 and 7. With λ = (½, ½) and u = 9 for both
clients, one bound proves this without a look at single sites:

>>> rho = 0.5 * np.minimum(0, first - 9) + 0.5 * np.minimum(0, second - 9)
>>> rho.tolist()
[-4.5, -4.0, -4.5]
>>> 0.5 * (9 - threshold) + 0.5 * (9 - threshold) + float(rho.min())
2.5
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

import numpy as np

from formulations.exact import tuning
from formulations.exact.kernel import family_arrays
from placement.model.configuration import Configuration
from placement.model.constraints import Rules
from placement.model.site_families import site_families
from placement.support.checks import BoolArray, FloatArray, IntArray


class TreeOutcome(IntEnum):
    """Ends of a call of the search; the numbers of ``tree_outcome`` in scenario.h."""

    CLOSED = 1
    STOPPED = 2
    LIMIT = 3
    PAUSED = 4


MOST_RECORDED = 24_000_000
"""Numbers that a search records at most, 192 MB; with more there is no certificate."""

_CLOSE, _FIX, _BRANCH, _ENUMERATE, _NONE, _VOTERS, _VOTE = 1, 2, 3, 4, 5, 6, 7
_NAMES = {_CLOSE: "close", _FIX: "fix", _VOTERS: "voters"}
_FINEST = 52  # bits of a whole number that a double holds for certain
_WIDEST = 900  # bits before or behind the point, at most


@dataclass(frozen=True, eq=False)
class ThresholdEvents:
    """Form in which the records of a claim are written.

    Attributes
    ----------
    recorded
        Clients of the record.
    clients
        Those of them that a certificate counts, shape (clients,).
    replicas
        The most replicas.
    slack
        By how much the threshold of a scenario was above what a checker asks, at the least.
    scale
        What weights of a scenario are divided by.
    shared
        The same as `slack` for questions with one threshold for all scenarios, whose weights the
        checker knows; None: every scenario has its own.
    number
        Number of a scenario in the certificate, from that of the record.
    """

    recorded: int
    clients: IntArray
    replicas: int
    slack: Callable[[int], float]
    scale: Callable[[int], float]
    shared: float | None = None
    number: Callable[[int], int] = int

    def of(self, record: FloatArray) -> Iterator[list[object]]:
        """Yield the events of a tree."""
        at = 0

        def numbers(count: int) -> FloatArray:
            nonlocal at
            at += count
            return record[at - count : at]

        def sites() -> list[int]:
            (count,) = numbers(1)
            return list(map(int, numbers(int(count))))

        width = 2 + self.recorded
        while at < len(record):
            kind = int(numbers(1)[0])
            if kind in _NAMES:
                spare, count = numbers(2)
                rows = numbers(int(count) * width).reshape(int(count), width)
                decided = [sites(), sites()] if kind == _FIX else []
                yield [_NAMES[kind], self._parts(float(spare), rows), *decided]
            elif kind in {_BRANCH, _VOTE}:
                yield ["branch" if kind == _BRANCH else "vote", int(numbers(1)[0])]
            elif kind == _ENUMERATE:
                yield ["enumerate"]
            elif kind == _NONE:
                yield ["close", []]
            else:
                raise AssertionError(f"a kernel recorded an unknown event {kind}")

    def _parts(self, spare: float, rows: FloatArray) -> list[object]:
        """Scenario, weight, bits and multipliers of every scenario of a bound."""
        scenarios = [int(number) for number in rows[:, 0]]
        weights = [
            weight / self.scale(scenario)
            for scenario, weight in zip(scenarios, rows[:, 1].tolist(), strict=True)
        ]
        if self.shared is not None:
            spare += self.shared
        else:
            for scenario, weight in zip(scenarios, weights, strict=True):
                own = self.slack(scenario)
                spare += weight * own if math.isfinite(own) else 0.0
        parts: list[object] = []
        for number, (weight, u) in self._joined(scenarios, weights, rows[:, 2:]).items():
            bits, whole = self.rounded(u, spare / len(weights), weight)
            told = weight if self.shared is None else None
            parts.append([number, told, bits, whole])
        return parts

    def _joined(
        self, scenarios: list[int], weights: list[float], rows: FloatArray
    ) -> dict[int, tuple[float, FloatArray]]:
        """Weight and multipliers by number in the certificate.

        Two scenarios may be one there. A bound is concave in its multipliers, so that their mean
        bounds no less.
        """
        joined: dict[int, tuple[float, FloatArray]] = {}
        for scenario, weight, u in zip(scenarios, weights, rows, strict=True):
            known = joined.get(self.number(scenario))
            if known is not None and known[0] + weight > 0:
                u = (known[0] * known[1] + weight * u) / (known[0] + weight)
                weight += known[0]
            joined[self.number(scenario)] = weight, u
        return joined

    def rounded(self, u: FloatArray, spare: float, weight: float) -> tuple[int, list[int]]:
        """Multipliers as whole multiples of 2^-bits, which cost a bound no more than `spare`.

        A bound changes by at most max(1, replicas) of what a multiplier does.
        """
        u = u[self.clients]
        largest = max(float(np.abs(u).max(initial=0.0)), 1e-300)
        bits = min(_FINEST - math.frexp(largest)[1], _WIDEST)
        if spare > 0:
            error = 0.5 * weight * max(1, len(u)) * (self.replicas + 1)
            bits = max(-_WIDEST, min(bits, math.ceil(math.log2(error / spare))))
        return bits, [int(x) for x in np.rint(np.ldexp(u, bits)).tolist()]


Leaf = Callable[[list[int]], Configuration | None]
"""A complete R -> a configuration that keeps all thresholds, or None."""


class VotersPart(Protocol):
    """The part of the voters of a scenario."""

    @property
    def handle(self) -> object:
        """The part in the form that the compiled search reads."""
        ...


@dataclass(frozen=True, eq=False)
class VotePrices:
    """Prices of the votes beside the leader's, as a part of the voters.

    Attributes
    ----------
    sites
        Sites that may vote, without the leader, by their prices, int32.
    prices
        Prices of a vote at each of these sites.
    others
        |V| − 1.
    """

    sites: IntArray
    prices: FloatArray
    others: int

    @classmethod
    def of(cls, rules: Rules, prices: FloatArray | None, leader: int) -> VotePrices:
        """Order the sites by the price of a vote; None: votes are free."""
        if prices is None:
            return cls(np.zeros(0, dtype=np.int32), np.zeros(0), 0)
        able = np.nonzero(rules.may_vote)[0]
        able = able[able != leader]
        order = able[np.argsort(prices[able], kind="stable")]
        return cls(order.astype(np.int32), prices[order], rules.voters - 1)

    @property
    def handle(self) -> tuple[IntArray, FloatArray, int, int, bool]:
        """The part in the form that the compiled search reads."""
        return self.sites, self.prices, len(self.sites), self.others - 1, True


@dataclass(frozen=True, eq=False)
class QuorumWait:
    """A weight times the wait of a leader for its quorum, as a part of the voters.

    Attributes
    ----------
    sites
        Sites that may vote, in order of their waits, int32.
    waits
        D times the wait for each, in this order.
    place
        m − 1.
    """

    sites: IntArray
    waits: FloatArray
    place: int

    @property
    def handle(self) -> tuple[IntArray, FloatArray, int, int, bool]:
        """The part in the form that the compiled search reads."""
        return self.sites, self.waits, len(self.sites), self.place, False


@dataclass(frozen=True, eq=False)
class LedWaits:
    """The wait of the best of those who may lead after a loss, as a part of the voters.

    Attributes
    ----------
    each
        Of everyone who may lead then: the site, a constant, and its waits.
    """

    each: tuple[tuple[int, float, QuorumWait], ...]

    @property
    def handle(self) -> tuple[tuple[int, float, IntArray, FloatArray, int, int], ...]:
        """The part in the form that the compiled search reads."""
        return tuple(
            (leader, constant, waits.sites, waits.waits, len(waits.sites), waits.place)
            for leader, constant, waits in self.each
        )


@dataclass(eq=False)
class Scenario:
    """Function of a plan with a threshold.

    Attributes
    ----------
    costs
        w, >= 0, shape (sites, clients); None: the clients cost nothing.
    constant
        K.
    voters
        The part of the voters.
    threshold
        T; a leaf may lower that of the last scenarios.
    scale
        Divisor of X and T before scenarios are weighed against each other, > 0.
    prices
        p, shape (sites,), of either sign; None: replicas cost nothing.
    lost
        Sites that a loss takes, shape (sites,): they serve no client and do not vote; the scenario
        counts for the plans that have a replica there. None: nothing is lost.
    votes
        Prices of votes beside the part of the voters, of either sign; None: there are none.
    """

    costs: FloatArray | None
    constant: float
    voters: VotersPart
    threshold: float
    scale: float = 1.0
    prices: FloatArray | None = None
    lost: BoolArray | None = None
    votes: VotePrices | None = None


@dataclass
class SearchCounters:
    """Work that was done.

    Attributes
    ----------
    nodes, bounds, leaves
        Parts of the search, computed bounds, and evaluated complete sets.
    """

    nodes: int = 0
    bounds: int = 0
    leaves: int = 0


def search_leader(
    rules: Rules,
    orders: IntArray,
    leader: int,
    scenarios: list[Scenario],
    leaf: Leaf,
    *,
    falling: int = 1,
    end: float = math.inf,
    counters: SearchCounters,
    record: int = 0,
    keep: Callable[[FloatArray | None], None] | None = None,
) -> Configuration | None:
    """Search the replica sets of a leader.

    Parameters
    ----------
    rules
        Of families on at most 16 crossing levels; their rules for voters are for `leaf`.
    orders
        Sites as each client prefers them, shape (clients, sites), int32.
    leader
        Site index.
    scenarios
        At most one of them with late operations and without a loss.
    leaf
        Decides about a complete replica set. It may lower the threshold of the last scenario and
        return None to go on.
    falling
        So many of the last scenarios have the threshold of the last one.
    end
        A time.perf_counter() at which to stop.
    counters
        Added to.
    record
        Most numbers of a certificate to record.
    keep
        Gets the record of a search that ended without a configuration; None: it was too long.

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
    from formulations.exact import _scenarios

    last, found = scenarios[-1], None
    # scenarios of the same costs share one array, which is copied once
    costs = {id(s.costs): np.ascontiguousarray(s.costs.T) for s in scenarios if s.costs is not None}

    def decide(state: bytes) -> bool | float | None:
        nonlocal found
        threshold = last.threshold
        found = leaf([site for site, chosen in enumerate(state) if chosen])
        if found is not None:
            return True
        return None if last.threshold == threshold else last.threshold

    outcome, nodes, bounds, leaves, recorded = _scenarios.search_thresholds(
        orders,
        tuple(
            (
                None if s.costs is None else costs[id(s.costs)],
                None if s.prices is None else np.ascontiguousarray(s.prices),
                s.constant,
                s.threshold,
                s.scale,
                s.voters.handle,
                s.lost,
                None if s.votes is None else s.votes.handle,
            )
            for s in scenarios
        ),
        rules.may_hold,
        rules.must_hold,
        (
            len(rules.may_hold),
            len(orders),
            leader,
            rules.replicas_min,
            rules.replicas_max,
            tuning.THRESHOLD_ROOT_STEPS,
            tuning.THRESHOLD_STEPS,
            falling,
        ),
        family_arrays(site_families(rules, "replicas")),
        min(max(end - time.perf_counter(), 0.0), 1e9),
        record,
        decide,
    )
    counters.nodes += nodes
    counters.bounds += bounds
    counters.leaves += leaves
    if outcome == TreeOutcome.PAUSED:
        raise TimeoutError
    if keep is not None and found is None:
        keep(None if recorded is None else np.frombuffer(recorded, dtype=np.float64))
    return found
