"""ping: the text of iputils, BSD, macOS and Windows; several runs may follow one another."""

from __future__ import annotations

import re

from placement.io.feeds.pair_samples import PairSamples, origin_of
from placement.io.feeds.registry import Content, Feed, FeedRequest, RttReading

__all__ = ["FEED"]

_START = re.compile(r"(?:PING|Pinging)\s+(\S+?):?\s.*")
_ANSWER = re.compile(r".*\btime(?:=|<)\s*([\d.]+)\s*ms.*")
_SUMMARY = re.compile(r"(?:rtt|round-trip) min/avg/max(?:/\w+)? = [\d.]+/([\d.]+)/.*")


def _recognises(content: Content) -> bool:
    return any(_START.fullmatch(line) for line in content.head.splitlines()[:50])


def _read(content: Content, request: FeedRequest) -> RttReading:
    found = PairSamples(content.source)
    start, end = origin_of(content, request), ""
    for number, line in enumerate((content.text or "").splitlines(), 1):
        place = f"{content.source}, row {number}"
        if match := _START.fullmatch(line):
            end = match[1]
            found.probe(start, end, place)
        elif end and (match := _ANSWER.fullmatch(line)):
            found.answer(start, end, match[1], place)
        elif end and (match := _SUMMARY.fullmatch(line)) and not found.samples[start, end]:
            found.answer(start, end, match[1], place)  # ping -q prints no samples
    found.notes.append(f"ping does not name its own host; {start!r} was taken")
    return found.reading("ping")


FEED = Feed("ping", "text of ping", _recognises, _read)
