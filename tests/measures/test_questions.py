"""Questions of measures: answers against enumeration by the evaluator, invariants, bad input."""

from __future__ import annotations

import math

import numpy as np
import pytest

import placement
from placement import Configuration, Contingency, Moves, Problem
from placement.errors import InputError, UnsupportedError
from placement.evaluation.objective import MEAN_LATENCY, score_of
from placement.measures import Limit, Measure, MeasureKind, read_measure
from placement.measures.question import MeasureQuestion, percentile_question, question_of
from placement.measures.values import largest, value, values
from placement.model.instance import Instance
from placement.tail.rtt_distributions import Distributions, spread_distributions
from placement.testing.small_worlds import every_configuration, random_instance
from tests.effort import examples, thinned
from tests.expected import refused

MEASURES = [
    "mean", "mean(reads)", "mean(writes, client client-1)", "mean after the loss of any region",
    "mean after the loss of site-1", "mean over outages", "p90", "p75(writes)", "within 250 ms",
    "slowest client", "cost", "changes", "copied GB", "replicas",
]  # fmt: skip


def asked(seed: int, limits: int, aim: str | None = None, **changes: object) -> Problem:
    """A drawn question, whose limits lie at values of drawn plans, so that many bind."""
    rng = np.random.default_rng(seed)
    sites = int(rng.integers(5, 7))
    instance = _world(seed, sites)
    least = int(rng.integers(2, 4))
    voters = 3 if least > 2 else int(rng.integers(1, 3))
    free = Problem(
        instance,
        replicas=(least, least + 1),
        voters=voters,
        current=Configuration.of(0, (0, 1, 2), (0, 1, 2)),
        moves=Moves(stored_gb=3.0),
        keep=["within 1200 ms >= 0 %"],  # for the distributions and the outages
        distributions=_spread(seed, sites),
        outages={"region:region-0": 0.05, "site-3": 0.01},
    )
    plans = list(every_configuration(free))
    keep = []
    for text in rng.permutation(MEASURES)[:limits].tolist():
        measure = read_measure(text)
        one = value(free, measure, plans[rng.integers(len(plans))])
        if math.isfinite(one):
            keep.append(Limit(measure, least=one) if measure.share else Limit(measure, most=one))
    words = aim or str(rng.permutation(MEASURES)[0])
    target = {"maximise" if words.startswith("within") else "minimise": words}
    given: dict[str, object] = {
        "objective": MEAN_LATENCY,
        "keep": keep,
        "distributions": _spread(seed, sites),
        "outages": {"region:region-0": 0.05, "site-3": 0.01},
        "moves": Moves(stored_gb=3.0),
        **target,
        **changes,
    }
    return free.replace(**given)


def _world(seed: int, sites: int) -> Instance:
    instance = random_instance(seed, sites=sites, clients=4, ties=seed % 3 == 0, prices=True)
    counts = instance.counts.copy()
    counts[..., 3] += 1  # every client writes
    return instance.replace(counts=counts)


def _spread(seed: int, sites: int) -> Distributions:
    return spread_distributions(_world(seed, sites), 0.3, width=20.0, horizon=1600)


def truth(problem: Problem) -> tuple[float, float]:
    """Least value of all configurations that keep the limits, and the least mean of those."""
    question = question_of(problem)
    plain = problem.replace(objective=MEAN_LATENCY, budget=None, moves=None)
    plans = list(every_configuration(plain))
    for limit in question.keep:
        kept = values(problem, limit.measure, plans).tolist()
        plans = [plan for plan, one in zip(plans, kept, strict=True) if limit.kept(one)]
    if not plans:
        return math.inf, math.inf
    found = values(problem, question.aim, plans)
    found = 1 - found if question.aim.share else found
    best = float(found.min())
    tied = np.nonzero(found <= best + 1e-9 * (1 + abs(best)))[0].tolist()
    return best, min(score_of(problem, plans[row]) for row in tied)


def _check(seed: int, method: str) -> None:
    problem = asked(seed, limits=seed % 4)
    best, mean = truth(problem)
    try:
        plan = placement.solve(problem, method)
    except UnsupportedError:
        assert problem.objective.kind != "measures"  # a part of the cost with an older kind
        return
    if math.isinf(best):
        assert plan.status == "infeasible"
        return
    assert plan.status == "optimal"
    assert plan.configuration is not None
    found = value(problem, question_of(problem).aim, plan.configuration)
    found = 1 - found if question_of(problem).aim.share else found
    assert found == pytest.approx(best, rel=1e-9, abs=1e-9)
    if isinstance(problem.objective, MeasureQuestion):
        assert plan.score == pytest.approx(mean, rel=1e-9)


