"""Questions of measures: ``exact`` against every configuration, prices and fronts of limits."""

from __future__ import annotations

import copy
import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from formulations.exact.measures import MeasuresSearch
from formulations.exact.threshold_driver import without_limits
from placement import Configuration, Plan, Problem, Status, load, solve
from placement.errors import CertificateError, LimitError
from placement.evaluation.objective import score_of
from placement.measures import After, Limit, Measure, MeasureKind, read_limit, read_measure
from placement.measures.limits import explain_limits, limit_prices, measure_front
from placement.measures.values import value, values
from placement.methods import Options, explained, load_method, run
from placement.proof.certificate_check import check_certificate
from placement.proof.measures_proof import FORMAT, MeasuresClaim, _ruled_out
from placement.support.status import OPTIMALITY_TOLERANCE, Termination
from placement.support.work import Work
from placement.tail.rtt_distributions import spread_distributions
from placement.testing.small_worlds import every_configuration, random_instance
from tests.effort import examples, seeds

MEAN = Measure(MeasureKind.MEAN)
LATENCIES = [
    MEAN,
    Measure(MeasureKind.MEAN, operations=("reads",)),
    Measure(MeasureKind.MEAN, operations=("writes",)),
    Measure(MeasureKind.MEAN, clients=("client-1",)),
    Measure(MeasureKind.MEAN, clients=("region:region-1",)),
    Measure(MeasureKind.SLOWEST),
    Measure(MeasureKind.SLOWEST, operations=("reads",)),
]
LOSSES = [
    Measure(MeasureKind.MEAN, after=After("region")),
    Measure(MeasureKind.MEAN, operations=("writes",), after=After("site")),
    Measure(MeasureKind.MEAN, clients=("client-1",), after=After("provider")),
    Measure(MeasureKind.MEAN, after=After("region", leader_moves=True)),
    Measure(MeasureKind.MEAN, after=After("site", together=2)),
]
LATE = [
    Measure(MeasureKind.PERCENTILE, 0.9),
    Measure(MeasureKind.PERCENTILE, 0.5, operations=("writes",)),
    Measure(MeasureKind.WITHIN, 250.0),
    Measure(MeasureKind.WITHIN, 90.5, operations=("reads",), clients=("client-1", "client-2")),
    Measure(MeasureKind.PERCENTILE, 0.8, after=After("region")),
    Measure(MeasureKind.PERCENTILE, 0.95, after=After("site", leader_moves=True)),
    Measure(MeasureKind.WITHIN, 200.0, after=After("provider")),
]
SUMS = [
    Measure(kind)
    for kind in (MeasureKind.COST, MeasureKind.CHANGES, MeasureKind.COPIED, MeasureKind.REPLICAS)
]


def world(seed: int) -> Problem:
    """A small question of the mean, with prices, a present configuration and now and then rules."""
    rng = np.random.default_rng(seed)
    sites = int(rng.integers(5, 8))
    instance = random_instance(
        seed, sites=sites, clients=int(rng.integers(3, 6)), ties=bool(seed % 2), prices=True
    )
    assert instance.prices is not None
    instance = instance.replace(prices=dataclasses.replace(instance.prices, stored_gb=7.0))
    voters = int(rng.choice([1, 3]))
    least = int(rng.integers(voters, 5))
    most = int(rng.integers(least, 5))
    asked: dict[str, object] = {"replicas": (least, most), "voters": voters}
    if rng.random() < 0.2:
        asked["forbidden"] = ("site-0",)
    if rng.random() < 0.2:
        asked["pinned"] = ("site-1",)
    if rng.random() < 0.2:
        asked["non_voters"] = ("site-2",)
    present = Configuration.of(1, (1, 2, 3)[:voters], (1, 2, 3))
    if seed % 3 == 0:
        asked["distributions"] = spread_distributions(instance, 0.4, horizon=900)
    return Problem(instance, current=present, **asked)  # type: ignore[arg-type]


def usable(problem: Problem, measure: Measure) -> bool:
    try:
        share = measure.share
        problem.replace(keep=[Limit(measure, least=0.0) if share else Limit(measure, 1e9)])
    except ValueError:
        return False
    return True


