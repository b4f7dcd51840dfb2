"""Replays: by hand, against the evaluator and brute force; ends, refusals, summaries."""

from __future__ import annotations

import json
import math
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import placement
from placement import Configuration, Contingency, Moves, Problem, UnsupportedError
from placement.errors import InputError
from placement.evaluation.breakdown import objective_values
from placement.evaluation.score import score
from placement.measures import read_measure
from placement.measures.question import percentile_question
from placement.measures.values import value
from placement.model.constraints import Diversity
from placement.model.demand import aggregate, decay_weights
from placement.overtime.decayed_counts import Decay, DecayedCounts, decayed_counts
from placement.overtime.replay import NOBODY, Deployments, Trace, interval_scores, replay, summary
from placement.overtime.replay.replay_report import LeaderRanking, leader_rankings, ranking_text
from placement.overtime.replay.results import gains
from placement.plan import objective_value
from placement.tail import Distributions
from placement.tail.objective import mixture
from placement.testing import every_configuration, random_instance
from tests.effort import examples
from tests.overtime.replay.cases import (
    READS_MOVE,
    WITHOUT_SHARES,
    cases,
    check_scores,
    paid,
    two_towns,
    world27,
)
from tests.strategies import instances

CAUSAL = ("optimized", "closest-to-writes", "smallest-quorum", "average", "preferred")


@settings(max_examples=examples(60))
@given(case=cases())
def test_every_score_is_the_evaluators_in_tiers_1_and_2(case):
    problem, trace, deployments = case
    result = replay(problem, trace, deployments)
    assert [(o.tier, o.strategy) for o in result.outcomes] == [
        (tier, name) for tier in (1, 2) for name in WITHOUT_SHARES
    ]
    check_scores(problem, trace, result)


@settings(max_examples=examples(15), deadline=None)
@given(case=cases(max_sites=4, varying=False))
def test_every_score_is_the_evaluators_in_tier_3(case):
    problem, trace, deployments = case
    result = replay(problem, trace, deployments, tiers=(1, 2, 3))
    check_scores(problem, trace, result)
    assert result.proven == 1.0
    free = result.outcome(3, "oracle").score
    assert (free <= result.outcome(2, "oracle").score * (1 + 1e-9)).all()
    constant = result.total(3, "static")
    assert (constant <= result.total(2, "static") * (1 + 1e-9)).all()


@settings(max_examples=examples(5), deadline=None)
@given(case=cases(max_sites=3, varying=True))
def test_tier_3_with_rtts_that_vary(case):
    problem, trace, deployments = case
    result = replay(problem, trace, deployments, tiers=(3,), method="exhaustive")
    check_scores(problem, trace, result)


@settings(max_examples=examples(40))
@given(case=cases(), seed=st.integers(0, 2**32 - 1))
def test_nobody_knows_the_future(case, seed):
    problem, trace, deployments = case
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, len(trace.intervals)))
    counts = trace.counts.copy()
    counts[:, k:] = rng.poisson(30.0, counts[:, k:].shape)
    before = replay(problem, trace, deployments, strategies=CAUSAL)
    after = replay(
        problem, Trace(trace.databases, trace.intervals, counts), deployments, strategies=CAUSAL
    )
    for tier in (1, 2):
        for name in CAUSAL:
            one, two = (r.outcome(tier, name) for r in (before, after))
            assert (one.leader[:, :k] == two.leader[:, :k]).all(), name
            for r, o in ((before, one), (after, two)):
                assert o.voters.shape == (2, len(r.intervals))
            mine = [[before.sets[c] if c >= 0 else None for c in row[:k]] for row in one.voters]
            yours = [[after.sets[c] if c >= 0 else None for c in row[:k]] for row in two.voters]
            assert mine == yours, name


