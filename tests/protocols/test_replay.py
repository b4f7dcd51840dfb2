"""Replays of operations with waits: against the evaluator on every set, and refusals."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import placement
from placement import Configuration, Instance, Problem
from placement.errors import InputError, UnsupportedError
from placement.evaluation.objective import score_of
from placement.overtime.replay import STRATEGIES, Deployments, Trace, replay
from placement.overtime.replay.deployments import NOBODY, interval_problem
from tests.effort import seeds
from tests.protocols.worlds import world

INTERVALS = 4


def traced(seed: int, one: Instance) -> Trace:
    """Return a trace of one database whose demand wanders; nothing is issued in some interval."""
    rng = np.random.default_rng([seed, 7])
    shape = (1, INTERVALS, len(one.clients), len(one.operations))
    counts = rng.integers(0, 5, shape) * (rng.random(shape) < 0.5).astype(float)
    counts[0, :, 0, 0] += 1
    if seed % 2:
        counts[0, 2] = 0
    return Trace(("db",), tuple(f"t{k}" for k in range(INTERVALS)), counts)


@pytest.mark.parametrize("protocol", ["epaxos:multi=2,slow=0.2", "abd:multi=2", "hermes:multi=2"])
@pytest.mark.parametrize("seed", seeds(2, 20))
def test_without_a_leader_tier_3_moves_sites_alone(protocol: str, seed: int) -> None:
    one = world(seed, sites=6)
    problem = Problem(one, replicas=3, voters=3, protocol=protocol)
    trace = traced(seed, one)
    names = one.sites[:3]
    held = Deployments.same(one, 1, names, names)
    found = replay(
        problem, trace, held, tiers=(3,), strategies=("optimized", "static"), method="exact"
    )
    sets = list(itertools.combinations(range(6), 3))

    def scores(interval: int) -> np.ndarray:
        counts = trace.counts[0, interval]
        if not counts.any():
            return np.zeros(len(sets))
        asked = interval_problem(problem, counts, 0)
        return np.array([score_of(asked, Configuration.of(s[0], s, s)) for s in sets])

    each = np.array([scores(interval) for interval in range(1, INTERVALS)])
    paid = {outcome.strategy: outcome for outcome in found.outcomes}
    assert paid["oracle"].score[0] == pytest.approx(each.min(axis=1))
    assert paid["static"].score[0].sum() == pytest.approx(each.sum(axis=0).min())
    assert (paid["optimized"].score[0] >= paid["oracle"].score[0] * (1 - 1e-12)).all()
    assert all((outcome.leader == NOBODY).all() for outcome in found.outcomes)


@pytest.mark.parametrize("seed", seeds(2, 10))
def test_raft_written_as_a_wait_is_replayed_as_votes_are(seed: int) -> None:
    plain = world(seed, sites=6, ties=False)
    wait = "leader: quorum of voters + 1 of voters"
    waits = placement.with_waits(plain, {"single_group": [wait], "multi_group": [f"2 × {wait}"]})
    trace = traced(seed, plain)
    held = Deployments.same(plain, 1, plain.sites[:4], plain.sites[1:4])
    strategies = ("optimized", "average", "static", "worst")
    told = []
    for one in (plain, waits):
        problem = Problem(one, replicas=4, voters=3)
        assert problem.demand.has_waits == (one is waits)
        found = replay(problem, trace, held, tiers=(1, 2, 3), strategies=strategies)
        told.append({(o.tier, o.strategy): o for o in found.outcomes})
    assert told[0].keys() == told[1].keys()
    for key, outcome in told[0].items():
        assert told[1][key].score == pytest.approx(outcome.score, nan_ok=True), key


def test_strategies_that_move_a_leader_are_refused_where_there_is_none() -> None:
    one = world(1, sites=6)
    trace, names = traced(2, one), one.sites[:3]
    held = Deployments.same(one, 1, names, names)
    problem = Problem(one, replicas=3, voters=3, protocol="epaxos:multi=2")
    with pytest.raises(InputError) as caught:
        replay(problem, trace, held, tiers=(1,), strategies=("static",))
    assert caught.value.field == "tiers"
    for name in STRATEGIES:
        if name in ("optimized", "static", "oracle"):
            continue
        with pytest.raises(InputError) as caught:
            replay(problem, trace, held, tiers=(3,), strategies=("optimized", name))
        assert caught.value.field == "strategies"
        assert caught.value.value == name
        assert caught.value.expected == "some of optimized, static, oracle"
    led = problem.replace(protocol="leases")
    with pytest.raises(InputError, match="four coefficients") as caught:
        replay(led, trace, held, tiers=(3,), strategies=("smallest-quorum", "average"))
    assert caught.value.field == "strategies"


def test_roles_that_a_deployment_does_not_hold_are_refused() -> None:
    one = world(1, sites=6)
    trace, names = traced(2, one), one.sites[:3]
    held = Deployments.same(one, 1, names, names)
    for more, said in (
        ({"witnesses": 1}, "witnesses: a replay .* expected 0"),
        ({"vote_layout": (2, 2, 1)}, "vote_layout: a replay .* expected none"),
        ({"protocol": "leases:holders=2"}, "protocol: a replay .* holders=replicas"),
    ):
        problem = Problem(one, replicas=3, voters=3, **more)
        with pytest.raises(UnsupportedError, match=said):
            replay(problem, trace, held, tiers=(3,), strategies=("static",))
        with pytest.raises(UnsupportedError, match=said):
            Deployments.solved(problem, trace)
