"""Plans of quorum stores and ``placement lab quorum``: files, checks, exports, comparisons."""

import csv
import itertools
import json
import math
import re

import numpy as np
import pytest

import placement
from formulations.quorumstore.one_key import place
from placement.errors import InputError, LimitError
from placement.io import load_any_plan, load_plan, save_instance, save_plan
from placement.quorumstore import Goal, QuorumProblem, StoreRules, Target, evaluate, loss_thresholds
from placement.quorumstore.problem import LossScope, Redirect, site_requests
from placement.quorumstore.refutation_tree import (
    ScenarioBounds,
    prove_bound,
    refutation_tree,
    replay,
)
from placement.support.status import Status
from tests.effort import seeds


def key(seed=0, sites=7, **changes):
    rng = np.random.default_rng(seed)
    rtt = rng.integers(5, 200, (sites, sites)).astype(float)
    np.fill_diagonal(rtt, 0.5)
    asked = {
        "sites": tuple(f"dc-{i}" for i in range(sites)),
        "regions": tuple("abc"[i % 3] for i in range(sites)),
        "rules": StoreRules(contingency=True, max_replicas=4),
        **changes,
    }
    return QuorumProblem(rtt, rng.integers(0, 50, sites), rng.integers(0, 20, sites), **asked)


PROBLEMS = [
    key(0),
    key(1, rules=StoreRules(contingency=False, max_replicas=5)),
    key(2, rules=StoreRules(True, redirect=Redirect.CLOSEST, replicas=4, write_quorum=3)),
    key(3, rules=StoreRules(True, max_replicas=5, loss=LossScope.REGION, distinct_regions=False)),
    key(4, goal=Goal(Target.WEIGHTED, read_weight=2.0, normal_weight=1.0, worst_weight=0.5)),
    key(5, goal=Goal(Target.READS, write_bound=150.0)),
    key(7, goal=Goal(read_bound=1.0)),
]


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_plan_reads_back_and_is_proved_again(problem, tmp_path, command):
    plan = place(problem)
    assert plan.status in (Status.OPTIMAL, Status.INFEASIBLE)
    path = save_plan(plan, tmp_path / "plan.json")
    again = load_any_plan(path)
    assert again.configuration == plan.configuration
    assert (again.value, again.bound, again.status) == (plan.value, plan.bound, plan.status)
    assert again.reasons == plan.reasons
    for field in ("sites", "regions", "name", "rules", "goal"):
        assert getattr(again.problem, field) == getattr(problem, field)
    for field in ("rtt", "reads", "writes"):
        np.testing.assert_array_equal(getattr(again.problem, field), getattr(problem, field))
    second = save_plan(again, tmp_path / "second.json")
    assert second.read_text() == path.read_text()
    outcome = command("check", path, "--json", code=0)
    assert outcome.document["proved"] is True


def test_a_claim_that_is_no_optimum_is_refused(tmp_path, command):
    problem = key(0)
    best = place(problem)
    worse = next(
        plan
        for replicas in ((0, 1, 2), (3, 4, 5), (4, 5, 6))
        for plan in [evaluate(problem, [problem.sites[i] for i in replicas], 2, 2)]
        if plan.value > best.value * 1.01
    )
    path = save_plan(worse, tmp_path / "worse.json")
    assert command("check", path).code == 2
    document = json.loads(path.read_text())
    document.update(status="optimal", bound=document["value"], gap=0.0)
    path.write_text(json.dumps(document))
    outcome = command("check", path, code=2)
    assert "below the bound" in outcome.out
    with pytest.raises(LimitError, match="replica sets"):
        prove_bound(problem, best.bound, work=10)


def large_store(sites=50, failures=1, replicas=5, **changes):
    """A store in which all RTTs are equal: nothing is ruled out in normal operation."""
    rtt = np.full((sites, sites), 10.0) - 9.5 * np.eye(sites)
    rules = StoreRules(True, replicas=replicas, failures=failures, **changes)
    return QuorumProblem(rtt, np.ones(sites), np.ones(sites), rules=rules)


