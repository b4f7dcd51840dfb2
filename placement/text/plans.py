"""A plan as text."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from placement.text.text_tables import (
    escape,
    facts,
    number_text,
    page_width,
    section,
    sentences,
    table,
    wrap,
)

if TYPE_CHECKING:
    from placement.evaluation.bill import MonthlyBill
    from placement.evaluation.losses import Failures
    from placement.evaluation.value_tables import ValueTable
    from placement.plan import ClientLatency, Plan

__all__ = ["MOST_FAILURES", "failures_table", "plan_facts", "plan_text", "values_text"]

_MOST_CLIENTS = 5
_LONGEST_LABEL = 18
MOST_FAILURES = 12
"""Losses that the text of a plan shows."""


def plan_text(plan: Plan, today: MonthlyBill | None = None) -> str:
    """Return everything a planner asks first about a plan.

    Parameters
    ----------
    plan
        Any plan.
    today
        Bill of the present configuration, to compare with the bill of the plan.
    """
    instance = plan.problem.instance
    sections = [facts(plan_facts(plan))]
    sections.extend(sentences("Breaks" if plan.found else "Why", plan.reasons))
    if plan.found and plan.problem.demand.has_waits:
        sections.extend(
            [
                section("Replicas", _replicas(plan)),
                *(section(one.title, values_text(one)) for one in _tables(plan)),
                section("Operations, ms", _parts(plan)),
                *([section("Waits, one round each", _waits(plan))] if plan.waits else []),
                section("Clients", _clients(plan)),
            ]
        )
        if plan.leaders:
            sections.append(section("Leaders, replicas and voters unchanged", _leaders(plan)))
    elif plan.found:
        sections.extend(
            [
                section("Replicas", _replicas(plan)),
                *(section(one.title, values_text(one)) for one in _tables(plan)),
                *_bill(plan, today),
                section("Operations", _operations(plan)),
                section("Clients", _clients(plan)),
                section("Leaders, replicas and voters unchanged", _leaders(plan)),
                section("The same replicas with a leader chosen by a baseline rule", _naive(plan)),
            ]
        )
    if plan.found and plan.tells_losses:
        lost = section(f"When {plan.failures.describe()}", _failures(plan.failures))
        sections.append(lost)
    sections.extend(sentences("Notes", plan.notes))
    sections.extend(sentences("Where the numbers come from", instance.provenance))
    return "\n\n".join(sections)


def plan_facts(plan: Plan) -> list[tuple[str, str]]:
    """Return question, status and decision of a plan as labels and values."""
    from placement.problem import describe

    instance = plan.problem.instance
    head = [
        ("Question", f"{describe(plan.problem)}; on {instance.name}"),
        ("Answer", _answer(plan)),
    ]
    if plan.found:
        head.extend(_decision(plan))
    return head


def _answer(plan: Plan) -> str:
    from placement.support.status import Status, Termination

    proof = plan.claim or "proven"
    words = {
        Status.OPTIMAL: f"optimal ({plan.bare_proof})" if plan.bare_proof else f"optimal, {proof}",
        Status.FEASIBLE: "feasible",
        Status.INFEASIBLE: f"infeasible, {proof}: no configuration obeys all constraints",
        Status.UNKNOWN: "nothing found, and nothing proven",
        Status.VIOLATING: "evaluated, but it breaks constraints",
    }
    text = words[plan.status]
    if plan.found and plan.status is not Status.VIOLATING:
        if math.isinf(plan.gap):
            text += ", gap unknown (no bound)"
        elif plan.status is Status.FEASIBLE:
            text += f", gap {100 * plan.gap:.3g} %" + (f", {plan.claim}" if plan.claim else "")
    text += f"; by {plan.method}" + (f" in {plan.seconds:.3g} s" if plan.seconds else "")
    if plan.termination is not Termination.FINISHED:
        text += f", stopped: {plan.termination}"
    return text


def _decision(plan: Plan) -> list[tuple[str, str]]:
    votes = sum(member.counted for member in plan.quorum_members)
    rows = [
        *_headline(plan),
        ("Mean latency", f"{number_text(plan.mean_latency, 3)} ms per operation{_bound(plan)}"),
        ("Leader", plan.leader or "none: no operation needs one"),
    ]
    if plan.commits:
        total = len(plan.quorum_members)
        wait = f"waits {number_text(plan.quorum_wait)} ms for {votes} of {total} votes"
        rows.append(("Commit", wait))
    prices = plan.problem.instance.prices
    if prices is not None and plan.priced:
        rows.append(("Cost", f"{number_text(plan.cost)} {prices.currency} per month"))
        if prices.source:
            rows.append(("Prices", prices.source))
    return rows


def _headline(plan: Plan) -> list[tuple[str, str]]:
    """Return the value that is minimised, with its bound; nothing where the mean latency is."""
    problem = plan.problem
    name = problem.objective.headline(problem)
    if not name:
        return []

    def ms(value: float) -> str:
        if math.isinf(value):
            return "beyond the horizon"
        return number_text(problem.objective.in_ms(problem, value), problem.objective.decimals)

    unit = f" {problem.objective.unit(problem)}".rstrip()
    said = ms(plan.objective) + (unit if math.isfinite(plan.objective) else "")
    if math.isfinite(plan.bound) and plan.gap > 0 and ms(plan.bound) != ms(plan.objective):
        said += _no_plan_below(plan, ms(plan.bound) + unit)
    short = len(name) <= _LONGEST_LABEL
    return [(name, said) if short else ("Minimised", f"{name}: {said}")]


def _bound(plan: Plan) -> str:
    if not (math.isfinite(plan.bound) and plan.gap and plan.problem.minimises_mean):
        return ""
    best = plan.bound / plan.problem.demand.operations
    return _no_plan_below(plan, f"{number_text(best, 3)} ms")


def _no_plan_below(plan: Plan, value: str) -> str:
    return f"; claimed bound {value}" if plan.claim else f"; no plan can be below {value}"


def _replicas(plan: Plan) -> str:
    """Voters in the order in which they answer, then the other replicas."""
    near = [row.nearest for row in plan.per_client]
    demand = dict.fromkeys(plan.replicas, 0.0)
    total = sum(row.operations for row in plan.per_client)
    for row, site in zip(plan.per_client, near, strict=True):
        demand[site] += row.operations
    rows = []
    witnesses = set(plan.witnesses)
    for member in plan.quorum_members:
        role = "leader" if member.voter == plan.leader else "voter"
        role = "witness" if member.voter in witnesses else role
        counted = "counted" if member.counted else ""
        cells = [number_text(member.rtt), counted] if plan.leader else ["–", ""]
        rows.append([member.voter, role, *cells])
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
        serves = total and site not in witnesses
        cells.append(f"{100 * demand[site] / total:.1f} %" if serves else "–")
        cells.extend(plan.problem.instance.domains[level][place[site]] or "–" for level in levels)
    return table(
        ["site", "role", "RTT ms", "quorum", "nearest to", *levels],
        rows,
        right=(2, 4),
        indent="  ",
    )


def _tables(plan: Plan) -> tuple[ValueTable, ...]:
    if plan.configuration is None:
        return ()
    return plan.problem.objective.tables(plan.problem, plan.configuration)


def _bill(plan: Plan, today: MonthlyBill | None) -> list[str]:
    """Return the tables of the bill of a plan, and of the present bill if given.

    Nothing without prices, and where one term is all that there is to tell.
    """
    if plan.bill is None or (today is None and len(plan.bill.by_term) < 2):
        return []
    from placement.evaluation.bill import bill_tables

    return [section(one.title, values_text(one)) for one in bill_tables(plan.bill, today)]


def values_text(values: ValueTable) -> str:
    """Return a table of values as aligned text."""
    rows = []
    for place, row in enumerate(values.rows):
        cells = []
        for column, value in zip(values.columns, row, strict=True):
            if isinstance(value, str) or column.decimals is None:
                cells.append(str(value))
            else:
                finite = math.isfinite(value)
                cells.append(number_text(value, column.decimals) if finite else column.beyond)
        if place == values.chosen:
            cells[0] += " (chosen)"
        rows.append(cells)
    right = [i for i, column in enumerate(values.columns) if column.decimals is not None]
    return table([column.name for column in values.columns], rows, right=right, indent="  ")


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


def _parts(plan: Plan) -> str:
    """Return the operations with the trips and waits that their latency is the sum of."""
    return table(
        ["operation", "share", "mean", "= nearest", "+ leader", "+ waiting", "+ constant"],
        [
            [
                row.operation,
                f"{100 * row.share:.2f} %",
                number_text(row.latency),
                number_text(part.to_nearest),
                number_text(part.to_leader),
                number_text(part.waiting),
                number_text(part.constant),
            ]
            for row, part in zip(plan.per_operation, plan.parts, strict=True)
        ],
        right=(1, 2, 3, 4, 5, 6),
        indent="  ",
    )


def _waits(plan: Plan) -> str:
    """Return the last site to answer in each wait, and the gain of one answer fewer."""
    return table(
        ["operation", "wait", "mean ms", "most often last", "", "one fewer, ms"],
        [
            [
                row.operation,
                row.wait,
                number_text(row.latency),
                row.last,
                f"{100 * row.last_share:.0f} %",
                number_text(row.one_fewer),
            ]
            for row in plan.waits
        ],
        right=(2, 4, 5),
        indent="  ",
    )


def _clients(plan: Plan) -> str:
    """Return the clients with the highest latency and those with the most operations, each once."""
    issued = [row for row in plan.per_client if row.operations > 0]
    worst = sorted(issued, key=lambda row: -row.latency)[:_MOST_CLIENTS]
    heaviest = sorted(issued, key=lambda row: -row.operations)[:_MOST_CLIENTS]
    total = sum(row.operations for row in issued)
    led = not plan.problem.demand.leaderless
    shown: list[list[str]] = []

    def add(why: str, row: ClientLatency) -> None:
        shown.append(
            [
                why,
                row.client,
                f"{100 * row.operations / total:.2f} %",
                number_text(row.latency),
                *([number_text(row.to_leader)] if led else []),
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
        [
            *("", "client", "demand", "mean ms"),
            *(["to leader"] if led else []),
            *("to nearest", "nearest"),
        ],
        shown,
        right=(2, 3, 4, 5) if led else (2, 3, 4),
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


def _naive(plan: Plan) -> str:
    from placement.evaluation.rules_of_thumb import rules_of_thumb

    assert plan.configuration is not None
    return table(
        ["rule", "leader", "mean ms", "overhead", ""],
        [
            [
                row.strategy,
                row.leader or ("(every voter alike)" if not row.why else "–"),
                number_text(row.mean_latency, 3),
                "–" if math.isnan(row.overhead) else f"{row.overhead:.2f} %",
                row.why,
            ]
            for row in rules_of_thumb(plan.problem, plan.configuration)
        ],
        right=(2, 3),
        indent="  ",
    )


def failures_table(report: Failures, most: int | None = None) -> str:
    """Return the effects of each loss, the worst first; all of them, or at most some."""
    rows = [
        [
            row.lost,
            row.leader or "no quorum: the service stops",
            number_text(row.mean_latency, 3),
            "–" if math.isinf(row.overhead) else f"{row.overhead:+.2f} %",
        ]
        for row in sorted(report.each, key=lambda row: -row.mean_latency)[:most]
    ]
    heads = ["lost", "new leader", "mean ms", "overhead"]
    return table(heads, rows, right=(2, 3), indent="  ")


def _failures(report: Failures) -> str:
    text = failures_table(report, MOST_FAILURES)
    if report.failover:
        order = ", then ".join(f"{name} ({latency:.1f} ms)" for name, latency in report.failover)
        sentence = escape(f"If the leader is lost: {order}.")
        text += "\n  " + wrap(sentence, page_width() - 2, indent="    ")
    return text
