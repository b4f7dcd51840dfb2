"""The checks of arguments: what each accepts, and the message of each refusal."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from placement.errors import InputError, shown
from placement.support import checks

WRONG_NUMBERS = [
    None, "x", "3", b"3", True, np.True_, [], {}, object(), 1j, np.array([1.0, 2.0]),
    float("nan"), float("inf"), 10**400, 10**5000, -1,
]  # fmt: skip


@pytest.mark.parametrize("value", WRONG_NUMBERS, ids=lambda value: shown(value)[:20])
def test_number_and_whole_refuse_with_field_and_value(value: object) -> None:
    for check in (checks.number, checks.whole):
        with pytest.raises(InputError) as caught:
            check(value, "limit")
        assert caught.value.field == "limit"
        assert caught.value.value is value
        assert "limit: " in str(caught.value)
        assert "expected a" in str(caught.value)


def test_number_accepts_every_kind_of_number() -> None:
    for value in (2, 2.0, np.int64(2), np.float32(2), Fraction(4, 2)):
        result = checks.number(value, "x")
        assert (result, type(result)) == (2.0, float)


def test_number_keeps_its_range() -> None:
    assert checks.number(-3, "x", minimum=-np.inf) == -3
    assert checks.number(1, "x", maximum=1) == 1
    with pytest.raises(InputError, match="expected a finite number > 0 and <= 1"):
        checks.number(0, "x", above=True, maximum=1)
    with pytest.raises(InputError, match=r"expected a finite number$"):
        checks.number(np.nan, "x", minimum=-np.inf)


def test_whole_accepts_integers_and_floats_without_a_fraction() -> None:
    for value in (3, 3.0, np.int16(3), np.float64(3)):
        result = checks.whole(value, "n")
        assert (result, type(result)) == (3, int)
    with pytest.raises(InputError, match=r"not a whole number: got 1.5, expected .* >= 1"):
        checks.whole(1.5, "n", minimum=1)
    with pytest.raises(
        InputError, match=r"out of range: got 1.*0, expected .* <= 9223372036854775807"
    ):
        checks.whole(10**30, "n")
    with pytest.raises(InputError, match="expected a whole number <= 2"):
        checks.whole(3, "n", minimum=None, maximum=2)
    assert checks.whole(-5, "n", minimum=None) == -5


@pytest.mark.parametrize("value", [None, 3, "abc", b"abc", {"a": 1}, object(), np.array(3)])
def test_elements_refuses_what_is_no_list(value: object) -> None:
    for check in (checks.elements, checks.unique_names):
        with pytest.raises(InputError, match="a list"):
            check(value, "sites")


def test_elements_reads_any_iterable_once() -> None:
    assert checks.elements((n for n in "ab"), "x") == ("a", "b")
    assert checks.unique_names(np.array(["a", "b"]), "x") == ("a", "b")


def call_text(value: object) -> object:
    return checks.text(value, "name", choices=["a"])


def call_mapping(value: object) -> object:
    return checks.mapping(value, "name")


def call_instances(value: object) -> object:
    return checks.instances_of(value, int, "name", "an integer")


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (call_text, "a", [None, 1, "", "b", b"a", []]),
        (call_mapping, {"a": 1}, [None, 1, "a", [("a", 1)], {1: 2}]),
        (call_instances, [1, 2], [None, 1, "a", ["a"], {1: 2}]),
        (lambda value: checks.flag(value, "name"), True, [None, 1, "true", []]),
        (lambda value: checks.function(value, "name"), len, [None, 1, "len"]),
    ],
)
def test_other_checks(check: Callable[[object], object], good: object, bad: list[object]) -> None:
    check(good)
    for value in bad:
        with pytest.raises(InputError) as caught:
            check(value)
        assert caught.value.field == "name"


AXES = [("client", ["a"]), ("site", ["b", "c"])]


@pytest.mark.parametrize(
    "value",
    [
        None, "x", 3, [], {}, object(), [[1, "x"]], [["1", "2"]], [[1, 10**400]], [[1, 10**5000]],
        [[1j, 2]], np.array([[1j, 2]]), [[1, None]], [[1, np.nan]], [[1, -1]], [[1, 9.0]],
        [[1, 2, 3]], np.zeros((1, 2, 1)), np.array([["2020-01-01"] * 2], dtype="datetime64[D]"),
        (x for x in "ab"),
    ],
    ids=lambda value: shown(value)[:20],
)  # fmt: skip
def test_nonnegative_refuses_with_the_field(value: object) -> None:
    with pytest.raises(InputError) as caught:
        checks.nonnegative(value, "client_rtt", AXES, maximum=8.0)
    assert caught.value.field == "client_rtt"


def test_nonnegative_names_the_element_above_the_maximum() -> None:
    with pytest.raises(InputError, match=r"out of range at client 'a', site 'c'.*>= 0 and <= 8"):
        checks.nonnegative([[1, 9]], "client_rtt", AXES, maximum=8.0)


def test_message_shows_none_and_at_most_200_characters() -> None:
    assert "got None" in str(InputError("missing", field="x", value=None))
    assert "got" not in str(InputError("missing", field="x"))
    message = str(InputError("wrong", value=["element"] * 1000, expected="less"))
    assert len(message) < 250
    assert "…, expected less" in message
    nested: list[object] = []
    for _ in range(100_000):
        nested = [nested]
    for value in (10**5000, nested):
        assert "too large to print" in str(InputError("wrong", value=value))
    assert shown(np.zeros((2, 2))) == "array([[0., 0.], [0., 0.]])"


def test_error_keeps_its_value_through_pickle_and_place() -> None:
    absent = pickle.loads(pickle.dumps(InputError("missing", field="x"))).at("file")
    assert str(absent) == "file: x: missing"
    given = pickle.loads(pickle.dumps(InputError("missing", field="x", value=None))).at("file")
    assert str(given) == "file: x: missing: got None"
