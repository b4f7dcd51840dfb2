"""An independent check of optimality certificates, in whole numbers without rounding errors.

The checker shares no code with any search. It reads the demand and the constraints of a problem,
and a certificate (formats ``replica-placement/bound/1`` for the mean,
``replica-placement/thresholds/1`` for measures and ``replica-placement/percentile/1``). It
proves again that no configuration has an objective below the certificate's bound. Bounds are
computed in int64 with costs rounded down. If this does not decide, Python integers do: every double
is a whole multiple of a power of two. (Probabilities are sums of products of doubles, computed with
a margin.)

The proof of one leader, and why it is valid, is in :mod:`placement.proof.leader_proof`; of
one leader and its successors after losses, in :mod:`placement.proof.measures_proof`. That there
is no configuration at all is proved by counting (format ``replica-placement/no-plan/1``,
:mod:`placement.proof.no_plan_check`), or as a claim about losses.

The evaluator works in doubles, so that scores within a relative 1e-12 are the same score
(:data:`placement.evaluation.score.TIE`); with that tolerance, and no other, a bound proves a claim.
Where all data are whole numbers there is none.

Three sites by hand: A and B are 30 ms apart, A and C 90, B and C 70. The clients at A, B and C each
read and write 6, 3 and 1 times. A read goes to the nearest replica, a write to the leader, who
waits for one more vote. The plan has two replicas, A and B, and A leads:

>>> import dataclasses
>>> import placement
>>> from placement import Instance, Operation
>>> rtt = [[0, 30, 90], [30, 0, 70], [90, 70, 0]]
>>> kinds = [Operation("read", near=1), Operation("write", direct=1, quorum=1)]
>>> names = ["A", "B", "C"]
>>> counts = [[6, 6], [3, 3], [1, 1]]
>>> three = Instance(names, names, rtt, rtt, operations=kinds, counts=counts)
>>> plan = placement.solve(placement.Problem(three, replicas=2, voters=2))
>>> plan.leader, plan.replicas, plan.objective
('A', ('A', 'B'), 550.0)
>>> plan.certificate["proofs"][0]
{'leader': 0, 'events': [['close', [0.0, 45.0, 80.0]]]}

The event bounds every plan under A with u = (0, 45, 80). The way of the writes to A costs
3 · 30 + 90 = 180, and Σ_c min(u_c, cost at A) = 0 + 45 + 80 = 125. A replica at B saves
45 + (80 − 70) = 55, and one at C saves 80. The ten waits for the vote of B cost 300, and those for
the vote of C cost 900. So L = 180 + 125 + min(300 − 55, 900 − 80) = 550. A claim of 551 fails:

>>> placement.check_certificate(plan).bound
550.0
>>> more = dataclasses.replace(plan, bound=551.0, certificate={**plan.certificate, "bound": 551.0})
>>> placement.check_certificate(more)
Traceback (most recent call last):
    ...
placement.errors.CertificateError: proof for leader 0, event 0: the bound does not reach the claim
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np

from placement.errors import CertificateError
from placement.evaluation.objective import MEAN_LATENCY
from placement.feasibility.feasible_plans import (
    MOST_PLACES,
    count_places,
    named_question,
    violations,
    witness_places,
)
from placement.measures.measure import Measure, MeasureKind
from placement.measures.question import MeasureQuestion
from placement.model.configuration import Configuration
from placement.plan import Plan, objective_value
from placement.problem import Problem
from placement.proof.claim import Claim, MeanQuestion
from placement.proof.costs.multipliers import SharedMultipliers
from placement.proof.enumeration_check import FORMAT as ENUMERATION
from placement.proof.enumeration_check import check_enumeration, steps_of_enumeration
from placement.proof.leader_proof import LeaderProof
from placement.proof.measures_proof import FORMAT as THRESHOLDS
from placement.proof.measures_proof import MeasuresClaim, MeasuresProof, check_measures
from placement.proof.no_plan_check import FORMAT as NO_PLAN
from placement.proof.no_plan_check import check_no_plan
from placement.proof.start_bounds import closed_at_once
from placement.support.checks import instance_of
from placement.support.status import Status, status_of
from placement.support.work import WORK, Work

FORMAT = "replica-placement/bound/1"

PLACES = "replica-placement/witness-places/1"
"""A certificate for each choice of sites for the witnesses, in `parts`."""

_FORMATS = (
    FORMAT, THRESHOLDS, PLACES, ENUMERATION,
)  # fmt: skip
_FEW_STEPS = 100_000_000  # of an enumeration that runs without being asked for
_SCORE_TOLERANCE = 1e-9
MALFORMED = (
    KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError, RecursionError,
)  # fmt: skip
_PARTS = 10**12  # 1 / placement.evaluation.score.TIE


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Result of a check: no configuration lies below `bound`; `score` is the plan's own.

    `leaders`, `events` and `bounds` count the proofs, events and bounds L that were recomputed.
    Where there is no plan, `bound` and `score` are +∞; where that was shown by counting, `events`
    says how often, and `bounds` is 0. `normal_bound` is given for a plan of the best worst case or
    percentile: no equally good configuration has a lower score in normal operation.
    """

    bound: float
    score: float
    leaders: int
    events: int
    bounds: int
    normal_bound: float | None = None


