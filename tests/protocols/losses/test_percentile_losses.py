"""Percentiles after losses with waits: against means of fixed RTTs, silent sites, all plans."""

from __future__ import annotations

import math

import numpy as np
import pytest

import placement
from placement import Contingency, InputError, Problem, Status, UnsupportedError
from placement.contingency.percentile_losses import percentile_rows, percentiles_after
from placement.evaluation.losses import losses, score_after, unnoticed
from placement.feasibility.feasible_plans import violations
from placement.feasibility.role_choices import role_choices
from placement.io.plan_file import load_plan, save_plan
from placement.model.instance import Instance
from placement.tail import Distributions, Percentile
from tests.effort import seeds
from tests.protocols.test_loss_sets import uneven
from tests.protocols.test_percentiles import QUESTIONS
from tests.protocols.test_percentiles import asked_of as normal_question
from tests.protocols.worlds import world
from tests.tail.worlds import drawn

ASKED = tuple(name for name in QUESTIONS if "layout" not in name)
WIDTH = 5.0
"""Width of a bin: RTTs of the worlds with ties are multiples of it."""


def fixed(one: Instance) -> Distributions:
    """Return distributions in which every RTT is always its mean, a multiple of the bin."""
    bins = 400  # far beyond every sum of waits
    eye = np.eye(bins)
    client = eye[np.rint(one.client_rtt / WIDTH).astype(int)]
    site = eye[np.rint(one.site_rtt / WIDTH).astype(int)]
    return Distributions(client, site, WIDTH, one.sites, one.clients)


def of_one(seed: int, name: str) -> Problem | None:
    """Return a question with one client and one operation, whose latency has one value."""
    whole = world(seed, sites=6, clients=5)
    if seed % 3 == 0:
        whole = uneven(whole, seed)
    counts = np.zeros_like(whole.counts)
    client, operation = seed % counts.shape[1], seed % counts.shape[2]
    counts[..., client, operation] = 3.0
    one = whole.replace(counts=counts)
    problem = normal_question(name, one, 50.0, fixed(one))
    row = [*problem.demand.coefficients[operation]]
    if problem.demand.waits:
        row += problem.demand.times[operation].tolist()
    if any(value != int(value) for value in row):  # shares have several latencies
        return None
    return problem


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("part", seeds(1, 20))
def test_fixed_rtts_give_the_mean(name: str, part: int) -> None:
    """With fixed RTTs, one client and one operation every percentile is the mean latency."""
    compared = 0
    for seed in range(4 * part, 4 * part + 4):
        problem = of_one(seed, name)
        if problem is None:
            continue
        percentile = problem.objective
        assert isinstance(percentile, Percentile)
        rng = np.random.default_rng(seed)
        chosen = rng.choice(6, problem.rules.replicas_max, replace=False).tolist()
        able = list(role_choices(problem, tuple(sorted(chosen))))
        for one in [able[i] for i in rng.permutation(len(able))[:3]]:
            for together in (1, 2):
                for loss in losses(problem, "site", together=together):
                    if unnoticed(problem, one, loss.sites):
                        continue
                    means = score_after(problem, one, loss.sites)
                    found = percentiles_after(problem, percentile, one, loss.sites)
                    assert found.keys() == means.keys(), (seed, loss)
                    for leader, score in means.items():
                        mean = score / problem.demand.operations
                        assert found[leader] == pytest.approx(mean, abs=WIDTH / 2), (seed, loss)
                        compared += 1
    assert compared or part > 3 or "constants" in name


def silent(spread: Distributions, lost: frozenset[int]) -> Distributions:
    """Return the distributions in which lost sites answer nobody."""
    client, site = spread.client_site.copy(), spread.site_site.copy()
    for gone in lost:
        client[:, gone] = 0.0
        site[:, gone] = 0.0
        site[gone, gone, 0] = 1.0
    return Distributions(client, site, spread.width, spread.sites, spread.clients)


