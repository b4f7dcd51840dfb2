"""Room is never too strict: what some feasible plan contains may always be added."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from heuristics.admissible_sites import AdmissibleSites
from placement import Diversity, Problem
from placement.testing import random_instance
from tests import reference
from tests.heuristics.test_rules import HARD
from tests.strategies import ALL, problems


@given(
    st.one_of(problems(kinds=ALL, max_sites=6), problems(kinds=HARD, min_sites=4, max_sites=6)),
    st.booleans(),
    st.data(),
)
def test_every_site_of_a_plan_may_join_the_rest_of_it(
    problem: Problem, known: bool, data: st.DataObject
) -> None:
    found = sorted({(ell, held) for ell, _, held in reference.configurations(problem)})
    assume(found)
    leader, replicas = data.draw(st.sampled_from(found))
    room = AdmissibleSites(problem, len(replicas), leader if known else None)
    site = data.draw(st.sampled_from(replicas))
    others = [s for s in replicas if s != site]
    chosen = set(data.draw(st.lists(st.sampled_from(others), unique=True)) if others else [])
    if known:
        chosen |= {leader} - {site}
        assume(site != leader)
    members = np.zeros(len(problem.rules.may_hold), dtype=bool)
    members[list(chosen)] = True
    assert room.addable(members)[site]
    members[site] = True
    assert room.replaceable(members, site)[site]


@given(
    st.one_of(problems(kinds=ALL, max_sites=6), problems(kinds=HARD, min_sites=4, max_sites=6)),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
def test_many_sets_at_once_are_as_many_alone(problem: Problem, known: bool, seed: int) -> None:
    """Sets of every size, each with a leader of its own; parts of the batch by number as well."""
    rng = np.random.default_rng(seed)
    sites = len(problem.rules.may_hold)
    leaders = rng.integers(0, sites, 5)
    members = rng.random((5, sites)) < rng.random((5, 1))
    members[np.arange(5), leaders] = True
    size = problem.rules.replicas_max
    together = AdmissibleSites(problem, size, leaders if known else None)
    alone = [AdmissibleSites(problem, size, int(ell) if known else None) for ell in leaders]
    expected = [one.addable(row) for one, row in zip(alone, members, strict=True)]
    assert (together.addable(members) == expected).all()
    some = np.array([3, 0])
    assert (together.addable(members[some], some) == np.array(expected)[some]).all()
    replaced = [
        one.replaceable(row, int(ell))
        for one, row, ell in zip(alone, members, leaders, strict=True)
    ]
    assert (together.replaceable(members, leaders) == replaced).all()


def test_slots_are_kept_for_domains_that_are_missing() -> None:
    """Six sites in three regions of two; voters from three regions must fit into three replicas."""
    problem = Problem(random_instance(0), replicas=3, voters=3, diversity=Diversity("region"))
    members = np.array([True, False, False, False, False, False])
    addable = AdmissibleSites(problem, 3).addable(members)
    assert addable.tolist() == [False, False, True, True, True, True]
    members[2] = True
    assert AdmissibleSites(problem, 3).addable(members).tolist() == [False] * 4 + [True] * 2


def test_money_is_kept_for_the_rest() -> None:
    """A site may join only if the cheapest others can still be paid."""
    instance = random_instance(2, prices=True)
    prices = instance.prices
    assert prices is not None
    free = instance.replace(prices=prices.__class__(np.array([1.0, 2, 3, 4, 5, 6])))
    problem = Problem(free, replicas=3, voters=1, budget=8.0)
    members = np.zeros(6, dtype=bool)
    assert AdmissibleSites(problem, 3).addable(members).tolist() == [True] * 5 + [False]
