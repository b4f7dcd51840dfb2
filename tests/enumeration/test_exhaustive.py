"""Exhaustive search and Algorithms 1 and 2 against a reference, and p-median problems."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations.enumeration import replica_sets
from formulations.enumeration.enumerate_sets import count_sets
from formulations.enumeration.exhaustive import METHOD
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
    Termination,
    UnsupportedError,
    solve,
)
from placement.evaluation.score import score_many
from placement.methods.options import Progress
from placement.methods.registry import Method, run
from placement.testing import random_instance
from tests import pmed, reference
from tests.effort import examples
from tests.reference import small
from tests.strategies import ALL, NESTED, SIMPLE, problems


def agrees_with_reference(problem: Problem) -> None:
    voters_agree(problem, METHOD)


def voters_agree(problem: Problem, method: Method) -> None:
    plan = run(method, problem, Options())
    expected = reference.solve(problem)
    if expected is None:
        assert plan.status is Status.INFEASIBLE
        assert plan.reasons
        return
    assert plan.status is Status.OPTIMAL
    assert plan.objective == pytest.approx(expected.objective, rel=1e-11, abs=1e-11)
    assert plan.gap <= 1e-11
    chosen = plan.configuration
    assert chosen is not None
    assert (chosen.leader, chosen.replicas) == (expected.leader, expected.replicas)
    if not problem.instance.varying_rtt:
        assert chosen.voters == expected.voters


@settings(max_examples=examples(500, 8))
@given(problems(kinds=ALL, max_sites=6))
def test_agrees_with_the_reference(problem: Problem) -> None:
    agrees_with_reference(problem)


DRAWN = {
    "bounds that are exact": problems(kinds=SIMPLE, max_sites=6, max_kinds=2),
    "many rules": problems(
        kinds=NESTED | {"range", "replica_caps"}, min_sites=4, max_sites=6, max_kinds=6
    ),
    "any rules": problems(kinds=ALL, min_sites=3, max_sites=6),
    # a later block may hold the first of the configurations that tie
    "ties": problems(kinds={"nested_caps", "range"}, min_sites=4, max_sites=6, styles=["ties"]),
    # in tenths of a ms equal scores differ in the last bits, and the first must still win
    "ties up to rounding": problems(
        kinds={"range", "forbidden"}, min_sites=4, max_sites=6, styles=["tenths"]
    ),
    # each of these can make the closest replicas the wrong voters
    **{
        kind: problems(kinds={kind}, min_sites=4, max_sites=6, min_kinds=1, writes=True)
        for kind in ("varying_rtt", "non_voters", "pinned_voters", "leader", "survive")
    },
}


@pytest.mark.parametrize("kind", DRAWN)
@given(data=st.data(), block=st.integers(1, 25))
def test_agrees_with_the_reference_in_small_blocks(
    kind: str, data: st.DataObject, block: int
) -> None:
    """Ties and incumbents must survive the passage from one block to the next."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replica_sets, "BLOCK", block)
        agrees_with_reference(data.draw(DRAWN[kind]))


