"""A user's script for mypy: it holds when mypy sees the types of an installed `placement`."""

from typing import assert_type

import placement

instance = placement.load("world27")
plan = placement.solve(placement.Problem(instance, replicas=5, voters=3))
assert_type(instance, placement.Instance)
assert_type(plan, placement.Plan)
assert_type(plan.mean_latency, float)
