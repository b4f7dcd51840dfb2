"""Contingency placement by every method, against enumeration."""

import dataclasses
import math
import time
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import placement
from formulations.contingency import exact as loss_method
from formulations.contingency import loss_program
from formulations.contingency import milp as contingency_milp
from formulations.exact import method as exact_method
from placement import Instance, Operation
from placement.contingency.objective import Contingency, solve_within
from placement.errors import InputError
from placement.evaluation.objective import MEAN_LATENCY
from placement.feasibility.feasible_plans import reasons_infeasible, violations
from placement.methods.options import Options
from placement.methods.registry import load_method, run
from placement.model.configuration import Configuration
from placement.model.constraints import Diversity
from placement.plan import Plan
from placement.support.status import Status, Termination
from placement.testing import random_instance
from tests.contingency.test_enumerate import ASKS, GOALS
from tests.effort import examples, seeds
from tests.strategies import problems

BOUNDED = [Contingency(goal="bounded", limit=limit) for limit in (60.0, 90.0, 120.0)]
EXACT = ("milp", "cp-sat")
PROVERS = (*EXACT, "exact")


def answer(name, problem, **options):
    return run(load_method(name), problem, Options(**options))


def same(plan, truth):
    """Return whether a plan equals that of enumeration, second criterion included."""
    assert plan.status == truth.status, (plan.method, plan.notes)
    if truth.found:
        assert plan.objective == pytest.approx(truth.objective, rel=1e-9, abs=1e-9)
        assert plan.score == pytest.approx(truth.score, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    "ask",
    [*ASKS[:2], *(pytest.param(ask, marks=pytest.mark.slow) for ask in ASKS[2:])],
    ids=lambda ask: " ".join(ask),
)
@pytest.mark.parametrize("number", range(len(GOALS) + len(BOUNDED)))
def test_methods_agree_with_enumeration(ask, number):
    goal = [*GOALS, *BOUNDED][number]
    problem = placement.Problem(random_instance(1, clients=3, ties=True), **ask, objective=goal)
    if reasons_infeasible(problem):
        return
    truth = answer("exhaustive", problem)
    for name in PROVERS:
        same(answer(name, problem), truth)
    fast = answer("local-search", problem)
    assert fast.status != "infeasible" or not truth.found
    if fast.found:
        assert fast.objective >= truth.objective * (1 - 1e-9)
        assert fast.bound <= truth.objective * (1 + 1e-9)


KINDS = frozenset(
    {
        "budget",
        "decay",
        "forbidden",
        "leader",
        "leaders",
        "nested_caps",
        "non_voters",
        "pinned",
        "pinned_voters",
        "quorum",
        "range",
        "replica_caps",
        "min_domains",
        "varying_rtt",
    }
)


@given(
    problem=problems(kinds=KINDS, min_sites=4, max_sites=6, max_clients=5, writes=True),
    level=st.sampled_from(["site", "site", "zone"]),
    moves=st.tuples(st.booleans(), st.booleans()),
    goal=st.sampled_from(["worst", "weighted", "bounded"]),
    factor=st.sampled_from([0.9, 1.0, 1.2]),
)
@settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck))
def test_methods_agree_on_generated_problems(problem, level, moves, goal, factor):
    settings_ = {"leader_may_move": moves[0], "clients_move": moves[1]}
    worst = problem.replace(objective=Contingency(level, **settings_))
    truth = answer("exhaustive", worst)
    asked = worst
    if goal == "weighted":
        share = 0.5 / max(1, len(worst.objective.losses(worst)))
        asked = problem.replace(
            objective=Contingency(level, "weighted", probability=share, **settings_)
        )
    elif goal == "bounded" and truth.found:
        limit = factor * truth.objective / problem.demand.operations
        asked = problem.replace(objective=Contingency(level, "bounded", limit=limit, **settings_))
    truth = answer("exhaustive", asked)
    for name in PROVERS:
        same(answer(name, asked), truth)


