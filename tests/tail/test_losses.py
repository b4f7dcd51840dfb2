"""A percentile after the worst loss: the evaluator, enumeration and the exact search."""

import itertools
import json
import math

import numpy as np
import pytest

import placement
from formulations.exact.threshold_search import missing
from formulations.tail import percentile_search
from placement import STANDARD_OPERATIONS, Instance, Operation, Problem, Status
from placement.cli.dispatch import main
from placement.contingency.objective import Contingency
from placement.contingency.percentile_losses import percentile_rows
from placement.errors import InputError, UnsupportedError
from placement.evaluation.objective import score_of
from placement.feasibility.feasible_plans import violations
from placement.io.leader_plan_document import plan_document
from placement.io.plan_file import load_plan, save_plan
from placement.methods.options import Options
from placement.methods.registry import load_method, run
from placement.model.configuration import Configuration
from placement.model.constraints import Diversity
from placement.proof.certificate_check import check_certificate
from placement.tail import Distributions, Percentile
from placement.testing import every_configuration, random_instance
from tests.contingency.test_threshold_search import some_rules
from tests.effort import seeds
from tests.tail.worlds import drawn, drawn_by_interval

COMPILED = missing() is None
EXACT, EXHAUSTIVE = load_method("exact"), load_method("exhaustive")


def question(seed, rules=False, intervals=1):
    """Small worlds: asymmetric RTTs, ties, zero weights, caps, pins, domains, both goals."""
    rng = np.random.default_rng(seed)
    sites = int(rng.integers(4, 7))
    instance = random_instance(
        seed,
        sites=sites,
        clients=int(rng.integers(1, 8)),
        ties=bool(rng.random() < 0.5),
        intervals=intervals,
        varying=intervals > 1,
    )
    if rng.random() < 0.3:
        counts = np.array(instance.counts)
        counts[:, rng.random(counts.shape[1]) < 0.3] = 0
        counts[0, 0, 0] += 1
        instance = instance.replace(counts=counts)
    spread = drawn(instance, seed, bins=30)
    if rng.random() < 0.4 and intervals == 1:
        spread = Distributions.parametric(instance, variation=0.2, width=20, bins=60)
    voters = int(rng.choice([2, 3, 3, 3, 4, 5]))
    voters = min(voters, sites)
    replicas = int(rng.integers(voters, min(sites, voters + 2) + 1))
    extra = {}
    if rng.random() < 0.25:
        extra["diversity"] = (Diversity("region", "replicas", cap=2),)
    if rules:
        extra["diversity"] = some_rules(seed)
    if rng.random() < 0.25:
        extra["pinned"] = (instance.sites[int(rng.integers(sites))],)
    if rng.random() < 0.2:
        extra["non_voters"] = (instance.sites[0],)
    if rng.random() < 0.2:
        extra["leaders"] = tuple(instance.sites[i] for i in (1, 2))
    percentile = Percentile(float(rng.choice([50, 80, 90, 99])), spread)
    if intervals > 1:
        each = drawn_by_interval(instance, seed, bins=30)
        percentile = Percentile.varying(percentile.percent, each)
    goal, limit = "worst", None
    if rng.random() < 0.4:
        goal, limit = "bounded", float(rng.integers(5, 60)) * percentile.distributions.width
    return Problem(
        instance,
        replicas=replicas if rng.random() < 0.7 else (voters, replicas),
        voters=voters,
        objective=Contingency(
            str(rng.choice(["site", "site", "region"])),
            goal,
            limit=limit,
            together=2 if rng.random() < 0.1 and voters == 5 else 1,
            leader_may_move=bool(rng.random() < 0.2),
            percentile=percentile,
        ),
        **extra,
    )


def by_hand(problem, configuration):
    """Value of a configuration by the definition, one survivor after the other."""
    goal, rules = problem.objective, problem.rules
    percentile = goal.percentile
    values = [percentile.value(problem, configuration)]
    for loss in goal.losses(problem):
        if not loss.sites & set(configuration.replicas):
            continue
        voters = [v for v in configuration.voters if v not in loss.sites]
        replicas = [r for r in configuration.replicas if r not in loss.sites]
        if len(voters) < rules.quorum:
            return math.inf
        leaders = [configuration.leader]
        if configuration.leader not in voters or goal.leader_may_move:
            leaders = [v for v in voters if rules.may_lead[v]] or voters
        values.append(
            min(
                percentile.value(problem, Configuration.of(h, voters, replicas), rules.quorum)
                for h in leaders
            )
        )
    if goal.goal == "worst":
        return max(values)
    return values[0] if max(values) <= goal.limit * (1 + 1e-12) else math.inf


def agree(problem, seed):
    """Return whether the exact search agrees with enumeration: status, value and the least mean."""
    truth = run(EXHAUSTIVE, problem, Options())
    plan = run(EXACT, problem, Options())
    assert plan.status is truth.status, seed
    assert not any("not used" in note for note in plan.notes) or not COMPILED
    if truth.found:
        assert plan.objective == plan.bound == truth.objective, seed
        assert plan.mean_latency == pytest.approx(truth.mean_latency, rel=2e-9), seed


