"""Moves from a present configuration for operations with waits, against all configurations."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import placement
from formulations.waits import move_sets
from formulations.waits.set_search import compiled_available
from placement import Configuration, Moves, Problem, Status
from placement.evaluation.objective import score_of
from placement.feasibility.feasible_plans import violations
from placement.methods.options import Options
from placement.methods.registry import load_method, refusal
from placement.plan import Plan
from placement.support.status import Termination
from tests.effort import seeds
from tests.protocols.test_loss_sets import uneven, worst_of
from tests.protocols.test_sets import questions

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
    options = Options(settings={"certificate": True, "kernel": "auto"})
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
