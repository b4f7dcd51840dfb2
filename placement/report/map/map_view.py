"""Content and layout of the map, before it is drawn.

Sites with coordinates are projected; when no site has any, places come from the RTTs themselves and
no land is drawn. The replicas are numbered, the leader first, then the other voters in the order
in which they answer, then the rest; so that a mark can be found in a list whatever its size.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

import numpy as np

from placement.model.instance import Instance
from placement.plan import Plan
from placement.report.charts.markup import clipped
from placement.report.map.projection import great_circle, project, scaled_places, unproject
from placement.support.checks import FloatArray
from placement.text import display_width, escape

Role = Literal["leader", "voter", "witness", "replica", "site"]

WIDTH = 1000.0
"""Units across."""

_LABEL_HEIGHT = 17.0
_LETTER = 8.2
_SMALL_LETTER = 6.2
_LONGEST = 26
_MARK = 13.0
_COMMITTERS = 8
"""Clients whose way to the leader is drawn."""

_MOST_SITES = 60
"""Sites without a replica whose name is tried."""

_READERS = 300
"""Clients whose way to their replica is drawn."""

_STEPS = 16
"""Straight pieces of a drawn way to a replica."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A site or a client on the map.

    Attributes
    ----------
    name, x, y
        Where; units of the view, y downwards.
    role
        Of a site; "client" for a client.
    number
        Of a replica, from 1; 0 for anything else.
    size
        Radius.
    share
        Of a client: its share of all operations.
    latency
        Of a client: ms, NaN when it issued nothing or there is no plan.
    placed
        Whether it has coordinates; else it stands in the row at the foot of the map.
    index
        Of the site or the client in the instance.
    """

    name: str
    x: float
    y: float
    role: Role | Literal["client"]
    number: int = 0
    size: float = 4.0
    share: float = 0.0
    latency: float = math.nan
    placed: bool = True
    index: int = -1


@dataclass(frozen=True, slots=True)
class Arrow:
    """A way of messages.

    Attributes
    ----------
    kind
        "vote" from the leader to a voter it waits for, "late" to one it does not wait for, "ask"
        from a client to the leader, "read" from a client to its nearest replica.
    pieces
        Lines of (x, y), shape (k, 2) each; several when the way passes the rim of the map.
    text
        What travels, with the RTT.
    """

    kind: Literal["vote", "late", "ask", "read"]
    pieces: tuple[FloatArray, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Label:
    """A name beside a mark: anchor point, whether the text ends or starts there, role."""

    text: str
    x: float
    y: float
    anchor: Literal["start", "end", "middle"]
    role: Role | Literal["client"]


@dataclass(frozen=True, slots=True)
class MapView:
    """Shapes of a map, in units of a view `width` across and `height` down."""

    width: float
    height: float
    land: tuple[FloatArray, ...]
    water: tuple[FloatArray, ...]
    graticule: tuple[FloatArray, ...]
    clients: tuple[Mark, ...]
    sites: tuple[Mark, ...]
    arrows: tuple[Arrow, ...]
    labels: tuple[Label, ...]
    note: str

    @property
    def replicas(self) -> tuple[Mark, ...]:
        """Sites that hold a replica, by number."""
        return tuple(sorted((m for m in self.sites if m.number), key=lambda m: m.number))


@dataclass(frozen=True, slots=True)
class _Frame:
    """Maps the plane to the view."""

    left: float
    top: float
    scale: float
    height: float

    def __call__(self, points: FloatArray) -> FloatArray:
        return np.stack(
            [(points[:, 0] - self.left) * self.scale, (self.top - points[:, 1]) * self.scale],
            axis=1,
        )

    def plane(self, x: float, y: float) -> tuple[float, float]:
        """Return the point of the plane under a point of the view."""
        return self.left + x / self.scale, self.top - y / self.scale


@dataclass(frozen=True, slots=True, eq=False)
class Ground:
    """The part of a map that no plan changes: the frame, the land and the graticule."""

    frame: _Frame
    geographic: bool
    land: tuple[FloatArray, ...]
    water: tuple[FloatArray, ...]
    graticule: tuple[FloatArray, ...]

    def place_at(self, x: float, y: float) -> tuple[float, float] | None:
        """Return latitude and longitude of a point of the view; None where there is no globe."""
        return unproject(*self.frame.plane(x, y)) if self.geographic else None


@cache
def _outline() -> dict[str, tuple[FloatArray, ...]]:
    """Return the rings of land, and of water inside it, on the plane (Natural Earth)."""
    data = json.loads((resources.files("placement.report.map") / "land.json").read_text())
    return {
        key: tuple(project(ring, wrap=False) for ring in data[key]) for key in ("land", "water")
    }


def ground_of(instance: Instance) -> Ground:
    """Return the ground under the sites and clients of an instance."""
    at = _coordinates(instance.site_coordinates, len(instance.sites))
    geographic, plane, crowd = _places(instance, at)
    frame = _frame(np.concatenate([plane, crowd]), geographic)
    return Ground(
        frame,
        geographic,
        tuple(map(frame, _outline()["land"])) if geographic else (),
        tuple(map(frame, _outline()["water"])) if geographic else (),
        tuple(map(frame, _graticule())) if geographic else (),
    )


def _places(instance: Instance, at: FloatArray) -> tuple[bool, FloatArray, FloatArray]:
    """Return whether there is a globe, and the places of sites and clients on the plane."""
    around = _client_coordinates(instance, at)
    if np.isfinite(at).all(axis=1).any():
        return True, _projected(at), _projected(around)
    rtt = instance.site_rtt if instance.site_rtt.ndim == 2 else instance.site_rtt[-1]
    return False, scaled_places(rtt), np.full_like(around, np.nan)


def map_view(instance: Instance, plan: Plan | None = None, ground: Ground | None = None) -> MapView:
    """Lay the map out.

    Parameters
    ----------
    instance
        Sites and clients, with coordinates or without.
    plan
        Whose replicas, voters and leader are shown; None, or a plan that found nothing: sites only.
    ground
        That of the same or of a similar instance, so that maps have one frame; None: its own.
    """
    found = plan if plan is not None and plan.found else None
    at = _coordinates(instance.site_coordinates, len(instance.sites))
    around = _client_coordinates(instance, at)
    ground = ground_of(instance) if ground is None else ground
    frame, note = ground.frame, ""
    geographic, plane, crowd = _places(instance, at)
    if not geographic:
        note = (
            "The sites have no coordinates: they are placed so that distances resemble RTTs, and "
            "clients are not shown."
        )
    roles, numbers = _roles(instance, found)
    sites = _site_marks(instance, frame, plane, roles, numbers)
    height = frame.height + (56.0 if any(not mark.placed for mark in sites) else 0.0)
    clients = _client_marks(instance, frame, crowd, found)
    missing = len(instance.clients) - len(clients)
    if geographic and missing:
        note = f"{missing} of {len(instance.clients)} clients have no coordinates and no mark."
    if any(not mark.placed for mark in sites):
        note += (" " if note else "") + "Sites at the foot of the map have no coordinates."
    arrows = () if found is None else _arrows(found, frame, at, around, geographic, sites)
    return MapView(
        WIDTH,
        height,
        ground.land,
        ground.water,
        ground.graticule,
        clients,
        sites,
        arrows,
        _labels(sites, height),
        note,
    )


def _coordinates(values: FloatArray | None, count: int) -> FloatArray:
    """(longitude, latitude) per place, NaN where unknown."""
    if values is None:
        return np.full((count, 2), np.nan)
    return np.asarray(values[:, ::-1], dtype=np.float64)


def _client_coordinates(instance: Instance, at: FloatArray) -> FloatArray:
    """Return the coordinates of clients; a client named like a site is at the site."""
    around = _coordinates(instance.client_coordinates, len(instance.clients)).copy()
    home = {name: s for s, name in enumerate(instance.sites)}
    for c, name in enumerate(instance.clients):
        if name in home and not np.isfinite(around[c]).all():
            around[c] = at[home[name]]
    return around


def _projected(lonlat: FloatArray) -> FloatArray:
    plane = np.full(lonlat.shape, np.nan)
    known = np.isfinite(lonlat).all(axis=1)
    if known.any():
        plane[known] = project(lonlat[known])
    return plane


def _frame(points: FloatArray, geographic: bool) -> _Frame:
    """Fit the sites and clients, with room for names, between 2.4:1 and 1.6:1."""
    known = points[np.isfinite(points).all(axis=1)]
    if not len(known):
        known = np.zeros((1, 2))
    low, high = known.min(axis=0), known.max(axis=0)
    least = 0.9 if geographic else 2.0
    width = max(float(high[0] - low[0]) * 1.12 + 0.1, least)
    height = max(float(high[1] - low[1]) * 1.12 + 0.16, width / 2.4)
    width = max(width, 1.6 * height)
    middle = (low + high) / 2
    left, top = float(middle[0] - width / 2), float(middle[1] + height / 2)
    if geographic and width < 5.3:
        left = min(max(left, -2.75), 2.75 - width)
    scale = WIDTH / width
    return _Frame(left, top, scale, height * scale)


def _roles(instance: Instance, plan: Plan | None) -> tuple[dict[int, Role], dict[int, int]]:
    if plan is None or plan.configuration is None:
        return {}, {}
    index = {name: i for i, name in enumerate(instance.sites)}
    leads = [] if plan.leader is None else [plan.configuration.leader]
    voters = [index[name] for name in plan.voters if index[name] not in leads]
    rest = [s for s in plan.configuration.replicas if s not in plan.configuration.voters]
    roles: dict[int, Role] = dict.fromkeys(leads, "leader")
    witnesses = set(plan.configuration.witnesses)
    for s in voters:
        roles[s] = "witness" if s in witnesses else "voter"
    for s in rest:
        roles[s] = "replica"
    return roles, {s: i for i, s in enumerate([*leads, *voters, *rest], start=1)}


def _site_marks(
    instance: Instance,
    frame: _Frame,
    plane: FloatArray,
    roles: dict[int, Role],
    numbers: dict[int, int],
) -> tuple[Mark, ...]:
    spots = frame(np.nan_to_num(plane))
    lost = 0
    marks = []
    for s, name in enumerate(instance.sites):
        known = bool(np.isfinite(plane[s]).all())
        x, y = (float(v) for v in spots[s])
        if not known:
            x, y = 24.0 + 34.0 * (lost % 28), frame.height + 18.0 + 20.0 * (lost // 28 % 2)
            lost += 1
        role = roles.get(s, "site")
        size = _MARK if role != "site" else (4.0 if len(instance.sites) <= 120 else 2.8)
        number = numbers.get(s, 0)
        marks.append(Mark(name, x, y, role, number, size, placed=known, index=s))
    # replicas last, the leader on top of all
    return tuple(sorted(marks, key=lambda m: (m.number > 0, -m.number)))


def _client_marks(
    instance: Instance, frame: _Frame, crowd: FloatArray, plan: Plan | None
) -> tuple[Mark, ...]:
    issued = instance.counts.sum(axis=(0, 2))
    latency = (
        [math.nan] * len(issued) if plan is None else [row.latency for row in plan.client_rows]
    )
    largest, total = float(issued.max()), float(issued.sum())
    biggest = max(4.0, 20.0 * min(1.0, math.sqrt(100 / len(issued))))
    spots = frame(np.nan_to_num(crowd))
    marks = [
        Mark(
            name,
            float(spots[c, 0]),
            float(spots[c, 1]),
            "client",
            0,
            1.5 + biggest * math.sqrt(float(issued[c]) / largest) if largest > 0 else 2.0,
            float(issued[c]) / total if total > 0 else 0.0,
            latency[c],
            index=c,
        )
        for c, name in enumerate(instance.clients)
        if np.isfinite(crowd[c]).all()
    ]
    return tuple(sorted(marks, key=lambda mark: -mark.size))


def _arrows(
    plan: Plan,
    frame: _Frame,
    at: FloatArray,
    around: FloatArray,
    geographic: bool,
    sites: tuple[Mark, ...],
) -> tuple[Arrow, ...]:
    """The commit path (heaviest clients → leader → voters) and the reads."""
    instance, configuration = plan.problem.instance, plan.configuration
    if configuration is None:
        return ()
    index = {name: i for i, name in enumerate(instance.sites)}
    spot = {mark.name: np.array([mark.x, mark.y]) for mark in sites}

    def way(
        start: FloatArray, end: str, from_name: str | None = None, steps: int = 40
    ) -> tuple[FloatArray, ...]:
        goal = at[index[end]]
        if geographic and np.isfinite(start).all() and np.isfinite(goal).all():
            whole = great_circle(start.tolist(), goal.tolist(), steps)
            return tuple(map(frame, whole))
        if from_name is None:
            return ()
        return (np.stack([spot[from_name], spot[end]]),)

    leader = instance.sites[configuration.leader]
    home = at[configuration.leader]
    arrows: list[Arrow] = []
    heaviest = sorted(
        (c for c in range(len(instance.clients)) if np.isfinite(around[c]).all()),
        key=lambda c: -plan.client_rows[c].operations,
    )
    for c in heaviest[:_READERS] if geographic else ():
        row = plan.client_rows[c]
        if row.operations > 0:
            pieces = way(around[c], row.nearest, steps=_STEPS)
            if pieces:
                said = f"{row.client} reads at {row.nearest}: {row.to_nearest:.1f} ms"
                arrows.append(Arrow("read", pieces, said))
    led = plan.leader is not None
    for c in heaviest[:_COMMITTERS] if geographic and led else ():
        row = plan.client_rows[c]
        pieces = way(around[c], leader)
        if pieces and row.operations > 0:
            said = f"{row.client} asks {leader}: {row.to_leader:.1f} ms"
            arrows.append(Arrow("ask", pieces, said))
    for member in plan.quorum_members if led else ():
        if member.voter != leader:
            arrows.append(
                Arrow(
                    "vote" if member.counted else "late",
                    way(home, member.voter, leader),
                    f"{leader} asks {member.voter} for its vote: {member.rtt:.1f} ms"
                    + ("" if member.counted else " (not waited for)"),
                )
            )
    return tuple(arrow for arrow in arrows if arrow.pieces)


def _labels(sites: tuple[Mark, ...], height: float) -> tuple[Label, ...]:
    """Put names where they cover no mark and no other name; the leader's first, then replicas'."""
    marks = sorted((m for m in sites if m.number), key=lambda m: m.number)
    others = [m for m in sites if not m.number]
    taken = [(m.x - m.size, m.y - m.size, m.x + m.size, m.y + m.size) for m in (*marks, *others)]
    labels: list[Label] = []
    for mark in (*marks[:40], *others[:_MOST_SITES]):
        name = clipped(escape(mark.name), _LONGEST)
        wide = (_LETTER if mark.number else _SMALL_LETTER) * display_width(name) + 4
        gap = mark.size * (1.4 if mark.role == "leader" else 1.0) + 4
        spots: list[tuple[float, float, Literal["start", "end", "middle"]]] = [
            (mark.x + gap, mark.y + 5, "start"),
            (mark.x - gap, mark.y + 5, "end"),
            (mark.x, mark.y - gap - 2, "middle"),
            (mark.x, mark.y + gap + 12, "middle"),
            (mark.x + gap - 2, mark.y - gap + 4, "start"),
            (mark.x + gap - 2, mark.y + gap + 6, "start"),
            (mark.x - gap + 2, mark.y - gap + 4, "end"),
            (mark.x - gap + 2, mark.y + gap + 6, "end"),
        ]
        for x, y, anchor in spots:
            left = x - {"start": 0.0, "middle": wide / 2, "end": wide}[anchor]
            box = (left, y - _LABEL_HEIGHT + 4, left + wide, y + 4)
            inside = box[0] >= 2 and box[2] <= WIDTH - 2 and box[1] >= 2 and box[3] <= height - 2
            if inside and not any(_overlap(box, other) for other in taken):
                labels.append(Label(name, x, y, anchor, mark.role))
                taken.append(box)
                break  # a name without room is in the list beside the map
    return tuple(labels)


def _overlap(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _graticule() -> list[FloatArray]:
    """Meridians and parallels every 30 degrees, and the rim of the map."""
    lat = np.linspace(-90, 90, 61)
    lines = [project(np.stack([np.full(61, lon), lat], axis=1), wrap=False)
             for lon in (-168.9, *range(-150, 181, 30), 190.9)]  # fmt: skip
    lon = np.linspace(-168.9, 190.9, 121)
    lines += [
        project(np.stack([lon, np.full(121, value)], axis=1), wrap=False)
        for value in range(-60, 90, 30)
    ]
    return lines