@pytest.mark.parametrize("seed", range(3))
def test_a_budget_holds_after_losses(seed):
    instance = random_instance(seed, sites=6, clients=6, prices=True)
    problem = placement.Problem(instance, replicas=4, voters=3, objective=Contingency())
    free = answer("exhaustive", problem)
    tight = problem.replace(budget=free.cost * 0.8)
    same(answer("exact", tight), answer("exhaustive", tight))


def test_exact_hands_on_and_says_so():
    problem = placement.Problem(
        random_instance(3), replicas=5, voters=5, objective=Contingency(together=2)
    )
    plan = placement.solve(problem)
    assert plan.method == "exact"
    assert plan.status == "optimal"
    assert plan.notes[0] == "the search over losses was not used: several domains are lost at once"
    assert "solved by 'exhaustive': it minimises over losses" in plan.notes[1]
    same(plan, answer("exhaustive", problem))


@pytest.mark.parametrize("seed", seeds(1, 4))
def test_the_second_criterion_is_found_by_every_exact_method(seed):
    """Worlds full of ties, where many plans share the worst case."""
    problem = placement.Problem(
        random_instance(seed, ties=True), replicas=5, voters=3, objective=Contingency()
    )
    truth = answer("exhaustive", problem)
    for name in PROVERS:
        same(answer(name, problem), truth)


@pytest.mark.parametrize("name", [pytest.param("milp", marks=pytest.mark.slow), "cp-sat", "exact"])
def test_a_plan_as_bad_normally_as_after_a_loss_is_no_end(name):
    """In this world a plan of the best worst case has that normally, and others have less."""
    problem = placement.Problem(
        random_instance(8, ties=True), replicas=3, voters=3, objective=Contingency()
    )
    same(answer(name, problem), answer("exhaustive", problem))


@pytest.mark.parametrize("name", EXACT)
def test_losses_are_added_only_as_needed(name):
    problem = placement.Problem(random_instance(2), replicas=4, voters=3, objective=Contingency())
    plan = answer(name, problem)
    assert plan.status == "optimal"
    assert 1 <= plan.stats["losses"] <= len(problem.objective.losses(problem))


@pytest.mark.slow
def test_safe_proof_of_the_program():
    problem = placement.Problem(random_instance(5), replicas=3, voters=3, objective=Contingency())
    method = load_method("milp")
    plan = run(method, problem, Options(settings={"proof": "safe"}))
    same(plan, answer("exhaustive", problem))


@pytest.mark.parametrize("seed", seeds(1, 4))
def test_a_rule_never_improves_and_losses_never_help(seed):
    instance = random_instance(seed)
    normal = placement.solve(placement.Problem(instance, replicas=4, voters=3))
    problem = normal.problem.replace(objective=Contingency())
    free = answer("milp", problem)
    ruled = answer("milp", problem.replace(diversity=Diversity("region", cap=1)))
    assert free.objective >= normal.score * (1 - 1e-12)
    assert ruled.objective >= free.objective * (1 - 1e-12)


@pytest.mark.parametrize("name", [*EXACT, "local-search"])
def test_time_limits_give_an_honest_plan(name):
    problem = placement.Problem(
        placement.load("world27"), replicas=5, voters=3, objective=Contingency()
    )
    plan = answer(name, problem, time_limit=0.5)
    assert plan.status in ("feasible", "unknown")
    assert plan.bound <= plan.objective


def test_the_program_reports_while_it_is_built(monkeypatch):
    """In the heuristic, and between the copies of the program, with the value and the bound."""
    real, built, at = loss_program._copy, [], Counter()

    def copy(*args):
        built.append(args)
        return real(*args)

    monkeypatch.setattr(loss_program, "_copy", copy)
    heard = []

    def listen(progress):
        heard.append(progress)
        at[len(built)] += 1

    problem = placement.Problem(random_instance(2), replicas=4, voters=3, objective=Contingency())
    plan = answer("milp", problem, progress=listen)
    assert plan.status == "optimal"
    assert built
    assert at[0] >= 10
    assert all(at[copies] for copies in range(len(built) + 1))
    assert all(0 < progress.bound <= progress.incumbent * (1 + 1e-9) for progress in heard)


