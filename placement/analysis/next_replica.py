"""The next replica: which site to add, or to give up, from what runs today.

Every row of the table is a separate question with fixed sites, so that leader and voters are the
proven best for it. With S candidate sites and n replicas, that is S + 3 questions, of which all but
three have no choice of sites.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from placement.analysis.present_rules import counted
from placement.analysis.varied_counts import objective_words, plan_columns, value_in_ms
from placement.errors import InputError
from placement.evaluation.waits.wait_checks import refuse_waits
from placement.methods.prove import prove
from placement.model.configuration import Configuration
from placement.model.instance import Instance
from placement.plan import Plan, evaluate
from placement.problem import Problem
from placement.support.checks import function, instance_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["NEXT_COLUMNS", "next_replicas"]

NEXT_COLUMNS = (
    "change",
    "site",
    "replicas",
    "status",
    "value",
    "mean_latency",
    "gain",
    "gain_percent",
    "cost",
    "cost_change",
    "leader",
    "voter_sites",
    "replica_sites",
)
"""Columns of :func:`next_replicas`."""

_ORDER = ("present", "roles", "add", "drop", "best", "best with one more")


def next_replicas(
    plan: Plan,
    instance: Instance | None = None,
    *,
    method: str = "exact",
    progress: Callable[[int, int], None] | None = None,
) -> pd.DataFrame:
    """Return the gain of each site as the next replica, and the loss when each replica is removed.

    Parameters
    ----------
    plan
        What runs today, with its constraints: they hold for every row. Replicas and voters by name
        count as their number.
    instance
        Another instance with the same names, for example with a demand that has grown; None: that
        of the plan. A present replica at a site that it does not have counts as lost.
    method
        An exact method.
    progress
        Called with (rows done, all rows).

    Returns
    -------
    pandas.DataFrame
        One row per change, the best gain first within each kind: ``present`` (as it is), ``roles``
        (the same sites with the best leader and voters), ``add`` and ``drop`` (each site with its
        best leader and voters), ``best`` and ``best with one more`` (no site is kept). ``gain`` is
        in ms of what is minimised against ``present``, negative where the change harms;
        ``cost_change`` is in money per interval of demand (NaN without prices). A row without a
        plan has the status ``infeasible``; a change that contradicts the constraints of the plan
        (a pinned site cannot be dropped, three voters need three replicas) has no row.

    Raises
    ------
    InputError
        For a plan without a configuration, or of whose replicas the instance has none.
    SolverError
        When the method does not prove a row.
    """
    if not instance_of(plan, Plan, "plan", "a placement.Plan").found:
        raise InputError("a plan without a configuration", field="plan", value=plan.status.value)
    if progress is not None:
        function(progress, "progress")
    problem = plan.problem if instance is None else plan.problem.replace(instance=instance)
    problem = counted(problem)
    refuse_waits(problem, "the worth of the next replica")
    known = set(problem.instance.sites)
    held = [site for site in plan.replicas if site in known]
    if not held:
        raise InputError(
            "no present replica is at a site of the instance",
            field="plan",
            value=plan.replicas,
            expected="at least one of them",
        )
    questions = list(_questions(problem, held))
    rows: list[dict[str, object]] = []
    now = _present(problem, plan, held)
    for change, site, asked in questions:
        answer = now if change == "present" else prove(asked, method)
        if answer is not None:
            rows.append(_row(change, site, answer, now))
        if progress is not None:
            progress(len(rows), len(questions))
    return _table(rows, problem)


def _questions(problem: Problem, held: list[str]) -> Iterator[tuple[str, str, Problem]]:
    """Yield kind, site and question of each change that the constraints allow."""
    yield "present", "", problem

    def fixed(change: str, site: str, sites: list[str]) -> Iterator[tuple[str, str, Problem]]:
        try:
            yield change, site, problem.replace(replicas=tuple(sites))
        except InputError:
            return  # pins, forbidden sites or named voters contradict the change

    yield from fixed("roles", "", held)
    for site in problem.instance.sites:
        if site not in held:
            yield from fixed("add", site, [*held, site])
    for site in held:
        if len(held) > 1:
            yield from fixed("drop", site, [other for other in held if other != site])
    for change, count in (("best", len(held)), ("best with one more", len(held) + 1)):
        if count <= len(problem.instance.sites):
            try:
                yield change, "", problem.replace(replicas=count)
            except InputError:
                continue


def _present(problem: Problem, plan: Plan, held: list[str]) -> Plan | None:
    """Score the present configuration; None when its leader or a voter is at a missing site."""
    if len(held) < len(plan.replicas):
        return None
    find = problem.instance.site_indices
    leader = int(find([str(plan.leader)], "leader")[0])
    return evaluate(
        problem,
        Configuration.of(leader, find(plan.voters).tolist(), find(plan.replicas).tolist()),
    )


def _row(change: str, site: str, plan: Plan, now: Plan | None) -> dict[str, object]:
    columns = plan_columns(plan)
    value, before = value_in_ms(plan), math.nan if now is None else value_in_ms(now)
    gain = before - value if plan.found else math.nan
    cost = float(str(columns["cost"]))
    was = float("nan") if now is None else float(str(plan_columns(now)["cost"]))
    return {
        **{name: columns[name] for name in NEXT_COLUMNS if name in columns},
        "change": change,
        "site": site,
        "replicas": len(plan.replicas) if plan.found else math.nan,
        "value": value,
        "gain": gain,
        "gain_percent": 100 * gain / before if before else 0.0,
        "cost_change": cost - was,
    }


def _table(rows: list[dict[str, object]], problem: Problem) -> pd.DataFrame:
    import pandas as pd

    def place(row: dict[str, object]) -> tuple[int, float, str]:
        gain = float(str(row["gain"]))
        return (
            _ORDER.index(str(row["change"])),
            -gain if gain == gain else math.inf,
            str(row["site"]),
        )

    rows.sort(key=place)
    table = pd.DataFrame(rows, columns=list(NEXT_COLUMNS))
    table.attrs["objective"] = objective_words(problem)
    prices = problem.instance.prices
    table.attrs["currency"] = None if prices is None else prices.currency
    return table
