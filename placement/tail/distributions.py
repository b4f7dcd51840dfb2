"""RTT distributions of every pair, on a grid of bins, and the ways to give them.

Pairs are independent (Sharov et al., section 3.1). A value is put into the bin whose multiple of
the bin width is closest; mass beyond the horizon is kept as overflow, never dropped in silence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from placement.checks import FloatArray
from placement.errors import InputError, MissingDependencyError
from placement.instance import Instance

__all__ = ["Distributions", "Family", "of_family", "of_percentiles", "of_samples"]

Family = Literal["lognormal", "gamma"]


@dataclass(frozen=True, eq=False)
class Distributions:
    """Latency distributions that go with an instance.

    Attributes
    ----------
    client_site
        Probabilities per bin of d(c, r), shape (clients, sites, bins).
    site_site
        Of d(r, s), shape (sites, sites, bins); all mass in bin 0 on the diagonal.
    width
        Bin width in ms.
    sites, clients
        Names, to be checked against the instance.

    Raises
    ------
    InputError
        For wrong shapes, negative or non-finite probabilities, or a pair whose mass exceeds 1.
    """

    client_site: FloatArray
    site_site: FloatArray
    width: float
    sites: tuple[str, ...]
    clients: tuple[str, ...]

    def __post_init__(self) -> None:
        if not (math.isfinite(self.width) and self.width > 0):
            raise InputError(
                "bad bin width", field="width", value=self.width, expected="milliseconds > 0"
            )
        bins = np.shape(self.client_site)[-1] if np.ndim(self.client_site) == 3 else 0
        for field, rows in (("client_site", self.clients), ("site_site", self.sites)):
            array = np.array(getattr(self, field), dtype=np.float64, order="C")
            if array.shape != (len(rows), len(self.sites), bins) or not bins:
                raise InputError(
                    "wrong shape",
                    field=field,
                    value=array.shape,
                    expected=f"({len(rows)}, {len(self.sites)}, bins)",
                )
            mass = array.sum(axis=-1)
            bad = ~np.isfinite(mass) | (array < 0).any(axis=-1) | (mass > 1 + 1e-9)
            if bad.any():
                r, s = (int(i[0]) for i in np.nonzero(bad))
                raise InputError(
                    f"no distribution at {rows[r]!r} to {self.sites[s]!r}",
                    field=field,
                    value=float(mass[r, s]),
                    expected="probabilities >= 0 that sum to at most 1",
                )
            array.flags.writeable = False
            object.__setattr__(self, field, array)
        own = np.diagonal(self.site_site[..., 0])
        if (own < 1 - 1e-12).any():
            site = int(np.argmin(own))
            raise InputError(
                f"site {self.sites[site]!r} takes time to reach itself",
                field="site_site",
                expected="all mass in bin 0 on the diagonal",
            )

    @property
    def bins(self) -> int:
        """Number of bins; the horizon is bins · width."""
        return int(self.client_site.shape[-1])

    @property
    def overflow(self) -> float:
        """Largest mass of any pair beyond the horizon."""
        least = min(self.client_site.sum(axis=-1).min(), self.site_site.sum(axis=-1).min())
        return max(0.0, 1 - float(least))

    def check(self, instance: Instance) -> None:
        """Raise InputError unless sites and clients are those of the instance, in its order."""
        for field, own, wanted in (
            ("sites", self.sites, instance.sites),
            ("clients", self.clients, instance.clients),
        ):
            if own != wanted:
                raise InputError(
                    "the distributions belong to another instance",
                    field=field,
                    value=own[:3],
                    expected=f"{wanted[:3]} … as in {instance.name!r}",
                )

    @classmethod
    def build(
        cls,
        instance: Instance,
        discretise: Callable[[float, str, str], FloatArray],
        *,
        width: float = 1.0,
    ) -> Distributions:
        """Build distributions pair by pair.

        Parameters
        ----------
        instance
            With one RTT matrix.
        discretise
            (mean RTT in ms, source, destination) -> probabilities per bin, all of one length.
        width
            Bin width in ms.
        """
        if instance.varying_rtt:
            raise InputError(
                "RTTs that vary by interval have no one distribution per pair",
                field="instance",
                expected="an instance with one RTT matrix",
            )

        def table(rtt: FloatArray, rows: Sequence[str]) -> FloatArray:
            return np.array(
                [
                    [discretise(float(rtt[i, j]), a, b) for j, b in enumerate(instance.sites)]
                    for i, a in enumerate(rows)
                ]
            )

        between = table(instance.site_rtt, instance.sites)
        own = np.arange(len(instance.sites))
        between[own, own] = 0.0
        between[own, own, 0] = 1.0
        return cls(
            table(instance.client_rtt, instance.clients),
            between,
            width,
            instance.sites,
            instance.clients,
        )

    @classmethod
    def constant(cls, instance: Instance, *, width: float = 1.0, bins: int = 1000) -> Distributions:
        """Point masses at the RTTs of an instance (rounded to the grid)."""
        return cls.build(
            instance, lambda mean, a, b: of_samples([mean], width=width, bins=bins), width=width
        )

    @classmethod
    def parametric(
        cls,
        instance: Instance,
        family: Family = "lognormal",
        *,
        variation: float = 0.1,
        width: float = 1.0,
        bins: int = 1000,
    ) -> Distributions:
        """One family for all pairs, with the instance's RTTs as means.

        `variation` is the coefficient of variation, standard deviation over mean.
        """
        return cls.build(
            instance,
            lambda mean, a, b: of_family(mean, variation, family, width=width, bins=bins),
            width=width,
        )


def _histogram(values: FloatArray, weights: FloatArray, width: float, bins: int) -> FloatArray:
    place = np.floor(values / width + 0.5).astype(np.intp)
    inside = place < bins
    histogram: FloatArray = np.zeros(bins)
    np.add.at(histogram, place[inside], weights[inside])
    return histogram


def of_samples(samples: Sequence[float], *, width: float, bins: int) -> FloatArray:
    """Empirical distribution of samples in ms.

    Raises
    ------
    InputError
        When there are none, or one is negative or not finite.
    """
    values = np.asarray(samples, dtype=np.float64)
    if values.size == 0 or not (np.isfinite(values) & (values >= 0)).all():
        raise InputError(
            "bad samples", field="samples", value=samples, expected="finite milliseconds >= 0"
        )
    return _histogram(values, np.full(len(values), 1 / len(values)), width, bins)


def of_percentiles(percentiles: Mapping[float, float], *, width: float, bins: int) -> FloatArray:
    """Distribution through given percentiles, such as {10: …, 50: …, 90: …, 99: …} in ms.

    The quantile function is linear between the given points. Below the lowest it goes on with the
    first slope, not below 0; above the highest the tail is exponential, v(p) = v_n +
    s·ln((1−p_n)/(1−p)), with the scale s of the last two points.

    Raises
    ------
    InputError
        For fewer than two points, percentiles outside (0, 100), or values that fall.
    """
    shares = np.array(sorted(percentiles), dtype=np.float64) / 100
    values = np.array([percentiles[p] for p in sorted(percentiles)], dtype=np.float64)
    if len(shares) < 2 or shares[0] <= 0 or shares[-1] >= 1:
        raise InputError(
            "bad percentiles",
            field="percentiles",
            value=dict(percentiles),
            expected="two or more between 0 and 100, exclusive",
        )
    if not (np.isfinite(values) & (values >= 0)).all() or (np.diff(values) < 0).any():
        raise InputError(
            "percentiles must not fall",
            field="percentiles",
            value=dict(percentiles),
            expected="finite values >= 0 in rising order",
        )
    first = max(0.0, values[0] - shares[0] * (values[1] - values[0]) / (shares[1] - shares[0]))
    scale = (values[-1] - values[-2]) / math.log((1 - shares[-2]) / (1 - shares[-1]))
    edges = (np.arange(bins + 1) - 0.5) * width
    knots, levels = np.append(first, values), np.append(0.0, shares)
    below = np.interp(edges, knots, levels, left=0.0)
    # Where the quantile function is flat there is an atom: all of it lies below the next edge.
    for value in np.unique(knots):
        below[edges >= value] = np.maximum(
            below[edges >= value], levels[np.nonzero(knots == value)[0][-1]]
        )
    beyond = edges > values[-1]
    if scale > 0:
        below[beyond] = 1 - (1 - shares[-1]) * np.exp(-(edges[beyond] - values[-1]) / scale)
    else:
        below[beyond] = 1.0
    below[0] = 0.0
    return np.asarray(np.diff(below))


def of_family(
    mean: float, variation: float, family: Family, *, width: float, bins: int
) -> FloatArray:
    """Log-normal or gamma distribution with a given mean in ms and coefficient of variation.

    Raises
    ------
    InputError
        For an unknown family or a negative variation.
    MissingDependencyError
        For "gamma" without SciPy (extra ``tail``).
    """
    if family not in ("lognormal", "gamma"):
        raise InputError(
            "unknown family", field="family", value=family, expected="'lognormal' or 'gamma'"
        )
    if not (math.isfinite(variation) and variation >= 0):
        raise InputError(
            "out of range", field="variation", value=variation, expected="a finite number >= 0"
        )
    if mean == 0 or variation == 0:
        return of_samples([mean], width=width, bins=bins)
    edges = np.maximum((np.arange(bins + 1) - 0.5) * width, 0.0)
    if family == "lognormal":
        sigma = math.sqrt(math.log1p(variation**2))
        mu = math.log(mean) - sigma**2 / 2
        below = np.array(
            [0.5 * (1 + math.erf((math.log(x) - mu) / (sigma * math.sqrt(2)))) if x else 0.0
             for x in edges]
        )  # fmt: skip
    else:
        try:
            from scipy.special import gammainc
        except ImportError as error:
            raise MissingDependencyError(
                "gamma distributions need SciPy: pip install 'replica-placement[tail]'"
            ) from error
        shape = 1 / variation**2
        below = gammainc(shape, edges * shape / mean)
    return np.asarray(np.diff(below))
