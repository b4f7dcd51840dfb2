"""Plans as one JSON file: question, answer, proof, and the numbers behind it, by name.

Plans with a leader and plans of quorum stores have the same format; the key ``kind`` tells the
latter (:mod:`placement.io.plan_file`).

The instance stands in the file, or the file says where it came from; either way its fingerprint is
there, and a plan is never read together with another instance than its own. The claim of a method
is not believed on reading: score, status and constraints are recomputed.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from placement.errors import LimitError, SolverError, located
from placement.evaluation.bill import MonthlyBill
from placement.evaluation.losses import Failures
from placement.feasibility.feasible_plans import violations
from placement.io.formats.document import (
    Document,
    encode_json,
    finite,
    jsonable,
    read_document,
    record_document,
)
from placement.io.formats.files import write_file
from placement.io.instance_folder import instance_document, instance_from_document, load_instance
from placement.io.problem_document import check_recomputed, problem_document, problem_from
from placement.model.configuration import Configuration
from placement.model.instance import Instance
from placement.plan import Plan
from placement.question import KEYS
from placement.quorumstore import QuorumConfiguration, QuorumPlan, QuorumProblem, evaluate
from placement.quorumstore.refutation_tree import RefutationTree
from placement.support.status import Status, Termination, status_of
from placement.support.work import WORK, Work

FORMAT = "replica-placement plan"
VERSION = 2
"""Version 2: with a protocol, waits or witnesses; a plan without is of version 1."""


@dataclass(frozen=True, slots=True)
class Reference:
    """Source from which an instance is loaded again, in place of a copy in the plan file."""

    #: name of a bundled data set, or the path of an instance; in the file, a path is relative to
    #: the folder of the plan
    source: str
    mix: str | None = None  #: of the workload, for a data set
    seed: int = 0  #: likewise

    @property
    def bundled(self) -> bool:
        """Return whether the source is a bundled data set."""
        from placement import datasets

        return self.source in datasets.names()


def plan_document(
    plan: Plan, *, reference: Reference | None = None, embed: bool = False
) -> dict[str, object]:
    """Return a plan as one JSON-ready object; numbers that are not finite become null.

    Parameters
    ----------
    plan
        Any plan.
    reference
        Where the instance comes from, when that is known.
    embed
        Put the instance itself inside.
    """
    instance, problem = plan.problem.instance, plan.problem
    newer = problem.protocol is not None or problem.demand.has_waits or problem.rules.witnesses > 0
    certificate = None if plan.certificate is None else jsonable(plan.certificate, "certificate")
    about: dict[str, object] = {"name": instance.name, "fingerprint": instance.fingerprint}
    if reference is not None:
        about["source"] = reference.source
        if reference.bundled:
            about |= {"mix": reference.mix, "seed": reference.seed}
    if embed:
        about["content"] = instance_document(instance)
    return {
        "format": FORMAT,
        "version": VERSION if newer else 1,
        "seconds": plan.seconds,
        **outcome_document(plan),
        "stats": jsonable(plan.stats, "stats"),
        "certificate": certificate,
        "provenance": list(instance.provenance),
        "problem": problem_document(problem),
        **breakdown_document(plan),
        "instance": about,
    }


def outcome_document(plan: Plan) -> dict[str, object]:
    """Return status, configuration by name, values and bound of a plan, JSON-ready.

    Numbers are exactly those of the plan; what is not finite becomes null.
    """
    return {
        "status": plan.status.value,
        "termination": plan.termination.value,
        "method": plan.method,
        **configuration_document(plan),
        "bound": finite(plan.bound),
        "gap": finite(plan.gap),
        "claim": plan.claim or None,
        "proof": plan.bare_proof or None,
        "reasons": list(plan.reasons),
        "notes": list(plan.notes),
    }


def configuration_document(plan: Plan) -> dict[str, object]:
    """Return the configuration by name and its values."""
    instance, configuration = plan.problem.instance, plan.configuration
    return {
        "leader": plan.leader,
        "voters": list(plan.voters),
        "replicas": list(plan.replicas),
        **({"witnesses": list(plan.witnesses)} if plan.witnesses else {}),
        # Plan.voters is in order of answer; the order the method gave is kept for exactness.
        "voters_as_found": None
        if configuration is None
        else [instance.sites[site] for site in configuration.voters],
        "score": finite(plan.score),
        "objective": finite(plan.objective),
        "headline": _headline(plan),
        "mean_latency_ms": finite(plan.mean_latency),
        "quorum_wait_ms": finite(plan.quorum_wait),
        "cost": finite(plan.cost) if plan.priced else None,
    }


def breakdown_document(plan: Plan) -> dict[str, object]:
    """Return the tables behind the values: all are recomputed when read."""
    tables: dict[str, Sequence[object]] = {
        "clients": plan.client_rows,
        "operations": plan.per_operation,
        "leaders": plan.leaders,
        "quorum": plan.quorum_members,
    }
    if plan.problem.demand.has_waits:
        tables |= {"parts": plan.parts, "waits": plan.waits}
    own: Mapping[str, Sequence[object]] = {}
    if plan.configuration is not None:
        own = plan.problem.objective.plan_rows(plan.problem, plan.configuration)
    return {
        "breakdown": {name: rows_document(rows) for name, rows in tables.items()},
        "failures": failures_document(plan.failures) if plan.found and plan.tells_losses else None,
        "tail": {name: rows_document(rows) for name, rows in own.items()} or None,
        "bill": None if plan.bill is None else bill_document(plan.bill),
    }


def _headline(plan: Plan) -> dict[str, object] | None:
    """Return the value that is minimised, where it is another one than the mean latency."""
    objective, problem = plan.problem.objective, plan.problem
    name = objective.headline(problem)
    if not (name and plan.found):
        return None
    unit = objective.unit(problem)
    value, bound = ("ms", "bound_ms") if unit == "ms" else ("value", "bound")
    return {
        "name": name,
        value: finite(objective.in_ms(problem, plan.objective)),
        bound: finite(objective.in_ms(problem, plan.bound)),
        **({} if unit == "ms" else {"unit": unit}),
    }


def bill_document(bill: MonthlyBill) -> dict[str, object]:
    """Return a bill, JSON-ready."""
    parts = {key: getattr(bill, key) for key in ("total", "currency", "source")}
    rows = [dataclasses.asdict(row) for row in bill.rows]
    return {**parts, "by_term": bill.by_term, "by_site": bill.by_site, "rows": rows}


def failures_document(failures: Failures) -> dict[str, object]:
    """Return the effect of each loss on a plan, JSON-ready."""
    worst = failures.worst
    return {
        "level": failures.level,
        "together": failures.together,
        "leader_may_move": failures.leader_may_move,
        "clients_move": failures.clients_move,
        "normal_ms": finite(failures.normal),
        "worst": None if worst is None else worst.lost,
        "worst_ms": None if worst is None else finite(worst.mean_latency),
        "failover": [
            {"leader": name, "mean_latency_ms": finite(latency)}
            for name, latency in failures.failover
        ],
        "each": rows_document(failures.each),
    }


def rows_document(rows: Sequence[object]) -> list[dict[str, object]]:
    """Return rows of a dataclass, JSON-ready; numbers that are not finite become null."""
    return [
        {
            key: finite(value) if isinstance(value, float) else value
            for key, value in dataclasses.asdict(row).items()  # type: ignore[call-overload]  # rows of a plan are dataclasses
        }
        for row in rows
    ]


_EXPECTED = "a plan, as placement solve -o writes it"
_AGREE = 1e-9
"""Relative excess of a stored bound over the objective that is rounding."""

_WHOSE = "this configuration"

_AS_READ = (
    "format", "version", "status", "termination", "method", "seconds", "bound", "reasons", "notes",
    "stats", "certificate", "claim", "proof", "provenance", "problem", "instance",
    "best_worst_case_ms", "asked",
)  # fmt: skip
"""Keys that are not recomputed: claims of the method, what was checked apart, and the question."""

# --- writing ---------------------------------------------------------------------------------


def save_plan(
    plan: Plan | QuorumPlan,
    path: str | os.PathLike[str],
    *,
    reference: Reference | None = None,
    asked: Mapping[str, object] = MappingProxyType({}),
    force: bool = False,
) -> Path:
    """Write a plan, whole or not at all.

    Parameters
    ----------
    plan
        Any plan, an infeasible one too.
    path
        Of the JSON file.
    reference
        Where the instance comes from; None: the instance is written into the file. A plan of a
        quorum store always holds its RTTs and requests.
    asked
        Further keys of :class:`placement.question.Question`, which a problem does not hold: the
        file of what runs today, the distributions of RTTs. ``placement question`` reads them.
    force
        Replace an existing file.

    Returns
    -------
    Path
        The file written.

    Raises
    ------
    InputError
        When the file exists and `force` is false, or the certificate is not JSON-like.
    """
    if reference is not None and not reference.bundled:
        reference = dataclasses.replace(reference, source=_beside(path, reference.source))
    if isinstance(plan, QuorumPlan):
        document = quorum_plan_document(plan)
    else:
        document = plan_document(plan, reference=reference, embed=reference is None)
    for words in ("claim", "proof"):  # of the reader of the file, which proves nothing by itself
        document.pop(words, None)
    files = {key: KEYS[key].file and Path(str(value)).exists() for key, value in asked.items()}
    if asked:
        document["asked"] = {
            key: _beside(path, str(value)) if files[key] else value for key, value in asked.items()
        }
    return write_file(path, encode_json(document), force=force)


def _beside(path: str | os.PathLike[str], other: str) -> str:
    """Return the path of another file as it is written into the plan file at `path`."""
    try:
        relative = os.path.relpath(Path(other).resolve(), Path(path).resolve().parent)
    except ValueError:  # another drive
        relative = str(Path(other).resolve())
    where = Path(relative).as_posix()
    if where.startswith(".") or Path(where).is_absolute():
        return where
    return f"./{where}"  # never to be mistaken for the name of a data set


# --- reading ---------------------------------------------------------------------------------


def load_plan(
    path: str | os.PathLike[str], instance: Instance | None = None, *, check: bool = False
) -> Plan:
    """Read a plan together with its instance.

    All that can be recomputed is recomputed. The bound cannot: without `check` the plan says in
    :attr:`Plan.claim` that it is claimed and not checked.

    Parameters
    ----------
    path
        A file written by :func:`save_plan`.
    instance
        The instance of the plan; None: the one in the file, or the one the file refers to.
    check
        Check the certificate of the plan too.

    Raises
    ------
    InputError
        When the instance is not the one the plan was made for, cannot be found, or when the file
        holds a status, a number or a name that is not what is recomputed; the message names the
        key, its value and what was expected.
    CertificateError
        With `check`, when the plan carries no certificate or its certificate does not hold.
    """
    document = read_document(path, _EXPECTED)
    document.check_format(FORMAT, VERSION, _EXPECTED)
    if document.has("kind"):
        raise document.refuse("kind", "not a plan with a leader", "a plan that solve wrote")
    if instance is None:
        instance = _find_instance(document, Path(path))
    about = document.table("instance")
    if about.text("fingerprint") != instance.fingerprint:
        words = f"the plan was made for another instance than {instance.name!r}"
        raise about.refuse("fingerprint", words, repr(instance.fingerprint))
    with located(document.source):
        problem = problem_from(document.table("problem"), instance)
        configuration = _configuration(document, instance)
    status = document.choice("status", Status)
    nothing = math.inf if status is Status.INFEASIBLE else -math.inf
    certificate = document.plain("certificate") if document.has("certificate") else None
    if not isinstance(certificate, dict | None):
        raise document.refuse("certificate", "not a certificate", "named keys")
    stats = {key: _plain(document.table("stats"), key) for key in document.table("stats").values}
    plan = Plan(
        problem=problem,
        configuration=configuration,
        bound=document.number("bound", nothing),
        status=status,
        **_told(document),
        stats=MappingProxyType(stats),
        certificate=certificate,
        checked=False,
    )
    _check(document, plan)
    if check:
        from placement.proof.certificate_check import check_certificate

        check_certificate(plan)
        plan = plan.replace(checked=True)
    return plan


def _plain(table: Document, key: str) -> float | int | str:
    plain = table.plain(key)
    if not isinstance(plain, (int, float, str)):
        raise table.refuse(key, "not a number or text", "a number or text")
    return plain


def _told(document: Document) -> dict[str, Any]:
    """Return what the method said of its run."""
    return {
        "termination": document.choice("termination", Termination),
        "method": document.text("method"),
        "seconds": document.number("seconds"),
        "reasons": document.names("reasons", ()),
        "notes": document.names("notes", ()),
    }


def load_any_plan(path: str | os.PathLike[str], *, work: int = WORK) -> Plan | QuorumPlan:
    """Read a plan with a leader or of a quorum store; errors as of :func:`load_plan`.

    `work` is the limit of the evaluation of a plan of a quorum store in all losses;
    ``LimitError`` when it takes more steps, before any loss is listed.
    """
    document = read_document(path, _EXPECTED)
    document.check_format(FORMAT, VERSION, _EXPECTED)
    if not document.has("kind"):
        return load_plan(path)
    if document.text("kind") != KIND:
        raise document.refuse("kind", "unknown kind of plan", f"{KIND!r}, or none for a leader")
    return quorum_plan_from(document, work=work)


def plan_instance(path: Path) -> Instance | None:
    """Return the instance of a plan file; None for another file."""
    if not path.is_file() or path.suffix.lower() != ".json":
        return None
    document = read_document(path)
    leads = document.values.get("format") == FORMAT and not document.has("kind")
    return _find_instance(document, path) if leads else None


def _find_instance(document: Document, path: Path) -> Instance:
    about = document.table("instance")
    if about.has("content"):
        return instance_from_document(about.table("content"))
    words = "the plan does not say where its instance is"
    about.need(about.has("source"), "source", words, "the instance, given beside it")
    from placement import datasets

    source = about.text("source")
    if source in datasets.names():
        mix = about.text("mix") if about.has("mix") else None
        seed = about.whole("seed") if about.has("seed") else 0
        about.need(seed >= 0, "seed", "out of range", "a whole number >= 0")
        return datasets.load(source, mix=mix, seed=seed)
    return load_instance(path.resolve().parent / source)


def _configuration(document: Document, instance: Instance) -> Configuration | None:
    if not document.has("leader") and not document.has("voters_as_found"):
        return None
    for key in ("voters_as_found", "replicas"):
        document.need(document.names(key), key, "nothing in it", "names of sites")
    voters = instance.site_indices(document.names("voters_as_found"), "voters_as_found").tolist()
    leader = min(voters)  # stands for the leader where there is none, which has no part then
    if document.has("leader"):
        leader = int(instance.site_indices([document.text("leader")], "leader")[0])
    replicas = instance.site_indices(document.names("replicas"), "replicas").tolist()
    return Configuration.of(leader, voters, replicas)


def _check(document: Document, plan: Plan) -> None:
    """Recompute the claims of the file."""
    claimed, found = plan.status, plan.configuration is not None
    if plan.configuration is not None:
        value = {"score": finite(plan.score), "objective": finite(plan.objective)}
        given = {key: document.values[key] for key in value if key in document.values}
        check_recomputed(dataclasses.replace(document, values=given), value, _WHOSE)
        broken = violations(plan.problem, plan.configuration)
        if broken and claimed is not Status.VIOLATING:
            raise document.refuse("status", "the configuration breaks: " + "; ".join(broken))
        if claimed is Status.VIOLATING and not broken:
            raise document.refuse("status", "the configuration breaks no constraint")
        if plan.reasons != broken:
            words = "not the constraints that the configuration breaks"
            raise document.refuse("reasons", words, repr([*broken]))
        if not broken and not plan.bound <= plan.objective * (1 + _AGREE) + _AGREE:
            raise document.refuse("bound", "above the objective", f"<= {plan.objective!r}")
    if claimed is not Status.VIOLATING or not found:
        proven = status_of(found, plan.objective, plan.bound)
        if proven is not claimed:
            words = "not the status of this score and bound"
            raise document.refuse("status", words, repr(str(proven)))
    if document.has("claim") and document.text("claim") != plan.claim:
        raise document.refuse("claim", "does not match the bound", repr(plan.claim))
    about, instance = document.table("instance"), plan.problem.instance
    if about.has("content"):  # elsewhere the words about an instance may have changed since
        for table, key, told in (
            (about, "name", instance.name),
            (document, "provenance", list(instance.provenance)),
        ):
            if key in table.values and table.values[key] != told:
                raise table.refuse(key, "does not match the instance", repr(told))
    values = {**configuration_document(plan), "gap": finite(plan.gap)}
    recomputed = {**values, **breakdown_document(plan)}
    document.only((*_AS_READ, *recomputed))
    check_recomputed(document.without(_AS_READ), recomputed, _WHOSE)


# --- plans of quorum stores -------------------------------------------------------------------

KIND = "quorum store"
"""Key ``kind`` of a plan file with such a plan; leader plans have none."""

_CLAIMS = (
    "format", "version", "kind", "status", "termination", "method", "seconds", "bound", "claim",
    "certificate", "reasons", "notes", "problem",
)  # fmt: skip
"""Keys that are no values of the configuration."""


def quorum_plan_document(plan: QuorumPlan) -> dict[str, object]:
    """Return the plan of a quorum store as one JSON-ready object."""
    return {
        "format": FORMAT,
        "version": 1,
        "kind": KIND,
        "status": plan.status.value,
        "termination": plan.termination.value,
        "method": plan.method,
        "seconds": plan.seconds,
        "bound": finite(plan.bound),
        "claim": _quorum_claim(plan) or None,
        "certificate": _tree_document(plan),
        "reasons": list(plan.reasons),
        "notes": list(plan.notes),
        **_quorum_values(plan),
        "problem": record_document(plan.problem),
    }


def _quorum_claim(plan: QuorumPlan) -> str:
    if plan.status not in (Status.OPTIMAL, Status.INFEASIBLE):
        return ""
    bare = "" if plan.certified else "; no certificate"
    return f"{plan.status.value} (proved by {plan.method}{bare})"


def _tree_document(plan: QuorumPlan) -> dict[str, object] | None:
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


def _quorum_values(plan: QuorumPlan) -> dict[str, object]:
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


def quorum_plan_from(document: Document, *, work: int = WORK) -> QuorumPlan:
    """Return the plan that :func:`quorum_plan_document` wrote.

    A value that is missing, wrong, or not what is recomputed is refused with file, field and what
    was expected. LimitError, when the evaluation in all losses takes more than `work` steps, comes
    before any loss is listed.
    """
    with located(document.source):
        problem = document.table("problem").record(QuorumProblem)
        configuration = _quorum_configuration(document, problem)
    if configuration is not None:
        try:
            problem.take_evaluations(Work(work), sets=1, size=configuration.size, losses=True)
        except LimitError as error:
            raise LimitError(f"{document.source}: {error}") from None
    status = document.choice("status", Status)
    if configuration is not None:
        names = [problem.sites[site] for site in configuration.replicas]
        broken = evaluate(problem, names, configuration.read, configuration.write).reasons
        words = "the configuration breaks: " + "; ".join(broken)
        document.need(not broken, "replicas", words, "one that obeys")
    none = status is Status.INFEASIBLE
    bound = math.inf if none else document.number("bound", -math.inf)
    try:
        told = {**_told(document), "certificate": _tree(document, problem)}
        plan = QuorumPlan.of(problem, configuration, bound=bound, **told)
    except SolverError as error:
        field = "bound" if "bound" in str(error) else "replicas"
        raise document.refuse(field, str(error), "what the configuration has") from None
    if plan.status is not status:
        words = "not the status of this value and bound"
        raise document.refuse("status", words, repr(plan.status.value))
    check_recomputed(document.without(_CLAIMS), _quorum_values(plan), _WHOSE)
    return plan


def _quorum_configuration(document: Document, problem: QuorumProblem) -> QuorumConfiguration | None:
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
        document.need(1 <= quorum <= len(sites), key, "out of range", f"1 to {len(sites)}")
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
        table.need(name in place, "order", f"no site {name!r}", "sites of the problem")
    rows, found = table.tables("prefixes"), []
    expected = f"one for each of {len(problem.pairs)} N, R, W"
    table.need(len(rows) == len(problem.pairs), "prefixes", f"{len(rows)} entries", expected)
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
