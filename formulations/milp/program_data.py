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

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from placement.evaluation.cost_model import LinearCost, cost_model
from placement.evaluation.score import closest_first
from placement.evaluation.waits.wait_rows import LeaderWait, leader_waits, least_wait
from placement.model.constraints import Rules
from placement.model.demand import Demand
from placement.problem import Problem
from placement.support.checks import BoolArray, FloatArray, IntArray

_CLASS_RATIO = 1e6
"""Largest ratio of weights within a flow class: HiGHS drops matrix entries below 1e-9."""


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
    #: sites r of `order` for which the constraint "no site farther than r serves while r is open"
    #: is needed
    guarded: tuple[int, ...]
    #: cost per month of each site as the client's nearest replica, shape (sites,); None: nothing,
    #: or no cost counts
    paid: FloatArray | None = None


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
    classes: tuple[FlowClass, ...]  #: forwarding clients by magnitude
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

    def leader_price(self, leader: int) -> FloatArray:
        """Price of a replica at every site under a leader, shape (sites,); zeros without prices."""
        costs = self.problem.site_costs(leader)
        return np.zeros(len(self.problem.instance.sites)) if costs is None else costs

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
    """Collect the data of the program.

    Notes
    -----
    A client never needs the n − 1 sites farthest from it when n replicas are held at least: one of
    the other sites is closer.

    The m-th smallest of v waits out of the voters' candidates has m − 1 of them before it and v − m
    after it, which bounds its rank, and so the radii, on both sides.

    O(K·C·S log S + L·S log S).
    """
    rules, demand = problem.rules, problem.demand
    holders = np.nonzero(rules.may_hold)[0]
    voters = np.nonzero(rules.may_vote)[0]
    leaders = np.nonzero(rules.may_lead)[0]
    if rules.must_vote.sum() == rules.voters:  # the leader is one of the voters
        leaders = leaders[rules.must_vote[leaders]]
    led: dict[tuple[int, int, int], LeaderWait] = {}
    if demand.waits:
        found = {ell: leader_waits(demand, rules, ell) for ell in leaders.tolist()}
        ends = [all(wait.radii for wait in waits.values()) for waits in found.values()]
        leaders = leaders[np.array(ends, dtype=bool)]
        led = {(*key, ell): found[ell][key] for ell in leaders.tolist() for key in found[ell]}
    keep = max(1, len(holders) - rules.replicas_min + 1)
    clients = client_rows(demand, holders, keep, rules.must_hold, leaders)
    model = cost_model(problem.instance) if "near reads" in problem.cost_parts else None
    if model is not None and model.nearest is not None:
        paying = [replace(row, paid=model.nearest[row.client]) for row in clients]
        clients = [
            replace(row, guarded=guarded_sites(row, demand, leaders, rules)) for row in paying
        ]
    radii: dict[tuple[int, int], tuple[float, ...]] = {}
    if rules.quorum > 1:
        last = len(voters) - rules.voters + rules.quorum
        radii = quorum_radii(demand, leaders, voters, slice(rules.quorum - 1, last))
    direct = np.einsum("kc,kcs->s", demand.direct, demand.client_rtt)
    return ProgramData(
        problem=problem,
        holders=tuple(holders.tolist()),
        voters=tuple(voters.tolist()),
        leaders=tuple(leaders.tolist()),
        clients=tuple(clients),
        classes=flow_classes(clients),
        radii=radii,
        direct={int(leader): float(direct[leader]) + demand.constant for leader in leaders},
        led=led,
    )


def quorum_radii(
    demand: Demand, leaders: IntArray, voters: IntArray, ranks: slice
) -> dict[tuple[int, int], tuple[float, ...]]:
    """Return the possible quorum waits by (scenario, leader), in ms and ascending. O(K·S² log S).

    Parameters
    ----------
    demand
        Scenarios without a vote are left out.
    leaders, voters
        Sites, ascending.
    ranks
        Ranks of the voter that a commit may wait for, by RTT from the leader.
    """
    return {
        (k, leader): tuple(np.unique(np.sort(demand.site_rtt[k, leader, voters])[ranks]).tolist())
        for k in np.nonzero(demand.quorum > 0)[0].tolist()
        for leader in leaders.tolist()
    }


