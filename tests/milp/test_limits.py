"""Limits, interrupts and claims of the solver: honest, together and leader by leader."""

import dataclasses
import itertools
import math
import threading
import time
from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given, settings

from formulations.linear.leader_search import LeaderSearch
from formulations.milp import cutting_rounds as search_module
from formulations.milp import find_start as start_module
from formulations.milp import program_model as model_module
from formulations.milp.recipes import Recipe
from formulations.solvers.highs import HighsResult
from formulations.solvers.statuses import StopReason, Verdict
from placement import Diversity, Operation, Problem, SolverError, Status, Termination, solve
from placement.feasibility.feasible_plans import find_feasible, reasons_infeasible, violations
from placement.testing import random_instance
from tests.effort import examples, seeds
from tests.expected import like_enumeration
from tests.milp.worlds import hopeless, sphere
from tests.reference import small
from tests.strategies import problems

TOGETHER = {"leaders": "together"}
HARD = Problem(sphere(40, seed=5), replicas=6, voters=5)


SLOW_RECIPE = {"recipe": "membership", "reduce": False}
WAYS = [("milp", SLOW_RECIPE), ("cp-sat", {"start": "none"}), ("cp-sat", {"start": "best-of"})]


@pytest.mark.parametrize("limit", [0, 0.05, 0.5])
@pytest.mark.parametrize(("method", "asked"), WAYS)
def test_time_limit(method, asked, limit):
    plan = solve(HARD, method, time_limit=limit, settings=asked)
    stopped, finished = Termination.TIME_LIMIT, Termination.FINISHED
    proven = plan.status is Status.OPTIMAL and limit > 0  # on a quick machine
    assert plan.termination is (finished if proven else stopped)
    assert plan.status is (Status.OPTIMAL if proven else Status.FEASIBLE)
    assert plan.bound > 0 or (method == "cp-sat" and limit < 0.5)
    assert not violations(HARD, plan.configuration)
    assert plan.bound <= solve(HARD, "exact").objective <= plan.objective


def test_interrupt_gives_the_best_so_far():
    for patience in (1, 2):
        heard = []

        def press(progress, heard=heard, patience=patience):
            heard.append(progress)
            if len(heard) == patience:
                raise KeyboardInterrupt

        plan = solve(HARD, "milp", progress=press, settings=SLOW_RECIPE)
        assert plan.termination is Termination.INTERRUPTED
        assert plan.found
        assert plan.bound < plan.objective


def test_a_value_of_highs_is_not_better_than_the_evaluators(monkeypatch):
    """HiGHS's objective may lie below the evaluator's by rounding: no report may take that back."""
    real, told = search_module.run_highs, []

    def rounding_down(program, guard, **kwargs):
        outcome = real(program, guard, **kwargs)
        told.append(outcome.objective)
        guard.report(outcome.objective * (1 - 1e-8), outcome.bound)
        return outcome

    monkeypatch.setattr(search_module, "run_highs", rounding_down)
    heard = []
    problem = Problem(sphere(9, seed=2), replicas=4, voters=3)
    plan = solve(problem, "milp", progress=heard.append, settings={**TOGETHER, "start": "none"})
    assert told
    assert plan.objective <= min(progress.incumbent for progress in heard)


def assert_improving(heard, plan):
    """Incumbents fall, bounds rise, and neither passes the other."""
    assert heard[-1].incumbent == plan.objective
    for before, after in itertools.pairwise(heard):
        assert after.incumbent <= before.incumbent
        assert before.bound <= after.bound <= after.incumbent * (1 + 1e-9)


PARTS = ("add_roles", "add_nearest", "add_forwarding", "add_quorum", "compile_program")


def test_every_part_of_the_work_is_reported(monkeypatch):
    """In the heuristic, and between the parts of the one program."""
    here, reports = [], Counter()
    for name in PARTS:
        real = getattr(model_module, name)

        def part(*args, name=name, real=real, **kwargs):
            here.append(name)
            return real(*args, **kwargs)

        monkeypatch.setattr(model_module, name, part)
    heard = []

    def listen(progress):
        heard.append(progress)
        reports[here[-1] if here else "start"] += 1

    problem = Problem(sphere(20, seed=3), replicas=5, voters=3)
    plan = solve(problem, "milp", progress=listen, settings=TOGETHER)
    assert plan.status is Status.OPTIMAL
    assert reports["start"] >= 2
    for name in PARTS:
        assert reports[name] >= plan.stats["programs"] >= 1
    assert all(progress.bound > 0 for progress in heard)
    assert_improving(heard, plan)