def question(seed: int) -> tuple[Problem, Measure, list[tuple[float, float]]]:
    """A drawn question, its minimised measure, and (value, mean) of all that keep its limits."""
    rng = np.random.default_rng(1000 + seed)
    free = world(seed)
    known = list(every_configuration(free))
    limited = [one for one in (*LATENCIES, *LOSSES, *SUMS, *LATE) if usable(free, one)]
    aim = limited[int(rng.integers(len(limited)))]
    keep, kept = [], np.ones(len(known), dtype=bool)
    for _ in range(int(rng.integers(0, 4))):
        measure = limited[int(rng.integers(len(limited)))]
        found = values(free, measure, known)
        ends = found[np.isfinite(found)] if np.isfinite(found).any() else np.ones(1)
        at = float(np.quantile(ends, rng.choice([0.0, 0.1, 0.5, 0.9]), method="lower"))
        at *= 1 + rng.choice([0.0, -1e-3, 1e-3, -0.3])
        at = max(0.0, at)
        limit = Limit(measure, least=min(1.0, at)) if measure.share else Limit(measure, at)
        keep.append(limit)
        kept &= np.array([limit.kept(one) for one in found.tolist()], dtype=bool)
    found = values(free, aim, known)
    worth = (1 - found if aim.share else found).tolist()
    left = [
        (found, score_of(free, one))
        for one, found, ok in zip(known, worth, kept.tolist(), strict=True)
        if ok and math.isfinite(found)
    ]
    sense = "maximise" if aim.share else "minimise"
    return free.replace(**{sense: aim, "keep": keep}), aim, left


# of the last, certificates were refused: multipliers of next to no weight, a plan at its claim
@pytest.mark.parametrize("seed", [*seeds(20, 1500), 4146, 4218])
def test_the_best_within_limits_is_that_of_all_configurations(seed: int) -> None:
    problem, aim, left = question(seed)
    plan = solve(problem, "exact")
    if not left:
        assert plan.status is Status.INFEASIBLE
    else:
        best = min(worth for worth, _ in left)
        mean = min(mean for worth, mean in left if worth <= best * (1 + 1e-12))
        assert plan.status is Status.OPTIMAL
        assert plan.configuration is not None
        found = value(problem, aim, plan.configuration)
        found = 1 - found if aim.share else found
        assert found == pytest.approx(best, rel=1e-9, abs=1e-12)
        assert plan.score == pytest.approx(mean, rel=1e-9, abs=1e-12)
    check_certificate(plan)


@pytest.mark.parametrize("gap", [0.0, 1e-9, 1.5e-9, 1.0, 2.0])
def test_any_gap_limit_is_kept_and_named_and_no_bound_falls(gap: float) -> None:
    """A wide one leaves the proof that there is no plan."""
    bounds: list[float] = []
    plan = solve(
        question(17)[0], "exact", gap_limit=gap, progress=lambda one: bounds.append(one.bound)
    )
    assert bounds == sorted(bounds)
    assert (plan.status is Status.OPTIMAL) is (gap <= OPTIMALITY_TOLERANCE)
    assert (plan.termination is Termination.FINISHED) is (gap <= OPTIMALITY_TOLERANCE)
    assert plan.gap <= max(gap, OPTIMALITY_TOLERANCE) * (1 + 1e-6)
    assert solve(question(1)[0], "exact", gap_limit=gap).status is Status.INFEASIBLE


def test_few_replicas_are_asked_about_first() -> None:
    limits = ["mean(writes) <= 180 ms", "mean after the loss of any country <= 85 ms"]
    asked = {"replicas": (3, 9), "voters": 3, "keep": ["mean <= 75 ms", *limits]}
    plan = solve(Problem(load("azure"), minimise="replicas", **asked))  # type: ignore[arg-type]
    assert (plan.status, len(plan.replicas)) == (Status.OPTIMAL, 6)
    assert plan.stats["nodes"] < 5_000  # 128,986 where all sizes are in one tree


def test_steps_end_where_no_plan_keeps_the_limits() -> None:
    keep = ["mean after the loss of any region, the leader may move <= 149.8 ms", "cost <= 35"]
    plan = solve(world(2014).replace(minimise="copied GB", keep=keep), "exact")
    assert plan.status is Status.INFEASIBLE


# --- certificates -----------------------------------------------------------------------------


def certified(seed: int) -> Plan | None:
    """The plan of a drawn question, where trees prove it or that there is none."""
    plan = solve(question(seed)[0], "exact")
    found = plan.certificate is not None and plan.certificate["format"] == FORMAT
    return (
        plan if found and plan.certificate is not None and plan.certificate.get("proofs") else None
    )


def forged(plan: Plan, rng: np.random.Generator) -> Plan:
    """A claim that is false, with a proof in which one number or event was changed."""
    assert plan.certificate is not None
    document: dict[str, Any] = copy.deepcopy({**plan.certificate})
    document.pop("ties", None)
    proof = document["proofs"][int(rng.integers(len(document["proofs"])))]
    _mutate(proof["events"], rng)
    if plan.found:
        bound = document["bound"] = plan.objective + (1 + plan.objective) * rng.choice([1e-8, 0.01])
        return plan.replace(certificate=document, bound=bound, status=Status.FEASIBLE)
    return plan.replace(certificate=document)