@settings(max_examples=examples(40))
@given(case=cases(varying=False))
def test_static_and_worst_by_brute_force(case):
    problem, trace, deployments = case
    result = replay(problem, trace, deployments)
    for database in range(2):
        held = np.nonzero(deployments.replicas[database])[0]
        votes = np.nonzero(deployments.voters[database])[0]
        totals = [
            sum(
                paid(problem, trace.counts[database, i], i, leader, votes, held)
                for i in range(1, len(trace.intervals))
            )
            for leader in votes
        ]
        assert result.total(1, "static")[database] == pytest.approx(min(totals), rel=1e-9)
        assert result.total(1, "worst")[database] == pytest.approx(max(totals), rel=1e-9)


@settings(max_examples=examples(30))
@given(case=cases(), cap=st.integers(1, 2), level=st.sampled_from(["zone", "region", "provider"]))
def test_constraints_hold_in_tier_2(case, cap, level):
    problem, trace, deployments = case
    rules = (Diversity(level, cap=cap), Diversity("provider", min_domains=1))
    asked = problem.replace(diversity=rules)
    try:
        result = replay(asked, trace, deployments, tiers=(2,))
    except InputError:  # too few domains; that nobody may lead then is tested below
        return
    check_scores(asked, trace, result)
    labels = problem.instance.labels(level)
    for sites in {result.sets[c] for o in result.outcomes for c in o.voters.reshape(-1) if c >= 0}:
        held = [labels[site] for site in sites]
        assert max(held.count(label) for label in held) <= cap
    names = problem.instance.sites
    for database in range(2):
        for column in range(len(result.intervals)):
            counts = trace.counts[database, column + 1]
            if not counts.any():
                continue
            plan = placement.solve(
                Problem(
                    problem.instance.at_interval(column + 1, counts),
                    replicas=[names[s] for s in np.nonzero(deployments.replicas[database])[0]],
                    voters=int(deployments.voters[database].sum()),
                    quorum=problem.quorum,
                    diversity=rules,
                ),
                "tier2",
            )
            found = float(result.outcome(2, "oracle").score[database, column])
            assert found == pytest.approx(plan.score, rel=1e-9, abs=1e-9)


@settings(max_examples=examples(20))
@given(case=cases())
def test_scores_of_all_leaders(case):
    problem, trace, deployments = case
    result = replay(problem, trace, deployments)
    for tier in (1, 2):
        scores = interval_scores(problem, trace, deployments, tier=tier)
        np.testing.assert_array_equal(
            scores[:, 1:].min(axis=2), result.outcome(tier, "oracle").score
        )
        if tier == 1:
            able = np.isfinite(scores[:, 1:]).all(axis=1)
            totals = np.where(able, scores[:, 1:].sum(axis=1), -np.inf)
            np.testing.assert_allclose(totals.max(axis=1), result.total(1, "worst"), rtol=1e-9)
    with pytest.raises(InputError, match="no such tier"):
        interval_scores(problem, trace, deployments, tier=3)


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


