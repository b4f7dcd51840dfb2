"""Questions about the mean after the loss of any one domain, as the search over losses takes them.

They are one of

- minimise the mean after the loss of any LEVEL ("worst");
- minimise the mean, with a limit on the mean after the loss of any LEVEL ("bounded");
- minimise the mean over outages of disjoint domains ("weighted"),

of all operations of all clients, and keep no other limit.

Three sites by hand: the instance of :mod:`placement.evaluation.losses`, with replicas and voters at
A, B and C. The mean of ten writes in ms, for each leader:

======  ======  =========  =========  =========
leader  normal  without A  without B  without C
======  ======  =========  =========  =========
A           48         95        108         48
B           55         95        108         55
C          145        145        165         48
======  ======  =========  =========  =========

After the loss of the leader the best surviving voter leads. The goals choose as follows.

- ``worst``: A and B both have 108 as their largest mean. A has the smaller normal one, so A leads.
- ``bounded``, at most 110 ms per write: A and B keep the limit; A is better in normal operation.
- ``weighted`` with p = 0.1 for each loss: A has 0.7 · 48 + 0.1 · (95 + 108 + 48) = 58.7.

>>> import placement
>>> from placement import Contingency, Instance, Operation, Problem
>>> rtt = [[0, 30, 90], [30, 0, 70], [90, 70, 0]]
>>> write = Operation("write", direct=1, quorum=1)
>>> names = ["A", "B", "C"]
>>> three = Instance(names, names, rtt, rtt, operations=[write], counts=[[6], [3], [1]])
>>> goals = [
...     Contingency(),
...     Contingency(goal="bounded", limit=110.0),
...     Contingency(goal="weighted", probability=0.1),
... ]
>>> for goal in goals:
...     plan = placement.solve(Problem(three, replicas=3, voters=3, objective=goal))
...     print(goal.describe(), "|", plan.leader, round(plan.objective, 6), plan.status.value)
minimise mean after the loss of any site | A 108.0 optimal
minimise mean, keep mean after the loss of any site <= 110 ms | A 48.0 optimal
minimise mean over outages | A 58.7 optimal
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from placement.errors import InputError
from placement.evaluation.losses import Loss, losses, moving_clients
from placement.evaluation.score import TIE
from placement.measures.measure import After, Limit, Measure, MeasureKind
from placement.measures.question import MeasureQuestion
from placement.measures.values import losses_of, outages_of
from placement.problem import Problem
from placement.support.checks import flag, number, text, whole

if TYPE_CHECKING:
    from placement.tail.objective import Percentile

LossGoal = Literal["worst", "bounded", "weighted"]

_MEAN = Measure(MeasureKind.MEAN)


@dataclass(frozen=True, eq=False)
class LossQuestion:
    """A question about losses."""

    goal: LossGoal  #: "worst", "bounded" or "weighted"
    losses: tuple[Loss, ...]  #: every loss; no site is in two
    probabilities: tuple[float, ...]  #: of each loss; zeros where they are not weighted
    #: for "bounded": largest mean after a loss that the evaluator takes, ms·operations; else +∞
    ceiling: float = math.inf
    #: `leader_moves`, `clients_move`: as in After
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


# Plans that stay good when sites are lost: losses of every domain of a level, said in measures


def Contingency(  # noqa: N802 - the name under which objectives are known
    level: str = "site",
    goal: LossGoal = "worst",
    *,
    together: int = 1,
    limit: float | None = None,
    probability: float | Mapping[str, float] | None = None,
    leader_may_move: bool = False,
    clients_move: bool = False,
    percentile: Percentile | None = None,
) -> MeasureQuestion:
    """Return the question of measures about every loss of a kind.

    Parameters
    ----------
    level
        Failure-domain level that is lost, one domain at a time; "site" is N−1.
    goal
        "worst": minimise the mean after the loss of any domain, normal operation included.
        "bounded": minimise the mean, and keep a limit on it after any loss. "weighted": minimise
        the mean over outages.
    together
        Domains lost at once; 2 on level "site" is N−2.
    limit
        For "bounded": the largest mean after any loss, ms.
    probability
        For "weighted": of every loss, one number or by name; a loss that is not named has 0. Their
        sum may be at most 1.
    leader_may_move
        Whether a leader that survives may hand over to a better one.
    clients_move
        Whether the closest surviving site serves the clients of a lost one, who then wait for the
        RTT to it as well (:mod:`placement.evaluation.losses`); else they stay.
    percentile
        The percentile that is scored normally and after every loss, with the distributions of
        RTTs; None: the mean latency. With "worst" and "bounded", and clients that stay.

    Raises
    ------
    InputError
        For an unknown goal, a missing or superfluous limit or probability, and for losses of two
        domains, clients or leaders that move, or a percentile, where outages are weighted.
    """
    if not isinstance(goal, str) or goal not in ("worst", "bounded", "weighted"):
        expected = "'worst', 'bounded' or 'weighted'"
        raise InputError("unknown goal", field="goal", value=goal, expected=expected)
    for name, moves in (("leader_may_move", leader_may_move), ("clients_move", clients_move)):
        flag(moves, name)
    for name, given, needs in (
        ("limit", limit, "bounded"),
        ("probability", probability, "weighted"),
    ):
        if (given is not None) != (goal == needs):
            verb = "needs" if goal == needs else "does not use"
            raise InputError(
                f"the goal {goal!r} {verb} a {name}",
                field=name,
                value=given,
                expected="a number" if goal == needs else "none",
            )
    text(level, "level")
    together = whole(together, "together", minimum=1, maximum=2)
    after = After(level, together, leader_moves=leader_may_move, clients_move=clients_move)
    if goal == "weighted":
        asked = {
            "together": together > 1,
            "leader_may_move": leader_may_move,
            "clients_move": clients_move,
            "percentile": percentile is not None,
        }
        for name, unlike in asked.items():
            if unlike:
                raise InputError(
                    "outages of single domains are weighted, and leader and clients stay",
                    field=name,
                    value=unlike,
                    expected="the goal 'worst' or 'bounded'",
                )
        mean = Measure(MeasureKind.MEAN, over_outages=True)
        return MeasureQuestion(aim=mean, outages=_outages(level, probability))
    if percentile is not None:
        if clients_move:
            why = "the clients of a percentile stay"
            raise InputError(why, field="clients_move", value=True, expected="False")
        plain = Measure(MeasureKind.PERCENTILE, percentile.percent / 100)
        distributions = percentile.by_interval or (percentile.distributions,)
    else:
        plain, distributions = Measure(MeasureKind.MEAN), ()
    lost = replace(plain, after=after)
    if limit is None:
        return MeasureQuestion(aim=lost, distributions=distributions)
    kept = Limit(lost, number(limit, "limit"))
    return MeasureQuestion(aim=plain, keep=(kept,), distributions=distributions)


def _outages(level: str, given: float | Mapping[str, float] | None) -> dict[str, float]:
    """Return the probabilities of outages under their names as measures."""
    if not isinstance(given, Mapping):
        return {f"any {level}": number(given, "probability", maximum=1.0)}
    known = {name: number(p, f"probability[{name!r}]", maximum=1.0) for name, p in given.items()}
    return {name if level == "site" else f"{level}:{name}": p for name, p in known.items()}
