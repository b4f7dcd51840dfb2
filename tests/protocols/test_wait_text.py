"""Waits in words: what is read, what is printed, what is refused."""

from __future__ import annotations

import itertools

import pytest

from placement import InputError, Operation, Wait
from placement.model.waits import Clause


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("leader: quorum of voters", "leader: quorum of voters"),
        (" leader :  2 of voters+1 of voters outside  region ",
         "leader: 2 of voters + 1 of voters outside region"),
        ("0.05*near: majority of voters", "0.05 × near: majority of voters"),
        ("2 x client: majority of voters", "2 × client: majority of voters"),
        ("1 × near: 1 of replicas inside failure zone", "near: 1 of replicas inside failure zone"),
        ("1e-3 × near: 1 of replicas", "0.001 × near: 1 of replicas"),
    ],
)  # fmt: skip
def test_the_text_is_canonical_and_reads_back(given: str, text: str) -> None:
    wait = Wait(given)
    assert str(wait) == text
    assert Wait(text) == wait
    assert repr(wait) == f"Wait({text!r})"


def test_every_wait_that_can_be_built_reads_back() -> None:
    needs = [1, 7, "majority", "quorum", "all"]
    scopes = [("", ""), ("inside", "region"), ("outside", "failure zone")]
    clauses = []
    for need, role, (scope, level) in itertools.product(needs, ("voters", "replicas"), scopes):
        if need != "quorum" or (role == "voters" and not scope):
            clauses.append(Clause(need, role, scope, level))  # type: ignore[arg-type]
    for times, (one, two) in itertools.product((1, 0.1 + 0.2, 1 / 3, 5e-324),
                                               itertools.pairwise(clauses)):  # fmt: skip
        wait = Wait("near", (one, two), times)
        assert Wait(str(wait)) == wait


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ("quorum of voters", "wait"),
        ("somebody: 1 of voters", "origin"),
        ("leader: many of voters", "need"),
        ("leader: 0 of voters", "need"),
        ("leader: 1 of witnesses", "role"),
        ("leader: 1 voters", "wait"),
        ("leader: 1 of voters inside", "role"),
        ("leader: quorum of replicas", "need"),
        ("leader: quorum of voters inside region", "need"),
        ("client: 1 of voters inside region", "origin"),
        ("some × leader: 1 of voters", "times"),
        ("-1 × leader: 1 of voters", "times"),
        ("leader: ", "wait"),
    ],
)
def test_what_is_no_wait_is_refused_with_its_field(given: str, field: str) -> None:
    with pytest.raises(InputError) as caught:
        Wait(given)
    assert caught.value.field == field


def test_an_operation_reads_its_waits_and_keeps_its_old_form() -> None:
    plain = Operation("put", direct=1, quorum=1)
    assert repr(plain) == (
        "Operation(name='put', near=0.0, relay=0.0, direct=1.0, quorum=1.0, kind='write')"
    )
    one = Operation("put", direct=1, waits="leader: 2 of voters", constant=3)
    assert one.waits == (Wait("leader: 2 of voters"),)
    assert one.kind == "write"
    assert eval(repr(one)) == one
    for wrong in ({"constant": -1}, {"waits": [3]}, {"waits": 3}, {"constant": float("nan")}):
        with pytest.raises(InputError):
            Operation("put", **wrong)  # type: ignore[arg-type]
