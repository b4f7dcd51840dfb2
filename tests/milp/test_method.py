"""The method around the program: starts, limits, claims, refuted claims, infeasibility."""

import dataclasses
import itertools
import math
import time
from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from formulations.milp import build_steps as steps_module
from formulations.milp import cutting_rounds as search_module
from formulations.milp import find_start as start_module
from formulations.milp import per_leader as apart_module
from formulations.milp import program_model as model_module
from formulations.milp.recipes import Recipe
from formulations.solvers.highs import HighsResult, Verdict
from placement import (
    Diversity,
    InputError,
    Instance,
    Operation,
    Prices,
    Problem,
    SolverError,
    Status,
    Termination,
    solve,
)
from placement.errors import LimitError
from placement.feasibility.feasible_plans import find_feasible, reasons_infeasible, violations
from placement.plan import objective_value
from tests.milp.worlds import sphere, with_prices
from tests.strategies import problems

HARD = Problem(sphere(40, seed=5), replicas=6, voters=5)
TOGETHER = {"leaders": "together"}
SLOW_RECIPE = {"recipe": "membership", "reduce": False}


def infeasible(*args, **kwargs):
    """Stand in for a solver that calls everything infeasible."""
    return HighsResult(Verdict.INFEASIBLE, None, None, math.inf, math.inf, 0, 0, 0.0)


def hopeless(*args, **kwargs):
    """Stand in for a search that gives up."""
    raise LimitError("hopeless")


@settings(max_examples=20)
@given(problems(min_sites=3), st.sampled_from(["local-search", "none", "kq"]))
def test_any_start_gives_the_same_optimum(problem, start):
    """The start changes the way, not the answer."""
    truth = solve(problem, "exhaustive")
    plan = solve(problem, "milp", settings={"start": start})
    assert plan.status == truth.status
    assert math.isclose(plan.objective, truth.objective, rel_tol=1e-9) or not truth.found


@settings(max_examples=20)
@given(problems(min_sites=3))
def test_a_bad_start_hides_no_pruning_error(problem):
    """Start from the worst configuration at hand: cutoffs are then far from the optimum."""
    truth = solve(problem, "exhaustive")
    assume(truth.found)
    rng = np.random.default_rng(0)
    size = len(problem.instance.sites)
    tries = [find_feasible(problem, rng.permutation(size).tolist()) for _ in range(5)]
    worst = max(tries, key=lambda c: objective_value(problem, c))
    plan = solve(problem, "milp", start=worst)
    assert plan.status is Status.OPTIMAL
    assert math.isclose(plan.objective, truth.objective, rel_tol=1e-9)


@settings(max_examples=30)
@given(
    problems(min_sites=3, kinds={"quorum", "pinned", "crossing", "varying_rtt"}),
    st.sampled_from([1e-9, 1e-3, 1e6, 1e12]),
)
def test_scale_of_the_counts_changes_nothing(problem, factor):
    """From fractions of an operation to 10^14 of them."""
    instance = problem.instance.replace(counts=problem.instance.counts * factor)
    plan = solve(problem, "milp", settings={"start": "none"})
    scaled = solve(problem.replace(instance=instance), "milp", settings={"start": "none"})
    assert scaled.status == plan.status
    if plan.found:
        assert math.isclose(scaled.objective, plan.objective * factor, rel_tol=1e-9)


@settings(max_examples=20)
@given(problems(min_sites=3, kinds={"quorum", "pinned", "range"}), st.integers(0, 2**32 - 1))
def test_clients_of_very_different_size(problem, seed):
    """Client loads spread over twelve orders of magnitude, against exhaustive search."""
    spread = 10.0 ** np.random.default_rng(seed).integers(-6, 7, len(problem.instance.clients))
    counts = problem.instance.counts * spread[:, np.newaxis]
    problem = problem.replace(instance=problem.instance.replace(counts=counts))
    truth = solve(problem, "exhaustive")
    plan = solve(problem, "milp", settings={"start": "none"})
    assert plan.status == truth.status
    assert math.isclose(plan.objective, truth.objective, rel_tol=1e-9) or not truth.found


def test_statistics():
    """Build and solve time apart, size, nodes, and where the start came from."""
    plan = solve(Problem(sphere(8), replicas=3, voters=3), "milp")
    for name in ("build_seconds", "solve_seconds", "start_seconds"):
        assert plan.stats[name] > 0
    for name in ("variables", "binaries", "rows", "nonzeros", "programs", "relaxations"):
        assert plan.stats[name] >= 1
    assert plan.stats["recipe"] == "per-client"
    assert plan.stats["start"] == "local-search"
    assert plan.status is Status.OPTIMAL


