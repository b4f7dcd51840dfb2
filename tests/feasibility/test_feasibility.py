"""Searches for feasible plans are complete; constraints are checked; present diversity is kept."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import placement
from formulations.enumeration.enumerate_sets import count_sets
from placement import Configuration, Diversity, LimitError, Problem, Status, solve
from placement.errors import InputError
from placement.feasibility.feasible_plans import (
    complete_configuration,
    find_feasible,
    kept_diversity,
    reasons_infeasible,
    violations,
)
from placement.io import load_plan, save_instance, save_plan
from placement.model.site_families import SiteSubset, subsets
from placement.support.status import time_limit
from placement.testing import every_configuration, random_instance
from tests import reference
from tests.evaluation.test_score import configurations
from tests.reference import small
from tests.strategies import ALL, Kind, problems


def check_complete(problem: Problem, prefer: list[int]) -> None:
    admitted = list(reference.configurations(problem))
    for leader in range(len(problem.instance.sites)):
        for size in (None, *range(problem.rules.replicas_min, problem.rules.replicas_max + 1)):
            exists = [
                replicas
                for chief, _, replicas in admitted
                if chief == leader and size in (None, len(replicas))
            ]
            found = complete_configuration(problem, leader, prefer, size)
            assert (found is not None) == bool(exists)
            if found is None:
                continue
            assert found.leader == leader
            assert reference.obeys(problem, leader, found.voters, found.replicas)
            assert len(found.replicas) in ({size} if size else set(map(len, exists)))
    anything = find_feasible(problem, prefer)
    assert (anything is not None) == bool(admitted)
    if anything is not None:
        assert reference.obeys(problem, anything.leader, anything.voters, anything.replicas)
        first = [*dict.fromkeys([*prefer, *range(len(problem.instance.sites))])]
        leaders = {leader for leader, _, _ in admitted}
        assert anything.leader == next(s for s in first if s in leaders)


@given(st.data(), problems(kinds=ALL - {"varying_rtt"}, max_sites=6))
def test_a_plan_is_found_if_and_only_if_there_is_one(data: st.DataObject, problem: Problem) -> None:
    sites = range(len(problem.instance.sites))
    check_complete(problem, data.draw(st.lists(st.sampled_from(sites), unique=True)))


@pytest.mark.parametrize(
    "kinds",
    [
        {"pinned", "non_voters", "pinned_voters"},
        {"replica_caps", "pinned", "nested_caps"},
        {"budget", "pinned"},
        {"min_domains", "replica_caps", "range"},
    ],
    ids=lambda kinds: "+".join(sorted(kinds)),
)
@given(data=st.data())
def test_a_plan_is_found_where_voters_leave_too_little_room(
    kinds: set[Kind], data: st.DataObject
) -> None:
    """Most voter sets here can't be extended to replicas, and those that fail look alike."""
    problem = data.draw(problems(kinds=kinds, min_sites=4, max_sites=6))
    check_complete(problem, [])


def test_a_plan_of_the_largest_size_is_found() -> None:
    apart = (Diversity("site", "replicas", min_domains=3),)
    instance = random_instance(1, sites=5, clients=3)
    check_complete(Problem(instance, replicas=(2, 3), voters=2, diversity=apart), [])


@given(st.data(), problems(kinds=ALL, max_sites=6))
def test_violations_are_found_if_and_only_if_there_are_some(
    data: st.DataObject, problem: Problem
) -> None:
    """On configurations of any size, most of which break something."""
    for _ in range(10):
        leader, voters, replicas = data.draw(configurations(len(problem.instance.sites)))
        broken = violations(problem, Configuration.of(leader, voters, replicas))
        assert (not broken) == reference.obeys(problem, leader, voters, replicas)


@given(problems(kinds=ALL, max_sites=5, max_kinds=5))
def test_violations_of_every_configuration_of_the_size_asked_for(problem: Problem) -> None:
    rules, sites = problem.rules, range(len(problem.instance.sites))
    for replicas in itertools.combinations(sites, rules.replicas_max):
        for voters in itertools.combinations(replicas, rules.voters):
            for leader in voters:
                broken = violations(problem, Configuration.of(leader, voters, replicas))
                assert (not broken) == reference.obeys(problem, leader, voters, replicas)


