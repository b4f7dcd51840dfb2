"""Votes: cast by the rules, top-k, and a map that cycles."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulations.online.dynamic.copy_programs import solve_milp
from heuristics.online.dynamic.copy_choices import local_topk, run_votes
from placement.errors import InputError
from placement.online.dynamic.vote_counting import CopySet, most_voted, vote_rates
from tests.online.dynamic.worlds import published_problem, small_problems, two_sites


@given(small_problems(writes_too=False), st.integers(0, 2**32 - 1))
def test_votes_are_those_of_single_reads(problem, seed):
    rng = np.random.default_rng(seed)
    copies = (rng.random(problem.static.shape) < 0.4) & ~problem.static
    geography = problem.geography
    expected = np.zeros(problem.static.shape)
    for o in range(problem.objects):
        for i in range(problem.sites):
            held = [j for j in geography.preferred[i] if problem.static[j, o] or copies[j, o]]
            row = geography.preferred[i]
            above = row[: row.index(held[0])] if held else row
            implicit = [held[0]] if held and copies[held[0], o] else []
            for j in [*above, *implicit]:
                expected[j, o] += problem.reads[i, o]
    assert vote_rates(problem, copies) == pytest.approx(expected)


@given(st.lists(st.integers(0, 4), max_size=12), st.integers(0, 12))
def test_most_voted_breaks_ties_by_key(votes, k):
    ranked = sorted((-count, key) for key, count in enumerate(votes) if count)
    assert most_voted(np.array(votes, dtype=np.int64), k).tolist() == [key for _, key in ranked[:k]]


def test_votes_hold_the_same_object_twice_for_ever():
    """First worked example: both sites keep o1; the optimum is four times cheaper."""
    problem = two_sites((100, 40), (90, 40))
    first = vote_rates(problem, problem.none)
    assert first[2].tolist() == first[3].tolist() == [190, 80]
    run = run_votes(problem)
    assert run.period == 1
    assert run.cost[-1] == pytest.approx(11_742)
    assert vote_rates(problem, run.copies)[[2, 3]].tolist() == [[100, 80], [90, 80]]
    assert run.cost[-1] / solve_milp(problem).cost == pytest.approx(4.07, abs=0.005)


def test_votes_oscillate():
    """Second worked example: both sites flip between o1 and o2, round after round."""
    problem = two_sites((100, 60), (90, 50))
    run = run_votes(problem)
    assert run.period == 2
    assert sorted(run.cost[-2:]) == pytest.approx([16_042, 27_582])
    optimum = solve_milp(problem).cost
    assert run.cost[-2:].min() / optimum == pytest.approx(4.8, abs=0.05)
    assert run.cost[-2:].max() / optimum == pytest.approx(8.3, abs=0.05)


def test_grace_hides_the_cycle_by_exceeding_k():
    """With g = 3 both objects are held three rounds in four, which is twice the capacity."""
    problem = two_sites((100, 60), (90, 50))
    run = run_votes(problem, grace=3)
    assert run.period == 4
    assert sorted(run.cost[-4:]) == pytest.approx([224, 224, 224, 16_042])
    assert run.mean_replicas[2] == 1.75 > problem.capacity[2]


@pytest.mark.parametrize("correlation", [0.5, 1.0])
def test_votes_cycle_on_the_published_geography(correlation):
    runs = [run_votes(published_problem(seed, correlation=correlation)) for seed in (1, 2, 3)]
    assert sum(run.period == 2 for run in runs) >= 2


def test_milliseconds_against_static_are_better_than_counts():
    for seed in (1, 2, 3):
        problem = published_problem(seed)
        counted, saved = run_votes(problem), run_votes(problem, in_ms=True)
        optimum = solve_milp(problem).cost
        assert 1.02 * optimum < counted.mean_cost < 1.12 * optimum
        assert saved.mean_cost < counted.mean_cost
        assert local_topk(problem).cost < counted.mean_cost


def test_deletion_waits_for_consecutive_absences():
    static = np.zeros((1, 2), dtype=bool)
    copies = CopySet(static, grace=3)
    present, absent = np.array([[True, False]]), np.array([[False, False]])
    copies.create(present)
    assert [copies.judge(x) for x in (absent, absent, present, absent, absent, absent)] == [
        0, 0, 0, 0, 0, 1,
    ]  # fmt: skip
    assert not copies.active.any()
    with pytest.raises(InputError, match="grace"):
        CopySet(static, grace=0)


def test_static_sites_get_no_dynamic_copy():
    copies = CopySet(np.array([[True, False]]), grace=1)
    assert copies.create(np.array([[True, True]])) == 1
    assert copies.active.tolist() == [[False, True]]
