"""Mean latency under one leader, as the sum of a scenario: the second threshold of the ties."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from formulations.exact.threshold_search import QuorumWait, Scenario
from placement.evaluation.waits.wait_floors import wait_floors
from placement.problem import Problem
from placement.support.checks import BoolArray, FloatArray

__all__ = ["LeaderMean"]


@dataclass(frozen=True, eq=False)
class LeaderMean:
    """Terms of Eq. 1 under one leader.

    Attributes
    ----------
    costs
        Cost of each row of clients at each site: near reads and relayed operations, ms times
        operations, shape (sites, rows).
    direct
        Cost of the operations that clients send to the leader.
    waits
        Cost of the wait for votes; where RTTs vary, its floor.
    """

    costs: FloatArray
    direct: float
    waits: QuorumWait

    @classmethod
    def of(cls, problem: Problem, leader: int) -> LeaderMean:
        """Return the terms of a leader; O(rows·sites)."""
        demand, rules = problem.demand, problem.rules
        near, relay, asked = (x.reshape(-1) for x in (demand.near, demand.relay, demand.direct))
        rtt, clients = demand.client_rtt.reshape(len(near), -1), demand.client_rtt.shape[1]
        costs = near * rtt.T + relay * np.repeat(demand.site_rtt[:, :, leader], clients, 0).T
        if demand.scenarios == 1:
            waits = QuorumWait.of(rules, demand.site_rtt[0, leader], float(demand.quorum[0]))
        else:
            floors = wait_floors(
                demand.site_rtt[:, leader],
                demand.quorum,
                quorum=rules.quorum,
                voters=rules.voters,
                may_vote=rules.may_vote,
            )
            waits = QuorumWait.of(rules, floors, 1.0)
        return cls(costs, float(asked @ rtt[:, leader]), waits)

    def bound(self, usable: BoolArray, root: tuple[BoolArray, BoolArray, int]) -> float:
        """Return a lower bound: every row at its best usable site, and the least wait.

        Parameters
        ----------
        usable
            Whether a site may serve a row, shape (sites, rows).
        root
            Sites that are in, sites that may join, and how many may join.
        """
        nearby = float(np.where(usable, self.costs, math.inf).min(axis=0).sum())
        return self.direct + self.waits.least(*root) + nearby

    def scenario(self, threshold: float) -> Scenario:
        """Return the scenario that keeps a mean below a threshold, ms times operations."""
        return Scenario(self.costs, self.direct, self.waits, threshold, max(threshold, 1e-300))
