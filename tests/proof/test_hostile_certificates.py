"""Certificates made to mislead or to exhaust the checker: refused, or the claim is true."""

import copy
import itertools
import math

import pytest

from placement.errors import CertificateError, LimitError
from placement.proof.certificate_check import check_certificate
from placement.proof.claim import Claim
from placement.support.status import Status
from placement.testing import optimum
from tests.proof.test_checker import certified, plain, solve, with_certificate

pytestmark = pytest.mark.usefixtures("loops")

NUMBERS = [
    2**63, -(2**63), 2**64, 10**400, -(10**400), 1e308, -1e308, math.nan, math.inf, -math.inf,
    "1", None, [1.0], {}, [[[[]]]], 5e-324,
]  # fmt: skip


@pytest.mark.parametrize("value", NUMBERS, ids=lambda value: str(value)[:8])
def test_no_number_of_a_certificate_proves_what_is_false(value):
    """A certificate with any value in place of a number is refused, or its claim is true."""
    plan = solve(plain())
    least = optimum(plan.problem)
    events = plan.certificate["proofs"][0]["events"]
    u = next(e[1] for e in events if e[0] in ("close", "fix"))
    hostile = [
        ["close", [value] * len(u)],
        ["close", [*u[:-1], value]],
        ["fix", u, [value], []],
        ["fix", u, [], [value]],
        ["fix", u, value, []],
        ["fix", [value] * len(u), [1, 2], [3]],
        ["branch", value],
        ["transfer", [[value, 0, 1, 1.0]]],
        ["transfer", [[0, value, 1, 1.0]]],
        ["transfer", [[0, 0, value, 1.0]]],
        ["transfer", [[0, 0, 1, value], [1, 1, 0, 1.0]]],
        ["transfer", value],
        ["beta", [[value, 0, 1.0]]],
        ["beta", [[0, value, 1.0]]],
        ["beta", [[0, 0, value]]],
        ["beta", [[s, c, value] for s, c in itertools.product(range(6), range(len(u)))]],
        ["beta", value],
        ["shared", value],
        ["shared", 0],
        ["shared", 1],
        [value],
        value,
    ]
    for event in hostile:
        for claim in (least * 1.01, 1e300):
            proofs = copy.deepcopy(plan.certificate["proofs"])
            for proof in proofs:
                proof["events"].insert(0, event)
            shared = [[0, u, [1] * len(u)]]
            if event == ["shared", 1]:
                shared.append([0, [value] * len(u), [1] * len(u)])
            edited = with_certificate(plan, proofs=proofs, bound=claim, shared=shared)
            edited = edited.replace(bound=claim, status=Status.FEASIBLE)
            try:
                checked = check_certificate(edited)
            except CertificateError:
                continue
            assert checked.bound <= least * (1 + 1e-12)


def test_sites_named_twice_or_out_of_range_are_refused():
    plan = solve(plain())
    u = next(e[1] for e in plan.certificate["proofs"][0]["events"] if e[0] in ("close", "fix"))
    for out, kept in (([1, 1], []), ([1], [1]), ([-1], []), ([6], []), ([10**30], []), ([1.0], [])):
        proofs = copy.deepcopy(plan.certificate["proofs"])
        proofs[0]["events"].insert(0, ["fix", u, out, kept])
        with pytest.raises(CertificateError, match=r"not free, or twice|malformed"):
            check_certificate(with_certificate(plan, proofs=proofs))


@pytest.mark.parametrize("event", [["branch", 1], ["beta", []], ["enumerate"]])
def test_a_million_events_end_early(event):
    plan = solve(plain())
    proofs = copy.deepcopy(plan.certificate["proofs"])
    proofs[0]["events"] = [event] * 1_000_000
    with pytest.raises((CertificateError, LimitError)):
        check_certificate(with_certificate(plan, proofs=proofs), work=100_000)


def test_lists_within_lists_without_end_are_refused():
    plan = solve(plain())
    nested = []
    for _ in range(100_000):
        nested = [nested]
    first, *others = plan.certificate["proofs"]
    u = next(e[1] for e in first["events"] if e[0] in ("close", "fix"))
    for event in (
        nested,
        ["close", nested],
        ["close", [nested] * len(u)],
        ["beta", nested],
        [nested],
    ):
        proofs = [{**first, "events": [event, *first["events"]]}, *others]
        with pytest.raises(CertificateError):
            check_certificate(plan.replace(certificate={**plan.certificate, "proofs": proofs}))
    for key in plan.certificate:
        with pytest.raises(CertificateError):
            check_certificate(plan.replace(certificate={**plan.certificate, key: nested}))


def test_numbers_beyond_the_rounded_grid_are_decided_in_exact_integers():
    """Weights of 1e-200 leave no room for a grid of doubles; the verdict is the same."""
    problem = plain()
    tiny = problem.instance.replace(counts=problem.instance.counts * 1e-200)
    plan = certified(type(problem)(tiny, replicas=3, voters=3))
    assert Claim(plan.problem, plan.bound, 0.0).rounded is None
    assert check_certificate(plan).bound == plan.bound
    claim = plan.bound * (1 + 1e-9)
    with pytest.raises(CertificateError):
        check_certificate(with_certificate(plan, bound=claim).replace(bound=claim))
