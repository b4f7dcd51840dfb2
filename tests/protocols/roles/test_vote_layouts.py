"""Votes of different weight: a layout waits as long as the best placement of its votes."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import placement
from placement import InputError, Problem, UnsupportedError
from placement.evaluation.waits.wait_checks import refuse_waits
from placement.evaluation.waits.wait_notes import wait_notes
from placement.io import load_plan, save_plan
from placement.support.status import Status
from tests.protocols.worlds import world


def shortest(rtt: list[float], layout: tuple[int, ...], votes: int) -> float:
    """Return the least time by which the votes arrive, over every placement of a layout."""
    waits = []
    for placed in set(itertools.permutations(layout)):
        arrived = 0
        for time, more in sorted(zip(rtt, placed, strict=True)):
            arrived += more
            if arrived >= votes:
                waits.append(time)
                break
    return min(waits)


@given(data=st.data())
def test_no_placement_of_the_votes_waits_less_than_the_count_says(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 5))
    layout = tuple(sorted(data.draw(st.lists(st.integers(1, 4), min_size=size, max_size=size)),
                          reverse=True))  # fmt: skip
    votes = data.draw(st.none() | st.integers(1, sum(layout)))
    problem = Problem(world(1), replicas=size, voters=size, quorum=votes, vote_layout=layout)
    needed = sum(layout) // 2 + 1 if votes is None else votes
    rtt = [0.0, *data.draw(st.lists(st.integers(0, 5), min_size=size - 1, max_size=size - 1))]
    assert sorted(rtt)[problem.rules.quorum - 1] == shortest(rtt, layout, needed)


def test_one_vote_each_is_no_layout() -> None:
    plain = placement.solve(Problem(world(3), replicas=5, voters=4, protocol="leases"))
    even = placement.solve(
        Problem(world(3), replicas=5, voters=4, protocol="leases", vote_layout=(1, 1, 1, 1))
    )
    assert plain.configuration == even.configuration
    assert plain.score == even.score


def test_two_regions_and_a_tie_breaker_wait_for_two_sites() -> None:
    """The layout 2-2-1 of CockroachDB's survival of a region: 3 of 5 votes are 2 of 3 sites."""
    rtt = np.array([[0.0, 66.0, 64.0], [66.0, 0.0, 146.0], [64.0, 146.0, 0.0]])
    instance = placement.Instance(
        sites=("us-east1", "us-west1", "europe-west1"), clients=("a",),
        client_rtt=np.zeros((1, 3)), site_rtt=rtt, counts=np.ones((1, 1)),
        operations=(placement.Operation("write", direct=1, quorum=1),),
    )  # fmt: skip
    for leader, wait in (("us-east1", 64.0), ("us-west1", 66.0), ("europe-west1", 64.0)):
        asked = Problem(instance, replicas=3, voters=3, vote_layout=[2, 2, 1], leader=leader)
        plan = placement.solve(asked)
        assert plan.status is Status.OPTIMAL
        assert plan.mean_latency == wait
        assert "3 votes" not in str(plan)
        assert "for 4 of 5 votes (2 + 2 + 1" in str(plan)
    assert wait_notes(asked) == ()
    assert any("need not share" in note for note in wait_notes(asked.replace(quorum=2)))
    assert "votes 2 + 2 + 1, quorum 4 votes" in repr(asked.replace(quorum=4))


@pytest.mark.parametrize("method", ["exact", "milp", "cp-sat", "exhaustive", "sets"])
def test_methods_agree_on_layouts_and_the_certificate_holds(method: str, tmp_path: Path) -> None:
    problem = Problem(
        world(6), replicas=5, voters=4, quorum=5, vote_layout=(3, 2, 1, 1), protocol="leases"
    )
    best = placement.solve(problem, method="exhaustive")
    plan = placement.solve(problem, method=method)
    assert problem.rules.quorum == 2
    assert plan.score == pytest.approx(best.score, rel=1e-9)
    save_plan(plan, tmp_path / "plan.json")
    again = load_plan(tmp_path / "plan.json", problem.instance)
    assert again.problem.vote_layout == (3, 2, 1, 1)
    assert again.score == plan.score
    if method == "exact":
        assert placement.check_certificate(again).bound == pytest.approx(plan.score, rel=1e-9)


@pytest.mark.parametrize(
    ("field", "asked"),
    [
        ("vote_layout", {"vote_layout": (2, 1)}),
        ("vote_layout", {"vote_layout": (1, 2, 1)}),
        ("vote_layout", {"vote_layout": (2, 1, 0)}),
        ("vote_layout", {"vote_layout": (2, 1, "1")}),
        ("vote_layout", {"vote_layout": 5}),
        ("quorum", {"vote_layout": (2, 2, 1), "quorum": 6}),
        ("survive", {"vote_layout": (2, 2, 1), "survive": "region"}),
        ("protocol", {"vote_layout": (2, 2, 1), "protocol": "flexible:quorum=2"}),
        ("vote_layout", {"vote_layout": (2, 2, 1), "protocol": "semi-sync:level=region"}),
        ("vote_layout", {"vote_layout": (2, 2, 1), "protocol": "epaxos:multi=2"}),
        ("vote_layout", {"vote_layout": (2, 2, 1), "protocol": "mongodb:linearizable=0.5"}),
        ("current", {"vote_layout": (2, 2, 1),
                     "current": {"leader": "s0", "voters": ["s0"], "replicas": ["s0"]}}),
    ],
)  # fmt: skip
def test_what_a_layout_cannot_be_asked_with_is_refused(
    field: str, asked: dict[str, object]
) -> None:
    with pytest.raises(InputError) as caught:
        Problem(world(2), replicas=3, voters=3, **asked)  # type: ignore[arg-type]
    assert caught.value.field == field


def test_questions_that_count_voters_refuse_a_layout() -> None:
    problem = Problem(world(2), replicas=3, voters=3, vote_layout=(2, 2, 1))
    with pytest.raises(UnsupportedError, match=r"vote_layout: a replay"):
        refuse_waits(problem, "a replay")


@pytest.mark.parametrize("several", [{"vote_layout": (2, 2, 1)}, {"votes": {"s1": 2}}])
@pytest.mark.parametrize(
    "protocol", ["flexible:quorum=2", {"write": "flexible:quorum=2", "strong_read": "raft"}]
)
def test_a_quorum_of_voters_and_several_votes_of_a_voter_are_refused(
    several: dict[str, object], protocol: str | dict[str, str]
) -> None:
    """Before, the quorum of a protocol for one kind of operation was overlooked."""
    with pytest.raises(InputError, match="the quorum of the protocol counts voters"):
        Problem(world(6), replicas=3, voters=3, protocol=protocol, **several)  # type: ignore[arg-type]  # one table of cases
