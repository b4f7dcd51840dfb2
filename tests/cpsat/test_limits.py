"""CP-SAT: ends, whole numbers with their stated error, and why there is no plan."""

import _thread
import itertools
import math
import signal
import threading
import time
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ortools.sat.python import cp_model

import placement
from formulations import minimal_conflict as explain
from formulations.linear import cpsat as method
from formulations.linear.leader_program import Expression
from formulations.solvers import cpsat as search
from formulations.solvers.statuses import Verdict
from placement import (
    Contingency,
    Diversity,
    Instance,
    Operation,
    Prices,
    Problem,
    Status,
    Termination,
)
from placement.errors import InputError, SolverError
from placement.feasibility.feasible_plans import find_feasible, reasons_infeasible, violations
from placement.methods.options import Options
from placement.methods.registry import load_method, run
from placement.model.configuration import Configuration
from placement.plan import objective_value
from placement.testing import random_instance
from tests.effort import examples
from tests.expected import like_enumeration
from tests.strategies import problems

CP_SAT = load_method("cp-sat")


def large(sites=40, clients=80, replicas=8):
    return Problem(random_instance(3, sites=sites, clients=clients), replicas=replicas, voters=3)


def small():
    return large(sites=12, clients=9, replicas=3)


COLD = Options(settings={"start": "none"})


@pytest.mark.usefixtures("uncollected")
def test_ctrl_c_in_the_middle_of_a_solve():
    problem = large(sites=60, clients=200, replicas=12)
    reached = threading.Event()

    def press():
        reached.wait(60)
        time.sleep(0.3)
        _thread.interrupt_main()

    thread = threading.Thread(target=press)
    thread.start()
    try:
        plan = run(CP_SAT, problem, Options(progress=lambda _: reached.set(), time_limit=60))
    finally:
        reached.set()
        thread.join()
    assert plan.termination is Termination.INTERRUPTED
    assert not violations(problem, plan.configuration)
    assert plan.bound <= plan.objective == objective_value(problem, plan.configuration)


def test_an_error_of_the_listener_is_not_swallowed():
    def listen(report):
        raise RuntimeError("listener")

    with pytest.raises(RuntimeError, match="listener"):
        run(CP_SAT, large(), Options(progress=listen))


def hard_model():
    model = cp_model.CpModel()
    literals = [model.new_bool_var(f"b{i}") for i in range(12)]
    model.minimize(sum(literals))
    return model


def test_a_solver_that_keeps_no_limit_is_left_alone(monkeypatch):
    """The solver finds a solution, then neither returns nor listens."""
    release = threading.Event()

    class Deaf(cp_model.CpSolver):
        def solve(self, model, solution_callback=None):
            status = super().solve(model, solution_callback)
            release.wait(30)
            return status

        def stop_search(self):
            pass

    monkeypatch.setattr(search, "_GRACE", 0.05)
    monkeypatch.setattr(search, "_TICK", 0.01)
    solver = Deaf()
    solver.parameters.catch_sigint_signal = False  # it would leave Ctrl-C without its handler
    answer = search.run_solver(solver, hard_model(), seconds=0.05)
    assert answer.verdict is Verdict.STOPPED
    assert answer.values == [0] * 12
    before = vars(answer).copy()
    release.set()
    time.sleep(0.1)
    assert vars(answer) == before  # what the late solver says changes nothing any more


def test_ctrl_c_after_a_solve_is_still_that_of_python():
    run(CP_SAT, small(), COLD)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_a_failing_solver_is_a_solver_error():
    class Broken(cp_model.CpSolver):
        def solve(self, model, solution_callback=None):
            raise ValueError("out of cheese")

    with pytest.raises(SolverError, match="out of cheese"):
        search.run_solver(Broken(), hard_model())


def test_an_invalid_model_is_a_solver_error():
    model = cp_model.CpModel()
    x = model.new_int_var(0, 2**40, "x")
    model.minimize(2**40 * x)
    with pytest.raises(SolverError, match="invalid"):
        search.run_solver(search.new_solver(seconds=None, seed=0, threads=1), model)


def test_a_solver_that_denies_a_known_plan_is_caught(monkeypatch):
    monkeypatch.setattr(
        "formulations.linear.cpsat.run_solver",
        lambda *args, **kwargs: search.CpSatResult(Verdict.INFEASIBLE),
    )
    for start in ("best-of", "none"):
        with pytest.raises(SolverError, match="as good as the one known"):
            run(CP_SAT, small(), Options(settings={"start": start}))