def check_certificate(plan: Plan, *, work: int = WORK) -> CheckResult:
    """Prove a plan's optimality, or that there is no plan, from its certificate, or refuse.

    Parameters
    ----------
    plan
        With a certificate; an infeasible one may do without where counting alone shows it, or where
        there are few configurations.
    work
        Most steps to take. A bound, and an evaluated replica set, takes |S| · |C| / 32 steps
        in int64 and |S| · |C| in Python integers, and up to |S| · (|S| + 3) + 1,000 more.

    Returns
    -------
    CheckResult
        What was proved.

    Raises
    ------
    CertificateError
        When the plan carries no certificate, when it belongs to another problem, when any step of
        the proof does not hold, or when the plan claims more than is proved.
    LimitError
        When the proof takes more than `work` steps: it is neither proved nor refused.

    Notes
    -----
    One bound is O(|C|·|S|) operations on integers; a proof has a few per leader in the common case.
    """
    instance_of(plan, Plan, "plan", "a plan (placement.solve returns one)")
    problem, certificate = plan.problem, plan.certificate
    infeasible = plan.configuration is None and plan.status is Status.INFEASIBLE
    if certificate is None and not infeasible:
        raise CertificateError("the plan carries no certificate")
    if plan.configuration is None and not infeasible:
        raise CertificateError("the plan has no configuration to prove optimal")
    try:
        if certificate is None or (infeasible and certificate["format"] == NO_PLAN):
            return _check_no_plan(plan, certificate, Work(work))
        return _check(plan, problem, certificate, Work(work))
    except MALFORMED as error:
        raise CertificateError(f"the certificate is malformed: {error!r:.200}") from error


def _check_no_plan(plan: Plan, certificate: Mapping[str, Any] | None, work: Work) -> CheckResult:
    """Show by counting that there is no plan, or by looking at everything where that is little."""
    rules, sites = _survivors(plan.problem).rules, plan.problem.instance.sites
    limited = bool(plan.problem.limits) and plan.problem.objective.minimises_mean
    try:
        if certificate is None and limited and _beyond_limits(plan.problem, work):
            return CheckResult(math.inf, math.inf, int(rules.may_lead.sum()), 0, bounds=0)
        counted = check_no_plan(rules, sites, certificate)
    except CertificateError:
        if certificate is not None or steps_of_enumeration(plan.problem) > _FEW_STEPS:
            raise
        leaders, seen, _ = check_enumeration(plan, math.inf, work)
        counted = leaders, seen
    return CheckResult(math.inf, math.inf, *counted, bounds=0)


def _beyond_limits(problem: Problem, work: Work) -> bool:
    """Return whether the cheapest replicas exceed a limit under every leader."""
    if problem.demand.scenarios > 1 or problem.rules.witnesses or problem.demand.has_waits:
        return False
    try:
        question = MeasuresClaim(problem, None)
    except ValueError:
        return False
    leaders: list[int] = np.nonzero(question.rules.may_lead)[0].tolist()
    trees = [MeasuresProof(question, leader, work) for leader in leaders]
    return all(
        tree.closed_at_once(tree.start(leader)) for tree, leader in zip(trees, leaders, strict=True)
    )


