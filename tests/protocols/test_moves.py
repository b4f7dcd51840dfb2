"""Moves from a present configuration for operations with waits, against all configurations."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import numpy as np
import pytest

import placement
from formulations.waits import move_sets
from formulations.waits.set_search import compiled_available
from placement import Configuration, InputError, Moves, Operation, Problem, Status
from placement.errors import CertificateError, UnsupportedError
from placement.evaluation.objective import score_of
from placement.feasibility.feasible_plans import violations
from placement.io.plan_file import load_plan, save_plan
from placement.methods.options import Options
from placement.methods.registry import load_method, refusal
from placement.overtime.moves.plan_moves import plan_moves
from placement.plan import Plan
from placement.proof.sets.set_walk import walk_refusal
from placement.support.status import Termination
from tests.effort import seeds
from tests.protocols.test_loss_sets import uneven, worst_of
from tests.protocols.test_sets import questions
from tests.protocols.worlds import world

pytestmark = pytest.mark.skipif(not compiled_available(), reason="the kernel was not built")

PARTS = ("add", "remove", "promote", "demote", "leader")


def drawn(seed: int) -> Problem:
    """Draw a question with waits, a present configuration and moves; prices tie often."""
    rng = np.random.default_rng([seed, 21])
    plain = questions(seed)
    if seed % 3 == 0:  # asymmetric RTTs, zero demand
        plain = plain.replace(instance=uneven(plain.instance, seed))
    sites, rules = plain.instance.sites, plain.rules
    size = rules.replicas_max if seed % 4 else int(rng.integers(1, 6))
    held = rng.permutation(len(sites))[:size].tolist()
    votes = held[: rules.voters] if seed % 4 else held[: int(rng.integers(1, size + 1))]
    present = Configuration.of(votes[0], sorted(votes), sorted(held))
    scale = 10.0 * [0.3, 1.0, 4.0][seed % 3]
    given: dict[str, Any] = {}
    for part in PARTS:
        if part == "leader" and plain.demand.leaderless:
            continue
        draw = int(rng.integers(4))
        if draw == 1:
            given[part] = float(scale * rng.random())
        elif draw == 2:
            given[part] = float(scale)
        elif draw == 3:
            given[part] = {site: float(scale * rng.integers(0, 3)) for site in sites}
    if seed % 5 in (0, 3):
        given["at_most"] = int(rng.integers(0, 6))
    if seed % 7 == 0:
        given |= {"copy_gb": float(rng.integers(0, 8)), "stored_gb": 2.5}
    return plain.replace(current=present, moves=Moves(**given, horizon=[0.5, 1.0, 3.0][seed % 3]))


def move_by_hand(problem: Problem, one: Configuration) -> tuple[float, int, float]:
    """Return price in ms of one period, changes and GB copied of the move to a configuration."""
    now, moves, sites = problem.present, problem.moves, problem.instance.sites
    assert now is not None
    assert moves is not None

    def of(part: str, site: int) -> float:
        given = getattr(moves, part)
        return float(given[sites[site]] if isinstance(given, dict) else given)

    handed = not problem.demand.leaderless and one.leader != now.leader
    price = of("leader", one.leader) if handed else 0.0
    gained, lost, copied = set(), set(), 0
    for site in range(len(sites)):
        for part, had, has in (
            ("add", site in now.replicas, site in one.replicas),
            ("promote", site in now.voters, site in one.voters),
        ):
            if has and not had:
                price, _ = price + of(part, site), gained.add(site)
                copied += part == "add"
            elif had and not has:
                price += of({"add": "remove", "promote": "demote"}[part], site)
                lost.add(site)
    gb = copied * (moves.stored_gb or 0.0)
    return price / moves.horizon, int(handed) + len(gained) + len(lost), gb


def best_by_hand(problem: Problem) -> float:
    """Return the least value of all configurations that keep rules and limits; or infinity."""
    rules, moves = problem.rules, problem.moves
    assert moves is not None
    free = problem.replace(moves=None, current=None)
    best = math.inf
    sites = range(len(problem.instance.sites))
    for size in range(rules.replicas_min, rules.replicas_max + 1):
        for replicas in itertools.combinations(sites, size):
            for voters in itertools.combinations(replicas, rules.voters):
                heads = [v for v in voters if rules.may_lead[v]]
                for leader in heads[:1] if problem.demand.leaderless else heads:
                    one = Configuration(leader, voters, replicas)
                    price, count, gb = move_by_hand(problem, one)
                    if moves.at_most is not None and count > moves.at_most:
                        continue
                    if moves.copy_gb is not None and gb > moves.copy_gb:
                        continue
                    value = score_of(free, one) + price * problem.demand.operations
                    if value < best * (1 - 1e-12) and not violations(free, one):
                        best = value
    return best


@pytest.mark.parametrize("part", seeds(8, 300))
def test_the_best_move_is_that_of_all_configurations(part: int) -> None:
    for seed in range(4 * part, 4 * part + 4):
        problem = drawn(seed)
        expected = best_by_hand(problem)
        known = refusal(load_method("exact"), problem)
        assert known is None or not problem.demand.has_waits, seed  # of plain rules across levels
        if known is not None:
            continue
        for method in ("exact", "exhaustive"):
            found = placement.solve(problem, method)
            if math.isinf(expected):
                assert found.status is Status.INFEASIBLE, (seed, method)
                continue
            assert found.status is Status.OPTIMAL, (seed, method)
            assert found.objective == pytest.approx(expected, rel=1e-12), (seed, method)
        if math.isinf(expected):
            continue
        found = placement.solve(problem)
        if found.certified:
            placement.check_certificate(found)
        else:
            assert any("no certificate" in note for note in found.notes), seed
        again = placement.solve(problem, start=worst_of(problem.replace(moves=None)))
        assert again.objective == pytest.approx(expected, rel=1e-12), seed


def sets_alone(problem: Problem) -> Plan:
    """Search without any first plan, and without the question that moves do not count in."""
    options = Options(settings={"certificate": True})
    search = move_sets.MoveSets(problem, options, 0.0)
    assert search.go_on() is Termination.FINISHED
    return search.plan(Termination.FINISHED)


@pytest.mark.parametrize("part", seeds(5, 100))
def test_no_first_plan_hides_an_error_of_the_bounds(part: int) -> None:
    for seed in range(4 * part, 4 * part + 4):
        problem = drawn(seed)
        found = sets_alone(problem)
        expected = placement.solve(problem, "exhaustive")
        assert found.status is expected.status, seed
        if found.found:
            assert found.objective == pytest.approx(expected.objective, rel=1e-12), seed
            assert found.configuration is not None
            assert expected.configuration is not None
            same = (found.configuration.leader, found.configuration.replicas)
            assert same == (expected.configuration.leader, expected.configuration.replicas), seed


def world27(protocol: str, **moves: Any) -> Problem:
    """Return a question on 27 sites: sites that run today, and where protocols put theirs."""
    instance = placement.load("world27", mix="ycsb-a")
    today = placement.solve(Problem(instance, replicas=5, protocol="raft")).configuration
    return Problem(instance, replicas=5, protocol=protocol, current=today, moves=Moves(**moves))


PROVEN = (
    ("abd", {"add": 3.0, "remove": 1.0}),
    ("abd", {"at_most": 2}),
    ("pqr", {"leader": 2.0, "add": 3.0}),
    ("pqr", {"add": 1.0, "at_most": 2}),
)


@pytest.mark.parametrize(("protocol", "moves"), PROVEN)
def test_a_certificate_is_proved_again_and_mutations_are_refused(
    protocol: str, moves: dict[str, Any]
) -> None:
    plan = placement.solve(world27(protocol, **moves))
    document = plan.certificate
    assert plan.status is Status.OPTIMAL
    assert document is not None
    checked = placement.check_certificate(plan)
    assert checked.bound == pytest.approx(plan.objective, rel=1e-9)
    if "proofs" not in document:  # the plan without moves is the answer
        return
    more = plan.bound * 1.001  # a larger claim
    with pytest.raises(CertificateError):
        placement.check_certificate(plan.replace(certificate={**document, "bound": more}))
    first = json.loads(json.dumps(document["proofs"]))
    at = next(i for i, proof in enumerate(first) if "o" in proof["steps"])
    closed = json.loads(json.dumps(first))
    closed[at]["steps"] = "i"
    for change in (
        {"proofs": first[1:]},
        {"proofs": closed},
        {"order": document["order"][1:]},
        {"proofs": [{**one, "steps": one["steps"] + "o"} for one in first]},
    ):
        with pytest.raises(CertificateError):
            placement.check_certificate(plan.replace(certificate={**document, **change}))


def test_a_certificate_of_dear_moves_does_not_prove_cheap_ones() -> None:
    dear = placement.solve(world27("abd", add=30.0, remove=1.0))
    cheap = placement.solve(world27("abd", add=0.01, remove=0.01))
    document = dear.certificate
    assert document is not None
    assert cheap.configuration is not None
    assert cheap.objective < dear.objective
    other = {
        **document, "bound": cheap.bound, "score": cheap.objective,
        "voters": list(cheap.configuration.voters), "replicas": list(cheap.configuration.replicas),
        "leader": cheap.configuration.leader,
    }  # fmt: skip
    claimed = {**other, "bound": dear.bound, "score": dear.objective}
    with pytest.raises(CertificateError):
        placement.check_certificate(cheap.replace(certificate=claimed))


def test_huge_prices_leave_the_bounds_below_the_value() -> None:
    """Sums of prices that cancel may round: nothing better is lost, whatever the prices."""
    for seed in range(12):
        problem = drawn(seed)
        assert problem.moves is not None
        moves = Moves(add=1e8, remove=1e9, promote=3e8, horizon=problem.moves.horizon)
        asked = problem.replace(moves=moves)
        found, expected = placement.solve(asked), placement.solve(asked, "exhaustive")
        assert found.status is expected.status
        if found.found:
            assert found.objective == pytest.approx(expected.objective, rel=1e-12)


def test_the_steps_of_a_plan_end_at_the_plan(tmp_path) -> None:  # type: ignore[no-untyped-def]
    for seed in range(24):
        problem = drawn(seed)
        if refusal(load_method("exact"), problem) is not None:
            continue
        plan = placement.solve(problem)
        if not plan.found:
            continue
        moves, now = plan_moves(plan), problem.present
        assert moves is not None
        assert now is not None
        assert plan.configuration is not None
        price, count, _ = move_by_hand(problem, plan.configuration)
        assert moves.changes.size == count
        assert moves.price / problem.moves.horizon == pytest.approx(price)  # type: ignore[union-attr]
        if not moves.steps:
            continue
        step, mean = moves.steps[-1]
        assert set(step.after.voters) == set(plan.configuration.voters)
        assert step.after.replicas == plan.configuration.replicas
        assert mean == pytest.approx(plan.mean_latency)
        assert (step.after.leader is None) is problem.demand.leaderless
    save_plan(plan, tmp_path / "plan.json")
    assert load_plan(tmp_path / "plan.json").objective == plan.objective


@pytest.mark.parametrize(
    ("protocol", "share"),
    [("tidb", "follower"), ("leases", "interference"), ("atlas:f=1,multi=2", "slow")],
)
def test_the_way_to_a_plan_ends_at_the_mean_of_the_plan_with_shares(
    protocol: str, share: str
) -> None:
    one = world(3, sites=6)
    shared = one.replace(shares={share: {"c0": 0.25, "c2": 1.0}})
    asked = Problem(
        shared, replicas=4, protocol=protocol, current=Configuration.of(0, (0,), (0, 1))
    )
    assert asked.client_paths is not None
    way = plan_moves(placement.solve(asked))
    assert way is not None
    assert way.steps[-1][1] == pytest.approx(way.after)
    # one voter is too few for atlas with f = 1
    assert math.isinf(way.steps[0][1]) == protocol.startswith("atlas")


@pytest.mark.parametrize("seed", range(6))
def test_the_way_to_a_plan_has_the_leads_of_its_replicas(seed: int) -> None:
    today = Configuration.of(0, (0, 1, 2), (0, 1, 2))
    protocol = "crdb-global:rho=auto"
    asked = Problem(world(seed, sites=6), replicas=4, voters=3, protocol=protocol, current=today)
    way = plan_moves(placement.solve(asked))
    assert way is not None
    assert way.steps[-1][1] == pytest.approx(way.after)


def test_a_present_configuration_without_a_leader() -> None:
    one = world(1, sites=6)
    today = {"leader": None, "voters": ["s1", "s3", "s4"], "replicas": ["s1", "s3", "s4"]}
    asked = {"replicas": 3, "protocol": "epaxos:multi=2", "moves": Moves(add=4.0)}
    free = Problem(one, **asked, current=today)  # type: ignore[arg-type]
    named = Problem(one, **asked, current={**today, "leader": "s3"})  # type: ignore[arg-type]
    assert free.current == named.current
    assert placement.solve(free).objective == placement.solve(named).objective
    with pytest.raises(InputError, match="no leader, and operations need one"):
        Problem(one, replicas=3, voters=3, current=today)


def test_what_stays_refused() -> None:
    one = world(1, sites=6)
    today = Configuration.of(0, (0, 1, 2), (0, 1, 2))
    with pytest.raises(InputError, match="none is handed over"):
        Problem(one, replicas=3, protocol="abd:multi=2", current=today, moves=Moves(leader=1.0))
    with pytest.raises(InputError, match="holds leases"):
        Problem(one, replicas=3, protocol="leases:holders=2", current=today, moves=Moves(add=1.0))
    asked = Problem(one, replicas=3, protocol="abd:multi=2", current=today, moves=Moves(add=1.0))
    for method in ("sets", "local-search", "milp", "cp-sat"):
        with pytest.raises(UnsupportedError):
            placement.solve(asked, method)
    waits = placement.with_waits(
        one, {"single_group": [Operation("w", waits=["leader: all of replicas"]).waits[0]]}
    )
    led = Problem(waits, replicas=3, voters=2, current=today, moves=Moves(add=1.0))
    assert walk_refusal(led) is not None
    plan = placement.solve(led)
    assert plan.certified or any("no certificate" in note for note in plan.notes)


def test_without_the_kernel_enumeration_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = next(p for p in map(drawn, range(50)) if p.demand.has_waits)
    best = placement.solve(problem).objective
    monkeypatch.setattr("formulations.waits.exact.sets_available", lambda: False)
    assert placement.solve(problem).objective == best
