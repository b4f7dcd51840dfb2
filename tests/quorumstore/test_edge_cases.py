"""Cases that go wrong in models of this kind, requests without a plan, and early ends."""

from __future__ import annotations

import dataclasses
import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulations.quorumstore import QuorumMethod, one_key
from formulations.quorumstore.covering_model import (
    Cover,
    CoverDemand,
    CoveringModel,
    CpSatCovering,
    HighsCovering,
    covering_model,
)
from formulations.quorumstore.enumeration import CompiledSearch, Enumeration, solve
from formulations.quorumstore.keys import solve_batch
from formulations.quorumstore.one_key import place
from formulations.quorumstore.threshold_bisection import Bisection
from formulations.quorumstore.threshold_bisection import solve as bisect
from formulations.solvers.cpsat import CpSatResult
from placement.errors import InputError, LimitError, SolverError, UnsupportedError
from placement.quorumstore import (
    Goal,
    LossScope,
    QuorumConfiguration,
    QuorumPlan,
    QuorumProblem,
    Redirect,
    StoreRules,
    Target,
    ThresholdLimits,
    evaluate,
    loss_thresholds,
    metrics,
    structural_reasons,
)
from placement.support.status import Status, Termination
from tests.effort import seeds
from tests.quorumstore.instances import random_problem, random_rules
from tests.quorumstore.referee import every_configuration, losses, scenario_matrix, thresholds

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
    assert line(failures=10**18).losses == ()  # more sites than there are


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
    with pytest.raises(InputError):
        Goal(**options)


def test_bad_evaluations():
    for replicas, read in ((["z"], 1), (["a", "a"], 1), ([], 1), (["a", "b"], 3), (["a"], 0)):
        with pytest.raises(InputError):
            evaluate(line(), replicas, read, 1)
    with pytest.raises(InputError, match="no configuration"):
        solve(line(max_replicas=2)).replicas  # noqa: B018 - the property itself must refuse


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
    reach = method(asked.with_goal(Goal(Target.READS)))
    for name in (QuorumMethod.ENUMERATION, QuorumMethod.CP_SAT, QuorumMethod.MILP):
        (sentence,) = place(asked, name).reasons
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


def key(seed=60, sites=8):
    rng = np.random.default_rng(seed)
    rtt = rng.uniform(5, 200, (sites, sites))
    return QuorumProblem(
        rtt, rng.integers(1, 9, sites), rng.integers(1, 9, sites), rules=StoreRules(True)
    )


class Interrupting(CpSatCovering):
    """Answers a few questions, then behaves like Ctrl-C or a clock that has run out."""

    def __init__(self, answers, error):
        super().__init__()
        self.answers, self.error = answers, error

    def __call__(self, model, seconds=math.inf):
        self.answers -= 1
        if self.answers < 0:
            raise self.error
        return super().__call__(model, seconds)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), TimeoutError()])
def test_bound_is_honest_when_bisection_stops(error):
    """At any moment: bound <= optimum <= value, and the reason for stopping is kept."""
    problem = key()
    optimum = solve(problem).value
    for answers in (0, 1, 2, 4, 7, 11):
        plan = bisect(problem, Interrupting(answers, error))
        assert plan.bound <= optimum <= plan.value, answers
        assert plan.termination in (Termination.INTERRUPTED, Termination.TIME_LIMIT)
        if plan.configuration is None:
            assert plan.status is Status.UNKNOWN


def test_time_limit_of_zero():
    plan = bisect(key(), CpSatCovering(), time_limit=0.0)
    assert (plan.status, plan.termination) == (Status.UNKNOWN, Termination.TIME_LIMIT)


def test_ctrl_c_while_cp_sat_runs(monkeypatch):
    """The answer is "interrupted", not "out of time"."""
    stopped = CpSatResult(interrupted=True)
    monkeypatch.setattr(f"{CpSatCovering.__module__}.run_solver", lambda *args, **named: stopped)
    assert bisect(key(), CpSatCovering()).termination is Termination.INTERRUPTED


def test_false_infeasible_is_confirmed(monkeypatch):
    """An "infeasible" of the presolved run does not stand when the other run finds a point."""
    problem = key()
    honest = HighsCovering._ask

    def lying(self, mip, model, presolve, seconds):
        return None if presolve else honest(self, mip, model, presolve, seconds)

    monkeypatch.setattr(HighsCovering, "_ask", lying)
    covering = HighsCovering()
    plan = solve(problem)
    pair = (plan.configuration.size, plan.read_quorum, plan.write_quorum)
    found = covering(covering_model(problem, *pair, ThresholdLimits(*[plan.value] * 4)))
    assert metrics(problem, [found], *pair[1:]).worst_read[0] <= plan.value
    assert "infeasible" in covering.notes[0]


