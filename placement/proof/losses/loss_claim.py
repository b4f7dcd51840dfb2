"""Claim of a certificate about losses, and the numbers behind it on an exact or rounded grid.

The normal case is scenario 0, and loss L is scenario 1 + L. Where clients of lost sites move, a
loss counts without a replica there as well. It has a second number for that, 1 + losses + L.

A claim has a threshold T_s for every scenario. It says that each configuration reaches one of them,
X_s >= T_s. The thresholds depend on the goal:

- "worst": all thresholds are the claimed bound;
- "bounded": T_0 is the claimed bound. The other thresholds are the limit, raised by the rounding of
  the evaluator. A configuration that reaches one of these breaks the limit. T_0 is no more than the
  others, because a configuration above the limit without a loss breaks it too;
- "weighted": there is one threshold, for Σ p_s X_s.

Without a bound, T_0 is the limit or infinite: no configuration keeps it, or none survives every
loss.

Three sites by hand: in the instance of :mod:`placement.contingency`, the leaders A, B and C have
the largest sums 1080, 1080 and 1650, each after the loss of B, which is scenario 2. So the claim
"no worst case is below 1080" needs one event for all leaders: weight 1 on scenario 2. The claim
"none is below 1081" is false, since the plan under A reaches no threshold.

>>> from placement import Contingency, Instance, Operation, Problem
>>> rtt = [[0, 30, 90], [30, 0, 70], [90, 70, 0]]
>>> write = Operation("write", direct=1, quorum=1)
>>> names = ["A", "B", "C"]
>>> three = Instance(names, names, rtt, rtt, operations=[write], counts=[[6], [3], [1]])
>>> problem = Problem(three, replicas=3, voters=3, objective=Contingency())
>>> claim = LossClaim(problem, "worst", 1080.0, 0.0, None)
>>> claim.loss_of, claim.scenarios, sorted(claim.in_force({0, 1, 2}))
([0, 1, 2], 4, [0, 1, 2, 3])
"""

from __future__ import annotations

import math
from collections.abc import Collection
from functools import cached_property

import numpy as np

from placement.contingency.objective import Contingency, Goal
from placement.evaluation.losses import demand_after
from placement.problem import Problem
from placement.proof.claim import Claim, finest_bit, integers
from placement.proof.costs.led_costs import LedCosts

__all__ = ["LossClaim", "LossGrid"]

_PARTS = 10**12  # 1 / placement.evaluation.score.TIE
_NOBODY: frozenset[int] = frozenset()


