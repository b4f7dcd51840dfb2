"""Shares of late operations of the checker, and proofs that rounding could spoil."""

import warnings

import numpy as np
import pytest

from placement import Configuration, Instance, Problem, solve
from placement.errors import CertificateError, UnitsWarning
from placement.measures.question import percentile_question
from placement.model.operations import STRONG_READ
from placement.proof.certificate_check import check_certificate
from placement.proof.event_tree import State
from placement.proof.late.late_claim import LateClaim, LateTables
from placement.support.status import Status
from placement.support.work import Work
from placement.tail import Distributions
from placement.tail.late_operations import LateOperations
from placement.tail.objective import Percentile
from placement.testing import random_instance
from tests.tail.worlds import drawn


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
