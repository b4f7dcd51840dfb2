"""The map of sites, clients and ways as SVG, and its section of the page.

Sites with coordinates are projected; when no site has any, places come from the RTTs themselves and
no land is drawn. The replicas are numbered, the leader first, then the other voters in the order
in which they answer, then the rest; so that a mark can be found in a list whatever its size.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

import numpy as np
import numpy.typing as npt

from placement.model.instance import Instance
from placement.plan import Plan
from placement.report.charts.html_tables import section, value_table
from placement.report.charts.markup import Child, Markup, clipped, join, tag
from placement.support.checks import FloatArray
from placement.text.plans import replicas_table
from placement.text.text_tables import ValueColumn, ValueTable, display_width, escape

CENTRE = 11.0
"""Longitude of the central meridian, degrees."""

_A1, _A2, _A3, _A4 = 1.340264, -0.081106, 0.000893, 0.003796


def project(points: npt.ArrayLike, *, wrap: bool = True) -> FloatArray:
    """Project (longitude, latitude) in degrees, shape (n, 2), to the plane, y upwards.

    Then |x| <= 2.71 and |y| <= 1.32. `wrap` brings longitudes to within 180° of the central
    meridian; rings of the coast run past it a little and keep theirs.
    """
    lonlat = np.asarray(points, dtype=np.float64).reshape(-1, 2)
    lam = lonlat[:, 0] - CENTRE
    if wrap:
        lam = (lam + 180.0) % 360.0 - 180.0
    lam = np.radians(lam)
    theta = np.arcsin(math.sqrt(3) / 2 * np.sin(np.radians(lonlat[:, 1])))
    t2 = theta * theta
    t6 = t2**3
    below = 3 * (9 * _A4 * t6 * t2 + 7 * _A3 * t6 + 3 * _A2 * t2 + _A1)
    x = 2 * math.sqrt(3) * lam * np.cos(theta) / below
    y = theta * (_A4 * t6 * t2 + _A3 * t6 + _A2 * t2 + _A1)
    return np.stack([x, y], axis=1)


def unproject(x: float, y: float) -> tuple[float, float] | None:
    """Return (latitude, longitude) in degrees of a point of the plane; None beyond the rim."""
    latitudes = np.linspace(-90.0, 90.0, 18_001)
    degree = project(np.stack([np.full(len(latitudes), CENTRE + 1.0), latitudes], axis=1))
    east = x / float(np.interp(y, degree[:, 1], degree[:, 0]))  # x grows with the longitude
    if abs(y) > degree[-1, 1] or abs(east) > 180:
        return None
    return float(np.interp(y, degree[:, 1], latitudes)), (east + CENTRE + 180) % 360 - 180


def great_circle(start: Sequence[float], end: Sequence[float], steps: int = 40) -> list[FloatArray]:
    """Return the shortest way between two places as projected pieces, cut where the map ends.

    Places are (longitude, latitude) in degrees; `steps` are the straight pieces before cutting.
    Each piece has the shape (k, 2) with k >= 2, in the order of travel.
    """
    a, b = _vector(start), _vector(end)
    angle = math.acos(max(-1.0, min(1.0, float(a @ b))))
    if angle < 1e-6:
        return [np.concatenate([project([start]), project([end])])]
    if math.pi - angle < 1e-6:  # antipodes have no one shortest way; go over a pole
        b = _vector((end[0], max(-89.0, min(89.0, end[1])) * 0.999 + 1e-3))
        angle = math.acos(max(-1.0, min(1.0, float(a @ b))))
    share = np.linspace(0.0, 1.0, steps + 1)[:, np.newaxis]
    way = (np.sin((1 - share) * angle) * a + np.sin(share * angle) * b) / math.sin(angle)
    lonlat = np.stack(
        [
            np.degrees(np.arctan2(way[:, 1], way[:, 0])),
            np.degrees(np.arcsin(np.clip(way[:, 2], -1, 1))),
        ],
        axis=1,
    )
    lam = (lonlat[:, 0] - CENTRE + 180.0) % 360.0 - 180.0
    cuts = np.nonzero(np.abs(np.diff(lam)) > 180.0)[0] + 1
    pieces = np.split(project(lonlat), cuts)
    for k, cut in enumerate(cuts):  # both pieces go on to the rim
        rim = math.copysign(180.0, lam[cut - 1])
        past = 360.0 - abs(lam[cut] - lam[cut - 1])
        passed = abs(rim - lam[cut - 1]) / past if past else 0.5
        latitude = lonlat[cut - 1, 1] + passed * (lonlat[cut, 1] - lonlat[cut - 1, 1])
        left, right = project([[CENTRE + rim, latitude], [CENTRE - rim, latitude]], wrap=False)
        pieces[k] = np.vstack([pieces[k], left])
        pieces[k + 1] = np.vstack([right, pieces[k + 1]])
    return pieces


def _vector(place: Sequence[float]) -> FloatArray:
    lon, lat = math.radians(place[0]), math.radians(place[1])
    return np.array([math.cos(lat) * math.cos(lon), math.cos(lat) * math.sin(lon), math.sin(lat)])


def scaled_places(distance: FloatArray) -> FloatArray:
    """Place points in the plane so that their distances resemble those given.

    Classical multidimensional scaling (Torgerson 1952): the two leading eigenvectors of the doubly
    centred matrix of squared distances. Asymmetric distances are averaged with their transpose. The
    places, shape (n, 2), are centred with the larger extent 1; zeros when all distances are 0.
    O(n³).
    """
    n = len(distance)
    if n < 2:
        return np.zeros((n, 2))
    even = (distance + distance.T) / 2
    centred = np.eye(n) - 1.0 / n
    values, vectors = np.linalg.eigh(-0.5 * centred @ (even * even) @ centred)
    keep = np.argsort(values)[::-1][:2]
    places = np.zeros((n, 2))
    found = vectors[:, keep] * np.sqrt(np.maximum(values[keep], 0.0))
    places[:, : found.shape[1]] = found
    for axis in range(2):  # an eigenvector has no sign of its own: fix it
        column = places[:, axis]
        if column[np.argmax(np.abs(column))] < 0:
            places[:, axis] = -column
    extent = float(np.abs(places).max())
    return places / extent if extent > 0 else places


# --- what is drawn ----------------------------------------------------------------------------

Role = Literal["leader", "voter", "witness", "replica", "site"]

_MEANING: Mapping[Role, str] = {
    "leader": "leader",
    "voter": "voter",
    "witness": "witness: votes without a replica",
    "replica": "replica that does not vote",
    "site": "site without a replica",
}

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

_WAYS = ("reads", "commits")
"""Layers of lines, which end at the frame of the map."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A site or a client on the map."""

    name: str
    x: float  #: in units of the view, as `y`
    y: float  #: downwards
    role: Role | Literal["client"]
    number: int = 0  #: of a replica, from 1; 0 for anything else
    size: float = 4.0  #: radius
    share: float = 0.0  #: of all operations, for a client
    latency: float = math.nan  #: of a client, ms; NaN when it issued nothing or there is no plan
    placed: bool = True  #: whether it has coordinates; else it stands at the foot of the map
    index: int = -1  #: of the site or the client in the instance


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


