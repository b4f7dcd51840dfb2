"""Runners-up and ranges of RTTs and demand under protocols, against every configuration."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

import placement
from placement import Problem
from placement.analysis.sensitivity import (
    StableRange,
    demand_range,
    next_best_plans,
    rtt_range,
    safe_rtt_range,
)
from placement.evaluation.objective import score_of
from placement.feasibility.feasible_plans import violations
from placement.io import save_plan
from placement.model.configuration import Configuration
from placement.plan import Plan
from tests.effort import seeds
from tests.protocols.test_command import run
from tests.protocols.worlds import world

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
def test_the_command(tmp_path: Path, protocol: str, capsys: pytest.CaptureFixture[str]) -> None:
    plan = placement.solve(Problem(world(3, ties=False), replicas=3, voters=3, protocol=protocol))
    save_plan(plan, tmp_path / "plan.json")
    for more in ([], ["--exact"]):
        document = json.loads(run(capsys, "explain", str(tmp_path / "plan.json"), "--json", *more))
        assert len(document["runner_ups"]) > 1
        assert document["rtt"]
        assert all(row["high"] is None or row["high"] >= row["value"] for row in document["rtt"])
        assert all(row["exact"] == bool(more) for row in document["rtt"])
        assert document["demand"]
    said = run(capsys, "explain", str(tmp_path / "plan.json"), "--doubt", "10")
    assert "None" not in said
