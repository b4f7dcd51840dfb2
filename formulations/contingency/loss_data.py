"""Data of the mixed-integer program that remain after a loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from formulations.milp.program_data import ProgramData, client_rows, flow_classes, quorum_radii
from placement.contingency.objective import Contingency
from placement.evaluation.losses import Loss, demand_after
from placement.model.demand import Demand
from placement.problem import Problem

__all__ = ["LossTerms", "largest_score", "terms_after"]


@dataclass(frozen=True, eq=False)
class LossTerms(ProgramData):
    """The terms of Eq. 1 after a loss: as :class:`ProgramData`, on the sites that survive.

    Attributes
    ----------
    loss
        The lost sites.
    after
        Demand after the loss: with moved clients if clients move, else the demand of the problem.
    """

    loss: Loss
    after: Demand

    @property
    def demand(self) -> Demand:
        """Demand after the loss."""
        return self.after


def terms_after(problem: Problem, contingency: Contingency, loss: Loss) -> LossTerms:
    """Collect the data of one loss's copy of the program.

    At least m voters survive in every configuration of interest, hence at least m replicas, and at
    least |R| − |F|: a client never needs the sites farther than all but that many. Any voter may
    lead afterwards, and the m-th smallest wait has m − 1 before it. O(K·C·S log S + S² log S).
    """
    rules = problem.rules
    demand = problem.demand
    if contingency.clients_move:
        demand = demand_after(problem, loss.sites)
    alive = np.ones(len(rules.may_hold), dtype=bool)
    alive[list(loss.sites)] = False
    holders = np.nonzero(rules.may_hold & alive)[0]
    voters = np.nonzero(rules.may_vote & alive)[0]
    lost = int((rules.may_hold & ~alive).sum())
    least = max(1, rules.quorum, rules.replicas_min - lost)
    keep = max(1, len(holders) - least + 1)
    clients = client_rows(demand, holders, keep, rules.must_hold, voters)
    radii: dict[tuple[int, int], tuple[float, ...]] = {}
    if rules.quorum > 1 and len(voters) >= rules.quorum:
        radii = quorum_radii(demand, voters, voters, slice(rules.quorum - 1, None))
    direct = np.einsum("kc,kcs->s", demand.direct, demand.client_rtt)
    return LossTerms(
        problem=problem,
        holders=tuple(holders.tolist()),
        voters=tuple(voters.tolist()),
        leaders=tuple(voters.tolist()),
        clients=tuple(clients),
        classes=flow_classes(clients),
        radii=radii,
        direct={int(leader): float(direct[leader]) for leader in voters},
        led={},
        loss=loss,
        after=demand,
    )


def largest_score(problem: Problem, contingency: Contingency) -> float:
    """Return an upper bound on the score of any configuration, normally or after a loss. O(K·C·S).

    Clients of a lost site see at most their largest RTT and the largest one between sites.
    """
    demand = problem.demand
    total = 0.0
    for k in range(demand.scenarios):
        far, wide = float(demand.client_rtt[k].max()), float(demand.site_rtt[k].max())
        if contingency.clients_move:
            far += wide
        total += float((demand.near[k].sum() + demand.direct[k].sum()) * far)
        total += float((demand.relay[k].sum() + demand.quorum[k]) * wide)
    return max(total, 1e-9)