@pytest.mark.parametrize(("method", "asked"), [("milp", {}), ("cp-sat", {"start": "none"})])
def test_a_report_before_each_leader(method, asked):
    heard = []

    def listen(progress):
        assert threading.current_thread() is threading.main_thread()
        heard.append(progress)

    problem = Problem(sphere(20, seed=3), replicas=5, voters=3)
    plan = solve(problem, method, progress=listen, settings=asked)
    assert plan.status is Status.OPTIMAL
    assert len(heard) > plan.stats["leaders"] == 20
    assert_improving(heard, plan)


@pytest.mark.parametrize("part", PARTS)
def test_the_limit_is_kept_while_a_program_is_built(monkeypatch, part):
    """On a clock that jumps while one part is built, nothing after that part is begun."""
    began, ahead, late = time.perf_counter(), [0.0], []
    real = getattr(model_module, part)

    def slow(*args, **kwargs):
        ahead[0] = 1000.0
        return real(*args, **kwargs)

    def solved(*args, **kwargs):
        late.append(args)
        raise AssertionError("HiGHS was called after the limit")

    def clock():
        return began + ahead[0]

    monkeypatch.setattr(model_module, part, slow)
    monkeypatch.setattr(search_module, "run_highs", solved)
    monkeypatch.setattr(search_module, "prove_by_branching", solved)
    monkeypatch.setattr(search_module.time, "perf_counter", clock)
    problem = Problem(sphere(12, seed=1), replicas=4, voters=3)
    start = find_feasible(problem)
    plan = solve(problem, "milp", time_limit=100, start=start, settings=TOGETHER)
    assert not late
    assert plan.termination is Termination.TIME_LIMIT
    assert plan.found
    assert 0 < plan.bound <= plan.objective


RELAYED = (0.1, 0.8, 0.05, 0.03, 0.02)
"""A mix in which most operations go by way of the leader, where relaxations are weak."""


@settings(max_examples=examples(60))
@given(problems(min_sites=3))
def test_bounds_hold_at_every_report(problem):
    truth = solve(problem, "exhaustive")
    assume(truth.found)
    heard = []
    worst = find_feasible(problem)
    plan = solve(problem, "milp", start=worst, progress=heard.append)
    assert plan.status is Status.OPTIMAL
    ends = [(-math.inf, math.inf)]
    for report in heard:
        assert report.bound <= truth.objective * (1 + 1e-9)
        assert report.incumbent >= truth.objective * (1 - 1e-9)
        assert report.bound >= ends[-1][0] - 1e-9 * abs(ends[-1][0])
        assert report.incumbent <= ends[-1][1]
        ends.append((report.bound, report.incumbent))


@pytest.mark.parametrize("patience", [1, 3])
def test_interrupted_between_leaders(monkeypatch, patience):
    problem = Problem(sphere(10, seed=1, mix=RELAYED), replicas=4, voters=3)
    best = solve(problem, "milp")
    real = LeaderSearch._close
    calls = []

    def press(self, *args):
        calls.append(self)
        if len(calls) == patience:
            raise KeyboardInterrupt
        real(self, *args)

    monkeypatch.setattr(LeaderSearch, "_close", press)
    start = find_feasible(problem)
    plan = solve(problem, "milp", start=start)
    assert len(calls) == patience
    assert plan.termination is Termination.INTERRUPTED
    assert plan.found
    assert 0 < plan.bound <= best.objective <= plan.objective


@pytest.mark.parametrize("method", ["milp", "cp-sat"])
def test_no_time_at_all(method):
    problem = Problem(sphere(12, seed=1, mix=RELAYED), replicas=4, voters=3)
    start = find_feasible(problem)
    plan = solve(problem, method, start=start, time_limit=0)
    assert plan.termination is Termination.TIME_LIMIT
    assert plan.status is Status.FEASIBLE
    assert plan.configuration == start
    assert plan.bound <= solve(problem, "exhaustive").objective


@pytest.mark.parametrize(("method", "asked"), [("milp", {}), ("milp", TOGETHER), ("cp-sat", {})])
def test_a_gap_that_was_asked_for(method, asked):
    problem = Problem(sphere(12, seed=1, mix=RELAYED), replicas=4, voters=3)
    start = find_feasible(problem)
    plan = solve(problem, method, start=start, gap_limit=0.3, settings=asked)
    assert plan.gap <= 0.3
    assert plan.bound <= solve(problem, "exhaustive").objective <= plan.objective
    if plan.gap > 1e-9:
        assert plan.termination is Termination.GAP_LIMIT


def test_most_leaders_need_no_program():
    """The decomposition pays: floors close leaders, and a program the rest."""
    problem = Problem(sphere(20, seed=3), replicas=5, voters=3)
    plan = solve(problem, "milp")
    assert plan.status is Status.OPTIMAL
    assert plan.stats["leaders"] == 20
    assert plan.stats["open"] < 20
    assert plan.stats["programs"] <= 2 * plan.stats["open"]


