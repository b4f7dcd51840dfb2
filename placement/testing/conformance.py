"""The checks of the conformance suite."""

from __future__ import annotations

import functools
import math
import re
import time
import warnings
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from placement.errors import InputError, LimitError, PlacementError, UnitsWarning, UnsupportedError
from placement.feasibility.feasible_plans import reasons_infeasible, violations
from placement.methods.options import Options, Progress
from placement.methods.registry import Method, available, load_method, refusal, run
from placement.model.configuration import Configuration
from placement.plan import Plan
from placement.problem import Problem
from placement.support.status import Status, Termination
from placement.testing.small_worlds import World, every_configuration, large_worlds, optimum, worlds

__all__ = ["CHECKS", "ConformanceError", "check_method", "check_question"]

_TOLERANCE = 1e-9

_GRACE = 3.0
"""Seconds of processor time that a method may need beyond its limit: model building, one step."""


class ConformanceError(AssertionError):
    """A method breaks the contract; the message names the check and the test network."""


@lru_cache(maxsize=512)
def _optimum(world: World) -> float:
    return optimum(world.problem)


@lru_cache(maxsize=64)
def _lowered(method: Method, seed: int) -> tuple[World, ...]:
    """Test networks that a method takes: as they are, or with replicas (and voters) given."""
    taken = []
    for world in worlds(seed):
        for form in _forms(world):
            if refusal(method, form.problem) is None:
                taken.append(form)
                break
    return tuple(taken)


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


def _ask(method: Method, world: World, options: Options | None = None) -> Plan:
    try:
        return run(method, world.problem, options or Options())
    except PlacementError as error:
        raise _raised(method, world, error) from error


def _raised(method: Method, world: World, error: PlacementError) -> ConformanceError:
    return ConformanceError(
        f"{method.name!r} on the test network {world.name!r} raised {type(error).__name__}: {error}"
    )


@lru_cache(maxsize=256)
def _plain_answer(method: Method, world: World) -> tuple[Plan, bool]:
    """The answer without options, and whether the method left the problem as it was."""
    before = world.problem.instance.fingerprint
    arrays = [a.copy() for a in _arrays(world.problem)]
    plan = _ask(method, world)
    same = before == world.problem.instance.replace().fingerprint and all(
        np.array_equal(a, b) for a, b in zip(arrays, _arrays(world.problem), strict=True)
    )
    return plan, same


@lru_cache(maxsize=256)
def _reported_answer(method: Method, world: World) -> tuple[Plan, tuple[Progress, ...]]:
    """The answer to one who listens, and all reports on the way."""
    reports: list[Progress] = []
    return _ask(method, world, Options(progress=reports.append)), tuple(reports)


def _demand(condition: bool, method: Method, world: World, message: str) -> None:
    if not condition:
        raise ConformanceError(f"{method.name!r} on the test network {world.name!r}: {message}")


def _close(one: float, other: float) -> bool:
    return one == other or abs(one - other) <= _TOLERANCE * max(abs(one), abs(other))


def _check_honest(method: Method, world: World, plan: Plan) -> None:
    """Hold one plan against all configurations there are."""
    best = _optimum(world)
    _demand(
        plan.bound <= best or _close(plan.bound, best),
        method,
        world,
        f"bound {plan.bound!r} is above the optimum {best!r}",
    )
    if plan.configuration is not None:
        _demand(math.isfinite(best), method, world, "found a plan although none exists")
        _demand(math.isfinite(plan.objective), method, world, "the plan has no finite objective")
        broken = "; ".join(violations(world.problem, plan.configuration))
        _demand(not broken, method, world, f"the plan breaks constraints: {broken}")
        _demand(
            plan.objective >= best or _close(plan.objective, best),
            method,
            world,
            f"objective {plan.objective!r} is below the optimum {best!r}",
        )
    if plan.status is Status.OPTIMAL:
        _demand(
            _close(plan.objective, best),
            method,
            world,
            f"says optimal at {plan.objective!r}, but the optimum is {best!r}",
        )
    if plan.status is Status.INFEASIBLE:
        _demand(math.isinf(best), method, world, "says infeasible, but a plan exists")
        _demand(bool(plan.reasons), method, world, "says infeasible without a reason")


_ADVICE = re.compile(r"(?:use|such as) ((?:'[a-z0-9-]+'(?:, or |, | or )?)+)(?! ?without)")
"""Names of methods in a refusal: "use 'exact', 'sets' or 'exhaustive'"."""


