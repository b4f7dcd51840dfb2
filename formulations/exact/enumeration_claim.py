"""Proofs without certificate data: small ones are enumerated again, others only named."""

from __future__ import annotations

from placement.plan import Plan
from placement.proof.enumeration_check import FORMAT, steps_of_enumeration
from placement.support.status import Status

_MOST_STEPS = 100_000_000
"""Steps of a check that a certificate may ask for: a tenth of what a checker takes by itself."""


def certified_or_named(plan: Plan, proof: str, why: str = "", *, wanted: bool = True) -> Plan:
    """Return a proven plan with a certificate, or with the words that it has none.

    Parameters
    ----------
    plan
        Of any method; returned as it is when it is not proven, or has a certificate. With so few
        configurations that a check evaluates them in some seconds, it gets a certificate that asks
        for this.
    proof
        What proved it.
    why
        Why it has no certificate, if that is known.
    wanted
        Whether a certificate was asked for.
    """
    if plan.status not in (Status.OPTIMAL, Status.INFEASIBLE) or plan.certified:
        return plan
    if not wanted or steps_of_enumeration(plan.problem) > _MOST_STEPS:
        words = f"{plan.status.value} (proved by {proof}; no certificate{why})"
        if plan.found:
            return plan.replace(notes=(words, *plan.notes))
        return plan.replace(reasons=(*plan.reasons, words))
    document: dict[str, object] = {
        "format": FORMAT,
        "bound": plan.bound,
        "score": plan.objective,
    }
    if plan.configuration is not None:
        document |= plan.configuration.to_document()
    return plan.replace(certificate=document)
