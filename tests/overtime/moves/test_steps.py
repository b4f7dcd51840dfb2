"""Safe steps, carried out by a simulation; staged migrations; the page on time."""

from __future__ import annotations

import doctest
import itertools
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import placement
from placement import Configuration, Diversity, Instance, Problem
from placement.errors import InputError
from placement.evaluation.objective import MEAN_LATENCY
from placement.feasibility.feasible_plans import violations
from placement.io import save_plan
from placement.io.formats.tables import csv_bytes
from placement.measures.question import percentile_question
from placement.overtime.migration import migrate
from placement.overtime.moves import QuorumSizes, safe_steps, step_text, steps_between
from placement.overtime.moves import move_steps as search_module
from placement.overtime.moves.move_steps import (
    common_guards,
    quorum_path,
    quorums_of,
    voters_to_spare,
)
from placement.tail import Distributions
from placement.testing import random_instance
from tests.cli.command import Run
from tests.effort import examples
from tests.overtime.moves.test_moves import configurations
from tests.reference import small


def carry_out(before: Configuration, start: QuorumSizes, steps) -> Configuration:
    """Do the steps one by one on a cluster; assert that each prefix is a legal configuration."""
    leader, voters, replicas = before.leader, set(before.voters), set(before.replicas)
    behind: set[int] = set()
    commit, elect = start
    for step in steps:
        voters_then, commit_then, elect_then = set(voters), commit, elect
        commit, elect = step.after.quorums
        if step.kind == "add-learner":
            assert step.site not in replicas
            replicas.add(step.site)
            behind.add(step.site)
        elif step.kind == "catch-up":
            assert step.site in behind
            behind.discard(step.site)
        elif step.kind == "promote":
            assert step.site in replicas - voters
            assert step.site not in behind, "a learner that lacks data must not vote"
            voters.add(step.site)
        elif step.kind == "move-leader":
            assert step.site in voters
            assert step.site != leader
            leader = step.site
        elif step.kind == "demote":
            assert step.site in voters
            assert step.site != leader, "the leadership is handed over first"
            voters.discard(step.site)
        elif step.kind == "remove":
            assert step.site in replicas - voters
            replicas.discard(step.site)
        else:
            assert step.kind == "set-quorums"
            assert step.site is None
        assert leader in voters <= replicas
        assert voters.isdisjoint(behind)
        assert len(voters ^ voters_then) <= 1, "one voter at a time"
        size, union = len(voters), len(voters | voters_then)
        assert 1 <= commit <= size
        assert 1 <= elect <= size
        # by counts: any two sets of these sizes in the union share a member
        assert commit + elect > size
        assert commit + elect_then > union
        assert commit_then + elect > union
        if (commit, elect) != (commit_then, elect_then) and step.kind == "set-quorums":
            assert voters == voters_then
        assert step.after.leader == leader
        assert set(step.after.voters) == voters
        assert set(step.after.replicas) == replicas
        assert set(step.after.behind) == behind
    return Configuration.of(leader, sorted(voters), sorted(replicas))


def same(one: Configuration, other: Configuration) -> bool:
    return (
        one.leader == other.leader
        and set(one.voters) == set(other.voters)
        and set(one.replicas) == set(other.replicas)
    )


