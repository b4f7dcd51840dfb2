"""The map as SVG, and the section of the page with its legend and the table of its sites."""

from __future__ import annotations

import math
from collections.abc import Sequence

from placement.evaluation.value_tables import ValueColumn, ValueTable
from placement.plan import Plan
from placement.report.charts.html_tables import section, value_table
from placement.report.charts.markup import Child, Markup, join, tag
from placement.report.map.map_view import Arrow, MapView, Mark, map_view
from placement.support.checks import FloatArray
from placement.text.plans import replicas_table

_WAYS = ("reads", "commits")
"""Layers of lines, which end at the frame of the map."""

_ROLE = {
    "leader": "leader",
    "voter": "voter",
    "witness": "witness: votes without a replica",
    "replica": "replica, does not vote",
    "site": "site without a replica",
}


def svg_map(view: MapView, *, caption: str, identifier: str = "map") -> Markup:
    """Draw a map.

    Parameters
    ----------
    view
        From :func:`placement.report.map.map_view.map_view`.
    caption
        One sentence for people who do not see it.
    identifier
        Of the element; unique on the page.
    """
    layers: list[Child] = [
        tag("title", {"id": f"{identifier}-title"}, caption),
        _arrowheads(identifier),
        tag(
            "clipPath",
            {"id": f"{identifier}-frame"},
            tag("rect", {"x": 0, "y": 0, "width": view.width, "height": view.height}),
        ),
        tag("g", {"class": "graticule"}, [_line(line) for line in view.graticule]),
        tag("g", {"class": "land"}, [_ring(ring) for ring in view.land]),
        tag("g", {"class": "water"}, [_ring(ring) for ring in view.water]),
        [
            tag(
                "g",
                {
                    "class": name,
                    "aria-hidden": "true" if name == "names" else None,
                    "clip-path": f"url(#{identifier}-frame)" if name in _WAYS else None,
                },
                content,
            )
            for name, content in map_layers(view, identifier).items()
        ],
    ]
    return tag(
        "svg",
        {
            "class": "map",
            "id": identifier,
            "data-picture": identifier,
            "viewBox": f"0 0 {view.width:.0f} {view.height:.0f}",
            "role": "group",
            "aria-labelledby": f"{identifier}-title",
            "preserveAspectRatio": "xMidYMid meet",
        },
        layers,
    )


def map_layers(view: MapView, identifier: str = "map") -> dict[str, Markup]:
    """Return the content of the layers that depend on the plan, from bottom to top, by class."""
    scale = _quantiles([mark.latency for mark in view.clients if not math.isnan(mark.latency)])
    return {
        "clients": join([_client(mark, scale) for mark in view.clients]),
        "reads": join(_ways(view, identifier, reads=True)),
        "commits": join(_ways(view, identifier, reads=False)),
        "sites": join([_site(mark) for mark in view.sites]),
        "names": join([
            tag("text", {"x": _n(label.x), "y": _n(label.y), "text-anchor": label.anchor,
                         "direction": "ltr", "class": "site" if label.role == "site" else None},
                tag("tspan", {"style": "unicode-bidi:isolate"}, label.text))
            for label in view.labels
        ]),
    }  # fmt: skip


def _n(value: float) -> str:
    return f"{value:.1f}"


def _path(points: FloatArray) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _line(points: FloatArray) -> Markup:
    return tag("path", {"d": _path(points)})


def _ring(points: FloatArray) -> Markup:
    return tag("path", {"d": _path(points) + "Z"})


def _arrowheads(identifier: str) -> Markup:
    return tag(
        "defs",
        None,
        [
            tag(
                "marker",
                {
                    "id": f"{identifier}-{kind}",
                    "viewBox": "0 0 10 10",
                    "refX": "9",
                    "refY": "5",
                    "markerWidth": "12",
                    "markerHeight": "12",
                    "markerUnits": "userSpaceOnUse",
                    "orient": "auto",
                },
                tag("path", {"class": f"head {kind}", "d": "M0 1L10 5L0 9Z"}),
            )
            for kind in ("vote", "late", "ask")
        ],
    )


