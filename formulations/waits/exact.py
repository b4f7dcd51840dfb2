"""Part ``exact.waits`` of ``exact``: operations with waits or constants, and witnesses.

Waits of a leader go into the engine by their cases
(:mod:`placement.evaluation.waits.wait_cases`), and a constant with the direct demand. Witnesses are
proven for every choice of their sites, each a question without them. What the engine cannot take,
waits of the nearest replica and of clients, and rules for voters where not all replicas vote, goes
to an enumeration of replica sets: ``sets``, or ``exhaustive`` where that does not take the
question.

Witnesses at given sites are replicas that no client is near to
(:mod:`placement.feasibility.feasible_plans`), a question that the engine takes. The best of all
choices of sites is the best, and the least bound of all is a bound. A certificate has one of each.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Mapping
from functools import partial

from formulations.exact.kernel import compiled_available
from formulations.exact.method import Session
from formulations.exact.reduced_problem import ReducedProblem
from placement.errors import UnsupportedError
from placement.evaluation.objective import score_of
from placement.evaluation.score import TIE
from placement.feasibility.feasible_plans import (
    MOST_PLACES,
    count_places,
    named_question,
    original,
    witness_places,
)
from placement.methods.options import Options
from placement.methods.registry import load_method, refusal, run
from placement.model.configuration import Configuration
from placement.plan import Plan
from placement.problem import Problem
from placement.proof.certificate_check import PLACES as FORMAT
from placement.proof.enumeration_check import certified_or_named
from placement.support.status import Status, Termination


def prove_places(problem: Problem, options: Options) -> Plan:
    """Prove the question of every choice of sites for the witnesses; the best of their plans.

    The time limit is one for all; a start counts where it is the best. At a limit nothing is known
    of the choices that were not searched, and there is no bound. UnsupportedError where there are
    too many choices.
    """
    count = count_places(problem)
    if count > MOST_PLACES:
        raise UnsupportedError(
            f"witnesses: 'exact' proves at most {MOST_PLACES:,} choices of their sites one by one, "
            f"and there are {count:,}: name the witnesses, or leave out sites (forbidden)"
        )
    session, began = Session(), time.perf_counter()
    parts: list[Plan] = []
    best, bound = options.start, math.inf
    value = math.inf if best is None else score_of(problem, best)
    termination = Termination.FINISHED
    for places in witness_places(problem):
        named = named_question(problem, places)
        if named is None:
            raise UnsupportedError("witnesses: 'exact' needs an RTT longer than all others")
        left = options.time_limit
        if left is not None:
            left = max(left - (time.perf_counter() - began), 0.0)
        asked = dataclasses.replace(
            options, start=None, warm_start=None, progress=None, time_limit=left
        )
        plan = session(named, asked)
        parts.append(plan)
        bound = min(bound, plan.bound)
        if plan.configuration is not None:
            found = original(plan.configuration, places)
            score = score_of(problem, found)
            if best is None or score < value * (1 - TIE) or (
                score <= value * (1 + TIE) and _key(found) < _key(best)
            ):  # fmt: skip
                best = found
            value = min(value, score)
        if plan.status not in (Status.OPTIMAL, Status.INFEASIBLE):
            termination, bound = plan.termination, -math.inf
            break
    return _plan(problem, options, parts, best, bound, termination)


def _key(found: Configuration) -> tuple[int, tuple[int, ...]]:
    return found.leader, found.replicas


def _plan(
    problem: Problem, options: Options, parts: list[Plan], best: Configuration | None,
    bound: float, termination: Termination,
) -> Plan:  # fmt: skip
    wanted = bool(options.settings["certificate"])
    if best is None and termination is Termination.FINISHED:
        plan = Plan.infeasible(
            problem,
            method="exact",
            reasons=(
                f"none of the {len(parts):,} choices of sites for the witnesses leaves a plan that "
                "obeys all rules",
            ),
        )
        return certified_or_named(plan, "'exact'", wanted=wanted)
    plan = Plan.of(
        problem,
        best,
        method="exact",
        bound=bound,
        termination=termination,
        stats={
            name: sum(int(part.stats.get(name, 0)) for part in parts)
            for name in ("nodes", "leaves", "bounds")
        },
    )
    if plan.status is Status.OPTIMAL and all(part.certified for part in parts):
        plan = plan.replace(certificate=partial(_document, plan, parts))
    return certified_or_named(plan, "'exact'", wanted=wanted)


def _document(plan: Plan, parts: list[Plan]) -> Mapping[str, object]:
    assert plan.configuration is not None
    return {
        "format": FORMAT,
        "bound": plan.bound,
        "score": plan.objective,
        **plan.configuration.to_document(),
        "parts": [part.certificate for part in parts],
    }


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
