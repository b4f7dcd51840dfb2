"""RTTs in documents: Consul, MongoDB, RIPE Atlas, cloudping.co."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
from pathlib import Path

from placement.errors import InputError
from placement.io.feeds.blocks import json_table
from placement.io.feeds.pair_samples import PairSamples
from placement.io.feeds.registry import Content, Feed, FeedRequest, RttReading
from placement.io.feeds.rtt_tables import read_block
from placement.io.formats.tables import refused

__all__ = ["ATLAS", "CLOUDPING", "CONSUL", "MONGODB"]

_COORDINATE = "Vec (numbers), Height and Adjustment in seconds"

# --- Consul --------------------------------------------------------------------------------------
#
# Coordinates of /v1/coordinate/datacenters or /v1/coordinate/nodes. The RTT of two of them is their
# Euclidean distance plus both heights, corrected by both adjustments if the sum stays positive; in
# seconds. (Vivaldi coordinates with heights, Dabek et al., SIGCOMM 2004, and Consul's manual.)
# Between data centres it is the median over their pairs of servers.


def _is_consul(content: Content) -> bool:
    entries = content.objects if isinstance(content.json, list) else []
    return bool(entries) and all({"Coord", "Coordinates"} & set(entry) for entry in entries)


def _read_consul(content: Content, request: FeedRequest) -> RttReading:
    source = content.source
    if not _is_consul(content):
        expected = "the answer of /v1/coordinate/datacenters or /v1/coordinate/nodes"
        words = "not coordinates of Consul"
        raise refused(source, "format", words, content.document, expected)
    groups: dict[str, list[tuple[list[float], float, float]]] = {}
    areas: dict[str, object] = {}
    for i, entry in enumerate(content.objects):
        several = "Coordinates" in entry
        name = entry.get("Datacenter" if several else "Node")
        nodes = entry["Coordinates"] if several else [entry]
        if several and areas.setdefault(str(name), entry.get("AreaID")) != entry.get("AreaID"):
            continue  # the same data centre in another network area
        if not isinstance(name, str) or not isinstance(nodes, list):
            raise refused(source, f"[{i}]", "not a coordinate", entry, _COORDINATE)
        for j, node in enumerate(nodes):
            told = node.get("Coord") if isinstance(node, dict) else None
            place = f"[{i}].Coordinates[{j}].Coord" if several else f"[{i}].Coord"
            groups.setdefault(name, []).append(_coordinate(told, source, place))
    samples = PairSamples(source)
    for a, b in itertools.permutations(groups, 2):
        place = f"{source}: {a}, {b}"
        for x, y in itertools.product(groups[a], groups[b]):
            if len(x[0]) != len(y[0]):
                expected = f"{len(x[0])} dimensions, as the others"
                raise refused(place, "Vec", "not a coordinate", len(y[0]), expected)
            raw = math.dist(x[0], y[0]) + x[1] + y[1]
            adjusted = raw + x[2] + y[2]
            rtt = adjusted if adjusted > 0 else raw
            samples.answer(a, b, repr(rtt), place, unit=1000.0)
    reading = samples.reading("coordinates of Consul")
    note = "RTTs are estimates of Consul's coordinates, the same in both directions"
    # pairs of servers are no samples of one RTT over time
    return RttReading(reading.table, None, True, (note, f"{len(groups)} places"))


def _coordinate(value: object, source: str, field: str) -> tuple[list[float], float, float]:
    """Return vector, height and adjustment."""
    told = value if isinstance(value, dict) else {}
    vector = told.get("Vec")
    numbers = [*(vector if isinstance(vector, list) else [None])]
    numbers += [told.get("Height", 0.0), told.get("Adjustment", 0.0)]
    for number in numbers:
        whole = isinstance(number, int | float) and not isinstance(number, bool)
        if not whole or not abs(number) <= 1e6:
            raise refused(source, field, "not a coordinate", value, _COORDINATE)
    *found, height, adjustment = map(float, numbers)
    return found, height, adjustment


CONSUL = Feed(
    "consul", "coordinates of Consul (JSON of /v1/coordinate/…)", _is_consul, _read_consul
)

# --- MongoDB -------------------------------------------------------------------------------------
#
# rs.status(), as JSON or as the shell prints it; one file per member. A member reports pingMs to
# each other member; it is the one with self: true.

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
    if not start:
        expected = "one member with self: true, or --measured-from NAME"
        words = "the member that reports is unknown"
        raise refused(source, "members.self", words, own, expected)
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


MONGODB = Feed("mongodb", "rs.status() of MongoDB", _is_mongodb, _read_mongodb)

# --- RIPE Atlas -----------------------------------------------------------------------------------
#
# Results of ping measurements, a JSON list or an object a line. A probe is named by its number;
# --site-of 6042=frankfurt gives it a site.


def _is_atlas(content: Content) -> bool:
    one = content.objects[:1]
    return bool(one) and {"prb_id", "msm_id"} <= set(one[0])


def _read_atlas(content: Content, request: FeedRequest) -> RttReading:
    found = PairSamples(content.source)
    for i, one in enumerate(content.objects):
        place = f"{content.source}: [{i}]"
        if one.get("type", "ping") != "ping":
            raise InputError(
                "not a ping of RIPE Atlas",
                source=place,
                field="type",
                value=one.get("type"),
                expected="results of ping measurements",
            )
        start = request.measured_from or str(one.get("prb_id", ""))
        end = str(one.get("dst_name") or one.get("dst_addr") or "")
        run = found.probe(start, end, place, run=True)
        packets = one.get("result")
        for packet in packets if isinstance(packets, list) else []:
            if not isinstance(packet, dict) or packet.get("rtt") is None:
                continue
            if packet.get("dup"):
                found.skip("duplicate")
            else:
                found.answer(start, end, str(packet["rtt"]), place)
        sent, received = one.get("sent"), one.get("rcvd")
        if isinstance(sent, int) and isinstance(received, int):
            average = one.get("avg")
            told = average is not None and received > 0 and not run.samples
            texts = (str(average),) if told else ("0",) * bool(run.samples)
            found.summary(start, end, (sent, received), texts, place)
    found.notes.append("sources are the numbers of probes")
    return found.reading("RIPE Atlas")


ATLAS = Feed("atlas", "ping results of RIPE Atlas (JSON)", _is_atlas, _read_atlas)

# --- cloudping.co ---------------------------------------------------------------------------------
#
# /latencies: {"metadata": {"percentile": "p_50", …}, "data": {"eu-west-1": {"us-east-1": 67.9}}};
# the older /averages/day: [{"region": …, "averages": [{"regionTo": …, "average": …}, …]}, …].


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


CLOUDPING = Feed("cloudping", "answer of cloudping.co (JSON)", _is_cloudping, _cloudping)
