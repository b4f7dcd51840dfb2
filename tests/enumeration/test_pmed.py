"""p-median problems on drawn graphs, with optima of an integer program of the tests' own."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from placement import Status, evaluate, solve
from tests import pmed


def test_the_last_of_repeated_edges_counts() -> None:
    """Path 1 -5- 2 -1- 3, then the first edge again with cost 7: d(1, 3) = 8, not 6."""
    read = pmed.parse("3 3 1\n1 2 5\n2 3 1\n2 1 7\n")
    assert read.distances.tolist() == [[0, 7, 8], [7, 0, 1], [8, 1, 0]]
    # One median: node 2 costs 7 + 0 + 1.
    plan = solve(read.problem(), "exhaustive")
    assert (plan.leader, plan.replicas, plan.score) == ("n2", ("n2",), 8.0)


@pytest.mark.parametrize("seed", range(4))
def test_an_optimal_set_has_the_value_of_the_optimum(seed: int) -> None:
    """Sets from an independent interchange search that reaches the optimum."""
    read = pmed.draw(50, 4 + seed, seed)
    optimum = int(pmed.by_integer_program(read.distances, read.medians))
    medians = pmed.interchange(read, np.random.default_rng(1), optimum)
    problem = read.problem()
    names = [problem.instance.sites[s] for s in medians]
    for leader in (names[0], names[-1]):  # with weak reads only it does not matter who leads
        plan = evaluate(problem, leader=leader, voters=[leader], replicas=names)
        assert plan.status is Status.FEASIBLE
        assert plan.score == optimum
        assert plan.mean_latency == optimum / len(read.distances)


@pytest.mark.parametrize("seed", range(3))
def test_two_medians_of_a_whole_graph(seed: int) -> None:
    read = pmed.draw(100, 5, seed)
    d = read.distances
    pairs = itertools.combinations(range(len(d)), 2)
    # Lexicographic order and a strict minimum: the first pair of those that tie.
    value, best = min((float(np.minimum(d[a], d[b]).sum()), (a, b)) for a, b in pairs)
    plan = solve(read.problem(medians=2), "exhaustive")
    assert (plan.status, plan.score) == (Status.OPTIMAL, value)
    assert plan.configuration is not None
    assert plan.configuration.replicas == best
    assert plan.configuration.leader == best[0]


@pytest.mark.parametrize("seed", [1, 4])
@pytest.mark.parametrize("medians", [3, 5])
def test_medians_among_some_nodes_by_an_integer_program(seed: int, medians: int) -> None:
    """All nodes are clients, the first 22 may be medians: up to 26,334 sets."""
    read = pmed.draw(60, 5, seed)
    plan = solve(read.problem(medians=medians, sites=22), "exhaustive")
    assert plan.status is Status.OPTIMAL
    assert plan.score == pmed.by_integer_program(read.distances[:, :22], medians)
