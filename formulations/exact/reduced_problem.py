"""The problem that the engine solves: demand, rules and one price per replica.

The engine takes problems without heed of a budget; what else it is asked for,
:mod:`formulations.exact.method` hands on.  Where RTTs vary by interval, every client has one row
for each interval, and the wait for votes is bounded by one distance in the place of several
(:mod:`placement.evaluation.waits.wait_floors`): a complete set of replicas has its true score.
Scores and voters come from the shared evaluator (:mod:`placement.evaluation.score`,
:mod:`placement.evaluation.voter_choice`), nowhere else.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from formulations.exact import tuning
from placement.errors import InputError, UnsupportedError
from placement.evaluation.score import score
from placement.evaluation.voter_choice import best_voters
from placement.evaluation.waits.wait_floors import wait_floors
from placement.model.configuration import Configuration
from placement.model.constraints import GroupRule, Role, Rules, majority
from placement.model.demand import Demand
from placement.model.site_families import MOST_FAMILIES, SiteFamily, site_families
from placement.problem import Problem
from placement.support.checks import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from placement.evaluation.waits.wait_cases import SingleWaits

Int32Array = npt.NDArray[np.int32]

_ROUNDING = 4.0 * float(np.finfo(np.float64).eps)

_MOST_VOTER_SETS = 20_000
"""Sets of voters among the replicas that a search at every leaf may go through."""

_MOST_SEARCHED = 64
"""MOST_VOTERS of the C sources: replicas among which a search goes for voters."""

_WHOLE_LIMIT = 2.0**52
"""Whole numbers below it, and their sums, are exact in doubles."""


def _over_clients(weights: FloatArray, rtt: FloatArray) -> FloatArray:
    """Σ_c weights[c]·rtt[c, s] by site, without BLAS, whose threads spin when they are done."""
    if not weights.any():
        return np.zeros(rtt.shape[1])
    return np.asarray(np.einsum("c,cs->s", weights, rtt))


def _order(rtt: FloatArray) -> Int32Array:
    """Return the sites of every client by (RTT, site): a stable argsort, quicker on large matrices.

    Whole numbers are sorted together with the site in one integer.
    """
    sites = rtt.shape[1]
    bits = sites.bit_length()
    whole = rtt.size > tuning.SORT_CELLS and bool((rtt == np.floor(rtt)).all())
    if whole and float(rtt.max()) < 2.0 ** (62 - bits):
        key = (rtt.astype(np.int64) << bits) | np.arange(sites)
        key.sort(axis=1)
        return np.asarray(key & ((1 << bits) - 1), dtype=np.int32)
    return np.argsort(rtt, axis=1, kind="stable").astype(np.int32)


def _active(demand: Demand) -> IntArray:
    return np.nonzero((demand.near.reshape(-1) > 0) | (demand.relay.reshape(-1) > 0))[0]


@lru_cache(maxsize=4)  # demands are compared by identity; of small ones, so that little is kept
def _order_of(demand: Demand) -> Int32Array:
    return _order(demand.client_rtt.reshape(-1, demand.client_rtt.shape[2])[_active(demand)])


def weighs_more_than_sites(problem: Problem) -> bool:
    """Return whether the objective has prices of votes or near reads, not only of sites."""
    return bool(problem.cost_weight) and not {"near reads", "votes"}.isdisjoint(problem.cost_parts)


@dataclass(frozen=True, eq=False)
class ReducedProblem:
    """A placement problem in the form that the engine solves.

    `price`, in ms times operations and >= 0, shape (sites, sites), row = leader, is what a replica
    at r adds to the objective; None: nothing. UnsupportedError for too many crossing levels, or too
    many sets of voters where they are searched.
    """

    demand: Demand
    rules: Rules
    price: FloatArray | None = None

    def __post_init__(self) -> None:
        reason = ReducedProblem.refuses(self.demand, self.rules)
        if reason is not None:
            raise UnsupportedError(f"the engine does not support this problem: {reason}")

    @staticmethod
    def refuses(demand: Demand, rules: Rules) -> str | None:
        """Return why the engine does not support a problem, or None."""
        for role in ("voters", "replicas"):
            if len(site_families(rules, role)) > MOST_FAMILIES:
                return f"the rules for {role} are on too many crossing levels"
        if rules.witnesses:
            return "some voters are witnesses"
        if demand.has_waits:
            from placement.evaluation.waits.wait_cases import no_cases

            if (why := no_cases(demand, rules)) is not None:
                return why
        why = None
        if len(site_families(rules, "voters")) > 1:
            why = "the rules for voters are on crossing levels"
        elif demand.scenarios > 1 and bool(demand.quorum.any()):
            why = "RTTs vary by interval"
        if why is not None and (
            rules.replicas_max > _MOST_SEARCHED
            or math.comb(rules.replicas_max - 1, rules.voters - 1) > _MOST_VOTER_SETS
        ):
            return f"{why}, with too many sets of voters"
        return None

    @classmethod
    def of(cls, problem: Problem) -> ReducedProblem:
        """Build the core of a problem; see the class for what cannot be taken."""
        rules, price = problem.rules, None
        if rules.cost_weight:
            size = len(rules.may_hold)
            rows = [problem.site_costs(leader) for leader in range(size)]
            price = rules.cost_weight * np.array([row for row in rows if row is not None])
        return cls(problem.demand, rules, price)

    @classmethod
    def of_arrays(
        cls,
        client_rtt: npt.ArrayLike,
        site_rtt: npt.ArrayLike,
        weights: tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike, float],
        *,
        replicas: tuple[int, int],
        voters: int,
        quorum: int | None = None,
        may_hold: npt.ArrayLike | None = None,
        must_hold: npt.ArrayLike | None = None,
        may_vote: npt.ArrayLike | None = None,
        must_vote: npt.ArrayLike | None = None,
        may_lead: npt.ArrayLike | None = None,
        caps: Sequence[tuple[Role, npt.ArrayLike, int]] = (),
        groups: Sequence[GroupRule] = (),
        price: npt.ArrayLike | None = None,
    ) -> ReducedProblem:
        """Build one from bare arrays (benchmarks and tests; little is validated here).

        RTTs are in ms. `weights` are A, B, G of Eq. 1, each of shape (clients,), and D. `replicas`
        is the range of |R|, and `quorum` None a majority. Flags of sites have the shape (sites,);
        None: no restriction. A cap has the role, the label of each site and the most chosen per
        label; `groups` are other rules on failure domains. InputError for a site that must hold a
        replica and may not.
        """
        near, relay, direct = (np.atleast_2d(np.asarray(w, dtype=np.float64)) for w in weights[:3])
        rtt = np.ascontiguousarray(client_rtt, dtype=np.float64)
        clients, sites = rtt.shape

        def flags(given: npt.ArrayLike | None, default: bool) -> BoolArray:
            return np.full(sites, default) if given is None else np.array(given, dtype=np.bool_)

        hold, hold_must = flags(may_hold, True), flags(must_hold, False)
        vote, vote_must = flags(may_vote, True) & hold, flags(must_vote, False)
        hold_must = hold_must | vote_must
        if (hold_must & ~hold).any():  # the rules of a problem have none either
            raise InputError(
                "a site must hold a replica and may not",
                field="must_hold",
                value=np.flatnonzero(hold_must & ~hold).tolist(),
                expected="sites in may_hold",
            )
        ruled = []
        for role, labels, limit in caps:
            names, codes = np.unique(np.asarray(labels), return_inverse=True)
            ruled.append(
                GroupRule("level", role, codes, tuple(map(str, names)), limit, None, "a cap")
            )
        rules = Rules(
            replicas_min=max(replicas[0], voters),
            replicas_max=replicas[1],
            voters=voters,
            quorum=majority(voters) if quorum is None else quorum,
            may_hold=hold,
            must_hold=hold_must,
            may_vote=vote,
            must_vote=vote_must,
            may_lead=flags(may_lead, True) & vote,
            groups=(*ruled, *groups),
        )
        demand = Demand(
            client_rtt=rtt[np.newaxis],
            site_rtt=np.ascontiguousarray(site_rtt, dtype=np.float64)[np.newaxis],
            counts=np.ones((1, clients, 1)),
            coefficients=np.zeros((1, 4)),
            near=near,
            relay=relay,
            direct=direct,
            quorum=np.array([weights[3]], dtype=np.float64),
            operations=float(clients),
        )
        return cls(
            demand, rules, None if price is None else np.array(price, dtype=np.float64, order="C")
        )

    @property
    def clients(self) -> int:
        """Number of rows of clients: one per client and scenario."""
        return int(self.demand.client_rtt.shape[0] * self.demand.client_rtt.shape[1])

    @property
    def sites(self) -> int:
        """Number of sites."""
        return int(self.demand.client_rtt.shape[2])

    @property
    def client_rtt(self) -> FloatArray:
        """d(c, r), ms, shape (clients, sites), scenario by scenario."""
        return self.demand.client_rtt.reshape(-1, self.sites)

    @property
    def near(self) -> FloatArray:
        """A of Eq. 1, shape (clients,)."""
        return self.demand.near.reshape(-1)

    @property
    def relay(self) -> FloatArray:
        """B of Eq. 1, shape (clients,)."""
        return self.demand.relay.reshape(-1)

    @property
    def varies(self) -> bool:
        """True where there are several scenarios, so that waits for votes are only bounded."""
        return self.demand.scenarios > 1

    @cached_property
    def scenario(self) -> IntArray:
        """Scenario of every active client, shape (active clients,)."""
        return np.asarray(self.active // self.demand.client_rtt.shape[1])

    def relays(self, sites: IntArray, leader: int) -> FloatArray:
        """RTT, ms, from the sites of each active client, one or k in a row, to a leader."""
        scenario = self.scenario if sites.ndim == 1 else self.scenario[:, np.newaxis]
        return np.asarray(self.demand.site_rtt[scenario, sites, leader])

    @property
    def site_rtt(self) -> FloatArray:
        """d(r, s), ms, shape (sites, sites), row = the side that waits.

        Of several scenarios the floors of the waits, which carry the weights D already; for trips
        each row of clients has its own.
        """
        return self._wait_floors if self.varies else np.asarray(self.demand.site_rtt[0])

    @property
    def quorum_weight(self) -> float:
        """D of Eq. 1; 1 where cases, or the RTTs between sites, carry it; 0 without rounds."""
        if self.varies:
            return float(self.demand.quorum.any())
        return float(self.demand.quorum[0]) if self.cases is None else 1.0

    @cached_property
    def able_leaders(self) -> IntArray:
        """Sites that may lead, ascending."""
        return np.asarray(np.nonzero(self.rules.may_lead)[0])

    @cached_property
    def cases(self) -> SingleWaits | None:
        """Cases of the waits of the leaders; None where they wait for m votes alone."""
        if not self.demand.has_waits:
            return None
        from placement.evaluation.waits.wait_cases import SingleWaits, case_wait

        if not case_wait(self.demand):
            return None
        return SingleWaits.of(self.demand, self.rules, self.able_leaders)

    @cached_property
    def _wait_floors(self) -> FloatArray:
        """Floors of the waits of every leader, shape (sites, sites)."""
        rules, demand = self.rules, self.demand
        return wait_floors(
            demand.site_rtt,
            demand.quorum,
            quorum=rules.quorum,
            voters=rules.voters,
            may_vote=rules.may_vote,
        )

    @cached_property
    def families(self) -> dict[Role, tuple[SiteFamily, ...]]:
        """The diversity rules of each role as families of nested blocks."""
        return {
            "replicas": site_families(self.rules, "replicas"),
            "voters": site_families(self.rules, "voters"),
        }

    @cached_property
    def active(self) -> IntArray:
        """Clients whose nearest replica matters (A or B positive), ascending."""
        return _active(self.demand)

    @property
    def closest_sites(self) -> Int32Array:
        """Sites of every active client by (RTT, site), shape (active clients, sites)."""
        if len(self.active) * self.sites <= tuning.SORT_CELLS:
            return _order_of(self.demand)
        whole = len(self.active) == self.clients  # a large matrix is not copied
        return _order(self.client_rtt if whole else self.client_rtt[self.active])

    @cached_property
    def direct(self) -> FloatArray:
        """Σ_c G_c d(c, ℓ) and the constant for every leader ℓ, shape (sites,)."""
        direct = _over_clients(self.demand.direct.reshape(-1), self.client_rtt)
        return direct + self.demand.constant if self.demand.has_waits else direct

    @cached_property
    def leaders(self) -> IntArray:
        """Leaders by direct demand + quorum + relayed demand as if it came from the clients.

        Nearly their order by what they can reach; −1 alone when no leader matters.
        """
        if not self.leader_matters:
            return np.array([-1])
        guess = self.direct + self.quorum_weight * self._least_wait
        guess = guess + _over_clients(self.relay, self.client_rtt)
        order = np.argsort(guess, kind="stable")
        return np.asarray(order[self.rules.may_lead[order]])

    @cached_property
    def floors(self) -> FloatArray:
        """Direct demand, quorum, and everyone at its closest site: bounds of `leaders`."""
        may_hold = self.rules.may_hold
        if not may_hold.any():
            return np.full(len(self.leaders), np.inf)
        rtt = self.client_rtt if may_hold.all() else self.client_rtt[:, may_hold]
        floors = np.full(len(self.leaders), float(self.near @ rtt.min(axis=1)))
        if self.leader_matters:
            floors += (self.direct + self.quorum_weight * self._least_wait)[self.leaders]
        return np.asarray(floors * (1.0 - _ROUNDING * (self.clients + 16)))

    @cached_property
    def _least_wait(self) -> FloatArray:
        """q_ℓ if every site voted, or a bound of the wait by cases, shape (sites,)."""
        if self.cases is not None:
            least = np.full(self.sites, np.inf)
            least[self.able_leaders] = self.cases.floors()
            return least
        place = self.rules.quorum - 1
        return np.asarray(np.partition(self.site_rtt, place, axis=1)[:, place])

    @property
    def shares_multipliers(self) -> bool:
        """True where leaders can share multipliers: one scenario, and no pins of replicas."""
        return not (self.varies or self.rules.must_hold.any())

    @cached_property
    def leader_matters(self) -> bool:
        """True when any term of the objective depends on the leader; else one search serves all."""
        prices = () if self.price is None else self.price
        return _leader_matters(self.demand, prices)

    @cached_property
    def granularity(self) -> float:
        """1.0 when every score is a whole number and exact in doubles; else 0.

        Then a bound above score − 1 already proves the score.
        """
        demand = self.demand
        if demand.has_waits:
            return 0.0
        # small samples first: on real data they settle it
        for array in (
            demand.near,
            demand.relay,
            demand.direct,
            demand.quorum,
            self.client_rtt[:1],
            demand.site_rtt,
            self.client_rtt,
            self.price,
        ):
            if array is not None and not bool((array == np.floor(array)).all()):
                return 0.0
        longest = float(max(self.client_rtt.max(), demand.site_rtt.max()))
        weight = float(demand.near.sum() + demand.relay.sum() + demand.direct.sum())
        total = (weight + 2 * float(demand.quorum.sum())) * (longest + 1)
        if self.price is not None:
            total += float(self.price.max()) * self.sites
        return 1.0 if total * 4 < _WHOLE_LIMIT else 0.0

    def score(self, configuration: Configuration) -> float:
        """Objective of a configuration: Eq. 1 by the shared evaluator, plus prices."""
        total = score(
            self.demand,
            configuration.leader,
            configuration.voters,
            configuration.replicas,
            self.rules.quorum,
        )
        if self.price is not None:
            total += float(self.price[configuration.leader, list(configuration.replicas)].sum())
        return float(total)

    def configuration(self, leader: int, replicas: Sequence[int]) -> Configuration | None:
        """Replicas and leader with their best voters; None when there are none.

        A negative leader stands for "any": the first replica that can lead is taken.
        """
        chosen = sorted(int(r) for r in replicas)
        for candidate in chosen if leader < 0 else [leader]:
            if self.rules.may_lead[candidate]:
                voters = best_voters(self.demand, self.rules, candidate, chosen)
                if voters is not None:
                    return Configuration.of(candidate, voters, chosen)
        return None


def leader_groups(problem: Problem) -> list[tuple[int, ...]]:
    """Return the candidates for leader in groups: a plan costs the same whoever of a group leads.

    One group where no cost, weighted or limited, depends on the leader; else one for each site.
    """
    rules = problem.rules
    leaders = tuple(np.flatnonzero(rules.may_lead).tolist())
    counts = rules.cost_weight or rules.budget is not None
    prices = [problem.site_costs(leader) for leader in leaders if counts]
    alone = not leaders or _leader_matters(problem.demand, prices)
    return [(leader,) for leader in leaders] if alone else [leaders]


def _leader_matters(demand: Demand, prices: Iterable[FloatArray | None]) -> bool:
    first, *others = [row for row in prices if row is not None] or [np.zeros(0)]
    led = demand.quorum.any() or demand.relay.any() or demand.direct.any() or demand.has_waits
    return bool(led) or not all(np.array_equal(first, other) for other in others)
