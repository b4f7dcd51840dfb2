"""Part ``exact.waits`` of the method ``exact``: operations with waits, proven by another method."""

from __future__ import annotations

import dataclasses

from formulations.exact.enumeration_claim import certified_or_named
from placement.methods import Options, load_method, refusal, run
from placement.plan import Plan
from placement.problem import Problem

__all__ = ["solve"]


def solve(problem: Problem, options: Options) -> Plan:
    """Let the search over sets answer; enumeration where it cannot.

    Where evaluating all configurations again takes seconds, the plan gets the certificate that asks
    for this; else it says that it has none.
    """
    sets = load_method("sets")
    method = sets if refusal(sets, problem) is None else load_method("exhaustive")
    plan = run(method, problem, dataclasses.replace(options, settings={}))
    plan = plan.replace(method="exact", notes=(*plan.notes, f"solved by {method.name!r}"))
    return certified_or_named(plan, repr(method.name), wanted=bool(options.settings["certificate"]))