@pytest.mark.parametrize("part", range(2))
def test_drawn_questions_against_enumeration(part: int) -> None:
    for seed in range(part, examples(5000, 16), 2):
        _check(seed, "exact" if seed % 10 else "exhaustive")


def solved(problem: Problem) -> float:
    plan = placement.solve(problem, "exhaustive")
    return plan.objective if plan.found else math.inf


def test_least_cost_within_a_mean_and_least_mean_within_that_cost() -> None:
    instance = random_instance(8, sites=6, clients=5, prices=True)
    problem = Problem(instance, replicas=(3, 4), voters=3)
    most = 1.1 * placement.solve(problem, "exhaustive").mean_latency
    cost = solved(problem.replace(minimise="cost", keep=f"mean <= {most!r} ms"))
    mean = placement.solve(problem.replace(keep=f"cost <= {cost!r}"), "exhaustive").mean_latency
    assert mean <= most * (1 + 1e-12)


@pytest.mark.parametrize("words", ["mean(reads)", "within 250 ms"])
def test_outages_count_by_their_probabilities(words: str) -> None:
    outages = {"region:region-0": 0.05, "site-3": 0.01, "site-1": 0.0}
    problem = asked(4, 0).replace(outages=outages, voters=2)
    plans = thinned(every_configuration(problem), 5)
    expected = 0.94 * values(problem, read_measure(words), plans)
    for name, p in problem.objective.outages.items():  # type: ignore[attr-defined]  # of measures
        each = values(problem, read_measure(f"{words} after the loss of {name}"), plans)
        expected += np.where(np.isinf(each), each, p * np.nan_to_num(each))
    found = values(problem, read_measure(f"{words} over outages"), plans)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_old_spellings_and_measures_are_one_question() -> None:
    instance = random_instance(2, sites=6, clients=4, prices=True)
    spread = spread_distributions(instance, 0.3)
    now = Configuration.of(0, (0, 1, 2), (0, 1, 2))
    old: list[dict[str, object]] = [
        {"budget": 40.0},
        {"objective": percentile_question(99, spread)},
        {"objective": Contingency("region")},
        {"objective": Contingency("region", "bounded", limit=300.0), "budget": 40.0},
        {"objective": Contingency("site", together=2, clients_move=True)},
        {"current": now, "moves": Moves(at_most=2, copy_gb=5.0, stored_gb=3.0)},
    ]
    new: list[dict[str, object]] = [
        {"keep": "cost <= 40"},
        {"minimise": "p99", "distributions": spread},
        {"minimise": "mean after the loss of any region"},
        {"keep": ["mean after the loss of any region <= 300 ms", "cost <= 40"]},
        {"minimise": "mean after the loss of any two sites, clients move"},
        {"current": now, "keep": ["changes <= 2", "copied GB <= 5"], "moves": Moves(stored_gb=3.0)},
    ]
    for before, after in zip(old, new, strict=True):
        one = Problem(instance, replicas=(3, 4), voters=3, **before)  # type: ignore[arg-type]
        other = Problem(instance, replicas=(3, 4), voters=3, **after)  # type: ignore[arg-type]
        assert question_of(one) == question_of(other)
        assert (one.moves is None) == (other.moves is None)
        if one.moves is not None and other.moves is not None:
            assert one.moves.given == other.moves.given
        assert question_of(one).describe() == question_of(other).describe()
    weighted = Problem(
        instance,
        replicas=(3, 4),
        voters=3,
        minimise="mean over outages",
        outages={"any region": 0.01},
    )
    assert weighted.objective == Contingency("region", "weighted", probability=0.01)


