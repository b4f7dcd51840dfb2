"""The public conformance suite: what any method must do to be called one.

    from placement.testing import check_method

    def test_my_method():
        check_method("my-method")

or, one test per check::

    @pytest.mark.parametrize("check", placement.testing.CHECKS, ids=lambda check: check.__name__)
    def test_my_method(check):
        check(placement.methods.load_method("my-method"), seed=0)

Small worlds of every kind (ties, one site, asymmetric RTTs, zero demand, pins, nested and crossing
failure domains, flexible quorums, ranges, budgets, decay, RTTs that vary) are put to the method and
its answers are held against all configurations there are. A method may refuse a world, with a
reason; it may not answer it wrongly.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from placement.configuration import Configuration
from placement.constraints import Diversity
from placement.errors import InputError, PlacementError, UnsupportedError
from placement.feasibility import reasons_infeasible, violations
from placement.instance import Instance, Prices
from placement.methods import Method, Options, Progress, load_method, refusal, run
from placement.plan import Plan, objective
from placement.problem import Problem
from placement.status import Status, Termination

__all__ = [
    "CHECKS",
    "ConformanceError",
    "World",
    "check_method",
    "every_configuration",
    "optimum",
    "worlds",
]

_TOLERANCE = 1e-9


class ConformanceError(AssertionError):
    """A method breaks the contract; the message names the check and the world."""


@dataclass(frozen=True, eq=False)
class World:
    """A small problem with a name that says what is special about it."""

    name: str
    problem: Problem


def random_instance(
    seed: int,
    *,
    sites: int = 6,
    clients: int = 7,
    ties: bool = False,
    intervals: int = 1,
    varying: bool = False,
    prices: bool = False,
    scale: float = 1.0,
) -> Instance:
    """Seeded small instance with asymmetric RTTs, regions inside continents, crossing providers."""
    rng = np.random.default_rng(seed)

    def rtt(*shape: int) -> np.ndarray:
        values = rng.integers(1, 4, shape) if ties else rng.uniform(1, 200, shape)
        return np.asarray(values, dtype=float) * scale

    periods = (intervals,) if varying else ()
    site_rtt = rtt(*periods, sites, sites)
    site_rtt[..., np.arange(sites), np.arange(sites)] = 0
    issues = rng.random((clients, 5)) < 0.7
    counts = rng.integers(0, 50, (intervals, clients, 5)).astype(float) * issues
    counts[..., 0, 0] += 1
    return Instance(
        sites=tuple(f"site-{i}" for i in range(sites)),
        clients=tuple(f"client-{i}" for i in range(clients)),
        client_rtt=rtt(*periods, clients, sites),
        site_rtt=site_rtt,
        counts=counts,
        domains={
            "region": tuple(f"region-{i // 2}" for i in range(sites)),
            "continent": tuple(f"continent-{i // 4}" for i in range(sites)),
            "provider": tuple(f"provider-{i % 2}" for i in range(sites)),
        },
        prices=Prices(
            storage=rng.integers(1, 9, sites).astype(float),
            transfer=np.where(np.eye(sites), 0, rng.integers(0, 5, (sites, sites))).astype(float),
            written_gb=2.0,
        )
        if prices
        else None,
        # drawn apart, so that the other numbers do not depend on them
        site_coordinates=_on_the_globe(seed, sites),
        client_coordinates=_on_the_globe(seed + 1, clients),
        name=f"random-{seed}",
    )


def _on_the_globe(seed: int, count: int) -> np.ndarray:
    """Latitudes and longitudes in degrees, shape (count, 2)."""
    return np.random.default_rng([seed, count]).uniform([-60, -180], [70, 180], (count, 2))


@lru_cache(maxsize=8)
def worlds(seed: int = 0) -> tuple[World, ...]:
    """Tier 3 problems of every kind the model knows, small enough to enumerate."""
    plain = random_instance(seed)
    tied = random_instance(seed + 1, ties=True)
    priced = random_instance(seed + 2, prices=True)
    site = plain.sites
    reads = np.zeros((1, 7, 5))
    reads[0, :, 0] = np.arange(7)
    writes = np.zeros((1, 7, 5))
    writes[0, 2, 3:] = 5
    bounded = np.zeros((1, 7, 5))
    bounded[0, :, 1] = 1 + np.arange(7)
    lonely = random_instance(seed + 3, sites=1, clients=3)
    crowd = random_instance(seed + 4, sites=5, clients=1)
    days = random_instance(seed + 5, intervals=3)
    moving = random_instance(seed + 6, sites=5, clients=4, intervals=3, varying=True)
    equal = plain.replace(
        client_rtt=np.full((7, 6), 10.0), site_rtt=np.where(np.eye(6, dtype=bool), 0.0, 10.0)
    )
    ask: list[tuple[str, Instance, dict[str, object]]] = [
        ("plain", plain, {"replicas": 4, "voters": 3}),
        ("ties", tied, {"replicas": 4, "voters": 3}),
        ("all RTTs equal", equal, {"replicas": 3, "voters": 3}),
        ("one site", lonely, {"replicas": 1, "voters": 1}),
        ("one client", crowd, {"replicas": 3, "voters": 3}),
        ("every site a replica", plain, {"replicas": 6, "voters": 5}),
        ("one replica", plain, {"replicas": 1, "voters": 1}),
        ("even voters", plain, {"replicas": 4, "voters": 4}),
        ("two voters", tied, {"replicas": 3, "voters": 2}),
        ("weak reads only", plain.replace(counts=reads), {"replicas": 3, "voters": 1}),
        ("writes of one client only", plain.replace(counts=writes), {"replicas": 4, "voters": 3}),
        ("bounded reads only", plain.replace(counts=bounded), {"replicas": 4, "voters": 3}),
        ("huge counts", plain.replace(counts=plain.counts * 1e12), {"replicas": 3, "voters": 3}),
        ("tiny RTTs", random_instance(seed, scale=1e-3), {"replicas": 3, "voters": 3}),
        ("small flexible quorum", plain, {"replicas": 5, "voters": 4, "quorum": 1}),
        ("full flexible quorum", plain, {"replicas": 4, "voters": 3, "quorum": 3}),
        ("range of replicas", plain.replace(counts=bounded), {"replicas": (3, 5), "voters": 3}),
        (
            "pins",
            plain,
            {"replicas": 4, "voters": 3, "pinned": [site[5]], "pinned_voters": [site[3]]},
        ),
        ("forbidden", plain, {"replicas": 3, "voters": 3, "forbidden": [site[0], site[2]]}),
        ("non-voters", plain, {"replicas": 4, "voters": 3, "non_voters": [site[1], site[4]]}),
        ("fixed leader", plain, {"replicas": 4, "voters": 3, "leader": site[3]}),
        ("leader candidates", tied, {"replicas": 4, "voters": 3, "leaders": [site[1], site[5]]}),
        ("survive a region", plain, {"replicas": 4, "voters": 3, "survive": "region"}),
        (
            "survive a continent",
            plain,
            {"replicas": 5, "voters": 4, "quorum": 2, "diversity": Diversity("continent", cap=3)},
        ),
        (
            "nested caps",
            plain,
            {
                "replicas": 5,
                "voters": 3,
                "diversity": [Diversity("region", cap=1), Diversity("continent", cap=2)],
            },
        ),
        (
            "nested caps on replicas",
            tied,
            {
                "replicas": 4,
                "voters": 3,
                "diversity": [
                    Diversity("region", "replicas", cap=2),
                    Diversity("continent", "replicas", cap=3),
                ],
            },
        ),
        (
            "caps on both roles",
            plain,
            {
                "replicas": 4,
                "voters": 3,
                "diversity": [
                    Diversity("region", "replicas", cap=2),
                    Diversity("region", "voters", cap=1),
                ],
            },
        ),
        (
            "minimum domains of voters",
            plain,
            {
                "replicas": 4,
                "voters": 3,
                "diversity": [
                    Diversity("region", min_domains=2),
                    Diversity("continent", min_domains=2),
                ],
            },
        ),
        (
            "minimum domains of replicas",
            tied,
            {
                "replicas": 3,
                "voters": 1,
                "diversity": [Diversity("region", "replicas", min_domains=3)],
            },
        ),
        (
            "crossing levels",
            plain,
            {
                "replicas": 5,
                "voters": 4,
                "diversity": [Diversity("region", cap=2), Diversity("provider", cap=2)],
            },
        ),
        (
            "crossing levels of replicas",
            tied,
            {
                "replicas": 4,
                "voters": 3,
                "diversity": [
                    Diversity("region", "replicas", cap=2),
                    Diversity("provider", "replicas", cap=2),
                    Diversity("continent", min_domains=2),
                ],
            },
        ),
        ("budget", priced, {"replicas": 4, "voters": 3, "budget": 40.0}),
        ("cost in the objective", priced, {"replicas": (3, 5), "voters": 3, "cost_weight": 300.0}),
        ("decay", days, {"replicas": 4, "voters": 3, "decay": 2.0}),
        ("last interval only", days, {"replicas": 3, "voters": 3, "decay": math.inf}),
        ("RTTs that vary", moving, {"replicas": 4, "voters": 3, "decay": 2.0}),
        ("RTTs that vary, with rules", moving, {"replicas": 4, "voters": 3, "survive": "region"}),
        (
            "infeasible: two regions for three voters",
            plain,
            {"replicas": 3, "voters": 3, "survive": "region", "forbidden": [site[4], site[5]]},
        ),
        (
            "infeasible: rules in conflict",
            plain,
            {
                "replicas": 3,
                "voters": 3,
                "pinned": [site[0], site[1]],
                "diversity": [Diversity("region", min_domains=3)],
            },
        ),
        ("infeasible: budget", priced, {"replicas": 4, "voters": 3, "budget": 3.0}),
    ]
    return tuple(World(name, Problem(instance, **kw)) for name, instance, kw in ask)  # type: ignore[arg-type]  # typed by name above


def every_configuration(problem: Problem) -> Iterator[Configuration]:
    """Every configuration that obeys all constraints, by plain enumeration."""
    rules = problem.rules
    sites = range(len(problem.instance.sites))
    for size in range(rules.replicas_min, rules.replicas_max + 1):
        for replicas in itertools.combinations(sites, size):
            for voters in itertools.combinations(replicas, rules.voters):
                for leader in voters:
                    configuration = Configuration(leader, voters, replicas)
                    if not violations(problem, configuration):
                        yield configuration


def optimum(problem: Problem) -> float:
    """Least objective of all configurations, +∞ when there is none; for small problems only."""
    return min((objective(problem, c) for c in every_configuration(problem)), default=math.inf)


@lru_cache(maxsize=512)
def _optimum(world: World) -> float:
    return optimum(world.problem)


@lru_cache(maxsize=64)
def _lowered(method: Method, seed: int) -> tuple[World, ...]:
    """The worlds a method takes: as they are, or with replicas (and voters) given."""
    taken = []
    for world in worlds(seed):
        for problem in (world.problem, *_with_less_freedom(world.problem)):
            if refusal(method, problem) is None:
                taken.append(World(f"{world.name} (tier {problem.tier})", problem))
                break
    return tuple(taken)


def _with_less_freedom(problem: Problem) -> Iterator[Problem]:
    if reasons_infeasible(problem):
        return
    found = next(every_configuration(problem), None)
    if found is None:
        return
    names = problem.instance.sites
    replicas = [names[i] for i in found.replicas]
    yield problem.replace(replicas=replicas)
    yield problem.replace(replicas=replicas, voters=[names[i] for i in found.voters])


def _ask(method: Method, world: World, options: Options | None = None) -> Plan:
    try:
        return run(method, world.problem, options or Options())
    except PlacementError as error:
        raise ConformanceError(
            f"{method.name!r} on the world {world.name!r} raised {type(error).__name__}: {error}"
        ) from error


def _demand(condition: bool, method: Method, world: World, message: str) -> None:
    if not condition:
        raise ConformanceError(f"{method.name!r} on the world {world.name!r}: {message}")


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
    if plan.found:
        _demand(math.isfinite(best), method, world, "found a plan although none exists")
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


def check_takes_something(method: Method, seed: int = 0) -> None:
    """A method that refuses every world is of no use."""
    if not _lowered(method, seed):
        raise ConformanceError(f"{method.name!r} refuses every world")


def check_refusals_have_reasons(method: Method, seed: int = 0) -> None:
    """What a method refuses it refuses with a reason, as an UnsupportedError."""
    for world in worlds(seed):
        reason = refusal(method, world.problem)
        if reason is None:
            continue
        _demand(len(reason.split()) >= 3, method, world, f"refuses with the reason {reason!r}")
        try:
            run(method, world.problem, Options())
        except UnsupportedError:
            continue
        _demand(False, method, world, "refuses, yet answers")


def check_answers_are_true(method: Method, seed: int = 0) -> None:
    """Feasible plans, honest status and bound, an answer whenever there is one."""
    for world in _lowered(method, seed):
        plan = _ask(method, world)
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
    """Two runs with one seed give one plan."""
    for world in _lowered(method, seed):
        first = _ask(method, world, Options(seed=7))
        second = _ask(method, world, Options(seed=7))
        _demand(
            first.configuration == second.configuration,
            method,
            world,
            f"two runs with seed 7 differ: {first!r} and {second!r}",
        )


def check_no_time(method: Method, seed: int = 0) -> None:
    """With no time at all: no exception, no false claim."""
    for world in _lowered(method, seed):
        _check_honest(method, world, _ask(method, world, Options(time_limit=0.0)))


def check_start(method: Method, seed: int = 0) -> None:
    """A feasible start is taken, and never made worse."""
    for world in _lowered(method, seed):
        start = next(every_configuration(world.problem), None)
        if start is None:
            continue
        plan = _ask(method, world, Options(start=start))
        _check_honest(method, world, plan)
        if method.exact:
            _demand(plan.found, method, world, "loses the start it was given")


def check_reports(method: Method, seed: int = 0) -> None:
    """Every report on the way is true: bounds below the optimum, incumbents above and falling."""
    for world in _lowered(method, seed):
        reports: list[Progress] = []
        _ask(method, world, Options(progress=reports.append))
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
    """Ctrl-C gives the best so far with an honest bound instead of a traceback."""

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
        if _has_tied_clients(world.problem):
            continue  # nearest breaks ties by site order, which a permutation changes
        one, other = _ask(method, world), _ask(method, World(world.name + ", shuffled", shuffled))
        _demand(
            _close(one.objective, other.objective),
            method,
            world,
            f"objective {one.objective!r} becomes {other.objective!r} when sites are permuted",
        )


def _has_tied_clients(problem: Problem) -> bool:
    ordered = np.sort(problem.instance.client_rtt, axis=-1)
    return bool((np.diff(ordered, axis=-1) == 0).any())


def _shuffle(problem: Problem, rng: np.random.Generator) -> Problem:
    instance = problem.instance
    s = rng.permutation(len(instance.sites))
    c = rng.permutation(len(instance.clients))
    prices = instance.prices
    if prices is not None:
        transfer = None if prices.transfer is None else prices.transfer[np.ix_(s, s)]
        prices = Prices(prices.storage[s], transfer, prices.written_gb, prices.currency)
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
    """A method changes nothing of what it is given."""
    for world in _lowered(method, seed):
        before = world.problem.instance.fingerprint
        arrays = [a.copy() for a in _arrays(world.problem)]
        _ask(method, world)
        fresh = world.problem.instance.replace().fingerprint
        _demand(before == fresh, method, world, "changed the instance")
        same = all(
            np.array_equal(a, b) for a, b in zip(arrays, _arrays(world.problem), strict=True)
        )
        _demand(same, method, world, "changed the demand or the rules")


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


CHECKS: tuple[Callable[..., None], ...] = (
    check_takes_something,
    check_refusals_have_reasons,
    check_answers_are_true,
    check_same_seed_same_plan,
    check_no_time,
    check_start,
    check_reports,
    check_interrupt,
    check_order_of_sites_is_irrelevant,
    check_leaves_the_problem_alone,
    check_unknown_setting,
)
"""All checks: callables (method, seed) that raise ConformanceError."""


def check_method(method: Method | str, *, seed: int = 0) -> None:
    """Run every conformance check on a method.

    Parameters
    ----------
    method
        The method, or the name it is registered under.
    seed
        Of the worlds; another seed gives other worlds.

    Raises
    ------
    ConformanceError
        With the first check that fails: method, world, and what was wrong.
    """
    chosen = load_method(method) if isinstance(method, str) else method
    for check in CHECKS:
        check(chosen, seed=seed)
