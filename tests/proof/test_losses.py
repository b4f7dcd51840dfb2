"""Certificates about losses: each one holds, and no change makes one prove what is false."""

import copy
import dataclasses
import itertools
import math
import warnings
from collections import Counter

import numpy as np
import pytest

import placement
from placement.contingency.objective import Contingency
from placement.errors import CertificateError, LimitError, UnitsWarning
from placement.methods.options import Options
from placement.methods.registry import load_method, run
from placement.proof.certificate_check import check_certificate
from placement.proof.event_tree import State
from placement.proof.losses import LossClaim
from placement.support.status import Status
from placement.testing import random_instance
from tests.contingency.test_threshold_search import GOALS, question
from tests.effort import examples, seeds

EXACT = load_method("exact")


def solve(problem, **settings):
    return run(EXACT, problem, Options(settings=settings))


def refused(plan):
    try:
        check_certificate(plan)
    except (CertificateError, LimitError):
        return True
    return False


def believing(plan, certificate, bound=None):
    """Return the plan as it is when it believes a certificate, with another bound perhaps."""
    if bound is None:
        return plan.replace(certificate=certificate)
    certificate = {**certificate, "bound": bound}
    return plan.replace(certificate=certificate, bound=bound, status=Status.FEASIBLE)


def false_bound(plan, truth):
    """Return a bound above the optimum; the next whole number where values are whole."""
    whole = plan.certificate["granularity"]
    return truth + 1 if whole else truth * (1 + 1e-6)


@pytest.mark.parametrize(
    ("clients_move", "intervals", "rules", "some"),
    [
        (False, 1, False, 15),
        (True, 1, False, 4),
        (False, 3, False, 3),
        (True, 2, False, 2),
        (False, 1, True, 8),
    ],
)
@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("block", seeds(1, 12))
def test_every_certificate_holds_and_none_proves_more(
    goal, block, clients_move, intervals, rules, some
):
    """Of each goal, 15 questions in every run: sites and domains, caps, pins, leaders that move.

    And four in which the clients of lost sites move, five in which RTTs vary by interval, and
    eight with minimum numbers of domains, named ones or crossing levels.
    """
    for seed in range(some * block, some * block + some):
        problem, truth = question(seed, goal, clients_move, intervals, rules)
        plan = solve(problem)
        if plan.found:
            assert plan.certificate["format"] == "replica-placement/losses/1"
        checked = check_certificate(plan)
        assert plan.bound <= checked.bound
        if not plan.found:
            assert not truth.found
            continue
        assert plan.status is Status.OPTIMAL
        assert checked.bound <= truth.objective * (1 + 1e-12)
        if goal == "worst":
            assert checked.normal_bound == pytest.approx(truth.score, rel=2e-9, abs=1e-9)
            assert checked.normal_bound <= truth.score * (1 + 1e-12)
        raised = false_bound(plan, truth.objective)
        if truth.objective > 0:
            assert refused(believing(plan, dict(plan.certificate), raised)), (seed, goal)


def test_minimums_for_voters_rule_no_site_out_that_may_follow_the_leader():
    """No voters at all were counted there, who never reach a minimum: a false bound was proved."""
    problem, truth = question(9, "bounded", rules=True)
    plan = solve(problem)
    assert any(group.has_minimum for group in problem.rules.of("voters"))
    assert check_certificate(plan).bound == pytest.approx(truth.objective)
    raised = false_bound(plan, truth.objective)
    assert refused(believing(plan, dict(plan.certificate), raised))


def test_a_site_that_costs_nothing_takes_no_place_where_a_cap_leaves_one():
    """A cap left it unchosen; it was ruled out as if it took the place of a chosen site."""
    problem, truth = question(87, "worst", rules=True)
    plan = solve(problem)
    assert plan.objective == pytest.approx(truth.objective)
    assert check_certificate(plan).bound == pytest.approx(truth.objective)


def test_a_plan_without_its_second_claim_is_proved_all_the_same():
    problem, _ = question(1, "worst")
    plan = solve(problem)
    first = {key: value for key, value in plan.certificate.items() if key != "ties"}
    assert check_certificate(plan.replace(certificate=first)).normal_bound is None
    for bound in (plan.score * 1.001, plan.score * 0.999):
        ties = {**plan.certificate["ties"], "bound": bound}
        assert refused(plan.replace(certificate={**first, "ties": ties}))


def test_a_search_that_is_asked_for_no_certificate_says_that_there_is_none():
    problem, _ = question(1, "worst")
    plan = solve(problem, certificate=False)
    assert plan.certificate is None
    assert plan.notes[0].endswith("no certificate)")


