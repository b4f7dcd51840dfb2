"""Plans of quorum stores inside plan files: problem, configuration, value and bound, by name.

All fields except the bound are recomputed on reading: value, thresholds, losses and status. The
bound is not: ``placement check`` proves it again, from the certificate if there is one.
"""

from __future__ import annotations

import dataclasses
import math

from placement.errors import LimitError, SolverError, located
from placement.io.formats.document import Document, finite, record_document
from placement.io.recomputed_fields import check_recomputed
from placement.quorumstore import QuorumConfiguration, QuorumPlan, QuorumProblem, evaluate
from placement.quorumstore.refutation_tree import RefutationTree
from placement.support.status import Status, Termination
from placement.support.work import WORK, Work

KIND = "quorum store"
"""Key ``kind`` of a plan file with such a plan; leader plans have none."""

_RETIRED = ("prices", "cost_bound", "cost")
"""Keys of prices of traffic, which older files hold without a value."""

_CLAIMS = (
    "format", "version", "kind", "status", "termination", "method", "seconds", "bound", "claim",
    "certificate", "reasons", "notes", "problem",
)  # fmt: skip
"""Keys that are no values of the configuration."""


# --- writing ---------------------------------------------------------------------------------


def quorum_plan_document(plan: QuorumPlan) -> dict[str, object]:
    """Return the part of a plan file that is about a quorum store, JSON-ready."""
    return {
        "kind": KIND,
        "status": plan.status.value,
        "termination": plan.termination.value,
        "method": plan.method,
        "seconds": plan.seconds,
        "bound": finite(plan.bound),
        "claim": _claim(plan) or None,
        "certificate": _certificate(plan),
        "reasons": list(plan.reasons),
        "notes": list(plan.notes),
        **_values(plan),
        "problem": record_document(plan.problem),
    }


def _claim(plan: QuorumPlan) -> str:
    if plan.status not in (Status.OPTIMAL, Status.INFEASIBLE):
        return ""
    bare = "" if plan.certified else "; no certificate"
    return f"{plan.status.value} (proved by {plan.method}{bare})"


def _certificate(plan: QuorumPlan) -> dict[str, object] | None:
    if plan.certificate is None:
        return None
    sites, sizes = plan.problem.sites, plan.problem.pairs
    return {
        "order": [sites[site] for site in plan.certificate.order],
        "prefixes": [
            {"n": n, "r": r, "w": w, "reasons": [list(level) for level in levels]}
            for (n, r, w), levels in zip(sizes, plan.certificate.numbers, strict=True)
        ],
    }


def _values(plan: QuorumPlan) -> dict[str, object]:
    """Return the configuration and all that follows from it; nothing without one."""
    if plan.configuration is None:
        return {}
    return {
        "replicas": list(plan.replicas),
        "read_quorum": plan.read_quorum,
        "write_quorum": plan.write_quorum,
        "value": finite(plan.value),
        "gap": finite(plan.gap),
        "mean_latency_ms": plan.mean_latency,
        "losses": [
            {
                "lost": list(effect.lost),
                "read_ms": finite(effect.read_threshold),
                "write_ms": finite(effect.write_threshold),
            }
            for effect in plan.losses
        ],
    }


# --- reading ---------------------------------------------------------------------------------


