"""Sweeps and frontiers of percentiles and worst cases, against enumeration."""

import pytest

import placement
from placement import Contingency
from placement.evaluation.cost_model import configuration_cost
from placement.measures.question import percentile_question
from placement.plan import objective_value
from placement.tail import Distributions
from placement.testing import every_configuration, optimum, random_instance
from tests.cli.command import runner


def least(problem):
    """Least value in ms of all configurations, by plain enumeration with the evaluator."""
    return problem.objective.in_ms(problem, optimum(problem))


@pytest.mark.parametrize("kind", ["p50", "p99", "worst"])
@pytest.mark.parametrize("method", ["exact", "exhaustive"])
def test_every_cell_has_the_least_value(kind, method):
    instance = random_instance(31, sites=5, clients=4)
    if kind == "worst":
        goal = Contingency()
    else:
        spread = Distributions.parametric(instance, variation=0.3, width=5, bins=300)
        goal = percentile_question(float(kind[1:]), spread)
    problem = placement.Problem(instance, replicas=3, voters=3, objective=goal)
    table = placement.sweep(problem, replicas=[3, 4, 5], voters=[3], method=method)
    assert table.attrs["objective"] == goal.describe().removeprefix("minimise ")
    values = [least(problem.replace(replicas=size)) for size in (3, 4, 5)]
    assert table["status"].tolist() == ["optimal"] * 3
    assert table["value"].tolist() == pytest.approx(values)
    assert table["gain"].tolist()[1:] == pytest.approx(
        [values[0] - values[1], values[1] - values[2]]
    )
    for row in table.itertuples():
        assert row.mean_latency == pytest.approx(row.score / problem.demand.operations)
        assert row.mean_latency != row.value


def test_a_frontier_of_a_percentile_is_that_of_all_configurations():
    instance = random_instance(12, sites=5, clients=3, prices=True)
    spread = Distributions.parametric(instance, variation=0.2, width=5, bins=300)
    problem = placement.Problem(
        instance, replicas=3, voters=1, objective=percentile_question(90, spread)
    )
    front = placement.pareto(problem, replicas=[2, 3], voters=[1])
    points = sorted(
        (configuration_cost(instance, one), objective_value(part, one))
        for size in (2, 3)
        for part in [problem.replace(replicas=size)]
        for one in every_configuration(part)
    )
    wanted = []
    for cost, value in points:
        if not wanted or value < wanted[-1][1] * (1 - 1e-9):
            wanted.append((cost, value))
    assert front.attrs["complete"]
    assert front["value"].tolist() == pytest.approx([value for _, value in wanted])
    assert front["cost"].tolist() == pytest.approx([cost for cost, _ in wanted])


def test_the_command_sweeps_a_percentile_and_the_report_shows_it(capsys, tmp_path):
    table = tmp_path / "sweep.json"
    command = runner(capsys)
    outcome = command(
        "compare", "sizes", "world27", "--replicas", "3..4", "--voters", "3", "--percentile", "99",
        "--spread", "0.2", "--bin-width", "10", "--plot", tmp_path / "sweep.svg", "-o", table,
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    assert "value ms" in outcome.out
    assert "p99, which is minimised" in outcome.out
    picture = (tmp_path / "sweep.svg").read_text()
    assert ">p99<" in picture
    assert ">ms<" in picture
    page_file = tmp_path / "page.html"
    assert command("report", table, "-o", page_file).code == 0
    page = page_file.read_text()
    assert "Objective of the best plan" in page
    assert "Objective, ms" in page


def test_the_options_of_a_percentile_need_one(capsys):
    outcome = runner(capsys)(
        "compare", "sizes", "world27", "--replicas", "3", "--voters", "3", "--spread", "0.2"
    )
    assert outcome.code == 1
    assert "--spread: does nothing without --percentile" in outcome.err
