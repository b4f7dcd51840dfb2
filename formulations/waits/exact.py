"""Part ``exact.waits`` of ``exact``: operations with waits or constants, and witnesses.

Waits of a leader go into the engine by their cases
(:mod:`placement.evaluation.waits.wait_cases`), and a constant with the direct demand. Witnesses are
proven for every choice of their sites, each a question without them
(:mod:`formulations.waits.witness_questions`). What the engine cannot take, waits of the nearest
replica and of clients, and rules for voters where not all replicas vote, goes to an enumeration of
replica sets: ``sets``, or ``exhaustive`` where that does not take the question.
"""

from __future__ import annotations

import dataclasses

from formulations.exact.kernel import compiled_available
from formulations.exact.method import Session
from formulations.exact.reduced_problem import ReducedProblem
from formulations.waits.witness_questions import prove_places
from placement.methods.options import Options
from placement.methods.registry import load_method, refusal, run
from placement.plan import Plan
from placement.problem import Problem
from placement.proof.enumeration_check import certified_or_named


def solve(problem: Problem, options: Options) -> Plan:
    """Let the engine answer; where it cannot, an enumeration.

    Where evaluating all configurations again takes seconds, a plan of the enumeration gets the
    certificate that asks for this, or it says that it has none.
    """
    if problem.rules.witnesses:
        return prove_places(problem, options)
    if compiled_available() and ReducedProblem.refuses(problem.demand, problem.rules) is None:
        return Session()(problem, options)
    sets = load_method("sets")
    method = sets if refusal(sets, problem) is None else load_method("exhaustive")
    plan = run(method, problem, dataclasses.replace(options, settings={}))
    plan = plan.replace(
        method="exact",
        notes=(*plan.notes, f"solved by {method.name!r}"),
        certificate=None,
    )
    return certified_or_named(plan, "enumeration", wanted=bool(options.settings["certificate"]))