def test_a_wrong_objective_is_caught(monkeypatch):
    true_run = search.run_solver

    def lies(*args, **kwargs):
        answer = true_run(*args, **kwargs)
        if answer.objective is not None:
            answer.objective -= answer.objective // 100
            answer.bound = answer.objective
        return answer

    monkeypatch.setattr("formulations.linear.cpsat.run_solver", lies)
    with pytest.raises(SolverError, match="the evaluator"):
        run(CP_SAT, small(), COLD)


def test_an_unknown_start_is_refused():
    with pytest.raises(InputError, match="unknown method"):
        placement.solve(small(), method="cp-sat", settings={"start": "no-such-method"})


WEAK = (Operation("weak", near=1),)


def line(positions, counts=None, **changes):
    """Clients at sites on a line."""
    at = np.asarray(positions, dtype=float)
    rtt = np.abs(at[:, None] - at)
    names = tuple(f"s{i}" for i in range(len(at)))
    counts = np.ones((len(at), 1)) if counts is None else np.asarray(counts, float)[:, None]
    return Instance(
        sites=names, clients=names, client_rtt=rtt, site_rtt=rtt, counts=counts, operations=WEAK
    ).replace(**changes)


@pytest.mark.parametrize("weight", [1e-12, 1e-3, 1.0, 1e9, 1e15])
@pytest.mark.parametrize("unit", [1 / 3, math.pi, 90.33040026])
def test_any_magnitude_is_proven(weight, unit):
    """A digit that happens to be 0 must not end the refinement (90.33040026 once did)."""
    instance = line(np.array([0, 1, 5, 6, 20, 21.5]) * unit, weight * np.arange(1, 7))
    problem = Problem(instance, replicas=2, voters=1)
    for start in ("none", "best-of"):
        like_enumeration(problem, "cp-sat", settings={"start": start})


@pytest.mark.filterwarnings("ignore::placement.errors.UnitsWarning")
def test_an_absurd_rtt_is_cut_to_the_incumbent():
    """1e17 ms beside 1 ms: without a cut all other terms would round to nothing."""
    far = 1e17
    instance = line([0, 1, 5, 6]).replace(
        client_rtt=np.array(
            [[0, 1, far, far], [1, 0, far, far], [far, far, 0, 1], [far, far, 1, 0]]
        )
    )
    problem = Problem(instance, replicas=2, voters=1)
    truth = placement.solve(problem, method="exhaustive")
    warm = placement.solve(problem, method="cp-sat")
    cold = placement.solve(problem, method="cp-sat", settings={"start": "none"})
    assert warm.status is Status.OPTIMAL
    for plan in (warm, cold):  # from nothing it may not be able to prove it, but never lies
        assert plan.bound <= truth.objective <= plan.objective


@given(problems(max_sites=5, integral=False))
@settings(max_examples=examples(60))
def test_bounds_stay_honest_when_rounding_is_coarse(problem):
    """With a tiny limit the integers are worth three digits; every bound must allow for it."""
    truth = placement.solve(problem, method="exhaustive").objective
    for start in ("none", "best-of"):
        with mock.patch.object(method, "_MOST", 3000.0):
            plan = run(load_method("cp-sat"), problem, Options(settings={"start": start}))
        if plan.found:
            assert plan.bound <= truth * (1 + 1e-12)
            assert plan.objective >= truth * (1 - 1e-12)
        else:
            assert truth == math.inf


def test_the_budget_is_a_constraint_of_the_model():
    instance = line([0, 1, 5, 6, 20]).replace(
        prices=placement.Prices(np.array([0.1, 0.2, 0.7, 0.4, 0.3]))
    )
    for budget in (0.3, 0.30000000001, 0.5, 0.7, 1.1):
        problem = Problem(instance, replicas=2, voters=1, budget=budget)
        plan = like_enumeration(problem, "cp-sat", settings={"start": "none"})
        assert plan.cost <= budget * (1 + 1e-8)


def two_leaders():
    """Strong reads cost exactly 10 from leader s0 and a little less, unrounded, from s1."""
    strong = (Operation("strong", direct=1),)
    rtt = np.array([[10.0, 9.9996]])
    site_rtt = np.array([[0.0, 1.0], [1.0, 0.0]])
    instance = Instance(("s0", "s1"), ("c",), rtt, site_rtt, np.ones((1, 1)), strong)
    return Problem(instance, replicas=1, voters=1)


def test_a_leader_that_is_cut_off_keeps_its_rounding_error():
    """In whole microseconds s1 costs 10,000 too: not better, but its bound must not say 10 ms."""
    problem = two_leaders()
    options = Options(start=Configuration.of(0, (0,), (0,)))
    with mock.patch.object(method, "_MOST", 20_000.0):
        plan = run(load_method("cp-sat"), problem, options)
    assert plan.bound <= 9.9996
    assert placement.solve(problem, method="cp-sat").objective == 9.9996


