"""The retry model against the published table of its derivation, a drawn timeline, and limits."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.errors import InputError
from placement.online.reads.retry_model import (
    Backoff,
    RetryModel,
    simulate,
)
from tests.effort import examples

TABLE = [
    (0.12, 20, 0.0024, 1.0026, 1.14),
    (1, 20, 0.0196, 1.0215, 2.20),
    (5, 20, 0.0909, 1.1057, 7.30),
    (20, 20, 0.2857, 1.4085, 35.8),
    (0.12, 500, 0.0566, 1.194, 44.9),
]


@pytest.mark.parametrize(("rate", "life", "conflict", "attempts", "latency"), TABLE)
def test_table(rate, life, conflict, attempts, latency):
    model = RetryModel(rate, life)
    assert model.conflict == pytest.approx(conflict, abs=5e-5)
    assert model.attempts == pytest.approx(attempts, abs=5e-4)
    assert model.latency == pytest.approx(latency, rel=5e-3)


@pytest.mark.parametrize(("rate", "life"), [(1, 20), (5, 20), (20, 20), (0.12, 500), (2, 500)])
def test_model_meets_a_drawn_timeline(rate, life):
    """Within 3 % (the sampling error of 150,000 reads is about 1 % for all of these)."""
    model = RetryModel(rate, life)
    attempts, latency = simulate(model, 150_000, np.random.default_rng(5))
    assert attempts == pytest.approx(model.attempts, rel=0.03)
    assert latency == pytest.approx(model.latency, rel=0.03)


@settings(max_examples=examples(40))
@given(
    st.floats(1e-3, 1e3),
    st.floats(1e-2, 1e4),
    st.floats(0, 100),
    st.floats(0.1, 500),
    st.floats(0, 0.9),
)
def test_series_equal_their_first_terms(rate, life, rtt, first, jitter):
    """The geometric tail is the tail: sum until terms vanish, drawing the mean over the jitter."""
    model = RetryModel(rate, life, rtt, Backoff(first, 2000.0, jitter))
    lam = rate / 1000 + 1 / life
    failing, attempts, latency = model.conflict, 1.0, rtt
    points = (np.arange(400) + 0.5) / 400
    for j in range(1000):
        attempts += failing
        middle = min(first * 2.0 ** min(j, 100), 2000.0)
        latency += failing * (middle + rtt)
        waits = middle * (1 + jitter * (2 * points - 1))
        decay = float(np.exp(-lam * (waits + rtt)).mean())
        failing *= model.conflict + (1 - model.conflict) * decay
        if failing < 1e-8:
            break
    else:
        return  # a chain so slow that even thousands of retries leave a tail
    assert model.attempts == pytest.approx(attempts, rel=1e-3)
    assert model.latency == pytest.approx(latency, rel=1e-3)


def test_the_coin_shortens_the_series():
    """Every attempt may go to the leaseholder, which succeeds: against a drawn timeline."""
    model = RetryModel(2, 100, share=2 / 7)
    attempts, latency = simulate(model, 150_000, np.random.default_rng(6))
    assert attempts == pytest.approx(model.attempts, rel=0.03)
    assert latency == pytest.approx(model.latency, rel=0.03)
    assert model.attempts < RetryModel(2, 100).attempts
    assert RetryModel(2, 100, share=1).attempts == 1


def test_no_writes_no_retries():
    for model in (RetryModel(0, 20), RetryModel(5, 0)):
        assert (model.conflict, model.attempts, model.latency) == (0, 1, 1)
    with pytest.raises(InputError, match="simulate"):
        simulate(RetryModel(0, 20), 10, np.random.default_rng(0))


def test_huge_rates_do_not_overflow():
    model = RetryModel(1e9, 1e-3, 0.0, Backoff(50, 5000, 0.15))
    assert math.isfinite(model.latency)
    assert model.conflict == pytest.approx(1e9 * 1e-6 / (1 + 1e9 * 1e-6))
    assert model.repeat_probability(0) == pytest.approx(model.conflict)


def test_many_retries_need_long_intents():
    """At the rate of a hot key (1 % of 100,000 get 80 % of 150 writes/s) 20 ms retry seldom."""
    rate = 0.8 * 150 / (0.01 * 100_000)
    assert RetryModel(rate, 20).attempts - 1 < 0.003
    assert RetryModel(rate, 500).attempts - 1 > 0.19