def client_rows(
    demand: Demand,
    holders: npt.NDArray[np.integer],
    keep: int,
    pinned: BoolArray,
    leaders: npt.NDArray[np.integer],
) -> list[Client]:
    """List the clients with operations at, or by way of, their nearest replica.

    A client's list of sites ends at its nearest pinned replica, which it would never pass by.

    Parameters
    ----------
    demand
        What they ask.
    holders
        Sites that may hold a replica.
    keep
        How many of the closest holders can matter to a client.
    pinned
        Sites that hold a replica in any case, shape (sites,).
    leaders
        Sites that may lead.

    Notes
    -----
    O(K·C·S log S).
    """
    clients: list[Client] = []
    for k in range(demand.scenarios if len(holders) else 0):
        ranked = closest_first(demand.client_rtt[k][:, holders])
        for c in np.nonzero((demand.near[k] > 0) | (demand.relay[k] > 0))[0]:
            order = holders[ranked[c]][:keep]
            pins = np.nonzero(pinned[order])[0]
            if len(pins):
                order = order[: pins[0] + 1]
            sites = tuple(order.tolist())
            near, relay = float(demand.near[k, c]), float(demand.relay[k, c])
            row = Client(k, int(c), near, relay, sites, sites, ())
            clients.append(replace(row, guarded=guarded_sites(row, demand, leaders)))
    return clients


def flow_classes(clients: list[Client]) -> tuple[FlowClass, ...]:
    """Group forwarding clients by scenario and magnitude of B, largest first."""
    classes = []
    for k in sorted({client.scenario for client in clients}):
        forwarding = [i for i, row in enumerate(clients) if row.scenario == k and row.relay > 0]
        forwarding.sort(key=lambda i: -clients[i].relay)
        group: list[int] = []
        for i in forwarding:
            if group and clients[group[0]].relay > _CLASS_RATIO * clients[i].relay:
                classes.append(_flow_class(k, group, clients))
                group = []
            group.append(i)
        if group:
            classes.append(_flow_class(k, group, clients))
    return tuple(classes)


def _flow_class(k: int, group: list[int], clients: list[Client]) -> FlowClass:
    return FlowClass(k, tuple(group), math.fsum(clients[i].relay for i in group))


def guarded_sites(
    client: Client,
    demand: Demand,
    leaders: npt.NDArray[np.integer],
    rules: Rules | None = None,
) -> tuple[int, ...]:
    """Sites whose closest-assignment row is not implied by the objective.

    The row of r says that nothing farther than r serves c while r is open. It is implied when being
    served by r costs no more than by any farther s, under any leader:

        A d(c,r) + B d(r,ℓ) ≤ A d(c,s) + B d(s,ℓ)      for all s ≻_c r that may serve, all ℓ.

    For then what a solution (even a fractional one) serves from s beyond what the row allows can
    be moved to r at no cost, because z_cr ≤ x_r leaves room as long as the row is violated.
    Clients that forward nothing and pay nothing need no rows at all. The cost of a client counts
    with the weight of the cost in `rules`; under a budget it must not fall with the distance
    either.
    """
    if (client.relay == 0 and client.paid is None) or len(client.order) < 2:
        return ()
    order = np.array(client.order, dtype=np.intp)
    cost = (
        client.near * demand.client_rtt[client.scenario, client.client, order][:, np.newaxis]
        + client.relay * demand.site_rtt[client.scenario][np.ix_(order, leaders)]
    )
    if client.paid is not None and rules is not None:
        paid = client.paid[order][:, np.newaxis]
        cost += rules.cost_weight * paid
        if rules.budget is not None:
            cost = np.hstack([cost, paid])
    serving = np.isin(order, np.array(client.serving, dtype=np.intp))
    farther = np.where(serving[:, np.newaxis], cost, np.inf)
    cheapest_after = np.minimum.accumulate(farther[::-1], axis=0)[::-1]
    implied = (cost[:-1] <= cheapest_after[1:]).all(axis=1)
    return tuple(order[:-1][~implied].tolist())


_MARGIN = 1e-9