def test_a_certificate_that_becomes_too_large_is_not_kept(monkeypatch):
    problem, _ = question(1, "worst")
    monkeypatch.setattr("formulations.contingency.threshold_stage.MOST_RECORDED", 20)
    monkeypatch.setattr("formulations.exact.enumeration_claim._MOST_STEPS", 0)
    plan = solve(problem)
    assert plan.status is Status.OPTIMAL
    assert plan.certificate is None
    assert plan.notes[0].endswith("no certificate: it would hold too many numbers)")


# --- mutations -----------------------------------------------------------------------------------


def trees(clients_move, intervals=1):
    """Proven plans with trees of every kind of event, and the certificates of their trees."""
    found = []
    for seed in range(8):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnitsWarning)
            instance = random_instance(
                seed,
                sites=9,
                clients=6,
                ties=seed % 2 == 0,
                intervals=intervals,
                varying=intervals > 1,
            )
        level = "site" if seed % 4 else "region"
        objective = Contingency(level, leader_may_move=seed % 4 == 3)
        if seed % 4 == 2:
            objective = Contingency("site", "weighted", probability=0.03)
        if clients_move:
            instance = instance.replace(clients=instance.sites[: len(instance.clients)])
            objective = dataclasses.replace(objective, clients_move=True)
        problem = placement.Problem(instance, replicas=4, voters=3, objective=objective)
        plan = solve(problem)
        assert plan.status is Status.OPTIMAL
        found.append(plan)
    return found


def _some(rng, items):
    return items[int(rng.integers(len(items)))] if items else None


def _with_multipliers(proofs):
    events = [event for proof in proofs for event in proof["events"]]
    return [event for event in events if event[0] in ("close", "fix") and event[1]]


def mutate(certificate, kind, rng):
    """Change one thing about a certificate; None when there is nothing of the kind to change."""
    c = copy.deepcopy(dict(certificate))
    proof, bounded = _some(rng, c["proofs"]), _some(rng, _with_multipliers(c["proofs"]))
    events = proof["events"]
    place = int(rng.integers(len(events)))
    part = None if bounded is None else _some(rng, bounded[1])
    if kind == "drop proof":
        c["proofs"].remove(proof)
    elif kind == "drop floor" and c["floors"]:
        c["floors"].remove(_some(rng, c["floors"]))
    elif kind == "swap leaders" and len(c["proofs"]) > 1:
        other = _some(rng, [p for p in c["proofs"] if p is not proof])
        proof["leader"], other["leader"] = other["leader"], proof["leader"]
    elif kind == "one successor":
        proof["successor"] = int(rng.integers(9)) if proof["successor"] is None else None
    elif kind == "drop event":
        del events[place]
    elif kind == "repeat event":
        events.insert(place, copy.deepcopy(events[place]))
    elif kind == "close early":
        events[place] = ["close", []]
    elif kind == "branch elsewhere":
        branch = _some(rng, [event for event in events if event[0] in ("branch", "vote")])
        if branch is None:
            return None
        branch[1] = int(rng.integers(9))
    elif kind == "other branch":
        branch = _some(rng, [event for event in events if event[0] in ("branch", "vote")])
        if branch is None:
            return None
        branch[0] = "vote" if branch[0] == "branch" else "branch"
    elif kind == "fix more":
        fixed = _some(rng, [event for event in events if event[0] == "fix"])
        if fixed is None:
            return None
        fixed[int(rng.integers(2, 4))].append(int(rng.integers(9)))
    elif part is None:
        return None
    elif kind == "move multipliers":
        at = int(rng.integers(len(part[3])))
        part[3][at] = int(part[3][at] * rng.choice([0, 0.25, 4])) + int(rng.integers(-3, 3))
    elif kind == "other grid":
        part[2] += int(rng.choice([-4, -2, 1, 4]))
    elif kind == "other weight" and part[1] is not None:
        part[1] = float(part[1] * rng.choice([-1.0, 0.0, 0.3, 10.0]))
    elif kind == "other scenario":
        part[0] = int(rng.integers(10))
    elif kind == "drop scenario":
        bounded[1].remove(part)
    else:
        return None
    return c


KINDS = (
    "drop proof", "drop floor", "swap leaders", "one successor", "drop event", "repeat event",
    "close early", "branch elsewhere", "other branch", "fix more", "move multipliers", "other grid",
    "other weight", "other scenario", "drop scenario",
)  # fmt: skip


