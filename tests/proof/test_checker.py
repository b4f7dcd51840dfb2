"""The certificate checker: proves what is true, refuses what is not."""

import copy
import itertools
import math
import time
import warnings
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import placement
from formulations.exact.kernel import compiled_available
from placement import Contingency, Instance, Operation, Problem, solve
from placement.errors import CertificateError, LimitError, UnitsWarning
from placement.measures.question import percentile_question
from placement.methods.options import Options
from placement.methods.registry import load_method, run
from placement.model.configuration import Configuration
from placement.model.operations import STRONG_READ
from placement.plan import objective_value
from placement.proof.certificate_check import check_certificate, check_mean
from placement.proof.costs.detours import Detours
from placement.proof.event_tree import State
from placement.proof.late.late_claim import LateClaim, LateTables
from placement.support.status import Status
from placement.support.work import WORK, Work
from placement.tail import Distributions
from placement.tail.objective import LateOperations, Percentile
from placement.testing import every_configuration, optimum, random_instance, worlds
from tests.effort import examples, seeds
from tests.strategies import CROSSING, problems
from tests.tail.worlds import drawn

EXACT = load_method("exact")
TAKEN = CROSSING | {"varying_rtt", "range", "replica_caps", "cost_weight"}


def solve_exactly(problem):
    return run(EXACT, problem, Options())


def certified(problem):
    plan = solve_exactly(problem)
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
    plan = solve_exactly(plain())
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
    plan = solve_exactly(plain())
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
    plan = solve_exactly(plain())
    best = plan.configuration
    cut = Configuration(best.leader, best.voters[:2], best.replicas)
    edited = with_certificate(plan.replace(configuration=cut), voters=list(cut.voters))
    with pytest.raises(CertificateError, match="not feasible"):
        check_certificate(edited)


def test_a_plan_that_claims_more_than_its_certificate():
    plan = solve_exactly(plain())
    claimed = with_certificate(plan, bound=plan.bound * 0.999)
    with pytest.raises(CertificateError, match="plan claims the bound"):
        check_certificate(claimed)


def test_one_proof_for_all_leaders_only_where_they_are_alike():
    plan = solve_exactly(plain())
    proofs = [{"leader": None, "events": plan.certificate["proofs"][0]["events"]}]
    with pytest.raises(CertificateError, match="the leader matters"):
        check_certificate(with_certificate(plan, proofs=proofs))


def test_granularity_is_not_believed():
    plan = solve_exactly(plain())
    with pytest.raises(CertificateError, match="multiples of 1"):
        check_certificate(with_certificate(plan, granularity=1.0))


@pytest.mark.parametrize("nonsense", [None, 3, "x", [], {}, [{}], [{"leader": 0}], math.nan])
def test_nonsense_is_refused_not_a_traceback(nonsense):
    plan = solve_exactly(plain())
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
        found.append(solve_exactly(placement.Problem(instance, replicas=4, voters=3)))
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
    plan = solve_exactly(problem)
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
    "event", [["enumerate"], ["beta", [[0, 0, 1.0]] * 500], ["fix", None, [], []], ["branch", 0]]
)
def test_every_event_counts(event):
    plan = solve_exactly(plain())
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
    plan = solve_exactly(plain())
    steps = steps_of(plan)
    assert check_certificate(plan, work=steps).bound == plan.bound
    assert steps < WORK / 1000


def test_counting_reads_a_certificate_once():
    plan = solve_exactly(placement.Problem(random_instance(12), replicas=3, voters=3))
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


COMPILED = compiled_available()


