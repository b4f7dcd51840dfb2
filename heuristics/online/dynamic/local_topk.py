"""Local choice of each site: the objects whose copy saves its own clients most."""

from __future__ import annotations

import numpy as np

from placement.online.dynamic.plan import ReplicationPlan
from placement.online.dynamic.problem import ReplicationProblem
from placement.online.dynamic.read_votes import most_voted
from placement.support.checks import FloatArray

__all__ = ["local_saving", "local_topk"]

METHOD = "local weighted top-k"


def local_saving(problem: ReplicationProblem) -> FloatArray:
    """Return the savings of a copy at j for the clients of j, less its writes, (sites, objects).

    reads[j, o] · (rtt to the closest static copy − rtt within j) − writes[o] · forward[j, o];
    −∞ where there is a static copy.
    """
    own = np.diag(problem.geography.rtt)[:, None]
    saving = problem.reads * (problem.static_rtt - own) - problem.forward_cost
    return np.where(problem.static, -np.inf, saving)


def local_topk(problem: ReplicationProblem) -> ReplicationPlan:
    """Give each site the copies of largest positive local saving; ties to the smaller object.

    Optimal when no site prefers another and writes do not wait for copies: the objective is then a
    sum over sites. In general it ignores that neighbours serve each other.

    O(sites · objects · log objects).
    """
    saving = local_saving(problem)
    copies = problem.none.copy()
    for site, k in enumerate(problem.capacity.tolist()):
        copies[site, most_voted(saving[site], min(k, problem.objects))] = True
    return ReplicationPlan.of(problem, copies, METHOD)
