"""Ranges of demand and RTTs within which the optimal plan does not change.

Demand. When the demand of one client is multiplied by λ, the objective of every configuration is
affine in λ. The optimum is therefore a concave, piecewise linear function of λ, and a plan is
optimal on an interval. Its end is found exactly. Take a λ where the plan is not optimal, go to the
λ at which the plan's line meets the line of the optimum there, and repeat until the plan is
optimal. Every step is a proven solve (the parametric method of Newton and Dinkelbach).

RTTs. Between two neighbouring values of a row of RTTs no order changes, and the objective of every
configuration is affine in the RTT that moves: nearest replicas stay, and the m-th vote either is
the one that moves or is not. So does the last answer of any other wait: it is one of the row of who
asks. The same method therefore works interval by interval, for every protocol. Without a solve,
the distance Δ to the runner-up gives a range that is certainly safe: when an RTT moves by δ within
its interval, no configuration gains more than its greatest possible weight times δ.
"""

from __future__ import annotations

import heapq
import itertools
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from placement.contingency.loss_question import LossQuestion
from placement.errors import InputError, UnitsWarning, UnsupportedError
from placement.evaluation.breakdown import objective_value
from placement.evaluation.cost_model import cost_model
from placement.evaluation.objective import MEAN_LATENCY
from placement.evaluation.score import TIE
from placement.evaluation.waits.wait_checks import refuse_waits, refuse_witnesses
from placement.measures.question import MeasureQuestion
from placement.methods.registry import prove
from placement.model.instance import Instance
from placement.plan import Plan
from placement.problem import Problem
from placement.support.checks import FloatArray, instance_of, number, text, whole
from placement.support.status import Status

Waiting = Literal["client", "site"]

_SAME = 1e-9
_MOST_STEPS = 100


@dataclass(frozen=True, slots=True)
class StableRange:
    """Values between which a plan certainly stays optimal."""

    what: str  #: name of the quantity that moves, with its unit
    value: float  #: value of the quantity in the plan's problem
    #: `low`, `high`: ends of the range. 0 and ∞ are the ends of what is possible.
    low: float
    high: float
    #: whether the plan is no longer optimal just outside, except at an end that is a search limit
    #: or an end of what is possible
    exact: bool
    #: `low_is_limit`, `high_is_limit`: whether the search stopped at this end: the plan stays
    #: optimal at least up to it, and nothing is known beyond it
    low_is_limit: bool = False
    high_is_limit: bool = False


def require_optimal(plan: Plan) -> None:
    """Refuse a plan unless it is optimal, for the mean latency with one RTT matrix."""
    _require_proof(plan)
    if not plan.problem.objective.minimises_mean or plan.problem.demand.scenarios > 1:
        words = "sensitivity is about mean latency with one RTT matrix"
        expected = "the objective 'mean'"
        raise InputError(words, field="plan", value=plan.problem.objective.kind, expected=expected)
    if "near reads" in plan.problem.cost_parts:
        words = "sensitivity does not follow the cost of reads to another nearest replica"
        expected = "a plan without budget and weight of the cost, or without these prices"
        raise InputError(words, field="plan", value="near reads", expected=expected)


def _require_proof(plan: Plan) -> None:
    instance_of(plan, Plan, "plan", "a plan (placement.solve returns one)")
    if plan.status is not Status.OPTIMAL:
        words = "sensitivity is about optimal plans"
        expected = "a plan with status optimal"
        raise InputError(words, field="plan", value=str(plan.status), expected=expected)


def _asking_client(plan: Plan, client: str) -> int:
    """Return the position of a client that has demand."""
    c = plan.problem.instance.client_index(client)
    if not plan.problem.demand.counts[:, c].any():
        words = "the client has no demand in the intervals that count"
        raise InputError(words, field="client", value=client, expected="a client with demand")
    return c


