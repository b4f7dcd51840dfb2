"""Status of a replica set of MongoDB.

rs.status(), as JSON or as the shell prints it; one file per member. A member reports pingMs to
each other member; it is the one with self: true.
"""

from __future__ import annotations

import re

from placement.errors import InputError, require
from placement.io.feeds.pair_samples import PairSamples
from placement.io.feeds.registry import Content, Feed, FeedRequest, RttReading

# JSON, extended JSON ({"$numberLong": "1"}), the old shell (NumberLong(1)), mongosh (Long("1")).
_TOKEN = re.compile(
    r"""(?<![\w\\])["']?(name|self|pingMs|health)["']?\s*:\s*
    (?:["']([^"'\n]*)["']|(true|false)
    |(?:NumberLong|Long|Int32)\(\s*["']?(-?\d+)["']?\s*\)
    |\{\s*["']?\$number(?:Long|Int)["']?\s*:\s*["'](-?\d+)["']\s*\}|(-?\d+(?:\.\d+)?))""",
    re.VERBOSE,
)
_MEMBERS = re.compile(r"""["']?members["']?\s*:\s*\[""")


def _is_mongodb(content: Content) -> bool:
    return bool(_MEMBERS.search(content.head)) and "stateStr" in content.head


def _read_mongodb(content: Content, request: FeedRequest) -> RttReading:
    text, source = content.text or "", content.source
    begin = _MEMBERS.search(text)
    if begin is None:
        raise InputError(
            "no members", source=source, field="members", expected="the text of rs.status()"
        )
    members: list[dict[str, str]] = []
    for match in _TOKEN.finditer(text, begin.end()):
        key, *values = match.groups()
        value = next((one for one in values if one is not None), "")
        if key == "name" and match[2]:
            row = text.count("\n", 0, match.start()) + 1
            members.append({"name": match[2], "place": f"{source}, row {row}"})
        elif members:
            members[-1][key] = value
    own = [member["name"] for member in members if member.get("self") == "true"]
    start = request.measured_from or (own[0] if len(own) == 1 else "")
    expected = "one member with self: true, or --measured-from NAME"
    words = "the member that reports is unknown"
    require(start, "members.self", words, own, expected, source=source)
    found = PairSamples(source)
    for member in members:
        name, place = member["name"], member["place"]
        if name in own or name == start:
            continue
        found.probe(start, name, place)
        if member.get("pingMs") and member.get("health", "1") not in ("0", "0.0"):
            found.answer(start, name, member["pingMs"], place)
    found.notes.append("pingMs is whole milliseconds, smoothed by MongoDB")
    return found.reading("rs.status(), pingMs")


FEED = Feed(
    "mongodb", "rs.status() of MongoDB", _is_mongodb, _read_mongodb,
    notes="JSON or as the shell prints it, one file for each member; pingMs, whole milliseconds",
)  # fmt: skip