@given(configurations(), configurations())
def test_majorities_are_safe_at_every_step(before, after) -> None:
    start = QuorumSizes.majorities(len(before.voters))
    steps = safe_steps(before, after)
    assert same(carry_out(before, start, steps), after)
    if steps:
        assert steps[-1].after.quorums == QuorumSizes.majorities(len(after.voters))
    for stage in (step.after for step in steps):
        commit, elect = stage.quorums
        assert commit == elect == len(stage.voters) // 2 + 1
    # majorities of consecutive sets share a member: every pair of them, not by counts alone
    sets = [before.voters, *(step.after.voters for step in steps)]
    for one, other in itertools.pairwise(sets):
        for a in itertools.combinations(one, len(one) // 2 + 1):
            for b in itertools.combinations(other, len(other) // 2 + 1):
                assert set(a) & set(b)
    # nothing is done twice, nothing for nothing
    kinds = [step.kind for step in steps]
    assert kinds.count("add-learner") == len(set(after.replicas) - set(before.replicas))
    assert kinds.count("remove") == len(set(before.replicas) - set(after.replicas))
    assert kinds.count("promote") == len(set(after.voters) - set(before.voters))
    assert kinds.count("move-leader") == int(before.leader != after.leader)


@pytest.mark.parametrize("limit", [search_module.NODE_LIMIT, -1])
@given(before=configurations(), after=configurations(), data=st.data())
def test_flexible_quorums_are_safe_at_every_step(limit, before, after, data) -> None:
    """In the order that is searched for, and in the order of last resort."""
    ends = []
    for configuration in (before, after):
        voters = len(configuration.voters)
        commit = data.draw(st.integers(1, voters))
        ends.append(QuorumSizes(commit, data.draw(st.integers(voters - commit + 1, voters))))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search_module, "NODE_LIMIT", limit)
        steps = safe_steps(before, after, start=ends[0], end=ends[1])
    assert same(carry_out(before, ends[0], steps), after)
    assert (steps[-1].after.quorums if steps else ends[0]) == ends[1]


def world(labels: list[str]) -> Instance:
    size = len(labels)
    between = 10.0 * np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    return small(
        tuple(f"s{i}" for i in range(size)),
        np.ones((1, size)),
        between,
        np.ones((1, 5)),
        domains={"country": tuple(labels)},
    )


def reachable(problem: Problem, before: Configuration, after: Configuration, quorum) -> bool:
    """Return whether an order of single changes keeps `survive` and the losses, by flooding."""
    sites = sorted({*before.replicas, *after.replicas})
    labels = problem.instance.domains["country"]
    least = min(voters_to_spare(len(c.voters), quorum(len(c.voters))) for c in (before, after))

    def good(voters: frozenset[int]) -> bool:
        needed = max(quorum(len(voters)))
        kept = all(sum(labels[v] != country for v in voters) >= needed for country in set(labels))
        return kept and len(voters) - needed >= least

    def near(voters: frozenset[int]) -> bool:
        sizes = (len(before.voters), len(after.voters))
        return max(1, min(sizes) - 1) <= len(voters) <= max(sizes) + 1

    goal = (frozenset(after.voters), after.leader)
    seen = {(frozenset(before.voters), before.leader)}
    queue = list(seen)
    while queue:
        voters, leader = queue.pop()
        following = [(voters ^ {site}, leader) for site in sites if site != leader]
        following += [(voters, site) for site in (before.leader, after.leader) if site in voters]
        for state in following:
            if state not in seen and near(state[0]) and good(state[0]):
                seen.add(state)
                queue.append(state)
    return goal in seen


@settings(max_examples=examples(60))
@given(
    st.lists(st.sampled_from("abcd"), min_size=3, max_size=7),
    st.sampled_from([(3, None), (3, 2), (4, None), (4, 2), (5, None), (5, 2), (5, 4)]),
    st.integers(0, 2**32),
)
def test_survive_is_kept_if_any_order_keeps_it(labels, votes, seed) -> None:
    voters, quorum = votes
    assume(len(labels) >= voters)
    instance = world(labels)
    problem = None
    try:
        problem = Problem(
            instance, replicas=(voters, len(labels)), voters=voters, quorum=quorum,
            survive="country",
        )  # fmt: skip
    except InputError:
        assume(False)
    assert problem is not None
    rng = np.random.default_rng(seed)
    ends = []
    for _ in range(200):
        replicas = rng.choice(len(labels), rng.integers(voters, len(labels) + 1), replace=False)
        chosen = rng.choice(replicas, voters, replace=False)
        one = Configuration.of(int(rng.choice(chosen)), chosen.tolist(), replicas.tolist())
        if not violations(problem, one):
            ends.append(one)
        if len(ends) == 2:
            break
    assume(len(ends) == 2)
    before, after = ends
    steps = steps_between(problem, before, after)
    start = quorums_of(problem, before)
    assert same(carry_out(before, start, steps), after)
    rule = quorum_path(voters, start, voters, quorums_of(problem, after))
    kept = not any(step.broken for step in steps)
    assert kept == reachable(problem, before, after, rule)
    # what a stage is said to break, it breaks
    guards = common_guards(problem, ends)
    for step in steps:
        words = [guard(step.after.voters, step.after.quorums) for guard in guards]
        assert list(step.broken) == [text for text in words if text]


def test_a_swap_within_a_country_is_helped_by_a_third() -> None:
    # one voter in each of a, b, c; another site of a takes over from the first: promoting it first
    # puts two voters of three into a, demoting first leaves two voters. A replica in d helps.
    instance = world(["a", "a", "b", "c", "d"])
    problem = Problem(instance, replicas=(3, 5), voters=3, survive="country")
    before = Configuration.of(2, [0, 2, 3], [0, 2, 3, 4])
    after = Configuration.of(2, [1, 2, 3], [1, 2, 3, 4])
    steps = steps_between(problem, before, after)
    assert not any(step.broken for step in steps)
    words = [f"{step.kind} {step.site}" for step in steps if step.kind in ("promote", "demote")]
    assert words == ["promote 4", "demote 0", "promote 1", "demote 4"]
    # without one, the list says where the country cannot be kept
    alone = steps_between(
        problem,
        Configuration.of(2, [0, 2, 3], [0, 2, 3]),
        Configuration.of(2, [1, 2, 3], [1, 2, 3]),
    )
    assert any("loss of a (country)" in text for step in alone for text in step.broken)
    assert "loss of a (country)" in "".join(step_text(step, instance.sites) for step in alone)


def test_a_rule_for_voters_is_kept() -> None:
    instance = world(["a", "a", "b", "c", "d"])
    rule = Diversity("country", min_domains=3)
    problem = Problem(instance, replicas=(3, 5), voters=3, diversity=[rule])
    before, after = (
        Configuration.of(0, [0, 2, 3], [0, 2, 3]),
        Configuration.of(1, [1, 2, 4], [1, 2, 4]),
    )
    steps = steps_between(problem, before, after)
    assert same(carry_out(before, QuorumSizes(2, 2), steps), after)
    for step in steps:
        assert len({"aabcd"[v] for v in step.after.voters}) >= 3
        assert not step.broken


def test_steps_by_hand() -> None:
    before = Configuration.of(0, [0, 1, 2], [0, 1, 2])
    after = Configuration.of(3, [1, 2, 3], [1, 2, 3])
    names = ("A", "B", "C", "D")
    assert [step_text(step, names) for step in safe_steps(before, after)] == [
        "add a learner at D",
        "wait until D has caught up",
        "promote D to a voter: 4 voters, commits wait for 3, elections for 3",
        "hand the leadership over to D",
        "demote A to a learner: 3 voters, commits wait for 2, elections for 2",
        "remove the replica at A",
    ]
    assert safe_steps(before, before) == ()


def test_nine_disjoint_voters_are_found_quickly() -> None:
    before = Configuration.of(0, range(9), range(9))
    after = Configuration.of(9, range(9, 18), range(9, 18))
    steps = safe_steps(before, after)
    assert same(carry_out(before, QuorumSizes(5, 5), steps), after)
    assert not any(step.broken for step in steps)
    assert {len(step.after.voters) for step in steps} == {9, 10}


def test_unsafe_ends_are_refused() -> None:
    before = Configuration.of(0, [0, 1, 2], [0, 1, 2])
    with pytest.raises(InputError, match="need not meet"):
        safe_steps(before, before, start=QuorumSizes(1, 1))


PAGE = Path(__file__).resolve().parents[3] / "docs/over-time.md"


def test_the_examples() -> None:
    failed, tried = doctest.testfile(str(PAGE), module_relative=False)
    assert failed == 0
    assert tried >= 10


def test_the_watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Run) -> None:
    """The demand of world27 itself, a file per half hour."""
    text = PAGE.read_text(encoding="utf-8")
    (line,) = re.findall(r"^    placement (watch .*)$", text, flags=re.MULTILINE)
    shown = text.split("to keep the configuration or to move:\n\n", 1)[1].split("\n\n")[0]
    world = placement.load("world27")
    (tmp_path / "intervals").mkdir()
    header = ["interval", "client", "operation", "count"]
    for i, (label, counts) in enumerate(zip(world.intervals, world.counts, strict=True)):
        rows = [
            (label, world.clients[c], world.operations[o].name, float(counts[c, o]))
            for c, o in zip(*np.nonzero(counts), strict=True)
        ]
        (tmp_path / "intervals" / f"{i:02}.csv").write_bytes(csv_bytes(header, rows))
    monkeypatch.chdir(tmp_path)
    outcome = command(*shlex.split(line))
    assert (outcome.code, outcome.err) == (0, "")
    printed = outcome.out.splitlines()
    rows = "\n".join(line[4:] for line in shown.splitlines())
    for part in rows.removesuffix("\n…").split("\n…\n"):
        first = printed.index(part.split("\n")[0])
        assert part.split("\n") == printed[first : first + len(part.split("\n"))]


