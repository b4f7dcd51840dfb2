"""Ends, refusals, tables and summaries of replays, of any objective."""

from __future__ import annotations

import math

import numpy as np
import pytest

import placement
from placement import Configuration, Contingency, Problem
from placement.errors import InputError, UnsupportedError
from placement.evaluation.breakdown import objective_values
from placement.measures import read_measure
from placement.measures.question import percentile_question
from placement.measures.values import value
from placement.model.constraints import Diversity
from placement.overtime.replay import NOBODY, Deployments, Trace, replay
from placement.overtime.replay.replay_report import LeaderRanking, leader_rankings, ranking_text
from placement.overtime.replay.results import gains, summary
from placement.plan import objective_value
from placement.tail import Distributions
from placement.tail.latency_mixture import mixture
from placement.testing import every_configuration, random_instance
from tests.overtime.replay.cases import READS_MOVE, WITHOUT_SHARES, two_towns, world27


def test_ctrl_c_keeps_what_is_done(monkeypatch):
    problem, trace, deployments = world27()

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

    monkeypatch.setattr("placement.overtime.replay.run_replay.TabledReplay", at_once)
    with pytest.raises(KeyboardInterrupt):
        replay(problem, trace, deployments)


def test_ctrl_c_within_a_plan_ends_the_replay(monkeypatch):
    """Methods answer Ctrl-C with their best so far; the replay must not go on with that."""
    import placement.overtime.replay.deployments as module
    from placement.support.status import Termination

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


def test_the_tidy_table():
    problem, trace, deployments = world27(3)
    table = replay(problem, trace, deployments, tiers=(1,)).to_frame()
    assert list(table.columns) == [
        "database", "interval", "tier", "strategy", "leader", "voters", "replicas",
        "operations", "score", "mean_latency", "overhead",
    ]  # fmt: skip
    assert len(table) == 3 * 5 * len(WITHOUT_SHARES)
    assert not table.duplicated(["database", "interval", "tier", "strategy"]).any()
    undefined = table[table["score"].isna()]
    assert set(undefined["strategy"]) == {"closest-to-writes", "preferred"}
    assert undefined["leader"].isna().all()
    assert undefined["voters"].isna().all()
    row = table[(table.strategy == "optimized") & (table.database == "db0")].iloc[0]
    assert row["interval"] == "b"
    assert row["leader"] in row["voters"].split("; ")
    assert row["mean_latency"] == pytest.approx(row["score"] / row["operations"])


def test_money_and_quorums_that_do_not_fit_are_refused():
    problem, trace, deployments = world27(2)
    sites = len(problem.instance.sites)
    prices = placement.Prices(np.ones(sites))
    rich = problem.replace(instance=problem.instance.replace(prices=prices), cost_weight=1.0)
    with pytest.raises(UnsupportedError, match="does not support budget and cost weight"):
        replay(rich, trace, deployments)
    with pytest.raises(InputError, match="fewer voters"):
        replay(problem.replace(quorum=3), trace, deployments)


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


def test_the_summary_by_hand():
    """Scores of `test_two_towns_by_hand`: totals 1701 of optimized, 18 of the oracle, 117, 1701."""
    problem, trace, both = two_towns(READS_MOVE, decay=2.0)
    table = summary(replay(problem, trace, both, tiers=(1,))).set_index("strategy")
    assert table.loc["optimized", "overhead_mean"] == pytest.approx(100 * (1701 / 18 - 1))
    assert table.loc["static", "overhead_max"] == pytest.approx(100 * (117 / 18 - 1))
    assert table.loc["oracle", "mean_latency"] == pytest.approx(18 / 18)
    assert table.loc["average", "mean_latency"] == pytest.approx((808 + 50.5 + 50.5) / 18)
    assert math.isnan(table.loc["average", "moves"])
    assert table.loc["optimized", "moves"] == 1
    assert table.loc["preferred", "databases"] == 0
    assert math.isnan(table.loc["preferred", "overhead_mean"])
    moving = gains(replay(problem, trace, both, tiers=(1,))).iloc[0]
    assert moving["static"] == pytest.approx(100 * (1 - 117 / 1701))
    assert moving["static_average"] == pytest.approx(100 * (1 - 117 / 909))
    assert moving["dynamic"] == pytest.approx(100 * (1 - 18 / 117))
    assert moving["realised"] == pytest.approx(100 * (1 - 1701 / 117))