@pytest.mark.parametrize(("failures", "replicas"), [(9, 19), (12, 25)])
def test_the_losses_of_a_file_are_counted_before_they_are_listed(
    failures, replicas, tmp_path, command
):
    """C(60, 9) losses from one number: memory without end, and --work was not heard."""
    problem = large_store(60, failures, replicas)
    quorum = replicas - failures
    path = tmp_path / "plan.json"
    known = evaluate(large_store(60, 1, replicas), problem.sites[:replicas], quorum, quorum)
    document = json.loads(save_plan(known, path).read_text())
    document["problem"]["rules"]["failures"] = failures
    path.write_text(json.dumps(document))
    for verb in (
        ("check", path),
        ("show", path),
        ("check", path, "--work", 1),
        ("report", path, "-o", tmp_path / "page.html"),
    ):
        outcome = command(*verb, code=1)
        assert "plan.json" in outcome.err
        assert "evaluations" in outcome.err
        assert "--work" in outcome.err
    with pytest.raises(LimitError, match="losses of"):
        problem.losses  # noqa: B018  # a property that lists


def test_a_plan_without_certificate_is_proved_by_bounds_within_the_limit(tmp_path, command):
    """C(50, 5) sets after C(50, 2) losses took minutes one by one."""
    problem = large_store(50, 2)
    plan = evaluate(problem, problem.sites[:5], 3, 3)
    path = tmp_path / "plan.json"
    document = json.loads(save_plan(plan, path).read_text())
    document.update(status="optimal", bound=plan.value, gap=0.0)
    path.write_text(json.dumps(document))
    outcome = command("check", path, "--json", code=0)
    assert outcome.document["sets"] == outcome.document["by_normal"] == math.comb(50, 5)
    for verb in (("check", path), ("show", path), ("report", path, "-o", tmp_path / "page.html")):
        assert command(*verb, "--work", 1).code == 1
    assert command("show", path).code == 0


@pytest.mark.parametrize("seed", range(8))
def test_a_certificate_is_counted_before_it_is_followed(seed):
    problem = key(seed, rules=StoreRules(True, max_replicas=4))
    plan = place(problem)
    assert plan.certificate is not None
    with pytest.raises(LimitError, match="work"):
        replay(problem, plan.bound, plan.certificate, work=10 * plan.certificate.steps)


