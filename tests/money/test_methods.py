"""Methods and fronts under all terms of the cost, against every configuration there is."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

import placement
from formulations.exact import method as exact_method
from formulations.exact import tuning
from placement import Moves, Plan, Problem, Status, Termination, UnsupportedError, solve
from placement.analysis import pareto_frontier
from placement.analysis.pareto_frontier import changes_in_words, frontier_plans
from placement.cli.dispatch import main
from placement.feasibility.feasible_plans import violations
from placement.io import save_instance
from placement.methods.options import Options, Progress
from placement.methods.registry import available, load_method, refusal, run
from placement.model.configuration import Configuration
from placement.plan import evaluate
from placement.proof.certificate_check import CertificateError, check_certificate
from placement.proof.enumeration_check import FORMAT as ENUMERATION
from placement.proof.measures_proof import FORMAT
from placement.report import load_source, write_report
from tests.effort import seeds
from tests.money.by_hand import check_that_parts_prove_nothing, cost, paid_instance, small_problem
from tests.reference import configurations, objective, quorum_of

Chosen = tuple[int, tuple[int, ...], tuple[int, ...]]
KINDS = ["plain", "gateway", "non-voting", "no near reads"]


def paid_problem(seed: int, kind: str) -> Problem:
    instance = paid_instance(
        seed,
        gateway=kind == "gateway",
        non_voting=kind == "non-voting",
        near=kind != "no near reads",
    )
    return small_problem(instance, seed)


def everything(problem: Problem) -> list[tuple[float, float, Chosen]]:
    """(score, cost, configuration) of all that obey the problem; no budget in it."""
    return [
        (objective(problem, *chosen), cost(problem.instance, *chosen), chosen)
        for chosen in configurations(problem)
    ]


def takers(problem: Problem) -> list[str]:
    return [name for name in available() if refusal(load_method(name), problem) is None]


@pytest.mark.parametrize("seed", seeds(1, 60))
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("where", ["at", "below", "above"])
def test_a_budget_at_a_breakpoint(seed: int, kind: str, where: str) -> None:
    free = paid_problem(seed, kind)
    known = everything(free)
    costs = sorted({money for _, money, _ in known})
    at = costs[(seed * 7) % len(costs)]
    budget = at * {"at": 1.0, "below": 1 - 1e-6, "above": 1 + 1e-6}[where]
    allowed = [value for value, money, _ in known if money <= budget * (1 + 1e-9)]
    problem = free.replace(budget=budget)
    for method in ("exact", *(n for n in ("exhaustive", "cp-sat") if n in takers(problem))):
        plan = solve(problem, method)
        if not allowed:
            assert plan.status is Status.INFEASIBLE, method
            continue
        assert plan.status is Status.OPTIMAL, method
        assert plan.objective == pytest.approx(min(allowed), rel=1e-9), method
        assert plan.cost <= budget * (1 + 1e-9)


@pytest.mark.parametrize("seed", seeds(1, 60))
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rounds", [0, 3])
def test_every_budget_is_proven(
    seed: int, kind: str, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At, below and above breakpoints, from a descent and from whatever plan comes first."""
    monkeypatch.setattr(tuning, "LIMIT_LEADERS", rounds)
    free = paid_problem(seed, kind)
    known = sorted((money, value) for value, money, _ in everything(free))
    steps: list[tuple[float, float]] = []
    for money, value in known:
        if not steps or value < steps[-1][1] * (1 - 1e-9):
            steps.append((money, value))
    for money, value in (steps[0], steps[len(steps) // 2], steps[-1]):
        for factor in (1 - 1e-6, 1.0, 1 + 1e-6):
            problem = free.replace(budget=money * factor)
            plan = solve(problem)
            allowed = [v for m, v in known if m <= money * factor * (1 + 1e-9)]
            assert plan.notes == ()
            if allowed:
                assert plan.status is Status.OPTIMAL
                assert plan.objective == pytest.approx(min(allowed), rel=1e-9)
                if factor == 1.0:
                    assert plan.objective == pytest.approx(value, rel=1e-9)
                assert plan.certificate is not None
                assert plan.certificate["format"] != ENUMERATION
            else:
                assert plan.status is Status.INFEASIBLE
            check_certificate(plan)


def test_reports_within_a_budget_are_honest() -> None:
    free = paid_problem(1, "plain")
    costs = sorted(money for _, money, _ in everything(free))
    problem, reports = free.replace(budget=costs[len(costs) // 3]), list[Progress]()
    plan = run(load_method("exact"), problem, Options(progress=reports.append))
    assert reports
    for report in reports:
        assert 0 <= report.seconds < 600
        assert report.bound <= plan.objective <= report.incumbent * (1 + 1e-12)


@pytest.mark.parametrize("seed", seeds(4, 60))
@pytest.mark.parametrize("gap", [0.01, 0.3])
def test_a_gap_that_is_good_enough_is_proven_and_no_more(seed: int, gap: float) -> None:
    free = paid_problem(seed, "plain")
    costs = sorted(money for _, money, _ in everything(free))
    problem = free.replace(budget=costs[len(costs) // 3])
    best = solve(problem)
    plan = solve(problem, gap_limit=gap)
    assert plan.gap <= gap * (1 + 1e-9)
    assert plan.bound <= best.objective * (1 + 1e-12)
    assert plan.objective >= best.objective * (1 - 1e-9)
    assert (plan.termination is Termination.GAP_LIMIT) == (plan.gap > 2e-9)
    assert plan.certificate is not None
    check_certificate(plan)


def test_time_that_is_over_leaves_an_honest_answer() -> None:
    free = paid_problem(1, "plain")
    costs = sorted(money for _, money, _ in everything(free))
    problem = free.replace(budget=costs[len(costs) // 3])
    best = solve(problem)
    plan = run(load_method("exact"), problem, Options(time_limit=1e-9, start=best.configuration))
    assert plan.status in (Status.FEASIBLE, Status.OPTIMAL)
    assert plan.bound <= best.objective
    assert plan.configuration is not None


@pytest.mark.parametrize("end", [Termination.INTERRUPTED, Termination.TIME_LIMIT])
def test_an_early_end_of_the_question_without_limits_proves_nothing(
    end: Termination, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, an interrupt there left no bound at all, which was read as "there is no plan"."""
    instance = paid_instance(3, gateway=False, non_voting=False, near=True)
    present = Configuration.of(0, (0, 1, 2), (0, 1, 2))
    problem = Problem(instance, replicas=3, voters=3, current=present, moves=Moves(at_most=2))

    def ended(session: exact_method.Session, asked: Problem, *_: object) -> Plan:
        return Plan.of(asked, None, method="exact", bound=-math.inf, termination=end)

    monkeypatch.setattr(exact_method.Session, "_search", ended)
    plan = run(load_method("exact"), problem, Options(time_limit=1e-9))
    assert plan.status is Status.FEASIBLE
    assert plan.termination is end
    assert plan.configuration == present
    assert plan.bound == -math.inf


def test_a_certificate_of_another_budget_proves_nothing() -> None:
    checked = 0
    for seed in range(6):
        free = paid_problem(seed, "plain")
        known = sorted((money, value) for value, money, _ in everything(free))
        plan = solve(free.replace(budget=known[len(known) // 4][0]))
        if plan.certificate is None or plan.certificate["format"] != FORMAT:
            continue
        better = [money for money, value in known if value < plan.objective * (1 - 1e-6)]
        checked += 1
        with pytest.raises(CertificateError):
            check_certificate(plan.replace(problem=free.replace(budget=better[0])))
        check_that_parts_prove_nothing(plan)
        assert plan.bound < plan.objective
    assert checked


@pytest.mark.parametrize("seed", seeds(2, 60))
@pytest.mark.parametrize("kind", ["plain", "gateway", "non-voting"])
def test_a_weight_of_near_reads_is_proven_with_limits(seed: int, kind: str) -> None:
    """A budget and prices of moves beside the weight, and a certificate that says no more."""
    free = paid_problem(seed, kind)
    known = everything(free)
    weight = [10_000.0, 30.0, 1_000.0][seed % 3]
    costs = sorted({money for _, money, _ in known})
    budget = costs[len(costs) // 2]
    today = Configuration.of(0, range(free.rules.voters), range(free.rules.replicas_min))
    for changes in (
        {"cost_weight": weight, "budget": budget},
        {"cost_weight": weight, "current": today, "moves": Moves(at_most=3)},
    ):
        problem = free.replace(**changes)
        best = min(
            (
                value + weight * money
                for value, money, chosen in known
                if not violations(problem, Configuration.of(*chosen))
            ),
            default=math.inf,
        )
        plan = solve(problem)
        assert plan.notes == ()
        assert plan.found == math.isfinite(best)
        if not plan.found:
            continue
        assert plan.objective == pytest.approx(best, rel=1e-9)
        check_certificate(plan)
        assert plan.certificate is not None
        higher = {**plan.certificate, "bound": plan.objective * (1 + 1e-6)}
        with pytest.raises(CertificateError):
            check_certificate(plan.replace(certificate=higher))


def test_that_nothing_is_within_a_budget_has_a_certificate() -> None:
    """The cheapest replicas fit, but what their clients read does not."""
    checked = 0
    for seed in range(8):
        free = paid_problem(seed, "plain")
        least = min(money for _, money, _ in everything(free))
        plan = solve(free.replace(budget=least * (1 - 1e-6)))
        assert plan.status is Status.INFEASIBLE
        if plan.certificate is not None:
            assert plan.certificate["format"] == FORMAT
            assert math.isinf(check_certificate(plan).bound)
            checked += 1
            with pytest.raises(CertificateError):
                check_certificate(plan.replace(problem=free.replace(budget=least)))
    assert checked


def test_why_nothing_is_within_a_budget_of_near_reads_is_said_at_once() -> None:
    """All sets keep the prices of sites, and what clients read is known of whole sets only."""
    free = Problem(paid_instance(1, sites=14), replicas=(3, 6), voters=2)
    least = solve(free.replace(cost_weight=1e9)).cost
    plan = solve(free.replace(budget=least * (1 - 1e-6)))
    assert plan.status is Status.INFEASIBLE
    assert "near reads are part of the cost" in plan.reasons[0]
    check_certificate(plan)


def test_the_nearest_replica_serves_and_not_a_cheaper_one() -> None:
    """A weight that makes a farther replica cheaper does not change who serves a client."""
    for seed in range(2):
        problem = paid_problem(seed, "plain").replace(cost_weight=1e6)
        plan = solve(problem, "milp")
        assert plan.configuration is not None
        one = plan.configuration
        money = cost(problem.instance, one.leader, one.voters, one.replicas)
        assert plan.cost == pytest.approx(money, rel=1e-12)
        assert plan.bound <= plan.objective


def test_methods_that_cannot_refuse_with_a_way_out() -> None:
    problem = paid_problem(3, "non-voting").replace(cost_weight=1.0)
    assert set(problem.cost_parts) == {"near reads", "votes"} or quorum_of(problem, 1) == 1
    for name in ("k-means", "kq", "qk"):
        if name in available():
            with pytest.raises(UnsupportedError, match=r"prices\.gb_per_op.*'milp'"):
                solve(problem, name)
    assert math.isfinite(solve(problem.replace(cost_weight=0.0), "kq").objective)


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