@given(
    problems(kinds={"forbidden", "pinned", "pinned_voters", "leader", "range"}, max_sites=9),
    st.integers(1, 40),
)
def test_every_set_once_and_in_order(problem: Problem, block: int) -> None:
    rules = problem.rules
    evaluator = replica_sets.SetEvaluator.of(problem)
    may, must = (set(np.nonzero(m)[0].tolist()) for m in (rules.may_hold, rules.must_hold))
    total = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replica_sets, "BLOCK", block)
        for size in range(rules.replicas_min, rules.replicas_max + 1):
            blocks = list(
                replica_sets.replica_sets(evaluator, rules.may_hold, rules.must_hold, size)
            )
            most = max(1, block // max(1, evaluator.rtt.shape[1]))
            assert all(0 < len(sets.members) <= most for sets in blocks)
            found = [tuple(row) for sets in blocks for row in sets.members.tolist()]
            wanted = [s for s in itertools.combinations(sorted(may), size) if must <= set(s)]
            assert found == wanted
            total += len(wanted)
    assert total == count_sets(problem)


@given(problems(kinds={"quorum", "forbidden", "leaders", "decay", "varying_rtt"}, max_sites=8))
def test_block_scores_are_the_evaluator_s(problem: Problem) -> None:
    """With all replicas voting the scores of a block are no bounds but Eq. 1 itself."""
    rules, demand = problem.rules, problem.demand
    evaluator = replica_sets.SetEvaluator.of(problem)
    size = rules.replicas_max
    everyone = np.ones_like(rules.may_hold)
    for sets in replica_sets.replica_sets(evaluator, everyone, ~everyone, size):
        scores, waits = evaluator.scores(sets)
        assert (waits >= 0).all()
        for place in range(size):
            leaders = sets.members[:, place]
            exact = score_many(demand, leaders, sets.members, sets.members, rules.quorum)
            expected = np.where(rules.may_lead[leaders], exact, np.inf)
            np.testing.assert_allclose(scores[place], expected, rtol=1e-13, atol=1e-13)


def test_by_hand() -> None:
    """Four sites on a line at 0, 10, 20 and 100 ms; clients in a (60 reads), c (30), d (10 writes).

    One voter, two replicas: q = 0. A write costs d(d, leader), a weak read d(client, nearest).
        R = {a, d}, leader d: 60·0 + 30·20 + 10·0  = 600      (c is 20 from a, 80 from d)
        R = {c, d}, leader d: 60·20 + 30·0 + 10·0  = 1200
        R = {b, d}, leader d: 60·10 + 30·10 + 10·0 = 900
        R = {a, c}, leader c: 60·0 + 30·0 + 10·80  = 800; and any other pair is worse
    Two voters on {a, d}: the leader waits 100 for the other's vote, 600 + 10·100 = 1600; on {a, c}
    with leader c it waits 20: 800 + 10·20 = 1000, on {b, c} 600 + 0 + 800 + 100 = 1500. So the
    optimum moves to {a, c} when two must vote.
    """
    instance = line(
        clients=["in a", "in c", "in d"],
        client_rtt=line().client_rtt[[0, 2, 3]],
        counts=[[60, 0], [30, 0], [0, 10]],
        operations=[Operation("read", near=1), Operation("write", direct=1, quorum=1)],
    )
    one = solve(Problem(instance, replicas=2, voters=1), "exhaustive")
    assert (one.leader, one.replicas, one.score) == ("d", ("a", "d"), 600.0)
    two = solve(Problem(instance, replicas=2, voters=2), "exhaustive")
    assert (two.leader, two.voters, two.score) == ("c", ("c", "a"), 1000.0)
    assert two.mean_latency == 10.0


def test_ties_go_to_the_first_leader_then_the_first_replicas() -> None:
    between = 5.0 * (1 - np.eye(5))
    instance = small("abcde", np.full((1, 5), 7.0), between, [[1, 1, 1, 1, 1]])
    plan = solve(Problem(instance, replicas=(2, 4), voters=2, forbidden=["b"]), "exhaustive")
    assert (plan.leader, plan.voters, plan.replicas) == ("a", ("a", "c"), ("a", "c"))


@pytest.mark.parametrize("diversity", [(), (Diversity("site"),)], ids=["exact", "refined"])
@pytest.mark.parametrize("block", [1, 100_000])
def test_a_tie_in_a_later_block_goes_to_the_lower_leader(
    monkeypatch: pytest.MonkeyPatch, diversity: tuple[Diversity, ...], block: int
) -> None:
    """One strong read at p, one weak read at q; a is pinned, two replicas, one voter.

    {a, b}: q reads at 5, so leader a costs 5 + 5 = 10 and b 3 + 5 = 8.
    {a, c}: q reads at 3, so leader a costs 5 + 3 = 8 as well, and c 20 + 3.
    """
    monkeypatch.setattr(replica_sets, "BLOCK", block)
    instance = small(
        "abc", [[5, 3, 20], [9, 5, 3]], 1 - np.eye(3), [[0, 0, 1, 0, 0], [1, 0, 0, 0, 0]]
    )
    problem = Problem(instance, replicas=2, voters=1, pinned=["a"], diversity=diversity)
    plan = solve(problem, "exhaustive")
    assert (plan.leader, plan.replicas, plan.score) == ("a", ("a", "c"), 8.0)


def test_refuses_more_sets_than_its_limit() -> None:
    problem = Problem(random_instance(0, sites=12, clients=3), replicas=5, voters=3)
    with pytest.raises(LimitError, match=r"792 replica sets .* limit of 791"):
        solve(problem, "exhaustive", settings={"limit": 791})
    assert solve(problem, "exhaustive", settings={"limit": 792}).status is Status.OPTIMAL


def test_a_time_limit_keeps_the_best_so_far() -> None:
    problem = Problem(random_instance(0, sites=24, clients=24), replicas=7, voters=3)
    plan = solve(problem, "exhaustive", time_limit=0.0)
    assert (plan.status, plan.termination) == (Status.FEASIBLE, Termination.TIME_LIMIT)
    assert plan.bound == -math.inf
    assert 0 < int(plan.stats["sets"]) < int(plan.stats["of"]) == math.comb(24, 7)


@pytest.mark.parametrize(
    "asked",
    [
        {"minimise": "mean after the loss of any two sites"},
        {"protocol": "semi-sync:k=1,level=site"},
    ],
)
def test_a_time_limit_is_kept_among_the_voters_of_one_set(asked: dict[str, Any]) -> None:
    problem = Problem(random_instance(0, sites=12, clients=4), replicas=12, voters=6, **asked)
    plan = solve(problem, "exhaustive", time_limit=0.0)
    assert (plan.status, plan.termination) == (Status.FEASIBLE, Termination.TIME_LIMIT)
    assert plan.stats["sets"] == 0


def test_an_interrupt_keeps_the_best_so_far() -> None:
    def interrupt(progress: Progress) -> None:
        if progress.done is not None and progress.done > 5000:
            raise KeyboardInterrupt

    problem = Problem(random_instance(0, sites=24, clients=24), replicas=7, voters=3)
    plan = solve(problem, "exhaustive", progress=interrupt)
    assert plan.termination is Termination.INTERRUPTED
    assert plan.status is Status.FEASIBLE
    assert plan.score < math.inf


def test_says_infeasible_only_after_looking_at_every_set() -> None:
    """Countries x and y are served by provider p alone: one voter each of three can't be had."""
    instance = random_instance(0, sites=5, clients=4).replace(
        domains={"country": ["x", "y", "z", "z", "y"], "provider": ["p", "p", "q", "r", "p"]}
    )
    rules = [Diversity("country"), Diversity("provider")]
    problem = Problem(instance, replicas=4, voters=3, diversity=rules)
    plan = solve(problem, "exhaustive")
    assert plan.status is Status.INFEASIBLE
    assert plan.bound == math.inf
    assert plan.reasons[-1] == "none of the 5 replica sets has a plan that obeys all rules"
    assert solve(problem.replace(voters=2), "exhaustive").status is Status.OPTIMAL


def agree(problem: Problem) -> None:
    fast = run(TIER2, problem, Options())
    slow = run(BRUTE_FORCE, problem, Options())
    assert fast.status == slow.status
    assert fast.configuration == slow.configuration
    assert fast.objective == slow.objective
    voters_agree(problem, TIER2)


GREEDY_IS_NOT_EXACT = {"varying_rtt", "decay", "crossing", "quorum"}


@settings(max_examples=examples(800, 8))
@given(
    problems(tier=2, kinds=ALL)
    | problems(tier=2, kinds=NESTED, min_sites=4, max_sites=8, max_kinds=5)
    | problems(tier=2, kinds=GREEDY_IS_NOT_EXACT, min_sites=3)
)
def test_algorithms_1_and_2_agree(problem: Problem) -> None:
    agree(problem)


@settings(max_examples=examples(300, 8))
@given(problems(tier=1, kinds=ALL))
def test_tier_1_agrees_with_the_reference(problem: Problem) -> None:
    if problem.tier == 1:  # with too few sites that may vote nothing can be fixed by name
        voters_agree(problem, LEADER)
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
    instance = small(
        "abcd",
        between,
        between,
        np.ones((4, 1)),
        operations=[Operation("write", direct=1, quorum=1)],
        domains={"bank": ["north", "north", "south", "south"]},
    )
    return instance.replace(**changes) if changes else instance


@pytest.mark.parametrize("method", ["tier2", "tier2-brute-force"])
def test_tier2_by_hand(method: str) -> None:
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
    instance = small(
        "labcz",
        np.ones((1, 5)),
        between,
        [[1, 0, 0, 0, 0]],
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
    instance = small(
        "ab", [[30.0, 0.0]], between, [[1.0]], operations=[Operation("write", direct=1, quorum=1)]
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


def test_the_last_of_repeated_edges_counts() -> None:
    """Path 1 -5- 2 -1- 3, then the first edge again with cost 7: d(1, 3) = 8, not 6."""
    read = pmed.parse("3 3 1\n1 2 5\n2 3 1\n2 1 7\n")
    assert read.distances.tolist() == [[0, 7, 8], [7, 0, 1], [8, 1, 0]]
    # One median: node 2 costs 7 + 0 + 1.
    plan = solve(read.problem(), "exhaustive")
    assert (plan.leader, plan.replicas, plan.score) == ("n2", ("n2",), 8.0)


@pytest.mark.parametrize("seed", [1, 4])
@pytest.mark.parametrize("medians", [3, 5])
def test_medians_among_some_nodes_by_an_integer_program(seed: int, medians: int) -> None:
    """All nodes are clients, the first 22 may be medians: up to 26,334 sets."""
    read = pmed.draw(60, 5, seed)
    plan = solve(read.problem(medians=medians, sites=22), "exhaustive")
    assert plan.status is Status.OPTIMAL
    assert plan.score == pmed.by_integer_program(read.distances[:, :22], medians)
