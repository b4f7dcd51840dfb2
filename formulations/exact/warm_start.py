"""What the search for one number of replicas leaves to the search for the next.

At given multipliers the reduced costs of a leader say something of every |R| at once: only the
inner problem asks for a number. A kernel keeps them with every look at a leader
(:meth:`formulations.exact.kernel.Kernel.recall`), so that most leaders of the next problem are out
before a client is looked at.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from formulations.exact.kernel import Kernel
from placement.checks import FloatArray

__all__ = ["Recalled", "recalled"]


@dataclass(frozen=True, slots=True)
class Recalled:
    """Leaders as far as a kernel remembers them.

    Attributes
    ----------
    bounds
        Lower bound of every leader, static ones included.
    proven
        Of those that are out: the bounds that their last multipliers prove.
    left
        The others, in order, but that of the incumbent first: its multipliers are those that the
        others' are adapted from.
    """

    bounds: dict[int, float]
    proven: dict[int, float]
    left: list[int]


def recalled(
    kernel: Kernel,
    leaders: Sequence[int],
    multipliers: Mapping[int, FloatArray],
    floors: FloatArray,
    limits: tuple[int, float],
) -> Recalled:
    """Bound leaders by what the kernel remembers of them, and improve its incumbent.

    Parameters
    ----------
    kernel
        One that has been resized to the problem.
    leaders
        Site indices, or −1 alone.
    multipliers
        With which the search before ended; a leader that has none there is not out, whatever the
        kernel says: it may have been stopped between a look and the note of it.
    floors
        Static bounds, shape (leaders,).
    limits
        Swaps and seconds, as in :meth:`formulations.exact.kernel.Kernel.recall`.

    Returns
    -------
    Recalled
        O(leaders · sites), and the descents of the incumbent.
    """
    bounds = kernel.recall(leaders, *limits)
    if not multipliers.keys() >= set(leaders):
        bounds[[leader not in multipliers for leader in leaders]] = math.nan
    still = ~(bounds >= kernel.counters().cutoff)  # NaN: never looked at
    proven = dict(zip(leaders, bounds.tolist(), strict=True))
    left = [leaders[i] for i in still.nonzero()[0].tolist()]
    for leader in left:
        del proven[leader]
    found = kernel.incumbent()
    if left and found is not None:
        left.sort(key=lambda leader: leader != found.leader)
    return Recalled(dict(zip(leaders, np.fmax(bounds, floors).tolist(), strict=True)), proven, left)
