"""Use of shared limits as rows of numbers: what each configuration of a database takes of them.

For a fixed leader ℓ the use of every limit is linear in the placement. With the price π of each row
and the replicas R, a configuration pays

    Σ_{r ∈ R} price[ℓ, r]
    price[ℓ, r] = storage_gb · π_storage[r]  +  [r = ℓ] · leader_operations · π_leader[ℓ]
                + [r ≠ ℓ] · written_gb · π_egress[ℓ]
                + [r new] · (π_moves + storage_gb · π_moved)  +  Σ_{groups} π_apart[group, r]

which is the form of a price of replicas that the exact search takes. Where reads and the loads
after a loss are limited, the use is no such sum. The price is then a sum of this form that is never
above the true price: bounds stay bounds, and may be less tight.

*After a loss.* There is a row for each lost site f and each remaining site s. Leader ℓ takes row
(f, ℓ) for every f ≠ ℓ, and for f = ℓ the row (ℓ, s) of its successor s, at least the cheapest. Of
reads the same holds for the replica that answers them. A database that may stop after a loss takes
row (f, ℓ) for every f without a replica at least, the cheapest S − |R| of them.

A database goes on as :mod:`placement.evaluation.losses` says: the remaining replicas serve, and the
number of votes stays. The best of the remaining voters follows a lost leader, among equal voters
the first in the order of the sites. No replica is recreated, so the storage of a site does not
grow. A database with too few voters stops, and uses no capacity.

*Reads* go to the nearest replica. The price lets each client choose the replica with the least
RTT plus price instead (:meth:`SharedRows.demand`).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from placement.evaluation.cost_model import LinearCost
from placement.evaluation.losses import score_after, survivors
from placement.evaluation.score import nearest
from placement.fleet.fleet_problem import FleetMember, FleetProblem
from placement.model.configuration import Configuration
from placement.model.constraints import Rules
from placement.model.demand import Demand
from placement.support.checks import BoolArray, FloatArray, IntArray

__all__ = ["PricedQuestion", "Service", "SharedRows", "service_after", "service_of"]

_SERVICE = {
    "leader_operations": "leader operations",
    "egress_gb": "outgoing GB",
    "reads_served": "reads",
}
"""Limits that hold after the loss of a site too, with the names of their rows."""


class SharedRows:
    """The finite limits of a fleet as rows: names, capacities, use and prices.

    Parameters
    ----------
    fleet
        The databases and their limits.

    Attributes
    ----------
    names
        What each row limits, such as ``"storage GB at eu-west-1"``.
    capacity
        Limit of each row, shape (rows,).
    """

    def __init__(self, fleet: FleetProblem) -> None:
        self.fleet = fleet
        limits, sites = fleet.limits, len(fleet.sites)
        names: list[str] = []
        capacity: list[float] = []

        def add(what: str, limit: FloatArray | None) -> IntArray | None:
            """Add a row for each site with a finite limit; return the rows, −1 without a limit."""
            if limit is None:
                return None
            rows = np.full(sites, -1)
            for site in np.flatnonzero(np.isfinite(limit)):
                rows[site] = len(names)
                names.append(f"{what} at {fleet.sites[site]}")
                capacity.append(float(limit[site]))
            return rows

        def add_one(what: str, limit: float | None) -> int:
            if limit is None or not np.isfinite(limit):
                return -1
            names.append(what)
            capacity.append(float(limit))
            return len(names) - 1

        self._storage = add("storage GB", limits.storage_gb)
        self._leading = add("leader operations", limits.leader_operations)
        self._egress = add("outgoing GB", limits.egress_gb)
        self._reads = add("reads", limits.reads_served)
        self._moves = add_one("new replicas", limits.most_moves)
        self._moved = add_one("GB moved", limits.most_moved_gb)
        self._apart: dict[str, list[IntArray]] = {}
        for number, group in enumerate(limits.apart, 1):
            rows = add(f"databases of group {number}", np.ones(sites))
            assert rows is not None
            for name in group:
                self._apart.setdefault(name, []).append(rows)
        self._after: dict[str, IntArray] = {}
        for field, what in _SERVICE.items() if limits.headroom else ():
            given = getattr(limits, field)
            if given is None:
                continue
            found = np.full((sites, sites), -1)
            for lost in range(sites):
                room = np.where(np.arange(sites) == lost, np.inf, given)
                rows = add(f"{what} without {fleet.sites[lost]}", room)
                assert rows is not None
                found[lost] = rows
            self._after[field] = found
        self.names = tuple(names)
        self.capacity = np.array(capacity, dtype=np.float64)

    def use(self, member: FleetMember, configuration: Configuration) -> FloatArray:
        """Return the use of each row by one database with a configuration, shape (rows,)."""
        found = np.zeros(len(self.capacity) + 1)  # the last is that of row −1: no limit
        replicas = np.array(configuration.replicas, dtype=np.intp)
        if self._storage is not None:
            np.add.at(found, self._storage[replicas], member.storage_gb)
        if self._leading is not None:
            found[self._leading[configuration.leader]] += member.leader_load
        if self._egress is not None:
            shipped = member.written_gb * (len(replicas) - 1)
            found[self._egress[configuration.leader]] += shipped
        if self.has_services:
            self._add_service(found, member, configuration)
        new = int(self._is_new(member)[replicas].sum())
        found[self._moves] += new
        found[self._moved] += new * member.storage_gb
        for rows in self._apart.get(member.name, ()):
            np.add.at(found, rows[replicas], 1.0)
        return found[:-1]

    @property
    def has_services(self) -> bool:
        """Return whether reads or the loads after a loss are limited: no sums over replicas."""
        return self._reads is not None or bool(self._after)

    def _add_service(
        self, found: FloatArray, member: FleetMember, configuration: Configuration
    ) -> None:
        """Add the reads, and the loads after each loss, to the use of a configuration."""
        reads = self._reads is not None
        replicas = configuration.replicas
        normal = service_of(member, configuration.leader, replicas, reads=reads)
        if self._reads is not None:
            found[self._reads] += normal.reads_served  # rows −1 come together in the last
        if not self._after:
            return
        after = {lost: service_after(member, configuration, lost, reads=reads) for lost in replicas}
        for field, rows in self._after.items():
            load = np.tile(getattr(normal, field), (len(rows), 1))
            for lost, left in after.items():
                load[lost] = 0.0 if left is None else getattr(left, field)
            found[rows] += load

    def price(self, member: FleetMember, prices: FloatArray) -> FloatArray:
        """Return the price of a replica at each site under each leader, shape (sites, sites).

        Row = leader. The sum over the replicas of a configuration is the price of its use,
        ``prices @ use(member, configuration)``, without that of its reads (:meth:`demand`); with
        rows of losses it is at most that.
        """
        padded, sites = np.append(prices, 0.0), len(self.fleet.sites)
        each = np.where(self._is_new(member), padded[self._moves], 0.0)
        each = each + np.where(self._is_new(member), member.storage_gb * padded[self._moved], 0.0)
        if self._storage is not None:
            each = each + member.storage_gb * padded[self._storage]
        for rows in self._apart.get(member.name, ()):
            each = each + padded[rows]
        found = np.tile(each, (sites, 1))
        if self._egress is not None:
            shipped = np.tile((member.written_gb * padded[self._egress])[:, np.newaxis], sites)
            if "egress_gb" in self._after:
                after = padded[self._after["egress_gb"]]
                if _goes_on_without_any_voter(member):
                    # leader ℓ ships to r after every loss except the losses of ℓ and r
                    shipped += member.written_gb * (after.sum(axis=0)[:, np.newaxis] - after.T)
                    others = max(member.problem.rules.replicas_min - 2, 0)
                    moved = others * member.written_gb * self._cheapest_successor(member, after)
                    found[np.diag_indices(sites)] += moved
                else:
                    kept = self._least_elsewhere(member, after)
                    shipped += member.written_gb * kept[:, np.newaxis]
            np.fill_diagonal(shipped, 0.0)
            found += shipped
        if self._leading is not None:
            leading = padded[self._leading] + self._after_loss("leader_operations", member, padded)
            found[np.diag_indices(sites)] += member.leader_load * leading
        return np.asarray(found)

    def demand(self, member: FleetMember, prices: FloatArray) -> Demand:
        """Return the demand of a database, with the prices of reads as longer ways to the sites.

        The score of a configuration under it is at most its score plus the price of its reads.
        Clients count twice where reads have prices: with their reads, and with all else.
        """
        demand = member.problem.demand
        if self._reads is None:
            return demand
        padded = np.append(prices, 0.0)
        price = padded[self._reads] + self._after_loss("reads_served", member, padded)
        if not price.any():
            return demand
        nearby = member.answered_nearby
        weights = demand.counts @ np.where(nearby, demand.coefficients[:, 0], 0.0)
        others = demand.counts @ np.where(nearby, 0.0, demand.coefficients[:, 0])
        reading = weights > 0
        share = np.divide(member.reads, weights, out=np.zeros_like(weights), where=reading)
        longer = demand.client_rtt + share[:, :, np.newaxis] * price
        nothing = np.zeros_like(weights)
        return dataclasses.replace(
            demand,
            client_rtt=np.concatenate([demand.client_rtt, longer], axis=1),
            counts=np.concatenate([demand.counts, np.zeros_like(demand.counts)], axis=1),
            near=np.concatenate([others, weights], axis=1),
            relay=np.concatenate([demand.relay, nothing], axis=1),
            direct=np.concatenate([demand.direct, nothing], axis=1),
        )

    def _after_loss(self, field: str, member: FleetMember, padded: FloatArray) -> FloatArray:
        """Return the least price, by site, of serving there, over all losses, shape (sites,)."""
        if field not in self._after:
            return np.zeros(len(self.fleet.sites))
        after = padded[self._after[field]]
        if not _goes_on_without_any_voter(member):
            return self._least_elsewhere(member, after)
        return np.asarray(after.sum(axis=0) + self._cheapest_successor(member, after))

    def _cheapest_successor(self, member: FleetMember, after: FloatArray) -> FloatArray:
        """Return the least price after the loss of each site among those that can hold replicas."""
        others = np.where(member.problem.rules.may_hold, after, np.inf)
        np.fill_diagonal(others, np.inf)
        least = others.min(axis=1)
        return np.where(np.isfinite(least), least, 0.0)

    def _least_elsewhere(self, member: FleetMember, after: FloatArray) -> FloatArray:
        """Return, by site, the least price over the losses of as many sites as have no replica."""
        losses = after.copy()
        np.fill_diagonal(losses, np.inf)
        count = len(losses) - member.problem.rules.replicas_max
        return np.asarray(np.sort(losses, axis=0)[:count].sum(axis=0))

    def fitting_sites(
        self, member: FleetMember, room: FloatArray | None = None
    ) -> tuple[BoolArray, BoolArray]:
        """Return the sites that can hold a replica of one database, and those that can lead it.

        Parameters
        ----------
        member
            The database, one copy.
        room
            Remaining capacity of each limit, shape (rows,); None: all of it. No plan of the fleet
            uses the other sites then: the database alone is beyond a limit there.
        """
        sites, new = len(self.fleet.sites), self._is_new(member)
        hold, lead = np.ones(sites, dtype=np.bool_), np.ones(sites, dtype=np.bool_)
        left = np.append(self.capacity if room is None else room, np.inf)
        if self._storage is not None:
            hold &= left[self._storage] >= member.storage_gb
        hold &= ~new | bool(left[self._moves] >= 1 and left[self._moved] >= member.storage_gb)
        for rows in self._apart.get(member.name, ()):
            hold &= left[rows] >= 1
        if self._leading is not None:
            lead &= left[self._leading] >= member.leader_load
            if "leader_operations" in self._after and _goes_on_without_any_voter(member):
                lead &= left[self._after["leader_operations"]].min(axis=0) >= member.leader_load
        if self._egress is not None:
            least = member.written_gb * (member.problem.rules.replicas_min - 1)
            lead &= left[self._egress] >= least
        return hold, lead & hold

    def _is_new(self, member: FleetMember) -> BoolArray:
        """Return whether a replica at each site would be new, shape (sites,)."""
        return self._new_sites[member.name]

    @cached_property
    def _new_sites(self) -> dict[str, BoolArray]:
        found = {}
        for member in self.fleet.members:
            new = np.ones(len(self.fleet.sites), dtype=np.bool_)
            if member.present is not None:
                new[list(member.present.replicas)] = False
            found[member.name] = new
        return found


@dataclass(frozen=True, eq=False)
class PricedQuestion:
    """Demand, rules and prices of replicas; every plan of the fleet pays at least the least score.

    Attributes
    ----------
    demand
        With prices of reads as longer ways.
    rules
        Without the sites that cannot hold or lead the database alone: no plan of the fleet uses
        them.
    price
        Of a replica at each site under each leader, shape (sites, sites), row = leader.
    """

    demand: Demand
    rules: Rules
    price: FloatArray

    @classmethod
    def of(
        cls,
        rows: SharedRows,
        member: FleetMember,
        prices: FloatArray,
        room: FloatArray | None = None,
    ) -> PricedQuestion | None:
        """Return the question of one database; None where a site that it must have is too small.

        Parameters
        ----------
        rows
            The shared limits.
        member
            The database.
        prices
            Of each shared limit, shape (rows,).
        room
            Remaining capacity of each limit; None: all of it. Sites without room for the database
            are left out.
        """
        problem = member.problem
        price = rows.price(member, prices)
        if problem.rules.cost_weight:
            costs = [problem.site_costs(leader) for leader in range(len(price))]
            own = np.array([row for row in costs if row is not None])
            price = price + problem.rules.cost_weight * own
        hold, lead = rows.fitting_sites(member, room)
        rules = dataclasses.replace(
            problem.rules,
            may_hold=problem.rules.may_hold & hold,
            may_vote=problem.rules.may_vote & hold,
            may_lead=problem.rules.may_lead & lead,
        )
        if (rules.must_hold & ~rules.may_hold).any():
            return None
        return cls(rows.demand(member, prices), rules, price)

    def added_cost(self, leader: int) -> LinearCost:
        """Return the prices of replicas under a leader, in the form that proofs take."""
        return LinearCost(0.0, self.price[leader], None, None)


# --- loads of services ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Service:
    """Load of each site by one copy of a database.

    Attributes
    ----------
    leader_operations, egress_gb, reads_served
        Shape (sites,), as the limits of the same names.
    """

    leader_operations: FloatArray
    egress_gb: FloatArray
    reads_served: FloatArray


def service_of(
    member: FleetMember, leader: int, replicas: tuple[int, ...], *, reads: bool = True
) -> Service:
    """Return the load of a database by its leader and its replicas; without reads if told so.

    O(clients · replicas) with reads.
    """
    sites = len(member.problem.instance.sites)
    leading, shipped, served = (np.zeros(sites) for _ in range(3))
    leading[leader] = member.leader_load
    shipped[leader] = member.written_gb * (len(replicas) - 1)
    if reads:
        closest = nearest(member.problem.demand.client_rtt, replicas)
        np.add.at(served, closest.ravel(), member.reads.ravel())
    return Service(leading, shipped, served)


def service_after(
    member: FleetMember, configuration: Configuration, lost: int, *, reads: bool = True
) -> Service | None:
    """Return the load of a database after the loss of a site; None where it stops."""
    left = survivors(member.problem, configuration, (lost,))
    if left is None:
        return None
    leader = left.leaders[0]
    if len(left.leaders) > 1:
        scores = score_after(member.problem, configuration, (lost,))
        leader = min(left.leaders, key=lambda site: (scores[site], site))
    return service_of(member, leader, left.replicas, reads=reads)


def _goes_on_without_any_voter(member: FleetMember) -> bool:
    """Return whether every configuration of a database has enough voters after a loss."""
    rules = member.problem.rules
    return bool(rules.voters - 1 >= rules.quorum)
