"""Problems without a number of voters: every replica votes."""

from __future__ import annotations

from typing import Any

import pytest

import placement
from placement.errors import InputError
from tests.cli.command import runner

WORLD = placement.load("world27")
FIRST = WORLD.sites[:3]


@pytest.mark.parametrize(
    ("asked", "stated"),
    [
        ({"replicas": 5}, {"voters": 5}),
        ({"replicas": list(FIRST)}, {"voters": FIRST}),
        ({"replicas": 3, "witnesses": 1}, {"voters": 4}),
        ({"replicas": 3, "witnesses": [WORLD.sites[5]]}, {"voters": 4}),
        ({"replicas": FIRST, "witnesses": 1}, {"voters": 4}),
        ({"replicas": FIRST, "witnesses": [WORLD.sites[5]]}, {"voters": (*FIRST, WORLD.sites[5])}),
        ({"replicas": 4, "protocol": "mencius"}, {"voters": 4}),
    ],
)
def test_every_replica_votes_unless_voters_are_given(
    asked: dict[str, Any], stated: dict[str, Any]
) -> None:
    world = WORLD if "protocol" not in asked else placement.datasets.load("world27", mix="ycsb-a")
    problem = placement.Problem(world, **asked)
    assert problem.voters == stated["voters"]
    plan, same = (
        placement.solve(problem),
        placement.solve(placement.Problem(world, **asked, **stated)),
    )
    assert plan.status == "optimal"
    assert plan.configuration == same.configuration


@pytest.mark.parametrize("replicas", [range(3, 6), (3, 5)])
def test_a_range_of_replicas_needs_voters(replicas: object) -> None:
    with pytest.raises(InputError, match="voters: a range of replicas"):
        placement.Problem(WORLD, replicas=replicas)  # type: ignore[arg-type]


@pytest.mark.parametrize("replicas", [2.5, None, True])
def test_impossible_replicas_are_named_first(replicas: object) -> None:
    with pytest.raises(InputError, match="replicas: "):
        placement.Problem(WORLD, replicas=replicas)  # type: ignore[arg-type]


def test_the_command_line_needs_no_voters(capsys: pytest.CaptureFixture[str]) -> None:
    run = runner(capsys)
    asked = ("solve", "world27", "--replicas", "4", "--json")
    default, stated = run(*asked).document, run(*asked, "--voters", "4").document
    assert default["leader"] == stated["leader"]
    assert sorted(default["replicas"]) == sorted(default["voters"]) == sorted(stated["voters"])
    assert default["problem"]["voters"] == 4


def test_a_sweep_needs_numbers_of_voters(capsys: pytest.CaptureFixture[str]) -> None:
    answer = runner(capsys)("compare", "sizes", "world27", "--replicas", "3..5")
    assert answer.code == 1
    assert "--voters: no numbers of voters" in answer.err
