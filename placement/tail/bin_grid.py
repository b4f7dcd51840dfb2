"""Width of the grid of bins, when it is not given.

A percentile of a sum of several round trips may lie far beyond every single one of them, and beyond
the horizon of distributions with overflow nothing is known. So the horizon is what RTTs of a long
pair hardly ever exceed, once for each round trip of the longest operation. A few pairs with wild
tails do not stretch it: what they have beyond it is overflow, and a percentile that needs to know
more is reported as beyond the horizon.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import numpy as np

from placement.errors import InputError
from placement.model.instance import Instance
from placement.model.waits import Wait
from placement.support.checks import FloatArray, number
from placement.tail.histograms import Family

EXCEEDED = 1e-6
"""Share of a pair's RTTs that may lie beyond its reach."""

MOST = 2_000_000_000
"""Bins of all pairs that distributions may have; those with mass are stored alone."""

_LONG = 0.9  # of the pairs reach no farther than a long pair


def reach_of_family(mean: float, variation: float, family: Family) -> float:
    """RTT in ms that a share of at most `EXCEEDED` exceeds.

    The quantile itself for the log-normal. For the gamma distribution of shape k = 1/variation² the
    Chernoff bound, P(X >= (1 + t)·mean) <= exp(−k·(t − ln(1 + t))), solved for t by bisection.
    """
    if variation == 0:
        return mean
    if family == "lognormal":
        sigma = math.sqrt(math.log1p(variation**2))
        deviate = statistics.NormalDist().inv_cdf(1 - EXCEEDED)
        return mean * math.exp(deviate * sigma - sigma**2 / 2)
    wanted = -math.log(EXCEEDED) * variation**2
    low, high = 0.0, 1.0
    while high - math.log1p(high) < wanted:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if middle - math.log1p(middle) < wanted else (low, middle)
    return mean * (1 + high)


def reach_of_percentiles(percents: tuple[float, ...], values: tuple[float, ...]) -> float:
    """RTT in ms that a share `EXCEEDED` exceeds, the tail going on as in `of_percentiles`."""
    below, last = 1 - percents[-2] / 100, 1 - percents[-1] / 100
    scale = (values[-1] - values[-2]) / math.log(below / last)
    return values[-1] + max(0.0, scale * math.log(last / EXCEEDED))


def bins_for(
    instance: Instance, reaches: Sequence[float] | FloatArray, width: float, *, endless: bool = True
) -> int:
    """Bins of `width` ms for an instance.

    Parameters
    ----------
    instance
        Whose operations say how many round trips there are, and whose RTTs must all fit.
    reaches
        RTT in ms that each pair hardly ever exceeds.
    width
        Bin width in ms.
    endless
        Whether RTTs go on beyond the reach. If not, the farthest reach is far enough: without
        overflow sums are known beyond the horizon too.
    """
    hops = max(
        sum(map(math.ceil, operation.coefficients))
        + sum(math.ceil(wait.times) for wait in operation.waits if isinstance(wait, Wait))
        for operation in instance.operations
    )
    longest = max(float(instance.client_rtt.max()), float(instance.site_rtt.max()))
    horizon = max(hops * float(np.quantile(np.asarray(reaches), _LONG)), 2 * longest)
    farthest = float(np.max(reaches))
    return bins_within(instance, horizon if endless else min(horizon, farthest), width)


def bins_within(instance: Instance, horizon: float, width: float) -> int:
    """Bins of `width` ms up to `horizon` ms.

    Raises
    ------
    InputError
        For a width or horizon that is no positive number, or more bins than `MOST`.
    """
    width = number(width, "bin width", above=True)
    horizon = number(horizon, "horizon")
    bins = math.floor(horizon / width + 0.5) + 1
    pairs = len(instance.sites) * (len(instance.sites) + len(instance.clients))
    if instance.varying_rtt:
        pairs *= len(instance.intervals)
    if bins * pairs > MOST:
        raise InputError(
            f"too fine: {bins:,} bins for each of {pairs:,} pairs",
            field="bin width",
            value=width,
            expected=f"wider bins, or a shorter horizon than {horizon:g} ms",
        )
    return bins
