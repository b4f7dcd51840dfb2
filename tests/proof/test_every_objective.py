"""A cross-check over every constraint and objective: what is proven carries a proof that holds."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import placement
from placement import Moves, Operation
from placement.contingency.objective import Contingency
from placement.errors import InputError, UnsupportedError
from placement.evaluation.breakdown import objective_value
from placement.feasibility.feasible_plans import violations
from placement.methods.options import Options
from placement.methods.registry import load_method, run
from placement.proof.certificate_check import check_certificate
from placement.support.status import Status
from placement.tail import Distributions, Percentile
from placement.testing import every_configuration, random_instance
from tests.strategies import ALL, MONEY, problems
from tests.tail.worlds import drawn, drawn_by_interval

EXACT = load_method("exact")
PROVEN = (Status.OPTIMAL, Status.INFEASIBLE)


EXHAUSTIVE = load_method("exhaustive")
LEVELS = ("site", "site", "zone", "region", "continent", "provider")
KINDS = ("mean", "worst", "bounded", "weighted", "percentile", "percentile after losses")


def _percentile(draw, problem, *, after_losses):
    """A percentile, on drawn or parametric distributions; of each interval where RTTs vary."""
    instance, seed = problem.instance, draw(st.integers(0, 1000))
    varies = instance.client_rtt.ndim > 2 or instance.site_rtt.ndim > 2
    spread = (
        drawn_by_interval(instance, seed, bins=24)
        if varies
        else drawn(instance, seed, bins=30 if after_losses else 60)
        if draw(st.booleans())
        else Distributions.parametric(instance, variation=0.3, width=10, bins=60)
    )
    return Percentile(draw(st.sampled_from([50, 90, 99])), spread)


@st.composite
def questions(draw):
    """A problem with any constraints, and one of the objectives."""
    kind = draw(st.sampled_from(KINDS))
    without = frozenset() if kind == "mean" else MONEY - {"budget"}
    about_losses = kind not in ("mean", "percentile")
    most = 5 if kind == "percentile after losses" else 7
    problem = draw(
        problems(kinds=ALL - without, max_sites=most, max_clients=5, writes=about_losses)
    )
    sites = len(problem.instance.sites)
    try:
        goal = None
        if "percentile" in kind:
            goal = _percentile(draw, problem, after_losses=about_losses)
        if about_losses:
            goal_of_losses = kind
            if goal is not None:
                goal_of_losses = draw(st.sampled_from(["worst", "bounded"]))
            level = draw(st.sampled_from(LEVELS))
            goal = Contingency(
                level,
                goal_of_losses,
                together=draw(st.sampled_from([1, 1, 1, 2])) if sites > 1 else 1,
                limit=draw(st.floats(5, 900)) if goal_of_losses == "bounded" else None,
                probability=0.5 / sites**2 if kind == "weighted" else None,
                leader_may_move=draw(st.booleans()),
                clients_move=goal is None and draw(st.sampled_from([False, False, True])),
                percentile=goal,
            )
        return kind, problem if goal is None else problem.replace(objective=goal)
    except InputError:
        return kind, problem


PROTOCOLS = (
    "leases", "leases:holders=voters", "leases:holders=2", "leases:holders=2,interference=0.5",
    "epaxos", "hermes", "mencius", "spanner", "semi-sync", "fast-paxos", "abd", "caesar",
    "crdb-global", "tidb", "follower-reads", "coordinated", "flexiraft", "atlas", "tempo", "pqr",
)  # fmt: skip


def _partly_late(problem, seed):
    """Distributions of which some pairs overflow, up to entirely, and the others do not."""
    instance, rng = problem.instance, np.random.default_rng(seed)
    whole = drawn(instance, 2 * seed, bins=40)

    def cut(table, own):
        late = rng.uniform(0, 1, table.shape[:2]) ** 3 * (rng.random(table.shape[:2]) < 0.4)
        if own:
            np.fill_diagonal(late, 0)
        return table * (1 - late)[..., np.newaxis]

    tables = cut(whole.client_site, own=False), cut(whole.site_site, own=True)
    return Distributions(*tables, 1.0, instance.sites, instance.clients)


def _drawn_moves(draw, problem):
    """A present configuration, prices of the moves from it, and limits on them."""
    names = problem.instance.sites
    held = draw(st.permutations(range(len(names))))[: draw(st.integers(1, len(names)))]
    voters = held[: draw(st.integers(1, len(held)))]
    prices = {
        what: draw(st.sampled_from([0.0, 0.0, 1.0, 20.0]))
        for what in ("add", "remove", "promote", "demote", "leader")
    }
    at_most = draw(st.none() | st.integers(0, 2 * len(names)))
    copied = draw(st.sampled_from([None, 0.0, 2.5, 5.0]))
    return {
        "current": {
            "leader": names[voters[0]],
            "voters": [names[v] for v in voters],
            "replicas": [names[r] for r in held],
        },
        "moves": Moves(**prices, at_most=at_most, copy_gb=copied, stored_gb=2.5),
    }


@st.composite
def with_roles(draw):
    """A question with up to two of: a protocol, witnesses, votes, moves, partial overflow."""
    _, problem = draw(questions())
    kinds = ("moves", "protocol", "witnesses", "votes", "overflow")
    for kind in sorted(draw(st.sets(st.sampled_from(kinds), max_size=2))):
        more = {}
        if kind == "moves":
            more = _drawn_moves(draw, problem)
        elif kind == "protocol":
            more["protocol"] = draw(st.sampled_from(PROTOCOLS))
        elif kind == "witnesses":
            more["witnesses"] = draw(st.integers(1, 2))
        elif kind == "votes":
            votes = [draw(st.integers(1, 3)) for _ in range(problem.rules.voters)]
            more["vote_layout"] = tuple(sorted(votes, reverse=True))
        elif isinstance(problem.objective, Percentile) and problem.demand.scenarios == 1:
            spread = _partly_late(problem, draw(st.integers(0, 1000)))
            more["objective"] = Percentile(problem.objective.percent, spread)
        try:
            problem = problem.replace(**more)
            assert problem.rules is not None
        except (InputError, UnsupportedError):  # these do not go together
            continue
    return problem


def _values(problem):
    """The values of all configurations within the rules and the limits on moves."""
    free = problem.replace(moves=None, current=None)
    for one in every_configuration(free):
        if not violations(problem, one):
            yield objective_value(problem, one)


@given(with_roles())
def test_what_is_proven_of_any_roles_is_proved_again(problem):
    """Protocols, leases, witnesses, votes, moves and partial overflow: the value of enumeration."""
    if EXACT.refuses(problem) is not None:
        return
    try:
        plan = run(EXACT, problem, Options())
    except UnsupportedError:
        return
    assert plan.status in PROVEN
    if plan.certificate is None and any(
        "no certificate" in x for x in (*plan.notes, *plan.reasons)
    ):
        return
    checked = check_certificate(plan)
    assert checked.bound <= plan.objective * (1 + 1e-12) or not plan.found
    best = math.inf
    if problem.moves is not None:
        best = min(_values(problem), default=math.inf)
    elif EXHAUSTIVE.refuses(problem) is None:
        best = run(EXHAUSTIVE, problem, Options()).objective
    else:
        return
    assert plan.found == math.isfinite(best)
    assert not plan.found or plan.objective == pytest.approx(best, rel=2e-9)


@given(questions())
def test_what_is_proven_is_proved_again(question):
    """Every question of a small test network has the value of enumeration, and a proof."""
    _, problem = question
    plan = run(EXACT, problem, Options())
    assert plan.status in PROVEN
    checked = check_certificate(plan)
    if plan.found:
        assert plan.bound <= checked.bound * (1 + 1e-12) + 1e-300
        assert checked.bound <= plan.objective * (1 + 1e-12)
    else:
        assert checked.bound == math.inf
    if EXHAUSTIVE.refuses(problem) is None:
        every = run(EXHAUSTIVE, problem, Options())
        assert every.status is plan.status
        assert not plan.found or plan.objective == pytest.approx(every.objective, rel=2e-9)


def test_nothing_is_certified_where_it_was_not_asked_for():
    problem = placement.Problem(
        placement.load("world27"), replicas=3, voters=3, objective=Contingency()
    )
    plan = run(EXACT, problem, Options(settings={"certificate": False}))
    assert plan.status is Status.OPTIMAL
    assert not plan.certified
    assert plan.score == pytest.approx(run(EXACT, problem, Options()).score)
    assert np.isfinite(plan.bound)


def test_a_replica_that_cannot_lead_is_no_better_plan():
    """Where no operation asks the leader one proof does for all, and they still must be allowed."""
    instance = random_instance(3, sites=2, clients=1)
    weak = Operation("weak", near=1.0)
    instance = instance.replace(operations=(weak,), counts=np.ones((1, 1, 1)))
    for leader in instance.sites:
        problem = placement.Problem(instance, replicas=1, voters=1, leaders=(leader,))
        plan = run(EXACT, problem, Options())
        assert check_certificate(plan).score == plan.objective