CHOSEN = Configuration.of(1, (0, 1, 2, 3), (0, 1, 2, 3, 4))


def question(seed=2, variation=0.3):
    instance = random_instance(seed, sites=5, clients=4)
    spread = Distributions.parametric(instance, variation=variation, width=2, bins=900)
    return Problem(instance, replicas=5, voters=4, objective=percentile_question(50, spread))


@pytest.mark.parametrize("seed", [2, 3])
def test_every_step_is_the_mixture_of_the_leaders_by_the_evaluator(seed):
    problem = question(seed)
    shares = {"site-0": 0.4, "site-1": 0.1, "site-2": 0.3, "site-3": 0.2}
    result = migrate(problem, CHOSEN, shares=shares, groups=20, per_step=3, seed=seed)
    assert result.groups[0].tolist() == [8, 2, 6, 4]
    assert result.groups[-1].tolist() == [0, 20, 0, 0]
    assert len(result.groups) == 1 + 18 / 3
    each = [Configuration(leader, CHOSEN.voters, CHOSEN.replicas) for leader in range(4)]
    for step, led in enumerate(result.groups):
        assert led.sum() == 20
        mixture = (led / 20).tolist()
        for percent in result.percents:
            goal = percentile_question(percent, *problem.objective.distributions)
            asked = problem.replace(objective=goal)
            assert result.of(percent)[step] == goal.mixed(asked, each, mixture)
        plain = problem.replace(objective=MEAN_LATENCY)
        mean = MEAN_LATENCY.mixed(plain, each, mixture) / plain.demand.operations
        assert result.mean[step] == pytest.approx(mean)
    assert (np.diff(result.moved) > 0).all()


