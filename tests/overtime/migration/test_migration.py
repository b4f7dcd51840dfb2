"""Staged migrations: every step against the evaluator, a sample of operations, and by hand."""

import json

import numpy as np
import pytest

import placement
from placement import Configuration, Instance, Problem
from placement.errors import InputError
from placement.evaluation.objective import MEAN_LATENCY
from placement.io import save_plan
from placement.measures.question import percentile_question
from placement.overtime.migration import migrate
from placement.tail import Distributions
from placement.testing import random_instance
from tests.cli.command import runner

CHOSEN = Configuration.of(1, (0, 1, 2, 3), (0, 1, 2, 3, 4))


def question(seed=2, variation=0.3):
    instance = random_instance(seed, sites=5, clients=4)
    spread = Distributions.parametric(instance, variation=variation, width=2, bins=900)
    return Problem(instance, replicas=5, voters=4, objective=percentile_question(50, spread))


@pytest.mark.parametrize("seed", [2, 3])
def test_every_step_is_the_mixture_of_the_leaders_by_the_evaluator(seed):
    problem = question(seed)
    shares = {"site-0": 0.4, "site-1": 0.1, "site-2": 0.3, "site-3": 0.2}
    result = migrate(problem, CHOSEN, shares=shares, groups=20, per_step=3, seed=seed)
    assert result.groups[0].tolist() == [8, 2, 6, 4]
    assert result.groups[-1].tolist() == [0, 20, 0, 0]
    assert len(result.groups) == 1 + 18 / 3
    each = [Configuration(leader, CHOSEN.voters, CHOSEN.replicas) for leader in range(4)]
    for step, led in enumerate(result.groups):
        assert led.sum() == 20
        mixture = (led / 20).tolist()
        for percent in result.percents:
            goal = percentile_question(percent, *problem.objective.distributions)
            asked = problem.replace(objective=goal)
            assert result.of(percent)[step] == goal.mixed(asked, each, mixture)
        plain = problem.replace(objective=MEAN_LATENCY)
        mean = MEAN_LATENCY.mixed(plain, each, mixture) / plain.demand.operations
        assert result.mean[step] == pytest.approx(mean)
    assert (np.diff(result.moved) > 0).all()


def test_the_median_falls_in_a_jump_when_half_of_the_groups_have_moved():
    """By hand: writes of one client take 100 ms at a far leader, 10 ms at the near one."""
    instance = Instance(
        sites=("far", "near"),
        clients=("c",),
        client_rtt=[[100.0, 10.0]],
        site_rtt=[[0.0, 0.0], [0.0, 0.0]],
        counts=[[0, 0, 100, 0, 0]],
    )
    goal = percentile_question(50, Distributions.constant(instance, bins=300))
    problem = Problem(instance, replicas=2, voters=2, objective=goal)
    chosen = Configuration.of(1, (0, 1), (0, 1))
    result = migrate(problem, chosen, shares={"far": 1.0}, groups=10, per_step=1)
    assert result.of(50.0).tolist() == [100.0] * 5 + [10.0] * 6
    assert result.mean.tolist() == pytest.approx([100 - 9 * step for step in range(11)])
    assert result.sites == ("far", "near")


def test_shares_become_whole_groups():
    problem = question()
    result = migrate(problem, CHOSEN, groups=10, per_step=100)
    assert result.groups[0].tolist() == [3, 3, 2, 2]
    assert len(result.groups) == 2
    already = migrate(problem, CHOSEN, shares={"site-1": 1.0})
    assert already.groups.tolist() == [[100]]
    assert already.moved.tolist() == [1.0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"shares": {"site-4": 1.0}}, "a share >= 0 of a voter"),
        ({"shares": {"site-0": 0.5}}, "do not sum to 1"),
        ({"shares": {"site-9": 1.0}}, "unknown site"),
        ({"shares": {"site-0": -1.0, "site-1": 2.0}}, "a share >= 0 of a voter"),
        ({"groups": 0}, "groups"),
        ({"per_step": 0}, "per_step"),
        ({"percents": ()}, "at least one percentile"),
        ({"percents": (101,)}, "percentile"),
    ],
)
def test_bad_input(given, message):
    with pytest.raises(InputError, match=message):
        migrate(question(), CHOSEN, **given)


def test_the_mean_has_no_distributions():
    with pytest.raises(InputError, match="needs the distributions of RTTs"):
        migrate(question().replace(objective=MEAN_LATENCY), CHOSEN)
    with pytest.raises(InputError, match="percentile not simulated"):
        migrate(question(), CHOSEN, percents=(50,)).of(90.0)


def test_the_command_simulates_writes_and_draws(capsys, tmp_path):
    command = runner(capsys)
    plan = placement.solve(Problem(placement.load("world27"), replicas=5, voters=5))
    path = tmp_path / "plan.json"
    save_plan(plan, path)
    drawn, rows = tmp_path / "migration.svg", tmp_path / "rows.csv"
    outcome = command(
        "lab", "migrate", path, "--per-step", 25, "--plot", drawn, "-o", rows, "--percents", "50"
    )
    assert outcome.code == 0, outcome.err
    assert f"All leaders at {plan.leader}" in outcome.out
    assert "leaders at" in drawn.read_text()
    assert rows.read_text().splitlines()[0] == "step,moved,mean,p50"
    shares = ["--leader-shares", f"{plan.voters[0]}=0.5", "--leader-shares", f"{plan.voters[1]}=.5"]
    document = command("lab", "migrate", path, *shares, "--spread", 0.2, "--bin-width", 5, "--json")
    steps = json.loads(document.out)["steps"]
    assert steps[-1]["moved"] == 1.0
    assert steps[-1]["mean"] == pytest.approx(plan.mean_latency)
    wrong = command("lab", "migrate", path, "--leader-shares", "nowhere")
    assert wrong.code == 1
    assert "--leader-shares: not SITE=SHARE" in wrong.err
