"""The data of the program: who may hold, vote and lead, who can serve whom, which radii can occur.

Index sets are cut down to what a feasible configuration can use; each cut is exact and says why.

The objective of a known configuration rules out more: what would cost too much. Every term of
Eq. 1 is non-negative, so a few minima over single choices bound the objective below:

    b_ℓ = Σ_kc [ G d(c,ℓ) + min_{r ⪯_c ℓ} (A d(c,r) + B d(r,ℓ)) ] + Σ_k D_k ρ_ℓ1 + weight · cost_ℓ

with ρ_ℓ1 the smallest quorum wait (further waits of the leader count in the same way) and cost_ℓ
the price of the cheapest replicas that ℓ could have. A choice is left out when b_ℓ, with the
minimum it replaces taken out and its own cost put in, exceeds the objective U of a known
configuration for every leader that remains. Whatever is left out occurs in no configuration better
than U, nor in one equal to it: the comparison leaves a relative 1e-9.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from placement.evaluation.cost_model import LinearCost, cost_model
from placement.evaluation.score import closest_first
from placement.evaluation.waits.wait_rows import LeaderWait, leader_waits, least_wait
from placement.model.demand import Demand
from placement.problem import Problem
from placement.support.checks import FloatArray

_CLASS_RATIO = 1e6
"""Largest ratio of weights within a flow class: HiGHS drops matrix entries below 1e-9."""

_MARGIN = 1e-9


@dataclass(frozen=True, eq=False)
class Client:
    """A client in one scenario that has operations at, or by way of, its nearest replica."""

    #: `scenario`, `client`: k and c
    scenario: int
    client: int
    #: `near`, `relay`: A and B of Eq. 1, weighted counts of round trips.
    near: float
    relay: float
    order: tuple[int, ...]  #: sites that can matter to it, closest first in its strict order
    #: those of `order` that may serve it in a plan worth finding, in the same order
    serving: tuple[int, ...]
    #: cost per month of each site as the client's nearest replica, shape (sites,); None: nothing,
    #: or no cost counts
    paid: FloatArray | None = None
    #: sites r of `order` for which the constraint "no site farther than r serves while r is open"
    #: is needed
    guarded: tuple[int, ...] = ()

    def not_beyond(self, leader: int) -> tuple[int, ...]:
        """Return the sites of `serving` that are not farther than the leader."""
        if leader not in self.order:
            return self.serving
        ball = set(self.order[: self.order.index(leader) + 1])
        return tuple(r for r in self.serving if r in ball)


@dataclass(frozen=True, eq=False)
class FlowClass:
    """Clients of one scenario whose forwarded weights B_c lie within a factor of a million."""

    scenario: int  #: k
    members: tuple[int, ...]  #: positions in `ProgramData.clients`
    weight: float  #: Σ B_c over the members


@dataclass(frozen=True, eq=False)
class ProgramData:
    """Data of the rows and the objective, on site indices and unscaled."""

    problem: Problem  #: the question
    #: `holders`, `voters`, `leaders`: sites that may hold a replica, vote, lead; ascending
    holders: tuple[int, ...]
    voters: tuple[int, ...]
    leaders: tuple[int, ...]
    clients: tuple[Client, ...]  #: see Client
    #: (scenario, leader) -> distinct quorum waits that can occur in ms, ascending. Scenarios
    #: without transactions, and quorums of one (which cost nothing), have no entries.
    radii: Mapping[tuple[int, int], tuple[float, ...]]
    #: leader -> Σ_kc G d(c, ℓ) and the constants of operations, ms times operations
    direct: Mapping[int, float]
    #: (wait, scenario, leader) -> the waits of leaders beside the rounds of votes
    led: Mapping[tuple[int, int, int], LeaderWait]

    @property
    def demand(self) -> Demand:
        """Demand of the problem."""
        return self.problem.demand

    @cached_property
    def classes(self) -> tuple[FlowClass, ...]:
        """Forwarding clients by scenario and magnitude of B, largest first."""
        clients, groups = self.clients, list[list[int]]()
        forwarding = [i for i, row in enumerate(clients) if row.relay > 0]
        for i in sorted(forwarding, key=lambda i: (clients[i].scenario, -clients[i].relay)):
            row, first = clients[i], clients[groups[-1][0]] if groups else None
            alike = first is not None and first.scenario == row.scenario
            if first is None or not alike or first.relay > _CLASS_RATIO * row.relay:
                groups.append([])
            groups[-1].append(i)
        return tuple(
            FlowClass(
                clients[group[0]].scenario,
                tuple(group),
                math.fsum(clients[i].relay for i in group),
            )
            for group in groups
        )

    def senders(self, group: FlowClass) -> list[int]:
        """Return the sites that may serve a client of a class, ascending."""
        return sorted({r for i in group.members for r in self.clients[i].serving})

    def longest_wait(self, scenario: int) -> float:
        """Longest quorum wait of a scenario that any leader can have, in ms; 1 when all are 0."""
        return max(waits[-1] for (k, _), waits in self.radii.items() if k == scenario) or 1.0

    @cached_property
    def costs(self) -> Mapping[int, LinearCost]:
        """Leader -> cost as a linear function; empty where no cost counts."""
        model, rules = cost_model(self.problem.instance), self.problem.rules
        if model is None or (rules.budget is None and not rules.cost_weight):
            return {}
        return {leader: model.linear(leader) for leader in self.leaders}

    @cached_property
    def least_prices(self) -> FloatArray:
        """Least price of a replica at each site over the leaders, shape (sites,)."""
        return np.asarray(np.min([cost.replica for cost in self.costs.values()], axis=0))

    @cached_property
    def prices_vary(self) -> bool:
        """Return whether cost counts and prices of replicas depend on who leads."""
        return any((cost.replica > self.least_prices).any() for cost in self.costs.values())


def program_data(problem: Problem) -> ProgramData:
    """Collect the data of the program. O(K·C·S log S + L·S log S).

    The m-th smallest of v waits out of the voters' candidates has m − 1 of them before it and v − m
    after it, which bounds its rank, and so the radii, on both sides.
    """
    rules, demand = problem.rules, problem.demand
    voters, leaders = np.nonzero(rules.may_vote)[0], np.nonzero(rules.may_lead)[0]
    if rules.must_vote.sum() == rules.voters:  # the leader is one of the voters
        leaders = leaders[rules.must_vote[leaders]]
    found = {ell: leader_waits(demand, rules, ell) for ell in leaders.tolist()}
    able = [ell for ell, waits in found.items() if all(wait.radii for wait in waits.values())]
    direct = np.einsum("kc,kcs->s", demand.direct, demand.client_rtt)
    ranks = slice(rules.quorum - 1, len(voters) - rules.voters + rules.quorum)
    terms = ProgramData(
        problem=problem,
        holders=tuple(np.nonzero(rules.may_hold)[0].tolist()),
        voters=tuple(voters.tolist()),
        leaders=tuple(able),
        clients=tuple(_clients(problem)),
        radii={
            (k, ell): tuple(np.unique(np.sort(demand.site_rtt[k, ell, voters])[ranks]).tolist())
            for k in np.nonzero(demand.quorum > 0)[0].tolist()
            for ell in able
            if rules.quorum > 1
        },
        direct={ell: float(direct[ell]) + demand.constant for ell in able},
        led={(*key, ell): wait for ell in able for key, wait in found[ell].items()},
    )
    return _guarded(terms)


def _clients(problem: Problem) -> Iterator[Client]:
    """Yield the clients with operations at, or by way of, their nearest replica.

    A client never needs the n − 1 sites farthest from it when n replicas are held at least: one of
    the other sites is closer. It never passes by its nearest pinned replica.
    """
    rules, demand = problem.rules, problem.demand
    model = cost_model(problem.instance) if "near reads" in problem.cost_parts else None
    prices = None if model is None else model.nearest
    holders = np.nonzero(rules.may_hold)[0]
    keep = max(1, len(holders) - rules.replicas_min + 1)
    for k in range(demand.scenarios if len(holders) else 0):
        ranked = closest_first(demand.client_rtt[k][:, holders])
        for c in np.nonzero((demand.near[k] > 0) | (demand.relay[k] > 0))[0].tolist():
            order = holders[ranked[c]][:keep]
            pins = np.nonzero(rules.must_hold[order])[0]
            sites = tuple(order[: pins[0] + 1 if len(pins) else keep].tolist())
            near, relay = float(demand.near[k, c]), float(demand.relay[k, c])
            yield Client(k, c, near, relay, sites, sites, None if prices is None else prices[c])


def _guarded(terms: ProgramData) -> ProgramData:
    """Return the data with the rows that its clients need."""
    leaders = np.array(terms.leaders, dtype=np.intp)
    each = [(row, guarded_sites(row, terms.problem, leaders)) for row in terms.clients]
    return replace(terms, clients=tuple(replace(row, guarded=sites) for row, sites in each))


def guarded_sites(
    client: Client, problem: Problem, leaders: npt.NDArray[np.integer]
) -> tuple[int, ...]:
    """Sites whose closest-assignment row is not implied by the objective.

    The row of r says that nothing farther than r serves c while r is open. It is implied when being
    served by r costs no more than by any farther s, under any leader:

        A d(c,r) + B d(r,ℓ) ≤ A d(c,s) + B d(s,ℓ)      for all s ≻_c r that may serve, all ℓ.

    For then what a solution (even a fractional one) serves from s beyond what the row allows can
    be moved to r at no cost, because z_cr ≤ x_r leaves room as long as the row is violated.
    Clients that forward nothing and pay nothing need no rows at all. What a client pays counts
    with the weight of the cost; under a budget it must not fall with the distance either.
    """
    if (client.relay == 0 and client.paid is None) or len(client.order) < 2:
        return ()
    demand, rules = problem.demand, problem.rules
    order = np.array(client.order, dtype=np.intp)
    cost = (
        client.near * demand.client_rtt[client.scenario, client.client, order][:, np.newaxis]
        + client.relay * demand.site_rtt[client.scenario][np.ix_(order, leaders)]
    )
    if client.paid is not None:
        paid = client.paid[order][:, np.newaxis]
        cost += rules.cost_weight * paid
        if rules.budget is not None:
            cost = np.hstack([cost, paid])
    serving = np.isin(order, np.array(client.serving, dtype=np.intp))
    farther = np.where(serving[:, np.newaxis], cost, np.inf)
    cheapest_after = np.minimum.accumulate(farther[::-1], axis=0)[::-1]
    implied = (cost[:-1] <= cheapest_after[1:]).all(axis=1)
    return tuple(order[:-1][~implied].tolist())


def _services(terms: ProgramData) -> Iterator[tuple[int, FloatArray, FloatArray]]:
    """Yield each leader, the cost of every client at every site, and the least of each client.

    Shapes (clients, sites) and (clients,). Infinite where a site may not serve the client, or lies
    farther from it than the leader.
    """
    demand = terms.demand
    near = np.full((len(terms.clients), demand.client_rtt.shape[2]), np.inf)
    place = np.full(near.shape, near.shape[1], dtype=np.intp)  # that of other sites is after all
    for i, row in enumerate(terms.clients):
        sites = np.array(row.serving, dtype=np.intp)
        near[i, sites] = row.near * demand.client_rtt[row.scenario, row.client, sites]
        place[i, np.array(row.order, dtype=np.intp)] = np.arange(len(row.order))
    relay = np.array([row.relay for row in terms.clients])[:, np.newaxis]
    scenario = np.array([row.scenario for row in terms.clients], dtype=np.intp)
    for leader in terms.leaders:
        cost = near + relay * demand.site_rtt[scenario, :, leader]
        cost[place > place[:, leader, np.newaxis]] = np.inf
        yield leader, cost, cost.min(axis=1) if len(cost) else np.zeros(0)


def leader_bounds(terms: ProgramData) -> dict[int, float]:
    """b_ℓ of every leader candidate. O(L·K·C·S)."""
    rules, rounds = terms.problem.rules, terms.demand.quorum
    bounds = {}
    for leader, _, least in _services(terms):
        own = [(k, waits[0]) for (k, ell), waits in terms.radii.items() if ell == leader]
        waits = float(sum(rounds[k] * wait for k, wait in own))
        led = least_wait([wait for (*_, ell), wait in terms.led.items() if ell == leader])
        money, prices = 0.0, terms.problem.site_costs(leader)
        if rules.cost_weight and prices is not None:
            others = prices[[site for site in terms.holders if site != leader]]
            cheapest = np.sort(others)[: rules.replicas_min - 1]
            money = rules.cost_weight * float(prices[leader] + cheapest.sum())
        bounds[leader] = terms.direct[leader] + float(least.sum()) + waits + led + money
    return bounds


def static_bound(terms: ProgramData) -> float:
    """Lower bound on every configuration, min over ℓ of b_ℓ, rounded down; +∞ without leaders."""
    least = min(leader_bounds(terms).values(), default=np.inf)
    return least * (1 - 1e-12)


def reduce_terms(terms: ProgramData, cutoff: float) -> ProgramData:
    """Leave out terms that no configuration of objective `cutoff` or better uses. O(L·K·C·S).

    Sites stay in `Client.order` when they may no longer serve: opening one would still keep the
    client from being served farther away, and the guarding rows say so.
    """
    limit, rounds = cutoff * (1 + _MARGIN), terms.demand.quorum
    bounds = {leader: b for leader, b in leader_bounds(terms).items() if b <= limit}
    cheap = np.zeros((len(terms.clients), terms.demand.client_rtt.shape[2]), dtype=bool)
    for leader, cost, least in _services(terms):
        if leader in bounds:
            cheap |= bounds[leader] - least[:, np.newaxis] + cost <= limit
    clients = [
        replace(row, serving=tuple(r for r in row.serving if cheap[i, r]))
        for i, row in enumerate(terms.clients)
    ]
    radii = {
        (k, leader): tuple(w for w in waits if bounds[leader] + rounds[k] * (w - waits[0]) <= limit)
        for (k, leader), waits in terms.radii.items()
        if leader in bounds
    }
    smaller = replace(
        terms,
        leaders=tuple(bounds),
        clients=tuple(clients),
        radii=radii,
        direct={leader: terms.direct[leader] for leader in bounds},
        led={key: wait for key, wait in terms.led.items() if key[2] in bounds},
    )
    return _guarded(smaller)
