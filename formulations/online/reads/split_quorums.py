"""Mixtures of quorums from the variables s and y of the compact programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from placement.online.reads import Quorum, subsets_of
from placement.support.checks import FloatArray

__all__ = ["NOTHING", "Part", "spread"]

NOTHING = 1e-11
"""Probabilities of a last node below this are dropped: they are the solver's tolerance."""


@dataclass(frozen=True)
class Part:
    """Columns of one gateway and one last node l.

    Attributes
    ----------
    whole
        Column of s_l.
    forced
        Members of every such quorum: l, and the gateway where it must be in.
    sides
        Per side of l, the columns of its free nodes' y_lv and how many of them are in a quorum.
    """

    whole: int
    forced: tuple[int, ...]
    sides: tuple[tuple[Mapping[int, int], int], ...]


def spread(part: Part, values: FloatArray, without: int | None = None) -> dict[Quorum, float]:
    """Quorums of a part with their probabilities, which add up to s_l; empty where s_l is 0.

    Parameters
    ----------
    part, values
        Which columns, and the values of all.
    without
        A node that is in no quorum, whatever its y: the solver's tolerance may leave it a little.

    Notes
    -----
    Dividing by a small s magnifies the solver's tolerance, so that a side may miss its whole sum by
    more than rounding; the missing part is taken from the remaining room, in proportion.
    """
    weight = float(values[part.whole])
    if weight <= NOTHING or without in part.forced:
        return {}
    members: list[int] = []
    p: list[float] = []
    for columns, count in part.sides:
        nodes = [v for v in columns if v != without] if count else []
        here = [min(1.0, max(0.0, float(values[columns[v]]) / weight)) for v in nodes]
        members.extend(nodes)
        p.extend(_mended(here, count))
    found = subsets_of(members, p, sum(count for _, count in part.sides))
    return {tuple(sorted((*free, *part.forced))): weight * share for free, share in found}


def _mended(p: Sequence[float], count: int) -> list[float]:
    """The probabilities moved, within 0 and 1, to the sum `count`."""
    lack = count - sum(p)
    room = [1.0 - q if lack > 0 else q for q in p]
    if lack == 0 or sum(room) == 0:
        return list(p)
    moved = (q + lack * r / sum(room) for q, r in zip(p, room, strict=True))
    return [min(1.0, max(0.0, q)) for q in moved]
