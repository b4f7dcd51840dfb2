"""Certificates about percentiles: each one holds, and none proves a later percentile."""

import copy
import functools
import warnings

import numpy as np
import pytest

from placement import Problem
from placement.errors import CertificateError, UnitsWarning
from placement.methods.options import Options
from placement.methods.registry import load_method, run
from placement.proof.certificate_check import check_certificate
from placement.proof.event_tree import State
from placement.proof.late.late_claim import LateClaim, LateTables
from placement.support.status import Status
from placement.support.work import Work
from placement.tail import Distributions, Percentile
from placement.tail.late_operations import LateOperations
from placement.testing import random_instance
from tests.effort import examples, seeds
from tests.tail import test_losses
from tests.tail.test_exact import question

EXACT, EXHAUSTIVE = load_method("exact"), load_method("exhaustive")
QUESTIONS = {
    "nothing lost": question,
    "losses": test_losses.question,
    "rules": functools.partial(test_losses.question, rules=True),
    "intervals": functools.partial(question, intervals=2),
    "many clients": functools.partial(question, crowd=6),
    "losses, intervals": functools.partial(test_losses.question, intervals=2),
}
ASKED = pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)


def width_of(problem):
    goal = problem.objective
    return getattr(goal, "percentile", goal).distributions.width


def proven(seed, question=question):
    """A question and its plan by enumeration; None where there is no plan."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnitsWarning)
        problem = question(seed)
    plan = run(EXHAUSTIVE, problem, Options())
    return (problem, plan) if plan.found else None


def refused(plan):
    try:
        check_certificate(plan)
    except CertificateError:
        return True
    return False


def enumerated(plan, deadline, **more):
    """A claim whose proof looks at every replica set of every leader."""
    problem = plan.problem
    proofs = [
        {"leader": leader, "deadline": deadline, "events": [["enumerate"]]}
        for leader in np.nonzero(problem.rules.may_lead)[0].tolist()
    ]
    return {
        "format": "replica-placement/percentile/1",
        "clients": LateClaim(problem, None).claim.clients.tolist(),
        "deadline": deadline,
        "proofs": proofs,
        **more,
    }


def certificate_of(plan, deadline, bound, ties=None):
    best = plan.configuration
    more = {} if ties is None else {"ties": ties}
    return enumerated(
        plan,
        deadline,
        leader=best.leader,
        voters=list(best.voters),
        replicas=list(best.replicas),
        score=plan.objective,
        bound=bound,
        **more,
    )


@ASKED
@pytest.mark.parametrize("block", seeds(1, 20))
def test_no_false_claim_is_proved_by_looking_at_everything(block, question):
    """Five questions in every run: the percentile holds, one bin more does not, nor a mean."""
    for seed in range(5 * block, 5 * block + 5):
        found = proven(seed, question)
        if found is None:
            continue
        problem, plan = found
        width = width_of(problem)
        deadline = round(plan.objective / width)
        mean = enumerated(plan, deadline, bound=plan.score * (1 - 9e-10))
        whole = certificate_of(plan, deadline - 1, plan.objective, mean)
        checked = check_certificate(plan.replace(certificate=whole))
        assert (checked.bound, checked.normal_bound) == (plan.objective, mean["bound"])
        later = certificate_of(plan, deadline, (deadline + 1) * width)
        believer = plan.replace(certificate=later, bound=later["bound"], status=Status.FEASIBLE)
        assert refused(believer), seed
        lower = {**mean, "bound": plan.score * (1 + 5e-10)}
        assert refused(plan.replace(certificate={**whole, "ties": lower})), seed
        earlier = {**mean, "deadline": deadline - 1}
        assert refused(plan.replace(certificate={**whole, "ties": earlier})), seed


@ASKED
@pytest.mark.parametrize("block", seeds(1, 30))
def test_every_certificate_of_the_search_holds_and_none_proves_more(block, question):
    """Ten questions in every run: ordered and crossing spreads, with mass beyond the horizon."""
    for seed in range(10 * block, 10 * block + 10):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnitsWarning)
            problem = question(seed)
        plan = run(EXACT, problem, Options())
        checked = check_certificate(plan)
        assert checked.bound == plan.bound, seed
        if plan.found:
            assert checked.normal_bound == pytest.approx(plan.score, rel=1e-9)
            width = width_of(problem)
            later = dict(plan.certificate)
            later |= {"deadline": later["deadline"] + 1, "bound": later["bound"] + width}
            believer = plan.replace(certificate=later, bound=later["bound"])
            assert refused(believer.replace(status=Status.FEASIBLE)), seed
            ties = dict(plan.certificate["ties"])
            lower = {**plan.certificate, "ties": {**ties, "bound": plan.score * (1 + 5e-10)}}
            assert refused(plan.replace(certificate=lower)), seed


@pytest.mark.parametrize("bins", [4_000, 12_000])
def test_plans_with_many_bins_have_certificates_that_hold(bins):
    """The tables of a checker may be off by more where there are more bins."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnitsWarning)
        instance = random_instance(3, sites=7, clients=6)
    spread = Distributions.parametric(instance, variation=0.4, width=0.5, bins=bins)
    problem = Problem(instance, replicas=4, voters=3, objective=Percentile(50, spread))
    plan = run(EXACT, problem, Options())
    assert plan.status is Status.OPTIMAL
    assert plan.objective == run(EXHAUSTIVE, problem, Options()).objective
    checked = check_certificate(plan)
    assert checked.bound == plan.bound
    later = {**plan.certificate, "deadline": plan.certificate["deadline"] + 1}
    later["bound"] += 0.5
    believer = plan.replace(certificate=later, bound=later["bound"], status=Status.FEASIBLE)
    assert refused(believer)


