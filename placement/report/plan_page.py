"""The sections of the page of a plan, and of the page of a plan of a quorum store."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from placement.evaluation.bill import MonthlyBill, bill_of, bill_tables
from placement.evaluation.breakdown import RuleOfThumb, rules_of_thumb
from placement.model.configuration import Configuration
from placement.overtime.moves.move_steps import move_tables, moves_sentence, plan_moves
from placement.plan import Plan, evaluate
from placement.problem import describe
from placement.quorumstore.plan import QuorumPlan
from placement.report.charts.html_tables import (
    TableRow,
    data_table,
    duration,
    facts,
    milliseconds,
    percent,
    reasons,
    section,
    value_table,
)
from placement.report.charts.markup import Child, Markup, tag
from placement.report.charts.svg_charts import Bar, Dots, Series, bars, dots, lines
from placement.report.map.svg_map import map_section
from placement.support.status import Status
from placement.text.plans import (
    failover_sentence,
    failures_table,
    leader_tables,
    operation_tables,
    thresholds_table,
)

# --- before and after: latency under the leaders that people choose without a model ------------

_CORNERS = 120


@dataclasses.dataclass(frozen=True, slots=True)
class Baseline:
    """A leader that administrators would choose for the same replicas and voters."""

    choice: RuleOfThumb  #: strategy, leader and mean latency
    per_client: tuple[float, ...]  #: mean latency of each client in ms, in client order


def baselines(plan: Plan) -> tuple[Baseline, ...]:
    """Return the baseline rules that name a leader, with their latency of each client."""
    configuration = plan.configuration
    if configuration is None:
        return ()
    index = {name: i for i, name in enumerate(plan.problem.instance.sites)}
    found = []
    for choice in rules_of_thumb(plan.problem, configuration):
        if choice.leader is not None:
            other = dataclasses.replace(configuration, leader=index[choice.leader])
            rows = evaluate(plan.problem, other).client_rows
            found.append(Baseline(choice, tuple(row.latency for row in rows)))
    return tuple(found)


def distinct_baselines(plan: Plan, others: Sequence[Baseline]) -> list[Baseline]:
    """Return one naive choice per leader that the plan does not have itself."""
    found: dict[str | None, Baseline] = {}
    for other in others:
        if other.choice.leader != plan.leader:
            found.setdefault(other.choice.leader, other)
    return list(found.values())


def baseline_names(other: Baseline) -> str:
    """Return the rule and its leader, as text."""
    return f"{other.choice.strategy} ({other.choice.leader})"


def latency_shares(
    latency: Sequence[float], weight: Sequence[float]
) -> tuple[tuple[float, float], ...]:
    """Return the share of the operations that are answered within each latency.

    It is told by (ms, per cent) from 0 to 100 %, at most some hundred corners of the step function;
    given are the mean latency of each client in ms, NaN where it issued nothing, and its
    operations as `weight`.
    """
    values = np.asarray(latency, dtype=np.float64)
    counts = np.where(np.isfinite(values), np.asarray(weight, dtype=np.float64), 0.0)
    if not counts.sum() > 0:
        return ()
    order = np.argsort(np.where(np.isfinite(values), values, np.inf), kind="stable")
    order = order[counts[order] > 0]
    share = 100 * np.cumsum(counts[order]) / counts.sum()
    keep = np.unique(np.linspace(0, len(order) - 1, min(len(order), _CORNERS)).astype(int))
    corners = [(float(values[order[k]]), float(share[k])) for k in keep]
    return ((0.0, 0.0), *corners)


_HEAVIEST = 20

STATUS_WORDS = {
    Status.OPTIMAL: "optimal: proven, no plan is better",
    Status.FEASIBLE: "feasible: obeys all constraints",
    Status.INFEASIBLE: "infeasible: proven, there is no plan",
    Status.UNKNOWN: "unknown: nothing found, nothing proven",
    Status.VIOLATING: "breaks constraints",
}


def failure_levels(plan: Plan) -> tuple[str, ...]:
    """Return the failure-domain levels worth telling: the site, and every level with labels."""
    domains = plan.problem.instance.domains
    return ("site", *(level for level, labels in domains.items() if any(labels)))


def plan_sections(plan: Plan, today: Configuration | None = None) -> list[Markup]:
    """Return the sections of a plan, of one that found nothing too, with the bill of `today`."""
    problem, sections = plan.problem, [_summary(plan), map_section(plan)]
    if plan.configuration is not None:
        sections.append(_clients(plan))
        if added := problem.objective.tables(problem, plan.configuration):
            sections.append(section("tail", "Measures", *map(value_table, added)))
        if plan.bill is not None:
            sections.append(_bill(plan, plan.bill, today))
        if (moves := None if problem.current is None else plan_moves(plan)) is not None:
            said = tag("p", {"class": "note"}, moves_sentence(moves))
            steps = map(value_table, move_tables(moves))
            sections.append(section("moves", "How to get there", said, *steps))
        if plan.leaders:
            sections.append(_leaders(plan))
        if plan.tells_losses:
            sections.append(_failures(plan, plan.configuration))
        tables = operation_tables(plan)
        sections.append(
            section("operations", "Latency of each operation", *map(value_table, tables))
        )
    sections.append(_background(plan))
    return sections


def _summary(plan: Plan) -> Markup:
    problem = plan.problem
    badge = tag("p", {"class": f"badge {plan.status.value}"}, _status(plan))
    question = tag("p", {"class": "question"}, f"Asked: {describe(problem)}.")
    made = tag("p", {"class": "made"}, f"By {plan.method!r} in {duration(plan.seconds)}, "
               f"{plan.termination.value}.")  # fmt: skip
    if not plan.found:
        return section("answer", "Answer", badge, question, made, reasons("Why", plan.reasons))
    worst = plan.failures.worst if plan.tells_losses else None
    pairs = plan_figures(plan)
    if worst is not None:
        left = milliseconds(worst.mean_latency) if worst.survives else "service stops"
        pairs.append((f"Worst loss of {plan.failures.what}", left, f"when {worst.lost} is lost"))
    by_rule = [b.choice for b in baselines(plan) if b.choice.overhead > 0.05]
    if by_rule:
        most = max(by_rule, key=lambda choice: choice.overhead)
        saved = f"{100 * (1 - plan.mean_latency / most.mean_latency):.1f} % lower"
        than = f"mean latency than with {most.leader} ({most.strategy})"
        pairs.append(("Compared with a baseline rule", saved, than))
    return section(
        "answer",
        "Answer",
        badge,
        facts(pairs),
        question,
        made,
        reasons("Breaks", plan.reasons),
        reasons("Notes", plan.notes),
    )


def plan_figures(plan: Plan) -> list[tuple[str, str, str]]:
    """Return the figures at the top, each with its name and a remark, of a plan that was found."""
    goal, problem = plan.problem.objective, plan.problem
    pairs = []
    if goal.headline(problem):
        value, unit = goal.in_ms(problem, plan.objective), goal.unit(problem)
        said = milliseconds(value) if unit == "ms" else f"{value:,.2f} {unit}"
        said = said if math.isfinite(value) else goal.beyond
        pairs.append((goal.headline(problem), said, "what this plan minimises"))
    pairs.append(("Mean latency", milliseconds(plan.mean_latency), "over all operations"))
    waits = f"waits {milliseconds(plan.quorum_wait)} for its quorum" if plan.commits else ""
    pairs.append(("Leader", plan.leader or "none", waits if plan.leader else "none is needed"))
    proof = "at most this much could be saved" if math.isfinite(plan.gap) else "no bound was proven"
    if plan.status is Status.OPTIMAL:
        proof = plan.bare_proof or "proven optimal"
    pairs.append(("Gap", percent(plan.gap), plan.claim or proof))
    return pairs


def _status(plan: Plan) -> str:
    """Return the status in words; of a plan from a file, whose word its proof is."""
    if plan.claim:
        return f"{plan.status.value}: {plan.claim}"
    said = STATUS_WORDS[plan.status]
    return f"{said} ({plan.bare_proof})" if plan.bare_proof else said


def clients_table(plan: Plan, others: Sequence[Baseline] = ()) -> Markup:
    """Return the table of all clients, with their latency under other leaders beside it."""
    rows = plan.client_rows
    total = sum(row.operations for row in rows) or 1.0
    led = not plan.problem.demand.leaderless
    return data_table(
        f"All {len(rows)} clients",
        [
            {
                "Client": row.client,
                "Operations, %": 100 * row.operations / total,
                "Nearest replica": row.nearest,
                "RTT to it, ms": row.to_nearest,
                **({"RTT to leader, ms": row.to_leader} if led else {}),
                "Mean latency, ms": row.latency,
                **{f"with {baseline_names(b)}, ms": b.per_client[c] for b in others},
            }
            for c, row in enumerate(rows)
        ],
    )


def _clients(plan: Plan) -> Markup:
    rows, others = plan.client_rows, baselines(plan)
    heaviest = sorted(range(len(rows)), key=lambda c: -rows[c].operations)[:_HEAVIEST]
    weight = [row.operations for row in rows]
    series = [Series("this plan", latency_shares([r.latency for r in rows], weight), "plan")]
    different = distinct_baselines(plan, others)
    for role, other in zip(("naive", "average"), different, strict=False):
        series.append(Series(baseline_names(other), latency_shares(other.per_client, weight), role))
    caption = "Share of the operations whose client is answered within a mean latency"
    x, y = "mean latency of the client, ms", "operations, %"
    picture = lines(series, caption=caption, x_label=x, y_label=y, name="latency", steps=True)
    drawn = []
    for c in heaviest:
        others_of = zip(("naive", "average"), different, strict=False)
        points = [(other.per_client[c], role, baseline_names(other)) for role, other in others_of]
        drawn.append(Dots(rows[c].client, (*points, (rows[c].latency, "plan", "this plan"))))
    caption = f"The {len(heaviest)} heaviest clients"
    caption += ": leader of a baseline rule, and this plan" if different else ""
    dumbbell = dots(drawn, caption=caption, unit="ms", name="clients")
    table = clients_table(plan, others)
    same = None
    if not different and plan.leader is not None:
        same = tag("p", {"class": "note"}, "The baseline rules choose the same leader as this "
                   "plan: there is nothing to compare with.")  # fmt: skip
    return section("clients", "Latency of each client", same, picture, dumbbell, table)


def _leaders(plan: Plan) -> Markup:
    ranking = plan.leaders
    drawn = []
    for row in ranking:
        more = "" if row.overhead < 0.05 else f" (+{row.overhead:.1f} %)"
        role = "leader" if row.leader == plan.leader else "voter"
        drawn.append(Bar(row.leader, row.mean_latency, f"{row.mean_latency:.1f} ms{more}", role))
    caption = "Mean latency with each voter as leader, replicas and voters unchanged"
    picture = bars(drawn, caption=caption, name="leaders")
    rules = leader_tables(plan)[1:]
    return section("leaders", "Ranking of leaders", picture, *map(value_table, rules))


def _failures(plan: Plan, configuration: Configuration) -> Markup:
    from placement.evaluation.losses import failures

    parts: list[Child] = []
    asked = plan.failures
    reports = [asked] if asked.together > 1 else []
    reports += [
        failures(
            plan.problem,
            configuration,
            level,
            leader_may_move=asked.leader_may_move,
            clients_move=asked.clients_move,
        )
        for level in failure_levels(plan)
    ]
    for found in reports:
        single = found.level == "site" and found.together == 1
        if single:
            drawn = [Bar("nothing lost", found.normal, milliseconds(found.normal), "normal")]
            for row in found.each:
                said = f"{row.mean_latency:.1f} ms (+{row.overhead:.1f} %)"
                said = said if row.survives else "service stops"
                drawn.append(Bar(f"lost: {row.lost}", row.mean_latency, said, "lost"))
            caption = "Mean latency after the loss of each single site that holds a replica"
            caption += " or clients" if found.clients_move else ""
            parts.append(bars(drawn, caption=caption, name="failures"))
        parts.append(value_table(failures_table(found, whole=True)))
        if single and found.failover:
            parts.append(tag("p", None, failover_sentence(found)))
    return section("failures", "What each loss does", parts)


def _background(plan: Plan) -> Markup:
    instance = plan.problem.instance
    stats: list[TableRow] = [
        {"What": name, "Value": value if isinstance(value, str) else float(value)}
        for name, value in plan.stats.items()
    ]
    return section(
        "background",
        "Where the numbers come from",
        tag("p", None, f"{instance.name}: {len(instance.sites)} sites, {len(instance.clients)} "
            f"clients, {instance.counts.sum():,.0f} operations in {len(instance.intervals)} "
            f"interval{'' if len(instance.intervals) == 1 else 's'}; fingerprint "
            f"{instance.fingerprint[:16]}."),
        reasons("Provenance", instance.provenance),
        data_table("Numbers of the search", stats) if stats else None,
    )  # fmt: skip


def _bill(plan: Plan, bill: MonthlyBill, today: Configuration | None) -> Markup:
    """Return the section of the bill and of the bill of `today`."""
    said = f"{bill.total:,.2f} {bill.currency} per month."
    before = None if today is None else bill_of(plan.problem.instance, today)
    if before is not None:
        said += f" Today's configuration costs {before.total:,.2f} {before.currency} per month."
    if bill.source:
        said += f" Prices: {bill.source}."
    note = tag("p", {"class": "note"}, said)
    return section("bill", "What it costs", note, *map(value_table, bill_tables(bill, before)))


# --- the page of a plan of a quorum store ---------------------------------------------------------


def quorum_sections(plan: QuorumPlan) -> list[Markup]:
    """Return the sections: the configuration, every loss, every site with requests."""
    proven = plan.status in (Status.OPTIMAL, Status.INFEASIBLE)
    bare = "no certificate" if plan.certificate is None else "with a certificate"
    note = f"proved by {plan.method}; {bare}" if proven else plan.method
    known = ("Status", plan.status.value, note)
    if plan.configuration is None:
        return [section("answer", "No configuration", facts([known]),
                        reasons("Why", plan.reasons))]  # fmt: skip
    model = "worst loss" if plan.problem.rules.contingency else "normal operation"
    quorums = f"{len(plan.replicas)}-{plan.read_quorum}-{plan.write_quorum}"
    answer = section(
        "answer",
        "Configuration",
        facts(
            [
                known,
                ("N-R-W", quorums, "replicas, read quorum, write quorum"),
                (plan.problem.goal.target.value, f"{plan.value:,.2f} ms", model),
                ("Mean latency", f"{plan.mean_latency:,.2f} ms", "in normal operation"),
                ("Worst loss", "+".join(plan.worst.lost) or "none",
                 f"{plan.worst.threshold:,.2f} ms"),
            ]
        ),
        data_table("Replicas", [{"Site": name} for name in plan.replicas]),
    )  # fmt: skip
    rows: list[TableRow] = []
    for one in plan.per_site:
        waits = {"Read, ms": one.read_latency, "Write, ms": one.write_latency}
        rows.append({"Site": one.site, "Reads": one.reads, "Writes": one.writes, **waits})
    sites = data_table("Latency of every site in normal operation", rows)
    return [
        answer,
        section("losses", "Losses", value_table(thresholds_table(plan))),
        section("sites", "Sites with requests", sites),
    ]
