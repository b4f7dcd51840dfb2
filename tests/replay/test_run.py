"""Replays against the evaluator, the methods, brute force, and what nobody could have known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import placement
from heuristics.fleet import Fleet, tier1, tier2
from placement import Instance, Problem
from placement.constraints import Diversity
from placement.demand import aggregate
from placement.errors import InputError, UnsupportedError
from placement.replay import (
    NOBODY,
    STRATEGIES,
    Deployments,
    Replay,
    Trace,
    interval_scores,
    replay,
    summary,
)
from placement.replay.ask import at_interval
from placement.score import majority, score
from tests.strategies import instances

CAUSAL = ("optimized", "closest-to-writes", "smallest-quorum", "average", "preferred")


@st.composite
def cases(draw, *, varying=None, max_sites=6, decays=(1.0, 1.5, 2.0, math.inf)):
    """Draw a problem, a trace of two databases (one of them idle now and then), deployments."""
    vary = draw(st.booleans(), label="varying RTTs") if varying is None else varying
    world = draw(instances(max_sites=max_sites, max_intervals=5, varying_rtt=vary))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="seed"))
    counts = world.counts
    if len(counts) == 1:
        counts = np.concatenate([counts, counts[::-1] * 2])
        world = world.replace(counts=counts, intervals=())
    other = rng.permuted(counts, axis=1)
    other[rng.random(len(other)) < 0.3] = 0
    trace = Trace(("a", "b"), world.intervals, np.stack([counts, other]))
    sites = len(world.sites)
    replicas = int(rng.integers(1, sites + 1))
    voters = int(rng.integers(1, replicas + 1))
    held = np.zeros((2, sites), dtype=bool)
    votes = held.copy()
    wishes = np.full(2, NOBODY)
    for database in range(2):
        chosen = rng.permutation(sites)[:replicas]
        held[database, chosen] = True
        votes[database, chosen[:voters]] = True
        if rng.random() < 0.5:
            wishes[database] = chosen[0]
    decay = draw(st.sampled_from(decays), label="decay")
    if not (counts[-1].any() or math.isfinite(decay)):
        decay = 2.0
    quorum = None if rng.random() < 0.5 else int(rng.integers(1, voters + 1))
    problem = Problem(world, replicas=replicas, voters=voters, quorum=quorum, decay=decay)
    return problem, trace, Deployments(held, votes, wishes)


def paid(problem: Problem, counts, interval: int, leader, voters, replicas) -> float:
    """One configuration in one interval, by the evaluator."""
    if not counts.any():
        return 0.0
    demand = aggregate(at_interval(problem.instance, counts, interval))
    needed = problem.rules.quorum if problem.quorum is not None else majority(len(voters))
    return score(demand, int(leader), list(voters), list(replicas), needed)


def check_scores(problem: Problem, trace: Trace, result: Replay) -> None:
    """Every score is the evaluator's score of the configuration named beside it."""
    for outcome in result.outcomes:
        for database in range(len(trace)):
            for column in range(len(result.intervals)):
                code = int(outcome.voters[database, column])
                value = float(outcome.score[database, column])
                if code < 0:
                    assert math.isnan(value)
                    assert outcome.strategy in ("closest-to-writes", "preferred", "smallest-quorum")
                    continue
                voters = result.sets[code]
                replicas = result.sets[int(outcome.replicas[database, column])]
                assert set(voters) <= set(replicas)
                counts = trace.counts[database, column + 1]
                leader = int(outcome.leader[database, column])
                leaders = [leader] if leader != NOBODY else list(voters)
                assert (leader == NOBODY) == (outcome.strategy == "average")
                assert set(leaders) <= set(voters)
                wanted = np.mean(
                    [paid(problem, counts, column + 1, ell, voters, replicas) for ell in leaders]
                )
                assert value == pytest.approx(wanted, rel=1e-9, abs=1e-9)


@settings(max_examples=60)
@given(case=cases())
def test_every_score_is_the_evaluators_in_tiers_1_and_2(case):
    problem, trace, deployments = case
    result = replay(problem, trace, deployments)
    assert [(o.tier, o.strategy) for o in result.outcomes] == [
        (tier, name) for tier in (1, 2) for name in STRATEGIES
    ]
    check_scores(problem, trace, result)


@settings(max_examples=15, deadline=None)
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


@settings(max_examples=5, deadline=None)
@given(case=cases(max_sites=3, varying=True))
def test_tier_3_with_rtts_that_vary(case):
    problem, trace, deployments = case
    result = replay(problem, trace, deployments, tiers=(3,), method="exhaustive")
    check_scores(problem, trace, result)


