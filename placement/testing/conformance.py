"""The checks of the conformance suite."""

from __future__ import annotations

import functools
import math
import re
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from placement.errors import InputError, LimitError, PlacementError, UnitsWarning, UnsupportedError
from placement.feasibility.feasible_plans import reasons_infeasible, violations
from placement.methods.options import Options, Progress
from placement.methods.registry import Method, available, load_method, refusal, run
from placement.model.changed_instance import at_sites
from placement.model.configuration import Configuration
from placement.plan import Plan
from placement.problem import Problem
from placement.support.status import Status, Termination
from placement.testing.small_worlds import World, every_configuration, large_worlds, optimum, worlds

_TOLERANCE = 1e-9

_GRACE = 3.0
"""Seconds of processor time that a method may need beyond its limit: model building, one step."""


class ConformanceError(AssertionError):
    """A method breaks the contract; the message names the check and the test network."""


@dataclass(frozen=True)
class _Case:
    """A method on a test network, with what was found out about it."""

    method: Method
    world: World

    def demand(self, condition: bool, message: str) -> None:
        if not condition:
            raise ConformanceError(
                f"{self.method.name!r} on the test network {self.world.name!r}: {message}"
            )

    @property
    def problem(self) -> Problem:
        return self.world.problem

    @property
    def optimum(self) -> float:
        return _optimum(self.world)

    @property
    def has_plan(self) -> bool:
        return math.isfinite(self.optimum)

    def ask(self, options: Options | None = None) -> Plan:
        try:
            return run(self.method, self.problem, options or Options())
        except PlacementError as error:
            name, kind = self.world.name, type(error).__name__
            raise ConformanceError(
                f"{self.method.name!r} on the test network {name!r} raised {kind}: {error}"
            ) from error

    def not_below_optimum(self, value: float) -> bool:
        return value >= self.optimum or _close(value, self.optimum)

    def valid_bound(self, bound: float) -> bool:
        return bound <= self.optimum or _close(bound, self.optimum)

    def check_honest(self, plan: Plan) -> None:
        """Hold one plan against all configurations there are."""
        best, value = self.optimum, plan.objective
        self.demand(
            self.valid_bound(plan.bound), f"bound {plan.bound!r} is above the optimum {best!r}"
        )
        if plan.configuration is not None:
            self.demand(self.has_plan, "found a plan although none exists")
            self.demand(math.isfinite(value), "the plan has no finite objective")
            broken = "; ".join(violations(self.problem, plan.configuration))
            self.demand(not broken, f"the plan breaks constraints: {broken}")
            below = f"objective {value!r} is below the optimum {best!r}"
            self.demand(self.not_below_optimum(value), below)
        if plan.status is Status.OPTIMAL:
            why = f"says optimal at {value!r}, but the optimum is {best!r}"
            self.demand(_close(value, best), why)
        if plan.status is Status.INFEASIBLE:
            self.demand(not self.has_plan, "says infeasible, but a plan exists")
            self.demand(bool(plan.reasons), "says infeasible without a reason")


@lru_cache(maxsize=512)
def _optimum(world: World) -> float:
    return optimum(world.problem)


@lru_cache(maxsize=64)
def _lowered(method: Method, seed: int) -> tuple[_Case, ...]:
    """Test networks that a method takes: as they are, or with replicas (and voters) given."""
    forms = (
        next((form for form in _forms(world) if refusal(method, form.problem) is None), None)
        for world in worlds(seed)
    )
    return tuple(_Case(method, form) for form in forms if form is not None)


@lru_cache(maxsize=512)
def _forms(world: World) -> tuple[World, ...]:
    """A test network as it is, with replicas given, and with voters given too."""
    problem = world.problem
    found = _first(world)
    forms = [problem]
    if found is not None and not reasons_infeasible(problem):
        names = problem.instance.sites
        replicas = [names[i] for i in found.replicas]
        forms.append(problem.replace(replicas=replicas))
        forms.append(problem.replace(replicas=replicas, voters=[names[i] for i in found.voters]))
    return tuple(World(f"{world.name} (tier {form.tier})", form) for form in forms)


