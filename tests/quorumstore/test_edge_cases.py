"""The cases that go wrong in models of this kind, one test each."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulations.quorumstore.enumeration import solve, tie_envelope
from formulations.quorumstore.threshold_bisection import threshold_values
from placement.errors import InputError, SolverError
from placement.quorumstore import (
    Goal,
    QuorumConfiguration,
    QuorumPlan,
    QuorumProblem,
    Redirect,
    StoreRules,
    Target,
    evaluate,
    loss_thresholds,
    metrics,
    threshold,
)
from placement.support.status import Status
from tests.effort import seeds
from tests.quorumstore.instances import random_problem, random_rules
from tests.quorumstore.referee import losses, scenario_matrix, thresholds

LINE = np.abs(np.subtract.outer([0, 10, 30, 60, 100], [0, 10, 30, 60, 100])) + 1.0


def line(reads=(4, 3, 2, 1, 0), writes=(1, 0, 0, 0, 0), **rules):
    return QuorumProblem(LINE, reads, writes, sites=list("abcde"), rules=StoreRules(**rules))


def test_ties_of_ba_differ_under_failure():
    """1. Three sites are equally near: BA cannot tell the seven sets with two of them apart."""
    rtt = np.full((5, 5), 10.0)
    rtt[0] = [1, 1, 1, 50, 50]
    problem = QuorumProblem(rtt, [1, 0, 0, 0, 0], [1, 0, 0, 0, 0], rules=StoreRules(replicas=3))
    envelope = tie_envelope(problem)
    assert envelope.count == 7
    assert (envelope.normal.best, envelope.normal.worst) == (1.0, 1.0)
    # {0, 1, 2}: its own site is lost and the next one, 1 ms away, needs 10 ms for two answers.
    assert envelope.failure == (11.0, 50.0)


def test_ties_are_broken_by_the_sum_of_both_sides():
    """2. T = max(T_r, T_w) leaves the smaller one open; among equals T_r + T_w decides."""
    problem = line(reads=(1, 0, 0, 0, 0), writes=(0, 0, 0, 0, 1), replicas=4)
    plan = solve(problem)
    best = math.inf
    for group in tie_envelope(problem).ties:
        figures = metrics(problem, group.sets, group.read, group.write)
        best = min(best, float((figures.normal_read + figures.normal_write).min()))
    assert plan.normal.read_threshold + plan.normal.write_threshold == best


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


def test_whole_sites_flip():
    """4. A key from one site: the optimum is its max(R, W)-th nearest site, itself first."""
    problem = line(reads=(7, 0, 0, 0, 0), writes=(3, 0, 0, 0, 0))
    assert solve(problem).value == 11.0  # R = W = 2: its own replica and the next site
    fixed = line((7, 0, 0, 0, 0), (3, 0, 0, 0, 0), replicas=5, read_quorum=3, write_quorum=3)
    assert solve(fixed).value == 31.0


def test_thresholds_are_elements_of_the_matrix():
    """5. No rounding: every threshold is one of the given numbers, also 0.1 + 0.2."""
    rtt = LINE.copy()
    rtt[0, 1] = 0.1 + 0.2
    problem = QuorumProblem(rtt, [1, 0, 0, 0, 0], [0, 1, 0, 0, 0], rules=StoreRules(True))
    plan = solve(problem)
    values = set(threshold_values(problem).tolist())
    for effect in plan.losses:
        assert {effect.read_threshold, effect.write_threshold} <= values


def test_a_bound_equal_to_a_threshold_is_met():
    """5. Limits are <=: the optimum itself is a bound that can be met, anything below is not."""
    problem = line(contingency=True)
    best = solve(problem.with_goal(Goal(Target.READS))).value
    assert solve(problem.with_goal(Goal(read_bound=best))).status is Status.OPTIMAL
    below = Goal(read_bound=float(np.nextafter(best, 0)))
    assert solve(problem.with_goal(below)).status is Status.INFEASIBLE


def test_local_copy_is_not_enough():
    """6. With F = 1 quorums have two members, so a free local copy does not make T = 0."""
    rtt = LINE - np.eye(5)
    problem = QuorumProblem(rtt, [5, 0, 0, 0, 0], [1, 0, 0, 0, 0])
    assert rtt[0, 0] == 0
    assert solve(problem).value == 11.0
    alone = dataclasses.replace(problem, rules=StoreRules(failures=0))
    assert solve(alone).value == 0.0
    assert solve(alone).configuration == QuorumConfiguration((0,), 1, 1)


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


def test_rows_are_coordinators():
    """8. Asymmetric RTTs: the row waits, the column answers."""
    rtt = LINE.copy()
    rtt[0, :] = [1, 2, 3, 4, 5]
    rtt[:, 0] = [1, 90, 90, 90, 90]
    problem = QuorumProblem(rtt, [1, 0, 0, 0, 0], [1, 0, 0, 0, 0])
    assert solve(problem).value == 2.0


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1.0])
def test_missing_rtts_are_refused(bad):
    """8. A missing RTT is never taken for 0."""
    rtt = LINE.copy()
    rtt[2, 3] = bad
    with pytest.raises(InputError, match=r"rtt.*'c'.*'d'"):
        QuorumProblem(rtt, [1] * 5, [1] * 5, sites=list("abcde"))


def test_redirection_can_make_a_client_faster():
    """9. No triangle inequality: clients of a lost site may fare better; T keeps the normal one."""
    rtt = np.full((4, 4), 100.0)
    rtt[0] = [100, 5, 100, 100]  # site 0 is badly placed, its neighbour 1 is not
    rtt[1] = [5, 1, 2, 3]
    problem = QuorumProblem(
        rtt, [1, 0, 0, 0], [0, 0, 0, 0], rules=StoreRules(True, redirect=Redirect.CLOSEST)
    )
    plan = evaluate(problem, ["1", "2", "3"], 2, 2)
    lost_origin = plan.losses[1]
    assert lost_origin.lost == ("0",)
    assert lost_origin.read_threshold == 2.0 < plan.normal.read_threshold == 100.0
    assert plan.worst.read_threshold >= 100.0
    hop = dataclasses.replace(problem, rules=StoreRules(True, redirect=Redirect.HOP))
    assert evaluate(hop, ["1", "2", "3"], 2, 2).losses[1].read_threshold == 5.0 + 2.0


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


def test_identity_of_a_configuration():
    """13. Distinct configurations are (set, R, W); N follows from the set."""
    one, other = QuorumConfiguration((0, 1, 2), 2, 2), QuorumConfiguration((0, 1, 2), 2, 2)
    assert one == other
    assert len({one, other, QuorumConfiguration((0, 1, 2, 3), 2, 3)}) == 2
    assert one.size == 3


def test_sides_have_their_own_percentiles():
    """16. p of reads does not touch writes."""
    base = line(reads=(9, 0, 0, 0, 1), writes=(9, 0, 0, 0, 1), replicas=3)
    loose = dataclasses.replace(base, rules=StoreRules(replicas=3, read_fraction=1.0))
    plan = evaluate(loose, ["a", "b", "c"], 2, 2)
    assert plan.normal.read_threshold == 91.0
    assert plan.normal.write_threshold == 11.0


@pytest.mark.parametrize("seed", seeds(8, 40))
def test_more_sites_never_hurt(seed):
    """P3: for fixed (R, W) and every scenario, another replica never raises a threshold."""
    rng = np.random.default_rng([40, seed])
    problem = random_problem(rng, sites=6)
    small = tuple(sorted(rng.choice(6, 3, replace=False).tolist()))
    extra = int(rng.choice([site for site in range(6) if site not in small]))
    large = tuple(sorted((*small, extra)))
    before = loss_thresholds(problem, np.array([small]), 2, 2)
    after = loss_thresholds(problem, np.array([large]), 2, 2)
    for one, other in zip(before, after, strict=True):
        assert other.max() <= one.max()
        assert (other[0] <= one[0]).all()


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


@pytest.mark.parametrize("seed", seeds(12, 60))
def test_one_replica_more_bounds_any_percentile(seed):
    """P5 for p < 1: the BA value with R+1, W+1 is an upper bound."""
    rng = np.random.default_rng([42, seed])
    rules = random_rules(rng, redirect=Redirect.KEEP)
    problem = random_problem(rng, sites=6, rules=rules)
    replicas = np.array([sorted(rng.choice(6, 4, replace=False).tolist())])
    lost = metrics(problem, replicas, 2, 3, losses=True)
    more = metrics(problem, replicas, 3, 4, losses=False)
    assert lost.worst_read <= more.normal_read
    assert lost.worst_write <= more.normal_write


@pytest.mark.parametrize("seed", seeds(16, 80))
def test_evaluator_against_the_definitions(seed):
    """Every scenario of every kind of loss, and the shortcut for the worst of them."""
    rng = np.random.default_rng([43, seed])
    rules = random_rules(rng, failures=int(rng.integers(1, 3)))
    problem = random_problem(rng, sites=6, rules=rules)
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


def test_threshold_by_hand():
    """Ten requests, nine needed: the slowest client may be left out, no other."""
    latency = np.array([[5.0, 1.0], [3.0, 9.0], [7.0, 2.0]])
    assert threshold(latency, np.array([4, 5, 1]), 9).tolist() == [5.0, 9.0]
    assert threshold(latency, np.array([4, 5, 1]), 0).tolist() == [0.0, 0.0]


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
