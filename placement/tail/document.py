"""Latency distributions inside plan files: as what they were worked out from, or bin by bin.

A family is two words, percentiles are a small table, and everything else is written as histograms,
each from its first bin that is not empty to its last. All of it is in the file: a plan that was
judged by distributions is never read with others.
"""

from __future__ import annotations

import numpy as np

from placement.errors import InputError
from placement.io.formats.document import Document
from placement.model.instance import Instance
from placement.support.checks import FloatArray
from placement.tail.bin_grid import MOST
from placement.tail.pair_bins import PairBins, Segments
from placement.tail.rtt_distributions import Distributions, Parametric, Quantiles, rtt_digest

_FORMS = "'family', 'percentiles' or 'histograms'"


def distributions_document(distributions: Distributions, instance: Instance) -> dict[str, object]:
    """Return distributions, JSON-ready; numbers read back to the last bit.

    Parameters
    ----------
    distributions
        Any.
    instance
        The one they will be read back with. A family is written as such only if its RTTs are those
        that the distributions were made from.
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

    Raises
    ------
    InputError
        For an unknown form, and numbers that are no distributions of this instance.
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
            return Distributions.from_percentiles(
                instance,
                _array(document, "percents").tolist(),
                _array(document, "client_site"),
                _array(document, "site_site"),
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


def _array(document: Document, key: str) -> FloatArray:
    try:
        return np.array(document.values.get(key), dtype=np.float64)
    except (TypeError, ValueError):
        raise document.refuse(key, "not a table of numbers", "rows of equal length") from None


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