@given(problems(kinds=ALL, max_sites=5, max_kinds=5))
def test_a_reason_given_for_infeasibility_is_a_proof(problem: Problem) -> None:
    if reasons_infeasible(problem):
        assert next(iter(reference.configurations(problem)), None) is None


def test_what_is_broken_is_said() -> None:
    instance = small(
        "abcd",
        np.ones((1, 4)),
        1 - np.eye(4),
        [[1, 0, 0, 0, 0]],
        domains={"bank": ["n", "n", "s", "s"]},
    )
    problem = Problem(
        instance,
        replicas=3,
        voters=2,
        diversity=[Diversity("bank")],
        pinned=["d"],
        non_voters=["c"],
        leaders=["a"],
    )
    assert violations(problem, Configuration.of(0, [0, 3], [0, 1, 3])) == ()
    broken = violations(problem, Configuration.of(1, [1, 0], [0, 1]))
    assert broken == (
        "2 replicas instead of 3",
        "a replica is required at d",
        "no leader is allowed at b",
        "at most 1 of the voters per bank does not hold",
    )
    broken = violations(problem, Configuration.of(0, [1, 2], [0, 1, 3]))
    assert "the leader a is not a voter" in broken
    assert "the voter c is not a replica" in broken
    assert "no vote is allowed at c" in broken
    assert "a site is listed twice" in violations(problem, Configuration.of(0, [0, 0], [0, 0, 3]))


def test_a_pin_that_may_not_vote_can_leave_no_place_for_a_voter() -> None:
    """One replica, pinned at a, where none may vote: the only voter would be a second replica."""
    instance = small("ab", [[3, 2]], [[0, 1], [1, 0]], [[1, 0, 0, 0, 0]])
    problem = Problem(instance, replicas=1, voters=1, pinned=["a"], non_voters=["a"])
    assert reasons_infeasible(problem) == (
        "2 sites must hold a replica, pinned or as the only ones that may vote (a, b), but at most "
        "1 may be placed",
    )
    assert find_feasible(problem) is None
    assert count_sets(problem) == 0
    for method in ("exhaustive", "tier2-brute-force", "tier2"):
        fixed = problem if method == "exhaustive" else problem.replace(replicas=["a"], pinned=())
        assert solve(fixed, method).status is Status.INFEASIBLE


@given(st.data(), st.integers(1, 8))
def test_completion_takes_what_is_preferred(data: st.DataObject, sites: int) -> None:
    """Without rules a completion holds the leader and the first of the preferred sites."""
    instance = small(
        [f"s{i}" for i in range(sites)], np.ones((1, sites)), 1 - np.eye(sites), [[1, 0, 0, 0, 0]]
    )
    size = data.draw(st.integers(1, sites))
    problem = Problem(instance, replicas=size, voters=data.draw(st.integers(1, size)))
    prefer = data.draw(st.permutations(range(sites)))
    leader = data.draw(st.integers(0, sites - 1))
    found = complete_configuration(problem, leader, prefer)
    others = [s for s in prefer if s != leader][: size - 1]
    assert found is not None
    assert set(found.replicas) == {leader, *others}


def brute_force(choice: SiteSubset) -> Iterator[tuple[int, ...]]:
    """All sets that a choice admits, by positions in its order."""
    first, wanted = choice.near
    for chosen in itertools.combinations(choice.order, choice.size):
        good = choice.pinned <= set(chosen)
        good &= sum(1 for s in chosen if s in list(choice.order)[:first]) >= wanted
        if choice.cost is not None:
            good &= sum(choice.cost[s] for s in chosen) <= choice.budget + 1e-9
        for group in choice.groups:
            labels = [group.labels[s] for s in chosen]
            good &= group.cap is None or all(labels.count(x) <= group.cap for x in labels)
            good &= group.min_domains is None or len(set(labels)) >= group.min_domains
        if good:
            yield chosen


@given(
    st.data(),
    problems(kinds={"nested_caps", "crossing", "min_domains", "replica_caps"}, max_sites=8),
)
def test_every_subset_once_and_in_order(data: st.DataObject, problem: Problem) -> None:
    sites = range(len(problem.instance.sites))
    order = data.draw(st.permutations(sites))[: data.draw(st.integers(1, len(sites)))]
    size = data.draw(st.integers(0, len(order)))
    pinned = data.draw(st.sets(st.sampled_from(sites), max_size=2))
    near = (data.draw(st.integers(0, len(order))), data.draw(st.integers(0, size)))
    costs = np.array([float(data.draw(st.integers(0, 5))) for _ in sites])
    budget = float(data.draw(st.integers(0, 20)))
    for cost, limit in ((None, np.inf), (costs, budget)):
        groups = problem.rules.groups if size else ()
        choice = SiteSubset(order, size, frozenset(pinned), groups, near, cost, limit)
        expected = list(brute_force(choice)) if pinned <= set(order) else []
        assert list(subsets(choice)) == expected


