"""RTT distributions of every pair, on a grid of bins, and the ways to give them.

Pairs are independent (Sharov et al., section 3.1). How one pair becomes bins: see
:mod:`placement.tail.histograms`. Mass beyond the horizon is kept as overflow, never dropped in
silence.

In plan files a family is two words, percentiles are a small table, and everything else is written
as histograms, each from its first bin that is not empty to its last. All of it is in the file: a
plan that was judged by distributions is never read with others.

A percentile of a sum of several round trips may lie far beyond every single one of them, and beyond
the horizon of distributions with overflow nothing is known. So the horizon is what RTTs of a long
pair hardly ever exceed, once for each round trip of the longest operation. A few pairs with wild
tails do not stretch it: what they have beyond it is overflow, and a percentile that needs to know
more is reported as beyond the horizon.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from placement.errors import InputError
from placement.io.formats.document import Document
from placement.model.instance import Instance
from placement.model.operations import Wait
from placement.support.checks import SMALLEST, FloatArray, frozen, number
from placement.tail.histograms import Family, PairBins, Segments, of_families, of_percentiles


@dataclass(frozen=True, slots=True)
class Parametric:
    """Distributions that follow from an instance's RTTs: one family, one spread."""

    #: `family`, `variation`: as in Distributions.parametric
    family: Family
    variation: float
    rtts: str  #: digest of the RTTs, see rtt_digest


@dataclass(frozen=True, slots=True, eq=False)
class Quantiles:
    """Distributions that follow from percentiles of every pair."""

    percents: tuple[float, ...]  #: rising, in (0, 100), two or more
    #: `client_site`, `site_site`: values in ms, shapes (clients, sites, percents) and (sites,
    #: sites, percents)
    client_site: FloatArray
    site_site: FloatArray