def test_nothing_to_wait_for():
    """A plan that costs nothing is optimal without a solver: no term of Eq. 1 is negative."""
    world = sphere(4)
    problem = Problem(
        world.replace(client_rtt=np.zeros((4, 4)), site_rtt=np.zeros((4, 4))), replicas=2, voters=1
    )
    plan = solve(problem, "milp")
    assert (plan.status, plan.objective, plan.bound) == (Status.OPTIMAL, 0.0, 0.0)


@pytest.mark.parametrize("limit", [0, 0.3])
def test_time_limit(limit):
    """The best plan so far and a bound that is one: no exception, no claim."""
    plan = solve(HARD, "milp", time_limit=limit, settings=SLOW_RECIPE)
    assert plan.termination is Termination.TIME_LIMIT
    assert plan.status is Status.FEASIBLE
    assert 0 < plan.bound < plan.objective
    assert not violations(HARD, plan.configuration)
    best = solve(HARD, "milp")
    assert plan.bound <= best.objective <= plan.objective


def test_gap_limit():
    """Stops once the gap is small enough, and shows that gap."""
    best = solve(HARD, "milp")
    plan = solve(HARD, "milp", gap_limit=0.5)
    assert plan.termination in (Termination.GAP_LIMIT, Termination.FINISHED)
    assert plan.gap <= 0.5
    assert plan.bound <= best.objective <= plan.objective


def test_interrupt_gives_the_best_so_far():
    """Ctrl-C from a progress report, before and while HiGHS runs."""
    for patience in (1, 2):
        heard = []

        def press(progress, heard=heard, patience=patience):
            heard.append(progress)
            if len(heard) == patience:
                raise KeyboardInterrupt

        plan = solve(HARD, "milp", progress=press, settings=SLOW_RECIPE)
        assert plan.termination is Termination.INTERRUPTED
        assert plan.found
        assert plan.bound < plan.objective


def test_progress_only_improves():
    """Incumbents fall, bounds rise, and neither passes the other."""
    heard = []

    def listen(progress):
        heard.append(progress)
        if len(heard) == 5:
            raise KeyboardInterrupt

    solve(HARD, "milp", progress=listen, settings=SLOW_RECIPE)
    assert len(heard) >= 5
    for before, after in itertools.pairwise(heard):
        assert after.incumbent <= before.incumbent
        assert after.bound >= before.bound
        assert after.bound <= after.incumbent * (1 + 1e-9)


PARTS = ("add_roles", "add_nearest", "add_forwarding", "add_quorum", "compile_program")


def test_every_part_of_the_work_is_reported(monkeypatch):
    """In the heuristic, before each leader, between the parts of each program."""
    here, reports = [], Counter()
    for name in PARTS:
        real = getattr(model_module, name)

        def part(*args, name=name, real=real, **kwargs):
            here.append(name)
            return real(*args, **kwargs)

        monkeypatch.setattr(model_module, name, part)
    heard = []

    def listen(progress):
        heard.append(progress)
        reports[here[-1] if here else "start"] += 1

    at_leader = []
    led_by = apart_module._led_by

    def next_leader(*args):
        at_leader.append(len(heard))
        return led_by(*args)

    monkeypatch.setattr(apart_module, "_led_by", next_leader)
    problem = Problem(sphere(20, seed=3), replicas=5, voters=3)
    plan = solve(problem, "milp", progress=listen, settings={"leaders": "apart"})
    assert plan.status is Status.OPTIMAL
    assert len(at_leader) >= plan.stats["leaders"] == 20
    assert at_leader == sorted(set(at_leader))  # a report before each
    assert reports["start"] >= 2
    for name in PARTS:
        assert reports[name] >= plan.stats["programs"] >= 2
    assert all(progress.bound > 0 for progress in heard)
    assert heard[-1].incumbent == plan.objective
    for before, after in itertools.pairwise(heard):
        assert after.incumbent <= before.incumbent
        assert after.bound >= before.bound