def test_a_run_ends_when_its_bound_is_enough(monkeypatch):
    problem = Problem(sphere(10, seed=2), replicas=3, voters=3)
    truth = solve(problem, "exhaustive")
    asked = []
    real = search_module.run_highs

    def early(program, guard, **kwargs):
        asked.append(guard.enough)
        outcome = real(program, guard, **kwargs)
        if outcome.bound < guard.enough:
            return outcome
        return HighsResult(
            Verdict.STOPPED, StopReason.ENOUGH, None, math.inf, guard.enough, 1, 1, 0.0
        )

    monkeypatch.setattr(search_module, "run_highs", early)
    plan = solve(problem, "milp", start=truth.configuration, settings=TOGETHER)
    assert asked
    assert all(math.isfinite(enough) for enough in asked)
    assert plan.status is Status.OPTIMAL
    assert plan.bound <= truth.objective * (1 + 1e-12)


@pytest.mark.parametrize("method", ["milp", "cp-sat"])
@pytest.mark.parametrize("seed", seeds(8, 8))
def test_one_program_where_no_leader_matters(method, seed):
    """Weak reads: whole RTTs that tie, clients without demand, one site, few or pinned leaders."""
    rng = np.random.default_rng(seed)
    size = seed + 1
    instance = sphere(size, seed=seed, mix=(1, 0, 0, 0, 0))
    counts = instance.counts * rng.integers(0, 2, (size, 1)) + (size == 1)
    instance = instance.replace(client_rtt=np.ceil(instance.client_rtt / 50), counts=counts)
    some = rng.permutation(instance.sites)[: 1 + size // 2].tolist()
    for rules in ({}, {"leaders": some}, {"leader": some[0]}, {"forbidden": some[1:]}):
        problem = Problem(instance, replicas=min(size, 3), voters=min(size, 1 + seed % 2), **rules)
        plan = like_enumeration(problem, method)
        assert plan.stats.get("programs", plan.stats.get("models", 0)) <= 1


def infeasible(*args, **kwargs):
    return HighsResult(Verdict.INFEASIBLE, None, None, math.inf, math.inf, 0, 0, 0.0)


def changed_answers(monkeypatch, change):
    """Let HiGHS answer otherwise: `change` returns the fields that differ."""
    real = search_module.run_highs

    def answer(program, *args, **kwargs):
        outcome = real(program, *args, **kwargs)
        return dataclasses.replace(outcome, **change(program, outcome))

    monkeypatch.setattr(search_module, "run_highs", answer)


def without_voters(program, outcome):
    values = outcome.values.copy()
    values[[j for j, var in enumerate(program.columns) if var.name.startswith("v[")]] = 0
    return {"values": values}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        # HiGHS's number must be the evaluator's, to a relative 1e-6
        (lambda _, said: {"objective": said.objective * (1 - 2e-6)}, "evaluator"),
        # a configuration below the claimed bound refutes it
        (lambda _, said: {"bound": said.bound * 1.001}, "bound"),
        # rounded binaries are checked against the constraints, not against HiGHS's tolerances
        (without_voters, "breaks"),
    ],
)
def test_a_wrong_answer_is_an_error(monkeypatch, change, words):
    problem = Problem(sphere(6), replicas=3, voters=3)
    start = solve(problem, "exhaustive").configuration if words == "bound" else None
    changed_answers(monkeypatch, change)
    with pytest.raises(SolverError, match=words):
        solve(problem, "milp", start=start, settings=TOGETHER)


def test_optimal_with_a_bound_that_does_not_meet_it(monkeypatch):
    """HiGHS says "optimal" and reports a lower bound: the safe proof decides, with a note."""
    changed_answers(monkeypatch, lambda _, said: {"bound": said.bound * 0.99})
    problem = Problem(sphere(6), replicas=3, voters=3)
    plan = like_enumeration(problem, "milp", settings=TOGETHER)
    assert plan.stats["proof_nodes"] >= 1
    assert any("HiGHS said optimal" in note for note in plan.notes)


