"""Why there is no plan: named conflicts, and minimality on generated infeasible problems."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import placement
from formulations import minimal_conflict as explain
from placement import Contingency, Diversity, Instance, Prices, Problem, Status
from placement.errors import SolverError
from placement.feasibility.feasible_plans import find_feasible, reasons_infeasible
from tests.strategies import problems


def world(**changes):
    sites = ("ams", "ber", "cdg", "dub", "ewr", "fra")
    rng = np.random.default_rng(7)
    rtt = rng.uniform(5, 90, (6, 6))
    np.fill_diagonal(rtt, 0)
    base = {
        "sites": sites,
        "clients": ("c1", "c2"),
        "client_rtt": rng.uniform(1, 90, (2, 6)),
        "site_rtt": rtt,
        "counts": np.ones((2, 5)),
        "domains": {"country": ("NL", "DE", "FR", "IE", "US", "DE")},
    }
    return Instance(**{**base, **changes})


def test_the_conflict_is_named_in_the_words_of_the_problem():
    problem = Problem(
        world(), replicas=3, voters=3, survive="country", pinned_voters=["ber", "fra"]
    )
    # Two pinned voters share Germany; numbers show that, no search is needed.
    assert any("ber, fra" in reason for reason in reasons_infeasible(problem))

    problem = Problem(
        world(),
        replicas=3,
        voters=3,
        diversity=[Diversity("country", cap=1)],
        pinned=["ber", "fra"],
    )
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
        explain.explain_infeasible(Problem(world(), replicas=3, voters=3))


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
    problem = Problem(
        world(), replicas=3, voters=3, diversity=Diversity("country"), pinned=["ber", "fra"]
    )
    for method in ("exhaustive", "cp-sat", "best-of"):
        plan = placement.solve(problem, method=method)
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
        (
            {"forbidden": ["ams", "cdg"], "non_voters": ["ewr"]},
            {"FORBIDDEN", "NON_VOTER", "RULE"},
        ),
        (
            {"survive": "country", "diversity": (), "pinned_voters": ["ber", "fra"]},
            {"SURVIVE", "PINNED_VOTER"},
        ),
    ],
)
def test_the_solver_names_every_kind_of_constraint_by_itself(asked, kinds):
    problem = Problem(
        world(), **{"replicas": 3, "voters": 3, "diversity": [Diversity("country")], **asked}
    )
    everything = explain.constraints_of(problem)
    guarded = explain._Guarded(problem, everything)
    core = guarded.core(everything)
    assert core is not None
    assert kinds <= {constraint.kind.name for constraint in core}
    for kind in kinds:
        kept = [constraint for constraint in everything if constraint.kind.name != kind]
        assert guarded.core(kept) is None


def test_ctrl_c_during_the_explanation_keeps_the_answer(monkeypatch):
    def pressed(problem):
        raise KeyboardInterrupt

    monkeypatch.setattr("placement.feasibility.feasible_plans.explain_infeasible", pressed)
    problem = Problem(
        world(), replicas=3, voters=3, diversity=Diversity("country"), pinned=["ber", "fra"]
    )
    plan = placement.solve(problem, method="exhaustive")
    assert plan.status is Status.INFEASIBLE
    assert plan.reasons
