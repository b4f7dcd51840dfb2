"""The cases that go wrong in models of this kind, one test each."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulations.quorumstore.enumeration import solve
from placement.errors import InputError, SolverError
from placement.quorumstore import (
    Goal,
    LossScope,
    QuorumConfiguration,
    QuorumPlan,
    QuorumProblem,
    Redirect,
    StoreRules,
    evaluate,
    loss_thresholds,
    metrics,
)
from placement.support.status import Status
from tests.effort import seeds
from tests.quorumstore.instances import random_problem, random_rules
from tests.quorumstore.referee import losses, scenario_matrix, thresholds

LINE = np.abs(np.subtract.outer([0, 10, 30, 60, 100], [0, 10, 30, 60, 100])) + 1.0


def line(reads=(4, 3, 2, 1, 0), writes=(1, 0, 0, 0, 0), **rules):
    return QuorumProblem(LINE, reads, writes, sites=list("abcde"), rules=StoreRules(**rules))


@given(
    counts=st.lists(st.integers(0, 10**6), min_size=1, max_size=30).filter(any),
    percent=st.integers(1, 100),
)
def test_percentile_counts_in_whole_requests(counts, percent):
    """3. need = ⌈p·A⌉ in exact arithmetic, never from a float product such as 0.07·100."""
    rules = StoreRules(read_fraction=percent / 100)
    total = sum(counts)
    assert rules.needed(percent / 100, total) == -(-percent * total // 100)


def test_percentile_edge_values():
    """3. One request is its own percentile; a silent side has threshold 0 and keeps its rules."""
    assert StoreRules().needed(0.9, 1) == 1
    assert StoreRules().needed(0.9, 0) == 0
    assert StoreRules().needed(0.1 + 0.2, 10) == 3
    problem = line(writes=(0, 0, 0, 0, 0))
    plan = solve(problem)
    assert plan.normal.write_threshold == 0.0
    assert plan.write_quorum >= 2
    assert plan.read_quorum + plan.write_quorum == len(plan.replicas) + 1


def test_too_few_survivors_is_infinite_not_an_error():
    """7. A configuration whose quorum dies with a replica has infinite failure latency."""
    problem = line(contingency=True)
    plan = evaluate(problem, ["a", "b", "c"], 3, 3)
    assert plan.status is Status.VIOLATING
    assert plan.worst.threshold == math.inf
    assert any("R = 3" in reason for reason in plan.reasons)
    figures = metrics(problem, [[0, 1, 2]], 3, 3)
    assert figures.worst_read[0] == math.inf
    assert figures.normal_read[0] < math.inf


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1.0])
def test_missing_rtts_are_refused(bad):
    """8. A missing RTT is never taken for 0."""
    rtt = LINE.copy()
    rtt[2, 3] = bad
    with pytest.raises(InputError, match=r"rtt.*'c'.*'d'"):
        QuorumProblem(rtt, [1] * 5, [1] * 5, sites=list("abcde"))


def test_redirection_target():
    """10. Closest survivor by the lost site's row, ties to the lower index, a replica or not."""
    rtt = LINE.copy()
    rtt[2, 1] = rtt[2, 3] = 20.0
    problem = QuorumProblem(rtt, [0, 0, 9, 0, 0], [0] * 5, sites=list("abcde"))
    assert problem.closest_survivor(2, (2,)) == 1
    assert problem.closest_survivor(2, (1, 2)) == 3
    assert problem.closest_survivor(0, (0, 1)) == 2
    # Site c holds no replica, has all clients and is lost: the scenario still changes latency.
    moved = dataclasses.replace(problem, rules=StoreRules(True, redirect=Redirect.HOP))
    plan = evaluate(moved, ["a", "b", "d"], 2, 2)
    assert plan.losses[3].lost == ("c",)
    assert plan.losses[3].read_threshold == 20.0 + 11.0
    assert plan.normal.read_threshold == 20.0


def test_most_critical_replica_is_by_side():
    """12. For reads the maximum is over read thresholds, and over losses that take a replica."""
    problem = line(reads=(5, 0, 0, 0, 0), writes=(0, 0, 0, 0, 5))
    plan = evaluate(problem, ["a", "b", "e"], 2, 2)
    reads, writes = plan.most_critical_replica(), plan.most_critical_replica(reads=False)
    assert reads.lost in {("a",), ("b",)}
    assert writes.write_threshold == max(
        effect.write_threshold
        for effect in plan.losses
        if effect.lost[:1] in {("a",), ("b",), ("e",)}
    )
    with pytest.raises(InputError, match="no loss"):
        evaluate(line(failures=0), ["a"], 1, 1).most_critical_replica()