def _with_demand(plan: Plan, c: int, factor: float) -> Problem:
    instance = plan.problem.instance
    counts = instance.counts.copy()
    counts[:, c] *= factor
    return plan.problem.replace(instance=instance.replace(counts=counts))


def _value(plan: Plan, problem: Problem) -> float:
    assert plan.configuration is not None
    return objective_value(problem, plan.configuration)


def _still_optimal(
    plan: Plan, build: Callable[[float], Problem], good: float, limit: float
) -> float:
    """Return the value farthest from `good` towards `limit` at which `plan` is optimal.

    The plan is optimal at `good`, and every objective is affine between the two.
    """
    x = limit
    for _ in range(_MOST_STEPS):
        problem = build(x)
        best = prove(problem)
        own = _value(plan, problem)
        if own <= best.objective * (1 + _SAME):
            return x
        start = build(good)
        ahead = _value(best, start) - _value(plan, start)  # >= 0: the plan is optimal there
        behind = own - best.objective
        crossing = good + (x - good) * ahead / (ahead + behind)
        if crossing == x:
            return x
        x = crossing
    return x


def demand_range(plan: Plan, client: str, *, most: float = 1000.0) -> StableRange:
    """Return the factors of one client's demand between which an optimal plan stays optimal.

    `most` is the largest factor of the search, >= 1; if the smallest cannot be 0, it is 1/`most`. A
    client without demand in the intervals that the decay leaves is refused. A client that issues
    all the demand can be multiplied by any factor without changing the order of two plans. Its
    range is (0, ∞), unless the objective also weighs money, which does not grow with the demand.
    """
    require_optimal(plan)
    number(most, "most", minimum=1.0)
    instance, demand = plan.problem.instance, plan.problem.demand
    c = _asking_client(plan, client)
    what = f"demand of {client} (factor)"
    model, rules = cost_model(instance), plan.problem.rules
    if model is not None and model.depends_on_demand and (rules.cost_weight or rules.budget):
        words = "the cost that counts grows with the demand"
        expected = "prices that do not depend on the demand, or no budget and no weight"
        raise InputError(words, field="plan", value=client, expected=expected)
    alone = not np.delete(demand.counts, c, axis=1).any()
    if alone and not plan.problem.rules.cost_weight:
        return StableRange(what, 1.0, 0.0, math.inf, True)

    def build(factor: float) -> Problem:
        return _with_demand(plan, c, factor)

    least = 1.0 / most if alone else 0.0  # without any demand there is nothing to optimise
    low = _still_optimal(plan, build, 1.0, least)
    high = _still_optimal(plan, build, 1.0, most)
    return StableRange(what, 1.0, low, high, True, alone and low == least, high == most)


def row_of(
    instance: Instance, source: str, site: str, waiting: Waiting | None
) -> tuple[str, int, int, FloatArray]:
    """Return the matrix of a pair, its position there, and the row it moves in."""
    text(source, "source")
    if instance.varying_rtt:  # also where only one of the intervals has demand
        raise InputError(
            "an RTT that varies by interval has no range",
            field="plan",
            value=f"{len(instance.intervals)} intervals",
            expected="a plan for the RTTs of one interval, from instance.at_interval(…)",
        )
    if waiting is not None:
        text(waiting, "waiting", choices=("client", "site"))
    s = int(instance.site_indices([site], "site")[0])
    if waiting == "client" or (waiting is None and source in instance.clients):
        c = instance.client_index(source)
        return "client_rtt", c, s, instance.client_rtt[c]
    r = int(instance.site_indices([source], "source")[0])
    if r == s:
        raise InputError("a site reaches itself for free", field="site", value=site)
    return "site_rtt", r, s, instance.site_rtt[r]


def moved_rtt(plan: Plan, matrix: str, row: int, column: int, value: float) -> Problem:
    """Return the problem of a plan with another RTT, in ms; names as :func:`row_of` gives them."""
    instance = plan.problem.instance
    table = (instance.client_rtt if matrix == "client_rtt" else instance.site_rtt).copy()
    table[row, column] = value
    return plan.problem.replace(instance=instance.replace(**{matrix: table}))


