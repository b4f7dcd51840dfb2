"""The program and the prices against brute force; what greedy and local rules guarantee."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings

from formulations.online.dynamic.copy_prices import lagrangean_bound, solve_dual, solve_lagrangean
from formulations.online.dynamic.copy_programs import check_objective, relax, solve_milp
from formulations.solvers.highs import HighsResult
from formulations.solvers.statuses import Verdict
from heuristics.online.dynamic.copy_choices import greedy, local_topk
from placement.errors import LimitError, SolverError
from placement.online.dynamic import Geography, ReplicationProblem, evaluate, six_sites
from tests.effort import examples, seeds
from tests.online.dynamic.worlds import (
    brute_force,
    published_problem,
    small_problems,
    triangle,
)


@settings(max_examples=examples(40), deadline=None)
@given(small_problems())
def test_all_exact_methods_find_what_brute_force_finds(problem):
    best = brute_force(problem)
    for plan in (solve_milp(problem), solve_lagrangean(problem)):
        assert plan.cost == pytest.approx(best, rel=1e-9, abs=1e-9), plan.method
        assert plan.status == "optimal", plan


@settings(max_examples=examples(40), deadline=None)
@given(small_problems(objects=(3, 4)))
def test_objects_without_a_table_are_not_forgotten(problem):
    """With floors under the prices, as large problems have them, cold objects have no table."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("formulations.online.dynamic.copy_prices._SMALL", 0)
        plan = solve_lagrangean(problem)
    assert plan.cost == pytest.approx(brute_force(problem), rel=1e-9, abs=1e-9)
    assert plan.status == "optimal"


@settings(max_examples=examples(40), deadline=None)
@given(small_problems())
def test_every_bound_is_one(problem):
    best = brute_force(problem)
    slack = 1e-9 * max(1.0, best)
    relaxed, dual = relax(problem).bound, solve_dual(problem).bound
    assert max(relaxed, dual) <= best + slack
    # The relaxation over subsets is at least as tight as that of the program.
    assert dual >= relaxed - 1e-6 * max(1.0, abs(relaxed))
    rng = np.random.default_rng(0)
    for _ in range(5):
        prices = rng.exponential(50.0, problem.sites)
        assert lagrangean_bound(problem, prices) <= best + slack
    if (problem.capacity > 0).any():
        with pytest.raises(SolverError, match="negative"):
            lagrangean_bound(problem, np.full(problem.sites, -1.0))


@settings(max_examples=examples(40), deadline=None)
@given(small_problems(writes_too=False))
def test_greedy_saves_at_least_half(problem):
    base, best = evaluate(problem, problem.none).cost, brute_force(problem)
    plan = greedy(problem)
    assert base - plan.cost >= 0.5 * (base - best) - 1e-9 * base
    assert plan.bound <= best + 1e-9 * max(1.0, best)


@settings(max_examples=examples(40), deadline=None)
@given(small_problems())
def test_greedy_with_writes_never_makes_it_worse(problem):
    assert greedy(problem).cost <= evaluate(problem, problem.none).cost * (1 + 1e-12) + 1e-9


@settings(max_examples=examples(40), deadline=None)
@given(small_problems())
def test_without_sharing_each_site_decides_alone(problem):
    """Weighted top-k is optimal when every site prefers only itself."""
    count = problem.sites
    names = problem.geography.sites
    alone = Geography(names, problem.geography.rtt, tuple((i,) for i in range(count)))
    problem = dataclasses.replace(problem, geography=alone)
    assert local_topk(problem).cost == pytest.approx(brute_force(problem), rel=1e-12, abs=1e-9)