@pytest.mark.parametrize("voters", [1, 2])
def test_too_few_sites_have_no_plan(voters):
    """Asked directly, as the numeric checks answer before in every other call."""
    problem = Problem(
        random_instance(1, sites=2, clients=1), replicas=2, voters=voters, forbidden=["site-0"]
    )
    assert load_method("cp-sat").call(problem, COLD).status is Status.INFEASIBLE


def world(**changes):
    sites = ("ams", "ber", "cdg", "dub", "ewr", "fra")
    domains = {"country": ("NL", "DE", "FR", "IE", "US", "DE")}
    return random_instance(7, clients=2).replace(**{"sites": sites, "domains": domains, **changes})


def three(**asked):
    return Problem(world(), **{"replicas": 3, "voters": 3, **asked})


def germans():
    """Two sites of one country, of which rules allow one."""
    return three(diversity=[Diversity("country", cap=1)], pinned=["ber", "fra"])


def test_the_conflict_is_named_in_the_words_of_the_problem():
    problem = three(survive="country", pinned_voters=["ber", "fra"])
    # Two pinned voters share Germany; numbers show that, no search is needed.
    assert any("ber, fra" in reason for reason in reasons_infeasible(problem))

    problem = germans()
    assert not reasons_infeasible(problem)
    plan = placement.solve(problem, method="cp-sat")
    assert plan.status is Status.INFEASIBLE
    assert plan.reasons[0] == (
        "with 3 voters, these 3 together have no plan, but without any one of them there is one: "
        "at most 3 replicas; at most 1 of the voters per country; pinned ber, fra"
    )


def test_money_and_places_together():
    """Only the two German sites are within the budget, and two countries are asked for."""
    problem = Problem(
        world(prices=Prices(np.array([9.0, 1, 9, 9, 9, 1]))),
        replicas=2,
        voters=2,
        budget=5,
        pinned=["ber"],
        diversity=[Diversity("country", "replicas", min_domains=2)],
    )
    assert not reasons_infeasible(problem)
    assert placement.solve(problem, method="cp-sat").reasons[0] == (
        "with 2 voters, these 2 together have no plan, but without any one of them there is one: "
        "replicas in at least 2 distinct country domains; a budget of 5 USD"
    )


def test_a_plan_refutes_the_claim():
    with pytest.raises(SolverError, match="here is one"):
        explain.explain_infeasible(three())


def test_the_objective_can_be_part_of_the_conflict():
    problem = Problem(
        world(domains={"country": ("NL", "DE", "DE", "IE", "US", "DE")}),
        replicas=3,
        voters=3,
        pinned=["ber", "fra"],
        objective=Contingency("country"),
    )
    (sentence,) = explain.explain_infeasible(problem)
    assert "the objective: " in sentence
    assert "pinned ber, fra" in sentence


def test_every_method_that_says_infeasible_gets_the_explanation():
    for name in ("exhaustive", "cp-sat", "best-of"):
        plan = placement.solve(germans(), method=name)
        assert plan.status is Status.INFEASIBLE
        assert "pinned ber, fra" in plan.reasons[0]
        assert len(plan.reasons) > 1  # the method's own words come after


def test_sites_without_a_label_are_never_set_free():
    instance = world(domains={"country": ("NL", None, "DE", "DE", "DE", "DE")})
    problem = Problem(
        instance,
        replicas=2,
        voters=2,
        forbidden=["ber", "cdg"],
        leaders=["dub"],
        pinned_voters=["ewr"],
        diversity=Diversity("country", cap=1),
    )
    found, confirmed, _ = explain.minimal_conflict(problem)
    assert confirmed
    assert all(c.words != "ber" for c in found)


@given(problems())
def test_conflicts_are_infeasible_and_minimal(problem):
    feasible = find_feasible(problem) is not None
    found, confirmed, plan = explain.minimal_conflict(problem)
    assert confirmed
    assert (plan is not None) == feasible
    if feasible:
        return
    assert find_feasible(explain.keeping(problem, found)) is None
    for fewer in itertools.combinations(found, len(found) - 1) if found else ():
        assert find_feasible(explain.keeping(problem, fewer)) is not None
    assert explain.explain_infeasible(problem)


@given(problems())
def test_keeping_everything_changes_nothing(problem):
    same = explain.keeping(problem, explain.constraints_of(problem)).rules
    for name, value in vars(problem.rules).items():
        if isinstance(value, np.ndarray):
            assert np.array_equal(value, getattr(same, name)), name
        elif name != "groups" and not name.startswith("nested"):
            assert value == getattr(same, name), name
    assert [g.why for g in same.groups] == [g.why for g in problem.rules.groups]


