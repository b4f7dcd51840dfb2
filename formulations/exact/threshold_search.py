"""The compiled threshold search (``csrc/scenarios``) under one leader.

Where it was not built, questions go to other methods, which the plan names.

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

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from formulations.exact import tuning
from formulations.exact.kernel import family_arrays
from formulations.exact.late_voters import LateVoters
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


Leaf = Callable[[list[int]], Configuration | None]
"""A complete R -> a configuration that keeps all thresholds, or None."""


@dataclass(frozen=True, eq=False)
class VoterCosts:
    """Cost of the voters beside a leader: a weight times its wait for them, or prices of votes.

    `sites` that may vote, int32, are in the order of their `values`. The value at `place` counts, m
    − 1 or all votes less 1, or the sum up to there; −1: there are none. Who leads after a loss is
    `leader` (−1: that of the tree), and then `constant` is added.
    """

    sites: IntArray
    values: FloatArray
    place: int
    summed: bool = False
    leader: int = -1
    constant: float = 0.0

    @classmethod
    def of_votes(cls, rules: Rules, prices: FloatArray | None, leader: int) -> VoterCosts:
        """Order the sites by the price of a vote; None: votes are free."""
        if prices is None:
            return cls(np.zeros(0, dtype=np.int32), np.zeros(0), -1, True)
        able = np.nonzero(rules.may_vote)[0]
        able = able[able != leader]
        order = able[np.argsort(prices[able], kind="stable")]
        return cls(order.astype(np.int32), prices[order], rules.voters - 2, True)

    @property
    def least(self) -> float:
        """The least sum."""
        return float(self.values[: self.place + 1].sum())

    @property
    def handle(self) -> tuple[int, float, IntArray, FloatArray, int, int, bool]:
        """The numbers in the form that the compiled search reads."""
        size = len(self.sites)
        return self.leader, self.constant, self.sites, self.values, size, self.place, self.summed


@dataclass(eq=False)
class Scenario:
    """Function X of a plan, with the threshold T; a leaf may lower that of the last scenarios.

    `costs` w >= 0 have the shape (sites, clients); None: the clients cost nothing. `constant` is K.
    Of the parts of the voters, one for each who may lead, the least counts. `scale` > 0 divides X
    and T before scenarios are weighed against each other. `prices` p, of replicas, and `votes`,
    beside the part of the voters, are of either sign; None: there are none. `lost` sites, which a
    loss takes, serve no client and do not vote; the scenario counts for the plans that have a
    replica there.
    """

    costs: FloatArray | None
    constant: float
    voters: tuple[VoterCosts, ...] | tuple[LateVoters, ...]
    threshold: float
    scale: float = 1.0
    prices: FloatArray | None = None
    lost: BoolArray | None = None
    votes: VoterCosts | None = None


@dataclass
class SearchCounters:
    """Work that was done: parts of the search, computed bounds, evaluated complete sets."""

    nodes: int = 0
    bounds: int = 0
    leaves: int = 0

    def add(self, tree: SearchCounters) -> None:
        """Count the work in a tree."""
        self.nodes += tree.nodes
        self.bounds += tree.bounds
        self.leaves += tree.leaves


def _handle(voters: tuple[VoterCosts, ...] | tuple[LateVoters, ...]) -> object:
    """Return the part of the voters as the compiled search tells the two kinds apart."""
    late = [one.compiled for one in voters if isinstance(one, LateVoters)]
    return late or tuple(one.handle for one in voters if isinstance(one, VoterCosts))


def search_leader(
    rules: Rules,
    orders: IntArray,
    leader: int,
    scenarios: list[Scenario],
    leaf: Leaf,
    counters: SearchCounters,
    *,
    falling: int,
    seconds: float,
    record: int,
) -> tuple[Configuration | None, FloatArray | None]:
    """Search the replica sets of a leader; return the first that `leaf` takes, and the record.

    None in place of the first is a proof that no set passes; None in place of the second says that
    the record was longer than `record` numbers. Families of `rules` are on at most 16 crossing
    levels; their rules for voters are for `leaf`. `orders` are the sites as each client prefers
    them, shape (clients, sites), int32. At most one scenario has late operations and no loss;
    `falling` of the last ones have the threshold of the last one. `leaf` decides about a complete
    set of replicas; it may lower that threshold and return None to go on. TimeoutError after so
    many seconds of wall time.

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

    outcome, *done, recorded = _scenarios.search_thresholds(
        orders,
        tuple(
            (
                None if s.costs is None else costs[id(s.costs)],
                None if s.prices is None else np.ascontiguousarray(s.prices),
                s.constant,
                s.threshold,
                s.scale,
                _handle(s.voters),
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
        seconds,
        record,
        decide,
    )
    counters.add(SearchCounters(*done))
    if outcome == TreeOutcome.PAUSED:
        raise TimeoutError
    return found, None if recorded is None else np.frombuffer(recorded, dtype=np.float64)
