"""MongoDB: ``rs.status()``, as JSON or as the shell prints it; one file per member.

A member reports ``pingMs`` to each other member; it is the one with ``self: true``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from placement.errors import InputError
from placement.io.feeds.pair_samples import PairSamples
from placement.io.feeds.registry import Content, Feed, FeedRequest, RttReading

__all__ = ["FEED"]

# JSON, extended JSON ({"$numberLong": "1"}), the old shell (NumberLong(1)), mongosh (Long("1")).
_TOKEN = re.compile(
    r"""(?<![\w\\])["']?(name|self|pingMs|health)["']?\s*:\s*
    (?:["']([^"'\n]*)["']|(true|false)
    |(?:NumberLong|Long|Int32)\(\s*["']?(-?\d+)["']?\s*\)
    |\{\s*["']?\$number(?:Long|Int)["']?\s*:\s*["'](-?\d+)["']\s*\}|(-?\d+(?:\.\d+)?))""",
    re.VERBOSE,
)
_MEMBERS = re.compile(r"""["']?members["']?\s*:\s*\[""")


@dataclass
class _ReplicaSetMember:
    name: str
    row: int
    own: bool = False
    ping: str = ""
    healthy: bool = True


def _recognises(content: Content) -> bool:
    return bool(_MEMBERS.search(content.head)) and "stateStr" in content.head


def _read(content: Content, request: FeedRequest) -> RttReading:
    text = content.text or ""
    begin = _MEMBERS.search(text)
    if begin is None:
        raise InputError(
            "no members", source=content.source, field="members", expected="the text of rs.status()"
        )
    members: list[_ReplicaSetMember] = []
    for match in _TOKEN.finditer(text, begin.end()):
        key, quoted, truth, *numbers = match.groups()
        value = next((number for number in numbers if number is not None), "")
        if key == "name" and quoted:
            members.append(_ReplicaSetMember(quoted, text.count("\n", 0, match.start()) + 1))
        elif members and key == "self" and truth == "true":
            members[-1].own = True
        elif members and key == "pingMs" and value:
            members[-1].ping = value
        elif members and key == "health" and value:
            members[-1].healthy = float(value) > 0
    own = [member.name for member in members if member.own]
    start = request.measured_from or (own[0] if len(own) == 1 else "")
    if not start:
        raise InputError(
            "the member that reports is unknown",
            source=content.source,
            field="members.self",
            value=own,
            expected="one member with self: true, or --measured-from NAME",
        )
    found = PairSamples(content.source)
    for member in members:
        place = f"{content.source}, row {member.row}"
        if member.own or member.name == start:
            continue
        found.probe(start, member.name, place)
        if member.ping and member.healthy:
            found.answer(start, member.name, member.ping, place)
    found.notes.append("pingMs is whole milliseconds, smoothed by MongoDB")
    return found.reading("rs.status(), pingMs")


FEED = Feed("mongodb", "rs.status() of MongoDB", _recognises, _read)
