"""Number of drawn instances in a run: some in every run, more in the long forms.

The profile HYPOTHESIS_PROFILE decides; tests/conftest.py says what each is for.
"""

from __future__ import annotations

import os

import pytest

__all__ = ["PROFILE", "examples", "seeds"]

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ordinary")

_SHARE = {"ordinary": 0.4, "thorough": 1, "sanitize": 1, "long": 10}


def examples(count: int) -> int:
    """Return the examples of a property: `count` when thorough, two fifths in ordinary runs."""
    return max(1, int(count * _SHARE[PROFILE]))


def seeds(quick: int, total: int) -> list[object]:
    """Return the seeds 0 to `total` - 1 for ``parametrize``; those from `quick` on are slow."""
    slow = (pytest.param(seed, marks=pytest.mark.slow) for seed in range(quick, total))
    return [*range(quick), *slow]
