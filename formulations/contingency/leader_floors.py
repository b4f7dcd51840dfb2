"""Least cost of a leader once a replica is lost: the leaders that need no model of losses.

Whatever loss hits a plan of at most r replicas, at most r − 1 are left, and the leader then
waits for the m-th nearest surviving voter. So the least score of Eq. 1 under that leader with as
many replicas as may be left, anywhere, m of them voting and all m awaited, is a floor of what the
leader costs after any loss: of the surviving voters only the m nearest are awaited. (Fewer replicas
are a separate case: with relayed operations a further replica can cost something.) Pins, caps and
the budget are left out, which only lowers the floor.
"""

from __future__ import annotations

import numpy as np

from placement.contingency.objective import Contingency
from placement.errors import PlacementError
from placement.evaluation.objective import MEAN_LATENCY
from placement.methods.options import Options
from placement.methods.registry import load_method, run
from placement.problem import Problem
from placement.support.status import Termination

__all__ = ["always_hit", "survivor_floor"]


def survivor_floor(
    problem: Problem, leader: int, *, seconds: float | None = None, seed: int = 0
) -> float:
    """Return a lower bound on the score under `leader` after any loss that takes a replica.

    Parameters
    ----------
    problem
        A question about losses, after which clients stay where they are.
    leader
        Site index, of a site that may vote.
    seconds, seed
        For method ``cp-sat``, which proves the bound.

    Returns
    -------
    ms·operations; 0 without a proof in time.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C.

    Notes
    -----
    One plain tier-3 problem with a fixed leader: some tenths of a second for 27 sites.
    """
    rules, names = problem.rules, problem.instance.sites
    goal = problem.objective
    assert isinstance(goal, Contingency)
    most = min(rules.replicas_max - 1, int(rules.may_hold.sum()))
    if most < rules.quorum or not rules.may_vote[leader]:
        return 0.0
    widest = max((len(loss.sites) for loss in goal.losses(problem)), default=0)
    least = max(rules.quorum, min(most, rules.replicas_min - widest))
    options = Options(time_limit=seconds, seed=seed, settings={"start": "none"})
    try:
        left = problem.replace(
            replicas=(least, most),
            voters=rules.quorum,
            quorum=rules.quorum,
            leader=names[leader],
            leaders=None,
            pinned=(),
            pinned_voters=(),
            forbidden=tuple(names[site] for site in np.nonzero(~rules.may_hold)[0]),
            non_voters=tuple(
                names[site] for site in np.nonzero(rules.may_hold & ~rules.may_vote)[0]
            ),
            diversity=(),
            survive=None,
            budget=None,
            objective=MEAN_LATENCY,
        )
        plan = run(load_method("cp-sat"), left, options)
    except PlacementError:  # as where operations go to the nearest voter: every replica votes
        return 0.0
    if plan.termination is Termination.INTERRUPTED:
        raise KeyboardInterrupt
    return max(0.0, plan.bound) if np.isfinite(plan.bound) else 0.0


def always_hit(problem: Problem) -> bool:
    """Return whether every plan has a loss that takes a replica but not the leader, who then stays.

    That is so where any one site may be lost alone and leaders stay: a plan that survives the loss
    of its leader's site has another replica. For the goals "worst" and "bounded".
    """
    goal = problem.objective
    assert isinstance(goal, Contingency)
    if goal.leader_may_move or goal.goal == "weighted":
        return False
    single = (loss.sites for loss in goal.losses(problem) if len(loss.sites) == 1)
    alone: frozenset[int] = frozenset().union(*single)
    return alone.issuperset(np.nonzero(problem.rules.may_hold)[0].tolist())
