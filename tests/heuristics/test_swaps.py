"""Tables of moves against the evaluator and greedy voters; descents against local optima."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from heuristics import tuning
from heuristics.local_search import steepest_descent
from heuristics.local_search.method import leader_bounds
from heuristics.local_search.steepest_descent import SteepestDescent
from heuristics.local_search.swap_neighbourhood import (
    Pairs,
    SwapNeighbourhood,
    capped_waits,
    grow_sets,
)
from heuristics.objective_terms import objective_terms
from placement import Configuration, Diversity, Problem
from placement.evaluation.voter_choice import best_voters
from placement.feasibility.feasible_plans import violations
from placement.plan import objective_value
from placement.testing import random_instance
from tests import reference
from tests.heuristics.test_rules import HARD
from tests.strategies import ALL, SIMPLE, problems

EVERY = st.one_of(problems(kinds=ALL, max_sites=6), problems(kinds=HARD, min_sites=4, max_sites=6))


def true_value(problem: Problem, leader: int, replicas: list[int]) -> float:
    """Objective with the best voters by the evaluator; infinite when the rules do not allow it."""
    voters = best_voters(problem.demand, problem.rules, leader, replicas)
    if voters is None:
        return math.inf
    configuration = Configuration.of(leader, voters, replicas)
    return (
        math.inf if violations(problem, configuration) else objective_value(problem, configuration)
    )


@st.composite
def feasible_sets(draw: st.DrawFn, problem: Problem) -> tuple[int, tuple[int, ...]]:
    """Draw leader and replicas of some configuration that obeys the problem."""
    found = sorted({(ell, held) for ell, _, held in reference.configurations(problem)})
    assume(found)
    return draw(st.sampled_from(found))


def pair_of(problem: Problem, leader: int, replicas: tuple[int, ...]) -> Pairs:
    none = len(problem.rules.may_hold)
    width = problem.rules.replicas_max + 1
    row = [*replicas, *[none] * (width - len(replicas))]
    return Pairs(np.array([leader]), np.array([row]))


def neighbourhood_of(problem: Problem) -> SwapNeighbourhood:
    return SwapNeighbourhood(problem, objective_terms(problem), problem.rules)


def after(sites: int, replicas: tuple[int, ...], out: int, into: int) -> list[int]:
    return sorted({*replicas} - {out} | ({into} if into < sites else set()))


def close(one: float, other: float) -> bool:
    return one == other or math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)


@given(EVERY, st.data())
def test_every_move_has_the_value_of_the_evaluator(problem: Problem, data: st.DataObject) -> None:
    leader, replicas = data.draw(feasible_sets(problem))
    field = neighbourhood_of(problem)
    pairs = pair_of(problem, leader, replicas)
    sites = field.terms.sites
    now, table = field.moves(pairs, field.insertions(pairs.leaders))
    waits_now, waits = field.waits(pairs)
    current = true_value(problem, leader, list(replicas))
    if field.exact:
        assert close(float(now[0] + waits_now[0]), current)
    else:
        assert now[0] + waits_now[0] <= current + 1e-9 * abs(current)
    seen = set()
    for place, out in enumerate(pairs.replicas[0].tolist()):
        for into in range(sites + 1):
            target = after(sites, replicas, out, into)
            listed = math.isfinite(table[0, place, into])
            value = true_value(problem, leader, target) if leader in target else math.inf
            if listed:
                seen.add(tuple(target))
                promised = float(table[0, place, into] + waits[0, place, into])
                if field.exact:
                    assert close(promised, value)
                else:
                    assert promised <= value + 1e-9 * abs(value) + 1e-9
    for out in (*replicas, sites):
        for into in range(sites + 1):
            target = after(sites, replicas, out, into)
            if leader not in target or into in replicas or tuple(target) == replicas:
                continue
            if math.isfinite(true_value(problem, leader, target)):
                assert tuple(target) in seen


@given(EVERY, st.data())
def test_descents_end_in_local_optima(problem: Problem, data: st.DataObject) -> None:
    leader, replicas = data.draw(feasible_sets(problem))
    field = neighbourhood_of(problem)
    pairs = pair_of(problem, leader, replicas)
    value = float(SteepestDescent(field, lambda: False).run(pairs)[0])
    sites = field.terms.sites
    end = tuple(sorted(s for s in pairs.replicas[0].tolist() if s < sites))
    assert close(value, true_value(problem, leader, list(end)))
    assert math.isfinite(value)
    start = true_value(problem, leader, list(replicas))
    assert value <= start + 1e-9 * abs(start)
    for out in (*end, sites):
        for into in range(sites + 1):
            target = after(sites, end, out, into)
            if leader in target and into not in end:
                better = true_value(problem, leader, target)
                assert better >= value - 1e-9 * abs(value) - 1e-9


def test_a_batch_is_as_good_as_its_parts() -> None:
    """Blocks, and pairs that arrive at different times, change nothing."""
    problem = Problem(random_instance(5, sites=9, clients=12), replicas=(3, 5), voters=3)
    field = neighbourhood_of(problem)
    rng = np.random.default_rng(1)
    sets = [tuple(sorted(rng.permutation(9)[: rng.integers(3, 6)].tolist())) for _ in range(40)]
    leaders = [int(rng.choice(held)) for held in sets]
    parts = [pair_of(problem, ell, held) for ell, held in zip(leaders, sets, strict=True)]
    together = Pairs.join(parts)
    values = SteepestDescent(field, lambda: False).run(together)
    alone = [float(SteepestDescent(field, lambda: False).run(part)[0]) for part in parts]
    assert values.tolist() == pytest.approx(alone)
    assert [sorted(row) for row in together.replicas.tolist()] == [
        sorted(part.replicas[0].tolist()) for part in parts
    ]


def test_a_stopped_descent_leaves_a_valid_set() -> None:
    problem = Problem(random_instance(5, sites=9, clients=12), replicas=4, voters=3)
    field = neighbourhood_of(problem)
    pairs = pair_of(problem, 0, (0, 1, 2, 3))
    value = float(SteepestDescent(field, lambda: True).run(pairs)[0])
    assert value == pytest.approx(true_value(problem, 0, [0, 1, 2, 3]))


@given(problems(kinds=ALL, max_sites=6))
def test_bounds_are_below_every_configuration(problem: Problem) -> None:
    bounds = leader_bounds(problem, objective_terms(problem))
    for leader, voters, replicas in reference.configurations(problem):
        value = reference.objective(problem, leader, voters, replicas)
        assert bounds[leader] <= value + 1e-9 * abs(value) + 1e-9


@given(problems(kinds=SIMPLE - {"non_voters", "pinned_voters", "decay"}), st.booleans())
def test_grown_sets_are_complete(problem: Problem, quorum: bool) -> None:
    rules = problem.rules
    size = rules.replicas_min
    leaders = np.nonzero(rules.may_lead)[0]
    assume(int(rules.may_hold.sum()) >= size)
    # a leader beside the pins must fit
    assume(all(rules.must_hold[ell] or rules.must_hold.sum() < size for ell in leaders))
    width = rules.replicas_max + 1
    pairs = grow_sets(neighbourhood_of(problem), leaders, size, width, quorum=quorum)
    for leader, row in zip(leaders.tolist(), pairs.replicas.tolist(), strict=True):
        held = [site for site in row if site < len(rules.may_hold)]
        assert len(set(held)) == len(held) == size
        assert leader in held
        assert set(np.nonzero(rules.must_hold)[0].tolist()) <= set(held)
        assert rules.may_hold[held].all()


@pytest.mark.parametrize("least", [2, 3])
@pytest.mark.parametrize("cap", [None, 1, 2])
def test_moves_obey_domains_of_replicas_and_no_more(least: int, cap: int | None) -> None:
    """For every set and move: allowed exactly when the set after it obeys the rule."""
    rules = [Diversity("region", "replicas", min_domains=least)]
    if cap is not None:
        rules.append(Diversity("region", "replicas", cap=cap))
    problem = Problem(random_instance(1), replicas=(3, 4), voters=1, diversity=rules)
    field = neighbourhood_of(problem)
    groups = problem.rules.of("replicas")
    for size in (3, 4):
        for replicas in itertools.combinations(range(6), size):
            if not all(group.satisfied(replicas) for group in groups):
                continue
            pairs = pair_of(problem, replicas[0], replicas)
            allowed = field.allowed(pairs)[0]
            for place, out in enumerate(pairs.replicas[0].tolist()):
                for into in range(7):
                    target = after(6, replicas, out, into)
                    proper = (
                        out != replicas[0]
                        and into not in replicas
                        and tuple(target) != replicas
                        and 3 <= len(target) <= 4
                        and place <= size
                    )
                    good = proper and all(group.satisfied(target) for group in groups)
                    assert allowed[place, into] == good


def wait_of(
    rtt: list[float], leader: int, sites: set[int], labels: list[int], cap: int, m: int, v: int
) -> float:
    """Take the leader, then whoever is closest and fits; the m-th of v answers."""
    voters = [leader]
    for site in sorted(sites - {leader}, key=lambda s: (rtt[s], s)):
        if math.isfinite(rtt[site]) and len(voters) < v:
            alike = sum(labels[other] == labels[site] for other in voters)
            if alike < cap:
                voters.append(site)
    return sorted(rtt[s] for s in voters)[m - 1] if len(voters) == v else math.inf


@given(st.data())
def test_every_move_has_the_wait_of_greedy_voters(data: st.DataObject) -> None:
    """Ties, RTTs of zero, sites that may not vote, places that are empty, too few voters."""
    count = data.draw(st.integers(2, 8))
    sites = range(count)
    numbers = st.sampled_from([0.0, 1.0, 2.0, 3.0, 5.0, math.inf])
    labels = [data.draw(st.integers(0, 3)) for _ in sites]
    cap, m = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    v = data.draw(st.integers(m, 5))
    size = data.draw(st.integers(1, count))
    spare = data.draw(st.integers(1, 2))
    rows, sets, leaders = [], [], []
    for _ in range(data.draw(st.integers(1, 3))):
        chosen = data.draw(st.permutations(list(sites)))[:size]
        leader = data.draw(st.sampled_from(chosen))
        rtt = [data.draw(numbers) for _ in sites]
        rtt[leader] = 0.0
        rows.append([*rtt, math.inf])
        sets.append(data.draw(st.permutations([*chosen, *[count] * spare])))
        leaders.append(leader)
    now, table = capped_waits(np.array(rows), np.array(sets), np.array(labels), cap, m, v)
    for b, (rtt, held, leader) in enumerate(zip(rows, sets, leaders, strict=True)):
        present = set(held) - {count}
        assert now[b] == wait_of(rtt, leader, present, labels, cap, m, v)
        for place, out in enumerate(held):
            if out == leader:
                continue
            for into in [*set(sites) - present, count]:
                after = (present - {out} | {into}) - {count}
                expected = wait_of(rtt, leader, after, labels, cap, m, v)
                assert table[b, place, into] == expected


PROBLEMS = (
    Problem(random_instance(5, sites=9, clients=12), replicas=4, voters=3),
    Problem(random_instance(6, sites=9, clients=12), replicas=4, voters=3, survive="region"),
    Problem(
        random_instance(7, sites=9, clients=12),
        replicas=(3, 5),
        voters=3,
        diversity=Diversity("region", min_domains=2),
    ),
)


def starts(problem: Problem, seed: int, count: int) -> Pairs:
    """Sets of three leaders, some of them twice, with their places in different order."""
    rng = np.random.default_rng(seed)
    none, width = len(problem.rules.may_hold), problem.rules.replicas_max + 1
    leaders = rng.integers(0, 3, count)
    sets = np.full((count, width), none)
    for row, leader in enumerate(leaders):
        others = rng.permutation(np.delete(np.arange(none), leader))[:3]
        sets[row, :4] = rng.permutation([leader, *others])
    return Pairs(np.append(leaders, leaders[:5]), np.vstack([sets, sets[:5, ::-1]]))


@pytest.mark.parametrize("problem", PROBLEMS)
def test_meeting_changes_no_end(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one batch, and over batches that go on from what the first has found out."""
    field = SwapNeighbourhood(problem, objective_terms(problem), problem.rules)
    together = SteepestDescent(field, lambda: False)
    met = 0
    unvisited = steepest_descent.DescentCache.unvisited

    def counted(self: steepest_descent.DescentCache, rows: np.ndarray, pairs: Pairs) -> np.ndarray:
        nonlocal met
        left = unvisited(self, rows, pairs)
        met += len(rows) - len(left)
        return left

    for seed in range(4):
        pairs = starts(problem, seed, 30)
        alone = pairs.take(np.arange(len(pairs)))
        monkeypatch.setattr(steepest_descent.DescentCache, "unvisited", counted)
        values = together.run(pairs)
        monkeypatch.setattr(steepest_descent.DescentCache, "unvisited", unvisited)
        for row in range(len(pairs)):
            one = alone.take(np.array([row]))
            assert values[row] == pytest.approx(
                float(SteepestDescent(field, lambda: False).run(one)[0])
            )
            if np.isfinite(values[row]):
                assert sorted(one.replicas[0]) == sorted(pairs.replicas[row])
    assert met > 60  # of 140 descents


