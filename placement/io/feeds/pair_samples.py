"""Samples of RTTs by pair, as probes give them."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from placement.errors import InputError
from placement.io.feeds.registry import Content, FeedRequest, RttReading
from placement.io.rtt_distributions import PairTable
from placement.io.rtt_table import RttTable
from placement.support.checks import LARGEST

__all__ = ["PairSamples", "ends_of", "origin_of", "table_of"]

_BETWEEN = re.compile(r"(.+?)(?:~|__|-to-|→)(.+)")


class PairSamples:
    """Samples in ms per pair, collected line by line.

    Parameters
    ----------
    source
        The file, for messages.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.samples: dict[tuple[str, str], list[float]] = {}
        self.sent: dict[tuple[str, str], int] = {}
        self.notes: list[str] = []

    def probe(self, start: str, end: str, place: str) -> None:
        """Record a pair, also when no answer came.

        Raises
        ------
        InputError
            For a blank name.
        """
        for name in (start, end):
            if not name.strip() or "\0" in name:
                raise InputError(
                    "no name", source=place, field="host", value=name, expected="a name or address"
                )
        self.samples.setdefault((start, end), [])

    def answer(self, start: str, end: str, text: str, place: str, *, unit: float = 1.0) -> None:
        """Record one answer.

        Parameters
        ----------
        start, end
            The pair: `start` waits for `end`.
        text
            The RTT as it stands in the file.
        place
            File and row, for messages.
        unit
            Milliseconds per unit of `text`.

        Raises
        ------
        InputError
            For anything but a finite number >= 0, and for a blank name.
        """
        self.probe(start, end, place)
        try:
            value = float(text) * unit
        except ValueError:
            value = math.nan
        if not 0 <= value <= LARGEST or "_" in text:
            raise InputError(
                "not an RTT",
                source=place,
                field=f"{start} → {end}",
                value=text,
                expected="a finite number >= 0",
            )
        self.samples[start, end].append(value)

    def reading(self, what: str) -> RttReading:
        """Return the medians as RTTs, and the samples where a pair has several.

        Raises
        ------
        InputError
            Where no pair has an answer.
        """
        answered = {pair: values for pair, values in self.samples.items() if values}
        name = Path(self.source).name
        if not answered:
            raise InputError(
                "no RTTs", source=self.source, field="format", value=what, expected="one answer"
            )
        silent = [f"{a} → {b}" for (a, b), values in self.samples.items() if not values]
        several = any(len(values) > 1 for values in answered.values())
        notes = list(self.notes)
        if silent:
            notes.append(
                f"no answer for {len(silent)} pairs: "
                + ", ".join(silent[:5])
                + "…" * (len(silent) > 5)
            )
        total = sum(map(len, answered.values()))
        notes.append(
            f"{total} samples of {len(answered)} pairs; the RTT is the median"
            if several
            else f"{len(answered)} pairs"
        )
        return RttReading(
            table_of(
                self.source,
                {pair: statistics.median(values) for pair, values in answered.items()},
                (f"RTTs were imported from {name} ({what}).",),
                self.samples,
            ),
            _distributions(self.source, answered) if several else None,
            True,
            tuple(notes),
        )


def table_of(
    source: str,
    pairs: Mapping[tuple[str, str], float],
    provenance: tuple[str, ...],
    named: Mapping[tuple[str, str], Sequence[float]] | None = None,
) -> RttTable:
    """Return the table of RTTs per pair; `named` are pairs whose names stay without an RTT."""
    everyone = pairs if named is None else named
    sources = tuple(dict.fromkeys(a for a, _ in everyone))
    destinations = tuple(dict.fromkeys(b for _, b in everyone))
    rows, columns = ({name: i for i, name in enumerate(axis)} for axis in (sources, destinations))
    values = np.full((len(sources), len(destinations)), math.nan)
    for (a, b), rtt in pairs.items():
        values[rows[a], columns[b]] = rtt
    return RttTable(source, sources, destinations, values, (), provenance)


def _distributions(source: str, answered: Mapping[tuple[str, str], Sequence[float]]) -> PairTable:
    pairs = {pair: (tuple(v), (1.0,) * len(v)) for pair, v in answered.items()}
    return PairTable(source, (), pairs)


def origin_of(content: Content, request: FeedRequest) -> str:
    """Return where a probe ran: what the user says, else the name of the file."""
    return request.measured_from or content.stem


def ends_of(content: Content, request: FeedRequest) -> tuple[str, str]:
    """Return both ends of a file about one pair, ``SOURCE~TARGET.txt`` or ``SOURCE-to-TARGET.txt``.

    Raises
    ------
    InputError
        For a name of another form.
    """
    match = _BETWEEN.fullmatch(content.stem)
    if match:
        return request.measured_from or match[1], match[2]
    if request.measured_from:
        return request.measured_from, content.stem
    raise InputError(
        "the file does not say what was measured from where",
        source=content.source,
        field="file",
        value=content.stem,
        expected="a file name such as SOURCE~TARGET.txt, or --measured-from SOURCE",
    )
