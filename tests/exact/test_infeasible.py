"""Problems without a feasible configuration: found by counting, the same as enumeration says."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from formulations.exact import branch_and_bound as engine
from formulations.exact.branch_and_bound import search
from formulations.exact.no_plan_proof import no_plan
from formulations.exact.reduced_problem import ReducedProblem
from placement.errors import SolverError
from placement.proof.no_plan_check import check_no_plan
from placement.support.status import Status, Termination
from tests.effort import examples
from tests.exact.test_engine import each_kernel
from tests.exact.worlds import brute_force, random_core


def test_equals_enumeration():
    infeasible = 0
    for seed in range(examples(700, 200)):
        core = random_core(seed, max_clients=2)
        found = no_plan(core.rules)
        assert (found is not None) is math.isinf(brute_force(core)), seed
        if found is not None:
            infeasible += 1
            names = tuple(map(str, range(core.sites)))
            leaders, _ = check_no_plan(core.rules, names, found.to_json())
            assert leaders == core.rules.may_lead.sum()
    assert infeasible > examples(700, 200) / 10


def grid(size: int, voters: int, *, columns: int) -> ReducedProblem:
    """Sites on a grid; one voter in a row, one replica in a column, nothing below the diagonal.

    The last row has one site that may vote, the one before two, and so on: as many voters as rows
    are the sites of the diagonal and no others.
    """
    rows, column = np.divmod(np.arange(size * columns), columns)
    rng = np.random.default_rng(1)
    sites = size * columns
    return ReducedProblem.of_arrays(
        rng.random((3, sites)),
        1 - np.eye(sites),
        (np.ones(3), np.ones(3), np.ones(3), 1.0),
        replicas=(voters, voters),
        voters=voters,
        caps=(("voters", rows, 1), ("replicas", column, 1)),
        may_vote=rows + column < size,
    )


@pytest.mark.parametrize(("size", "columns"), [(4, 4), (5, 7), (6, 6), (9, 9)])
def test_voters_that_only_exchanges_find(size, columns):
    """A matching that gives the first columns to the first rows must move them to the last rows."""
    full = grid(size, size, columns=columns)
    assert no_plan(full.rules) is None
    # without one site of the diagonal
    may_vote = full.rules.may_vote & (np.arange(size * columns) != size - 1)
    rules = dataclasses.replace(full.rules, may_vote=may_vote, may_lead=may_vote)
    found = no_plan(rules)
    assert found is not None
    names = tuple(map(str, range(size * columns)))
    assert check_no_plan(rules, names, found.to_json())[0] == may_vote.sum()


@each_kernel
def test_what_trees_would_take_hours_for(kernel):
    """Voters in two domains of many with one replica each: no tree is begun."""
    sites, domains = 120, np.arange(120) // 4
    rng = np.random.default_rng(2)
    core = ReducedProblem.of_arrays(
        rng.random((40, sites)),
        rng.random((sites, sites)) * (1 - np.eye(sites)),
        (np.ones(40), np.ones(40), np.ones(40), 40.0),
        replicas=(9, 12),
        voters=3,
        caps=(("replicas", domains, 1),),
        may_vote=domains < 2,
    )
    result = search(core, kernel=kernel)
    assert result.status is Status.INFEASIBLE
    assert result.termination is Termination.FINISHED
    assert result.bound == math.inf
    assert result.counters.nodes == 0
    assert result.certificate is None
    assert result.none is not None
    assert result.none.to_json() == {
        "format": "replica-placement/no-plan/1",
        "proofs": [{"leaders": list(range(8)), "by_votes": []}],
    }


@each_kernel
def test_trees_and_counting_must_agree(kernel, monkeypatch):
    """Each finds out when the other is wrong about whether there is a plan."""
    core = next(c for c in map(random_core, range(100)) if no_plan(c.rules) is not None)
    monkeypatch.setattr(engine, "no_plan", lambda rules: None)
    with pytest.raises(SolverError, match="the counting check shows that one exists"):
        search(core, kernel=kernel)