def test_the_program_is_not_built_on_after_the_limit(monkeypatch):
    """On a clock that jumps while the first copy is built."""
    began, ahead, real = time.perf_counter(), [0.0], loss_program._copy

    def slow(*args):
        ahead[0] = 1000.0
        return real(*args)

    def solved(*args, **kwargs):
        raise AssertionError("HiGHS was called after the limit")

    monkeypatch.setattr(loss_program, "_copy", slow)
    monkeypatch.setattr(contingency_milp, "run_highs", solved)
    monkeypatch.setattr(time, "perf_counter", lambda: began + ahead[0])
    problem = placement.Problem(random_instance(2), replicas=4, voters=3, objective=Contingency())
    plan = answer("milp", problem, time_limit=100.0)
    assert plan.termination == "time limit"
    assert plan.found
    assert 0 < plan.bound <= plan.objective


def test_interrupted_local_search_keeps_the_best():
    def stop(_):
        raise KeyboardInterrupt

    problem = placement.Problem(random_instance(2), replicas=4, voters=3, objective=Contingency())
    plan = answer("local-search", problem, progress=stop)
    assert plan.termination == "interrupted"
    assert plan.found
    assert math.isfinite(plan.objective)


def test_within_a_factor_of_the_best_worst_case():
    problem = placement.Problem(random_instance(8), replicas=4, voters=3, objective=Contingency())
    scores = []
    for slack in (0.0, 0.05, 0.3, 5.0):
        first, second = solve_within(problem, slack)
        limit = (1 + slack) * first.objective
        worst = max(
            score for _, score in problem.objective.scores_after(problem, second.configuration)
        )
        assert worst <= limit * (1 + 1e-9)
        scores.append(second.score)
    assert scores == sorted(scores, reverse=True)
    normal = placement.solve(problem.replace(objective=placement.Problem.objective))
    assert scores[-1] == pytest.approx(normal.score)
    with pytest.raises(InputError, match="slack"):
        solve_within(problem, -0.1)
    with pytest.raises(InputError, match="contingency objective"):
        solve_within(normal.problem, 0.1)


def test_an_interrupted_first_search_leaves_no_time_to_the_second():
    """Ctrl-C ended the first search alone, and the second went on for as long as it takes."""
    instance = placement.load("world27")
    problem = placement.Problem(instance, replicas=5, voters=3, objective=Contingency())
    reports = []

    def interrupt(progress):
        reports.append(progress)
        if math.isfinite(progress.incumbent):
            raise KeyboardInterrupt

    first, second = solve_within(problem, 0.1, progress=interrupt)
    assert first.termination is second.termination is Termination.INTERRUPTED
    assert second.found
    assert second.problem.objective.goal == "bounded"
    asked = len(reports)
    first, _ = solve_within(problem, 0.1, gap_limit=0.5, settings={"certificate": False})
    assert first.gap <= 0.5
    assert first.certificate is None
    assert len(reports) == asked


def test_money_is_refused_instead_of_ignored():
    instance = random_instance(2, prices=True)
    with pytest.raises(InputError, match="does not support a weight of the cost"):
        placement.Problem(instance, replicas=4, voters=3, cost_weight=1.0, objective=Contingency())


def test_a_start_is_taken():
    problem = placement.Problem(random_instance(2), replicas=4, voters=3, objective=Contingency())
    best = answer("exhaustive", problem)
    for name in PROVERS:
        plan = run(
            load_method(name),
            problem,
            dataclasses.replace(Options(), start=best.configuration),
        )
        same(plan, best)


def test_exact_branches_where_there_are_too_many_sets():
    """600,000 replica sets: enumerated only where time is not limited."""
    problem = placement.Problem(
        random_instance(3, sites=27),
        replicas=7,
        voters=5,
        objective=Contingency(together=2),
    )
    plan = placement.solve(problem, time_limit=0.5)
    assert "several domains are lost at once" in plan.notes[0]
    assert "solved by 'cp-sat'" in plan.notes[1]
    assert plan.bound <= plan.objective