def _mutate(events: list[object], rng: np.random.Generator) -> None:
    at: list[object] = events
    while True:
        if not at or rng.random() < 0.15:
            what = int(rng.integers(3))
            if at and what == 0:
                del at[int(rng.integers(len(at)))]
            elif at and what == 1:
                at.insert(int(rng.integers(len(at))), copy.deepcopy(at[int(rng.integers(len(at)))]))
            else:
                at.append(int(rng.integers(5)))
            return
        place = int(rng.integers(len(at)))
        inner = at[place]
        if isinstance(inner, list):
            at = inner
            continue
        some = [0, -1, 1, 2, 10**6, -(10**6), 2**52, math.nan, math.inf, 1e300, -1e300, "x", None]
        some += [inner * 2, -inner, inner + 1] if isinstance(inner, (int, float)) else []
        at[place] = some[int(rng.integers(len(some)))]
        return


@pytest.mark.parametrize("seed", [*seeds(6, 400), 24])  # 24: a claim just above whole numbers
def test_no_changed_proof_shows_what_is_false(seed: int) -> None:
    """No bound above the optimum, and not that nothing keeps limits where something does."""
    plan = certified(seed)
    if plan is None:
        return
    rng = np.random.default_rng(seed)
    other = world(seed).replace(keep=["cost <= 1e9"], minimise="slowest client")
    for _ in range(examples(400, 40)):
        changed = forged(plan, rng).replace(problem=plan.problem if plan.found else other)
        with pytest.raises((CertificateError, LimitError)):
            check_certificate(changed, work=10**8)


def test_leaders_are_ruled_out_by_their_mean_alone() -> None:
    """Most leaders need no tree: with the multipliers of the search without limits, 43 were 4."""
    asked = {"replicas": 5, "voters": 3, "keep": ["mean(writes) <= 150 ms"]}
    plan = solve(Problem(load("azure"), **asked), "exact")  # type: ignore[arg-type]
    assert plan.status is Status.OPTIMAL
    assert plan.certificate is not None
    assert len(plan.certificate["floors"]) > len(plan.certificate["proofs"])
    check_certificate(plan)
    for place in range(len(plan.certificate["floors"])):
        left = [*plan.certificate["floors"]]
        del left[place]
        with pytest.raises(CertificateError):
            check_certificate(plan.replace(certificate={**plan.certificate, "floors": left}))


def test_multipliers_rule_out_no_leader_of_a_better_plan() -> None:
    """Nearly the best multipliers, from the best plan of each leader, against all plans."""
    ruled = 0
    for seed in range(examples(300, 24)):
        rng = np.random.default_rng(seed)
        problem = world(seed).replace(keep=["mean(writes) <= 1e9 ms"])
        best: dict[int, tuple[float, Configuration]] = {}
        for one in every_configuration(problem):
            found = score_of(problem, one)
            if found < best.get(one.leader, (math.inf,))[0]:
                best[one.leader] = found, one
        for leader, (found, one) in best.items():
            for bound in (found * (1 + 1e-9), found * (1 - 1e-9), found * 0.9):
                claim = MeasuresClaim(problem, bound / problem.demand.operations)
                row = claim.thresholds(leader)[-1][0]
                assert row.costs is not None
                near = np.sort(row.costs[list(one.replicas)][:, claim.clients], axis=0)
                u = near[0] + rng.random(near.shape[1]) * (near[min(1, len(near) - 1)] - near[0])
                floor = [leader, 30, np.ldexp(u, 30).astype(np.int64).tolist()]
                out, successors = _ruled_out(claim, [floor], Work(10**9))
                assert not successors
                assert not out or bound <= found
                ruled += len(out)
    assert ruled > 5


def limited(seed: int, **asked: object) -> Problem:
    instance = random_instance(seed, sites=5, clients=5, prices=True)
    spread = spread_distributions(instance, 0.3, width=10.0, horizon=1500)
    return Problem(instance, replicas=(3, 4), voters=3, distributions=spread, **asked)  # type: ignore[arg-type]


def test_a_start_is_kept_where_there_is_no_time_to_find_a_better_plan() -> None:
    best = solve(problem := limited(2, keep="p90 <= 1200 ms"), "exact")
    assert solve(problem, "exact", time_limit=0.0, start=best).objective == best.objective


def test_the_clock_is_looked_at_between_the_sets_of_voters_of_a_large_set_of_replicas() -> None:
    instance = random_instance(3, sites=16, clients=3)
    problem = Problem(instance, replicas=16, voters=7, minimise="mean after the loss of any site")
    options = Options(settings={"certificate": False})
    search = MeasuresSearch(problem, options, solve(without_limits(problem)), end=math.inf)
    sets = search._kept(0, list(range(16)))
    assert [len(next(sets)), len(next(sets))] == [1, 588]  # the best without a loss, then of 5005
    search.end = 0.0
    with pytest.raises(TimeoutError):
        next(sets)
    first, second = (Configuration.of(leader, range(7), range(16)) for leader in (0, 1))
    search.value = math.inf
    search.quick_is_exact = False
    search.quick_values = lambda some: np.zeros(len(some))  # type: ignore[method-assign]
    with pytest.raises(TimeoutError):
        search.accept(first, second)
    assert search.best == first


