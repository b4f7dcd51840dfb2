"""Orders by which policies break ties."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from placement.checks import instance_of, text
from placement.online.selection import LimiterRules, ServerSamplePath

__all__ = ["Tie", "check_policy", "in_tie_order"]

Tie = Literal["ring", "random"]
"""Which replica comes first among equals: the first of the group, or one drawn per read."""


def check_policy(limiter: object, *, tie: object = "ring", name: object = "policy") -> None:
    """Check what policies have in common: rate control or None, the rule for ties, a name.

    Raises
    ------
    InputError
        With the field, its value and what was expected.
    """
    if limiter is not None:
        instance_of(limiter, LimiterRules, "limiter", "LimiterRules or None")
    text(tie, "tie", choices=get_args(Tie))
    text(name, "name")


def in_tie_order(
    sample: ServerSamplePath, tie: Tie, read: int, replicas: Sequence[int]
) -> Sequence[int]:
    """Return the replicas in the order in which ties are broken; sort it stably by a score."""
    if tie == "ring":
        return replicas
    return [replicas[place] for place in sample.shuffle[read].tolist()]
