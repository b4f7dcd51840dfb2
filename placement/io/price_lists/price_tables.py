"""Prices by name, as a price list has them, and the matrices that an instance needs of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from placement.errors import InputError
from placement.support.checks import FloatArray

__all__ = [
    "INTERNET",
    "OTHER_CONTINENT",
    "SAME_CONTINENT",
    "PriceList",
    "SitePrices",
    "Tiers",
    "TransferTable",
    "one_currency",
]

INTERNET = "internet"
"""Name of the place outside all sites, as receiver of traffic."""

Tiers = tuple[tuple[float, float], ...]
"""(GB per month up to which a price holds, price per GB), ascending; the last is infinite."""

SAME_CONTINENT, OTHER_CONTINENT = "same continent", "other continent"
"""Receivers in a price list that knows only whether a site sends within its continent."""

_T = TypeVar("_T")


@dataclass(frozen=True, eq=False)
class PriceList:
    """Origin of prices.

    Attributes
    ----------
    source
        The file, with its date where it says one.
    currency
        Empty where the file names none.
    """

    source: str
    currency: str


@dataclass(frozen=True, eq=False)
class SitePrices(PriceList):
    """Prices of sites by name.

    Attributes
    ----------
    columns
        "storage", "storage_gb" (per GB stored), "machines", "machines_non_voting" or "requests" ->
        site -> price per month.
    """

    columns: Mapping[str, Mapping[str, float]]

    def of(self, column: str, sites: Sequence[str]) -> FloatArray | None:
        """Return a column in the order of the sites, shape (sites,); None: the list has none.

        Raises
        ------
        InputError
            For a site without a price.
        """
        known = self.columns.get(column)
        if known is None:
            return None
        found = [_lookup(known, site) for site in sites]
        missing = [site for site, price in zip(sites, found, strict=True) if price is None]
        if missing:
            raise InputError(
                f"{len(missing)} of {len(sites)} sites have no price",
                source=self.source,
                field=column,
                value=missing[0],
                expected=f"a price for every site; missing: {', '.join(missing)}",
            )
        return np.array(found, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class TransferTable(PriceList):
    """Prices per GB sent from one place to another, by name.

    Attributes
    ----------
    prices
        (from, to) -> price per GB. Places are sites, domains, or "internet". A price list that
        knows only whether a site sends within its continent has the receivers "same continent" and
        "other continent".
    tiers
        (from, to) -> prices that depend on the volume; such a pair has no entry in `prices`.
    """

    prices: Mapping[tuple[str, str], float]
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

        Parameters
        ----------
        senders, receivers
            Names of places.
        same
            Pairs that are one place, which cost nothing, as booleans.

        Raises
        ------
        InputError
            For pairs without a price, and for pairs with tiers.
        """
        found = np.zeros((len(senders), len(receivers)))
        missing: list[tuple[str, str]] = []
        for i, sender in enumerate(senders):
            for j, receiver in enumerate(receivers):
                if same[i, j]:
                    continue
                price = _lookup_pair(self.prices, sender, receiver)
                if price is None and sender == INTERNET:
                    price = 0.0  # the clouds charge the sender, and nothing for what comes in
                if price is None:
                    missing.append((sender, receiver))
                else:
                    found[i, j] = price
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
            + ", ".join(lacking),
        )

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


def one_currency(lists: Sequence[PriceList]) -> str:
    """Return the one currency of several price lists; USD if none names a currency.

    Raises
    ------
    InputError
        For two currencies.
    """
    named = [prices for prices in lists if prices.currency]
    for prices in named:
        if prices.currency != named[0].currency:
            raise InputError(
                "two currencies",
                source=prices.source,
                field="currency",
                value=prices.currency,
                expected=f"{named[0].currency}, as in {named[0].source}",
            )
    return named[0].currency if named else "USD"


def _plain(name: str) -> str:
    """Return the short form of a name in price lists: "East US 2" -> "eastus2"."""
    return "".join(letter for letter in name.lower() if letter.isalnum())


def _lookup(known: Mapping[str, float], name: str) -> float | None:
    return known[name] if name in known else known.get(_plain(name))


def _lookup_pair(known: Mapping[tuple[str, str], _T], sender: str, receiver: str) -> _T | None:
    for pair in (
        (sender, receiver),
        (_plain(sender), _plain(receiver)),
        (_plain(sender), receiver),
    ):
        if pair in known:
            return known[pair]
    return None
