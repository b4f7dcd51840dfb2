"""Percentiles where RTTs vary by interval: one distribution per pair and interval."""

import itertools

import numpy as np
import pytest

import placement
from placement import Configuration, Problem
from placement.errors import InputError, UnsupportedError
from placement.io import load_plan, save_instance, save_plan
from placement.tail import Distributions, Percentile
from placement.testing import every_configuration, random_instance
from tests.cli.command import runner
from tests.tail.worlds import drawn


def world(intervals=3):
    return random_instance(14, sites=5, clients=4, intervals=intervals, varying=True)


def goal_of(instance, percent=90.0):
    """Distributions that differ from interval to interval, some with overflow."""
    each = [drawn(instance.at_interval(k), k) for k in range(len(instance.intervals))]
    return Percentile.varying(percent, each)


def by_hand(problem, configuration):
    """The percentile, one interval after another by problems of one RTT matrix."""
    goal, total, weights = problem.objective, np.zeros(5000), 0.0
    intervals = len(problem.instance.intervals)
    for k in range(intervals):
        weight = problem.decay ** (k - intervals + 1.0)
        alone = problem.replace(
            instance=problem.instance.at_interval(k),
            objective=Percentile(goal.percent, goal.by_interval[k]),
            decay=1.0,
        )
        issued = weight * alone.demand.operations
        latency = alone.objective.latency(alone, configuration)
        total[: len(latency)] += issued * latency
        weights += issued
    reached = np.cumsum(total / weights)
    place = int(np.searchsorted(reached, goal.percent / 100 - 1e-12))
    overflows = reached[-1] < 1 - 1e-9
    return float("inf") if place >= 5000 or (overflows and place >= 60) else float(place)


@pytest.mark.parametrize("decay", [1.0, 2.0])
def test_the_value_is_that_of_the_mixture_of_the_intervals(decay):
    instance = world()
    problem = Problem(instance, replicas=3, voters=2, decay=decay, objective=goal_of(instance))
    for configuration in itertools.islice(every_configuration(problem), 0, None, 7):
        value = problem.objective.value(problem, configuration)
        assert value == by_hand(problem, configuration)


def test_only_the_last_interval_counts_with_an_infinite_decay():
    instance = world()
    goal = goal_of(instance)
    problem = Problem(instance, replicas=3, voters=2, decay=float("inf"), objective=goal)
    last = problem.replace(
        instance=instance.at_interval(2), objective=goal.of_intervals(2), decay=1.0
    )
    one = Configuration.of(1, (1, 3), (0, 1, 3))
    assert problem.objective.value(problem, one) == last.objective.value(last, one)


@pytest.mark.parametrize("tier", [1, 2, 3])
def test_every_method_that_takes_it_finds_the_least(tier):
    instance = world()
    sites = instance.sites
    problem = Problem(
        instance,
        replicas=3 if tier == 3 else sites[:4],
        voters=sites[:3] if tier == 1 else 3 if tier == 2 else 2,
        decay=2.0,
        objective=goal_of(instance, 40.0),
    )
    least = min(problem.objective.value(problem, one) for one in every_configuration(problem))
    for method in ("exact", "exhaustive", {1: "leader", 2: "tier2", 3: "exact"}[tier]):
        plan = placement.solve(problem, method)
        assert plan.status is placement.Status.OPTIMAL
        assert plan.objective == least
    with pytest.raises(UnsupportedError, match="RTTs that vary by interval"):
        placement.solve(problem, "local-search")


def test_a_plan_file_holds_the_distributions_of_every_interval(tmp_path):
    instance = world()
    each = [Distributions.parametric(instance.at_interval(k), bins=900) for k in range(3)]
    for goal in (goal_of(instance), Percentile.varying(75, each)):
        problem = Problem(instance, replicas=3, voters=2, objective=goal)
        plan = placement.solve(problem)
        path = tmp_path / f"{goal.percent:g}.json"
        save_plan(plan, path)
        again = load_plan(path)
        assert again.objective == plan.objective
        assert len(again.problem.objective.by_interval) == 3
    text = path.read_text()
    assert text.count('"by_interval"') == 1
    path.write_text(text.replace('"variation": 0.1', '"variation": -1', 1))
    with pytest.raises(InputError, match="variation"):
        load_plan(path)


def test_distributions_of_other_intervals_are_refused():
    instance = world()
    goal = goal_of(instance)
    with pytest.raises(InputError, match="one for each of 3 intervals"):
        Problem(instance, replicas=3, voters=2, objective=goal.of_intervals(slice(2)))
    with pytest.raises(InputError, match="one for each of 3 intervals"):
        Problem(instance, replicas=3, voters=2, objective=goal.of_intervals(0))
    with pytest.raises(InputError, match="RTTs do not vary by interval"):
        Problem(instance.at_interval(0), replicas=3, voters=2, objective=goal)
    with pytest.raises(InputError, match="different grids"):
        Percentile.varying(90, [*goal.by_interval, drawn(instance.at_interval(0), 0, bins=9)])
    with pytest.raises(InputError, match="no distributions"):
        Percentile.varying(90, [])


def test_the_command_gives_every_interval_its_own_spread(capsys, tmp_path):
    instance = world()
    save_instance(instance, tmp_path / "world")
    command = runner(capsys)
    asked = (tmp_path / "world", "--replicas", 3, "--voters", 3, "--percentile", 90)
    plan = command("solve", *asked, "--spread", 0.2, "--json").document
    assert plan["status"] == "optimal"
    replayed = command("replay", *asked, "--spread", 0.2, "--tiers", "1", "--json").document
    assert replayed["objective"] == "p90 latency"
    refused = command("solve", *asked, "--distributions", "x.csv")
    assert refused.code == 1
    assert "--distributions: a file has one distribution per pair" in refused.err