@pytest.mark.parametrize("leaders", ["together", "apart"])
@pytest.mark.parametrize("part", PARTS)
def test_the_limit_is_kept_while_a_program_is_built(monkeypatch, part, leaders):
    """On a clock that jumps while one part is built, nothing after that part is begun."""
    began, ahead, late = time.perf_counter(), [0.0], []
    real = getattr(model_module, part)

    def slow(*args, **kwargs):
        ahead[0] = 1000.0
        return real(*args, **kwargs)

    def solved(*args, **kwargs):
        late.append(args)
        raise AssertionError("HiGHS was called after the limit")

    def clock():
        return began + ahead[0]

    monkeypatch.setattr(model_module, part, slow)
    monkeypatch.setattr(search_module, "run_highs", solved)
    monkeypatch.setattr(search_module, "close_tree", solved)
    monkeypatch.setattr(steps_module.time, "perf_counter", clock)
    problem = Problem(sphere(12, seed=1), replicas=4, voters=3)
    start = find_feasible(problem)
    plan = solve(problem, "milp", time_limit=100, start=start, settings={"leaders": leaders})
    assert not late
    assert plan.termination is Termination.TIME_LIMIT
    assert plan.found
    assert 0 < plan.bound <= plan.objective


@pytest.mark.parametrize("leaders", ["together", "apart"])
def test_same_seed_same_plan(leaders):
    """Deterministic for a seed and one thread."""
    problem = Problem(sphere(9, seed=2), replicas=4, voters=3)
    plans = [solve(problem, "milp", seed=7, settings={"leaders": leaders}) for _ in range(2)]
    assert plans[0].configuration == plans[1].configuration
    assert plans[0].bound == plans[1].bound
    counts = [
        {name: n for name, n in plan.stats.items() if not name.endswith("seconds")}
        for plan in plans
    ]
    assert counts[0] == counts[1]


def test_several_threads():
    """Another number of threads after another: same optimum."""
    problem = Problem(sphere(9, seed=2), replicas=4, voters=3)
    values = [solve(problem, "milp", threads=n).objective for n in (1, 2, 1)]
    assert max(values) == pytest.approx(min(values), rel=1e-12)


def test_unknown_recipe():
    """Recipes are a closed set."""
    with pytest.raises(InputError, match="recipe"):
        solve(HARD, "milp", settings={"recipe": "hull"})


# --- claims that are refuted ---------------------------------------------------------------


def test_a_wrong_objective_is_an_error(monkeypatch):
    """HiGHS's number must be the evaluator's, to a relative 1e-6."""
    real = search_module.run_highs

    def boastful(*args, **kwargs):
        outcome = real(*args, **kwargs)
        return dataclasses.replace(outcome, objective=outcome.objective * (1 - 2e-6))

    monkeypatch.setattr(search_module, "run_highs", boastful)
    with pytest.raises(SolverError, match="evaluator"):
        solve(Problem(sphere(6), replicas=3, voters=3), "milp", settings=TOGETHER)


def test_a_wrong_bound_is_an_error(monkeypatch):
    """A configuration below the claimed bound refutes it."""
    problem = Problem(sphere(6), replicas=3, voters=3)
    best = solve(problem, "exhaustive").configuration
    real = search_module.run_highs

    def overstated(*args, **kwargs):
        outcome = real(*args, **kwargs)
        return dataclasses.replace(outcome, bound=outcome.bound * 1.001)

    monkeypatch.setattr(search_module, "run_highs", overstated)
    with pytest.raises(SolverError, match="bound"):
        solve(problem, "milp", start=best, settings=TOGETHER)


def test_a_solution_that_breaks_the_problem_is_an_error(monkeypatch):
    """Rounded binaries are checked against the constraints, not against HiGHS's tolerances."""
    real = search_module.run_highs

    def careless(program, *args, **kwargs):
        outcome = real(program, *args, **kwargs)
        values = outcome.values.copy()
        values[[j for j, var in enumerate(program.columns) if var.name.startswith("v[")]] = 0
        return dataclasses.replace(outcome, values=values)

    monkeypatch.setattr(search_module, "run_highs", careless)
    with pytest.raises(SolverError, match="breaks"):
        solve(Problem(sphere(6), replicas=3, voters=3), "milp", settings=TOGETHER)


@pytest.mark.parametrize("excess", [2e-9, 1e-8, 3e-7])
def test_over_budget_within_the_solvers_tolerance(excess):
    """HiGHS holds rows to 1e-6; a plan that is dearer than the budget by less is not accepted."""
    world = sphere(6, seed=4)
    price = np.full(6, 1.0)
    best = solve(Problem(world, replicas=3, voters=1), "exhaustive")
    price[list(best.configuration.replicas)] = 2.0
    problem = Problem(
        world.replace(prices=Prices(price)), replicas=3, voters=1, budget=6.0 * (1 - excess)
    )
    truth = solve(problem, "exhaustive")
    assert truth.configuration.replicas != best.configuration.replicas
    plan = solve(problem, "milp", settings={"start": "none", "reduce": False})
    assert plan.status is Status.OPTIMAL
    assert plan.objective == pytest.approx(truth.objective, rel=1e-9)


