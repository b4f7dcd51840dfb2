"""Parts of the program that a known configuration rules out because they would cost too much.

Every term of Eq. 1 is non-negative, so a few minima over single choices bound the objective below:

    b_ℓ = Σ_kc [ G d(c,ℓ) + min_{r ⪯_c ℓ} (A d(c,r) + B d(r,ℓ)) ] + Σ_k D_k ρ_ℓ1 + weight · cost_ℓ

with ρ_ℓ1 the smallest quorum wait (further waits of the leader count in the same way) and cost_ℓ
the price of the cheapest replicas that ℓ could have. A choice is left out when b_ℓ, with the
minimum it replaces taken out and its own cost put in, exceeds the objective U of a known
configuration for every leader that remains. Whatever is left out occurs in no configuration better
than U, nor in one equal to it: the comparison leaves a relative 1e-9.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from formulations.milp.program_data import ProgramData, flow_classes, guarded_sites
from placement.evaluation.waits.wait_rows import least_wait
from placement.support.checks import FloatArray, IntArray

__all__ = ["leader_bounds", "reduce_terms", "static_bound"]

_MARGIN = 1e-9


@dataclass(frozen=True)
class _ServiceCosts:
    """Cost of serving client i from site r, before the trip to the leader.

    Attributes
    ----------
    near
        A d(c, r), infinite where r may not serve i, shape (clients, sites).
    relay
        B, shape (clients,).
    scenario
        Of each client, shape (clients,).
    place
        Place of a site in the order of a client; that of other sites is after all, shape (clients,
        sites).
    between
        RTTs between sites, shape (scenarios, sites, sites).
    """

    near: FloatArray
    relay: FloatArray
    scenario: IntArray
    place: IntArray
    between: FloatArray

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