@pytest.mark.parametrize(
    ("clients_move", "intervals", "some"), [(False, 1, 400), (True, 1, 60), (False, 2, 60)]
)
def test_no_mutation_proves_what_is_false(clients_move, intervals, some):
    """Changed certificates are refused, or prove the old claim in another way; never a larger.

    Eighty of them in every run, thousands in the long form.
    """
    rng = np.random.default_rng(11)
    plans = trees(clients_move, intervals)
    kinds = {
        (event[0], proof["successor"] is None)
        for plan in plans
        for proof in plan.certificate["proofs"]
        for event in proof["events"]
    }
    needed = {"close", "branch", "enumerate"} | (set() if clients_move else {"fix", "vote"})
    assert {kind for kind, _ in kinds} >= needed
    tried, gone = Counter(), Counter()
    for number in range(examples(some)):
        plan = plans[number % len(plans)]
        kind = KINDS[number % len(KINDS)]
        changed = mutate(plan.certificate, kind, rng)
        if changed is None:
            continue
        tried[kind] += 1
        gone[kind] += refused(believing(plan, changed))
        assert refused(believing(plan, changed, false_bound(plan, plan.objective))), kind
    if not clients_move and intervals == 1:
        assert all(gone[kind] for kind in tried), gone
    assert gone["drop proof"] == tried["drop proof"]
    assert sum(gone.values()) > sum(tried.values()) / 3


@pytest.mark.parametrize("nonsense", [None, 3, "x", [], {}, [{}], [[0]], math.nan])
def test_nonsense_is_refused_not_a_traceback(nonsense):
    plan = solve(question(1, "worst")[0])
    for key in set(plan.certificate) - {"ties"}:
        harmless = nonsense in ([], {}) and not plan.certificate[key]
        if not harmless and not (nonsense == {} and key == "floors"):
            assert refused(believing(plan, {**plan.certificate, key: nonsense})), key
    for broken in ({"leader": 0}, {"leader": 0, "successor": None, "events": [nonsense]}):
        proofs = [*plan.certificate["proofs"], broken]
        assert refused(believing(plan, {**plan.certificate, "proofs": proofs}))


def test_weights_of_nothing_prove_nothing():
    """The sum of no scenarios at all is 0, which reaches any threshold."""
    plan = solve(question(1, "worst")[0])
    for weight in (0.0, 1e-30, -0.5, math.inf):
        c = copy.deepcopy(dict(plan.certificate))
        for event in _with_multipliers(c["proofs"]):
            for part in event[1]:
                part[1] = weight
        assert not _with_multipliers(c["proofs"]) or refused(believing(plan, c))


def test_enumeration_has_a_limit_that_is_seen_before_the_work():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnitsWarning)
        instance = random_instance(3, sites=12, clients=4)
    plan = solve(placement.Problem(instance, replicas=6, voters=3, objective=Contingency()))
    c = copy.deepcopy(dict(plan.certificate))
    for proof in c["proofs"]:
        proof["events"] = [["enumerate"]]
    with pytest.raises(LimitError):
        check_certificate(believing(plan, c), work=1_000_000)


@pytest.mark.parametrize("seed", range(examples(50)))
def test_no_voters_of_a_state_wait_less_than_its_bound(seed):
    """With RTTs that vary, whatever is decided of replicas and votes, and whatever is lost."""
    rng = np.random.default_rng(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnitsWarning)
        instance = random_instance(seed, sites=6, clients=2, intervals=3, varying=True)
    problem = placement.Problem(instance, replicas=4, voters=3, objective=Contingency())
    claim = LossClaim(problem, "worst", 1.0, 0.0, None)
    costs, reached = claim.exact, 0
    for _ in range(20):
        leader, *decided = rng.permutation(6).tolist()
        state = State(frozenset((leader,)), frozenset(), frozenset((leader,)))
        changes = rng.integers(0, 5, 5).tolist()
        for site, change in zip(decided, changes, strict=True):
            if change == 0 and len(state.inside) < 4:
                state = state.with_site(site)
            elif change == 1 and len(state.voters) < 3 and len(state.inside) < 4:
                state = state.with_vote(site)
            elif change == 2:
                state = state.without_vote(site)
            elif change == 3:
                state = state.without_site(site)
        lost = frozenset(rng.permutation(decided)[: int(rng.integers(0, 2))].tolist())
        waits = [
            costs.single(leader).constant + costs.wait(leader, alive)
            for voters in itertools.combinations(range(6), 3)
            if leader in voters
            and state.voters <= set(voters)
            and not (state.outside | state.others) & set(voters)
            and len(state.inside | set(voters)) <= 4
            and len(alive := [v for v in voters if v not in lost]) >= 2
        ]
        found = costs.led((leader,), lost, state)
        if waits:
            assert found is not None
            assert found <= min(waits)
            reached += found == min(waits)
    assert reached
