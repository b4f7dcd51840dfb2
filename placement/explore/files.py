"""Files of a plan, made in memory: plan.json, the report, the statements for a database."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from placement.databases.deployment import deployment_of_plan
from placement.databases.localities import Localities, Locality
from placement.databases.system import load_system, write_deployment
from placement.errors import InputError
from placement.io.formats.document import encode_json
from placement.io.leader_plan_document import plan_document
from placement.plan import Plan
from placement.report import report_html

__all__ = ["FORMATS", "plan_file"]

FORMATS = ("plan", "report", "export")
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
    system
        Name of the database system, for "export".
    database
        Name of the database, for "export".

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
    rows = _plain_names(plan.problem.instance.sites)
    request = found.request(Localities(plan.problem.instance.sites, rows), database)
    script = write_deployment(found, deployment_of_plan(plan), request, None)
    renamed = tuple(f"The site {row.site} is written {row.name}." for row in rows
                    if row.site in plan.replicas)  # fmt: skip
    return {
        "name": f"{found.name}.txt",
        "type": "text/plain",
        "text": script.text,
        "notes": [*script.notes, *renamed],
    }


def _plain_names(sites: Sequence[str]) -> tuple[Locality, ...]:
    """Return a name of letters, digits, ``_``, ``.`` and ``-`` for each site that needs one."""
    rows: dict[str, Locality] = {}
    for site in sites:
        name = re.sub(r"[^A-Za-z0-9_.-]+", "-", site).strip("-_.")[:60] or "site"
        if name == site:
            continue
        free = next(
            other
            for other in itertools.chain([name], (f"{name}-{k}" for k in itertools.count(2)))
            if other not in rows and other not in sites
        )
        rows[free] = Locality(free, site)
    return tuple(rows.values())