@pytest.mark.parametrize("seed", seeds(60, 400))
def test_no_set_costs_less_than_the_bound_with_detours(seed):
    rng = np.random.default_rng(seed)
    clients, sites = int(rng.integers(1, 5)), int(rng.integers(2, 7))
    rank = np.argsort(rng.random((clients, sites)), axis=1)
    costs = rng.integers(0, int(rng.choice([3, 20])), (clients, sites))
    inside = frozenset(rng.permutation(sites)[: rng.integers(1, sites)].tolist())
    free = [s for s in range(sites) if s not in inside and rng.random() < 0.8]
    first = rank[:, sorted(inside)].min(axis=1)
    home = np.array(sorted(inside))[rank[:, sorted(inside)].argmin(axis=1)]
    alone = costs[np.arange(clients), home]
    longer = Detours(rank, costs).of(first, alone, free)
    exact = Detours(rank, costs.astype(object)).of(first, alone, free)
    assert longer == exact
    assert min(longer) >= 0
    u = rng.integers(-2, 22, clients)
    for size in range(len(free) + 1):
        for added in itertools.combinations(free, size):
            chosen = sorted(inside | {*added})
            near = np.array(chosen)[rank[:, chosen].argmin(axis=1)]
            paid = int(costs[np.arange(clients), near].sum())
            bound = int(np.minimum(u, alone).sum())
            for site in added:
                before = rank[:, site] < first
                bound += longer[site] + int(np.minimum(0, costs[:, site] - u)[before].sum())
            assert bound <= paid


def test_a_site_that_every_client_prefers_has_all_of_its_detour():
    """Two clients at a fixed site 0 of cost 5; the free site 1 comes first and costs 9 and 7."""
    rank = np.array([[1, 0], [1, 0]])
    costs = np.array([[5, 9], [5, 7]])
    found = Detours(rank, costs).of(np.array([1, 1]), np.array([5, 5]), [1])
    assert found == [0, 6]


def test_the_last_of_several_preferred_sites_has_what_is_left():
    """Costs 9, 4, 7 before the fixed 5: the first rises to 9, and then 4 is below 5."""
    rank = np.array([[3, 0, 1, 2]])
    costs = np.array([[5, 9, 4, 7]])
    assert Detours(rank, costs).of(np.array([3]), np.array([5]), [1, 2, 3]) == [0, 4, 0, 0]
    assert Detours(rank, costs).of(np.array([3]), np.array([5]), [1, 3]) == [0, 2, 0, 2]


def test_without_a_fixed_replica_there_are_none():
    rank, costs = np.array([[0, 1]]), np.array([[9, 1]])
    assert Detours(rank, costs).of(np.array([2]), np.array([0]), [0, 1]) == [0, 0]


@pytest.mark.skipif(not COMPILED, reason="the search over losses is compiled")
def test_relayed_reads_are_proven_in_few_nodes():
    """Every client asks a near replica, which asks the leader: nearly every site is a detour."""
    plan = placement.solve(_relayed_question(9).replace(objective=Contingency()))
    assert plan.stats["nodes"] < 4000  # 7,964 without detours
    assert check_certificate(plan).bound <= plan.objective


def _relayed_question(seed: int) -> Problem:
    relayed = (Operation("read", near=1, relay=1), Operation("write", direct=1, quorum=1))
    instance = random_instance(seed, sites=18, clients=18)
    instance = instance.replace(operations=relayed, counts=np.ones((1, 18, 2)))
    return Problem(instance, replicas=8, voters=3)


@pytest.mark.skipif(not compiled_available(), reason="the C kernel was not built")
def test_trees_of_one_leader_count_them(monkeypatch):
    """The certificate needs them: a checker that leaves them out does not get as far."""
    plan = placement.solve(_relayed_question(1))
    assert plan.status == "optimal"
    assert plan.stats["nodes"] < 40  # 8; 136 without detours
    assert check_certificate(plan).bound <= plan.objective
    monkeypatch.setattr(Detours, "of", lambda self, *_: [0] * self._sites)
    with pytest.raises(CertificateError, match=r"does not reach the claim|nothing proves site"):
        check_certificate(plan)


@pytest.mark.skipif(not compiled_available(), reason="the C kernel was not built")
@pytest.mark.parametrize("seed", seeds(8, 60))
def test_a_certificate_with_detours_proves_no_more_than_it_says(seed):
    plan = placement.solve(_relayed_question(seed))
    certificate = plan.certificate
    assert check_certificate(plan).bound <= plan.objective
    raised = plan.objective * (1 + 1e-6)
    claimed = {**certificate, "bound": raised, "score": raised}
    with pytest.raises(CertificateError):
        check_mean(plan.problem, raised, claimed, Work(10**9))


def drawn_question(seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnitsWarning)
        instance = random_instance(seed, sites=6, clients=5)
    spread = drawn(instance, seed)
    return Problem(instance, replicas=4, voters=3), Percentile(80, spread)


