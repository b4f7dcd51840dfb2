"""Check of a certificate about losses (format ``replica-placement/losses/1``).

=============  ====================================================================================
"floors"       [[site, bits, u], …]: multipliers of sites eliminated as leaders, successors, or
               both (:func:`placement.proof.losses.loss_proof.reached`)
"proofs"       [{"leader": ℓ, "successor": s or null, "events": […]}, …]: for every leader that is
               not out, one tree for all successors that are not out either (null), or one for each
=============  ====================================================================================

The events are those of :mod:`placement.proof.event_tree`. In place of multipliers a "fix" or
"close" has ``[[scenario, weight, bits, u], …]``; every u is a list of whole numbers of 2^-bits, one
per client of "clients". A "close" without scenarios says that the state holds no set of replicas,
or that one of the losses that hit it leaves no quorum. Weights are null for the goal "weighted".

A plan of the goal "worst" may hold a second claim under "ties": of the configurations whose worst
case is as good, none has a normal score below its "bound". It is a claim of this format, or one of
the mean (``replica-placement/bound/1``) where no configuration at all has a lower normal score.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import index
from typing import Any

import numpy as np

from placement.contingency.objective import Contingency
from placement.errors import CertificateError
from placement.problem import Problem
from placement.proof.losses.loss_claim import LossClaim
from placement.proof.losses.loss_proof import LossProof, reached
from placement.proof.threshold_proof import check_clients, read_multipliers
from placement.support.work import Work

__all__ = ["FORMAT", "check_losses"]

FORMAT = "replica-placement/losses/1"


def check_losses(
    problem: Problem,
    bound: float,
    certificate: Mapping[str, Any],
    work: Work,
    *,
    limit: float | None = None,
) -> tuple[int, int, int]:
    """Prove that no configuration has a value below a bound, or refuse.

    Parameters
    ----------
    problem
        A question about losses.
    bound
        What is to be proved; +∞: there is no configuration.
    certificate
        See the module.
    work
        Steps that may be taken.
    limit
        Given: prove instead that none whose scores are at most this has a lower normal score.

    Returns
    -------
    tuple of int
        How many leaders, events and bounds there were.

    Raises
    ------
    CertificateError
        When a step of the proof does not hold, or something is not covered.
    """
    goal = problem.objective
    if not isinstance(goal, Contingency):
        raise CertificateError("certificates of this format are about losses")
    granularity, kind = float(certificate["granularity"]), goal.goal
    if kind == "weighted" and granularity:
        raise CertificateError("a mean over outages is no whole number")
    if limit is not None:
        kind = "bounded"
    elif kind == "bounded":
        limit = goal.ceiling(problem)
    try:
        question = LossClaim(problem, kind, bound, granularity, limit)
    except ValueError as flaw:
        raise CertificateError(str(flaw)) from None
    return _check(question, certificate, work)


def _check(question: LossClaim, certificate: Mapping[str, Any], work: Work) -> tuple[int, int, int]:
    check_clients(certificate, question.claim.clients.tolist())
    no_leaders, no_successors = set(), set()
    for given, bits, numbers in certificate["floors"]:
        site = index(given)
        if not 0 <= site < len(question.may_vote):
            raise CertificateError(f"no site {site}")
        if question.goal == "weighted":
            raise CertificateError("no site is eliminated where outages are weighted")
        u = read_multipliers(numbers, bits, len(question.claim.clients))
        out = reached(question, site, u, work)
        no_leaders |= {site} if out[0] else set()
        no_successors |= {site} if out[1] and not question.moved else set()
    successors = [
        s for s, votes in enumerate(question.may_vote) if votes and s not in no_successors
    ]
    events = bounds = 0
    proved: dict[int, set[int | None]] = {}
    for proof in certificate["proofs"]:
        leader, successor = index(proof["leader"]), proof["successor"]
        if not 0 <= leader < len(question.may_vote):
            raise CertificateError(f"no site {leader}")
        whom = f"leader {leader}" if successor is None else f"leader {leader} before {successor}"
        pairs = question.loss_of[leader] >= 0 and not question.leader_may_move
        if successor is not None and not (pairs and index(successor) in successors):
            raise CertificateError(f"{whom}: site {successor} is no successor of its own")
        group = successors if successor is None else [index(successor)]
        tree = LossProof(question, leader, group, work, whom)
        held = (leader,) if successor is None else (leader, index(successor))
        tree.run(proof["events"], tree.start(*held))
        proved.setdefault(leader, set()).add(successor)
        events, bounds = events + tree.events, bounds + tree.bounds
    for leader in np.nonzero(question.rules.may_lead)[0].tolist():
        done, own = proved.get(leader, set()), question.loss_of[leader]
        if leader in no_leaders or None in done:
            continue
        if own < 0 or question.leader_may_move:
            raise CertificateError(f"nothing is proved of leader {leader}")
        missing = [h for h in successors if h not in done and h not in question.lost[own]]
        if missing:
            raise CertificateError(f"nothing is proved of leader {leader}, successors {missing}")
    return int(question.rules.may_lead.sum()), events, bounds
