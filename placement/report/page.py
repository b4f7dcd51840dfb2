"""The page: one file that needs nothing else, from whatever a user has."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path
from typing import TypeAlias

from placement.errors import CertificateError, InputError, LimitError
from placement.io.formats.files import check_file, write_file
from placement.model.configuration import Configuration
from placement.plan import Plan
from placement.quorumstore.plan import QuorumPlan
from placement.report.charts.markup import Child, Markup, json_script, tag
from placement.report.fleet_page import FleetDocument, fleet_sections
from placement.report.table_page import PlanTable
from placement.support.work import WORK

_QUICK_WORK = 10_000_000
"""Steps of a certificate that a report checks without being asked: a few seconds."""

Source: TypeAlias = Plan | QuorumPlan | PlanTable | FleetDocument
"""Content of a file that a report can show."""


def report_html(
    source: Source | str | os.PathLike[str], *, today: Configuration | None = None
) -> str:
    """Return the page of a plan, of a table, or of a file that holds one of them.

    Parameters
    ----------
    source
        See :func:`write_report`.
    today
        Configuration that runs today: its bill is shown beside that of the plan.

    Raises
    ------
    InputError
        When the file is neither, and when `today` is given for anything but a plan.
    """
    if isinstance(source, (str, os.PathLike)):
        source = load_source(source)
    if today is not None and not isinstance(source, Plan):
        words = "only the page of a plan has the bill of today"
        raise InputError(words, field="today", expected="a plan")
    title, sections, data = _content(source, today)
    return page(title, sections, data=None if data is None else data())


def write_report(
    source: Source | str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    today: Configuration | None = None,
    force: bool = False,
) -> Path:
    """Write the page, whole or not at all.

    Parameters
    ----------
    source
        A plan, or the path of a plan or of the JSON of a comparison or sweep, or what
        :func:`load_source` read there.
    path
        Of the HTML file.
    today
        Configuration that runs today: its bill is shown beside that of the plan.
    force
        Replace an existing file.

    Raises
    ------
    InputError
        When the source is none of these, `today` is given for anything but a plan, or the file
        exists and `force` is false.
    """
    check_file(path, force=force)
    return write_file(path, report_html(source, today=today).encode(), force=force)


def save_figures(
    source: Plan, folder: str | os.PathLike[str], *, format: str = "png", force: bool = False
) -> tuple[Path, ...]:
    """Write every figure of a plan into a folder.

    Parameters
    ----------
    source
        A plan.
    folder
        Created when absent, its parent must exist.
    format
        "png" (150 dots per inch) or "svg".
    force
        Replace existing files.

    Returns
    -------
    tuple of Path
        The files, in the order of the page.

    Raises
    ------
    InputError
        For another format, or a file that exists.
    MissingDependencyError
        For PNG without vl-convert.
    """
    from placement.report.plots import pictures_of, save_figure

    if format not in ("png", "svg"):
        words = "unknown format of figures"
        raise InputError(words, field="format", value=format, expected="'png' or 'svg'")
    made, here = pictures_of(_content(source)[1]), Path(folder)
    here.mkdir(exist_ok=True)
    paths = {name: here / f"{name}.{format}" for name in made}
    for path in paths.values():
        check_file(path, force=force)
    return tuple(save_figure(made[name], path, force=force) for name, path in paths.items())


def _content(
    source: Source, today: Configuration | None = None
) -> tuple[str, list[Markup], Callable[[], object] | None]:
    """Return the title, the sections, and what the button of a page gives (None: no button)."""
    from placement.io.plan_file import plan_document
    from placement.report.plan_page import plan_sections, quorum_sections

    if isinstance(source, Plan):
        title = f"Placement of {source.problem.instance.name}"
        return title, plan_sections(source, today), lambda: plan_document(source)
    if isinstance(source, QuorumPlan):
        return f"Quorum store: {source.problem.name}", quorum_sections(source), None
    if isinstance(source, FleetDocument):
        return "Fleet", fleet_sections(source), lambda: source.content
    return source.title, source.sections(), None


def load_source(path: str | os.PathLike[str], *, work: int = WORK) -> Source:
    """Read a file: a plan, of a fleet too, or a comparison or sweep as JSON.

    A plan comes as checked where its certificate holds within a few seconds of work. `work` limits
    the steps of reading it, as :func:`placement.io.load_any_plan` counts them.
    """
    from placement.fleet.fleet_tables import FLEET_FORMAT, read_fleet_document
    from placement.io.formats.document import read_json
    from placement.io.formats.tables import PARQUET
    from placement.io.plan_file import FORMAT, load_any_plan
    from placement.proof.certificate_check import check_certificate

    source = Path(path)
    if source.suffix.lower() in PARQUET:
        return FleetDocument(read_fleet_document(source), os.fspath(path))
    kinds = (
        "a plan (placement solve -o), or the JSON of placement compare, fleet or lab online; "
        "python -m benchmarks report reads results of benchmarks"
    )
    value = read_json(source, kinds)
    if isinstance(value, dict) and value.get("format") == FORMAT:
        plan = load_any_plan(source, work=work)
        if isinstance(plan, Plan) and plan.certificate is not None and plan.found:
            # else the page says that the bound is claimed
            with contextlib.suppress(CertificateError, LimitError):
                check_certificate(plan, work=_QUICK_WORK)
                return plan.replace(checked=True)
        return plan
    if isinstance(value, dict) and value.get("format") == FLEET_FORMAT:
        return FleetDocument(read_fleet_document(source), os.fspath(path))
    about, columns, place = "", {}, ""
    rows: object = value
    if isinstance(value, dict):
        if isinstance(given := value.get("columns"), dict):
            columns = {str(key): str(header) for key, header in given.items()}
        about = next((v for k in ("problem", "question") if isinstance(v := value.get(k), str)), "")
        keys = ("rows", "methods", "cells", "points", "protocols", "table")
        place = next((key for key in keys if isinstance(value.get(key), list)), "")
        rows = value.get(place)
    empty = isinstance(value, list) and not value
    if empty or not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputError("nothing to report on", source=os.fspath(path), expected=kinds)
    if rows and not ({"method", "voters", "protocol"} & set(rows[0])):
        words = "rows that are neither a comparison nor a sweep"
        expected = "the columns 'method', or 'replicas' and 'voters'"
        raise InputError(words, source=os.fspath(path), value=sorted(rows[0]), expected=expected)
    table = PlanTable(rows, about, columns)
    table.check(os.fspath(path), place)
    return table


def page(title: str, sections: Sequence[Child], *, data: object = None) -> str:
    """Put sections into one page: style, script and `data` for download inside, nothing fetched."""
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
    allowed = tag("meta", {"http-equiv": "Content-Security-Policy", "content": policy})
    return html_document(title, [allowed, tag("style", None, Markup(style_sheet()))], body)


def html_document(title: str, head: Child, body: Child) -> str:
    """Return a document with a title, and more in its head."""
    meta = {"viewport": "width=device-width, initial-scale=1", "color-scheme": "light dark"}
    known = [tag("meta", {"name": name, "content": content}) for name, content in meta.items()]
    parts = [tag("meta", {"charset": "utf-8"}), known, tag("title", None, title), head]
    document = tag("html", {"lang": "en-GB"}, tag("head", None, parts), tag("body", None, body))
    return f"<!doctype html>\n{document}\n"


def style_sheet() -> str:
    """Return the style of every page."""
    return _asset("style.css")


def report_script() -> str:
    """Return the script of every page: tables, map and theme."""
    return _asset("script.js")


def _asset(name: str) -> str:
    return (resources.files("placement.report") / name).read_text(encoding="utf-8")
