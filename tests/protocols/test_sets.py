"""Waits in the enumeration of sets, in programs, and under changes, against every configuration."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import placement
from formulations.waits import _kernel
from formulations.waits.sets import _Search, compiled_available, why_not
from placement import Diversity, LimitError, Operation, Problem, UnsupportedError
from placement.analysis.sensitivity import (
    StableRange,
    demand_range,
    next_best_plans,
    rtt_range,
    safe_rtt_range,
)
from placement.evaluation.objective import score_of
from placement.evaluation.score import score_many
from placement.evaluation.waits.wait_latency import wait_latency
from placement.evaluation.waits.wait_rows import leader_waits, no_rows
from placement.feasibility.feasible_plans import violations
from placement.io import save_plan
from placement.methods.options import Options
from placement.model.configuration import Configuration
from placement.plan import Plan
from placement.support.status import Status, Termination
from tests.cli.command import Run
from tests.effort import seeds
from tests.protocols.test_protocols import run
from tests.protocols.worlds import world

needs_kernel = pytest.mark.skipif(not compiled_available(), reason="the kernel was not built")

LED = (
    "raft", "leases:interference=0.2", "flexiraft:level=region", "semi-sync:level=region",
    "mongodb:linearizable=0.4", "crdb-global", "tidb:follower=0.5",
)  # fmt: skip
EVERYONE = (
    "epaxos:slow=0.1,multi=2", "atlas:slow=0.2,multi=2", "mencius:multi=2", "hermes:multi=2",
    "abd:multi=2", "pqr:interference=0.1", "fast-paxos:slow=0.3,multi=2",
    "coordinated:r=2,w=2,multi=2",
)  # fmt: skip
HAND = (
    "leader: majority of voters + 1 of voters outside region",
    "leader: all of replicas inside region",
    "leader: 2 of replicas outside region + majority of voters inside region",
    "near: majority of voters inside region + 1 of voters outside region",
    "near: all of voters outside region",
    "client: 2 of replicas + all of voters",
)


def questions(seed: int) -> Problem:
    """Return a random question: a protocol or waits by hand, ties, rules, pins."""
    rng = np.random.default_rng([seed, 7])
    clients = (5, 19)[seed % 2]  # fewer and more than the kernel adds up at a time
    one = world(seed, sites=8, clients=clients, ties=bool(rng.integers(2)))
    size = int(rng.integers(2, 6))
    asked: dict[str, object] = {"replicas": size, "voters": size}
    kind = rng.integers(3)
    if kind == 0:
        asked["voters"] = int(rng.integers(2, size + 1))
        asked["protocol"] = str(rng.choice(LED))
    elif kind == 1:
        asked["replicas"] = asked["voters"] = size = max(3, size)
        asked["protocol"] = str(rng.choice(EVERYONE))
    else:
        wait = str(rng.choice(HAND))
        one = placement.with_waits(one, {"single_group": [wait]})
        if wait.startswith("leader"):
            asked["voters"] = int(rng.integers(2, size + 1))
    rules = rng.integers(6)
    if rules == 0:
        asked["diversity"] = Diversity("region", cap=2)
    elif rules == 1:
        asked["diversity"] = Diversity("region", "replicas", min_domains=2)
    elif rules == 2:
        asked["pinned"] = ["s5"]
        asked["forbidden"] = ["s1"]
    elif rules == 3:
        asked["pinned_voters"] = ["s2"]
    elif rules == 4:
        asked["non_voters"] = ["s0", "s4"]
    return Problem(one, **asked)  # type: ignore[arg-type]


@needs_kernel
@pytest.mark.parametrize("seed", seeds(12, 120))
def test_no_set_is_below_the_bound_of_its_beginning(seed: int) -> None:
    problem = questions(seed)
    if why_not(problem) is not None:
        return
    search, size = _Search(problem, Options()), problem.rules.voters
    if search.kernel is None:
        return
    demand = problem.demand
    direct = search.by_site @ demand.direct[0][demand.counts[0].any(axis=1)] + demand.constant
    leaders = np.nonzero(problem.rules.may_lead[search.order])[0].tolist()
    for leader in [-1] if demand.leaderless else leaders:
        constant = demand.constant if leader < 0 else float(direct[leader])
        root = tuple(dict.fromkeys((*search.forced, *((leader,) if leader >= 0 else ()))))
        if len(root) > size:
            continue
        values = {}
        free = [s for s in range(len(search.order)) if s not in root]
        for rest in itertools.combinations(free, size - len(root)):
            replicas = search.order[list(root + rest)].tolist()
            leads = min(replicas) if leader < 0 else int(search.order[leader])
            one = Configuration.of(leads, replicas, replicas)
            if not violations(problem, one):
                values[rest] = score_of(problem, one)
        for rest in values:
            for length in range(len(rest) + 1):
                begin = rest[:length]
                first = begin[-1] + 1 if begin else 0
                prefix = np.array((*root, *begin), dtype=np.int32)
                bound = _kernel.bound(search.kernel, leader, constant, prefix, first)
                below = min(v for one, v in values.items() if one[:length] == begin)
                assert bound <= below * (1 + 1e-12), (seed, leader, begin)


def writes_only(
    one: placement.Instance, near: str | None, client: str | None
) -> placement.Instance:
    """Return the instance with every operation as the write of a protocol without a leader."""
    waits = [wait for wait in (near, client) if wait]
    return one.replace(
        operations=tuple(
            Operation(o.name, near=1 if near else 0, waits=waits) for o in one.operations
        )
    )


def test_sets_that_tie_under_a_leader_differ_without_one() -> None:
    """Among the 900 sets that tie for the leader's optimum EPaxos takes 157.7 to 232.5 ms."""
    world27 = placement.load("world27")
    led = world27.replace(
        operations=tuple(Operation(o.name, direct=1, quorum=1) for o in world27.operations)
    )
    cap = Diversity("continent", cap=2)
    problem = Problem(led, replicas=5, voters=5, diversity=cap)
    best = placement.solve(problem)
    assert best.mean_latency == pytest.approx(192.8, abs=0.05)
    assert best.configuration is not None
    leader = best.configuration.leader
    sets = np.array(list(itertools.combinations(range(27), 5)))
    sets = sets[problem.rules.obeyed("voters", sets) & (sets == leader).any(axis=1)]
    scores = score_many(problem.demand, np.full(len(sets), leader), sets, sets, 3)
    ties = sets[scores <= best.score * (1 + 1e-9)]
    assert len(ties) > 100
    epaxos = Problem(writes_only(world27, "near: 3 of voters", None), replicas=5, voters=5)
    values = score_many(epaxos.demand, ties[:, 0], ties, ties, 3) / epaxos.demand.operations
    assert values.max() > 1.4 * values.min()


