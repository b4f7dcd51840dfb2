"""Summaries, gains, rankings and pictures: against numbers worked by hand and the plan's own."""

from __future__ import annotations

import math

import numpy as np
import pytest

import placement
from placement import Problem
from placement.errors import InputError
from placement.overtime.replay import Deployments, Trace, replay
from placement.overtime.replay.replay_report import LeaderRanking, leader_rankings, ranking_text
from placement.overtime.replay.results import gains, summary
from tests.overtime.replay.cases import READS_MOVE, two_towns, world27


def test_the_summary_by_hand():
    """Scores of `test_two_towns_by_hand`: totals 1701 of optimized, 18 of the oracle, 117, 1701."""
    problem, trace, both = two_towns(READS_MOVE, decay=2.0)
    table = summary(replay(problem, trace, both, tiers=(1,))).set_index("strategy")
    assert table.loc["optimized", "overhead_mean"] == pytest.approx(100 * (1701 / 18 - 1))
    assert table.loc["static", "overhead_max"] == pytest.approx(100 * (117 / 18 - 1))
    assert table.loc["oracle", "mean_latency"] == pytest.approx(18 / 18)
    assert table.loc["average", "mean_latency"] == pytest.approx((808 + 50.5 + 50.5) / 18)
    assert math.isnan(table.loc["average", "moves"])
    assert table.loc["optimized", "moves"] == 1
    assert table.loc["preferred", "databases"] == 0
    assert math.isnan(table.loc["preferred", "overhead_mean"])
    moving = gains(replay(problem, trace, both, tiers=(1,))).iloc[0]
    assert moving["static"] == pytest.approx(100 * (1 - 117 / 1701))
    assert moving["static_average"] == pytest.approx(100 * (1 - 117 / 909))
    assert moving["dynamic"] == pytest.approx(100 * (1 - 18 / 117))
    assert moving["realised"] == pytest.approx(100 * (1 - 1701 / 117))


def test_idle_databases_are_left_out():
    problem, trace, both = two_towns(READS_MOVE, decay=2.0)
    idle = np.zeros_like(trace.counts)
    idle[:, 0] = 1  # the first interval is not replayed
    two = Trace(("busy", "idle"), trace.intervals, np.concatenate([trace.counts, idle]))
    names = problem.instance.sites
    held = Deployments.same(problem.instance, 2, names, names)
    result = replay(problem, two, held, tiers=(1,))
    alone = replay(problem, trace, both, tiers=(1,))
    mine, wanted = summary(result), summary(alone)
    assert mine.equals(wanted)
    assert gains(result)["database"].tolist() == ["busy"]
    over = result.overhead(1, "worst")
    assert (over[1] == 0).all()


def test_strategies_that_were_not_replayed_give_no_gain():
    problem, trace, both = two_towns(READS_MOVE, decay=2.0)
    result = replay(problem, trace, both, tiers=(1,), strategies=["static"])
    row = gains(result).iloc[0]
    assert row["dynamic"] == pytest.approx(100 * (1 - 18 / 117))
    assert row[["static", "static_average", "realised"]].isna().all()
    with pytest.raises(InputError, match=r"not replayed: got 'worst, tier 1'"):
        result.outcome(1, "worst")


