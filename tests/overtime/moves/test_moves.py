"""Prices of moves, and the rule that weighs them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement import Configuration
from placement.errors import InputError
from placement.overtime.decayed_counts import Decay, DecayedCounts
from placement.overtime.moves import (
    Hysteresis,
    MovePrices,
    changes,
    choose,
    leader_path,
    outage_price,
)
from tests.effort import examples

SITES = 6


@st.composite
def configurations(draw: st.DrawFn) -> Configuration:
    replicas = draw(st.lists(st.integers(0, SITES - 1), min_size=1, max_size=4, unique=True))
    voters = draw(st.lists(st.sampled_from(replicas), min_size=1, unique=True))
    return Configuration.of(draw(st.sampled_from(voters)), voters, replicas)


PRICES = st.builds(
    MovePrices, *(st.sampled_from([0.0, 1.0, 2.5, 100.0, math.inf]) for _ in range(4))
)


@given(PRICES, configurations(), configurations(), configurations())
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
