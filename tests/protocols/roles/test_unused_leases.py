"""Lease holders that no operation uses: they are chosen all the same, and named in every proof."""

from __future__ import annotations

import numpy as np
import pytest

import placement
from placement import Operation, Problem
from placement.contingency.objective import Contingency
from placement.methods.options import Options
from placement.methods.registry import load_method, run
from placement.model.configuration import Configuration
from placement.proof.certificate_check import check_certificate
from placement.support.status import Status
from placement.tail import Distributions, Percentile
from placement.testing import random_instance

WEAK = (Operation("weak", near=1),)
APART = (Operation("relay only", relay=1), Operation("votes only", quorum=1))
HOLDERS = ("leases:holders=2", "leases:holders=voters")


def _question(operations: tuple[Operation, ...], protocol: str) -> Problem:
    instance = random_instance(3, sites=4, clients=3)
    counts = np.ones((1, 3, len(operations)))
    instance = instance.replace(operations=operations, counts=counts)
    return Problem(instance, replicas=3, voters=2, protocol=protocol)


def _held(configuration: Configuration | None) -> int:
    assert configuration is not None
    return len(configuration.lease_holders)


@pytest.mark.parametrize("protocol", HOLDERS)
@pytest.mark.parametrize("operations", [WEAK, APART])
def test_enumeration_chooses_them(operations, protocol):
    """A configuration without them was returned, which the registry refused with a SolverError."""
    problem = _question(operations, protocol)
    every = run(load_method("exhaustive"), problem, Options())
    plan = placement.solve(problem)
    assert _held(every.configuration) == _held(plan.configuration) == 2
    assert plan.objective == pytest.approx(every.objective, rel=1e-12)
    assert check_certificate(plan).bound <= plan.objective


@pytest.mark.parametrize("protocol", HOLDERS)
@pytest.mark.parametrize("operations", [WEAK, APART])
def test_a_percentile_is_not_called_infeasible(operations, protocol):
    """Enumeration said "infeasible", and the certificate of `exact` named no lease holders."""
    problem = _question(operations, protocol)
    spread = Distributions.parametric(problem.instance, variation=0.3, width=10, bins=60)
    problem = problem.replace(objective=Percentile(90, spread))
    every = run(load_method("exhaustive"), problem, Options())
    plan = placement.solve(problem)
    assert every.status is plan.status is Status.OPTIMAL
    assert _held(every.configuration) == _held(plan.configuration) == 2
    assert plan.objective == every.objective
    assert check_certificate(plan).bound <= plan.objective


@pytest.mark.parametrize("protocol", HOLDERS)
def test_the_worst_case_has_them_too(protocol):
    instance = random_instance(5, sites=5, clients=3)
    instance = instance.replace(operations=APART, counts=np.ones((1, 3, 2)))
    problem = Problem(
        instance, replicas=4, voters=3, protocol=protocol, objective=Contingency("site")
    )
    every = run(load_method("exhaustive"), problem, Options())
    plan = placement.solve(problem)
    assert every.status is plan.status is Status.OPTIMAL
    assert _held(every.configuration) == _held(plan.configuration)
    assert plan.objective == pytest.approx(every.objective, rel=1e-9)
    assert check_certificate(plan).bound <= plan.objective


def test_certificates_name_roles_alike():
    one = Configuration.of(1, [1, 2], [2, 1], [1])
    two = Configuration.of(1, [1, 2], [2, 1])
    assert one.to_document() == {
        "leader": 1,
        "voters": [1, 2],
        "replicas": [1, 2],
        "lease_holders": [1],
    }
    assert "lease_holders" not in two.to_document()
