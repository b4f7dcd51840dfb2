"""Check of a certificate about a percentile (format ``replica-placement/percentile/1``).

=============  ====================================================================================
"deadline"     t in bins: no configuration keeps it for all operations but a share 1 − p
"proofs"       [{"leader": ℓ, "deadline": t' >= t, "events": […]}, …]: at most one for each leader
=============  ====================================================================================

A leader without a proof is closed by the checker: every client at its best site up to the leader,
and the best voters, are late already. Events and multipliers are those of
:mod:`placement.proof.losses`; scenario 0 are late operations, 1 is the mean, and 2 + L
are late operations after the loss L, where the percentile is to be kept after losses. Then all
proofs are replayed at the deadline of the claim: at an earlier deadline no share is smaller.

A plan may hold a second claim under "ties", with a "bound": of the configurations that keep its
"deadline" none has a mean below the bound. It is a claim of this format, or one of the mean
(``replica-placement/bound/1``) where no configuration at all has a lower mean.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from operator import index
from typing import Any

import numpy as np

from placement.contingency.objective import Contingency
from placement.errors import CertificateError
from placement.problem import Problem
from placement.proof.late.late_claim import LateClaim
from placement.proof.late.late_losses import LossTables
from placement.proof.late.late_proof import LateProof
from placement.proof.threshold_proof import check_clients, prove_leaders
from placement.support.work import Work
from placement.tail.objective import Percentile

__all__ = ["FORMAT", "check_percentile"]

FORMAT = "replica-placement/percentile/1"


def check_percentile(
    problem: Problem,
    bound: float,
    certificate: Mapping[str, Any],
    work: Work,
    *,
    value: float | None = None,
) -> tuple[int, int, int]:
    """Prove that no configuration has a percentile below a bound, or refuse.

    Parameters
    ----------
    problem
        Whose objective is a percentile, or one after losses.
    bound
        What is to be proved, in ms; +∞: every percentile lies beyond the horizon.
    certificate
        See the module.
    work
        Steps that may be taken.
    value
        Given: prove instead that of the configurations whose percentile is at most this none has a
        mean below the bound.

    Returns
    -------
    tuple of int
        How many leaders, events and bounds there were.

    Raises
    ------
    CertificateError
        When a step of the proof does not hold, or something is not covered.
    """
    asked = problem.objective
    goal = asked.percentile if isinstance(asked, Contingency) else asked
    if not isinstance(goal, Percentile):
        raise CertificateError("certificates of this format are about percentiles")
    deadline, width = index(certificate["deadline"]), goal.distributions.width
    try:
        question = LateClaim(problem, None if value is None else bound)
    except ValueError as flaw:
        raise CertificateError(str(flaw)) from None
    check_clients(certificate, question.claim.clients.tolist())
    if value is None:
        # percentiles are whole bins, so that behind t the next value is t + 1
        enough = deadline >= question.last if bound == math.inf else (deadline + 1) * width >= bound
    else:
        enough = deadline * width >= value
    if not enough:
        raise CertificateError(f"a deadline of {deadline} bins does not show {bound!r}")
    if deadline < 0:  # nothing takes less than no time
        return int(question.rules.may_lead.sum()), 0, 0

    losses = None
    if question.losses:
        losses = LossTables(question, min(deadline, question.last), work)

    def open_tree(leader: int, given: Mapping[str, Any] | None) -> LateProof:
        own = deadline if given is None else min(index(given["deadline"]), question.last)
        if own < min(deadline, question.last):
            raise CertificateError(f"the proof of leader {leader} is about an earlier deadline")
        if losses is not None:
            own = min(deadline, question.last)
        return LateProof(question, leader, own, work, losses)

    leaders: list[int] = np.nonzero(question.rules.may_lead)[0].tolist()
    return prove_leaders(certificate, leaders, open_tree)
