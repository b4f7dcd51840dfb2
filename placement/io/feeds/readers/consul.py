"""Consul: network coordinates of ``/v1/coordinate/datacenters`` or ``/v1/coordinate/nodes``.

The RTT of two coordinates is their Euclidean distance plus both heights, corrected by both
adjustments if the sum stays positive; all in seconds. (Vivaldi coordinates with heights, Dabek et
al., SIGCOMM 2004, and the documentation of Consul.) Between data centres it is the median over
their pairs of servers.
"""

from __future__ import annotations

import itertools
import math

from placement.errors import InputError
from placement.io.feeds.pair_samples import PairSamples
from placement.io.feeds.registry import Content, Feed, FeedRequest, RttReading

__all__ = ["FEED"]

_Coordinate = tuple[list[float], float, float]


def _entries(content: Content) -> list[dict[str, object]] | None:
    value = content.json
    if not isinstance(value, list) or not value:
        return None
    entries = [entry for entry in value if isinstance(entry, dict)]
    fits = len(entries) == len(value) and all(
        "Coord" in entry or "Coordinates" in entry for entry in entries
    )
    return entries if fits else None


def _recognises(content: Content) -> bool:
    return _entries(content) is not None


def _read(content: Content, request: FeedRequest) -> RttReading:
    entries = _entries(content)
    if entries is None:
        raise InputError(
            "not coordinates of Consul",
            source=content.source,
            field="format",
            value=content.document,
            expected="the answer of /v1/coordinate/datacenters or /v1/coordinate/nodes",
        )
    groups: dict[str, list[_Coordinate]] = {}
    areas: dict[str, object] = {}
    for i, entry in enumerate(entries):
        if "Coordinates" in entry:
            name, nodes, field = entry.get("Datacenter"), entry["Coordinates"], f"[{i}].Coordinates"
            if str(name) in areas and areas[str(name)] != entry.get("AreaID"):
                continue  # the same data centre in another network area
            areas[str(name)] = entry.get("AreaID")
        else:
            name, nodes, field = entry.get("Node"), [entry], f"[{i}]"
        if not isinstance(name, str) or not isinstance(nodes, list):
            raise _wrong(content.source, field, entry)
        found = groups.setdefault(name, [])
        for j, node in enumerate(nodes):
            place = f"{field}[{j}].Coord"
            coordinate = node.get("Coord") if isinstance(node, dict) else None
            found.append(_coordinate(coordinate, content.source, place))
    samples = PairSamples(content.source)
    for a, b in itertools.product(groups, groups):
        place = f"{content.source}: {a}, {b}"
        if a == b:
            continue
        samples.probe(a, b, place)
        for x, y in itertools.product(groups[a], groups[b]):
            if len(x[0]) != len(y[0]):
                raise _wrong(place, "Vec", len(y[0]), f"{len(x[0])} dimensions, as the others")
            samples.answer(a, b, repr(_distance(x, y)), place, unit=1000.0)
    reading = samples.reading("coordinates of Consul")
    note = "RTTs are estimates of Consul's coordinates, the same in both directions"
    # pairs of servers are no samples of one RTT over time
    return RttReading(reading.table, None, True, (note, f"{len(groups)} places"))


def _coordinate(value: object, source: str, field: str) -> _Coordinate:
    if not isinstance(value, dict):
        raise _wrong(source, field, value)
    vector = value.get("Vec")
    numbers = [*(vector if isinstance(vector, list) else [None])]
    rest = [value.get("Height", 0.0), value.get("Adjustment", 0.0)]
    for number in (*numbers, *rest):
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise _wrong(source, field, value)
        if not math.isfinite(number) or abs(number) > 1e6:
            raise _wrong(source, field, value)
    return [float(number) for number in numbers], float(rest[0]), float(rest[1])


def _distance(a: _Coordinate, b: _Coordinate) -> float:
    raw = math.dist(a[0], b[0]) + a[1] + b[1]
    adjusted = raw + a[2] + b[2]
    return adjusted if adjusted > 0 else raw


def _wrong(
    source: str,
    field: str,
    value: object,
    expected: str = "Vec (numbers), Height and Adjustment in seconds",
) -> InputError:
    return InputError(
        "not a coordinate", source=source, field=field, value=value, expected=expected
    )


FEED = Feed("consul", "coordinates of Consul (JSON of /v1/coordinate/…)", _recognises, _read)
