"""Latency against money: the plans that no other plan beats in both, and their differences."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from placement.analysis.sweep import (
    check_question,
    minimised,
    plan_columns,
    voter_counts,
    whole_numbers,
    with_counts,
)
from placement.errors import InputError
from placement.methods.options import Progress
from placement.methods.registry import load_method, solve
from placement.model.instance import Instance
from placement.plan import Plan
from placement.problem import Problem
from placement.support.checks import whole
from placement.support.status import OPTIMALITY_TOLERANCE, Status, Termination

if TYPE_CHECKING:
    import pandas as pd

# Search for all plans that no other plan beats in both latency and cost

BUDGET_STEP = 4e-9
"""Relative; costs that differ by less are the same cost (budgets are kept to a relative 1e-9)."""

_HEAVY = 1e4
"""Weighted cost over latency at the endpoint where cost is nearly all that counts."""

Ask = Callable[[Problem], Plan]


def frontier_plans(problem: Problem, ask: Ask) -> Iterator[Plan]:
    """Yield the plans of a frontier; those that another beats may be among them.

    The problem minimises the mean latency, without a budget and without a weight of the cost. `ask`
    solves a problem, with proof unless it is stopped. An unproven plan means that a point may be
    missing, and a plan without a configuration that nothing cheaper exists.
    """
    fastest = ask(problem)
    yield fastest
    if not fastest.found or fastest.termination is Termination.INTERRUPTED:
        return
    if not (fastest.score > 0 and fastest.cost > 0):
        yield from descending_budgets(problem, ask, _below(fastest))
        return
    points = [fastest]
    for plan in _supported(problem, ask, fastest):
        yield plan
        if plan.termination is Termination.INTERRUPTED:
            return
        points.append(plan)
    points.sort(key=lambda plan: -plan.cost)
    for dear, cheap in itertools.pairwise(points):
        budget = _below(dear)
        while budget >= cheap.cost * (1 + BUDGET_STEP) and dear.cost > cheap.cost:
            plan = ask(problem.replace(budget=budget))
            if plan.found and plan.status is Status.OPTIMAL and not _better(plan, cheap):
                break
            yield plan
            if not plan.found or plan.termination is Termination.INTERRUPTED:
                return
            budget = _below(plan)
    yield from descending_budgets(problem, ask, _below(points[-1]))


def descending_budgets(problem: Problem, ask: Ask, budget: float) -> Iterator[Plan]:
    """Yield the best plan within the budget, then within just less than that cost, and so on.

    The last one has no configuration, unless the one before costs nothing.
    """
    while budget >= 0:
        plan = ask(problem.replace(budget=None if math.isinf(budget) else budget))
        yield plan
        if not plan.found or plan.termination is Termination.INTERRUPTED:
            return
        budget = _below(plan)


def _supported(problem: Problem, ask: Ask, fastest: Plan) -> Iterator[Plan]:
    """Yield the points that a weight of the cost finds, each with the proof that it gives."""
    cheapest = _weighted(problem, ask, _HEAVY * fastest.score / fastest.cost)
    if cheapest is None or not cheapest.cost < _below(fastest):
        return
    yield cheapest
    segments = [(cheapest, fastest)]
    while segments:
        cheap, dear = segments.pop()
        if not (cheap.score > dear.score and dear.cost > cheap.cost):
            continue
        weight = (cheap.score - dear.score) / (dear.cost - cheap.cost)
        plan = _weighted(problem, ask, weight)
        if plan is None:
            continue
        line = cheap.score + weight * cheap.cost
        if plan.score + weight * plan.cost >= line * (1 - OPTIMALITY_TOLERANCE):
            continue
        yield plan
        if plan.termination is Termination.INTERRUPTED:
            return
        segments += [(cheap, plan), (plan, dear)]


def _weighted(problem: Problem, ask: Ask, weight: float) -> Plan | None:
    """Return the plan of a weight as the answer to its budget, whose bound it gives.

    With the bound b on score + λ·cost, a plan that costs no more than this one has a score of at
    least b − λ·cost. None without a plan.
    """
    plan = ask(problem.replace(cost_weight=weight))
    if plan.configuration is None:
        return None
    found = Plan.of(
        problem.replace(budget=plan.cost),
        plan.configuration,
        method=plan.method,
        bound=plan.bound - weight * plan.cost,
        termination=plan.termination,
        seconds=plan.seconds,
        stats=plan.stats,
    )
    if plan.status is Status.OPTIMAL and found.status is not Status.OPTIMAL:
        # the difference has lost digits, or a weight leaves ties: the budget itself decides
        return ask(problem.replace(budget=plan.cost))
    return found


def _below(plan: Plan) -> float:
    """Return the largest budget that leaves out the cost of a plan."""
    return plan.cost - BUDGET_STEP * (1 + plan.cost)


def _better(plan: Plan, other: Plan) -> bool:
    return plan.score < other.score * (1 - OPTIMALITY_TOLERANCE)


PARETO_COLUMNS = (
    "cost", "mean_latency", "value", "score", "status", "bound", "gap", "replicas", "voters",
    "seconds", "leader", "voter_sites", "replica_sites", "change",
)  # fmt: skip
"""Columns of a frontier; see :func:`pareto`."""


def pareto(
    question: Instance | Problem,
    *,
    replicas: Iterable[int] | int,
    voters: Iterable[int] | int | None = None,
    method: str = "exact",
    points: int | None = None,
    time_limit: float | None = None,
    gap_limit: float = 0.0,
    seed: int = 0,
    threads: int = 1,
    progress: Callable[[float, Progress], None] | None = None,
    settings: Mapping[str, object] | None = None,
) -> pd.DataFrame:
    """Find the plans that no other plan beats in both latency and cost.

    Parameters
    ----------
    question
        An instance with prices, or a problem on one. A budget of the problem bounds the frontier;
        a weight of cost in the objective is set aside.
    replicas, voters
        Numbers among which the plans may choose; as in :func:`placement.sweep`.
    method
        Name of a registered method that takes budgets.
    points
        Most solves per number of voters (and per run of numbers of replicas without a hole); None:
        until nothing cheaper exists.
    time_limit, gap_limit, seed, threads, settings
        For each solve, as in :func:`placement.solve`.
    progress
        Called with (budget of this solve, infinite at first; report).

    Returns
    -------
    pandas.DataFrame
        One row per point, cheapest first, columns as in :func:`placement.sweep` with the numbers of
        replicas and voters of each plan, and ``change``: what is different from the row before,
        such as "+1 replica: Tokyo; leader to Paris". ``table.attrs["complete"]`` says whether every
        solve was proven and none is missing: then no point of the frontier is missing either, up to
        costs that differ by less than a relative 4e-9. Otherwise ``status`` and ``gap`` of the rows
        say how sure each is.

    Raises
    ------
    InputError
        Without prices.

    Notes
    -----
    See :mod:`placement.analysis.pareto_frontier`: one solve with a weight of the cost for each
    supported point, one with a budget for each other point and each pair of supported neighbours.
    With `points`, a budget of the question, or an objective that no weight of the cost joins, all
    solves have budgets: one per point, and one more for every plan that is found first at the same
    latency and a higher price.
    """
    import pandas as pd

    check_question(question, progress, settings)
    if points is not None:
        whole(points, "points", minimum=1)
    instance = question if isinstance(question, Instance) else question.instance
    if instance.prices is None:
        words = "a frontier of latency and cost needs prices"
        expected = "an instance with prices: Instance(prices=Prices(…)), or --prices"
        raise InputError(words, field="instance", value=instance.name, expected=expected)
    start = math.inf
    if isinstance(question, Problem) and question.budget is not None:
        start = question.budget

    def ask(problem: Problem) -> Plan:
        budget = math.inf if problem.budget is None else problem.budget
        return solve(
            problem,
            method,
            time_limit=time_limit,
            gap_limit=gap_limit,
            seed=seed,
            threads=threads,
            progress=None if progress is None else functools.partial(progress, budget),
            settings=settings,
        )

    weighs = points is None and math.isinf(start) and load_method(method).exact

    def search(problem: Problem) -> Iterator[Plan]:
        if weighs and problem.minimises_mean:
            return frontier_plans(problem, ask)
        return descending_budgets(problem, ask, start)

    sizes = sorted(set(whole_numbers(replicas, "replicas")))
    plans: list[Plan] = []
    complete = True
    try:
        for count in voter_counts(question, voters):
            least = count if count is not None else 1
            for span in _runs([size for size in sizes if size >= least]):
                problem = with_counts(question, span, count).replace(cost_weight=0.0, budget=None)
                for solves, plan in enumerate(search(problem), 1):
                    complete = complete and plan.status in (Status.OPTIMAL, Status.INFEASIBLE)
                    if plan.found:
                        plans.append(plan)
                    if plan.termination is Termination.INTERRUPTED:
                        raise KeyboardInterrupt
                    if points is not None and solves >= points:
                        complete = complete and not plan.found
                        break
    except KeyboardInterrupt:
        complete = False
    best: list[Plan] = []  # no plan beats one of these in both; of equal plans one
    for plan in sorted(plans, key=lambda plan: (plan.cost, plan.objective)):
        if not best or plan.objective < best[-1].objective * (1 - OPTIMALITY_TOLERANCE):
            best.append(plan)
    rows = [
        {
            **plan_columns(plan),
            "replicas": len(plan.replicas),
            "voters": len(plan.voters),
            "change": "" if before is None else changes_in_words(before, plan),
        }
        for before, plan in zip([None, *best], best, strict=False)
    ]
    table = pd.DataFrame(rows, columns=list(PARETO_COLUMNS))
    table.attrs.update(
        complete=complete,
        currency=instance.prices.currency,
        prices=instance.prices.source,
        **minimised(question),
    )
    return table


class NamedRoles(NamedTuple):
    """Leader, voters and replicas by name, in an order of their own."""

    leader: str | None
    voters: tuple[str, ...]
    replicas: tuple[str, ...]


def changes_in_words(before: NamedRoles | Plan, after: Plan) -> str:
    """Return the differences of the second of two plans, such as "+1 replica: Tokyo".

    Replicas that join and leave, the leader, and voters that stay replicas.
    """
    parts = []
    for sign, some, others in (("+", after, before), ("−", before, after)):
        sites = [site for site in some.replicas if site not in others.replicas]
        if sites:
            noun = "replica" if len(sites) == 1 else "replicas"
            parts.append(f"{sign}{len(sites)} {noun}: {', '.join(sites)}")
    if before.leader != after.leader:
        parts.append(f"leader to {after.leader}")
    for word, some, others in (("votes now", after, before), ("votes no more", before, after)):
        sites = [
            site
            for site in some.voters
            if site not in others.voters and site in others.replicas and site in some.replicas
        ]
        if sites:
            parts.append(f"{', '.join(sites)} {word}")
    return "; ".join(parts)


def _runs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Split ascending numbers into ranges without holes."""
    grouped = itertools.groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0])
    runs = [[number for _, number in run] for _, run in grouped]
    return [(run[0], run[-1]) for run in runs]
