"""smokeping: the text of ``rrdtool fetch FILE.rrd AVERAGE``, in seconds."""

from __future__ import annotations

import re

from placement.errors import InputError
from placement.io.feeds.pair_samples import PairSamples, ends_of
from placement.io.feeds.registry import Content, Feed, FeedRequest, RttReading
from placement.io.formats.tables import check_row_length

__all__ = ["FEED"]

_ROW = re.compile(r"(\d+):((?:\s+\S+)+)\s*")


def _header(content: Content) -> list[str]:
    line = next((line for line in content.head.splitlines() if line.strip()), "")
    return line.split()


def _recognises(content: Content) -> bool:
    header = _header(content)
    return "median" in header and "loss" in header and "ping1" in header


def _read(content: Content, request: FeedRequest) -> RttReading:
    columns = _header(content)
    pings = [i for i, name in enumerate(columns) if re.fullmatch(r"ping\d+", name)]
    if not pings:
        raise InputError(
            "no columns of samples",
            source=content.source,
            field="header",
            value=" ".join(columns),
            expected="rrdtool fetch with ping1, ping2, …",
        )
    target, slave = _ends(content, request)
    found = PairSamples(content.source)
    lines = iter(enumerate((content.text or "").splitlines(), 1))
    for number, line in lines:
        if not (match := _ROW.fullmatch(line)):
            continue
        place = f"{content.source}, row {number}"
        cells = match[2].split()
        check_row_length(cells, columns, place)
        found.probe(slave, target, place)
        for i in pings:
            if cells[i].lower() not in ("nan", "-nan"):
                found.answer(slave, target, cells[i], place, unit=1000.0)
    return found.reading("smokeping, seconds")


def _ends(content: Content, request: FeedRequest) -> tuple[str, str]:
    """Return target and slave: smokeping names the files of its slaves ``Target~slave.rrd``."""
    first, second = ends_of(content, request)
    if request.measured_from:
        return second, first
    return (first, second) if "~" in content.stem else (second, first)


FEED = Feed("smokeping", "text of rrdtool fetch from smokeping", _recognises, _read)
