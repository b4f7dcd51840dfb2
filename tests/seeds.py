"""Seeds of drawn instances: a few in every run, the rest among the slow tests."""

from __future__ import annotations

import pytest

__all__ = ["seeds"]


def seeds(quick: int, total: int) -> list[object]:
    """Return the seeds 0 to `total` - 1 for ``parametrize``; those from `quick` on are slow."""
    slow = (pytest.param(seed, marks=pytest.mark.slow) for seed in range(quick, total))
    return [*range(quick), *slow]