def test_ctrl_c_keeps_what_is_done(monkeypatch):
    problem, trace, deployments = world27()

    def stop(at: int):
        def listen(progress):
            if progress.done == at:
                raise KeyboardInterrupt

        return listen

    whole = replay(problem, trace, deployments)
    some = replay(problem, trace, deployments, progress=stop(4))
    assert some.databases == trace.databases[:4]
    assert not some.complete
    assert whole.complete
    kept = some.outcome(2, "optimized").score
    np.testing.assert_array_equal(kept, whole.outcome(2, "optimized").score[:4])

    def at_once(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("placement.overtime.replay.run_replay.TabledReplay", at_once)
    with pytest.raises(KeyboardInterrupt):
        replay(problem, trace, deployments)


def test_ctrl_c_within_a_plan_ends_the_replay(monkeypatch):
    """Methods answer Ctrl-C with their best so far; the replay must not go on with that."""
    import placement.overtime.replay.deployments as module
    from placement.support.status import Termination

    problem, trace, deployments = world27(3)
    real, asked = module.run, []

    def interrupted(method, question, options):
        asked.append(1)
        plan = real(method, question, options)
        stop = len(asked) == 25  # one database takes a dozen plans
        return plan.replace(termination=Termination.INTERRUPTED) if stop else plan

    monkeypatch.setattr(module, "run", interrupted)
    result = replay(problem, trace, deployments, tiers=(3,))
    assert len(asked) == 25
    assert not result.complete
    assert 1 <= len(result.databases) < 3


def test_the_tidy_table():
    problem, trace, deployments = world27(3)
    table = replay(problem, trace, deployments, tiers=(1,)).to_frame()
    assert list(table.columns) == [
        "database", "interval", "tier", "strategy", "leader", "voters", "replicas",
        "operations", "score", "mean_latency", "overhead",
    ]  # fmt: skip
    assert len(table) == 3 * 5 * len(WITHOUT_SHARES)
    assert not table.duplicated(["database", "interval", "tier", "strategy"]).any()
    undefined = table[table["score"].isna()]
    assert set(undefined["strategy"]) == {"closest-to-writes", "preferred"}
    assert undefined["leader"].isna().all()
    assert undefined["voters"].isna().all()
    row = table[(table.strategy == "optimized") & (table.database == "db0")].iloc[0]
    assert row["interval"] == "b"
    assert row["leader"] in row["voters"].split("; ")
    assert row["mean_latency"] == pytest.approx(row["score"] / row["operations"])


def test_money_and_quorums_that_do_not_fit_are_refused():
    problem, trace, deployments = world27(2)
    sites = len(problem.instance.sites)
    prices = placement.Prices(np.ones(sites))
    rich = problem.replace(instance=problem.instance.replace(prices=prices), cost_weight=1.0)
    with pytest.raises(UnsupportedError, match="does not support budget and cost weight"):
        replay(rich, trace, deployments)
    with pytest.raises(InputError, match="fewer voters"):
        replay(problem.replace(quorum=3), trace, deployments)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tiers": ()}, "no such tiers"),
        ({"tiers": (1, 4)}, "no such tiers"),
        ({"tiers": (1, 1)}, "no such tiers"),
        ({"strategies": ["best"]}, "unknown strategy"),
        ({"trace": Trace(("a",), ("1",), np.ones((1, 1, 60, 5)))}, "only learnt from"),
        ({"trace": Trace(("a",), ("1", "2"), np.ones((1, 2, 60, 5)))}, "other databases"),
        ({"trace": Trace(("a",), ("1", "2"), np.ones((1, 2, 2, 5)))}, "other clients"),
        ({"tiers": (3,), "method": "nonsense"}, "unknown method"),
    ],
)
def test_what_does_not_fit_is_refused(change, message):
    problem, trace, deployments = world27(2)
    arguments = {"trace": trace, "deployments": deployments, **change}
    with pytest.raises(InputError, match=message):
        replay(problem, **arguments)


def test_methods_of_another_tier_are_refused():
    problem, trace, deployments = world27(2)
    with pytest.raises(UnsupportedError, match="cannot plan tier 3"):
        replay(problem, trace, deployments, tiers=(3,), method="leader")


def test_nobody_to_lead_is_named():
    problem, trace, deployments = world27(2)
    outside = [s for i, s in enumerate(problem.instance.sites) if not deployments.replicas[1, i]]
    with pytest.raises(InputError, match=r"no site may lead.*got 'db1'"):
        replay(problem.replace(leaders=outside), trace, deployments)
    crowded = problem.replace(diversity=[Diversity("continent", cap=1)], replicas=9, voters=9)
    with pytest.raises(InputError, match=r"database 'db0': problem: method 'exact' finds no"):
        replay(crowded, trace, deployments, tiers=(3,))


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
    from placement.overtime.replay import plots as pictures

    problem, trace, held = world27(3)
    result = replay(problem, trace, held)
    svg = "{http://www.w3.org/2000/svg}"
    shown = ElementTree.fromstring(pictures.plot_overheads(result, "db1", title="$5 & $6").svg)
    texts = ["".join(one.itertext()) for one in shown.iter(f"{svg}text")]
    assert [x for x in texts if x[:4] in ("$5 &", "tier")] == ["$5 & $6", "tier 1", "tier 2"]
    assert "closest-to-writes" not in texts, "db1 has no transactions"
    chart = next(one for one in shown.iter(f"{svg}svg") if one.get("class") == "chart")
    drawn = {one.findtext(f"{svg}title"): one.find(f"{svg}path") for one in chart.iter(f"{svg}g")}
    heights = re.findall(r"L[\d.]+ ([\d.]+)", drawn["average"].attrib["d"])[1::2]
    values = result.overhead(1, "average")[1][1:]  # the first height is that of the move there
    assert np.corrcoef(values, np.array(heights, dtype=float))[0, 1] < -0.999
    with pytest.raises(InputError, match="not replayed"):
        pictures.plot_overheads(result, "nobody")
    panels = {"a": {"tier 1": np.zeros(3)}, "b": {"tier 1": np.ones(3), "tier 2": np.ones(3)}}
    svg = pictures.plot_reductions(panels, ("x", "y", "z")).svg
    assert svg.count('class="chart"') == 2
    assert all(f">{name}</text>" in svg for name in "xyz")


