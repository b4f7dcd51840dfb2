"""The answer about a plan for the browser: numbers as in a plan file, and parts of the page."""

from __future__ import annotations

import math
from dataclasses import dataclass

from placement.analysis.pareto_frontier import changes_in_words
from placement.errors import InputError
from placement.evaluation.losses import score_after
from placement.explore.question import PageQuestion
from placement.io.formats.document import Document
from placement.io.plan_file import outcome_document
from placement.measures import read_limit
from placement.measures.question import amount, value_of_plan
from placement.model.configuration import Configuration
from placement.model.instance import Instance
from placement.plan import Plan, evaluate
from placement.problem import Problem, describe
from placement.report.charts.html_tables import duration, facts, milliseconds, reasons
from placement.report.charts.markup import join, tag
from placement.report.charts.svg_charts import Bar, bars
from placement.report.map.svg_map import Ground, map_view, sites_table
from placement.report.plan_page import STATUS_WORDS, plan_figures

_HEAVIEST = 12


def answer_document(question: PageQuestion, plan: Plan, ground: Ground) -> dict[str, object]:
    """Return a plan for the browser.

    Parameters
    ----------
    question
        That of the plan.
    plan
        Any plan.
    ground
        Of the map.

    Returns
    -------
    dict
        The keys of :func:`placement.io.plan_file.outcome_document`; ``badge`` and
        ``asked``, the status and the question in words; ``currency``; ``shares`` of the operations;
        ``limits``, one row for each limit of the question; ``after``, the same keys after the loss
        of ``question.lost``, None without a loss or if the service stops; and ``html``, the layers
        of the map and the panels ``facts``, ``table`` and ``clients``.
    """
    prices = plan.problem.instance.prices
    shown, after = plan, None
    if question.lost and plan.found:
        after = after_loss(plan, question.lost)
        shown = plan if after is None else after
    view = map_view(plan.problem.instance, shown, ground)
    panels: dict[str, str] = {"facts": _facts(question, plan, after), "clients": "", "table": ""}
    if plan.found:
        table = sites_table(shown, view, 0, lost=question.lost, before=plan, sortable=False)
        panels |= {"clients": _clients(shown), "table": table}
    return {
        **outcome_document(plan),
        "badge": STATUS_WORDS[plan.status],
        "asked": f"{describe(plan.problem)} · search {duration(plan.seconds)}",
        "currency": None if prices is None else prices.currency,
        "shares": operation_shares(plan.problem.instance),
        "limits": _limits(question, plan),
        "after": None if after is None else outcome_document(after),
        "html": {"map": view.layers, **panels},
    }


def after_loss(plan: Plan, lost: tuple[str, ...]) -> Plan | None:
    """Return the surviving part of a plan after a loss, under the best surviving leader.

    Parameters
    ----------
    plan
        With a configuration.
    lost
        Names of sites.

    Returns
    -------
    Plan or None
        Replicas and voters that survive, evaluated with the quorum of the plan; None where the
        service stops.

    Raises
    ------
    InputError
        For an unknown site, and where operations have waits or voters are witnesses.
    """
    problem, configuration = plan.problem, plan.configuration
    assert configuration is not None
    if problem.needs_roles:
        words = "losses are not computed for operations with waits, nor with witnesses"
        expected = "no lost site, or a protocol such as raft and no witnesses"
        raise InputError(words, field="lost", value=", ".join(lost), expected=expected)
    gone = set(problem.instance.site_indices(lost, "lost").tolist())
    scores = score_after(problem, configuration, gone)
    if not scores:
        return None
    voters = [v for v in configuration.voters if v not in gone]
    replicas = [r for r in configuration.replicas if r not in gone]
    rest = Problem(
        problem.instance,
        replicas=len(replicas),
        voters=len(voters),
        quorum=problem.rules.quorum,
        decay=problem.decay,
    )
    return evaluate(rest, Configuration.of(min(scores, key=scores.__getitem__), voters, replicas))