@needs_kernel
def test_a_limit_leaves_a_valid_bound() -> None:
    problem = Problem(placement.load("world27", mix="ycsb-a"), replicas=5, voters=5, protocol="abd")
    best = placement.solve(problem, "sets")
    for seconds in (0.0, 0.005, 0.02):
        plan = placement.solve(problem, "sets", time_limit=seconds)
        assert plan.bound <= best.score * (1 + 1e-12)
        assert plan.found
        assert plan.score >= best.score
        if plan.termination is Termination.FINISHED:
            assert plan.status is Status.OPTIMAL
    plan = placement.solve(problem, "sets", gap_limit=0.2)
    assert plan.gap <= 0.2


@needs_kernel
def test_an_interrupt_keeps_what_was_found() -> None:
    problem = Problem(placement.load("world27", mix="ycsb-a"), replicas=5, voters=5, protocol="abd")

    def stop(_: placement.Progress) -> None:
        raise KeyboardInterrupt

    plan = placement.solve(problem, "sets", progress=stop)
    assert plan.termination is Termination.INTERRUPTED
    assert plan.found
    assert plan.bound <= placement.solve(problem, "sets").score


@needs_kernel
@pytest.mark.parametrize("opened", range(4))
def test_an_interrupt_before_every_part_is_bounded_proves_nothing_of_the_others(
    opened: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = Problem(world(opened), replicas=3, voters=3, protocol="abd:multi=2")
    best = placement.solve(problem, "sets").objective
    calls, honest = itertools.count(), _Search._add

    def interrupted(self: _Search, *part: object) -> None:
        if next(calls) == opened:
            raise KeyboardInterrupt
        honest(self, *part)  # type: ignore[arg-type]

    monkeypatch.setattr(_Search, "_add", interrupted)
    plan = placement.solve(problem, "sets")
    assert plan.termination is Termination.INTERRUPTED
    assert plan.status is not Status.OPTIMAL
    assert plan.bound <= best


def test_what_the_search_does_not_take_is_refused_with_the_way_out() -> None:
    prices = placement.Prices(np.ones(7))
    one = world(1).replace(prices=prices)
    for asked in (
        {"replicas": 3, "voters": 3, "budget": 9.0},
        {"replicas": 3, "voters": 3, "cost_weight": 1.0},
    ):
        with pytest.raises(placement.UnsupportedError, match="does not support money"):
            placement.solve(Problem(one, **asked), "sets")  # type: ignore[arg-type]


@pytest.mark.parametrize("protocol", ["caesar:multi=2", "hermes:multi=2", "pqr", "leases"])
def test_a_pinned_site_without_a_vote_leaves_no_plan_where_every_replica_votes(
    protocol: str,
) -> None:
    problem = Problem(world(1), replicas=3, protocol=protocol, pinned=["s1"], non_voters=["s1"])
    for method in ("exhaustive", "sets", "exact"):
        plan = placement.solve(problem, method)
        assert plan.status is Status.INFEASIBLE
        # the reasons name the rules that conflict; the number of replicas is no choice here
        assert "without a vote s1" in plan.reasons[0]
        assert "pinned s1" in plan.reasons[0]
        assert ("at most 3 replicas" in plan.reasons[0]) == (protocol == "leases")


def test_reasons_without_a_plan_keep_the_replicas_that_waits_ask_for() -> None:
    """A question with fewer replicas than a wait asks for is no question."""
    wait = "leader: 3 of replicas + quorum of voters"
    one = placement.with_waits(world(1), {"single_group": [wait]})
    rules = Diversity("region", "voters", cap=1), Diversity("region", "replicas", cap=1)
    asked = {"replicas": 4, "voters": 3, "pinned_voters": ["s0"], "forbidden": ["s1", "s4"]}
    plan = placement.solve(Problem(one, **asked, diversity=rules))  # type: ignore[arg-type]
    assert plan.status is Status.INFEASIBLE
    assert plan.reasons


def test_without_the_kernel_enumeration_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("formulations.waits.sets.compiled_available", lambda: False)
    problem = Problem(world(3), replicas=3, voters=3, protocol="epaxos:multi=2")
    plan = placement.solve(problem, "sets")
    assert plan.status is Status.OPTIMAL
    assert plan.method == "sets"


def test_the_referee_knows_its_limit() -> None:
    problem = Problem(world(1), replicas=3, voters=3, protocol="leases")
    with pytest.raises(LimitError, match="'sets'"):
        placement.solve(problem, "exhaustive", settings={"limit": 2})


REFEREES = ("milp", "cp-sat")


def led(seed: int) -> Problem | None:
    """Return a random question with waits or constants, none of a nearest replica or a client."""
    problem = questions(seed)
    taken = problem.demand.has_waits and no_rows(problem) is None
    return problem if taken else None


@given(seed=st.integers(0, 10**6))
def test_the_rows_of_a_radius_hold_when_the_wait_ends_within_it(seed: int) -> None:
    problem = led(seed)
    if problem is None:
        return
    demand, rules = problem.demand, problem.rules
    rng = np.random.default_rng(seed)
    holders = np.nonzero(rules.may_hold)[0]
    voters = rng.choice(np.nonzero(rules.may_vote)[0], rules.voters, replace=False)
    others = np.setdiff1d(holders, voters)
    more = rng.choice(others, rules.replicas_max - rules.voters, replace=False)
    replicas = np.union1d(voters, more)
    leader = int(voters[0])
    for (j, k), wait in leader_waits(demand, rules, leader).items():
        at = np.array([leader])
        long = wait_latency(
            demand.waits[j], demand.client_rtt[k], demand.site_rtt[k], at,
            np.sort(voters)[np.newaxis], replicas[np.newaxis], at[np.newaxis], rules.quorum,
        )[0, 0]  # fmt: skip
        met = [
            all(
                sum(a for r, a in row.voters.items() if r in voters)
                + sum(b for r, b in row.replicas.items() if r in replicas)
                >= row.least
                for row in rows
            )
            for rows in wait.rows
        ]
        assert met == sorted(met)  # once met, met at every longer radius
        first = next((t for t, good in zip(wait.radii, met, strict=True) if good), np.inf)
        assert first == long


@pytest.mark.parametrize("method", REFEREES)
def test_a_wait_that_nobody_can_answer_has_no_plan(method: str) -> None:
    alone = placement.with_waits(
        world(1, 6), {"single_group": ["leader: 3 of voters outside region"]}
    )
    problem = Problem(alone, replicas=3, voters=3)
    assert placement.solve(problem, method="exhaustive").status is Status.INFEASIBLE
    assert placement.solve(problem, method=method).status is Status.INFEASIBLE


@pytest.mark.parametrize("method", REFEREES)
@pytest.mark.parametrize(
    ("protocol", "who"), [("epaxos", "the nearest replica waits"), ("abd", "the client waits")]
)
def test_waits_of_others_are_refused_with_a_way_out(method: str, protocol: str, who: str) -> None:
    problem = Problem(world(2, 6), replicas=3, voters=3, protocol=f"{protocol}:multi=2")
    with pytest.raises(UnsupportedError, match=f"{who}.*'exact'"):
        placement.solve(problem, method=method)


PROTOCOLS = (
    "leases:interference=0.2", "semi-sync:level=region", "crdb-global", "spanner:epsilon=2",
    "epaxos:slow=0.2,multi=2", "hermes:multi=2", "abd:multi=1", "pqr",
    "fast-paxos:slow=0.3,multi=1",     "flexiraft:level=region",
)  # fmt: skip
LEADERLESS = ("epaxos", "hermes", "abd")


def question(seed: int) -> Problem:
    """Return a random question of few configurations, under some protocol."""
    rng = np.random.default_rng([seed, 5])
    protocol = str(rng.choice(PROTOCOLS))
    one = world(seed, sites=6, clients=3, ties=bool(rng.integers(2)))
    led = not protocol.startswith((*LEADERLESS, "pqr", "fast-paxos"))
    voters = int(rng.integers(2, 4)) if led else 3
    return Problem(one, replicas=3, voters=voters, protocol=protocol)


def every(problem: Problem) -> dict[tuple[int | None, tuple[int, ...]], float]:
    """Return the least score of every leader and replica set; None: no operation needs a leader."""
    found: dict[tuple[int | None, tuple[int, ...]], float] = {}
    for replicas in itertools.combinations(range(len(problem.instance.sites)), 3):
        for voters in itertools.combinations(replicas, problem.rules.voters):
            for leader in voters:
                one = Configuration.of(leader, voters, replicas)
                if violations(problem, one):
                    continue
                key = (None if problem.demand.leaderless else leader, replicas)
                found[key] = min(found.get(key, np.inf), score_of(problem, one))
    return {key: value for key, value in found.items() if value < np.inf}


@pytest.mark.parametrize("part", seeds(4, 100))
def test_runners_up_are_the_next_of_all_configurations(part: int) -> None:
    for seed in range(3 * part, 3 * part + 3):
        problem = question(seed)
        plan = placement.solve(problem)
        values = sorted(every(problem).values())
        if not plan.found:
            assert not values
            continue
        following = next_best_plans(plan, 6)
        found = [plan.score, *(one.score for one in following)]
        assert found == pytest.approx(values[: len(found)], rel=1e-9), seed
        assert len(found) == min(7, len(values))
        told = {(one.leader, one.replicas) for one in (plan, *following)}
        assert len(told) == len(found)


def optimal_at(plan: Plan, matrix: str, row: int, column: int, value: float) -> tuple[float, float]:
    """Return the score of the plan and the least of all, with another RTT."""
    given = plan.problem.instance
    table = (given.client_rtt if matrix == "client_rtt" else given.site_rtt).copy()
    table[row, column] = value
    moved = plan.problem.replace(instance=given.replace(**{matrix: table}))
    assert plan.configuration is not None
    return score_of(moved, plan.configuration), min(every(moved).values())


def check_range(
    plan: Plan, found: StableRange, safe: StableRange, where: tuple[str, int, int], end: float
) -> None:
    for value in (found.low, found.high, (found.low + found.high) / 2):
        own, best = optimal_at(plan, *where, value)
        assert own <= best * (1 + 1e-8)
    step = 1e-5 * max(1.0, found.high)
    if found.low > 0:
        own, best = optimal_at(plan, *where, max(0.0, found.low - step))
        assert own > best * (1 + 1e-12)
    if not found.high_is_limit:
        own, best = optimal_at(plan, *where, found.high + step)
        assert own > best * (1 + 1e-12)
    assert safe.low >= found.low - 1e-6 * end
    assert min(safe.high, end) <= found.high + 1e-6 * end


@pytest.mark.parametrize("part", seeds(2, 100))
def test_ranges_of_rtts_end_where_another_plan_is_better(part: int) -> None:
    for seed in range(2 * part, 2 * part + 2):
        problem = question(seed)
        plan = placement.solve(problem)
        if not plan.found:
            continue
        following = next_best_plans(plan, 1)
        second = following[0] if following else None
        rng = np.random.default_rng(seed)
        given = problem.instance
        end = 2 * float(max(given.client_rtt.max(), given.site_rtt.max()))
        client, site = int(rng.integers(3)), int(rng.integers(6))
        source = str(rng.choice(plan.voters))
        other = str(rng.choice([name for name in given.sites if name != source]))
        for pair, where in (
            ((f"c{client}", f"s{site}"), ("client_rtt", client, site)),
            ((source, other), ("site_rtt", given.sites.index(source), given.sites.index(other))),
        ):
            exact = rtt_range(plan, *pair)
            check_range(plan, exact, safe_rtt_range(plan, second, *pair), where, end)


@pytest.mark.parametrize("part", seeds(3, 60))
def test_ranges_of_demand_end_where_another_plan_is_better(part: int) -> None:
    for seed in range(2 * part, 2 * part + 2):
        problem = question(seed)
        plan = placement.solve(problem)
        if not plan.found:
            continue
        found = demand_range(plan, "c1", most=50.0)

        def at(factor: float, plan: Plan = plan) -> tuple[float, float]:
            counts = plan.problem.instance.counts.copy()
            counts[:, 1] *= factor
            moved = plan.problem.replace(instance=plan.problem.instance.replace(counts=counts))
            assert plan.configuration is not None
            return score_of(moved, plan.configuration), min(every(moved).values())

        for factor in (found.low, found.high, (found.low + found.high) / 2):
            own, best = at(factor)
            assert own <= best * (1 + 1e-8)
        if found.low > 0:
            own, best = at(found.low * (1 - 1e-5))
            assert own > best * (1 + 1e-12)
        if not found.high_is_limit:
            own, best = at(found.high * (1 + 1e-5))
            assert own > best * (1 + 1e-12)


@pytest.mark.parametrize(
    "protocol", ["leases", pytest.param("epaxos:multi=2", marks=pytest.mark.slow)]
)
def test_the_command(tmp_path: Path, protocol: str, command: Run) -> None:
    plan = placement.solve(Problem(world(3, ties=False), replicas=3, voters=3, protocol=protocol))
    save_plan(plan, tmp_path / "plan.json")
    for more in ([], ["--exact"]):
        document = json.loads(run(command, "explain", str(tmp_path / "plan.json"), "--json", *more))
        assert len(document["runner_ups"]) > 1
        assert document["rtt"]
        assert all(row["high"] is None or row["high"] >= row["value"] for row in document["rtt"])
        assert all(row["exact"] == bool(more) for row in document["rtt"])
        assert document["demand"]
    said = run(command, "explain", str(tmp_path / "plan.json"), "--doubt", "10")
    assert "None" not in said