def test_the_median_falls_in_a_jump_when_half_of_the_groups_have_moved():
    """By hand: writes of one client take 100 ms at a far leader, 10 ms at the near one."""
    instance = small(
        ("far", "near"), [[100.0, 10.0]], [[0.0, 0.0], [0.0, 0.0]], [[0, 0, 100, 0, 0]]
    )
    goal = percentile_question(50, Distributions.parametric(instance, variation=0.0, bins=300))
    problem = Problem(instance, replicas=2, voters=2, objective=goal)
    chosen = Configuration.of(1, (0, 1), (0, 1))
    result = migrate(problem, chosen, shares={"far": 1.0}, groups=10, per_step=1)
    assert result.of(50.0).tolist() == [100.0] * 5 + [10.0] * 6
    assert result.mean.tolist() == pytest.approx([100 - 9 * step for step in range(11)])
    assert result.sites == ("far", "near")


def test_shares_become_whole_groups():
    problem = question()
    result = migrate(problem, CHOSEN, groups=10, per_step=100)
    assert result.groups[0].tolist() == [3, 3, 2, 2]
    assert len(result.groups) == 2
    already = migrate(problem, CHOSEN, shares={"site-1": 1.0})
    assert already.groups.tolist() == [[100]]
    assert already.moved.tolist() == [1.0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"shares": {"site-4": 1.0}}, "a share >= 0 of a voter"),
        ({"shares": {"site-0": 0.5}}, "do not sum to 1"),
        ({"shares": {"site-9": 1.0}}, "unknown site"),
        ({"shares": {"site-0": -1.0, "site-1": 2.0}}, "a share >= 0 of a voter"),
        ({"groups": 0}, "groups"),
        ({"per_step": 0}, "per_step"),
        ({"percents": ()}, "at least one percentile"),
        ({"percents": (101,)}, "percentile"),
    ],
)
def test_bad_input(given, message):
    with pytest.raises(InputError, match=message):
        migrate(question(), CHOSEN, **given)


def test_the_mean_has_no_distributions():
    with pytest.raises(InputError, match="needs the distributions of RTTs"):
        migrate(question().replace(objective=MEAN_LATENCY), CHOSEN)
    with pytest.raises(InputError, match="percentile not simulated"):
        migrate(question(), CHOSEN, percents=(50,)).of(90.0)


def test_the_command_simulates_writes_and_draws(command, tmp_path):
    plan = placement.solve(Problem(placement.load("world27"), replicas=5, voters=5))
    path = tmp_path / "plan.json"
    save_plan(plan, path)
    drawn, rows = tmp_path / "migration.svg", tmp_path / "rows.csv"
    outcome = command(
        "lab", "migrate", path, "--per-step", 25, "--plot", drawn, "-o", rows, "--percents", "50"
    )
    assert outcome.code == 0, outcome.err
    assert f"All leaders at {plan.leader}" in outcome.out
    assert "leaders at" in drawn.read_text()
    assert rows.read_text().splitlines()[0] == "step,moved,mean,p50"
    shares = ["--leader-shares", f"{plan.voters[0]}=0.5", "--leader-shares", f"{plan.voters[1]}=.5"]
    document = command("lab", "migrate", path, *shares, "--spread", 0.2, "--bin-width", 5, "--json")
    steps = json.loads(document.out)["steps"]
    assert steps[-1]["moved"] == 1.0
    assert steps[-1]["mean"] == pytest.approx(plan.mean_latency)
    wrong = command("lab", "migrate", path, "--leader-shares", "nowhere", code=1)
    assert "--leader-shares: not SITE=SHARE" in wrong.err
