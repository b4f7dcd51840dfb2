"""Common parts of the policies: rate control, names, and orders by which ties are broken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Literal, get_args

from placement.online.selection import LimiterRules, ServerSamplePath
from placement.support.checks import instance_of, text

__all__ = ["Limited", "Tie", "Tied", "in_tie_order"]

Tie = Literal["ring", "random"]
"""Order of replicas that tie: the first of the group, or one drawn per read."""


@dataclass(frozen=True)
class Limited:
    """Base of all policies.

    Parameters
    ----------
    limiter
        Rate control; None: none.

    Raises
    ------
    InputError
        With the field, its value and what was expected.
    """

    _: KW_ONLY
    limiter: LimiterRules | None = None

    if TYPE_CHECKING:

        @property
        def name(self) -> str:
            """Short name, as in tables."""
            ...

    def __post_init__(self) -> None:
        if self.limiter is not None:
            instance_of(self.limiter, LimiterRules, "limiter", "LimiterRules or None")
        text(self.name, "name")


@dataclass(frozen=True)
class Tied(Limited):
    """Base of the policies that rank replicas by a score.

    Parameters
    ----------
    tie
        "random", or "ring" as in the authors' simulator.
    """

    tie: Tie = "random"

    def __post_init__(self) -> None:
        super().__post_init__()
        text(self.tie, "tie", choices=get_args(Tie))


def in_tie_order(
    sample: ServerSamplePath, tie: Tie, read: int, replicas: Sequence[int]
) -> Sequence[int]:
    """Return the replicas in the order in which ties are broken; sort it stably by a score."""
    if tie == "ring":
        return replicas
    return [replicas[place] for place in sample.shuffle[read].tolist()]