@pytest.mark.parametrize("bins", [4_000, 12_000])
def test_plans_with_many_bins_have_certificates_that_hold(bins):
    """The tables of a checker may be off by more where there are more bins."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnitsWarning)
        instance = random_instance(3, sites=6, clients=6)
    spread = Distributions.parametric(instance, variation=0.4, width=0.5, bins=bins)
    problem = Problem(instance, replicas=3, voters=3, objective=percentile_question(50, spread))
    plan = solve(problem, "exact")
    assert plan.status is Status.OPTIMAL
    assert plan.objective == solve(problem, "exhaustive").objective
    assert check_certificate(plan).bound == plan.bound
    more = plan.bound + 0.5
    later = plan.replace(certificate={**plan.certificate, "bound": more}, bound=more)
    with pytest.raises(CertificateError):
        check_certificate(later.replace(status=Status.FEASIBLE))


@pytest.mark.parametrize("beyond", [0.0, 1.1e-9, 1e-8])
def test_shares_within_the_rounding_of_many_bins_are_not_claimed(beyond):
    """A share that is too large by less than a checker can tell rules nothing out for it.

    One site leads and serves; `beyond` more than the share that may be late is late at 2 ms, and
    nothing at 3 ms. With 12,000 bins a checker is off by 1.2e-9, more than in a search of few bins.
    """
    bins, names = 12_000, ["a", "b"]
    instance = Instance(
        names, names, [[1.0, 9.0], [9.0, 1.0]], [[0, 9.0], [9.0, 0]], [[1], [0]],
        operations=[STRONG_READ],
    )  # fmt: skip
    to_sites = np.zeros((2, 2, bins))
    to_sites[:, :, 2] = 0.9 - beyond
    to_sites[:, :, 3] = 0.1 + beyond
    between = np.zeros((2, 2, bins))
    between[:, :, 2] = 1.0
    between[[0, 1], [0, 1]] = np.eye(1, bins)[0]
    spread = Distributions(to_sites, between, 1.0, tuple(names), tuple(names))
    problem = Problem(instance, replicas=1, voters=1, objective=percentile_question(90, spread))
    plan = solve(problem, "exact")
    assert plan.objective == (3.0 if beyond else 2.0)
    assert plan.status is Status.OPTIMAL
    if plan.certificate is not None:
        assert check_certificate(plan).bound == plan.bound


@pytest.mark.parametrize("seed", [0, 1, 2, 4])
def test_shares_of_late_operations_are_those_of_the_evaluator_from_below(seed):
    """For every leader and some voters, at several deadlines: never above, and close."""
    problem, goal = drawn_question(seed)
    late, claim = (
        LateOperations(problem, goal.distributions),
        LateClaim(problem, goal, problem.rules),
    )
    chosen, deadline = Configuration.of(1, (1, 2, 3), (0, 1, 2, 3)), 20
    for t in (0, deadline // 2, deadline - 1, deadline, deadline + 7):
        tables = LateTables(claim, chosen.leader, t, Work(10**9))
        table = late.summands(np.array([chosen.leader]), t)[0]
        near = table[:-1].T[claim.claim.clients]
        whole = np.ldexp(tables.costs._whole_costs(slice(None)).astype(float), -tables.bits)
        assert (whole <= near + 1e-12).all()
        assert np.allclose(whole, near, rtol=0, atol=1e-10)
        led = late.led_late(chosen.leader, chosen.voters, t, problem.rules.quorum)
        mine = np.ldexp(float(tables.of(chosen.voters)), -tables.bits)
        assert led - 1e-9 <= mine <= led + 1e-12
        held = frozenset(chosen.replicas)
        state = State(held, frozenset(range(len(problem.instance.sites))) - held)
        assert tables.led(state) <= tables.of(chosen.voters)


def test_shares_of_voters_are_counted_when_they_are_worked_out_and_not_again():
    problem, goal = drawn_question(0)
    work = Work(10**9)
    tables = LateTables(LateClaim(problem, goal, problem.rules), 1, 5, work)
    state = State(frozenset((0, 1, 2, 3)), frozenset())
    assert work.left == work.limit
    first = tables.led(state)
    counted = work.left
    assert counted < work.limit
    assert tables.led(state) == first
    assert work.left == counted