@pytest.mark.parametrize("seed", range(5))
def test_value_and_enumeration_by_hand(seed):
    """The evaluator against the definition; enumeration against every configuration."""
    problem = question(seed)
    goal, best = problem.objective, (math.inf, math.inf)
    for configuration in every_configuration(problem):
        value = by_hand(problem, configuration)
        assert goal.value(problem, configuration) == value
        if goal.goal == "worst":  # a loss makes no plan better than nothing lost
            assert value >= goal.percentile.value(problem, configuration)
        if not violations(problem, configuration):
            assert math.isfinite(value)
            best = min(best, (value, score_of(problem, configuration)))
    truth = run(EXHAUSTIVE, problem, Options())
    assert truth.found == math.isfinite(best[0])
    if truth.found:
        assert truth.objective == best[0]
        assert truth.score == pytest.approx(best[1], rel=1e-9)


def agree_on_block(block, size, monkeypatch, **asked):
    """In every other question nothing is known at first: a start hides what is closed wrongly."""
    for seed in range(size * block, size * block + size):
        with monkeypatch.context() as patched:
            if seed % 2:
                patched.setattr(percentile_search.PercentileProof, "_start", lambda self: None)
            agree(question(seed, **asked), seed)


@pytest.mark.parametrize("block", seeds(1, 125))
def test_equal_to_enumeration(block, monkeypatch):
    agree_on_block(block, 8, monkeypatch)


@pytest.mark.parametrize("block", seeds(1, 40))
def test_rtts_that_vary_by_interval(block, monkeypatch):
    """A row of each client, and voters' terms, for every interval."""
    agree_on_block(block, 4, monkeypatch, intervals=2 + block % 2)


@pytest.mark.parametrize("block", seeds(1, 60))
def test_rules_beyond_nested_caps(block, monkeypatch):
    """Minimum numbers of domains, named ones and crossing levels."""
    agree_on_block(block, 4, monkeypatch, rules=True)


@pytest.mark.skipif(not COMPILED, reason="the compiled search was not built")
def test_a_bound_on_the_way_is_never_above_the_optimum(monkeypatch):
    """Searches that stop after some trees; what they then claim must hold."""
    search = percentile_search.PercentileProof
    tree, calls = search._tree, itertools.count(1)

    def stop(self, voters, table):
        if next(calls) % 4 == 0:
            raise TimeoutError
        return tree(self, voters, table)

    monkeypatch.setattr(search, "_tree", stop)
    for seed in range(60, 66):
        problem = question(seed)
        truth, plan = run(EXHAUSTIVE, problem, Options()), run(EXACT, problem, Options())
        if truth.found:
            assert plan.bound <= truth.objective
            assert plan.objective >= truth.objective
        else:
            assert not plan.found


def small(**extra):
    instance = random_instance(3, sites=5, clients=5)
    spread = Distributions.parametric(instance, variation=0.2, width=5)
    return instance, Percentile(99, spread), Problem(instance, replicas=4, voters=3, **extra)


def test_never_better_than_with_nothing_lost():
    _, percentile, problem = small()
    normal = run(EXACT, problem.replace(objective=percentile), Options())
    worst = run(EXACT, problem.replace(objective=Contingency(percentile=percentile)), Options())
    assert worst.status is Status.OPTIMAL
    assert worst.objective >= normal.objective
    limit = worst.objective
    goal = Contingency("site", "bounded", limit=limit, percentile=percentile)
    bounded = run(EXACT, problem.replace(objective=goal), Options())
    assert normal.objective <= bounded.objective <= worst.objective
    # one bin less than the best worst case leaves nothing
    goal = Contingency("site", "bounded", limit=limit - 5, percentile=percentile)
    none = run(EXACT, problem.replace(objective=goal), Options())
    assert none.status is Status.INFEASIBLE


def test_steady_rtts_give_the_steps_of_latency():
    """Without spread the percentile after a loss is that of single operations, by hand."""
    rtt = [[0, 30, 90], [30, 0, 70], [90, 70, 0]]
    names = ["A", "B", "C"]
    instance = Instance(
        names, names, rtt, rtt,
        operations=[Operation("write", direct=1, quorum=1)], counts=[[6], [3], [1]],
    )  # fmt: skip
    spread = Distributions.parametric(instance, variation=0, width=1)
    plan = Configuration.of(0, voters=(0, 1, 2), replicas=(0, 1, 2))
    for percent, value in ((50, 100), (80, 120), (95, 180)):
        goal = Contingency(percentile=Percentile(percent, spread))
        problem = Problem(instance, replicas=3, voters=3, objective=goal)
        # without B, A waits 90 ms for C: 90, 120 and 180 for the clients; without A, B waits 70 ms
        # for C: 100 for the clients at A, 70 and 140
        assert goal.value(problem, plan) == value
        leads = {row.lost: row.leader for row in percentile_rows(problem, goal, plan)}
        assert leads == {
            "A": "B",
            "B": "A",
            "C": "A",
        }


