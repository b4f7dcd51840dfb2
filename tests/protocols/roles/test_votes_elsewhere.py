"""Votes given per site outside `solve`: who refuses them, and where they are kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest

import placement
from placement import InputError, Instance, Prices, Problem
from placement.analysis.sensitivity import demand_range, rtt_range
from placement.databases.deployment import deployment_of_plan
from placement.errors import PlacementError, UnsupportedError
from placement.evaluation.objective import score_of
from placement.fleet.fleet_problem import FleetMember
from placement.overtime.decayed_counts import Decay
from placement.overtime.moves import Hysteresis, MovePrices
from placement.overtime.replay import Deployments, replay
from placement.overtime.watch import WatchSettings
from tests.protocols.test_replay import traced
from tests.protocols.worlds import world

if TYPE_CHECKING:
    from placement import Plan

VOTES = {"s1": 2}


def heavy(**asked: object) -> Problem:
    """Return a question with two votes at s1."""
    return Problem(world(2), replicas=3, voters=3, votes=VOTES, **asked)  # type: ignore[arg-type]


def solved(**asked: object) -> Plan:
    return placement.solve(heavy(**asked))


def priced() -> Instance:
    """Return the world with a price of each replica, and with votes."""
    return world(2).replace(prices=Prices([1.0] * 7), votes=VOTES)  # type: ignore[arg-type]


def watched(problem: Problem) -> WatchSettings:
    return WatchSettings(problem, Decay(2.0), Hysteresis(4.0), MovePrices())


@pytest.mark.parametrize("field", ["budget", "cost_weight", "current"])
def test_money_and_moves_are_refused_until_votes_are_left_out(field: str) -> None:
    plain = Problem(priced(), replicas=3, voters=3, votes={})
    asked = {"budget": 5.0, "cost_weight": 1.0, "current": placement.solve(plain).configuration}
    with pytest.raises(InputError, match="several votes") as caught:
        Problem(priced(), replicas=3, voters=3, **{field: asked[field]})  # type: ignore[arg-type]
    assert caught.value.field == field
    assert caught.value.expected == f"no {field}, or one vote each (no votes)"
    assert placement.solve(plain.replace(**{field: asked[field]})).found


def test_a_front_of_money_is_refused_until_votes_are_left_out() -> None:
    with pytest.raises(PlacementError, match=r"several votes .*one vote each"):
        placement.pareto(Problem(priced(), replicas=3, voters=3), replicas=[3])
    assert len(placement.pareto(Problem(priced(), replicas=3, voters=3, votes={}), replicas=[3]))


def test_fleets_and_deployments_are_refused_until_votes_are_left_out() -> None:
    with pytest.raises(InputError, match="a fleet cannot hold") as caught:
        FleetMember("mine", heavy())
    assert caught.value.field == "mine: votes"
    assert caught.value.expected == "one vote for each voter, as with votes={}"
    assert FleetMember("mine", heavy().replace(votes={})).problem.votes is None
    plan = solved()
    with pytest.raises(InputError, match="each voter one vote") as caught:
        deployment_of_plan(plan)
    assert caught.value.field == "votes"
    assert caught.value.value == VOTES
    assert caught.value.expected == "a plan without votes of sites, as with votes={}"
    plain = placement.solve(plan.problem.replace(votes={}))
    assert deployment_of_plan(plain) is not None


@pytest.mark.parametrize(
    ("what", "ask"),
    [
        ("a watch", watched),
        (
            "the worth of the next replica",
            lambda one: placement.next_replicas(placement.solve(one)),
        ),
    ],
)
def test_what_counts_voters_is_refused_until_votes_are_left_out(
    what: str, ask: Callable[[Problem], object]
) -> None:
    said = rf"votes: {what} counts one vote for each voter: got .*'s1': 2.* \(votes={{}} asks"
    with pytest.raises(UnsupportedError, match=said):
        ask(heavy())
    assert ask(heavy().replace(votes={})) is not None


def test_replays_are_refused_until_votes_are_left_out() -> None:
    one = world(1, sites=6)
    trace, names = traced(2, one), one.sites[:3]
    held = Deployments.same(one, 1, names, names)
    problem = Problem(one, replicas=3, voters=3, votes=VOTES)
    said = r"votes: a replay .*'s1': 2.*expected none \(votes={} asks"
    with pytest.raises(UnsupportedError, match=said):
        replay(problem, trace, held, tiers=(3,), strategies=("static",))
    with pytest.raises(UnsupportedError, match=said):
        Deployments.solved(problem, trace)
    plain = problem.replace(votes={})
    assert replay(plain, trace, held, tiers=(3,), strategies=("static",)) is not None


@pytest.mark.parametrize("seed", range(3))
def test_a_plan_is_optimal_within_its_ranges_and_not_beyond(seed: int) -> None:
    """Questions built by hand with the changed RTT or demand, answered by enumeration."""
    one = world(seed, sites=5, ties=False)
    plan = placement.solve(Problem(one, replicas=3, voters=3, votes={"s0": 3, "s3": 2}))
    chosen = plan.configuration
    assert chosen is not None
    other = next(site for site in plan.voters if site != plan.leader)
    row, column = one.sites.index(plan.leader or ""), one.sites.index(other)

    def with_rtt(x: float) -> Instance:
        rtt = one.site_rtt.copy()
        rtt[row, column] = x
        return one.replace(site_rtt=rtt)

    def with_demand(factor: float) -> Instance:
        counts = one.counts.copy()
        counts[:, 0] *= factor
        return one.replace(counts=counts)

    for found, build in (
        (rtt_range(plan, plan.leader or "", other, waiting="site"), with_rtt),
        (demand_range(plan, "c0"), with_demand),
    ):
        low, high = found.low, found.high
        inside = np.linspace(low, min(high, found.value * 3), 4)
        outside = [] if found.high_is_limit or not np.isfinite(high) else [1.01 * high + 1e-6]
        for x in [*inside.tolist(), *outside]:
            asked = plan.problem.replace(instance=build(x))
            best = placement.solve(asked, "exhaustive").score
            score = score_of(asked, chosen)
            assert bool(score <= best * (1 + 1e-9)) is bool(x <= high), (found, x)


def test_tables_keep_the_votes() -> None:
    plain = world(4)
    assert "votes" not in plain.to_frames()
    one = plain.replace(votes={"s1": 2, "s3": 3})
    frames = one.to_frames()
    again = Instance.from_frames(**frames)  # type: ignore[arg-type]
    assert again.votes == {"s1": 2, "s3": 3}
    assert again == one
    by_name = {**frames, "votes": {"s3": 3, "s1": 2}}
    assert Instance.from_frames(**by_name) == one  # type: ignore[arg-type]
    column = {**frames, "votes": frames["votes"].reset_index()}
    assert Instance.from_frames(**column) == one  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("votes", "field"),
    [
        (pd.DataFrame({"voices": [2]}, index=["s1"]), "votes"),
        (pd.DataFrame({"votes": [2, 3]}, index=["s1", "s1"]), "votes"),
        (pd.DataFrame({"votes": [2]}, index=["s9"]), "votes"),
        (pd.DataFrame({"votes": [1.5]}, index=["s1"]), "votes['s1']"),
        ([2, 1], "votes"),
    ],
)
def test_tables_of_votes_that_are_none_are_refused(votes: object, field: str) -> None:
    frames = {**world(4).to_frames(), "votes": votes}
    with pytest.raises(InputError) as caught:
        Instance.from_frames(**frames)  # type: ignore[arg-type]
    assert caught.value.field == field
