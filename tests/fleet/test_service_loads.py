"""Reads served, and room for the loss of any one site: rows against a count by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from placement import Problem
from placement.errors import InputError
from placement.evaluation.losses import score_after
from placement.fleet import FleetMember, FleetProblem, SharedLimits, SharedRows
from placement.fleet.shared_rows import PricedQuestion, service_after
from placement.model.configuration import Configuration
from placement.testing import random_instance
from tests.effort import examples
from tests.fleet.test_fleet_search import drawn_fleet, every_configuration


def loads_by_hand(
    fleet: FleetProblem, member: FleetMember, chosen: Configuration, lost: int | None
) -> dict[str, float]:
    """Return the use of rows of service, by name, with loops over clients and operations."""
    problem, sites = member.problem, fleet.sites
    replicas = [site for site in chosen.replicas if site != lost]
    voters = [site for site in chosen.voters if site != lost]
    if len(voters) < problem.rules.quorum:
        return {}
    leader = chosen.leader
    if leader == lost:
        able = [site for site in sorted(voters) if problem.rules.may_lead[site]] or sorted(voters)
        scores = score_after(problem, chosen, (lost,))
        leader = min(able, key=lambda site: scores[site])
    after = "" if lost is None else f" without {sites[lost]}"
    found = {
        f"leader operations{after} at {sites[leader]}": member.leader_load,
        f"outgoing GB{after} at {sites[leader]}": member.written_gb * (len(replicas) - 1),
    }
    for client, counts in enumerate(problem.instance.counts.sum(axis=0)):
        closest = min(replicas, key=lambda site: problem.instance.client_rtt[client, site])
        name = f"reads{after} at {sites[closest]}"
        for operation, count in zip(problem.instance.operations, counts, strict=True):
            near, *others = operation.coefficients
            if near > 0 and not any(others):
                found[name] = found.get(name, 0.0) + count
    return found


@pytest.mark.parametrize("seed", range(examples(25)))
def test_rows_of_reads_and_losses_are_those_counted_by_hand(seed: int) -> None:
    fleet = drawn_fleet(seed)
    rows = SharedRows(fleet)
    prices = np.random.default_rng(seed).exponential(1.0, len(rows.names))
    prices[np.random.default_rng(seed).random(len(prices)) < 0.3] = 0.0
    for member in fleet.members:
        question = PricedQuestion.of(rows, member, prices)
        free = rows.demand(member, 0 * prices)
        assert free is member.problem.demand
        every = every_configuration(member.problem)
        for chosen in every[:: max(len(every) // 8, 1)]:
            use = dict(zip(rows.names, rows.use(member, chosen).tolist(), strict=True))
            wanted = loads_by_hand(fleet, member, chosen, None)
            if fleet.limits.headroom:
                for lost in range(len(fleet.sites)):
                    wanted |= loads_by_hand(fleet, member, chosen, lost)
            for name, amount in use.items():
                if name.startswith(("leader operations", "outgoing GB", "reads")):
                    assert amount == pytest.approx(wanted.get(name, 0.0)), name
            if question is None or not all(question.rules.may_hold[list(chosen.replicas)]):
                continue
            value = member.problem.objective.value(member.problem, chosen)
            paid = value + float(prices @ rows.use(member, chosen))
            assert priced_score(question, chosen) <= paid * (1 + 1e-9)


def priced_score(question: PricedQuestion, chosen: Configuration) -> float:
    """Return the score that pricing gives a configuration."""
    from placement.evaluation.score import score

    latency = score(
        question.demand, chosen.leader, chosen.voters, chosen.replicas, question.rules.quorum
    )
    return latency + float(question.price[chosen.leader, list(chosen.replicas)].sum())


def test_the_price_is_exact_where_every_loss_has_one_price() -> None:
    """With equal prices everywhere the least price is the price, whoever follows the leader."""
    base = random_instance(3, sites=5, clients=4)
    member = FleetMember("a", Problem(base, replicas=3, voters=3), written_gb=2.0)
    some = np.full(5, 1e6)
    limits = SharedLimits(leader_operations=some, egress_gb=some, reads_served=some, headroom=True)
    rows = SharedRows(FleetProblem([member], limits))
    prices = np.where([" without " in name for name in rows.names], 0.5, 0.0)
    question = PricedQuestion.of(rows, member, prices)
    assert question is not None
    for chosen in every_configuration(member.problem):
        value = member.problem.objective.value(member.problem, chosen)
        paid = value + float(prices @ rows.use(member, chosen))
        assert priced_score(question, chosen) == pytest.approx(paid)


def test_a_database_without_enough_voters_takes_nothing_after_a_loss() -> None:
    base = random_instance(3, sites=4, clients=4)
    member = FleetMember("a", Problem(base, replicas=2, voters=1), written_gb=2.0)
    assert service_after(member, Configuration.of(0, (0,), (0, 1)), 0) is None
    left = service_after(member, Configuration.of(0, (0,), (0, 1)), 1)
    assert left is not None
    assert not left.egress_gb.any()
    assert left.leader_operations.tolist() == [member.leader_load, 0, 0, 0]


def test_headroom_takes_a_site_that_has_no_room_for_another_leader() -> None:
    """Two databases of 10 operations; sites for 15: each alone fits, both do not after a loss."""
    from formulations.fleet import solve_fleet
    from placement.fleet import FleetPlan, NoFleetPlan

    base = random_instance(1, sites=3, clients=3)
    members = [
        FleetMember(name, Problem(base, replicas=3, voters=3), leader_operations=10.0)
        for name in ("a", "b", "c")
    ]
    limit = np.full(3, 15.0)
    apart = solve_fleet(FleetProblem(members, SharedLimits(leader_operations=limit)))
    assert isinstance(apart, FleetPlan)
    assert not apart.violations
    none = solve_fleet(FleetProblem(members, SharedLimits(leader_operations=limit, headroom=True)))
    assert isinstance(none, NoFleetPlan)
    roomy = SharedLimits(leader_operations=np.full(3, 20.0), headroom=True)
    found = solve_fleet(FleetProblem(members, roomy))
    assert isinstance(found, FleetPlan)
    assert not found.violations


def test_wrong_limits_are_refused() -> None:
    with pytest.raises(InputError, match="reads_served"):
        SharedLimits(reads_served=np.array([math.nan]))
    with pytest.raises(InputError, match="headroom"):
        SharedLimits(headroom=1)  # type: ignore[arg-type]


def test_a_full_site_is_left_though_reads_could_be_sent_elsewhere() -> None:
    """The price of the search sends reads away from a full site; the plan has to leave it."""
    from formulations.fleet import FleetSearch, solve_fleet
    from placement.fleet import FleetPlan

    found = 0
    for seed in range(8):
        base = random_instance(seed, sites=6, clients=8)
        member = FleetMember("a", Problem(base, replicas=3, voters=1))
        free = solve_fleet(FleetProblem([member], SharedLimits(reads_served=np.full(6, 1e9))))
        assert isinstance(free, FleetPlan)
        limit = np.full(6, math.inf)
        fullest = int(free.load.argmax())
        limit[fullest] = 0.8 * free.load[fullest]
        plan = solve_fleet(
            FleetProblem([member], SharedLimits(reads_served=limit)), FleetSearch(gap=0.0)
        )
        if isinstance(plan, FleetPlan):
            found += 1
            assert not plan.violations
    assert found >= 7  # with the price of the search alone 5