@pytest.mark.parametrize(
    "name", ["witnesses", "flexiraft", "coordinated", "pqr", "abd", "constants", "two clauses"]
)
@pytest.mark.parametrize("seed", seeds(3, 30))
def test_lost_members_are_those_that_never_answer(name: str, seed: int) -> None:
    """Without "all" and fast quorums: far away, and silent, where nothing is said to be lost."""
    one = world(seed, sites=6, clients=5)
    spread = drawn(one, seed)
    problem = normal_question(name, one, 80.0, spread)
    percentile = problem.objective
    assert isinstance(percentile, Percentile)
    rng = np.random.default_rng(seed)
    chosen = rng.choice(6, problem.rules.replicas_max, replace=False).tolist()
    for plan in list(role_choices(problem, tuple(sorted(chosen))))[:4]:
        for loss in losses(problem, "site"):
            if plan.leader in loss.sites or unnoticed(problem, plan, loss.sites):
                continue
            found = percentiles_after(problem, percentile, plan, loss.sites)
            if not found:
                continue  # no quorum is left
            far = {"client_rtt": one.client_rtt.copy(), "site_rtt": one.site_rtt.copy()}
            for gone in loss.sites:
                far["client_rtt"][:, gone] = 1e6
                far["site_rtt"][:, gone] = 1e6
                far["site_rtt"][gone, gone] = 0.0
            away = one.replace(**far)
            other = Percentile(80.0, silent(spread, loss.sites))
            asked = normal_question(name, away, 80.0, other.distributions)
            assert found[plan.leader] == asked.objective.value(asked, plan), (seed, loss)


@pytest.mark.parametrize("seed", seeds(2, 60))
def test_methods_find_the_best_of_all_plans(seed: int) -> None:
    names = ("epaxos", "abd", "leases", "hermes", "witnesses", "lease holders", "pqr")
    name = names[seed % len(names)]
    one = world(seed, sites=5, clients=5)
    normal = normal_question(name, one, 90.0, drawn(one, 2 * seed, bins=20))
    percentile = normal.objective
    assert isinstance(percentile, Percentile)
    goals = (
        Contingency(percentile=percentile),
        Contingency(goal="bounded", limit=60.0, percentile=percentile),
        Contingency("region", leader_may_move=True, percentile=percentile),
    )
    try:
        problem = normal.replace(objective=goals[seed % 3])
    except InputError:
        return
    best = math.inf
    for row in range(1 << 5):
        replicas = tuple(site for site in range(5) if row >> site & 1)
        if len(replicas) != problem.rules.replicas_max:
            continue
        for plan in role_choices(problem, replicas):
            if not violations(problem, plan):
                best = min(best, problem.objective.value(problem, plan))
    for method in ("exact", "exhaustive"):
        found = placement.solve(problem, method)
        if math.isinf(best):
            assert found.status is Status.INFEASIBLE, method
            continue
        assert found.status is Status.OPTIMAL, method
        assert found.objective == best, method
    if math.isinf(best) or problem.rules.witnesses or problem.rules.lease_holders:
        return
    held = problem.replace(replicas=found.replicas, voters=found.voters)
    assert placement.solve(held, "leader").objective == best
    placement.check_certificate(placement.solve(problem))


def test_a_plan_file_keeps_the_losses(tmp_path) -> None:  # type: ignore[no-untyped-def]
    one = world(4, sites=5, clients=5)
    normal = normal_question("epaxos", one, 90.0, drawn(one, 4))
    assert isinstance(normal.objective, Percentile)
    problem = normal.replace(objective=Contingency(percentile=normal.objective))
    plan = placement.solve(problem)
    assert plan.configuration is not None
    rows = percentile_rows(problem, problem.objective, plan.configuration)  # type: ignore[arg-type]
    assert all(row.leader is None and row.survives for row in rows)
    save_plan(plan, tmp_path / "plan.json")
    again = load_plan(tmp_path / "plan.json")
    assert again.objective == plan.objective
    placement.check_certificate(again)


def test_what_stays_refused() -> None:
    one = world(1, sites=5, clients=5)
    percentile = Percentile(90.0, drawn(one, 0))
    goal = Contingency(percentile=percentile)
    with pytest.raises(InputError, match="one vote for each voter"):
        Problem(one, replicas=3, voters=3, vote_layout=(2, 2, 1), objective=goal)
    large = world(2, sites=24, clients=3)
    asked = Problem(
        large, replicas=5, protocol="epaxos:multi=2",
        objective=Contingency(percentile=Percentile(90.0, drawn(large, 0, bins=4))),
    )  # fmt: skip
    with pytest.raises(UnsupportedError, match=r"42,504 configurations.*at most 20,000"):
        placement.solve(asked)
    for method in ("milp", "cp-sat", "local-search", "sets"):
        with pytest.raises(UnsupportedError):
            placement.solve(asked, method)
