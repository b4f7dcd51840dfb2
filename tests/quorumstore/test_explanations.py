"""Unsatisfiable requests are explained with the numbers that make them so."""

from __future__ import annotations

import dataclasses
from itertools import product

import numpy as np
import pytest

from formulations.quorumstore.covering_solvers import CpSatCovering
from formulations.quorumstore.enumeration import Enumeration, solve
from formulations.quorumstore.one_key import place
from formulations.quorumstore.threshold_bisection import solve as bisect
from placement.quorumstore import (
    Goal,
    LossScope,
    QuorumProblem,
    StoreRules,
    Target,
    structural_reasons,
)
from placement.support.status import Status
from tests.quorumstore.referee import every_configuration


def problem(rules, sites=6, **options):
    rng = np.random.default_rng(0)
    rtt = rng.uniform(5, 200, (sites, sites))
    return QuorumProblem(rtt, [10] * sites, [3] * sites, rules=rules, **options)


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        (StoreRules(max_replicas=2), ["N_max = 2", "F = 1", "N >= 3"]),
        (StoreRules(replicas=3, read_quorum=3), ["R = 3", "N = 3", "only 2"]),
        (StoreRules(replicas=3, write_quorum=3), ["W = 3", "N = 3", "only 2"]),
        (StoreRules(replicas=3, read_quorum=1), ["R = 1", "W >= 3", "only 2"]),
        (StoreRules(replicas=4, read_quorum=2, write_quorum=2), ["R + W = 2 + 2 = 4", ">= 5"]),
        (StoreRules(replicas=9), ["N = 9", "6 sites"]),
        (StoreRules(failures=3, max_replicas=6), ["N_max = 6", "F = 3", "N >= 7"]),
        (StoreRules(read_quorum=5, max_replicas=5), ["R = 5", "N_max = 5", "only 4"]),
        (StoreRules(read_quorum=1), ["R = 1", "R >= 2"]),
    ],
)
def test_quorum_rules(rules, words):
    """The sentence holds the numbers, whatever the method."""
    asked = problem(rules)
    for plan in (solve(asked), bisect(asked, CpSatCovering())):
        assert plan.status is Status.INFEASIBLE
        for word in words:
            assert word in " ".join(plan.reasons)


def test_regions():
    """Two regions hold two replicas when none may share one; losing one of two leaves no quorum."""
    base = problem(StoreRules(distinct_regions=True))
    base = dataclasses.replace(base, regions=("x", "x", "x", "y", "y", "y"))
    assert "2 regions then hold at most 2 of the 3" in " ".join(solve(base).reasons)
    lost = dataclasses.replace(base, rules=StoreRules(loss=LossScope.REGION))
    assert "may share a region" in solve(lost).reasons[0]


def test_reasons_are_complete():
    """Over all small rules: a reason is given exactly when no configuration obeys them."""
    regions = ("x", "x", "y", "y", "z")
    choices = product(
        (1, 2, 3, 4, 5), (None, 3, 4, 6), (None, 1, 2, 3, 4), (None, 1, 2, 3), (0, 1, 2), range(3)
    )
    checked = 0
    for largest, size, read, write, failures, regional in choices:
        if regional and failures != 1:
            continue
        rules = StoreRules(
            max_replicas=largest,
            replicas=size,
            read_quorum=read,
            write_quorum=write,
            failures=failures,
            distinct_regions=regional == 1,
            loss=LossScope.REGION if regional == 2 else LossScope.SITE,
        )
        asked = problem(rules, sites=5, regions=regions)
        possible = next(every_configuration(asked), None) is not None
        assert bool(structural_reasons(asked)) != possible, rules
        checked += 1
    assert checked == 5 * 4 * 5 * 4 * 5


def test_bound_below_reach():
    """A bound no set reaches is answered with the least that can be reached, and by whom."""
    asked = problem(StoreRules(True)).with_goal(Goal(read_bound=1.0))
    method = Enumeration().solve
    assert method(asked).status is Status.INFEASIBLE
    (sentence,) = place(asked).reasons
    reach = method(asked.with_goal(Goal(Target.READS)))
    assert f"{reach.value:g} ms" in sentence
    assert ", ".join(reach.replicas) in sentence
    assert "54 of 60 requests" in sentence


def test_bounds_that_exclude_each_other():
    """Each bound alone can be met; the sentence says what one costs the other."""
    asked = problem(StoreRules(True))
    method = Enumeration().solve
    best_read = method(asked.with_goal(Goal(Target.READS))).value
    best_write = method(asked.with_goal(Goal(Target.WRITES))).value
    both = asked.with_goal(Goal(read_bound=best_read, write_bound=best_write))
    sentences = place(both).reasons
    assert len(sentences) == 2
    assert "exclude each other" in sentences[0]
    assert place(asked).reasons == ()
