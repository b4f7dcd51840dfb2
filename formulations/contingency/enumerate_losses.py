"""Contingency placement by enumeration: every replica set, voter set, leader and loss.

The reference method of the others, vectorised over replica sets. For a set R (n replicas) and a
loss F the survivors are a pattern of the n positions, and the score of a leader splits into what
depends on the survivors and what depends on the voters:

    score_F(ℓ', V') = base_F(ℓ') + D·q_ℓ'(V')
    base_F(ℓ')      = Σ_c ( A·d(c, near) + B·d(near, ℓ') + G·d(c, ℓ') ),   near = nearest(c, R ∖ F)

so that base_F is computed once per (R, F) for all leaders, and the quorum waits once per (V, F).
O(C(|S|, n)·losses·n·(C + C(n, v)·v log v)).
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from placement.contingency.objective import Contingency
from placement.evaluation.score import cutoff
from placement.feasibility.feasible_plans import violations
from placement.model.configuration import Configuration
from placement.problem import Problem
from placement.support.checks import BoolArray, FloatArray, IntArray

__all__ = ["best_of_block"]


def best_of_block(
    problem: Problem, contingency: Contingency, replicas: IntArray
) -> tuple[float, float, Configuration] | None:
    """Best configuration among many replica sets: (value, tie break, configuration).

    Parameters
    ----------
    problem
        With one RTT scenario; `contingency` is its objective, and clients do not move.
    replicas
        Replica sets of sites that may hold one, shape (n sets, |R|), rows ascending.

    Returns
    -------
    tuple or None
        None when no voters and leader are feasible for any of the sets.
    """
    worths, normals, leaders, voters = _values(problem, contingency, replicas)
    while worths.size and np.isfinite(worths).any():
        tied = np.argwhere(worths <= cutoff(float(worths.min())))
        seconds = normals[tied[:, 0], tied[:, 1]]
        for index in np.argsort(seconds, kind="stable"):
            row, choice = tied[index]
            configuration = Configuration.of(
                int(replicas[row, leaders[choice]]),
                replicas[row, voters[choice]].tolist(),
                replicas[row].tolist(),
            )
            if not violations(problem, configuration):
                return float(worths[row, choice]), float(normals[row, choice]), configuration
        # The masks let pass what a rule forbids: what comes next may still be feasible.
        worths[tied[:, 0], tied[:, 1]] = math.inf
    return None


def _values(
    problem: Problem, contingency: Contingency, replicas: IntArray
) -> tuple[FloatArray, FloatArray, IntArray, list[list[int]]]:
    """Value and normal score of every (R, (V, ℓ)), infinite where a rule is broken.

    Returns arrays of shape (sets, choices), and per choice the leader's position and the voters'.
    """
    rules, demand = problem.rules, problem.demand
    size = replicas.shape[1]
    survivors, weights = _patterns(problem, contingency, replicas)
    all_alive = np.ones(replicas.shape, dtype=bool)
    base = _base(problem, replicas, all_alive)
    base_after = [_base(problem, replicas, survivors[:, k]) for k in range(survivors.shape[1])]
    waits = demand.site_rtt[0][replicas[:, :, np.newaxis], replicas[:, np.newaxis, :]]
    lead = rules.may_lead[replicas]
    chosen_lead = lead & _affordable(problem, replicas)
    chosen_lead &= problem.rules.obeyed("replicas", replicas)[:, np.newaxis]
    price = demand.quorum[0]

    worths, normals, leaders, sets = [], [], [], []
    for voters in itertools.combinations(range(size), rules.voters):
        chosen = list(voters)
        allowed = _voters_obey(problem, replicas[:, chosen])
        normal = {
            ell: base[:, ell] + price * _kth(waits[:, ell, chosen], rules.quorum) for ell in chosen
        }
        after = _after_losses(
            problem, contingency, survivors, base_after, waits, lead, chosen, replicas
        )
        for ell in chosen:
            value = _goal(problem, contingency, normal[ell], after[ell], weights)
            worths.append(np.where(allowed & chosen_lead[:, ell], value, math.inf))
            normals.append(normal[ell])
            leaders.append(ell)
            sets.append(chosen)
    return (
        np.column_stack(worths),
        np.column_stack(normals),
        np.array(leaders, dtype=np.intp),
        sets,
    )


def _after_losses(
    problem: Problem,
    contingency: Contingency,
    survivors: BoolArray,
    base_after: list[FloatArray],
    waits: FloatArray,
    lead: BoolArray,
    voters: list[int],
    replicas: IntArray,
) -> dict[int, FloatArray]:
    """score_F per leader position: arrays of shape (sets, patterns); infinite where it stops."""
    rules, price = problem.rules, problem.demand.quorum[0]
    sets, patterns = survivors.shape[:2]
    after = {ell: np.full((sets, patterns), math.inf) for ell in voters}
    for k in range(patterns):
        alive = survivors[:, k][:, voters]
        enough = alive.sum(axis=1) >= rules.quorum
        scores = np.full((sets, len(voters)), math.inf)
        for i, ell in enumerate(voters):
            answers = np.where(alive, waits[:, ell, voters], math.inf)
            wait = _kth(answers, rules.quorum)
            wait = np.where(np.isfinite(wait), wait, 0.0)
            scores[:, i] = np.where(
                enough & alive[:, i], base_after[k][:, ell] + price * wait, math.inf
            )
        # Voters that may not lead are elected only when no candidate is left.
        candidates = lead[:, voters] & alive
        some = np.asarray(candidates.any(axis=1))
        eligible = np.where(some[:, np.newaxis], candidates, alive)
        elected = np.where(eligible, scores, math.inf).min(axis=1)
        for i, ell in enumerate(voters):
            stays = alive[:, i] & (not contingency.leader_may_move)
            after[ell][:, k] = np.where(stays, scores[:, i], elected)
    return after


def _goal(
    problem: Problem,
    contingency: Contingency,
    normal: FloatArray,
    after: FloatArray,
    weights: FloatArray,
) -> FloatArray:
    worst: FloatArray = np.maximum(normal, after.max(axis=1, initial=-math.inf))
    if contingency.goal == "worst":
        return worst
    if contingency.goal == "bounded":
        return np.where(worst <= contingency.ceiling(problem), normal, math.inf)
    finite = np.where(np.isfinite(after), after, 0.0)
    mean = (1 - weights.sum(axis=1)) * normal + (weights * finite).sum(axis=1)
    return np.where(np.isfinite(worst), mean, math.inf)


def _patterns(
    problem: Problem, contingency: Contingency, replicas: IntArray
) -> tuple[BoolArray, FloatArray]:
    """Return the positions that survive each loss that hits R, and the loss's probability.

    Losses that hit no replica leave the normal score and need no pattern. Rows are hit by different
    numbers of losses; those with fewer are filled with losses of nothing that weigh 0.
    """
    found = contingency.losses(problem)
    hit = np.zeros((len(found), len(problem.instance.sites)), dtype=bool)
    for index, loss in enumerate(found):
        hit[index, list(loss.sites)] = True
    weights = np.array(contingency.probabilities(problem))
    lost = hit[:, replicas]  # (losses, sets, positions)
    touches: BoolArray = np.count_nonzero(lost, axis=2) > 0
    most = int(touches.sum(axis=0).max(initial=0))
    # Per row the losses that touch it first, in the order of the losses.
    order = np.argsort(~touches, axis=0, kind="stable")[:most]
    rows = np.arange(len(replicas))
    survivors: BoolArray = np.logical_not(lost[order, rows].transpose(1, 0, 2))
    weight = np.where(touches[order, rows], weights[order], 0.0).T
    return survivors, np.ascontiguousarray(weight)


def _base(problem: Problem, replicas: IntArray, alive: BoolArray) -> FloatArray:
    """Σ_c ( A·d(c, near) + B·d(near, ℓ) + G·d(c, ℓ) ) with the living, shape (sets, |R|)."""
    demand = problem.demand
    by_site = np.ascontiguousarray(demand.client_rtt[0].T)
    result = np.empty(replicas.shape)
    block = max(1, 2_000_000 // (by_site.shape[1] * replicas.shape[1]))
    for first in range(0, len(replicas), block):
        rows = slice(first, first + block)
        distances = np.where(alive[rows][:, :, np.newaxis], by_site[replicas[rows]], math.inf)
        position = distances.argmin(axis=1)
        to_near = np.take_along_axis(distances, position[:, np.newaxis], axis=1)[:, 0]
        near = np.take_along_axis(replicas[rows], position, axis=1)
        nobody = np.count_nonzero(alive[rows], axis=1) == 0
        own = (demand.near[0] * np.where(np.isfinite(to_near), to_near, 0.0)).sum(axis=-1)
        for ell in range(replicas.shape[1]):
            leader = replicas[rows, ell]
            relayed = demand.relay[0] * demand.site_rtt[0][near, leader[:, np.newaxis]]
            direct = demand.direct[0] * by_site[leader]
            total = own + (relayed + direct).sum(axis=-1)
            result[rows, ell] = np.where(nobody, math.inf, total)
    return result


def _kth(values: FloatArray, k: int) -> FloatArray:
    return np.asarray(np.partition(values, k - 1, axis=-1)[..., k - 1])


def _affordable(problem: Problem, replicas: IntArray) -> BoolArray:
    """Return whether each leader of each set is within the budget, shape (sets, |R|)."""
    budget = problem.rules.budget
    if budget is None:
        return np.ones(replicas.shape, dtype=bool)
    within = np.zeros(replicas.shape, dtype=bool)
    for leader in np.unique(replicas).tolist():
        prices = problem.site_costs(leader)
        if prices is None:
            return np.ones(replicas.shape, dtype=bool)
        good = prices[replicas].sum(axis=1) <= budget + 1e-9 * (1 + abs(budget))
        within |= (replicas == leader) & good[:, np.newaxis]
    return within


def _voters_obey(problem: Problem, voters: IntArray) -> BoolArray:
    """Return whether each row of voter sets obeys the rules for voters."""
    rules = problem.rules
    good = np.asarray(rules.may_vote[voters].all(axis=1), dtype=np.bool_)
    good &= rules.must_vote[voters].sum(axis=1) == int(rules.must_vote.sum())
    return good & problem.rules.obeyed("voters", voters)