@pytest.mark.parametrize("tier", [1, 2])
def test_the_ranking_is_the_plans(tier):
    """Figure 2 after the last interval is `Plan.leaders` of the problem with this decay."""
    problem, trace, held = world27(2)
    ranking = leader_rankings(problem, trace, held, "db0", tier=tier)
    assert [each.interval for each in ranking] == list(trace.intervals)
    instance = problem.instance
    seen = instance.replace(counts=trace.counts[0], intervals=())
    names = [instance.sites[i] for i in np.nonzero(held.replicas[0])[0]]
    votes = [instance.sites[i] for i in np.nonzero(held.voters[0])[0]]
    asked = Problem(
        seen, replicas=names, voters=votes if tier == 1 else len(votes), decay=problem.decay
    )
    last = ranking[-1]
    if tier == 1:
        plan = placement.solve(asked, "leader")
        assert last.leaders == tuple(row.leader for row in plan.leaders)
        assert last.overheads == pytest.approx([row.overhead for row in plan.leaders])
    else:
        scores = {
            name: placement.solve(asked.replace(leader=name), "tier2").score for name in names
        }
        assert last.leaders == tuple(sorted(names, key=lambda name: scores[name]))
        best = min(scores.values())
        assert last.overheads == pytest.approx(
            [100 * (scores[name] / best - 1) for name in last.leaders], abs=1e-9
        )
    result = replay(problem, trace, held, tiers=(tier,))
    used = result.outcome(tier, "optimized").leader[0]
    assert [instance.sites[i] for i in used] == [each.leaders[0] for each in ranking[:-1]]


def test_the_ranking_says_when_nothing_was_issued():
    counts = np.zeros((3, 2, 2))
    counts[1, 1, 0] = 5
    problem, trace, both = two_towns(counts, decay=2.0)
    with_demand = Trace(("db",), trace.intervals, trace.counts)
    ranking = leader_rankings(problem, with_demand, both, "db")
    assert [each.leaders for each in ranking] == [(), ("east", "west"), ("east", "west")]
    assert ranking[1].overheads == (0.0, pytest.approx(9900))
    forgetful = Problem(
        problem.instance.replace(counts=np.ones((3, 2, 2))), replicas=2, voters=2, decay=math.inf
    )
    assert [bool(r.leaders) for r in leader_rankings(forgetful, with_demand, both, "db")] == [
        False, True, False,
    ]  # fmt: skip
    assert ranking_text(ranking[:1]) == "1: nothing issued so far"
    with pytest.raises(InputError, match="no such tier"):
        leader_rankings(forgetful, with_demand, both, "db", tier=3)
    with pytest.raises(InputError, match="no such database"):
        leader_rankings(forgetful, with_demand, both, "nobody")


def test_words_of_the_ranking():
    names = tuple(f"s{i}" for i in range(23))
    line = ranking_text([LeaderRanking("t", names, tuple(float(i) for i in range(23)))], top=23)
    assert "opt s0, 2nd best s1 = 1.00 %, 3rd best s2 = 2.00 %, 4th best" in line
    assert all(f"{n}th best" in line for n in (11, 12, 13, 20))
    assert "21st best s20 = 20.00 %, 22nd best s21 = 21.00 %, 23rd best s22 = 22.00 %" in line


def test_pictures():
    pytest.importorskip("matplotlib")
    from placement.overtime.replay import plots as pictures

    problem, trace, held = world27(3)
    result = replay(problem, trace, held)
    figure = pictures.plot_overheads(result, "db1", title="costs $5 and $6")
    assert [axes.get_title() for axes in figure.axes] == ["tier 1", "tier 2"]
    lines = {line.get_label(): line for line in figure.axes[0].get_lines()}
    assert "closest-to-writes" not in lines, "db1 has no transactions"
    np.testing.assert_array_equal(
        lines["optimized"].get_ydata(), result.overhead(1, "optimized")[1]
    )
    with pytest.raises(InputError, match="not replayed"):
        pictures.plot_overheads(result, "nobody")
    bars = pictures.plot_reduction_histogram({"all": np.array([-3.0, 0.5, 7.0, 55.0])}).axes[0]
    assert sum(bar.get_height() for bar in bars.patches) == pytest.approx(100)
    assert bars.patches[0].get_height() == 50, "what loses counts as no gain"
    ratio = pictures.plot_ratio({"a": np.arange(3.0)}, ("x", "y", "z"), of="a / b", moves=[1])
    assert len(ratio.axes[0].get_lines()) == 3
    panels = {"a": {"tier 1": np.zeros(3)}, "b": {"tier 1": np.ones(3), "tier 2": np.ones(3)}}
    assert len(pictures.plot_reductions(panels, ("x", "y", "z")).axes) == 2
