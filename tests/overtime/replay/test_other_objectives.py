"""Replays of percentiles and worst losses, against enumeration and the evaluator."""

import math

import numpy as np
import pytest

import placement
from placement import Configuration, Contingency, Problem
from placement.evaluation.breakdown import objective_values
from placement.measures import read_measure
from placement.measures.question import percentile_question
from placement.measures.values import value
from placement.overtime.replay import NOBODY, Deployments, Trace, replay, summary
from placement.plan import objective_value
from placement.tail import Distributions
from placement.tail.latency_mixture import mixture
from placement.testing import every_configuration, random_instance
from tests.cli.command import runner

GRID = {"variation": 0.3, "width": 5, "bins": 400}


def goal_of(kind, instance):
    """The objective of a kind on an instance, with RTTs that vary or not."""
    if kind == "worst":
        return Contingency()
    if not instance.varying_rtt:
        return percentile_question(float(kind), Distributions.parametric(instance, **GRID))
    each = [
        Distributions.parametric(instance.at_interval(k), **GRID)
        for k in range(len(instance.intervals))
    ]
    return percentile_question(float(kind), *each)


def alone(problem, counts, interval):
    """The problem of one interval, put together by hand."""
    instance = problem.instance.at_interval(interval, counts)
    goal = problem.objective
    goal = goal.of_intervals(interval)
    return problem.replace(instance=instance, objective=goal, decay=1.0)


def least(problem, configurations):
    """Least objective in ms, by the evaluator."""
    return problem.objective.in_ms(problem, float(objective_values(problem, configurations).min()))


@pytest.mark.parametrize(
    ("kind", "varying"),
    [("95", True), ("worst", False), *(pytest.param(*one, marks=pytest.mark.slow) for one in (
        ("50", False), ("50", True), ("95", False), ("worst", True)))],
)  # fmt: skip
def test_the_oracle_and_the_optimized_pay_the_least_of_all_configurations(kind, varying):
    world = random_instance(8, sites=5, clients=3, intervals=4, varying=varying)
    goal = goal_of(kind, world)
    problem = Problem(world, replicas=4, voters=3, decay=2.0, objective=goal)
    sites = world.sites
    held = Deployments.same(world, 1, sites[:4], sites[:3])
    trace = Trace.of_instance(world)
    result = replay(problem, trace, held, tiers=(1, 2, 3))
    assert result.objective == goal.describe()
    assert result.proven == 1.0
    everything = {
        1: [Configuration.of(leader, (0, 1, 2), (0, 1, 2, 3)) for leader in (0, 1, 2)],
        2: list(every_configuration(problem.replace(replicas=list(sites[:4]), voters=3))),
        3: list(every_configuration(problem)),
    }
    if kind == "worst":  # tier 2 leaves out what breaks the objective; so does tier 1
        everything = {
            tier: [one for one in rows if math.isfinite(objective_value(problem, one))]
            for tier, rows in everything.items()
        }
    for tier, rows in everything.items():
        oracle = result.outcome(tier, "oracle")
        for column in range(3):
            asked = alone(problem, trace.counts[0, column + 1], column + 1)
            per_operation = oracle.score[0, column] / asked.demand.operations
            assert per_operation == pytest.approx(least(asked, rows)), (tier, column)
        for strategy in ("optimized", "static", "smallest-quorum", "closest-to-writes"):
            chosen = result.outcome(tier, strategy)
            for column in range(3):
                asked = alone(problem, trace.counts[0, column + 1], column + 1)
                one = Configuration.of(
                    int(chosen.leader[0, column]),
                    result.sets[chosen.voters[0, column]],
                    result.sets[chosen.replicas[0, column]],
                )
                value = asked.objective.in_ms(asked, objective_value(asked, one))
                assert chosen.score[0, column] == pytest.approx(value * asked.demand.operations)
                if strategy == "optimized":
                    seen = world.replace(
                        counts=world.counts[: column + 1],
                        intervals=world.intervals[: column + 1],
                        **({
                            "client_rtt": world.client_rtt[: column + 1],
                            "site_rtt": world.site_rtt[: column + 1],
                        } if varying else {}),
                    )  # fmt: skip
                    past = problem.replace(
                        instance=seen, objective=goal.of_intervals(slice(column + 1))
                    )
                    value = past.objective.in_ms(past, objective_value(past, one))
                    assert value == pytest.approx(least(past, rows))
        worst = result.total(tier, "worst") if tier < 3 else math.inf
        assert (result.total(tier, "static") <= worst + 1e-6).all() or kind != "worst"
    frame = summary(result)
    assert "value" in frame
    assert "mean_latency" not in frame