@lru_cache(maxsize=512)
def _first(world: World) -> Configuration | None:
    """The first configuration that obeys all constraints, None when there is none."""
    return next(every_configuration(world.problem), None)


@lru_cache(maxsize=256)
def _plain_answer(case: _Case) -> tuple[Plan, bool]:
    """The answer without options, and whether the method left the problem as it was."""
    before = case.problem.instance.fingerprint
    arrays = [a.copy() for a in _arrays(case.problem)]
    plan = case.ask()
    same = before == case.problem.instance.replace().fingerprint and all(
        np.array_equal(a, b) for a, b in zip(arrays, _arrays(case.problem), strict=True)
    )
    return plan, same


@lru_cache(maxsize=256)
def _reported_answer(case: _Case) -> tuple[Plan, tuple[Progress, ...]]:
    """The answer to one who listens, and all reports on the way."""
    reports: list[Progress] = []
    return case.ask(Options(progress=reports.append)), tuple(reports)


def _close(one: float, other: float) -> bool:
    return one == other or abs(one - other) <= _TOLERANCE * max(abs(one), abs(other))


_ADVICE = re.compile(r"(?:use|such as) ((?:'[a-z0-9-]+'(?:, or |, | or )?)+)(?! ?without)")
"""Names of methods in a refusal: "use 'exact', 'sets' or 'exhaustive'"."""


def _check_refusal(case: _Case, reason: str) -> None:
    """Check that the methods which a refusal names do take the question."""
    case.demand(len(reason.split()) >= 3, f"refuses with the reason {reason!r}")
    for name in re.findall(r"'([a-z0-9-]+)'", " ".join(_ADVICE.findall(reason))):
        if name not in available():
            continue
        why = _refused(load_method(name), case.problem)
        case.demand(why is None, f"refuses with {reason!r}, but {name!r}: {why}")


def _refused(method: Method, problem: Problem) -> str | None:
    """Return why a method does not take a question, asked without running it, and with."""
    reason = refusal(method, problem)
    if reason is not None:
        return reason
    try:
        run(method, problem, Options(time_limit=0.0))
    except UnsupportedError as error:
        return str(error)
    except LimitError:
        return None
    return None


def check_question(
    method: Method | str, world: World, options: Options | None = None
) -> Plan | None:
    """Check one call: a true plan, or a refusal with a way out.

    The plan is held against all configurations: its objective, its bound and its status. A refusal
    may name only methods that take the question.

    Parameters
    ----------
    method
        The method, or the name it is registered under.
    world
        The question, small enough to enumerate.
    options
        Limits, start and listener of the call.

    Returns
    -------
    Plan | None
        The plan; None where the method refuses the question, or its size.

    Raises
    ------
    ConformanceError
        With what was wrong.
    """
    chosen = load_method(method) if isinstance(method, str) else method
    case = _Case(chosen, world)
    reason = refusal(chosen, world.problem)
    if reason is not None:
        _check_refusal(case, reason)
        return None
    try:
        plan = case.ask(options)
    except ConformanceError as error:
        if isinstance(error.__cause__, UnsupportedError):
            _check_refusal(case, str(error.__cause__))
        elif not isinstance(error.__cause__, LimitError):
            raise
        return None
    case.check_honest(plan)
    return plan


def check_takes_something(method: Method, seed: int = 0) -> None:
    """A method that refuses every test network is of no use."""
    if not _lowered(method, seed):
        raise ConformanceError(f"{method.name!r} refuses every test network")


def check_refusals_have_reasons(method: Method, seed: int = 0) -> None:
    """Check that a method refuses a problem with a reason, as an UnsupportedError."""
    for world in worlds(seed):
        reason = refusal(method, world.problem)
        if reason is None:
            continue
        case = _Case(method, world)
        _check_refusal(case, reason)
        try:
            run(method, world.problem, Options())
        except UnsupportedError:
            continue
        case.demand(False, "refuses, yet answers")


