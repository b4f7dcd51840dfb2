"""The configuration of least H·mean + price: against the enumeration of every configuration."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest

from placement import Configuration, Instance, Options, Plan, Prices, Problem
from placement.methods.registry import load_method, run
from placement.overtime.moves import MovePrices, changes
from placement.overtime.moves.move_search import best_move
from placement.plan import objective_value
from placement.support.status import Status
from placement.testing import every_configuration
from tests.effort import examples

PRICES = (0.0, 0.5, 3.0, 20.0, math.inf)
HORIZONS = (0.5, 4.0, 8.0, 64.0, math.inf)


def answer(method: str, part: Problem) -> Plan:
    return run(load_method(method), part, Options())


def drawn(seed: int) -> Problem:
    """Four to seven sites; a range of |R|, a budget, a failure domain, a pin now and then."""
    rng = np.random.default_rng(seed)
    sites, clients = int(rng.integers(4, 8)), int(rng.integers(2, 7))
    at, near = rng.random((sites, 2)) * 100, rng.random((clients, 2)) * 100

    def rtt(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        between = np.linalg.norm(one[:, None] - other[None], axis=2)
        return np.asarray(np.round(between + rng.random(between.shape) * 10, 3))

    site_rtt = rtt(at, at)
    np.fill_diagonal(site_rtt, 0.0)
    counts = rng.integers(0, 20, (clients, 5)).astype(float)
    counts[0, 0] += 1
    money, spread = seed % 3 == 0, seed % 4 == 1
    instance = Instance(
        sites=tuple(f"s{i}" for i in range(sites)),
        clients=tuple(f"c{i}" for i in range(clients)),
        client_rtt=rtt(near, at) + 1,
        site_rtt=site_rtt,
        counts=counts,
        prices=Prices(rng.integers(1, 9, sites).astype(float)) if money else None,
        domains={"country": tuple("xyz"[i % 3] for i in range(sites))} if spread else {},
    )
    least = int(rng.integers(2, min(5, sites) + 1))
    most = min(sites, least + 2) if seed % 2 else least
    voters = int(rng.integers(1, min(3, least) + 1))
    return Problem(
        instance,
        replicas=(least, most),
        voters=voters,
        budget=float(rng.integers(12, 30)) if money else None,
        survive="country" if spread and voters == 3 else None,
        pinned=["s0"] if seed % 5 == 2 else (),
    )


def cases(
    seeds: range,
) -> Iterator[tuple[Problem, list[Configuration], Configuration, MovePrices, float]]:
    for seed in seeds:
        problem, rng = drawn(seed), np.random.default_rng(1000 + seed)
        every = list(every_configuration(problem))
        if not every:
            continue
        current = every[int(rng.integers(len(every)))]
        if seed % 7 == 3:  # a configuration that may break the rules
            rules = problem.rules
            held = rng.choice(len(problem.instance.sites), rules.replicas_min, replace=False)
            current = Configuration.of(held[0], held[: rules.voters], held)
        prices = MovePrices(*(float(rng.choice(PRICES)) for _ in range(4)))
        yield problem, every, current, prices, float(rng.choice(HORIZONS))


@pytest.mark.parametrize(
    ("method", "count"),
    [("exact", examples(50)), ("local-search", examples(16)), ("kq", examples(20))],
)
def test_no_configuration_is_cheaper(method: str, count: int) -> None:
    """The exact method proves it for every case; a bound never lies above the true least."""
    proven = compared = 0
    for problem, every, current, prices, horizon in cases(range(count)):
        worth = {}
        for one in every:
            price = prices.of(changes(current, one))
            mean = objective_value(problem, one) / problem.demand.operations
            worth[one] = math.inf if math.isinf(price) else mean + price / horizon
        least = min(worth.values())
        found = best_move(problem, current, prices, horizon, lambda p: answer(method, p))
        compared += 1
        if math.isinf(least):
            assert found is None
            continue
        assert found is not None
        given = found.configuration
        plain = Configuration.of(given.leader, sorted(given.voters), given.replicas)
        assert worth[plain] == pytest.approx(found.value, rel=1e-11)
        assert found.bound <= least * (1 + 1e-9)
        if method != "kq":
            assert found.value == pytest.approx(least, rel=1e-9)
        if method == "exact":
            assert found.status is Status.OPTIMAL
            assert found.searches <= 1  # prices are part of the question
        elif found.value > least * (1 + 1e-9):
            assert found.status is Status.FEASIBLE
        proven += found.status is Status.OPTIMAL
        if current in worth and worth[current] <= least * (1 + 1e-12):
            assert given == current  # staying is among the best
    assert compared > count / 2
    assert proven < compared or method == "exact"


def test_ties_go_to_the_configuration_with_the_fewest_changes() -> None:
    """A client that every site serves alike: only the site that is forbidden now is replaced."""
    instance = Instance(
        sites=tuple("abcde"),
        clients=("k",),
        client_rtt=np.full((1, 5), 5.0),
        site_rtt=np.zeros((5, 5)),
        counts=[[9.0, 0, 0, 0, 0]],
    )
    problem = Problem(instance, replicas=3, voters=2, forbidden=["e"])
    current = Configuration.of(3, [3, 4], [2, 3, 4])
    free = MovePrices()
    found = best_move(problem, current, free, 8.0, lambda p: answer("exact", p))
    assert found is not None
    after = changes(current, found.configuration)
    assert (after.leader, after.removed, len(after.added)) == (False, (4,), 1)
    assert after.size == 2  # a site out, another in


def test_a_bound_on_the_mean_saves_the_search() -> None:
    """Where the cheapest change costs more than any gain there can be, nothing is searched."""
    problem = drawn(2)
    every = list(every_configuration(problem))
    means = [objective_value(problem, one) / problem.demand.operations for one in every]
    current, floor = every[int(np.argmax(means))], min(means)

    def never(part: Problem) -> Plan:
        raise AssertionError(part)

    dear = MovePrices(*[8.0 * (max(means) - floor) + 1.0] * 4)
    found = best_move(problem, current, dear, 8.0, never, (), floor)
    assert found is not None
    assert (found.configuration, found.searches, found.status) == (current, 0, Status.OPTIMAL)
    at_once = best_move(problem, current, MovePrices(), 0.0, never)
    assert at_once is not None
    assert at_once.configuration == current