def test_the_evaluations_of_a_certificate_are_counted():
    """Each of C(9, 5) sets is evaluated in normal operation and in C(5, 2) losses of its sites."""
    problem = key(sites=9, rules=StoreRules(True, replicas=5, failures=2))
    tree = refutation_tree(problem, math.inf)
    evaluated = replay(problem, math.inf, tree).evaluated
    assert evaluated == math.comb(9, 5) * len(problem.pairs)
    with pytest.raises(LimitError, match="work"):
        replay(problem, math.inf, tree, work=evaluated * (1 + math.comb(5, 2)) * (9 * 5 // 8))


@pytest.mark.parametrize("loss", LossScope)
@pytest.mark.parametrize("failures", [0, 1, 2, 6, 7, 8])
def test_losses_are_counted_without_a_list(loss, failures):
    if loss is LossScope.REGION and failures != 1:
        return
    problem = key(rules=StoreRules(True, failures=failures, loss=loss))
    assert problem.loss_count == len(problem.losses)


@pytest.mark.parametrize(
    ("place_of", "value", "message"),
    [
        (("value",), 1.0, "value"),
        (("mean_latency_ms",), 1.0, "mean_latency_ms"),
        (("losses", 0, "read_ms"), 999.0, "losses"),
        (("replicas",), ["dc-0", "dc-0", "dc-1"], "replicas"),
        (("replicas",), ["dc-0", "nowhere", "dc-1"], "replicas"),
        (("read_quorum",), 9, "read_quorum"),
        (("read_quorum",), 1, "replicas"),
        (("bound",), 1e9, "bound"),
        (("status",), "feasible", "status"),
        (("status",), "great", "status"),
        (("kind",), "cache", "kind"),
        (("format",), "a plan", "format"),
        (("problem", "rtt", 0, 1), -1.0, "rtt"),
        (("problem", "rtt", 0, 1), "x", "rtt"),
        (("problem", "reads", 0), 0.5, "reads"),
        (("problem", "rules", "redirect"), "fly", "redirect"),
        (("problem", "rules", "contingency"), 1, "contingency"),
        (("problem", "rules", "max_replica"), 4, "max_replica"),
        (("problem", "goal", "target"), "speed", "target"),
        (("problem", "goal", "read_weight"), -1.0, "read_weight"),
        (("extra",), 1, "extra"),
    ],
)
def test_corrupted_files_are_refused_by_field(tmp_path, place_of, value, message):
    path = save_plan(place(key(0)), tmp_path / "plan.json")
    document = json.loads(path.read_text())
    table = document
    for step in place_of[:-1]:
        table = table[step]
    table[place_of[-1]] = value
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match=message) as caught:
        load_any_plan(path)
    assert str(path) in str(caught.value)


def test_a_leader_plan_is_another_kind(tmp_path):
    path = save_plan(place(key(0)), tmp_path / "quorum.json")
    with pytest.raises(InputError, match="not a plan with a leader"):
        load_plan(path)
    leader = placement.solve(placement.Problem(placement.load("world27"), replicas=3, voters=3))
    other = save_plan(leader, tmp_path / "leader.json")
    assert load_any_plan(other).leader == leader.leader


def test_the_command_saves_checks_exports_and_reports(command, tmp_path):
    plan, page = tmp_path / "plan.json", tmp_path / "page.html"
    asked = ("--reads", "us-east-1=80", "--reads", "eu-west-1=40", "--writes", "us-east-1=9",
             "--n-max", 3)  # fmt: skip
    outcome = command("lab", "quorum", "aws", *asked, "-o", plan, code=0)
    assert "optimal (N-1C" in outcome.out
    assert f"Written to {plan}" in outcome.out
    proof = command("check", plan).out
    assert proof.startswith("proved: no configuration has a value below")
    assert "bounds of the certificate" in proof
    for system in ("cassandra", "scylla"):
        text = command("db", "export", system, plan, "--database", "shop", code=0)
        assert "NetworkTopologyStrategy" in text.out
    assert command("report", plan, "-o", page).code == 0
    html = page.read_text()
    assert "with a certificate" in html
    for name in load_any_plan(plan).replicas:
        assert name in html
    assert command("lab", "quorum", "aws", *asked, "-o", plan).code == 1
    front = command("lab", "quorum", "aws", *asked, "--envelope", "-o", plan)
    assert "a range of optima is no plan" in front.err


def test_folders_and_long_tables_are_taken(command, tmp_path):
    instance = placement.testing.random_instance(3, sites=5, clients=4)
    save_instance(instance, tmp_path / "world")
    rows = [
        f"{a},{b},{float(instance.site_rtt[i, j])!r}"
        for i, a in enumerate(instance.sites)
        for j, b in enumerate(instance.sites)
        if i != j
    ]
    long = tmp_path / "long.csv"
    long.write_text("src,dst,rtt\n" + "\n".join(rows) + "\n")
    asked = ("--reads", "site-0=8", "--writes", "site-2=3", "--json")
    folder = command("lab", "quorum", tmp_path / "world", *asked).document
    table = command("lab", "quorum", long, *asked).document
    assert folder["replicas"] == table["replicas"]
    assert folder["value"] == table["value"]
    level = command(
        "lab", "quorum", tmp_path / "world", *asked, "--regions", "region",
        "--distinct-regions",
    )  # fmt: skip
    assert level.code in (0, 2), level.err
    long.write_text("src,dst,rtt\n" + "\n".join(rows[1:]) + "\n")
    missing = command("lab", "quorum", long, *asked, code=1)
    assert "have no RTT" in missing.err


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_certificate_accounts_for_every_set(problem):
    """Counted apart: the sets ruled out by the certificate are above the value one by one."""
    plan = place(problem)
    assert plan.certified
    account = replay(problem, plan.bound, plan.certificate)
    every = sum(math.comb(len(problem.sites), size) for size, _, _ in problem.pairs)
    assert account.sets == every
    assert every == (account.by_rules + account.by_normal + account.by_losses + account.evaluated)
    apart = prove_bound(problem, float("inf"))
    assert apart.sets == every
    assert account.evaluated <= apart.evaluated
    assert account.by_rules <= apart.by_rules
    assert account.least >= apart.least
    assert plan.value == pytest.approx(apart.least) or not math.isfinite(plan.value)


@pytest.mark.parametrize("seed", seeds(6, 60))
def test_no_prefix_is_ruled_out_by_a_bound_that_does_not_hold(seed):
    """A bound below the optimum is proved, one above it is not, and each reason is exact."""
    rng = np.random.default_rng([77, seed])
    rules = StoreRules(
        bool(rng.integers(4)),
        redirect=Redirect(str(rng.choice(["keep", "closest", "hop"]))),
        failures=int(rng.integers(1, 3)),
        max_replicas=5,
        distinct_regions=False,
        read_fraction=float(rng.choice([0.5, 0.9, 1.0])),
    )
    problem = key(seed, rules=rules)
    best = prove_bound(problem, float("inf")).least
    for factor in (0.7, 1.0):
        tree = refutation_tree(problem, best * factor)
        account = replay(problem, best * factor, tree)
        assert account.least >= best * factor * (1 - 1e-9)
    too_much = refutation_tree(problem, best * 1.05)
    assert replay(problem, best * 1.05, too_much).least == best
    bounds = ScenarioBounds(problem, best)
    for size, read, write in problem.pairs:
        sets = np.array(list(itertools.combinations(range(7), size)))
        thresholds = loss_thresholds(problem, sets, read, write)
        for scenario in range(len(bounds.lost)):
            for side, quorum in enumerate((read, write)):
                refuted = bounds.refutes(sets, size, quorum, scenario, side)
                np.testing.assert_array_equal(refuted, thresholds[side][scenario] > best)


def changed(folder, change):
    path = save_plan(place(key(0)), folder / "plan.json")
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize(
    ("change", "flaw"),
    [
        (lambda tree: tree["order"].reverse(), "ruled out|numbers for"),
        (lambda tree: tree["order"].__setitem__(0, tree["order"][1]), "once"),
        (lambda tree: tree["prefixes"][0]["reasons"][0].pop(), "numbers for"),
        (lambda tree: tree["prefixes"][0]["reasons"].pop(), "lengths"),
        (lambda tree: tree["prefixes"][0]["reasons"][0].__setitem__(0, 99), "99"),
        (lambda tree: tree["prefixes"][0]["reasons"][0].__setitem__(4, 2), "not ruled out by 2"),
        (lambda tree: tree["prefixes"][0]["reasons"][0].__setitem__(4, 1), "not ruled out by 1"),
    ],
)
def test_a_certificate_with_a_flaw_is_refused(tmp_path, command, change, flaw):
    path = changed(tmp_path, lambda document: change(document["certificate"]))
    outcome = command("check", path, code=2)
    assert re.search(flaw, outcome.out)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tree: tree["order"].__setitem__(0, "nowhere"), "order"),
        (lambda tree: tree["prefixes"].pop(), "prefixes"),
        (lambda tree: tree["prefixes"][0].update(r=1), "n"),
        (lambda tree: tree["prefixes"][0]["reasons"][0].__setitem__(0, -1), "reasons"),
        (lambda tree: tree["prefixes"][0]["reasons"][0].__setitem__(0, True), "reasons"),
        (lambda tree: tree.update(more=1), "more"),
    ],
)
def test_a_certificate_of_another_form_is_bad_input(tmp_path, change, message):
    path = changed(tmp_path, lambda document: change(document["certificate"]))
    with pytest.raises(InputError, match=message):
        load_any_plan(path)