@pytest.mark.parametrize("pair", [("cost", "p90(writes)"), ("mean", "within 250 ms")])
@pytest.mark.parametrize("seed", seeds(1, 2))
def test_a_front_has_every_plan_that_no_plan_beats(seed: int, pair: tuple[str, str]) -> None:
    problem = limited(seed, keep="p90 <= 1000 ms")
    one, other = map(read_measure, pair)
    front, complete = measure_front(problem, one, other, "exhaustive")
    assert complete
    limit = read_limit("p90 <= 1000 ms")
    plans = list(every_configuration(problem))
    kept = values(problem, limit.measure, plans).tolist()
    plans = [plan for plan, late in zip(plans, kept, strict=True) if limit.kept(late)]
    first = values(problem, one, plans)
    sign = -1 if other.share else 1
    second = values(problem, other, plans) * sign
    expected, least = [], math.inf
    for a, b in sorted(zip(first.tolist(), second.tolist(), strict=True)):
        if b < least - 1e-7:
            expected.append((a, b))
            least = b
    chosen = [plan.configuration for plan in front if plan.configuration is not None]
    found = values(problem, one, chosen), values(problem, other, chosen) * sign
    for each, wanted in zip(found, zip(*expected, strict=True), strict=True):
        assert each.tolist() == pytest.approx(list(wanted))


def test_prices_of_limits() -> None:
    problem = limited(
        1, minimise="cost", keep=["p90(writes) <= 450 ms", "mean <= 120 ms", "replicas <= 4"]
    )
    plan = solve(problem, "exhaustive")
    assert plan.status is Status.OPTIMAL
    remark, *notes = limit_prices(plan, "exhaustive").notes
    assert remark == "no plan can break the limit replicas <= 4"
    assert all(note.startswith("without the limit ") for note in notes)
    free = solve(
        limited(1, minimise="cost", keep=["p90(writes) <= 450 ms", "replicas <= 4"]), "exhaustive"
    )
    gain = plan.objective - free.objective
    said = "nothing is gained" if not gain else f"cost is {free.objective:g} USD, {gain:g} USD less"
    assert notes[1:] == [
        f"without the limit mean <= 120 ms, {said}",
        "without the limit replicas <= 4, nothing is gained",
    ]


def test_conflicting_limits_are_named_with_the_best_that_the_others_allow() -> None:
    free = limited(2)
    least = solve(free, "exhaustive").mean_latency
    cheapest = solve(limited(2, minimise="cost"), "exhaustive").objective
    keep = [f"mean <= {least * 1.001!r} ms", f"cost <= {cheapest!r}", "replicas <= 4"]
    problem = limited(2, minimise="slowest client", keep=keep)
    plan = solve(problem, "exhaustive")
    assert plan.status is Status.INFEASIBLE
    together, mean, cost = explain_limits(problem, "exhaustive")
    assert together == f"no plan keeps the limits {keep[0]}, {keep[1].replace('.0', '')} together"
    best = solve(limited(2, keep=keep[1]), "exhaustive").mean_latency
    assert mean.startswith(f"mean can be {best:,.3f} ms at best while cost <= ")
    dear = solve(limited(2, minimise="cost", keep=[keep[0]]), "exhaustive").objective
    assert cost.startswith(f"cost can be {dear:g} USD at best while mean <= ")


def test_limits_that_are_not_decided_about_in_time() -> None:
    keep = ["mean <= 1 ms", "cost <= 1", "replicas <= 4"]
    (together,) = explain_limits(limited(2, keep=keep), "exhaustive", seconds=0.0)
    assert together.startswith("no plan keeps the limits mean <= 1 ms, cost <= 1, replicas <= 4 ")
    assert together.endswith("together (whether fewer of them conflict was not decided in time)")
    plan = run(load_method("exhaustive"), limited(2, keep=keep), Options())
    assert explained(plan, time_limit=plan.seconds).reasons == plan.reasons != ()
    assert explained(plan, time_limit=plan.seconds + 60).reasons[0].startswith("no plan keeps")


def test_limits_of_which_one_alone_leaves_no_plan() -> None:
    problem = limited(3, minimise="cost", keep=["slowest client <= 1 ms", "replicas <= 3"])
    together, best = explain_limits(problem, "exhaustive")
    assert together == "no plan keeps the limit slowest client <= 1 ms"
    assert best.startswith("slowest client can be ")
    assert explain_limits(limited(3), "exhaustive") == ()