def _facts(question: PageQuestion, plan: Plan, after: Plan | None) -> str:
    """Return the row of figures at the top."""
    if not plan.found:
        return join(reasons("Why", plan.reasons) or tag("p", None, "Nothing was found in time."))
    problem, rows = plan.problem, plan_figures(plan)
    rows.insert(-2, ("99th percentile", "…", f"RTTs with a spread of {question.spread:g}"))
    voting = len(plan.voters) - len(plan.witnesses)
    rows[-1] = (*rows[-1][:2], f"{rows[-1][2]}; {voting} of {len(plan.replicas)} vote")
    prices = problem.instance.prices
    if prices is not None:
        rows.append(("Bill", f"{plan.cost:,.2f} {prices.currency}", "per month"))
    if question.lost:
        what = ", ".join(question.lost)
        if after is None:
            rows.append((f"Loss of {what}", "service stops", "no quorum of voters is left"))
        else:
            more = f"+{milliseconds(after.mean_latency - plan.mean_latency)}"
            took = "leads on" if after.leader == plan.leader else "takes over"
            said = f"{after.leader} {took}, {more}"
            rows.append((f"Loss of {what}", milliseconds(after.mean_latency), said))
    return join([facts(rows), reasons("Notes", plan.notes)])


@dataclass(frozen=True)
class _Sites:
    """Leader, voters and replicas of a plan that the browser shows."""

    leader: str | None
    voters: tuple[str, ...]
    replicas: tuple[str, ...]


def difference(before: Document, plan: Plan) -> str:
    """Return what a plan changes against the answer shown before it; nothing without either."""
    latency, money = (before.number(key, math.nan) for key in ("mean_latency_ms", "cost"))
    if not plan.found or math.isnan(latency):
        return ""
    parts = []
    if abs(slower := plan.mean_latency - latency) >= 0.005:
        parts.append(f"{slower:+.2f} ms")
    prices = plan.problem.instance.prices
    if prices is not None and abs(more := plan.cost - money) >= 0.005:
        parts.append(f"{more:+,.2f} {prices.currency}")
    leader = before.text("leader") if before.has("leader") else None
    known = _Sites(leader, before.names("voters"), before.names("replicas"))
    words = changes_in_words(known, plan)
    if not parts and not words:
        return "The plan did not change."
    said = ", ".join(parts) or "same latency"
    return f"Against the plan before: {said}{': ' * bool(words)}{words}".replace("-", "−")


def operation_shares(instance: Instance) -> dict[str, float]:
    """Return the share of each operation, by name."""
    issued = instance.counts.sum(axis=(0, 1))
    shares = issued / max(issued.sum(), 1.0)
    return {one.name: float(n) for one, n in zip(instance.operations, shares, strict=True)}


def _limits(question: PageQuestion, plan: Plan) -> list[dict[str, object]]:
    """Return measure, sign, bound, unit and value of each limit; the value None without a plan."""
    rows: list[dict[str, object]] = []
    for limit in map(read_limit, question.asked.keep):
        measure, found = limit.measure, value_of_plan(plan, limit.measure)
        scale = 100 if measure.share else 1
        rows.append({
            "measure": str(measure), "sign": ">=" if measure.share else "<=",
            "bound": scale * limit.bound,
            "unit": "%" if measure.share else measure.unit,
            "value": scale * found if math.isfinite(found) else None,
            "words": amount(plan.problem, measure, found) if plan.found else "no plan",
        })  # fmt: skip
    return rows


def _clients(plan: Plan) -> str:
    """Return the latency of the heaviest clients."""
    heaviest = sorted(plan.client_rows, key=lambda row: -row.operations)[:_HEAVIEST]
    rows = [Bar(row.client, row.latency, milliseconds(row.latency)) for row in heaviest]
    return bars(rows, caption=f"Mean latency of the {len(rows)} heaviest clients")
