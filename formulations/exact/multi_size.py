"""Search for several numbers of replicas at once, as a sweep asks for them.

At given multipliers the reduced costs of a leader are the same for every |R|, and only how many of
them are added up differs. So each evaluation bounds every |R|, and one tree per leader can prove
all of them, as long as they agree on where to branch and on the multipliers
(``csrc/multi_size``).

Three sites by hand: clients at 0, 1 and 3 ms on a line read 3, 2 and 4 times. With the multipliers
u = (3, 2, 8) the reduced costs are −3, −2 and −8. Their sums prove two sizes at once: the bound is
13 − 8 − 3 = 2 for two replicas (at 0 and 3), and 0 for three. One replica costs 11 (at 1), and
needs other multipliers:

>>> from itertools import combinations
>>> costs = np.array([[3.0], [2.0], [4.0]]) * np.abs(np.subtract.outer([0, 1, 3], [0, 1, 3]))
>>> u = np.array([3.0, 2.0, 8.0])
>>> reduced = np.minimum(0.0, costs - u[:, np.newaxis]).sum(axis=0)
>>> [float(u.sum() + np.sort(reduced)[:size].sum()) for size in (1, 2, 3)]
[5.0, 2.0, 0.0]
>>> [
...     min(float(costs[:, list(some)].min(axis=1).sum()) for some in combinations(range(3), size))
...     for size in (1, 2, 3)
... ]
[11.0, 2.0, 0.0]
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from formulations.exact import tuning
from formulations.exact.kernel import TOLERANCE, Kernel
from formulations.exact.kernel_types import Counters, Incumbent, SizeBatch
from formulations.exact.reduced_problem import ReducedProblem
from formulations.exact.result import round_up
from placement.model.constraints import GroupRule

__all__ = ["SizeResult", "differ_in_size_only", "prove_sizes", "take_shared"]

_SHARED = (
    "active",
    "direct",
    "leaders",
    "families",
    "floors",
    "_wait_floors",
    "_least_wait",
    "leader_matters",
    "granularity",
)
"""Cached properties that do not depend on |R|."""

_MOST_SIZES = 64


def _numbers(group: GroupRule) -> tuple[object, ...]:
    """Return the numbers of a rule, without its labels."""
    return group.role, group.cap, group.min_domains, group.domain, group.least


def differ_in_size_only(one: ReducedProblem, other: ReducedProblem) -> bool:
    """Return whether two problems differ in the number of replicas at most.

    Only problems with the very same demand are compared, as problems on one instance have it.
    """
    first, second = one.rules, other.rules
    if one.cases is not None or one.asked is not None or other.asked is not None:
        return False  # the cases depend on |R|, and so may the facts about witnesses
    if one.demand is not other.demand or len(first.groups) != len(second.groups):
        return False
    pairs = (
        (first.may_hold, second.may_hold),
        (first.must_hold, second.must_hold),
        (first.may_vote, second.may_vote),
        (first.must_vote, second.must_vote),
        (first.may_lead, second.may_lead),
        *((a.labels, b.labels) for a, b in zip(first.groups, second.groups, strict=True)),
    )
    if (first.voters, first.quorum) != (second.voters, second.quorum):
        return False
    if [_numbers(g) for g in first.groups] != [_numbers(g) for g in second.groups]:
        return False
    if one.price is None or other.price is None:
        same = one.price is other.price
    else:
        same = np.array_equal(one.price, other.price)
    return same and all(a is b or a.tobytes() == b.tobytes() for a, b in pairs)


def take_shared(core: ReducedProblem, other: ReducedProblem) -> None:
    """Give a problem the cached arrays of another one that differs in |R| only.

    None of these arrays depends on |R|.
    """
    for name in _SHARED:
        if name in other.__dict__:
            core.__dict__[name] = other.__dict__[name]


@dataclass(frozen=True, slots=True)
class SizeResult:
    """The result for one number of replicas of several.

    Attributes
    ----------
    proposal
        The best configuration found.
    bound
        Proven lower bound, of the kernel's own score; the static one where that is not proven to be
        the best.
    proven
        Whether it is.
    interrupted
        Whether Ctrl-C ended the search.
    counters
        Of the search for all of them.
    """

    proposal: Incumbent
    bound: float
    proven: bool
    interrupted: bool
    counters: Counters


def prove_sizes(
    core: ReducedProblem, sizes: Sequence[int], kernel: Kernel, seconds: float
) -> list[SizeResult] | None:
    """Find and prove the best configurations of problems that differ in their |R| alone.

    Parameters
    ----------
    core
        One of the problems.
    sizes
        |R| of each, ascending.
    kernel
        Opened for it; of no use for another search afterwards.
    seconds
        When to stop at the latest.

    Returns
    -------
    list of SizeResult, or None
        One for each; None when no one search can answer them (one only, a large problem, caps or
        rules for voters, the NumPy kernel, no configuration found for some size).

    Raises
    ------
    KeyboardInterrupt
        When Ctrl-C comes before there is a configuration for every size.
    """
    if not 1 < len(sizes) <= _MOST_SIZES or len(core.active) * core.sites > tuning.SIZES_CELLS:
        return None
    asked = SizeBatch.of(sizes, core.sites)
    interrupted = False
    try:
        limits = (tuning.SIZES_STEPS, tuning.SIZES_SWAPS, tuning.SIZES_WORK, seconds)
        if not kernel.solve_sizes(asked, core.leaders.tolist(), *limits):
            return None
    except KeyboardInterrupt:
        if not np.isfinite(asked.scores).all():
            raise
        interrupted = True
    return list(_each(core, asked, interrupted, kernel.counters()))


def _each(
    core: ReducedProblem, sizes: SizeBatch, interrupted: bool, counters: Counters
) -> Iterator[SizeResult]:
    for at, unproven in enumerate(sizes.open.tolist()):
        proposal = sizes.proposal(at)
        score = proposal.score
        if unproven:
            bound = float(core.floors.min(initial=math.inf))
        else:  # nothing better by more than the tolerance, or as much as the granularity
            bound = min(score * (1.0 - TOLERANCE), score - core.granularity * (1.0 - 1e-6))
        bound = min(round_up(core, bound), score)
        yield SizeResult(proposal, bound, not unproven, interrupted, counters)
