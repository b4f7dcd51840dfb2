"""sweep and pareto against solving every cell by hand, of every objective; their pictures."""

import dataclasses
import itertools
import math
import re
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import placement
from placement import Contingency, Prices, Problem, Termination
from placement.analysis import pareto_frontier
from placement.analysis import sweep as sweeps
from placement.errors import InputError, MissingDependencyError
from placement.evaluation.cost_model import configuration_cost
from placement.measures.question import percentile_question
from placement.model.configuration import Configuration
from placement.plan import evaluate, objective_value
from placement.report import plots
from placement.tail import Distributions
from placement.testing import every_configuration, optimum, random_instance
from tests.effort import examples
from tests.strategies import NESTED, problems


def world(whole=False, prices=True):
    instance = random_instance(2, clients=5, prices=prices)
    if not prices or whole:
        return instance
    return instance.replace(prices=dataclasses.replace(instance.prices, written_gb=0.3))


def frontier(*asked):
    """Cost and value of the configurations of all problems that none beats in both."""
    kept = []
    for cost, value in sorted(
        (configuration_cost(problem.instance, one), objective_value(problem, one))
        for problem in asked
        for one in every_configuration(problem)
    ):
        if not kept or value < kept[-1][1] * (1 - 1e-9):
            kept.append((cost, value))
    return kept


def test_cells_gains_and_order():
    instance = world(prices=False)
    table = placement.sweep(instance, replicas=(5, 2, 4, 3), voters=[3, 1], method="exhaustive")
    assert list(table.columns) == list(sweeps.SWEEP_COLUMNS)
    cells = list(zip(table["voters"], table["replicas"], strict=True))
    assert cells == [(1, 2), (1, 3), (1, 4), (1, 5), (3, 3), (3, 4), (3, 5)]
    for row in table.itertuples():
        plan = placement.solve(
            Problem(instance, replicas=row.replicas, voters=row.voters), method="exhaustive"
        )
        assert row.status == "optimal"
        assert row.score == plan.score
        assert row.bound == pytest.approx(plan.score)
        assert row.leader == plan.leader
        assert row.replica_sites == plan.replicas
    for voters, part in table.groupby("voters"):
        latency = part["mean_latency"].to_numpy()
        assert math.isnan(part["gain"].iloc[0])
        assert np.allclose(part["gain"].iloc[1:], latency[:-1] - latency[1:])
        assert np.allclose(part["gain_percent"].iloc[1:], 100 * (1 - latency[1:] / latency[:-1]))
        assert voters in (1, 3)
    assert table["cost"].isna().all()


def refused(problem, size):
    """Why there is no such question, or nothing."""
    try:
        problem.replace(replicas=size)
    except InputError as error:
        return str(error)
    return ""