class LossClaim:
    """A question about losses of single domains, and a bound that is claimed of it.

    Parameters
    ----------
    problem
        With an objective about losses.
    goal
        Of the claim: that of the objective, or "bounded" for the plans of a worst case.
    bound
        No configuration has a value below it, it is claimed; +∞: there is no configuration.
    granularity
        As for :class:`~placement.proof.claim.Claim`.
    limit
        For "bounded": the largest score after a loss; else None.

    Raises
    ------
    ValueError
        As :class:`~placement.proof.claim.Claim`, and for losses that no certificate is about.

    Attributes
    ----------
    lost
        Sites of each loss.
    loss_of
        Number of the loss that takes each site; −1: none.
    shares
        p of each loss in units of 2^-`share_bits`, for "weighted".
    moved
        The claim with the RTTs of the clients after each loss that moves some, by its number.
    """

    def __init__(
        self, problem: Problem, goal: Goal, bound: float, granularity: float, limit: float | None
    ) -> None:
        contingency = problem.objective
        assert isinstance(contingency, Contingency)
        if contingency.together != 1:
            raise ValueError("certificates are about losses of one domain")
        if bound == math.inf and goal == "weighted":
            raise ValueError("a bound on a mean over outages is finite")
        self.goal, self.rules = goal, problem.rules
        self.finite = bound != math.inf
        losses = contingency.losses(problem)
        moved = {
            number: demand_after(problem, loss.sites).client_rtt
            for number, loss in enumerate(losses)
            if contingency.moves_clients(problem, loss)
        }
        claimed = bound if self.finite else 0.0
        self.claim = Claim(problem, claimed, granularity, list(moved.values()))
        self.moved = {n: self.claim.with_client_rtt(rtt) for n, rtt in moved.items()}
        self.leader_may_move = contingency.leader_may_move
        self.lost = [loss.sites for loss in losses]
        self.loss_of = [-1] * len(problem.instance.sites)
        for number, sites in enumerate(self.lost):
            for site in sites:
                self.loss_of[site] = number
        probabilities = np.array(contingency.probabilities(problem))
        self.share_bits = finest_bit(probabilities) if goal == "weighted" else 0
        self.shares: list[int] = integers(probabilities, self.share_bits).tolist()
        if goal == "weighted" and sum(self.shares) > 1 << self.share_bits:
            raise ValueError("the probabilities of the losses sum to more than 1")
        self._limit = limit
        self.may_vote: list[bool] = self.rules.may_vote.tolist()
        self.may_lead: list[bool] = self.rules.may_lead.tolist()

    @cached_property
    def exact(self) -> LossGrid:
        """The numbers in exact integers."""
        return LossGrid(self, exact=True)

    @cached_property
    def rounded(self) -> LossGrid | None:
        """The numbers in int64; None where they are too large or too small for it."""
        return None if self.claim.rounded is None else LossGrid(self, exact=False)

    def thresholds(self) -> tuple[int | None, int | None]:
        """T of the normal case and of every loss on the exact grid; None: infinite."""
        normal = self.claim.needed if self.finite else None
        if self._limit is None:
            return normal, normal
        top, bottom = self._limit.as_integer_ratio()
        limit = -((-top << self.claim.bits) // bottom)
        limit += -(-abs(limit) // _PARTS)
        return limit if normal is None else min(normal, limit), limit

    def sites_lost(self, scenario: int) -> frozenset[int]:
        """Sites that a scenario takes."""
        return self.lost[self.loss(scenario)] if scenario else _NOBODY

    def loss(self, scenario: int) -> int:
        """Return the loss of a scenario; −1: the normal one."""
        return (scenario - 1) % len(self.lost) if scenario else -1

    @property
    def scenarios(self) -> int:
        """Number of scenarios: a loss that moves clients has a second one, which always counts."""
        return 1 + len(self.lost) * (2 if self.moved else 1)

    def hit(self, replicas: Collection[int]) -> set[int]:
        """Return the scenarios that count for sets with the given replicas.

        The normal one, losses that hit a replica, and the second ones of losses that move clients;
        where outages are weighted, each loss has one number.
        """
        second = 1 if self.goal == "weighted" else 1 + len(self.lost)
        hit = (1 + self.loss_of[site] for site in replicas if self.loss_of[site] >= 0)
        return {0, *hit, *(second + loss for loss in self.moved)}

    def in_force(self, inside: Collection[int]) -> set[int]:
        """Return the scenarios that a bound may use where the given sites hold replicas.

        Those of :meth:`hit`. For the worst case with clients and leaders that stay, every loss: a
        set that a loss misses has its normal score there, which has the same threshold.
        """
        if self.goal == "worst" and not self.moved and not self.leader_may_move:
            return set(range(self.scenarios))
        return self.hit(inside)


class LossGrid(LedCosts):
    """The numbers of a claim on one grid.

    Attributes
    ----------
    normal, after
        Thresholds of the normal case and of losses; None: infinite.
    moved
        The numbers after each loss that moves clients.
    """

    def __init__(self, question: LossClaim, *, exact: bool) -> None:
        super().__init__(question.claim, exact=exact)
        self.normal, self.after = (
            None if threshold is None else self.threshold(threshold)
            for threshold in question.thresholds()
        )
        self.moved = {n: LedCosts(claim, exact=exact) for n, claim in question.moved.items()}

    def of_loss(self, loss: int) -> LedCosts:
        """Return the numbers after a loss; −1: with nothing lost."""
        return self.moved.get(loss, self)
