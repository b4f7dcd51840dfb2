"""Plans and instances as text."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from placement.support.status import Status, Termination
from placement.text.text_tables import (
    LABEL,
    ValueColumn,
    ValueTable,
    escape,
    facts,
    makes_csv,
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
    from placement.model.instance import Instance
    from placement.plan import Plan
    from placement.quorumstore.plan import QuorumPlan

_MOST_CLIENTS = 5
MOST_FAILURES = 12
"""Losses that the text of a plan shows."""


def plan_text(plan: Plan, today: MonthlyBill | None = None) -> str:
    """Return everything a planner asks first about a plan, its bill compared with that of today."""
    instance = plan.problem.instance
    sections = [facts(plan_facts(plan))]
    sections.extend(sentences("Breaks" if plan.found else "Why", plan.reasons))
    if plan.found:
        tables = [replicas_table(plan)]
        if plan.configuration is not None:
            tables += plan.problem.objective.tables(plan.problem, plan.configuration)
        if plan.bill is not None and (today is not None or len(plan.bill.by_term) > 1):
            from placement.evaluation.bill import bill_tables

            tables += bill_tables(plan.bill, today)
        tables += [*operation_tables(plan), _clients(plan), *leader_tables(plan)]
        sections.extend(section(one.title, values_text(one)) for one in tables)
    if plan.found and plan.tells_losses:
        lost = values_text(failures_table(plan.failures, MOST_FAILURES))
        if sentence := failover_sentence(plan.failures):
            lost += "\n  " + wrap(escape(sentence), page_width() - 2, indent="    ")
        sections.append(section(f"When {plan.failures.describe()}", lost))
    sections.extend(sentences("Notes", plan.notes))
    sections.extend(sentences("Where the numbers come from", instance.provenance))
    return "\n\n".join(sections)


def plan_facts(plan: Plan) -> list[tuple[str, str]]:
    """Return question, status and decision of a plan as labels and values."""
    from placement.problem import describe

    instance = plan.problem.instance
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
    head = [("Question", f"{describe(plan.problem)}; on {instance.name}"), ("Answer", text)]
    if plan.found:
        head.extend(_decision(plan))
    return head


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
        if plan.bill is not None and prices.stored_gb:
            held, gb = plan.bill.by_term.get("storage", 0.0), prices.stored_gb * len(plan.replicas)
            said = f"{number_text(held)} {prices.currency} per month for {number_text(gb, 0)} GB"
            rows.append(("Storage", f"{said}, {held / gb:.3g} {prices.currency} per GB"))
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
    return [(name, said) if len(name) < LABEL else ("Minimised", f"{name}: {said}")]


def _bound(plan: Plan) -> str:
    if not (math.isfinite(plan.bound) and plan.gap and plan.problem.minimises_mean):
        return ""
    best = number_text(plan.bound / plan.problem.demand.operations, 3)
    same = best == number_text(plan.mean_latency, 3) and not plan.claim
    return "" if same else _no_plan_below(plan, f"{best} ms")


def _no_plan_below(plan: Plan, value: str) -> str:
    return f"; claimed bound {value}" if plan.claim else f"; no plan can be below {value}"


def replicas_table(plan: Plan, most_levels: int | None = 2) -> ValueTable:
    """Return the voters in the order in which they answer, then the other replicas."""
    total = sum(row.operations for row in plan.client_rows)
    demand = dict.fromkeys(plan.replicas, 0.0)
    for row in plan.client_rows:
        demand[row.nearest] += row.operations
    instance, rows = plan.problem.instance, []
    for member in plan.quorum_members:
        role = "leader" if member.voter == plan.leader else "voter"
        role = "witness" if member.voter in plan.witnesses else role
        counted = "counted" if member.counted and plan.leader else ""
        rows.append((member.voter, role, member.rtt if plan.leader else math.nan, counted))
    place = {site: i for i, site in enumerate(instance.sites)}
    if plan.configuration is not None:
        rtt = plan.problem.demand.site_rtt[-1][plan.configuration.leader]
        rest = [site for site in plan.replicas if site not in plan.voters]
        rows += [(site, "read-only", float(rtt[place[site]]), "") for site in rest]
    levels = list(instance.domains)[:most_levels]
    columns = [ValueColumn("site"), ValueColumn("role"), ValueColumn("RTT ms", 2)]
    columns += [ValueColumn("quorum"), ValueColumn("nearest to", 1, unit="%")]
    return ValueTable(
        "Replicas",
        (*columns, *map(ValueColumn, levels)),
        tuple(
            (
                *row,
                100 * demand[row[0]] / total if total and row[1] != "witness" else math.nan,
                *(instance.domains[level][place[row[0]]] or "–" for level in levels),
            )
            for row in rows
        ),
    )


def values_text(values: ValueTable) -> str:
    """Return a table of values as aligned text."""
    rows = []
    for place, row in enumerate(values.rows):
        cells = []
        for column, value in zip(values.columns, row, strict=True):
            if isinstance(value, str) or column.decimals is None:
                cells.append(str(value))
            elif math.isinf(value):
                cells.append(column.beyond)
            else:
                sign = "+" if column.signed and value >= 0 else ""
                told = column.unit and not (math.isnan(value) or makes_csv())
                unit = f" {column.unit}" if told else ""
                cells.append(f"{sign}{number_text(value, column.decimals)}{unit}")
        if place == values.chosen:
            cells[0] += " (chosen)"
        rows.append(cells)
    right = [i for i, column in enumerate(values.columns) if column.decimals is not None]
    return table([column.name for column in values.columns], rows, right=right, indent="  ")


def _numbers(*names: str, decimals: int = 2) -> tuple[ValueColumn, ...]:
    return tuple(ValueColumn(name, decimals) for name in names)


def operation_tables(plan: Plan) -> list[ValueTable]:
    """Return the latency of each operation; with waits its parts, and each wait too."""
    head = (ValueColumn("operation"), ValueColumn("share", 2, unit="%"))
    rows = [(row.operation, 100 * row.share, row.latency) for row in plan.per_operation]
    if not plan.problem.demand.has_waits:
        return [ValueTable("Operations", (*head, *_numbers("mean ms")), tuple(rows))]
    parts = ("mean", "= nearest", "+ leader", "+ waiting", "+ constant")
    found = [
        ValueTable(
            "Operations, ms",
            (*head, *_numbers(*parts)),
            tuple(
                (*row, part.to_nearest, part.to_leader, part.waiting, part.constant)
                for row, part in zip(rows, plan.parts, strict=True)
            ),
        )
    ]
    waits = tuple(
        (row.operation, row.wait, row.latency, row.last, 100 * row.last_share, row.one_fewer)
        for row in plan.waits
    )
    columns = (*map(ValueColumn, ("operation", "wait")), *_numbers("mean ms"))
    last = (ValueColumn("most often last"), ValueColumn("", 0, unit="%"))
    columns = (*columns, *last, *_numbers("one fewer, ms"))
    return [*found, ValueTable("Waits, one round each", columns, waits)] if waits else found


def _clients(plan: Plan) -> ValueTable:
    """Return the clients with the highest latency and those with the most operations, each once."""
    issued = [row for row in plan.client_rows if row.operations > 0]
    total = sum(row.operations for row in issued)
    worst = sorted(issued, key=lambda row: -row.latency)[:_MOST_CLIENTS]
    heaviest = sorted(issued, key=lambda row: -row.operations)[:_MOST_CLIENTS]
    shown = [("worst", row) for row in worst] + [("heaviest", row) for row in heaviest]
    if len(issued) <= _MOST_CLIENTS:  # both lists are the same clients
        shown = [("", row) for row in worst]
    led = not plan.problem.demand.leaderless
    trips = ("mean ms", "to leader", "to nearest") if led else ("mean ms", "to nearest")
    head = (*map(ValueColumn, ("", "client")), ValueColumn("demand", 2, unit="%"))
    return ValueTable(
        "Clients",
        (*head, *_numbers(*trips), ValueColumn("nearest")),
        tuple(
            (
                *(why, row.client, 100 * row.operations / total, row.latency),
                *([row.to_leader] if led else []),
                *(row.to_nearest, row.nearest),
            )
            for why, row in shown
        ),
    )


_OVERHEAD = ValueColumn("overhead", 2, "–", unit="%")


def leader_tables(plan: Plan) -> list[ValueTable]:
    """Return each voter as leader and, without waits, the leaders of the baseline rules."""
    ranking = ValueTable(
        "Leaders, replicas and voters unchanged",
        (ValueColumn("leader"), *_numbers("mean ms", decimals=3), _OVERHEAD),
        tuple((row.leader, row.mean_latency, row.overhead) for row in plan.leaders),
        next((i for i, row in enumerate(plan.leaders) if row.leader == plan.leader), None),
    )
    if plan.problem.demand.has_waits or plan.configuration is None:
        return [ranking] if plan.leaders else []
    from placement.evaluation.breakdown import rules_of_thumb

    rules = ValueTable(
        "The same replicas with a leader chosen by a baseline rule",
        (
            *map(ValueColumn, ("rule", "leader")),
            *_numbers("mean ms", decimals=3),
            _OVERHEAD,
            ValueColumn(""),
        ),
        tuple(
            (
                row.strategy,
                row.leader or ("(every voter alike)" if not row.why else "–"),
                row.mean_latency,
                row.overhead,
                row.why,
            )
            for row in rules_of_thumb(plan.problem, plan.configuration)
        ),
    )
    return [ranking, rules]


def failures_table(report: Failures, most: int | None = None, *, whole: bool = False) -> ValueTable:
    """Return the effects of each loss, the worst first; all of them, or at most some.

    `whole`: also the leader that would be the worst choice.
    """
    columns = (*map(ValueColumn, ("lost", "new leader")), *_numbers("mean ms", decimals=3))
    columns = (*columns, ValueColumn("overhead", 2, "–", unit="%", signed=True))
    worst = (ValueColumn("worst leader"), *_numbers("mean ms with it", decimals=3))
    return ValueTable(
        f"Loss of any {report.describe().removesuffix(' is lost')}",
        (*columns, *worst) if whole else columns,
        tuple(
            (
                row.lost,
                row.leader or "no quorum: the service stops",
                row.mean_latency,
                row.overhead,
                *((row.worst_leader or "–", row.worst_latency) if whole else ()),
            )
            for row in sorted(report.each, key=lambda row: -row.mean_latency)[:most]
        ),
    )


def failover_sentence(report: Failures) -> str:
    """Return the order in which voters take over; empty where the leader is not lost."""
    order = ", then ".join(f"{name} ({latency:.1f} ms)" for name, latency in report.failover)
    return f"If the leader is lost: {order}." if order else ""


_MOST_LEVELS = 6


def instance_text(instance: Instance, *, most: int = 20) -> str:
    """Return the contents of an instance as text: all sites, and at most some clients by demand."""
    import numpy as np

    from placement.model.instance import instance_facts  # loads NumPy

    issued = instance.counts.sum(axis=(0, 2))
    order = np.argsort(-issued, kind="stable")
    total = float(issued.sum())
    last = instance.client_rtt if instance.client_rtt.ndim == 2 else instance.client_rtt[-1]
    near = last.argmin(axis=1)
    head = (ValueColumn("client"), ValueColumn("operations", 0), ValueColumn("share", 2, unit="%"))
    rows = tuple(
        (
            *(instance.clients[c], float(issued[c])),
            100 * float(issued[c]) / total if total else math.nan,
            *(instance.sites[near[c]], float(last[c, near[c]])),
        )
        for c in order[:most]
    )
    columns = (*head, ValueColumn("closest site"), *_numbers("RTT ms"))
    body = values_text(ValueTable("Clients by demand", columns, rows))
    rest = len(order) - most
    counts = instance.counts.sum(axis=(0, 1))
    total = float(counts.sum())
    shares = table(
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
    # below the table, whose cells are cut at the width of the page
    lines = [shares]
    for one in instance.operations:
        parts = [*map(str, one.waits), *[f"{one.constant:g} ms"] * bool(one.constant)]
        said = f"{escape(one.name)} also takes {'; '.join(parts)}"
        if one.has_waits:
            lines.append("  " + wrap(said, page_width() - 2, indent="    "))
    sections = [
        facts(instance_facts(instance)),
        section("Sites", _sites_text(instance)),
        section("Clients by demand", body + (f"\n  … and {rest} more" if rest > 0 else "")),
        section("Operations", "\n".join(lines)),
    ]
    sections.extend(sentences("Where the numbers come from", instance.provenance))
    return "\n\n".join(sections)


def _sites_text(instance: Instance) -> str:
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


_MOST_LOSSES = 8


def thresholds_table(plan: QuorumPlan, most: int | None = None) -> ValueTable:
    """Return the thresholds of a quorum store, and after the worst losses: all, or at most some."""
    losses = sorted(plan.losses[1:], key=lambda effect: -effect.threshold)[:most]
    return ValueTable(
        "Thresholds after losses, the worst first",
        (ValueColumn("lost"), *_numbers("read ms", "write ms")),
        tuple(
            ("+".join(effect.lost) or "(nothing)", effect.read_threshold, effect.write_threshold)
            for effect in (plan.normal, *losses)
        ),
    )


def quorum_plan_text(plan: QuorumPlan) -> str:
    """Return the configuration with its quorums, its value, and the thresholds after losses."""
    goal, losses = plan.problem.goal, plan.problem.rules.contingency
    bare = plan.status in (Status.OPTIMAL, Status.INFEASIBLE) and not plan.certified
    known = f"{plan.status}{', no certificate' if bare else ''}"
    model = f"{'N-1C' if losses else 'BA'}, {plan.method}"
    if plan.configuration is None:
        reasons = [wrap(f"  {escape(reason)}", indent="    ") for reason in plan.reasons]
        return "\n".join([f"{known}: no configuration ({model})", *reasons])
    target = {
        "threshold": "max(T_r, T_w)",
        "reads": "T_r",
        "writes": "T_w",
        "weighted": f"{goal.read_weight:g} T_r + {goal.write_weight:g} T_w",
    }[goal.target.value]
    normal, worst = goal.normal_weight, goal.worst_weight
    if losses and (normal, worst) == (0, 1):
        target += ", worst loss"
    elif losses:
        target += f", {normal:g} normal + {worst:g} worst loss" if worst else ", normal"
    return "\n".join(
        [
            f"{known} ({model}): {plan.value:,.2f} ms, {target}",
            f"Replicas  {escape(', '.join(plan.replicas))}",
            f"N-R-W     {len(plan.replicas)}-{plan.read_quorum}-{plan.write_quorum}",
            f"Mean      {plan.mean_latency:.2f} ms in normal operation",
            "",
            "Thresholds, worst losses first",
            values_text(thresholds_table(plan, _MOST_LOSSES)),
        ]
    )
