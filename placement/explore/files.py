"""Files of a plan, made in memory: plan.json, the report, the statements for a database."""

from __future__ import annotations

from placement.databases.deployment import deployment_of_plan
from placement.databases.localities import Localities
from placement.databases.system import load_system, write_deployment
from placement.errors import InputError
from placement.io.formats.document import encode_json
from placement.io.plan_file import plan_document
from placement.plan import Plan
from placement.report import report_html

__all__ = ["FORMATS", "plan_file"]

FORMATS = ("plan", "report", "export")
"""Kinds of files."""


def plan_file(plan: Plan, format: str, system: str) -> dict[str, object]:
    """Return a file: its ``name``, its media ``type`` and its ``text``.

    Parameters
    ----------
    plan
        With a configuration.
    format
        "plan": the plan with its certificate and the instance inside, as ``placement check`` reads
        it; "report": the HTML page; "export": statements for a database.
    system
        Name of the database system, for "export".

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
    localities = Localities.plain(plan.problem.instance.sites)
    deployment = deployment_of_plan(plan)
    script = write_deployment(found, deployment, found.request(localities, deployment.name), None)
    return {"name": f"{found.name}.txt", "type": "text/plain", "text": script.text}
