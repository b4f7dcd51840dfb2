"""Plans from a present configuration: prices and limits of moves, against all configurations."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from formulations.exact import tuning
from placement import InputError, Moves, Problem, Progress, Status, UnsupportedError, solve
from placement.evaluation.moves import PRICES
from placement.evaluation.objective import score_of
from placement.io.plan_file import load_plan, save_plan
from placement.model.configuration import Configuration
from placement.model.instance import Instance
from placement.proof.certificate_check import CertificateError, check_certificate
from placement.proof.measures_proof import FORMAT
from placement.testing import random_instance
from tests.effort import seeds
from tests.money.by_hand import check_that_parts_prove_nothing, cost, paid_instance, small_problem
from tests.reference import configurations, objective

KINDS = ["price", "count", "gb", "count and price", "count and budget", "all"]


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
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rounds", [0, 3])
def test_every_question_about_moves_is_proven(
    seed: int, kind: str, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Limits at, below and above breakpoints; from a descent and from whatever comes first.

    The claim of a certificate was more than its trees prove, where the plain question's bound is
    the value itself: the third seed has such questions.
    """
    monkeypatch.setattr(tuning, "LIMIT_LEADERS", rounds)
    monkeypatch.setattr(tuning, "LIMIT_DESCENT_STEPS", rounds)
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
