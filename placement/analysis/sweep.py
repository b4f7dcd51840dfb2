"""How many replicas? One problem per number of replicas and voters, and latency against money.

:func:`sweep` solves a grid and says what one more replica brings. :func:`pareto` finds the exact
frontier of latency and cost by the ε-constraint method (Haimes, Lasdon and Wismer, IEEE Trans. SMC
1(3), 1971): minimise the latency, then again with a budget just below the cost of what came out,
until nothing is left; points that are dominated are removed.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from placement.checks import elements, function, mapping, whole
from placement.errors import InputError, LimitError, SolverError, UnsupportedError
from placement.feasibility.feasible_plans import repaired
from placement.methods import (
    Method,
    Options,
    Progress,
    explained,
    load_method,
    prepare_batch,
    run,
    solve,
)
from placement.model.instance import Instance
from placement.plan import Plan
from placement.problem import Problem
from placement.status import OPTIMALITY_TOLERANCE, Status, Termination

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PARETO_COLUMNS", "SWEEP_COLUMNS", "pareto", "sweep"]

SWEEP_COLUMNS = (
    "replicas",
    "voters",
    "status",
    "score",
    "mean_latency",
    "gain",
    "gain_percent",
    "bound",
    "gap",
    "cost",
    "seconds",
    "leader",
    "voter_sites",
    "replica_sites",
    "reason",
)
"""Columns of a sweep; see :func:`sweep`."""

PARETO_COLUMNS = (
    "cost",
    "mean_latency",
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

_REALS = ("score", "mean_latency", "gain", "gain_percent", "bound", "gap", "cost", "seconds")
_OBJECTS = ("leader", "voter_sites", "replica_sites")
_TEXTS = ("status", "reason")

_BUDGET_STEP = 4e-9
"""Relative; costs that differ by less are the same cost (budgets are kept to a relative 1e-9)."""


def sweep(
    question: Instance | Problem,
    *,
    replicas: Iterable[int] | int,
    voters: Iterable[int] | int | None = None,
    method: str = "exact",
    time_limit: float | None = None,
    gap_limit: float = 0.0,
    seed: int = 0,
    threads: int = 1,
    progress: Callable[[int, int, Progress], None] | None = None,
    settings: Mapping[str, object] | None = None,
) -> pd.DataFrame:
    """Solve for every number of replicas and voters.

    Parameters
    ----------
    question
        An instance, or a problem whose constraints hold in every cell.
    replicas
        Numbers of replicas.
    voters
        Numbers of voters; None: those of the problem, or 3 for an instance. Cells with more voters
        than replicas are left out.
    method
        Name of a registered method.
    time_limit, gap_limit, seed, threads, settings
        For each cell, as in :func:`placement.solve`.
    progress
        Called with (replicas, voters, report).

    Returns
    -------
    pandas.DataFrame
        One row per cell, ordered by voters, then replicas: ``replicas``, ``voters``, ``status``
        (that of the plan, or "refused", "failed", "not run" after Ctrl-C), ``score``
        (ms·operations), ``mean_latency`` (ms), ``gain`` (ms by which the mean latency is lower than
        with one replica fewer and as many voters; negative when the replica harms, NaN when either
        is not known) and ``gain_percent`` of it, ``bound`` and ``gap`` (of the objective), ``cost``
        (NaN without prices), ``seconds`` (with an equal share of what was done for all cells at
        once), ``leader``, ``voter_sites``, ``replica_sites``, ``reason``.

    Notes
    -----
    A method may answer the cells of one number of voters together, as `exact` does where that is
    quick; else each cell starts from the plan of the cell before, and from what its method carries
    over. A gain between two optimal cells is proven; otherwise it is the difference of the best
    plans known, and the gaps say how far it can be off.
    """
    _checked(question, progress, settings)
    chosen = load_method(method)  # a name that does not exist is an error of the whole
    given: dict[str, object] = {name: setting.default for name, setting in chosen.settings.items()}
    if "certificate" in chosen.settings:
        given["certificate"] = False  # the plans are not kept, nor is what proves them
    given.update(settings or {})

    common = Options(
        time_limit=time_limit, gap_limit=gap_limit, seed=seed, threads=threads, settings=given
    )

    def ask(answer: Method, problem: Problem, before: Plan | None) -> Plan:
        options = common
        if answer.session is None and before is not None:
            start = repaired(problem, before.configuration, problem.rules.replicas_max)
            options = dataclasses.replace(options, start=start, warm_start=before.warm_start)
        if progress is not None:
            size, count = problem.rules.replicas_max, problem.rules.voters
            options = dataclasses.replace(options, progress=_in_cell(progress, size, count))
        return explained(run(answer, problem, options))

    rows: list[dict[str, object]] = []
    stopped = False
    sizes = sorted(set(_whole_numbers(replicas, "replicas")))
    for count in _voter_counts(question, voters):
        before: Plan | None = None
        previous = -1
        answer = chosen.in_session()
        cells = list(_cells(question, sizes, count))
        share = 0.0  # of the time that all cells took together
        if not stopped:
            began = time.perf_counter()
            try:
                problems = [asked for _, asked in cells if isinstance(asked, Problem)]
                prepare_batch(answer, problems, common)
            except InputError:
                pass  # every cell will say so
            except KeyboardInterrupt:
                stopped = True
            share = (time.perf_counter() - began) / max(1, len(cells))
        for size, asked in cells:
            row = _empty_row(size, count)
            plan = None
            if stopped:
                row.update(status="not run", reason="interrupted before its turn")
            else:
                try:
                    if not isinstance(asked, Problem):
                        raise asked
                    plan = ask(answer, asked, before)
                    row.update(_facts(plan))
                    row.update(
                        voters=plan.problem.rules.voters,
                        seconds=plan.seconds + share,
                        reason="; ".join(plan.reasons),
                    )
                    stopped = plan.termination is Termination.INTERRUPTED
                except (InputError, LimitError, UnsupportedError) as error:
                    row.update(status="refused", reason=str(error))
                except SolverError as error:
                    row.update(status="failed", reason=str(error))
                except KeyboardInterrupt:
                    row.update(status="not run", reason="interrupted")
                    stopped = True
            if before is not None and plan is not None and size == previous + 1:
                row.update(_gain(before, plan))
            rows.append(row)
            before, previous = plan, size
    if not rows:
        raise InputError(
            "no number of voters fits into any number of replicas",
            field="voters",
            expected="voters <= replicas",
        )
    return _table(rows)


def _cells(
    question: Instance | Problem, sizes: Sequence[int], count: int | None
) -> Iterator[tuple[int, Problem | InputError | LimitError | UnsupportedError]]:
    """Yield every size that so many voters allow, with its problem or why there is none."""
    last: Problem | None = None  # from which the next differs in its number alone
    for size in sizes:
        if count is not None and size < count:
            continue
        try:
            if last is None:
                last = _with_counts(question, size, count)
            else:
                last = last.replace(replicas=size)
            yield size, last
        except (InputError, LimitError, UnsupportedError) as error:
            yield size, error


def _table(rows: Sequence[Mapping[str, object]]) -> pd.DataFrame:
    """Put the rows of a sweep into columns, with the types that pandas would find by looking."""
    import pandas as pd

    columns: dict[str, Any] = {name: [row[name] for row in rows] for name in SWEEP_COLUMNS}
    for name in _REALS:
        columns[name] = np.array(columns[name], dtype=np.float64)
    for name in _OBJECTS:
        columns[name] = np.fromiter((row[name] for row in rows), dtype=object, count=len(rows))
    columns["replicas"] = np.array(columns["replicas"], dtype=np.int64)
    if None not in columns["voters"]:
        columns["voters"] = np.array(columns["voters"], dtype=np.int64)
    columns["leader"] = pd.Series(columns["leader"], dtype=object, copy=False)  # not text: None
    words = pd.array([row[name] for name in _TEXTS for row in rows], dtype=_text())
    for i, name in enumerate(_TEXTS):
        columns[name] = words[i * len(rows) : (i + 1) * len(rows)]
    return pd.DataFrame(columns, index=pd.RangeIndex(len(rows)), copy=False)


@cache
def _text() -> Any:
    """Return what pandas takes text for: it has changed, and to look at the values takes longer."""
    import pandas as pd

    return pd.Series(["text"]).dtype


def _checked(
    question: Instance | Problem,
    progress: Callable[..., None] | None,
    settings: Mapping[str, object] | None,
) -> None:
    """Check types, and refuse a percentile, whose gains would be shown as those of the mean."""
    if not isinstance(question, (Instance, Problem)):
        raise InputError(
            "not a question",
            field="question",
            value=question,
            expected="a placement.Instance or a placement.Problem",
        )
    if progress is not None:
        function(progress, "progress")
    if settings is not None:
        mapping(settings, "settings")
    if isinstance(question, Problem) and question.objective.kind == "percentile":
        raise UnsupportedError(
            "sweeps and frontiers are about the mean latency, not "
            f"{question.objective.describe()}: solve for each number of replicas instead"
        )


def _empty_row(size: int, count: int | None) -> dict[str, object]:
    row: dict[str, object] = dict.fromkeys(SWEEP_COLUMNS, math.nan)
    row.update(
        replicas=size, voters=count, leader=None, voter_sites=(), replica_sites=(), reason=""
    )
    return row


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
        Numbers among which the plans may choose; as in :func:`sweep`.
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
        One row per point, cheapest first, columns as in :func:`sweep` with the numbers of replicas
        and voters of each plan. ``table.attrs["complete"]`` says whether every solve was proven and
        none is missing: then no point of the frontier is missing either, up to costs that differ
        by less than a relative 4e-9. Otherwise ``status`` and ``gap`` of the rows say how sure each
        is.

    Raises
    ------
    InputError
        Without prices.

    Notes
    -----
    One solve per point, and one more for every dearer plan of the same latency that is found first.
    """
    import pandas as pd

    _checked(question, progress, settings)
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

    sizes = sorted(set(_whole_numbers(replicas, "replicas")))
    plans: list[Plan] = []
    complete = True
    try:
        for count in _voter_counts(question, voters):
            least = count if count is not None else 1
            for span in _runs([size for size in sizes if size >= least]):
                problem = _with_counts(question, span, count)
                for solves, plan in enumerate(_cheaper_and_cheaper(problem, ask, start), 1):
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
        {**_facts(plan), "replicas": len(plan.replicas), "voters": len(plan.voters)}
        for plan in _undominated(plans)
    ]
    table = pd.DataFrame(rows, columns=list(PARETO_COLUMNS))
    table.attrs.update(complete=complete, currency=instance.prices.currency)
    return table