def _shortened(points: FloatArray, by: float) -> FloatArray:
    """Leave out the end of a line, so that an arrow stops at the rim of the mark it points to."""
    kept = points.copy()
    while len(kept) > 2 and math.hypot(*(points[-1] - kept[-2])) < by:
        kept = kept[:-1]
    dx, dy = points[-1] - kept[-2]
    length = math.hypot(dx, dy)
    if length > by:
        kept[-1] = points[-1] - by * (points[-1] - kept[-2]) / length
    return kept


def _arrow(arrow: Arrow, identifier: str) -> Markup:
    head = None if arrow.kind == "read" else f"url(#{identifier}-{arrow.kind})"
    last = len(arrow.pieces) - 1
    return tag(
        "g",
        {"class": f"way {arrow.kind}"},
        tag("title", None, arrow.text),
        [
            tag(
                "path",
                {
                    "d": _path(_shortened(piece, 15.0) if i == last and head else piece),
                    "marker-end": head if i == last else None,
                },
            )
            for i, piece in enumerate(arrow.pieces)
        ],
    )


def _ways(view: MapView, identifier: str, *, reads: bool) -> list[Markup]:
    return [_arrow(a, identifier) for a in view.arrows if (a.kind == "read") is reads]


def _client(mark: Mark, scale: list[float]) -> Markup:
    step = sum(mark.latency > limit for limit in scale)
    latency = "no operations" if math.isnan(mark.latency) else f"{mark.latency:.1f} ms on average"
    said = f"{mark.name}: {100 * mark.share:.2g} % of the operations, {latency}"
    return tag(
        "circle",
        {
            "class": "client" if math.isnan(mark.latency) else f"client step{step}",
            "cx": _n(mark.x),
            "cy": _n(mark.y),
            "r": _n(mark.size),
            "data-client": mark.index,
            "data-story": said,
        },
        tag("title", None, said),
    )