@settings(max_examples=examples(40), deadline=None)
@given(small_problems())
def test_without_capacity_each_object_decides_alone(problem):
    roomy = dataclasses.replace(problem, capacity=np.full(problem.sites, problem.objects))
    parts = [
        dataclasses.replace(
            problem,
            static=problem.static[:, [o]],
            reads=problem.reads[:, [o]],
            write_cost=problem.write_cost[:, [o]],
            capacity=np.ones(problem.sites),
        )
        for o in range(problem.objects)
    ]
    together = solve_lagrangean(roomy)
    assert together.cost == pytest.approx(sum(brute_force(p) for p in parts), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("seed", seeds(2, 5))
def test_the_relaxation_is_the_optimum_on_the_published_geography(seed):
    problem = published_problem(1 + seed)
    plan = solve_milp(problem)
    assert plan.status == "optimal"
    assert relax(problem).value == pytest.approx(plan.cost, rel=1e-9)
    large = solve_lagrangean(problem)
    assert large.status == "optimal"
    assert large.cost == pytest.approx(plan.cost, rel=1e-9)
    assert plan.cost <= greedy(problem).cost <= 1.005 * plan.cost


def test_the_relaxation_is_not_always_the_optimum():
    """Kept: an odd cycle of neighbours, where the relaxation is far off."""
    problem = triangle()
    relaxed = relax(problem)
    assert relaxed.value == pytest.approx(9.0)  # every read at 1 or 2 ms, half of each
    assert not relaxed.integral
    assert relaxed.bound < 10
    assert solve_milp(problem).cost == 107.0
    plan = solve_lagrangean(problem)
    assert (plan.cost, plan.status) == (107.0, "optimal")
    assert solve_dual(problem).bound < 107
    assert brute_force(problem) == 107.0


def test_nothing_to_gain():
    """No reads, no room, one site: the answer is no copies, and it is proven."""
    one = Geography(("only",), [[1.0]], ((0,),))
    nothing = ReplicationProblem(one, np.ones((1, 3)), np.ones((1, 3)), 5)
    static = np.zeros((6, 2), dtype=bool)
    static[0] = True
    unread = ReplicationProblem(six_sites(), static, np.zeros((6, 2)), 1)
    no_room = ReplicationProblem(six_sites(), static, np.ones((6, 2)), 0)
    for problem in (nothing, unread, no_room):
        for method in (solve_milp, solve_lagrangean, greedy, local_topk):
            plan = method(problem)
            assert not plan.copies.any()
            assert plan.cost == evaluate(problem, problem.none).cost
    assert solve_lagrangean(unread).status == "optimal"


def test_an_optimum_of_zero_is_proven():
    """Found by generation: free local reads, room at the only site without a static copy."""
    geography = Geography(("a", "b"), [[0.0, 33.0], [46.0, 0.0]], ((0,), (1,)))
    problem = ReplicationProblem(geography, [[False], [True]], [[3.0], [2.0]], [2, 0])
    for plan in (solve_lagrangean(problem), solve_milp(problem)):
        assert (plan.cost, plan.status) == (0.0, "optimal")


def test_too_many_sites_for_subsets_are_refused():
    count = 13
    geography = Geography.within([f"s{i}" for i in range(count)], 9 - 8 * np.eye(count), 20)
    static = np.eye(count, 2, dtype=bool)
    problem = ReplicationProblem(geography, static, np.ones((count, 2)), 1)
    with pytest.raises(LimitError, match="13 sites"):
        solve_lagrangean(problem)


def test_fifty_thousand_objects_are_proven():
    problem = published_problem(1, keys=50_000, capacity=500, correlation=0.5)
    plan = solve_lagrangean(problem)
    assert plan.status == "optimal"
    assert greedy(problem).cost >= plan.cost


def test_no_time_leaves_a_true_bound():
    problem = published_problem(1)
    best = solve_lagrangean(problem).cost
    for plan in (
        solve_milp(problem, time_limit=0.0),
        solve_lagrangean(problem, time_limit=0.0),
        solve_lagrangean(problem, close=False),
    ):
        assert plan.bound <= best * (1 + 1e-12)
        assert plan.cost >= best * (1 - 1e-12)
        assert (plan.status == "optimal") == (plan.gap <= 1e-9)


def test_an_objective_that_is_not_the_cost_is_an_error():
    cost, scale, one = 20.6, 7.0, np.zeros(1)

    def said(objective, verdict):
        return HighsResult(verdict, None, one, objective * scale, -np.inf, 0, 0, 0.0)

    for verdict in (Verdict.OPTIMAL, Verdict.STOPPED):
        check_objective(said(cost, verdict), scale, cost, 50.0)
        with pytest.raises(SolverError, match="not the cost"):
            check_objective(said(cost * 0.99, verdict), scale, cost, 50.0)
    check_objective(said(cost * 1.01, Verdict.STOPPED), scale, cost, 50.0)
    with pytest.raises(SolverError, match="not the cost"):
        check_objective(said(cost * 1.01, Verdict.OPTIMAL), scale, cost, 50.0)


def plain_greedy(problem):
    """Greedy by evaluating every possible addition anew; the same rule for ties."""
    copies, cost = problem.none.copy(), evaluate(problem, problem.none).cost
    while True:
        best = None
        for j, o in np.argwhere(~copies & ~problem.static).tolist():
            if copies[j].sum() < problem.capacity[j]:
                more = copies.copy()
                more[j, o] = True
                gain = cost - evaluate(problem, more).cost
                if gain > 1e-9:
                    best = min(best or (0, 0, 0), (-gain, o, j))
        if best is None:
            return copies
        copies[best[2], best[1]] = True
        cost = evaluate(problem, copies).cost


@settings(max_examples=examples(40), deadline=None)
@given(small_problems(sites=(2, 4), objects=(2, 5)))
def test_lazy_greedy_is_greedy(problem):
    assert (greedy(problem).copies == plain_greedy(problem)).all()


@pytest.mark.parametrize("hot", [1.0, 1e3, 1e6, 1e9])
def test_a_model_that_starts_at_rounding_alone(hot):
    """With a copy of each object no read costs anything: all that the first cut holds is slope."""
    rtt = np.array([[0.0, 90.0, 60.0], [90.0, 0.0, 80.0], [60.0, 80.0, 0.0]])
    objects, room = 2000, 60
    static = np.repeat([[True], [True], [False]], objects, axis=1)
    reads = np.ones((3, objects))
    reads[:, 0] = hot
    geography = Geography.within(("a", "b", "c"), rtt, 100.0)
    plan = solve_lagrangean(ReplicationProblem(geography, static, reads, [0, 0, room]))
    assert plan.status == "optimal"
    assert plan.cost == 60.0 * (objects - room)
