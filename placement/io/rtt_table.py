"""RTTs by name, gaps allowed: the result of every importer of RTTs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from placement.errors import InputError, raise_all, refused
from placement.support.checks import FloatArray, number, suggest
from placement.tail.histograms import of_percentiles, of_weights
from placement.tail.rtt_distributions import reach_of_percentiles

Fill = Literal["none", "transpose"]
"""Treatment of a missing pair: refuse it, or take the RTT of the opposite direction."""

_SHOWN = 5


@dataclass(frozen=True, eq=False)
class RttTable:
    """RTTs by name, gaps allowed.

    Attributes
    ----------
    source
        The file.
    sources, destinations
        Names along the axes, in the order of the file: a source waits for a destination.
    values
        ms, NaN without a measurement: shape (sources, destinations), or with a leading axis of
        intervals.
    intervals
        Labels, oldest first where they are times or numbers, else in the order of the file; empty
        without such an axis.
    provenance
        Sentences for the instance.
    """

    source: str
    sources: tuple[str, ...]
    destinations: tuple[str, ...]
    values: FloatArray
    intervals: tuple[str, ...] = ()
    provenance: tuple[str, ...] = ()

    def scaled(self, factor: float) -> RttTable:
        """Return the table in other units, for instance times 1000 for seconds.

        Raises
        ------
        InputError
            Unless the factor is a finite number > 0.
        """
        factor = number(factor, "scale", above=True)
        if factor == 1:
            return self
        said = f"RTTs of {Path(self.source).name} were multiplied by {factor:g}."
        return replace(self, values=self.values * factor, provenance=(*self.provenance, said))

    def missing(self, names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
        """Return the pairs of distinct names that have no RTT, in some interval or in all."""
        values = self._pick(names, names)
        gaps = np.isnan(values.reshape(-1, len(names), len(names))).any(axis=0)
        return tuple((names[i], names[j]) for i, j in np.argwhere(gaps).tolist() if i != j)

    def between(
        self,
        rows: tuple[str, ...],
        columns: tuple[str, ...],
        *,
        fill: Fill = "none",
        diagonal: bool = True,
    ) -> tuple[FloatArray, tuple[str, ...]]:
        """Return the RTTs from `rows` to `columns`, without gaps.

        Parameters
        ----------
        rows, columns
            Names wanted; those of the table that are not wanted are left out.
        fill
            "transpose": a missing pair takes the RTT of the opposite direction, if that is there.
        diagonal
            Whether an RTT of a name to itself is needed; where it is not, it stays NaN if missing.

        Returns
        -------
        values
            Shape (rows, columns), or with a leading axis of intervals.
        sentences
            What was filled, for the provenance.

        Raises
        ------
        InputError
            For a name that the table does not have, and for missing pairs: how many, and the first
            few.
        """
        values = self._pick(rows, columns)
        same = np.array([[a == b for b in columns] for a in rows])
        wanted = np.broadcast_to(np.ones_like(same) if diagonal else ~same, values.shape)
        gaps = np.isnan(values) & wanted
        sentences: tuple[str, ...] = ()
        if gaps.any():
            other = np.swapaxes(self._pick(columns, rows), -1, -2)
            filled = gaps & ~np.isnan(other)
            if (filled != gaps).any():  # else the opposite directions are the remedy
                self._refuse_lone(rows, columns)
            if fill == "transpose" and filled.any():
                values = np.where(filled, other, values)
                sentences = (
                    f"{int(filled.sum())} missing RTTs of {Path(self.source).name} were taken from "
                    f"the opposite direction: {self._pairs(filled, rows, columns)}.",
                )
                gaps &= ~filled
        if gaps.any():
            words = f"{int(gaps.sum())} of {int(wanted.sum())} pairs have no RTT"
            expected = (
                "an RTT for every pair (fill='transpose', --fill transpose, takes the "
                "opposite direction where that was measured)"
            )
            raise refused(self.source, "rtt", words, self._pairs(gaps, rows, columns), expected)
        return values, sentences

    def _refuse_lone(self, rows: tuple[str, ...], columns: tuple[str, ...]) -> None:
        """Refuse names that are in no RTT as source, or in none as destination."""
        errors: list[InputError] = []
        sides = (("source", rows, self.sources), ("destination", columns, self.destinations))
        for where, names, known in sides:
            for name in names:
                if name not in known:
                    others = {*self.sources, *self.destinations} - {name}
                    words = f"no RTT has this name as {where}"
                    expected = suggest(name, sorted(others), "a name of the other RTTs")
                    errors.append(refused(self.source, where, words, name, expected))
        raise_all(errors)

    def _pick(self, rows: tuple[str, ...], columns: tuple[str, ...]) -> FloatArray:
        """Values by name; NaN for names that the table does not have."""
        axes = ((self.sources, rows), (self.destinations, columns))
        place = [{name: i for i, name in enumerate(known)} for known, _ in axes]
        # the last row and column are those of names that the table does not have
        edge = [(0, 0)] * (self.values.ndim - 2) + [(0, 1), (0, 1)]
        padded = np.pad(self.values, edge, constant_values=math.nan)
        i, j = (
            [at.get(name, -1) for name in names] for at, (_, names) in zip(place, axes, strict=True)
        )
        return padded[..., np.array(i, dtype=np.intp)[:, np.newaxis], np.array(j, dtype=np.intp)]

    def _pairs(self, where: np.ndarray, rows: tuple[str, ...], columns: tuple[str, ...]) -> str:
        found = [tuple(map(int, index)) for index in np.argwhere(where)[:_SHOWN]]
        shown = [
            f"{rows[i[-2]]} → {columns[i[-1]]}"
            + (f" (interval {self.intervals[i[0]]})" if len(i) == 3 else "")
            for i in found
        ]
        return ", ".join(shown) + (", …" if int(where.sum()) > _SHOWN else "")


Pair = tuple[str, str]
"""Source and destination."""

Curve = tuple[tuple[float, ...], tuple[float, ...]]
"""Values in ms, and the percents or weights that belong to them."""


@dataclass(frozen=True, eq=False)
class PairTable:
    """Distributions by name, gaps allowed."""

    source: str  #: the file
    percents: tuple[float, ...]  #: rising; empty for histograms and samples
    pairs: Mapping[Pair, Curve]  #: what is told of each pair

    def constant(self, rtt: float) -> Curve:
        """Return the row in this table of a pair whose RTT never varies."""
        return ((rtt,) * len(self.percents), self.percents) if self.percents else ((rtt,), (1.0,))

    def reach(self, curve: Curve) -> float:
        """RTT in ms that is hardly ever exceeded."""
        return reach_of_percentiles(self.percents, curve[0]) if self.percents else max(curve[0])

    def histogram(self, curve: Curve, width: float, bins: int) -> FloatArray:
        """Probabilities per bin."""
        if self.percents:
            percentiles = dict(zip(self.percents, curve[0], strict=True))
            return of_percentiles(percentiles, width=width, bins=bins)
        return of_weights(*curve, width=width, bins=bins)


_LEAST_LARGEST = 1.0
_MOST_MEDIAN = 10_000.0


def likely_unit(table: RttTable) -> tuple[str, float] | None:
    """Return the unit that RTTs seem to have, and the largest of them; None for milliseconds.

    Sites whose RTTs are all below 1 ms, or with a median above 10 s, are not what a planner of
    sites measures.
    """
    same = np.array([[a == b for b in table.destinations] for a in table.sources])
    values = table.values[..., ~same]
    values = values[np.isfinite(values) & (values > 0)]
    if not values.size:
        return None
    largest = float(values.max())
    if largest < _LEAST_LARGEST:
        return "s", largest
    if float(np.median(values)) > _MOST_MEDIAN:
        return ("ns" if largest > 1000 * _MOST_MEDIAN else "us"), largest
    return None
