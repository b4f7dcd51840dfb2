"""Price lists that users download, read by name and put on an instance.

Tables (CSV and the other forms of :mod:`placement.io.feeds.blocks`) have prices of sites, or of
traffic between places. AWS: a file of the *Price List Bulk API* (``index.json`` of an offer such as
``AWSDataTransfer``): ``products`` by SKU, and ``terms.OnDemand`` with the price of each. Azure: an
answer of the *Retail Prices API*: ``Items``, each with region, product, meter and price. Its meters
of traffic tell the sender, and whether the receiver is on the same continent. Traffic to the
internet has two products; the prices are those of Microsoft's own network, the default.

Neither API grants the right to pass its prices on: users download them themselves.
"""

from __future__ import annotations

import dataclasses
import math
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

import numpy as np

from placement.errors import InputError, PlacementWarning, refused, require
from placement.io.feeds.headers import read_header, the_column
from placement.io.feeds.registry import Content
from placement.io.formats.column_reader import ColumnTable, matrix_of
from placement.io.formats.document import Document, read_document
from placement.io.formats.tables import Table, name_cell
from placement.io.instance_folder import PRICE
from placement.model.instance import Instance
from placement.model.prices import HOURS_PER_MONTH, PER_SITE, Prices, gb_of_operations
from placement.support.checks import LARGEST, FloatArray

INTERNET = "internet"
"""Name of the place outside all sites, as receiver of traffic."""

Tiers = tuple[tuple[float, float], ...]
"""(GB per month up to which a price holds, price per GB), ascending; the last is infinite."""

SAME_CONTINENT, OTHER_CONTINENT = "same continent", "other continent"
"""Receivers in a price list that knows only whether a site sends within its continent."""

_SHOWN = 8
_MUCH_GB = 100.0
"""GB of a replica whose storage costs more than one unit of money in a month."""
_T = TypeVar("_T")


@dataclass(frozen=True, eq=False)
class _PriceList:
    """Origin of prices."""

    source: str  # the file, with its date where it says one
    currency: str  # empty where the file names none


