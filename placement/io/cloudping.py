"""RTTs between AWS regions from the JSON of cloudping.co."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from placement.errors import InputError
from placement.io.feeds.registry import Content, Feed, FeedRequest, RttReading
from placement.io.formats.tables import quantity_cell
from placement.io.rtt_table import RttTable

__all__ = ["FEED"]


def _rtts(value: object, source: str) -> RttTable:
    """Read the answer of the API of cloudping.co (latency between AWS regions).

    Two forms are known: that of ``/latencies``, a percentile over a time frame,

        {"metadata": {"percentile": "p_50", "timeframe": "1Y", "unit": "milliseconds"},
         "data": {"eu-west-1": {"us-east-1": 67.9, …}, …}}

    and the older one of ``/averages/day``,

        [{"region": "eu-west-1", "averages": [{"regionTo": "us-east-1", "average": 68.1}, …]}, …]

    Raises
    ------
    InputError
        For any other form or unit, a pair given twice, and values that are no RTT.
    """
    if isinstance(value, list):
        pairs, words = _averages(value, source), "averages"
    elif isinstance(value, dict) and isinstance(value.get("data"), dict):
        pairs, words = _latencies(value["data"], source), _metadata(value, source)
    else:
        raise InputError(
            "not an answer of cloudping.co",
            source=source,
            expected='{"metadata": …, "data": {from: {to: ms}}} or '
            '[{"region": from, "averages": [{"regionTo": to, "average": ms}]}]',
        )
    sources = tuple(dict.fromkeys(pair[0] for pair in pairs))
    destinations = tuple(dict.fromkeys(pair[1] for pair in pairs))
    if not pairs:
        raise InputError("no RTTs", source=source, expected="at least one pair of regions")
    rows, columns = ({name: i for i, name in enumerate(axis)} for axis in (sources, destinations))
    values = np.full((len(sources), len(destinations)), math.nan)
    for (start, end), rtt in pairs.items():
        values[rows[start], columns[end]] = rtt
    sentence = (
        f"RTTs were measured by cloudping.co ({words}) and imported from {Path(source).name}."
    )
    return RttTable(source, sources, destinations, values, (), (sentence,))


def _metadata(value: Mapping[str, object], source: str) -> str:
    metadata = value.get("metadata")
    if not isinstance(metadata, dict):
        return "percentile and time frame unknown"
    unit = metadata.get("unit", "milliseconds")
    if unit != "milliseconds":
        raise InputError(
            "unsupported unit",
            source=source,
            field="metadata.unit",
            value=unit,
            expected="milliseconds",
        )
    return f"percentile {metadata.get('percentile')}, time frame {metadata.get('timeframe')}"


def _latencies(data: Mapping[str, object], source: str) -> dict[tuple[str, str], float]:
    pairs: dict[tuple[str, str], float] = {}
    for start, row in data.items():
        if not isinstance(row, dict):
            raise InputError(
                "not RTTs by region",
                source=source,
                field=f"data.{start}",
                value=row,
                expected="{…}",
            )
        for end, rtt in row.items():
            if rtt is not None:
                field = f"data.{start}.{end}"
                pairs[_region(start, source, field), _region(end, source, field)] = _json_rtt(
                    rtt, source, field
                )
    return pairs


def _averages(rows: list[object], source: str) -> dict[tuple[str, str], float]:
    pairs: dict[tuple[str, str], float] = {}
    for i, row in enumerate(rows):
        averages = row.get("averages") if isinstance(row, dict) else None
        if not isinstance(row, dict) or not isinstance(averages, list):
            raise InputError(
                "not the averages of a region",
                source=source,
                field=f"[{i}]",
                value=row,
                expected='{"region": …, "averages": […]}',
            )
        start = _region(row.get("region"), source, f"[{i}].region")
        for j, item in enumerate(averages):
            place = f"[{i}].averages[{j}]"
            if not isinstance(item, dict):
                raise InputError(
                    "not an average", source=source, field=place, value=item, expected="{…}"
                )
            end = _region(item.get("regionTo"), source, f"{place}.regionTo")
            if (start, end) in pairs:
                raise InputError(
                    "a pair given twice",
                    source=source,
                    field=f"{place}.regionTo",
                    value=f"{start} → {end}",
                    expected="once",
                )
            if item.get("average") is not None:
                pairs[start, end] = _json_rtt(item["average"], source, f"{place}.average")
    return pairs


def _region(value: object, source: str, field: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InputError(
            "not a region", source=source, field=field, value=value, expected="the name of a region"
        )
    return value.strip()


def _json_rtt(value: object, source: str, field: str) -> float:
    if isinstance(value, (dict, list)):
        raise InputError(
            "not a number", source=source, field=field, value=value, expected="milliseconds"
        )
    return quantity_cell(value, source, field)


def _recognises(content: Content) -> bool:
    value = content.json
    if isinstance(value, list):
        return all(isinstance(row, dict) and "averages" in row for row in value)
    return isinstance(value, dict) and "data" in value


def _read(content: Content, request: FeedRequest) -> RttReading:
    return RttReading(_rtts(content.document, content.source))


FEED = Feed("cloudping", "answer of cloudping.co (JSON)", _recognises, _read)