@settings(max_examples=60)
@given(case=cases())
def test_nobody_beats_the_oracle_and_constants_lie_between_best_and_worst(case):
    problem, trace, deployments = case
    result = replay(problem, trace, deployments)
    for tier in (1, 2):
        oracle = result.outcome(tier, "oracle").score
        for name in STRATEGIES:
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


@settings(max_examples=40)
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


@settings(max_examples=40)
@given(case=cases(varying=False, decays=(1.0, 1.5, 2.0)))
def test_the_optimized_leader_is_what_the_methods_answer(case):
    """Against the fleet's algorithms and, one by one, methods `leader` and `tier2`."""
    problem, trace, deployments = case
    instance = problem.instance
    fleet = Fleet(
        instance.client_rtt,
        instance.site_rtt,
        trace.counts,
        np.array([o.coefficients for o in instance.operations]),
        deployments.replicas,
    )
    result = replay(problem, trace, deployments)
    needed = None if problem.quorum is None else np.full(2, problem.quorum)
    one = tier1(fleet, deployments.voters, quorum=needed, decay=problem.decay)
    two = tier2(fleet, deployments.voters.sum(axis=1), quorum=needed, decay=problem.decay)
    for tier, leaders in ((1, one), (2, two)):
        outcome = result.outcome(tier, "optimized")
        for database in range(2):
            for column in range(len(result.intervals)):
                known = leaders.leader[database, column]
                if known == -1:
                    continue  # nothing was issued so far
                mine = int(outcome.leader[database, column])
                row = leaders.scores[database, column]
                assert row[mine] == pytest.approx(row[known], rel=1e-9, abs=1e-9)
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


@settings(max_examples=40)
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


@settings(max_examples=30)
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
                    at_interval(problem.instance, counts, column + 1),
                    replicas=[names[s] for s in np.nonzero(deployments.replicas[database])[0]],
                    voters=int(deployments.voters[database].sum()),
                    quorum=problem.quorum,
                    diversity=rules,
                ),
                "tier2",
            )
            found = float(result.outcome(2, "oracle").score[database, column])
            assert found == pytest.approx(plan.score, rel=1e-9, abs=1e-9)


# --- worked by hand ----------------------------------------------------------------------------


def two_towns(counts, **asked: object) -> tuple[Problem, Trace, Deployments]:
    """Sites west and east 100 ms apart, a client in each at 1 ms; strong reads and writes."""
    operations = (placement.STANDARD_OPERATIONS[2], placement.STANDARD_OPERATIONS[3])
    near = np.array([[1.0, 100.0], [100.0, 1.0]])
    world = Instance(
        sites=("west", "east"),
        clients=("w", "e"),
        client_rtt=near,
        site_rtt=np.array([[0.0, 100.0], [100.0, 0.0]]),
        counts=counts,
        operations=operations,
    )
    problem = Problem(world, replicas=2, voters=2, **asked)
    both = Deployments.same(world, 1, ("west", "east"), ("west", "east"))
    return problem, Trace.of_instance(world), both


READS_MOVE = np.array(
    [
        [[10, 2], [0, 0]],  # west
        [[0, 0], [16, 0]],  # east
        [[0, 0], [1, 0]],
        [[0, 0], [0, 0]],  # nothing
        [[1, 0], [0, 0]],
    ]
)


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


def test_writes_pay_for_the_quorum():
    counts = np.zeros((2, 2, 2))
    counts[:, 0, 1] = 3  # three writes from the west: 1 ms to the leader, 100 ms for the other vote
    problem, trace, both = two_towns(counts, decay=2.0)
    result = replay(problem, trace, both, tiers=(1, 2))
    for tier in (1, 2):
        assert result.outcome(tier, "optimized").score.tolist() == [[303.0]]
    alone = replay(problem.replace(quorum=1), trace, both, tiers=(1,))
    assert alone.outcome(1, "optimized").score.tolist() == [[3.0]]


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


def test_rtts_that_vary_are_known_only_afterwards():
    """The quorum of tier 2 is chosen by the RTTs of the interval before, and paid with the new."""
    rtt = np.array([[0.0, 10.0, 20.0], [10.0, 0.0, 30.0], [20.0, 30.0, 0.0]])
    later = np.array([[0.0, 90.0, 20.0], [90.0, 0.0, 30.0], [20.0, 30.0, 0.0]])
    world = Instance(
        sites=("a", "b", "c"),
        clients=("k",),
        client_rtt=np.array([[1.0, 300.0, 300.0]]),
        site_rtt=np.stack([rtt, later, later]),
        counts=np.ones((3, 1, 1)),
        operations=(placement.STANDARD_OPERATIONS[3],),
    )
    problem = Problem(world, replicas=3, voters=2, decay=2.0)
    everyone = Deployments.same(world, 1, world.sites, ("a", "b"))
    result = replay(problem, Trace.of_instance(world), everyone)
    assert result.outcome(2, "optimized").score.tolist() == [[91.0, 21.0]]
    assert result.outcome(2, "oracle").score.tolist() == [[21.0, 21.0]]
    assert result.outcome(2, "static").score.tolist() == [[21.0, 21.0]]
    assert result.outcome(1, "optimized").score.tolist() == [[91.0, 91.0]]


