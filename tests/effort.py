"""Number of drawn instances in a run: some in every run, more in the long forms.

The profile HYPOTHESIS_PROFILE decides; tests/conftest.py says what each is for.
"""

from __future__ import annotations

import math
import os

import pytest

__all__ = ["PROFILE", "examples", "seeds"]

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ordinary")

_SHARE = {"ordinary": 0.2, "thorough": 1, "sanitize": 1, "long": 10}


def examples(count: int, ordinary: int | None = None) -> int:
    """Return the examples of a property: `count` when thorough.

    In ordinary runs it is a fifth of them, or the number that is given.
    """
    if ordinary is not None and PROFILE == "ordinary":
        return ordinary
    return max(1, int(count * _SHARE[PROFILE]))


def seeds(quick: int, total: int) -> list[object]:
    """Return seeds from 0 on for ``parametrize``, `total` when thorough; from `quick` on slow ones.

    In ordinary runs a fifth of the slow seeds is left, and not fewer than one.
    """
    more = math.ceil((total - quick) * min(1.0, _SHARE[PROFILE]))
    slow = (pytest.param(seed, marks=pytest.mark.slow) for seed in range(quick, quick + more))
    return [*range(quick), *slow]