def test_leaders_that_are_spread_share_one_percentile():
    """The percentile of a mixture is not the mean of the percentiles."""
    world = random_instance(8, sites=4, clients=3, intervals=2)
    goal = goal_of("90", world)
    problem = Problem(world, replicas=3, voters=3, objective=goal)
    held = Deployments.same(world, 1, world.sites[:3], world.sites[:3])
    trace = Trace.of_instance(world)
    result = replay(problem, trace, held, tiers=(1,), strategies=("average",))
    asked = alone(problem, trace.counts[0, 1], 1)
    each = [Configuration.of(leader, (0, 1, 2), (0, 1, 2)) for leader in (0, 1, 2)]
    (spread,) = goal.distributions
    latency = np.mean([mixture(asked, one, spread) for one in each], axis=0)
    wanted = 5 * int(np.searchsorted(np.cumsum(latency), 0.9 - 1e-12))
    average = result.outcome(1, "average")
    assert average.score[0, 0] == pytest.approx(wanted * asked.demand.operations)
    assert average.leader[0, 0] == NOBODY
    singles = [objective_value(asked, one) for one in each]
    assert min(singles) <= wanted <= max(singles)


def test_the_mixture_of_worst_cases_counts_each_loss_once():
    """A loss hits all groups at once: the mixture is at most the mean of the worst cases."""
    world = random_instance(3, sites=4, clients=4)
    goal = Contingency()
    problem = Problem(world, replicas=4, voters=3, objective=goal)
    each = [one for one in every_configuration(problem) if one.voters == (0, 1, 2)][:3]
    shares = [0.5, 0.3, 0.2]
    names = [f"mean after the loss of {site}" for site in world.sites]
    after = [[value(problem, read_measure(text), one) for text in names] for one in each]
    losses = (np.array(shares) @ np.array(after)).tolist()
    normal = placement.evaluation.objective.MEAN_LATENCY.mixed(problem, each, shares)
    normal /= problem.demand.operations
    mixed = goal.mixed(problem, each, shares)
    assert mixed == pytest.approx(max(normal, *losses))
    assert mixed <= sum(
        p * goal.value(problem, one) for p, one in zip(shares, each, strict=True)
    ) * (1 + 1e-12)


def test_the_command_replays_a_percentile(capsys, tmp_path):
    command = runner(capsys)
    asked = (
        "lab", "replay", "world27", "--replicas", "3", "--voters", "3", "--fleet", "1", "--minutes",
        "360", "--percentile", "99", "--spread", "0.2", "--bin-width", "20",
    )  # fmt: skip
    outcome = command(*asked, "--tiers", "1,3", "-o", tmp_path / "rows.csv")
    assert outcome.code == 0, outcome.err
    assert "value ms" in outcome.out
    assert "All tiers were planned by exact; 100.0 % of the oracle's plans" in outcome.out
    assert "minimise p99" in outcome.out
    assert "value" in (tmp_path / "rows.csv").read_text().splitlines()[0].split(",")
    document = command(*asked, "--tiers", "1", "--json").document
    assert document["objective"] == "minimise p99"
    assert all("value" in row for row in document["strategies"])