def check_answers_are_true(method: Method, seed: int = 0) -> None:
    """Feasible plans, valid status and bound, an answer whenever there is one."""
    for case in _lowered(method, seed):
        plan, _ = _plain_answer(case)
        case.demand(plan.method != "", "the plan does not name its method")
        case.check_honest(plan)
        if case.has_plan:
            case.demand(plan.found, "found nothing, but a plan exists")
        else:
            case.demand(not plan.found, "found a plan where none exists")
        if method.exact:
            wanted = Status.OPTIMAL if case.has_plan else Status.INFEASIBLE
            case.demand(plan.status is wanted, f"exact, but says {plan.status}")


def check_same_seed_same_plan(method: Method, seed: int = 0) -> None:
    """Two runs with one seed give one plan, also where somebody listens."""
    for case in _lowered(method, seed):
        first, second = _plain_answer(case)[0], _reported_answer(case)[0]
        differ = f"two runs with seed 0 differ: {first!r} and {second!r}"
        case.demand(first.configuration == second.configuration, differ)


def check_no_time(method: Method, seed: int = 0) -> None:
    """Check a call with a time limit of zero: no exception, no false claim."""
    for case in _lowered(method, seed):
        case.check_honest(case.ask(Options(time_limit=0.0)))


def check_time_limits(method: Method, seed: int = 0) -> None:
    """Limits of 0 and 0.2 s on large test networks bound the processor time."""
    run(method, _lowered(method, seed)[0].problem, Options())  # imports are not counted
    for world in large_worlds(seed):
        if refusal(method, world.problem) is not None:
            continue
        case = _Case(method, world)
        for limit in (0.0, 0.2):
            before = time.process_time()
            try:
                plan = run(method, world.problem, Options(time_limit=limit))
            except LimitError:  # a limit on the size is a refusal
                break
            spent = time.process_time() - before
            late = f"took {spent:.1f} s of processor time with a limit of {limit} s"
            case.demand(spent <= limit + _GRACE, late)
            case.demand(plan.bound <= plan.objective, "the bound is above the value")


def check_start(method: Method, seed: int = 0) -> None:
    """A feasible start is taken, and never made worse."""
    for case in _lowered(method, seed):
        start = _first(case.world)
        if start is None:
            continue
        plan = case.ask(Options(start=start))
        case.check_honest(plan)
        if method.exact:
            case.demand(plan.found, "loses the start it was given")


def check_start_of_a_similar_problem(method: Method, seed: int = 0) -> None:
    """A start that breaks constraints is repaired or ignored, and the plan says so.

    The start on one test network has too few sites, on the next too many.
    """
    for number, case in enumerate(_lowered(method, seed)):
        everywhere = range(len(case.problem.instance.sites))
        starts = [Configuration.of(0, [0], [0]), Configuration.of(0, everywhere, everywhere)]
        broken = [start for start in starts if violations(case.problem, start)]
        if not broken:
            continue
        start = broken[number % len(broken)]
        plan = case.ask(Options(start=start))
        case.check_honest(plan)
        case.demand(plan.found or not case.has_plan, f"found nothing from {start}")
        said = any("the start breaks constraints" in note for note in plan.notes)
        known = bool(reasons_infeasible(case.problem))  # then no method is called at all
        case.demand(said or known, f"does not say that {start} is infeasible")


def check_reports(method: Method, seed: int = 0) -> None:
    """Every report on the way is true: bounds below the optimum, incumbents above and falling."""
    for case in _lowered(method, seed):
        best, last = case.optimum, math.inf
        for report in _reported_answer(case)[1]:
            bound, value = report.bound, report.incumbent
            above = f"reports the bound {bound!r} above the optimum {best!r}"
            case.demand(case.valid_bound(bound), above)
            below = f"reports the incumbent {value!r} below the optimum {best!r}"
            case.demand(case.not_below_optimum(value), below)
            falling = value <= last or _close(value, last)
            case.demand(falling, "reports an incumbent that got worse")
            last = value