def _survivors(problem: Problem) -> Problem:
    """Return the mean under the objective's own rules, which all its configurations obey."""
    rules = problem.rules
    implied = problem.objective.diversity(problem.instance, rules.voters, rules.quorum)
    return problem.replace(objective=MEAN_LATENCY, diversity=(*problem.diversity, *implied))


def _check(plan: Plan, problem: Problem, certificate: Mapping[str, Any], work: Work) -> CheckResult:
    kind = certificate["format"]
    if kind not in _FORMATS:
        raise CertificateError(f"unknown format {kind!r}, expected {FORMAT!r}")
    if kind == ENUMERATION:
        score, bound = _claimed(plan, problem, certificate)
        leaders, events, normal = check_enumeration(plan, bound, work)
        return CheckResult(bound, score, leaders, events, 0, normal)
    if problem.demand.scenarios != 1 and kind not in (FORMAT, THRESHOLDS, PLACES):
        raise CertificateError("certificates of this format prove questions of one RTT matrix only")
    if problem.limits and not problem.objective.minimises_mean and kind != THRESHOLDS:
        raise CertificateError("certificates prove limits only where the mean is minimised")
    score, bound = _claimed(plan, problem, certificate)
    if kind == PLACES:
        return CheckResult(bound, score, *_check_places(problem, bound, certificate, work))
    if kind != FORMAT:
        leaders, events, bounds = _check_measures(problem, bound, certificate, work)
        ties = certificate.get("ties")
        if ties is None:
            return CheckResult(bound, score, leaders, events, bounds)
        normal, more_events, more_bounds = _check_ties(plan, problem, ties, work)
        return CheckResult(
            bound, score, leaders, events + more_events, bounds + more_bounds, normal
        )
    if not problem.objective.minimises_mean:
        raise CertificateError("certificates of this format prove mean latency only")
    # what no plan undercuts without limits and prices of moves, none does with them
    free = problem.replace(current=None, moves=None)
    return CheckResult(bound, score, *check_mean(free, bound, certificate, work))


def _check_places(
    problem: Problem, bound: float, certificate: Mapping[str, Any], work: Work
) -> tuple[int, int, int]:
    """Prove the bound for every choice of sites for the witnesses."""
    parts: list[Mapping[str, Any]] = list(certificate["parts"])
    if not problem.rules.witnesses or count_places(problem) > MOST_PLACES:
        raise CertificateError("certificates of this format do not prove this question")
    counts = np.zeros(3, dtype=np.intp)
    places = list(witness_places(problem))
    if len(places) != len(parts):
        raise CertificateError("not exactly one part for every choice of sites for the witnesses")
    for chosen, part in zip(places, parts, strict=True):
        named = named_question(problem, chosen)
        if named is None or part["format"] not in (FORMAT, NO_PLAN):
            raise CertificateError("certificates of this format do not prove this question")
        if part["format"] == NO_PLAN:
            counts[:2] += check_no_plan(named.rules, named.instance.sites, part)
        else:
            counts += check_mean(named, bound, part, work)
    leaders, events, bounds = counts.tolist()
    return leaders, events, bounds


def _check_measures(
    problem: Problem, bound: float, certificate: Mapping[str, Any], work: Work
) -> tuple[int, int, int]:
    """Prove a bound within limits on measures, or by the question of the mean without limits."""
    asked = problem.objective
    if not isinstance(asked, MeasureQuestion) and not asked.minimises_mean:
        raise CertificateError("certificates of this format prove measures only")
    if "mean" not in certificate:
        return check_measures(problem, bound, certificate, work)
    if not isinstance(asked, MeasureQuestion) or asked.aim != Measure(MeasureKind.MEAN):
        raise CertificateError("a bound on the mean, which is not what is minimised")
    mean = certificate["mean"]
    if mean["format"] != FORMAT:
        raise CertificateError(f"unknown format {mean['format']!r} of the bound on the mean")
    own = float(mean["bound"])
    if not own >= bound * problem.demand.operations * (1 - 1 / _PARTS):
        raise CertificateError(f"a mean of {own!r} does not show {bound!r}")
    return check_mean(_survivors(problem), own, mean, work)