def test_a_question_that_is_too_large_has_no_certificate(tmp_path, command):
    problem = key(0)
    assert refutation_tree(problem, 10.0, most=5) is None
    plan = place(problem, "enumeration", time_limit=0.0)  # proven, then no time for a certificate
    assert plan.status is Status.OPTIMAL
    path = save_plan(plan, tmp_path / "bare.json")
    assert '"certificate": null' in path.read_text()
    outcome = command("check", path, code=0)
    assert "certificate" not in outcome.out


KEY = ("--reads", "s0=80", "--reads", "s5=40", "--writes", "s0=9", "--n-max", 3)


@pytest.fixture
def store(tmp_path):
    rtt = np.random.default_rng(4).integers(5, 200, (9, 9))
    np.fill_diagonal(rtt, 0)
    names = [f"s{i}" for i in range(9)]
    lines = [",".join(["site", *names])]
    lines += [",".join([name, *map(str, row)]) for name, row in zip(names, rtt, strict=True)]
    path = tmp_path / "rtt.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_all_methods_are_measured_against_the_best_bound(command, store, tmp_path):
    target = tmp_path / "methods.csv"
    outcome = command("lab", "quorum", store, *KEY, "--compare", "--json", "-o", target, code=0)
    rows = {row["method"]: row for row in outcome.document["rows"]}
    alone = command("lab", "quorum", store, *KEY, "--json").document
    for name in ("enumeration", "cp-sat", "milp"):
        assert rows[name]["status"] == "optimal"
        assert rows[name]["value"] == alone["value"]
        assert rows[name]["gap"] == 0
    for name in ("coverage-greedy", "local-search", "busiest-sites", "random"):
        row = rows[name]
        assert row["gap"] == pytest.approx(1 - alone["value"] / row["value"])
        assert row["value"] >= alone["value"]
        assert row["bound"] <= alone["value"]
    assert rows["random"]["gap"] > 0
    with target.open(newline="", encoding="utf-8") as file:
        assert [row["method"] for row in csv.DictReader(file)] == list(rows)