def rtt_range(
    plan: Plan, source: str, site: str, *, waiting: Waiting | None = None, most: float | None = None
) -> StableRange:
    """Return the RTTs of one pair between which an optimal plan stays optimal, all else unchanged.

    `source` is a client, or a site that waits for the other; `waiting` says which ("client",
    "site"; None: a client if there is one of that name). `most` is the largest RTT of the search in
    ms; None: twice the largest of the instance.
    """
    require_optimal(plan)
    instance = plan.problem.instance
    matrix, row, column, values = row_of(instance, source, site, waiting)
    now = float(values[column])
    largest = float(max(instance.client_rtt.max(), instance.site_rtt.max()))
    end = max(now, 2 * largest if most is None else number(most, "most"))

    def build(x: float) -> Problem:
        return moved_rtt(plan, matrix, row, column, x)

    low = _walk(plan, build, now, _stops(values, column, now, 0.0))
    high = _walk(plan, build, now, _stops(values, column, now, end))
    what = f"RTT from {source} to {site} (ms)"
    return StableRange(what, now, low, high, True, high_is_limit=high == end)


def _stops(values: FloatArray, column: int, now: float, end: float) -> list[float]:
    """Return the other values of the row between `now` and `end`, in the order from `now`."""
    others = np.unique(np.delete(values, column))
    between = others[(others > min(now, end)) & (others < max(now, end))]
    met = between.tolist() if end >= now else between[::-1].tolist()
    return [*met, end]


def _walk(plan: Plan, build: Callable[[float], Problem], now: float, stops: list[float]) -> float:
    """Go from interval to interval until the plan is not optimal; return how far it was."""
    reached = now
    for stop in stops:
        if stop == reached:
            continue
        # Inside the interval: orders change exactly at its ends.
        inside = reached + (stop - reached) * 1e-9
        almost = stop - (stop - reached) * 1e-9
        first = build(inside)
        if _value(plan, first) > prove(first).objective * (1 + _SAME):
            return reached
        found = _still_optimal(plan, build, inside, almost)
        if abs(found - almost) > abs(almost) * TIE:
            return found
        at_end = build(stop)
        if _value(plan, at_end) > prove(at_end).objective * (1 + _SAME):
            return almost
        reached = stop
    return reached


_BISECTIONS = 40


def safe_demand_range(
    plan: Plan, runner_up: Plan | None, client: str, *, most: float = 1000.0
) -> StableRange:
    """Return factors of one client's demand between which a plan certainly stays optimal.

    Without a solve, for the mean latency and for the worst case and the mean over outages: some 80
    evaluations of the plan. `runner_up` is the next best plan (:func:`next_best_plans`); None when
    there is no other. Another objective, clients that move and a budget that binds are refused.
    """
    _require_safe(plan, runner_up)
    number(most, "most", minimum=1.0)
    c = _asking_client(plan, client)
    least = math.inf if runner_up is None else _score(runner_up, plan.problem)

    def holds(factor: float) -> bool:
        if runner_up is None:
            return True
        own = _score(plan, _with_demand(plan, c, factor))
        return own <= min(1.0, factor) * least

    low, high = _last_that_holds(holds, 1.0, 1.0 / most), _last_that_holds(holds, 1.0, most)
    what = f"demand of {client} (factor)"
    return StableRange(what, 1.0, low, high, False, low == 1.0 / most, high == most)


