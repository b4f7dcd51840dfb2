"""Answers and refusals that tests expect."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from placement import Problem, solve
from placement.errors import InputError
from placement.plan import Plan


def like_enumeration(problem: Problem, method: str = "exact", **options: object) -> Plan:
    """Return the answer of a method: a proven one, with the value and the status of enumeration."""
    plan = solve(problem, method, **options)  # type: ignore[arg-type]
    truth = solve(problem, "exhaustive", settings={"limit": 10**9})
    assert plan.status is truth.status
    assert math.isclose(plan.objective, truth.objective, rel_tol=1e-9)
    return plan


@contextmanager
def refused(*words: object) -> Iterator[None]:
    """Expect an input error whose message has all words."""
    with pytest.raises(InputError) as caught:
        yield
    missing = [word for word in map(str, words) if word not in str(caught.value)]
    assert not missing, f"not in {caught.value}: {missing}"
