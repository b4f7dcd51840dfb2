"""The certificate of a fleet: prices of its limits, and a pass that computes the bound again."""

from __future__ import annotations

import numpy as np

from formulations.fleet.pricing import Pricer, lagrangean_bound
from placement.errors import CertificateError
from placement.fleet.fleet_problem import FleetProblem
from placement.fleet.shared_rows import SharedRows
from placement.support.checks import FloatArray

__all__ = ["prove_fleet_bound"]


def prove_fleet_bound(fleet: FleetProblem, prices: FloatArray, *, processes: int = 1) -> float:
    """Return the bound that prices prove: no plan of the fleet has a smaller value.

    Parameters
    ----------
    fleet
        The question.
    prices
        Price of each shared limit, >= 0, shape (rows,): any prices give a valid bound.
    processes
        How many price databases.

    Returns
    -------
    float
        The bound in ms·operations; +∞ when some database fits no sites even alone.

    Raises
    ------
    CertificateError
        For another number of prices, or a price that is negative or not finite.
    """
    rows = SharedRows(fleet)
    given = np.asarray(prices, dtype=np.float64)
    if given.shape != rows.capacity.shape:
        raise CertificateError(
            f"{given.size} prices instead of one for each of the {rows.capacity.size} shared limits"
        )
    if not (np.isfinite(given) & (given >= 0)).all():
        raise CertificateError("a price is negative or not finite")
    with Pricer(rows, processes) as pricer:
        return lagrangean_bound(rows, given, list(pricer.price(given)))
