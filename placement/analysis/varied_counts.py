"""Questions with varied numbers of replicas and voters, and the columns of a table of their plans.

Shared by :mod:`placement.analysis.sweep` and :mod:`placement.analysis.pareto_frontier`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from placement.errors import InputError
from placement.model.instance import Instance
from placement.plan import Plan
from placement.problem import Problem
from placement.support.checks import elements, function, mapping, whole

__all__ = [
    "check_question",
    "objective_words",
    "plan_columns",
    "value_in_ms",
    "voter_counts",
    "whole_numbers",
    "with_counts",
]


def check_question(
    question: Instance | Problem,
    progress: Callable[..., None] | None,
    settings: Mapping[str, object] | None,
) -> None:
    """Check the types of the arguments of a sweep or a frontier."""
    if not isinstance(question, (Instance, Problem)):
        raise InputError(
            "neither an instance nor a problem",
            field="question",
            value=question,
            expected="a placement.Instance or a placement.Problem",
        )
    if progress is not None:
        function(progress, "progress")
    if settings is not None:
        mapping(settings, "settings")


def with_counts(
    question: Instance | Problem, replicas: int | tuple[int, int], voters: int | None
) -> Problem:
    """Return the question with other numbers; None: the voters of the problem, 3 of an instance."""
    if isinstance(question, Instance):
        return Problem(question, replicas=replicas, voters=3 if voters is None else voters)
    if voters is None:
        return question.replace(replicas=replicas)
    return question.replace(replicas=replicas, voters=voters)


def voter_counts(
    question: Instance | Problem, voters: Iterable[int] | int | None
) -> list[int | None]:
    """Numbers of voters; None stands for the voters of the problem, which may have names."""
    if voters is not None:
        return [*sorted(set(whole_numbers(voters, "voters")))]
    if isinstance(question, Instance):
        return [3]
    return [question.rules.voters if isinstance(question.voters, int) else None]


def whole_numbers(values: Iterable[int] | int, field: str) -> list[int]:
    """Return numbers >= 1 as a list, or raise an InputError that names the field."""
    if isinstance(values, (int, float)):
        values = (values,)  # a fraction is refused below
    numbers = []
    for value in elements(values, field, "whole numbers >= 1"):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
            raise InputError(
                "not a possible number", field=field, value=value, expected="whole numbers >= 1"
            )
        numbers.append(whole(value, field, minimum=1))
    if not numbers:
        raise InputError("none given", field=field, expected="at least one number")
    return numbers


def value_in_ms(plan: Plan) -> float:
    """Return the minimised value of a plan in ms: mean latency without money, or its objective."""
    objective = plan.problem.objective
    if not plan.found or objective.minimises_mean:
        return plan.mean_latency
    return objective.in_ms(plan.problem, plan.objective)


def objective_words(question: Instance | Problem) -> str:
    """Return the objective of a question in words; empty for the mean latency."""
    return question.objective.describe() if isinstance(question, Problem) else ""


def plan_columns(plan: Plan) -> dict[str, object]:
    """Shared columns of the two tables."""
    priced = plan.problem.instance.prices is not None and plan.found
    return {
        "status": plan.status.value,
        "score": plan.score if plan.found else math.nan,
        "mean_latency": plan.mean_latency,
        "value": value_in_ms(plan),
        "bound": plan.bound,
        "gap": plan.gap if plan.found else math.nan,
        "cost": plan.cost if priced else math.nan,
        "seconds": plan.seconds,
        "leader": plan.leader,
        "voter_sites": plan.voters,
        "replica_sites": plan.replicas,
    }
