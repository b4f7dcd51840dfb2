"""Methods side by side on one problem: value, proof, gap and time in a table.

The gap of a method is measured against the best lower bound that *any* of the methods proved, so
that a heuristic, which proves nothing itself, is shown beside the optimum.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from placement.errors import InputError, PlacementError
from placement.methods.options import Options, Progress
from placement.methods.registry import available, explained, load_method, refusal, run
from placement.plan import Plan
from placement.problem import Problem, describe
from placement.support.checks import elements, function, instance_of, mapping, text
from placement.support.status import OPTIMALITY_TOLERANCE, Termination, relative_gap

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["COLUMNS", "MethodRun", "compare", "compare_plans", "comparison_table", "run_method"]

COLUMNS = (
    "method",
    "status",
    "score",
    "objective",
    "mean_latency",
    "gap",
    "bound",
    "own_gap",
    "seconds",
    "leader",
    "voters",
    "replicas",
    "reason",
)
"""Columns of a comparison; see :func:`compare`."""


@dataclass(frozen=True, slots=True)
class MethodRun:
    """Run of one method on a problem.

    Attributes
    ----------
    method
        Its name.
    plan
        Its answer; None when it refused or failed.
    status
        Of the plan, or "refused", "failed", "not run".
    reason
        Why there is no plan, or what makes this one doubtful; empty otherwise.
    seconds
        Wall time, loading the method's module left out.
    """

    method: str
    plan: Plan | None
    status: str
    reason: str
    seconds: float


def compare(
    problem: Problem,
    methods: Sequence[str] | None = None,
    *,
    time_limit: float | None = None,
    gap_limit: float = 0.0,
    seed: int = 0,
    threads: int = 1,
    progress: Callable[[str, Progress], None] | None = None,
    settings: Mapping[str, Mapping[str, object]] | None = None,
) -> pd.DataFrame:
    """Run several methods on one problem.

    Parameters
    ----------
    problem
        The question.
    methods
        Names, in the order of the rows; None: every registered method.
    time_limit, gap_limit, seed, threads
        For each method, as in :func:`placement.solve`.
    progress
        Called with (method, report).
    settings
        Settings by method.

    Returns
    -------
    pandas.DataFrame
        One row per method, whatever happens to it:

        ``method``, ``status`` ("optimal", "feasible", "infeasible", "unknown"; "refused" when it
        does not take such problems, "failed", "not run" after Ctrl-C), ``score`` (Eq. 1,
        ms·operations), ``objective`` (score plus weighed cost: what is minimised),
        ``mean_latency`` (ms), ``gap`` ((objective − best bound)/objective, with the best bound any
        method of this table proved; infinite when none proved any), ``bound`` and ``own_gap``
        (what the method itself proved, on the objective), ``seconds``, ``leader``, ``voters``,
        ``replicas`` (names), ``reason``. Numbers that do not exist are NaN.

        ``table.attrs`` holds ``problem`` (in words), ``kind`` and ``objective`` (what is minimised,
        as a word and in words), ``best_bound`` and ``operations``. With a percentile, the columns
        ``objective`` and ``bound`` are ms.

    Raises
    ------
    InputError
        For a method that is not registered, before any method runs.
    """
    entries = compare_plans(
        problem,
        methods,
        time_limit=time_limit,
        gap_limit=gap_limit,
        seed=seed,
        threads=threads,
        progress=progress,
        settings=settings,
    )
    return comparison_table(problem, entries)


def compare_plans(
    problem: Problem,
    methods: Sequence[str] | None = None,
    *,
    time_limit: float | None = None,
    gap_limit: float = 0.0,
    seed: int = 0,
    threads: int = 1,
    progress: Callable[[str, Progress], None] | None = None,
    settings: Mapping[str, Mapping[str, object]] | None = None,
) -> tuple[MethodRun, ...]:
    """Run several methods and return their plans; parameters as in :func:`compare`.

    Ctrl-C stops the method that runs, which gives its best so far, and those after it do not run.
    """
    instance_of(problem, Problem, "problem", "a placement.Problem")
    if progress is not None:
        function(progress, "progress")
    names = _known(methods)
    settings = {} if settings is None else settings
    mapping(settings, "settings", "a mapping from methods to their settings")
    for name in settings:
        if name not in names:
            raise InputError(
                "settings for a method that is not compared",
                field="settings",
                value=name,
                expected="one of " + ", ".join(names),
            )
    entries: list[MethodRun] = []
    interrupted = False
    for name in names:
        if interrupted:
            entries.append(MethodRun(name, None, "not run", "interrupted before its turn", 0.0))
            continue
        options = Options(
            time_limit=time_limit,
            gap_limit=gap_limit,
            seed=seed,
            threads=threads,
            progress=None if progress is None else _labelled(progress, name),
            settings=settings.get(name, {}),
        )
        try:
            entry = run_method(name, problem, options)
        except KeyboardInterrupt:
            entry = MethodRun(name, None, "not run", "interrupted before it found anything", 0.0)
            interrupted = True
        if entry.plan is not None and entry.plan.termination is Termination.INTERRUPTED:
            interrupted = True
        entries.append(entry)
    return _contradictions(entries)


def _known(methods: Sequence[str] | None) -> tuple[str, ...]:
    """Names of registered methods, each once; a misspelt one is refused before anything runs."""
    registered = available()
    if methods is None:
        return registered
    if isinstance(methods, str):
        methods = (methods,)
    names = tuple(
        dict.fromkeys(
            text(name, "methods") for name in elements(methods, "methods", "a list of names")
        )
    )
    for name in names:
        if name not in registered:
            load_method(name)  # raises, with the closest name that there is
    if not names:
        raise InputError("no methods", field="methods", expected="at least one")
    return names


def _labelled(progress: Callable[[str, Progress], None], name: str) -> Callable[[Progress], None]:
    return lambda report: progress(name, report)


def run_method(name: str, problem: Problem, options: Options) -> MethodRun:
    """Run one method; whatever it raises becomes its reason."""
    started = time.perf_counter()
    try:
        method = load_method(name)
        started = time.perf_counter()
        why = refusal(method, problem)
        if why is not None:
            return MethodRun(name, None, "refused", why, 0.0)
        plan = run(method, problem, options)
        seconds = plan.seconds
        plan = explained(plan)
    except PlacementError as error:
        return MethodRun(name, None, "failed", str(error), time.perf_counter() - started)
    except Exception as error:  # a defect of one method, maybe not ours, must not hide the others
        reason = f"{type(error).__name__}: {error}"
        return MethodRun(name, None, "failed", reason, time.perf_counter() - started)
    reason = "" if plan.found else "; ".join(plan.reasons)
    return MethodRun(name, plan, plan.status.value, reason, seconds)


def _contradictions(entries: Sequence[MethodRun]) -> tuple[MethodRun, ...]:
    """Say so beside every bound that another method's plan refutes."""
    found = [entry for entry in entries if entry.plan is not None and entry.plan.found]
    best = min(found, key=lambda entry: _objective(entry), default=None)
    if best is None:
        return tuple(entries)
    value = _objective(best)
    checked = []
    for entry in entries:
        bound = -math.inf if entry.plan is None else entry.plan.bound
        if bound > value + OPTIMALITY_TOLERANCE * abs(value):
            said = "there is no plan" if math.isinf(bound) else f"nothing is below {bound:.12g}"
            entry = MethodRun(
                entry.method,
                entry.plan,
                entry.status,
                f"WRONG: it says {said}, but {best.method!r} found {value:.12g}",
                entry.seconds,
            )
        checked.append(entry)
    return tuple(checked)


