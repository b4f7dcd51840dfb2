"""Text of traceroute, tracert and tracepath.

The last hop counts where the target answered itself; a mark such as !H says that a router refused.
"""

from __future__ import annotations

import re

from placement.io.feeds.pair_samples import PairSamples, origin_of
from placement.io.feeds.registry import Content, Feed, FeedRequest, RttReading

_TRACE_START = re.compile(
    r"(?:traceroute6? to|Tracing route to) (\S+?)(?: [(\[]([0-9a-fA-F.:]+)[)\]])?(?:,? .*)?"
)
_TRACE_HOP = re.compile(r"\s{0,9}\d+\s+(.*)")
_TRACE_ADDRESS = re.compile(r"(?:\d+\.){3}\d+|[\da-fA-F]*:[\da-fA-F:]*:[\da-fA-F.]*")
_TRACE_TIME = re.compile(r"<?(\d+(?:\.\d+)?)\s?ms\b")


def _is_traceroute(content: Content) -> bool:
    lines = content.head.splitlines()[:50]
    return any(_TRACE_START.fullmatch(line.strip()) for line in lines)


def _read_traceroute(content: Content, request: FeedRequest) -> RttReading:
    found = PairSamples(content.source)
    start, target, last = origin_of(content, request), ("", ""), ("", "")
    for place, line in (*content.lines, (content.source, "traceroute to the end")):
        if match := _TRACE_START.fullmatch(line.strip()):
            if target[0]:
                _add_trace(found, start, target, *last)
            target, last = (match[1], match[2] or match[1]), (place, "")
        elif match := _TRACE_HOP.fullmatch(line[:1000]):
            last = place, match[1]
    found.notes.append(f"traceroute does not name its own host; {start!r} was taken")
    return found.reading("traceroute, last hop")


def _add_trace(
    found: PairSamples, start: str, target: tuple[str, str], place: str, hop: str
) -> None:
    """Add the times of a last hop that is the target."""
    run = found.probe(start, target[0], place, run=True)
    found.aliases[target[1]] = target[0]
    words = [word.strip("()[],") for word in hop.split()]
    hosts = set(filter(_TRACE_ADDRESS.fullmatch, words))
    if "!" in hop or not {*target} & set(words) or len(hosts) > 1:
        found.notes.append(f"{place}: the trace does not end at {target[0]}")
        return
    for text in _TRACE_TIME.findall(hop):
        found.answer(start, target[0], text, place)
    sent = len(run.samples) + hop.count("*")
    found.summary(start, target[0], (sent, len(run.samples)), ("0",) * bool(run.samples), place)


FEED = Feed(
    "traceroute", "text of traceroute and tracert", _is_traceroute, _read_traceroute,
    notes="the last hop, where it is the target",
)  # fmt: skip
