"""Bill of a month: every term of the cost of a configuration, by site and by pair of places."""

from __future__ import annotations

import dataclasses
import itertools
import math
import operator
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from placement.errors import InputError
from placement.evaluation.cost_model import CostModel, CostTerm, configuration_cost, cost_model
from placement.evaluation.score import nearest
from placement.support.checks import FloatArray, IntArray, mapping, number
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
        found = self._summed("sender", "receiver").items()
        return dict(sorted((one for one in found if one[0][0]), key=lambda pair: -pair[1]))

    def _summed(self, *fields: str) -> dict[Any, float]:
        of, parts = operator.attrgetter(*fields), defaultdict(list)
        for row in self.rows:
            parts[of(row)].append(row.amount)
        return {key: math.fsum(amounts) for key, amounts in parts.items()}

    def with_tiers(self, tiers: Mapping[str, Sequence[tuple[float, float]]]) -> MonthlyBill:
        """Return the bill with traffic priced by volume tiers, for a plan made with one price.

        `tiers` are, for a sender, (GB per month up to which a price holds, price per GB), ascending
        to ∞; they price all that it sends to other places, in place of the prices of the pairs. The
        items share the sum by their GB. InputError for a sender that sends nothing, and for tiers
        that do not ascend to ∞.
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
    """Return the bill of a configuration, O(clients + replicas) items; InputError: no prices."""
    model = cost_model(instance)
    if model is None:
        raise InputError("no prices", field="instance", value=instance.name, expected="prices")
    prices, rows = model.prices, tuple(_rows(instance, model, configuration))
    total = configuration_cost(instance, configuration)
    return MonthlyBill(rows, total, prices.currency, prices.source)


def bill_tables(bill: MonthlyBill, today: MonthlyBill | None = None) -> tuple[ValueTable, ...]:
    """Return a bill as tables: by term, by site, and the dearest traffic by pair.

    `today` is the bill of the configuration that runs today, for a column beside.
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


def _rows(instance: Instance, model: CostModel, one: Configuration) -> Iterator[BillRow]:
    """Yield the items that have GB or money, term by term."""
    sites = instance.sites
    near = np.atleast_2d(nearest(instance.client_rtt, one.replicas))
    for term in model.terms(one.leader):
        items = _items(term, one, near)
        # what the nearest replicas serve is found in the order of the intervals
        for client, site in items if term.served is None else sorted(items):
            place = {
                "client": instance.clients[client],
                "leader": sites[one.leader],
                "site": sites[site],
                "origin": sites[site if term.origin is None else term.origin[site]],
                "": "",
            }
            sender, receiver = (place[end] for end in term.ends or ("", ""))
            gb, amount = items[client, site]
            if (gb and sender != receiver) or amount:
                at = "leader" if "leader" in term.ends else "site"
                yield BillRow(term.name, place[at], sender, receiver, gb, amount)


def _items(
    term: CostTerm, one: Configuration, near: IntArray
) -> dict[tuple[int, int], tuple[float, float]]:
    """Return (client, site) -> GB and money; client -1 where the traffic is of no client.

    `near`: the nearest replicas, shape (intervals, clients), of one interval if all have the same.
    """
    found: dict[tuple[int, int], tuple[float, float]] = {}
    of_clients = "client" in term.ends

    def add(client: int, site: int, gb: FloatArray | float, amount: float) -> None:
        place = client if of_clients else -1, site
        known = found.get(place, (0.0, 0.0))
        found[place] = known[0] + float(gb), known[1] + float(amount)

    for c, gb in enumerate(np.broadcast_to(term.gb, near.shape[1:]).tolist()):
        if term.constant is not None:
            add(c, one.leader, gb, term.constant[c])
        if term.by_client is not None:
            for r in one.replicas:
                add(c, r, gb, term.by_client[c, r])
    if term.served is not None:
        served, price = term.served
        each = served if len(near) > 1 else served.sum(axis=0, keepdims=True)
        for k, c in np.argwhere(each).tolist():
            unit = price[c, near[k, c]]
            add(c, int(near[k, c]), each[k, c] if of_clients else 0.0, each[k, c] * unit)
    if term.witness is not None:
        for w in one.witnesses:
            add(-1, w, 0.0, term.witness[w])
    prices = (term.replica, one.replicas), (term.voter, one.voters)
    for r in one.replicas if term.by_client is None else ():
        paid = [table[r] for table, held in prices if table is not None and r in held]
        if paid:
            add(-1, r, term.gb, sum(paid))
    return found


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
