"""Prices of limits, conflicts of limits and fronts of two measures, against enumeration."""

from __future__ import annotations

import math

import pytest

from placement import Problem, Status, solve
from placement.measures import read_limit, read_measure
from placement.measures.limits import explain_limits, limit_prices, measure_front
from placement.measures.values import values
from placement.tail.rtt_spread import spread_distributions
from placement.testing.small_worlds import every_configuration, random_instance
from tests.effort import seeds


def question(seed: int, **asked: object) -> Problem:
    instance = random_instance(seed, sites=6, clients=5, prices=True)
    spread = spread_distributions(instance, 0.3, width=10.0, horizon=1500)
    return Problem(instance, replicas=(3, 4), voters=3, distributions=spread, **asked)  # type: ignore[arg-type]


@pytest.mark.parametrize("pair", [("cost", "p90(writes)"), ("mean", "within 250 ms")])
@pytest.mark.parametrize("seed", seeds(1, 2))
def test_a_front_has_every_plan_that_no_plan_beats(seed: int, pair: tuple[str, str]) -> None:
    problem = question(seed, keep="p90 <= 1000 ms")
    one, other = map(read_measure, pair)
    front, complete = measure_front(problem, one, other, "exhaustive")
    assert complete
    limit = read_limit("p90 <= 1000 ms")
    plans = list(every_configuration(problem))
    kept = values(problem, limit.measure, plans).tolist()
    plans = [plan for plan, late in zip(plans, kept, strict=True) if limit.kept(late)]
    first = values(problem, one, plans)
    second = values(problem, other, plans) * (-1 if other.share else 1)
    expected, least = [], math.inf
    for a, b in sorted(zip(first.tolist(), second.tolist(), strict=True)):
        if b < least - 1e-7:
            expected.append((a, b))
            least = b
    chosen = [plan.configuration for plan in front if plan.configuration is not None]
    found = list(
        zip(
            values(problem, one, chosen).tolist(),
            (values(problem, other, chosen) * (-1 if other.share else 1)).tolist(),
            strict=True,
        )
    )
    assert [x for x, _ in found] == pytest.approx([x for x, _ in expected])
    assert [y for _, y in found] == pytest.approx([y for _, y in expected])


def test_prices_of_limits() -> None:
    problem = question(
        1, minimise="cost", keep=["p90(writes) <= 450 ms", "mean <= 120 ms", "replicas <= 4"]
    )
    plan = solve(problem, "exhaustive")
    assert plan.status is Status.OPTIMAL
    remark, *notes = limit_prices(plan, "exhaustive").notes
    assert remark == "no plan can break the limit replicas <= 4"
    assert all(note.startswith("without the limit ") for note in notes)
    free = solve(
        question(1, minimise="cost", keep=["p90(writes) <= 450 ms", "replicas <= 4"]), "exhaustive"
    )
    gain = plan.objective - free.objective
    said = "nothing is gained" if not gain else f"cost is {free.objective:g} USD, {gain:g} USD less"
    assert notes[1:] == [
        f"without the limit mean <= 120 ms, {said}",
        "without the limit replicas <= 4, nothing is gained",
    ]


def test_conflicting_limits_are_named_with_the_best_that_the_others_allow() -> None:
    free = question(2)
    least = solve(free, "exhaustive").mean_latency
    cheapest = solve(question(2, minimise="cost"), "exhaustive").objective
    keep = [f"mean <= {least * 1.001!r} ms", f"cost <= {cheapest!r}", "replicas <= 4"]
    problem = question(2, minimise="slowest client", keep=keep)
    plan = solve(problem, "exhaustive")
    assert plan.status is Status.INFEASIBLE
    together, mean, cost = explain_limits(problem, "exhaustive")
    assert together == f"no plan keeps the limits {keep[0]}, {keep[1].replace('.0', '')} together"
    best = solve(question(2, keep=keep[1]), "exhaustive").mean_latency
    assert mean.startswith(f"mean can be {best:,.3f} ms at best while cost <= ")
    dear = solve(question(2, minimise="cost", keep=[keep[0]]), "exhaustive").objective
    assert cost.startswith(f"cost can be {dear:g} USD at best while mean <= ")


def test_limits_that_are_not_decided_about_in_time() -> None:
    keep = ["mean <= 1 ms", "cost <= 1", "replicas <= 4"]
    (together,) = explain_limits(question(2, keep=keep), "exhaustive", seconds=0.0)
    assert together.startswith("no plan keeps the limits mean <= 1 ms, cost <= 1, replicas <= 4 ")
    assert together.endswith("together (whether fewer of them conflict was not decided in time)")


def test_limits_of_which_one_alone_leaves_no_plan() -> None:
    problem = question(3, minimise="cost", keep=["slowest client <= 1 ms", "replicas <= 3"])
    together, best = explain_limits(problem, "exhaustive")
    assert together == "no plan keeps the limit slowest client <= 1 ms"
    assert best.startswith("slowest client can be ")
    assert explain_limits(question(3), "exhaustive") == ()
