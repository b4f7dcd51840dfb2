"""Optima and bounds against enumeration, against each other, and against every policy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations.online.selection.linear_bounds import fluid_bound
from formulations.online.selection.optimal_choice import solve
from formulations.online.selection.price_bounds import ServerTimePrices, ascend, incumbent, price
from heuristics.online.selection import (
    C3,
    EarliestCompletion,
    LeastOutstanding,
    Oracle,
    RandomChoice,
    RoundRobin,
    play,
    run,
)
from placement.errors import InputError, SolverError
from placement.online.selection import ServerCluster, cut, draw
from tests.effort import examples, seeds
from tests.online.selection.brute import best_assignment, best_schedule, tiny

POLICIES = [
    EarliestCompletion(future=True),
    EarliestCompletion(),
    Oracle(),
    C3(limiter=None),
    LeastOutstanding(),
    RoundRobin(limiter=None),
    RandomChoice(limiter=None),
]
SMALL = ServerCluster(5, 1, 3, 3, utilisation=0.8, epoch_ms=50.0, requests=200)


def warm(cluster, seed, policy, first, count):
    """A window that a policy leads to."""
    path = draw(cluster, seed).on_grid()
    return cut(path, run(path, policy).server, first, count)


@pytest.mark.parametrize("slots", [1, 2])
@pytest.mark.parametrize("epoch", [0, 4])
@pytest.mark.parametrize("seed", seeds(2, 4))
def test_every_order_against_enumeration(seed, epoch, slots):
    window = tiny(seed, 3, slots=slots, epoch=epoch)
    truth = best_schedule(window, 18)
    found = solve(window, "any", seconds=None)
    assert found.proven
    assert found.value == pytest.approx(truth)
    assert found.bound == pytest.approx(truth)


@pytest.mark.parametrize("slots", [1, 2])
@pytest.mark.parametrize("seed", range(5))
def test_first_come_first_served_against_enumeration(seed, slots):
    window = tiny(seed, 6, servers=3, slots=slots)
    found = solve(window, "fcfs", seconds=None)
    truth = best_assignment(window)
    assert found.proven
    assert found.value == pytest.approx(truth)
    assert found.bound == pytest.approx(truth)


@pytest.mark.parametrize("seed", range(5))
def test_with_changing_speeds_first_come_is_a_relaxation(seed):
    window = tiny(seed, 5, servers=3, epoch=4)
    found = solve(window, "fcfs", seconds=None)
    truth = best_assignment(window)
    assert found.bound <= truth + 1e-9
    assert found.value >= truth - 1e-9
    assert solve(window, "any", seconds=None).bound <= found.bound + 1e-9


@settings(max_examples=examples(40))
@given(st.integers(0, 10_000), st.integers(1, 3), st.sampled_from([0, 4, 6]), st.integers(0, 2**32))
def test_any_prices_give_a_bound(seed, slots, epoch, draws):
    window = tiny(seed, 2, servers=3, slots=slots, epoch=epoch)
    truth = best_schedule(window, 25)
    rng = np.random.default_rng(draws)
    for width, scale in ((1, 3.0), (2, 0.5), (2, 10.0)):
        bins = 30 // width
        value = rng.exponential(scale, (3, bins)) * (rng.random((3, bins)) < 0.5)
        assert price(window, ServerTimePrices(width, value)).bound <= truth + 1e-9
    start = ServerTimePrices.zero(window, 2, 15)
    risen, best = ascend(window, start, truth, 15)
    assert price(window, start).bound <= best.bound == price(window, risen).bound <= truth + 1e-9


def test_the_cheapest_start_is_the_cheapest():
    """The three starts per bin that are looked at against all ticks."""
    window = tiny(5, 4, servers=3, epoch=6)
    rng = np.random.default_rng(1)
    for width in (2, 3, 6):
        value = rng.exponential(2.0, (3, 60 // width))
        per_tick = np.concatenate([np.repeat(value, width, axis=1), np.zeros((3, 400))], axis=1)
        found = price(window, ServerTimePrices(width, value))
        for read in range(window.size):
            base = window.delay - int(window.release[read])
            least = min(
                t + p + base + per_tick[s, t : t + p].sum()
                for s in window.replicas[read].tolist()
                for t in range(int(window.release[read]) + window.delay, 300)
                for p in [int(window.work[read]) * int(window.factor(s, t))]
            )
            s, t = int(found.server[read]), int(found.start[read])
            p = int(window.work[read]) * int(window.factor(s, t))
            assert t + p + base + per_tick[s, t : t + p].sum() == pytest.approx(least)


@pytest.mark.parametrize("seed", seeds(2, 4))
def test_the_ladder_on_small_windows(seed):
    window = warm(SMALL, seed, C3(limiter=None), 120, 7)
    ladder(window, 10.0)


def ladder(window, seconds):
    """Bounds <= any order <= first come, first served <= every policy."""
    free, queued = solve(window, "any", seconds=seconds), solve(window, "fcfs", seconds=seconds)
    below = fluid_bound(window, width=640).bound
    assert below <= free.value + 1e-9
    assert free.bound <= free.value + 1e-9
    assert free.bound <= queued.bound + 1e-9 or not queued.proven
    for policy in POLICIES:
        mean = play(window, policy).mean()
        assert queued.bound <= mean + 1e-9
        assert below <= mean + 1e-9
        if queued.proven:
            assert queued.value <= mean + 1e-9


def test_the_window_starts_as_the_warm_run_left_it():
    path = draw(SMALL, 3).on_grid()
    window = cut(path, run(path, Oracle()).server, 100, 20)
    assert len(window.fixed) > 0
    assert (window.fixed[:, 2] > window.release[0]).all()
    # Under the warm policy itself the window is the rest of the run, but for the copies.
    whole = run(path.first(120, plain_from=100), Oracle())
    assert np.array_equal(play(window, Oracle()), whole.latency[100:])
    assert np.array_equal(window.assign(whole.server[100:]), whole.latency[100:])
    starts = np.rint(whole.start[100:] * 128).astype(int)
    assert np.array_equal(window.schedule(whole.server[100:], starts), whole.latency[100:])


def test_the_greedy_schedule_is_one():
    for seed in range(10):
        window = warm(SMALL, seed, C3(limiter=None), 100, 12)
        servers, starts, total = incumbent(window)
        flow = window.schedule(servers, starts)
        assert flow.sum() * 128 == total
        assert np.array_equal(flow, window.assign(servers))


def test_the_referee_refuses_what_cannot_be():
    window = tiny(0, 3)
    servers, starts, _ = incumbent(window)
    window.schedule(servers, starts)
    with pytest.raises(SolverError, match="arrived"):
        window.schedule(servers, starts * 0)
    with pytest.raises(SolverError, match="slots"):
        window.schedule(np.full(3, servers[0]), np.full(3, starts.max()))
    wide = tiny(0, 3, servers=4)
    outside = next(s for s in range(4) if s not in wide.replicas[0])
    with pytest.raises(SolverError, match="group"):
        wide.schedule([outside, *incumbent(wide)[0][1:]], incumbent(wide)[1])


def test_the_fluid_floor_at_a_larger_size():
    path = draw(ServerCluster(10, 2, 3, 20, requests=3000, epoch_ms=50.0), 1).on_grid()
    window = cut(path, (), 0, 3000)
    floor = fluid_bound(window, width=1280)
    blind = price(window, ServerTimePrices.zero(window, 1280, 10)).bound
    clairvoyant = play(window, EarliestCompletion(future=True)).mean()
    assert blind < floor.bound < clairvoyant
    assert floor.bound == pytest.approx(floor.value, rel=0.15)


def test_the_floor_of_an_overloaded_system_is_not_below_that_of_an_empty_one():
    system = ServerCluster(10, 2, 3, 20, utilisation=1.3, requests=1500, epoch_ms=200.0)
    for seed in range(3):
        window = warm(system, seed, Oracle(), 0, 1500)
        blind = price(window, ServerTimePrices.zero(window, 1280, 10)).bound
        floor = fluid_bound(window, width=1280).bound
        assert blind < floor <= play(window, EarliestCompletion(future=True)).mean()


def test_bad_questions():
    with pytest.raises(InputError, match="order"):
        solve(tiny(0, 2), "lifo")


def test_bad_windows_and_bins():
    with pytest.raises(InputError, match="sample: not on the grid"):
        cut(draw(SMALL, 0), (), 0, 2)
    with pytest.raises(InputError, match="servers"):
        cut(draw(SMALL, 0).on_grid(), (4, 4), 2, 2)
    with pytest.raises(InputError, match="count"):
        warm(SMALL, 0, Oracle(), 199, 2)
    window = warm(SMALL, 0, Oracle(), 10, 2)
    with pytest.raises(InputError, match="width"):
        fluid_bound(window, width=77)
    with pytest.raises(InputError, match="price"):
        price(window, ServerTimePrices(64, np.full((5, 3), -1.0)))