def test_known_descents_cost_no_step() -> None:
    field = SwapNeighbourhood(PROBLEMS[0], objective_terms(PROBLEMS[0]), PROBLEMS[0].rules)
    descent = SteepestDescent(field, lambda: False)
    pairs = starts(PROBLEMS[0], 0, 30)
    again = pairs.take(np.arange(len(pairs)))
    values = descent.run(pairs)
    steps = descent.steps
    assert steps > 0
    assert descent.run(again).tolist() == values.tolist()
    assert descent.steps == steps
    assert again.replicas.tolist() == pairs.replicas.tolist()


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    field = SwapNeighbourhood(PROBLEMS[0], objective_terms(PROBLEMS[0]), PROBLEMS[0].rules)
    monkeypatch.setattr(tuning, "REMEMBERED_DESCENTS", 0)
    descent = SteepestDescent(field, lambda: False)
    descent.run(starts(PROBLEMS[0], 0, 30))
    before = set(descent.ends)
    alone = SteepestDescent(field, lambda: False)
    expected = alone.run(starts(PROBLEMS[0], 1, 30))
    assert descent.run(starts(PROBLEMS[0], 1, 30)).tolist() == expected.tolist()
    assert before - set(alone.ends)
    assert set(descent.ends) <= set(alone.ends)


