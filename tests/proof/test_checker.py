"""The certificate checker: proves what is true, refuses what is not."""

import copy
import math
import time
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import placement
from placement.errors import CertificateError, LimitError
from placement.methods.options import Options
from placement.methods.registry import load_method, run
from placement.model.configuration import Configuration
from placement.plan import objective_value
from placement.proof.certificate_check import check_certificate
from placement.support.status import Status
from placement.support.work import WORK
from placement.testing import every_configuration, optimum, random_instance, worlds
from tests.effort import examples, seeds
from tests.strategies import CROSSING, problems

EXACT = load_method("exact")
TAKEN = CROSSING | {"varying_rtt", "range", "replica_caps", "cost_weight"}


def solve(problem):
    return run(EXACT, problem, Options())


def certified(problem):
    plan = solve(problem)
    return plan if plan.certificate is not None else None


@given(problems(kinds=TAKEN))
def test_every_certificate_of_a_generated_problem_holds(problem):
    plan = certified(problem)
    if plan is not None:
        checked = check_certificate(plan)
        assert checked.bound >= plan.bound
        assert checked.score == plan.objective


@pytest.mark.parametrize("seed", seeds(1, 3))
def test_every_certificate_of_the_conformance_worlds_holds(seed):
    held = 0
    for world in worlds(seed):
        plan = certified(world.problem)
        if plan is not None:
            checked = check_certificate(plan)
            assert checked.bound <= optimum(world.problem) * (1 + 1e-9)
            held += 1
    assert held >= 20


@pytest.mark.parametrize("name", ["world27", "aws"])
def test_certificates_of_bundled_data_sets_hold(name):
    instance = placement.load(name)
    for replicas, voters in ((3, 3), (5, 3), (7, 5)):
        for ask in ({}, {"survive": "country"}):
            plan = certified(placement.Problem(instance, replicas=replicas, voters=voters, **ask))
            assert check_certificate(plan).leaders in (1, len(instance.sites))


# --- what is refused ---------------------------------------------------------------------------


def plain():
    return placement.Problem(random_instance(12), replicas=3, voters=3)


def with_certificate(plan, **changes):
    return plan.replace(certificate={**copy.deepcopy(dict(plan.certificate)), **changes})


def test_a_plan_without_a_certificate():
    plan = run(load_method("exhaustive"), plain(), Options())
    with pytest.raises(CertificateError, match="carries no certificate"):
        check_certificate(plan)


def test_a_certificate_of_another_instance():
    plan = solve(plain())
    other = placement.Problem(random_instance(13), replicas=3, voters=3)
    cheaper = placement.Problem(
        plan.problem.instance.replace(counts=plan.problem.instance.counts * 0.5),
        replicas=3,
        voters=3,
    )
    for problem in (other, cheaper):
        with pytest.raises(CertificateError):
            check_certificate(plan.replace(problem=problem))


def test_a_worse_plan():
    plan = solve(plain())
    for worse in every_configuration(plan.problem):
        if objective_value(plan.problem, worse) <= plan.objective * (1 + 1e-9):
            continue
        swapped = plan.replace(configuration=worse)
        with pytest.raises(CertificateError, match="another configuration"):
            check_certificate(swapped)
        edited = with_certificate(
            swapped,
            leader=worse.leader,
            voters=list(worse.voters),
            replicas=list(worse.replicas),
            score=objective_value(plan.problem, worse),
        )
        with pytest.raises(CertificateError, match=r"optimal|bound"):
            check_certificate(edited)
        raised = with_certificate(edited, bound=objective_value(plan.problem, worse))
        with pytest.raises(CertificateError):
            check_certificate(raised)


def test_an_infeasible_configuration():
    plan = solve(plain())
    best = plan.configuration
    cut = Configuration(best.leader, best.voters[:2], best.replicas)
    edited = with_certificate(plan.replace(configuration=cut), voters=list(cut.voters))
    with pytest.raises(CertificateError, match="not feasible"):
        check_certificate(edited)


def test_a_plan_that_claims_more_than_its_certificate():
    plan = solve(plain())
    claimed = with_certificate(plan, bound=plan.bound * 0.999)
    with pytest.raises(CertificateError, match="plan claims the bound"):
        check_certificate(claimed)