@pytest.mark.parametrize("seed", seeds(12, 60))
def test_all_in_time_means_one_replica_more(seed):
    """P5: p = 1, clients kept: N-1C under (N, R, W) is BA under (N, R+1, W+1), set by set."""
    rng = np.random.default_rng([41, seed])
    rules = random_rules(rng, redirect=Redirect.KEEP, read_fraction=1.0, write_fraction=1.0)
    problem = random_problem(rng, sites=6, rules=rules)
    size = int(rng.integers(3, 6))
    replicas = np.array([sorted(rng.choice(6, size, replace=False).tolist())])
    read, write = (int(value) for value in rng.integers(2, size, 2))
    lost = metrics(problem, replicas, read, write, losses=True)
    more = metrics(problem, replicas, read + 1, write + 1, losses=False)
    assert lost.worst_read == more.normal_read
    assert lost.worst_write == more.normal_write


@pytest.mark.parametrize("seed", seeds(16, 80))
def test_evaluator_against_the_definitions(seed):
    """Every scenario of every kind of loss, and the shortcut for the worst of them."""
    rng = np.random.default_rng([43, seed])
    fixed = {"failures": int(rng.integers(1, 4))} if seed % 5 else {"loss": LossScope.REGION}
    problem = random_problem(rng, sites=6, rules=random_rules(rng, **fixed))
    problem = dataclasses.replace(problem, regions=tuple(rng.choice(["x", "y", "z"], 6)))
    size = int(rng.integers(3, 6))
    sets = np.array([sorted(rng.choice(6, size, replace=False).tolist()) for _ in range(3)])
    read, write = (int(value) for value in rng.integers(1, size, 2))
    reads, writes = loss_thresholds(problem, sets, read, write)
    for column, replicas in enumerate(sets.tolist()):
        for row, lost in enumerate([(), *losses(problem)]):
            expected = thresholds(
                problem, scenario_matrix(problem, lost), tuple(replicas), read, write
            )
            assert (reads[row, column], writes[row, column]) == expected
    figures = metrics(problem, sets, read, write, losses=True)
    assert (figures.worst_read == reads.max(axis=0)).all()
    assert (figures.worst_write == writes.max(axis=0)).all()


def test_plans_are_checked():
    """A configuration beyond the bounds of the goal, or a bound above its value, is found out."""
    problem = line().with_goal(Goal(read_bound=1.0))
    with pytest.raises(SolverError, match="breaks the bounds"):
        QuorumPlan.of(problem, QuorumConfiguration((0, 1, 2), 2, 2), method="wrong")
    with pytest.raises(SolverError, match="bound"):
        QuorumPlan.of(line(), QuorumConfiguration((0, 1, 2), 2, 2), method="wrong", bound=1e6)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"reads": [1.5, 0, 0, 0, 0]}, "whole number"),
        ({"reads": [0] * 5, "writes": [0] * 5}, "no requests"),
        ({"reads": [2**50, 0, 0, 0, 0]}, "too many"),
        ({"reads": [1, 2]}, "wrong shape"),
        ({"sites": ["a", "b", "c", "d", "d"]}, "duplicate name"),
        ({"regions": ["x"]}, "wrong number of regions"),
        ({"regions": ["x", "x", "x", "x", " "]}, "no region"),
    ],
)
def test_bad_problems(change, words):
    """Each refusal says what was expected."""
    given = {"rtt": LINE, "reads": [1] * 5, "writes": [0] * 5, "sites": list("abcde")}
    with pytest.raises(InputError, match=words):
        QuorumProblem(**(given | change))


@pytest.mark.parametrize(
    "options",
    [
        {"read_fraction": 0.0},
        {"read_fraction": 90},
        {"write_fraction": math.nan},
        {"max_replicas": 0},
        {"replicas": 2.5},
        {"failures": -1},
        {"redirect": "hop"},
        {"loss": "site"},
    ],
)
def test_bad_rules(options):
    """Rules are checked where they are made."""
    with pytest.raises(InputError, match=next(iter(options))):
        StoreRules(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"target": "reads"},
        {"read_weight": -1.0},
        {"read_weight": 0.0, "write_weight": 0.0},
        {"normal_weight": 0.0, "worst_weight": 0.0},
        {"read_bound": math.nan},
    ],
)
def test_bad_goals(options):
    """Goals too."""
    with pytest.raises(InputError):
        Goal(**options)


def test_bad_evaluations():
    """Unknown and repeated sites, quorums out of range."""
    for replicas, read in ((["z"], 1), (["a", "a"], 1), ([], 1), (["a", "b"], 3), (["a"], 0)):
        with pytest.raises(InputError):
            evaluate(line(), replicas, read, 1)
    with pytest.raises(InputError, match="no configuration"):
        solve(line(max_replicas=2)).replicas  # noqa: B018 - the property itself must refuse
