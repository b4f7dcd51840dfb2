"""Registry of methods, and `solve`.

:mod:`placement.methods.options` has the options, settings and progress reports of a method.

A method is a :class:`Method`: a callable ``(problem, options) -> plan`` with a description of what
it can take. Methods are *entry points* of the group ``placement.methods``, so that a method of
another distribution (a commercial solver's, a planner's own rule) is listed beside ours and is
called the same way, and nothing is imported before a method that needs it runs.

A distribution registers one in its pyproject.toml::

    [project.entry-points."placement.methods"]
    my-rule = "my_package.my_module:METHOD"
    "my-rule.percentile" = "my_package.other_module:solve"

A name with a dot is a part of a method: the callable that answers the problems whose objective is
of the kind after the dot, and ``NAME.waits`` those whose operations have waits or constants
(:mod:`placement.model.operations`), or some of whose voters are witnesses. Other kinds go to the
method's own ``call``.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any

from placement.errors import InputError, SolverError, UnsupportedError, nearest
from placement.evaluation.waits.wait_checks import wait_notes
from placement.feasibility.feasible_plans import reasons_infeasible, repaired, violations
from placement.methods.options import Options, Progress, Setting, all_settings
from placement.model.configuration import Configuration
from placement.model.instance import Instance
from placement.plan import Plan
from placement.problem import Problem
from placement.support.checks import instance_of, text, whole
from placement.support.entry_points import Group
from placement.support.status import Status, Termination
from placement.support.status import time_limit as timed


def _takes_everything(problem: Problem) -> str | None:
    del problem
    return None


def up_to_tier(tier: int) -> Callable[[Problem], str | None]:
    """Return a `refuses` for methods that need given replicas, or given replicas and voters."""

    def refuses(problem: Problem) -> str | None:
        if problem.tier <= tier:
            return None
        given = "replicas and voters" if tier == 1 else "replicas"
        others = " or ".join(map(repr, _taking(problem, ("exact", "local-search"))))
        instead = f", or use a tier {problem.tier} method such as {others}" if others else ""
        return (
            f"it is a tier {tier} method and the question is one of tier {problem.tier}; give "
            f"{given} by name{instead}"
        )

    return refuses


@dataclass(frozen=True, slots=True, eq=False)
class Method:
    """A way to answer a problem.

    Attributes
    ----------
    name
        What users type.
    call
        The method itself: (problem, options) -> plan. Called only with problems that `refuses` lets
        pass, and with every declared setting present in ``options.settings``. An entry point
        ``NAME.KIND`` answers in its place where the objective is of that kind.
    summary
        One line.
    exact
        Whether it can prove optimality; most heuristics cannot.
    refuses
        Problem -> why this method does not support it, or None. There is no silent approximation.
    objectives
        Kinds of objective it can minimise; see :mod:`placement.evaluation.objective`. "waits": the
        mean latency of operations with waits or constants. "witnesses": voters without a replica.
    cost_parts
        Parts of the cost beside prices of sites that it can take, of :attr:`Problem.cost_parts`.
    settings
        Settings of the method, by name.
    complexity, reference
        For `placement show methods` and the documentation.
    session
        Makes a `call` for problems that come one after another and resemble each other: it may
        keep what they share, and begin each where the one before ended. None: nothing to keep.
    """

    name: str
    call: Callable[[Problem, Options], Plan]
    summary: str
    exact: bool = False
    refuses: Callable[[Problem], str | None] = _takes_everything
    objectives: tuple[str, ...] = ("mean",)
    cost_parts: tuple[str, ...] = ()
    settings: Mapping[str, Setting] = dataclasses.field(default_factory=dict)
    complexity: str = ""
    reference: str = ""
    session: Callable[[], Callable[[Problem, Options], Plan]] | None = None

    def in_session(self) -> Method:
        """Return the method with a separate session for one thread, or the method itself."""
        return self if self.session is None else dataclasses.replace(self, call=self.session())


METHODS = Group(
    "placement.methods",
    "method",
    lambda found: found if isinstance(found, Method) else None,
    "a placement.Method",
)
"""All registered methods."""


def available() -> tuple[str, ...]:
    """Names of all registered methods, sorted; imports none of them.

    Distributions that are installed while the process runs are not seen.
    """
    return METHODS.names()


def _kind(problem: Problem) -> str:
    """Return the kind of a problem: that of the objective, or "waits" of operations with waits."""
    objective = problem.objective.kind
    if problem.demand.has_waits:
        return "waits"
    return "witnesses" if problem.rules.witnesses else objective


def _call_for(method: Method, problem: Problem) -> Callable[[Problem, Options], Plan]:
    """Return the part of the method for the problem's kind of objective, else its own call."""
    kind = _kind(problem)
    part = METHODS.entries.get(f"{method.name}.{'waits' if kind == 'witnesses' else kind}")
    if part is None:
        return method.call
    found: Callable[[Problem, Options], Plan] = part.load()
    return found


def load_method(name: str) -> Method:
    """Return the method registered under a name.

    Raises
    ------
    InputError
        When there is none, with the closest name that there is.
    UnsupportedError
        When the registered object is no Method, or its module cannot be imported.
    """
    return METHODS.load(text(name, "method"))


