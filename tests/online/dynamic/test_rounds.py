"""Clairvoyant schedules against brute force over all schedules."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations.online.dynamic.copy_programs import schedule_cost, solve_milp, solve_rounds
from placement.errors import InputError
from tests.effort import examples
from tests.online.dynamic.worlds import all_copies, small_problems, two_sites


def rounds_of(problem, seed, count):
    rng = np.random.default_rng(seed)
    return [
        dataclasses.replace(
            problem, reads=rng.integers(0, 9, problem.static.shape) * (rng.random() < 0.8)
        )
        for _ in range(count)
    ]


@settings(max_examples=examples(40), deadline=None)
@given(
    small_problems(sites=(1, 3), objects=(1, 2)),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.0, 5.0, 60.0]),
)
def test_schedules_are_what_brute_force_finds(problem, seed, copying):
    problems = rounds_of(problem, seed, 2)
    options = list(all_copies(problem))
    rng = np.random.default_rng(seed)
    before = options[rng.integers(len(options))]
    best = min(
        schedule_cost(problems, np.array(choice), copying, before)
        for choice in itertools.product(options, repeat=2)
    )
    found = solve_rounds(problems, copying, before=before)
    assert found.cost == pytest.approx(best, rel=1e-9, abs=1e-9)
    assert found.status == "optimal"


@settings(max_examples=examples(20), deadline=None)
@given(small_problems(sites=(1, 4), objects=(1, 4)), st.integers(0, 2**32 - 1))
def test_free_copying_is_round_by_round(problem, seed):
    problems = rounds_of(problem, seed, 3)
    alone = sum(solve_milp(each).cost for each in problems)
    assert solve_rounds(problems, 0.0).cost == pytest.approx(alone, rel=1e-9, abs=1e-9)


def test_a_copy_is_kept_through_a_quiet_round():
    """Not read in the middle round, and still kept, since making it again costs more than room."""
    busy = two_sites((100, 0), (0, 0))
    quiet = two_sites((0, 0), (0, 0))
    plan = solve_rounds([busy, quiet, busy], 1000.0)
    assert plan.copies[:, 2, 0].tolist() == [True, True, True]
    assert plan.cost == pytest.approx(2 * 100 * 0.7 + 1000)
    assert plan.status == "optimal"


def test_rounds_must_fit_together():
    with pytest.raises(InputError, match="no rounds"):
        solve_rounds([], 1.0)
    problem = two_sites((1, 1), (1, 1))
    other = dataclasses.replace(problem, capacity=problem.capacity + 1)
    with pytest.raises(InputError, match="capacities"):
        solve_rounds([problem, other], 1.0)
