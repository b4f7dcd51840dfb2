"""Prices of moves and the rule that weighs them; searches and sequences against enumeration."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations.overtime.leader_sequence import best_sequence, best_sequences, work_function
from placement import Configuration, Options, Plan, Prices, Problem
from placement.errors import InputError
from placement.methods.registry import load_method, run
from placement.overtime.decayed_counts import Decay, DecayedCounts
from placement.overtime.moves import Hysteresis, MovePrices, changes, leader_path, outage_price
from placement.overtime.moves.move_prices import choose
from placement.overtime.moves.move_search import best_move
from placement.plan import objective_value
from placement.support.status import Status
from placement.testing import every_configuration
from tests.effort import examples
from tests.reference import small

SITES = 6


@st.composite
def configurations(draw: st.DrawFn) -> Configuration:
    replicas = draw(st.lists(st.integers(0, SITES - 1), min_size=1, max_size=4, unique=True))
    voters = draw(st.lists(st.sampled_from(replicas), min_size=1, unique=True))
    return Configuration.of(draw(st.sampled_from(voters)), voters, replicas)


ANY_PRICES = st.builds(
    MovePrices, *(st.sampled_from([0.0, 1.0, 2.5, 100.0, math.inf]) for _ in range(4))
)


@given(ANY_PRICES, configurations(), configurations(), configurations())
def test_a_detour_is_never_cheaper(prices, one, two, three) -> None:
    def price(before, after):
        return prices.of(changes(before, after))

    assert price(one, one) == 0.0
    assert price(one, three) <= price(one, two) + price(two, three)


def test_a_price_by_hand() -> None:
    prices = MovePrices(leader=20.0, voter=5.0, add=100.0, remove=1.0)
    before = Configuration.of(0, [0, 1, 2], [0, 1, 2, 3])
    after = Configuration.of(3, [3, 1, 4], [1, 3, 4])
    assert prices.of(changes(before, after)) == 20 + 4 * 5 + 100 + 2 * 1
    assert prices.of(changes(after, before)) == 20 + 4 * 5 + 2 * 100 + 1
    assert prices.times(3.0).of(changes(before, after)) == 3 * 142
    assert MovePrices(leader=math.inf).times(0.0).leader == math.inf


def test_an_outage_by_simulation() -> None:
    # operations arrive evenly; those of the first w seconds wait until it is over
    arrivals = (np.arange(1_000_000) + 0.5) / 1_000_000 * 1800.0
    waits = np.maximum(10.0 - arrivals, 0.0)
    assert outage_price(10.0, 1800.0) == pytest.approx(1000 * waits.mean(), rel=1e-4)
    for bad in ((-1.0, 10.0), (11.0, 10.0), (0.0, 0.0), (math.nan, 1.0), (1.0, math.inf)):
        with pytest.raises(InputError):
            outage_price(*bad)


@pytest.mark.parametrize("bad", [-1.0, math.nan, "dear"])
def test_bad_prices(bad) -> None:
    with pytest.raises(InputError, match="leader: "):
        MovePrices(leader=bad)


@pytest.mark.parametrize(
    ("horizon", "confirm"), [(-1.0, 1), (math.nan, 1), ("x", 1), (1.0, 0), (1.0, 1.5), (True, 1)]
)
def test_bad_rules(horizon, confirm) -> None:
    with pytest.raises(InputError):
        Hysteresis(horizon, confirm)


def one(rule, predicted, prices, current=0, streak=0):
    chosen, count = choose(rule, np.array(predicted), np.array(prices), current, streak)
    return int(chosen), int(count)


def test_a_move_must_pay_in_a_row() -> None:
    rule = Hysteresis(4.0, confirm=2)
    good, bad = ([10.0, 8.0], [0.0, 7.0]), ([10.0, 9.0], [0.0, 7.0])
    assert one(rule, *good) == (0, 1)
    assert one(rule, *good, streak=1) == (1, 0)
    assert one(rule, *bad, streak=1) == (0, 0)
    assert one(Hysteresis(0.5), [10.0, 8.0], [0.0, 0.9]) == (1, 0)
    assert one(Hysteresis(0.5), [10.0, 8.0], [0.0, 1.1]) == (0, 0)
    assert one(Hysteresis(1e-308), [math.inf, 8.0], [0.0, 1e5]) == (1, 0)


@settings(max_examples=examples(40))
@given(
    st.integers(0, 2**32),
    st.floats(0, 30),
    st.sampled_from([0.0, 1.0, 2.5, math.inf]),
    st.sampled_from([1.0, 1.5, math.inf]),
    st.integers(1, 3),
)
def test_the_path_is_the_rule_step_by_step(seed, price, horizon, decay, confirm) -> None:
    """Written once more with the state of decayed counts, one database, one interval at a time."""
    scores = np.random.default_rng(seed).integers(1, 9, (10, 3)).astype(float)
    state = DecayedCounts.empty((3,), Decay(decay))
    here, streak, path = int(scores[0].argmin()), 0, []
    for row in scores[:-1]:
        state = state.after(row)
        stay = state.rates[here]
        gains = horizon * (stay - state.rates) if math.isfinite(horizon) else stay - state.rates
        worth = gains - (price if math.isfinite(horizon) else 0.0) * (np.arange(3) != here)
        best = int(np.argmax(worth >= worth.max() - 1e-9))
        streak = streak + 1 if worth[best] > 1e-9 else 0
        if streak >= confirm:
            here, streak = best, 0
        path.append(here)
    rule = Hysteresis(horizon, confirm)
    assert leader_path(scores, price, rule, Decay(decay)).tolist() == path


def test_extremes() -> None:
    scores = np.random.default_rng(1).exponential(10, (5, 30, 4))
    never = leader_path(scores, 1.0, Hysteresis(0.0), Decay(2.0))
    assert (never == scores[:, 0].argmin(axis=-1)[:, None]).all()
    always = leader_path(scores, 1e9, Hysteresis(math.inf), Decay(math.inf))
    assert (always == scores[:, :-1].argmin(axis=-1)).all()


PRICES = (0.0, 0.5, 3.0, 20.0, math.inf)
HORIZONS = (0.5, 4.0, 8.0, 64.0, math.inf)


def answer(method: str, part: Problem) -> Plan:
    return run(load_method(method), part, Options())


def drawn(seed: int) -> Problem:
    """Four to seven sites; a range of |R|, a budget, a failure domain, a pin now and then."""
    rng = np.random.default_rng(seed)
    sites, clients = int(rng.integers(4, 8)), int(rng.integers(2, 7))
    at, near = rng.random((sites, 2)) * 100, rng.random((clients, 2)) * 100

    def rtt(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        between = np.linalg.norm(one[:, None] - other[None], axis=2)
        return np.asarray(np.round(between + rng.random(between.shape) * 10, 3))

    site_rtt = rtt(at, at)
    np.fill_diagonal(site_rtt, 0.0)
    counts = rng.integers(0, 20, (clients, 5)).astype(float)
    counts[0, 0] += 1
    money, spread = seed % 3 == 0, seed % 4 == 1
    instance = small(
        tuple(f"s{i}" for i in range(sites)),
        rtt(near, at) + 1,
        site_rtt,
        counts,
        prices=Prices(rng.integers(1, 9, sites).astype(float)) if money else None,
        domains={"country": tuple("xyz"[i % 3] for i in range(sites))} if spread else {},
    )
    least = int(rng.integers(2, min(5, sites) + 1))
    most = min(sites, least + 2) if seed % 2 else least
    voters = int(rng.integers(1, min(3, least) + 1))
    return Problem(
        instance,
        replicas=(least, most),
        voters=voters,
        budget=float(rng.integers(12, 30)) if money else None,
        survive="country" if spread and voters == 3 else None,
        pinned=["s0"] if seed % 5 == 2 else (),
    )


def cases(
    seeds: range,
) -> Iterator[tuple[Problem, list[Configuration], Configuration, MovePrices, float]]:
    for seed in seeds:
        problem, rng = drawn(seed), np.random.default_rng(1000 + seed)
        every = list(every_configuration(problem))
        if not every:
            continue
        current = every[int(rng.integers(len(every)))]
        if seed % 7 == 3:  # a configuration that may break the rules
            rules = problem.rules
            held = rng.choice(len(problem.instance.sites), rules.replicas_min, replace=False)
            current = Configuration.of(held[0], held[: rules.voters], held)
        prices = MovePrices(*(float(rng.choice(PRICES)) for _ in range(4)))
        yield problem, every, current, prices, float(rng.choice(HORIZONS))


@pytest.mark.parametrize(
    ("method", "count"),
    [("exact", examples(50)), ("local-search", examples(16)), ("kq", examples(20))],
)
def test_no_configuration_is_cheaper(method: str, count: int) -> None:
    proven = compared = 0
    for problem, every, current, prices, horizon in cases(range(count)):
        worth = {}
        for one in every:
            price = prices.of(changes(current, one))
            mean = objective_value(problem, one) / problem.demand.operations
            worth[one] = math.inf if math.isinf(price) else mean + price / horizon
        least = min(worth.values())
        found = best_move(problem, current, prices, horizon, lambda p: answer(method, p))
        compared += 1
        if math.isinf(least):
            assert found is None
            continue
        assert found is not None
        given = found.configuration
        plain = Configuration.of(given.leader, sorted(given.voters), given.replicas)
        assert worth[plain] == pytest.approx(found.value, rel=1e-11)
        assert found.bound <= least * (1 + 1e-9)
        if method != "kq":
            assert found.value == pytest.approx(least, rel=1e-9)
        if method == "exact":
            assert found.status is Status.OPTIMAL
            assert found.searches <= 1  # prices are part of the question
        elif found.value > least * (1 + 1e-9):
            assert found.status is Status.FEASIBLE
        proven += found.status is Status.OPTIMAL
        if current in worth and worth[current] <= least * (1 + 1e-12):
            assert given == current  # staying is among the best
    assert compared > count / 2
    assert proven < compared or method == "exact"


def test_ties_go_to_the_configuration_with_the_fewest_changes() -> None:
    """A client that every site serves alike: only the site that is forbidden now is replaced."""
    instance = small("abcde", np.full((1, 5), 5.0), np.zeros((5, 5)), [[9.0, 0, 0, 0, 0]])
    problem = Problem(instance, replicas=3, voters=2, forbidden=["e"])
    current = Configuration.of(3, [3, 4], [2, 3, 4])
    free = MovePrices()
    found = best_move(problem, current, free, 8.0, lambda p: answer("exact", p))
    assert found is not None
    after = changes(current, found.configuration)
    assert (after.leader, after.removed, len(after.added)) == (False, (4,), 1)
    assert after.size == 2  # a site out, another in


def test_a_bound_on_the_mean_saves_the_search() -> None:
    """Where the cheapest change costs more than any gain there can be, nothing is searched."""
    problem = drawn(2)
    every = list(every_configuration(problem))
    means = [objective_value(problem, one) / problem.demand.operations for one in every]
    current, floor = every[int(np.argmax(means))], min(means)

    def never(part: Problem) -> Plan:
        raise AssertionError(part)

    dear = MovePrices(*[8.0 * (max(means) - floor) + 1.0] * 4)
    found = best_move(problem, current, dear, 8.0, never, (), floor)
    assert found is not None
    assert (found.configuration, found.searches, found.status) == (current, 0, Status.OPTIMAL)
    at_once = best_move(problem, current, MovePrices(), 0.0, never)
    assert at_once is not None
    assert at_once.configuration == current


def cost_by_hand(scores, table, path, start):
    """The cost of a path, in a loop."""
    before = path[0] if start is None else start
    total = 0.0
    for t, now in enumerate(path):
        total += scores[t][now] + (0.0 if now == before else table[before][now])
        before = now
    return total


def every_path(scores, table, start):
    intervals, size = scores.shape
    return min(
        cost_by_hand(scores, table, path, start)
        for path in itertools.product(range(size), repeat=intervals)
    )


@st.composite
def worlds(draw: st.DrawFn) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], int | None]:
    """Scores, a table of prices, a start; full of ties, with some candidates not allowed."""
    intervals, size = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    if draw(st.booleans()):
        scores = rng.integers(0, 4, (intervals, size)).astype(float)
        table = rng.integers(0, 4, (size, size)).astype(float)
    else:
        scores, table = rng.exponential(10, (intervals, size)), rng.exponential(5, (size, size))
    if draw(st.booleans()):
        table[rng.random((size, size)) < 0.2] = np.inf
    if draw(st.booleans()):
        scores[:, 1:][rng.random((intervals, size - 1)) < 0.2] = np.inf
    np.fill_diagonal(table, 0.0)
    start = draw(st.one_of(st.none(), st.integers(0, size - 1)))
    return scores, table, start


@given(worlds())
def test_equals_brute_force_over_all_sequences(world) -> None:
    scores, table, start = world
    least = every_path(scores, table, start)
    if math.isinf(least):
        with pytest.raises(InputError, match="no sequence has a finite cost"):
            best_sequence(scores, table, start=start)
        return
    found = best_sequence(scores, table, start=start)
    assert float(found.cost.total) == pytest.approx(least, rel=1e-12)
    by_hand = cost_by_hand(scores, table, found.path.tolist(), start)
    assert by_hand == pytest.approx(least, rel=1e-12)
    stops = found.path.tolist() if start is None else [start, *found.path.tolist()]
    assert int(found.cost.moves) == sum(a != b for a, b in itertools.pairwise(stops))


@given(worlds(), st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.7, math.inf]))
def test_one_price_for_all_moves_equals_the_table(world, price) -> None:
    scores, table, start = world
    table = np.where(np.eye(len(table), dtype=bool), 0.0, price)
    least = every_path(scores, table, start)
    if math.isinf(least):
        with pytest.raises(InputError):
            best_sequence(scores, price, start=start)
        return
    by_table, by_number = (best_sequence(scores, p, start=start) for p in (table, price))
    assert by_table.path.tolist() == by_number.path.tolist()  # the same rule for ties
    assert float(by_number.cost.total) == pytest.approx(least, rel=1e-12)
    assert work_function(scores, price, start=start)[-1].min() == pytest.approx(least, rel=1e-12)


def test_many_databases_at_once_are_each_alone() -> None:
    rng = np.random.default_rng(4)
    scores = rng.exponential(10, (3, 2, 20, 5))
    price = rng.exponential(10, (3, 2))
    start = rng.integers(0, 5, (3, 2))
    for first in (None, start):
        together = best_sequences(scores, price, start=first)
        for i, j in itertools.product(range(3), range(2)):
            alone = best_sequence(
                scores[i, j], float(price[i, j]), start=None if first is None else int(first[i, j])
            )
            assert together.path[i, j].tolist() == alone.path.tolist()
            assert together.cost.total[i, j] == alone.cost.total


def test_small_differences_add_up() -> None:
    # the second leader is better by 1e-8 in each of 20,000 intervals but the last: less than 1e-12
    # of the cost so far, but not in sum. (With ties that wide the path stayed with the first.)
    scores = np.ones((20_000, 2))
    scores[:, 1] -= 1e-8
    scores[-1] = [0.0, 5.0]
    for prices in (1e-6, np.array([[0.0, 1e-6], [1e-6, 0.0]])):
        found = best_sequence(scores, prices)
        least = float(scores[:-1, 1].sum()) + 1e-6
        assert float(found.cost.total) == pytest.approx(least, rel=2e-10)


def test_ties_stay_and_go_to_the_first() -> None:
    assert best_sequence(np.ones((4, 3)), 0.0).path.tolist() == [0, 0, 0, 0]
    # moving at 1 or at 2 costs the same: the path stays where it ends as long as it can
    scores = np.array([[0.0, 9.0], [1.0, 1.0], [9.0, 0.0]])
    assert best_sequence(scores, 1.0).path.tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("scores", "prices", "words"),
    [
        ([[1.0, math.nan]], 1.0, "out of range"),
        ([[1.0, -1.0]], 1.0, "out of range"),
        ([[]], 1.0, "wrong shape"),
        ([1.0, 2.0], 1.0, "wrong shape"),
        ([[1.0, 2.0]], -1.0, "out of range"),
        ([[1.0, 2.0]], math.nan, "out of range"),
        ([[1.0, 2.0]], [[0.0, 1.0]], "wrong shape"),
        ([[1.0, 2.0]], [[1.0, 1.0], [1.0, 0.0]], "a move to the same candidate has a price"),
    ],
)
def test_bad_input(scores, prices, words) -> None:
    with pytest.raises(InputError, match=words):
        best_sequence(scores, prices)


def test_a_start_that_is_no_candidate() -> None:
    with pytest.raises(InputError, match="no such candidate"):
        best_sequence([[1.0, 2.0]], 1.0, start=2)
    with pytest.raises(InputError, match="no such candidate"):
        best_sequence([[1.0, 2.0]], [[0.0, 1.0], [1.0, 0.0]], start=-1)