def safe_rtt_range(
    plan: Plan, runner_up: Plan | None, source: str, site: str, *, waiting: Waiting | None = None
) -> StableRange:
    """Return a range of one RTT in which a plan certainly stays optimal, without solving.

    The arguments are as for :func:`safe_demand_range` and :func:`rtt_range`. While the RTT passes
    no other RTT of its row, no configuration gains more than K times the change, with K the
    greatest weight that an RTT of the row can have: A_c + G_c and the waits of a client, max(Σ B, D
    and waits of the leader) and waits of nearest replicas for a pair of sites. The plan is optimal
    as long as its value, and K times what the RTT has fallen by, stay at most the value of the
    runner-up. Some 80 evaluations of the plan.
    """
    _require_safe(plan, runner_up)
    refuse_witnesses(plan.problem, "a safe range of an RTT")
    if not plan.problem.objective.minimises_mean:
        refuse_waits(plan.problem, "a safe range of an RTT")
    matrix, row, column, values = row_of(plan.problem.instance, source, site, waiting)
    now = float(values[column])
    others = np.delete(values, column)
    # At the other RTT itself the order may change: short of it. Any move off an equal one does.
    below, above = others[others <= now], others[others >= now]
    low = float(np.nextafter(below.max(), now)) if below.size else 0.0
    high = float(np.nextafter(above.min(), now)) if above.size else 2 * float(values.max())
    demand = plan.problem.demand  # the greatest weight that an RTT of the row can have:
    asked = {
        origin: [term.weight[0] for term in demand.waits if term.origin == origin]
        for origin in ("client", "near", "leader")
    }
    if matrix == "client_rtt":
        own = sum(float(weight[row]) for weight in asked["client"])
        greatest = float(demand.near[0, row] + demand.direct[0, row]) + own
    else:
        led, near = (sum(float(w.sum()) for w in asked[origin]) for origin in ("leader", "near"))
        greatest = max(float(demand.relay[0].sum()), float(demand.quorum[0]) + led) + near
    least = math.inf if runner_up is None else _score(runner_up, plan.problem)

    def holds(x: float) -> bool:
        if runner_up is None:
            return True
        with warnings.catch_warnings():  # of RTTs that are only tried
            warnings.simplefilter("ignore", UnitsWarning)
            own = _score(plan, moved_rtt(plan, matrix, row, column, x))
        return own + greatest * max(0.0, now - x) <= least

    what = f"RTT from {source} to {site} (ms)"
    low, reached = _last_that_holds(holds, now, low), _last_that_holds(holds, now, high)
    limited = reached == 2 * float(values.max())
    return StableRange(what, now, low, reached, False, high_is_limit=limited)


def _require_safe(plan: Plan, runner_up: Plan | None) -> None:
    """Refuse a plan whose objective has no safe ranges."""
    instance_of(plan, Plan, "plan", "a plan (placement.solve returns one)")
    if runner_up is not None:
        instance_of(runner_up, Plan, "runner_up", "a plan")
    problem = plan.problem
    if problem.objective.kind != "measures":
        require_optimal(plan)
        return
    losses = LossQuestion.of(problem)
    known = losses is not None and losses.goal != "bounded" and not losses.clients_move
    if not known or problem.demand.scenarios > 1 or problem.budget is not None:
        raise InputError(
            "safe ranges after losses are known of the worst case and of the mean over outages, "
            "with clients that stay, one RTT matrix and no budget",
            field="plan",
            value=problem.objective.describe(),
            expected="the mean after the loss of any LEVEL, or over outages, without limits",
        )
    _require_proof(plan)


def _score(plan: Plan, problem: Problem) -> float:
    """Value of the configuration of a plan for another problem, ms·operations."""
    value = _value(plan, problem)
    return value * problem.demand.operations if problem.objective.kind == "measures" else value


def _last_that_holds(holds: Callable[[float], bool], good: float, limit: float) -> float:
    """Return the value farthest from `good` towards `limit` that holds, found by bisection."""
    if holds(limit):
        return limit
    for _ in range(_BISECTIONS):
        middle = (good + limit) / 2
        good, limit = (middle, limit) if holds(middle) else (good, middle)
    return good


# The next best plans after the optimum, in order, each proven


