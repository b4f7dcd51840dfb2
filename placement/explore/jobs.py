"""Jobs of the explorer: each takes a JSON value and returns one, and keeps nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from placement.errors import InputError
from placement.explore.answers import answer_document
from placement.explore.files import FORMATS, plan_file
from placement.explore.question import (
    Origin,
    Question,
    command_line,
    python_lines,
    read_question,
)
from placement.explore.second_looks import compared, curve, front, tail, why
from placement.methods.options import Progress
from placement.methods.registry import solve
from placement.model.instance import Instance
from placement.plan import Plan
from placement.report.map.map_view import Ground, ground_of
from placement.support.checks import elements, number, text

__all__ = ["JOBS", "Explorer", "Listener", "run_job"]

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
    """

    instance: Instance
    origin: Origin
    time_limit: float = 30.0

    @cached_property
    def ground(self) -> Ground:
        """Ground of every map."""
        return ground_of(self.instance)

    def question(self, value: object) -> Question:
        """Read a question."""
        return read_question(value, self.instance)

    def solve(self, question: Question, listen: Listener | None = None) -> Plan:
        """Return the plan of a question, within the limit of the question and of the server.

        `listen` gets the reports of the search with incumbent and bound in ms.
        """
        limit = self.time_limit
        if question.time_limit is not None:
            limit = min(limit, question.time_limit)
        problem = question.problem

        def report(progress: Progress) -> None:
            if listen is not None:
                values = (progress.incumbent, progress.bound)
                incumbent, bound = (problem.objective.in_ms(problem, value) for value in values)
                listen(dataclasses.replace(progress, incumbent=incumbent, bound=bound))

        return solve(problem, question.method, time_limit=limit, progress=report)


def _plan(explorer: Explorer, value: Mapping[str, object], listen: Listener) -> Answer:
    """Solve a question: its plan as numbers and pieces of the page."""
    question = explorer.question(value.get("question"))
    plan = explorer.solve(question, listen)
    command, cannot = command_line(question, explorer.origin)
    return {
        **answer_document(question, plan, explorer.ground),
        "command": command,
        "cannot": list(cannot),
        "python": python_lines(question, explorer.origin),
    }


def _tail(explorer: Explorer, value: Mapping[str, object], listen: Listener) -> Answer:
    """Return the 99th percentile of a plan."""
    question = explorer.question(value.get("question"))
    return tail(question, explorer.solve(question, listen))


def _why(explorer: Explorer, value: Mapping[str, object], listen: Listener) -> Answer:
    """Return the notes that accompany a plan."""
    question = explorer.question(value.get("question"))
    site = value.get("site")
    plan = explorer.solve(question, listen)
    return why(plan, None if site is None else text(site, "site"))


def _curve(explorer: Explorer, value: Mapping[str, object], listen: Listener) -> Answer:
    """Solve for other numbers of replicas."""
    del listen
    return curve(explorer.question(value.get("question")).problem)


def _front(explorer: Explorer, value: Mapping[str, object], listen: Listener) -> Answer:
    """Trade money against latency."""
    del listen
    return front(explorer.question(value.get("question")).problem)


def _compare(
    explorer: Explorer, value: Mapping[str, object], listen: Listener
) -> dict[str, object]:
    """Put two plans side by side."""
    questions, names = elements(value.get("questions"), "questions"), value.get("names")
    if len(questions) != 2 or not isinstance(names, list) or len(names) != 2:
        raise InputError("not two questions", field="questions", expected="two, and their names")
    plans = [explorer.solve(explorer.question(one), listen) for one in questions]
    return compared(plans, [text(name, "names") for name in names], explorer.ground)


def _file(explorer: Explorer, value: Mapping[str, object], listen: Listener) -> Answer:
    """Make a file of a plan."""
    plan = explorer.solve(explorer.question(value.get("question")), listen)
    kind = text(value.get("format"), "format", choices=FORMATS)
    system = text(value.get("system") or "none", "system")
    return plan_file(plan, kind, system, text(value.get("database") or "app", "database"))


def _place(explorer: Explorer, value: Mapping[str, object], listen: Listener) -> Answer:
    """Return the latitude and longitude of a point of the map."""
    del listen
    x, y = (number(value.get(key), key, minimum=-1e6, maximum=1e6) for key in ("x", "y"))
    place = explorer.ground.place_at(x, y)
    if place is None:
        raise InputError("not a place on the globe", field="x, y", value=(x, y))
    return {"lat": round(place[0], 3), "lon": round(place[1], 3)}


Job = Callable[[Explorer, Mapping[str, object], Listener], Answer]

JOBS: Mapping[str, Job] = {
    "plan": _plan,
    "tail": _tail,
    "why": _why,
    "curve": _curve,
    "front": _front,
    "compare": _compare,
    "file": _file,
    "place": _place,
}
"""Kind -> job."""


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
    job = JOBS[text(kind, "kind", choices=tuple(JOBS))]
    if not isinstance(value, dict):
        raise InputError("not an object", field=kind, expected="named keys")
    return job(explorer, value, listen)
