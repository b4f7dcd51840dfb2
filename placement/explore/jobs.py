"""Jobs of the explorer: each takes a JSON value and returns one, and keeps nothing."""

from __future__ import annotations

import dataclasses
import shlex
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from placement.databases.deployment import deployment_of_plan
from placement.databases.localities import Localities, load_localities, plain_names
from placement.databases.system import load_system, write_deployment
from placement.errors import InputError
from placement.explore.answers import answer_document, compared, curve, difference, front, tail, why
from placement.explore.question import (
    PageQuestion,
    asked_question,
    page_question,
    python_lines,
    question_file,
    read_question,
)
from placement.io.formats.document import Document, encode_json
from placement.io.plan_file import plan_document
from placement.methods.options import Progress
from placement.methods.registry import solve
from placement.model.instance import Instance
from placement.plan import Plan
from placement.question import Question, question_from
from placement.report import report_html
from placement.report.map.svg_map import Ground, ground_of
from placement.report.plan_page import clients_table
from placement.support.checks import elements, number, text

# --- files of a plan, made in memory ------------------------------------------------------------

FORMATS = ("plan", "report", "export", "question")
"""Kinds of files."""


def plan_file(plan: Plan, format: str, system: str, database: str) -> dict[str, object]:
    """Return a file: its ``name``, its media ``type`` and its ``text``; ``notes`` of an export.

    Parameters
    ----------
    plan
        With a configuration.
    format
        "plan": the plan with its certificate and the instance inside, as ``placement check`` reads
        it; "report": the HTML page; "export": statements for a database.
    system, database
        Names of the database system and of the database, for "export".

    Raises
    ------
    InputError
        Without a configuration, and for a placement that the database cannot be told.
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
    """State of the server: the instance, where it came from, and the limit of a question.

    Attributes
    ----------
    instance, origin
        Sites, clients, RTTs and demand; where they came from.
    time_limit
        Most seconds of a search.
    start
        Question that the page opens on; None: five replicas, three voters.
    """

    instance: Instance
    origin: Question
    time_limit: float = 30.0
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


def _of_question(
    explorer: Explorer, kind: str, value: Mapping[str, object], listen: Listener
) -> Answer:
    """Answer a job about one question; all but the curves solve it first."""
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


def _compare(explorer: Explorer, value: Mapping[str, object], listen: Listener) -> Answer:
    """Put two plans side by side."""
    questions, names = elements(value.get("questions"), "questions"), value.get("names")
    if len(questions) != 2 or not isinstance(names, list) or len(names) != 2:
        raise InputError("not two questions", field="questions", expected="two, and their names")
    plans = [explorer.solve(explorer.question(one), listen) for one in questions]
    return compared(plans, [text(name, "names") for name in names], explorer.ground)


JOBS = ("plan", "tail", "why", "curve", "front", "everyone", "compare", "file", "place", "load")
"""Kinds of jobs."""


def run_job(explorer: Explorer, kind: str, value: object, listen: Listener) -> Answer:
    """Run a job.

    Parameters
    ----------
    explorer
        What the server keeps.
    kind
        One of :data:`JOBS`.
    value
        JSON object of the browser.
    listen
        Called with the reports of a search.

    Raises
    ------
    PlacementError
        As of :func:`placement.solve`, and for a value of another form.
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
        asked = question_from(values, source=source)
        if asked.instance not in (None, explorer.origin.instance):
            raise InputError(
                "a question about another instance", source=source, field="instance",
                value=asked.instance, expected=repr(explorer.origin.instance),
            )  # fmt: skip
        return {"question": page_question(asked, explorer.instance, files=False)}
    if kind == "compare":
        return _compare(explorer, value, listen)
    return _of_question(explorer, kind, value, listen)