def test_idle_databases_are_left_out():
    problem, trace, both = two_towns(READS_MOVE, decay=2.0)
    idle = np.zeros_like(trace.counts)
    idle[:, 0] = 1  # the first interval is not replayed
    two = Trace(("busy", "idle"), trace.intervals, np.concatenate([trace.counts, idle]))
    names = problem.instance.sites
    held = Deployments.same(problem.instance, 2, names, names)
    result = replay(problem, two, held, tiers=(1,))
    alone = replay(problem, trace, both, tiers=(1,))
    mine, wanted = summary(result), summary(alone)
    assert mine.equals(wanted)
    assert gains(result)["database"].tolist() == ["busy"]
    over = result.overhead(1, "worst")
    assert (over[1] == 0).all()


def test_strategies_that_were_not_replayed_give_no_gain():
    problem, trace, both = two_towns(READS_MOVE, decay=2.0)
    result = replay(problem, trace, both, tiers=(1,), strategies=["static"])
    row = gains(result).iloc[0]
    assert row["dynamic"] == pytest.approx(100 * (1 - 18 / 117))
    assert row[["static", "static_average", "realised"]].isna().all()
    with pytest.raises(InputError, match=r"not replayed: got 'worst, tier 1'"):
        result.outcome(1, "worst")


@pytest.mark.parametrize("tier", [1, 2])
def test_the_ranking_is_the_plans(tier):
    """Figure 2 after the last interval is `Plan.leaders` of the problem with this decay."""
    problem, trace, held = world27(2)
    ranking = leader_rankings(problem, trace, held, "db0", tier=tier)
    assert [each.interval for each in ranking] == list(trace.intervals)
    instance = problem.instance
    seen = instance.replace(counts=trace.counts[0], intervals=())
    names = [instance.sites[i] for i in np.nonzero(held.replicas[0])[0]]
    votes = [instance.sites[i] for i in np.nonzero(held.voters[0])[0]]
    asked = Problem(
        seen, replicas=names, voters=votes if tier == 1 else len(votes), decay=problem.decay
    )
    last = ranking[-1]
    if tier == 1:
        plan = placement.solve(asked, "leader")
        assert last.leaders == tuple(row.leader for row in plan.leaders)
        assert last.overheads == pytest.approx([row.overhead for row in plan.leaders])
    else:
        scores = {
            name: placement.solve(asked.replace(leader=name), "tier2").score for name in names
        }
        assert last.leaders == tuple(sorted(names, key=lambda name: scores[name]))
        best = min(scores.values())
        assert last.overheads == pytest.approx(
            [100 * (scores[name] / best - 1) for name in last.leaders], abs=1e-9
        )
    result = replay(problem, trace, held, tiers=(tier,))
    used = result.outcome(tier, "optimized").leader[0]
    assert [instance.sites[i] for i in used] == [each.leaders[0] for each in ranking[:-1]]


def test_the_ranking_says_when_nothing_was_issued():
    counts = np.zeros((3, 2, 2))
    counts[1, 1, 0] = 5
    problem, trace, both = two_towns(counts, decay=2.0)
    with_demand = Trace(("db",), trace.intervals, trace.counts)
    ranking = leader_rankings(problem, with_demand, both, "db")
    assert [each.leaders for each in ranking] == [(), ("east", "west"), ("east", "west")]
    assert ranking[1].overheads == (0.0, pytest.approx(9900))
    forgetful = Problem(
        problem.instance.replace(counts=np.ones((3, 2, 2))), replicas=2, voters=2, decay=math.inf
    )
    assert [bool(r.leaders) for r in leader_rankings(forgetful, with_demand, both, "db")] == [
        False, True, False,
    ]  # fmt: skip
    assert ranking_text(ranking[:1]) == "1: nothing issued so far"
    with pytest.raises(InputError, match="no such tier"):
        leader_rankings(forgetful, with_demand, both, "db", tier=3)
    with pytest.raises(InputError, match="no such database"):
        leader_rankings(forgetful, with_demand, both, "nobody")


def test_words_of_the_ranking():
    names = tuple(f"s{i}" for i in range(23))
    line = ranking_text([LeaderRanking("t", names, tuple(float(i) for i in range(23)))], top=23)
    assert "opt s0, 2nd best s1 = 1.00 %, 3rd best s2 = 2.00 %, 4th best" in line
    assert all(f"{n}th best" in line for n in (11, 12, 13, 20))
    assert "21st best s20 = 20.00 %, 22nd best s21 = 21.00 %, 23rd best s22 = 22.00 %" in line


