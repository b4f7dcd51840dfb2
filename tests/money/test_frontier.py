"""The whole front of latency and cost against all configurations; words, command, page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import placement
from placement import Problem, Status
from placement.analysis import pareto_frontier
from placement.analysis.pareto_frontier import changes_in_words, frontier_plans
from placement.cli.dispatch import main
from placement.io import save_instance
from placement.methods.registry import solve
from placement.model.configuration import Configuration
from placement.plan import evaluate
from placement.report import load_source, write_report
from tests.effort import seeds
from tests.money.by_hand import cost, paid_instance, small_problem
from tests.reference import configurations, objective


def true_front(problem: Problem) -> list[tuple[float, float]]:
    """(cost, score) of the points that no configuration beats, cheapest first."""
    found = sorted(
        (cost(problem.instance, *one), objective(problem, *one)) for one in configurations(problem)
    )
    front: list[tuple[float, float]] = []
    for money, value in found:
        if not front or value < front[-1][1] * (1 - 1e-9):
            front.append((money, value))
    return front


@pytest.mark.parametrize("seed", seeds(1, 40))
@pytest.mark.parametrize("near", [False, True])
def test_every_point_and_no_other(seed: int, near: bool) -> None:
    method = "exhaustive" if not near else "exact"
    problem = small_problem(paid_instance(seed, near=near), seed)
    low, high = problem.rules.replicas_min, problem.rules.replicas_max
    table = placement.pareto(problem, replicas=range(low, high + 1), method=method)
    assert table.attrs["complete"]
    assert set(table["status"]) == {"optimal"}
    found = list(zip(table["cost"].tolist(), table["score"].tolist(), strict=True))
    expected = true_front(problem)
    assert len(found) == len(expected)
    for point, true in zip(found, expected, strict=True):
        assert point == pytest.approx(true, rel=1e-9)


def test_supported_points_need_no_budget() -> None:
    """Points on the lower hull come from weights alone, with the bound that a budget would give."""
    problem = small_problem(paid_instance(5, near=False), 5)
    budgets: list[float | None] = []

    def ask(one: Problem) -> placement.Plan:
        budgets.append(one.budget)
        return solve(one, "exhaustive")

    plans = [plan for plan in frontier_plans(problem, ask) if plan.found]
    front = {round(score, 6) for _, score in true_front(problem)}
    assert front <= {round(plan.score, 6) for plan in plans}
    for plan in plans:
        assert plan.status is Status.OPTIMAL
        assert plan.bound <= plan.score
    assert sum(budget is None for budget in budgets) >= 3
    assert sum(budget is not None for budget in budgets) < 2 * len(front) + 2


def test_changes_in_words() -> None:
    problem = small_problem(paid_instance(2), 1).replace(replicas=(2, 4))
    before = evaluate(problem, Configuration.of(0, (0, 1), (0, 1, 2)))
    after = evaluate(problem, Configuration.of(2, (2, 3), (0, 2, 3, 4)))
    assert changes_in_words(before, after) == (
        "+2 replicas: site-3, site-4; −1 replica: site-1; leader to site-2; site-2 votes now; "
        "site-0 votes no more"
    )
    assert changes_in_words(before, before) == ""


def test_command_picture_and_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_instance(paid_instance(3, near=False), tmp_path / "mine")
    asked = ["compare", "fronts", str(tmp_path / "mine"), "--replicas", "2..4", "--voters", "2"]
    asked += ["--method", "exhaustive"]
    picture, rows = tmp_path / "front.png", tmp_path / "front.json"
    assert main([*asked, "--plot", str(picture), "-o", str(rows)]) == 0
    text = capsys.readouterr().out
    assert "none is missing" in text
    assert "replica" in text
    assert picture.read_bytes().startswith(b"\x89PNG")
    document = json.loads(rows.read_text())
    assert document["points"][0]["change"] == ""
    assert all(point["change"] for point in document["points"][1:])
    write_report(load_source(rows), tmp_path / "front.html")
    page = (tmp_path / "front.html").read_text()
    assert "Latency against cost" in page
    assert document["points"][-1]["change"].split(";")[0] in page


def test_an_unproven_solve_makes_the_front_incomplete(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = small_problem(paid_instance(3, near=False), 1)
    true_solve = pareto_frontier.solve

    def stopped(one: Problem, method: str, **options: object) -> placement.Plan:
        plan = true_solve(one, method)
        return plan if one.budget is None else plan.replace(status=Status.FEASIBLE)

    monkeypatch.setattr(pareto_frontier, "solve", stopped)
    table = placement.pareto(problem, replicas=[2, 3], method="exhaustive")
    assert not table.attrs["complete"]
