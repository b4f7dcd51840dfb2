"""Plans with a leader, JSON-ready: the answer, the question, and the numbers behind it, by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from placement.evaluation.bill import MonthlyBill
from placement.evaluation.losses import Failures
from placement.io.formats.document import finite, jsonable
from placement.io.instance_folder import instance_document
from placement.io.problem_document import problem_document
from placement.plan import Plan
from placement.problem import Problem

# Bill of a month as a part of a JSON document


def bill_document(bill: MonthlyBill) -> dict[str, object]:
    """Return a bill, JSON-ready: recomputed from the plan when read."""
    return {
        "total": bill.total,
        "currency": bill.currency,
        "source": bill.source,
        "by_term": bill.by_term,
        "by_site": bill.by_site,
        "rows": [dataclasses.asdict(row) for row in bill.rows],
    }


FORMAT = "replica-placement plan"
VERSION = 2
"""Version 2: with a protocol, waits or witnesses; a plan without is of version 1."""


@dataclass(frozen=True, slots=True)
class Reference:
    """Source from which an instance is loaded again, in place of a copy in the plan file.

    Attributes
    ----------
    source
        Name of a bundled data set, or the path of an instance; in the file, a path is relative to
        the folder of the plan.
    mix, seed
        Of the workload, for a data set.
    """

    source: str
    mix: str | None = None
    seed: int = 0

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
    instance = plan.problem.instance
    about: dict[str, object] = {"name": instance.name, "fingerprint": instance.fingerprint}
    if reference is not None:
        about["source"] = reference.source
        if reference.bundled:
            about |= {"mix": reference.mix, "seed": reference.seed}
    if embed:
        about["content"] = instance_document(instance)
    return {
        "format": FORMAT,
        "version": VERSION if _of_version_2(plan.problem) else 1,
        "seconds": plan.seconds,
        **outcome_document(plan),
        "stats": jsonable(plan.stats, "stats"),
        "certificate": None
        if plan.certificate is None
        else jsonable(plan.certificate, "certificate"),
        "provenance": list(instance.provenance),
        "problem": problem_document(plan.problem),
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


def _of_version_2(problem: Problem) -> bool:
    """Return whether a question needs a field that version 1 of the format lacks."""
    asks = problem.protocol is not None
    return asks or problem.demand.has_waits or problem.rules.witnesses > 0


def breakdown_document(plan: Plan) -> dict[str, object]:
    """Return the tables behind the values."""
    has_waits = plan.problem.demand.has_waits
    return {
        "breakdown": {
            "clients": rows_document(plan.client_rows),
            "operations": rows_document(plan.per_operation),
            "leaders": rows_document(plan.leaders),
            "quorum": rows_document(plan.quorum_members),
            **(
                {"parts": rows_document(plan.parts), "waits": rows_document(plan.waits)}
                if has_waits
                else {}
            ),
        },
        "failures": failures_document(plan.failures) if plan.found and plan.tells_losses else None,
        "tail": _objective_rows(plan),
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


def _objective_rows(plan: Plan) -> dict[str, object] | None:
    """Return the fields of the objective beside its value: recomputed when read."""
    if plan.configuration is None:
        return None
    tables = plan.problem.objective.plan_rows(plan.problem, plan.configuration)
    return {name: rows_document(rows) for name, rows in tables.items()} or None


def failures_document(failures: Failures) -> dict[str, object]:
    """Return the effect of each loss on a plan, JSON-ready: recomputed from the plan when read."""
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
