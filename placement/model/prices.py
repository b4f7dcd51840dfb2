"""Prices of replicas and of the traffic to them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placement.checks import LARGEST, FloatArray, instance_of, nonnegative, number
from placement.errors import InputError

__all__ = ["Prices", "checked_prices"]


@dataclass(frozen=True, eq=False)
class Prices:
    """Prices of replicas, for plans under a budget or with a price in the objective.

    The cost of a configuration, in `currency` per interval of demand, is

        cost(ℓ, R) = Σ_{r ∈ R} ( storage[r] + written_gb · transfer[ℓ, r] )

    that is, every replica is stored, and the leader ships everything written to every replica.

    Parameters
    ----------
    storage
        Price of one replica at each site, shape (sites,).
    transfer
        Price per GB sent from one site to another, shape (sites, sites), zero diagonal; None: free.
    written_gb
        GB written over the whole of the demand.
    currency
        For display only.
    """

    storage: FloatArray
    transfer: FloatArray | None = None
    written_gb: float = 0.0
    currency: str = "USD"

    def __post_init__(self) -> None:
        for field in ("storage", "transfer"):
            values = getattr(self, field)
            absent = values is None and field == "transfer"
            if not absent and (isinstance(values, (str, bytes)) or not np.iterable(values)):
                raise InputError(
                    "not a table of prices",
                    field=f"prices.{field}",
                    value=values,
                    expected="an array of numbers",
                )
        number(self.written_gb, "prices.written_gb")
        instance_of(self.currency, str, "prices.currency", "a string")


def checked_prices(prices: Prices | None, sites: tuple[str, ...]) -> Prices | None:
    """Return the prices with every field checked against the sites, and read-only.

    Raises
    ------
    InputError
        Naming site, value and what was expected.
    """
    if prices is None:
        return None
    instance_of(prices, Prices, "prices", "placement.Prices(storage, …)")
    storage = nonnegative(prices.storage, "prices.storage", [("site", sites)])
    transfer = prices.transfer
    if transfer is not None:
        transfer = nonnegative(transfer, "prices.transfer", [("site", sites), ("site", sites)])
        if np.diagonal(transfer).any():
            where = int(np.nonzero(np.diagonal(transfer))[0][0])
            raise InputError(
                f"site {sites[where]!r} pays for traffic to itself",
                field="prices.transfer",
                value=float(transfer[where, where]),
                expected="0 on the diagonal",
            )
    return Prices(
        storage=storage,
        transfer=transfer,
        written_gb=number(prices.written_gb, "prices.written_gb", maximum=LARGEST),
        currency=str(prices.currency),
    )