def test_one_proof_for_all_leaders_only_where_they_are_alike():
    plan = solve(plain())
    proofs = [{"leader": None, "events": plan.certificate["proofs"][0]["events"]}]
    with pytest.raises(CertificateError, match="the leader matters"):
        check_certificate(with_certificate(plan, proofs=proofs))


def test_granularity_is_not_believed():
    plan = solve(plain())
    with pytest.raises(CertificateError, match="multiples of 1"):
        check_certificate(with_certificate(plan, granularity=1.0))


@pytest.mark.parametrize("nonsense", [None, 3, "x", [], {}, [{}], [{"leader": 0}], math.nan])
def test_nonsense_is_refused_not_a_traceback(nonsense):
    plan = solve(plain())
    for key in plan.certificate:
        with pytest.raises(CertificateError):
            check_certificate(with_certificate(plan, **{key: nonsense}))


MUTATIONS = (
    "raise bound", "drop proof", "double proof", "drop event", "repeat event", "move multipliers",
    "negative beta", "flip branch", "fix more", "swap leaders", "close early",
)  # fmt: skip


# Any multipliers are valid, and another order of the same steps may prove as much.
MAY_SURVIVE = (
    "move multipliers", "repeat event", "drop event", "flip branch", "close early", "swap leaders",
    "fix more",
)  # fmt: skip


def mutate(certificate, kind, rng):
    """Change one thing about a certificate; None when there is nothing of the kind to change."""
    c = copy.deepcopy(dict(certificate))
    proofs = c["proofs"]
    k = int(rng.integers(len(proofs)))
    events = proofs[k]["events"]
    e = int(rng.integers(len(events)))
    if kind == "raise bound":
        c["bound"] *= 1 + 10 ** rng.uniform(-6, 0)
    elif kind == "drop proof":
        del proofs[k]
    elif kind == "double proof":
        proofs.append(copy.deepcopy(proofs[k]))
    elif kind == "drop event":
        del events[e]
    elif kind == "repeat event":
        events.insert(e, copy.deepcopy(events[e]))
    elif kind == "move multipliers":
        holders = [x for x in events if x[0] in ("close", "fix") and x[1]]
        if not holders:
            return None
        u = holders[int(rng.integers(len(holders)))][1]
        i = int(rng.integers(len(u)))
        u[i] = u[i] * float(rng.choice([0.0, 0.5, 3.0, 100.0])) + float(rng.choice([0, 1e6]))
    elif kind == "negative beta":
        events.insert(0, ["beta", [[0, 0, -1.0]]])
    elif kind == "flip branch":
        branches = [x for x in events if x[0] == "branch"]
        if not branches:
            return None
        branches[int(rng.integers(len(branches)))][1] += 1
    elif kind == "fix more":
        fixes = [x for x in events if x[0] == "fix"]
        if not fixes:
            return None
        fixed = fixes[int(rng.integers(len(fixes)))]
        fixed[int(rng.integers(2, 4))].append(int(rng.integers(6)))
    elif kind == "swap leaders":
        if len(proofs) < 2:
            return None
        j = (k + 1) % len(proofs)
        proofs[k]["leader"], proofs[j]["leader"] = proofs[j]["leader"], proofs[k]["leader"]
    elif kind == "close early":
        closes = [x for x in events if x[0] == "close"]
        if not closes or events[0] is closes[0]:
            return None
        events[:] = [closes[0]]
    return c


def certified_problems():
    """Problems whose proofs use every kind of event."""
    rng = np.random.default_rng(3)
    found = []
    for seed in range(60):
        instance = random_instance(seed, sites=9, clients=9)
        weights = rng.dirichlet([0.3] * 5) * 100
        instance = instance.replace(counts=rng.integers(1, 20, (9, 1)) * weights)
        found.append(solve(placement.Problem(instance, replicas=4, voters=3)))
    return found


