"""Prices of replicas, of the traffic to them and between them and the clients, per month.

All prices are in one currency. Prices of sites are per month, prices of traffic per GB.
:mod:`placement.evaluation.cost_model` turns them into the cost of a configuration.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from placement.errors import InputError
from placement.support.checks import (
    LARGEST,
    SMALLEST,
    FloatArray,
    instance_of,
    mapping,
    nonnegative,
    number,
    suggest,
    text,
    unique_names,
)

if TYPE_CHECKING:
    from placement.model.operations import Operation

CLASSES = ("read", "write")
"""Names in `Prices.gb_per_op` that stand for all operations of a kind."""

HOURS_PER_MONTH = 730.0
"""Hours of a month in the price lists of the large clouds: 365 · 24 / 12."""

PER_SITE = ("machines", "machines_non_voting", "requests")
"""Fields with a price for each site, beside `storage`: columns of every table of prices."""


@dataclass(frozen=True, eq=False)
class Prices:
    """Prices of replicas and traffic, for plans under a budget or with a price in the objective.

    The cost of a configuration, in `currency` per month, is the sum of these terms; those without
    prices are 0. ℓ is the leader, R the replicas, V the voters, near(c) the nearest replica of
    client c, the one that latency uses. W_c, N_c and S_c are the GB per month that client c writes,
    reads from its nearest replica and reads from the leader; W is `written_gb`, or else Σ_c W_c.

        storage and machines   Σ_{r ∈ R} ( storage[r] + machines[r] )
        witnesses              Σ_{r ∈ V, r ∉ R} witness_share · storage[r]
        replication            W · Σ_{r ∈ R} transfer[ℓ, r]
        writes                 Σ_c W_c · from_clients[c, ℓ]
        near reads             Σ_c N_c · to_clients[c, near(c)]
        reads from the leader  Σ_c S_c · to_clients[c, ℓ]
        requests               millions of operations · requests[site that serves them]
        migration              stored_gb · Σ_{r ∈ R, r ∉ P} min_{q ∈ P} transfer[q, r] / months

    See :class:`placement.evaluation.cost_model.CostModel` for how operations become GB per month.

    Parameters
    ----------
    storage
        Price of storing one replica for a month at each site, shape (sites,).
    transfer
        Price per GB sent from one site to another, shape (sites, sites), row = sender, zero
        diagonal; None: free.
    written_gb
        GB written per month, which the leader ships to each replica; 0: what `gb_per_op` gives.
    currency
        For display only.
    machines
        Price of the machines of one replica for a month, shape (sites,); None: free.
    machines_non_voting
        The same for a replica that does not vote, at most `machines`; None: the same price.
    requests
        Price of a million operations at the site that serves them, shape (sites,): the nearest
        replica, or the leader for what goes to the leader. None: free.
    gb_per_op
        Operation, or "read" or "write" for all of that kind -> GB that one moves; the name of an
        operation comes before its kind. Operations that are not listed move nothing.
    interval_hours
        Hours that one interval of demand covers; a month has 730 hours. None: the intervals
        together are one month.
    replication
        "leader": the leader ships every write to every replica. "gateway": the client's gateway
        does, as CockroachDB bills it; the terms replication and writes are then
        Σ_c W_c · Σ_{r ∈ R} from_clients[c, r].
    client_sites
        Client -> site whose prices of traffic it has. A client with the name of a site is there
        anyway.
    to_clients, from_clients
        Price per GB sent from a site to a client, and from a client to a site, both of shape
        (clients, sites). None: those of the client's site.
    stored_gb
        GB of one replica, copied once to each site that has none at present.
    present
        Sites that hold a replica at present (P); none: the migration costs nothing.
    migration_months
        Months over which the migration is paid.
    witness_share
        Part of the price of storage that a witness costs, a voter without a replica: 0 to 1.
    source
        Where the prices come from, with their date; shown with every cost.
    """

    storage: FloatArray
    transfer: FloatArray | None = None
    written_gb: float = 0.0
    currency: str = "USD"
    _: KW_ONLY
    machines: FloatArray | None = None
    machines_non_voting: FloatArray | None = None
    requests: FloatArray | None = None
    gb_per_op: Mapping[str, float] = field(default_factory=dict)
    interval_hours: float | None = None
    replication: Literal["leader", "gateway"] = "leader"
    client_sites: Mapping[str, str] = field(default_factory=dict)
    to_clients: FloatArray | None = None
    from_clients: FloatArray | None = None
    stored_gb: float = 0.0
    present: Sequence[str] = ()
    migration_months: float = 1.0
    witness_share: float = 0.0
    source: str = ""

    def __post_init__(self) -> None:
        for name in ("storage", "transfer", *PER_SITE, "to_clients", "from_clients"):
            values = getattr(self, name)
            absent = values is None and name != "storage"
            if not absent and (isinstance(values, (str, bytes)) or not np.iterable(values)):
                words = "not a table of prices"
                expected = "an array of numbers"
                raise InputError(words, field=f"prices.{name}", value=values, expected=expected)
        number(self.written_gb, "prices.written_gb", maximum=LARGEST)
        number(self.stored_gb, "prices.stored_gb", maximum=LARGEST)
        number(self.migration_months, "prices.migration_months", minimum=SMALLEST, maximum=LARGEST)
        number(self.witness_share, "prices.witness_share", maximum=1.0)
        if self.interval_hours is not None:
            number(self.interval_hours, "prices.interval_hours", minimum=SMALLEST, maximum=LARGEST)
        instance_of(self.currency, str, "prices.currency", "a string")
        instance_of(self.source, str, "prices.source", "a string")
        text(self.replication, "prices.replication", choices=("leader", "gateway"))
        for name, gb in mapping(self.gb_per_op, "prices.gb_per_op").items():
            number(gb, f"prices.gb_per_op[{name!r}]", maximum=LARGEST)
        mapping(self.client_sites, "prices.client_sites", "client -> site")
        object.__setattr__(self, "present", unique_names(self.present, "prices.present"))

    @property
    def given(self) -> dict[str, object]:
        """Fields beside storage, transfer, written_gb and currency that differ from the default.

        Arrays as nested lists, JSON-ready: what manifests and fingerprints add to those four.
        """
        found: dict[str, object] = {}
        for one in dataclasses.fields(self)[4:]:
            value = getattr(self, one.name)
            if isinstance(value, Mapping):
                value = dict(value)
            if value is None or (isinstance(value, (str, dict, tuple)) and not value):
                continue
            if isinstance(value, (str, float, int)) and value == one.default:
                continue
            plain = value.tolist() if isinstance(value, np.ndarray) else value
            found[one.name] = list(plain) if isinstance(plain, tuple) else plain
        return found

    def of_one_interval(self, intervals: int) -> Prices:
        """Return the prices for one of several intervals, which then stands for its month alone.

        Where all intervals together are one month, each of them covers its part of it.
        """
        volumes = self.gb_per_op or self.requests is not None
        if self.interval_hours is not None or intervals == 1 or not volumes:
            return self
        return dataclasses.replace(self, interval_hours=HOURS_PER_MONTH / intervals)

    def at_sites(self, names: Sequence[str], kept: Sequence[int]) -> Prices:
        """Return the prices of some sites, in another order or several times over.

        Parameters
        ----------
        names
            Names of all sites so far.
        kept
            Site indices.

        Raises
        ------
        InputError
            When none of the sites of `present` remains, or a client loses the site whose prices it
            has.
        """
        sites = np.asarray(kept, dtype=np.intp)
        left = {names[s] for s in sites.tolist()}
        present = tuple(name for name in self.present if name in left)
        if self.present and not present:
            words = "no site that holds a replica at present is left"
            expected = "one of the remaining sites, or no present sites"
            raise InputError(words, field="prices.present", value=self.present, expected=expected)
        for client, site in self.client_sites.items():
            if site not in left and (self.to_clients is None or self.from_clients is None):
                words = f"the site whose prices client {client!r} has is removed"
                expected = "one of the remaining sites"
                raise InputError(words, field="prices.client_sites", value=site, expected=expected)

        each: dict[str, Any] = {
            name: None if values is None else values[..., sites]
            for name in ("storage", *PER_SITE, "to_clients", "from_clients")
            for values in (getattr(self, name),)
        }
        transfer = None if self.transfer is None else self.transfer[np.ix_(sites, sites)]
        return dataclasses.replace(self, transfer=transfer, present=present, **each)


def gb_of_operations(prices: Prices, operations: Sequence[Operation]) -> FloatArray:
    """Return the GB that one operation of each kind moves, shape (operations,)."""
    given = prices.gb_per_op
    return np.array([given.get(o.name, given.get(o.kind, 0.0)) for o in operations], dtype=float)


def checked_prices(
    prices: Prices,
    sites: tuple[str, ...],
    clients: tuple[str, ...],
    operations: Sequence[Operation],
) -> Prices:
    """Return the prices with every field checked against the instance, and read-only."""
    instance_of(prices, Prices, "prices", "placement.Prices(storage, …)")
    along, both = ("site", sites), [("client", clients), ("site", sites)]
    storage = nonnegative(prices.storage, "prices.storage", [along])
    transfer = prices.transfer
    if transfer is not None:
        transfer = nonnegative(transfer, "prices.transfer", [along, along])
        if np.diagonal(transfer).any():
            where = int(np.nonzero(np.diagonal(transfer))[0][0])
            raise InputError(
                f"site {sites[where]!r} pays for traffic to itself",
                field="prices.transfer",
                value=float(transfer[where, where]),
                expected="0 on the diagonal",
            )

    def table(name: str, axes: Sequence[tuple[str, Sequence[str]]]) -> FloatArray | None:
        values = getattr(prices, name)
        return None if values is None else nonnegative(values, f"prices.{name}", axes)

    each: dict[str, Any] = {name: table(name, [along]) for name in PER_SITE}
    _check_machines(each["machines"], each["machines_non_voting"], sites)
    _check_names(prices, sites, clients, operations)
    if transfer is None and (prices.gb_per_op or (prices.present and prices.stored_gb)):
        raise InputError(
            "GB are given, but no price of traffic",
            field="prices.gb_per_op" if prices.gb_per_op else "prices.stored_gb",
            value=dict(prices.gb_per_op) if prices.gb_per_op else prices.stored_gb,
            expected="prices.transfer, one price per GB for each pair of sites",
        )
    return dataclasses.replace(
        prices,
        storage=storage,
        transfer=transfer,
        to_clients=table("to_clients", both),
        from_clients=table("from_clients", both),
        written_gb=float(prices.written_gb),
        currency=str(prices.currency),
        gb_per_op={name: float(gb) for name, gb in prices.gb_per_op.items()},
        client_sites=dict(prices.client_sites),
        **each,
    )


def _check_machines(
    voting: FloatArray | None, other: FloatArray | None, sites: tuple[str, ...]
) -> None:
    """Refuse replicas that cost more without a vote: methods complete sets of least cost."""
    if other is None:
        return
    dearer = np.nonzero(other > (0.0 if voting is None else voting))[0]
    if len(dearer):
        raise InputError(
            f"a replica at {sites[dearer[0]]!r} costs more without a vote than with one",
            field="prices.machines_non_voting",
            value=float(other[dearer[0]]),
            expected="at most prices.machines of the site",
        )


def _check_names(
    prices: Prices,
    sites: tuple[str, ...],
    clients: tuple[str, ...],
    operations: Sequence[Operation],
) -> None:
    """Refuse names of sites, clients and operations that the instance does not have."""
    names = (*(o.name for o in operations), *CLASSES)
    for fault, field_name, given, known in (
        ("unknown operation", "gb_per_op", tuple(prices.gb_per_op), names),
        ("unknown client", "client_sites", tuple(prices.client_sites), clients),
        ("unknown site", "client_sites", tuple(prices.client_sites.values()), sites),
        ("unknown site", "present", tuple(prices.present), sites),
    ):
        for name in given:
            if name not in known:
                expected = suggest(name, known, f"one of the {fault.split()[1]}s")
                raise InputError(fault, field=f"prices.{field_name}", value=name, expected=expected)
