"""Every registered method either takes a percentile or refuses it with the reason."""

import pytest

import placement
import placement.testing
from placement.analysis.sensitivity import demand_range
from placement.methods.options import Options
from placement.methods.registry import available, load_method, refusal, run
from placement.tail import Distributions, Percentile
from placement.testing import random_instance
from tests.cli.command import runner

TAKES = {"exact", "exhaustive", "leader", "local-search", "tier2"}


@pytest.fixture(scope="module")
def questions():
    """The question of each tier."""
    instance = random_instance(6, sites=5, clients=4)
    goal = Percentile(99, Distributions.parametric(instance, variation=0.2, bins=900))
    free = placement.Problem(instance, replicas=4, voters=3, objective=goal)
    fixed = free.replace(replicas=list(instance.sites[:4]))
    return {3: free, 2: fixed, 1: fixed.replace(voters=list(instance.sites[:3]))}


@pytest.mark.parametrize("name", available())
def test_takes_it_or_says_why_not(name, questions):
    method = load_method(name)
    assert ("percentile" in method.objectives) == (name in TAKES)
    values = {}
    for tier, question in questions.items():
        reason = refusal(method, question)
        if name not in TAKES:
            assert "the objective is of the kind 'percentile'" in reason
            with pytest.raises(
                placement.UnsupportedError, match="that support it: exact, exhaustive"
            ):
                run(method, question, Options())
        elif reason is None:
            plan = run(method, question, Options())
            values[tier] = plan.objective
            assert plan.objective == question.objective.value(question, plan.configuration)
            best = placement.solve(question, "exhaustive").objective
            assert plan.objective == best if method.exact else plan.objective >= best
        else:
            assert "use a tier" in reason
    if name in TAKES:
        assert 1 in values


def test_exact_says_when_there_are_too_many_sets():
    """Operations that ask a replica nearby and a quorum besides leave enumeration alone."""
    world = placement.load("world27")
    both = placement.Operation("both", near=1, relay=0, direct=0, quorum=1)
    world = world.replace(operations=(*world.operations[:-1], both))
    goal = Percentile(99, Distributions.parametric(world, variation=0.2))
    few = placement.Problem(world, replicas=3, voters=3, objective=goal)
    many = few.replace(replicas=5)
    assert refusal(load_method("exact"), few) is None
    reason = refusal(load_method("exact"), many)
    assert reason is not None
    assert "a quorum besides" in reason
    assert "80,730" in reason
    assert "'local-search'" in reason
    small = placement.testing.random_instance(6, sites=5, clients=4)
    small = small.replace(operations=(*small.operations[:-1], both))
    goal = Percentile(99, Distributions.parametric(small, variation=0.2, bins=900))
    plan = placement.solve(placement.Problem(small, replicas=4, voters=3, objective=goal))
    assert plan.status is placement.Status.OPTIMAL
    assert "solved by 'exhaustive'" in plan.notes[0]


def test_what_is_about_the_mean_says_so(questions):
    """The sensitivity would show the mean's ranges for another objective's plans."""
    plan = run(load_method("leader"), questions[1], Options())
    with pytest.raises(placement.InputError, match="the objective 'mean'"):
        demand_range(plan, plan.problem.instance.clients[0])


def test_the_list_of_methods_says_who_takes_it(capsys):
    run_command = runner(capsys)
    listed = run_command("methods", "--json").document["methods"]
    assert {m["name"] for m in listed if "percentile" in m["objectives"]} == TAKES
    assert "mean latency, percentile latency" in run_command("methods", "tier2").out