def test_names_of_sites_and_clients_in_another_order_change_nothing() -> None:
    problem = asked(5, 2, "mean(reads)")
    best = solved(problem)
    instance, goal = problem.instance, problem.objective
    assert isinstance(goal, MeasureQuestion)
    order = np.random.default_rng(1).permutation(len(instance.clients))
    moved = instance.replace(
        clients=tuple(instance.clients[c] for c in order),
        client_rtt=instance.client_rtt[order],
        counts=instance.counts[:, order],
        client_coordinates=None,
    )
    again = Problem(
        moved,
        replicas=problem.replicas,
        voters=problem.voters,
        current=problem.current,
        minimise=goal.aim,
        keep=goal.keep,
        distributions=spread_distributions(moved, 0.3, width=20.0, horizon=1600),
        outages=goal.outages,
        moves=Moves(stored_gb=3.0),
    )
    assert solved(again) == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"keep": "p99 <= 100 ms"}, "--distributions"),
        ({"minimise": "within 100 ms"}, "maximise"),
        ({"maximise": "mean"}, "less is better"),
        ({"maximise": "within 100 ms", "minimise": "cost"}, "minimised or maximised"),
        ({"minimise": "mean(raeds)"}, "'reads'"),
        ({"minimise": "mean(client clinet-1)"}, "'client-1'"),
        ({"minimise": "mean(clients in region:region-9)"}, "region-"),
        ({"minimise": "mean(clients in state:x)"}, "state"),
        ({"minimise": "mean after the loss of site-77"}, "site-"),
        ({"minimise": "mean after the loss of any state"}, "state"),
        ({"minimise": "mean over outages"}, "--outage"),
        ({"keep": ["changes <= 2"]}, "current="),
        ({"minimise": "changes"}, "--from"),
        ({"minimise": "cost", "cost_weight": 2.0}, "weight"),
        ({"minimise": "cost", "objective": Contingency("region")}, "one of the two"),
        ({"keep": [3]}, "keep"),
        ({"outages": {"site-0": 1.5}, "minimise": "mean over outages"}, "outages"),
        ({"outages": {"site-0": 0.6, "site-1": 0.6}, "minimise": "mean over outages"}, "sum"),
        ({"minimise": "mean(writes, client client-0)"}, "no operation counts"),
    ],
)
def test_bad_questions_are_named(changes: dict[str, object], part: str) -> None:
    instance = random_instance(1, sites=4, clients=3, prices=True)
    counts = instance.counts.copy()
    counts[:, 0, 1:] = 0
    counts[:, 0, 0] = 1
    instance = instance.replace(counts=counts)
    with refused(part):
        Problem(instance, replicas=3, voters=3, **changes)  # type: ignore[arg-type]


def test_a_cost_without_prices_and_a_deadline_beyond_the_horizon() -> None:
    instance = random_instance(1, sites=4, clients=3)
    with pytest.raises(InputError, match="prices"):
        Problem(instance, replicas=3, voters=3, minimise="cost")
    spread = spread_distributions(instance, 0.1, horizon=500)
    with pytest.raises(InputError, match="horizon"):
        Problem(instance, replicas=3, voters=3, keep="within 600 ms >= 90 %", distributions=spread)


def test_the_stricter_of_two_limits_counts() -> None:
    instance = random_instance(1, sites=4, clients=3, prices=True)
    problem = Problem(
        instance,
        replicas=3,
        voters=3,
        minimise="slowest client",
        keep=["cost <= 30", "mean <= 90 ms", "cost <= 20"],
        budget=25.0,
    )
    assert [str(one) for one in question_of(problem).keep] == ["cost <= 20", "mean <= 90 ms"]
    problem = problem.replace(keep="replicas <= 3")
    assert placement.solve(problem, "exhaustive").notes == (
        "no plan can break the limit replicas <= 3",
    )


def test_limits_that_do_not_count_are_told() -> None:
    instance = random_instance(1, sites=4, clients=3, prices=True)
    keep = ["cost <= 30", "slowest client <= 900 ms", "cost <= 20"]
    problem = Problem(instance, replicas=3, voters=3)
    assert placement.solve(problem.replace(keep=keep), "exhaustive").notes == (
        "cost <= 30 does not count: another limit is stricter",
        "no plan can break the limit slowest client <= 900 ms",
    )
    for measure in map(read_measure, ("mean", "mean(writes)", "slowest client(reads)")):
        found = values(problem, measure, [*every_configuration(problem)])
        assert found.max() <= largest(problem, measure) < math.inf


def test_methods_that_do_not_take_measures_say_so_before_they_run() -> None:
    problem = asked(1, 2, "slowest client")
    with pytest.raises(UnsupportedError, match="exhaustive"):
        placement.solve(problem, "kq")


def test_a_share_in_time_and_its_percentile_agree() -> None:
    problem = asked(4, 0, "p90")
    plans = list(every_configuration(problem))[:20]
    late = values(problem, Measure(MeasureKind.PERCENTILE, 0.9), plans)
    for plan, one in zip(plans, late.tolist(), strict=True):
        if math.isfinite(one):
            assert value(problem, Measure(MeasureKind.WITHIN, one), plan) >= 0.9 - 1e-9
            if one > 20:
                before = Measure(MeasureKind.WITHIN, one - 20.0)
                assert value(problem, before, plan) < 0.9