def test_transfer_prices_depend_on_the_leader():
    """The budget binds through the leader: the cheapest leader is not the fastest."""
    problem = Problem(with_prices(sphere(6)), replicas=3, voters=3, cost_weight=1e4)
    free = solve(problem, "milp")
    costs = sorted({round(free.cost * f, 6) for f in (1.0, 0.95, 0.9, 0.8)})
    for budget in costs:
        asked = problem.replace(budget=budget)
        truth = solve(asked, "exhaustive")
        plan = solve(asked, "milp", settings={"start": "none"})
        assert plan.status == truth.status
        if truth.found:
            assert plan.objective == pytest.approx(truth.objective, rel=1e-9)


# --- infeasibility -------------------------------------------------------------------------


def conflict():
    """Two voters, one per region and one per provider: s0 must vote, and its only partner may not.

    Each rule can be met alone, so that counting does not show the conflict.
    """
    world = sphere(4).replace(
        domains={"region": ("a", "a", "b", "b"), "provider": ("p", "q", "p", "q")}
    )
    problem = Problem(
        world,
        replicas=3,
        voters=2,
        pinned_voters=["s0"],
        non_voters=["s3"],
        diversity=[Diversity("region"), Diversity("provider")],
    )
    assert not reasons_infeasible(problem)
    return problem


def test_infeasible_by_two_searches():
    """The complete search and HiGHS agree, and the plan says so."""
    problem = conflict()
    assert solve(problem, "exhaustive").status is Status.INFEASIBLE
    plan = solve(problem, "milp")
    assert plan.status is Status.INFEASIBLE
    assert any("HiGHS" in reason and "complete search" in reason for reason in plan.reasons)


def test_infeasible_by_one_solver_is_not_believed(monkeypatch):
    """Without a second witness nothing is claimed."""
    monkeypatch.setattr(start_module, "HEURISTICS", ())
    monkeypatch.setattr(start_module, "find_feasible", hopeless)
    monkeypatch.setattr("formulations.milp.method.available", lambda: ())
    plan = solve(conflict(), "milp")
    assert plan.status is Status.UNKNOWN
    assert any("nothing else could confirm" in note for note in plan.notes)


def test_infeasible_is_confirmed_by_another_method(monkeypatch):
    """Where the complete search gives up, another exact method is asked."""
    monkeypatch.setattr(start_module, "HEURISTICS", ())
    monkeypatch.setattr(start_module, "find_feasible", hopeless)
    monkeypatch.setattr("formulations.milp.method.REFEREES", ("exhaustive",))
    plan = solve(conflict(), "milp")
    assert plan.status is Status.INFEASIBLE
    assert any("'exhaustive'" in reason for reason in plan.reasons)


def test_a_referee_that_finds_a_plan_wins(monkeypatch):
    """HiGHS calls a feasible problem infeasible, twice: the other method's plan is returned."""
    monkeypatch.setattr(start_module, "HEURISTICS", ())
    monkeypatch.setattr(start_module, "find_feasible", hopeless)
    monkeypatch.setattr(search_module, "run_highs", infeasible)
    monkeypatch.setattr("formulations.milp.method.REFEREES", ("exhaustive",))
    problem = Problem(sphere(6), replicas=3, voters=3)
    plan = solve(problem, "milp")
    assert plan.status is Status.OPTIMAL
    assert plan.objective == solve(problem, "exhaustive").objective
    assert any("HiGHS called" in note for note in plan.notes)


def test_a_lie_of_presolve_is_found_out(monkeypatch):
    """Infeasible with presolve, solved without: the second run counts, and a note says so."""
    real = search_module.run_highs

    def lying(program, guard, *, presolve=True, **kwargs):
        return real(program, guard, presolve=False, **kwargs) if not presolve else infeasible()

    monkeypatch.setattr(search_module, "run_highs", lying)
    problem = Problem(sphere(6), replicas=3, voters=3)
    plan = solve(problem, "milp", settings=TOGETHER)
    assert plan.status is Status.OPTIMAL
    assert plan.objective == solve(problem, "exhaustive").objective
    assert any("presolve" in note for note in plan.notes)


def test_infeasible_against_a_known_configuration_is_an_error(monkeypatch):
    """A start that obeys all rules refutes the solver."""
    monkeypatch.setattr(search_module, "run_highs", infeasible)
    with pytest.raises(SolverError, match="feasible configuration is known"):
        solve(Problem(sphere(6), replicas=3, voters=3), "milp", settings=TOGETHER)


