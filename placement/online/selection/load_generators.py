"""Generators in a closed loop: each issues its next operation when the last one is answered."""

from __future__ import annotations

from dataclasses import dataclass

from placement.support.checks import number, whole

__all__ = ["LoadGenerators"]


@dataclass(frozen=True, slots=True)
class LoadGenerators:
    """Generators that join a run together.

    Parameters
    ----------
    count
        Number of generators.
    update_share
        Part of their operations that are updates, 0 to 1.
    joins_ms
        Time at which they join, ms.

    Examples
    --------
    The load step of the paper: 40 update-heavy generators join 80 read-heavy ones.

    >>> step = (LoadGenerators(80, 0.05), LoadGenerators(40, 0.5, 10_000.0))
    """

    count: int
    update_share: float = 0.0
    joins_ms: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", whole(self.count, "count", minimum=1))
        number(self.update_share, "update_share", maximum=1.0)
        number(self.joins_ms, "joins_ms")