def test_pictures():
    pytest.importorskip("matplotlib")
    from placement.overtime.replay import plots as pictures

    problem, trace, held = world27(3)
    result = replay(problem, trace, held)
    figure = pictures.plot_overheads(result, "db1", title="costs $5 and $6")
    assert [axes.get_title() for axes in figure.axes] == ["tier 1", "tier 2"]
    lines = {line.get_label(): line for line in figure.axes[0].get_lines()}
    assert "closest-to-writes" not in lines, "db1 has no transactions"
    np.testing.assert_array_equal(
        lines["optimized"].get_ydata(), result.overhead(1, "optimized")[1]
    )
    with pytest.raises(InputError, match="not replayed"):
        pictures.plot_overheads(result, "nobody")
    bars = pictures.plot_reduction_histogram({"all": np.array([-3.0, 0.5, 7.0, 55.0])}).axes[0]
    assert sum(bar.get_height() for bar in bars.patches) == pytest.approx(100)
    assert bars.patches[0].get_height() == 50, "what loses counts as no gain"
    ratio = pictures.plot_ratio({"a": np.arange(3.0)}, ("x", "y", "z"), of="a / b", moves=[1])
    assert len(ratio.axes[0].get_lines()) == 3
    panels = {"a": {"tier 1": np.zeros(3)}, "b": {"tier 1": np.ones(3), "tier 2": np.ones(3)}}
    assert len(pictures.plot_reductions(panels, ("x", "y", "z")).axes) == 2


GRID = {"variation": 0.3, "width": 5, "bins": 400}


def goal_of(kind, instance):
    """The objective of a kind on an instance, with RTTs that vary or not."""
    if kind == "worst":
        return Contingency()
    if not instance.varying_rtt:
        return percentile_question(float(kind), Distributions.parametric(instance, **GRID))
    each = [
        Distributions.parametric(instance.at_interval(k), **GRID)
        for k in range(len(instance.intervals))
    ]
    return percentile_question(float(kind), *each)


def alone(problem, counts, interval):
    """The problem of one interval, put together by hand."""
    instance = problem.instance.at_interval(interval, counts)
    goal = problem.objective
    goal = goal.of_intervals(interval)
    return problem.replace(instance=instance, objective=goal, decay=1.0)


def least(problem, configurations):
    """Least objective in ms, by the evaluator."""
    return problem.objective.in_ms(problem, float(objective_values(problem, configurations).min()))


@pytest.mark.parametrize(
    ("kind", "varying"),
    [("95", True), ("worst", False), *(pytest.param(*one, marks=pytest.mark.slow) for one in (
        ("50", False), ("50", True), ("95", False), ("worst", True)))],
)  # fmt: skip
def test_the_oracle_and_the_optimized_pay_the_least_of_all_configurations(kind, varying):
    world = random_instance(8, sites=5, clients=3, intervals=4, varying=varying)
    goal = goal_of(kind, world)
    problem = Problem(world, replicas=4, voters=3, decay=2.0, objective=goal)
    sites = world.sites
    held = Deployments.same(world, 1, sites[:4], sites[:3])
    trace = Trace.of_instance(world)
    result = replay(problem, trace, held, tiers=(1, 2, 3))
    assert result.objective == goal.describe()
    assert result.proven == 1.0
    everything = {
        1: [Configuration.of(leader, (0, 1, 2), (0, 1, 2, 3)) for leader in (0, 1, 2)],
        2: list(every_configuration(problem.replace(replicas=list(sites[:4]), voters=3))),
        3: list(every_configuration(problem)),
    }
    if kind == "worst":  # tier 2 leaves out what breaks the objective; so does tier 1
        everything = {
            tier: [one for one in rows if math.isfinite(objective_value(problem, one))]
            for tier, rows in everything.items()
        }
    for tier, rows in everything.items():
        oracle = result.outcome(tier, "oracle")
        for column in range(3):
            asked = alone(problem, trace.counts[0, column + 1], column + 1)
            per_operation = oracle.score[0, column] / asked.demand.operations
            assert per_operation == pytest.approx(least(asked, rows)), (tier, column)
        for strategy in ("optimized", "static", "smallest-quorum", "closest-to-writes"):
            chosen = result.outcome(tier, strategy)
            for column in range(3):
                asked = alone(problem, trace.counts[0, column + 1], column + 1)
                one = Configuration.of(
                    int(chosen.leader[0, column]),
                    result.sets[chosen.voters[0, column]],
                    result.sets[chosen.replicas[0, column]],
                )
                value = asked.objective.in_ms(asked, objective_value(asked, one))
                assert chosen.score[0, column] == pytest.approx(value * asked.demand.operations)
                if strategy == "optimized":
                    seen = world.replace(
                        counts=world.counts[: column + 1],
                        intervals=world.intervals[: column + 1],
                        **({
                            "client_rtt": world.client_rtt[: column + 1],
                            "site_rtt": world.site_rtt[: column + 1],
                        } if varying else {}),
                    )  # fmt: skip
                    past = problem.replace(
                        instance=seen, objective=goal.of_intervals(slice(column + 1))
                    )
                    value = past.objective.in_ms(past, objective_value(past, one))
                    assert value == pytest.approx(least(past, rows))
        worst = result.total(tier, "worst") if tier < 3 else math.inf
        assert (result.total(tier, "static") <= worst + 1e-6).all() or kind != "worst"
    frame = summary(result)
    assert "value" in frame
    assert "mean_latency" not in frame


