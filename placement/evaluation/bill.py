"""Bill of a month: every term of the cost of a configuration, by site and by pair of places."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import InputError
from placement.evaluation.cost_model import CostModel, configuration_cost, cost_model
from placement.evaluation.score import nearest
from placement.support.checks import FloatArray, mapping, number
from placement.text.text_tables import ValueColumn, ValueTable

if TYPE_CHECKING:
    from placement.model.configuration import Configuration
    from placement.model.instance import Instance

MOST_PAIRS = 8
"""Pairs of places that the tables of a bill show, those of the most money first."""


@dataclass(frozen=True, slots=True)
class BillRow:
    """Item of a bill."""

    term: str  #: such as "storage" or "near reads"
    #: site of the item: where data is stored, sent from or read; for traffic of a client, the site
    #: that receives it
    site: str
    #: `sender`, `receiver`: places of traffic; empty for an item that is no traffic
    sender: str
    receiver: str
    gb: float  #: GB of traffic in the month; 0 for other items
    amount: float  #: money per month


@dataclass(frozen=True, eq=False)
class MonthlyBill:
    """Cost of a configuration in a month."""

    rows: tuple[BillRow, ...]  #: the items; those without GB and without money are left out
    total: float  #: sum, equal to `plan.cost` unless tiers replace prices
    #: `currency`, `source`: currency, and where the prices come from
    currency: str
    source: str

    @property
    def by_term(self) -> dict[str, float]:
        """Return term -> money per month, in the order of the terms."""
        return self._summed("term")

    @property
    def by_site(self) -> dict[str, float]:
        """Return site -> money per month, the largest first."""
        found = self._summed("site")
        return dict(sorted(found.items(), key=lambda pair: -pair[1]))

    @property
    def by_pair(self) -> dict[tuple[str, str], float]:
        """Return (sender, receiver) -> money per month of traffic, the largest first."""
        parts: dict[tuple[str, str], list[float]] = {}
        for row in self.rows:
            if row.sender:
                parts.setdefault((row.sender, row.receiver), []).append(row.amount)
        found = {pair: math.fsum(amounts) for pair, amounts in parts.items()}
        return dict(sorted(found.items(), key=lambda pair: -pair[1]))

    def _summed(self, field: str) -> dict[str, float]:
        parts: dict[str, list[float]] = {}
        for row in self.rows:
            parts.setdefault(getattr(row, field), []).append(row.amount)
        return {name: math.fsum(amounts) for name, amounts in parts.items()}

    def with_tiers(self, tiers: Mapping[str, Sequence[tuple[float, float]]]) -> MonthlyBill:
        """Return the bill with traffic priced by volume tiers, for a plan made with one price.

        Parameters
        ----------
        tiers
            Sender -> (GB per month up to which a price holds, price per GB), ascending, the last
            without a limit (∞). They price all that the sender sends to other places, in place of
            the prices of the pairs; the items share the sum by their GB.

        Raises
        ------
        InputError
            For a sender that sends nothing in this bill, and tiers that do not ascend to ∞.
        """
        given = {name: _steps(name, steps) for name, steps in mapping(tiers, "tiers").items()}
        for name in given:
            if not any(row.sender == name for row in self.rows):
                raise InputError(
                    "a sender that sends nothing", field="tiers", value=name,
                    expected="a site or client with traffic in this bill",
                )  # fmt: skip
        sent = dict.fromkeys(given, 0.0)
        for row in self.rows:
            if row.sender in sent and row.receiver != row.sender:
                sent[row.sender] += row.gb
        each = {name: _tiered(given[name], gb) / gb if gb else 0.0 for name, gb in sent.items()}
        rows = tuple(
            dataclasses.replace(row, amount=row.gb * each[row.sender])
            if row.sender in each and row.receiver != row.sender
            else row
            for row in self.rows
        )
        source = "; ".join(part for part in (self.source, "traffic by volume tiers") if part)
        return MonthlyBill(rows, math.fsum(row.amount for row in rows), self.currency, source)


def bill_of(instance: Instance, configuration: Configuration) -> MonthlyBill:
    """Return the bill of a configuration.

    Raises
    ------
    InputError
        For an instance without prices.

    Notes
    -----
    O(clients + replicas) items.
    """
    model = cost_model(instance)
    if model is None:
        raise InputError("no prices", field="instance", value=instance.name, expected="prices")
    rows = _BillItems(instance, model, configuration).all()
    prices = model.prices
    total = configuration_cost(instance, configuration)
    return MonthlyBill(tuple(rows), total, prices.currency, prices.source)


def bill_tables(bill: MonthlyBill, today: MonthlyBill | None = None) -> tuple[ValueTable, ...]:
    """Return a bill as tables: by term, by site, and the dearest traffic by pair.

    Parameters
    ----------
    bill
        Of the plan.
    today
        Of the configuration that runs today, for a column beside; None: there is none.
    """

    def beside(name: str, new: Mapping[str, float], old: Mapping[str, float]) -> ValueTable:
        rows = [
            (key, new.get(key, 0.0), *((old.get(key, 0.0),) if today is not None else ()))
            for key in dict.fromkeys((*new, *old))
        ]
        columns = [ValueColumn(name), ValueColumn("amount", 2)]
        if today is not None:
            columns.append(ValueColumn("today", 2))
        return ValueTable(f"Cost per month by {name}, {bill.currency}", tuple(columns), tuple(rows))

    nothing: dict[str, float] = {}
    term = beside(
        "term",
        bill.by_term | {"total": bill.total},
        nothing if today is None else today.by_term | {"total": today.total},
    )
    tables = [term, beside("site", bill.by_site, nothing if today is None else today.by_site)]
    gb: dict[tuple[str, str], float] = {}
    for row in bill.rows:
        if row.sender:
            gb[row.sender, row.receiver] = gb.get((row.sender, row.receiver), 0.0) + row.gb
    pairs = [(pair, amount) for pair, amount in bill.by_pair.items() if amount][:MOST_PAIRS]
    if pairs:
        columns = (ValueColumn("from"), ValueColumn("to"), ValueColumn("GB", 1))
        tables.append(
            ValueTable(
                f"Traffic of the most money per month, {bill.currency}",
                (*columns, ValueColumn("amount", 2)),
                tuple((*pair, gb[pair], amount) for pair, amount in pairs),
            )
        )
    return tuple(tables)


def _at(amounts: FloatArray | None, place: int) -> float:
    return 0.0 if amounts is None else float(amounts[place])


class _BillItems:
    """Items of one configuration."""

    def __init__(self, instance: Instance, model: CostModel, configuration: Configuration) -> None:
        self.instance = instance
        self.model = model
        self.configuration = configuration
        self.found: list[BillRow] = []

    def all(self) -> list[BillRow]:
        """Return every item that has GB or money."""
        model, one = self.model, self.configuration
        sites = self.instance.sites
        volumes = model.volumes
        for term in model.terms(one.leader):
            if term.name == "replication" and term.sender:
                for r in one.replicas:
                    gb, ends = model.written_total, (sites[one.leader], sites[r])
                    self._row(term.name, sites[one.leader], *ends, gb, _at(term.replica, r))
            elif term.name == "replication":
                table, written = model.from_clients, model.written
                for c, client in enumerate(self.instance.clients):
                    for r in one.replicas:
                        amount = 0.0 if table is None else float(written[c] * table[c, r])
                        self._row(term.name, sites[r], client, sites[r], float(written[c]), amount)
            elif term.name == "migration":
                prices = model.prices
                here = [sites.index(name) for name in prices.present]
                for r in one.replicas:
                    if r not in here and prices.transfer is not None:
                        origin = sites[here[int(prices.transfer[here, r].argmin())]]
                        gb, ends = prices.stored_gb / prices.migration_months, (origin, sites[r])
                        self._row(term.name, sites[r], *ends, gb, _at(term.replica, r))
            elif term.replica is not None:
                for w in one.witnesses if term.witness is not None else ():
                    assert term.witness is not None
                    self._row(term.name, sites[w], "", "", 0.0, float(term.witness[w]))
                for r in one.replicas:
                    amount = float(term.replica[r])
                    if term.voter is not None and r in one.voters:
                        amount += float(term.voter[r])
                    self._row(term.name, sites[r], "", "", 0.0, amount)
            elif term.name in ("writes", "reads from the leader"):
                moved = volumes.written if term.name == "writes" else volumes.direct
                for c, client in enumerate(self.instance.clients):
                    name = sites[one.leader]
                    ends = (client, name) if term.name == "writes" else (name, client)
                    self._row(term.name, name, *ends, float(moved[c]), _at(term.constant, c))
        self._near()
        return self.found

    def _row(
        self, term: str, site: str, sender: str, receiver: str, gb: float, amount: float
    ) -> None:
        if (gb and sender != receiver) or amount:
            self.found.append(BillRow(term, site, sender, receiver, float(gb), float(amount)))

    def _near(self) -> None:
        """Reads from the nearest replica by pair, and requests by site."""
        model, instance = self.model, self.instance
        gb, operations = model.near_by_interval
        if instance.client_rtt.ndim == 2:  # one nearest replica for all intervals
            gb, operations = gb.sum(axis=0, keepdims=True), operations.sum(axis=0, keepdims=True)
        near = nearest(instance.client_rtt, self.configuration.replicas)
        near = np.broadcast_to(near, (len(gb), near.shape[-1]))
        pairs: dict[tuple[int, int], float] = {}
        served = np.zeros(len(instance.sites))
        for k, row in enumerate(near):
            np.add.at(served, row, operations[k])
            for c in np.nonzero(gb[k])[0].tolist():
                pair = (c, int(row[c]))
                pairs[pair] = pairs.get(pair, 0.0) + float(gb[k, c])
        table = model.to_clients
        for (c, s), volume in sorted(pairs.items()):
            amount = 0.0 if table is None else volume * float(table[c, s])
            site = instance.sites[s]
            self._row("near reads", site, site, instance.clients[c], volume, amount)
        each = model.prices.requests
        if each is not None:
            served[self.configuration.leader] += float(model.volumes.leader_operations.sum())
            for s in np.nonzero(served)[0].tolist():
                amount = float(served[s] * each[s] / 1e6)
                self._row("requests", instance.sites[s], "", "", 0.0, amount)


def _steps(name: str, given: object) -> tuple[tuple[float, float], ...]:
    try:
        steps = tuple((float(most), float(price)) for most, price in given)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        words = "not a list of tiers"
        expected = "pairs (GB per month, price per GB)"
        raise InputError(words, field=f"tiers[{name!r}]", value=given, expected=expected) from None
    limits = [most for most, _ in steps]
    if not steps or limits[-1] != math.inf or any(a >= b for a, b in itertools.pairwise(limits)):
        words = "tiers that do not ascend to one without a limit"
        expected = "ascending volumes in GB per month, the last infinite"
        raise InputError(words, field=f"tiers[{name!r}]", value=limits, expected=expected)
    for _, price in steps:
        number(price, f"tiers[{name!r}]")
    return steps


def _tiered(steps: Sequence[tuple[float, float]], gb: float) -> float:
    """Return the price of a volume: each tier prices the GB that lie in it."""
    total, before = 0.0, 0.0
    for most, price in steps:
        total += max(0.0, min(gb, most) - before) * price
        before = most
    return total
