"""Methods, fronts and moves under all terms of the cost, against every configuration."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import placement
from formulations.exact import method as exact_method
from placement import InputError, Moves, Plan, Problem, Status, Termination, UnsupportedError, solve
from placement.analysis import pareto_frontier
from placement.analysis.pareto_frontier import changes_in_words, frontier_plans
from placement.evaluation.moves import PRICES
from placement.evaluation.objective import score_of
from placement.feasibility.feasible_plans import violations
from placement.io import save_instance
from placement.io.plan_file import load_plan, save_plan
from placement.methods.options import Options, Progress
from placement.methods.registry import available, load_method, refusal, run
from placement.model.configuration import Configuration
from placement.model.instance import Instance
from placement.plan import evaluate
from placement.proof.certificate_check import CertificateError, check_certificate
from placement.proof.enumeration_check import FORMAT as ENUMERATION
from placement.proof.measures_proof import FORMAT
from placement.report.page import load_source, write_report
from placement.testing import random_instance
from tests.cli.command import Run
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
def test_every_budget_is_proven(seed: int, kind: str) -> None:
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
            for method in {"exhaustive", "cp-sat"} & {*takers(problem)}:
                other = solve(problem, method)
                assert other.status is plan.status, method
                assert other.objective == pytest.approx(plan.objective, rel=1e-9), method
            assert plan.notes == ()
            if allowed:
                assert plan.status is Status.OPTIMAL
                assert plan.objective == pytest.approx(min(allowed), rel=1e-9)
                assert plan.cost <= problem.budget * (1 + 1e-9)
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


def test_command_picture_and_page(tmp_path: Path, command: Run) -> None:
    save_instance(paid_instance(3, near=False), tmp_path / "mine")
    asked = ["compare", "fronts", str(tmp_path / "mine"), "--replicas", "2..4", "--voters", "2"]
    asked += ["--method", "exhaustive"]
    picture, rows = tmp_path / "front.png", tmp_path / "front.json"
    text = command(*asked, "--plot", str(picture), "-o", str(rows), code=0).out
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


KINDS_OF_MOVES = ["price", "count", "gb", "count and price", "count and budget", "all"]


@dataclass
class Known:
    """A configuration, with everything that can be asked about it, computed by hand."""

    configuration: Configuration
    score: float
    price: float
    changed: int
    copied: int
    cost: float


def drawn_moves(problem: Problem, seed: int) -> tuple[Configuration, Moves]:
    """Draw a present configuration, which need not obey the rules, and prices without limits."""
    rng = np.random.default_rng(1000 + seed)
    sites = problem.instance.sites
    held = rng.permutation(len(sites))[: int(rng.integers(1, 5))].tolist()
    voters = held[: int(rng.integers(1, len(held) + 1))]
    operations = float(problem.demand.operations)
    mean = solve(problem).objective / operations
    scale = mean * [0.01, 0.1, 1.0][seed % 3]
    prices: dict[str, object] = {}
    for name in PRICES:
        draw = int(rng.integers(3))
        if draw == 0:
            prices[name] = 0.0
        elif draw == 1:
            prices[name] = float(scale * rng.random())
        else:
            prices[name] = {site: float(scale * rng.integers(0, 4)) for site in sites}
    horizon = float(rng.choice([0.5, 1.0, 8.0]))
    moves = Moves(**prices, horizon=horizon, stored_gb=2.5)  # type: ignore[arg-type]  # drawn
    return Configuration.of(voters[0], voters, held), moves


def by_hand(problem: Problem, present: Configuration, moves: Moves) -> list[Known]:
    """Return every configuration that obeys the rules; neither budget nor moves count."""
    sites = problem.instance.sites
    operations = float(problem.demand.operations)

    def of(name: str, site: int) -> float:
        given = getattr(moves, name)
        return float(given[sites[site]] if isinstance(given, dict) else given)

    found = []
    for leader, voters, replicas in configurations(problem):
        price, changed = 0.0, 0
        if leader != present.leader:
            price, changed = of("leader", leader), 1
        for site in range(len(sites)):
            held, holds = site in present.replicas, site in replicas
            voted, votes = site in present.voters, site in voters
            price += of("add", site) * (holds and not held)
            price += of("remove", site) * (held and not holds)
            price += of("promote", site) * (votes and not voted)
            price += of("demote", site) * (voted and not votes)
            changed += (held, voted) != (holds, votes)
        found.append(
            Known(
                Configuration.of(leader, voters, replicas),
                objective(problem, leader, voters, replicas),
                price * operations / moves.horizon,
                changed,
                len(set(replicas) - set(present.replicas)),
                cost(problem.instance, leader, voters, replicas),
            )
        )
    return found


def with_limits(moves: Moves, *, priced: bool, **limits: object) -> Moves:
    given = moves.given if priced else {}
    fields = {**given, "stored_gb": 2.5, **limits}
    return Moves(**fields)  # type: ignore[arg-type]  # fields of Moves by name


def check(problem: Problem, known: list[Known], *, priced: bool, budget: float | None) -> None:
    """Ask `exact`, and compare with everything there is; the certificate proves it."""
    moves = problem.moves
    assert moves is not None

    def allowed(one: Known) -> bool:
        if moves.at_most is not None and one.changed > moves.at_most:
            return False
        if moves.copy_gb is not None and 2.5 * one.copied > moves.copy_gb * (1 + 1e-9) + 1e-9:
            return False
        return budget is None or one.cost <= budget * (1 + 1e-9) + 1e-9

    values = [one.score + priced * one.price for one in known if allowed(one)]
    plan = solve(problem)
    assert plan.notes == ()
    if not values:
        assert plan.status is Status.INFEASIBLE
    else:
        assert plan.status is Status.OPTIMAL
        assert plan.objective == pytest.approx(min(values), rel=1e-9)
        assert plan.certificate is not None
    check_certificate(plan)


def breakpoints(known: list[Known], values: list[float]) -> list[float]:
    """Return the limits at which the best score falls."""
    steps: list[tuple[float, float]] = []
    for at, one in sorted(zip(values, known, strict=True), key=lambda pair: pair[0]):
        if not steps or one.score < steps[-1][1] * (1 - 1e-9):
            steps.append((at, one.score))
    return [at for at, _ in steps]


@pytest.mark.parametrize("seed", seeds(3, 150))
@pytest.mark.parametrize("kind", KINDS_OF_MOVES)
def test_every_question_about_moves_is_proven(seed: int, kind: str) -> None:
    """Limits at, below and above breakpoints.

    The claim of a certificate was more than its trees prove, where the plain question's bound is
    the value itself: the third seed has such questions.
    """
    free = small_problem(paid_instance(seed, non_voting=seed % 4 == 0), seed)
    present, moves = drawn_moves(free, seed)
    known = by_hand(free, present, moves)
    priced = kind in ("price", "count and price", "all")
    counts = [0, 1, 2, 3, 100] if "count" in kind or kind == "all" else [None]
    copied = breakpoints(known, [2.5 * one.copied for one in known])
    copies: list[float | None] = [None]
    if kind in ("gb", "all"):
        copies = [copied[0], copied[-1], max(0.0, copied[-1] - 1e-6), copied[-1] + 1e-6]
    budget = None
    if kind in ("count and budget", "all"):
        budget = sorted(one.cost for one in known)[len(known) // 3]
    for number, at_most in enumerate(counts):
        limits = {"at_most": at_most, "copy_gb": copies[number % len(copies)]}
        asked = {key: value for key, value in limits.items() if value is not None}
        problem = free.replace(
            current=present, moves=with_limits(moves, priced=priced, **asked), budget=budget
        )
        check(problem, known, priced=priced, budget=budget)


def feasible_present(seed: int) -> tuple[Problem, Configuration]:
    problem = small_problem(paid_instance(seed), seed)
    known = list(configurations(problem))
    return problem, Configuration.of(*known[(7 * seed + 3) % len(known)])


@pytest.mark.parametrize("seed", seeds(2, 40))
def test_more_changes_never_cost_latency(seed: int) -> None:
    """0 changes: what runs; as many as there can be: the best of all; in between it only falls."""
    problem, present = feasible_present(seed)
    best, before = solve(problem).objective, np.inf
    for most in range(10):
        plan = solve(problem.replace(current=present, moves=Moves(at_most=most)))
        assert plan.status is Status.OPTIMAL
        assert plan.objective <= before * (1 + 1e-9)
        before = plan.objective
        if most == 0:
            assert plan.configuration is not None
            assert plan.objective == score_of(problem, present)
            assert plan.configuration.leader == present.leader
            assert set(plan.configuration.voters) == set(present.voters)
            assert plan.configuration.replicas == present.replicas
    assert before == pytest.approx(best, rel=1e-9)


def test_a_certificate_of_another_limit_proves_nothing() -> None:
    checked = 0
    for seed in range(8):
        free, present = feasible_present(seed)
        priced = Moves(add=1.0, promote=0.5, leader=0.25, at_most=2)
        plan = solve(free.replace(current=present, moves=priced))
        if plan.certificate is None or plan.certificate["format"] != FORMAT:
            continue
        check_certificate(plan)
        best = solve(free).objective
        if plan.score > best * (1 + 1e-6):
            wider = free.replace(current=present, moves=Moves(at_most=100))
            with pytest.raises(CertificateError):
                check_certificate(plan.replace(problem=wider))
        check_that_parts_prove_nothing(plan)
        checked += 1
    assert checked


def test_that_no_plan_is_within_reach_has_a_proof() -> None:
    """A site that runs now is forbidden: two changes are needed at least."""
    free, present = feasible_present(1)
    gone = free.instance.sites[present.replicas[0]]
    problem = free.replace(
        current=present, moves=Moves(at_most=0), forbidden=(gone,), replicas=len(present.replicas)
    )
    plan = solve(problem)
    assert plan.status is Status.INFEASIBLE
    assert "changes" in " ".join(plan.reasons)
    check_certificate(plan)


def test_moves_in_plan_files(tmp_path: Path) -> None:
    problem, present = feasible_present(2)
    by_site = {site: float(n) for n, site in enumerate(problem.instance.sites)}
    for moves in (None, Moves(add=by_site, leader=2.0, at_most=2, copy_gb=4.0, stored_gb=0.5)):
        plan = solve(problem.replace(current=present, moves=moves))
        path = tmp_path / f"{moves is None}.json"
        save_plan(plan, path)
        again = load_plan(path)
        assert again.problem.present == present
        assert (again.problem.moves is None) == (moves is None)
        if moves is not None and again.problem.moves is not None:
            assert again.problem.moves.given == moves.given
        assert again.objective == plan.objective
        check_certificate(again)


@pytest.mark.parametrize(
    ("moves", "field"),
    [
        ({"add": -1.0}, "moves.add"),
        ({"leader": float("nan")}, "moves.leader"),
        ({"remove": {"a": -1.0}}, r"moves.remove\['a'\]"),
        ({"at_most": -1}, "moves.at_most"),
        ({"at_most": 1.5}, "moves.at_most"),
        ({"horizon": 0.0}, "moves.horizon"),
        ({"copy_gb": -2.0}, "moves.copy_gb"),
    ],
)
def test_prices_and_limits_that_are_none(moves: dict[str, object], field: str) -> None:
    with pytest.raises(InputError, match=field):
        Moves(**moves)  # type: ignore[arg-type]  # wrong on purpose


def test_questions_about_moves_that_contradict_the_instance() -> None:
    problem, present = feasible_present(1)
    sites = problem.instance.sites
    current = {"leader": sites[0], "voters": [sites[0]], "replicas": [sites[0]]}
    for given, field in (
        ({**current, "replicas": [sites[0], "nowhere"]}, "current.replicas"),
        ({**current, "leader": sites[1]}, "current.leader"),
        ({**current, "voters": [sites[0], sites[1]]}, "current.voters"),
        ({"leader": sites[0]}, "current"),
        ("plan.json", "current"),
    ):
        with pytest.raises(InputError, match=field):
            problem.replace(current=given, moves=Moves())
    for moves, field in (
        (Moves(add={sites[0]: 1.0}), "moves.add"),
        (Moves(leader={**dict.fromkeys(sites, 1.0), "nowhere": 1.0}), "moves.leader"),
    ):
        with pytest.raises(InputError, match=field):
            problem.replace(current=present, moves=moves)
    with pytest.raises(InputError, match="current"):
        problem.replace(moves=Moves())
    bare = Instance(
        sites=problem.instance.sites,
        clients=problem.instance.clients,
        client_rtt=problem.instance.client_rtt,
        site_rtt=problem.instance.site_rtt,
        counts=problem.instance.counts,
    )
    with pytest.raises(InputError, match="stored_gb"):
        Problem(bare, replicas=3, voters=2, current=present, moves=Moves(copy_gb=1.0))


def test_methods_that_do_not_weigh_moves_say_so() -> None:
    problem, present = feasible_present(1)
    asked = problem.replace(current=present, moves=Moves(at_most=1))
    for method in ("milp", "cp-sat", "kq"):
        with pytest.raises(UnsupportedError, match=r"moves.*'exact'"):
            solve(asked, method)
    assert solve(asked, "exhaustive").objective == pytest.approx(solve(asked).objective, rel=1e-9)


def test_an_interrupted_search_that_had_closed_every_leader_says_why_there_is_no_plan() -> None:
    """At the first report no leader is open any more: the far leader takes two changes."""

    def interrupt(report: Progress) -> None:
        raise KeyboardInterrupt

    instance = random_instance(0, sites=5, clients=4)
    near, far = instance.sites[:2], instance.sites[4]
    today = {"leader": near[0], "voters": near, "replicas": near}
    problem = Problem(
        instance, replicas=4, voters=3, leader=far, current=today, moves=Moves(at_most=1)
    )
    plan = solve(problem, progress=interrupt)
    assert plan.status is Status.INFEASIBLE
    assert any("no configuration keeps the limit" in reason for reason in plan.reasons)