def _check_ties(
    plan: Plan, problem: Problem, ties: Mapping[str, Any], work: Work
) -> tuple[float, int, int]:
    """Prove that no plan of the same worst case or percentile has a lower mean.

    Return the bound on its score, and how many events and bounds there were.
    """
    bound = float(ties["bound"])
    if status_of(plan.found, plan.score, bound) is not Status.OPTIMAL:
        raise CertificateError(f"{bound!r} does not make the normal score {plan.score!r} the least")
    if ties["format"] == THRESHOLDS:
        return bound, *check_measures(problem, bound, ties, work, ties=plan.objective)[1:]
    if ties["format"] != FORMAT:
        raise CertificateError(f"unknown format {ties['format']!r} of the second claim")
    return bound, *check_mean(_survivors(problem), bound, ties, work)[1:]


def _claimed(plan: Plan, problem: Problem, certificate: Mapping[str, Any]) -> tuple[float, float]:
    """Return the score of the plan and the bound that is claimed, which the plan may rest on."""
    bound = float(certificate["bound"])
    if plan.configuration is None:
        if bound != math.inf:
            raise CertificateError(f"a bound of {bound!r} does not say that there is no plan")
        return math.inf, bound
    own = Configuration.of(
        int(certificate["leader"]), certificate["voters"], certificate["replicas"]
    )
    if (own.leader, set(own.voters), own.replicas) != (
        plan.configuration.leader, set(plan.configuration.voters), plan.configuration.replicas,
    ):  # fmt: skip
        raise CertificateError("the certificate is about another configuration than the plan")
    broken = violations(problem, plan.configuration)
    if broken:
        raise CertificateError("the configuration is not feasible: " + "; ".join(broken))
    score = objective_value(problem, plan.configuration)
    if not abs(float(certificate["score"]) - score) <= _SCORE_TOLERANCE * abs(score):
        raise CertificateError(f"the score is {score!r}, not {certificate['score']!r}")
    if not plan.bound <= bound + abs(bound) / _PARTS:  # NaN is refused too
        raise CertificateError(f"the plan claims the bound {plan.bound!r}, the proof {bound!r}")
    if plan.status is Status.OPTIMAL and status_of(True, score, bound) is not Status.OPTIMAL:
        raise CertificateError(f"a bound of {bound!r} does not make {score!r} optimal")
    return score, bound


def check_mean(
    problem: MeanQuestion, bound: float, certificate: Mapping[str, Any], work: Work
) -> tuple[int, int, int]:
    """Prove a bound on the mean; return how many leaders, events and bounds there were.

    CertificateError when a step of the proof does not hold, LimitError after too much work.
    """
    rules = problem.rules
    try:
        claim = Claim(problem, bound, float(certificate["granularity"]))
        sizes = len(rules.may_hold), len(claim.clients)
        shared = [SharedMultipliers.read(one, *sizes) for one in certificate.get("shared", ())]
    except ValueError as flaw:
        raise CertificateError(str(flaw)) from None
    if [index(c) for c in certificate["clients"]] != claim.clients.tolist():
        raise CertificateError("the certificate counts other clients than the problem has")
    proofs: list[Mapping[str, Any]] = list(certificate["proofs"])
    leaders = [None if p["leader"] is None else index(p["leader"]) for p in proofs]
    if leaders == [None]:
        if claim.leader_matters:
            raise CertificateError("one proof for all leaders, but the leader matters")
    elif sorted(x for x in leaders if x is not None) != np.nonzero(rules.may_lead)[0].tolist():
        raise CertificateError("not exactly one proof for every site that may lead")
    pairs = list(zip(leaders, proofs, strict=True))
    closed = closed_at_once(claim, pairs, shared, work)
    events = bounds = int(closed.sum())
    for leader, proof in [pair for pair, done in zip(pairs, closed, strict=True) if not done]:
        replay = LeaderProof(claim, leader, work, shared)
        replay.replay(proof["events"])
        events, bounds = events + replay.events, bounds + replay.bounds
    return len(proofs), events, bounds
