"""Answers of cloudping.co.

/latencies: {"metadata": {"percentile": "p_50", …}, "data": {"eu-west-1": {"us-east-1": 67.9}}};
the older /averages/day: [{"region": …, "averages": [{"regionTo": …, "average": …}, …]}, …].
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from placement.errors import InputError, refused
from placement.io.feeds.blocks import json_table
from placement.io.feeds.registry import Content, Feed, FeedRequest, RttReading
from placement.io.feeds.rtt_tables import read_block


def _is_cloudping(content: Content) -> bool:
    value = content.json
    if isinstance(value, list):
        return bool(value) and all(isinstance(row, dict) and "averages" in row for row in value)
    inner = value.get("data") if isinstance(value, dict) else None
    known = isinstance(value, dict) and set(value) <= {"metadata", "data"}
    return known and isinstance(inner, dict) and all(isinstance(r, dict) for r in inner.values())


def _cloudping(content: Content, request: FeedRequest) -> RttReading:
    value, about = content.document, "averages"
    if not _is_cloudping(content):
        expected = '{"metadata": …, "data": {from: {to: ms}}} or [{"region": …, "averages": […]}]'
        raise InputError("not an answer of cloudping.co", source=content.source, expected=expected)
    if isinstance(value, dict):
        metadata = value.get("metadata")
        told = metadata if isinstance(metadata, dict) else {}
        if told.get("unit", "milliseconds") != "milliseconds":
            words = "unsupported unit"
            raise refused(content.source, "metadata.unit", words, told["unit"], "milliseconds")
        about = f"percentile {told.get('percentile')}, time frame {told.get('timeframe')}"
        value = value["data"]
    table = json_table(value, content.source, by_place=True)
    if table is None:
        raise InputError("no RTTs", source=content.source, expected="at least one pair of regions")
    reading = read_block(table, dataclasses.replace(request, unit="ms"), "long")
    name = Path(content.source).name
    words = f"RTTs were measured by cloudping.co ({about}) and imported from {name}."
    rtts = dataclasses.replace(reading.table, provenance=(words,))
    return dataclasses.replace(reading, table=rtts)


FEED = Feed(
    "cloudping", "answer of cloudping.co (JSON)", _is_cloudping, _cloudping,
    notes="of /latencies, or of the older /averages/day",
)  # fmt: skip
