"""Latency against money: the plans that no other beats in both.

The ε-constraint method (Haimes, Lasdon and Wismer, IEEE Trans. SMC 1(3), 1971): minimise the
latency, then again with a budget just below the cost of what came out, until nothing is left;
points that are dominated are removed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from placement.analysis.varied_counts import (
    check_question,
    objective_words,
    plan_columns,
    voter_counts,
    whole_numbers,
    with_counts,
)
from placement.checks import whole
from placement.errors import InputError
from placement.methods import Progress, solve
from placement.model.instance import Instance
from placement.plan import Plan
from placement.problem import Problem
from placement.status import OPTIMALITY_TOLERANCE, Status, Termination

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PARETO_COLUMNS", "pareto"]

PARETO_COLUMNS = (
    "cost",
    "mean_latency",
    "value",
    "score",
    "status",
    "bound",
    "gap",
    "replicas",
    "voters",
    "seconds",
    "leader",
    "voter_sites",
    "replica_sites",
)
"""Columns of a frontier; see :func:`pareto`."""

_BUDGET_STEP = 4e-9
"""Relative; costs that differ by less are the same cost (budgets are kept to a relative 1e-9)."""


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
    """Find the plans that no other beats in both latency and cost.

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
        replicas and voters of each plan. ``table.attrs["complete"]`` says whether every solve was
        proven and none is missing: then no point of the frontier is missing either, up to costs
        that differ by less than a relative 4e-9. Otherwise ``status`` and ``gap`` of the rows say
        how sure each is.

    Raises
    ------
    InputError
        Without prices.

    Notes
    -----
    One solve per point, and one more for every plan that is found first at the same latency and a
    higher price.
    """
    import pandas as pd

    check_question(question, progress, settings)
    if points is not None:
        whole(points, "points", minimum=1)
    instance = question if isinstance(question, Instance) else question.instance
    if instance.prices is None:
        raise InputError(
            "a frontier of latency and cost needs prices",
            field="instance",
            value=instance.name,
            expected="an instance with prices (Instance(prices=Prices(…)))",
        )
    start = math.inf
    if isinstance(question, Problem) and question.budget is not None:
        start = question.budget

    def ask(problem: Problem, budget: float) -> Plan:
        return solve(
            problem.replace(budget=None if math.isinf(budget) else budget, cost_weight=0.0),
            method,
            time_limit=time_limit,
            gap_limit=gap_limit,
            seed=seed,
            threads=threads,
            progress=None if progress is None else _at_budget(progress, budget),
            settings=settings,
        )

    sizes = sorted(set(whole_numbers(replicas, "replicas")))
    plans: list[Plan] = []
    complete = True
    try:
        for count in voter_counts(question, voters):
            least = count if count is not None else 1
            for span in _runs([size for size in sizes if size >= least]):
                problem = with_counts(question, span, count)
                for solves, plan in enumerate(_descending_budgets(problem, ask, start), 1):
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
    rows = [
        {**plan_columns(plan), "replicas": len(plan.replicas), "voters": len(plan.voters)}
        for plan in _undominated(plans)
    ]
    table = pd.DataFrame(rows, columns=list(PARETO_COLUMNS))
    table.attrs.update(
        complete=complete,
        currency=instance.prices.currency,
        objective=objective_words(question),
    )
    return table


def _descending_budgets(
    problem: Problem, ask: Callable[[Problem, float], Plan], budget: float
) -> Iterator[Plan]:
    """Yield the best plan within the budget, then within just less than that cost, and so on.

    The last one has no configuration, unless the one before costs nothing.
    """
    while budget >= 0:
        plan = ask(problem, budget)
        yield plan
        if not plan.found:
            return
        budget = plan.cost - _BUDGET_STEP * (1 + plan.cost)


def _undominated(plans: Sequence[Plan]) -> list[Plan]:
    """Keep the plans that none beats in cost and latency, cheapest first, one of those that tie."""
    kept: list[Plan] = []
    for plan in sorted(plans, key=lambda plan: (plan.cost, plan.objective)):
        if not kept or plan.objective < kept[-1].objective * (1 - OPTIMALITY_TOLERANCE):
            kept.append(plan)
    return kept


def _runs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Split ascending numbers into ranges without holes."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs


def _at_budget(
    progress: Callable[[float, Progress], None], budget: float
) -> Callable[[Progress], None]:
    return lambda report: progress(budget, report)
