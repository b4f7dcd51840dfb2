"""Feasible plans for rules of thumb: the complete search behind every heuristic of tier 3.

A heuristic proposes; when what it proposes breaks a rule, :func:`placement.feasibility.complete`
looks for the feasible configuration that keeps as many of the proposed sites as come first. That
search is complete, so that "infeasible" is said only when it is proven for every leader and every
|R|.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from placement.configuration import Configuration
from placement.errors import LimitError
from placement.feasibility import complete
from placement.plan import Plan, cheapest
from placement.problem import Problem
from placement.score import closest_first

__all__ = ["first_leader", "keep_close", "nearby", "no_plan", "sizes"]

Preference = Callable[[int, int], Sequence[int]]
"""(leader, |R|) -> sites, the most wanted first."""


def sizes(problem: Problem) -> range:
    """|R| from the least to the most that the problem asks for."""
    return range(problem.rules.replicas_min, problem.rules.replicas_max + 1)


def nearby(problem: Problem, leader: int) -> tuple[int, ...]:
    """All sites by RTT from `leader` (mean over scenarios weighted by D), ties by site order."""
    demand = problem.demand
    weight = demand.quorum if demand.quorum.any() else np.ones(demand.scenarios)
    return tuple(closest_first(weight @ demand.site_rtt[:, leader, :]).tolist())


def keep_close(problem: Problem, proposed: Iterable[int], size: int) -> Configuration | None:
    """Cheapest completion of `proposed` to `size` replicas over all leaders; None: there is none.

    Parameters
    ----------
    problem
        The question.
    proposed
        Sites to keep as far as the rules allow; each leader prefers those close to it.
    size
        |R|.

    Raises
    ------
    LimitError
        When the search gave up on some leader and no other leader has a plan.
    """
    wanted = frozenset(proposed)

    def prefer(leader: int, size: int) -> list[int]:
        del size
        return sorted(nearby(problem, leader), key=lambda site: site not in wanted)

    leaders = np.nonzero(problem.rules.may_lead)[0].tolist()
    return cheapest(problem, _completions(problem, leaders, prefer, (size,), stop=False))


def first_leader(
    problem: Problem, leaders: Iterable[int], prefer: Preference
) -> Configuration | None:
    """Configuration of the first leader that has one, its best |R| of the range; None: none has.

    Parameters
    ----------
    problem
        The question.
    leaders
        Site indices, the most wanted first; those left out are never tried.
    prefer
        Sites that a leader wants as replicas, for each |R|.

    Raises
    ------
    LimitError
        When the search gave up on some leader and no other leader has a plan.
    """
    return cheapest(
        problem, _completions(problem, list(leaders), prefer, sizes(problem), stop=True)
    )


def _completions(
    problem: Problem, leaders: Sequence[int], prefer: Preference, wanted: Iterable[int], stop: bool
) -> list[Configuration]:
    found = []
    gave_up: LimitError | None = None
    for leader in leaders:
        for size in wanted:
            try:
                configuration = complete(problem, leader, prefer(leader, size), size)
            except LimitError as error:
                gave_up = error
                continue
            if configuration is not None:
                found.append(configuration)
        if found and stop:
            break
    if not found and gave_up is not None:
        raise gave_up
    return found


def no_plan(problem: Problem, method: str) -> Plan:
    """Return the plan that says: a complete search found no configuration."""
    rules = problem.rules
    return Plan.infeasible(
        problem,
        method=method,
        reasons=(
            f"a complete search over {int(rules.may_lead.sum())} leaders and {rules.replicas_min} "
            f"to {rules.replicas_max} replicas found no configuration that obeys all rules",
        ),
    )
