"""The best plan with 0, 1, 2, … changes to the configuration that runs today."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from placement.analysis.varied_counts import plan_columns, value_in_ms
from placement.errors import InputError
from placement.evaluation.moves import Moves, changes
from placement.methods.prove import prove
from placement.plan import Plan, evaluate
from placement.problem import Problem
from placement.support.checks import function, instance_of, whole
from placement.support.status import OPTIMALITY_TOLERANCE

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MOVE_COLUMNS", "move_counts"]

MOVE_COLUMNS = (
    "changes",
    "status",
    "mean_latency",
    "gain",
    "gain_percent",
    "share",
    "added",
    "removed",
    "leader",
    "voter_sites",
    "replica_sites",
)
"""Columns of :func:`move_counts`."""


def move_counts(
    problem: Problem,
    most: int | None = None,
    *,
    method: str = "exact",
    progress: Callable[[int, int], None] | None = None,
) -> pd.DataFrame:
    """Return the gains of the best plans with 0, 1, 2, … changes, each plan proven optimal.

    Parameters
    ----------
    problem
        With `current`, the configuration that runs today. Its `moves` may have prices, which count
        in every row; a limit on the changes there does not count.
    most
        Largest number of changes; None: as many as the best plan of all needs.
    method
        An exact method that weighs moves.
    progress
        Called with (rows done, rows at most).

    Returns
    -------
    pandas.DataFrame
        One row per number of changes. ``gain`` is the mean latency in ms that is saved against the
        present configuration, ``share`` the part of the largest gain in percent (NaN if there is
        no gain). Rows whose status is ``infeasible`` have no plan: the present configuration
        breaks the rules, and so few changes do not put that right.

    Raises
    ------
    InputError
        For a problem without `current`, and another objective than the mean latency.
    SolverError
        When the method does not prove a row.
    """
    import pandas as pd

    present = instance_of(problem, Problem, "problem", "a placement.Problem").present
    if present is None:
        raise InputError("no present configuration", field="current", expected="Problem(current=…)")
    if progress is not None:
        function(progress, "progress")
    last = None if most is None else whole(most, "most")
    moves = Moves() if problem.moves is None else problem.moves
    best = prove(problem.replace(moves=dataclasses.replace(moves, at_most=None)), method)
    needed = 0
    if best.configuration is not None:
        leaderless = problem.demand.leaderless
        needed = changes(present, best.configuration, leaderless=leaderless).size
    before = value_in_ms(evaluate(problem.replace(moves=None), present))
    most_gain = math.nan
    if best.found:
        most_gain = before - best.mean_latency
    rows: list[dict[str, object]] = []
    count = needed if last is None else last
    for changed in range(count + 1):
        limited = dataclasses.replace(moves, at_most=changed)
        plan = best
        if changed < needed:
            plan = prove(problem.replace(moves=limited), method)
        rows.append(_row(changed, plan, before, most_gain))
        if progress is not None:
            progress(changed + 1, count + 1)
        reached = plan.found and plan.objective <= best.objective * (1 + OPTIMALITY_TOLERANCE)
        if last is None and reached:
            break
    return pd.DataFrame(rows, columns=list(MOVE_COLUMNS))


def _row(changed: int, plan: Plan, before: float, most: float) -> dict[str, object]:
    columns, present = plan_columns(plan), plan.problem.present
    gain = before - plan.mean_latency if plan.found else math.nan
    added: tuple[int, ...] = ()
    removed: tuple[int, ...] = ()
    if plan.configuration is not None and present is not None:
        now = changes(present, plan.configuration)
        added, removed = now.added, now.removed
    sites = plan.problem.instance.sites
    return {
        **{name: columns[name] for name in MOVE_COLUMNS if name in columns},
        "changes": changed,
        "gain": gain,
        "gain_percent": 100 * gain / before if before else 0.0,
        "share": 100 * gain / most if most > 0 else math.nan,
        "added": ", ".join(sites[s] for s in added),
        "removed": ", ".join(sites[s] for s in removed),
    }
