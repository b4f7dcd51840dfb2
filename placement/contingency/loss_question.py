"""Questions about the mean after the loss of any one domain, as the search over losses takes them.

They are one of

- minimise the mean after the loss of any LEVEL ("worst");
- minimise the mean, with a limit on the mean after the loss of any LEVEL ("bounded");
- minimise the mean over outages of disjoint domains ("weighted"),

of all operations of all clients, and keep no other limit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from placement.evaluation.losses import Loss, losses, moving_clients
from placement.evaluation.score import TIE
from placement.measures.measure import Limit, Measure, MeasureKind
from placement.measures.question import MeasureQuestion
from placement.measures.values import losses_of, outages_of
from placement.problem import Problem

LossGoal = Literal["worst", "bounded", "weighted"]

_MEAN = Measure(MeasureKind.MEAN)


@dataclass(frozen=True, eq=False)
class LossQuestion:
    """A question about losses.

    Attributes
    ----------
    goal
        "worst", "bounded" or "weighted".
    losses
        Every loss; no site is in two.
    probabilities
        Of each loss; zeros where they are not weighted.
    ceiling
        For "bounded": largest mean after a loss that the evaluator takes, ms·operations; else +∞.
    leader_moves, clients_move
        As in :class:`placement.measures.measure.After`.
    """

    goal: LossGoal
    losses: tuple[Loss, ...]
    probabilities: tuple[float, ...]
    ceiling: float = math.inf
    leader_moves: bool = False
    clients_move: bool = False

    @classmethod
    def of(cls, problem: Problem) -> LossQuestion | None:
        """Return the question about losses that a problem asks; None: it asks something else."""
        asked = problem.objective
        if not isinstance(asked, MeasureQuestion) or problem.limits or problem.cost_parts:
            return None
        if asked.aim == replace(_MEAN, over_outages=True) and not asked.keep:
            found = losses_of(problem, asked.aim)
            sites = [site for loss in found for site in loss.sites]
            disjoint = len(set(sites)) == len(sites)
            chances = tuple(outages_of(problem).values())
            return cls("weighted", found, chances) if disjoint else None
        limit = _limit(asked)
        after = (asked.aim if limit is None else limit.measure).after
        if after is None or not after.level or after.together > 1 or asked.keep != _kept(limit):
            return None
        if replace(asked.aim if limit is None else limit.measure, after=None) != _MEAN:
            return None
        found = losses(problem, after.level)
        return cls(
            "worst" if limit is None else "bounded",
            found,
            (0.0,) * len(found),
            math.inf if limit is None else limit.allowed * problem.demand.operations,
            after.leader_moves,
            after.clients_move,
        )

    def among_ties(self, worst: float) -> LossQuestion:
        """Return the question of the least mean among the plans of a worst case, ms·operations."""
        return replace(self, goal="bounded", ceiling=worst * (1 + TIE))

    @property
    def normal_share(self) -> float:
        """Share of the normal mean in the value: 1 less the probability of all losses."""
        return max(0.0, 1 - sum(self.probabilities))

    def moves_clients(self, problem: Problem, loss: Loss) -> bool:
        """Return whether a loss moves clients, and so is noticed even where it hits no replica."""
        return self.clients_move and bool(moving_clients(problem, loss.sites))


def _limit(asked: MeasureQuestion) -> Limit | None:
    return asked.keep[0] if asked.aim == _MEAN and asked.keep else None


def _kept(limit: Limit | None) -> tuple[Limit, ...]:
    return () if limit is None else (limit,)