def _quantiles(values: list[float]) -> list[float]:
    """Four limits between five steps of equally many clients."""
    ordered = sorted(values)
    return [ordered[min(len(ordered) - 1, len(ordered) * k // 5)] for k in range(1, 5)] if (
        ordered
    ) else []  # fmt: skip


def _site(mark: Mark) -> Markup:
    said = f"{mark.name}: {_ROLE[mark.role]}"
    x, y, r = mark.x, mark.y, mark.size
    story: dict[str, str | float | None] = {"data-story": said, "data-index": mark.index}
    if mark.role == "site":
        return tag(
            "circle",
            story | {"class": "site", "cx": _n(x), "cy": _n(y), "r": _n(r)},
            tag("title", None, said),
        )
    return tag(
        "g",
        story
        | {
            "class": f"mark {mark.role}",
            "data-site": mark.name,
            "tabindex": "0",
            "role": "img",
            "aria-label": said,
        },
        tag("title", None, said),
        _shape(mark.role, x, y, r),
        tag("text", {"x": _n(x), "y": _n(y + 5), "text-anchor": "middle", "aria-hidden": "true"},
            str(mark.number)),
    )  # fmt: skip


def star(x: float, y: float, r: float) -> list[tuple[float, float]]:
    """Corners of the leader's star of eight points."""
    sizes = [r * (1.45 if k % 2 == 0 else 1.08) for k in range(16)]
    return [
        (x + size * math.sin(math.pi * k / 8), y - size * math.cos(math.pi * k / 8))
        for k, size in enumerate(sizes)
    ]


def _shape(role: str, x: float, y: float, r: float) -> Markup:
    """A star for the leader, a circle for a voter, dashed for a witness, a square for the rest."""
    if role == "leader":
        return tag("polygon", {"points": " ".join(f"{a:.1f},{b:.1f}" for a, b in star(x, y, r))})
    if role in ("voter", "witness"):
        return tag("circle", {"cx": _n(x), "cy": _n(y), "r": _n(r)})
    side = r * 0.9
    return tag(
        "rect",
        {"x": _n(x - side), "y": _n(y - side), "width": _n(2 * side), "height": _n(2 * side),
         "rx": "3"},
    )  # fmt: skip


# The section of the page of a plan with the map: marks, legend, and the table of the sites

LEGEND = (
    ("leader", "leader"),
    ("voter", "voter"),
    ("replica", "replica that does not vote"),
    ("site", "site without a replica"),
    ("client", "client: area by operations, colour from quick to slow"),
    ("vote", "vote that the leader waits for"),
    ("late", "vote that the commit does not need"),
    ("ask", "requests of the heaviest clients to the leader"),
)
"""Roles on the map of a plan, each with its meaning."""


def map_legend(legend: Sequence[tuple[str, str]]) -> Markup:
    """Return the legend of a map: role and meaning of each mark."""
    return tag(
        "ul",
        {"class": "legend map-legend"},
        [tag("li", None, tag("span", {"class": f"key {role}"}), text) for role, text in legend],
    )


def map_section(plan: Plan) -> Markup:
    """Return the section with the map and the table of the sites of a plan."""
    view = map_view(plan.problem.instance, plan)
    instance = plan.problem.instance
    if plan.found:
        said = (
            f"Map of {len(instance.sites)} sites and {len(instance.clients)} clients. "
            + (f"The leader is {plan.leader}; " if plan.leader else "No operation needs a leader; ")
            + _votes(plan)
        )
    else:
        said = f"Map of {len(instance.sites)} sites and {len(instance.clients)} clients, no plan."
    legend = list(LEGEND)
    if plan.witnesses:
        legend.insert(2, ("witness", "witness: votes without a replica"))
    if not plan.found:
        legend = [("site", "site"), ("client", "client: area by operations")]
    elif not view.clients:
        legend = [pair for pair in legend if pair[0] not in ("client", "ask")]
    parts: list[Child] = [
        tag(
            "div",
            {"class": "map-box", "tabindex": "0", "role": "region", "aria-label": "Map"},
            svg_map(view, caption=said),
        ),
        tag("p", {"class": "story", "aria-live": "polite", "id": "story"}, ""),
        map_legend(legend),
    ]
    if any(arrow.kind == "read" for arrow in view.arrows):
        parts.append(
            tag(
                "p",
                {"class": "switches"},
                tag("label", None, tag("input", {"type": "checkbox", "data-layer": "reads"}),
                    " show where clients read"),
            )
        )  # fmt: skip
    if view.note:
        parts.append(tag("p", {"class": "note"}, view.note))
    if view.land:
        parts.append(
            tag("p", {"class": "note"}, "Equal Earth projection; land from Natural Earth, "
                "simplified; lines are great circles, not cables.")
        )  # fmt: skip
    if plan.found:
        parts.append(sites_table(plan, view))
    return section("map-section", "Map of replicas and clients", parts)


def _votes(plan: Plan) -> str:
    """Return how many replicas vote, and how many witnesses there are."""
    witnesses = len(plan.witnesses)
    said = f"{len(plan.voters) - witnesses} of {len(plan.replicas)} replicas vote"
    more = f", and {witnesses} witness{'' if witnesses == 1 else 'es'} without a replica"
    return f"{said}{more if witnesses else ''}."


def sites_table(
    plan: Plan,
    view: MapView,
    most_levels: int | None = None,
    *,
    lost: Sequence[str] = (),
    before: Plan | None = None,
    sortable: bool = True,
) -> Markup:
    """Return the table of the replicas and witnesses, numbered as on the map.

    Parameters
    ----------
    plan, view
        A plan that was found, and its map.
    most_levels
        Most levels of failure domains that are shown; None: all.
    lost, before
        Sites that are lost, and the plan before the loss: they stay with the role they had.
    sortable
        As of :func:`placement.report.charts.html_tables.data_table`.
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
