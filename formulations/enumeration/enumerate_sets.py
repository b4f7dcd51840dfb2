"""Enumeration of replica sets: the loop of the method ``exhaustive``, and its answer in two rooms.

Blocks of replica sets, the best of each, limits, progress and Ctrl-C. For the mean latency
:mod:`formulations.enumeration.exhaustive` shares the nearest replicas between sets. Measures and
waits share nothing: every choice of voters and every leader is scored by the one evaluator, many at
a time. That is the reference for waits, in
O(C(|S|, |R|) · C(|R|, |V|) · |V| · |C| · |R|).
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from placement.errors import LimitError
from placement.evaluation.breakdown import objective_value, objective_values
from placement.evaluation.score import TIE
from placement.evaluation.voter_choice import by_answer_time
from placement.feasibility.feasible_plans import role_choices, violations
from placement.measures.question import MeasureQuestion
from placement.methods.options import Options, Progress
from placement.model.configuration import Configuration
from placement.plan import Plan
from placement.problem import Problem
from placement.support.checks import IntArray
from placement.support.status import SearchEnd, Termination, end_early, in_time

Found = tuple[float, float, Configuration]
"""Value, second criterion, configuration."""

_Block = TypeVar("_Block")

_AT_ONCE = 4096  # configurations that are evaluated between looks at the clock


def count_sets(problem: Problem) -> int:
    """Return the number of replica sets that exhaustive search evaluates."""
    rules = problem.rules
    free, pinned = int((rules.may_hold & ~rules.must_hold).sum()), int(rules.must_hold.sum())
    sizes = range(max(rules.replicas_min, pinned), rules.replicas_max + 1)
    return sum(math.comb(free, size - pinned) for size in sizes)


def is_better(one: Found, other: Found) -> bool:
    """Return whether `one` has the smaller value or, in a tie, the smaller second criterion."""
    if one[0] < other[0] * (1 - TIE):
        return True
    return one[0] <= other[0] * (1 + TIE) and one[1] < other[1] * (1 - TIE)


def enumerate_sets(
    problem: Problem,
    options: Options,
    blocks: Iterable[_Block],
    look: Callable[[_Block], tuple[int, float]],
    best: Callable[[], tuple[Configuration | None, float]],
    instead: str = "'exact'",
) -> Plan:
    """Return the best configuration over all replica sets, proven when all were evaluated.

    `blocks` has all sets, some at a time. `look` evaluates a block, and returns its number of sets
    and the best value so far. `best` returns the best configuration so far, and the bound that it
    proves once all is evaluated. LimitError, with the words of `instead`, when there are more sets
    than the setting ``limit``.
    """
    total, limit = count_sets(problem), int(str(options.settings["limit"]))
    if total > limit:
        raise LimitError(
            f"{total:,} replica sets are more than the limit of {limit:,}; use {instead}, or "
            "raise the setting 'limit'"
        )
    end, done, started = SearchEnd(), 0, time.perf_counter()
    with end_early(end):
        for block in blocks:
            sets, value = look(block)
            done += sets
            seconds = time.perf_counter() - started
            options.report(Progress(seconds, value, -math.inf, done, total))
            if done < total:
                in_time()
    found, bound = best()
    finished = end.termination is Termination.FINISHED
    if found is None and finished:
        return Plan.infeasible(
            problem,
            method="exhaustive",
            reasons=(f"none of the {total:,} replica sets has a plan that obeys all rules",),
        )
    return Plan.of(
        problem,
        found,
        method="exhaustive",
        bound=bound if finished else -math.inf,
        termination=end.termination,
        stats={"sets": done, "of": total},
    )


def _one_by_one(
    problem: Problem,
    options: Options,
    choose: Callable[[IntArray], Iterable[Found | None]],
    *,
    rows: int,
    instead: str = "'exact'",
) -> Plan:
    """Return the best of what is chosen in turn among some sets of one size, `rows` at a time."""
    rules, best = problem.rules, list[Found]()
    pinned = np.nonzero(rules.must_hold)[0].tolist()
    free = np.nonzero(rules.may_hold & ~rules.must_hold)[0].tolist()
    sizes = range(max(rules.replicas_min, len(pinned)), rules.replicas_max + 1)

    def blocks() -> Iterator[IntArray]:
        for size in sizes:
            sets = itertools.combinations(free, size - len(pinned))
            while chunk := list(itertools.islice(sets, rows)):
                whole = [[*pinned, *more] for more in chunk]
                yield np.sort(np.array(whole, dtype=np.intp), axis=1)

    def look(sets: IntArray) -> tuple[int, float]:
        for found in choose(sets):
            if found is not None and (not best or is_better(found, best[0])):
                best[:] = [found]
        return len(sets), best[0][0] if best else math.inf

    def answer() -> tuple[Configuration | None, float]:
        found = best[0][2] if best else None
        return found, math.inf if found is None else objective_value(problem, found)

    return enumerate_sets(problem, options, blocks(), look, answer, instead)


def solve_measures(problem: Problem, options: Options) -> Plan:
    """Evaluate every configuration: method ``exhaustive`` of a question of measures."""
    goal, best = problem.objective, math.inf
    assert isinstance(goal, MeasureQuestion)

    at_once = goal.at_once(problem)

    def choose(sets: IntArray) -> Iterator[Found | None]:
        nonlocal best
        each = (plan for row in sets.tolist() for plan in role_choices(problem, tuple(row)))
        for plans in _some_of(each, at_once):
            worth = goal.quick_values(problem, plans)
            chosen: Found | None = None
            for place in np.argsort(worth, kind="stable").tolist():
                value, plan = float(worth[place]), plans[place]
                if math.isinf(value) or value > best * (1 + TIE):
                    break
                found = (value, goal.tie_break(problem, plan), plan)
                if (chosen is None or is_better(found, chosen)) and not violations(problem, plan):
                    chosen, best = found, min(best, value)
            yield chosen

    return _one_by_one(problem, options, choose, rows=64)


def solve_waits(problem: Problem, options: Options) -> Plan:
    """Evaluate every configuration: method ``exhaustive`` of a question with waits, or moves."""

    def choose(sets: IntArray) -> Iterator[Found | None]:
        best: Found | None = None
        for some in _some_of(_configurations(problem, sets), _AT_ONCE):
            best = _best_of(problem, some if best is None else [best[2], *some])
            yield best

    return _one_by_one(problem, options, choose, rows=200, instead="'sets'")


def _some_of(each: Iterable[Configuration], at_once: int) -> Iterator[list[Configuration]]:
    """Yield some configurations at a time; a set of many replicas has very many."""
    each = iter(each)
    some = list(itertools.islice(each, at_once))
    while some:
        yield some
        if some := list(itertools.islice(each, at_once)):
            in_time()


def _configurations(problem: Problem, sets: IntArray) -> Iterator[Configuration]:
    """Yield every configuration on some replica sets of one size that obeys the rules."""
    rules = problem.rules
    sets = sets[rules.obeyed("replicas", sets)]
    for places in itertools.combinations(range(sets.shape[1]), rules.voters):
        voters = sets[:, places]
        held = np.isin(voters, np.nonzero(rules.must_vote)[0]).sum(axis=1)
        able = rules.may_vote[voters].all(axis=1) & (held == rules.must_vote.sum())
        for row in np.nonzero(able & rules.obeyed("voters", voters))[0].tolist():
            chosen, replicas = tuple(voters[row].tolist()), tuple(sets[row].tolist())
            leaders = [site for site in chosen if rules.may_lead[site]]
            if problem.demand.leaderless:  # any does: it has no part
                leaders = leaders[:1]
            found = [Configuration(site, chosen, replicas) for site in leaders]
            # limits on moves, and the budget beside them
            yield from (one for one in found if not any(x.broken(one) for x in problem.limits))


def _best_of(problem: Problem, found: Sequence[Configuration]) -> Found | None:
    """Return the best of some configurations; ties by :func:`_in_order`."""
    values = objective_values(problem, found)
    best = float(values.min())
    if not np.isfinite(best):
        return None
    tied = np.nonzero(values <= best * (1 + TIE))[0].tolist()
    first = min(tied, key=lambda row: _in_order(problem, found[row]))
    one = found[first]
    if not problem.demand.leaderless:
        voters = by_answer_time(problem.demand, one.leader, one.voters)
        one = dataclasses.replace(one, voters=voters)
    return float(values[first]), 0.0, one


def _in_order(problem: Problem, one: Configuration) -> tuple[object, ...]:
    """Return the order among configurations of equal value; the least comes first.

    The leader, the replicas, and the voters closest to the leader.
    """
    voters: tuple[object, ...] = one.voters
    if not problem.demand.leaderless:
        sites = np.arange(problem.demand.site_rtt.shape[-1])
        near = by_answer_time(problem.demand, one.leader, sites)
        voters = tuple(sorted(near.index(site) for site in one.voters))
    return one.leader, one.replicas, voters
