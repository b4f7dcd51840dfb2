"""Algorithm 2 against Algorithm 1, and both and tier 1 against the reference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from formulations.enumeration.tier2 import METHOD as BRUTE_FORCE
from heuristics.rules.leader import METHOD as LEADER
from heuristics.rules.tier2 import METHOD as TIER2
from placement import (
    Diversity,
    Instance,
    LimitError,
    Operation,
    Options,
    Problem,
    Status,
    UnsupportedError,
    solve,
)
from placement.methods.registry import Method, run
from tests import reference
from tests.effort import examples
from tests.strategies import ALL, NESTED, problems


def agree(problem: Problem) -> None:
    fast = run(TIER2, problem, Options())
    slow = run(BRUTE_FORCE, problem, Options())
    assert fast.status == slow.status
    assert fast.configuration == slow.configuration
    assert fast.objective == slow.objective
    agrees_with_reference(problem, TIER2)


def agrees_with_reference(problem: Problem, method: Method) -> None:
    plan = run(method, problem, Options())
    expected = reference.solve(problem)
    if expected is None:
        assert plan.status is Status.INFEASIBLE
        assert plan.reasons
        return
    assert plan.status is Status.OPTIMAL
    assert plan.objective == pytest.approx(expected.objective, rel=1e-11, abs=1e-11)
    assert plan.configuration is not None
    assert plan.configuration.leader == expected.leader
    if not problem.instance.varying_rtt:
        names = tuple(problem.instance.sites[s] for s in expected.voters)
        assert plan.voters == names


@settings(max_examples=examples(600, 8))
@given(problems(tier=2, kinds=ALL))
def test_algorithms_1_and_2_agree(problem: Problem) -> None:
    agree(problem)


@given(problems(tier=2, kinds=NESTED, min_sites=4, max_sites=8, max_kinds=5))
def test_algorithms_1_and_2_agree_on_nested_levels(problem: Problem) -> None:
    agree(problem)


@given(problems(tier=2, kinds={"varying_rtt", "decay", "crossing", "quorum"}, min_sites=3))
def test_algorithms_1_and_2_agree_where_greedy_is_not_exact(problem: Problem) -> None:
    agree(problem)


@settings(max_examples=examples(300, 8))
@given(problems(tier=1, kinds=ALL))
def test_tier_1_agrees_with_the_reference(problem: Problem) -> None:
    if problem.tier == 1:  # with too few sites that may vote nothing can be fixed by name
        agrees_with_reference(problem, LEADER)
        agree(problem)  # a tier 1 question is a tier 2 question too
        voted = run(TIER2, problem, Options()).configuration
        assert run(LEADER, problem, Options()).configuration == voted


def line(**changes: object) -> Instance:
    """Four sites on a line at 0, 10, 20 and 100 ms, one client at each that writes once.

    A write costs d(c, leader) + q. Sums of d(c, leader): a 130, b 110, c 110, d 270.
    Two of three voters must answer, that is, the closest other voter:
        a: b at 10, so 130 + 4·10 = 170    b: a at 10, 110 + 40 = 150
        c: b at 10, so 110 + 4·10 = 150    d: c at 80, 270 + 320 = 590
    b and c tie at 150 and the first site wins. The voters of b are itself, then a and c (10 each).
    """
    at = np.array([0.0, 10.0, 20.0, 100.0])
    between = np.abs(at[:, None] - at)
    instance = Instance(
        sites=["a", "b", "c", "d"],
        clients=["in a", "in b", "in c", "in d"],
        client_rtt=between,
        site_rtt=between,
        counts=np.ones((4, 1)),
        operations=[Operation("write", direct=1, quorum=1)],
        domains={"bank": ["north", "north", "south", "south"]},
    )
    return instance.replace(**changes) if changes else instance


@pytest.mark.parametrize("method", ["tier2", "tier2-brute-force"])
def test_by_hand(method: str) -> None:
    plan = solve(Problem(line(), replicas=list("abcd"), voters=3), method)
    assert (plan.leader, plan.voters, plan.score) == ("b", ("b", "a", "c"), 150.0)
    assert plan.mean_latency == 37.5
    overheads = {row.leader: row.overhead for row in plan.leaders}
    assert list(overheads) == ["b", "c", "a"]
    # With voters {a, b, c}: a waits 10 for b: 130 + 40 = 170, that is 13.3 % more.
    assert overheads["a"] == pytest.approx(100 * (170 / 150 - 1))


@pytest.mark.parametrize("method", ["tier2", "tier2-brute-force"])
def test_failure_diversity_by_hand(method: str) -> None:
    """Two voters, one per bank: both must answer, so the leader waits for the other bank's.

    b waits 10 for c: 110 + 40 = 150; c waits 10 for b: 150 as well; a waits 20: 130 + 80 = 210.
    """
    rules = [Diversity("bank")]
    plan = solve(Problem(line(), replicas=list("abcd"), voters=2, diversity=rules), method)
    assert (plan.leader, plan.voters, plan.score) == ("b", ("b", "c"), 150.0)
    # When a must vote, b may not, and the best leader is c, which waits 20 for a: 110 + 80.
    pinned = Problem(line(), replicas=list("abcd"), voters=2, diversity=rules, pinned_voters=["a"])
    plan = solve(pinned, method)
    assert (plan.leader, plan.voters, plan.score) == ("c", ("c", "a"), 190.0)


@pytest.mark.parametrize("method", ["tier2", "tier2-brute-force", "exhaustive"])
def test_a_shorter_wait_goes_before_a_closer_voter(method: str) -> None:
    """All of three votes, no writes, so that all score alike; l hears a, b, c, z at 1, 2, 3, 9.

    Provider Q has a and b, region Y has a and c, one voter each: {l, a, z} has the closest voter,
    but it waits 9, and {l, b, c} waits 3.
    """
    between = 5.0 * (1 - np.eye(5))
    between[0] = [0, 1, 2, 3, 9]
    instance = Instance(
        sites=["l", "a", "b", "c", "z"],
        clients=["k"],
        client_rtt=np.ones((1, 5)),
        site_rtt=between,
        counts=[[1, 0, 0, 0, 0]],
        domains={"provider": ["P", "Q", "Q", "R", "S"], "region": ["X", "Y", "Z", "Y", "W"]},
    )
    rules = [Diversity("provider"), Diversity("region")]
    problem = Problem(
        instance, replicas=list("labcz"), voters=3, quorum=3, leader="l", diversity=rules
    )
    assert solve(problem, method).voters == ("l", "b", "c")


@pytest.mark.parametrize("method", ["tier2", "tier2-brute-force"])
def test_flexible_quorum_by_hand(method: str) -> None:
    """Quorum 1 of 3: nobody waits, b and c cost 110; quorum 3: b waits 10 for both, c waits 20."""
    assert solve(Problem(line(), replicas=list("abc"), voters=3, quorum=1), method).score == 110
    plan = solve(Problem(line(), replicas=list("abcd"), voters=3, quorum=3), method)
    assert (plan.leader, plan.voters, plan.score) == ("b", ("b", "a", "c"), 150.0)


@pytest.mark.parametrize("method", ["tier2", "tier2-brute-force"])
def test_one_replica(method: str) -> None:
    plan = solve(Problem(line(), replicas=["d"], voters=1), method)
    assert (plan.leader, plan.voters, plan.score) == ("d", ("d",), 270.0)


def test_asymmetric_waits_are_read_from_the_leader() -> None:
    """q_ℓ is d(ℓ, x), the leader's row: a waits 1 for b, b waits 50 for a."""
    between = np.array([[0.0, 1.0], [50.0, 0.0]])
    instance = Instance(
        sites=["a", "b"],
        clients=["k"],
        client_rtt=[[30.0, 0.0]],
        site_rtt=between,
        counts=[[1.0]],
        operations=[Operation("write", direct=1, quorum=1)],
    )
    plan = solve(Problem(instance, replicas=["a", "b"], voters=2), "tier2")
    assert (plan.leader, plan.score) == ("a", 31.0)  # b: 0 + 50


def test_methods_of_lower_tiers_refuse_what_is_free() -> None:
    with pytest.raises(UnsupportedError, match="tier 1 method and the question is one of tier 2"):
        solve(Problem(line(), replicas=list("abcd"), voters=3), "leader")
    with pytest.raises(UnsupportedError, match="tier 2 method and the question is one of tier 3"):
        solve(Problem(line(), replicas=3, voters=3), "tier2")


def test_brute_force_refuses_more_sets_than_its_limit() -> None:
    problem = Problem(line(), replicas=list("abcd"), voters=2)
    with pytest.raises(LimitError, match="6 voter sets are more than the limit of 5"):
        solve(problem, "tier2-brute-force", settings={"limit": 5})
    assert solve(problem, "tier2-brute-force", settings={"limit": 6}).status is Status.OPTIMAL