def test_without_any_start():
    """No heuristic, no feasibility search: HiGHS finds the first configuration itself."""
    problem = Problem(sphere(8, seed=1), replicas=4, voters=3, quorum=3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(start_module, "HEURISTICS", ())
        patch.setattr(start_module, "find_feasible", hopeless)
        plan = solve(problem, "milp")
    assert plan.stats["start"] == "none found"
    assert plan.status is Status.OPTIMAL
    assert plan.objective == pytest.approx(solve(problem, "exhaustive").objective, rel=1e-9)


@pytest.mark.parametrize("recipe", list(Recipe))
def test_one_site(recipe):
    """One site, one client: there is nothing to choose."""
    plan = solve(
        Problem(sphere(1), replicas=1, voters=1), "milp", settings={"recipe": recipe.value}
    )
    assert plan.status is Status.OPTIMAL
    assert plan.replicas == plan.voters == (plan.leader,) == ("s0",)


def test_auto_prefers_flows_per_client_while_they_fit(monkeypatch):
    """The recipe taken is named in the statistics; both give the optimum."""
    problem = Problem(sphere(8), replicas=3, voters=3)
    strong = solve(problem, "milp")
    monkeypatch.setattr(search_module, "_MOST_FLOWS", 10)
    small = solve(problem, "milp")
    assert (strong.stats["recipe"], small.stats["recipe"]) == ("per-client", "chain")
    assert strong.objective == small.objective


def test_a_broken_heuristic_costs_a_start_only(monkeypatch):
    """A heuristic whose plan breaks the problem is named in a note; the optimum is still found."""
    real = start_module.run_method

    def broken(method, problem, options):
        if method.name == "local-search":
            raise SolverError("returned a configuration that breaks the problem")
        return real(method, problem, options)

    monkeypatch.setattr(start_module, "run_method", broken)
    problem = Problem(sphere(6), replicas=3, voters=3)
    plan = solve(problem, "milp")
    assert plan.objective == solve(problem, "exhaustive").objective
    assert plan.stats["start"] == "best-of"
    assert any("local-search" in note for note in plan.notes)


def test_optimal_with_a_bound_that_does_not_meet_it(monkeypatch):
    """HiGHS says "optimal" and reports a lower bound: the safe proof decides, with a note."""
    real = search_module.run_highs

    def modest(*args, **kwargs):
        outcome = real(*args, **kwargs)
        return dataclasses.replace(outcome, bound=outcome.bound * 0.99)

    monkeypatch.setattr(search_module, "run_highs", modest)
    problem = Problem(sphere(6), replicas=3, voters=3)
    plan = solve(problem, "milp", settings=TOGETHER)
    assert plan.status is Status.OPTIMAL
    assert plan.objective == solve(problem, "exhaustive").objective
    assert plan.stats["proof_nodes"] >= 1
    assert any("HiGHS said optimal" in note for note in plan.notes)


def test_highs_stops_at_a_gap_of_one_per_cent_and_says_optimal():
    """The generated instance on which HiGHS 1.14 reported the bound 64.16 and the optimum 64.75."""
    tenths = [
        [6, 4, 3, 1, 6],
        [3, 5, 3, 7, 6],
        [7, 4, 6, 1, 7],
        [4, 7, 6, 7, 1],
        [2, 3, 1, 6, 2],
        [5, 3, 2, 4, 7],
        [2, 4, 4, 4, 2],
        [3, 1, 6, 3, 6],
    ]
    between = [
        [0, 0.3, 0.45, 0.25, 0.5],
        [0.3, 0, 0.4, 0.3, 0.25],
        [0.45, 0.4, 0, 0.3, 0.3],
        [0.25, 0.3, 0.3, 0, 0.5],
        [0.5, 0.25, 0.3, 0.5, 0],
    ]
    counts = [[12, 42], [12, 4], [23, 24], [34, 43], [42, 11], [27, 38], [23, 25], [6, 10]]
    instance = Instance(
        sites=tuple(f"s{i}" for i in range(5)),
        clients=tuple(f"k{i}" for i in range(8)),
        client_rtt=np.array(tenths) / 10,
        site_rtt=between,
        counts=counts,
        operations=(Operation("relay only", relay=1), Operation("votes only", quorum=1)),
        domains={"zone": ("z4", "z0", "z3", "z0", "z0")},
    )
    problem = Problem(
        instance,
        replicas=(1, 3),
        voters=2,
        diversity=[Diversity("zone", cap=2), Diversity("zone", role="replicas", min_domains=1)],
    )
    plan = solve(problem, "milp", settings={"recipe": "per-leader", "start": "none"})
    assert plan.status is Status.OPTIMAL
    assert plan.objective == pytest.approx(64.75, rel=1e-12)