def check_interrupt(method: Method, seed: int = 0) -> None:
    """Ctrl-C gives the best so far with a valid bound instead of a traceback."""

    def interrupt(report: Progress) -> None:
        del report
        raise KeyboardInterrupt

    for case in _lowered(method, seed):
        plan = case.ask(Options(progress=interrupt))
        case.check_honest(plan)
        timed_out = plan.termination is Termination.TIME_LIMIT
        case.demand(not timed_out, "calls an interrupt a time limit")


def check_order_of_sites_is_irrelevant(method: Method, seed: int = 0) -> None:
    """Permuting sites and clients changes nothing that an exact method returns but tie breaks."""
    if not method.exact:
        return
    rng = np.random.default_rng(seed)
    for case in _lowered(method, seed):
        shuffled = _shuffle(case.problem, rng)
        ordered = np.sort(case.problem.instance.client_rtt, axis=-1)
        if (np.diff(ordered, axis=-1) == 0).any():
            continue  # nearest breaks ties by site order, which a permutation changes
        one = _plain_answer(case)[0].objective
        other = _Case(method, World(case.world.name + ", shuffled", shuffled)).ask().objective
        changed = f"objective {one!r} becomes {other!r} when sites are permuted"
        case.demand(_close(one, other), changed)


def _shuffle(problem: Problem, rng: np.random.Generator) -> Problem:
    instance = problem.instance
    s = rng.permutation(len(instance.sites))
    c = rng.permutation(len(instance.clients))
    moved = at_sites(instance, s)
    return problem.replace(
        instance=moved.replace(
            clients=tuple(instance.clients[i] for i in c),
            client_rtt=moved.client_rtt[..., c, :],
            counts=instance.counts[:, c],
            client_coordinates=None,
        )
    )


def check_leaves_the_problem_alone(method: Method, seed: int = 0) -> None:
    """Check that a method changes none of its arguments."""
    for case in _lowered(method, seed):
        _, same = _plain_answer(case)
        case.demand(same, "changed the instance, the demand or the rules")


def _arrays(problem: Problem) -> list[np.ndarray]:
    demand, rules = problem.demand, problem.rules
    return [
        demand.near, demand.relay, demand.direct, demand.quorum, rules.may_hold, rules.must_hold,
        rules.may_vote, rules.must_vote, rules.may_lead,
    ]  # fmt: skip


def check_unknown_setting(method: Method, seed: int = 0) -> None:
    """A setting that does not exist is an error, not swallowed."""
    case = _lowered(method, seed)[0]
    try:
        run(method, case.problem, Options(settings={"no such setting": 1}))
    except InputError:
        return
    case.demand(False, "accepts a setting that does not exist")


def _quietly(check: Callable[..., None]) -> Callable[..., None]:
    """Return the check without warnings about units: RTTs of generated networks are arbitrary."""

    @functools.wraps(check)
    def quiet(method: Method, seed: int = 0) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnitsWarning)
            check(method, seed)

    return quiet


CHECKS: tuple[Callable[..., None], ...] = tuple(
    _quietly(check)
    for check in (
        check_takes_something,
        check_refusals_have_reasons,
        check_answers_are_true,
        check_same_seed_same_plan,
        check_no_time,
        check_time_limits,
        check_start,
        check_start_of_a_similar_problem,
        check_reports,
        check_interrupt,
        check_order_of_sites_is_irrelevant,
        check_leaves_the_problem_alone,
        check_unknown_setting,
    )
)
"""All checks: callables (method, seed) that raise ConformanceError."""


def check_method(method: Method | str, *, seed: int = 0) -> None:
    """Run every conformance check on a method.

    Parameters
    ----------
    method
        The method, or the name it is registered under.
    seed
        Seed of the test networks; another seed gives others.

    Raises
    ------
    ConformanceError
        With the first check that fails: method, test network, and what was wrong.
    """
    chosen = load_method(method) if isinstance(method, str) else method
    for check in CHECKS:
        check(chosen, seed=seed)
