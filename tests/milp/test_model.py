"""The program says exactly what the problem says; the method around it, and its recipes."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from formulations.milp import cutting_rounds as search_module
from formulations.milp import find_start as start_module
from formulations.milp.lp_strength import strength
from formulations.milp.program_data import leader_bounds, program_data, reduce_terms, static_bound
from formulations.milp.program_model import build
from formulations.milp.recipes import Nearest, Recipe
from placement import (
    Configuration,
    InputError,
    Operation,
    Prices,
    Problem,
    SolverError,
    Status,
    solve,
)
from placement.feasibility.feasible_plans import find_feasible, reasons_infeasible, violations
from placement.plan import objective_value
from placement.testing import random_instance
from tests.effort import examples
from tests.expected import like_enumeration
from tests.milp.worlds import hopeless, sphere, values_at, with_prices
from tests.reference import small
from tests.strategies import problems

RECIPES = st.sampled_from(list(Recipe))


def configurations(problem):
    """Every configuration of the asked sizes and of one more and one less, feasible or not."""
    rules = problem.rules
    sites = range(len(rules.may_hold))
    for size in range(max(1, rules.replicas_min - 1), min(len(sites), rules.replicas_max + 1) + 1):
        for replicas in itertools.combinations(sites, size):
            for voters in itertools.combinations(replicas, min(size, rules.voters)):
                for leader in voters:
                    yield Configuration.of(leader, voters, replicas)


@settings(max_examples=examples(60))
@given(problems(max_sites=4, max_clients=4), RECIPES)
def test_rows_hold_exactly_for_feasible_configurations(problem, recipe):
    assume(not reasons_infeasible(problem))
    milp = build(program_data(problem), recipe.rows)
    program = milp.program()
    for configuration in configurations(problem):
        broken = violations(problem, configuration)
        allowed = problem.rules
        expressible = (
            allowed.may_hold[list(configuration.replicas)].all()
            and allowed.may_vote[list(configuration.voters)].all()
            and configuration.leader in milp.model.y
        )
        x = values_at(milp, program, configuration)
        if broken:
            # a configuration with sites that have no variable loses them on the way
            assert not expressible or program.violation(x) > 1e-9
            continue
        if not expressible:  # the leader is not one of the voters that are given by name
            assert not set(milp.model.y) & set(configuration.voters) - {configuration.leader}
        assert program.violation(x) < 1e-9
        value = objective_value(problem, configuration)
        assert program.objective(x) == pytest.approx(value, rel=1e-12, abs=1e-9)
        back = milp.configuration(program, x)
        assert back.leader == configuration.leader
        assert back.replicas == configuration.replicas
        assert set(back.voters) == set(configuration.voters)


@pytest.mark.parametrize("recipe", Recipe)
def test_fewer_voters_than_votes_break_a_row(recipe):
    """A configuration with one voter where commits wait for two votes can be assigned."""
    problem = Problem(random_instance(3, sites=4), replicas=(2, 3), voters=2)
    milp = build(program_data(problem), recipe.rows)
    program = milp.program()
    assert program.violation(values_at(milp, program, Configuration.of(0, (0,), (0,)))) > 1e-9


@settings(max_examples=examples(60))
@given(problems(max_sites=5, max_clients=5), RECIPES, st.sampled_from([1.0, 1.05, 2.0]))
def test_reductions_keep_everything_within_the_cutoff(problem, recipe, inflation):
    best = solve(problem, "exhaustive")
    assume(best.found)
    cutoff = best.objective * inflation
    milp = build(reduce_terms(program_data(problem), cutoff), recipe.rows)
    program = milp.program()
    for configuration in configurations(problem):
        if violations(problem, configuration) or objective_value(problem, configuration) > cutoff:
            continue
        x = values_at(milp, program, configuration)
        assert program.violation(x) < 1e-9
        value = objective_value(problem, configuration)
        assert program.objective(x) == pytest.approx(value, rel=1e-12, abs=1e-9)


@given(problems())
def test_static_bound_is_a_bound(problem):
    assume(not reasons_infeasible(problem))
    terms = program_data(problem)
    best = solve(problem, "exhaustive")
    assume(best.found)
    assert static_bound(terms) <= best.objective * (1 + 1e-12)
    assert leader_bounds(terms)[best.configuration.leader] <= best.objective * (1 + 1e-12)


@pytest.mark.parametrize("rule", list(Nearest))
def test_a_farther_server_breaks_a_row(rule):
    """The cheapest replica for the objective is not the nearest: the rows insist on the nearest.

    Client c sits beside s0 (1 ms), from where forwarding to the leader s2 takes 100 ms; serving it
    from s1 (2 ms) would forward in 1 ms. All three sites hold replicas.
    """
    instance = small(
        ("s0", "s1", "s2"),
        [[1, 2, 3]],
        [[0, 9, 100], [9, 0, 1], [100, 1, 0]],
        [[1.0]],
        operations=(Operation("bounded", near=1, relay=1),),
    )
    problem = Problem(instance, replicas=["s0", "s1", "s2"], voters=1, leader="s2")
    recipe = next(recipe for recipe in Recipe if recipe.rows.nearest is rule)
    assert solve(problem, "milp", settings={"recipe": recipe.value}).objective == 101.0

    free = Problem(instance, replicas=3, voters=1, leader="s2")
    # pins shorten the client's list to its nearest site; without them the rows have to do the work
    terms = program_data(free.replace(replicas=(2, 3)))
    assert 0 in terms.clients[0].guarded
    milp = build(terms, recipe.rows)
    program = milp.program()
    x = values_at(milp, program, Configuration.of(2, [2], [0, 1, 2]))
    assert program.violation(x) < 1e-12
    place = {var.name: j for j, var in enumerate(program.columns)}
    moved = x.copy()
    if rule is Nearest.CHAIN:
        moved[place["Z[0,0]"]] = 0
    else:
        moved[place["z[0,0]"]], moved[place["z[0,1]"]] = 0, 1
    flows = "F" if "F[0,0,2]" in place else "f"
    moved[place[f"{flows}[0,0,2]"]], moved[place[f"{flows}[0,1,2]"]] = 0, 1
    assert program.objective(moved) == 3.0
    assert program.violation(moved) == 1.0


def test_guards_only_where_needed():
    """Without relayed operations the nearest replica is the cheapest, and no rows are added."""
    weak = Operation("weak", near=1)
    world = sphere(6)
    counts = world.counts[..., :1]
    problem = Problem(world.replace(operations=(weak,), counts=counts), replicas=3, voters=1)
    assert all(not row.guarded for row in program_data(problem).clients)
    relayed = Problem(world, replicas=3, voters=1)
    assert any(row.guarded for row in program_data(relayed).clients)


def test_radii_span_what_can_be_the_quorum_wait():
    """Of six sites and four voters, the third to answer ranks third to fifth."""
    problem = Problem(sphere(6), replicas=4, voters=4)
    rtt = problem.demand.site_rtt[0]
    for (_, leader), waits in program_data(problem).radii.items():
        assert waits == tuple(np.sort(rtt[leader])[2:5])


def test_weights_of_very_different_size_get_flows_of_their_own():
    """Twelve orders of magnitude between clients: no share falls below the least matrix entry."""
    world = sphere(5)
    counts = np.array(world.counts)
    counts[0, 0] *= 1e12
    problem = Problem(world.replace(counts=counts), replicas=3, voters=3)
    terms = program_data(problem)
    assert len(terms.classes) == 2
    assert sorted(i for group in terms.classes for i in group.members) == list(range(5))
    program = build(terms, Recipe.CHAIN.rows).program()
    assert np.abs(program.value).min() > 1e-9


def test_forbidding_cuts_off_supersets_only():
    problem = Problem(sphere(5), replicas=(2, 3), voters=1)
    milp = build(program_data(problem), Recipe.CHAIN.rows)
    milp.forbid(Configuration.of(0, [0], [0, 1]))
    program = milp.program()

    def allowed(leader, replicas):
        chosen = Configuration.of(leader, [leader], replicas)
        return program.violation(values_at(milp, program, chosen)) < 1e-9

    assert not allowed(0, [0, 1])
    assert not allowed(0, [0, 1, 4])
    assert allowed(1, [0, 1])
    assert allowed(0, [0, 2])


@settings(max_examples=examples(20))
@given(problems(min_sites=3), st.sampled_from(["milp", "cp-sat"]))
def test_a_bad_start_hides_no_pruning_error(problem, method):
    """Start from the worst configuration at hand: cutoffs are then far from the optimum."""
    assume(find_feasible(problem))
    rng = np.random.default_rng(0)
    size = len(problem.instance.sites)
    tries = [find_feasible(problem, rng.permutation(size).tolist()) for _ in range(5)]
    worst = max(tries, key=lambda c: objective_value(problem, c))
    like_enumeration(problem, method, start=worst)


@settings(max_examples=examples(30))
@given(
    problems(min_sites=3, kinds={"quorum", "pinned", "crossing", "varying_rtt"}),
    st.sampled_from([1e-9, 1e-3, 1e6, 1e12]),
)
def test_scale_of_the_counts_changes_nothing(problem, factor):
    instance = problem.instance.replace(counts=problem.instance.counts * factor)
    plan = solve(problem, "milp", settings={"start": "none"})
    scaled = solve(problem.replace(instance=instance), "milp", settings={"start": "none"})
    assert scaled.status == plan.status
    if plan.found:
        assert math.isclose(scaled.objective, plan.objective * factor, rel_tol=1e-9)


@settings(max_examples=examples(20))
@given(problems(min_sites=3, kinds={"quorum", "pinned", "range"}), st.integers(0, 2**32 - 1))
def test_clients_of_very_different_size(problem, seed):
    spread = 10.0 ** np.random.default_rng(seed).integers(-6, 7, len(problem.instance.clients))
    counts = problem.instance.counts * spread[:, np.newaxis]
    problem = problem.replace(instance=problem.instance.replace(counts=counts))
    like_enumeration(problem, "milp", settings={"start": "none"})


def test_statistics():
    problem = Problem(sphere(8), replicas=3, voters=3)
    plan = solve(problem, "milp", settings={"leaders": "together"})
    for name in ("build_seconds", "solve_seconds", "start_seconds"):
        assert plan.stats[name] > 0
    for name in ("variables", "binaries", "rows", "nonzeros", "programs"):
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


@pytest.mark.parametrize(
    ("method", "asked"),
    [("milp", {"leaders": "together"}), ("milp", {"leaders": "apart"}), ("cp-sat", {})],
)
def test_same_seed_same_plan(method, asked):
    problem = Problem(sphere(9, seed=2), replicas=4, voters=3)
    plans = [solve(problem, method, seed=7, settings=asked) for _ in range(2)]
    assert plans[0].configuration == plans[1].configuration
    assert plans[0].bound == plans[1].bound
    counts = [
        {name: n for name, n in plan.stats.items() if not name.endswith("seconds")}
        for plan in plans
    ]
    assert counts[0] == counts[1]


@pytest.mark.parametrize("method", ["milp", "cp-sat"])
def test_several_threads(method):
    for threads in (1, 2, 1):
        like_enumeration(Problem(sphere(9, seed=2), replicas=4, voters=3), method, threads=threads)


def test_unknown_recipe():
    with pytest.raises(InputError, match="recipe"):
        solve(Problem(sphere(6), replicas=3, voters=3), "milp", settings={"recipe": "hull"})


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
    plan = like_enumeration(problem, "milp", settings={"start": "none", "reduce": False})
    assert plan.configuration.replicas != best.configuration.replicas


def test_transfer_prices_depend_on_the_leader():
    """The budget binds through the leader: the cheapest leader is not the fastest."""
    problem = Problem(with_prices(sphere(6)), replicas=3, voters=3, cost_weight=1e4)
    free = solve(problem, "milp")
    costs = sorted({round(free.cost * f, 6) for f in (1.0, 0.95, 0.9, 0.8)})
    for budget in costs:
        like_enumeration(problem.replace(budget=budget), "milp", settings={"start": "none"})


def test_without_any_start():
    problem = Problem(sphere(8, seed=1), replicas=4, voters=3, quorum=3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(start_module, "HEURISTICS", ())
        patch.setattr(start_module, "find_feasible", hopeless)
        plan = like_enumeration(problem, "milp", settings={"leaders": "together"})
    assert plan.stats["start"] == "none found"


@pytest.mark.parametrize("recipe", list(Recipe))
def test_one_site(recipe):
    plan = solve(
        Problem(sphere(1), replicas=1, voters=1), "milp", settings={"recipe": recipe.value}
    )
    assert plan.status is Status.OPTIMAL
    assert plan.replicas == plan.voters == (plan.leader,) == ("s0",)


def test_auto_prefers_flows_per_client_while_they_fit(monkeypatch):
    problem = Problem(sphere(8), replicas=3, voters=3)
    strong = solve(problem, "milp", settings={"leaders": "together"})
    monkeypatch.setattr(search_module, "_MOST_FLOWS", 10)
    small = solve(problem, "milp", settings={"leaders": "together"})
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
    plan = like_enumeration(problem, "milp", settings={"leaders": "together"})
    assert plan.stats["start"] == "best-of"
    assert any("local-search" in note for note in plan.notes)


STRONGER = [
    (Recipe.PER_CLIENT, Recipe.PER_LEADER),
    (Recipe.PER_LEADER, Recipe.CHAIN),
    (Recipe.CHAIN, Recipe.TEXTBOOK),
    (Recipe.CHAIN, Recipe.ROJESKI_REVELLE),
    (Recipe.CHAIN, Recipe.PAIRWISE),
]
"""(a, b): the LP bound of a is at least that of b, as derived in formulations.milp.recipes."""


@settings(max_examples=examples(25))
@given(problems())
def test_order_of_strength(problem):
    assume(not reasons_infeasible(problem))
    best = solve(problem, "exhaustive")
    bound = {recipe: strength(problem, recipe)["bound"] for recipe in Recipe}
    allowance = 1e-6 * (1 + abs(best.objective if best.found else 0))
    for strong, weak in STRONGER:
        if math.isfinite(bound[strong]):
            assert bound[strong] >= bound[weak] - allowance
    if best.found:
        assert all(value <= best.objective + allowance for value in bound.values())


MIXES = {"transactions": (0.3, 0.3, 0.2, 0.15, 0.05), "bounded reads": (0.1, 0.8, 0.05, 0.03, 0.02)}

# LP bound over optimum, and columns, rows and non-zeros, of ten sites on a globe, |R| = 6, |V| = 5.
RECORDED: dict[tuple[str, Recipe], tuple[float, int, int, int]] = {
    ("transactions", Recipe.CHAIN): (0.8058896, 220, 303, 1150),
    ("transactions", Recipe.TEXTBOOK): (0.8001287, 240, 198, 1040),
    ("transactions", Recipe.PER_CLIENT): (0.9999797, 620, 528, 2160),
    ("transactions", Recipe.PER_LEADER): (0.8120332, 320, 423, 1570),
    ("transactions", Recipe.ROJESKI_REVELLE): (0.8058896, 230, 238, 1010),
    ("transactions", Recipe.PAIRWISE): (0.8058896, 230, 263, 1010),
    ("transactions", Recipe.MEMBERSHIP): (0.5810514, 271, 288, 998),
    ("bounded reads", Recipe.CHAIN): (0.2929545, 220, 321, 1196),
    ("bounded reads", Recipe.TEXTBOOK): (0.2860515, 240, 211, 1076),
    ("bounded reads", Recipe.PER_CLIENT): (0.9965406, 620, 541, 2186),
    ("bounded reads", Recipe.PER_LEADER): (0.3000556, 320, 441, 1616),
    ("bounded reads", Recipe.ROJESKI_REVELLE): (0.2929545, 230, 251, 1046),
    ("bounded reads", Recipe.PAIRWISE): (0.2929545, 230, 305, 1094),
    ("bounded reads", Recipe.MEMBERSHIP): (0.2298170, 271, 301, 1024),
}


@pytest.mark.parametrize("mix", MIXES)
@pytest.mark.parametrize("recipe", list(Recipe))
def test_recorded_strength(mix, recipe):
    """LP bound and size of every recipe on one world; a change here is a change of the model."""
    problem = Problem(sphere(10, seed=3, mix=MIXES[mix]), replicas=6, voters=5)
    best = solve(problem, "exhaustive")
    measured = strength(problem, recipe)
    ratio, *size = RECORDED[mix, recipe]
    assert measured["bound"] / best.objective == pytest.approx(ratio, rel=1e-6)
    assert [measured[each] for each in ("variables", "rows", "nonzeros")] == size
