"""Plain text for people: aligned tables, plans and instances, readable in 100 columns.

Widths are those of a terminal: East Asian wide characters take two columns, combining marks none.
Control characters in names are shown escaped, so that no name can move the cursor.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from placement.instance import Instance
    from placement.plan import ClientLatency, Plan

__all__ = [
    "WIDTH",
    "clip",
    "display_width",
    "escape",
    "instance_text",
    "number_text",
    "plan_text",
    "table",
    "wrap",
]

WIDTH = 100
"""Columns of the terminal that everything fits into."""

_MOST_CLIENTS = 5
_MOST_LEVELS = 6
_LABEL = 13
_LARGE = 1e15


# --- characters ------------------------------------------------------------------------------


def escape(text: str) -> str:
    r"""Show control, format and other invisible characters as escapes.

    Examples
    --------
    >>> print(escape("a\tb\x1b[31m"))
    a\tb\x1b[31m
    """
    return "".join(
        character.encode("unicode_escape").decode("ascii")
        if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
        else character
        for character in text
    )


def display_width(text: str) -> int:
    """Columns that `text` takes in a terminal.

    Examples
    --------
    >>> display_width("東京"), display_width("São"), display_width("e\u0301")
    (4, 3, 1)
    """
    return sum(map(_character_width, text))


def _character_width(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def clip(text: str, width: int) -> str:
    """Return `text` in at most `width` columns, the last of them an ellipsis when it is cut."""
    if display_width(text) <= width:
        return text
    kept, used = [], 0
    for character in text:
        used += _character_width(character)
        if used > width - 1:
            break
        kept.append(character)
    return "".join(kept) + "…"


def wrap(text: str, width: int = WIDTH, indent: str = "") -> str:
    """Break `text` at blanks into lines of at most `width` columns; later lines are indented."""
    lines: list[str] = []
    line = ""
    for word in text.split(" "):
        longer = f"{line} {word}" if line else word
        room = width - (display_width(indent) if lines else 0)
        if line and display_width(longer) > room:
            lines.append(line)
            line = word
        else:
            line = longer
    lines.append(line)
    return f"\n{indent}".join(lines)


def number_text(value: float, digits: int = 2) -> str:
    """Show a number with a fixed number of decimals and commas; NaN is a dash.

    Examples
    --------
    >>> number_text(12345.678), number_text(float("nan")), number_text(float("inf"))
    ('12,345.68', '–', '∞')
    """
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    # beyond that the digits are noise, and columns of them burst every table
    return f"{value:.6g}" if abs(value) >= _LARGE else f"{value:,.{digits}f}"


# --- tables ----------------------------------------------------------------------------------


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[int] = (),
    width: int = WIDTH,
    indent: str = "",
) -> str:
    """Return an aligned table.

    Parameters
    ----------
    header
        Column names.
    rows
        Cells, escaped here.
    right
        Positions of the columns that are set flush right (numbers); these are never clipped.
    width
        Most columns of the terminal; the widest text column is clipped to fit.
    indent
        In front of every line.
    """
    cells = [[escape(cell) for cell in row] for row in (header, *rows)]
    widths = [max(map(display_width, column)) for column in zip(*cells, strict=True)]
    texts = [position for position in range(len(header)) if position not in right]
    room = width - len(indent) - 2 * (len(header) - 1)
    while sum(widths) > room and texts:
        widest = max(texts, key=lambda position: widths[position])
        if widths[widest] <= 8:
            break
        widths[widest] -= 1
    lines = []
    for row in cells:
        parts = []
        for position, cell in enumerate(row):
            shown = clip(cell, widths[position])
            blank = " " * (widths[position] - display_width(shown))
            parts.append(blank + shown if position in right else shown + blank)
        lines.append((indent + "  ".join(parts)).rstrip())
    return "\n".join(lines)


def _facts(pairs: Sequence[tuple[str, str]]) -> str:
    return "\n".join(
        wrap(f"{name:<{_LABEL}}{escape(text)}", indent=" " * _LABEL) for name, text in pairs
    )


def _section(title: str, body: str) -> str:
    return f"{title}\n{body}"


def _sentences(title: str, sentences: Sequence[str]) -> list[str]:
    if not sentences:
        return []
    return [
        _section(
            title, "\n".join("  " + wrap(escape(s), WIDTH - 2, indent="    ") for s in sentences)
        )
    ]


# --- plans -----------------------------------------------------------------------------------


def plan_text(plan: Plan) -> str:
    """Return everything a planner asks first about a plan."""
    from placement.problem import describe

    instance = plan.problem.instance
    facts = [
        ("Question", f"{describe(plan.problem)}; on {instance.name}"),
        ("Answer", _answer(plan)),
    ]
    if plan.found:
        facts.extend(_decision(plan))
    sections = [_facts(facts)]
    sections.extend(_sentences("Breaks" if plan.found else "Why", plan.reasons))
    if plan.found:
        sections.extend(
            [
                _section("Replicas", _replicas(plan)),
                _section("Operations", _operations(plan)),
                _section("Clients", _clients(plan)),
                _section("Leaders, replicas and voters unchanged", _leaders(plan)),
            ]
        )
    sections.extend(_sentences("Notes", plan.notes))
    sections.extend(_sentences("Where the numbers come from", instance.provenance))
    return "\n\n".join(sections)


def _answer(plan: Plan) -> str:
    from placement.status import Status, Termination

    words = {
        Status.OPTIMAL: "optimal, proven",
        Status.FEASIBLE: "feasible",
        Status.INFEASIBLE: "infeasible, proven: no configuration obeys all constraints",
        Status.UNKNOWN: "nothing found, and nothing proven",
        Status.VIOLATING: "evaluated, but it breaks constraints",
    }
    text = words[plan.status]
    if plan.found and plan.status is not Status.VIOLATING:
        if math.isinf(plan.gap):
            text += ", gap unknown (no bound)"
        elif plan.status is Status.FEASIBLE:
            text += f", gap {100 * plan.gap:.3g} %"
    text += f"; by {plan.method}" + (f" in {plan.seconds:.3g} s" if plan.seconds else "")
    if plan.termination is not Termination.FINISHED:
        text += f", stopped: {plan.termination}"
    return text


def _decision(plan: Plan) -> list[tuple[str, str]]:
    votes = sum(member.counted for member in plan.quorum_members)
    facts = [
        ("Mean latency", f"{number_text(plan.mean_latency, 3)} ms per operation{_bound(plan)}"),
        ("Leader", str(plan.leader)),
        (
            "Commit",
            f"waits {number_text(plan.quorum_wait)} ms for {votes} of "
            f"{len(plan.quorum_members)} votes",
        ),
    ]
    if plan.problem.instance.prices is not None:
        facts.append(("Cost", f"{number_text(plan.cost)} {plan.problem.instance.prices.currency}"))
    return facts


def _bound(plan: Plan) -> str:
    other = plan.problem.rules.cost_weight or plan.problem.objective.kind != "mean"
    if not math.isfinite(plan.bound) or plan.gap == 0 or other:
        return ""
    best = plan.bound / plan.problem.demand.operations
    return f"; no plan can be below {number_text(best, 3)} ms"


def _replicas(plan: Plan) -> str:
    """Voters in the order in which they answer, then the other replicas."""
    near = [row.nearest for row in plan.per_client]
    demand = dict.fromkeys(plan.replicas, 0.0)
    total = sum(row.operations for row in plan.per_client)
    for row, site in zip(plan.per_client, near, strict=True):
        demand[site] += row.operations
    rows = []
    for member in plan.quorum_members:
        role = "leader" if member.voter == plan.leader else "voter"
        rows.append(
            [member.voter, role, number_text(member.rtt), "waited for" if member.counted else ""]
        )
    voters = set(plan.voters)
    rtt = plan.problem.demand.site_rtt[-1]
    sites = plan.problem.instance.sites
    if plan.configuration is not None:
        rows.extend(
            [
                sites[site],
                "read-only",
                number_text(float(rtt[plan.configuration.leader, site])),
                "",
            ]
            for site in plan.configuration.replicas
            if sites[site] not in voters
        )
    levels = list(plan.problem.instance.domains)[:2]
    place = {site: i for i, site in enumerate(sites)}
    for cells in rows:
        site = cells[0]
        cells.append(f"{100 * demand[site] / total:.1f} %" if total else "–")
        cells.extend(plan.problem.instance.domains[level][place[site]] or "–" for level in levels)
    return table(
        ["site", "role", "RTT ms", "quorum", "nearest to", *levels],
        rows,
        right=(2, 4),
        indent="  ",
    )


def _operations(plan: Plan) -> str:
    return table(
        ["operation", "share", "mean ms"],
        [
            [row.operation, f"{100 * row.share:.2f} %", number_text(row.latency)]
            for row in plan.per_operation
        ],
        right=(1, 2),
        indent="  ",
    )


def _clients(plan: Plan) -> str:
    """The clients that fare worst and those that ask most, each named once."""
    issued = [row for row in plan.per_client if row.operations > 0]
    worst = sorted(issued, key=lambda row: -row.latency)[:_MOST_CLIENTS]
    heaviest = sorted(issued, key=lambda row: -row.operations)[:_MOST_CLIENTS]
    total = sum(row.operations for row in issued)
    shown: list[list[str]] = []

    def add(why: str, row: ClientLatency) -> None:
        shown.append(
            [
                why,
                row.client,
                f"{100 * row.operations / total:.2f} %",
                number_text(row.latency),
                number_text(row.to_leader),
                number_text(row.to_nearest),
                row.nearest,
            ]
        )

    few = len(issued) <= _MOST_CLIENTS  # both lists would be the same clients
    for row in worst:
        add("" if few else "worst", row)
    for row in heaviest if not few else ():
        add("heaviest", row)
    return table(
        ["", "client", "demand", "mean ms", "to leader", "to nearest", "nearest"],
        shown,
        right=(2, 3, 4, 5),
        indent="  ",
    )


def _leaders(plan: Plan) -> str:
    return table(
        ["leader", "mean ms", "overhead"],
        [
            [
                row.leader + (" (chosen)" if row.leader == plan.leader else ""),
                number_text(row.mean_latency, 3),
                f"{row.overhead:.2f} %",
            ]
            for row in plan.leaders
        ],
        right=(1, 2),
        indent="  ",
    )


# --- instances -------------------------------------------------------------------------------


def instance_text(instance: Instance, *, most: int = 20) -> str:
    """Return what an instance holds.

    Parameters
    ----------
    instance
        The world.
    most
        Most clients to list, by demand; sites are all listed.
    """
    sections = [
        _facts(_size(instance)),
        _section("Sites", _sites(instance)),
        _section("Clients by demand", _demand(instance, most)),
        _section("Operations", _mix(instance)),
    ]
    sections.extend(_sentences("Where the numbers come from", instance.provenance))
    return "\n\n".join(sections)


def _size(instance: Instance) -> list[tuple[str, str]]:
    import numpy as np

    between = instance.site_rtt[..., ~np.eye(len(instance.sites), dtype=bool)]
    facts = [
        ("Instance", instance.name),
        (
            "Size",
            ", ".join(
                f"{count} {word}{'' if count == 1 else 's'}"
                for count, word in (
                    (len(instance.sites), "site"),
                    (len(instance.clients), "client"),
                    (len(instance.operations), "operation"),
                    (len(instance.intervals), "interval"),
                )
            ),
        ),
        ("Demand", f"{number_text(float(instance.counts.sum()), 0)} operations in all"),
        ("Client RTT", _range(instance.client_rtt.ravel())),
        ("Site RTT", _range(between.ravel()) if between.size else "one site only"),
    ]
    if instance.varying_rtt:
        facts.append(("", "RTTs differ per interval"))
    if instance.intervals and len(instance.intervals) > 1:
        facts.append(("Intervals", f"{instance.intervals[0]} to {instance.intervals[-1]}"))
    if instance.prices is not None:
        storage = instance.prices.storage
        facts.append(
            (
                "Prices",
                f"{number_text(float(storage.min()))} to {number_text(float(storage.max()))} "
                f"{instance.prices.currency} per replica",
            )
        )
    facts.append(("Fingerprint", instance.fingerprint[:16]))
    return facts


def _range(values: object) -> str:
    import numpy as np

    low, middle, high = (float(x) for x in np.quantile(np.asarray(values), [0.0, 0.5, 1.0]))
    return f"{number_text(low)} to {number_text(high)} ms, median {number_text(middle)} ms"


def _sites(instance: Instance) -> str:
    levels = list(instance.domains)[:_MOST_LEVELS]
    hidden = len(instance.domains) - len(levels)
    body = table(
        ["site", *levels],
        [
            [site, *(instance.domains[level][s] or "–" for level in levels)]
            for s, site in enumerate(instance.sites)
        ],
        indent="  ",
    )
    return body + (f"\n  … and {hidden} more failure-domain levels" if hidden else "")


def _demand(instance: Instance, most: int) -> str:
    import numpy as np

    issued = instance.counts.sum(axis=(0, 2))
    order = np.argsort(-issued, kind="stable")
    total = float(issued.sum())
    last = instance.client_rtt if instance.client_rtt.ndim == 2 else instance.client_rtt[-1]
    rows = []
    for c in order[:most]:
        near = int(last[c].argmin())
        rows.append(
            [
                instance.clients[c],
                number_text(float(issued[c]), 0),
                f"{100 * float(issued[c]) / total:.2f} %" if total else "–",
                instance.sites[near],
                number_text(float(last[c, near])),
            ]
        )
    body = table(
        ["client", "operations", "share", "closest site", "RTT ms"],
        rows,
        right=(1, 2, 4),
        indent="  ",
    )
    rest = len(order) - most
    return body + (f"\n  … and {rest} more" if rest > 0 else "")


def _mix(instance: Instance) -> str:
    counts = instance.counts.sum(axis=(0, 1))
    total = float(counts.sum())
    return table(
        ["operation", "share", "α near", "β relay", "γ direct", "δ quorum"],
        [
            [
                operation.name,
                f"{100 * float(counts[o]) / total:.2f} %" if total else "–",
                *(f"{coefficient:g}" for coefficient in operation.coefficients),
            ]
            for o, operation in enumerate(instance.operations)
        ],
        right=(1, 2, 3, 4, 5),
        indent="  ",
    )