def _cheaper_and_cheaper(
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


def _facts(plan: Plan) -> dict[str, object]:
    """Columns that both tables share."""
    priced = plan.problem.instance.prices is not None and plan.found
    return {
        "status": plan.status.value,
        "score": plan.score if plan.found else math.nan,
        "mean_latency": plan.mean_latency,
        "bound": plan.bound,
        "gap": plan.gap if plan.found else math.nan,
        "cost": plan.cost if priced else math.nan,
        "seconds": plan.seconds,
        "leader": plan.leader,
        "voter_sites": plan.voters,
        "replica_sites": plan.replicas,
    }


def _gain(before: Plan, after: Plan) -> dict[str, object]:
    """What one more replica brought, in ms and in per cent."""
    if not before.found or not after.found:
        return {}
    gain = before.mean_latency - after.mean_latency
    return {
        "gain": gain,
        "gain_percent": 100 * gain / before.mean_latency if before.mean_latency else 0.0,
    }


def _with_counts(
    question: Instance | Problem, replicas: int | tuple[int, int], voters: int | None
) -> Problem:
    if isinstance(question, Instance):
        return Problem(question, replicas=replicas, voters=3 if voters is None else voters)
    if voters is None:
        return question.replace(replicas=replicas)
    return question.replace(replicas=replicas, voters=voters)


def _voter_counts(
    question: Instance | Problem, voters: Iterable[int] | int | None
) -> list[int | None]:
    """Numbers of voters; None stands for those of the problem, which may be given by name."""
    if voters is not None:
        return [*sorted(set(_whole_numbers(voters, "voters")))]
    if isinstance(question, Instance):
        return [3]
    return [question.rules.voters if isinstance(question.voters, int) else None]


def _whole_numbers(values: Iterable[int] | int, field: str) -> list[int]:
    if isinstance(values, (int, float)):
        values = (values,)  # a fraction is refused below
    numbers = []
    for value in elements(values, field, "whole numbers >= 1"):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
            raise InputError(
                "not a possible number", field=field, value=value, expected="whole numbers >= 1"
            )
        numbers.append(whole(value, field, minimum=1))
    if not numbers:
        raise InputError("none given", field=field, expected="at least one number")
    return numbers


def _runs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Split ascending numbers into ranges without holes."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs


def _in_cell(
    progress: Callable[[int, int, Progress], None], size: int, count: int
) -> Callable[[Progress], None]:
    return lambda report: progress(size, count, report)


def _at_budget(
    progress: Callable[[float, Progress], None], budget: float
) -> Callable[[Progress], None]:
    return lambda report: progress(budget, report)
