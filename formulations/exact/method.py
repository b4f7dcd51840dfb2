"""The method ``exact``: from a problem to a proven plan, the default of `solve`.

What the engine takes: RTTs of every interval, a weight of prices that are a sum over the replicas,
and everything else of a problem. A limit, on prices of any kind, adds a separate search
(:mod:`formulations.exact.threshold_driver`); so does a weight of prices of votes or of near reads.
These with RTTs that vary by interval, and voters who would have to be searched among too many sets,
go to the method ``milp``, and the plan says so.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from formulations.exact.branch_and_bound import Result, SearchLimits, search
from formulations.exact.kernel import (
    Counters,
    Kernel,
    compiled_available,
    open_kernel,
    seconds_until,
)
from formulations.exact.reduced_problem import ReducedProblem, weighs_more_than_sites
from formulations.exact.warm_start import WarmStart, differ_in_size_only, take_shared
from placement.feasibility.feasible_plans import find_feasible, repaired
from placement.methods.options import Options, Progress, Setting
from placement.methods.registry import Method, load_method, run
from placement.model.configuration import Configuration
from placement.plan import Plan
from placement.problem import Problem
from placement.proof.enumeration_check import certified_or_named
from placement.support.status import Termination

if TYPE_CHECKING:
    from formulations.exact.certificate_events import Certificate

_DELEGATE = "milp"


def refuses(problem: Problem) -> str | None:
    """Return why no method proves a plan for the moves of a problem, or None."""
    reason = None if problem.moves is None else _beyond_limits(problem)
    return None if reason is None else f"{reason}: use 'exhaustive', or leave out the moves"


class Session:
    """A session for successive problems: data that do not depend on |R| are computed once.

    The kernel of the problem before is reused when only the number of replicas differs, with its
    answer, which loses or gains sites one by one. The multipliers are reused when the clients are
    the same. Neither can spoil a proof: any multipliers give valid bounds, and every answer is
    evaluated again.
    """

    def __init__(self) -> None:
        self._before: Plan | None = None
        self._core: ReducedProblem | None = None
        self._kernel: Kernel | None = None
        self._warm_start: object | None = None

    def __call__(self, problem: Problem, options: Options) -> Plan:
        """Answer a problem with a proof; at a limit or after Ctrl-C, the best so far."""
        other = _refuses(problem)
        if other is not None:
            if options.start is None and self._before is not None:
                start = repaired(problem, self._before.configuration, problem.rules.replicas_max)
                options = dataclasses.replace(options, start=start)
            plan = _delegate(problem, options, *other)
        elif _has_limits(problem):
            plan = self._within_limits(problem, options)
        else:
            plan = self._search(problem, options)
        self._before = plan
        return plan

    def _within_limits(self, problem: Problem, options: Options) -> Plan:
        """Solve the problem without its limits first; search when that plan exceeds a limit.

        At most half of the time is for the question without limits.
        """
        from formulations.exact.threshold_driver import (
            answers,
            plan_without_limits,
            solve_within_limits,
            without_limits,
        )

        started = time.perf_counter()
        limit = math.inf if options.time_limit is None else options.time_limit
        part = None if options.time_limit is None else options.time_limit / 2
        unlimited = dataclasses.replace(
            options, start=None, gap_limit=0.0, progress=None, time_limit=part
        )
        plan = self._search(without_limits(problem), unlimited)
        if answers(problem, plan):
            return plan_without_limits(problem, plan)
        return solve_within_limits(problem, options, plan, started + limit)

    def _search(self, problem: Problem, options: Options) -> Plan:
        end = time.perf_counter() + (math.inf if options.time_limit is None else options.time_limit)
        core = ReducedProblem.of(problem)
        kernel: Kernel | None = None
        before, taken = self._core, self._kernel
        self._core = self._kernel = None  # whatever happens now, half a search is not gone on with
        if before is not None and taken is not None and differ_in_size_only(core, before):
            take_shared(core, before)
            kernel = taken
            kernel.resize(core, seconds_until(end))
        warm_start = self._warm_start if options.warm_start is None else options.warm_start
        continues = kernel is not None and warm_start is self._warm_start
        kernel = open_kernel(core) if kernel is None else kernel
        find = partial(find_feasible, problem)
        result = _run_search(core, options, kernel, end, warm_start, continues, find)
        plan = _plan(problem, core, options, result)
        self._core, self._kernel, self._warm_start = core, kernel, plan.warm_start
        return plan


def _stats(counters: Counters) -> dict[str, int]:
    return {"nodes": counters.nodes, "leaves": counters.leaves, "bounds": counters.evaluations}


def solve(problem: Problem, options: Options) -> Plan:
    """Answer a problem with a proof; at a limit or after Ctrl-C, the best so far with its bound."""
    return Session()(problem, options)


def _refuses(problem: Problem) -> tuple[str, str] | None:
    """Return why the engine does not support a problem, and the method that does; or None."""
    beyond = f"which the engine of {METHOD.name!r} does not support"
    measures = problem.objective.kind == "measures"
    reason = _beyond_limits(problem) if measures else None
    reason = reason or ReducedProblem.refuses(problem.demand, problem.rules)
    if reason is None and _has_limits(problem):
        reason = _beyond_limits(problem)
    if reason is not None:
        return f"{reason}, {beyond}", "exhaustive" if measures else _DELEGATE
    if not compiled_available():
        other_method = "exhaustive" if measures else _DELEGATE
        return f"the compiled kernels of {METHOD.name!r} were not built", other_method
    return None


def _has_limits(problem: Problem) -> bool:
    """Return whether the search within limits answers a problem."""
    limited = bool(problem.limits) or problem.moves is not None
    return limited or problem.objective.kind == "measures" or weighs_more_than_sites(problem)


def _beyond_limits(problem: Problem) -> str | None:
    """Return why the search within limits does not support a problem, or None."""
    from formulations.exact.loss_search import refuses_losses
    from placement.contingency.loss_question import LossQuestion
    from placement.measures.scenarios import beyond_thresholds, beyond_trees

    what = "moves count"
    if problem.objective.kind == "measures":
        what = "it keeps limits on measures"
    elif problem.moves is None:
        what = "the cost has other terms than prices of replicas"
        what = what if problem.budget is None else "there is a budget"
    question = LossQuestion.of(problem)
    if question is not None and refuses_losses(problem, question) is None:
        return None
    if not problem.rules.nested_replica_caps:
        return f"{what}, and rules for replicas are not caps on nested levels"
    reason = beyond_thresholds(problem) or beyond_trees(problem)
    return None if reason is None else f"{what}, and {reason}"


def _run_search(
    core: ReducedProblem,
    options: Options,
    kernel: Kernel,
    end: float,
    warm_start: object | None,
    continues: bool,
    find: Callable[[], Configuration | None],
) -> Result:
    def listen(report: Progress) -> None:
        bound = report.bound if math.isfinite(report.bound) else -math.inf
        options.report(Progress(report.seconds, report.incumbent, bound))

    return search(
        core,
        limits=SearchLimits(seconds_until(end), options.gap_limit),
        start=options.start,
        find=find,
        multipliers=WarmStart.known(warm_start, core.active),
        continues=continues,
        listen=listen if options.progress is not None else None,
        certify=bool(options.settings["certificate"]),
        kernel=kernel,
    )


def _document(certified: Callable[[], Certificate]) -> Mapping[str, object]:
    return certified().to_json()


def _plan(problem: Problem, core: ReducedProblem, options: Options, result: Result) -> Plan:
    document: Callable[[], Mapping[str, object]] | None = None
    if result.certified is not None:
        document = partial(_document, result.certified)
    if result.none is not None:
        certified = bool(options.settings["certificate"])
        document = result.none.to_json if certified else None
        return _without_plan(problem, "counting the sites that fit", document)
    # an interrupted search may have closed the last leader before it saw the interrupt
    closed = result.termination is Termination.FINISHED or math.isinf(result.proven)
    if result.configuration is None and closed:
        return _without_plan(problem, "a complete search", None)
    return Plan.of(
        problem,
        result.configuration,
        method=METHOD.name,
        bound=result.proven,
        termination=result.termination,
        stats=_stats(result.counters),
        certificate=document,
        warm_start=WarmStart(core.active, result.multipliers),
    )


def _without_plan(
    problem: Problem, proof: str, document: Callable[[], Mapping[str, object]] | None
) -> Plan:
    """Return the answer that no configuration obeys the rules; `proof`: how that was proved."""
    leaders = int(problem.rules.may_lead.sum())
    return Plan.of(
        problem,
        None,
        method=METHOD.name,
        bound=math.inf,
        termination=Termination.FINISHED,
        reasons=(
            f"no set of replicas and voters obeys all rules, under any of the {leaders} possible "
            f"leaders (proved by {proof})",
        ),
        certificate=document,
    )


def _delegate(problem: Problem, options: Options, reason: str, name: str) -> Plan:
    """Solve by another method a problem that the engine does not support, and note this.

    What took the time limit here counts there: the engine has not started.
    """
    plan = run(load_method(name), problem, dataclasses.replace(options, settings={}))
    note = f"solved by {name!r}: {reason}"
    plan = plan.replace(method=METHOD.name, notes=(note, *plan.notes))
    return certified_or_named(plan, repr(name)) if options.settings["certificate"] else plan


METHOD = Method(
    name="exact",
    call=solve,
    summary="tier 3 with proof: Lagrangean branch and bound over leaders and replicas",
    exact=True,
    objectives=("mean", "measures", "waits", "witnesses"),
    cost_parts=("near reads", "votes", "moves"),
    refuses=refuses,
    settings={"certificate": Setting(True, "keep what re-proves the bound (plan.certificate)")},
    complexity="exponential at worst; O(|C|·|S|) for each of the bounds it counts",
    reference="Narula, Ogbu and Samuelsson 1977; Wagner and Falkson 1975; this package",
    session=Session,
)
