"""Profiles of generated tests.

HYPOTHESIS_PROFILE=ordinary (the default): the same hundred or so examples in every run.
HYPOTHESIS_PROFILE=long: thousands of fresh ones per property.
Tests marked `slow` run thousands under either.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# An instance with its constraints is a large draw, and no test here asserts a time.
COMMON = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    print_blob=True,
)

settings.register_profile("ordinary", COMMON, max_examples=100, derandomize=True)
settings.register_profile("long", COMMON, max_examples=3000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ordinary"))
