"""The program says exactly what the problem says, configuration by configuration."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from formulations.milp.program_data import leader_bounds, program_data, reduce_terms, static_bound
from formulations.milp.program_model import build
from formulations.milp.recipes import Nearest, Recipe
from placement import Configuration, Instance, Operation, Problem, solve
from placement.feasibility.feasible_plans import reasons_infeasible, violations
from placement.plan import objective_value
from placement.testing import random_instance
from tests.effort import examples
from tests.milp.worlds import sphere
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
    """Feasible: all rows hold and the objective is the evaluator's. Otherwise some row breaks."""
    assume(not reasons_infeasible(problem))
    milp = build(program_data(problem), recipe.rows)
    program = milp.program()
    for configuration in configurations(problem):
        broken = violations(problem, configuration)
        allowed = problem.rules
        expressible = (
            allowed.may_hold[list(configuration.replicas)].all()
            and allowed.may_vote[list(configuration.voters)].all()
            and configuration.leader in milp.variables.y
        )
        x = milp.values(program, configuration)
        if broken:
            # a configuration with sites that have no variable loses them on the way
            assert not expressible or program.violation(x) > 1e-9
            continue
        if not expressible:  # the leader is not one of the voters that are given by name
            assert not set(milp.variables.y) & set(configuration.voters) - {configuration.leader}
        assert program.violation(x) < 1e-9
        assert math.isclose(
            program.objective(x),
            objective_value(problem, configuration),
            rel_tol=1e-12,
            abs_tol=1e-9,
        )
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
    assert program.violation(milp.values(program, Configuration.of(0, (0,), (0,)))) > 1e-9


@settings(max_examples=examples(60))
@given(problems(max_sites=5, max_clients=5), RECIPES, st.sampled_from([1.0, 1.05, 2.0]))
def test_reductions_keep_everything_within_the_cutoff(problem, recipe, inflation):
    """Configurations that a cutoff leaves out cost more than the cutoff."""
    best = solve(problem, "exhaustive")
    assume(best.found)
    cutoff = best.objective * inflation
    milp = build(reduce_terms(program_data(problem), cutoff), recipe.rows)
    program = milp.program()
    for configuration in configurations(problem):
        if violations(problem, configuration) or objective_value(problem, configuration) > cutoff:
            continue
        x = milp.values(program, configuration)
        assert program.violation(x) < 1e-9
        assert math.isclose(
            program.objective(x),
            objective_value(problem, configuration),
            rel_tol=1e-12,
            abs_tol=1e-9,
        )


@given(problems())
def test_static_bound_is_a_bound(problem):
    """b_ℓ is below every configuration that ℓ leads; its minimum below the optimum."""
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
    instance = Instance(
        sites=("s0", "s1", "s2"),
        clients=("c",),
        client_rtt=[[1, 2, 3]],
        site_rtt=[[0, 9, 100], [9, 0, 1], [100, 1, 0]],
        counts=[[1.0]],
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
    x = milp.values(program, Configuration.of(2, [2], [0, 1, 2]))
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
    """The cut for plans over budget spares other leaders and other replica sets."""
    problem = Problem(sphere(5), replicas=(2, 3), voters=1)
    milp = build(program_data(problem), Recipe.CHAIN.rows)
    milp.forbid(Configuration.of(0, [0], [0, 1]))
    program = milp.program()

    def allowed(leader, replicas):
        chosen = Configuration.of(leader, [leader], replicas)
        return program.violation(milp.values(program, chosen)) < 1e-9

    assert not allowed(0, [0, 1])
    assert not allowed(0, [0, 1, 4])
    assert allowed(1, [0, 1])
    assert allowed(0, [0, 2])
