"""Prices of limits, conflicts of limits, and the front of two measures: each a proven question.

The price of a limit is what the minimised measure gains when the limit falls away. Where no plan
keeps all limits, a deletion filter leaves a smallest set of them without a plan, and for each of
the set the best value that the others allow is told.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from placement.errors import LimitError, UnsupportedError
from placement.evaluation.moves import Moves
from placement.evaluation.objective import MEAN_LATENCY
from placement.measures.measure import Limit, Measure
from placement.measures.question import MeasureQuestion, amount, question_of
from placement.measures.values import value
from placement.methods.options import Options
from placement.methods.registry import Method, load_method, run
from placement.model.configuration import Configuration
from placement.plan import Plan
from placement.problem import Problem
from placement.support.status import Status

_CLOSE = 3e-9
"""By how much, relatively, a limit asks for a better value than the last of a front."""

EXPLANATION_SECONDS = 10.0
"""Time for the explanation of limits that no plan keeps."""

_ANY_PLAN = 1.0  # the gap at which the first plan ends a search
_VALUE_ALONE = 5e-10  # half the gap of an optimal plan; none of equal value is looked for


def asking(problem: Problem, aim: Measure, keep: Sequence[Limit]) -> Problem:
    """Return the question with other limits and another minimised measure (a share: maximised)."""
    question = question_of(problem)
    stored = question.stored_gb
    return problem.replace(
        objective=MEAN_LATENCY,
        budget=None,
        moves=None if stored is None else Moves(stored_gb=stored),
        keep=tuple(keep),
        distributions=question.distributions,
        outages=question.outages,
        **{"maximise" if aim.share else "minimise": aim},
    )


def limit_prices(plan: Plan, method: str = "exact", options: Options | None = None) -> Plan:
    """Return a plan of measures with a note for each limit: the gain when it falls away.

    The method proves each of these questions, under the options.
    """
    question = question_of(plan.problem)
    if plan.configuration is None:
        return plan
    here, notes = value(plan.problem, question.aim, plan.configuration), []
    for limit in question.keep:
        others = [one for one in question.keep if one is not limit]
        free = _answer(asking(plan.problem, question.aim, others), load_method(method), options)
        if free is None or free.configuration is None:
            continue
        found = value(plan.problem, question.aim, free.configuration)
        proof = "" if free.status is Status.OPTIMAL else " at least (not proven)"
        gain = abs(found - here)
        words = (
            "nothing is gained"
            if gain <= 1e-9 * (1 + abs(here))
            else (
                f"{question.aim} is {amount(plan.problem, question.aim, found)}, "
                f"{amount(plan.problem, question.aim, gain)} "
                f"{'more' if question.aim.share else 'less'}{proof}"
            )
        )
        notes.append(f"without the limit {limit}, {words}")
    return plan.replace(notes=(*plan.notes, *notes))


def _answer(problem: Problem, method: Method, options: Options | None) -> Plan | None:
    """Return the answer of a method; None where it cannot decide."""
    try:
        return run(method, problem, options or Options())
    except (LimitError, UnsupportedError):
        return None


def explain_limits(
    problem: Problem, method: str = "exact", seconds: float = EXPLANATION_SECONDS
) -> tuple[str, ...]:
    """Return which limits leave no plan together, and the best that each can be beside the others.

    Empty where the other constraints alone leave no plan, and where that is not decided. A limit
    stays among the conflicting ones where the time for it ends before an answer. `seconds` is for
    all questions together, at most :data:`EXPLANATION_SECONDS`.
    """
    goal = problem.objective
    if not isinstance(goal, MeasureQuestion) or not goal.keep:
        return ()
    end = time.perf_counter() + min(seconds, EXPLANATION_SECONDS)
    undecided, left = False, list(goal.keep)
    known, kept = load_method(method).in_session(), dict[Measure, Configuration | None]()

    def asked(aim: Measure, keep: Sequence[Limit], gap: float, parts: int = 1) -> Plan | None:
        seconds, start = max(end - time.perf_counter(), 0.0) / parts, kept.get(aim)
        options = Options(time_limit=seconds, gap_limit=gap, start=start)
        return _answer(asking(problem, aim, keep), known, options)

    for limit in goal.keep:
        others = [one for one in left if one is not limit]
        answer = asked(goal.aim, others, _ANY_PLAN)
        if answer is None or answer.status is Status.UNKNOWN:
            undecided = True
        elif answer.status is Status.INFEASIBLE:
            if not others:
                return ()
            left = others
        else:
            kept[limit.measure] = answer.configuration
    if undecided and len(left) == 1:
        return ()
    best = []
    for place, limit in enumerate(left):  # a hard one leaves the others their part of the time
        others = [one for one in left if one is not limit]
        answer = asked(limit.measure, others, _VALUE_ALONE, len(left) - place)
        if answer is None or answer.configuration is None:
            continue
        found = amount(problem, limit.measure, value(problem, limit.measure, answer.configuration))
        sure = "at best" if answer.status is Status.OPTIMAL else "(not proven to be the best)"
        beside = f" while {' and '.join(map(str, others))}" if others else ""
        best.append(f"{limit.measure} can be {found} {sure}{beside}")
    together = "no plan keeps " + (
        f"the limit {left[0]}"
        if len(left) == 1
        else f"the limits {', '.join(map(str, left))} together"
    )
    if undecided:
        together += " (whether fewer of them conflict was not decided in time)"
    return (together, *best)


def measure_front(
    problem: Problem,
    one: Measure,
    other: Measure,
    method: str = "exact",
    *,
    points: int | None = None,
    options: Options | None = None,
) -> tuple[list[Plan], bool]:
    """Return the plans that no plan beats in both of two measures, and whether all are proven.

    The limits of the problem hold for every plan, what it minimises does not count. The first plan
    has the best value of `one`. At most `points` plans.
    """
    keep, front = question_of(problem).keep, list[Plan]()
    known, asked = load_method(method).in_session(), options or Options()
    better: Limit | None = None
    while points is None or len(front) < points:
        first = run(
            known, asking(problem, one, [*keep, *([] if better is None else [better])]), asked
        )
        if first.configuration is None:
            return front, first.status is Status.INFEASIBLE
        at = _limit(one, value(problem, one, first.configuration))
        plan = run(known, asking(problem, other, [*keep, at]), asked)
        if plan.configuration is None or Status.FEASIBLE in (first.status, plan.status):
            return [*front, first], False
        front.append(plan)
        reached = value(problem, other, plan.configuration)
        step = _CLOSE * (1 + abs(reached))
        if math.isinf(reached) or (reached >= 1 if other.share else reached < step):
            return front, True
        better = _limit(other, reached + step if other.share else reached - step)
    return front, False


def _limit(measure: Measure, bound: float) -> Limit:
    if measure.share:
        return Limit(measure, least=min(1.0, bound))
    return Limit(measure, most=bound)