@dataclass(frozen=True, slots=True)
class MapView:
    """A map in units of a view :data:`WIDTH` across and `height` down.

    `layers` depend on the plan: by class, from bottom to top. The element has an `identifier` that
    is unique on the page.
    """

    height: float
    ground: Ground
    clients: tuple[Mark, ...]
    sites: tuple[Mark, ...]
    layers: Mapping[str, Markup]
    note: str
    identifier: str

    @property
    def replicas(self) -> tuple[Mark, ...]:
        """Sites that hold a replica, by number."""
        return tuple(sorted((m for m in self.sites if m.number), key=lambda m: m.number))


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
    if not geographic:
        return Ground(frame, False, (), (), ())
    lat = np.linspace(-90, 90, 61)
    grid = [project(np.stack([np.full(61, lon), lat], axis=1), wrap=False)
            for lon in (-168.9, *range(-150, 181, 30), 190.9)]  # fmt: skip
    lon = np.linspace(-168.9, 190.9, 121)
    grid += [
        project(np.stack([lon, np.full(121, value)], axis=1), wrap=False)
        for value in range(-60, 90, 30)
    ]
    lines = (_outline()["land"], _outline()["water"], grid)
    return Ground(frame, True, *(tuple(map(frame, each)) for each in lines))


def _places(instance: Instance, at: FloatArray) -> tuple[bool, FloatArray, FloatArray]:
    """Return whether there is a globe, and the places of sites and clients on the plane."""
    around = _client_coordinates(instance, at)
    if np.isfinite(at).all(axis=1).any():
        return True, _projected(at), _projected(around)
    rtt = instance.site_rtt if instance.site_rtt.ndim == 2 else instance.site_rtt[-1]
    return False, scaled_places(rtt), np.full_like(around, np.nan)