@pytest.mark.parametrize("goal", ["worst", "bounded", "weighted"])
@pytest.mark.parametrize("seed", seeds(1, 4))
def test_the_optimum_of_normal_times_bounds_what_another_method_leaves_open(
    goal, seed, monkeypatch
):
    """Two domains are lost at once; the method that is asked proves nothing in its time."""
    extra = {"bounded": {"limit": 150.0 + 1e4 * (seed % 2)}, "weighted": {"probability": 0.01}}.get(
        goal, {}
    )
    problem = placement.Problem(
        random_instance(seed, sites=7),
        replicas=5,
        voters=5,
        objective=Contingency(goal=goal, together=2, **extra),
    )
    truth = answer("exhaustive", problem)
    normal = answer("exact", problem.replace(objective=MEAN_LATENCY))
    assert answer("exact", problem, time_limit=60.0).bound == pytest.approx(truth.objective)

    def proves_nothing(asked, options, reason, name):
        ended = Termination.TIME_LIMIT
        return Plan.of(asked, truth.configuration, method=name, termination=ended)

    monkeypatch.setattr(exact_method, "_delegate", proves_nothing)
    plan = answer("exact", problem, time_limit=60.0)
    share = 1 - sum(problem.objective.probabilities(problem))
    assert share * normal.bound * (1 - 1e-9) <= plan.bound <= truth.objective
    assert plan.notes[-1] == "the bound is the optimum of normal times, or a bound on it"
    assert answer("exact", problem).bound == -math.inf


@pytest.mark.parametrize(
    ("goal", "share", "status"),
    [
        (Contingency(goal="bounded", limit=1.0), 1.0, "unknown"),
        (Contingency(goal="bounded", limit=1e4), 1.0, "feasible"),
        (Contingency(goal="weighted", probability=0.125), 1 / 8, "feasible"),  # of seven sites
    ],
)
def test_an_interrupt_in_normal_times_keeps_the_bound_and_no_plan_above_the_limit(
    goal, share, status, monkeypatch
):
    """Before, the optimum of normal times was given whatever it costs after a loss."""
    problem = placement.Problem(random_instance(3, sites=7), replicas=4, voters=3, objective=goal)
    usual = answer("exact", problem.replace(objective=MEAN_LATENCY))

    def interrupted(found, asked, options):
        return Plan.of(
            asked,
            usual.configuration,
            method="exact",
            bound=usual.bound / 2,
            termination=Termination.INTERRUPTED,
        )

    monkeypatch.setattr(loss_method, "run", interrupted)
    plan = answer("exact", problem)
    assert plan.status == status
    assert plan.termination is Termination.INTERRUPTED
    assert plan.bound == share * usual.bound / 2


def test_two_losses_that_leave_fewer_sites_than_a_quorum():
    instance = random_instance(1, clients=3)
    instance = instance.replace(domains={"zone": ("a", "b", "c", "c", "d", "c")})
    goal = Contingency("zone", "weighted", together=2, probability=0.1)
    problem = placement.Problem(instance, replicas=5, voters=5, objective=goal)
    for name in ("exhaustive", *PROVERS):
        assert answer(name, problem).status is Status.INFEASIBLE


def test_the_limit_holds_without_a_loss_too():
    """Each loss leaves one replica, and no read takes the long way to the leader any more."""
    instance = Instance(
        sites=("a", "b"),
        clients=("k",),
        client_rtt=[[5.0, 1.0]],
        site_rtt=[[0.0, 100.0], [100.0, 0.0]],
        counts=[[[1.0]]],
        operations=(Operation("relayed", near=1, relay=1),),
    )
    goal = Contingency("site", "bounded", limit=50)
    problem = placement.Problem(
        instance, replicas=2, voters=2, quorum=1, leader="a", objective=goal
    )
    both = Configuration.of(0, [0, 1], [0, 1])
    assert goal.value(problem, both) == math.inf
    assert violations(problem, both) == ("no loss gives 101 ms, above the limit of 50 ms",)
    for name in ("exhaustive", "leader", *PROVERS):
        assert answer(name, problem).status is Status.INFEASIBLE
    assert answer("local-search", problem).status is Status.UNKNOWN
    within = problem.replace(objective=dataclasses.replace(goal, limit=101))
    for name in ("exhaustive", "leader", "local-search", *PROVERS):
        assert answer(name, within).objective == 101
