"""Percentiles with waits: against sampled messages, outcomes one by one, every configuration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import placement
from placement import Configuration, Operation, Problem
from placement.errors import InputError, UnsupportedError
from placement.evaluation.score import operation_latency
from placement.feasibility.feasible_plans import violations
from placement.feasibility.role_choices import role_choices
from placement.model.instance import Instance
from placement.model.waits import Clause, Wait
from placement.support.status import Status
from placement.tail import Distributions, Percentile
from placement.tail.distribution_arithmetic import at_least_of_each
from placement.tail.latency_mixture import mixture
from tests.effort import seeds
from tests.protocols.test_losses import uneven
from tests.protocols.worlds import world
from tests.tail.worlds import drawn, whole

QUESTIONS = {
    "leases": {"protocol": "leases:interference=0.4", "replicas": 4, "voters": 3},
    "lease holders": {"protocol": "leases:holders=2", "replicas": 4, "voters": 3},
    "witnesses": {"witnesses": 1, "replicas": 3, "voters": 3, "protocol": "semi-sync:level=region"},
    "witnesses and votes": {"witnesses": 1, "replicas": 3, "voters": 3},
    "layout": {"vote_layout": (2, 2, 1), "replicas": 3, "voters": 3},
    "layout of four": {"vote_layout": (3, 2, 1, 1), "replicas": 4, "voters": 4},
    "votes": {"votes": {"s0": 2, "s2": 3, "s5": 2}, "replicas": 4, "voters": 3},
    "votes in leases": {
        "votes": {"s1": 2, "s3": 3}, "replicas": 4, "voters": 4, "protocol": "leases", "quorum": 4
    },
    "flexiraft": {"protocol": "flexiraft:level=region", "replicas": 4, "voters": 4},
    "epaxos": {"protocol": "epaxos:multi=2,slow=0.3", "replicas": 4, "voters": 4},
    "fast-paxos": {"protocol": "fast-paxos:multi=2,slow=0.3", "replicas": 4, "voters": 4},
    "hermes": {"protocol": "hermes:multi=2", "replicas": 3, "voters": 3},
    "mencius": {"protocol": "mencius:multi=2", "replicas": 3, "voters": 3},
    "coordinated": {"protocol": "coordinated:r=1,w=2,multi=2", "replicas": 3, "voters": 3},
    "pqr": {"protocol": "pqr:interference=0.5", "replicas": 3, "voters": 3},
    "abd": {"protocol": "abd:multi=2", "replicas": 3, "voters": 3},
    "constants": {"protocol": "tidb:tso=7,follower=1", "replicas": 3, "voters": 3},
    "two clauses": {
        "waits": "leader: quorum of voters + 1 of voters outside region", "replicas": 4, "voters": 4
    },
    "nearby clauses": {
        "waits": "near: 2 of voters + all of voters inside region", "replicas": 4, "voters": 4
    },
}  # fmt: skip


def asked_of(name: str, one: Instance, percent: float, spread: Distributions) -> Problem:
    asked = dict(QUESTIONS[name])
    wait = asked.pop("waits", None)
    if wait is not None:
        one = placement.with_waits(one, {"single_group": [wait, f"0.25 × {wait}"]})
    return Problem(one, **asked, objective=Percentile(percent, spread))


def sampled(
    problem: Problem, plan: Configuration, spread: Distributions, rng: np.random.Generator, n: int
) -> np.ndarray:
    """Latencies in bins, every answer drawn once in each wait; infinite beyond the horizon."""
    demand, operations = problem.demand, problem.operations
    counts = demand.counts[0]
    cells = rng.choice(counts.size, size=n, p=(counts / counts.sum()).ravel())
    region = problem.instance.domains["region"]
    votes = dict.fromkeys(plan.voters, 1)
    needed = problem.rules.quorum
    if problem.vote_layout is not None:
        rtt = demand.site_rtt[0, plan.leader]
        others = sorted((s for s in plan.voters if s != plan.leader), key=lambda s: (rtt[s], s))
        votes = dict(zip((plan.leader, *others), problem.vote_layout, strict=True))
        needed = sum(problem.vote_layout) // 2 + 1

    def draw(pmf: np.ndarray, size: int) -> np.ndarray:
        lost = np.append(pmf, max(0.0, 1 - pmf.sum()))
        values = rng.choice(len(lost), size=size, p=lost / lost.sum()).astype(float)
        return np.where(values == len(pmf), np.inf, values)

    def wait(origin: int | None, client: int, clauses: tuple[Clause, ...], size: int) -> np.ndarray:
        members = sorted({*plan.voters, *plan.replicas})
        table = spread.client_site[client] if origin is None else spread.site_site[origin]
        answers = {site: draw(table[site], size) for site in members}
        latest = np.zeros(size)
        for clause in clauses:
            role = {
                "voters": plan.voters,
                "replicas": plan.replicas,
                "lease holders": plan.lease_holders or plan.replicas,
            }[clause.role]
            part = [
                site
                for site in role
                if not clause.scope
                or (region[site] == region[origin]) == (clause.scope == "inside")
            ]
            share = dict.fromkeys(part, 1)
            if problem.votes is not None and clause.role == "voters":
                names = problem.instance.sites
                share = {site: problem.votes.get(names[site], 1) for site in part}
                need = sum(share.values()) // 2 + 1 if problem.quorum is None else problem.quorum
            elif clause.need == "quorum":
                need, share = needed, {site: votes[site] for site in part}
            elif clause.need == "majority":
                need = len(part if clause.scope == "inside" else role) // 2 + 1
            else:
                need = len(part) if clause.need == "all" else int(clause.need)
            times = np.array([answers[site] for site in part]).reshape(len(part), size)
            order = np.argsort(times, axis=0, kind="stable")
            heard = np.cumsum(np.array([share[s] for s in part], dtype=int)[order], axis=0)
            for column in range(size):
                done = np.nonzero(heard[:, column] >= need)[0] if need else np.array([-1])
                if need and len(done):
                    at = times[order[done[0], column], column]
                    latest[column] = max(latest[column], at)
                elif need:
                    latest[column] = np.inf
        return latest

    held = np.array(sorted(plan.replicas))
    leased = np.array(sorted(plan.lease_holders or plan.replicas))
    total = np.zeros(n)
    for c, o in itertools.product(*map(range, counts.shape)):
        rows = np.nonzero(cells == c * counts.shape[1] + o)[0]
        if not len(rows):
            continue
        operation = operations[o]
        near = int(held[demand.client_rtt[0][c, held].argmin()])
        holder = int(leased[demand.client_rtt[0][c, leased].argmin()])
        parts = [
            (operation.near, lambda k, c=c, near=near: draw(spread.client_site[c, near], k)),
            (operation.relay, lambda k, near=near: draw(spread.site_site[near, plan.leader], k)),
            (operation.direct, lambda k, c=c: draw(spread.client_site[c, plan.leader], k)),
            (
                operation.quorum,
                lambda k, c=c: wait(plan.leader, c, (Clause("quorum"),), k),
            ),
        ]
        for one in operation.waits:
            assert isinstance(one, Wait)
            origin = {"leader": plan.leader, "near": near, "client": None}[one.origin]
            if one.clauses == (Clause(1, "lease holders"),) and one.origin == "client":
                parts.append(
                    (one.times, lambda k, c=c, h=holder: draw(spread.client_site[c, h], k))
                )
            else:
                parts.append((one.times, lambda k, c=c, g=origin, w=one: wait(g, c, w.clauses, k)))
        luck = rng.random(len(rows))  # the same operations take the slow path in all of its parts
        for times, source in parts:
            sure, rest = divmod(times, 1)
            for _ in range(int(sure)):
                total[rows] += source(len(rows))
            if rest:
                if not operation.waits:
                    luck = rng.random(len(rows))
                some = rows[luck < rest]
                total[some] += source(len(some))
        total[rows] += round(operation.constant / spread.width)
    return total


@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("seed", seeds(2, 10))
def test_the_distribution_is_that_of_sampled_messages(name: str, seed: int) -> None:
    one = whole(uneven(seed))
    spread = drawn(one, seed)
    problem = asked_of(name, one, 90, spread)
    rng = np.random.default_rng(seed)
    every = [
        plan
        for replicas in itertools.combinations(range(6), problem.rules.replicas_min)
        for plan in role_choices(problem, replicas)
    ]
    plan = every[int(rng.integers(len(every)))]
    draws = 6_000
    found = np.cumsum(mixture(problem, plan, spread))
    seen = sampled(problem, plan, spread, rng, draws)
    known = spread.bins if seed % 2 else len(found)  # beyond the horizon nothing is known
    part = np.array([(seen <= x).mean() for x in range(min(known, len(found)))])
    # Dvoretzky, Kiefer and Wolfowitz: exceeded with probability 2·exp(−2·n·ε²) = 2e-6
    assert np.abs(part - found[: len(part)]).max() < math.sqrt(math.log(1e6) / (2 * draws))


@pytest.mark.parametrize("seed", seeds(20, 400))
def test_the_joint_tail_is_the_sum_over_all_outcomes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    events, counters = int(rng.integers(1, 7)), int(rng.integers(1, 4))
    counts = rng.integers(0, 3, (events, counters))
    needs = rng.integers(0, 5, counters).tolist()
    p = rng.random((events, 3)) * (rng.random((events, 3)) < 0.9)
    expected = np.zeros(3)
    for outcome in itertools.product((0, 1), repeat=events):
        if (np.array(outcome) @ counts >= needs).all():
            chance = np.where(np.array(outcome)[:, np.newaxis] == 1, p, 1 - p)
            expected += chance.prod(axis=0)
    assert at_least_of_each(needs, counts, p) == pytest.approx(expected, abs=1e-12)


def test_clauses_of_a_wait_share_their_samples() -> None:
    """3 of 5 and 1 of the 3 outside: the product of the two probabilities is too small."""
    rng = np.random.default_rng(0)
    counts = np.array([[1, 0], [1, 0], [1, 1], [1, 1], [1, 1]])
    p = np.array([0.95, 0.9, 0.5, 0.4, 0.45])
    joint = float(at_least_of_each([3, 1], counts, p))
    first, second = (
        float(at_least_of_each([need], counts[:, [j]], p)) for j, need in enumerate((3, 1))
    )
    heard = (rng.random((200_000, 5)) < p) @ counts
    seen = (heard >= [3, 1]).all(axis=1).mean()
    assert joint == pytest.approx(seen, abs=0.005)
    assert first * second < joint - 0.05


@pytest.mark.parametrize("seed", seeds(6, 40))
def test_constant_rtts_give_the_mean_model(seed: int) -> None:
    """Every percentile is one of the latencies that the evaluator of the mean computes."""
    one = whole(uneven(seed))
    still = Distributions.parametric(one, variation=0.0)
    rng = np.random.default_rng(seed)
    for name in ("leases", "epaxos", "two clauses", "nearby clauses", "abd", "pqr", "layout"):
        asked = dict(QUESTIONS[name])
        wait = asked.pop("waits", None)
        given = one if wait is None else placement.with_waits(one, {"single_group": [wait]})
        if "protocol" in asked:
            asked["protocol"] = asked["protocol"].replace("0.3", "0").replace("0.5", "0")
            asked["protocol"] = asked["protocol"].replace("0.4", "0")
        percent = float(rng.choice([10, 50, 90, 99, 100]))
        problem = Problem(given, **asked, objective=Percentile(percent, still))
        replicas = sorted(rng.choice(6, problem.rules.replicas_min, replace=False).tolist())
        plan = next(role_choices(problem, tuple(replicas)))
        latency = operation_latency(
            problem.demand, plan.leader, plan.voters, plan.replicas, problem.rules.quorum,
            plan.lease_holders or None,
        )[0]  # fmt: skip
        counts = problem.demand.counts[0]
        if not np.isfinite(latency[counts > 0]).all():
            assert problem.objective.value(problem, plan) == math.inf
            continue
        order = np.argsort(latency[counts > 0], kind="stable")
        reached = np.cumsum(counts[counts > 0][order]) / counts.sum()
        at = int(np.searchsorted(reached, percent / 100 - 1e-12))
        value = problem.objective.value(problem, plan)
        assert value == pytest.approx(latency[counts > 0][order][at])


@pytest.mark.parametrize("seed", seeds(4, 40))
def test_raft_written_as_a_wait_has_the_same_distribution_to_the_last_bit(seed: int) -> None:
    plain = uneven(seed)
    wait = "leader: quorum of voters + 1 of voters"  # not taken for plain votes
    waits = placement.with_waits(plain, {"single_group": [wait], "multi_group": [f"2 × {wait}"]})
    spread = drawn(plain, seed)
    plan = Configuration.of(3, (3, 0, 5), (0, 2, 3, 5))
    found, answers = [], []
    for one in (plain, waits):
        problem = Problem(one, replicas=4, voters=3, objective=Percentile(95, spread))
        found.append(mixture(problem, plan, spread))
        best = placement.solve(problem, "exhaustive")
        answers.append((best.objective, best.configuration and best.configuration.replicas))
    assert found[0].tolist() == found[1].tolist()
    assert answers[0] == answers[1]
    assert Problem(waits, replicas=4, voters=3).demand.waits


@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("seed", seeds(2, 20))
def test_the_least_percentile_is_that_of_all_configurations(name: str, seed: int) -> None:
    one = whole(uneven(seed))
    spread = drawn(one, seed, bins=40)
    problem = asked_of(name, one, 75 + 5 * (seed % 4), spread)
    goal = problem.objective
    assert isinstance(goal, Percentile)
    values: dict[Configuration, float] = {}
    for replicas in itertools.combinations(range(6), problem.rules.replicas_min):
        for plan in role_choices(problem, replicas):
            if not violations(problem, plan):
                values[plan] = goal.value(problem, plan)
    plan = placement.solve(problem, "exhaustive")
    if not values:
        assert plan.status is Status.INFEASIBLE
        return
    best = min(values.values())
    assert plan.status is Status.OPTIMAL
    assert plan.objective == best
    exact = placement.solve(problem)
    assert exact.objective == best
    assert placement.check_certificate(exact).bound == pytest.approx(best)
    # tier 2 and 1 on the replicas of some plan
    some = max(values, key=values.__getitem__)
    names = [one.sites[site] for site in some.replicas]
    given = problem.replace(replicas=names)
    within = min(value for plan, value in values.items() if plan.replicas == some.replicas)
    special = problem.rules.witnesses or problem.rules.lease_holders
    if special:
        for method in ("tier2", "leader", "local-search"):
            with pytest.raises(UnsupportedError):
                placement.solve(given, method)
    else:
        assert placement.solve(given, "tier2").objective == within
        voters = given.replace(voters=[one.sites[site] for site in some.voters])
        assert placement.solve(voters, "leader").objective == min(
            value
            for plan, value in values.items()
            if plan.replicas == some.replicas and set(plan.voters) == set(some.voters)
        )
        searched = placement.solve(problem, "local-search")
        assert searched.objective >= best
        assert searched.bound == -math.inf
    assert "Leaders by" in str(plan) or problem.demand.leaderless or special


def test_what_no_percentile_takes_is_refused() -> None:
    one = world(3)
    spread = Distributions.parametric(one, variation=0.2)
    with pytest.raises(InputError, match="do not follow a lead") as caught:  # price of replicas
        Problem(one, replicas=3, voters=3, protocol="crdb-global:rho=auto",
                objective=Percentile(99, spread))  # fmt: skip
    assert caught.value.field == "protocol"
    problem = Problem(
        one, replicas=3, voters=3, protocol="epaxos:multi=2", objective=Percentile(99, spread)
    )
    for name in placement.available():
        if name in ("exact", "exhaustive", "local-search"):
            assert placement.solve(problem, name).found
        else:
            with pytest.raises(UnsupportedError):
                placement.solve(problem, name)
    big = placement.load("azure")
    many = Problem(
        big, replicas=5, voters=5, protocol="leases",
        objective=Percentile(99, Distributions.parametric(big, variation=0.2, width=20.0)),
    )  # fmt: skip
    with pytest.raises(UnsupportedError, match="local-search"):
        placement.solve(many)


def test_an_operation_by_hand_with_a_constant_is_shifted() -> None:
    one = whole(world(4, operations=[Operation("put", direct=1, quorum=1)]))
    later = one.replace(operations=[Operation("put", direct=1, quorum=1, constant=12.0)])
    spread = drawn(one, 4)
    plan = Configuration.of(1, (1, 2, 3), (1, 2, 3))
    before, after = (
        mixture(Problem(given, replicas=3, voters=3), plan, spread) for given in (one, later)
    )
    assert after[12 : 12 + len(before)] == pytest.approx(before[: len(after) - 12], abs=1e-12)
    assert not after[:12].any()
