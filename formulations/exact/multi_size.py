"""Several numbers of replicas answered by one search: what a sweep asks for.

At given multipliers the reduced costs of a leader are the same for every |R|, and only how many of
them are added up differs. So each evaluation bounds every |R|, and one tree per leader can prove
all of them, as long as they agree on where to branch and on the multipliers
(``csrc/span.c``, ``csrc/sizes.c``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from formulations.exact.kernel import TOLERANCE, Kernel
from formulations.exact.kernel_types import Counters, Proposal, Sizes
from formulations.exact.reduced_problem import Core
from formulations.exact.result import rounded_up

__all__ = ["Together", "prove_together"]

_STEPS = 30
_SWAPS = 60
_MOST_SIZES = 64
_MOST_CELLS = 50_000
"""Active clients × sites up to which all sizes are begun at once: beyond, one may take long."""
_WORK = 1e9
"""About a second; what is not proven then is asked for alone."""


@dataclass(frozen=True, slots=True)
class Together:
    """One number of replicas of several.

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

    proposal: Proposal
    bound: float
    proven: bool
    interrupted: bool
    counters: Counters


def prove_together(
    core: Core, sizes: Sequence[int], kernel: Kernel, seconds: float
) -> list[Together] | None:
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
    list of Together, or None
        One for each; None when they cannot be taken together (one only, a large problem, caps or
        rules for voters, the NumPy kernel, no configuration for some size).

    Raises
    ------
    KeyboardInterrupt
        When Ctrl-C comes before there is a configuration for every size.
    """
    if not 1 < len(sizes) <= _MOST_SIZES or len(core.active) * core.sites > _MOST_CELLS:
        return None
    asked = Sizes.of(sizes, core.sites)
    interrupted = False
    try:
        limits = (_STEPS, _SWAPS, _WORK, seconds)
        if not kernel.together(asked, core.leaders.tolist(), *limits):
            return None
    except KeyboardInterrupt:
        if not np.isfinite(asked.scores).all():
            raise
        interrupted = True
    return list(_each(core, asked, interrupted, kernel.counters()))


def _each(core: Core, sizes: Sizes, interrupted: bool, counters: Counters) -> Iterator[Together]:
    for at, unproven in enumerate(sizes.open.tolist()):
        proposal = sizes.proposal(at)
        score = proposal.score
        if unproven:
            bound = float(core.floors.min(initial=math.inf))
        else:  # nothing better by more than the tolerance, or as much as the granularity
            bound = min(score * (1.0 - TOLERANCE), score - core.granularity * (1.0 - 1e-6))
        bound = min(rounded_up(core, bound), score)
        yield Together(proposal, bound, not unproven, interrupted, counters)
