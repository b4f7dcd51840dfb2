"""Certificates made to mislead or to exhaust; both forms of the checker have one verdict."""

import copy
import itertools
import math

import numpy as np
import pytest

from placement.errors import CertificateError, LimitError
from placement.proof.certificate_check import check_certificate
from placement.proof.claim import Claim
from placement.support.status import Status
from placement.testing import optimum
from tests.effort import examples, seeds, thinned
from tests.proof.test_checker import (
    MUTATIONS,
    certified,
    certified_problems,
    mutate,
    plain,
    solve,
    with_certificate,
)

pytestmark = pytest.mark.usefixtures("loops")

NUMBERS = [
    2**63, -(2**63), 2**64, 10**400, -(10**400), 1e308, -1e308, math.nan, math.inf, -math.inf,
    "1", None, [1.0], {}, [[[[]]]], 5e-324,
]  # fmt: skip


@pytest.mark.parametrize("value", NUMBERS, ids=lambda value: str(value)[:8])
def test_no_number_of_a_certificate_proves_what_is_false(value):
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
    place = next(at for at, one in enumerate(NUMBERS) if one is value)
    for event in thinned(hostile, 3, place):
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


KINDS = (*MUTATIONS, "raise a little", "move beta", "wild multiplier", "beta of all")


def prepared(plan, kind, rng):
    """A certificate with events of the kind that is to be mutated, where the search used none."""
    c = copy.deepcopy(dict(plan.certificate))
    sites, clients = len(plan.problem.instance.sites), len(c["clients"])
    for proof in c["proofs"]:
        if [e[0] for e in proof["events"]] == ["close"]:
            (close,) = proof["events"]
            site = (proof["leader"] + int(rng.integers(1, sites))) % sites
            if kind == "flip branch":
                proof["events"] = [["branch", site], close, copy.deepcopy(close)]
            elif kind in ("fix more", "close early"):
                out, kept = ([site], []) if rng.random() < 0.5 else ([], [site])
                proof["events"] = [["fix", close[1], out, kept], copy.deepcopy(close)]
        if kind == "move beta":
            size = c["bound"] / clients / 1000 * float(rng.choice([0.1, 1, 10]))
            entries = [
                [int(rng.integers(sites)), int(rng.integers(clients)), size * rng.random()]
                for _ in range(4)
            ]
            proof["events"].insert(0, ["beta", entries])
            c["bound"] = plan.bound * float(rng.choice([0.98, 0.9999]))
    return c


def mutate_more(certificate, kind, rng):
    """Mutations of the checker's tests, and those that aim at rounding and wrapping around."""
    if kind in MUTATIONS:
        return mutate(certificate, kind, rng)
    c = copy.deepcopy(dict(certificate))
    if kind == "raise a little":
        c["bound"] *= 1 + float(rng.choice([1e-9, 1e-10, 1e-11, 3e-12]))
        return c
    events = [event for proof in c["proofs"] for event in proof["events"]]
    if kind == "move beta":
        events = [event for event in events if event[0] == "beta" and event[1]]
        if not events:
            return None
        event = events[int(rng.integers(len(events)))]
        entry = list(event[1][int(rng.integers(len(event[1])))])
        entry[2] = entry[2] * float(rng.choice([0, 0.5, 1.01, 2])) + float(rng.choice([0, 1e4]))
        event[1] = [*event[1], entry]
        return c
    if kind == "beta of all":
        value = float(rng.choice([1.0, 1e6, 1e18, 1e300]))
        proof = c["proofs"][int(rng.integers(len(c["proofs"])))]
        proof["events"].insert(0, ["beta", [[0, i, value] for i in range(len(c["clients"]))]])
        return c
    holders = [event for event in events if event[0] in ("close", "fix") and event[1]]
    if not holders:
        return None
    u = holders[int(rng.integers(len(holders)))][1]
    u[int(rng.integers(len(u)))] = float(rng.choice([2.0**63, -(2.0**63), 1e308, -1e308, 5e-324]))
    return c


def verdict(plan):
    try:
        check_certificate(plan)
    except CertificateError as flaw:
        return str(flaw)
    return None


def compare(plans, rng, per_kind):
    """Ask both forms about mutated certificates; return how many of each kind both refused."""
    refused = dict.fromkeys(KINDS, 0)
    proved = 0
    for kind in KINDS:
        tried = 0
        for _ in range(30 * per_kind):
            plan = plans[int(rng.integers(len(plans)))]
            changed = mutate_more(prepared(plan, kind, rng), kind, rng)
            if changed is None:
                continue
            tried += 1
            believer = plan.replace(
                certificate=changed, bound=changed["bound"], status=Status.FEASIBLE
            )
            quick = verdict(believer)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Claim, "rounded", None)
                slow = verdict(believer)
            assert quick == slow
            refused[kind] += quick is not None
            proved += quick is None
            if tried == per_kind:
                break
        assert tried == per_kind, kind
    assert proved
    return refused


@pytest.mark.parametrize("seed", seeds(1, 5))
def test_both_forms_have_the_same_verdict_on_mutated_certificates(seed):
    per_kind = examples(50, 4)
    refused = compare(certified_problems(), np.random.default_rng(1 + seed), per_kind)
    assert refused["raise bound"] == refused["drop proof"] == per_kind
    assert sum(refused.values()) >= 0.4 * len(KINDS) * per_kind


def test_transfers_are_the_first_event_and_change_no_score():
    """Any amounts at the start leave a certificate true or refused; later they are refused."""
    refused = 0
    for plan in certified_problems()[::9]:
        sites, clients = len(plan.problem.instance.sites), len(plan.certificate["clients"])
        if clients < 2:
            continue
        moved = ["transfer", [[0, sites - 1, 1, 1.0], [1, 0, 0, 0.5]]]
        for at in (0, 1):
            edited = copy.deepcopy(plan.certificate)
            events = edited["proofs"][0]["events"]
            events.insert(at, moved)
            try:
                check_certificate(plan.replace(certificate=edited))
            except CertificateError:
                refused += at
            else:
                assert at == 0
    assert refused > 2


def test_a_claim_of_one_part_in_a_thousand_million_too_much_is_refused():
    for plan in certified_problems()[::12]:
        claim = optimum(plan.problem) * (1 + 1e-9)
        edited = with_certificate(plan, bound=claim).replace(bound=claim, status=Status.FEASIBLE)
        with pytest.raises(CertificateError):
            check_certificate(edited)
