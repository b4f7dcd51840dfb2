"""Check of a claim by evaluating every configuration (format ``replica-placement/enumeration/1``).

For small questions that no other format covers: RTTs that vary, a budget, two domains lost at once,
clients that move. Such a certificate holds no proof, only the claim. The checker tries every set of
replicas, voters and leader, and evaluates each with the one evaluator of this package, in doubles.
A configuration that is below the claim must break a constraint.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from placement.errors import CertificateError
from placement.evaluation.objective import score_of
from placement.evaluation.score import TIE
from placement.feasibility.feasible_plans import role_choices, violations
from placement.model.configuration import Configuration
from placement.plan import Plan
from placement.problem import Problem
from placement.support.status import Status
from placement.support.work import Work

FORMAT = "replica-placement/enumeration/1"

_STEPS_OF_A_CONFIGURATION = 500
_BATCH = 5000
_MOST_CLAIMED = 100_000_000  # a tenth of the steps that a checker takes by itself


def steps_of_enumeration(problem: Problem) -> int:
    """Steps that the check of all configurations takes. O(1)."""
    rules, instance = problem.rules, problem.instance
    able = int(rules.may_hold.sum())
    sets = sum(
        math.comb(able, size) * math.comb(size, rules.data_voters)
        for size in range(rules.replicas_min, rules.replicas_max + 1)
    )
    if rules.witnesses and rules.may_witness is not None:
        sets *= math.comb(int(rules.may_witness.sum()), rules.witnesses)
    leaders = 1 if problem.demand.leaderless else rules.data_voters
    losses = 0 if problem.minimises_mean else len(instance.sites)
    each = _STEPS_OF_A_CONFIGURATION * (1 + losses) + len(instance.clients) * rules.replicas_max
    return sets * leaders * each * problem.demand.scenarios


def certified_or_named(plan: Plan, proof: str, why: str = "", *, wanted: bool = True) -> Plan:
    """Return a proven plan with a certificate, or with the words that it has none.

    A plan that is not proven, or has a certificate, is returned as it is. With so few
    configurations that a check evaluates them in some seconds, the certificate asks for this.
    `proof` says what proved the plan, and `why` that it has no certificate.
    """
    if plan.status not in (Status.OPTIMAL, Status.INFEASIBLE) or plan.certified:
        return plan
    if not wanted or steps_of_enumeration(plan.problem) > _MOST_CLAIMED:
        words = f"{plan.status.value} (proved by {proof}; no certificate{why})"
        if plan.found:
            return plan.replace(notes=(words, *plan.notes))
        return plan.replace(reasons=(*plan.reasons, words))
    document: dict[str, object] = {"format": FORMAT, "bound": plan.bound, "score": plan.objective}
    if plan.configuration is not None:
        document |= plan.configuration.to_document()
    return plan.replace(certificate=document)


def _configurations(problem: Problem) -> Iterator[Configuration]:
    """Yield every configuration of sites that may play their part; not all obey the rules."""
    rules = problem.rules
    able = [int(s) for s in np.nonzero(rules.may_hold)[0]]
    held = {int(s) for s in np.nonzero(rules.must_hold)[0]}
    for size in range(rules.replicas_min, rules.replicas_max + 1):
        for replicas in itertools.combinations(able, size):
            if held <= set(replicas):
                yield from role_choices(problem, replicas)


def check_enumeration(plan: Plan, bound: float, work: Work) -> tuple[int, int, float | None]:
    """Evaluate every configuration; none that obeys the constraints is below a bound.

    A bound of +∞: no such configuration has a finite value. Returned are the numbers of leaders and
    configurations, and the least score in normal operation of those that are as good as the plan,
    where the objective is another. CertificateError with a configuration that is below the bound.
    """
    problem = plan.problem
    work.take(steps_of_enumeration(problem))
    least = bound if math.isinf(bound) else bound - abs(bound) * TIE
    as_good = plan.objective * (1 + TIE) if plan.found else -math.inf
    seen, normal = 0, math.inf
    all_of_them = _configurations(problem)
    while batch := list(itertools.islice(all_of_them, _BATCH)):
        seen += len(batch)
        values = problem.objective.values(problem, batch)
        below = values < least  # an infinite value breaks a limit, or says that a loss stops it
        near = values <= as_good if not problem.minimises_mean else np.zeros(len(batch), dtype=bool)
        for place in np.nonzero(below | near)[0].tolist():
            configuration = batch[place]
            if violations(problem, configuration):
                continue
            if below[place]:
                raise CertificateError(f"{configuration} has the objective {values[place]!r}")
            normal = min(normal, score_of(problem, configuration))
    leaders = int(problem.rules.may_lead.sum())
    return leaders, seen, normal if math.isfinite(normal) else None
