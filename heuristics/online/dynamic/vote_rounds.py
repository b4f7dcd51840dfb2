"""Top-k votes, round after round, with known rates: what the mechanism converges to, or does not.

Matri et al. 2018, sections 6 and 7: after each round every site takes the k objects with most
votes. Votes depend on the copies that exist, so the map from copies to copies can cycle; the paper
does not say so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placement.online.dynamic.copy_lifecycle import CopySet
from placement.online.dynamic.evaluator import evaluate
from placement.online.dynamic.problem import ReplicationProblem
from placement.online.dynamic.read_votes import Weight, most_voted, vote_rates
from placement.support.checks import BoolArray, FloatArray, instance_of, whole

__all__ = ["VoteRun", "popular_lists", "run_votes"]


@dataclass(frozen=True, eq=False)
class VoteRun:
    """Rounds of voting.

    Attributes
    ----------
    cost
        Cost of the copies in force in each round, shape (rounds,); the first round has none.
    replicas
        Copies of each site in each round, shape (rounds, sites).
    period
        Rounds after which the state repeats, 1 when nothing changes any more; 0 when no repetition
        was seen.
    settled
        First round of the repetition; the number of rounds when none was seen.
    copies
        Copies in force in the last round, shape (sites, objects).
    """

    cost: FloatArray
    replicas: FloatArray
    period: int
    settled: int
    copies: BoolArray

    @property
    def mean_cost(self) -> float:
        """Mean cost over the cycle; over the second half of the rounds when none was seen."""
        start, end = self._window()
        return float(self.cost[start:end].mean())

    @property
    def mean_replicas(self) -> FloatArray:
        """Mean number of copies of each site over the same rounds, shape (sites,)."""
        start, end = self._window()
        return np.asarray(self.replicas[start:end].mean(axis=0), dtype=np.float64)

    def _window(self) -> tuple[int, int]:
        if self.period:
            return self.settled, self.settled + self.period
        return len(self.cost) // 2, len(self.cost)


def popular_lists(
    problem: ReplicationProblem, copies: BoolArray, weight: Weight = Weight.COUNT
) -> BoolArray:
    """Return the k most voted-for objects of each site, k its capacity, shape (sites, objects)."""
    votes = vote_rates(problem, copies, weight)
    result = np.zeros(problem.static.shape, dtype=bool)
    for site, k in enumerate(problem.capacity.tolist()):
        result[site, most_voted(votes[site], min(k, problem.objects))] = True
    return result


def run_votes(
    problem: ReplicationProblem,
    *,
    grace: int = 1,
    rounds: int = 40,
    weight: Weight = Weight.COUNT,
) -> VoteRun:
    """Vote for `rounds` rounds, starting without dynamic copies; stop early once states repeat.

    Parameters
    ----------
    problem
        Its capacity is k of each site; with a grace period sites exceed it.
    grace
        g >= 1. A copy goes at the g-th consecutive list without it: 1 deletes at once.
    rounds
        At most.
    weight
        What a vote counts; ``Weight.COUNT`` is the paper.

    Notes
    -----
    O(rounds · sites · objects · log objects). Writes do not vote.
    """
    instance_of(problem, ReplicationProblem, "problem", "a ReplicationProblem")
    rounds = whole(rounds, "rounds", minimum=1)
    state = CopySet(problem.static, grace)
    costs: list[float] = []
    sizes: list[FloatArray] = []
    seen: dict[bytes, int] = {}
    period, settled = 0, rounds
    for turn in range(rounds):
        key = state.fingerprint()
        if key in seen:
            period, settled = turn - seen[key], seen[key]
            break
        seen[key] = turn
        result = evaluate(problem, state.active)
        costs.append(result.cost)
        sizes.append(result.replicas.astype(np.float64))
        copies = state.active.copy()
        popular = popular_lists(problem, copies, weight)
        state.create(popular)
        state.judge(popular)
    return VoteRun(np.array(costs), np.array(sizes), period, settled, copies)
