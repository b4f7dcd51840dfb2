"""fping: the summaries of ``-C`` (all samples) and ``-c`` (minimum, average, maximum)."""

from __future__ import annotations

import re

from placement.io.feeds.pair_samples import PairSamples, origin_of
from placement.io.feeds.registry import Content, Feed, FeedRequest, RttReading

__all__ = ["FEED"]

# -C: "host : 91.7 - 29.2"; -c: "host : [0], 84 bytes, 0.65 ms (0.65 avg, 0% loss)" per answer and
# "host : xmt/rcv/%loss = 3/3/0%, min/avg/max = 0.03/0.04/0.05" at the end.
_SAMPLES = re.compile(r"(\S+)\s+:((?:\s+(?:\d+(?:\.\d+)?|-))+)\s*")
_ANSWER = re.compile(r"(\S+)\s+:\s+\[\d+\], (?:\d+ bytes, ([\d.]+) ms \(.*|timed out \(.*)")
_SUMMARY = re.compile(
    r"(\S+)\s+:\s+xmt/rcv/%loss = \d+/\d+/[\d.]+%(?:, min/avg/max = [\d.]+/([\d.]+)/[\d.]+)?\s*"
)


def _recognises(content: Content) -> bool:
    lines = [line for line in content.head.splitlines()[:200] if line.strip()]
    return any(form.fullmatch(line) for line in lines for form in (_SAMPLES, _ANSWER, _SUMMARY))


def _read(content: Content, request: FeedRequest) -> RttReading:
    found = PairSamples(content.source)
    start = origin_of(content, request)
    averages: list[tuple[str, str, str]] = []
    for number, line in enumerate((content.text or "").splitlines(), 1):
        place = f"{content.source}, row {number}"
        if match := _SAMPLES.fullmatch(line):
            found.probe(start, match[1], place)
            for text in match[2].split():
                if text != "-":
                    found.answer(start, match[1], text, place)
        elif match := _ANSWER.fullmatch(line):
            found.probe(start, match[1], place)
            if match[2] is not None:
                found.answer(start, match[1], match[2], place)
        elif match := _SUMMARY.fullmatch(line):
            found.probe(start, match[1], place)
            if match[2] is not None:
                averages.append((match[1], match[2], place))
    for end, average, place in averages:
        if not found.samples[start, end]:  # the samples of the same run say more
            found.answer(start, end, average, place)
    found.notes.append(f"fping does not name its own host; {start!r} was taken")
    return found.reading("fping")


FEED = Feed("fping", "text of fping -C or -c", _recognises, _read)