def map_view(
    instance: Instance,
    plan: Plan | None = None,
    ground: Ground | None = None,
    identifier: str = "map",
) -> MapView:
    """Lay the map of an instance out, with coordinates or without, and of a plan that was found.

    The `ground` may be that of a similar instance, so that maps have one frame. The `identifier` of
    the element is unique on the page.
    """
    found = plan if plan is not None and plan.found else None
    at = _coordinates(instance.site_coordinates, len(instance.sites))
    ground = ground_of(instance) if ground is None else ground
    geographic, plane, crowd = _places(instance, at)
    note = ""
    if not geographic:
        note = (
            "The sites have no coordinates: they are placed so that distances resemble RTTs, and "
            "clients are not shown."
        )
    sites = _site_marks(instance, ground.frame, plane, found)
    height = ground.frame.height + (56.0 if any(not mark.placed for mark in sites) else 0.0)
    clients = _client_marks(instance, ground.frame, crowd, found)
    missing = len(instance.clients) - len(clients)
    if geographic and missing:
        note = f"{missing} of {len(instance.clients)} clients have no coordinates and no mark."
    if any(not mark.placed for mark in sites):
        note += (" " if note else "") + "Sites at the foot of the map have no coordinates."
    reads: list[Markup] = []
    commits: list[Markup] = []
    if found is not None:
        way = _Ways(ground.frame, geographic, at, _client_coordinates(instance, at), sites, found)
        reads, commits = way.reads(), way.commits(identifier)
    known = sorted(mark.latency for mark in clients if not math.isnan(mark.latency))
    # four limits between five steps of equally many clients
    scale = [known[min(len(known) - 1, len(known) * k // 5)] for k in range(1, 5)] if known else []
    layers = {
        "clients": join([_client(mark, scale) for mark in clients]),
        "reads": join(reads),
        "commits": join(commits),
        "sites": join([_site(mark) for mark in sites]),
        "names": join(_names(sites, height)),
    }
    return MapView(height, ground, clients, sites, layers, note, identifier)


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


# --- marks -----------------------------------------------------------------------------------


def _roles(instance: Instance, plan: Plan | None) -> dict[int, tuple[Role, int]]:
    """Return role and number of each site that has a part in a plan."""
    if plan is None or plan.configuration is None:
        return {}
    index = {name: i for i, name in enumerate(instance.sites)}
    configuration, witnesses = plan.configuration, {*plan.configuration.witnesses}
    roles: dict[int, Role] = {}
    if plan.leader is not None:
        roles[configuration.leader] = "leader"
    for s in (index[name] for name in plan.voters):
        roles.setdefault(s, "witness" if s in witnesses else "voter")
    roles |= {s: "replica" for s in configuration.replicas if s not in configuration.voters}
    return {s: (role, number) for number, (s, role) in enumerate(roles.items(), start=1)}


def _site_marks(
    instance: Instance, frame: _Frame, plane: FloatArray, plan: Plan | None
) -> tuple[Mark, ...]:
    spots, roles = frame(np.nan_to_num(plane)), _roles(instance, plan)
    lost = 0
    marks = []
    for s, name in enumerate(instance.sites):
        known = bool(np.isfinite(plane[s]).all())
        x, y = (float(v) for v in spots[s])
        if not known:
            x, y = 24.0 + 34.0 * (lost % 28), frame.height + 18.0 + 20.0 * (lost // 28 % 2)
            lost += 1
        role, number = roles.get(s, ("site", 0))
        size = _MARK if role != "site" else (4.0 if len(instance.sites) <= 120 else 2.8)
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
    marks = []
    for c, name in enumerate(instance.clients):
        if np.isfinite(crowd[c]).all():
            count = float(issued[c])
            size = 1.5 + biggest * math.sqrt(count / largest) if largest > 0 else 2.0
            share = count / total if total > 0 else 0.0
            x, y = map(float, spots[c])
            marks.append(Mark(name, x, y, "client", 0, size, share, latency[c], index=c))
    return tuple(sorted(marks, key=lambda mark: -mark.size))


def _n(value: float) -> str:
    return f"{value:.1f}"


def _circle(mark: Mark) -> dict[str, str | float | None]:
    return {"cx": _n(mark.x), "cy": _n(mark.y), "r": _n(mark.size)}


def _client(mark: Mark, scale: list[float]) -> Markup:
    step = f" step{sum(mark.latency > limit for limit in scale)}"
    latency = "no operations" if math.isnan(mark.latency) else f"{mark.latency:.1f} ms on average"
    said = f"{mark.name}: {100 * mark.share:.2g} % of the operations, {latency}"
    look = {"class": "client" + step * (not math.isnan(mark.latency))}
    story: dict[str, str | float | None] = {"data-client": mark.index, "data-story": said}
    return tag("circle", {**look, **_circle(mark), **story}, tag("title", None, said))


def _site(mark: Mark) -> Markup:
    """Draw a star for the leader, a circle for a voter or a witness, a square for the rest."""
    assert mark.role != "client"
    said = f"{mark.name}: {_MEANING[mark.role]}"
    x, y, r = mark.x, mark.y, mark.size
    story: dict[str, str | float | None] = {"data-story": said, "data-index": mark.index}
    title, shape = tag("title", None, said), tag("circle", _circle(mark))
    if mark.role == "site":
        return tag("circle", {**story, "class": "site", **_circle(mark)}, title)
    if mark.role == "leader":
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in star(x, y, r))
        shape = tag("polygon", {"points": points})
    elif mark.role == "replica":
        side = r * 0.9
        shape = tag("rect", {"x": _n(x - side), "y": _n(y - side), "width": _n(2 * side),
                             "height": _n(2 * side), "rx": "3"})  # fmt: skip
    look = {"class": f"mark {mark.role}", "data-site": mark.name, "tabindex": "0", "role": "img",
            "aria-label": said}  # fmt: skip
    number = {"x": _n(x), "y": _n(y + 5), "text-anchor": "middle", "aria-hidden": "true"}
    return tag("g", story | look, title, shape, tag("text", number, str(mark.number)))


def star(x: float, y: float, r: float) -> list[tuple[float, float]]:
    """Corners of the leader's star of eight points."""
    sizes = [r * (1.45 if k % 2 == 0 else 1.08) for k in range(16)]
    return [
        (x + size * math.sin(math.pi * k / 8), y - size * math.cos(math.pi * k / 8))
        for k, size in enumerate(sizes)
    ]


def _names(sites: tuple[Mark, ...], height: float) -> list[Markup]:
    """Put names where they cover no mark and no other name; the leader's first, then replicas'."""
    marks = sorted((m for m in sites if m.number), key=lambda m: m.number)
    others = [m for m in sites if not m.number]
    taken = [(m.x - m.size, m.y - m.size, m.x + m.size, m.y + m.size) for m in (*marks, *others)]
    names: list[Markup] = []
    for mark in (*marks[:40], *others[:_MOST_SITES]):
        name = clipped(escape(mark.name), _LONGEST)
        wide = (_LETTER if mark.number else _SMALL_LETTER) * display_width(name) + 4
        gap = mark.size * (1.4 if mark.role == "leader" else 1.0) + 4
        for x, y, anchor in (
            (mark.x + gap, mark.y + 5, "start"),
            (mark.x - gap, mark.y + 5, "end"),
            (mark.x, mark.y - gap - 2, "middle"),
            (mark.x, mark.y + gap + 12, "middle"),
            (mark.x + gap - 2, mark.y - gap + 4, "start"),
            (mark.x + gap - 2, mark.y + gap + 6, "start"),
            (mark.x - gap + 2, mark.y - gap + 4, "end"),
            (mark.x - gap + 2, mark.y + gap + 6, "end"),
        ):
            left = x - {"start": 0.0, "middle": wide / 2, "end": wide}[anchor]
            box = a, b, c, d = left, y - _LABEL_HEIGHT + 4, left + wide, y + 4
            inside = a >= 2 and c <= WIDTH - 2 and b >= 2 and d <= height - 2
            if inside and not any(a < o[2] and o[0] < c and b < o[3] and o[1] < d for o in taken):
                look = {"x": _n(x), "y": _n(y), "text-anchor": anchor, "direction": "ltr",
                        "class": "site" if mark.role == "site" else None}  # fmt: skip
                isolated = tag("tspan", {"style": "unicode-bidi:isolate"}, name)
                names.append(tag("text", look, isolated))
                taken.append(box)
                break  # a name without room is in the list beside the map
    return names


# --- ways ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Ways:
    """Ways of messages of a plan, with the coordinates of sites (`at`) and clients (`around`)."""

    frame: _Frame
    geographic: bool
    at: FloatArray
    around: FloatArray
    sites: tuple[Mark, ...]
    plan: Plan

    def _drawn(
        self, kind: str, start: FloatArray, ends: tuple[str, str], said: str, head: str = ""
    ) -> list[Markup]:
        """Return a way from a place, or between two marks, as no line or as one or more."""
        spot = {mark.name: mark for mark in self.sites}
        goal = self.at[spot[ends[1]].index]
        pieces: list[FloatArray] = []
        if self.geographic and np.isfinite(start).all() and np.isfinite(goal).all():
            steps = _STEPS if kind == "read" else 40
            pieces = [*map(self.frame, great_circle(start.tolist(), goal.tolist(), steps))]
        elif ends[0] in spot and kind in ("vote", "late"):
            pieces = [np.array([(spot[name].x, spot[name].y) for name in ends])]
        if not pieces:
            return []
        lines = [{"d": _path(piece)} for piece in pieces]
        if head:
            lines[-1]["marker-end"] = f"url(#{head})"
        look = {"class": f"way {kind}"}
        return [tag("g", look, tag("title", None, said), [tag("path", line) for line in lines])]

    def _heaviest(self, most: int) -> list[int]:
        """Return the clients on the globe with most operations."""
        rows = self.plan.client_rows
        placed = (c for c in range(len(rows)) if np.isfinite(self.around[c]).all())
        found = sorted(placed, key=lambda c: -rows[c].operations)[:most]
        return [c for c in found if self.geographic and rows[c].operations > 0]

    def reads(self) -> list[Markup]:
        """Return the ways from clients to their nearest replicas."""
        found = []
        for c in self._heaviest(_READERS):
            row = self.plan.client_rows[c]
            said = f"{row.client} reads at {row.nearest}: {row.to_nearest:.1f} ms"
            found += self._drawn("read", self.around[c], (row.client, row.nearest), said)
        return found

    def commits(self, identifier: str) -> list[Markup]:
        """Return the commit path: from the heaviest clients to the leader, and on to the voters."""
        leader, found = self.plan.leader, list[Markup]()
        if leader is None:
            return found
        for c in self._heaviest(_COMMITTERS):
            row = self.plan.client_rows[c]
            said = f"{row.client} asks {leader}: {row.to_leader:.1f} ms"
            ends = (row.client, leader)
            found += self._drawn("ask", self.around[c], ends, said, f"{identifier}-ask")
        home = self.at[self.plan.problem.instance.sites.index(leader)]
        for member in self.plan.quorum_members:
            kind = "vote" if member.counted else "late"
            said = f"{leader} asks {member.voter} for its vote: {member.rtt:.1f} ms"
            said += "" if member.counted else " (not waited for)"
            if member.voter != leader:
                ends = (leader, member.voter)
                found += self._drawn(kind, home, ends, said, f"{identifier}-{kind}")
        return found


def _path(points: FloatArray) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


# --- the drawing, and its section of the page ------------------------------------------------


def svg_map(view: MapView, *, caption: str) -> Markup:
    """Draw a map; `caption` is one sentence for people who do not see it."""
    identifier, ground = view.identifier, view.ground
    size = {"x": 0, "y": 0, "width": WIDTH, "height": view.height}
    # an arrow's point lies at the rim of the mark in which its way ends, 14 units from the middle
    marker = {"viewBox": "0 0 10 10", "refX": "21.5", "refY": "5", "markerWidth": "12",
              "markerHeight": "12", "markerUnits": "userSpaceOnUse", "orient": "auto"}  # fmt: skip
    heads = [
        tag("marker", {"id": f"{identifier}-{kind}", **marker},
            tag("path", {"class": f"head {kind}", "d": "M0 1L10 5L0 9Z"}))
        for kind in ("vote", "late", "ask")
    ]  # fmt: skip
    lines = {"graticule": (ground.graticule, ""), "land": (ground.land, "Z"),
             "water": (ground.water, "Z")}  # fmt: skip
    layers: list[Child] = [
        tag("title", {"id": f"{identifier}-title"}, caption),
        tag("defs", None, heads),
        tag("clipPath", {"id": f"{identifier}-frame"}, tag("rect", size)),
    ]
    for name, (rings, end) in lines.items():
        paths = [tag("path", {"d": _path(ring) + end}) for ring in rings]
        layers.append(tag("g", {"class": name}, paths))
    for name, content in view.layers.items():
        look = {"class": name, "aria-hidden": "true" if name == "names" else None}
        look["clip-path"] = f"url(#{identifier}-frame)" if name in _WAYS else None
        layers.append(tag("g", look, content))
    return tag(
        "svg",
        {
            "class": "map",
            "id": identifier,
            "data-picture": identifier,
            "viewBox": f"0 0 {WIDTH:.0f} {view.height:.0f}",
            "role": "group",
            "aria-labelledby": f"{identifier}-title",
            "preserveAspectRatio": "xMidYMid meet",
        },
        layers,
    )


LEGEND = (
    *((role, _MEANING[role]) for role in ("leader", "voter", "replica", "site")),
    ("client", "client: area by operations, colour from quick to slow"),
    ("vote", "vote that the leader waits for"),
    ("late", "vote that the commit does not need"),
    ("ask", "requests of the heaviest clients to the leader"),
)
"""Roles on the map of a plan, each with its meaning."""


def map_legend(legend: Sequence[tuple[str, str]] = LEGEND) -> Markup:
    """Return the legend of a map: role and meaning of each mark."""
    items = [tag("li", None, tag("span", {"class": f"key {role}"}), text) for role, text in legend]
    return tag("ul", {"class": "legend map-legend"}, items)


def reads_switch() -> Markup:
    """Return the switch that shows the ways of reads."""
    box = tag("input", {"type": "checkbox", "data-layer": "reads"})
    return tag("p", {"class": "switches"}, tag("label", None, box, " show where clients read"))


def map_section(plan: Plan) -> Markup:
    """Return the section with the map and the table of the sites of a plan."""
    instance = plan.problem.instance
    view = map_view(instance, plan)
    said = f"Map of {len(instance.sites)} sites and {len(instance.clients)} clients"
    witnesses, legend = len(plan.witnesses), list(LEGEND)
    if plan.found:
        led = f"The leader is {plan.leader}" if plan.leader else "No operation needs a leader"
        votes = f"{len(plan.voters) - witnesses} of {len(plan.replicas)} replicas vote"
        more = f", and {witnesses} witness{'' if witnesses == 1 else 'es'} without a replica"
        said += f". {led}; {votes}{more if witnesses else ''}."
    else:
        said += ", no plan."
    if witnesses:
        legend.insert(2, ("witness", _MEANING["witness"]))
    if not plan.found:
        legend = [("site", "site"), ("client", "client: area by operations")]
    elif not view.clients:
        legend = [pair for pair in legend if pair[0] not in ("client", "ask")]
    box = {"class": "map-box", "tabindex": "0", "role": "region", "aria-label": "Map"}
    parts: list[Child] = [
        tag("div", box, svg_map(view, caption=said)),
        tag("p", {"class": "story", "aria-live": "polite", "id": "story"}, ""),
        map_legend(legend),
        reads_switch() if view.layers["reads"] else None,
        tag("p", {"class": "note"}, view.note) if view.note else None,
    ]
    if view.ground.land:
        parts.append(
            tag("p", {"class": "note"}, "Equal Earth projection; land from Natural Earth, "
                "simplified; lines are great circles, not cables.")
        )  # fmt: skip
    if plan.found:
        parts.append(sites_table(plan, view))
    return section("map-section", "Map of replicas and clients", parts)


def sites_table(
    plan: Plan,
    view: MapView,
    most_levels: int | None = None,
    *,
    lost: Sequence[str] = (),
    before: Plan | None = None,
    sortable: bool = True,
) -> Markup:
    """Return the table of the replicas and witnesses of a plan that was found, numbered as mapped.

    It shows at most `most_levels` of failure domains (None: all). Sites that are `lost` stay with
    the role they had in the plan `before` the loss. `sortable` is as of
    :func:`placement.report.charts.html_tables.data_table`.
    """
    values, number = replicas_table(plan, most_levels), {m.name: m.number for m in view.replicas}
    rows = [(float(number[str(row[0])]), *row) for row in values.rows if row[0] not in lost]
    gone = () if before is None else replicas_table(before, most_levels).rows
    rows = sorted(rows) + [
        (math.nan, row[0], f"{row[1]}, lost", math.nan, "", math.nan, *row[5:])
        for row in gone
        if row[0] in lost
    ]
    columns = (ValueColumn("no.", 0), *values.columns)
    found = ValueTable("Replicas, numbered as on the map", columns, tuple(rows))
    return value_table(found, sortable=sortable)
