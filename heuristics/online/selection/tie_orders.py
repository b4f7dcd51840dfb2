"""How policies break ties."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from placement.errors import InputError
from placement.online.selection import SamplePath

__all__ = ["Tie", "check_tie", "in_tie_order"]

Tie = Literal["ring", "random"]
"""Which replica comes first among equals: the first of the group, or one drawn per read."""


def check_tie(tie: object) -> None:
    """Check a rule for ties.

    Raises
    ------
    InputError
        For anything but "ring" and "random".
    """
    if tie not in get_args(Tie):
        raise InputError(
            "unknown rule for ties", field="tie", value=tie, expected=" or ".join(get_args(Tie))
        )


def in_tie_order(sample: SamplePath, tie: Tie, read: int, replicas: Sequence[int]) -> Sequence[int]:
    """Return the replicas in the order in which ties are broken; sort it stably by a score."""
    if tie == "ring":
        return replicas
    return [replicas[place] for place in sample.shuffle[read].tolist()]