@given(
    problems(max_sites=6, kinds=NESTED | {"replica_caps", "cost_weight", "range"}),
    st.sets(st.integers(1, 7), min_size=1),
)
@settings(max_examples=examples(60))
def test_cells_of_generated_problems_are_what_enumeration_finds(problem, sizes):
    """Ties, caps, pins, prices, clients without demand, leaders that do not matter, no answer."""
    if max(sizes) < problem.rules.voters:
        return
    table = placement.sweep(problem, replicas=sizes)
    for cell in table.itertuples():
        if refusal := refused(problem, cell.replicas):
            assert (cell.status, cell.reason) == ("refused", refusal)
            continue
        truth = placement.solve(problem.replace(replicas=cell.replicas), method="exhaustive")
        assert cell.status == truth.status
        if not truth.found:
            assert cell.bound == math.inf
            continue
        found = truth.problem.instance.site_indices
        chosen = Configuration.of(
            *found([cell.leader]), found(cell.voter_sites), found(cell.replica_sites)
        )
        plan = evaluate(truth.problem, chosen)
        assert plan.status == "feasible"
        assert plan.score == cell.score
        assert plan.objective == pytest.approx(truth.objective, rel=1e-9, abs=1e-12)
        assert cell.bound == pytest.approx(truth.objective, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("limit", [{"time_limit": 0.0}, {"gap_limit": 0.05}, {"gap_limit": 1.0}])
def test_cells_at_a_limit_say_no_more_than_they_prove(limit):
    for seed in range(6):
        instance = random_instance(30 + seed, sites=10, clients=12)
        table = placement.sweep(instance, replicas=range(3, 9), **limit)
        for cell in table.itertuples():
            truth = placement.solve(Problem(instance, replicas=cell.replicas, voters=3)).score
            assert cell.status in ("optimal", "feasible")
            assert cell.bound <= truth * (1 + 1e-12)
            assert cell.score >= truth * (1 - 1e-12)
            if "gap_limit" in limit:
                assert cell.gap <= limit["gap_limit"]


@pytest.mark.parametrize("at", [3, 5, 8])
def test_ctrl_c_in_the_middle_of_a_cell_keeps_its_honest_bound(at):
    instance = random_instance(41, sites=12, clients=14)

    def press(replicas, voters, report):
        if replicas == at:
            raise KeyboardInterrupt

    table = placement.sweep(instance, replicas=range(3, 9), progress=press)
    for cell in table.itertuples():
        truth = placement.solve(Problem(instance, replicas=cell.replicas, voters=3)).score
        if cell.replicas < at:
            assert cell.status == "optimal"
        elif cell.status != "not run":
            assert cell.bound <= truth * (1 + 1e-12)
            assert cell.score >= truth * (1 - 1e-12)


def test_a_session_is_for_one_number_of_voters_and_a_method_without_one_starts_from_before(
    monkeypatch,
):
    asked = []
    true_run = sweeps.run

    def seen(method, problem, options):
        asked.append((method.call, problem.rules.replicas_min, options.start))
        return true_run(method, problem, options)

    monkeypatch.setattr(sweeps, "run", seen)
    placement.sweep(random_instance(22), replicas=[3, 4], voters=[1, 3])
    calls = [call for call, *_ in asked]
    assert calls[0] is calls[1] is not calls[2] is calls[3]
    assert all(start is None for *_, start in asked)
    asked.clear()
    placement.sweep(random_instance(22), replicas=[3, 4], voters=3, method="kq")
    assert [start is None or len(start.replicas) for *_, start in asked] == [True, 4]


def test_the_constraints_of_a_problem_hold_in_every_cell():
    problem = Problem(
        world(),
        replicas=4,
        voters=["site-1", "site-2"],
        forbidden=["site-0"],
        pinned=["site-3", "site-4"],
    )
    table = placement.sweep(problem, replicas=range(2, 5), method="exhaustive")
    by_size = table.set_index("replicas")
    assert by_size["status"][2] == "refused"
    assert by_size["status"][4] == "optimal"
    assert set(by_size["replica_sites"][4]) == {"site-1", "site-2", "site-3", "site-4"}
    assert set(by_size["voter_sites"][4]) == {"site-1", "site-2"}
    assert by_size["voters"][4] == 2


def test_infeasible_cells_say_why():
    instance = world().replace(domains={"zone": ("x", "x", "y", "y", "z", "z")})
    problem = Problem(
        instance, replicas=2, voters=2, diversity=placement.Diversity("zone", "replicas", cap=1)
    )
    table = placement.sweep(problem, replicas=[3, 4], method="exhaustive").set_index("replicas")
    assert table["status"].tolist() == ["optimal", "infeasible"]
    assert "zone" in table["reason"][4]


def test_more_replicas_than_sites_is_a_refused_cell():
    table = placement.sweep(world(), replicas=[6, 7], voters=1, method="kq")
    assert table["status"].tolist() == ["feasible", "refused"]
    assert "more replicas than sites" in table["reason"][1]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"replicas": [], "voters": 1}, "none given"),
        ({"replicas": [0], "voters": 1}, "out of range"),
        ({"replicas": [2.5], "voters": 1}, "not a whole number"),
        ({"replicas": [2], "voters": 3}, "voters <= replicas"),
        ({"replicas": [3], "voters": 3, "method": "kqq"}, "did you mean 'kq'"),
    ],
)
def test_bad_input(asked, message):
    with pytest.raises(InputError, match=message):
        placement.sweep(world(), **asked)


def test_ctrl_c_keeps_the_cells_there_are(monkeypatch):
    true_run = sweeps.run
    calls = []

    def pressed(method, problem, options):
        calls.append(problem.rules.replicas_min)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return true_run(method, problem, options)

    monkeypatch.setattr(sweeps, "run", pressed)
    table = placement.sweep(world(), replicas=range(1, 5), voters=1, method="kq")
    assert table["status"].tolist() == ["feasible", "not run", "not run", "not run"]
    assert calls == [1, 2]


@pytest.mark.parametrize(("method", "whole"), [("exhaustive", True), ("cp-sat", False)])
def test_the_frontier_is_the_one_of_all_configurations(method, whole):
    instance = world(whole=whole)
    truth = frontier(*(Problem(instance, replicas=(n, 5), voters=n) for n in (1, 2)))
    table = placement.pareto(instance, replicas=range(1, 6), voters=[1, 2], method=method)
    assert list(table.columns) == list(pareto_frontier.PARETO_COLUMNS)
    assert table.attrs["complete"]
    assert set(table["status"]) == {"optimal"}
    assert np.allclose(table["cost"], [cost for cost, _ in truth])
    assert np.allclose(table["score"], [value for _, value in truth], rtol=1e-9)
    assert table["cost"].is_monotonic_increasing
    assert table["score"].is_monotonic_decreasing


