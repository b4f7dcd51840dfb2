"""Leader by leader: the same answers as with all leaders in one program, honest at any moment."""

import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from formulations.milp import cutting_rounds as search_module
from formulations.milp import per_leader as apart_module
from formulations.milp.cutting_rounds import CuttingRounds
from formulations.solvers.highs import HighsResult
from formulations.solvers.statuses import StopReason, Verdict
from placement import Problem, Status, Termination, solve
from placement.feasibility.feasible_plans import find_feasible
from tests.effort import examples
from tests.milp.worlds import sphere
from tests.strategies import problems

APART = {"leaders": "apart"}
RELAYED = (0.1, 0.8, 0.05, 0.03, 0.02)
"""A mix in which most operations go by way of the leader, where relaxations are weak."""


@settings(max_examples=examples(80))
@given(problems(), st.sampled_from(["local-search", "none", "most-writes"]))
def test_same_answer_as_together(problem, start):
    """Value, status and bound, from good and from bad starts."""
    plans = [
        solve(problem, "milp", settings={"leaders": leaders, "start": start})
        for leaders in ("apart", "together")
    ]
    assert plans[0].status == plans[1].status
    if plans[0].found:
        assert math.isclose(plans[0].objective, plans[1].objective, rel_tol=1e-9)


@settings(max_examples=examples(60))
@given(problems(min_sites=3))
def test_bounds_hold_at_every_report(problem):
    """No report claims a bound above the optimum; bounds rise and incumbents fall."""
    truth = solve(problem, "exhaustive")
    assume(truth.found)
    heard = []
    worst = find_feasible(problem)
    plan = solve(problem, "milp", start=worst, settings=APART, progress=heard.append)
    assert plan.status is Status.OPTIMAL
    ends = [(-math.inf, math.inf)]
    for report in heard:
        assert report.bound <= truth.objective * (1 + 1e-9)
        assert report.incumbent >= truth.objective * (1 - 1e-9)
        assert report.bound >= ends[-1][0] - 1e-9 * abs(ends[-1][0])
        assert report.incumbent <= ends[-1][1]
        ends.append((report.bound, report.incumbent))


@pytest.mark.parametrize(("stage", "patience"), [("relax", 3), ("run_rounds", 1)])
def test_interrupted_between_leaders(monkeypatch, stage, patience):
    """Ctrl-C between leaders: what was proved stays, the bound is that of all leaders."""
    problem = Problem(sphere(10, seed=1, mix=RELAYED), replicas=4, voters=3)
    best = solve(problem, "milp")
    real = getattr(CuttingRounds, stage)
    calls = []

    def press(self):
        calls.append(self)
        if len(calls) == patience:
            raise KeyboardInterrupt
        real(self)

    monkeypatch.setattr(CuttingRounds, stage, press)
    start = find_feasible(problem)
    plan = solve(problem, "milp", start=start, settings={**APART, "recipe": "textbook"})
    assert len(calls) == patience
    assert plan.termination is Termination.INTERRUPTED
    assert plan.found
    assert 0 < plan.bound <= best.objective <= plan.objective


def test_no_time_at_all():
    """The start and the static bound."""
    problem = Problem(sphere(12, seed=1, mix=RELAYED), replicas=4, voters=3)
    start = find_feasible(problem)
    plan = solve(problem, "milp", start=start, time_limit=0, settings=APART)
    assert plan.termination is Termination.TIME_LIMIT
    assert plan.status is Status.FEASIBLE
    assert plan.configuration == start
    assert 0 < plan.bound <= solve(problem, "exhaustive").objective


def test_a_gap_that_was_asked_for():
    """Every leader may stop at the gap; the gap shown is the one that was reached."""
    problem = Problem(sphere(12, seed=1, mix=RELAYED), replicas=4, voters=3)
    start = find_feasible(problem)
    plan = solve(problem, "milp", start=start, gap_limit=0.3, settings=APART)
    assert plan.gap <= 0.3
    assert plan.bound <= solve(problem, "exhaustive").objective <= plan.objective
    if plan.gap > 1e-9:
        assert plan.termination is Termination.GAP_LIMIT


def test_most_leaders_need_no_integer_search():
    """The decomposition pays: the relaxation closes nearly all leaders."""
    problem = Problem(sphere(20, seed=3), replicas=5, voters=3)
    plan = solve(problem, "milp", settings=APART)
    assert plan.status is Status.OPTIMAL
    assert plan.stats["leaders"] == 20
    assert plan.stats["leaders_searched"] <= 3


@pytest.mark.parametrize("proof", ["solver", "safe"])
def test_a_leader_that_cannot_do_better_is_not_an_error(monkeypatch, proof):
    """HiGHS calls the programs of all other leaders infeasible: nothing there is as good.

    The plan must come out all the same; with safe proofs HiGHS's word is not used at all.
    """
    problem = Problem(sphere(10, seed=2), replicas=3, voters=3)
    truth = solve(problem, "exhaustive")
    real = search_module.run_highs
    leaders = []

    def gloomy(program, *args, **kwargs):
        names = {var.name for var in program.columns if var.name.startswith("y[")}
        leaders.append(names)
        if names == {f"y[{truth.configuration.leader}]"}:
            return real(program, *args, **kwargs)
        return HighsResult(Verdict.INFEASIBLE, None, None, math.inf, math.inf, 0, 0, 0.0)

    monkeypatch.setattr(search_module, "run_highs", gloomy)
    monkeypatch.setattr(CuttingRounds, "relax", lambda self: None)  # leave everything to HiGHS
    plan = solve(
        problem,
        "milp",
        start=truth.configuration,
        settings={**APART, "recipe": "textbook", "proof": proof},
    )
    assert any(names != {f"y[{truth.configuration.leader}]"} for names in leaders)
    assert plan.status is Status.OPTIMAL
    assert plan.objective == truth.objective


def test_a_run_ends_when_its_bound_is_enough(monkeypatch):
    """HiGHS is told where to stop, and its bound at that point closes the leader."""
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
    monkeypatch.setattr(CuttingRounds, "relax", lambda self: None)
    plan = solve(problem, "milp", start=truth.configuration, settings=APART)
    assert asked
    assert all(math.isfinite(enough) for enough in asked)
    assert plan.status is Status.OPTIMAL
    assert plan.bound <= truth.objective * (1 + 1e-12)


def test_one_leader_is_one_program():
    """A pinned leader leaves nothing to split."""
    problem = Problem(sphere(8), replicas=3, voters=3, leader="s2")
    terms = []
    real = apart_module._led_by

    def note(all_terms, leader):
        terms.append(leader)
        return real(all_terms, leader)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(apart_module, "_led_by", note)
        plan = solve(problem, "milp", settings=APART)
    assert set(terms) == {2}
    assert plan.objective == solve(problem, "exhaustive").objective
