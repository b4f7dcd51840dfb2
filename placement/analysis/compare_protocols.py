"""Commit protocols side by side on one instance: what each would bring, every row proven.

Each protocol rewrites the operations of the same instance, so that demand and latencies are stated
once. Each is asked for its own best set of sites, and what it would cost on the best set of the
first; or all are held to that set, with the roles chosen again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from placement.analysis.compare_methods import MethodRun, run_method
from placement.errors import InputError
from placement.methods.options import Options, Progress
from placement.methods.registry import load_method
from placement.model.protocols import Protocol
from placement.plan import Plan
from placement.problem import Problem, describe
from placement.support.checks import elements, flag, function, instance_of, text
from placement.support.status import Termination

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PROTOCOL_COLUMNS", "compare_protocols"]

PROTOCOL_COLUMNS = (
    "protocol",
    "status",
    "mean_latency",
    "reads",
    "writes",
    "on_first",
    "gap",
    "seconds",
    "leader",
    "voters",
    "replicas",
    "reason",
)
"""Columns of the table; see :func:`compare_protocols`."""


def compare_protocols(
    problem: Problem,
    protocols: Sequence[Protocol | Mapping[str, Protocol | str] | str],
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
        Protocols, their texts, or mappings of a protocol for each kind, in the order of the rows.
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
        raise InputError(
            "the question has a protocol already",
            field="protocol",
            value=str(problem.protocol),
            expected="none: those that are compared take its place",
        )
    flag(same_sites, "same_sites")
    load_method(text(method, "method"))
    if progress is not None:
        function(progress, "progress")
    given = elements(protocols, "protocols", "a list of protocols")
    known = [
        one
        if isinstance(one, Protocol)
        else Protocol(one if isinstance(one, Mapping) else text(one, "protocols"))
        for one in given
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
        report = None if progress is None else lambda said: progress(name, said)
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
        rows.append(_protocol_row(str(protocol), one, there))
    table = pd.DataFrame(rows, columns=list(PROTOCOL_COLUMNS))
    table["leader"] = pd.Series([row["leader"] for row in rows], dtype=object)
    table.attrs.update(
        problem=describe(problem),
        same_sites=same_sites,
        first=None if first is None else str(first.problem.protocol),
    )
    return table


def _protocol_row(name: str, one: MethodRun, there: MethodRun) -> dict[str, object]:
    """Return one row; `there` is the answer on the sites of the first."""
    plan = one.plan if one.plan is not None and one.plan.found else None
    held = there.plan if there.plan is not None and there.plan.found else None
    return {
        "protocol": name,
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