def best_plans(problem: Problem) -> Iterator[Plan]:
    """Yield all plans of a problem from the best on, told apart by leader and replicas.

    Each plan's own problem is the part of the whole that it is the optimum of. SolverError when a
    part is not proven. UnsupportedError for witnesses (a site without a replica may still be one),
    and for losses with candidates for leader or a leader that moves: who leads after a loss depends
    on them.
    """
    refuse_witnesses(problem, "the list of the next best plans")
    count = itertools.count()
    heap: list[tuple[float, int, Plan | Problem]] = []

    def add(part: Problem) -> None:
        plan = prove(part)
        if plan.found:
            heapq.heappush(heap, (plan.objective, next(count), plan))

    goal = problem.objective
    after = [
        one.after
        for one in (goal.measures if isinstance(goal, MeasureQuestion) else ())
        if one.after is not None or one.over_outages
    ]
    if after:
        moves = any(one is not None and one.leader_moves for one in after)
        for field, value, given in (  # other sites may lead in a part than in the whole question
            ("leaders", problem.leaders, problem.leaders is not None),
            ("objective", "leader_may_move", moves),
        ):
            if given:
                raise UnsupportedError(
                    f"{field}: the list of the next best plans under losses does not know who "
                    f"leads after a loss: got {value!r}, expected every voter as candidate after "
                    "the loss of the leader, and a leader that stays otherwise"
                )
        for bound, led in _by_leader(problem):
            heapq.heappush(heap, (bound, next(count), led))
    else:
        add(problem)
    while heap:
        _, _, best = heapq.heappop(heap)
        if isinstance(best, Problem):
            add(best)
            continue
        yield best
        for part in _rest(best):
            add(part)


def _by_leader(problem: Problem) -> Iterator[tuple[float, Problem]]:
    """Return the question under every leader, and a bound on its value."""
    losses = LossQuestion.of(problem)
    share = 0.0 if losses is None else losses.normal_share / problem.demand.operations
    usual = problem.replace(objective=MEAN_LATENCY)
    for site in problem.rules.may_lead.nonzero()[0].tolist():
        led = {"leader": problem.instance.sites[site]}
        try:
            part = problem.replace(**led)
            bound = 0.0
            if share:
                plan = prove(usual.replace(**led))
                bound = share * plan.objective if plan.found else math.inf
        except InputError:
            continue  # the site cannot lead a plan that obeys the other rules
        if bound < math.inf:
            yield bound, part


def _rest(plan: Plan) -> Iterator[Problem]:
    """Split a part into smaller parts that together hold all plans of it but the best one."""
    problem = plan.problem
    sites, rules = problem.instance.sites, problem.rules
    leaders = [sites[s] for s in rules.may_lead.nonzero()[0] if sites[s] != plan.leader]
    forbidden = list(problem.forbidden)
    pinned = list(problem.pinned)

    def part(**changes: object) -> Iterator[Problem]:
        try:
            yield problem.replace(**changes)
        except InputError:
            return  # pins and counts contradict each other: nothing is there

    led: dict[str, object] = {"leader": plan.leader, "leaders": None}
    if plan.leader is None:  # no operation needs one
        led = {}
    elif leaders and problem.leader is None:
        yield from part(leaders=leaders)
    others = [name for name in plan.replicas if name != plan.leader]
    held: list[str] = []
    for name in others:
        if not rules.must_hold[sites.index(name)]:
            yield from part(**led, pinned=sorted({*pinned, *held}), forbidden=[*forbidden, name])
        held.append(name)
    if len(plan.replicas) < rules.replicas_max:
        yield from part(
            **led,
            pinned=sorted({*pinned, *plan.replicas}),
            replicas=(len(plan.replicas) + 1, rules.replicas_max),
        )


def next_best_plans(plan: Plan, count: int = 5) -> tuple[Plan, ...]:
    """Return the `count` best plans after the best one; fewer when there are no more."""
    instance_of(plan, Plan, "plan", "a plan (placement.solve returns one)")
    whole(count, "count")
    found = itertools.islice(best_plans(plan.problem), 1, 1 + count)
    return tuple(p.replace(problem=plan.problem) for p in found)