def test_a_broken_off_descent_leaves_nothing_behind() -> None:
    """Where it stood is no end: the next descent from there goes all the way."""
    field = SwapNeighbourhood(PROBLEMS[0], objective_terms(PROBLEMS[0]), PROBLEMS[0].rules)
    late = iter([False, True])
    descent = SteepestDescent(field, lambda: next(late, False))
    pairs = starts(PROBLEMS[0], 3, 30)
    again = pairs.take(np.arange(len(pairs)))
    halfway = descent.run(pairs)
    assert not descent.ends
    assert (halfway[30:] == halfway[:5]).all()  # the same sets again stand where those stand
    assert descent.run(again).sum() < halfway.sum()


@given(problems(kinds=ALL, max_sites=6), st.data())
def test_newcomers_take_over_who_is_closer(problem: Problem, data: st.DataObject) -> None:
    terms = objective_terms(problem)
    rows, sites = terms.rank.shape
    assume(rows)
    field = SwapNeighbourhood(problem, terms, problem.rules)
    for times in (1, 5):
        drawn = data.draw(st.lists(st.integers(0, sites - 1), min_size=1, max_size=4))
        leaders = np.array(drawn * times)
        seed = data.draw(st.integers(0, 2**32 - 1))
        near = np.random.default_rng(seed).integers(0, sites + 1, (len(leaders), rows), np.int32)
        joined = field.insertions(leaders).costs_after(near)
        assert joined.shape == (len(leaders), rows, sites + 1)
        last = np.array([len(leaders) - 1])
        assert (field.insertions(leaders).take(last).costs_after(near[last]) == joined[last]).all()
        for b, leader in enumerate(leaders.tolist()):
            summand = np.hstack([terms.summand(leader), np.zeros((rows, 1))])
            for c in range(rows):
                order = [*terms.order[c].tolist(), sites]
                for x in range(sites + 1):
                    server = order[min(int(near[b, c]), order.index(x))]
                    assert joined[b, c, x] == summand[c, server]
