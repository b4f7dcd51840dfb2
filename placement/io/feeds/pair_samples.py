"""RTTs per pair as probes give them, put together: samples, summaries, files, hosts of one site."""

from __future__ import annotations

import dataclasses
import math
import re
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from placement.errors import refused
from placement.io.feeds.registry import Content, FeedRequest, RttReading
from placement.io.rtt_table import PairTable, RttTable
from placement.support.checks import LARGEST, FloatArray

_BETWEEN = re.compile(r"(.+?)(?:~|__|-to-|→)(.+)")
_SHOWN = 5
Pair = tuple[str, str]


@dataclass(frozen=True)
class _ProbeCounts:
    """Line of a tool about several probes; NaN for a time that it does not tell."""

    sent: int
    received: int
    low: float
    average: float
    high: float
    place: str = field(compare=False)

    def contains(self, part: _ProbeCounts) -> bool:
        """Return whether this line may be about the probes of another one and more."""
        more = self.received - part.received
        if self.sent <= part.sent or more < 0 or not part.received:
            return False
        rest = self.average * self.received - part.average * part.received
        slack = 0.01 * self.received * max(1.0, self.high)
        inside = self.low * more - slack <= rest <= self.high * more + slack
        return self.low <= part.low and part.high <= self.high and inside


@dataclass
class _Run:
    """Answers of one run of a tool about one pair."""

    samples: list[float] = field(default_factory=list)
    lines: list[_ProbeCounts] = field(default_factory=list)

    def parts(self) -> list[_ProbeCounts]:
        """Return lines that share no probe: totals in the place of their intervals."""
        parts: list[_ProbeCounts] = []
        for one in self.lines:
            received = sum(part.received for part in parts)
            whole = one.sent == sum(part.sent for part in parts) and one.received == received
            if len(parts) > 1 and whole and (not received or one.average <= _mean(parts) * 1.02):
                parts = []
            elif parts and (one == parts[-1] or one.contains(parts[-1])):
                parts.pop()
            parts.append(one)
        return parts


def _mean(parts: Sequence[_ProbeCounts]) -> float:
    """Return the mean over all answers."""
    answered = [part for part in parts if part.received]
    if len(answered) == 1:
        return answered[0].average
    total = math.fsum(part.average * part.received for part in answered)
    return total / sum(part.received for part in answered)


