"""Jobs of the explorer: each takes a JSON value and returns one, and keeps nothing."""

from __future__ import annotations

import dataclasses
import math
import shlex
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from placement.analysis.pareto_frontier import NamedRoles, changes_in_words, pareto
from placement.analysis.sensitivity import next_best_plans
from placement.analysis.sweep import sweep
from placement.databases.deployment import deployment_of_plan
from placement.databases.localities import Localities, load_localities, plain_names
from placement.databases.system import load_system, write_deployment
from placement.errors import InputError, PlacementError, UnsupportedError, refused
from placement.evaluation.losses import score_after
from placement.explore.question import (
    PageQuestion,
    asked_question,
    page_question,
    python_lines,
    question_file,
    read_question,
)
from placement.io.formats.document import Document, encode_json
from placement.io.plan_file import outcome_document, plan_document
from placement.measures import read_limit
from placement.measures.question import amount, value_of_plan
from placement.methods.options import Progress
from placement.methods.registry import prove, solve
from placement.model.configuration import Configuration
from placement.model.instance import Instance
from placement.plan import Plan, evaluate
from placement.problem import Problem, describe
from placement.question import Question, question_from
from placement.report import report_html
from placement.report.charts.html_tables import (
    TableRow,
    data_table,
    duration,
    facts,
    milliseconds,
    reasons,
    value_table,
)
from placement.report.charts.markup import Child, Markup, join, tag
from placement.report.charts.svg_charts import Bar, Dots, Series, bars, dots, lines
from placement.report.map.svg_map import Ground, ground_of, map_view, sites_table, svg_map
from placement.report.plan_page import STATUS_WORDS, clients_table, plan_figures
from placement.support.checks import elements, number, text
from placement.support.status import Status
from placement.text.plans import failures_table, replicas_table

_HEAVIEST = 12


def answer_document(question: PageQuestion, plan: Plan, ground: Ground) -> dict[str, object]:
    """Return a plan for the browser, beside its question and the ground of the map.

    It has the keys of :func:`placement.io.plan_file.outcome_document`; ``badge`` and ``asked``, the
    status and the question in words; ``currency``; ``shares`` of the operations; ``limits``, one
    row for each limit of the question; ``after``, the same keys after the loss of
    ``question.lost``, None without a loss or if the service stops; and ``html``, the layers of the
    map and the panels ``facts``, ``table`` and ``clients``.
    """
    prices = plan.problem.instance.prices
    shown, after = plan, None
    if question.lost and plan.found:
        after = after_loss(plan, question.lost)
        shown = after or plan
    view = map_view(plan.problem.instance, shown, ground)
    panels: dict[str, str] = {"facts": _facts(question, plan, after), "clients": "", "table": ""}
    if plan.found:
        table = sites_table(shown, view, 0, lost=question.lost, before=plan, sortable=False)
        panels |= {"clients": _clients(shown), "table": table}
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
    return {
        **outcome_document(plan),
        "badge": STATUS_WORDS[plan.status],
        "asked": f"{describe(plan.problem)} · search {duration(plan.seconds)}",
        "currency": None if prices is None else prices.currency,
        "shares": operation_shares(plan.problem.instance),
        "limits": rows,
        "after": None if after is None else outcome_document(after),
        "html": {"map": view.layers, **panels},
    }