def test_leaders_that_are_spread_share_one_percentile():
    """The percentile of a mixture is not the mean of the percentiles."""
    world = random_instance(8, sites=4, clients=3, intervals=2)
    goal = goal_of("90", world)
    problem = Problem(world, replicas=3, voters=3, objective=goal)
    held = Deployments.same(world, 1, world.sites[:3], world.sites[:3])
    trace = Trace.of_instance(world)
    result = replay(problem, trace, held, tiers=(1,), strategies=("average",))
    asked = alone(problem, trace.counts[0, 1], 1)
    each = [Configuration.of(leader, (0, 1, 2), (0, 1, 2)) for leader in (0, 1, 2)]
    (spread,) = goal.distributions
    latency = np.mean([mixture(asked, one, spread) for one in each], axis=0)
    wanted = 5 * int(np.searchsorted(np.cumsum(latency), 0.9 - 1e-12))
    average = result.outcome(1, "average")
    assert average.score[0, 0] == pytest.approx(wanted * asked.demand.operations)
    assert average.leader[0, 0] == NOBODY
    singles = [objective_value(asked, one) for one in each]
    assert min(singles) <= wanted <= max(singles)


def test_the_mixture_of_worst_cases_counts_each_loss_once():
    """A loss hits all groups at once: the mixture is at most the mean of the worst cases."""
    world = random_instance(3, sites=4, clients=4)
    goal = Contingency()
    problem = Problem(world, replicas=4, voters=3, objective=goal)
    each = [one for one in every_configuration(problem) if one.voters == (0, 1, 2)][:3]
    shares = [0.5, 0.3, 0.2]
    names = [f"mean after the loss of {site}" for site in world.sites]
    after = [[value(problem, read_measure(text), one) for text in names] for one in each]
    losses = (np.array(shares) @ np.array(after)).tolist()
    normal = placement.evaluation.objective.MEAN_LATENCY.mixed(problem, each, shares)
    normal /= problem.demand.operations
    mixed = goal.mixed(problem, each, shares)
    assert mixed == pytest.approx(max(normal, *losses))
    assert mixed <= sum(
        p * goal.value(problem, one) for p, one in zip(shares, each, strict=True)
    ) * (1 + 1e-12)


def test_the_command_replays_a_percentile(command, tmp_path):
    asked = (
        "lab", "replay", "world27", "--replicas", "3", "--voters", "3", "--fleet", "1", "--minutes",
        "360", "--percentile", "99", "--spread", "0.2", "--bin-width", "20",
    )  # fmt: skip
    outcome = command(*asked, "--tiers", "1,3", "-o", tmp_path / "rows.csv")
    assert outcome.code == 0, outcome.err
    assert "value ms" in outcome.out
    assert "All tiers were planned by exact; 100.0 % of the oracle's plans" in outcome.out
    assert "minimise p99" in outcome.out
    assert "value" in (tmp_path / "rows.csv").read_text().splitlines()[0].split(",")
    document = command(*asked, "--tiers", "1", "--json").document
    assert document["objective"] == "minimise p99"
    assert all("value" in row for row in document["strategies"])