def test_wrong_point_is_decided_by_cpsat(monkeypatch):
    model = CoveringModel(4, 2, (Cover((2, 3), 2),), (CoverDemand(((0, 5),), 5),), ())
    monkeypatch.setattr(HighsCovering, "_ask", lambda *_: (0, 1))
    covering = HighsCovering()
    assert covering(model) == (2, 3)
    assert "CP-SAT decided" in covering.notes[0]


def test_busy_keys_do_not_escape_the_tolerances():
    """Counts of 10^14: one request too few is too few, for HiGHS as well."""
    heavy = 10**14
    rtt = np.array([[1.0, 5, 9, 20], [5, 1, 9, 20], [9, 9, 1, 20], [20, 20, 20, 1]])
    problem = QuorumProblem(
        rtt, [9 * heavy // 10 - 1, heavy // 10 + 1, 0, 0], [0] * 4, rules=StoreRules(replicas=3)
    )
    assert problem.needed_reads == 9 * heavy // 10
    values = {bisect(problem, covering()).value for covering in (HighsCovering, CpSatCovering)}
    assert values == {solve(problem).value} == {5.0}


def test_bisection_refuses_wrong_answers():
    class Wrong(CpSatCovering):
        def __call__(self, model, seconds=math.inf):
            return tuple(range(model.replicas))

    problem = key()
    with pytest.raises(SolverError, match="does not meet its limits"):
        Bisection(problem, Wrong()).minimise(problem.goal)


def test_automatic_choice(monkeypatch):
    """Enumeration for few sets, CP-SAT beyond and where the compiled search was not built."""
    problem = key()
    assert place(problem).method == "enumeration"
    monkeypatch.setattr(one_key, "_ENUMERABLE", 10)
    assert place(problem).method == "cp-sat bisection"
    monkeypatch.setattr(one_key, "_ENUMERABLE", 1_000)
    pairs_lost = dataclasses.replace(problem, rules=StoreRules(True, failures=2))
    weighted = pairs_lost.with_goal(Goal(Target.WEIGHTED))
    assert place(pairs_lost).method == "enumeration"
    assert place(weighted).method == "cp-sat bisection"
    monkeypatch.setattr(one_key, "compiled_available", lambda: False)
    assert place(problem).method == "cp-sat bisection"
    everything = Goal(Target.WEIGHTED, normal_weight=1.0, worst_weight=1.0)
    with pytest.raises(UnsupportedError, match="enumeration"):
        place(dataclasses.replace(problem, goal=everything), QuorumMethod.MILP)
    with pytest.raises(InputError, match="unknown method"):
        place(problem, "radius")


@pytest.mark.parametrize("goal", [Goal(), Goal(Target.WEIGHTED, read_weight=2.0)])
def test_enumeration_interrupted(goal, monkeypatch):
    """Ctrl-C before any list or pass: the best so far, with a valid bound."""
    problem = key().with_goal(goal)
    optimum = solve(problem).value
    for name in ("run", "choose", "sets"):
        for allowed in range(4):
            honest, calls = getattr(CompiledSearch, name), [0]

            def interrupted(self, *arguments, honest=honest, calls=calls, allowed=allowed):
                calls[0] += 1
                if calls[0] > allowed:
                    raise KeyboardInterrupt
                return honest(self, *arguments)

            with monkeypatch.context() as patch:
                patch.setattr(CompiledSearch, name, interrupted)
                plan = solve(problem)
            assert plan.bound <= optimum <= plan.value
            if calls[0] > allowed:
                assert plan.termination is Termination.INTERRUPTED
            else:
                assert plan.value == optimum


def test_too_many_sets_are_refused():
    large = QuorumProblem(np.ones((300, 300)), [1] * 300, [1] * 300)
    with pytest.raises(LimitError, match="bisection"):
        solve(large)


def test_interrupted_key_is_no_answer_for_a_table(monkeypatch):
    problem = key()

    def interrupted(self, *arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(CompiledSearch, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        solve_batch(problem, problem.reads[np.newaxis], problem.writes[np.newaxis])
