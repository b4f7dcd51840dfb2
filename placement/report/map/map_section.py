"""The section of the page of a plan with the map: marks, legend, and the table of the sites."""

from __future__ import annotations

from collections.abc import Sequence

from placement.plan import Plan
from placement.report.charts.html_tables import Column, data_table
from placement.report.charts.markup import Child, Markup, tag
from placement.report.charts.parts import section
from placement.report.map.map_view import map_view
from placement.report.map.svg_map import svg_map

__all__ = ["LEGEND", "map_legend", "map_section"]

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
            tag("p", {"class": "note"}, "Equal Earth projection; the outline of the land is drawn "
                "by hand for orientation only, and lines are great circles, not cables.")
        )  # fmt: skip
    if plan.found:
        parts.append(_sites_table(plan))
    return section("map-section", "Map of replicas and clients", parts)


_ROLES = {
    "leader": "leader, votes",
    "voter": "voter",
    "witness": "witness: votes, holds no data",
    "replica": "replica only",
}
"""Role of a mark on the map in the table of sites."""


def _votes(plan: Plan) -> str:
    """Return how many replicas vote, and how many witnesses there are."""
    witnesses = len(plan.witnesses)
    said = f"{len(plan.voters) - witnesses} of {len(plan.replicas)} replicas vote"
    more = f", and {witnesses} witness{'' if witnesses == 1 else 'es'} without a replica"
    return f"{said}{more if witnesses else ''}."


def _sites_table(plan: Plan) -> Markup:
    """Return the table of the replicas and witnesses, numbered as on the map."""
    instance = plan.problem.instance
    labels = {name: i for i, name in enumerate(instance.sites)}
    members = {member.voter: member for member in plan.quorum_members}
    served: dict[str, float] = dict.fromkeys(plan.replicas, 0.0)
    count: dict[str, int] = dict.fromkeys(plan.replicas, 0)
    for row in plan.per_client:
        served[row.nearest] += row.operations
        count[row.nearest] += 1
    total = sum(served.values()) or 1.0
    view = map_view(instance, plan)
    levels = [level for level, names in instance.domains.items() if any(names)]
    rows: list[list[str | float | None]] = []
    for mark in view.replicas:
        member = members.get(mark.name)
        waits = "" if member is None else ("waited for" if member.counted else "not waited for")
        role = _ROLES[mark.role]
        holds = mark.role != "witness"
        rows.append(
            [
                float(mark.number),
                mark.name,
                role,
                *(instance.domains[level][labels[mark.name]] or "–" for level in levels),
                None if member is None else member.rtt,
                waits,
                float(count[mark.name]) if holds else None,
                100 * served[mark.name] / total if holds else None,
            ]
        )
    return data_table(
        "Replicas, numbered as on the map",
        [
            Column("No.", True),
            Column("Site"),
            Column("Role"),
            *(Column(level) for level in levels),
            Column("RTT from leader, ms", True),
            Column("Vote"),
            Column("Nearest to clients", True),
            Column("Share of operations, %", True),
        ],
        rows,
    )
