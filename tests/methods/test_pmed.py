"""The p-median files of the OR-Library, whose optima are published, as placement problems."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

from placement import Status, evaluate, solve
from tests import pmed

needs_data = pytest.mark.skipif(
    not pmed.DATA.is_dir(), reason="the p-median files are not beside the project"
)
FILES = [f"pmed{i}" for i in range(1, 11)]


def test_the_last_of_repeated_edges_counts() -> None:
    """Path 1 -5- 2 -1- 3, then the first edge again with cost 7: d(1, 3) = 8, not 6."""
    read = pmed.parse("3 3 1\n1 2 5\n2 3 1\n2 1 7\n")
    assert read.distances.tolist() == [[0, 7, 8], [7, 0, 1], [8, 1, 0]]
    # One median: node 2 costs 7 + 0 + 1.
    plan = solve(read.problem(), "exhaustive")
    assert (plan.leader, plan.replicas, plan.score) == ("n2", ("n2",), 8.0)


@needs_data
@pytest.mark.parametrize("name", FILES)
def test_an_optimal_set_has_the_published_value(name: str) -> None:
    """Sets from an independent interchange search that reaches the published optimum."""
    read = pmed.read(name)
    optimum = pmed.optima()[name]
    medians = pmed.interchange(read, np.random.default_rng(1), optimum)
    problem = read.problem()
    names = [problem.instance.sites[s] for s in medians]
    for leader in (names[0], names[-1]):  # with weak reads only it does not matter who leads
        plan = evaluate(problem, leader=leader, voters=[leader], replicas=names)
        assert plan.status is Status.FEASIBLE
        assert plan.score == optimum
        assert plan.mean_latency == optimum / len(read.distances)


@needs_data
@pytest.mark.parametrize("name", FILES[:3])
def test_two_medians_of_a_whole_file(name: str) -> None:
    read = pmed.read(name)
    d = read.distances
    pairs = itertools.combinations(range(len(d)), 2)
    # Lexicographic order and a strict minimum: the first pair of those that tie.
    value, best = min((float(np.minimum(d[a], d[b]).sum()), (a, b)) for a, b in pairs)
    plan = solve(read.problem(medians=2), "exhaustive")
    assert (plan.status, plan.score) == (Status.OPTIMAL, value)
    assert plan.configuration is not None
    assert plan.configuration.replicas == best
    assert plan.configuration.leader == best[0]


@needs_data
@pytest.mark.parametrize("name", ["pmed1", "pmed4"])
@pytest.mark.parametrize("medians", [3, 5])
def test_medians_among_some_nodes_by_an_integer_program(name: str, medians: int) -> None:
    """All nodes are clients, the first 22 may be medians: up to 26,334 sets."""
    read = pmed.read(name)
    plan = solve(read.problem(medians=medians, sites=22), "exhaustive")
    assert plan.status is Status.OPTIMAL
    assert plan.score == p_median_milp(read.distances[:, :22], medians)


def p_median_milp(d: np.ndarray, medians: int) -> float:
    """Min Σ d z with Σ_r z_cr = 1, z_cr <= x_r, Σ x = p, in scipy: value to the next integer."""
    clients, sites = d.shape
    pairs = clients * sites
    z = np.arange(pairs)
    assign = coo_array((np.ones(pairs), (z // sites, z)), shape=(clients, pairs + sites))
    ones = np.concatenate([np.ones(pairs), -np.ones(pairs)])
    columns = np.concatenate([z, pairs + z % sites])
    use = coo_array((ones, (np.concatenate([z, z]), columns)), shape=(pairs, pairs + sites))
    count = np.concatenate([np.zeros(pairs), np.ones(sites)])[np.newaxis]
    result = milp(
        np.concatenate([d.ravel(), np.zeros(sites)]),
        constraints=[
            LinearConstraint(assign, 1, 1),
            LinearConstraint(use, -np.inf, 0),
            LinearConstraint(count, medians, medians),
        ],
        integrality=np.concatenate([np.zeros(pairs), np.ones(sites)]),
        bounds=Bounds(0, 1),
        options={"mip_rel_gap": 0.0},
    )
    assert result.success
    assert result.fun == pytest.approx(round(result.fun), abs=1e-6)
    return float(round(result.fun))
