"""Saved answers of Prometheus.

The metrics of blackbox_exporter are read as :mod:`.blackbox` reads them. The name of any other
metric says quantity and unit, as a header does.
"""

from __future__ import annotations

from collections.abc import Iterator

from placement.errors import refused, require
from placement.io.feeds.headers import UNITS, read_header, time_unit
from placement.io.feeds.pair_samples import PairSamples
from placement.io.feeds.readers.blackbox import MetricSeries, add_probes, series_ends
from placement.io.feeds.registry import Content, Feed, FeedRequest, RttReading


def _is_answer(content: Content) -> bool:
    one = content.objects[0] if len(content.objects) == 1 else {}
    data = one.get("data")
    failed = one.get("status") == "error" and "errorType" in one
    return failed or (isinstance(data, dict) and "resultType" in data)


def _read_answer(content: Content, request: FeedRequest) -> RttReading:
    words = "not an answer of Prometheus"
    expected = "the JSON of /api/v1/query or /api/v1/query_range"
    require(_is_answer(content), "format", words, content.document, expected, source=content.source)
    if content.objects[0].get("status") == "error":
        words = "an error of Prometheus, no answer"
        expected = "a vector or a matrix"
        raise refused(content.source, "error", words, content.objects[0].get("error"), expected)
    series = list(_series(content))
    found = PairSamples(content.source)
    names = {one.name for one in series}
    if names and all(name.startswith("probe_") for name in names):
        add_probes(series, content, request, found)
        return found.reading("answer of Prometheus, blackbox_exporter")
    units = set()
    for one in series:
        head = read_header(one.name)
        buckets = "le" in one.labels or one.name.endswith(("_bucket", "_count", "_sum", "_total"))
        one_way = head.quantity == "one-way delay" and not request.one_way
        high = one.labels.get("quantile", "0.5") not in ("0.5", "0.50")
        if head.other or buckets or one_way or high:
            what = "part of a histogram or counter" if buckets else head.quantity
            words = f"not round-trip times but {'a high quantile' if high else what}"
            expected = "RTTs" + (", or --one-way" if one_way else "")
            raise refused(one.place, "metric", words, one.name or one.labels, expected)
        if one.labels.get("phase", "rtt") not in ("rtt", "connect"):
            continue
        unit = request.unit or time_unit(head.unit or "")
        units.add(unit)
        pair = series_ends(one, content, request)
        if pair in found.runs:
            expected = "one series per pair of places, by an aggregation or labels of both ends"
            raise refused(one.place, "metric", "several series of one pair", one.labels, expected)
        found.probe(*pair, one.place)
        for text in one.values:
            if text.lower() not in ("nan", "+inf", "-inf"):
                found.answer(*pair, text, one.place, unit=UNITS[unit or "ms"])
    reading = found.reading("answer of Prometheus")
    return RttReading(
        reading.table, reading.distributions, units <= set(UNITS), reading.notes, reading.loose
    )


def _series(content: Content) -> Iterator[MetricSeries]:
    data = content.objects[0]["data"]
    result = data.get("result") if isinstance(data, dict) else None
    kind = data.get("resultType") if isinstance(data, dict) else None
    if kind not in ("vector", "matrix") or not isinstance(result, list):
        words = "an answer of Prometheus without samples per series"
        raise refused(content.source, "data.resultType", words, kind, "vector or matrix")
    for i, one in enumerate(result):
        place = f"{content.source}: data.result[{i}]"
        try:
            labels = {str(key): str(value) for key, value in one["metric"].items()}
            values = [one["value"]] if kind == "vector" else one["values"]
            texts = tuple(str(value[1]) for value in values)
        except (TypeError, KeyError, IndexError, AttributeError):
            expected = '{"metric": …, "value": […]}'
            raise refused(place, "", "not a series", one, expected) from None
        yield MetricSeries(labels.pop("__name__", ""), labels, texts, place)


FEED = Feed(
    "prometheus", "saved answer of Prometheus (JSON)", _is_answer, _read_answer,
    notes="of /api/v1/query or /api/v1/query_range; labels name both ends, the name of the "
    "metric quantity and unit",
    units=True,
)  # fmt: skip
