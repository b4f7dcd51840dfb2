"""The answer about a plan for the browser: numbers as in a plan file, and parts of the page."""

from __future__ import annotations

import math

from placement.errors import InputError
from placement.evaluation.losses import score_after
from placement.explore.question import Question
from placement.io.leader_plan_document import outcome_document
from placement.model.configuration import Configuration
from placement.plan import Plan, evaluate
from placement.problem import Problem, describe
from placement.report.charts.html_tables import (
    data_table,
    facts,
    milliseconds,
    percent,
    reasons,
)
from placement.report.charts.markup import join, tag
from placement.report.charts.svg_charts import Bar, bars
from placement.report.map.map_view import Ground, map_view
from placement.report.map.svg_map import map_layers
from placement.report.plan_page import value_words
from placement.support.status import Status

__all__ = ["after_loss", "answer_document"]

_HEAVIEST = 12


def answer_document(question: Question, plan: Plan, ground: Ground) -> dict[str, object]:
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
        The keys of :func:`placement.io.leader_plan_document.outcome_document`; ``seconds``;
        ``question`` in words; ``currency``; ``after``, the same keys after the loss of
        ``question.lost``, None without a loss or if the service stops; and ``html``, the layers of
        the map and the panels ``facts``, ``table`` and ``clients``.
    """
    prices = plan.problem.instance.prices
    shown, after = plan, None
    if question.lost and plan.found:
        after = after_loss(plan, question.lost)
        shown = plan if after is None else after
    view = map_view(plan.problem.instance, shown, ground)
    panels: dict[str, str] = {"facts": _facts(question, plan, after), "clients": "", "table": ""}
    if plan.found:
        panels |= {"clients": _clients(shown), "table": _replicas(plan, shown, question.lost)}
    return {
        **outcome_document(plan),
        "seconds": plan.seconds,
        "question": describe(plan.problem),
        "currency": None if prices is None else prices.currency,
        "after": None if after is None else outcome_document(after),
        "html": {"map": map_layers(view), **panels},
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
        raise InputError(
            "losses are not computed for operations with waits, nor with witnesses",
            field="lost",
            value=", ".join(lost),
            expected="no lost site, or a protocol such as raft and no witnesses",
        )
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


def _facts(question: Question, plan: Plan, after: Plan | None) -> str:
    """Return the row of figures at the top."""
    if not plan.found:
        return join(reasons("Why", plan.reasons) or tag("p", None, "Nothing was found in time."))
    problem = plan.problem
    rows: list[tuple[str, str, str]] = []
    if problem.objective.headline(problem):
        value = problem.objective.in_ms(problem, plan.objective)
        said = value_words(problem, value)
        rows.append((problem.objective.describe(), said, "what this plan minimises"))
    rows.append(("Mean latency", milliseconds(plan.mean_latency), "over all operations"))
    rows.append(("99th percentile", "…", f"RTTs with a spread of {question.spread:g}"))
    if plan.leader is not None:
        waits = f"waits {milliseconds(plan.quorum_wait)} for its quorum"
        rows.append(("Leader", plan.leader, waits))
    voting = len(plan.voters) - len(plan.witnesses)
    said = f"{_proof(plan)}; {voting} of {len(plan.replicas)} vote"
    rows.append(("Gap", percent(plan.gap), said))
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


def _proof(plan: Plan) -> str:
    """Return the text about the gap."""
    if plan.status is Status.OPTIMAL:
        return plan.bare_proof or "proven optimal"
    return "at most this can be saved" if math.isfinite(plan.gap) else "no bound was proven"


def _replicas(plan: Plan, shown: Plan, lost: tuple[str, ...]) -> str:
    """Return the table of replicas after a loss, and of those lost with the role that they had."""
    before = _roles(plan)
    gone = {name: (f"{before[name][0]}, lost", None) for name in before if name in lost}
    rows = [
        {"Site": name, "Role": role, "RTT from leader, ms": rtt}
        for name, (role, rtt) in {**_roles(shown), **gone}.items()
    ]
    return data_table("Replicas", rows, sortable=False)


def _roles(plan: Plan) -> dict[str, tuple[str, float | None]]:
    """Return role and RTT from the leader, in ms, of each replica and voter; the leader first."""
    members = {member.voter: member for member in plan.quorum_members}
    leader = (plan.leader,) if plan.leader else ()
    found: dict[str, tuple[str, float | None]] = {}
    for name in (*leader, *plan.voters, *plan.replicas):
        member = members.get(name)
        role = "leader" if name == plan.leader else "voter" if member else "replica"
        role = "witness" if name in plan.witnesses else role
        found[name] = (role, None if member is None else member.rtt)
    return found


def _clients(plan: Plan) -> str:
    """Return the latency of the heaviest clients."""
    heaviest = sorted(plan.per_client, key=lambda row: -row.operations)[:_HEAVIEST]
    rows = [Bar(row.client, row.latency, milliseconds(row.latency)) for row in heaviest]
    return bars(rows, caption=f"Mean latency of the {len(rows)} heaviest clients")