def _objective(entry: MethodRun) -> float:
    return math.inf if entry.plan is None else entry.plan.objective


def best_bound(entries: Sequence[MethodRun]) -> float:
    """Return the highest lower bound that a method proved and no plan refutes; −∞ if there is none.

    When all agree that there is no plan it is +∞.
    """
    value = min((_objective(entry) for entry in entries), default=math.inf)
    bounds = [entry.plan.bound for entry in entries if entry.plan is not None]
    honest = [bound for bound in bounds if bound <= value + OPTIMALITY_TOLERANCE * abs(value)]
    if not honest:
        return -math.inf
    return min(max(honest), value)


def comparison_table(problem: Problem, entries: Sequence[MethodRun]) -> pd.DataFrame:
    """Turn the answers of several methods into the table of :func:`compare`."""
    import pandas as pd

    bound = best_bound(entries)
    rows = []
    for entry in entries:
        plan = entry.plan
        found = plan is not None and plan.found
        rows.append(
            {
                "method": entry.method,
                "status": entry.status,
                "score": plan.score if plan is not None and found else math.nan,
                "objective": plan.objective if plan is not None and found else math.nan,
                "mean_latency": plan.mean_latency if plan is not None else math.nan,
                "gap": relative_gap(plan.objective, bound) if plan and found else math.nan,
                "bound": plan.bound if plan is not None else math.nan,
                "own_gap": plan.gap if plan is not None and found else math.nan,
                "seconds": entry.seconds,
                "leader": plan.leader if plan is not None else None,
                "voters": plan.voters if plan is not None else (),
                "replicas": plan.replicas if plan is not None else (),
                "reason": entry.reason,
            }
        )
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    table["leader"] = pd.Series([row["leader"] for row in rows], dtype=object)
    table.attrs.update(
        problem=describe(problem),
        kind=problem.objective.kind,
        objective=problem.objective.describe(),
        best_bound=bound,
        operations=problem.demand.operations,
    )
    return table