def test_what_cannot_be_asked_is_refused():
    _, percentile, problem = small()
    with pytest.raises(InputError, match="percentiles are not weighted"):
        Contingency("site", "weighted", probability=0.1, percentile=percentile)
    with pytest.raises(InputError, match="the clients of a percentile stay"):
        Contingency(clients_move=True, percentile=percentile)
    with pytest.raises(InputError, match=r"placement\.tail\.Percentile"):
        Contingency(percentile=99)
    question = problem.replace(objective=Contingency(percentile=percentile))
    with pytest.raises(UnsupportedError, match="contingency-percentile"):
        run(load_method("cp-sat"), question, Options())


def test_plan_files_and_groups(tmp_path):
    _, percentile, problem = small()
    goal = Contingency(percentile=percentile)
    problem = problem.replace(objective=goal)
    plan = run(EXACT, problem, Options())
    save_plan(plan, tmp_path / "plan.json")
    read = load_plan(tmp_path / "plan.json")
    assert read.objective == plan.objective
    assert read.problem.objective.percentile.percent == 99
    text = str(plan)
    assert "The p99 when one site is lost" in text
    checked = check_certificate(read)
    assert checked.bound == plan.bound
    assert checked.normal_bound == pytest.approx(plan.score, rel=1e-9)
    rows = plan_document(plan)["tail"]["losses"]
    assert max(row["percentile"] for row in rows) == plan.objective
    # a database whose groups all run on the plan is as fast as the plan
    assert goal.mixed(problem, [plan.configuration] * 2, [0.3, 0.7]) == plan.objective


def test_command_line(capsys):
    args = ["world27", "--replicas", "3", "--voters", "3", "--percentile", "99", "--spread", "0.2"]
    args += ["--bin-width", "20"]
    assert main(["contingency", "leader", *args, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["headline"]["name"] == "Worst p99"
    assert document["headline"]["ms"] == document["headline"]["bound_ms"]
    assert main(["contingency", "leader", *args, "--within", "0.1", "--json"]) == 0
    within = json.loads(capsys.readouterr().out)
    assert within["best_worst_case_ms"] == document["headline"]["ms"]
    assert within["headline"]["ms"] <= document["headline"]["ms"]
    args[args.index("--percentile") : args.index("--spread")] = [
        "--minimise",
        "p99 after the loss of any site",
    ]
    assert main(["compare", *args, "--methods", "exact", "--json"]) == 0
    compared = json.loads(capsys.readouterr().out)
    assert compared["methods"][0]["objective"] == document["headline"]["ms"]
    weighted = ["--percentile", "99", *args[args.index("--spread") :], "--weighted", "0.01"]
    assert main(["contingency", "leader", *args[:5], *weighted]) == 1
    assert "percentiles are not weighted" in capsys.readouterr().err


@pytest.mark.skipif(not COMPILED, reason="the compiled search was not built")
def test_the_time_limit_is_heard_between_any_two_leaders(monkeypatch):
    """Tables of everyone who may take over are worked out, and voters bounded, leader by leader."""
    search = percentile_search.PercentileProof
    seen, led = [], search._least_led

    def count(self, voters):
        seen.append(voters.leader)
        if len(seen) == 3:
            monkeypatch.setattr(search, "_in_time", late)
        return led(self, voters)

    def late(self):
        raise TimeoutError

    monkeypatch.setattr(search, "_least_led", count)
    _, percentile, problem = small()
    plan = run(EXACT, problem.replace(objective=Contingency(percentile=percentile)), Options())
    assert plan.found
    assert plan.status is Status.FEASIBLE
    assert len(seen) == 3


def test_where_only_some_rtts_overflow_no_early_deadline_shows_that_there_is_no_plan():
    """Percentiles behind the horizon may be finite for other plans: every plan is evaluated."""
    client = np.array([[101.5834828, 137.71111816, 280.5215532]])
    site = np.array(
        [
            [0.0, 29.30655851, 0.56733887],
            [136.1503946, 0.0, 243.22374008],
            [271.33939454, 243.93948303, 0.0],
        ]
    )
    instance = Instance(
        sites=("a", "b", "c"),
        clients=("x",),
        client_rtt=client,
        site_rtt=site,
        counts=np.array([[[0.0, 1.0, 1.0, 0.0, 11.0]]]),
        operations=STANDARD_OPERATIONS,
    )
    spread = Distributions.parametric(instance, variation=0.3, width=10, bins=60)
    goal = Contingency("site", "worst", percentile=Percentile(99, spread))
    plan = placement.solve(Problem(instance, replicas=3, voters=3, objective=goal))
    assert plan.status is Status.INFEASIBLE
    assert check_certificate(plan).bound == math.inf
