"""Price lists of AWS and Azure as their owners publish them, in JSON.

AWS: a file of the *AWS Price List Bulk API* (``index.json`` of an offer such as
``AWSDataTransfer``): ``products`` by SKU with their attributes, and ``terms.OnDemand`` with the
price of each SKU.

Azure: an answer of the *Azure Retail Prices API*: ``Items``, each with region, product, meter and
price. Its meters of traffic between regions tell the sender, and whether the receiver is on the
same continent. Traffic to the internet has two products; the prices are those of Microsoft's own
network, the default.

Neither API grants the right to pass its prices on: users download them themselves.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass

from placement.errors import InputError
from placement.io.formats.document import Document, read_document
from placement.io.price_lists.csv_prices import checked_tiers
from placement.io.price_lists.price_tables import (
    INTERNET,
    OTHER_CONTINENT,
    SAME_CONTINENT,
    SitePrices,
    Tiers,
    TransferTable,
)
from placement.model.prices import HOURS_PER_MONTH
from placement.support.checks import LARGEST

__all__ = ["read_cloud_sites", "read_cloud_transfer"]

_UNITS = {
    "hrs": ("machines", HOURS_PER_MONTH),
    "1hour": ("machines", HOURS_PER_MONTH),
    "gb-mo": ("storage_gb", 1.0),
    "1gb/month": ("storage_gb", 1.0),
}
"""Unit of a price -> price per month of a site, and the factor."""

_GB = ("gb", "1gb")

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


@dataclass(frozen=True)
class _Rate:
    """A price in a list: for whom, from which volume, how much."""

    item: str
    sender: str
    receiver: str
    unit: str
    begin: float
    price: float
    currency: str


def read_cloud_transfer(path: str | os.PathLike[str]) -> TransferTable:
    """Read prices per GB sent from the price list of a cloud.

    Raises
    ------
    InputError
        For a file of another kind, one without prices of traffic, and a pair with two prices.
    """
    document = _read(path)
    rates = [one for one in _rates(document) if one.receiver and one.unit in _GB]
    if not rates:
        raise InputError(
            "no prices of traffic",
            source=document.source,
            expected="the offer AWSDataTransfer of AWS, or items of the service Bandwidth of Azure",
        )
    steps: dict[tuple[str, str], dict[float, _Rate]] = {}
    for one in rates:
        found = steps.setdefault((one.sender, one.receiver), {})
        known = found.setdefault(one.begin, one)
        if known.price != one.price:
            raise _two_prices(document, known, one)
    tiers = {pair: _tiers(found, document, pair) for pair, found in steps.items()}
    return TransferTable(
        _dated(document),
        _currency(document, rates),
        {pair: found[0][1] for pair, found in tiers.items() if len(found) == 1},
        {pair: found for pair, found in tiers.items() if len(found) > 1},
    )


def read_cloud_sites(path: str | os.PathLike[str]) -> SitePrices:
    """Read prices of machines (per hour) and of storage (per GB and month) by region.

    The file must hold one price of each unit for a region: that of the machine, or of the storage,
    that a replica uses.

    Raises
    ------
    InputError
        For a file of another kind or without such prices, and a region with two of them.
    """
    document = _read(path)
    rates = [one for one in _rates(document) if not one.receiver and one.unit in _UNITS]
    if not rates:
        raise InputError(
            "no prices of machines or storage",
            source=document.source,
            expected="products with prices per hour, or per GB and month",
        )
    columns: dict[str, dict[str, float]] = {}
    first: dict[tuple[str, str], _Rate] = {}
    for one in rates:
        column, factor = _UNITS[one.unit]
        known = first.setdefault((column, one.sender), one)
        if known.price != one.price:
            raise _two_prices(document, known, one)
        columns.setdefault(column, {})[one.sender] = one.price * factor
    return SitePrices(_dated(document), _currency(document, rates), columns)


def _read(path: str | os.PathLike[str]) -> Document:
    document = read_document(path)
    if document.values.get("NextPageLink"):
        raise document.refuse(
            "NextPageLink", "one page of several", "the items of all pages in one list, and null"
        )
    if not (document.has("products") or document.has("Items")):
        raise InputError(
            "no price list of a known kind",
            source=document.source,
            expected="'products' and 'terms' of AWS, or 'Items' of Azure",
        )
    return document


def _rates(document: Document) -> Iterator[_Rate]:
    return _aws(document) if document.has("products") else _azure(document)


def _aws(document: Document) -> Iterator[_Rate]:
    products, terms = document.table("products"), document.table("terms").table("OnDemand")
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
        for offer in terms.table(sku).values:
            dimensions = terms.table(sku).table(offer).table("priceDimensions")
            for key in dimensions.values:
                one = dimensions.table(key)
                for currency in one.table("pricePerUnit").values:
                    yield _Rate(
                        sku,
                        sender,
                        receiver,
                        _unit(one.text("unit", "")),
                        _number(one, "beginRange", "0"),
                        _number(one.table("pricePerUnit"), currency),
                        currency,
                    )


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
        yield _Rate(
            meter,
            sender,
            receiver,
            _unit(one.text("unitOfMeasure", "")),
            _number(one, "tierMinimumUnits", "0"),
            _number(one, "retailPrice"),
            one.text("currencyCode", document.text("BillingCurrency", "")),
        )


def _tiers(found: dict[float, _Rate], document: Document, pair: tuple[str, str]) -> Tiers:
    begins = [*sorted(found)[1:], math.inf]
    steps = [(end, found[begin].price) for begin, end in zip(sorted(found), begins, strict=True)]
    return checked_tiers(steps, document.source, pair)


def _unit(text: str) -> str:
    return text.lower().replace(" ", "")


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


def _currency(document: Document, rates: list[_Rate]) -> str:
    found = rates[0].currency
    for one in rates:
        if one.currency != found:
            raise InputError(
                "two currencies",
                source=document.source,
                field=f"currency of {one.item}",
                value=one.currency,
                expected=f"{found}, as of {rates[0].item}",
            )
    return found


def _dated(document: Document) -> str:
    """Return the file with the date of its prices."""
    dates = [document.text("publicationDate", "")]
    dates += [one.text("effectiveStartDate", "") for one in document.tables("Items")]
    return f"{document.source}, prices of {max(dates)[:10]}" if max(dates) else document.source


def _two_prices(document: Document, known: _Rate, other: _Rate) -> InputError:
    to = f" to {known.receiver}" if known.receiver else ""
    return InputError(
        f"two prices for {known.sender}{to}",
        source=document.source,
        field=f"{known.item}, {other.item}",
        value=f"{known.price:g} and {other.price:g}",
        expected="one: leave only the products in the file that are bought",
    )
