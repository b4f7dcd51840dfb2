"""Metrics of blackbox_exporter.

icmp reports the RTT (plus 2 to 5 ms), tcp a connection (plus 1 to 2.4 ms). The duration of http is
two round trips and more; the phase connect is one, and it is taken.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass

from placement.errors import refused
from placement.io.feeds.blocks import labels_of
from placement.io.feeds.headers import LABELS
from placement.io.feeds.pair_samples import PairSamples, ends_of
from placement.io.feeds.registry import Content, Feed, FeedRequest, RttReading

_SAMPLE = re.compile(
    r"(probe_\w+)(?:\{((?:[^\"}]|\"(?:[^\"\\]|\\.)*\")*)\})?\s+(\S+)(?:\s+\S+)?\s*"
)
_ROUND_TRIP = (
    ("probe_icmp_duration_seconds", "rtt", "icmp: the RTT plus 2 to 5 ms"),
    ("probe_http_duration_seconds", "connect", "http: the phase connect"),
    ("probe_duration_seconds", "", "tcp: the RTT plus 1 to 2.4 ms"),
)


@dataclass(frozen=True)
class MetricSeries:
    """Values of a metric, oldest first."""

    name: str
    labels: dict[str, str]
    values: tuple[str, ...]
    place: str


def _is_blackbox(content: Content) -> bool:
    return any(
        match and match[1].endswith("duration_seconds")
        for match in map(_SAMPLE.fullmatch, content.head.splitlines()[:500])
    )


def _read_blackbox(content: Content, request: FeedRequest) -> RttReading:
    series = [
        MetricSeries(match[1], labels_of(match[2] or "", place), (match[3],), place)
        for place, line in content.lines
        if (match := _SAMPLE.fullmatch(line))
    ]
    found = PairSamples(content.source)
    add_probes(series, content, request, found)
    return found.reading("blackbox_exporter")


def series_ends(one: MetricSeries, content: Content, request: FeedRequest) -> tuple[str, str]:
    """Return both ends of a series: labels, or what the user or the name of the file says."""
    labels = one.labels
    start = request.measured_from or next((labels[k] for k in LABELS["src"] if k in labels), "")
    end = next((labels[key] for key in LABELS["dst"] if key in labels), "")
    return (start, end) if start and end else ends_of(content, request)


def add_probes(
    series: list[MetricSeries], content: Content, request: FeedRequest, found: PairSamples
) -> None:
    """Add the round trips of probes of blackbox_exporter."""
    metrics: dict[tuple[str, str], dict[tuple[str, str], MetricSeries]] = defaultdict(dict)
    for one in series:
        start, end = series_ends(one, content, request)
        key = (one.name, one.labels.get("phase", ""))
        if key in metrics[start, end]:
            expected = "one per pair; other labels may tell the pairs apart"
            raise refused(one.place, one.name, "a sample given twice", f"{start} → {end}", expected)
        metrics[start, end][key] = one
    kinds: set[str] = set()
    for (start, end), known in metrics.items():
        for name, phase, kind in _ROUND_TRIP:
            taken = known.get((name, phase))
            if taken is None:
                continue
            found.probe(start, end, taken.place)
            success = known.get(("probe_success", ""))
            for i, text in enumerate(taken.values):
                good = success.values[min(i, len(success.values) - 1)] if success else "1"
                if good not in ("0", "0.0", "NaN") and text.lower() != "nan":
                    found.answer(start, end, text, taken.place, unit=1000.0)
                    kinds.add(kind)
            break
    found.notes.extend(sorted(kinds))


FEED = Feed(
    "blackbox", "metrics of blackbox_exporter", _is_blackbox, _read_blackbox,
    notes="icmp: phase rtt; http: phase connect; else the duration of tcp",
)  # fmt: skip