def test_a_key_without_a_plan_is_infeasible_in_every_row_that_proves_it(command, store):
    outcome = command("lab", "quorum", store, *KEY, "--read-limit", 1, "--compare", code=2)
    assert "infeasible" in outcome.out
    few = command("lab", "quorum", store, *KEY[:-1], 2, "--compare", code=2)
    assert "refused" in few.out


def test_the_demand_of_a_folder_enters_at_the_closest_sites(command, tmp_path):
    instance = placement.testing.random_instance(5, sites=5, clients=7)
    save_instance(instance, tmp_path / "world")
    reads, writes = site_requests(instance)
    issued = instance.counts.sum(axis=0)
    home = instance.client_rtt.argmin(axis=1)
    by_hand = np.zeros((2, 5))
    for client, row in enumerate(issued):
        for operation, count in zip(instance.operations, row, strict=True):
            by_hand[int(operation.is_transaction), home[client]] += count
    scale = 1.0 if (by_hand == np.floor(by_hand)).all() else 1e6 / by_hand.sum()
    np.testing.assert_array_equal(reads, np.rint(by_hand[0] * scale))
    np.testing.assert_array_equal(writes, np.rint(by_hand[1] * scale))
    own = command("lab", "quorum", tmp_path / "world", "--own-demand", "--json")
    given = [
        option
        for side, counts in (("reads", reads), ("writes", writes))
        for site, count in zip(instance.sites, counts, strict=True)
        for option in (f"--{side}", f"{site}={count}")
    ]
    named = command("lab", "quorum", tmp_path / "world", *given, "--json")
    assert own.document["value"] == named.document["value"]
    assert own.document["replicas"] == named.document["replicas"]


def test_fractions_are_scaled_to_a_million_requests():
    instance = placement.testing.random_instance(5, sites=4, clients=4)
    halves = instance.replace(counts=instance.counts * 0.37)
    reads, writes = site_requests(halves)
    assert abs(int(reads.sum() + writes.sum()) - 1_000_000) <= 8


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--own-demand", "--reads", "us-east-1=5"), "the demand is given twice"),
        (("--own-demand", "--keys", "keys.csv"), "one key and a table"),
    ],
)
def test_two_demands_are_refused(command, more, message):
    outcome = command("lab", "quorum", "aws", *more, code=1)
    assert message in outcome.err


def test_a_table_has_no_demand_of_its_own(command, tmp_path):
    table = tmp_path / "rtt.csv"
    table.write_text("site,a,b,c\na,0,5,9\nb,5,0,7\nc,9,7,0\n")
    outcome = command("lab", "quorum", table, "--own-demand", code=1)
    assert "has no demand" in outcome.err


@pytest.fixture
def rtts(tmp_path):
    path = tmp_path / "rtt.csv"
    path.write_text("site,a,b,c,d\na,1,20,90,60\nb,20,1,80,50\nc,90,80,1,40\nd,60,50,40,1\n")
    return str(path)


def run_json(command, *arguments, code=0):
    return command(*arguments, "--json", code=code).document


ASKED = ["--reads", "a=5", "--reads", "b=3", "--reads", "c=1", "--writes", "a=1"]


def test_envelope(command, rtts):
    envelope = run_json(command, "lab", "quorum", rtts, *ASKED, "--envelope", "--normal")
    assert envelope["optima"] >= 1
    assert envelope["failure"]["best"] <= envelope["failure"]["worst"]


RTT = [[1, 20, 90, 60], [20, 1, 80, 50], [90, 80, 1, 40], [60, 50, 40, 1]]