def quorum_plan_from(document: Document, *, work: int = WORK) -> QuorumPlan:
    """Return the plan that :func:`quorum_plan_document` wrote.

    Parameters
    ----------
    document
        The file.
    work
        Most steps that the evaluation of the plan in all losses may take.

    Raises
    ------
    InputError
        For a value that is missing, wrong, or not what is recomputed; the message names file,
        field, value and what was expected.
    LimitError
        When the losses of the file take more than `work` steps, before any is listed.
    """
    with located(document.source):
        problem = _problem(document.table("problem"))
        configuration = _configuration(document, problem)
    if configuration is not None:
        try:
            problem.take_evaluations(Work(work), sets=1, size=configuration.size, losses=True)
        except LimitError as error:
            raise LimitError(f"{document.source}: {error}") from None
    status = document.choice("status", Status)
    if configuration is not None:
        names = [problem.sites[site] for site in configuration.replicas]
        broken = evaluate(problem, names, configuration.read, configuration.write).reasons
        if broken:
            raise document.refuse(
                "replicas", "the configuration breaks: " + "; ".join(broken), "one that obeys"
            )
    none = status is Status.INFEASIBLE
    bound = math.inf if none else document.number("bound", -math.inf)
    try:
        plan = QuorumPlan.of(
            problem,
            configuration,
            method=document.text("method"),
            bound=bound,
            termination=document.choice("termination", Termination),
            seconds=document.number("seconds"),
            reasons=document.names("reasons", ()),
            notes=document.names("notes", ()),
            certificate=_tree(document, problem),
        )
    except SolverError as error:
        field = "bound" if "bound" in str(error) else "replicas"
        raise document.refuse(field, str(error), "what the configuration has") from None
    if plan.status is not status:
        raise document.refuse(
            "status", "not the status of this value and bound", repr(plan.status.value)
        )
    written = {
        key: value
        for key, value in document.values.items()
        if key not in _CLAIMS and (key not in _RETIRED or value is not None)
    }
    check_recomputed(
        dataclasses.replace(document, values=written), _values(plan), "this configuration"
    )
    return plan


def _problem(table: Document) -> QuorumProblem:
    goal = _without_prices(table.table("goal"))
    table = _without_prices(table)
    given = {**table.values, "goal": goal.values}
    return dataclasses.replace(table, values=given).record(QuorumProblem)


def _without_prices(table: Document) -> Document:
    for key in _RETIRED:
        if table.values.get(key) not in (None, "inf"):
            raise table.refuse(key, "traffic has no price in a quorum store", "null, or no key")
    kept = {key: value for key, value in table.values.items() if key not in _RETIRED}
    return dataclasses.replace(table, values=kept)


def _configuration(document: Document, problem: QuorumProblem) -> QuorumConfiguration | None:
    if not document.has("replicas"):
        return None
    place = {name: index for index, name in enumerate(problem.sites)}
    names = document.names("replicas")
    for name in names:
        if name not in place or names.count(name) > 1:
            raise document.refuse("replicas", "not distinct sites", "sites of the problem")
    sites = tuple(sorted(place[name] for name in names))
    read, write = document.whole("read_quorum"), document.whole("write_quorum")
    for key, quorum in (("read_quorum", read), ("write_quorum", write)):
        if not 1 <= quorum <= len(sites):
            raise document.refuse(key, "out of range", f"1 to {len(sites)}")
    return QuorumConfiguration(sites, read, write)


def _tree(document: Document, problem: QuorumProblem) -> RefutationTree | None:
    """Return the certificate of the file, unproven; ``placement check`` proves it."""
    if not document.has("certificate"):
        return None
    table = document.table("certificate")
    table.only(("order", "prefixes"))
    place = {name: index for index, name in enumerate(problem.sites)}
    order = table.names("order")
    for name in order:
        if name not in place:
            raise table.refuse("order", f"no site {name!r}", "sites of the problem")
    rows, found = table.tables("prefixes"), []
    if len(rows) != len(problem.pairs):
        raise table.refuse(
            "prefixes", f"{len(rows)} entries", f"one for each of {len(problem.pairs)} N, R, W"
        )
    for row, pair in zip(rows, problem.pairs, strict=True):
        row.only(("n", "r", "w", "reasons"))
        if (row.whole("n"), row.whole("r"), row.whole("w")) != pair:
            raise row.refuse("n", "not the next N, R, W of the problem", "-".join(map(str, pair)))
        levels = row.values.get("reasons")
        if not isinstance(levels, list) or not all(
            isinstance(level, list) and all(type(one) is int and 0 <= one < 2**31 for one in level)
            for level in levels
        ):
            raise row.refuse("reasons", "not lists of whole numbers", "a list for each length")
        found.append(tuple(map(tuple, levels)))
    return RefutationTree(tuple(place[name] for name in order), tuple(found))
