"""Metrics over time: blackbox_exporter, saved answers of Prometheus, smokeping."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from placement.errors import InputError
from placement.io.feeds.blocks import labels_of
from placement.io.feeds.headers import UNITS, Header, read_header, time_unit
from placement.io.feeds.pair_samples import PairSamples, ends_of
from placement.io.feeds.registry import Content, Feed, FeedRequest, RttReading
from placement.io.formats.tables import check_row_length

__all__ = ["BLACKBOX", "PROMETHEUS", "SMOKEPING"]

# --- blackbox_exporter and Prometheus -------------------------------------------------------------
#
# icmp reports the RTT (plus 2 to 5 ms), tcp a connection (plus 1 to 2.4 ms). The duration of http
# is two round trips and more; the phase connect is one, and it is taken. The name of any other
# metric says quantity and unit, as a header does.

_SAMPLE = re.compile(
    r"(probe_\w+)(?:\{((?:[^\"}]|\"(?:[^\"\\]|\\.)*\")*)\})?\s+(\S+)(?:\s+\S+)?\s*"
)
_SOURCES = ("source", "src", "from", "vantage", "region", "site", "datacenter", "dc")
_TARGETS = ("target", "dst", "destination", "to", "peer", "instance")
_ROUND_TRIP = (
    ("probe_icmp_duration_seconds", "rtt", "icmp: the RTT plus 2 to 5 ms"),
    ("probe_http_duration_seconds", "connect", "http: the phase connect"),
    ("probe_duration_seconds", "", "tcp: the RTT plus 1 to 2.4 ms"),
)


@dataclass(frozen=True)
class _MetricSeries:
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
    series = []
    for number, line in enumerate((content.text or "").splitlines(), 1):
        if match := _SAMPLE.fullmatch(line):
            place = f"{content.source}, row {number}"
            series.append(
                _MetricSeries(match[1], labels_of(match[2] or "", place), (match[3],), place)
            )
    found = PairSamples(content.source)
    _probes(series, content, request, found)
    return found.reading("blackbox_exporter")


def _ends(one: _MetricSeries, content: Content, request: FeedRequest) -> tuple[str, str]:
    labels = one.labels
    start = request.measured_from or next((labels[k] for k in _SOURCES if k in labels), "")
    end = next((labels[key] for key in _TARGETS if key in labels), "")
    return (start, end) if start and end else ends_of(content, request)


def _probes(
    series: list[_MetricSeries], content: Content, request: FeedRequest, found: PairSamples
) -> None:
    """Add the round trips of probes of blackbox_exporter."""
    metrics: dict[tuple[str, str], dict[tuple[str, str], _MetricSeries]] = defaultdict(dict)
    for one in series:
        start, end = _ends(one, content, request)
        key = (one.name, one.labels.get("phase", ""))
        if key in metrics[start, end]:
            raise InputError(
                "a sample given twice",
                source=one.place,
                field=one.name,
                value=f"{start} → {end}",
                expected="one per pair; other labels may tell the pairs apart",
            )
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


# --- answers of the API ----------------------------------------------------------------------


def _is_answer(content: Content) -> bool:
    one = content.objects[0] if len(content.objects) == 1 else {}
    data = one.get("data")
    failed = one.get("status") == "error" and "errorType" in one
    return failed or (isinstance(data, dict) and "resultType" in data)


def _read_answer(content: Content, request: FeedRequest) -> RttReading:
    if not _is_answer(content):
        raise InputError(
            "not an answer of Prometheus",
            source=content.source,
            field="format",
            value=content.document,
            expected="the JSON of /api/v1/query or /api/v1/query_range",
        )
    if content.objects[0].get("status") == "error":
        raise InputError(
            "an error of Prometheus, no answer",
            source=content.source,
            field="error",
            value=content.objects[0].get("error"),
            expected="a vector or a matrix",
        )
    series = list(_series(content))
    found = PairSamples(content.source)
    names = {one.name for one in series}
    if names and all(name.startswith("probe_") for name in names):
        _probes(series, content, request, found)
        return found.reading("answer of Prometheus, blackbox_exporter")
    units = set()
    for one in series:
        head = read_header(one.name)
        _check(one, head, request)
        if one.labels.get("phase", "rtt") not in ("rtt", "connect"):
            continue
        unit = request.unit or time_unit(head.unit or "")
        units.add(unit)
        pair = _ends(one, content, request)
        if pair in found.runs:
            raise InputError(
                "several series of one pair",
                source=one.place,
                field="metric",
                value=one.labels,
                expected="one series per pair of places, by an aggregation or labels of both ends",
            )
        found.probe(*pair, one.place)
        for text in one.values:
            if text.lower() not in ("nan", "+inf", "-inf"):
                found.answer(*pair, text, one.place, unit=UNITS[unit or "ms"])
    reading = found.reading("answer of Prometheus")
    return RttReading(
        reading.table, reading.distributions, units <= set(UNITS), reading.notes, reading.loose
    )


def _check(one: _MetricSeries, head: Header, request: FeedRequest) -> None:
    """Refuse a metric that is no round-trip time."""
    buckets = "le" in one.labels or one.name.endswith(("_bucket", "_count", "_sum", "_total"))
    one_way = head.quantity == "one-way delay" and not request.one_way
    high = one.labels.get("quantile", "0.5") not in ("0.5", "0.50")
    if head.other or buckets or one_way or high:
        what = "part of a histogram or counter" if buckets else head.quantity
        raise InputError(
            f"not round-trip times but {'a high quantile' if high else what}",
            source=one.place,
            field="metric",
            value=one.name or one.labels,
            expected="RTTs" + (", or --one-way" if one_way else ""),
        )


def _series(content: Content) -> Iterator[_MetricSeries]:
    data = content.objects[0]["data"]
    result = data.get("result") if isinstance(data, dict) else None
    kind = data.get("resultType") if isinstance(data, dict) else None
    if kind not in ("vector", "matrix") or not isinstance(result, list):
        raise InputError(
            "an answer of Prometheus without samples per series",
            source=content.source,
            field="data.resultType",
            value=kind,
            expected="vector or matrix",
        )
    for i, one in enumerate(result):
        place = f"{content.source}: data.result[{i}]"
        try:
            labels = {str(key): str(value) for key, value in one["metric"].items()}
            values = [one["value"]] if kind == "vector" else one["values"]
            texts = tuple(str(value[1]) for value in values)
        except (TypeError, KeyError, IndexError, AttributeError):
            raise InputError(
                "not a series", source=place, value=one, expected='{"metric": …, "value": […]}'
            ) from None
        yield _MetricSeries(labels.pop("__name__", ""), labels, texts, place)


BLACKBOX = Feed("blackbox", "metrics of blackbox_exporter", _is_blackbox, _read_blackbox)
PROMETHEUS = Feed(
    "prometheus", "saved answer of Prometheus (JSON)", _is_answer, _read_answer, units=True
)

# --- smokeping ------------------------------------------------------------------------------------
#
# The text of rrdtool fetch FILE.rrd AVERAGE, or rrdtool xport --json; in seconds.

_RRD_ROW = re.compile(r"(\d+):((?:\s+\S+)+)\s*")
_RRD_PING = re.compile(r"ping\d+")


def _rrd_header(content: Content) -> list[str]:
    if content.braced:
        meta = content.objects[0].get("meta") if len(content.objects) == 1 else None
        legend = meta.get("legend") if isinstance(meta, dict) else None
        return [str(name) for name in legend] if isinstance(legend, list) else []
    return next((line for line in content.head.splitlines() if line.strip()), "").split()


def _is_rrd(content: Content) -> bool:
    header = _rrd_header(content)
    if content.braced:
        return bool(header) and "RRDtool" in str(content.objects[0].get("about", ""))
    return "median" in header and "loss" in header and "ping1" in header


def _read_rrd(content: Content, request: FeedRequest) -> RttReading:
    columns = _rrd_header(content)
    pings = [i for i, name in enumerate(columns) if _RRD_PING.fullmatch(name)]
    pings = pings or [i for i, name in enumerate(columns) if name == "median" and content.braced]
    if not pings:
        raise InputError(
            "no columns of samples",
            source=content.source,
            field="header",
            value=" ".join(columns),
            expected="rrdtool with ping1, ping2, …, or xport with median",
        )
    target, slave = _rrd_ends(content, request)
    found = PairSamples(content.source)
    for place, cells in _rrd_rows(content):
        check_row_length(cells, columns, place)
        found.probe(slave, target, place)
        for i in pings:
            if cells[i].lower() not in ("nan", "-nan", "none"):
                found.answer(slave, target, cells[i], place, unit=1000.0)
    return found.reading("smokeping, seconds")


def _rrd_rows(content: Content) -> list[tuple[str, list[str]]]:
    if content.braced:
        data = content.objects[0].get("data")
        rows = [row for row in data if isinstance(row, list)] if isinstance(data, list) else []
        return [(f"{content.source}: data[{i}]", [*map(str, row)]) for i, row in enumerate(rows)]
    lines = enumerate((content.text or "").splitlines(), 1)
    return [
        (f"{content.source}, row {number}", match[2].split())
        for number, line in lines
        if (match := _RRD_ROW.fullmatch(line))
    ]


def _rrd_ends(content: Content, request: FeedRequest) -> tuple[str, str]:
    """Return target and slave: smokeping names the files of its slaves ``Target~slave.rrd``."""
    first, second = ends_of(content, request)
    if request.measured_from:
        return second, first
    return (first, second) if "~" in content.stem else (second, first)


SMOKEPING = Feed("smokeping", "text or JSON of rrdtool from smokeping", _is_rrd, _read_rrd)
