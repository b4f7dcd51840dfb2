"""Coordinates of Consul.

Coordinates of /v1/coordinate/datacenters or /v1/coordinate/nodes. The RTT of two of them is their
Euclidean distance plus both heights, corrected by both adjustments if the sum stays positive; in
seconds. (Vivaldi coordinates with heights, Dabek et al., SIGCOMM 2004, and Consul's manual.)
Between data centres it is the median over their pairs of servers.
"""

from __future__ import annotations

import itertools
import math

from placement.errors import refused, require
from placement.io.feeds.pair_samples import PairSamples
from placement.io.feeds.registry import Content, Feed, FeedRequest, RttReading

_COORDINATE = "Vec (numbers), Height and Adjustment in seconds"


def _is_consul(content: Content) -> bool:
    entries = content.objects if isinstance(content.json, list) else []
    return bool(entries) and all({"Coord", "Coordinates"} & set(entry) for entry in entries)


def _read_consul(content: Content, request: FeedRequest) -> RttReading:
    source = content.source
    expected = "the answer of /v1/coordinate/datacenters or /v1/coordinate/nodes"
    words = "not coordinates of Consul"
    require(_is_consul(content), "format", words, content.document, expected, source=source)
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


FEED = Feed(
    "consul", "coordinates of Consul (JSON of /v1/coordinate/…)", _is_consul, _read_consul,
    notes="estimates, the same in both directions; medians over pairs of servers",
)  # fmt: skip