def refusal(method: Method, problem: Problem) -> str | None:
    """Return why a method does not support a problem, or None."""
    if (conflict := _cost_conflict(problem)) is not None:  # first: other reasons name methods
        return conflict
    kind = _kind(problem)
    if problem.rules.witnesses and "witnesses" not in method.objectives:
        return (
            "it supports only voters with a replica, and the problem has witnesses; use 'exact', "
            "or leave them out"
        )
    if kind == "waits" and kind not in method.objectives:
        return (
            "it supports only operations of the four coefficients, and the problem has waits or "
            "constants"
        )
    if kind == "measures" and kind not in method.objectives:
        return f"it takes no measures, and the question is to {problem.objective.describe()}"
    if kind not in method.objectives:
        return (
            f"it minimises {' or '.join(method.objectives)} latency, and the objective "
            f"is of the kind {kind!r}"
        )
    return _cost_refusal(method, problem) or method.refuses(problem)


_PRICE_FIELDS = {
    "near reads": "reads from the nearest replica have prices (prices.gb_per_op, prices.requests)",
    "votes": "replicas that do not vote have prices of their own (prices.machines_non_voting)",
    "moves": "moves from the present configuration have prices or limits (moves)",
}
"""Why the cost is no sum of prices of sites, by the part of the cost."""


def _cost_conflict(problem: Problem) -> str | None:
    """Return the part of the cost that no method supports in a question, and a way out; or None."""
    for part in problem.cost_parts:
        way_out = _without(part)
        if problem.objective.kind != "mean":
            return f"{_PRICE_FIELDS[part]}, and the objective is not the mean latency: {way_out}"
        if part != "votes" and problem.instance.varying_rtt:
            return f"{_PRICE_FIELDS[part]}, and RTTs vary by interval: {way_out}"
    return None


def _without(part: str) -> str:
    """Return how to ask without a part of the cost."""
    if part == "moves":
        return "leave out the moves"
    return "leave out the budget and the weight of the cost, or these prices"


def _cost_refusal(method: Method, problem: Problem) -> str | None:
    """Return the part of the cost that a method does not support, and a way out; or None."""
    for part in problem.cost_parts:
        if part not in method.cost_parts:
            others = " or ".join(map(repr, _paying(problem, ("exact", "milp", "exhaustive"))))
            instead = f"use the method {others}, or " if others else ""
            return f"{_PRICE_FIELDS[part]}: {instead}{_without(part)}"
    return None


def _paying(problem: Problem, names: Sequence[str]) -> list[str]:
    """Return the methods of these names that take every part of the cost of a problem."""
    parts = set(problem.cost_parts)
    known = [load_method(name) for name in names if name in available()]
    return [
        method.name
        for method in known
        if parts <= set(method.cost_parts) and method.refuses(problem) is None
    ]


def _taking(problem: Problem, names: Sequence[str]) -> list[str]:
    """Return the methods of these names that take a problem."""
    taking = []
    for name in names:
        try:
            if refusal(load_method(name), problem) is None:
                taking.append(name)
        except UnsupportedError:  # one that cannot be loaded takes nothing
            continue
    return taking


def _with_all_settings(method: Method, options: Options) -> Options:
    """Return the options with every setting of the method, checked."""
    settings = all_settings(method.settings, options.settings, f"method {method.name!r}")
    if options.settings == settings:
        return options
    return dataclasses.replace(options, settings=settings)


def run(method: Method, problem: Problem, options: Options) -> Plan:
    """Run one method and check its plan.

    Raises
    ------
    UnsupportedError
        When the method refuses the problem.
    InputError
        For an unknown setting, or a start with a site that the instance does not have.
    SolverError
        When the plan breaks a constraint of the problem: a defect of the method, never shown as a
        result.
    """
    reason = refusal(method, problem)
    if reason is not None:
        others = [] if _kind(problem) in method.objectives else _taking(problem, available())
        instead = f"; methods that support it: {', '.join(others)}" if others else ""
        raise UnsupportedError(
            f"method {method.name!r} does not support this problem: {reason}{instead}"
        )
    options = _with_all_settings(method, options)
    if options.start is not None:
        _check_indices(problem, options.start)
    started = time.perf_counter()
    reasons = reasons_infeasible(problem)
    if reasons:
        plan = Plan.infeasible(problem, method=method.name, reasons=reasons)
    else:
        options, note = _feasible_start(problem, options)
        try:
            with timed(options.time_limit):
                plan = _call_for(method, problem)(problem, options)
        except TimeoutError:
            ended = Termination.TIME_LIMIT
            plan = Plan.of(problem, None, method=method.name, termination=ended)
        if note:
            plan = plan.replace(notes=(*plan.notes, note))
    told = problem.objective.remarks(problem)
    if problem.protocol is not None or problem.needs_roles:
        told = (*wait_notes(problem), *told)
    said = [note for note in told if note not in plan.notes]  # of another method
    plan = plan.replace(notes=(*plan.notes, *said)) if said else plan
    seconds = time.perf_counter() - started
    if plan.configuration is not None:
        broken = violations(problem, plan.configuration)
        if broken:
            raise SolverError(
                f"method {method.name!r} returned a configuration that breaks the problem: "
                + "; ".join(broken)
            )
    return plan.replace(seconds=seconds)