def after_loss(plan: Plan, lost: tuple[str, ...]) -> Plan | None:
    """Return what survives of a plan when sites are lost, under the best surviving leader.

    Replicas and voters that survive are evaluated with the quorum of the plan; None where the
    service stops. An unknown site, operations with waits and witnesses are refused.
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
    known = NamedRoles(leader, before.names("voters"), before.names("replicas"))
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


def _clients(plan: Plan) -> str:
    """Return the latency of the heaviest clients."""
    heaviest = sorted(plan.client_rows, key=lambda row: -row.operations)[:_HEAVIEST]
    rows = [Bar(row.client, row.latency, milliseconds(row.latency)) for row in heaviest]
    return bars(rows, caption=f"Mean latency of the {len(rows)} heaviest clients")


def rules_of(problem: Problem) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield each rule of a problem in words, with the changes that take it away."""
    fields = (
        ("forbidden", "{} is forbidden"),
        ("pinned", "{} must hold a replica"),
        ("pinned_voters", "{} must vote"),
        ("non_voters", "{} must not vote"),
    )
    for field, words in fields:
        names: tuple[str, ...] = tuple(getattr(problem, field))
        for name in names:
            yield words.format(name), {field: [other for other in names if other != name]}
    if problem.leader is not None:
        yield f"{problem.leader} must lead", {"leader": None}
    if problem.leaders is not None:
        yield f"{len(problem.leaders)} leader candidates", {"leaders": None}
    if problem.survive is not None:
        yield f"survive the loss of any one {problem.survive}", {"survive": None}
    if problem.budget is not None:
        yield f"budget {problem.budget:g}", {"budget": None}
    if problem.moves is not None:
        yield "prices and limits of moves", {"moves": None}
    for rule in problem.diversity:
        rest = [other for other in problem.diversity if other is not rule]
        yield rule.words(), {"diversity": rest}


def _changed(plan: Plan, changes: Mapping[str, object]) -> tuple[float, Plan] | None:
    """Return the gain of changes in ms, money that counts included, and the plan that they allow.

    None where no method takes the changed question or has a plan; infinite where only that has one.
    """
    try:
        other = prove(plan.problem.replace(**changes))
    except (InputError, UnsupportedError):
        return None
    if not other.found:
        return None
    before, after = (
        one.problem.objective.in_ms(one.problem, one.objective) for one in (plan, other)
    )
    return before - after if plan.found else math.inf, other


_MOST_SIZES = 15
_MOST_CLIENTS = 20


def tail(question: PageQuestion, plan: Plan) -> dict[str, object]:
    """Return the 99th percentile of a plan: ``ms``, None beyond the horizon, and ``words``.

    Operations with waits are refused, and a plan without a configuration.
    """
    if plan.configuration is None:
        raise InputError("there is no plan to evaluate", field="plan", value=plan.status.value)
    value = question.tail(99).value(plan.problem, plan.configuration)
    known = math.isfinite(value)
    return {
        "ms": value if known else None,
        "words": milliseconds(value) if known else "beyond the horizon",
    }


def why(plan: Plan, site: str | None) -> dict[str, object]:
    """Return the runner-up, the cost of each rule and of the selected site, and single losses."""
    if plan.status is not Status.OPTIMAL:
        words = "No plan is proven, so nothing is known about the next one."
        return {"html": join([tag("p", None, words), _losses(plan)])}
    try:
        content = _beside(plan, site)
    except PlacementError as error:
        content = [tag("p", {"class": "note"}, str(error))]
    return {"html": join([*content, _losses(plan)])}


def _beside(plan: Plan, site: str | None) -> list[Child]:
    """Return the sentences about plans beside the optimum, with a solve for each rule."""
    found: list[Child] = []
    problem = plan.problem
    if site is not None and site in problem.instance.sites:
        words = f"No plan that obeys the rules has a replica in {site}."
        if site in plan.replicas:
            words = f"{site} holds a replica."
        elif site in problem.forbidden:
            words = f"{site} is forbidden; see below what this rule costs."
        elif plan.found and (with_it := _changed(plan, {"pinned": (*problem.pinned, site)})):
            cost, changes = max(0.0, -with_it[0]), changes_in_words(plan, with_it[1])
            words = f"A replica in {site} would cost {cost:.2f} ms per operation: {changes}."
        found.append(tag("p", None, words))
    runner_up = next_best_plans(plan, 1)
    if runner_up:
        more = runner_up[0].objective - plan.objective
        slower = plan.problem.objective.in_ms(plan.problem, more)
        changes = changes_in_words(plan, runner_up[0]) or "other voters"
        found.append(tag("p", None, f"Runner-up (+{slower:.3f} ms): {changes}."))
    tried = ((words, _changed(plan, changes)) for words, changes in rules_of(problem))
    rows: list[TableRow] = [
        {"Rule": words, "Better by, ms": max(0.0, other[0]),
         "Plan then": changes_in_words(plan, other[1]) or "the same plan"}
        for words, other in tried if other
    ]  # fmt: skip
    rows.sort(key=lambda row: -float(row["Better by, ms"] or 0))
    return [*found, data_table("Without one rule", rows, sortable=False) if rows else None]


