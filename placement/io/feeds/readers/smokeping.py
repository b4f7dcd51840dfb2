"""Text and JSON of rrdtool from smokeping.

The text of rrdtool fetch FILE.rrd AVERAGE, or rrdtool xport --json; in seconds.
"""

from __future__ import annotations

import re

from placement.errors import require
from placement.io.feeds.pair_samples import PairSamples, ends_of
from placement.io.feeds.registry import Content, Feed, FeedRequest, RttReading
from placement.io.formats.tables import check_row_length

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
    words = "no columns of samples"
    expected = "rrdtool with ping1, ping2, …, or xport with median"
    require(pings, "header", words, " ".join(columns), expected, source=content.source)
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
    found = ((place, _RRD_ROW.fullmatch(line)) for place, line in content.lines)
    return [(place, match[2].split()) for place, match in found if match]


def _rrd_ends(content: Content, request: FeedRequest) -> tuple[str, str]:
    """Return target and slave: smokeping names the files of its slaves ``Target~slave.rrd``."""
    first, second = ends_of(content, request)
    if request.measured_from:
        return second, first
    return (first, second) if "~" in content.stem else (second, first)


FEED = Feed(
    "smokeping", "text or JSON of rrdtool from smokeping", _is_rrd, _read_rrd,
    notes="rrdtool fetch, or rrdtool xport --json; the file is named TARGET~SLAVE.txt; seconds "
    "become ms",
)  # fmt: skip
