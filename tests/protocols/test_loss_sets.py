"""Losses of operations with waits by the search over sets: equal to enumeration, bounds honest."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest

import placement
from formulations.contingency import loss_sets
from formulations.waits.set_search import compiled_available
from formulations.waits.set_tables import WaitTables
from placement import Configuration, Contingency, Problem
from placement.errors import CertificateError
from placement.evaluation.objective import score_of
from placement.feasibility.feasible_plans import violations
from placement.methods.options import Progress
from placement.model.instance import Instance
from placement.proof.sets.set_check import FORMAT
from placement.proof.sets.set_walk import walk_refusal
from placement.support.status import Status, Termination
from tests.effort import seeds
from tests.protocols.test_sets import questions
from tests.protocols.worlds import world

pytestmark = pytest.mark.skipif(not compiled_available(), reason="the kernel was not built")

GOALS = (
    Contingency(),
    Contingency(leader_may_move=True),
    Contingency(together=2),
    Contingency("region", clients_move=True),
    Contingency(goal="bounded", limit=130.0),
    Contingency(goal="bounded", limit=220.0),
    Contingency(goal="weighted", probability=0.02),
    Contingency(goal="weighted", probability={"s1": 0.6, "s3": 0.4}),
)


def uneven(one: Instance, seed: int) -> Instance:
    """Return the world with asymmetric RTTs, clients at sites, and many zero counts."""
    rng = np.random.default_rng([seed, 8])
    rtt = one.site_rtt + rng.integers(0, 3, one.site_rtt.shape) * 10.0
    np.fill_diagonal(rtt, 0)
    counts = one.counts * (rng.random(one.counts.shape) < 0.6)
    counts[..., 0, :] += 1
    return one.replace(site_rtt=rtt, counts=counts, clients=("s1", "s3", *one.clients[2:]))


@pytest.mark.parametrize("part", seeds(4, 200))
def test_the_best_under_losses_is_that_of_enumeration(part: int) -> None:
    for seed in range(4 * part, 4 * part + 4):
        plain = questions(seed)
        goal = GOALS[seed % len(GOALS)]
        try:
            problem = plain.replace(instance=uneven(plain.instance, seed), objective=goal)
        except placement.InputError:  # some rules leave no voter to spare
            continue
        expected = placement.solve(problem, "exhaustive")
        found = placement.solve(problem)
        assert found.status is expected.status, seed
        if not found.found:
            continue
        assert found.objective == pytest.approx(expected.objective, rel=1e-12), seed
        assert found.mean_latency == pytest.approx(expected.mean_latency, rel=1e-12), seed
        if found.certified:
            placement.check_certificate(found)
        else:
            assert any("no certificate" in note for note in found.notes), seed
        # a start far from the best hides no error of the bounds
        poor = worst_of(problem)
        again = placement.solve(problem, start=poor)
        assert again.status is Status.OPTIMAL, seed
        assert again.objective == pytest.approx(expected.objective, rel=1e-12), seed


def worst_of(problem: Problem) -> Configuration | None:
    """Return a feasible configuration of large value, of a few that are tried."""
    rules, sites = problem.rules, len(problem.instance.sites)
    rng = np.random.default_rng(sites)
    found: list[Configuration] = []
    for _ in range(60):
        replicas = sorted(rng.choice(sites, rules.replicas_max, replace=False).tolist())
        voters = replicas[: rules.voters]
        one = Configuration.of(voters[0], voters, replicas)
        if not violations(problem, one):
            found.append(one)
    return max(found, key=lambda one: problem.objective.value(problem, one), default=None)


@pytest.mark.parametrize("seed", seeds(10, 100))
def test_sets_within_a_value_are_listed_once_each(seed: int) -> None:
    problem = questions(seed)
    size, rules = problem.rules.replicas_max, problem.rules
    tables = WaitTables.of(problem, size)
    sites = range(len(problem.instance.sites))
    for place, leader in enumerate(tables.leaders):
        site = None if leader < 0 else int(tables.order[leader])
        best: dict[tuple[int, ...], float] = {}
        for replicas in itertools.combinations(sites, size):
            if site is not None and site not in replicas:
                continue
            for voters in itertools.combinations(replicas, rules.voters):
                if site is not None and site not in voters:
                    continue
                heads = [site] if site is not None else [v for v in voters if rules.may_lead[v]]
                if not heads:
                    continue
                one = Configuration.of(heads[0], voters, replicas)
                if not violations(problem, one):
                    value = score_of(problem, one)
                    best[replicas] = min(best.get(replicas, math.inf), value)
        values = sorted(best.values())
        if not values or math.isinf(values[0]):
            continue
        value = values[len(values) // 3]
        listed: list[tuple[int, ...]] = []

        def found(sets, listed=listed, value=value):  # type: ignore[no-untyped-def]
            listed.extend(map(tuple, sets.tolist()))
            return value

        tables.lead(place)
        prefix = tuple(dict.fromkeys((*tables.forced, *((leader,) if leader >= 0 else ()))))
        assert tables.kernel_each(prefix, value * (1 + 1e-9), 60.0, found)
        assert sorted(listed) == sorted(
            one for one, at in best.items() if at <= value * (1 + 1e-9)
        ), seed


def test_an_error_while_sets_are_listed_is_passed_on_and_the_search_goes_on() -> None:
    tables = WaitTables.of(Problem(world(1), replicas=3, voters=3, protocol="leases"), 3)
    tables.lead(0)

    def fails(sets: object) -> float:
        raise RuntimeError("from the caller")

    with pytest.raises(RuntimeError, match="from the caller"):
        tables.kernel_each((tables.leaders[0],), math.inf, 60.0, fails)
    assert tables.kernel_run((tables.leaders[0],), 0, 60.0)
    assert math.isfinite(tables.kernel_best()[0])


def test_a_limit_or_an_interrupt_leaves_a_valid_bound() -> None:
    asked = {"replicas": 5, "protocol": "epaxos", "objective": Contingency("continent")}
    problem = Problem(placement.load("world27", mix="ycsb-a"), **asked)  # type: ignore[arg-type]
    proven = placement.solve(problem)
    assert proven.status is Status.OPTIMAL
    stopped = placement.solve(problem, time_limit=0.0)
    assert stopped.termination is Termination.TIME_LIMIT
    assert stopped.bound <= proven.objective
    early = placement.solve(problem, gap_limit=0.5)
    assert early.termination is Termination.GAP_LIMIT
    assert 0 < early.bound <= proven.objective <= early.objective
    assert early.gap <= 0.5

    def interrupt(progress: Progress) -> None:
        if math.isfinite(progress.incumbent) and progress.bound > 0:
            raise KeyboardInterrupt

    cut = placement.solve(problem, progress=interrupt)
    assert cut.termination is Termination.INTERRUPTED
    assert cut.found
    assert 0 < cut.bound <= proven.objective <= cut.objective


def test_losses_with_all_of_the_weight_list_the_sets_once() -> None:
    """Normal scores bound nothing then, and a ceiling that doubles takes a thousand rounds."""
    plain = questions(23)
    goal = Contingency(goal="weighted", probability={"s1": 0.6, "s3": 0.4})
    problem = plain.replace(instance=uneven(plain.instance, 23), objective=goal)
    plan = placement.solve(problem)
    assert plan.status is Status.OPTIMAL
    assert int(plan.stats["nodes"]) < 100


def test_large_questions_are_proven_by_the_few_sets_that_may_be_best() -> None:
    """Enumeration would evaluate 8.5 million configurations, and was refused."""
    problem = Problem(
        placement.load("azure", mix="ycsb-a"),
        replicas=5,
        protocol="leases",
        objective=Contingency(),
    )
    plan = placement.solve(problem)
    assert plan.status is Status.OPTIMAL
    assert int(plan.stats["under losses"]) < 10_000
    assert any("no certificate" in note for note in plan.notes)
    found = placement.solve(problem, "local-search")
    assert found.objective >= plan.objective * (1 - 1e-12)


def certified(problem: Problem) -> tuple[placement.Plan, dict]:  # type: ignore[type-arg]
    """Return a proven plan with its certificate as a document."""
    plan = placement.solve(problem)
    assert plan.certificate is not None
    return plan, json.loads(json.dumps(dict(plan.certificate)))


LARGE = {"replicas": 5, "protocol": "leases"}


@pytest.mark.parametrize(
    "asked",
    [
        {"replicas": 5, "protocol": "epaxos", "objective": Contingency()},
        {**LARGE, "objective": Contingency("continent")},
        {**LARGE, "objective": Contingency(goal="bounded", limit=128.0)},
        {**LARGE, "objective": Contingency(goal="weighted", probability=0.02)},
        {**LARGE, "objective": Contingency(clients_move=True, leader_may_move=True)},
    ],
    ids=["epaxos", "continent", "bounded", "weighted", "moving"],
)
def test_the_certificate_of_a_large_question_holds_and_proves_no_more(asked: dict) -> None:  # type: ignore[type-arg]
    problem = Problem(placement.load("world27", mix="ycsb-a"), **asked)
    plan, document = certified(problem)
    assert document["format"] == FORMAT
    result = placement.check_certificate(plan)
    assert result.bound == pytest.approx(plan.objective, rel=1e-9)
    if problem.objective.goal == "worst":  # type: ignore[attr-defined]
        assert result.normal_bound == pytest.approx(plan.score, rel=1e-9)
    # a larger bound, a beginning left open that was ruled out, and one ruled out that is not
    open_steps = document["proofs"][0]["steps"]
    for change in (
        {"bound": document["bound"] * 1.01},
        {"proofs": [{**one, "steps": one["steps"][:-1]} for one in document["proofs"]]},
        {"proofs": [{**document["proofs"][0], "steps": open_steps.replace("o", "i", 1)},
                    *document["proofs"][1:]]},
        {"proofs": document["proofs"][1:]},
    ):  # fmt: skip
        with pytest.raises(CertificateError):
            placement.check_certificate(plan.replace(certificate={**document, **change}))


def test_a_certificate_of_the_normal_optimum_does_not_prove_the_worst_case() -> None:
    """The bound of the normal case is too small, and the sets that it leaves too few."""
    world27 = placement.load("world27", mix="ycsb-a")
    normal, document = certified(Problem(world27, replicas=5, protocol="epaxos"))
    plan = placement.solve(normal.problem.replace(objective=Contingency()))
    assert plan.configuration is not None
    other = {
        **document, "bound": plan.bound, "score": plan.objective,
        "leader": plan.configuration.leader,
        "voters": list(plan.configuration.voters), "replicas": list(plan.configuration.replicas),
    }  # fmt: skip
    with pytest.raises(CertificateError):
        placement.check_certificate(plan.replace(certificate=other))


def test_certificates_of_sets_do_not_prove_questions_with_witnesses() -> None:
    """As many voters as replicas, but one votes without a replica: other sets are asked about."""
    asked = {"replicas": 3, "voters": 3, "protocol": "leases"}
    _, document = certified(Problem(world(2, sites=6), **asked))  # type: ignore[arg-type]
    problem = Problem(world(2, sites=6), **asked, witnesses=1)  # type: ignore[arg-type]
    assert walk_refusal(problem) is not None
    plan = placement.solve(problem)
    assert plan.configuration is not None
    forged = {
        **document, "format": FORMAT, "order": list(range(6)),
        "leader": plan.configuration.leader, "voters": list(plan.configuration.voters),
        "replicas": list(plan.configuration.replicas), "bound": plan.bound,
        "score": plan.objective,
    }  # fmt: skip
    with pytest.raises(CertificateError, match="witnesses"):
        placement.check_certificate(plan.replace(certificate=forged))


def test_a_limit_on_losses_that_nothing_keeps_has_no_plan() -> None:
    problem = Problem(
        world(2), replicas=3, protocol="leases", objective=Contingency(goal="bounded", limit=1.0)
    )
    plan = placement.solve(problem)
    assert plan.status is Status.INFEASIBLE
    assert placement.solve(problem, "exhaustive").status is Status.INFEASIBLE


def test_what_the_search_over_sets_does_not_take_is_enumerated() -> None:
    goal = Contingency()
    for asked, why in (
        ({"witnesses": 1, "voters": 3}, "witnesses"),
        ({"protocol": "leases:holders=2"}, "lease holders"),
    ):
        problem = Problem(world(3), replicas=3, objective=goal, **asked)  # type: ignore[arg-type]
        assert why in str(loss_sets.refuses(problem))
        plan = placement.solve(problem)
        assert plan.status is Status.OPTIMAL
        assert any("exhaustive" in note for note in plan.notes)