@dataclass(frozen=True, eq=False, init=False)
class Distributions:
    """Latency distributions that go with an instance.

    Parameters
    ----------
    client_site, site_site
        Probabilities per bin, shapes (clients, sites, bins) and (sites, sites, bins).
    width, sites, clients
        As the attributes.

    Attributes
    ----------
    client_site
        Probabilities per bin of d(c, r).
    site_site
        Of d(r, s); all mass in bin 0 on the diagonal.
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

    client_site: PairBins
    site_site: PairBins
    width: float
    sites: tuple[str, ...]
    clients: tuple[str, ...]
    recipe: Parametric | Quantiles | None = field(init=False, repr=False)

    def __init__(
        self,
        client_site: PairBins | npt.ArrayLike,
        site_site: PairBins | npt.ArrayLike,
        width: float,
        sites: tuple[str, ...],
        clients: tuple[str, ...],
    ) -> None:
        number(width, "bin width", minimum=SMALLEST)
        tables = []
        bins = np.shape(client_site)[-1] if len(np.shape(client_site)) == 3 else 0
        for name, given, rows in (
            ("client_site", client_site, clients),
            ("site_site", site_site, sites),
        ):
            if np.shape(given) != (len(rows), len(sites), bins) or not bins:
                raise InputError(
                    "wrong shape",
                    field=name,
                    value=np.shape(given),
                    expected=f"({len(rows)}, {len(sites)}, bins)",
                )
            table = given
            if not isinstance(table, PairBins):
                table = PairBins.of(np.asarray(table, dtype=np.float64))
            wrong = table.segments.wrong()[table.row]
            if wrong.any():
                r, s = (int(i[0]) for i in np.nonzero(wrong))
                raise InputError(
                    f"no distribution at {rows[r]!r} to {sites[s]!r}",
                    field=name,
                    value=float(table.mass[r, s]),
                    expected="probabilities >= 0 that sum to at most 1",
                )
            tables.append(table)
        own = tables[1].within(0).diagonal()
        if (own < 1 - 1e-12).any():
            site = int(np.argmin(own))
            raise InputError(
                f"site {sites[site]!r} takes time to reach itself",
                field="site_site",
                expected="all mass in bin 0 on the diagonal",
            )
        known = (*tables, width, sites, clients, None)
        for name, value in zip(self.__dataclass_fields__, known, strict=True):
            object.__setattr__(self, name, value)

    @property
    def bins(self) -> int:
        """Number of bins; the horizon is bins · width."""
        return self.client_site.bins

    @cached_property
    def overflow(self) -> float:
        """Largest mass of any pair beyond the horizon."""
        least = min(self.client_site.mass.min(), self.site_site.mass.min())
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
        sites = instance.sites

        def table(rtt: FloatArray, rows: tuple[str, ...]) -> PairBins:
            blocks = [
                [discretise(float(rtt[i, j]), a, b) for j, b in enumerate(sites)]
                for i, a in enumerate(rows)
            ]
            return PairBins.of(np.array(blocks))

        return cls(
            table(instance.client_rtt, instance.clients),
            _to_itself_at_once(table(instance.site_rtt, sites)),
            width,
            sites,
            instance.clients,
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
        """Return distributions of one family for all pairs, with the instance's RTTs as means.

        `variation` is the coefficient of variation, standard deviation over mean.
        """
        _check_grid(width, bins)
        _one_matrix(instance)
        every = np.append(instance.client_rtt.ravel(), instance.site_rtt.ravel())
        # pairs of one mean share a row; `unique` of NumPy would load its masked arrays first
        rising = every.argsort()
        new = np.diff(every[rising], prepend=-1.0) > 0
        means, row = every[rising[new]], np.empty(len(every), np.intp)
        row[rising] = np.cumsum(new) - 1
        clients = len(instance.clients) * len(instance.sites)
        between = row[clients:].reshape(instance.site_rtt.shape).copy()
        # a site is at no distance from itself
        segments = of_families(np.append(means, 0.0), variation, family, width=width, bins=bins)
        np.fill_diagonal(between, len(means))
        made = cls(
            PairBins(row[:clients].reshape(instance.client_rtt.shape), segments),
            PairBins(between, segments),
            width,
            instance.sites,
            instance.clients,
        )
        recipe = Parametric(family, float(variation), rtt_digest(instance))
        object.__setattr__(made, "recipe", recipe)
        return made

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
        _check_grid(width, bins)
        given = Quantiles(tuple(map(float, percents)), frozen(client_site), frozen(site_site))

        def table(field: str, values: FloatArray, rows: tuple[str, ...]) -> PairBins:
            shape = (len(rows), len(instance.sites), len(given.percents))
            if values.shape != shape:
                raise InputError(
                    "wrong shape", field=field, value=values.shape, expected=str(shape)
                )

            def block(i: int) -> FloatArray:
                made = np.zeros((shape[1], bins))
                for j in range(shape[1]):
                    if field == "site_site" and i == j:
                        continue
                    pair = dict(zip(given.percents, values[i, j].tolist(), strict=True))
                    try:
                        made[j] = of_percentiles(pair, width=width, bins=bins)
                    except InputError as error:
                        raise error.at(f"{rows[i]} → {instance.sites[j]}") from None
                return made

            segments = Segments.of_rows(map(block, range(shape[0])), bins)
            return PairBins(np.arange(shape[0] * shape[1]).reshape(shape[:2]), segments)

        made = cls(
            table("client_site", given.client_site, instance.clients),
            _to_itself_at_once(table("site_site", given.site_site, instance.sites)),
            width,
            instance.sites,
            instance.clients,
        )
        object.__setattr__(made, "recipe", given)
        return made


def rtt_digest(instance: Instance) -> str:
    """Return a digest of the RTTs of an instance, which tells whether they are the same."""
    import hashlib  # a question without distributions does not pay for it

    digest = hashlib.sha256(instance.client_rtt.tobytes())
    digest.update(instance.site_rtt.tobytes())
    return digest.hexdigest()


def _one_matrix(instance: Instance) -> None:
    if instance.varying_rtt:
        raise InputError(
            "RTTs that vary by interval have no one distribution per pair",
            field="instance",
            expected="an instance with one RTT matrix",
        )


def _check_grid(width: float, bins: int) -> None:
    number(width, "bin width", minimum=SMALLEST)
    if isinstance(bins, bool) or not isinstance(bins, (int, np.integer)) or bins < 1:
        raise InputError("out of range", field="bins", value=bins, expected="a whole number >= 1")


def _to_itself_at_once(between: PairBins) -> PairBins:
    """Return distributions between sites with all mass in bin 0 on the diagonal."""
    known = between.segments
    start = np.append(known.start, known.start[-1] + 1)
    one = np.append(known.values, 1.0)
    row = between.row.copy()
    np.fill_diagonal(row, len(known.first))
    return PairBins(row, Segments(np.append(known.first, 0), start, one, known.bins))


_FORMS = "'family', 'percentiles' or 'histograms'"


def distributions_document(distributions: Distributions, instance: Instance) -> dict[str, object]:
    """Return distributions, JSON-ready; numbers read back to the last bit.

    A family is written as such only if the RTTs of the instance, with which they will be read back,
    are those that the distributions were made from.
    """
    grid: dict[str, object] = {"width": distributions.width, "bins": distributions.bins}
    recipe = distributions.recipe
    if isinstance(recipe, Parametric) and recipe.rtts == rtt_digest(instance):
        return {"form": "family", **grid, "family": recipe.family, "variation": recipe.variation}
    if isinstance(recipe, Quantiles):
        return {
            "form": "percentiles",
            **grid,
            "percents": list(recipe.percents),
            "client_site": recipe.client_site.tolist(),
            "site_site": recipe.site_site.tolist(),
        }
    return {
        "form": "histograms",
        **grid,
        "client_site": _sparse(distributions.client_site),
        "site_site": _sparse(distributions.site_site),
    }


def _sparse(table: PairBins) -> list[list[list[object]]]:
    """Per pair the first bin that is not empty, and the probabilities from there to the last."""
    known = table.segments
    first, start = known.first.tolist(), known.start.tolist()
    return [
        [[first[row], known.values[start[row] : start[row + 1]].tolist()] for row in rows]
        for rows in table.row.tolist()
    ]


def distributions_from(document: Document, instance: Instance) -> Distributions:
    """Read the document of :func:`distributions_document`.

    InputError for an unknown form, and numbers that are no distributions of this instance.
    """
    form = document.text("form")
    width, bins = document.number("width"), document.whole("bins")
    pairs = len(instance.sites) * (len(instance.sites) + len(instance.clients))
    if not 1 <= bins * pairs <= MOST or bins < 1:
        raise document.refuse("bins", "out of range", f"1 to {MOST // pairs:,} for so many pairs")
    try:
        if form == "family":
            family = document.text("family")
            if family not in ("lognormal", "gamma"):
                raise document.refuse("family", "unknown family", "'lognormal' or 'gamma'")
            return Distributions.parametric(
                instance,
                "gamma" if family == "gamma" else "lognormal",
                variation=document.number("variation"),
                width=width,
                bins=bins,
            )
        if form == "percentiles":
            percents = document.array("percents")
            document.need(percents.ndim == 1, "percents", "not a list of numbers", "percentages")
            return Distributions.from_percentiles(
                instance,
                percents.tolist(),
                document.array("client_site"),
                document.array("site_site"),
                width=width,
                bins=bins,
            )
        if form == "histograms":
            return Distributions(
                _pairs(document, "client_site", len(instance.clients), len(instance.sites), bins),
                _pairs(document, "site_site", len(instance.sites), len(instance.sites), bins),
                width,
                instance.sites,
                instance.clients,
            )
    except InputError as error:
        raise (error if error.source == document.source else error.at(document.source)) from None
    raise document.refuse("form", "unknown form", _FORMS)


def _pairs(document: Document, key: str, rows: int, columns: int, bins: int) -> PairBins:
    """Read what :func:`_sparse` wrote."""
    first, parts = [], []
    given = document.values.get(key)
    shape = f"{rows} rows of {columns} pairs"
    if not isinstance(given, list) or len(given) != rows:
        raise document.refuse(key, "not histograms", shape)
    for i, row in enumerate(given):
        if not isinstance(row, list) or len(row) != columns:
            raise document.refuse(key, f"not histograms (row {i})", shape)
        for j, pair in enumerate(row):
            try:
                begin, values = pair
                part = np.array(values, dtype=np.float64)
                if isinstance(begin, bool) or not isinstance(begin, int) or part.ndim != 1:
                    raise ValueError(pair)
                if not 0 <= begin <= bins - len(part):
                    raise ValueError(pair)
            except (TypeError, ValueError):
                raise document.refuse(
                    key,
                    f"not a histogram (row {i}, pair {j})",
                    f"[first bin, [probabilities]] within {bins} bins",
                ) from None
            first.append(begin)
            parts.append(part)
    start = np.append(0, np.cumsum([len(part) for part in parts]))
    segments = Segments(np.array(first), start, np.concatenate(parts), bins)
    return PairBins(np.arange(rows * columns).reshape(rows, columns), segments)


# Width of the grid of bins, when it is not given

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
    """Bins of `width` ms for an instance: for its operations' round trips, and all of its RTTs.

    `reaches` are the RTTs in ms that pairs hardly ever exceed. Where RTTs are not `endless`, the
    farthest of them is far enough: without overflow sums are known beyond the horizon too.
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
    """Bins of `width` ms up to `horizon` ms; InputError for no such number, or more than MOST."""
    width = number(width, "bin width", minimum=SMALLEST)
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


# Distributions of RTTs of which only the means are known: one family, one relative spread


def spread_distributions(
    instance: Instance,
    spread: float,
    *,
    whole: Instance | None = None,
    family: Family = "lognormal",
    width: float = 1.0,
    horizon: float | None = None,
) -> Distributions:
    """Return distributions of one family around the RTTs, one matrix, of an instance.

    `spread` is their standard deviation over their mean. Where RTTs vary, `instance` is one
    interval of `whole`, whose RTTs all lie within the grid. RTTs beyond the horizon, in ms, are
    only known to be longer; None: it is beyond all but a negligible share.
    """
    whole = instance if whole is None else whole
    if horizon is not None:
        bins = bins_within(whole, horizon, width)
    else:
        rtts = np.append(whole.client_rtt.ravel(), whole.site_rtt.ravel())
        bins = bins_for(whole, rtts * reach_of_family(1.0, spread, family), width)
    return Distributions.parametric(instance, family, variation=spread, width=width, bins=bins)
