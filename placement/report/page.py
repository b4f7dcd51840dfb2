"""The page: one file that needs nothing else, from whatever a user has."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TypeAlias

from placement.errors import InputError
from placement.model.configuration import Configuration
from placement.plan import Plan
from placement.quorumstore.plan import QuorumPlan
from placement.report.charts.markup import Child, Markup, json_script, tag
from placement.report.charts.palette import LATENCY, LATENCY_DARK, METHODS, ROLES, ROLES_DARK
from placement.report.fleet_page import FleetDocument, fleet_sections
from placement.report.result_file import Results, looks_like_results, read_results
from placement.report.results_page import PlanTable, results_sections
from placement.support.work import WORK

_QUICK_WORK = 10_000_000
"""Steps of a certificate that a report checks without being asked: a few seconds."""

Source: TypeAlias = Plan | QuorumPlan | Results | PlanTable | FleetDocument
"""Content of a file that a report can show."""


def page_of(source: Source, today: Configuration | None = None) -> str:
    """Return the page of a plan, of a fleet, of benchmark results, or of a comparison or sweep.

    Raises
    ------
    InputError
        When `today` is given for anything but a plan.
    """
    if today is not None and not isinstance(source, Plan):
        raise InputError(
            "only the page of a plan has the bill of today", field="today", expected="a plan"
        )
    return page(_title(source), sections_of(source, today), data=_data(source))


def _title(source: Source) -> str:
    if isinstance(source, Plan):
        return f"Placement of {source.problem.instance.name}"
    if isinstance(source, QuorumPlan):
        return f"Quorum store: {source.problem.name}"
    if isinstance(source, FleetDocument):
        return "Fleet"
    if isinstance(source, Results):
        names = sorted({str(run.get("suite", "")) for run in source.runs})
        return "Benchmark results" + (f": {', '.join(names)}" if names else "")
    return source.title


def _data(source: Source) -> object:
    """Return what the button of the page gives; None: no button."""
    from placement.io.plan_file import plan_document

    if isinstance(source, Plan):
        return plan_document(source)
    return source.content if isinstance(source, FleetDocument) else None


def sections_of(source: Source, today: Configuration | None = None) -> list[Markup]:
    """Return the sections of a page; those of a plan with the bill of `today`."""
    from placement.report.plan_page import plan_sections
    from placement.report.quorum_page import quorum_sections

    if isinstance(source, Plan):
        return plan_sections(source, today)
    if isinstance(source, QuorumPlan):
        return quorum_sections(source)
    if isinstance(source, FleetDocument):
        return fleet_sections(source)
    if isinstance(source, Results):
        return results_sections(source)
    return source.sections()


def _checked_if_quick(plan: Plan) -> Plan:
    """Return the plan as checked where its certificate holds within a few seconds of work."""
    from placement.errors import CertificateError, LimitError
    from placement.proof.certificate_check import check_certificate

    if plan.certificate is None or not plan.found:
        return plan
    try:
        check_certificate(plan, work=_QUICK_WORK)
    except (CertificateError, LimitError):  # the page then says that the bound is claimed
        return plan
    return plan.replace(checked=True)


def load_source(path: str | os.PathLike[str], *, work: int = WORK) -> Source:
    """Read a file: a plan, of a fleet too, benchmark results, or a comparison or sweep as JSON.

    A plan comes as checked where its certificate holds within a few seconds of work. `work` limits
    the steps of reading it, as :func:`placement.io.load_any_plan` counts them.

    Raises
    ------
    InputError
        When the file is none of these, naming what was expected.
    """
    from placement.fleet.fleet_tables import FLEET_FORMAT, read_fleet_document
    from placement.io.formats.document import read_json
    from placement.io.formats.tables import PARQUET
    from placement.io.plan_file import FORMAT, load_any_plan

    source = Path(path)
    if source.suffix.lower() in PARQUET:
        return FleetDocument(read_fleet_document(source))
    if source.is_file() and (source.stat().st_size == 0 or looks_like_results(source)):
        return read_results(source)
    kinds = (
        "a plan (placement solve -o), benchmark results (.jsonl), or the JSON of placement "
        "compare, sweep, pareto, fleet or online"
    )
    value = read_json(source, kinds)
    if isinstance(value, dict) and value.get("format") == FORMAT:
        plan = load_any_plan(source, work=work)
        return _checked_if_quick(plan) if isinstance(plan, Plan) else plan
    if isinstance(value, dict) and value.get("format") == FLEET_FORMAT:
        return FleetDocument(read_fleet_document(source))
    about, columns = "", {}
    rows: object = value
    if isinstance(value, dict):
        if isinstance(given := value.get("columns"), dict):
            columns = {str(key): str(header) for key, header in given.items()}
        about = next((v for k in ("problem", "question") if isinstance(v := value.get(k), str)), "")
        rows = next(
            (
                v
                for k in ("rows", "methods", "cells", "points", "protocols", "table")
                if isinstance(v := value.get(k), list)
            ),
            None,
        )
    empty = isinstance(value, list) and not value
    if empty or not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputError("nothing to report on", source=os.fspath(path), expected=kinds)
    if rows and not ({"method", "voters", "protocol"} & set(rows[0])):
        words = "rows that are neither a comparison nor a sweep"
        expected = "the columns 'method', or 'replicas' and 'voters'"
        raise InputError(words, source=os.fspath(path), value=sorted(rows[0]), expected=expected)
    return PlanTable(rows, about, columns)


def page(title: str, sections: Sequence[Child], *, data: object = None) -> str:
    """Put sections into one page: style, script and data inside, nothing fetched.

    Parameters
    ----------
    title
        Of the page.
    sections
        Markup.
    data
        What the button "Download the data" gives; None: no button.
    """
    style = style_sheet()
    script = report_script()
    body: list[Child] = [
        tag("a", {"class": "skip", "href": "#main"}, "Skip to the content"),
        tag(
            "header",
            None,
            tag("h1", None, tag("bdi", None, title)),
            tag(
                "p",
                {"class": "tools"},
                tag("button", {"type": "button", "id": "theme", "hidden": ""}, "Dark or light"),
                tag("button", {"type": "button", "id": "download", "hidden": ""},
                    "Download the data") if data is not None else None,
            ),
        ),
        tag("main", {"id": "main"}, sections),
        json_script("data", data) if data is not None else None,
        tag("script", None, Markup(script)),
    ]  # fmt: skip
    # The page's own script, and no other, may run; the data is none to a browser.
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
        "img-src data:"
    )
    head = [
        tag("meta", {"charset": "utf-8"}),
        tag("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
        tag("meta", {"http-equiv": "Content-Security-Policy", "content": policy}),
        tag("meta", {"name": "color-scheme", "content": "light dark"}),
        tag("title", None, title),
        tag("style", None, Markup(style)),
    ]
    document = tag("html", {"lang": "en-GB"}, tag("head", None, head), tag("body", None, body))
    return f"<!doctype html>\n{document}\n"


def style_sheet() -> str:
    """Return the style of every page, with the colours of the roles."""
    return _asset("style.css").replace("/* palette */", _palette())


def report_script() -> str:
    """Return the script of every page: tables, map and theme."""
    return _asset("script.js")


def _asset(name: str) -> str:
    return (resources.files("placement.report") / name).read_text(encoding="utf-8")


def _palette() -> str:
    """Custom properties of the roles, light and dark."""

    def declared(roles: Mapping[str, str], steps: Sequence[str]) -> str:
        lines = [f"--{role}: {colour};" for role, colour in roles.items()]
        lines += [f"--step{k}: {colour};" for k, colour in enumerate(steps)]
        return " ".join(lines)

    series = " ".join(f"--series{k}: {colour};" for k, colour in enumerate(METHODS))
    light, dark = declared(ROLES, LATENCY), declared(ROLES_DARK, LATENCY_DARK)
    return (
        f":root {{ {light} {series} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root:not([data-theme=light]) {{ {dark} }} }}\n"
        f":root[data-theme=dark] {{ {dark} }}"
    )
