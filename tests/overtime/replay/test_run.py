"""Replays by hand, against the evaluator and brute force, and with decayed counts."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import placement
from placement import Configuration, Moves, Problem, UnsupportedError
from placement.errors import InputError
from placement.evaluation.score import score
from placement.model.constraints import Diversity
from placement.model.demand import aggregate, decay_weights
from placement.overtime.replay import (
    NOBODY,
    Decay,
    DecayedCounts,
    Trace,
    decayed_counts,
    interval_scores,
    replay,
    summary,
)
from tests.effort import examples
from tests.overtime.replay.cases import (
    READS_MOVE,
    WITHOUT_SHARES,
    cases,
    check_scores,
    paid,
    two_towns,
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


@settings(max_examples=examples(60))
@given(case=cases())
def test_nobody_beats_the_oracle_and_constants_lie_between_best_and_worst(case):
    problem, trace, deployments = case
    result = replay(problem, trace, deployments)
    for tier in (1, 2):
        oracle = result.outcome(tier, "oracle").score
        for name in WITHOUT_SHARES:
            mine = result.outcome(tier, name).score
            assert (np.isnan(mine) | (mine >= oracle * (1 - 1e-9))).all(), name
        least, most = result.total(tier, "static"), result.total(tier, "worst")
        assert (least <= most * (1 + 1e-9)).all()
        if not problem.instance.varying_rtt:
            constant = result.total(tier, "closest-to-writes")
            seen = ~np.isnan(constant)
            assert (constant[seen] >= least[seen] * (1 - 1e-9)).all()
            assert (constant[seen] <= most[seen] * (1 + 1e-9)).all()
    one, two = (result.outcome(tier, "oracle").score for tier in (1, 2))
    assert (two <= one * (1 + 1e-9)).all()


@settings(max_examples=examples(40))
@given(case=cases(), seed=st.integers(0, 2**32 - 1))
def test_nobody_knows_the_future(case, seed):
    """Another demand from interval k on changes no choice up to and with k."""
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
@given(case=cases(varying=False, decays=(1.0, 1.5, 2.0)))
def test_the_optimized_leader_is_what_the_methods_answer(case):
    """Against methods `leader` and `tier2`, one by one."""
    problem, trace, deployments = case
    instance = problem.instance
    result = replay(problem, trace, deployments)
    for tier in (1, 2):
        outcome = result.outcome(tier, "optimized")
        for database in range(2):
            for column in range(len(result.intervals)):
                if not trace.counts[database, : column + 1].any():
                    continue  # nothing was issued so far
                mine = int(outcome.leader[database, column])
                held = np.nonzero(deployments.replicas[database])[0]
                votes = np.nonzero(deployments.voters[database])[0]
                asked = Problem(
                    instance.replace(
                        counts=trace.counts[database, : column + 1],
                        intervals=instance.intervals[: column + 1],
                    ),
                    replicas=[instance.sites[s] for s in held],
                    voters=[instance.sites[s] for s in votes] if tier == 1 else len(votes),
                    quorum=problem.quorum,
                    decay=problem.decay,
                )
                plan = placement.solve(asked, "leader" if tier == 1 else "tier2")
                value = placement.evaluate(
                    asked,
                    leader=instance.sites[mine],
                    voters=[
                        instance.sites[s] for s in result.sets[outcome.voters[database, column]]
                    ],
                    replicas=[instance.sites[s] for s in held],
                )
                assert value.score == pytest.approx(plan.score, rel=1e-9, abs=1e-9)


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
    """Of all leaders the oracle has the least sum of scores, the worst constant the greatest."""
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
