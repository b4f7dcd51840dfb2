"""Number of drawn instances in a run; HYPOTHESIS_PROFILE decides, see tests/conftest.py."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from itertools import islice
from typing import Any

import pytest

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ordinary")

SHORT = PROFILE in ("ordinary", "landing")

_SHARE = {"ordinary": 0.1, "landing": 0.2, "thorough": 1, "sanitize": 1, "long": 10}


def examples(count: int, landing: int | None = None) -> int:
    """Return the examples of a property: `count` when thorough.

    Before a landing it is a fifth, or the number that is given; in ordinary runs half of that.
    """
    if landing is not None and SHORT:
        return landing if PROFILE == "landing" else math.ceil(landing / 2)
    return max(1, int(count * _SHARE[PROFILE]))


def seeds(quick: int, total: int) -> list[object]:
    """Return seeds from 0 on for ``parametrize``, `total` when thorough; the later ones are slow.

    `make test` takes a third of the `quick` ones, `make test-landing` all of them, and
    `make test-slow` a fifth of the slow ones, at least one.
    """
    if PROFILE == "ordinary":
        return [*range(math.ceil(quick / 3))]
    more = math.ceil((total - quick) * min(1.0, _SHARE[PROFILE]))
    slow = (pytest.param(seed, marks=pytest.mark.slow) for seed in range(quick, quick + more))
    return [*range(quick), *slow]


def thinned(values: Iterable[Any], one_of: int, first: int = 0) -> list[Any]:
    """Return one of so many values, from the place `first` on, in ordinary runs; else all."""
    return [*islice(values, first % one_of, None, one_of)] if PROFILE == "ordinary" else [*values]
