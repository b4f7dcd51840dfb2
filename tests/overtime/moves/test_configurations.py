"""Sequences of whole configurations against every sequence there is."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations.overtime.configuration_sequence import (
    best_configurations,
    configurations,
    interval_scores,
)
from placement import Configuration, Problem, solve
from placement.errors import InputError, UnsupportedError
from placement.feasibility.feasible_plans import violations
from placement.overtime.moves import MovePrices, changes
from tests import reference
from tests.effort import examples
from tests.strategies import SIMPLE, instances, problems

PRICES = st.builds(
    MovePrices, *(st.sampled_from([0.0, 1.0, 30.0, 1000.0, math.inf]) for _ in range(4))
)


def by_definition(problem: Problem) -> list[Configuration]:
    """Every configuration that breaks nothing, by trying all there could be."""
    sites = range(len(problem.instance.sites))
    found = []
    for size in range(1, len(sites) + 1):
        for replicas in itertools.combinations(sites, size):
            for voters in itertools.combinations(replicas, problem.rules.voters):
                for leader in voters:
                    one = Configuration.of(leader, voters, replicas)
                    if not violations(problem, one):
                        found.append(one)
    return found


@given(problems(max_sites=5))
def test_the_enumeration_is_complete(problem) -> None:
    found = list(configurations(problem))
    assert len(found) == len(set(found))
    assert set(found) == set(by_definition(problem))


@settings(max_examples=examples(60))
@given(
    instances(min_sites=2, max_sites=4, max_clients=3, max_intervals=3, varying_rtt=True),
    PRICES,
    st.integers(1, 3),
    st.integers(1, 2),
    st.booleans(),
)
def test_equals_brute_force_over_all_sequences(world, prices, replicas, voters, started) -> None:
    replicas = min(replicas, len(world.sites))
    problem = Problem(world, replicas=replicas, voters=min(voters, replicas))
    every = by_definition(problem)
    intervals = len(world.intervals)
    if len(every) ** intervals > 30_000:
        every_interval = 2
        world = world.replace(
            counts=world.counts[:every_interval],
            intervals=world.intervals[:every_interval],
            client_rtt=world.client_rtt[:2] if world.client_rtt.ndim == 3 else world.client_rtt,
            site_rtt=world.site_rtt[:2] if world.site_rtt.ndim == 3 else world.site_rtt,
        )
        if not world.counts.any():
            return
        problem, intervals = problem.replace(instance=world), 2
    start = every[-1] if started else None
    quorum = problem.rules.quorum

    def alone(interval: int, one: Configuration) -> float:
        rtt, between = world.client_rtt, world.site_rtt
        single = world.replace(
            counts=world.counts[interval],
            intervals=(),
            client_rtt=rtt[interval] if rtt.ndim == 3 else rtt,
            site_rtt=between[interval] if between.ndim == 3 else between,
        )
        return reference.score(single, one.leader, one.voters, one.replicas, quorum)

    scores = np.array([[alone(t, one) for one in every] for t in range(intervals)])
    assert interval_scores(problem, every) == pytest.approx(scores, rel=1e-9, abs=1e-9)
    table = np.array([[prices.of(changes(a, b)) for b in every] for a in every])
    first = None if start is None else every.index(start)
    least = math.inf
    for path in itertools.product(range(len(every)), repeat=intervals):
        stops = path if first is None else (first, *path)
        moved = sum(table[a, b] for a, b in itertools.pairwise(stops))
        least = min(least, sum(scores[t, x] for t, x in enumerate(path)) + moved)
    found = best_configurations(problem, prices, start=start)
    assert found.complete
    assert found.gap == 0
    assert found.feasible == len(every)
    assert float(found.cost.total) == pytest.approx(least, rel=1e-9, abs=1e-9)
    stops = [*([start] if start else []), *found.path]
    moved = sum(prices.of(changes(a, b)) for a, b in itertools.pairwise(stops))
    served = sum(alone(t, one) for t, one in enumerate(found.path))
    assert served + moved == pytest.approx(least, rel=1e-9, abs=1e-9)
    # among chosen candidates: never better, its bound never above the optimum
    some = best_configurations(problem, prices, start=start, limit=0)
    assert not some.complete
    assert float(some.cost.total) >= least * (1 - 1e-9) - 1e-9
    assert some.bound <= least * (1 + 1e-9) + 1e-9
    assert all(not violations(problem, one) or one == start for one in some.path)


@settings(max_examples=examples(40))
@given(problems(max_sites=5, kinds=SIMPLE - {"decay"}))
def test_free_moves_and_no_moves(problem) -> None:
    """Without prices every interval has its optimum; with infinite ones all have one."""
    every = by_definition(problem)
    if not every:
        with pytest.raises(InputError, match="no configuration"):
            best_configurations(problem, MovePrices())
        return
    free = best_configurations(problem, MovePrices())
    alone = 0.0
    for counts in problem.instance.counts:
        if counts.any():
            single = problem.instance.replace(counts=counts, intervals=())
            alone += solve(problem.replace(instance=single), "exhaustive").score
    assert float(free.cost.total) == pytest.approx(alone, rel=1e-9)
    chosen = best_configurations(problem, MovePrices(), limit=0)
    assert float(chosen.cost.total) == pytest.approx(alone, rel=1e-9)
    assert chosen.gap <= 1e-9
    fixed = best_configurations(problem, MovePrices(*[math.inf] * 4))
    assert len(set(fixed.path)) == 1
    static = solve(problem, "exhaustive").score
    assert float(fixed.cost.total) == pytest.approx(static, rel=1e-9)


def test_a_start_that_breaks_the_rules_can_be_left() -> None:
    from tests.overtime.watch.worlds import demand, world

    busy = world().replace(counts=demand(6), intervals=())
    problem = Problem(busy, replicas=4, voters=3, survive="country")
    start = Configuration.of(0, [0, 1, 2], [0, 1, 2, 3])
    found = best_configurations(problem, MovePrices(leader=1.0, voter=1.0), start=start)
    assert all(not violations(problem, one) for one in found.path)
    assert int(found.cost.moves) >= 1


def test_what_is_refused() -> None:
    from placement import Instance, Prices

    between = np.array([[0.0, 5.0], [5.0, 0.0]])
    priced = Instance(
        sites=("a", "b"), clients=("k",), client_rtt=np.array([[1.0, 4.0]]), site_rtt=between,
        counts=np.ones((1, 5)), prices=Prices(storage=np.ones(2)),
    )  # fmt: skip
    problem = Problem(priced, replicas=1, voters=1, cost_weight=2.0)
    with pytest.raises(UnsupportedError, match="weight of money"):
        best_configurations(problem, MovePrices())
