"""Replays small enough to work out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from placement import Configuration, Moves, UnsupportedError
from placement.overtime.replay import NOBODY, replay, summary
from tests.overtime.replay.cases import READS_MOVE, two_towns


def test_two_towns_by_hand():
    """With τ = 2 after interval 2 east has 16 against 6 of the west, and keeps the lead."""
    problem, trace, both = two_towns(READS_MOVE, decay=2.0)
    result = replay(problem, trace, both, tiers=(1,))
    west, east = 0, 1

    def seen(name: str) -> tuple[list[int], list[float]]:
        outcome = result.outcome(1, name)
        return outcome.leader[0].tolist(), outcome.score[0].tolist()

    assert seen("optimized") == ([west, east, east, east], [1600.0, 1.0, 0.0, 100.0])
    assert seen("oracle")[1] == [16.0, 1.0, 0.0, 1.0]
    assert seen("closest-to-writes") == ([west] * 4, [1600.0, 100.0, 0.0, 1.0])
    assert seen("static") == ([east] * 4, [16.0, 1.0, 0.0, 100.0])
    assert seen("worst") == ([west] * 4, [1600.0, 100.0, 0.0, 1.0])
    assert seen("average") == ([NOBODY] * 4, [808.0, 50.5, 0.0, 50.5])
    assert result.outcome(1, "preferred").leader.tolist() == [[NOBODY] * 4]
    over = result.overhead(1, "optimized")[0].tolist()
    assert over == pytest.approx([100 * (1600 / 16 - 1), 0.0, 0.0, 9900.0])
    assert result.moves(1, "optimized").tolist() == [1.0]
    assert math.isnan(result.moves(1, "preferred")[0])
    wish = both.preferring(problem.instance, ["west"])
    kept = replay(problem, trace, wish, tiers=(1,), strategies=["preferred"])
    assert kept.outcome(1, "preferred").leader.tolist() == [[west] * 4]


def test_copies_are_counted():
    """Two sites, one replica: it is copied every time the leader moves."""
    problem, trace, both = two_towns(READS_MOVE, decay=2.0)
    alone = problem.replace(replicas=1, voters=1)
    result = replay(alone, trace, both, tiers=(1, 3))
    assert result.outcome(3, "optimized").leader.tolist() == [[0, 1, 1, 1]]
    assert result.copies(3, "optimized").tolist() == result.moves(3, "optimized").tolist() == [1]
    assert result.copies(3, "static").tolist() == [0]
    assert result.copies(1, "optimized").tolist() == [0]
    assert math.isnan(result.copies(3, "preferred")[0])
    assert summary(result).set_index(["tier", "strategy"]).loc[(3, "optimized"), "copies"] == 1


def test_a_quiet_start_leaves_the_leader_where_it_is():
    counts = np.zeros((3, 2, 2))
    counts[2, 1, 0] = 5
    problem, trace, both = two_towns(counts, decay=2.0)
    result = replay(problem, trace, both, tiers=(1, 2, 3))
    for tier in (1, 2, 3):
        assert result.outcome(tier, "optimized").leader.tolist() == [[0, 0]]
        assert result.outcome(tier, "oracle").score.tolist() == [[0.0, 5.0]]
    eastern = both.preferring(problem.instance, ["east"])
    result = replay(problem, trace, eastern, tiers=(1, 2, 3))
    for tier in (1, 2, 3):
        assert result.outcome(tier, "optimized").leader.tolist() == [[1, 1]]


def test_forgetting_everything_keeps_the_leader_through_silence():
    """With τ = ∞ the silent interval says nothing: the leader stays, it does not jump back."""
    counts = np.zeros((4, 2, 2))
    counts[0, 1, 0] = counts[3, 1, 0] = 5
    problem, trace, both = two_towns(counts, decay=math.inf)
    for tiers in ((1,), (2,), (3,)):
        result = replay(problem, trace, both, tiers=tiers)
        assert result.outcome(tiers[0], "optimized").leader.tolist() == [[1, 1, 1]]


def test_a_preferred_leader_that_may_not_lead_is_no_preference():
    problem, trace, both = two_towns(READS_MOVE, decay=2.0)
    wish = both.preferring(problem.instance, ["west"])
    result = replay(problem.replace(leaders=["east"]), trace, wish, tiers=(1, 2, 3))
    for tier in (1, 2, 3):
        assert np.isnan(result.outcome(tier, "preferred").score).all()
        assert (result.outcome(tier, "optimized").leader == 1).all()


def test_moves_are_weighed_from_interval_to_interval():
    """A copy that costs more than it saves in the interval seen last is not made."""
    problem, trace, both = two_towns(READS_MOVE, decay=math.inf)
    here = Configuration.of(0, [0], [0])
    alone = problem.replace(replicas=1, voters=1, current=here)

    def leaders(price: float) -> list[int]:
        asked = alone.replace(moves=Moves(add=price))
        result = replay(asked, trace, both, tiers=(3,))
        assert result.outcome(3, "oracle").score[0].tolist() == [16.0, 1.0, 0.0, 1.0]
        return result.outcome(3, "optimized").leader[0].tolist()

    free = replay(problem.replace(replicas=1, voters=1), trace, both, tiers=(3,))
    assert leaders(0.0) == free.outcome(3, "optimized").leader[0].tolist()
    assert len(set(leaders(98.0))) == 2  # 99 ms are saved where all reads come from one town
    assert len(set(leaders(100.0))) == 1
    with pytest.raises(UnsupportedError, match="tier 3"):
        replay(alone.replace(moves=Moves()), trace, both, tiers=(1, 3))