@given(problems(max_sites=6), st.randoms(use_true_random=False))
def test_both_searches_agree_on_any_subset_of_the_constraints(problem, random):
    """The solver's half by itself: the complete search would make good what it missed."""
    everything = explain.constraints_of(problem)
    guarded = explain._Guarded(problem, everything)
    for _ in range(3):
        kept = [constraint for constraint in everything if random.random() < 0.7]
        plan = find_feasible(explain.keeping(problem, kept))
        core = guarded.core(kept)
        assert (core is None) == (plan is not None)
        assert set(core or ()) <= set(kept)


@pytest.mark.parametrize(
    ("asked", "kinds"),
    [
        ({"leaders": ["fra"], "pinned_voters": ["ber"]}, {"LEADERS", "PINNED_VOTER", "RULE"}),
        ({"leader": "fra", "pinned_voters": ["ber"]}, {"LEADER", "PINNED_VOTER", "RULE"}),
        ({"voters": ["ams", "ber", "fra"]}, {"VOTERS", "RULE"}),
        ({"replicas": ["ams", "ber", "fra"]}, {"REPLICAS", "RULE"}),
        ({"forbidden": ["ams", "cdg"], "non_voters": ["ewr"]}, {"FORBIDDEN", "NON_VOTER", "RULE"}),
        (
            {"survive": "country", "diversity": (), "pinned_voters": ["ber", "fra"]},
            {"SURVIVE", "PINNED_VOTER"},
        ),
    ],
)
def test_the_solver_names_every_kind_of_constraint_by_itself(asked, kinds):
    problem = three(**{"diversity": [Diversity("country")], **asked})
    everything = explain.constraints_of(problem)
    guarded = explain._Guarded(problem, everything)
    core = guarded.core(everything)
    assert core is not None
    assert kinds <= {constraint.kind.name for constraint in core}
    for kind in kinds:
        kept = [constraint for constraint in everything if constraint.kind.name != kind]
        assert guarded.core(kept) is None


def test_ctrl_c_during_the_explanation_keeps_the_answer(monkeypatch):
    def pressed(problem, seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr("placement.feasibility.feasible_plans.explain_infeasible", pressed)
    plan = placement.solve(germans(), method="exhaustive")
    assert plan.status is Status.INFEASIBLE
    assert plan.reasons


@given(
    st.lists(st.floats(-1e4, 1e9), min_size=2, max_size=20),
    st.floats(1, 1e9),
    st.sampled_from([1.0, 1e-20, 1e40]),
)
def test_whole_numbers_stay_below_the_limit_and_keep_the_stated_error(costs, most, factor):
    given_costs = [cost * factor for cost in costs]
    part = Expression(given_costs[0], dict(enumerate(given_costs[1:])))
    scale = method._scale([part], most * factor)
    whole = [math.floor(one * scale) for one in given_costs]
    assert sum(map(abs, whole)) <= 2**53 + len(whole)  # those below 0 are rounded away from it
    size = sum(map(abs, given_costs))
    lost = sum(
        abs(Fraction(one) - n / Fraction(scale)) for one, n in zip(given_costs, whole, strict=True)
    )
    assert lost <= 1e-10 * max(size, most * factor)


def test_a_program_that_lacks_rows_may_claim_less_than_the_plan_that_it_finds():
    rtt = np.array([
        [0, 2, 3, 3, 1, 3, 3], [0, 0, 1, 0, 3, 3, 1], [0, 0, 0, 1, 0, 3, 0], [0, 0, 0, 0, 3, 1, 2],
        [3, 2, 2, 1, 0, 2, 0], [3, 3, 3, 3, 1, 0, 0], [2, 1, 2, 0, 0, 1, 0],
    ])  # fmt: skip
    reads = [[1, 0], [1, 1], [0, 0], [1, 0], [0, 0], [1, 0], [1, 0]]
    rest = [[1, 1, 10], [1, 0, 10], [1, 0, 10], [0, 0, 10], [1, 1, 11], [0, 0, 11], [0, 1, 10]]
    instance = placement.Instance(
        sites=tuple("abcdefg"), clients=tuple("tuvwxyz"), client_rtt=rtt, site_rtt=rtt,
        counts=np.hstack([reads, rest])[np.newaxis],
    )  # fmt: skip
    asked = {"minimise": "mean after the loss of any site", "leader": "a"}
    problem = placement.Problem(instance, replicas=3, voters=3, **asked)
    plans = [placement.solve(problem, method) for method in ("cp-sat", "exact")]
    assert plans[0].objective == pytest.approx(plans[1].objective, rel=1e-9)