def _check_refusal(method: Method, world: World, reason: str) -> None:
    """Check that the methods which a refusal names do take the question."""
    _demand(len(reason.split()) >= 3, method, world, f"refuses with the reason {reason!r}")
    for name in re.findall(r"'([a-z0-9-]+)'", " ".join(_ADVICE.findall(reason))):
        if name not in available():
            continue
        why = _refused(load_method(name), world, Options(time_limit=0.0))
        _demand(why is None, method, world, f"refuses with {reason!r}, but {name!r}: {why}")


def _refused(method: Method, world: World, options: Options) -> str | None:
    """Return why a method does not take a question, asked without and with its options."""
    reason = refusal(method, world.problem)
    if reason is not None:
        return reason
    try:
        run(method, world.problem, options)
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
    reason = refusal(chosen, world.problem)
    if reason is not None:
        _check_refusal(chosen, world, reason)
        return None
    try:
        plan = run(chosen, world.problem, options or Options())
    except LimitError:
        return None
    except UnsupportedError as error:
        _check_refusal(chosen, world, str(error))
        return None
    except PlacementError as error:
        raise _raised(chosen, world, error) from error
    _check_honest(chosen, world, plan)
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
        _check_refusal(method, world, reason)
        try:
            run(method, world.problem, Options())
        except UnsupportedError:
            continue
        _demand(False, method, world, "refuses, yet answers")


def check_answers_are_true(method: Method, seed: int = 0) -> None:
    """Feasible plans, valid status and bound, an answer whenever there is one."""
    for world in _lowered(method, seed):
        plan, _ = _plain_answer(method, world)
        _demand(plan.method != "", method, world, "the plan does not name its method")
        _check_honest(method, world, plan)
        if math.isfinite(_optimum(world)):
            _demand(plan.found, method, world, "found nothing, but a plan exists")
        else:
            _demand(not plan.found, method, world, "found a plan where none exists")
        if method.exact:
            wanted = Status.OPTIMAL if math.isfinite(_optimum(world)) else Status.INFEASIBLE
            _demand(plan.status is wanted, method, world, f"exact, but says {plan.status}")


def check_same_seed_same_plan(method: Method, seed: int = 0) -> None:
    """Two runs with one seed give one plan, also where somebody listens."""
    for world in _lowered(method, seed):
        first, _ = _plain_answer(method, world)
        second, _ = _reported_answer(method, world)
        _demand(
            first.configuration == second.configuration,
            method,
            world,
            f"two runs with seed 0 differ: {first!r} and {second!r}",
        )


def check_no_time(method: Method, seed: int = 0) -> None:
    """Check a call with a time limit of zero: no exception, no false claim."""
    for world in _lowered(method, seed):
        _check_honest(method, world, _ask(method, world, Options(time_limit=0.0)))


def check_time_limits(method: Method, seed: int = 0) -> None:
    """Limits of 0 and 0.2 s on large test networks bound the processor time."""
    run(method, _lowered(method, seed)[0].problem, Options())  # imports are not counted
    for world in large_worlds(seed):
        if refusal(method, world.problem) is not None:
            continue
        for limit in (0.0, 0.2):
            before = time.process_time()
            try:
                plan = run(method, world.problem, Options(time_limit=limit))
            except LimitError:  # a limit on the size is a refusal
                break
            spent = time.process_time() - before
            _demand(
                spent <= limit + _GRACE,
                method,
                world,
                f"took {spent:.1f} s of processor time with a limit of {limit} s",
            )
            _demand(plan.bound <= plan.objective, method, world, "the bound is above the value")


def check_start(method: Method, seed: int = 0) -> None:
    """A feasible start is taken, and never made worse."""
    for world in _lowered(method, seed):
        start = _first(world)
        if start is None:
            continue
        plan = _ask(method, world, Options(start=start))
        _check_honest(method, world, plan)
        if method.exact:
            _demand(plan.found, method, world, "loses the start it was given")


