"""The least percentile with a proof: method ``exact`` when the objective is a percentile.

With nothing lost, or after the worst loss.

:mod:`formulations.tail.percentile_search` is the search. Here stands which problems it takes, who
answers the others, and the plan that is made of its result.
"""

from __future__ import annotations

import dataclasses
import math

from formulations.enumeration.exhaustive import count_sets
from formulations.exact.enumeration_claim import certified_or_named
from formulations.exact.method import METHOD
from formulations.exact.threshold_search import missing
from formulations.tail.percentile_claims import percentile_certificate
from formulations.tail.percentile_search import PercentileProof
from placement.contingency.objective import Contingency
from placement.methods.options import Options
from placement.methods.registry import load_method, run
from placement.plan import Plan
from placement.problem import Problem
from placement.tail.late_operations import why_no_sum
from placement.tail.objective import Percentile

__all__ = ["solve"]

_FEW_SETS = 20_000
"""So many replica sets are enumerated where the compiled search is missing."""

_PROOF = "a search for earlier deadlines under every leader"


def solve(problem: Problem, options: Options) -> Plan:
    """Search, and return the best plan with its proven bound.

    Problems that the search cannot take are enumerated: operations that ask a replica nearby and a
    quorum besides, and budgets. Without a compiled search those of few replica sets are, and others
    go to the local search and its bound, which knows no losses and no RTTs that vary.
    """
    goal, losses = problem.objective, isinstance(problem.objective, Contingency)
    percentile = goal.percentile if isinstance(goal, Contingency) else goal
    assert isinstance(percentile, Percentile)
    reason = why_no_sum(problem, percentile)
    if reason is not None:
        reason = f"{reason}, which the search for percentiles does not support"
        return _answered_by("exhaustive", problem, options, reason)
    reason = missing()
    if reason is not None:
        few = losses or bool(percentile.by_interval) or count_sets(problem) <= _FEW_SETS
        reason = f"the search for percentiles was not used: {reason}"
        return _answered_by("exhaustive" if few else "local-search", problem, options, reason)
    search = PercentileProof(problem, options)
    search.run()
    if search.infeasible is not None:
        none = search.infeasible
        plan = Plan.infeasible(problem, method=METHOD.name, reasons=none.reasons)
        return plan.replace(certificate=none.certificate)
    if search.best is None:
        return _nothing(problem, search)
    notes = []
    if search.bound >= search.value and not search.tie_proven:
        notes.append("whether another plan of this percentile has a lower mean was not decided")
    plan = Plan.of(
        problem,
        search.best,
        method=METHOD.name,
        bound=search.bound,
        termination=search.termination,
        notes=notes,
        stats=_stats(search),
        certificate=percentile_certificate(search),
    )
    return certified_or_named(plan, _PROOF, wanted=bool(options.settings.get("certificate")))


def _answered_by(name: str, problem: Problem, options: Options, reason: str) -> Plan:
    plan = run(load_method(name), problem, dataclasses.replace(options, settings={}))
    note = f"solved by {name!r}: {reason}"
    plan = plan.replace(method=METHOD.name, notes=(note, *plan.notes))
    return certified_or_named(plan, repr(name)) if options.settings.get("certificate") else plan


def _stats(search: PercentileProof) -> dict[str, int]:
    return {
        "nodes": search.counters.nodes,
        "leaves": search.counters.leaves,
        "bounds": search.counters.bounds,
        "deadlines": search.deadlines,
        "least mean proven": int(search.tie_proven),
    }


def _nothing(problem: Problem, search: PercentileProof) -> Plan:
    """Say that there is no plan, or that none was found in time."""
    if math.isinf(search.bound):
        reason = (
            f"no configuration has its {problem.objective.describe()} within the horizon "
            f"(proved under each of the {len(search.least)} possible leaders)"
        )
        plan = Plan.infeasible(
            problem, method=METHOD.name, reasons=(reason, *search.goal.caveats(problem))
        )
        wanted = bool(search.options.settings.get("certificate"))
        plan = plan.replace(certificate=percentile_certificate(search))
        return certified_or_named(plan, _PROOF, wanted=wanted)
    return Plan.of(
        problem,
        None,
        method=METHOD.name,
        bound=search.bound,
        termination=search.termination,
        stats=_stats(search),
    )