@dataclass(frozen=True, eq=False)
class SitePrices(_PriceList):
    """Prices of sites by name."""

    #: "storage", "storage_gb" (per GB stored) or one of `PER_SITE` -> site -> price per month
    columns: Mapping[str, Mapping[str, float]]

    def of(self, column: str, sites: Sequence[str]) -> FloatArray | None:
        """Return a column in the order of the sites, shape (sites,); None: the list has none.

        A site without a price is refused.
        """
        known = self.columns.get(column)
        if known is None:
            return None
        found = [known[site] if site in known else known.get(_plain(site)) for site in sites]
        missing = [site for site, price in zip(sites, found, strict=True) if price is None]
        if missing:
            words = f"{len(missing)} of {len(sites)} sites have no price"
            expected = f"a price for every site; missing: {', '.join(missing)}"
            raise refused(self.source, column, words, missing[0], expected)
        return np.array(found, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class TransferTable(_PriceList):
    """Prices per GB sent from one place to another, by name."""

    #: (from, to) -> price per GB. Places are sites, domains, or "internet". A price list that knows
    #: only whether a site sends within its continent has the receivers "same continent" and "other
    #: continent".
    prices: Mapping[tuple[str, str], float]
    #: (from, to) -> prices that depend on the volume; such a pair has no entry in `prices`
    tiers: Mapping[tuple[str, str], Tiers] = field(default_factory=dict)

    def at_volume(self, gb: float) -> TransferTable:
        """Return the table with the price of the tier that holds at a volume of `gb` per month."""
        marginal = {
            pair: next(price for most, price in tiers if gb < most)
            for pair, tiers in self.tiers.items()
        }
        source = f"{self.source}, tiers at {gb:g} GB per month" if marginal else self.source
        return replace(self, source=source, prices={**self.prices, **marginal}, tiers={})

    def between(
        self, senders: Sequence[str], receivers: Sequence[str], same: FloatArray
    ) -> FloatArray:
        """Return the price per GB from each sender to each receiver, shape (senders, receivers).

        Pairs that are the `same` place cost nothing; those without a price or with tiers are
        refused.
        """
        found = np.zeros((len(senders), len(receivers)))
        missing: list[tuple[str, str]] = []
        for i, j in np.argwhere(~np.asarray(same, dtype=bool)).tolist():
            price = _lookup_pair(self.prices, senders[i], receivers[j])
            if price is not None:
                found[i, j] = price
            elif senders[i] != INTERNET:  # the clouds charge nothing for what comes in
                missing.append((senders[i], receivers[j]))
        if missing:
            raise self._missing(missing, found.size - int(np.sum(same)))
        return found

    def _missing(self, pairs: Sequence[tuple[str, str]], count: int) -> InputError:
        sender, receiver = pairs[0]
        if _lookup_pair(self.tiers, sender, receiver) is not None:
            return InputError(
                "the price depends on the volume",
                source=self.source,
                field="transfer",
                value=f"{sender} to {receiver}",
                expected="one price: choose the tier of the last GB of a month, by its volume "
                "(--marginal-gb)",
            )
        rest, lacking = list(pairs), []
        while rest:  # the place that lacks most prices, then again among the remaining pairs
            names = [name for pair in rest for name in pair]
            lacking.append(max(dict.fromkeys(names), key=names.count))
            rest = [pair for pair in rest if lacking[-1] not in pair]
        shown = ", ".join(f"{a} to {b}" for a, b in pairs[:5]) + (", …" if len(pairs) > 5 else "")
        return InputError(
            f"{len(pairs)} of {count} pairs have no price: {shown}",
            source=self.source,
            field="transfer",
            value=f"{sender} to {receiver}",
            expected="a price for every pair, or leave out the sites that lack prices: "
            + ", ".join(lacking)
            + self._names(pairs),
        )

    def _names(self, pairs: Sequence[tuple[str, str]]) -> str:
        """Return what the list names, where it lacks a place or knows only continents."""
        known = {*self.prices, *self.tiers}
        if {SAME_CONTINENT, OTHER_CONTINENT} & {receiver for _, receiver in known}:
            return (
                "; the list has prices within and between continents: a column continent of the "
                "sites (import --sites) says which they are"
            )
        sides = [sorted({pair[side] for pair in known}) for side in (0, 1)]
        plain = [set(map(_plain, names)) for names in sides]
        if all(_plain(a) in plain[0] and _plain(b) in plain[1] for a, b in pairs):
            return ""
        shown = [", ".join(names[:_SHOWN]) + ", …" * (len(names) > _SHOWN) for names in sides]
        return f"; the list has prices from {shown[0]} to {shown[1]}"

    def by_continent(self, sites: Sequence[str], continents: Sequence[str | None]) -> TransferTable:
        """Return the table with prices of pairs of sites in place of those by continent."""
        if not any(receiver in (SAME_CONTINENT, OTHER_CONTINENT) for _, receiver in self.prices):
            return self
        prices = dict(self.prices)
        for sender, here in zip(sites, continents, strict=True):
            for receiver, there in zip(sites, continents, strict=True):
                kind = SAME_CONTINENT if here and here == there else OTHER_CONTINENT
                price = _lookup_pair(self.prices, sender, kind)
                if price is not None:
                    prices[sender, receiver] = price
        return replace(self, prices=prices)


def _plain(name: str) -> str:
    """Return the short form of a name in price lists: "East US 2" -> "eastus2"."""
    return "".join(letter for letter in name.lower() if letter.isalnum())


def _lookup_pair(known: Mapping[tuple[str, str], _T], sender: str, receiver: str) -> _T | None:
    for pair in (
        (sender, receiver),
        (_plain(sender), _plain(receiver)),
        (_plain(sender), receiver),
    ):
        if pair in known:
            return known[pair]
    return None


# --- reading ---------------------------------------------------------------------------------

_COLUMNS = ("storage", "storage_gb", *PER_SITE)
_UP_TO = "up_to_gb"
_GB = ("gb", "1gb")
_UNITS = {
    "hrs": ("machines", HOURS_PER_MONTH),
    "1hour": ("machines", HOURS_PER_MONTH),
    "gb-mo": ("storage_gb", 1.0),
    "1gb/month": ("storage_gb", 1.0),
}
"""Unit of a price -> price per month of a site, and the factor."""

_OTHER_PRODUCTS = ("Routing Preference: Internet", "Peering", "Alliance")
"""Parts of the names of Azure's products of traffic that a service has to choose."""

_OTHER_METERS = ("availability zone", "china", "data transfer in", "peering")
"""Parts of the names of Azure's meters of other traffic: within a region, inwards, peering."""

_BETWEEN_REGIONS = {
    "inter continent": OTHER_CONTINENT,
    "intra continent": SAME_CONTINENT,
    "inter region": SAME_CONTINENT,
}
"""Parts of the names of Azure's meters -> receiver; hyphens are blanks."""

_REGION_KEYS = (
    ("fromLocation", "fromRegionCode"),
    ("toLocation", "toRegionCode"),
    ("location", "regionCode"),
)
"""Keys of AWS for the name of a region, and for its code."""


@dataclass(frozen=True)
class _Rate:
    """A price in a list of a cloud: for whom, from which volume, how much."""

    item: str
    sender: str
    receiver: str
    unit: str
    begin: float
    price: float
    currency: str


def read_site_prices(path: str | os.PathLike[str]) -> SitePrices:
    """Read prices of sites per month.

    A table has ``site``, one or more of ``storage`` (or ``price``; per replica), ``storage_gb``
    (per GB) and the columns of `PER_SITE`, and ``currency`` if named. The JSON of a cloud has one
    price per hour of the machine and one per GB and month of the storage that a replica uses in
    each region; two of them for a region, and two currencies, are refused.
    """
    columns: dict[str, dict[str, float]] = {}
    if os.fspath(path).endswith(".json"):
        document = _cloud(path)
        rates = [one for one in _rates(document) if not one.receiver and one.unit in _UNITS]
        known: dict[tuple[str, str, float], _Rate] = {}
        for one in rates:
            column, factor = _UNITS[one.unit]
            _one_price(known, (column, one.sender, 0.0), one, document)
            columns.setdefault(column, {})[one.sender] = one.price * factor
        words = "prices of machines or storage"
        return SitePrices(_dated(document), _currency(document, rates, words), columns)
    table = _table(path)
    currency, table = _currency_column(table)
    names = ["storage" if name == "price" else name for name in table.columns[1:]]
    for column, name in zip(table.columns[1:], names, strict=True):
        if name not in _COLUMNS or names.count(name) > 1:
            expected = "one of " + ", ".join((*_COLUMNS, "currency"))
            raise InputError("unknown column", source=table.source, field=column, expected=expected)
    found = matrix_of(ColumnTable.of(table), table.columns[:1], "site", PRICE)
    values = found.values.T.tolist()
    columns = {
        name: dict(zip(map(str.strip, found.rows), row, strict=True))
        for name, row in zip(names, values, strict=True)
    }
    return SitePrices(table.source, currency, columns)


def read_transfer(path: str | os.PathLike[str]) -> TransferTable:
    """Read prices per GB sent: a table, or the JSON of a cloud.

    *Long*: ``from``, ``to`` and ``price`` (or other words for them), with ``up_to_gb`` where prices
    depend on the volume per month. *Square*: the sender in the first column, one column per
    receiver; a blank cell is a pair without a price.
    """
    steps: dict[tuple[str, str], list[tuple[float, float]]] = {}
    if os.fspath(path).endswith(".json"):
        document = _cloud(path)
        rates = [one for one in _rates(document) if one.receiver and one.unit in _GB]
        known: dict[tuple[str, str, float], _Rate] = {}
        for one in rates:
            _one_price(known, (one.sender, one.receiver, one.begin), one, document)
        for (sender, receiver, begin), one in sorted(known.items()):
            found = steps.setdefault((sender, receiver), [])
            found[-1:] = [(begin, price) for _, price in found[-1:]]
            found.append((math.inf, one.price))
        source, currency = _dated(document), _currency(document, rates, "prices of traffic")
    else:
        table = _table(path)
        source, (currency, table) = table.source, _currency_column(table)
        if any(read_header(name).end == "dst" for name in table.columns[1:]):
            steps = _long(table, ("from", "to"))
        else:
            told = matrix_of(ColumnTable.of(table), table.columns[:1], "row", PRICE, gaps=True)
            steps = {
                (sender, receiver): [(math.inf, price)]
                for sender, row in zip(told.rows, told.values.tolist(), strict=True)
                for receiver, price in zip(told.columns, row, strict=True)
                if not math.isnan(price)
            }
    tiers = {pair: _ascending(found, source, pair) for pair, found in steps.items()}
    return TransferTable(
        source,
        currency,
        {pair: found[0][1] for pair, found in tiers.items() if len(found) == 1},
        {pair: found for pair, found in tiers.items() if len(found) > 1},
    )


def read_tiers(path: str | os.PathLike[str]) -> dict[str, Tiers]:
    """Read the tiers of each sender: ``from``, ``up_to_gb`` (blank: no limit) and ``price``."""
    table = _table(path)
    table.column(_UP_TO)
    found = _long(table, ("from",))
    return {pair[0]: _ascending(steps, table.source, pair) for pair, steps in found.items()}


def _table(path: str | os.PathLike[str]) -> Table:
    """Return the table of a file; refuse one of round-trip times."""
    (table, *_) = Content.of(path).blocks
    for name in table.columns:
        if read_header(name).quantity in ("rtt", "one-way delay"):
            raise refused(
                table.source, "header", "round-trip times, not prices", name, "a table of prices"
            )
    return table


def _long(table: Table, ends: tuple[str, ...]) -> dict[tuple[str, str], list[tuple[float, float]]]:
    """Return the tiers of each pair, or of each sender and "all"."""
    places = []
    for role in (*ends, "price"):
        end = {"from": "src", "to": "dst"}.get(role, "")
        heads = [read_header(name) for name in table.columns if name not in ("currency", _UP_TO)]
        fitting = [one for one in heads if (one.end == end if end else one.quantity == "price")]
        name = the_column([one.text for one in fitting], role, table.source, "one column for")
        places.append(table.column(name or role))
    *of_ends, cost = places
    frame = ColumnTable.of(table)
    names = [frame.found(table.columns[place]) for place in of_ends]
    prices = frame.quantities(table.columns[cost], PRICE)
    limits = np.full(len(prices), math.nan)
    if _UP_TO in table.columns:
        limits = frame.matrix([_UP_TO], "GB per month, or blank", blank=True)[:, 0]
    steps: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for row, (most, price) in enumerate(zip(limits.tolist(), prices.tolist(), strict=True)):
        sender, receiver = (*(found[which[row]] for found, which in names), "all")[:2]
        if most == 0:
            raise refused(table.at(row), _UP_TO, "not a volume", most, "GB > 0, or blank")
        found = steps.setdefault((sender, receiver), [])
        if found and _UP_TO not in table.columns:
            words = "a pair given twice"
            expected = f"one price, or a column {_UP_TO} with the volume of each tier"
            raise refused(table.at(row), "to", words, f"{sender} to {receiver}", expected)
        found.append((math.inf if math.isnan(most) else most, price))
    return steps


def _ascending(found: list[tuple[float, float]], source: str, pair: tuple[str, str]) -> Tiers:
    """Return tiers in ascending order; refuse two of one volume, and a last one with a limit."""
    ordered = sorted(found)
    limits = [most for most, _ in ordered]
    if len(set(limits)) < len(limits) or limits[-1] != math.inf:
        raise InputError(
            "tiers that do not ascend to one without a limit",
            source=source,
            field=_UP_TO,
            value=f"{pair[0]} to {pair[1]}: {', '.join(f'{most:g}' for most in limits)}",
            expected="volumes in GB per month, each once, and a blank for the last tier",
        )
    return tuple(ordered)


def _one_currency(named: Sequence[tuple[str, str]], words: str) -> str:
    """Return the currency of (place, currency); empty without any."""
    for place, currency in named:
        if currency != named[0][1]:
            expected = f"{named[0][1]}, {words or 'as in ' + named[0][0]}"
            raise refused(place, "currency", "two currencies", currency, expected)
    return named[0][1] if named else ""


def _currency_column(table: Table) -> tuple[str, Table]:
    """Return the currency of a table, and the table without that column."""
    if "currency" not in table.columns:
        return "", table
    place = table.column("currency")
    cells = [(table.at(row), cells[place]) for row, cells in enumerate(table.rows)]
    named = [(at, name_cell(cell, at, "currency").strip()) for at, cell in cells]
    rest = [(*cells[:place], *cells[place + 1 :]) for cells in (table.columns, *table.rows)]
    columns, rows = tuple(map(str, rest[0])), tuple(rest[1:])
    return _one_currency(named, "in every row"), replace(table, columns=columns, rows=rows)


# --- lists of clouds -------------------------------------------------------------------------


def _cloud(path: str | os.PathLike[str]) -> Document:
    document = read_document(path)
    if document.values.get("NextPageLink"):
        raise document.refuse(
            "NextPageLink", "one page of several", "the items of all pages in one list, and null"
        )
    if not (document.has("products") or document.has("Items")):
        expected = "'products' and 'terms' of AWS, or 'Items' of Azure"
        raise InputError("no price list of a known kind", source=document.source, expected=expected)
    return document


def _rates(document: Document) -> Iterator[_Rate]:
    return _aws(document) if document.has("products") else _azure(document)


def _aws(document: Document) -> Iterator[_Rate]:
    products, terms = document.table("products"), document.table("terms").table("OnDemand")
    codes: dict[str, str] = {}
    for sku in products.values:
        product = products.table(sku).table("attributes")
        for name, code in _REGION_KEYS:
            if product.text(name, "") and product.text(code, ""):
                codes.setdefault(product.text(name, ""), product.text(code, ""))
    for sku in products.values:
        product = products.table(sku).table("attributes")
        kind = product.text("transferType", "")
        if kind not in ("", "InterRegion Outbound", "AWS Outbound") or product.text(
            "operation", ""
        ):
            continue  # other directions; prices of single services
        ends = [product.text(f"{end}LocationType", "") for end in ("from", "to")]
        if any("Zone" in end for end in ends):
            continue  # local and wavelength zones, which are no regions
        receiver = ""
        if kind:
            receiver = product.text("toRegionCode", "") or product.text("toLocation", "")
            receiver = INTERNET if kind == "AWS Outbound" else receiver
        sender = product.text("fromRegionCode", "") or product.text("regionCode", "")
        sender = sender or product.text("fromLocation", "") or product.text("location", "")
        sender, receiver = codes.get(sender, sender), codes.get(receiver, receiver)
        for offer in terms.table(sku).values:
            dimensions = terms.table(sku).table(offer).table("priceDimensions")
            for key in dimensions.values:
                one = dimensions.table(key)
                unit = one.text("unit", "").lower().replace(" ", "")
                least, prices = _number(one, "beginRange", "0"), one.table("pricePerUnit")
                for currency in prices.values:
                    price = _number(prices, currency)
                    yield _Rate(sku, sender, receiver, unit, least, price, currency)


def _azure(document: Document) -> Iterator[_Rate]:
    for one in document.tables("Items"):
        meter = one.text("meterName", "")
        receiver = ""
        if one.text("serviceName", "") == "Bandwidth":
            product, words = one.text("productName", ""), meter.lower().replace("-", " ")
            if any(other in product for other in _OTHER_PRODUCTS):
                continue
            found = [place for part, place in _BETWEEN_REGIONS.items() if part in words]
            if any(other in words for other in _OTHER_METERS):
                continue
            if not found and "data transfer out" not in words:
                continue
            receiver = found[0] if found else INTERNET
        sender = one.text("armRegionName", "")
        if not sender or one.text("type", "Consumption") != "Consumption":
            continue
        unit = one.text("unitOfMeasure", "").lower().replace(" ", "")
        least, price = _number(one, "tierMinimumUnits", "0"), _number(one, "retailPrice")
        currency = one.text("currencyCode", document.text("BillingCurrency", ""))
        yield _Rate(meter, sender, receiver, unit, least, price, currency)


def _number(document: Document, key: str, default: str = "") -> float:
    """Return a number >= 0 that a list writes as a number or as text."""
    given = document.values.get(key, default)
    try:
        value = float(given)  # type: ignore[arg-type]  # a bad type is what is caught here
    except (TypeError, ValueError):
        value = math.nan
    if not 0 <= value <= LARGEST:
        raise document.refuse(key, "not a price or volume", f"a number from 0 to {LARGEST:g}")
    return value


def _currency(document: Document, rates: list[_Rate], words: str) -> str:
    """Return the currency of a list with at least one rate."""
    if not rates:
        raise InputError(
            f"no {words}",
            source=document.source,
            expected="products with prices per hour or per GB and month, the offer AWSDataTransfer "
            "of AWS, or the service Bandwidth of Azure",
        )
    return _one_currency([(f"{document.source}: {one.item}", one.currency) for one in rates], "")


def _dated(document: Document) -> str:
    """Return the file with the date of its prices."""
    dates = [document.text("publicationDate", "")]
    dates += [one.text("effectiveStartDate", "") for one in document.tables("Items")]
    return f"{document.source}, prices of {max(dates)[:10]}" if max(dates) else document.source


def _one_price(
    known: dict[tuple[str, str, float], _Rate],
    key: tuple[str, str, float],
    other: _Rate,
    document: Document,
) -> None:
    """Record a rate; refuse another price for the same key."""
    first = known.setdefault(key, other)
    if first.price != other.price:
        to = f" to {first.receiver}" if first.receiver else ""
        raise InputError(
            f"two prices for {first.sender}{to}",
            source=document.source,
            field=f"{first.item}, {other.item}",
            value=f"{first.price:g} and {other.price:g}",
            expected="one: leave only the products in the file that are bought",
        )


# --- prices on an instance -------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PriceInput:
    """Prices by name that replace those of an instance; None and empty: no change."""

    sites: SitePrices | float | None = None  #: prices of sites, or one price of storage for all
    transfer: TransferTable | None = None  #: prices of traffic
    #: level of failure domains whose names stand in `transfer` in place of sites
    zones: str | None = None
    #: client -> site, domain of `zones`, or "internet", whose prices of traffic it has. When
    #: operations move data, every client that has no site's name needs a place.
    client_places: Mapping[str, str] = field(default_factory=dict)
    #: gb_per_op, written_gb, interval_hours, replication, stored_gb, present: as in Prices
    gb_per_op: Mapping[str, float] = field(default_factory=dict)
    written_gb: float | None = None
    interval_hours: float | None = None
    replication: Literal["leader", "gateway"] | None = None
    stored_gb: float | None = None
    #: whether prices of storage are those of one replica or, "GB-month", of one GB of it; None: of
    #: one replica, with a warning where that is much for little
    storage_unit: Literal["replica-month", "GB-month"] | None = None
    present: Sequence[str] = ()


def with_prices(instance: Instance, given: PriceInput) -> Instance:
    """Return the instance with other prices.

    A site or a pair without a price, two currencies, and a client that moves data and has no place
    are refused.
    """
    before = instance.prices
    fields: dict[str, object] = {}
    lists: list[_PriceList] = []
    if before is not None:
        fields = {one.name: getattr(before, one.name) for one in dataclasses.fields(before)}
        if given.sites is None or given.transfer is None:
            lists.append(_PriceList(f"the instance {instance.name!r}", before.currency))
    plain = ("written_gb", "interval_hours", "replication", "stored_gb", "gb_per_op", "present")
    for name in plain:
        if getattr(given, name) not in (None, {}, (), []):
            fields[name] = getattr(given, name)
    if isinstance(given.sites, SitePrices):
        lists.append(given.sites)
        fields |= _site_fields(instance, given, given.sites, fields.get("stored_gb", 0.0))
    elif given.sites is not None:
        one = SitePrices("", "", {"storage": dict.fromkeys(instance.sites, given.sites)})
        fields |= _site_fields(instance, given, one, fields.get("stored_gb", 0.0), only="storage")
    expected = "a table of prices, or one price of a replica for all sites"
    require("storage" in fields, "prices", "no prices of the sites", expected=expected)
    if given.transfer is not None:
        lists.append(given.transfer)
        fields |= _transfer_fields(instance, given, given.transfer, fields.get("gb_per_op", {}))
    elif given.client_places:
        fields["client_sites"] = dict(given.client_places)
    if fields.get("transfer") is None:
        for name in ("written_gb", "gb_per_op"):
            if getattr(given, name):
                words = "traffic without a price"
                expected = "prices per GB too (--transfer)"
                raise InputError(words, field=name, value=getattr(given, name), expected=expected)
    named_currencies = [(one.source, one.currency) for one in lists if one.currency]
    fields["currency"] = _one_currency(named_currencies, "") or "USD"
    named = [prices.source for prices in lists if prices.source]
    if named:
        fields["source"] = "; ".join(dict.fromkeys(named))
    prices = Prices(**fields)  # type: ignore[arg-type]  # checked there
    highest = float(prices.storage.max(initial=0.0))
    guessed = given.storage_unit is None
    if guessed and prices.stored_gb >= _MUCH_GB and 0 < highest < 1:
        warnings.warn(
            f"{prices.source or 'prices'}: storage: {highest:g} {prices.currency} per month is the "
            f"price of a whole replica of {prices.stored_gb:g} GB; prices per GB have a column "
            "storage_gb in the table of prices, or --storage-unit GB-month",
            PlacementWarning,
            stacklevel=2,
        )
    return instance.replace(prices=prices)


def _site_fields(
    instance: Instance, given: PriceInput, table: SitePrices, stored_gb: object, only: str = ""
) -> dict[str, object]:
    sites = instance.sites
    others = PER_SITE if not only else ()
    fields: dict[str, object] = {name: table.of(name, sites) for name in others}
    storage, each = table.of("storage", sites), table.of("storage_gb", sites)
    if storage is not None and given.storage_unit == "GB-month":
        if each is not None:
            words, expected = "two columns of prices per GB", "storage or storage_gb"
            raise refused(table.source, "storage", words, given.storage_unit, expected)
        storage, each = None, storage
    if each is not None:
        if not isinstance(stored_gb, (int, float)) or not stored_gb:
            words = "storage has a price per GB"
            raise refused(table.source, "stored_gb", words, stored_gb, "the GB of one replica")
        storage = each * float(stored_gb) + (0.0 if storage is None else storage)
    fields["storage"] = np.zeros(len(sites)) if storage is None else storage
    return fields


def _transfer_fields(
    instance: Instance, given: PriceInput, table: TransferTable, gb_per_op: object
) -> dict[str, object]:
    """Return the matrices of an instance: between sites, and from and to its clients."""
    sites = instance.sites
    if "continent" in instance.domains:
        table = table.by_continent(sites, instance.domains["continent"])
    zones: tuple[str, ...] = sites  # the name of each site in the price list
    if given.zones is not None:
        labels = instance.labels(given.zones)
        zones = tuple(label for label in labels if label is not None)
        if len(zones) < len(sites):
            words = f"site {sites[labels.index(None)]!r} has no {given.zones}"
            expected = "a level at which every site has a domain"
            raise InputError(words, field="zones", value=given.zones, expected=expected)
    count = len(sites)
    transfer = table.between(zones, zones, np.eye(count, dtype=bool))
    gb = gb_of_operations(Prices(np.zeros(1), gb_per_op=gb_per_op), instance.operations)  # type: ignore[arg-type]  # checked there
    unknown = set(given.client_places) - set(instance.clients)
    if unknown:
        words = "unknown client"
        expected = "one of the clients of the instance"
        raise InputError(words, field="client_sites", value=min(unknown), expected=expected)
    if not gb.any() and given.replication != "gateway":
        homes = {c: place for c, place in given.client_places.items() if place in sites}
        none = {"to_clients": None, "from_clients": None}
        return {"transfer": transfer, "client_sites": homes, **none}
    index = {name: s for s, name in enumerate(sites)}
    to_clients: FloatArray = np.zeros((len(instance.clients), count))
    from_clients: FloatArray = np.zeros_like(to_clients)
    for c, client in enumerate(instance.clients):
        place = given.client_places.get(client, client)
        if place in index:
            to_clients[c], from_clients[c] = transfer[:, index[place]], transfer[index[place]]
        elif place == INTERNET or place in zones:
            apart = np.zeros((count, 1), dtype=bool)
            to_clients[c] = table.between(zones, [place], apart)[:, 0]
            from_clients[c] = table.between([place], zones, apart.T)[0]
        else:
            words = f"client {client!r} moves data and is at no site, so its traffic has no price"
            expected = "a site, a domain of the price list, or 'internet' for it"
            raise InputError(words, field="client_sites", value=place, expected=expected)
    return {
        "transfer": transfer,
        "client_sites": {},
        "to_clients": to_clients,
        "from_clients": from_clients,
    }


def nearest_sites(instance: Instance) -> dict[str, str]:
    """Return client -> site of the smallest RTT; with RTTs that vary, in the mean."""
    rtt = instance.client_rtt
    near = (rtt.mean(axis=0) if rtt.ndim == 3 else rtt).argmin(axis=1)
    return {
        client: instance.sites[s] for client, s in zip(instance.clients, near.tolist(), strict=True)
    }
