"""Feasible plans for baseline rules: the complete search behind every heuristic of tier 3.

A heuristic proposes; when its proposal breaks a rule,
:func:`placement.feasibility.feasible_plans.complete_configuration` looks for the feasible
configuration that keeps as many of the proposed sites as come first. That search is complete, so
that "infeasible" is said only when it is proven for every leader and every |R|.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from placement.errors import LimitError
from placement.evaluation.score import closest_first, nearest
from placement.feasibility.feasible_plans import complete_configuration
from placement.model.configuration import Configuration
from placement.plan import Plan, cheapest
from placement.problem import Problem
from placement.support.checks import FloatArray
from placement.support.status import Termination


def replica_counts(problem: Problem) -> range:
    """|R| from the least to the most that the problem asks for."""
    return range(problem.rules.replicas_min, problem.rules.replicas_max + 1)


def sites_by_distance(problem: Problem, leader: int) -> tuple[int, ...]:
    """All sites by RTT from `leader` (mean over scenarios weighted by D), ties by site order."""
    demand = problem.demand
    weight = demand.quorum if demand.quorum.any() else np.ones(demand.scenarios)
    return tuple(closest_first(weight @ demand.site_rtt[:, leader, :]).tolist())


def mean_rtt(problem: Problem) -> tuple[FloatArray, FloatArray]:
    """Mean RTTs in ms over the scenarios: shapes (clients, sites) and (sites, sites)."""
    return problem.demand.client_rtt.mean(axis=0), problem.demand.site_rtt.mean(axis=0)


def writing(problem: Problem) -> FloatArray:
    """1 for every operation that changes state, 0 for the others: shape (operations,)."""
    return np.array([float(kind.is_transaction) for kind in problem.operations])


def site_traffic(problem: Problem, *, transactions: bool = False) -> FloatArray:
    """Operations that arrive at each site when every client turns to the closest: shape (sites,).

    Sites that may hold no replica receive nothing. With `transactions`, only those that change
    state.
    """
    demand, rules = problem.demand, problem.rules
    counted = writing(problem) if transactions else np.ones(len(demand.coefficients))
    issued = demand.counts @ counted  # (scenarios, clients)
    near = nearest(demand.client_rtt, np.nonzero(rules.may_hold)[0])
    weights = np.asarray(issued, dtype=np.float64).reshape(-1)
    arriving: FloatArray = np.zeros(len(rules.may_hold))
    np.add.at(arriving, near.reshape(-1), weights)
    return arriving


def closest_feasible(problem: Problem, proposed: Iterable[int], size: int) -> Configuration | None:
    """Cheapest completion of `proposed` to `size` replicas over all leaders; None: there is none.

    The proposed sites are kept as far as the rules allow; each leader prefers those close to it.
    LimitError when the search gave up on some leader and no other leader has a plan.
    """
    wanted = frozenset(proposed)
    found = []
    gave_up: LimitError | None = None
    for leader in np.nonzero(problem.rules.may_lead)[0].tolist():
        prefer = sorted(sites_by_distance(problem, leader), key=lambda site: site not in wanted)
        try:
            configuration = complete_configuration(problem, leader, prefer, size)
        except LimitError as error:
            gave_up = error
            continue
        if configuration is not None:
            found.append(configuration)
    if not found and gave_up is not None:
        raise gave_up
    return cheapest(problem, found)


def complete_proposal(
    problem: Problem,
    method: str,
    leaders: Callable[[int], Sequence[int]],
    build: Callable[[int, int], Configuration | None],
) -> Plan:
    """Plan of a rule that ranks leaders and then chooses replicas for the one it likes best.

    `leaders` gives for |R| the site indices, the most wanted first. The first that has a
    configuration leads; candidates that are left out are tried last, in site order. `build` gives
    for (leader, |R|) a feasible configuration, or None when there is provably none. For a range of
    |R| the best size; infeasible when no leader has a configuration of any size; LimitError when a
    search gave up and nothing was found.
    """
    may_lead = problem.rules.may_lead
    found = []
    gave_up: LimitError | None = None
    termination = Termination.FINISHED
    try:
        for size in replica_counts(problem):
            ranked = dict.fromkeys([*leaders(size), *range(len(may_lead))])
            for leader in ranked:
                if not may_lead[leader]:
                    continue
                try:
                    configuration = build(leader, size)
                except LimitError as error:
                    gave_up = error
                    continue
                if configuration is not None:
                    found.append(configuration)
                    break
    except KeyboardInterrupt:
        termination = Termination.INTERRUPTED
    if not found and termination is Termination.FINISHED:
        if gave_up is not None:
            raise gave_up
        return infeasible_plan(problem, method)
    return Plan.of(problem, cheapest(problem, found), method=method, termination=termination)


def infeasible_plan(problem: Problem, method: str) -> Plan:
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