def check_start_of_a_similar_problem(method: Method, seed: int = 0) -> None:
    """A start that breaks constraints is repaired or ignored, and the plan says so.

    The start on one test network has too few sites, on the next too many.
    """
    for number, world in enumerate(_lowered(method, seed)):
        problem = world.problem
        everywhere = range(len(problem.instance.sites))
        starts = [Configuration.of(0, [0], [0]), Configuration.of(0, everywhere, everywhere)]
        broken = [start for start in starts if violations(problem, start)]
        if not broken:
            continue
        start = broken[number % len(broken)]
        plan = _ask(method, world, Options(start=start))
        _check_honest(method, world, plan)
        exists = math.isfinite(_optimum(world))
        _demand(plan.found or not exists, method, world, f"found nothing from {start}")
        said = any("the start breaks constraints" in note for note in plan.notes)
        known = bool(reasons_infeasible(problem))  # then no method is called at all
        _demand(said or known, method, world, f"does not say that {start} is infeasible")


def check_reports(method: Method, seed: int = 0) -> None:
    """Every report on the way is true: bounds below the optimum, incumbents above and falling."""
    for world in _lowered(method, seed):
        _, reports = _reported_answer(method, world)
        best = _optimum(world)
        last = math.inf
        for report in reports:
            _demand(
                report.bound <= best or _close(report.bound, best),
                method,
                world,
                f"reports the bound {report.bound!r} above the optimum {best!r}",
            )
            _demand(
                report.incumbent >= best or _close(report.incumbent, best),
                method,
                world,
                f"reports the incumbent {report.incumbent!r} below the optimum {best!r}",
            )
            _demand(
                report.incumbent <= last or _close(report.incumbent, last),
                method,
                world,
                "reports an incumbent that got worse",
            )
            last = report.incumbent


def check_interrupt(method: Method, seed: int = 0) -> None:
    """Ctrl-C gives the best so far with a valid bound instead of a traceback."""

    def interrupt(report: Progress) -> None:
        del report
        raise KeyboardInterrupt

    for world in _lowered(method, seed):
        plan = _ask(method, world, Options(progress=interrupt))
        _check_honest(method, world, plan)
        _demand(
            plan.termination is not Termination.TIME_LIMIT,
            method,
            world,
            "calls an interrupt a time limit",
        )


def check_order_of_sites_is_irrelevant(method: Method, seed: int = 0) -> None:
    """Permuting sites and clients changes nothing that an exact method returns but tie breaks."""
    if not method.exact:
        return
    rng = np.random.default_rng(seed)
    for world in _lowered(method, seed):
        shuffled = _shuffle(world.problem, rng)
        ordered = np.sort(world.problem.instance.client_rtt, axis=-1)
        if (np.diff(ordered, axis=-1) == 0).any():
            continue  # nearest breaks ties by site order, which a permutation changes
        one, _ = _plain_answer(method, world)
        other = _ask(method, World(world.name + ", shuffled", shuffled))
        _demand(
            _close(one.objective, other.objective),
            method,
            world,
            f"objective {one.objective!r} becomes {other.objective!r} when sites are permuted",
        )


def _shuffle(problem: Problem, rng: np.random.Generator) -> Problem:
    instance = problem.instance
    s = rng.permutation(len(instance.sites))
    c = rng.permutation(len(instance.clients))
    prices = instance.prices and instance.prices.at_sites(instance.sites, s.tolist(), c.tolist())
    return problem.replace(
        instance=instance.replace(
            sites=tuple(instance.sites[i] for i in s),
            clients=tuple(instance.clients[i] for i in c),
            client_rtt=instance.client_rtt[..., c[:, None], s],
            site_rtt=instance.site_rtt[..., s[:, None], s],
            counts=instance.counts[:, c],
            domains={k: tuple(v[i] for i in s) for k, v in instance.domains.items()},
            prices=prices,
        )
    )


def check_leaves_the_problem_alone(method: Method, seed: int = 0) -> None:
    """Check that a method changes none of its arguments."""
    for world in _lowered(method, seed):
        _, same = _plain_answer(method, world)
        _demand(same, method, world, "changed the instance, the demand or the rules")


def _arrays(problem: Problem) -> list[np.ndarray]:
    demand, rules = problem.demand, problem.rules
    return [
        demand.near, demand.relay, demand.direct, demand.quorum, rules.may_hold, rules.must_hold,
        rules.may_vote, rules.must_vote, rules.may_lead,
    ]  # fmt: skip


def check_unknown_setting(method: Method, seed: int = 0) -> None:
    """A setting that does not exist is an error, not swallowed."""
    world = _lowered(method, seed)[0]
    try:
        run(method, world.problem, Options(settings={"no such setting": 1}))
    except InputError:
        return
    _demand(False, method, world, "accepts a setting that does not exist")


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
