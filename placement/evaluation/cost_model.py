"""Cost of configurations in money per month: the only place where prices become costs.

For a fixed leader ℓ every term is linear in the placement. With x_r = 1 where a replica is, v_r = 1
where it votes, h_r = 1 where a witness votes without one, and near(c) the nearest replica of
client c,

    cost(ℓ, V, R) = K_ℓ + Σ_r a_r^ℓ x_r + Σ_r b_r v_r + Σ_r e_r h_r + Σ_c n[c, near(c)]

:class:`LinearCost` holds K, a, b, e and n; formulations and searches read them, and
:func:`configuration_cost` evaluates them.

**From operations to a month.** The counts of all intervals are added, whatever the decay of a
problem, and divided by the months that they cover: `Prices.interval_hours` times the number of
intervals, with 730 hours in a month. Without `interval_hours` all intervals together are one month.

**From operations to traffic.** A write of client c moves its GB from the client to the leader, and
from there to every replica. A read moves its GB to the client: the part near / (near + direct) of
its round trips from the nearest replica, the rest from the leader. A round trip between the nearest
replica and the leader carries a question and a time stamp, which are not charged. The nearest
replica must be the one of the latency: a cheaper one farther away does not serve the client.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import InputError
from placement.evaluation.score import nearest
from placement.model.prices import HOURS_PER_MONTH, Prices, gb_of_operations
from placement.support.checks import FloatArray, IntArray

if TYPE_CHECKING:
    from placement.model.configuration import Configuration
    from placement.model.instance import Instance

_MILLION = 1e6


@dataclass(frozen=True, eq=False)
class CostTerm:
    """Term of the cost under one leader, with what its items in a bill need; None is 0."""

    name: str  #: such as "replication"
    #: part that does not depend on the placement, by client, shape (clients,)
    constant: FloatArray | None = None
    replica: FloatArray | None = None  #: price of a replica at each site, shape (sites,)
    voter: FloatArray | None = None  #: price of the vote of a replica at each site, shape (sites,)
    witness: FloatArray | None = None  #: price of a witness at each site, shape (sites,)
    #: what the nearest replica serves, shape (intervals, clients), and the price of one unit of it
    #: at each site, shape (clients, sites)
    served: tuple[FloatArray, FloatArray] | None = None
    #: sender and receiver of the traffic that it pays, if any: "leader", "client", "origin", or
    #: "site" for a replica or the nearest one of a client
    ends: tuple[str, ...] = ()
    #: GB of each client, shape (clients,), or of each replica; those of `served` are not in it
    gb: FloatArray | float = 0.0
    by_client: FloatArray | None = None  #: `replica` by client, shape (clients, sites)
    origin: IntArray | None = None  #: site that each site copies the data from, shape (sites,)


@dataclass(frozen=True, eq=False)
class LinearCost:
    """Cost under one leader as a linear function of the placement.

    The cost per month, or that of moves (:mod:`placement.evaluation.moves`), whose prices of
    sites and votes are of either sign.
    """

    constant: float  #: k_ℓ
    replica: FloatArray  #: a^ℓ, shape (sites,)
    voter: FloatArray | None  #: b, shape (sites,); None: all 0
    nearest: FloatArray | None  #: n, shape (clients, sites), the same for every leader; None: all 0
    witness: FloatArray | None = None  #: e, shape (sites,); None: all 0

    def times(self, weight: float) -> LinearCost:
        """Return a multiple of the function."""
        return LinearCost(
            weight * self.constant,
            weight * self.replica,
            None if self.voter is None else weight * self.voter,
            None if self.nearest is None else weight * self.nearest,
            None if self.witness is None else weight * self.witness,
        )

    def plus(self, other: LinearCost | None) -> LinearCost:
        """Return the sum of two functions; None is 0."""
        if other is None:
            return self
        return LinearCost(
            self.constant + other.constant,
            self.replica + other.replica,
            sum_of(self.voter, other.voter),
            sum_of(self.nearest, other.nearest),
            sum_of(self.witness, other.witness),
        )


def sum_of(one: FloatArray | None, other: FloatArray | None) -> FloatArray | None:
    """Return the sum of two arrays; None is 0."""
    if one is None or other is None:
        return other if one is None else one
    return one + other


@dataclass(frozen=True, eq=False)
class MonthlyVolumes:
    """GB and operations of a month by client, shape (clients,)."""

    written: FloatArray  #: GB written (W_c)
    direct: FloatArray  #: GB read from the leader (S_c)
    leader_operations: FloatArray  #: operations that the leader serves
    #: `near`, `near_operations`: GB read from the nearest replica (N_c), and operations that it
    #: serves, by interval, shape (intervals, clients)
    near: FloatArray
    near_operations: FloatArray


class CostModel:
    """Terms of the monthly cost of the configurations of one instance, with its checked prices.

    InputError for a client that moves data and has no prices of traffic.
    """

    def __init__(self, instance: Instance, prices: Prices) -> None:
        self._instance = instance
        self.prices = prices
        self._linear: dict[int, LinearCost] = {}
        gb = gb_of_operations(prices, instance.operations)
        for operation, moved in zip(instance.operations, gb.tolist(), strict=True):
            if moved and operation.waits and not (operation.near or operation.direct):
                raise InputError(
                    f"the way of the data of operation {operation.name!r} is not known",
                    field="prices.gb_per_op",
                    value=moved,
                    expected="0 for an operation that goes neither to the nearest replica nor to "
                    "the leader",
                )
        _ = self.to_clients, self.from_clients  # both validate

    @property
    def depends_on_demand(self) -> bool:
        """Return whether another demand changes the cost of a configuration."""
        prices = self.prices
        return bool(prices.gb_per_op or prices.requests is not None) or (
            prices.replication == "gateway"
        )

    @cached_property
    def months(self) -> float:
        """Months that the demand of the instance covers."""
        hours = self.prices.interval_hours
        if hours is None:
            return 1.0
        return hours * len(self._instance.intervals) / HOURS_PER_MONTH

    @cached_property
    def volumes(self) -> MonthlyVolumes:
        """GB and operations of a month; O(T·C·O), computed once."""
        operations = self._instance.operations
        each = self._instance.counts / self.months
        counts = self._instance.counts.sum(axis=0) / self.months
        gb = gb_of_operations(self.prices, operations)
        writes = np.array([o.is_transaction for o in operations])
        reads, near = np.where(writes, 0.0, gb), self._near_share
        return MonthlyVolumes(
            written=counts @ np.where(writes, gb, 0.0),
            near=each @ (reads * near),
            direct=counts @ (reads * (1 - near)),
            near_operations=each @ near,
            leader_operations=counts @ (1 - near),
        )

    @cached_property
    def _near_share(self) -> FloatArray:
        """Share of each operation that the nearest replica serves, shape (operations,)."""
        near, _, direct, _ = np.array([o.coefficients for o in self._instance.operations]).T
        trips = near + direct
        return np.asarray(np.divide(near, trips, out=np.zeros_like(near), where=trips > 0))

    @cached_property
    def written(self) -> FloatArray:
        """W_c: `gb_per_op` of the writes, or `written_gb` shared out by their number."""
        volumes, total = self.volumes.written, self.prices.written_gb
        if volumes.any() or not total:
            return volumes
        kinds = np.array([o.is_transaction for o in self._instance.operations])
        writes = self._instance.counts.sum(axis=0) @ kinds.astype(float)
        if not writes.any():
            words = "GB are written, but no client writes"
            expected = "counts of writes, or 0"
            raise InputError(words, field="prices.written_gb", value=total, expected=expected)
        return np.asarray(total * (writes / writes.sum()))

    @cached_property
    def written_total(self) -> float:
        """W: GB that the leader ships to each replica in a month."""
        return self.prices.written_gb or float(self.volumes.written.sum())

    @cached_property
    def to_clients(self) -> FloatArray | None:
        """Price per GB from each site to each client, shape (clients, sites); None: not needed."""
        volumes = self.volumes
        return self._client_prices("to_clients", volumes.near.sum(axis=0) + volumes.direct)

    @cached_property
    def from_clients(self) -> FloatArray | None:
        """Price per GB from each client to each site, shape (clients, sites); None: not needed."""
        everything = self.prices.replication == "gateway"
        written = self.written if everything else self.volumes.written
        return self._client_prices("from_clients", written)

    def _client_prices(self, field: str, gb: FloatArray) -> FloatArray | None:
        given: FloatArray | None = getattr(self.prices, field)
        transfer = self.prices.transfer
        if given is not None or transfer is None or not gb.any():
            return given
        sites, clients = self._instance.sites, self._instance.clients
        known, index = self.prices.client_sites, {name: s for s, name in enumerate(sites)}
        rows = np.zeros((len(clients), len(sites)))
        for c, client in enumerate(clients):
            if not gb[c]:
                continue
            place = known.get(client, client)
            if place not in index:
                raise InputError(
                    f"client {client!r} moves data and is at no site, so its traffic has no price",
                    field="prices.client_sites",
                    value=client,
                    expected=f"a site for it (client_sites={{{client!r}: site}}), or "
                    f"prices.{field}",
                )
            s = index[place]
            rows[c] = transfer[:, s] if field == "to_clients" else transfer[s]
        return rows

    def terms(self, leader: int) -> tuple[CostTerm, ...]:
        """Return the terms of the cost under a leader; those without prices are left out."""
        prices, volumes = self.prices, self.volumes
        witness = prices.witness_share * prices.storage if prices.witness_share else None
        found = [CostTerm("storage", replica=prices.storage, witness=witness)]
        if prices.transfer is not None and prices.replication == "leader" and self.written_total:
            gb = self.written_total
            shipped = gb * prices.transfer[leader]
            found.append(CostTerm("replication", replica=shipped, ends=("leader", "site"), gb=gb))
        if prices.machines is not None:
            other = prices.machines_non_voting
            vote = None if other is None else prices.machines - other
            found.append(
                CostTerm("machines", None, prices.machines if other is None else other, vote)
            )
        to_clients, from_clients = self.to_clients, self.from_clients
        written, read = volumes.written, volumes.direct
        if from_clients is not None and prices.replication == "gateway":
            shipped, ends = self.written @ from_clients, ("client", "site")
            each = self.written[:, np.newaxis] * from_clients
            found.append(
                CostTerm("replication", None, shipped, ends=ends, gb=self.written, by_client=each)
            )
        elif from_clients is not None and written.any():
            cost = written * from_clients[:, leader]
            found.append(CostTerm("writes", cost, ends=("client", "leader"), gb=written))
        if to_clients is not None and read.any():
            cost, ends = read * to_clients[:, leader], ("leader", "client")
            found.append(CostTerm("reads from the leader", cost, ends=ends, gb=read))
        if prices.present and prices.stored_gb and prices.transfer is not None:
            here = self._instance.site_indices(prices.present, "prices.present")
            origin = here[prices.transfer[here].argmin(axis=0)]
            origin[here] = here
            copied = prices.stored_gb * prices.transfer[origin, np.arange(len(origin))]
            gb, monthly = (
                prices.stored_gb / prices.migration_months,
                copied / prices.migration_months,
            )
            found.append(
                CostTerm("migration", None, monthly, ends=("origin", "site"), gb=gb, origin=origin)
            )
        if to_clients is not None and volumes.near.any():
            served = volumes.near, to_clients
            found.append(CostTerm("near reads", served=served, ends=("site", "client")))
        if prices.requests is not None:
            each = np.tile(prices.requests / _MILLION, (len(self._instance.clients), 1))
            led = volumes.leader_operations * each[:, leader]
            found.append(CostTerm("requests", led, served=(volumes.near_operations, each)))
        return tuple(found)

    def linear(self, leader: int) -> LinearCost:
        """Return the sums of the terms under a leader; computed once for each."""
        if leader in self._linear:
            return self._linear[leader]
        constant, replica = 0.0, np.zeros(len(self._instance.sites))
        voter: FloatArray | None = None
        witness: FloatArray | None = None
        for term in self.terms(leader):
            if term.constant is not None:
                constant += float(term.constant.sum())
            if term.replica is not None:
                replica = replica + term.replica
            if term.voter is not None and term.voter.any():
                voter = term.voter if voter is None else voter + term.voter
            if term.witness is not None and term.witness.any():
                witness = term.witness if witness is None else witness + term.witness
        self._linear[leader] = LinearCost(constant, replica, voter, self.nearest, witness)
        return self._linear[leader]

    def value(self, configuration: Configuration) -> float:
        """Return the cost of a configuration."""
        linear = self.linear(configuration.leader)
        total = linear.constant + float(linear.replica[list(configuration.replicas)].sum())
        if linear.voter is not None:
            held = set(configuration.replicas)  # a witness has no machine of a replica
            votes = [site for site in configuration.voters if site in held]
            total += float(linear.voter[votes].sum())
        if linear.witness is not None:
            total += float(linear.witness[list(configuration.witnesses)].sum())
        if self.nearest is None:
            return total
        near = nearest(self._instance.client_rtt, configuration.replicas)
        rows = np.arange(near.shape[-1])
        if near.ndim == 1:
            return total + float(self.nearest[rows, near].sum())
        # with RTTs that vary, each interval has its own nearest replicas
        for served, price in self._served:
            total += float((served * price[rows, near]).sum())
        return total

    @cached_property
    def _served(self) -> list[tuple[FloatArray, FloatArray]]:
        """Amounts that the nearest replicas serve, with prices: the same under every leader."""
        return [term.served for term in self.terms(0) if term.served is not None]

    @cached_property
    def nearest(self) -> FloatArray | None:
        """Price n of each site as the nearest replica of each client; None: all 0."""
        parts = [served.sum(axis=0)[:, np.newaxis] * price for served, price in self._served]
        total = None if not parts else np.add.reduce(parts)
        return total if total is not None and total.any() else None


def cost_model(instance: Instance) -> CostModel | None:
    """Return the cost model of an instance, built once; None without prices."""
    if instance.prices is None:
        return None
    if not instance.cost_models:
        instance.cost_models.append(CostModel(instance, instance.prices))
    return instance.cost_models[0]


def configuration_cost(instance: Instance, configuration: Configuration) -> float:
    """Cost of a configuration in money per month: the one evaluator; 0 without prices."""
    model = cost_model(instance)
    if model is None:
        return 0.0
    return model.value(configuration)
