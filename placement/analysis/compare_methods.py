"""Methods side by side on one problem: value, proof, gap and time in a table.

The gap of a method is measured against the best lower bound that *any* of the methods proved, so
that a heuristic, which proves nothing itself, is shown beside the optimum.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from placement.analysis.sweep import minimised
from placement.errors import InputError, PlacementError
from placement.methods.options import Options, Progress
from placement.methods.registry import available, explained, load_method, refusal, run
from placement.model.protocols import Protocol
from placement.plan import Plan
from placement.problem import Problem, describe
from placement.support.checks import elements, flag, function, instance_of, mapping, text
from placement.support.status import OPTIMALITY_TOLERANCE, Termination, relative_gap

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class MethodRun:
    """Run of one method on a problem."""

    method: str  #: its name
    plan: Plan | None  #: its answer; None when it refused or failed
    status: str  #: of the plan, or "refused", "failed", "not run"
    reason: str  #: why there is no plan, or what makes this one doubtful; empty otherwise
    seconds: float  #: wall time, loading the method's module left out


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
        as a word and in words), ``minimised`` and ``unit``, ``best_bound`` and ``operations``.
        With a percentile or measures, the columns ``objective`` and ``bound`` are in that unit.

    Raises
    ------
    InputError
        For a method that is not registered, before any method runs.
    """
    import pandas as pd

    instance_of(problem, Problem, "problem", "a placement.Problem")
    if progress is not None:
        function(progress, "progress")
    names = _known(methods)
    settings = {} if settings is None else settings
    mapping(settings, "settings", "a mapping from methods to their settings")
    for name in settings:
        if name not in names:
            words = "settings for a method that is not compared"
            expected = "one of " + ", ".join(names)
            raise InputError(words, field="settings", value=name, expected=expected)
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
            progress=None if progress is None else partial(progress, name),
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
    checked, bound = _contradictions(entries), best_bound(entries)
    rows = []
    for entry in checked:
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
    goal = problem.objective
    table = pd.DataFrame(rows)
    table["leader"] = pd.Series([row["leader"] for row in rows], dtype=object)
    table.attrs.update(
        problem=describe(problem),
        kind=goal.kind,
        **{**minimised(problem), "objective": goal.describe()},
        best_bound=bound,
        operations=problem.demand.operations,
    )
    return table


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
        plan = explained(plan, options.time_limit)
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
            said = f"WRONG: it says {said}, but {best.method!r} found {value:.12g}"
            entry = replace(entry, reason=said)
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


# Commit protocols side by side on one instance: what each would bring, every row proven


def compare_protocols(
    problem: Problem,
    protocols: Sequence[Protocol | str],
    *,
    same_sites: bool = False,
    method: str = "exact",
    time_limit: float | None = None,
    gap_limit: float = 0.0,
    seed: int = 0,
    threads: int = 1,
    progress: Callable[[str, Progress], None] | None = None,
) -> pd.DataFrame:
    """Ask one question under several protocols.

    Parameters
    ----------
    problem
        The question, without a protocol of its own.
    protocols
        Protocols or their texts, in the order of the rows.
    same_sites
        Fix the replicas that are best under the first protocol with a plan; voters and
        leader are chosen for each.
    method
        An exact method.
    time_limit, gap_limit, seed, threads
        Of each search, as in :func:`placement.solve`.
    progress
        Called with (protocol, report).

    Returns
    -------
    pandas.DataFrame
        One row per protocol: ``protocol``, ``status`` (of the plan, or "refused" with a
        ``reason``), ``mean_latency``, ``reads`` and ``writes`` (means in ms; NaN when none was
        issued), ``on_first`` (mean latency in ms on the replicas that are best under the first
        protocol, roles chosen again), ``gap``, ``seconds``, ``leader`` (None without one),
        ``voters``, ``replicas``. ``table.attrs`` holds ``problem`` in words, ``same_sites`` and
        ``first``, the protocol whose sites these are.

    Raises
    ------
    InputError
        For no protocol or an unknown one, before any is asked; for a question that has one.
    """
    import pandas as pd

    instance_of(problem, Problem, "problem", "a placement.Problem")
    if problem.protocol not in (None, problem.instance.protocol):
        words = "the question has a protocol already"
        expected = "none: the compared ones take its place"
        raise InputError(words, field="protocol", value=str(problem.protocol), expected=expected)
    flag(same_sites, "same_sites")
    load_method(text(method, "method"))
    if progress is not None:
        function(progress, "progress")
    given = elements(protocols, "protocols", "a list of protocols")
    known = [
        one if isinstance(one, Protocol) else Protocol(text(one, "protocols")) for one in given
    ]
    if not known:
        raise InputError("no protocols", field="protocols", expected="at least one")

    def ask(protocol: Protocol, sites: Sequence[str] | None) -> MethodRun:
        name = str(protocol)
        try:
            asked = problem.replace(protocol=protocol)
            if sites is not None:
                asked = asked.replace(replicas=tuple(sites))
        except InputError as error:
            return MethodRun(name, None, "refused", str(error), 0.0)
        report = None if progress is None else partial(progress, name)
        options = Options(
            time_limit=time_limit, gap_limit=gap_limit, seed=seed, threads=threads, progress=report
        )
        return run_method(method, asked, options)

    rows: list[dict[str, object]] = []
    first: Plan | None = None
    interrupted = False
    for protocol in known:
        if interrupted:
            one = MethodRun(str(protocol), None, "not run", "interrupted before its turn", 0.0)
        else:
            one = ask(protocol, first.replicas if first is not None and same_sites else None)
        there = one
        if one.plan is not None and one.plan.found:
            interrupted = one.plan.termination is Termination.INTERRUPTED
            if first is None:
                first = one.plan
            elif not same_sites and not interrupted:
                there = ask(protocol, first.replicas)
        plan = one.plan if one.plan is not None and one.plan.found else None
        held = there.plan if there.plan is not None and there.plan.found else None
        rows.append(
            {
                "protocol": str(protocol),
                "status": one.status,
                "mean_latency": math.nan if plan is None else plan.mean_latency,
                "reads": _mean_of(plan, writes=False),
                "writes": _mean_of(plan, writes=True),
                "on_first": math.nan if held is None else held.mean_latency,
                "gap": math.nan if plan is None else plan.gap,
                "seconds": one.seconds,
                "leader": None if plan is None else plan.leader,
                "voters": () if plan is None else plan.voters,
                "replicas": () if plan is None else plan.replicas,
                "reason": one.reason,
            }
        )
    table = pd.DataFrame(rows)
    table["leader"] = pd.Series([row["leader"] for row in rows], dtype=object)
    table.attrs.update(
        problem=describe(problem),
        same_sites=same_sites,
        first=None if first is None else str(first.problem.protocol),
    )
    return table


def _mean_of(plan: Plan | None, *, writes: bool) -> float:
    """Return the mean latency of the reads or of the writes of a plan, ms; NaN without any."""
    if plan is None:
        return math.nan
    total = count = 0.0
    for operation, row in zip(plan.problem.instance.operations, plan.per_operation, strict=True):
        if operation.is_transaction == writes and row.operations > 0:
            total += row.operations * row.latency
            count += row.operations
    return total / count if count else math.nan