def _losses(plan: Plan) -> Markup | None:
    """Return the table of the losses of single sites with the leader that takes over."""
    if not (plan.found and plan.tells_losses):
        return None
    return value_table(failures_table(plan.failures), sortable=False)


def curve(problem: Problem) -> dict[str, object]:
    """Return the values over the number of replicas, around the number of a problem."""
    low = max(1, problem.rules.voters, len(problem.pinned))
    middle = problem.rules.replicas_max
    first = max(low, min(middle - _MOST_SIZES // 2, len(problem.instance.sites) - _MOST_SIZES))
    sizes = range(first, min(first + _MOST_SIZES, len(problem.instance.sites) + 1))
    rows = sweep(problem, replicas=sizes).to_dict("records")
    found = [row for row in rows if math.isfinite(row["value"])]
    aim = problem.objective.headline(problem) or "mean latency"
    caption, unit = f"The {aim} over the number of replicas", problem.objective.unit(problem)
    chart = _values(found, "replicas", aim, caption, "replicas", unit)
    points = [_point(row, words=f"{row['replicas']} replicas") for row in found]
    return {"html": chart, "points": points}


def _values(
    rows: Sequence[Mapping[Any, Any]], key: str, name: str, caption: str, x_label: str, y_label: str
) -> Markup:
    """Return the line of the values of plans over one of their columns."""
    line = Series(name, tuple((float(row[key]), float(row["value"])) for row in rows))
    return lines([line], caption=caption, x_label=x_label, y_label=y_label)


def _point(row: Mapping[Any, Any], **more: str) -> dict[str, object]:
    """Return what a click on the plan of a row asks."""
    return {"question": {"replicas": int(row["replicas"])}, **more}


def front(problem: Problem) -> dict[str, object]:
    """Return the frontier of latency and cost, with at most as many replicas as a problem."""
    table = pareto(problem, replicas=range(problem.rules.voters, problem.rules.replicas_max + 1))
    rows = table.to_dict("records")
    currency = table.attrs["currency"]
    name = f"{len(rows)} plans that no other plan beats in both"
    chart = _values(rows, "cost", name, "Cost against latency", f"{currency} per month", "ms")
    points = []
    for row in rows:
        words = f"{row['value']:.1f} ms for {row['cost']:,.2f} {currency}"
        points.append(_point(row, limit=f"cost <= {float(row['cost'])!r}", words=words))
    sentences = None if table.attrs["complete"] else tag("p", None, "Some points are not proven.")
    return {"html": join([chart, sentences]), "points": points}


def compared(plans: Sequence[Plan], names: Sequence[str], ground: Ground) -> dict[str, object]:
    """Return two plans side by side, under the user's names: figures, clients, a map for each."""
    first, second = plans
    if not (first.found and second.found):
        return {"html": tag("p", None, "One of the questions has no plan."), "differs": [[], []]}
    table = data_table(f"{names[0]} and {names[1]}", _figures(plans, names), sortable=False)
    changes = changes_in_words(first, second) or "the same sites, voters and leader"
    maps = [
        tag("figure", None, tag("figcaption", None, f"{name}: leader {plan.leader or 'none'}"),
            tag("div", {"class": "map-box"},
                svg_map(map_view(plan.problem.instance, plan, ground, f"map-{k}"),
                        caption=f"Map of plan {name}")))
        for k, (plan, name) in enumerate(zip(plans, names, strict=True))
    ]  # fmt: skip
    return {
        "html": join([table, tag("p", None, f"From {names[0]} to {names[1]}: {changes}."),
                      tag("div", {"class": "pair"}, maps), _dumbbell(plans, names)]),
        "differs": [_only(first, second), _only(second, first)],
    }  # fmt: skip


def _figures(plans: Sequence[Plan], names: Sequence[str]) -> list[TableRow]:
    each = []
    for plan in plans:
        prices = plan.problem.instance.prices
        figures = {name: value for name, value, _ in plan_figures(plan)}
        if prices is not None:
            figures["Bill per month"] = f"{plan.cost:,.2f} {prices.currency}"
        figures["Quorum wait"] = milliseconds(plan.quorum_wait)
        sites = {"Voters": ", ".join(plan.voters), "Replicas": ", ".join(plan.replicas)}
        each.append({**figures, **sites, "Status": plan.status.value})
    rows = dict.fromkeys((*each[0], *each[1]))
    return [
        {"": row, **{name: one.get(row, "–") for name, one in zip(names, each, strict=True)}}
        for row in rows
    ]


def _dumbbell(plans: Sequence[Plan], names: Sequence[str]) -> Markup:
    """Return the latencies of the heaviest clients under both plans."""
    first = sorted(plans[0].client_rows, key=lambda row: -row.operations)[:_MOST_CLIENTS]
    other = {row.client: row.latency for row in plans[1].client_rows}
    rows = [
        Dots(
            row.client,
            ((row.latency, "naive", names[0]), (other.get(row.client, math.nan), "plan", names[1])),
        )
        for row in first
    ]
    return dots(rows, caption=f"The {len(rows)} heaviest clients", unit="ms")


def _only(plan: Plan, other: Plan) -> list[int]:
    """Return the sites whose roles differ between two plans."""
    roles = {row[:2] for row in replicas_table(plan).rows}
    theirs = {row[:2] for row in replicas_table(other).rows}
    return [plan.problem.instance.sites.index(str(site)) for site, _ in sorted(roles - theirs)]


# --- files of a plan, made in memory ------------------------------------------------------------

FORMATS = ("plan", "report", "export", "question")
"""Kinds of files."""


def plan_file(plan: Plan, format: str, system: str, database: str) -> dict[str, object]:
    """Return a file: its ``name``, its media ``type`` and its ``text``; ``notes`` of an export.

    The format "plan" is the plan with its certificate and the instance inside, as ``placement
    check`` reads it; "report" is the HTML page; "export" are statements for a `database` of a
    `system`. A plan without a configuration, and one that the database cannot be told, are refused.
    """
    if not plan.found:
        raise InputError("there is no plan to write", field="plan", value=plan.status.value)
    if format == "report":
        return {"name": "plan.html", "type": "text/html", "text": report_html(plan)}
    if format == "plan":
        document = plan_document(plan, embed=True)
        for words in ("claim", "proof"):
            document.pop(words, None)
        text = encode_json(document).decode("utf-8")
        return {"name": "plan.json", "type": "application/json", "text": text}
    found = load_system(system)
    sites = plan.problem.instance.sites
    known = load_localities(None, sites).rows
    called = {row.site for row in known}
    rows = [*known, *plain_names([site for site in sites if site not in called])]
    request = found.request(Localities(sites, tuple(rows)), database)
    script = write_deployment(found, deployment_of_plan(plan), request, None)
    renamed = tuple(f"The site {row.site} is written {row.name}." for row in rows
                    if row.site in plan.replicas and row.site != row.name)  # fmt: skip
    return {
        "name": f"{found.name}.txt",
        "type": "text/plain",
        "text": script.text,
        "notes": [*script.notes, *renamed],
    }


Listener = Callable[[Progress], None]
"""Called with the reports of a search."""

Answer = dict[str, object]
"""JSON object for the browser."""


@dataclass(frozen=True)
class Explorer:
    """State of the server: the instance, where it came from, and the limit of a question."""

    instance: Instance  #: sites, clients, RTTs and demand
    origin: Question  #: where they came from
    time_limit: float = 30.0  #: most seconds of a search
    #: question that the page opens on; None: five replicas, three voters
    start: Mapping[str, object] | None = None

    @cached_property
    def ground(self) -> Ground:
        """Ground of every map."""
        return ground_of(self.instance)

    def question(self, value: object) -> PageQuestion:
        """Read a question."""
        return read_question(value, self.instance)

    def solve(self, question: PageQuestion, listen: Listener | None = None) -> Plan:
        """Return the plan of a question, within the limit of the question and of the server.

        `listen` gets the reports of the search with incumbent and bound in ms.
        """
        limit = self.time_limit
        if question.asked.time_limit is not None:
            limit = min(limit, question.asked.time_limit)
        problem = question.problem

        def report(progress: Progress) -> None:
            if listen is not None:
                values = (progress.incumbent, progress.bound)
                incumbent, bound = (problem.objective.in_ms(problem, value) for value in values)
                listen(dataclasses.replace(progress, incumbent=incumbent, bound=bound))

        return solve(problem, question.asked.method, time_limit=limit, progress=report)


JOBS = ("plan", "tail", "why", "curve", "front", "everyone", "compare", "file", "place", "load")
"""Kinds of jobs."""


def run_job(explorer: Explorer, kind: str, value: object, listen: Listener) -> Answer:
    """Run a job of a kind of :data:`JOBS` on a JSON object of the browser.

    `listen` is called with the reports of a search. Errors are those of :func:`placement.solve`,
    and InputError for a value of another form.
    """
    text(kind, "kind", choices=JOBS)
    if not isinstance(value, dict):
        raise InputError("not an object", field=kind, expected="named keys")
    if kind == "place":
        x, y = (number(value.get(key), key, minimum=-1e6, maximum=1e6) for key in ("x", "y"))
        place = explorer.ground.place_at(x, y)
        if place is None:
            raise InputError("not a place on the globe", field="x, y", value=(x, y))
        return {"lat": round(place[0], 3), "lon": round(place[1], 3)}
    if kind == "load":
        source, words = "question.toml", text(value.get("text"), "text")
        try:
            values = tomllib.loads(words)
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"not TOML ({error})", source=source) from None
        asked, mine = question_from(values, source=source), explorer.origin.instance
        if asked.instance not in (None, mine):
            words = "a question about another instance"
            raise refused(source, "instance", words, asked.instance, repr(mine))
        return {"question": page_question(asked, explorer.instance, files=False)}
    if kind == "compare":
        questions, names = elements(value.get("questions"), "questions"), value.get("names")
        if len(questions) != 2 or not isinstance(names, list) or len(names) != 2:
            expected = "two, and their names"
            raise InputError("not two questions", field="questions", expected=expected)
        plans = [explorer.solve(explorer.question(one), listen) for one in questions]
        return compared(plans, [text(name, "names") for name in names], explorer.ground)
    question = explorer.question(value.get("question"))
    if kind in ("curve", "front"):
        return (curve if kind == "curve" else front)(question.problem)
    if kind == "file" and value.get("format") == "question":
        written = question_file(question, explorer.origin)
        return {"name": "question.toml", "type": "application/toml", "text": written}
    plan = explorer.solve(question, listen)
    if kind == "everyone":
        return {"html": clients_table(plan)}
    if kind == "tail":
        return tail(question, plan)
    if kind == "why":
        site = value.get("site")
        return why(plan, None if site is None else text(site, "site"))
    if kind == "file":
        form = text(value.get("format"), "format", choices=FORMATS)
        system = text(value.get("system") or "none", "system")
        return plan_file(plan, form, system, text(value.get("database") or "app", "database"))
    asked, cannot = asked_question(question, explorer.origin)
    before = value.get("before")
    known = Document("before", "", before if isinstance(before, dict) else {})
    return {
        **answer_document(question, plan, explorer.ground),
        "difference": difference(known, plan),
        "command": shlex.join(["placement", "solve", *asked.words()]),
        "cannot": list(cannot),
        "python": python_lines(question, explorer.origin),
    }
