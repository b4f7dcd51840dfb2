"""The search for a percentile: against every configuration, and its bound against the optimum."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import placement
from heuristics.objective_terms import objective_terms
from placement import Operation, Problem, Status
from placement.methods.options import Options
from placement.methods.registry import load_method, run
from placement.model.configuration import Configuration
from placement.tail import Distributions, Percentile
from placement.tail.late_operations import LateOperations
from placement.tail.percentile_bound import percentile_bound
from placement.testing import every_configuration, random_instance
from tests.effort import examples
from tests.strategies import ALL, problems
from tests.tail.worlds import drawn, least, whole

KINDS = ALL - {"varying_rtt", "cost_weight"}
PERCENTS = st.sampled_from([1, 50, 90, 99, 99.9, 100])


def asked(problem, seed, percent):
    return problem.replace(objective=Percentile(percent, drawn(problem.instance, seed)))


@settings(max_examples=examples(40))
@given(problems(kinds=KINDS, max_sites=5, max_clients=4), st.integers(0, 2**32 - 1), PERCENTS)
def test_close_to_every_configuration(problem, seed, percent):
    """Any rules, any operations, distributions that cross: no worse than 10 %, and never better."""
    problem = asked(problem, seed, percent)
    best = least(problem)
    plan = run(load_method("local-search"), problem, Options())
    if math.isinf(best):
        assert plan.status in (Status.INFEASIBLE, Status.UNKNOWN)
        return
    assert plan.bound <= best <= plan.objective
    assert plan.objective <= best * 1.1 + 3


@pytest.mark.parametrize("seed", range(3))
def test_optimal_on_lognormal_worlds(seed):
    """Where voters closest first are right, small worlds are solved, and ties go to the mean."""
    instance = random_instance(seed, sites=7, clients=6)
    spread = Distributions.parametric(instance, variation=0.25, bins=800)
    problem = Problem(instance, replicas=4, voters=3, objective=Percentile(95, spread))
    found = placement.solve(problem, "local-search")
    best = placement.solve(problem, "exhaustive")
    assert best.status is Status.OPTIMAL
    assert found.objective == best.objective
    assert found.bound <= best.objective
    assert found.mean_latency == pytest.approx(best.mean_latency, rel=1e-9)
    assert "Algorithm 2" in found.notes[0]
    assert "Algorithm 2" in best.notes[0]


@settings(max_examples=examples(40))
@given(problems(kinds=KINDS, max_sites=5, max_clients=4), st.integers(0, 2**32 - 1), st.data())
def test_late_share_is_what_the_evaluator_says(problem, seed, data):
    """The sum over clients and the convolutions of the evaluator agree on every deadline."""
    problem = asked(problem, seed, 90)
    chosen = next(every_configuration(problem), None)
    if chosen is None:
        return
    distributions = problem.objective.distributions
    late = LateOperations(problem, distributions)
    rank = objective_terms(problem, everyone=True).rank
    near = [min(chosen.replicas, key=lambda r, c=c: rank[c, r]) for c in range(len(rank))]
    from placement.tail.latency_mixture import mixture

    reached = np.cumsum(mixture(problem, chosen, distributions))
    most = distributions.bins - 1 if distributions.overflow else 3 * distributions.bins
    deadline = data.draw(st.integers(0, most))
    summands = late.summands(np.array([chosen.leader]), deadline)[0]
    share = sum(summands[r, c] for c, r in enumerate(near))
    share += late.led_late(chosen.leader, chosen.voters, deadline, problem.rules.quorum)
    exact = 1 - reached[min(deadline, len(reached) - 1)]
    if late.exact:
        assert share == pytest.approx(exact, abs=1e-11)
    else:
        assert share <= exact + 1e-11


@settings(max_examples=examples(30))
@given(problems(kinds=KINDS, max_sites=5, max_clients=4), st.integers(0, 2**32 - 1), PERCENTS)
def test_bound_is_below_every_configuration(problem, seed, percent):
    problem = asked(problem, seed, percent)
    late = LateOperations(problem, problem.objective.distributions)
    assert percentile_bound(late, percent / 100) <= least(problem)


def test_better_than_the_mean_plan_and_says_how_far_from_optimal():
    """The README's data set: the mean's best plan has a long tail, which the search cuts."""
    instance = placement.load("world27")
    spread = Distributions.parametric(instance, variation=0.2, width=2.0, bins=600)
    problem = Problem(instance, replicas=5, voters=3, objective=Percentile(99, spread))
    plan = run(load_method("local-search"), problem, Options())
    mean = placement.solve(Problem(instance, replicas=5, voters=3))
    assert plan.objective < 0.9 * problem.objective.value(problem, mean.configuration)
    assert plan.gap < 0.1


def test_deterministic_and_stoppable():
    instance = random_instance(3, sites=9, clients=9)
    spread = Distributions.parametric(instance, variation=0.3, bins=900)
    problem = Problem(instance, replicas=(3, 5), voters=3, objective=Percentile(99, spread))
    search = load_method("local-search")
    plans = [run(search, problem, Options(seed=4)) for _ in range(2)]
    assert plans[0].configuration == plans[1].configuration
    assert dict(plans[0].stats) == dict(plans[1].stats)
    at_once = run(search, problem, Options(time_limit=0.0))
    assert at_once.status in (Status.FEASIBLE, Status.UNKNOWN)
    start = Configuration.of(0, (0, 1, 2), (0, 1, 2))
    begun = run(search, problem, Options(time_limit=0.0, start=start))
    assert begun.objective <= problem.objective.value(problem, start)
    assert begun.termination == "time limit"


def test_interrupt_gives_the_best_so_far(monkeypatch):
    from heuristics.tail import local_search as tail_search

    instance = random_instance(5, sites=9, clients=9)
    spread = Distributions.parametric(instance, variation=0.3, bins=900)
    problem = Problem(instance, replicas=4, voters=3, objective=Percentile(99, spread))

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(tail_search, "percentile_bound", stop)
    plan = run(load_method("local-search"), problem, Options())
    assert plan.termination == "interrupted"
    assert plan.status is Status.FEASIBLE
    assert plan.bound == 0


def test_horizon_too_short_is_no_proof_of_anything():
    instance = random_instance(2)
    short = Distributions.parametric(instance, variation=0.5, bins=40)
    problem = Problem(instance, replicas=4, voters=3, objective=Percentile(99, short))
    plan = placement.solve(problem, "local-search")
    assert plan.status is Status.UNKNOWN
    assert "beyond the horizon of 40 ms" in plan.notes[0]
    fixed = problem.replace(replicas=list(instance.sites[:4]))
    for method, question in (
        ("exhaustive", problem),
        ("tier2", fixed),
        ("leader", fixed.replace(voters=list(instance.sites[:3]))),
    ):
        said = placement.solve(question, method)
        assert said.status is Status.INFEASIBLE
        assert "beyond the horizon of 40 ms do not count" in said.reasons[-1]


def test_every_percentile_of_still_rtts_is_that_of_the_mean_model():
    """No variance: every method that takes a percentile finds what weighted sorting finds."""
    from placement.evaluation.score import operation_latency

    for seed in range(2):
        instance = whole(random_instance(seed, sites=5, clients=4))
        still = Distributions.constant(instance, bins=250)

        def by_sorting(problem, c, share):
            quorum = problem.rules.quorum
            latency = operation_latency(problem.demand, c.leader, c.voters, c.replicas, quorum)[0]
            counts = problem.demand.counts[0]
            used = counts > 0
            order = np.argsort(latency[used])
            reached = np.cumsum(counts[used][order]) / counts.sum()
            return latency[used][order][np.searchsorted(reached, share - 1e-12)]

        for percent in (50, 99, 100):
            goal = Percentile(percent, still)
            free = Problem(instance, replicas=3, voters=3, objective=goal)
            best = min(by_sorting(free, c, percent / 100) for c in every_configuration(free))
            for method in ("exhaustive", "local-search"):
                assert placement.solve(free, method).objective == best
            fixed = free.replace(replicas=list(instance.sites[:4]))
            best = min(by_sorting(fixed, c, percent / 100) for c in every_configuration(fixed))
            assert placement.solve(fixed, "tier2").objective == best
            roles = fixed.replace(voters=list(instance.sites[1:4]))
            best = min(by_sorting(roles, c, percent / 100) for c in every_configuration(roles))
            assert placement.solve(roles, "leader").objective == best


@settings(max_examples=examples(8))
@given(st.integers(0, 10_000), st.permutations(range(5)), PERCENTS)
def test_order_of_sites_does_not_matter(seed, order, percent):
    """A test network with its sites in another order has the same best percentile."""
    instance = random_instance(seed, sites=5, clients=4)
    goal = Percentile(percent, drawn(instance, seed))
    order = list(order)
    turned = instance.replace(
        sites=tuple(instance.sites[s] for s in order),
        client_rtt=instance.client_rtt[:, order],
        site_rtt=instance.site_rtt[np.ix_(order, order)],
        domains={},
        site_coordinates=None,
    )
    given = goal.distributions
    other = Distributions(
        given.client_site[:, order],
        given.site_site[np.ix_(order, order)],
        given.width,
        turned.sites,
        turned.clients,
    )
    here = Problem(instance.replace(domains={}), replicas=3, voters=3, objective=goal)
    there = Problem(turned, replicas=3, voters=3, objective=Percentile(percent, other))
    best = least(here)
    assert least(there) == best
    assert {placement.solve(p, "exhaustive").objective for p in (here, there)} == {best}


@settings(max_examples=examples(40))
@given(st.integers(0, 10_000))
def test_percentiles_do_not_fall_as_p_rises(seed):
    instance = random_instance(seed, sites=4, clients=3)
    given = drawn(instance, seed)
    problem = Problem(instance, replicas=4, voters=3)
    chosen = next(every_configuration(problem))
    shares = [0.1, 1, 10, 50, 75, 90, 99, 99.9, 100]
    values = [Percentile(p, given).value(problem, chosen) for p in shares]
    assert values == sorted(values)


def test_odd_operations_are_guided_and_still_valued_by_the_evaluator():
    """An operation that asks nearby and waits for a quorum has no exact sum over clients."""
    instance = random_instance(1, sites=5, clients=4)
    instance = instance.replace(
        operations=(Operation("both", near=1, relay=1, direct=1, quorum=2),),
        counts=np.ones((4, 1)),
    )
    problem = Problem(instance, replicas=3, voters=3)
    problem = problem.replace(objective=Percentile(90, drawn(instance, 8)))
    assert not LateOperations(problem, problem.objective.distributions).exact
    plan = placement.solve(problem, "local-search")
    assert plan.objective <= 1.05 * least(problem)
    assert plan.objective == problem.objective.value(problem, plan.configuration)
    assert (
        dataclasses.replace(problem.objective, percent=50).value(problem, plan.configuration)
        < plan.objective
    )