GRID = {"variation": 0.3, "width": 5, "bins": 400}


def goal_of(kind, instance):
    """The objective of a kind on an instance, with RTTs that vary or not."""
    if kind == "worst":
        return Contingency()
    if not instance.varying_rtt:
        return percentile_question(float(kind), Distributions.parametric(instance, **GRID))
    each = [
        Distributions.parametric(instance.at_interval(k), **GRID)
        for k in range(len(instance.intervals))
    ]
    return percentile_question(float(kind), *each)


def alone(problem, counts, interval):
    """The problem of one interval, put together by hand."""
    instance = problem.instance.at_interval(interval, counts)
    goal = problem.objective
    goal = goal.of_intervals(interval)
    return problem.replace(instance=instance, objective=goal, decay=1.0)


def least(problem, configurations):
    return problem.objective.in_ms(problem, float(objective_values(problem, configurations).min()))


@pytest.mark.parametrize(
    ("kind", "varying"),
    [("95", True), ("worst", False), *(pytest.param(*one, marks=pytest.mark.slow) for one in (
        ("50", False), ("50", True), ("95", False), ("worst", True)))],
)  # fmt: skip
def test_the_oracle_and_the_optimized_pay_the_least_of_all_configurations(kind, varying):
    world = random_instance(8, sites=5, clients=3, intervals=4, varying=varying)
    goal = goal_of(kind, world)
    problem = Problem(world, replicas=4, voters=3, decay=2.0, objective=goal)
    sites = world.sites
    held = Deployments.same(world, 1, sites[:4], sites[:3])
    trace = Trace.of_instance(world)
    result = replay(problem, trace, held, tiers=(1, 2, 3))
    assert result.objective == goal.describe()
    assert result.proven == 1.0
    everything = {
        1: [Configuration.of(leader, (0, 1, 2), (0, 1, 2, 3)) for leader in (0, 1, 2)],
        2: list(every_configuration(problem.replace(replicas=list(sites[:4]), voters=3))),
        3: list(every_configuration(problem)),
    }
    if kind == "worst":  # tier 2 leaves out what breaks the objective; so does tier 1
        everything = {
            tier: [one for one in rows if math.isfinite(objective_value(problem, one))]
            for tier, rows in everything.items()
        }
    for tier, rows in everything.items():
        oracle = result.outcome(tier, "oracle")
        for column in range(3):
            asked = alone(problem, trace.counts[0, column + 1], column + 1)
            per_operation = oracle.score[0, column] / asked.demand.operations
            assert per_operation == pytest.approx(least(asked, rows)), (tier, column)
        for strategy in ("optimized", "static", "smallest-quorum", "closest-to-writes"):
            chosen = result.outcome(tier, strategy)
            for column in range(3):
                asked = alone(problem, trace.counts[0, column + 1], column + 1)
                one = Configuration.of(
                    int(chosen.leader[0, column]),
                    result.sets[chosen.voters[0, column]],
                    result.sets[chosen.replicas[0, column]],
                )
                value = asked.objective.in_ms(asked, objective_value(asked, one))
                assert chosen.score[0, column] == pytest.approx(value * asked.demand.operations)
                if strategy == "optimized":
                    seen = world.replace(
                        counts=world.counts[: column + 1],
                        intervals=world.intervals[: column + 1],
                        **({
                            "client_rtt": world.client_rtt[: column + 1],
                            "site_rtt": world.site_rtt[: column + 1],
                        } if varying else {}),
                    )  # fmt: skip
                    past = problem.replace(
                        instance=seen, objective=goal.of_intervals(slice(column + 1))
                    )
                    value = past.objective.in_ms(past, objective_value(past, one))
                    assert value == pytest.approx(least(past, rows))
        worst = result.total(tier, "worst") if tier < 3 else math.inf
        assert (result.total(tier, "static") <= worst + 1e-6).all() or kind != "worst"
    frame = summary(result)
    assert "value" in frame
    assert "mean_latency" not in frame


