"""The next replica: which site to add, or to give up, from what runs today.

Every row of the table is a separate question with fixed sites, so that leader and voters are the
proven best for it. With S candidate sites and n replicas, that is S + 3 questions, of which all but
three have no choice of sites.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from placement.analysis.sweep import minimised, plan_columns, value_in_ms
from placement.errors import InputError
from placement.evaluation.moves import Moves, changes
from placement.evaluation.waits.wait_checks import refuse_waits
from placement.methods.registry import prove
from placement.model.configuration import Configuration
from placement.model.instance import Instance
from placement.plan import Plan, evaluate
from placement.problem import Problem
from placement.support.checks import instance_of, whole
from placement.support.status import OPTIMALITY_TOLERANCE

if TYPE_CHECKING:
    import pandas as pd

# Rules of a plan that runs today, as they hold for questions about its next change

LIFTED = {
    "leader": "leader",
    "leaders": "leaders",
    "pins": "pinned",
    "voter-pins": "pinned_voters",
    "forbidden": "forbidden",
    "non-voters": "non_voters",
    "diversity": "diversity",
    "survive": "survive",
    "budget": "budget",
}
"""Rules that can be left out, and their fields of :class:`placement.Problem`."""

_ALL = "all"


def counted(problem: Problem) -> Problem:
    """Return the question with numbers of replicas and voters in place of their names.

    The names of a plan that runs say what runs, and not that it must stay.
    """
    numbers = {
        name: len(given)
        for name, given in (("replicas", problem.replicas), ("voters", problem.voters))
        if isinstance(given, tuple) and isinstance(given[0], str)
    }
    return problem.replace(**numbers) if numbers else problem


def without_rules(problem: Problem, rules: Sequence[str]) -> Problem:
    """Return the question without some of its rules: keys of :data:`LIFTED`, or "all"."""
    for rule in rules:
        if rule not in LIFTED and rule != _ALL:
            expected = f"some of {', '.join(LIFTED)}, or {_ALL}"
            raise InputError("no such rule", field="lift", value=rule, expected=expected)
    names = LIFTED if _ALL in rules else rules
    defaults = Problem.__dataclass_fields__
    return problem.replace(**{LIFTED[name]: defaults[LIFTED[name]].default for name in names})


NEXT_COLUMNS = (
    "change", "site", "replicas", "status", "value", "mean_latency", "gain", "gain_percent",
    "cost", "cost_change", "leader", "voter_sites", "replica_sites",
)  # fmt: skip
"""Columns of :func:`next_replicas`."""

_ORDER = ("present", "roles", "add", "drop", "best", "best with one more")


def next_replicas(plan: Plan, instance: Instance | None = None) -> pd.DataFrame:
    """Return the gain of each site as the next replica, and the loss when each replica is removed.

    Parameters
    ----------
    plan
        What runs today, with its constraints: they hold for every row. Replicas and voters by name
        count as their number.
    instance
        Another instance with the same names, for example with a demand that has grown; None: that
        of the plan. A present replica at a site that it does not have counts as lost.

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
        For a plan without a configuration, or of whose replicas the instance has none or too few.
    SolverError
        When a row is not proven.
    """
    import pandas as pd

    if not instance_of(plan, Plan, "plan", "a placement.Plan").found:
        raise InputError("a plan without a configuration", field="plan", value=plan.status.value)
    problem = plan.problem if instance is None else plan.problem.replace(instance=instance)
    problem = counted(problem)
    refuse_waits(problem, "the worth of the next replica")
    known = set(problem.instance.sites)
    held = [site for site in plan.replicas if site in known]
    if not held:
        words = "no present replica is at a site of the instance"
        raise InputError(words, field="plan", value=plan.replicas, expected="at least one of them")
    rows: list[dict[str, object]] = []
    now = _present(problem, plan, held)
    for change, site, asked in _questions(problem, held):
        answer = now if change == "present" else prove(asked)
        if answer is not None:
            rows.append(_row(change, site, answer, now))
    if not rows:
        words = "no change obeys the constraints of the plan at its sites that the instance has"
        expected = "more of its sites in the instance, or --lift"
        raise InputError(words, field="plan", value=held, expected=expected)

    def place(row: dict[str, object]) -> tuple[int, float, str]:
        value = float(str(row["value"]))  # what runs today may have none, and no row a gain then
        order = _ORDER.index(str(row["change"]))
        return order, value if value == value else math.inf, str(row["site"])

    rows.sort(key=place)
    table = pd.DataFrame(rows, columns=list(NEXT_COLUMNS))
    prices = problem.instance.prices
    table.attrs.update(minimised(problem))
    table.attrs["currency"] = None if prices is None else prices.currency
    return table


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


# The best plan with 0, 1, 2, … changes to the configuration that runs today

MOVE_COLUMNS = (
    "changes", "status", "mean_latency", "gain", "gain_percent", "share", "added", "removed",
    "leader", "voter_sites", "replica_sites",
)  # fmt: skip
"""Columns of :func:`move_counts`."""


def move_counts(problem: Problem, most: int | None = None) -> pd.DataFrame:
    """Return the gains of the best plans with 0, 1, 2, … changes, each plan proven optimal.

    Parameters
    ----------
    problem
        With `current`, the configuration that runs today. Its `moves` may have prices, which count
        in every row; a limit on the changes there does not count.
    most
        Largest number of changes; None: as many as the best plan of all needs.

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
        When a row is not proven.
    """
    import pandas as pd

    present = instance_of(problem, Problem, "problem", "a placement.Problem").present
    if present is None:
        raise InputError("no present configuration", field="current", expected="Problem(current=…)")
    last = None if most is None else whole(most, "most")
    moves = Moves() if problem.moves is None else problem.moves
    best = prove(problem.replace(moves=dataclasses.replace(moves, at_most=None)))
    needed = 0 if best.configuration is None else changes(present, best.configuration).size
    before = value_in_ms(evaluate(problem.replace(moves=None), present))
    most_gain = before - best.mean_latency if best.found else math.nan
    sites = problem.instance.sites
    rows: list[dict[str, object]] = []
    count = needed if last is None else last
    for changed in range(count + 1):
        limited = dataclasses.replace(moves, at_most=changed)
        plan = best
        if changed < needed:
            plan = prove(problem.replace(moves=limited))
        gain = before - plan.mean_latency if plan.found else math.nan
        now = None if plan.configuration is None else changes(present, plan.configuration)
        columns = plan_columns(plan)
        rows.append(
            {
                **{name: columns[name] for name in MOVE_COLUMNS if name in columns},
                "changes": changed,
                "gain": gain,
                "gain_percent": 100 * gain / before if before else 0.0,
                "share": 100 * gain / most_gain if most_gain > 0 else math.nan,
                "added": ", ".join(sites[s] for s in (now.added if now else ())),
                "removed": ", ".join(sites[s] for s in (now.removed if now else ())),
            }
        )
        reached = plan.found and plan.objective <= best.objective * (1 + OPTIMALITY_TOLERANCE)
        if last is None and reached:
            break
    return pd.DataFrame(rows, columns=list(MOVE_COLUMNS))