@pytest.mark.parametrize(
    ("options", "goal"),
    [
        ([], {}),
        (["--method", "cp-sat"], {}),
        (["--target", "reads"], {"target": "reads"}),
        (["--target", "writes"], {"target": "writes"}),
        (["--target", "reads", "--write-limit", "80"], {"target": "reads", "write_bound": 80}),
        (["--weighted", "3,0.5"], {"target": "weighted", "read_weight": 3, "write_weight": 0.5}),
        (["--mix", "1,0.25"], {"normal_weight": 1, "worst_weight": 0.25}),
        (
            ["--mix", "1,0", "--read-limit", "90", "--write-limit", "90"],
            {"normal_weight": 1, "worst_weight": 0, "read_bound": 90, "write_bound": 90},
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("model", ["--normal", "--worst"])
def test_every_goal_of_the_library(command, rtts, options, goal, model):
    """The command line asks the same question as the library, and gives its answer."""
    if model == "--normal" and "--mix" in options:
        assert "--mix" in command("lab", "quorum", rtts, *ASKED, model, *options, code=1).err
        return
    goal = dict(goal)
    target = Target(goal.pop("target", "threshold"))
    problem = QuorumProblem(
        RTT, [5, 3, 1, 0], [1, 0, 0, 0], sites=tuple("abcd"),
        rules=StoreRules(model == "--worst"), goal=Goal(target, **goal),
    )  # fmt: skip
    truth = place(problem)
    found = run_json(command, "lab", "quorum", rtts, *ASKED, model, *options)
    assert found["problem"]["goal"]["target"] == target.value
    assert found["value"] == truth.value
    assert (found["replicas"], found["read_quorum"]) == (list(truth.replicas), truth.read_quorum)
    assert found["write_quorum"] == truth.write_quorum


def test_rules_that_cannot_hold_are_explained(command, rtts):
    found = run_json(command, "lab", "quorum", rtts, *ASKED, "--n-max", "2", code=2)
    assert "N >= 3" in " ".join(found["reasons"])
    assert "infeasible" in command("lab", "quorum", rtts, *ASKED, "--read-limit", "0", code=2).out


def test_a_table_of_keys(command, rtts, tmp_path):
    keys, target = tmp_path / "keys.csv", tmp_path / "out.csv"
    keys.write_text("key,reads:a,reads:b,writes:a\none,5,3,1\ntwo,0,9,0\n")
    found = run_json(command, "lab", "quorum", rtts, "--keys", str(keys), "-o", str(target))
    assert found["keys"] == 2
    with target.open() as stream:
        table = list(csv.DictReader(stream))
    assert [row["key"] for row in table] == ["one", "two"]
    one = run_json(
        command, "lab", "quorum", rtts,
        "--reads", "a=5", "--reads", "b=3", "--writes", "a=1",
    )  # fmt: skip
    assert table[0]["replicas"].split(";") == one["replicas"]
    assert float(table[0]["value"]) == one["value"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--reads", "x=1"], "--reads"),
        (["--reads", "a=1.5"], "--reads"),
        (["--keys", "k.csv"], "-o"),
        (["--reads", "a=1", "-o", "x.csv"], "only tables"),
        (["--reads", "a=1", "--regions", "zone"], "no levels"),
        (["--reads", "a=1", "--p", "0"], "--p"),
        (["--reads", "a=1", "--weighted", "1"], "--weighted"),
        (["--reads", "a=1", "--weighted", "0,0"], "read_weight"),
        (["--reads", "a=1", "--weighted", "1,1", "--target", "reads"], "no --target"),
        (["--reads", "a=1", "--mix", "1,x"], "--mix"),
        (["--reads", "a=1", "--target", "cost"], "--target"),
    ],
)
def test_bad_quorum_input(command, rtts, arguments, message):
    assert message in command("lab", "quorum", rtts, *arguments, code=1).err


def test_a_crooked_table_of_rtts(command, tmp_path):
    path = tmp_path / "rtt.csv"
    for text, message in (
        ("site,a,b\na,1,2\nc,1,2\n", "pairs have no RTT: got 'a → c"),
        ("site,a,b\na,1,x\nb,1,2\n", "row 2: b: not a number"),
        ("site,a,b\na,1\nb,1,2\n", "a row of another length"),
    ):
        path.write_text(text)
        assert message in command("lab", "quorum", str(path), "--reads", "a=1", code=1).err
    missing = command("lab", "quorum", tmp_path / "no.csv", "--reads", "a=1", code=1)
    assert "no such file" in missing.err
