"""Proof that no configuration of a quorum store is better, without any code of the searches.

Every (N, R, W) that the rules leave and every replica set is accounted for in one of three ways. It
breaks a rule about regions; its latency in normal operation is beyond the limits that the value
implies; or the evaluator gives it a value that is no better. For a store with few sets this is
easier to trust than a certificate of the search, and takes seconds.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from placement.quorumstore.latency import metrics
from placement.quorumstore.problem import QuorumProblem
from placement.support.checks import IntArray
from placement.support.status import OPTIMALITY_TOLERANCE
from placement.support.work import WORK, Work

__all__ = ["SetAccount", "prove_bound"]

_BLOCK = 2048


@dataclass(frozen=True, slots=True)
class SetAccount:
    """Account of all replica sets for one bound.

    Attributes
    ----------
    least
        Least value of all configurations, infinite if there is none.
    sets
        Pairs of a replica set and quorum sizes.
    by_rules, by_normal, evaluated
        How many of them break a rule about regions, are beyond the limits in normal operation, and
        were given their value (losses included).
    by_losses
        How many of them are beyond the limits after a loss: with a certificate only.
    bounds
        Prefixes of sets that a certificate rules out or goes on from; 0 without one.
    """

    least: float
    sets: int
    by_rules: int
    by_normal: int
    evaluated: int
    by_losses: int = 0
    bounds: int = 0


def prove_bound(problem: QuorumProblem, bound: float, *, work: int = WORK) -> SetAccount:
    """Account for every configuration of a problem.

    Parameters
    ----------
    problem
        The key, its rules and its goal.
    bound
        What no configuration may be below: sets are ruled out in normal operation only when their
        value is above it. Infinite: every set is evaluated.
    work
        Most steps. An evaluation of a set in one scenario takes one step, and one more for every
        eight pairs of a site and a replica.

    Returns
    -------
    SetAccount
        The bound holds where `least` is not below it.

    Raises
    ------
    LimitError
        When the evaluations take more than `work` steps, before the first one.

    Notes
    -----
    O(Σ C(n, N)·n·N) for normal operation, times the number of losses for the sets that are left.
    """
    pairs, steps = problem.pairs, Work(work)
    total = 0
    for size, times in Counter(size for size, _, _ in pairs).items():
        sets = times * math.comb(len(problem.sites), size)
        problem.take_evaluations(steps, sets=sets, size=size, losses=False)
        total += sets
    # "Value at most this" implies these limits; a set beyond them is above the bound.
    slack = bound * (1 + OPTIMALITY_TOLERANCE) if math.isfinite(bound) else bound
    limits = problem.goal.limits(slack, problem.rules.contingency)
    least, by_rules, by_normal, evaluated = math.inf, 0, 0, 0
    for size, read, write in pairs:
        for rows in _blocks(len(problem.sites), size):
            admissible = rows[problem.admissible(rows, max(read, write))]
            by_rules += len(rows) - len(admissible)
            if not len(admissible):
                continue
            figures = metrics(problem, admissible, read, write, losses=False)
            inside = np.asarray(
                (figures.normal_read <= min(limits.normal_read, limits.worst_read))
                & (figures.normal_write <= min(limits.normal_write, limits.worst_write))
            )
            left = admissible[inside]
            by_normal += len(admissible) - len(left)
            evaluated += len(left)
            if len(left):
                found = metrics(problem, left, read, write)
                values = problem.goal.values(found, problem.rules.contingency)
                least = min(least, float(values.min()))
    return SetAccount(least, total, by_rules, by_normal, evaluated)


def _blocks(sites: int, size: int) -> Iterator[IntArray]:
    """Yield all sets of a size in rows, some at a time."""
    sets = itertools.combinations(range(sites), size)
    while block := list(itertools.islice(sets, _BLOCK)):
        yield np.array(block, dtype=np.intp)
