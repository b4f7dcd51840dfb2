"""Part ``exact.waits`` of ``exact``: operations with waits or constants, witnesses, lease holders.

Waits of a leader go into the engine by their cases
(:mod:`placement.evaluation.waits.wait_cases`), a constant with the direct demand, witnesses as
floors of the waits (:mod:`placement.evaluation.waits.wait_floors`), and lease holders as a second
copy of every site (:mod:`placement.feasibility.lease_copies`). Witnesses that are not such floors,
beside rules for voters, pins, leases and RTTs that vary, are proven for every choice of their sites
(:mod:`formulations.waits.witness_questions`). Another method proves what the engine cannot take:

- waits of the nearest replica and of clients, and rules for voters where not all replicas vote;
- lease holders where two copies of every site do not stand for the question: ``exhaustive`` where
  that is quick, else ``milp``;
- witnesses beside a budget, where the voters hold leases, with thousands of choices of their
  sites, or where the question of a choice is of one of these kinds: ``exhaustive`` where that is
  quick, else ``milp``;
- votes of several each beside rules that no cases say, as ``survive`` where the best plan without
  it breaks it: ``exhaustive`` where that is quick, else ``milp``;
- witnesses with a price: ``exhaustive`` alone.

Moves from the present configuration: :mod:`formulations.waits.move_sets`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial

from formulations.exact.enumeration_claim import certified_or_named
from formulations.exact.kernel import compiled_available
from formulations.exact.method import Session
from formulations.exact.reduced_problem import ReducedProblem
from formulations.waits import move_sets
from formulations.waits.set_search import compiled_available as sets_available
from formulations.waits.set_tables import why_not
from formulations.waits.witness_questions import prove_places
from placement.evaluation.objective import score_of
from placement.feasibility.feasible_plans import violations
from placement.feasibility.lease_copies import lease_copies
from placement.methods.options import Options
from placement.methods.registry import load_method, refusal, run
from placement.model.configuration import Configuration
from placement.plan import Plan
from placement.problem import Problem
from placement.proof.certificate_check import LEASES as FORMAT
from placement.proof.enumeration_check import steps_of_enumeration

__all__ = ["solve"]

_MOST_STEPS = 300_000_000
"""Steps of an enumeration of witnesses or lease holders that takes about a second."""


def solve(problem: Problem, options: Options) -> Plan:
    """Let the engine answer; where it cannot, the search over sets, or enumeration.

    A plan of the search over sets has its certificate. Else, where evaluating all configurations
    again takes seconds, a plan of another method gets the certificate that asks for this, or it
    says that it has none.
    """
    if problem.rules.vote_spread is not None:
        found = _without_spread(problem, options)
        if found is not None:
            return found
    if problem.rules.lease_holders and not problem.rules.witnesses:
        found = _by_copies(problem, options)
        if found is not None:
            return found
    compiled = compiled_available()
    if problem.moves is not None:
        return _within_moves(problem, options)
    witnesses = problem.rules.witnesses > 0
    priced = "witnesses" in problem.cost_parts
    able = not problem.limits and not priced if witnesses else compiled
    if able and ReducedProblem.refuses(problem.demand, problem.rules) is None:
        return Session()(problem, options)
    if witnesses and not priced:
        proven = prove_places(problem, options)
        if proven is not None:
            return proven
    sets = load_method("sets")
    method = sets if refusal(sets, problem) is None else load_method("exhaustive")
    chosen = (witnesses and not priced) or problem.rules.lease_holders > 0
    chosen |= problem.rules.votes is not None
    if chosen and steps_of_enumeration(problem) > _MOST_STEPS:
        method = load_method("milp")
    plan = run(method, problem, dataclasses.replace(options, settings={}))
    plan = plan.replace(method="exact", notes=(*plan.notes, f"solved by {method.name!r}"))
    if options.settings["certificate"]:
        why = ": it would be too large" if method is sets else ""
        return certified_or_named(plan, repr(method.name), why)
    return certified_or_named(plan.replace(certificate=None), repr(method.name), wanted=False)


def _within_moves(problem: Problem, options: Options) -> Plan:
    """Let the search over sets answer a question about moves, or enumeration."""
    if sets_available() and why_not(problem) is None:
        return move_sets.solve(problem, options)
    plan = run(load_method("exhaustive"), problem, dataclasses.replace(options, settings={}))
    plan = plan.replace(method="exact", notes=(*plan.notes, "solved by 'exhaustive'"))
    return certified_or_named(plan, "'exhaustive'", wanted=bool(options.settings["certificate"]))


def _without_spread(problem: Problem, options: Options) -> Plan | None:
    """Solve a question without its rule about the votes that losses leave.

    Its bound and its certificate hold with the rule. None where its plan breaks the rule, or where
    the engine does not take it.
    """
    other = problem.replace(survive=None)
    if ReducedProblem.refuses(other.demand, other.rules) is not None or not compiled_available():
        return None
    plan = Session()(other, options)
    if plan.configuration is None or violations(problem, plan.configuration):
        return None
    answer = Plan.of(
        problem,
        plan.configuration,
        method=plan.method,
        bound=plan.bound,
        termination=plan.termination,
        notes=plan.notes,
        stats=plan.stats,
        certificate=partial(_of_plan, plan) if plan.certified else None,
    )
    return certified_or_named(answer, "'exact'", wanted=bool(options.settings["certificate"]))


def _of_plan(plan: Plan) -> Mapping[str, object]:
    """Return the certificate of a plan that has one."""
    assert plan.certificate is not None
    return plan.certificate


def _by_copies(problem: Problem, options: Options) -> Plan | None:
    """Let the engine answer a question with lease holders on two copies of every site.

    None where the copies do not stand for the question, or the engine does not take them.
    """
    if not compiled_available():
        return None
    copies = lease_copies(problem)
    if copies is None:
        return None
    other = copies.problem
    if ReducedProblem.refuses(other.demand, other.rules) is not None:
        return None
    start = None if options.start is None else copies.copied(options.start)
    asked = dataclasses.replace(options, start=start, warm_start=None)
    plan = Session()(other, asked)
    found = None if plan.configuration is None else copies.original(plan.configuration)
    document: Callable[[], Mapping[str, object]] | None = None
    if plan.certified and found is not None:
        document = partial(_of_copies, problem, plan, found)
    answer = Plan.of(
        problem,
        found,
        method=plan.method,
        bound=plan.bound,
        termination=plan.termination,
        reasons=plan.reasons,
        notes=plan.notes,
        stats=plan.stats,
        certificate=document,
    )
    return certified_or_named(answer, "'exact'", wanted=bool(options.settings["certificate"]))


def _of_copies(problem: Problem, plan: Plan, found: Configuration) -> dict[str, object]:
    """Return the certificate of a plan for the copies as one of the question they stand for."""
    return {
        "format": FORMAT,
        "bound": plan.bound,
        "score": score_of(problem, found),
        "leader": found.leader,
        "voters": list(found.voters),
        "replicas": list(found.replicas),
        "lease_holders": list(found.lease_holders),
        "copies": plan.certificate,
    }
