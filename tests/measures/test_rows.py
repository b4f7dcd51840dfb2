"""Rows of measures against values, and programs of rows against enumeration."""

from __future__ import annotations

import dataclasses
import math
from functools import cache

import numpy as np
import pytest

import placement
from formulations.linear.leader_program import LeaderCase, LeaderProgram, beyond_rows, least
from formulations.solvers.highs import Relaxation
from placement import Configuration, Contingency, Moves, Problem
from placement.errors import UnsupportedError
from placement.evaluation.breakdown import by_client, objective_values
from placement.evaluation.cost_model import configuration_cost
from placement.evaluation.losses import losses, score_after, scores_after_many, unnoticed
from placement.evaluation.moves import changes
from placement.evaluation.objective import MeanLatency, scores_of
from placement.measures import After, Measure, MeasureKind
from placement.measures.question import percentile_question
from placement.measures.rows import (
    MeasureRows,
    Statistic,
    late_operations,
    row_value,
    rows,
    why_no_rows,
)
from placement.measures.scenarios import functions
from placement.measures.values import deadline_bins, percentile_of, value, values
from placement.model.instance import Instance
from placement.tail.rtt_distributions import Distributions, spread_distributions
from placement.testing.small_worlds import every_configuration, random_instance
from tests.effort import examples, seeds, thinned
from tests.measures.test_questions import asked, truth

MEAN = Measure(MeasureKind.MEAN)
P90 = Measure(MeasureKind.PERCENTILE, 0.9)
LATENCIES = [
    MEAN,
    Measure(MeasureKind.MEAN, operations=("reads",)),
    Measure(MeasureKind.MEAN, operations=("single_group", "weak_read"), clients=("client-2",)),
    Measure(MeasureKind.MEAN, clients=("region:region-1",)),
    Measure(MeasureKind.SLOWEST),
    Measure(MeasureKind.SLOWEST, operations=("writes",)),
    P90,
    Measure(MeasureKind.PERCENTILE, 0.5, operations=("writes",)),
    Measure(MeasureKind.WITHIN, 300.0),
    Measure(MeasureKind.WITHIN, 150.5, clients=("client-1", "client-3")),
]
LOSSES = [
    After("region"),
    After("region", leader_moves=True),
    After("site", together=2),
    After(named="site-1"),
    After(named="provider:provider-0"),
]
AFTER = [
    Measure(one.kind, one.level, one.operations, one.clients, loss)
    for one in LATENCIES
    if one.kind is not MeasureKind.SLOWEST
    for loss in LOSSES
] + [Measure(MeasureKind.MEAN, after=After("region", clients_move=True))]
PLAIN = [
    Measure(MeasureKind.COST),
    Measure(MeasureKind.CHANGES),
    Measure(MeasureKind.COPIED),
    Measure(MeasureKind.REPLICAS),
]


@cache
def _world(seed: int) -> tuple[Instance, Distributions]:
    instance = random_instance(seed, sites=6, clients=5, ties=bool(seed % 2), prices=True)
    instance = instance.replace(clients=("site-0", *instance.clients[1:]))
    return instance, spread_distributions(instance, 0.4, horizon=1500)


def question(seed: int, **asked: object) -> Problem:
    instance, spread = _world(seed)
    given: dict[str, object] = {
        "replicas": (3, 4),
        "voters": 3,
        "objective": percentile_question(90, spread),
        "current": Configuration.of(1, (1, 2, 3), (0, 1, 2, 3)),
        "moves": Moves(stored_gb=7.0),
    }
    return Problem(instance, **{**given, **asked})  # type: ignore[arg-type]


def drawn(problem: Problem, seed: int, count: int) -> list[Configuration]:
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        replicas = rng.permutation(len(problem.instance.sites))[: rng.integers(3, 5)].tolist()
        found.append(Configuration.of(replicas[0], replicas[:3], replicas))
    return found


def same(one: float, other: float) -> bool:
    """Shares are told in steps of 1e-8 at most."""
    return one == other or math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-8)