def test_a_hopeless_search_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    with time_limit(-1.0), pytest.raises(TimeoutError):
        list(subsets(SiteSubset(range(20), 10)))
    monkeypatch.setattr("placement.model.site_families.NODE_LIMIT", 10)
    with pytest.raises(LimitError, match="more than 10 nodes"):
        list(subsets(SiteSubset(range(10), 5)))


def test_a_budget_for_fewer_replicas_is_no_search() -> None:
    problem = Problem(random_instance(0, sites=40, prices=True), replicas=20, voters=9, budget=19)
    with time_limit(-1.0):  # not after every set of 9 voters
        assert complete_configuration(problem, 0, ()) is None


def world(last="w"):
    domains = {
        "country": ("x", "x", "y", "y", "z", last),
        "continent": ("1", "1", "1", "1", "2", "2"),
    }
    return random_instance(4, sites=6, clients=4).replace(domains=domains)


def test_the_rules_by_hand():
    instance = world(last=None)
    sites = instance.sites
    rules = kept_diversity(instance, [sites[0], sites[1], sites[2]], [*sites[:3], sites[5]])
    assert set(rules) == {
        Diversity("country", "voters", cap=2),
        Diversity("country", "replicas", min_domains=3),
        Diversity("continent", "replicas", min_domains=2),
    }
    assert kept_diversity(instance, sites[:3], sites[:3], ["continent"]) == ()
    # A site without a domain fails alone.
    assert Diversity("country", "voters", cap=1) in kept_diversity(
        instance, [sites[0], sites[2], sites[5]], sites
    )
    with pytest.raises(InputError, match="unknown failure-domain level"):
        kept_diversity(instance, sites[:3], sites[:3], ["county"])
    with pytest.raises(InputError, match="unknown site"):
        kept_diversity(instance, ["nowhere"], sites)


def test_a_loss_that_leaves_a_quorum_today_leaves_one_afterwards():
    instance = world()
    problem = Problem(instance, replicas=4, voters=3)

    def survived(configuration):
        stops = set()
        for level in ("country", "continent"):
            labels = instance.labels(level)
            for label in {label for label in labels if label is not None}:
                left = [v for v in configuration.voters if labels[v] != label]
                if len(left) < 2:
                    stops.add(level)
        return {"country", "continent"} - stops

    for today in list(every_configuration(problem))[::37]:
        names = [[instance.sites[s] for s in part] for part in (today.voters, today.replicas)]
        kept = problem.replace(diversity=kept_diversity(instance, *names))
        assert not violations(kept, today)
        for other in list(every_configuration(kept))[::11]:
            assert survived(today) <= survived(other)
            for level in ("country", "continent"):
                labels = instance.labels(level)

                def domains(one, labels=labels):
                    return len({labels[s] or s for s in one.replicas})

                assert domains(other) >= domains(today)


def test_the_option_keeps_the_diversity_of_a_plan(command, tmp_path):
    instance = world()
    save_instance(instance, tmp_path / "world")
    today = placement.solve(Problem(instance, replicas=4, voters=3, survive="country"))
    save_plan(today, tmp_path / "today.json")
    out = tmp_path / "new.json"
    outcome = command(
        "solve", tmp_path / "world", "--replicas", 5, "--voters", 3, "--keep-diversity",
        tmp_path / "today.json", "-o", out,
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    assert load_plan(out).problem.diversity == kept_diversity(
        instance, today.voters, today.replicas
    )
    best = min(
        placement.plan.objective_value(load_plan(out).problem, one)
        for one in every_configuration(load_plan(out).problem)
    )
    assert load_plan(out).objective == pytest.approx(best)
    other = command(
        "solve", "world27", "--replicas", 5, "--voters", 3, "--keep-diversity",
        tmp_path / "today.json",
    )  # fmt: skip
    assert other.code == 1
    assert "unknown site" in other.err
