"""Distributions of RTTs of which only the means are known: one family, one relative spread."""

from __future__ import annotations

import numpy as np

from placement.model.instance import Instance
from placement.tail.bin_grid import bins_for, bins_within, reach_of_family
from placement.tail.histograms import Family
from placement.tail.objective import Percentile
from placement.tail.rtt_distributions import Distributions


def spread_distributions(
    instance: Instance,
    spread: float,
    *,
    whole: Instance | None = None,
    family: Family = "lognormal",
    width: float = 1.0,
    horizon: float | None = None,
) -> Distributions:
    """Return distributions of one family around the RTTs of an instance.

    Parameters
    ----------
    instance
        One whose RTTs do not vary by interval.
    spread
        Standard deviation of every RTT, relative to its mean.
    whole
        Instance whose RTTs lie within the grid, where they vary and `instance` is one interval of
        it; None: `instance`.
    family
        "lognormal" or "gamma".
    width
        Of a bin, ms.
    horizon
        RTTs beyond it are only known to be longer, ms; None: beyond all but a negligible share.
    """
    whole = instance if whole is None else whole
    if horizon is not None:
        bins = bins_within(whole, horizon, width)
    else:
        rtts = np.append(whole.client_rtt.ravel(), whole.site_rtt.ravel())
        bins = bins_for(whole, rtts * reach_of_family(1.0, spread, family), width)
    return Distributions.parametric(instance, family, variation=spread, width=width, bins=bins)


def percentile_of_spread(instance: Instance, percent: float, spread: float) -> Percentile:
    """Return the percentile of all operations, RTTs lognormal with a relative spread.

    Parameters
    ----------
    instance
        Whose RTTs are the means; they may vary by interval.
    percent
        p in (0, 100].
    spread
        Standard deviation of every RTT, relative to its mean.
    """
    if not instance.varying_rtt:
        return Percentile(percent, spread_distributions(instance, spread))
    each = [
        spread_distributions(instance.at_interval(interval), spread, whole=instance)
        for interval in range(len(instance.intervals))
    ]
    return Percentile.varying(percent, each)
