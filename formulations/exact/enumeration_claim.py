"""Certificates of small questions that other methods answer: everything can be evaluated again."""

from __future__ import annotations

from placement.plan import Plan
from placement.proof.enumeration_check import FORMAT, steps_of_enumeration
from placement.status import Status

__all__ = ["claim_by_enumeration"]

_MOST_STEPS = 100_000_000
"""Steps of a check that a certificate may ask for: a tenth of what a checker takes by itself."""


def claim_by_enumeration(plan: Plan) -> Plan:
    """Return a proven plan with a certificate that asks the checker to evaluate all configurations.

    Parameters
    ----------
    plan
        Of any method; returned as it is when it is not proven, has a certificate, or has more
        configurations than a check evaluates in some seconds.
    """
    proven = plan.status in (Status.OPTIMAL, Status.INFEASIBLE)
    if not proven or plan.certified or steps_of_enumeration(plan.problem) > _MOST_STEPS:
        return plan
    document: dict[str, object] = {
        "format": FORMAT,
        "bound": plan.bound,
        "score": plan.objective,
    }
    if plan.configuration is not None:
        document |= {
            "leader": plan.configuration.leader,
            "voters": list(plan.configuration.voters),
            "replicas": list(plan.configuration.replicas),
        }
    return plan.replace(certificate=document)