# --- blocks, interruptions, refusals -----------------------------------------------------------


def test_blocks_do_not_matter(monkeypatch):
    problem, trace, deployments = world27()
    whole = replay(problem, trace, deployments)
    monkeypatch.setattr("placement.replay.run.BLOCK", 3)
    parts = replay(problem, trace, deployments)
    one, two = whole.to_frame(), parts.to_frame()
    for column in ("database", "interval", "strategy", "leader", "voters", "replicas"):
        assert one[column].astype(object).equals(two[column].astype(object)), column
    np.testing.assert_array_equal(one["score"], two["score"])


def world27(databases: int = 7) -> tuple[Problem, Trace, Deployments]:
    world = placement.load("world27")
    rng = np.random.default_rng(5)
    counts = rng.poisson(20.0, (databases, 6, len(world.clients), 5)).astype(float)
    counts[1, :, :, 3:] = 0
    problem = Problem(world, replicas=5, voters=3, decay=2.0)
    held = np.zeros((databases, 27), dtype=bool)
    votes = held.copy()
    for row in range(databases):
        chosen = rng.permutation(27)[: 4 + row % 3]
        held[row, chosen], votes[row, chosen[: 3 - row % 2]] = True, True
    names = tuple(f"db{i}" for i in range(databases))
    trace = Trace(names, tuple("abcdef"), counts)
    return problem, trace, Deployments(held, votes, np.full(databases, NOBODY))


def test_ctrl_c_keeps_what_is_done(monkeypatch):
    problem, trace, deployments = world27()
    monkeypatch.setattr("placement.replay.run.BLOCK", 2)

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

    monkeypatch.setattr("placement.replay.run.parts_of", at_once)
    with pytest.raises(KeyboardInterrupt):
        replay(problem, trace, deployments)


def test_ctrl_c_within_a_plan_ends_the_replay(monkeypatch):
    """Methods answer Ctrl-C with their best so far; the replay must not go on with that."""
    import placement.replay.ask as module
    from placement.status import Termination

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


def test_money_and_quorums_that_do_not_fit_are_refused():
    problem, trace, deployments = world27(2)
    sites = len(problem.instance.sites)
    prices = placement.Prices(np.ones(sites))
    rich = problem.replace(instance=problem.instance.replace(prices=prices), cost_weight=1.0)
    with pytest.raises(UnsupportedError, match="not money"):
        replay(rich, trace, deployments)
    with pytest.raises(InputError, match="fewer voters"):
        replay(problem.replace(quorum=3), trace, deployments)


def test_a_preferred_leader_that_may_not_lead_is_no_preference():
    problem, trace, both = two_towns(READS_MOVE, decay=2.0)
    wish = both.preferring(problem.instance, ["west"])
    result = replay(problem.replace(leaders=["east"]), trace, wish, tiers=(1, 2, 3))
    for tier in (1, 2, 3):
        assert np.isnan(result.outcome(tier, "preferred").score).all()
        assert (result.outcome(tier, "optimized").leader == 1).all()


def test_the_tidy_table():
    problem, trace, deployments = world27(3)
    table = replay(problem, trace, deployments, tiers=(1,)).to_frame()
    assert list(table.columns) == [
        "database", "interval", "tier", "strategy", "leader", "voters", "replicas",
        "operations", "score", "mean_latency", "overhead",
    ]  # fmt: skip
    assert len(table) == 3 * 5 * len(STRATEGIES)
    assert not table.duplicated(["database", "interval", "tier", "strategy"]).any()
    undefined = table[table["score"].isna()]
    assert set(undefined["strategy"]) == {"closest-to-writes", "preferred"}
    assert undefined["leader"].isna().all()
    assert undefined["voters"].isna().all()
    row = table[(table.strategy == "optimized") & (table.database == "db0")].iloc[0]
    assert row["interval"] == "b"
    assert row["leader"] in row["voters"].split("; ")
    assert row["mean_latency"] == pytest.approx(row["score"] / row["operations"])


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


@settings(max_examples=20)
@given(case=cases())
def test_scores_of_all_leaders(case):
    """What stability works on: the oracle is the least, the worst constant the greatest sum."""
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
