"""Text of ping and its kin.

iputils, BSD, macOS, Windows, BusyBox, hping and tcping; several runs may follow one another. An
answer counts if its line ends after the time: a mark such as (DUP!) says that it is no sample.
"""

from __future__ import annotations

import re

from placement.io.feeds.pair_samples import PairSamples, origin_of
from placement.io.feeds.registry import Content, Feed, FeedRequest, RttReading

_PING_START = re.compile(
    r"PING6?\([^()]*\)\s+(?P<near>\S+)\s+-->\s+(?P<far>\S+)"
    r"|(?:PING6?|Pinging|HPING)\s+\((?P<only>[^()\s]+)\).*"
    r"|(?:PING6?|Pinging|HPING)\s+(?P<name>[^\s(\[]+?):?(?:[\s(\[].*)?"
    r"|Ping wird ausgef\S+ f\S+ (?P<de>\S+).*|Envoi d.une requ\S+ .*sur (?P<fr>\S+).*"
    r"|Haciendo ping a (?P<es>\S+).*"
)
_PING_ANSWER = re.compile(
    r".*\b(?:time|rtt|Zeit|temps|tiempo|tempo)\s?[=<]\s?([\d.,]+)\s*(ms|msec|us|µs)\b"
    r"(?:\s+(?:TTL|ttl|protocol|port)=\S+|\s)*(\(.*\)|\[<-.*)?\s*"
)
_TCPING = re.compile(
    r"(?:Probing|Connected to|Connecting to)\s+(?:tcp://)?(\[[^\]\s]+\]|[^\s:/]+)(?:[:/]\S*)?\s.*?"
    r"(?:time=|:\s+)([\d.]+)\s*ms\b.*"
)
_TIMES = re.compile(
    r"(?:rtt|round-trip)\s+min/avg/max(?:/\w[\w-]*)?\s*=\s*([\d.]+)/([\d.]+)/([\d.]+).*"
)
_PING_COUNTS = re.compile(
    r"(\d{1,18}) packets? (?:transmitted|tramitted), (\d{1,18}) (?:packets? )?received.*"
    r"|.*(?:Sent|Gesendet) = (\d{1,18}), (?:Received|Empfangen) = (\d{1,18}).*"
)
_ADDRESS = re.compile(r"[(\[]([0-9a-fA-F.:]+)(?:%\w+)?[)\]]")
_DAMAGED = re.compile(r"wrong data byte .*|.*(?:BAD CHECKSUM|truncated).*")


def _is_ping(content: Content) -> bool:
    lines = content.head.splitlines()[:50]
    return any(_PING_START.fullmatch(line) or _TCPING.fullmatch(line) for line in lines)


def _read_ping(content: Content, request: FeedRequest) -> RttReading:
    found = PairSamples(content.source)
    own, end = origin_of(content, request), ""
    start = own
    counts: tuple[int, int] | None = None
    answers = 0
    for place, line in content.lines:
        if match := _PING_START.fullmatch(line):
            end = next(name for key, name in match.groupdict().items() if name and key != "near")
            start = request.measured_from or match["near"] or own
            found.probe(start, end, place, run=True)
            found.aliases |= dict.fromkeys(_ADDRESS.findall(line), end)
            counts, answers = None, 0
        elif match := _TCPING.fullmatch(line):
            end = match[1].strip("[]")
            found.answer(start, end, match[2], place)
        elif not end:
            continue
        elif match := _PING_ANSWER.fullmatch(line):
            if match[3]:
                found.skip(match[3].strip("()[] ") if match[3].startswith("(") else "other address")
                continue
            unit = 1.0 if match[2].startswith("m") else 1e-3
            found.answer(start, end, match[1].replace(",", "."), place, unit=unit)
            answers += 1
        elif _DAMAGED.fullmatch(line) and answers:
            found.probe(start, end, place).samples.pop()
            found.skip("damaged")
            answers -= 1
        elif match := _PING_COUNTS.fullmatch(line):
            sent, received = (int(text) for text in match.groups() if text)
            counts = (sent, received)
            if not received:
                found.summary(start, end, counts, (), place)
            elif answers:
                found.probe(start, end, place)
                found.summary(start, end, counts, ("0", "0", "0"), place)
        elif (match := _TIMES.fullmatch(line)) and not answers:  # ping -q prints no samples
            found.summary(start, end, counts or (1, 1), match.groups(), place)
    if any(near == own for near, _ in found.runs):
        found.notes.append(f"ping does not name its own host; {own!r} was taken")
    return found.reading("ping")


FEED = Feed(
    "ping", "text of ping, ping6, hping and tcping", _is_ping, _read_ping,
    notes="several runs may stand in one file; otherwise as fping",
)  # fmt: skip
