"""Certificates of quorum stores: for each prefix of sites the first bound that rules it out.

The value that a search has proved decides which bounds hold. This walk finds one for every prefix,
normal operation first, then the losses of a site of the prefix, then the others, and writes its
number down; :func:`placement.quorumstore.refutation_tree.replay` checks them apart from it.
"""

from __future__ import annotations

import math

import numpy as np

from placement.quorumstore.problem import QuorumProblem
from placement.quorumstore.refutation_tree import (
    BY_RULES,
    GROWS,
    RefutationTree,
    ScenarioBounds,
    code_of,
    grown,
)
from placement.support.checks import IntArray
from placement.support.status import OPTIMALITY_TOLERANCE

__all__ = ["MOST_STEPS", "refutation_tree"]

MOST_STEPS = 300_000
"""Most prefixes of a certificate: about a megabyte in a plan file."""

_MOST_WORK = 2_000_000_000
"""Most comparisons of an RTT with a limit, a few seconds: one per prefix, scenario, side, site and
member at worst."""


def refutation_tree(
    problem: QuorumProblem, bound: float, *, most: int = MOST_STEPS
) -> RefutationTree | None:
    """Return a certificate that no configuration has a value below `bound`.

    Parameters
    ----------
    problem
        The key.
    bound
        What a search has proved; infinite where no configuration obeys rules and limits.
    most
        Most prefixes.

    Returns
    -------
    RefutationTree or None
        None where more than `most` prefixes would be needed, or seconds of work: many sites, or a
        goal that limits no threshold (a cost without limits).

    Notes
    -----
    O(prefixes · scenarios · N · sites) at worst.
    """
    below = bound * (1 - OPTIMALITY_TOLERANCE) if math.isfinite(bound) else bound
    bounds = ScenarioBounds(problem, below)
    order = _order(problem, bounds)
    left, work = most, _MOST_WORK
    numbers: list[tuple[tuple[int, ...], ...]] = []
    for size, read, write in problem.pairs:
        prefixes = np.empty((1, 0), dtype=np.intp)
        levels: list[tuple[int, ...]] = []
        for length in range(1, size + 1):
            prefixes = grown(prefixes, size, len(order))
            left -= len(prefixes)
            work -= len(prefixes) * length * len(order) * 2 * len(bounds.lost)
            if min(left, work) < 0:
                return None
            level = _numbers(bounds, order[prefixes], size, (read, write))
            levels.append(tuple(level.tolist()))
            prefixes = prefixes[level == GROWS]
        numbers.append(tuple(levels))
    return RefutationTree(tuple(order.tolist()), tuple(numbers))


def _order(problem: QuorumProblem, bounds: ScenarioBounds) -> IntArray:
    """Sites that are beyond the limits of most requests first: their prefixes end early."""
    beyond = np.zeros(len(problem.sites))
    for side, counts in enumerate((problem.reads, problem.writes)):
        beyond += counts @ bounds.beyond(0, side)
    return np.argsort(-beyond, kind="stable")


def _numbers(
    bounds: ScenarioBounds, sets: IntArray, size: int, quorums: tuple[int, int]
) -> IntArray:
    """Return the number of each prefix, shape (prefixes,)."""
    found = np.where(bounds.breaks_rules(sets, size, max(quorums)), BY_RULES, GROWS)
    for scenario, lost in enumerate(bounds.lost):
        # Where clients stay, the loss of a site outside the prefix is normal operation.
        concerned = bounds.problem.redirects or not scenario
        for side, quorum in enumerate(quorums):
            rows = np.flatnonzero(found == GROWS)
            if not concerned:
                rows = rows[np.isin(sets[rows], lost).any(axis=1)]
            if len(rows):
                out = bounds.refutes(sets[rows], size, quorum, scenario, side)
                found[rows[out]] = code_of(scenario, side)
    return found