def _check_indices(problem: Problem, start: Configuration) -> None:
    """Refuse a start with a site that the instance does not have."""
    most = len(problem.instance.sites) - 1
    for site in (start.leader, *start.voters, *start.replicas):
        whole(site, "start", maximum=most)


def _feasible_start(problem: Problem, options: Options) -> tuple[Options, str]:
    """Repair or leave out a start that breaks a constraint; return what was done as a note."""
    broken = () if options.start is None else violations(problem, options.start)
    if not broken:
        return options, ""
    start = repaired(problem, options.start)
    done = "no repair was found, and it was ignored" if start is None else "it was repaired"
    options = dataclasses.replace(options, start=start)
    return options, f"the start breaks constraints of the problem ({'; '.join(broken)}): {done}"


def _start_on(problem: Problem, plan: Plan) -> Configuration | None:
    """Return the configuration of a plan on the sites of a problem, matched by name.

    Sites that the problem's instance does not have are left out; None when no voter remains.
    """
    found, before = plan.configuration, plan.problem.instance.sites
    sites = problem.instance.sites
    if found is None or before == sites:
        return found
    index = {name: i for i, name in enumerate(sites)}
    voters = [index[before[site]] for site in found.voters if before[site] in index]
    if not voters:
        return None
    leader = index.get(before[found.leader], voters[0])
    replicas = [index[before[site]] for site in found.replicas if before[site] in index]
    return Configuration.of(leader, voters, replicas)


def solve(
    problem: Problem | Instance,
    method: str = "exact",
    *,
    time_limit: float | None = None,
    gap_limit: float = 0.0,
    seed: int = 0,
    threads: int = 1,
    start: Configuration | Plan | None = None,
    progress: Callable[[Progress], None] | None = None,
    settings: Mapping[str, object] | None = None,
    **question: Any,
) -> Plan:
    """Answer a problem.

    Parameters
    ----------
    problem
        The question, or its instance.
    method
        Name of a registered method; :func:`available` lists them.
    question
        Arguments of :class:`placement.Problem` for an instance: ``solve(instance, replicas=3)``.
    time_limit, gap_limit, seed, threads, progress, settings
        As in :class:`Options`.
    start
        A configuration, or the plan of a similar problem, to start from. Sites of a plan are
        matched by name. A start that breaks a constraint is repaired where possible, else ignored;
        a note of the plan says which.

    Returns
    -------
    Plan
        With a correct status: at a limit, or after Ctrl-C, the best configuration so far with its
        proven bound; when there is none, the reasons.

    Raises
    ------
    InputError, UnsupportedError, LimitError, SolverError
        See :mod:`placement.errors`.
    """
    if isinstance(problem, Instance):
        problem = Problem(problem, **question)
    elif question:
        name, value = next(iter(question.items()))
        words = f"not an argument for a problem{nearest(name, signature(solve).parameters)}"
        raise InputError(words, field=name, value=value, expected="an instance, or no such name")
    instance_of(problem, Problem, "problem", "a placement.Problem or a placement.Instance")
    warm_start: object | None = None
    if isinstance(start, Plan):
        warm_start, start = start.warm_start, _start_on(problem, start)
    options = Options(
        time_limit=time_limit,
        gap_limit=gap_limit,
        seed=seed,
        threads=threads,
        start=start,
        warm_start=warm_start,
        progress=progress,
        settings={} if settings is None else settings,
    )
    return explained(run(load_method(method), problem, options), time_limit)


def explained(plan: Plan, time_limit: float | None = None) -> Plan:
    """Put before an infeasible plan's reasons which constraints conflict, when no number says so.

    :func:`run` leaves this out, because the search it takes is worth it only where a person reads.

    Parameters
    ----------
    plan
        The answer to a problem.
    time_limit
        Seconds for the answer and the explanation together; None: no limit.

    Raises
    ------
    SolverError
        When the explanation finds a plan, so that "infeasible" was wrong.
    """
    if plan.status is not Status.INFEASIBLE or reasons_infeasible(plan.problem):
        return plan
    from placement.feasibility.feasible_plans import explain_infeasible

    try:
        left = math.inf if time_limit is None else time_limit - plan.seconds
        sentences = explain_infeasible(plan.problem, left)
    except KeyboardInterrupt:
        return plan  # that there is none is proven all the same
    return plan.replace(reasons=(*sentences, *plan.reasons))


# Solving to a proof or not at all, for analyses that need many proven optima


def prove(problem: Problem) -> Plan:
    """Return the proven optimum or the proof that there is no plan; SolverError without proof."""
    plan = run(load_method("exact"), problem, Options(settings={"certificate": False}))
    if plan.termination is Termination.INTERRUPTED:
        raise KeyboardInterrupt
    if plan.status not in (Status.OPTIMAL, Status.INFEASIBLE):
        raise SolverError(f"'exact' should prove a problem, but returned the status {plan.status}")
    return plan
