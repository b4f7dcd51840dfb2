"""The rate control, against numbers worked by hand."""

import math

import pytest

from placement.errors import InputError
from placement.online.selection import Limiter, LimiterRules, cubic, inflection_ms

RULES = LimiterRules()


def test_the_inflection_of_the_cubic():
    assert inflection_ms(RULES, 10.0) == pytest.approx(79.37, abs=0.01)
    assert inflection_ms(RULES, 20.0) == pytest.approx(100.0, abs=1e-9)


def test_the_saddle_is_100_ms_wide():
    centre = inflection_ms(RULES, 20.0)
    for offset, inside in ((-50.0, True), (50.0, True), (-51.0, False), (51.0, False)):
        off = abs(cubic(RULES, 20.0, centre + offset) - 20.0)
        assert (off <= 0.5 + 1e-12) is inside


def test_the_curve_starts_at_four_fifths_while_the_decrease_goes_to_a_fifth():
    assert cubic(RULES, 10.0, 0.0) == pytest.approx(8.0)
    limiter = Limiter(RULES, 1)
    for k in range(30):  # 30 responses in the first window: the receive rate is 3 after it
        limiter.answered(0, 0.1 * k)
    limiter.answered(0, 50.0)  # 50 ms without an increase, two windows ended, the last one empty
    assert limiter.rate[0] == pytest.approx(2.0)
    limiter.answered(0, 50.5)  # the receive rate is 0.9·3 = 2.7 > 2: up, towards 0.8·10 at least
    assert limiter.rate[0] == pytest.approx(cubic(RULES, 10.0, 0.5))
    assert limiter.rate[0] > 8.0


def test_an_increase_is_at_most_one_step():
    limiter = Limiter(LimiterRules(step=1.0), 1)
    for k in range(30):
        limiter.answered(0, 0.1 * k)
    limiter.answered(0, 50.0)
    limiter.answered(0, 50.5)
    assert limiter.rate[0] == pytest.approx(3.0)


def test_no_decrease_soon_after_an_increase():
    limiter = Limiter(RULES, 1)
    for k in range(30):
        limiter.answered(0, 0.1 * k)
    limiter.answered(0, 50.0)
    limiter.answered(0, 50.5)  # an increase
    high = limiter.rate[0]
    limiter.answered(0, 90.5)  # 40 ms later, which is not more than two windows
    assert limiter.rate[0] == high
    limiter.answered(0, 90.6)
    assert limiter.rate[0] == pytest.approx(high * 0.2)


def test_nothing_happens_before_anything_was_measured():
    limiter = Limiter(RULES, 1)
    limiter.answered(0, 15.0)
    assert limiter.rate[0] == 10.0


def test_the_rate_has_a_floor():
    limiter = Limiter(LimiterRules(floor=3.0), 1)
    for time in (5.0, 50.0, 50.1, 50.2):
        limiter.answered(0, time)
    assert limiter.rate[0] == 3.0


def test_windows_without_responses_decay_the_receive_rate():
    """Ticking every window gives the same as closing them all at once."""
    lazy, eager = Limiter(RULES, 1), Limiter(RULES, 1)
    lazy.answered(0, 1.0)
    eager.answered(0, 1.0)
    for tick in range(1, 8):
        eager._roll(0, 20.0 * tick)
    lazy._roll(0, 140.0)
    assert lazy._received[0] == pytest.approx(eager._received[0])
    assert lazy._received[0] == pytest.approx(0.1 * 0.9**6)


def test_the_bucket():
    limiter = Limiter(LimiterRules(rate=10.0, tokens=2.0, capacity=3.0), 1)
    assert [limiter.take(0, 0.0) for _ in range(3)] == [True, True, False]
    assert limiter.wait_ms(0, 0.0) == pytest.approx(2.0)
    assert not limiter.take(0, 1.9)
    assert limiter.take(0, 2.0)
    assert limiter.wait_ms(0, 3.0) == pytest.approx(1.0)
    limiter.take(0, 1000.0)
    assert limiter.tokens[0] == 2.0  # it was full with three


def test_a_refusal_changes_nothing():
    """The original stores a refill at a grant only: time before it counts at the rate then."""
    limiter = Limiter(LimiterRules(rate=1.0, tokens=0.0), 1)
    assert not limiter.take(0, 10.0)  # half a token at one per 20 ms
    assert limiter.wait_ms(0, 10.0) == pytest.approx(10.0)
    assert limiter.tokens[0] == 0.0
    limiter.rate[0] = 4.0
    assert limiter.wait_ms(0, 10.0) == 0.0  # all 10 ms count at four per 20 ms: two tokens
    assert limiter.take(0, 10.0)
    assert limiter.tokens[0] == pytest.approx(1.0)
    limiter.rate[0] = 0.01
    assert limiter.take(0, 10.0)  # what was granted stays, whatever the rate
    assert limiter.wait_ms(0, 12.0) == pytest.approx((1.0 - 2.0 * 0.01 / 20.0) * 2000.0)


def test_a_copy_is_charged_to_the_count_as_it_stands():
    """Without a refill, and without a new start of the time that the next grant credits."""
    limiter = Limiter(LimiterRules(rate=10.0, tokens=1.5), 1)
    limiter.debit(0)
    assert limiter.tokens[0] == 0.5
    limiter.debit(0)  # nothing is owed
    assert limiter.tokens[0] == 0.0
    assert limiter.take(0, 4.0)  # 4 ms at ten per 20 ms: two tokens
    assert limiter.tokens[0] == pytest.approx(1.0)


def test_waiting_for_what_is_missing_is_enough():
    """However the time is rounded, there is a token after the wait."""
    for rate in (0.01, 0.3, 1 / 3, 7.77):
        for begin in (0.0, 0.1, 1234.567, 9e6 + 0.1):
            limiter = Limiter(LimiterRules(rate=rate, tokens=0.1), 1)
            limiter.take(0, begin * 1e-9)
            limiter._granted[0] = begin
            wait = limiter.wait_ms(0, begin)
            assert limiter.take(0, begin + wait)


def test_no_bucket_stops_for_good():
    """With R0 = 0 the curve begins at zero, and so would the rate."""
    limiter = Limiter(LimiterRules(saddle=0.0, rate=0.01), 1)
    for k in range(30):
        limiter.answered(0, 0.1 * k)
    limiter.answered(0, 20.0)  # 3 received per window: an increase
    assert limiter.rate[0] >= 0.005
    limiter._decreased[0] = 21.0
    limiter.answered(0, 21.0)
    assert limiter.rate[0] == 0.005


@pytest.mark.parametrize("wake", ["absim", "strict"])
def test_waking(wake):
    limiter = Limiter(LimiterRules(tokens=0.0, wake=wake), 1)
    limiter.wake(0, 0.0)
    assert limiter.take(0, 0.0) is (wake == "absim")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("window_ms", 0.0),
        ("decrease", 1.5),
        ("growth", math.nan),
        ("growth", 0.0),
        ("floor", 1e-9),
        ("capacity", 0.5),
        ("smoothing", -0.1),
        ("wake", "now"),
    ],
)
def test_bad_rules(field, value):
    with pytest.raises(InputError, match=field):
        LimiterRules(**{field: value})
