"""RTT distributions of every pair, on a grid of bins, and the ways to give them.

Pairs are independent (Sharov et al., section 3.1). How one pair becomes bins: see
:mod:`placement.tail.histograms`. Mass beyond the horizon is kept as overflow, never dropped in
silence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from placement.errors import InputError
from placement.model.instance import Instance
from placement.support.checks import FloatArray, frozen
from placement.tail.histograms import Family, of_family, of_percentiles

__all__ = ["Distributions", "Parametric", "Quantiles", "rtt_digest"]


@dataclass(frozen=True, slots=True)
class Parametric:
    """Distributions that follow from an instance's RTTs: one family, one spread.

    Attributes
    ----------
    family, variation
        As in :meth:`Distributions.parametric`.
    rtts
        Digest of the RTTs, see :func:`rtt_digest`.
    """

    family: Family
    variation: float
    rtts: str


@dataclass(frozen=True, slots=True, eq=False)
class Quantiles:
    """Distributions that follow from percentiles of every pair.

    Attributes
    ----------
    percents
        Rising, in (0, 100), two or more.
    client_site, site_site
        Values in ms, shapes (clients, sites, percents) and (sites, sites, percents).
    """

    percents: tuple[float, ...]
    client_site: FloatArray
    site_site: FloatArray


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
    recipe
        What the probabilities were worked out from, which is far smaller than they are; None when
        they were given themselves. A changed copy has none.

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
    recipe: Parametric | Quantiles | None = field(init=False, default=None, repr=False)

    def __post_init__(self) -> None:
        if not (math.isfinite(self.width) and self.width > 0):
            raise InputError(
                "bad bin width", field="width", value=self.width, expected="milliseconds > 0"
            )
        bins = np.shape(self.client_site)[-1] if np.ndim(self.client_site) == 3 else 0
        for name, rows in (("client_site", self.clients), ("site_site", self.sites)):
            array = np.array(getattr(self, name), dtype=np.float64, order="C")
            if array.shape != (len(rows), len(self.sites), bins) or not bins:
                raise InputError(
                    "wrong shape",
                    field=name,
                    value=array.shape,
                    expected=f"({len(rows)}, {len(self.sites)}, bins)",
                )
            mass = array.sum(axis=-1)
            bad = ~np.isfinite(mass) | (array < 0).any(axis=-1) | (mass > 1 + 1e-9)
            if bad.any():
                r, s = (int(i[0]) for i in np.nonzero(bad))
                raise InputError(
                    f"no distribution at {rows[r]!r} to {self.sites[s]!r}",
                    field=name,
                    value=float(mass[r, s]),
                    expected="probabilities >= 0 that sum to at most 1",
                )
            array.flags.writeable = False
            object.__setattr__(self, name, array)
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

    @cached_property  # a pass over both tables, which searches ask for under every leader
    def overflow(self) -> float:
        """Largest mass of any pair beyond the horizon."""
        least = min(self.client_site.sum(axis=-1).min(), self.site_site.sum(axis=-1).min())
        return max(0.0, 1 - float(least))

    def check(self, instance: Instance) -> None:
        """Raise InputError unless sites and clients equal the instance's, in its order."""
        for name, own, wanted in (
            ("sites", self.sites, instance.sites),
            ("clients", self.clients, instance.clients),
        ):
            if own != wanted:
                raise InputError(
                    "the distributions belong to another instance",
                    field=name,
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

        Raises
        ------
        InputError
            For an instance whose RTTs vary by interval.
        """
        _one_matrix(instance)
        return cls._of_tables(
            instance,
            _table(instance.client_rtt, instance.clients, instance.sites, discretise),
            _table(instance.site_rtt, instance.sites, instance.sites, discretise),
            width,
        )

    @classmethod
    def _of_tables(
        cls, instance: Instance, to_sites: FloatArray, between: FloatArray, width: float
    ) -> Distributions:
        """Build distributions from two tables, the diagonal between sites set to no wait."""
        own = np.arange(len(instance.sites))
        between[own, own] = 0.0
        between[own, own, 0] = 1.0
        return cls(to_sites, between, width, instance.sites, instance.clients)

    @classmethod
    def constant(cls, instance: Instance, *, width: float = 1.0, bins: int = 1000) -> Distributions:
        """Point masses at the RTTs of an instance (rounded to the grid)."""
        return cls.parametric(instance, variation=0.0, width=width, bins=bins)

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
        """Return distributions of one family for all pairs, with the instance's RTTs as means.

        `variation` is the coefficient of variation, standard deviation over mean.
        """
        _whole_bins(bins)
        made = cls.build(
            instance,
            lambda mean, a, b: of_family(mean, variation, family, width=width, bins=bins),
            width=width,
        )
        return _remember(made, Parametric(family, float(variation), rtt_digest(instance)))

    @classmethod
    def from_percentiles(
        cls,
        instance: Instance,
        percents: Sequence[float],
        client_site: FloatArray,
        site_site: FloatArray,
        *,
        width: float = 1.0,
        bins: int = 1000,
    ) -> Distributions:
        """Distributions through percentiles of every pair, see :func:`of_percentiles`.

        Parameters
        ----------
        instance
            With one RTT matrix.
        percents
            Two or more, rising, in (0, 100).
        client_site, site_site
            Values in ms, shapes (clients, sites, percents) and (sites, sites, percents); the
            diagonal between sites is not read.
        width, bins
            Of the grid.

        Raises
        ------
        InputError
            For percentiles that do not rise, naming the pair.
        """
        _one_matrix(instance)
        _whole_bins(bins)
        given = Quantiles(tuple(map(float, percents)), frozen(client_site), frozen(site_site))

        def table(field: str, values: FloatArray, rows: tuple[str, ...]) -> FloatArray:
            shape = (len(rows), len(instance.sites), len(given.percents))
            if values.shape != shape:
                raise InputError(
                    "wrong shape", field=field, value=values.shape, expected=str(shape)
                )
            made = np.zeros((*shape[:2], bins))
            for i, j in np.ndindex(shape[:2]):
                if field == "site_site" and i == j:
                    continue
                pair = dict(zip(given.percents, values[i, j].tolist(), strict=True))
                try:
                    made[i, j] = of_percentiles(pair, width=width, bins=bins)
                except InputError as error:
                    raise error.at(f"{rows[i]} → {instance.sites[j]}") from None
            return made

        made = cls._of_tables(
            instance,
            table("client_site", given.client_site, instance.clients),
            table("site_site", given.site_site, instance.sites),
            width,
        )
        return _remember(made, given)


def rtt_digest(instance: Instance) -> str:
    """Return a digest of the RTTs of an instance, which tells whether they are the same."""
    import hashlib  # a question without distributions does not pay for it

    digest = hashlib.sha256(instance.client_rtt.tobytes())
    digest.update(instance.site_rtt.tobytes())
    return digest.hexdigest()


def _remember(made: Distributions, recipe: Parametric | Quantiles) -> Distributions:
    object.__setattr__(made, "recipe", recipe)
    return made


def _one_matrix(instance: Instance) -> None:
    if instance.varying_rtt:
        raise InputError(
            "RTTs that vary by interval have no one distribution per pair",
            field="instance",
            expected="an instance with one RTT matrix",
        )


def _whole_bins(bins: int) -> None:
    if isinstance(bins, bool) or not isinstance(bins, (int, np.integer)) or bins < 1:
        raise InputError("out of range", field="bins", value=bins, expected="a whole number >= 1")


def _table(
    rtt: FloatArray,
    rows: tuple[str, ...],
    columns: tuple[str, ...],
    discretise: Callable[[float, str, str], FloatArray],
) -> FloatArray:
    return np.array(
        [
            [discretise(float(rtt[i, j]), a, b) for j, b in enumerate(columns)]
            for i, a in enumerate(rows)
        ]
    )
