"""Part ``exact.waits`` of the method ``exact``: operations with waits, proven by another method."""

from __future__ import annotations

import dataclasses

from formulations.exact.enumeration_claim import certified_or_named
from placement.methods import Options, load_method, run
from placement.plan import Plan
from placement.problem import Problem

__all__ = ["solve"]


def solve(problem: Problem, options: Options) -> Plan:
    """Let the method that knows waits answer, and add a certificate where a check is quick."""
    plan = run(load_method("exhaustive"), problem, dataclasses.replace(options, settings={}))
    plan = plan.replace(method="exact")
    return certified_or_named(plan, "'exhaustive'", wanted=bool(options.settings["certificate"]))
