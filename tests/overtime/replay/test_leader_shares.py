"""A given distribution of leaders beside the uniform one: by hand, from files and from options."""

import numpy as np
import pytest

from placement import Configuration, Problem
from placement.errors import InputError
from placement.io import save_instance
from placement.measures.question import percentile_question
from placement.overtime.replay import NOBODY, Deployments, Trace, replay
from placement.overtime.replay.deployments import read_deployments
from placement.plan import objective_value
from placement.tail import Distributions
from placement.testing import random_instance
from tests.cli.command import runner

SHARES = {"site-0": 0.5, "site-1": 0.2, "site-2": 0.3}


def world(varying=False):
    return random_instance(5, sites=5, clients=4, intervals=4, varying=varying)


def held_on(instance, shares=SHARES):
    held = Deployments.same(instance, 1, instance.sites[:4], instance.sites[:3])
    return held.leading(instance, shares)


@pytest.mark.parametrize("varying", [False, True])
@pytest.mark.parametrize("tiers", [(1,), (2,), (3,), (1, 2, 3)])
def test_the_score_is_that_of_each_leader_with_its_share(varying, tiers):
    instance = world(varying)
    problem = Problem(instance, replicas=4, voters=3, decay=2.0)
    trace = Trace.of_instance(instance)
    result = replay(problem, trace, held_on(instance), tiers=tiers)
    for tier in tiers:
        given = result.outcome(tier, "given")
        assert (given.leader == NOBODY).all()
        for column in range(3):
            asked = problem.replace(
                instance=instance.at_interval(column + 1, trace.counts[0, column + 1]), decay=1.0
            )
            values = [
                objective_value(asked, Configuration.of(leader, (0, 1, 2), (0, 1, 2, 3)))
                for leader in range(3)
            ]
            assert given.score[0, column] == pytest.approx(float(np.dot([0.5, 0.2, 0.3], values)))
            assert result.sets[given.voters[0, column]] == (0, 1, 2)
            assert result.sets[given.replicas[0, column]] == (0, 1, 2, 3)


def test_a_percentile_of_the_given_leaders_is_that_of_their_mixture():
    instance = world()
    goal = percentile_question(
        90, Distributions.parametric(instance, variation=0.2, width=5, bins=400)
    )
    problem = Problem(instance, replicas=4, voters=3, decay=2.0, objective=goal)
    trace = Trace.of_instance(instance)
    result = replay(problem, trace, held_on(instance), tiers=(1,), strategies=("given",))
    asked = problem.replace(instance=instance.at_interval(2, trace.counts[0, 2]), decay=1.0)
    each = [Configuration.of(leader, (0, 1, 2), (0, 1, 2, 3)) for leader in range(3)]
    value = goal.mixed(asked, each, [0.5, 0.2, 0.3])
    assert result.outcome(1, "given").score[0, 1] == pytest.approx(value * asked.demand.operations)


@pytest.mark.parametrize(
    "shares", [{"site-3": 1.0}, {"site-0": 0.7}, {"site-0": -1.0, "site-1": 2.0}, {"x": 1.0}]
)
def test_shares_are_checked(shares):
    with pytest.raises(InputError):
        held_on(world(), shares)


def test_shares_come_from_a_file_or_an_option(capsys, tmp_path):
    instance = world()
    save_instance(instance, tmp_path / "world")
    table = tmp_path / "held.csv"
    rows = [("site-0", "voter", 0.5), ("site-1", "voter", 0.2), ("site-2", "voter", 0.3)]
    lines = [f"{instance.name},{site},{role},{share}" for site, role, share in rows]
    text = "database,site,role,share\n" + "\n".join(lines) + f"\n{instance.name},site-3,replica,\n"
    table.write_text(text)
    read = read_deployments(table, instance, [instance.name])
    assert read.leader_shares is not None
    assert read.leader_shares[0].tolist() == [0.5, 0.2, 0.3, 0, 0]
    command = runner(capsys)
    asked = (
        "lab", "replay", tmp_path / "world", "--replicas", 4, "--voters", 3, "--tiers", 1, "--json",
    )  # fmt: skip
    by_file = command(*asked, "--deployments", table).document["strategies"]
    options = [f"--leader-shares={site}={share}" for site, _, share in rows]
    by_option = command(
        "lab", "replay", tmp_path / "world", "--replicas", ",".join(instance.sites[:4]), "--voters",
        ",".join(instance.sites[:3]), "--tiers", 1, "--json", *options,
    ).document["strategies"]  # fmt: skip
    assert by_file == by_option
    assert "given" in {row["strategy"] for row in by_file}
    for wrong, message in (
        ("0.5,", "do not sum to 1"), ("-1", "negative"), ("x", "share"),
    ):  # fmt: skip
        table.write_text(text.replace("0.3", wrong.rstrip(",")))
        refused = command(*asked, "--deployments", table)
        assert refused.code == 1
        assert message in refused.err
    table.write_text(text.replace("site-3,replica,", "site-3,replica,0.1"))
    assert "does not vote" in command(*asked, "--deployments", table).err
    for options in (["a"], ["a=b"], ["site-0=1", "site-0=1"]):
        given = [f"--leader-shares={option}" for option in options]
        assert command(*asked, *given).code == 1