@pytest.mark.parametrize("seed", [0, 1])
def test_values_are_those_of_the_evaluators_that_existed(seed: int) -> None:
    problem = question(seed)
    plans = drawn(problem, seed, 12)
    known = [
        *(
            (
                Measure(
                    MEAN.kind,
                    after=After(level, together, leader_moves=moves, clients_move=clients),
                ),
                Contingency(level, together=together, leader_may_move=moves, clients_move=clients),
            )
            for level, together, moves, clients in (
                ("region", 1, False, False),
                ("site", 1, True, False),
                ("site", 2, False, True),
            )
        )
    ]
    for measure, objective in known:
        assert isinstance(objective, MeanLatency)
        asked = problem.replace(objective=objective, moves=None)
        expected = objective_values(asked, plans)
        found = [objective.in_ms(asked, one) for one in expected.tolist()]
        assert all(map(same, values(problem, measure, plans).tolist(), found)), measure
    for plan in plans:
        assert same(value(problem, PLAIN[0], plan), configuration_cost(problem.instance, plan))
        assert problem.present is not None
        now = changes(problem.present, plan)
        assert value(problem, PLAIN[1], plan) == now.size
        assert value(problem, PLAIN[2], plan) == 7.0 * len(now.added)
        assert value(problem, PLAIN[3], plan) == len(plan.replicas)
        slowest = max(one.latency for one in by_client(problem, plan) if one.operations)
        assert same(value(problem, Measure(MeasureKind.SLOWEST), plan), slowest)


def statistic_value(problem: Problem, found: MeasureRows, configuration: Configuration) -> float:
    """Value of a measure from its rows; of a percentile the largest share of late operations."""
    each = [row_value(problem, row, configuration) for row in found.rows]
    if found.statistic is Statistic.WEIGHTED:
        assert found.weights is not None
        pairs = zip(found.weights.tolist(), each, strict=True)
        total = math.fsum(weight * one for weight, one in pairs if weight or math.isinf(one))
    else:
        total = max(each)
    if math.isinf(total) and found.scale < 0:
        return 0.0
    return found.offset + total / found.scale


def _one_by_one(problem: Problem, measure: Measure, plan: Configuration) -> float:
    """Value of a measure from its rows; a percentile by trying deadlines."""
    found = rows(problem, measure, plan.leader, deadline=0)
    if found.statistic is not Statistic.DEADLINE:
        return statistic_value(problem, found, plan)
    one = percentile_of(problem, measure).distributions
    low, high = -1, 6 * one.bins
    while high - low > 1:
        deadline = (low + high) // 2
        at = rows(problem, measure, plan.leader, deadline=deadline)
        if statistic_value(problem, at, plan) <= at.allowed + 1e-9:
            high = deadline
        else:
            low = deadline
    return high * one.width


@pytest.mark.parametrize("measure", [*LATENCIES, *AFTER, *PLAIN], ids=repr)
def test_rows_give_the_value(measure: Measure) -> None:
    for seed in range(examples(2)):
        problem = question(seed)
        assert why_no_rows(problem, measure) is None
        plans = thinned(drawn(problem, 7 + seed, 5), 2)
        for plan, expected in zip(plans, values(problem, measure, plans), strict=True):
            if measure.kind is MeasureKind.PERCENTILE and math.isinf(expected):
                continue  # beyond the horizon: there is no deadline to try
            assert same(_one_by_one(problem, measure, plan), float(expected))


def test_rows_of_successors_are_bounds() -> None:
    problem = question(3)
    for measure in AFTER:
        if measure.kind is MeasureKind.MEAN:
            for row in rows(problem, measure, 2).rows:
                for one in row.successors:
                    assert row.constant <= one.constant
                    assert row.costs is not None
                    assert one.costs is not None
                    assert (row.costs <= one.costs).all()


@pytest.mark.parametrize("measure", [MEAN, Measure(MeasureKind.SLOWEST), P90], ids=repr)
def test_rows_of_intervals_whose_rtts_vary(measure: Measure) -> None:
    instance = random_instance(5, sites=5, clients=4, intervals=3, varying=True)
    each = [spread_distributions(instance.at_interval(k), 0.3, whole=instance) for k in range(3)]
    problem = Problem(instance, replicas=3, voters=3, objective=percentile_question(90, *each))
    for plan in drawn(problem, 1, 6):
        plan = Configuration.of(plan.leader, plan.replicas[:3], plan.replicas[:3])
        plan = Configuration.of(plan.replicas[0], plan.voters, plan.replicas)
        assert same(_one_by_one(problem, measure, plan), value(problem, measure, plan))


def test_a_client_is_at_the_site_of_its_prices_and_a_deadline_in_a_whole_bin() -> None:
    problem = question(4)
    instance, plans = problem.instance, drawn(problem, 2, 8)
    assert instance.prices is not None
    homes = {**dict.fromkeys(instance.clients[1:], "site-1"), "client-3": "site-0"}
    alone = ("region-9", *instance.labels("region")[1:])
    prices = dataclasses.replace(instance.prices, client_sites=homes)
    moved = instance.replace(prices=prices, domains={"region": alone})
    at_site_0 = Measure(MeasureKind.MEAN, clients=("region:region-9",))
    both = Measure(MeasureKind.MEAN, clients=("site-0", "client-3"))
    problem = problem.replace(
        instance=moved,
        objective=percentile_question(90, spread_distributions(moved, 0.4, width=1.1)),
    )
    assert (values(problem, at_site_0, plans) == values(problem, both, plans)).all()
    assert deadline_bins(problem, Measure(MeasureKind.WITHIN, 3.3)) == 3