@dataclass(frozen=True)
class _ServiceCosts:
    """Cost of serving client i from site r, before the trip to the leader."""

    near: FloatArray  #: a d(c, r), infinite where r may not serve i, shape (clients, sites)
    relay: FloatArray  #: B, shape (clients,)
    scenario: IntArray  #: of each client, shape (clients,)
    #: place of a site in the order of a client; that of other sites is after all, shape (clients,
    #: sites)
    place: IntArray
    between: FloatArray  #: RTTs between sites, shape (scenarios, sites, sites)

    @classmethod
    def of(cls, terms: ProgramData) -> _ServiceCosts:
        """Collect the rows of the clients."""
        demand = terms.demand
        size = demand.client_rtt.shape[2]
        near = np.full((len(terms.clients), size), np.inf)
        place = np.full(near.shape, size, dtype=np.intp)
        for i, row in enumerate(terms.clients):
            sites = np.array(row.serving, dtype=np.intp)
            near[i, sites] = row.near * demand.client_rtt[row.scenario, row.client, sites]
            place[i, np.array(row.order, dtype=np.intp)] = np.arange(len(row.order))
        return cls(
            near=near,
            relay=np.array([row.relay for row in terms.clients]),
            scenario=np.array([row.scenario for row in terms.clients], dtype=np.intp),
            place=place,
            between=demand.site_rtt,
        )

    def under(self, leader: int) -> tuple[FloatArray, FloatArray]:
        """Return the costs under a leader, shape (clients, sites), and the least of each client.

        Infinite also where a site lies farther from the client than the leader.
        """
        if not len(self.near):
            return self.near, np.zeros(0)
        cost = self.near + self.relay[:, np.newaxis] * self.between[self.scenario, :, leader]
        cost[self.place > self.place[:, leader, np.newaxis]] = np.inf
        return cost, cost.min(axis=1)


def leader_bounds(terms: ProgramData) -> dict[int, float]:
    """b_ℓ of every leader candidate. O(L·K·C·S)."""
    rules, demand = terms.problem.rules, terms.demand
    holders = np.array(terms.holders, dtype=np.intp)
    bounds, service = {}, _ServiceCosts.of(terms)
    for leader in terms.leaders:
        waits = sum(
            demand.quorum[k] * waits[0] for (k, ell), waits in terms.radii.items() if ell == leader
        )
        money = 0.0
        if rules.cost_weight:
            prices = terms.leader_price(leader)
            others = np.sort(prices[holders[holders != leader]])[: rules.replicas_min - 1]
            money = rules.cost_weight * float(prices[leader] + others.sum())
        served = float(service.under(leader)[1].sum())
        led = least_wait([wait for (_, _, ell), wait in terms.led.items() if ell == leader])
        bounds[leader] = terms.direct[leader] + served + float(waits) + led + money
    return bounds


def static_bound(terms: ProgramData) -> float:
    """Lower bound on every configuration, min over ℓ of b_ℓ, rounded down; +∞ without leaders."""
    least = min(leader_bounds(terms).values(), default=np.inf)
    return least * (1 - 1e-12)


def reduce_terms(terms: ProgramData, cutoff: float) -> ProgramData:
    """Leave out terms that no configuration of objective `cutoff` or better uses.

    Parameters
    ----------
    terms
        The data.
    cutoff
        Objective of a feasible configuration, unscaled.

    Notes
    -----
    Sites stay in `Client.order` when they may no longer serve: opening one would still keep the
    client from being served farther away, and the guarding rows say so. O(L·K·C·S).
    """
    limit = cutoff * (1 + _MARGIN)
    bounds, rules = leader_bounds(terms), terms.problem.rules
    leaders = tuple(leader for leader in terms.leaders if bounds[leader] <= limit)
    demand = terms.demand
    cheap = np.zeros((len(terms.clients), demand.client_rtt.shape[2]), dtype=bool)
    service = _ServiceCosts.of(terms)
    for leader in leaders:
        cost, least = service.under(leader)
        cheap |= bounds[leader] - least[:, np.newaxis] + cost <= limit
    array = np.array(leaders, dtype=np.intp)
    clients = []
    for i, row in enumerate(terms.clients):
        serving = tuple(r for r in row.serving if cheap[i, r])
        smaller = dataclasses.replace(row, serving=serving)
        guarded = guarded_sites(smaller, demand, array, rules)
        clients.append(dataclasses.replace(smaller, guarded=guarded))
    radii = {
        (k, leader): tuple(
            wait for wait in waits if bounds[leader] + demand.quorum[k] * (wait - waits[0]) <= limit
        )
        for (k, leader), waits in terms.radii.items()
        if leader in leaders
    }
    return dataclasses.replace(
        terms,
        leaders=leaders,
        clients=tuple(clients),
        classes=flow_classes(clients),
        radii=radii,
        direct={leader: terms.direct[leader] for leader in leaders},
        led={key: wait for key, wait in terms.led.items() if key[2] in leaders},
    )
