"""blackbox_exporter: the text of a probe, or samples of several probes with labels.

``icmp`` reports the RTT (plus 2 to 5 ms), ``tcp`` a connection (plus 1 to 2.4 ms). The duration of
``http`` is two round trips and more; the phase ``connect`` is one, and it is taken.
"""

from __future__ import annotations

import re
from collections import defaultdict

from placement.errors import InputError
from placement.io.feeds.pair_samples import PairSamples, ends_of
from placement.io.feeds.registry import Content, Feed, FeedRequest, RttReading

__all__ = ["FEED"]

_SAMPLE = re.compile(
    r"(probe_\w+)(?:\{((?:[^\"}]|\"(?:[^\"\\]|\\.)*\")*)\})?\s+(\S+)(?:\s+\S+)?\s*"
)
_LABEL = re.compile(r'([A-Za-z_]\w*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(?:,|$)\s*')
_SOURCES = ("source", "src", "from", "vantage", "region", "site", "datacenter", "dc")
_TARGETS = ("target", "dst", "destination", "to", "peer", "instance")
_ESCAPED = {"\\n": "\n", '\\"': '"', "\\\\": "\\"}
_ROUND_TRIP = (
    ("probe_icmp_duration_seconds", "rtt", "icmp: the RTT plus 2 to 5 ms"),
    ("probe_http_duration_seconds", "connect", "http: the phase connect"),
)


def _recognises(content: Content) -> bool:
    return any(
        match and match[1].endswith("duration_seconds")
        for match in map(_SAMPLE.fullmatch, content.head.splitlines()[:500])
    )


def _read(content: Content, request: FeedRequest) -> RttReading:
    metrics: dict[tuple[str, str], dict[tuple[str, str], tuple[str, str]]] = defaultdict(dict)
    for number, line in enumerate((content.text or "").splitlines(), 1):
        match = _SAMPLE.fullmatch(line)
        if match is None:
            continue
        place = f"{content.source}, row {number}"
        labels = _labels(match[2] or "", place)
        start = request.measured_from or next((labels[k] for k in _SOURCES if k in labels), "")
        end = next((labels[key] for key in _TARGETS if key in labels), "")
        if not start or not end:
            start, end = ends_of(content, request)
        key = (match[1], labels.get("phase", ""))
        if key in metrics[start, end]:
            raise InputError(
                "a sample given twice",
                source=place,
                field=match[1],
                value=f"{start} → {end}",
                expected="one per pair; other labels may tell the pairs apart",
            )
        metrics[start, end][key] = (match[3], place)
    found = PairSamples(content.source)
    kinds: set[str] = set()
    for (start, end), values in metrics.items():
        success = values.get(("probe_success", ""), ("1", ""))[0]
        name, phase, kind = next(
            (form for form in _ROUND_TRIP if form[:2] in values),
            ("probe_duration_seconds", "", "tcp: the RTT plus 1 to 2.4 ms"),
        )
        text, place = values.get((name, phase), ("", content.source))
        if text:
            found.probe(start, end, place)
        if text and _value_or_zero(success) > 0:
            found.answer(start, end, text, place, unit=1000.0)
            kinds.add(kind)
    found.notes.extend(sorted(kinds))
    return found.reading("blackbox_exporter")


def _value_or_zero(text: str) -> float:
    """Return a sample's value, 0 for a text that is no number."""
    try:
        return float(text)
    except ValueError:
        return 0.0


def _labels(text: str, place: str) -> dict[str, str]:
    found: dict[str, str] = {}
    at = 0
    text = text.strip()
    while at < len(text):
        match = _LABEL.match(text, at)
        if match is None:
            raise InputError(
                "not a label",
                source=place,
                field="labels",
                value=text[at:],
                expected='name="value"',
            )
        found[match[1]] = re.sub(r'\\[n"\\]', lambda m: _ESCAPED[m[0]], match[2])
        at = match.end()
    return found


FEED = Feed("blackbox", "metrics of blackbox_exporter", _recognises, _read)