def test_the_budget_of_the_problem_bounds_the_frontier():
    instance = world()
    whole = placement.pareto(instance, replicas=range(2, 5), voters=2, method="exhaustive")
    limit = float(whole["cost"].iloc[len(whole) // 2])
    problem = Problem(instance, replicas=2, voters=2, budget=limit, cost_weight=7.0)
    table = placement.pareto(problem, replicas=range(2, 5), method="exhaustive")
    assert np.allclose(table["cost"], whole["cost"][whole["cost"] <= limit])


def test_an_unfinished_frontier_says_so():
    table = placement.pareto(world(), replicas=range(1, 6), voters=1, method="exhaustive", points=2)
    assert not table.attrs["complete"]
    assert len(table) <= 2
    table = placement.pareto(world(), replicas=[3], voters=1, method="kq")
    assert not table.attrs["complete"]  # a heuristic proves no point


def test_a_free_world_has_one_point():
    instance = world().replace(prices=Prices(np.zeros(6)))
    table = placement.pareto(instance, replicas=[3], voters=1, method="exhaustive")
    assert table["cost"].tolist() == [0.0]
    assert table.attrs["complete"]


def test_no_prices_no_frontier():
    with pytest.raises(InputError, match="needs prices"):
        placement.pareto(world(prices=False), replicas=[2], voters=1)


def test_interrupting_a_frontier_keeps_its_points(monkeypatch):
    true_solve = pareto_frontier.solve

    def pressed(problem, *args, **kwargs):
        plan = true_solve(problem, *args, **kwargs)
        return plan.replace(termination=Termination.INTERRUPTED)

    monkeypatch.setattr(pareto_frontier, "solve", pressed)
    table = placement.pareto(world(), replicas=[2, 3], voters=1, method="exhaustive")
    assert len(table) == 1
    assert not table.attrs["complete"]


@given(problems(max_sites=5, kinds={"forbidden", "pinned", "nested_caps", "budget", "quorum"}))
@settings(max_examples=examples(20))
def test_frontiers_of_generated_problems(problem):
    if problem.instance.prices is None:
        return
    truth = frontier(problem)
    sizes = range(problem.rules.replicas_min, problem.rules.replicas_max + 1)
    table = placement.pareto(problem, replicas=sizes, method="exhaustive")
    assert table.attrs["complete"]
    assert np.allclose(table["cost"], [cost for cost, _ in truth])
    assert np.allclose(table["score"], [value for _, value in truth], rtol=1e-9)


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
    wanted = frontier(problem.replace(replicas=(2, 3)))
    assert front.attrs["complete"]
    assert front["value"].tolist() == pytest.approx([value for _, value in wanted])
    assert front["cost"].tolist() == pytest.approx([cost for cost, _ in wanted])


@pytest.mark.parametrize(
    ("asked", "head", "gain", "words"),
    [
        (("--minimise", "cost", "--prices", 100), "cost USD", "gain USD ", "minimised: cost"),
        (("--maximise", "within 150 ms", "--spread", 0.2), "late, not within 150 ms", "gain  ",
         "minimised: late, not within 150 ms"),
        (("--keep", "mean(reads) <= 150 ms"), "mean ms", "gain ms ", "minimised: mean, keep"),
    ],
)  # fmt: skip
def test_values_stand_under_their_name_and_unit(command, asked, head, gain, words):
    question = ("world27", "--replicas", "3..4", "--voters", 3, *asked)
    sizes = command("compare", "sizes", *question).out
    methods = command("compare", *question, "--methods", "exact").out
    for text in (sizes, methods):
        header = next(line for line in text.splitlines() if "mean ms" in line)
        assert header.count(head) == 1
    assert gain in sizes
    assert words in sizes
    assert ("bound ms" in methods) == (head == "mean ms")


def test_the_command_sweeps_a_percentile_and_the_report_shows_it(command, tmp_path):
    table = tmp_path / "sweep.json"
    outcome = command(
        "compare", "sizes", "world27", "--replicas", "3..4", "--voters", "3", "--percentile", "99",
        "--spread", "0.2", "--bin-width", "10", "--plot", tmp_path / "sweep.svg", "-o", table,
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    assert "p99 ms" in outcome.out
    assert "minimised: p99" in outcome.out
    picture = (tmp_path / "sweep.svg").read_text()
    assert ">p99<" in picture
    assert ">ms<" in picture
    page_file = tmp_path / "page.html"
    assert command("report", table, "-o", page_file).code == 0
    page = page_file.read_text()
    assert "Objective of the best plan" in page
    assert ">Objective<" in page


@pytest.fixture(scope="module")
def comparison():
    problem = Problem(world(), replicas=3, voters=3)
    return placement.compare(problem, methods=["exhaustive", "kq", "leader"])


def parts(picture, tag):
    return list(ElementTree.fromstring(picture.svg).iter(f"{{http://www.w3.org/2000/svg}}{tag}"))


def words(picture):
    return ["".join(one.itertext()) for one in parts(picture, "text")]


def corners(path):
    return np.array(re.findall(r"[ML]([\d.]+) ([\d.]+)", path.attrib["d"]), dtype=float)


def test_a_comparison_shows_latency_gap_and_time(comparison):
    """The bars are as long as the latencies say; a method without a plan has its status."""
    picture = plots.plot_table(comparison)
    text = words(picture)
    assert "3 replicas, 3 voters" in text
    assert "refused" in text
    found = comparison.dropna(subset="mean_latency")
    for value, gap in zip(found["mean_latency"], found["gap"], strict=True):
        assert any(word.startswith(f"{value:,.2f} ms, gap ") for word in text), (value, gap)
    bars = [one for one in parts(picture, "rect") if one.get("class", "").startswith("bar ")]
    widths = np.array([float(bar.attrib["width"].removesuffix("%")) for bar in bars])
    for share in found["mean_latency"] / found["mean_latency"].max():
        assert np.isclose(widths, 100 * share, rtol=1e-3).any()


def test_nothing_found_is_still_a_picture(tmp_path):
    table = placement.compare(Problem(world(), replicas=3, voters=3), methods=["leader"])
    assert plots.save_figure(plots.plot_table(table), tmp_path / "empty.svg").stat().st_size > 1000


def test_a_sweep_shows_every_cell_and_gain():
    swept = placement.sweep(world(), replicas=range(2, 5), voters=[1, 3], method="exhaustive")
    picture = plots.plot_table(swept)
    assert {"1 voter", "3 voters", "ms", "What one more replica brings"} <= set(words(picture))
    # the heights of the marks of the mean latency are linear in the values
    for column in ("mean_latency", "gain"):
        value = swept[swept["voters"] == 1][column].dropna().to_numpy()
        assert any(
            len(xy) == len(value)
            and np.ptp(xy[:, 1])
            and np.corrcoef(value, xy[:, 1])[0, 1] < -0.999
            for xy in map(corners, parts(picture, "path"))
        ), column


def test_cells_without_proof_are_marked():
    table = placement.sweep(world(), replicas=range(2, 5), voters=1, method="kq")
    assert "1 voter (hollow: not proven)" in words(plots.plot_table(table))


def test_a_frontier_is_a_staircase_with_labels():
    table = placement.pareto(world(), replicas=range(1, 5), voters=1, method="exhaustive")
    picture = plots.plot_table(table)
    steps = max(map(corners, parts(picture, "path")), key=len)
    assert len(steps) == 2 * len(table) - 1
    assert all(a[0] == b[0] or a[1] == b[1] for a, b in itertools.pairwise(steps))
    assert {f"{row.replicas}/{row.voters}" for row in table.itertuples()} <= set(words(picture))


def test_a_picture_stands_alone(comparison):
    """No variable of the style sheet and no link is left; the marks have their colours."""
    svg = plots.plot_table(comparison).svg
    assert not re.search(r"var\(|href|\nbody", svg)
    assert re.search(r"\.bar\.client \{ fill: #\w{6}; }", svg)


@pytest.mark.parametrize("form", ["png", "svg"])
def test_pictures_are_reproducible(comparison, tmp_path, form):
    pytest.importorskip("vl_convert")
    paths = [tmp_path / f"{n}.{form}" for n in range(2)]
    for path in paths:
        plots.save_figure(plots.plot_table(comparison), path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    if form == "png":
        pdf = plots.save_figure(plots.plot_table(comparison), tmp_path / "a.pdf")
        assert pdf.read_bytes().startswith(b"%PDF")


def test_a_title_is_text(comparison, tmp_path):
    picture = plots.plot_table(comparison, title="cost in $ and <b>more</b> $")
    path = plots.save_figure(picture, tmp_path / "dollar.svg")
    assert "cost in $ and <b>more</b> $" in "".join(ElementTree.parse(path).getroot().itertext())


def test_bad_files(comparison, tmp_path):
    picture = plots.plot_table(comparison)
    with pytest.raises(InputError, match="unknown picture format"):
        plots.save_figure(picture, tmp_path / "x.gif")
    plots.save_figure(picture, tmp_path / "x.svg")
    with pytest.raises(InputError):
        plots.save_figure(picture, tmp_path / "x.svg")
    plots.save_figure(picture, tmp_path / "x.svg", force=True)


def test_without_vl_convert_the_extra_is_named(comparison, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(MissingDependencyError, match=r"\[plot\]"):
        plots.save_figure(plots.plot_table(comparison), tmp_path / "x.png")