def test_mutations_are_refused():
    """A mutation may survive only where what it then claims is still true.

    Moved multipliers often still prove the claim (any multipliers are valid), an event told twice
    may prove twice; then the claim itself is the old one, and true by enumeration.
    """
    rng = np.random.default_rng(7)
    plans = certified_problems()
    kinds = {e[0] for p in plans for proof in p.certificate["proofs"] for e in proof["events"]}
    assert kinds >= {"close", "fix", "branch"}
    best = cache(lambda index: optimum(plans[index].problem))
    refused = tried = 0
    while refused < examples(1000, 80):
        tried += 1
        assert tried < 20_000
        index = int(rng.integers(len(plans)))
        plan = plans[index]
        kind = MUTATIONS[tried % len(MUTATIONS)]
        changed = mutate(plan.certificate, kind, rng)
        if changed is None:
            continue
        # A plan that believes its mutated certificate.
        believer = plan.replace(certificate=changed, bound=changed["bound"])
        try:
            check_certificate(believer)
        except CertificateError:
            refused += 1
            continue
        assert kind in MAY_SURVIVE, kind
        assert changed["bound"] <= best(index) * (1 + 1e-9)
        assert believer.status is Status.OPTIMAL
        assert believer.objective <= best(index) * (1 + 1e-9)


@given(problems(kinds=TAKEN), st.floats(1.0001, 3))
def test_no_bound_above_the_optimum_can_be_proved(problem, factor):
    """For every claim that the check accepts, no configuration is better."""
    plan = certified(problem)
    if plan is None or plan.objective == 0:
        return
    claim = plan.bound * factor
    believer = with_certificate(plan, bound=claim).replace(bound=claim, status=Status.FEASIBLE)
    with pytest.raises(CertificateError):
        check_certificate(believer)


# --- work ----------------------------------------------------------------------------------------


def enumerated(problem):
    """A plan whose certificate is three words long for every leader: look at everything."""
    plan = solve(problem)
    proofs = [{**proof, "events": [["enumerate"]]} for proof in plan.certificate["proofs"]]
    return with_certificate(plan, proofs=proofs)


def test_enumeration_proves_where_there_is_little_to_enumerate():
    plan = enumerated(plain())
    assert check_certificate(plan).bound == plan.bound


def test_enumeration_has_a_limit_that_is_seen_before_the_work():
    world = random_instance(40, sites=40, clients=5)
    plan = enumerated(placement.Problem(world, replicas=20, voters=3))
    began = time.perf_counter()
    with pytest.raises(LimitError, match=r"more than 1,000,000,000 steps.*--work"):
        check_certificate(plan)
    assert time.perf_counter() - began < 5


def steps_of(plan):
    """A limit that an honest certificate does not meet, and at most twice what it needs."""
    steps = 1
    while True:
        try:
            check_certificate(plan, work=steps)
        except LimitError:
            steps *= 2
        else:
            return steps


@pytest.mark.parametrize(
    "event",
    [["enumerate"], ["beta", [[0, 0, 1.0]] * 500], ["fix", None, [], []], ["branch", 0]],
)
def test_every_event_counts(event):
    plan = solve(plain())
    proofs = copy.deepcopy(plan.certificate["proofs"])
    first = proofs[0]
    some = next(e[1] for e in first["events"] if e[0] in ("close", "fix"))
    event = [some if part is None else part for part in event]
    if event[0] in ("enumerate", "branch"):  # more than once: branches, each of which is closed
        others = [s for s in range(6) if s != first["leader"]]
        first["events"] = [x for s in others for x in (["branch", s], ["enumerate"])]
        first["events"].append(["enumerate"])
    else:
        first["events"] = [event] * 3000
    with pytest.raises(LimitError):
        check_certificate(with_certificate(plan, proofs=proofs), work=steps_of(plan))


def test_the_limit_can_be_raised_and_is_not_met_by_honest_certificates():
    plan = solve(plain())
    steps = steps_of(plan)
    assert check_certificate(plan, work=steps).bound == plan.bound
    assert steps < WORK / 1000


def test_counting_reads_a_certificate_once():
    plan = solve(placement.Problem(random_instance(12), replicas=3, voters=3))
    none = plan.replace(
        configuration=None,
        status=Status.INFEASIBLE,
        bound=math.inf,
        certificate={
            "format": "replica-placement/no-plan/1",
            "proofs": [{"leaders": [0] * 30_000, "by_votes": list(range(30_000))}],
        },
    )
    began = time.perf_counter()
    with pytest.raises(CertificateError, match="not exactly one proof"):
        check_certificate(none)
    assert time.perf_counter() - began < 5
