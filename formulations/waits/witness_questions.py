"""Witnesses beside rules for voters, named witnesses and others: each choice of their sites proven.

Witnesses at given sites are replicas that no client is near to
(:mod:`placement.feasibility.witness_places`), a question that the engine takes. The best of all
choices of sites is the best, and the least bound of all is a bound. A certificate has one of each.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Mapping
from functools import partial

from formulations.exact.enumeration_claim import certified_or_named
from formulations.exact.method import Session
from formulations.exact.reduced_problem import ReducedProblem
from placement.evaluation.objective import score_of
from placement.evaluation.score import TIE
from placement.evaluation.voter_choice import with_closest_voters
from placement.feasibility.witness_places import (
    MOST_PLACES,
    count_places,
    named_question,
    witness_places,
)
from placement.methods.options import Options
from placement.model.configuration import Configuration
from placement.plan import Plan
from placement.problem import Problem
from placement.proof.certificate_check import PLACES as FORMAT
from placement.support.status import Status, Termination

__all__ = ["prove_places"]

_SECONDS_OF_BOUND = 0.2
"""Most seconds of the bound on all choices of sites, once the time limit is reached."""


def prove_places(problem: Problem, options: Options) -> Plan | None:
    """Prove the question of every choice of sites for the witnesses; the best of their plans.

    Parameters
    ----------
    problem
        With witnesses.
    options
        The time limit is one for all; a start counts where it is the best. At a limit, the choices
        that were not searched have the bound of the problem without rules for voters.

    Returns
    -------
    Plan or None
        None where there are too many choices, or the engine does not take their questions.
    """
    if not 0 < count_places(problem) <= MOST_PLACES:
        return None
    session, began = Session(), time.perf_counter()
    parts: list[Plan] = []
    best, value, bound = options.start, math.inf, math.inf
    if best is not None:
        value = score_of(problem, best)
    termination = Termination.FINISHED
    for places in witness_places(problem):
        named = named_question(problem, places)
        if named is None or _refused(named.problem):
            return None
        left = options.time_limit
        if left is not None:
            left = max(left - (time.perf_counter() - began), 0.0)
        asked = dataclasses.replace(
            options, start=None, warm_start=None, progress=None, time_limit=left
        )
        plan = session(named.problem, asked)
        parts.append(plan)
        bound = min(bound, plan.bound)
        if plan.configuration is not None:
            found = named.original(plan.configuration)
            score = score_of(problem, found)
            if best is None or score < value * (1 - TIE) or (
                score <= value * (1 + TIE) and _key(found) < _key(best)
            ):  # fmt: skip
                best = found
            value = min(value, score)
        if plan.status not in (Status.OPTIMAL, Status.INFEASIBLE):
            termination = plan.termination
            if termination is Termination.INTERRUPTED or left is not None:
                bound = _bound_anywhere(problem, session, options)
                break
    return _plan(problem, options, parts, best, bound, termination)


def _bound_anywhere(problem: Problem, session: Session, options: Options) -> float:
    """Return a lower bound on every choice of sites; −∞ where the engine has none.

    Without rules for voters, pins of voters and names of witnesses the engine takes the problem by
    floors of the wait (:mod:`placement.evaluation.waits.wait_floors`), in milliseconds.
    """
    rules = problem.rules
    relaxed = problem.replace(
        voters=rules.voters,
        witnesses=rules.witnesses,
        pinned_voters=(),
        survive=None,
        diversity=[rule for rule in problem.diversity if rule.role != "voters"],
    )
    if _refused(relaxed):
        return -math.inf
    asked = dataclasses.replace(
        options, start=None, warm_start=None, progress=None, time_limit=_SECONDS_OF_BOUND
    )
    return session(relaxed, asked).bound


def _refused(problem: Problem) -> bool:
    return ReducedProblem.refuses(problem.demand, problem.rules) is not None


def _key(found: Configuration) -> tuple[int, tuple[int, ...]]:
    return found.leader, found.replicas


def _plan(
    problem: Problem, options: Options, parts: list[Plan], best: Configuration | None,
    bound: float, termination: Termination,
) -> Plan:  # fmt: skip
    if best is None and termination is Termination.FINISHED:
        plan = Plan.infeasible(
            problem,
            method="exact",
            reasons=(
                f"none of the {len(parts):,} choices of sites for the witnesses leaves a plan that "
                "obeys all rules",
            ),
        )
        return certified_or_named(plan, "'exact'", wanted=bool(options.settings["certificate"]))
    if best is not None:
        best = with_closest_voters(problem.demand, problem.rules, best)
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
    return certified_or_named(plan, "'exact'", wanted=bool(options.settings["certificate"]))


def _document(plan: Plan, parts: list[Plan]) -> Mapping[str, object]:
    best = plan.configuration
    assert best is not None
    return {
        "format": FORMAT,
        "bound": plan.bound,
        "score": plan.objective,
        "leader": best.leader,
        "voters": list(best.voters),
        "replicas": list(best.replicas),
        "lease_holders": list(best.lease_holders),
        "parts": [part.certificate for part in parts],
    }