@ASKED
def test_no_mutation_proves_a_later_percentile(question):
    """Changed proofs, with the claim of one bin more, or of a mean that is too large."""
    rng = np.random.default_rng(5)
    refusals = 0
    for seed in range(8):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnitsWarning)
            problem = question(seed)
        plan = run(EXACT, problem, Options())
        if not plan.found or not plan.certificate["proofs"]:
            continue
        width = width_of(problem)
        for _ in range(examples(30)):
            changed = copy.deepcopy(dict(plan.certificate))
            changed |= {"deadline": changed["deadline"] + 1, "bound": changed["bound"] + width}
            proof = changed["proofs"][int(rng.integers(len(changed["proofs"])))]
            proof["deadline"] += int(rng.integers(0, 3))
            events = proof["events"]
            place = int(rng.integers(len(events)))
            kind = int(rng.integers(5))
            if kind == 0:
                events[place] = ["close", []]
            elif kind == 1:
                events[place] = ["voters", [[0, 1.0, 3, [1] * len(changed["clients"])]]]
            elif kind == 2:
                del events[place]
            elif kind == 3:  # another scenario, such as a loss that hits nothing
                for part in events[place][1] if events[place][0] in ("close", "fix") else ():
                    part[0] = int(rng.integers(8))
            else:
                for part in events[place][1] if events[place][0] in ("close", "fix") else ():
                    part[2] -= int(rng.integers(1, 9))
            believer = plan.replace(
                certificate=changed, bound=changed["bound"], status=Status.FEASIBLE
            )
            assert refused(believer), (seed, kind)
            refusals += 1
    assert refusals >= examples(30)


@pytest.mark.parametrize("seed", [0, 1, 2, 4])
def test_shares_of_late_operations_are_those_of_the_evaluator_from_below(seed):
    """For every leader and some voters, at several deadlines: never above, and close."""
    found = proven(seed)
    assert found is not None
    problem, plan = found
    late, claim = LateOperations(problem, problem.objective.distributions), LateClaim(problem, None)
    deadline = round(plan.objective / problem.objective.distributions.width)
    chosen = plan.configuration
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
    problem, plan = proven(0)
    work = Work(10**9)
    tables = LateTables(LateClaim(problem, None), plan.configuration.leader, 5, work)
    state = State(frozenset(plan.configuration.replicas), frozenset())
    assert work.left == work.limit
    first = tables.led(state)
    counted = work.left
    assert counted < work.limit
    assert tables.led(state) == first
    assert work.left == counted
