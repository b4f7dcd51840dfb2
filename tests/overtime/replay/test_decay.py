"""Decayed counts: against the weights written out, against Eq. 2 on scores, and across restarts."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.errors import InputError
from placement.evaluation.score import score
from placement.model.demand import aggregate, decay_weights
from placement.overtime.replay import Decay, DecayedCounts, decayed_counts
from tests.strategies import instances

FACTORS = st.one_of(st.sampled_from([1.0, 2.0, math.inf]), st.floats(1.0, 50.0))


def series(seed: int, length: int) -> np.ndarray:
    return np.random.default_rng(seed).poisson(50.0, (length, 3, 2)).astype(float)


def run(counts: np.ndarray, decay: Decay) -> DecayedCounts:
    state = DecayedCounts.empty(counts.shape[1:], decay)
    for each in counts:
        state = state.after(each)
    return state


@given(seed=st.integers(0, 2**32), length=st.integers(1, 60), factor=FACTORS)
def test_the_recursion_is_the_weighted_sum(seed, length, factor):
    counts = series(seed, length)
    state = run(counts, Decay(factor))
    weights = decay_weights(length, factor)
    np.testing.assert_allclose(state.counts, np.tensordot(weights, counts, 1), rtol=1e-12)
    assert state.weight == pytest.approx(weights.sum(), rel=1e-12)
    assert state.intervals == length
    assert (decayed_counts(counts, Decay(factor))[-1] == state.counts).all()


@given(seed=st.integers(0, 2**32), cut=st.integers(0, 20), factor=FACTORS)
def test_a_restart_changes_no_bit(seed, cut, factor):
    counts = series(seed, 20) / 3.0
    whole = run(counts, Decay(factor))
    saved = json.loads(json.dumps(run(counts[:cut], Decay(factor)).to_json()))
    state = DecayedCounts.from_json(saved)
    for each in counts[cut:]:
        state = state.after(each)
    assert (state.counts == whole.counts).all()
    assert (state.weight, state.intervals) == (whole.weight, whole.intervals)
    assert state.decay == whole.decay


@given(instance=instances(max_intervals=4), factor=st.floats(1.0, 9.0))
def test_the_score_of_decayed_counts_is_equation_two(instance, factor):
    """agg_score of every leader, and the demand that a problem with this decay aggregates."""
    if instance.varying_rtt or not instance.counts.any():
        return
    together = run(instance.counts, Decay(factor))
    alone = aggregate(instance, factor)
    np.testing.assert_allclose(together.counts, alone.counts[0], rtol=1e-12, atol=1e-300)
    everywhere = list(range(len(instance.sites)))
    scores = []
    for counts in instance.counts:
        if counts.any():
            demand = aggregate(instance.replace(counts=counts, intervals=()))
            scores.append(score(demand, 0, everywhere, everywhere, 1))
        else:
            scores.append(0.0)
    total = score(alone, 0, everywhere, everywhere, 1)
    assert decayed_counts(scores, Decay(factor))[-1] == pytest.approx(total, rel=1e-9)


def test_forgetting_is_measured_in_intervals():
    assert Decay.of_half_life(1).factor == 2.0
    assert Decay.of_half_life(4).factor ** 4 == pytest.approx(2)
    assert Decay.of_half_life(7).half_life == pytest.approx(7)
    assert Decay.of_half_life(math.inf) == Decay(1.0)
    assert Decay(math.inf).half_life == 0
    assert Decay(1).half_life == math.inf
    assert Decay.of_half_life(1e-6) == Decay(math.inf)


def test_the_state_is_not_changed_in_place():
    first = DecayedCounts.empty((1,), Decay(2.0)).after([4.0])
    second = first.after([0.0])
    assert (first.counts, second.counts) == ([4.0], [2.0])
    assert second.rates == pytest.approx(2 / 1.5)
    assert DecayedCounts.empty((1,), Decay(2.0)).rates == [0.0]
    with pytest.raises(ValueError, match="read-only"):
        second.counts[0] = 1.0


def test_the_past_fades_to_nothing_but_never_to_nan():
    state = DecayedCounts.empty((1,), Decay(1e300)).after([1e300])
    for _ in range(3):
        state = state.after([0.0])
    assert state.counts == [0.0]
    forgetful = DecayedCounts.empty((1,), Decay(math.inf)).after([5.0]).after([1.0])
    assert forgetful.counts == [1.0]
    assert forgetful.weight == 1.0


@pytest.mark.parametrize(
    "call",
    [
        lambda: Decay(0.5),
        lambda: Decay(math.nan),
        lambda: Decay.of_half_life(0),
        lambda: Decay.of_half_life(-1),
        lambda: Decay.of_half_life(math.nan),
        lambda: DecayedCounts.empty((2,), Decay(2.0)).after([1.0]),
        lambda: DecayedCounts.empty((1,), Decay(2.0)).after([-1.0]),
        lambda: DecayedCounts.empty((1,), Decay(2.0)).after([math.nan]),
        lambda: DecayedCounts.empty((1,), Decay(2.0)).after([math.inf]),
        lambda: DecayedCounts.empty((1,), Decay(2.0)).after("many"),
        lambda: DecayedCounts.from_json({}),
        lambda: DecayedCounts.from_json(
            {"decay": "0x1p+1", "shape": [2], "counts": [1.0], "weight": 1.0, "intervals": 1}
        ),
        lambda: DecayedCounts.from_json(
            {"decay": "0x1p+1", "shape": [1], "counts": [-1.0], "weight": 1.0, "intervals": 1}
        ),
        lambda: DecayedCounts.from_json(
            {"decay": "0x1p+1", "shape": [1], "counts": [1.0], "weight": -1.0, "intervals": 1}
        ),
    ],
)
def test_bad_input_is_refused(call):
    with pytest.raises(InputError):
        call()