def test_votes_and_relays_apart_on_a_small_world():
    """A generated instance whose relaxation is 0.9 % below the optimum."""
    rows = "64316 35376 74617 47671 23162 53247 24442 31636"
    tenths = [[int(digit) for digit in row] for row in rows.split()]
    waits = "0 30 45 25 50 30 0 40 30 25 45 40 0 30 30 25 30 30 0 50 50 25 30 50 0"
    between = np.array(waits.split(), dtype=float).reshape(5, 5) / 100
    counts = [[12, 42], [12, 4], [23, 24], [34, 43], [42, 11], [27, 38], [23, 25], [6, 10]]
    instance = small(
        tuple(f"s{i}" for i in range(5)),
        np.array(tenths) / 10,
        between,
        counts,
        operations=(Operation("relay only", relay=1), Operation("votes only", quorum=1)),
        domains={"zone": ("z4", "z0", "z3", "z0", "z0")},
    )
    problem = Problem(
        instance,
        replicas=(1, 3),
        voters=2,
        diversity=[Diversity("zone", cap=2), Diversity("zone", role="replicas", min_domains=1)],
    )
    plan = solve(problem, "milp", settings={"recipe": "per-leader", "start": "none"})
    assert plan.status is Status.OPTIMAL
    assert plan.objective == pytest.approx(64.75, rel=1e-12)


def conflict():
    """Two voters, one per region and one per provider: s0 must vote, and its only partner may not.

    Each rule can be met alone, so that counting does not show the conflict.
    """
    world = sphere(4).replace(
        domains={"region": ("a", "a", "b", "b"), "provider": ("p", "q", "p", "q")}
    )
    problem = Problem(
        world,
        replicas=3,
        voters=2,
        pinned_voters=["s0"],
        non_voters=["s3"],
        diversity=[Diversity("region"), Diversity("provider")],
    )
    assert not reasons_infeasible(problem)
    return problem


def test_infeasible_by_two_searches():
    problem = conflict()
    assert solve(problem, "exhaustive").status is Status.INFEASIBLE
    plan = solve(problem, "milp", settings=TOGETHER)
    assert plan.status is Status.INFEASIBLE
    assert any("HiGHS" in reason and "complete search" in reason for reason in plan.reasons)


@pytest.mark.parametrize("method", ["milp", "cp-sat"])
def test_the_complete_search_proves_infeasible_without_time(method):
    """No time is left for the programs: what was proven before them stays."""
    plan = solve(conflict(), method, time_limit=0)
    assert (plan.status, plan.termination) == (Status.INFEASIBLE, Termination.FINISHED)
    assert "complete search" in plan.reasons[0]


def test_infeasible_is_confirmed_leader_by_leader(monkeypatch):
    """Where the complete search gives up, the programs of single leaders are asked."""
    monkeypatch.setattr(start_module, "HEURISTICS", ())
    monkeypatch.setattr(start_module, "find_feasible", hopeless)
    plan = solve(conflict(), "milp", settings=TOGETHER)
    assert plan.status is Status.INFEASIBLE
    assert any("leader by leader" in note for note in plan.notes)


def test_a_plan_found_leader_by_leader_wins(monkeypatch):
    """HiGHS calls a feasible problem infeasible, twice: the other search's plan is returned."""
    monkeypatch.setattr(start_module, "HEURISTICS", ())
    monkeypatch.setattr(start_module, "find_feasible", hopeless)
    monkeypatch.setattr(search_module, "run_highs", infeasible)
    problem = Problem(sphere(6), replicas=3, voters=3)
    plan = like_enumeration(problem, "milp", settings=TOGETHER)
    assert any("HiGHS called" in note for note in plan.notes)


def test_a_lie_of_presolve_is_found_out(monkeypatch):
    """Infeasible with presolve, solved without: the second run counts, and a note says so."""
    real = search_module.run_highs

    def lying(program, guard, *, presolve=True, **kwargs):
        return real(program, guard, presolve=False, **kwargs) if not presolve else infeasible()

    monkeypatch.setattr(search_module, "run_highs", lying)
    problem = Problem(sphere(6), replicas=3, voters=3)
    plan = like_enumeration(problem, "milp", settings=TOGETHER)
    assert any("presolve" in note for note in plan.notes)


def test_infeasible_against_a_known_configuration_is_an_error(monkeypatch):
    """A start that obeys all rules refutes the solver."""
    monkeypatch.setattr(search_module, "run_highs", infeasible)
    with pytest.raises(SolverError, match="feasible configuration is known"):
        solve(Problem(sphere(6), replicas=3, voters=3), "milp", settings=TOGETHER)


@pytest.mark.parametrize("recipe", [r.value for r in Recipe])
def test_every_recipe_finds_the_optimum(recipe):
    """HiGHS 1.14.0 claims a bound 1.6 % above the optimum here; 1.13.1 and 1.16.0 find it.

    The dependency leaves that version out; this test would see the fault come back in another.
    """
    problem = Problem(
        random_instance(572, sites=7, clients=8),
        replicas=4,
        voters=3,
        leaders=["site-2", "site-4", "site-6"],
        diversity=[Diversity("region", min_domains=2), Diversity("continent", min_domains=2)],
    )
    like_enumeration(problem, "milp", settings={**TOGETHER, "recipe": recipe, "start": "none"})