def test_leaders_that_are_spread_share_one_percentile():
    """The percentile of a mixture is not the mean of the percentiles."""
    world = random_instance(8, sites=4, clients=3, intervals=2)
    goal = goal_of("90", world)
    problem = Problem(world, replicas=3, voters=3, objective=goal)
    held = Deployments.same(world, 1, world.sites[:3], world.sites[:3])
    trace = Trace.of_instance(world)
    result = replay(problem, trace, held, tiers=(1,), strategies=("average",))
    asked = alone(problem, trace.counts[0, 1], 1)
    each = [Configuration.of(leader, (0, 1, 2), (0, 1, 2)) for leader in (0, 1, 2)]
    (spread,) = goal.distributions
    latency = np.mean([mixture(asked, one, spread) for one in each], axis=0)
    wanted = 5 * int(np.searchsorted(np.cumsum(latency), 0.9 - 1e-12))
    average = result.outcome(1, "average")
    assert average.score[0, 0] == pytest.approx(wanted * asked.demand.operations)
    assert average.leader[0, 0] == NOBODY
    singles = [objective_value(asked, one) for one in each]
    assert min(singles) <= wanted <= max(singles)


def test_the_mixture_of_worst_cases_counts_each_loss_once():
    """A loss hits all groups at once: the mixture is at most the mean of the worst cases."""
    world = random_instance(3, sites=4, clients=4)
    goal = Contingency()
    problem = Problem(world, replicas=4, voters=3, objective=goal)
    each = [one for one in every_configuration(problem) if one.voters == (0, 1, 2)][:3]
    shares = [0.5, 0.3, 0.2]
    names = [f"mean after the loss of {site}" for site in world.sites]
    after = [[value(problem, read_measure(text), one) for text in names] for one in each]
    losses = (np.array(shares) @ np.array(after)).tolist()
    normal = placement.evaluation.objective.MEAN_LATENCY.mixed(problem, each, shares)
    normal /= problem.demand.operations
    mixed = goal.mixed(problem, each, shares)
    assert mixed == pytest.approx(max(normal, *losses))
    assert mixed <= sum(
        p * goal.value(problem, one) for p, one in zip(shares, each, strict=True)
    ) * (1 + 1e-12)


def test_the_command_replays_a_percentile(command, tmp_path):
    asked = (
        "lab", "replay", "world27", "--replicas", "3", "--voters", "3", "--fleet", "1", "--minutes",
        "360", "--percentile", "99", "--spread", "0.2", "--bin-width", "20",
    )  # fmt: skip
    outcome = command(*asked, "--tiers", "1,3", "-o", tmp_path / "rows.csv", code=0)
    assert "value ms" in outcome.out
    assert "All tiers were planned by exact; 100.0 % of the oracle's plans" in outcome.out
    assert "minimise p99" in outcome.out
    assert "value" in (tmp_path / "rows.csv").read_text().splitlines()[0].split(",")
    document = command(*asked, "--tiers", "1", "--json").document
    assert document["objective"] == "minimise p99"
    assert all("value" in row for row in document["strategies"])