def test_a_measure_of_everything_is_the_measure() -> None:
    problem = question(4)
    plans = drawn(problem, 2, 8)
    whole: Instance = problem.instance
    names = tuple(one.name for one in whole.operations)
    for kind, level in (("mean", None), ("percentile", 0.9), ("within", 200.0)):
        plain = values(problem, Measure(MeasureKind(kind), level), plans)
        named = values(problem, Measure(MeasureKind(kind), level, names, whole.clients), plans)
        np.testing.assert_allclose(plain, named, rtol=1e-12)
    assert len(late_operations(problem, P90)) == 1


def test_losses_of_plans_with_any_number_of_voters() -> None:
    problem = Problem(random_instance(1, sites=6, clients=4), replicas=4, voters=3)
    rng = np.random.default_rng(0)
    plans = []
    for _ in range(40):
        replicas = rng.permutation(6)[: rng.integers(2, 6)].tolist()
        voters = replicas[: rng.integers(1, len(replicas) + 1)]
        plans.append(Configuration.of(voters[0], voters, replicas))
    normal = scores_of(problem, plans)
    for loss in losses(problem, "region"):
        found = scores_after_many(problem, plans, loss.sites, normal).tolist()
        for plan, one, usual in zip(plans, found, normal.tolist(), strict=True):
            after = score_after(problem, plan, loss.sites)
            hit = not unnoticed(problem, plan, loss.sites)
            assert same(one, min(after.values(), default=math.inf) if hit else usual)


AIMS = (
    None,
    "mean after the loss of any site",
    "mean after the loss of any site, the leader may move",
    "mean(reads) after the loss of any region, clients move",
    "mean over outages",
    "slowest client",
    "cost",
)


def linear_question(seed: int) -> Problem:
    return asked(seed, limits=(seed + 2) % 3, aim=AIMS[seed % len(AIMS)], voters=3, replicas=(3, 4))


@pytest.mark.parametrize("seed", seeds(7, 200))
def test_against_enumeration(seed: int) -> None:
    problem = linear_question(seed)
    refused = beyond_rows(problem) is not None
    best, mean = (math.nan, math.nan) if refused else truth(problem)
    for method in ("milp", "cp-sat"):
        if refused:
            with pytest.raises(UnsupportedError, match="exhaustive"):
                placement.solve(problem, method)
            continue
        plan = placement.solve(problem, method)
        assert plan.status == ("infeasible" if math.isinf(best) else "optimal"), method
        if plan.found:
            assert plan.objective == pytest.approx(best, rel=1e-9, abs=1e-9), method
            if problem.objective.kind == "measures":
                assert plan.score == pytest.approx(mean, rel=1e-9), method


@pytest.mark.parametrize("seed", seeds(1, 3))
@pytest.mark.parametrize("moves", ["", ", the leader may move", ", clients move"])
def test_no_plan_is_below_the_program_or_the_floor(seed: int, moves: str) -> None:
    """The relaxation of every case, and the sum of least terms, bound the plans of the case."""
    instance = random_instance(seed, sites=5, clients=3)
    loss = f"mean after the loss of any site{moves}"
    problem = Problem(instance, replicas=(3, 4), voters=3, minimise=loss)
    plans = list(every_configuration(problem))
    for leader in range(5):
        each = functions(problem, leader)
        led = [plan for plan in plans if plan.leader == leader]
        best = min(max(row_value(problem, row, plan) for row in each[-1].rows) for plan in led)
        every = set(range(len(each[-1].rows)))
        cases = [LeaderCase(leader)]
        if not moves:
            cases = [LeaderCase(leader, heir) for heir in range(5) if heir != leader]
        bounds = []
        for case in cases:
            program = LeaderProgram(problem, case, each, every, 1.01 * best)
            relaxation = Relaxation(program.arrays(1e6 / best, 1.01 * best))
            solved = relaxation.solve().value == "optimal"
            bounds.append(relaxation.objective / 1e6 * best if solved else math.inf)
            assert max(least(problem, case, row) for row in each[-1].rows) <= bounds[-1] * (
                1 + 1e-7
            )
        assert min(bounds) <= best * (1 + 1e-7)


def test_a_limit_of_time_keeps_the_best_so_far() -> None:
    problem = Problem(placement.load("world27"), replicas=5, voters=3, minimise=AIMS[1])
    for method in ("milp", "cp-sat"):
        plan = placement.solve(problem, method, time_limit=1.0)
        assert plan.bound <= plan.objective
        assert plan.status != "optimal"