class PairSamples:
    """Samples in ms per pair, collected line by line, and held against the tool's own counts."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.runs: dict[Pair, list[_Run]] = {}
        self.notes: list[str] = []
        self.skipped: Counter[str] = Counter()
        self.aliases: dict[str, str] = {}

    def probe(self, start: str, end: str, place: str, *, run: bool = False) -> _Run:
        """Record a pair, also when no answer came; `run` begins another run of the tool."""
        for name in (start, end):
            if not name.strip() or "\0" in name:
                raise refused(place, "host", "no name", name, "a name or address")
        runs = self.runs.setdefault((start, end), [])
        if run or not runs:
            runs.append(_Run())
        return runs[-1]

    def answer(self, start: str, end: str, text: str, place: str, *, unit: float = 1.0) -> None:
        """Record that `start` waited for `end`, in a text of `unit` ms; `place` is for messages."""
        self.probe(start, end, place).samples.append(_number(text, start, end, place, unit))

    def summary(
        self, start: str, end: str, counts: tuple[int, int], texts: Sequence[str], place: str
    ) -> None:
        """Record the line of a tool about several probes: `counts` sent and answered.

        `texts` are the average, or minimum, average and maximum, in ms; none without an answer.
        """
        sent, received = counts
        if not 0 <= received <= sent:
            raise refused(
                place, f"{start} → {end}", "more answers than probes", received, f"at most {sent}"
            )
        times = [_number(text, start, end, place, 1.0) for text in texts] or [math.nan]
        low, average, high = times if len(times) == 3 else times[:1] * 3
        line = _ProbeCounts(sent, received, low, average, high, place)
        self.probe(start, end, place).lines.append(line)

    def skip(self, what: str) -> None:
        """Count a line that is no sample."""
        self.skipped[what] += 1

    def reading(self, what: str) -> RttReading:
        """Return medians of samples, or means where a run has no samples; with the samples.

        No answer at all, and more samples than the tool counted, are refused.
        """
        samples: dict[Pair, list[float]] = {}
        rtts: dict[Pair, float] = {}
        sent = received = cut = 0
        for pair, runs in self.runs.items():
            found: list[_ProbeCounts] = []
            for run in runs:
                parts = run.parts()
                sent += sum(part.sent for part in parts)
                counted = sum(part.received for part in parts)
                received += counted
                if parts and len(run.samples) > counted:
                    words = "more samples than answers in the summary"
                    expected = f"{counted}, as the summary says"
                    raise refused(
                        parts[-1].place, f"{pair[0]} → {pair[1]}", words, len(run.samples), expected
                    )
                if run.samples:
                    cut += counted - len(run.samples) if parts else 0
                    mean = statistics.fmean(run.samples)
                    parts = [_ProbeCounts(0, len(run.samples), mean, mean, mean, "")]
                found += [part for part in parts if part.received]
            if found and all(run.samples or not any(p.received for p in run.lines) for run in runs):
                samples[pair] = [value for run in runs for value in run.samples]
                rtts[pair] = statistics.median(samples[pair])
            elif found:
                rtts[pair] = _mean(found)
        if not rtts:
            said = [f"{sent} probes, no answer"] * bool(sent) + self.notes
            raise refused(self.source, "format", "no RTTs", what, "; ".join(("one answer", *said)))
        notes = [*dict.fromkeys(self.notes)]
        notes += [f"{count} lines are no samples: {kind}" for kind, count in self.skipped.items()]
        if silent := [f"{a} → {b}" for a, b in self.runs if (a, b) not in rtts]:
            more = "…" * (len(silent) > _SHOWN)
            notes.append(f"no answer for {len(silent)} pairs: {', '.join(silent[:_SHOWN])}{more}")
        if sent > received:
            notes.append(f"{sent - received} of {sent} probes had no answer")
        if cut:
            notes.append(f"{cut} samples that the summary counts are not in the file")
        total = sum(map(len, samples.values()))
        several = total > len(samples)
        words = f"{total} samples of {len(samples)} pairs; the RTT is the median"
        notes.append(words if several else f"{len(rtts)} pairs")
        if several and len(samples) < len(rtts):
            notes.append(f"the RTT of {len(rtts) - len(samples)} pairs is a mean")
        distributions = None
        if several and len(samples) == len(rtts):
            curves = {pair: (tuple(v), (1.0,) * len(v)) for pair, v in samples.items()}
            distributions = PairTable(self.source, (), curves)
        sentence = f"RTTs were imported from {Path(self.source).name} ({what})."
        table = table_of(self.source, rtts, (sentence,), self.runs)
        return RttReading(table, distributions, True, tuple(notes), aliases=self.aliases)


def _number(text: str, start: str, end: str, place: str, unit: float) -> float:
    try:
        value = float(text) * unit
    except ValueError:
        value = math.nan
    if not 0 <= value <= LARGEST or "_" in text:
        raise refused(place, f"{start} → {end}", "not an RTT", text, "a finite number >= 0")
    return value


def table_of(
    source: str,
    pairs: Mapping[Pair, float | FloatArray],
    provenance: tuple[str, ...],
    named: Mapping[Pair, object] | None = None,
    intervals: tuple[str, ...] = (),
) -> RttTable:
    """Return the table of RTTs per pair; `named` are pairs whose names stay without an RTT.

    With `intervals`, the RTT of a pair is an array of them.
    """
    everyone = pairs if named is None else named
    sources = tuple(dict.fromkeys(a for a, _ in everyone))
    destinations = tuple(dict.fromkeys(b for _, b in everyone))
    rows, columns = ({name: i for i, name in enumerate(axis)} for axis in (sources, destinations))
    shape = (len(intervals),) if intervals else ()
    values = np.full((*shape, len(sources), len(destinations)), math.nan)
    for (a, b), rtt in pairs.items():
        values[..., rows[a], columns[b]] = rtt
    return RttTable(source, sources, destinations, values, intervals, provenance)


def origin_of(content: Content, request: FeedRequest) -> str:
    """Return where a probe ran: what the user says, else the name of the file."""
    return request.measured_from or content.stem


def ends_of(content: Content, request: FeedRequest) -> Pair:
    """Return both ends of a file of one pair: ``SOURCE~TARGET.txt``, ``SOURCE-to-TARGET.txt``."""
    match = _BETWEEN.fullmatch(content.stem)
    if match:
        return request.measured_from or match[1], match[2]
    if request.measured_from:
        return request.measured_from, content.stem
    words = "the file does not say what was measured from where"
    expected = "a file name such as SOURCE~TARGET.txt, or --measured-from SOURCE"
    raise refused(content.source, "file", words, content.stem, expected)


# --- several files, hosts of one site --------------------------------------------------------


def _cells(table: RttTable) -> dict[Pair, FloatArray]:
    """Return the RTT of each pair that has one: a number, or one for each interval."""
    return {
        (a, b): table.values[..., i, j]
        for i, a in enumerate(table.sources)
        for j, b in enumerate(table.destinations)
        if not np.isnan(table.values[..., i, j]).all()
    }


def merge(readings: Sequence[RttReading], *, closed: bool = False) -> RttReading:
    """Return the RTTs of several readings as one.

    With `closed`, every destination must be a site, as in RTTs between sites: a table none of whose
    columns is a row anywhere is refused then. Readings with intervals, and a pair with different
    RTTs in two readings, are refused.
    """
    tables = [reading.table for reading in readings]
    sources = {name for table in tables for name in table.sources}
    for reading in readings if closed else ():
        if reading.loose and not sources.intersection(reading.loose):
            words = "no column is a row too: neither sites nor a known quantity"
            expected = "names of sites, or --columns dst=COLUMN,rtt=COLUMN"
            raise refused(reading.table.source, "header", words, ", ".join(reading.loose), expected)
    if len(readings) == 1:
        return readings[0]
    found: dict[Pair, FloatArray] = {}
    for table in tables:
        if table.intervals:
            words = "RTTs that vary by interval cannot be combined with other files"
            raise refused(table.source, "interval", words, table.intervals[0], "one file")
        for (a, b), rtt in _cells(table).items():
            if found.setdefault((a, b), rtt) != rtt:
                words = "a pair measured twice with different RTTs"
                expected = f"{float(found[a, b]):g}, as before, or one measurement per pair"
                raise refused(table.source, f"{a} → {b}", words, float(rtt), expected)
    told = [reading.distributions for reading in readings if reading.distributions is not None]
    distributions = None
    if len(told) == len(readings) and len({table.percents for table in told}) == 1:
        pairs = {pair: curve for table in told for pair, curve in table.pairs.items()}
        distributions = PairTable(told[0].source, told[0].percents, pairs)
    source = ", ".join(dict.fromkeys(table.source for table in tables))
    provenance = tuple(dict.fromkeys(line for table in tables for line in table.provenance))
    ends = ((a, b) for table in tables for a in table.sources for b in table.destinations)
    return RttReading(
        table_of(source, found, provenance, dict.fromkeys(ends)),
        distributions,
        all(reading.unit_known for reading in readings),
        tuple(dict.fromkeys(note for reading in readings for note in reading.notes)),
        aliases={k: v for reading in readings for k, v in reading.aliases.items()},
    )


def round_trips(reading: RttReading) -> RttReading:
    """Return RTTs of one-way delays: the sum of both directions, or twice the one measured."""
    table = reading.table
    found = _cells(table)
    rtts = {(a, b): delay + found.get((b, a), delay) for (a, b), delay in found.items()}
    twice = sum(a != b and (b, a) not in found for a, b in found)
    note = "one-way delays: both directions were added" + (
        f"; {twice} pairs with one direction were doubled" if twice else ""
    )
    provenance = (*table.provenance, note[0].upper() + note[1:] + ".")
    ends = dict.fromkeys((a, b) for a in table.sources for b in table.destinations)
    done = table_of(table.source, rtts, provenance, ends, table.intervals)
    notes = (*reading.notes, note)
    return dataclasses.replace(reading, table=done, distributions=None, notes=notes)


def renamed(reading: RttReading, names: Mapping[str, str], source: str) -> RttReading:
    """Return a reading of RTTs between hosts with the names of sites in their place.

    `names` are host -> site; other hosts keep their names, and a host that the reading does not
    have is refused, with the `source` of the names. Where several hosts make one site, the RTT of
    a pair of sites is the median over the pairs of hosts.
    """
    if not names:
        return reading
    table = reading.table
    hosts = dict.fromkeys((*table.sources, *table.destinations))
    names = {
        host if host in hosts else reading.aliases.get(host, host): site
        for host, site in names.items()
    }
    if unknown := [host for host in names if host not in hosts]:
        raise refused(source, "host", "no such host", unknown[0], "one of " + ", ".join(hosts))
    of_sites: dict[Pair, list[FloatArray]] = {}
    for (a, b), rtt in _cells(table).items():
        of_sites.setdefault((names.get(a, a), names.get(b, b)), []).append(rtt)
    rtts = {pair: np.nanmedian(found, axis=0) for pair, found in of_sites.items()}
    sources, destinations = (
        dict.fromkeys(names.get(name, name) for name in axis)
        for axis in (table.sources, table.destinations)
    )
    merged = len(sources) < len(table.sources) or len(destinations) < len(table.destinations)
    told = reading.distributions
    if told is not None:  # several pairs of hosts are no samples of one RTT
        pairs = {(names.get(a, a), names.get(b, b)): c for (a, b), c in told.pairs.items()}
        told = None if merged else dataclasses.replace(told, pairs=pairs)
    note = f"{len(names)} hosts were named by site" + (
        "; RTTs are medians over hosts" if merged else ""
    )
    provenance = (*table.provenance, f"Hosts of {Path(table.source).name} were named by site.")
    ends = dict.fromkeys((a, b) for a in sources for b in destinations)
    done = table_of(table.source, rtts, provenance, ends, table.intervals)
    notes = (*reading.notes, note)
    return dataclasses.replace(reading, table=done, distributions=told, notes=notes)
