"""Replays against the evaluator, the methods, brute force, and what nobody could have known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import placement
from placement import Problem
from placement.errors import InputError
from placement.model.constraints import Diversity
from placement.overtime.replay import Trace, interval_scores, replay
from tests.effort import examples
from tests.overtime.replay.cases import WITHOUT_SHARES, cases, check_scores, paid

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
