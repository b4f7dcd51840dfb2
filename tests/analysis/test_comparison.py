"""compare and next: rows, commands, pages, and RTTs that do not fit the others."""

from __future__ import annotations

import itertools
import json
import math
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import placement
from placement import Instance, Problem
from placement.analysis import compare_methods
from placement.analysis import compare_methods as comparison
from placement.analysis.data_quality import data_quality, effects_of_doubt
from placement.analysis.next_replica import LIFTED, counted, next_replicas
from placement.errors import InputError, LimitError, SolverError
from placement.io import save_instance
from placement.io.assemble_instance import assemble
from placement.io.rtt_table import RttTable
from placement.methods.options import Options
from placement.methods.registry import Method, available, load_method
from placement.model.configuration import Configuration
from placement.plan import Plan
from placement.support.status import Termination
from placement.testing.small_worlds import optimum, random_instance
from tests.expected import refused

METHODS = ("exhaustive", "cp-sat", "kq", "qk", "best-of")


def small(**asked):
    instance = random_instance(11, sites=7, clients=6, prices=True)
    return Problem(instance, **{"replicas": 3, "voters": 3, **asked})


@pytest.fixture
def register(monkeypatch):
    """Put methods beside the registered ones for the length of a test."""
    extra = {}
    monkeypatch.setattr(comparison, "available", lambda: tuple(sorted({*available(), *extra})))
    monkeypatch.setattr(
        comparison, "load_method", lambda name: extra.get(name) or load_method(name)
    )

    def add(name, call, **facts):
        extra[name] = Method(name, call, "made up", exact=True, **facts)
        return name

    return add


def test_rows_columns_and_order():
    problem = small()
    table = placement.compare(problem, methods=METHODS)
    assert list(table.columns)[:4] == ["method", "status", "score", "objective"]
    assert list(table["method"]) == list(METHODS)
    truth = placement.solve(problem, method="exhaustive")
    exact = table[table["method"].isin(["exhaustive", "cp-sat"])]
    assert set(exact["status"]) == {"optimal"}
    assert (exact["own_gap"] <= 1e-9).all()
    assert (table["score"] >= truth.score * (1 - 1e-9)).all()
    assert table.attrs["best_bound"] == pytest.approx(truth.score, rel=1e-9)
    expected = (table["objective"] - table.attrs["best_bound"]) / table["objective"]
    assert np.allclose(table["gap"], expected, atol=1e-12)
    assert np.allclose(table["mean_latency"], table["score"] / problem.demand.operations)
    heuristic = table[table["method"] == "kq"].iloc[0]
    assert heuristic["bound"] == -math.inf
    assert heuristic["own_gap"] == math.inf
    assert set(heuristic["voters"]) <= set(heuristic["replicas"])
    assert heuristic["leader"] in heuristic["voters"]


def test_every_registered_method_has_a_row():
    table = placement.compare(small())
    assert sorted(table["method"]) == sorted(available())
    refused = table[table["status"] == "refused"]
    assert "leader" in set(refused["method"])
    assert (refused["reason"] != "").all()
    assert refused["score"].isna().all()


def test_failures_are_rows(register):
    def limit(problem, options):
        raise LimitError("too much for me")

    def defect(problem, options):
        raise ZeroDivisionError("oops")

    def breaks_the_rules(problem, options):
        return Plan.of(problem, Configuration.of(0, (0,), (0,)), method="broken")

    def contradicts(problem, options):
        raise SolverError("two truths")

    names = [
        register("limited", limit),
        register("contradicts", contradicts),
        register("defect", defect),
        register("broken", breaks_the_rules),
        register("choosy", limit, refuses=lambda problem: "not today"),
        "exhaustive",
    ]
    table = placement.compare(small(), methods=names).set_index("method")
    assert list(table["status"]) == [*["failed"] * 4, "refused", "optimal"]
    assert table["reason"]["limited"] == "too much for me"
    assert table["reason"]["defect"] == "ZeroDivisionError: oops"
    assert "breaks the problem" in table["reason"]["broken"]
    assert table["reason"]["choosy"] == "not today"
    assert table["reason"]["exhaustive"] == ""


def test_a_false_bound_and_a_false_infeasible_are_called_wrong(register):
    truth = placement.solve(small(), method="exhaustive")
    worst = placement.solve(small(leader="site-6"), method="exhaustive")
    assert worst.objective > truth.objective

    def liar(problem, options):
        return Plan.of(problem, worst.configuration, method="liar", bound=worst.objective)

    def denier(problem, options):
        return Plan.infeasible(problem, method="denier", reasons=["no"])

    table = placement.compare(
        small(), methods=[register("liar", liar), register("denier", denier), "exhaustive"]
    ).set_index("method")
    assert table["reason"]["liar"].startswith("WRONG")
    assert "'exhaustive'" in table["reason"]["liar"]
    # The explanation that an infeasible plan gets finds the plan that there is.
    assert table["status"]["denier"] == "failed"
    assert "here is one" in table["reason"]["denier"]
    assert table.attrs["best_bound"] == pytest.approx(truth.objective, rel=1e-12)
    assert table["gap"]["exhaustive"] <= 1e-12
    # Without anyone honest who proves something, a refuted bound is no bound at all.
    table = placement.compare(small(), methods=["liar", "local-search"])
    assert table["reason"][0].startswith("WRONG")
    assert table.attrs["best_bound"] < truth.objective


def test_ctrl_c_keeps_what_there_is(register):
    def pressed(problem, options):
        raise KeyboardInterrupt

    def graceful(problem, options):
        plan = placement.solve(problem, method="kq")
        return plan.replace(termination=Termination.INTERRUPTED)

    names = ["exhaustive", register("pressed", pressed), "kq"]
    table = placement.compare(small(), methods=names).set_index("method")
    assert list(table["status"]) == ["optimal", "not run", "not run"]
    names = [register("graceful", graceful), "exhaustive"]
    table = placement.compare(small(), methods=names).set_index("method")
    assert list(table["status"]) == ["feasible", "not run"]
    assert table["gap"]["graceful"] == math.inf  # nobody proved anything


def test_misspelt_methods_and_stray_settings_are_refused_before_anything_runs(register):
    def never(problem, options):
        raise AssertionError("it ran")

    name = register("never", never)
    with pytest.raises(InputError, match="did you mean 'cp-sat'"):
        placement.compare(small(), methods=[name, "cp-sta"])
    with pytest.raises(InputError, match="not compared"):
        placement.compare(small(), methods=["kq"], settings={"cp-sat": {"start": "none"}})
    with pytest.raises(InputError, match="at least one"):
        placement.compare(small(), methods=[])


def test_settings_limits_and_progress_reach_the_methods(register):
    seen = []

    def looks(problem, options):
        seen.append(options)
        options.report(placement.Progress(0.0))
        return placement.solve(problem, method="kq")

    name = register("looks", looks, settings={"depth": placement.Setting(1, "how deep")})
    reports = []
    placement.compare(
        small(),
        methods=[name],
        time_limit=9.0,
        gap_limit=0.5,
        seed=4,
        threads=2,
        progress=lambda method, report: reports.append(method),
        settings={name: {"depth": "3"}},
    )
    (options,) = seen
    assert (options.time_limit, options.gap_limit, options.seed, options.threads) == (
        9.0,
        0.5,
        4,
        2,
    )
    assert options.settings == {"depth": 3}
    assert reports == [name]
    assert isinstance(options, Options)


@pytest.fixture
def world(tmp_path):
    instance = random_instance(5, sites=5, clients=3, prices=True)
    instance = instance.replace(site_coordinates=None, client_coordinates=None)
    save_instance(instance, tmp_path / "world")
    return tmp_path / "world"


def test_compare_prints_a_table(command, world):
    outcome = command(
        "compare", world, "--replicas", 3, "--voters", 3, "--methods", "exhaustive,kq,leader"
    )
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert [line.split()[0] for line in lines if "optimal" in line] == ["exhaustive"]
    assert "0.00 %" in outcome.out
    assert any(line.startswith("leader: it is a tier 1 method") for line in lines)
    assert outcome.err == ""


def test_each_compared_method_has_a_time_limit_of_its_own(command, world, monkeypatch):
    """All methods, asked about losses, took many minutes without one."""
    asked, compare = [], compare_methods.compare

    def noted(*args, **options):
        asked.append(options["time_limit"])
        return compare(*args, **options)

    monkeypatch.setattr(compare_methods, "compare", noted)
    question = ("compare", world, "--replicas", 3, "--voters", 3, "--methods", "kq")
    assert command(*question).code == command(*question, "--time-limit", 5).code == 0
    assert asked == [60, 5]


def test_compare_gives_json_without_infinities(command, world):
    outcome = command(
        "compare", world, "--replicas", "3", "--voters", "1", "--methods", "kq,cp-sat", "--json",
        "--set", "cp-sat.start=none",
    )  # fmt: skip
    assert outcome.code == 0
    kq, exact = outcome.document["methods"]
    assert kq["bound"] is None
    assert kq["own_gap"] is None
    assert exact["status"] == "optimal"
    assert exact["gap"] <= 1e-9
    assert len(kq["replicas"]) == 3
    assert outcome.document["best_bound"] == pytest.approx(exact["objective"])


def test_exit_codes(command, world):
    infeasible = ("--replicas", 3, "--voters", 3, "--forbid", "site-4", "--distinct", "continent=2")
    assert command("compare", world, *infeasible, "--methods", "exhaustive,kq").code == 2
    assert command("compare", "sizes", world, *infeasible, "--method", "exhaustive").code == 2
    assert (
        command("compare", world, "--replicas", 3, "--voters", 1, "--methods", "leader").code == 1
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("compare", "--replicas", 3, "--voters", 1, "--methods", "kqq"), "did you mean"),
        (("compare", "--replicas", 3, "--voters", 1, "--set", "start=none"), "METHOD.NAME=VALUE"),
        (("compare", "--replicas", 3, "--voters", 1, "-o", "x.xlsx"), "unknown table format"),
        (("compare", "--replicas", 3, "--voters", 1, "--plot", "x.gif"), "unknown picture format"),
        (("compare", "sizes", "--replicas", "ams,ber", "--voters", 1), "no numbers of replicas"),
        (("compare", "sizes", "--replicas", "1..2", "--voters", "3"), "no number of voters fits"),
        (("compare", "sizes", "--replicas", "2..3", "--voters", "ber,xyz"), "unknown site"),
    ],
)
def test_bad_input(command, world, arguments, message):
    outcome = command(*arguments, world, code=1)
    assert message in outcome.err
    assert outcome.out == ""


def test_sweep_prints_gains(command, world, tmp_path):
    picture, table = tmp_path / "sweep.svg", tmp_path / "sweep.json"
    outcome = command(
        "compare", "sizes", world, "--replicas", "2..4", "--voters", "1,3", "--method",
        "exhaustive", "--plot", picture, "-o", table,
    )  # fmt: skip
    assert outcome.code == 0
    assert "gain ms" in outcome.out
    assert picture.read_text().count("<?xml") == 1
    cells = json.loads(table.read_text())["cells"]
    assert [(cell["voters"], cell["replicas"]) for cell in cells] == [
        (1, 2), (1, 3), (1, 4), (3, 3), (3, 4),
    ]  # fmt: skip
    first, second = cells[:2]
    assert first["gain"] is None
    assert second["gain"] == pytest.approx(first["mean_latency"] - second["mean_latency"])


def test_pareto(command, world, tmp_path):
    picture = tmp_path / "frontier.pdf"
    arguments = ("compare", "fronts", world, "--replicas", "1..4", "--voters", "1", "--method")
    outcome = command(*arguments, "exhaustive", "--json", "--plot", picture, code=0)
    assert outcome.document["complete"] is True
    costs = [point["cost"] for point in outcome.document["points"]]
    latencies = [point["mean_latency"] for point in outcome.document["points"]]
    assert costs == sorted(costs)
    assert latencies == sorted(latencies, reverse=True)
    assert picture.read_bytes().startswith(b"%PDF")
    text = command(*arguments, "exhaustive")
    assert "none is missing" in text.out
    assert "Not complete" in command(*arguments, "exhaustive", "--points", "1").out


def test_progress_is_on_stderr(command, world):
    outcome = command(
        "compare", world, "--replicas", 3, "--voters", 1, "--methods", "exhaustive", "--progress",
        "--json",
    )  # fmt: skip
    assert outcome.document["methods"]
    assert "best" in outcome.err


SITES = ("a", "b", "c", "d")
RTT = np.array([[0, 20, 90, 300], [40, 0, 60, 200], [90, 60, 0, 100], [160, 160, 100, 0.0]])


def four_places(rtt: np.ndarray = RTT, places: list[list[float]] | None = None) -> Instance:
    made = assemble(RttTable("r.csv", SITES, SITES, rtt), mix="social")
    return made.replace(site_coordinates=None if places is None else np.array(places))


def test_asymmetry_detours_and_light() -> None:
    nan = float("nan")
    places = [[50.1, 8.7], [38.9, -77.4], [35.7, 139.7], [nan, nan]]
    with pytest.warns(placement.errors.UnitsWarning):
        instance = four_places(places=places)
    found = data_quality(instance)
    assert found.pairs == 12
    assert [(p.source, p.destination, p.rtt, p.against) for p in found.asymmetric] == [
        ("a", "d", 300, 160), ("b", "d", 200, 160), ("b", "a", 40, 20)
    ]  # fmt: skip
    assert [(p.source, p.destination, p.reason) for p in found.detours] == [
        ("a", "d", "the way over c"), ("b", "d", "the way over c"), ("a", "c", "the way over b")
    ]  # fmt: skip
    assert {(p.source, p.destination) for p in found.faster_than_light} == {
        ("a", "b"), ("b", "a"), ("a", "c"), ("b", "c"), ("c", "b")
    } | {("c", "a")}  # fmt: skip
    assert found.located
    assert len(found.doubtful) == len({frozenset(pair) for pair in found.doubtful}) == 5


@given(st.lists(st.floats(1, 400), min_size=16, max_size=16))
def test_detours_against_all_triples(values: list[float]) -> None:
    rtt = np.array(values).reshape(4, 4)
    np.fill_diagonal(rtt, 0)
    found = {(p.source, p.destination): p.against for p in data_quality(four_places(rtt)).detours}
    for i, a in enumerate(SITES):
        for j, b in enumerate(SITES):
            if i != j:
                way = min(rtt[i, k] + rtt[k, j] for k in range(4) if k not in (i, j))
                doubtful = rtt[i, j] > 1.1 * way and rtt[i, j] > way + 5
                assert found.get((a, b)) == (way if doubtful else None)


def test_effects_are_those_of_solving_the_changed_problem() -> None:
    instance = four_places()
    plan = placement.solve(Problem(instance, replicas=2, voters=2))
    changes = effects_of_doubt(plan, [("a", "b"), ("b", "a"), ("c", "d")], off=0.5)
    assert [(change.pairs, change.factor) for change in changes] == [
        ((("a", "b"),), 0.5), ((("a", "b"),), 1.5),
        ((("c", "d"),), 0.5), ((("c", "d"),), 1.5),
        ((("a", "b"), ("c", "d")), 0.5), ((("a", "b"), ("c", "d")), 1.5),
    ]  # fmt: skip
    moved = 0
    for change in changes:
        rtt = RTT.copy()
        for a, b in change.pairs:
            i, j = SITES.index(a), SITES.index(b)
            rtt[[i, j], [j, i]] *= change.factor
        problem = Problem(four_places(rtt), replicas=2, voters=2)
        best = placement.solve(problem)
        assert change.plan.objective == pytest.approx(best.objective, rel=1e-12)
        assert plan.leader is not None
        own = placement.evaluate(
            problem, leader=plan.leader, voters=plan.voters, replicas=plan.replicas
        )
        assert change.regret == pytest.approx(own.objective / best.objective - 1, abs=1e-9)
        moved += change.regret > 0
    assert moved
    with pytest.raises(InputError, match="off"):
        effects_of_doubt(plan, [("a", "b")], off=1.0)
    with pytest.raises(InputError, match="unknown site"):
        effects_of_doubt(plan, [("a", "z")])


def test_the_import_reports_and_sensitivity_answers(command, tmp_path):
    rtt, plan = tmp_path / "r.csv", tmp_path / "plan.json"
    rtt.write_text("from,to,ms\na,b,20\nb,a,40\na,c,90\nc,a,90\nb,c,60\n")
    asked = ("import", rtt, "--mix", "social", "--fill", "transpose", "-o")
    out = " ".join(command(*asked, tmp_path / "mine").out.split())
    assert "1 pair missing and filled in, such as c → b" in out
    assert "1 asymmetric, such as b → a (40 ms, the other direction 20 ms)" in out
    quality = command(*asked, tmp_path / "other", "--json").document["quality"]
    assert quality["missing"] == [["c", "b"]]
    assert quality["faster_than_light"] is None
    command("solve", tmp_path / "mine", "--replicas", 2, "--voters", 2, "-o", plan)
    doubt = ("explain", plan, "--doubt", 20, "--pair", "c:b")
    out = command(*doubt).out
    assert "Doubtful RTTs 20 % off: the optimum moves in " in out
    assert "all 3 pairs" in out
    doubts = command(*doubt, "--json").document["doubts"]
    assert [(d["pairs"], d["factor"]) for d in doubts[:2]] == [
        ([["c", "b"]], f) for f in (0.8, 1.2)
    ]
    outcome = command("explain", plan, "--pair", "c:b", code=1)
    assert "--pair: no share" in outcome.err


def priced(seed):
    return random_instance(seed, clients=5, prices=True)


@pytest.mark.parametrize("seed", range(6))
def test_every_row_is_the_best_of_its_sites(seed):
    instance = priced(seed)
    problem = placement.Problem(instance, replicas=3, voters=2)
    plan = placement.solve(problem, "most-writes" if seed % 2 else "exact")
    table = next_replicas(plan)
    operations = problem.demand.operations
    now = plan.mean_latency
    added = {row.site for row in table.itertuples() if row.change == "add"}
    assert added == set(instance.sites) - set(plan.replicas)
    assert {row.site for row in table.itertuples() if row.change == "drop"} == set(plan.replicas)
    for row in table.itertuples():
        if row.change == "present":
            assert (row.leader, row.replica_sites) == (plan.leader, plan.replicas)
            assert row.gain == 0
            continue
        held = set(plan.replicas)
        asked = {
            "roles": plan.replicas, "add": (*plan.replicas, row.site),
            "drop": tuple(held - {row.site}), "best": 3, "best with one more": 4,
        }[row.change]  # fmt: skip
        assert row.status == "optimal"
        assert math.isclose(
            row.mean_latency, optimum(problem.replace(replicas=asked)) / operations, abs_tol=1e-9
        )
        assert math.isclose(row.gain, now - row.mean_latency, abs_tol=1e-9)
        cost = sum(
            instance.prices.storage[s] + 2.0 * instance.prices.transfer[
                instance.sites.index(row.leader), s]
            for s in map(instance.sites.index, row.replica_sites)
        )  # fmt: skip
        assert math.isclose(row.cost_change, cost - plan.cost, abs_tol=1e-9)
    for _, rows in itertools.groupby(table.itertuples(), key=lambda row: row.change):
        gains = [row.gain for row in rows]
        assert gains == sorted(gains, reverse=True)


def test_the_constraints_of_the_plan_hold_for_every_row():
    instance = priced(11)
    first, second = instance.sites[:2]
    problem = placement.Problem(
        instance, replicas=3, voters=3, pinned=[first], forbidden=[second], budget=1e6
    )
    table = next_replicas(placement.solve(problem, "exhaustive"))
    assert second not in set(table[table.change == "add"].site)
    assert first not in set(table[table.change == "drop"].site)
    assert "drop" not in set(table.change)  # two replicas have no place for three voters


@pytest.mark.parametrize("seed", [3, 7, 8])
def test_a_replica_at_a_lost_site_is_gone(seed):
    instance = priced(seed)
    plan = placement.solve(placement.Problem(instance, replicas=4, voters=2))
    lost = plan.replicas[0]
    table = next_replicas(plan, placement.without_sites(instance, [lost]))
    assert set(table.change) == {"roles", "add", "drop", "best", "best with one more"}
    assert lost not in {site for row in table.replica_sites for site in row}
    assert table.gain.isna().all()
    assert table[table.change == "add"].value.is_monotonic_increasing
    other = next(site for site in instance.sites if site not in plan.replicas)
    table = next_replicas(plan, placement.without_sites(instance, [other]))
    now = table[table.change == "present"].iloc[0]
    assert math.isclose(now.mean_latency, plan.mean_latency)
    plan = placement.solve(placement.Problem(instance, replicas=3, voters=3))
    with pytest.raises(InputError, match="no change obeys"):  # one is left, and three are to vote
        next_replicas(plan, placement.without_sites(instance, plan.replicas[1:]))


@pytest.mark.parametrize("seed", range(8))
def test_without_sites_is_to_forbid_them(seed):
    instance = priced(seed)
    gone = [instance.sites[1], instance.sites[4]]
    rest = placement.without_sites(instance, gone)
    assert set(rest.sites) == set(instance.sites) - set(gone)
    assert rest.clients == instance.clients
    for more in ({}, {"cost_weight": 3.0}):
        one = placement.solve(placement.Problem(rest, replicas=3, voters=2, **more))
        other = placement.solve(
            placement.Problem(instance, replicas=3, voters=2, forbidden=gone, **more)
        )
        assert math.isclose(one.objective, other.objective, rel_tol=1e-12)
        assert (one.leader, one.replicas) == (other.leader, other.replicas)


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda i: placement.scale_demand(i, {"nobody": 2}), "clients"),
        (lambda i: placement.scale_demand(i, {i.clients[0]: -1}), "factors"),
        (lambda i: placement.scale_demand(i, {i.clients[0]: math.nan}), "factors"),
        (lambda i: placement.without_sites(i, ["nowhere"]), "sites"),
        (lambda i: placement.without_sites(i, i.sites), "sites"),
        (lambda i: next_replicas(placement.Plan.infeasible(
            placement.Problem(i, replicas=3, voters=2), method="x", reasons=())), "plan"),
    ],
)  # fmt: skip
def test_bad_input_names_the_field(call, field):
    with refused(field):
        call(priced(1))


def test_the_command(command, tmp_path):
    instance = priced(4)
    save_instance(instance, tmp_path / "mine")
    folder, plan = tmp_path / "mine", tmp_path / "plan.json"
    assert command("solve", folder, "--replicas", 3, "--voters", 2, "-o", plan).code == 0
    text = command("next", folder, "--from", plan, code=0)
    assert "as it is" in text.out
    assert "cost USD" in text.out
    rows = command("next", folder, "--from", plan, "--json").document["rows"]
    assert rows[0]["change"] == "present"
    client = instance.clients[0]
    grown = command(
        "next", folder, "--from", plan, "--scale-demand", f"{client}=9", "--json"
    ).document
    assert grown["rows"][0]["mean_latency"] != rows[0]["mean_latency"]
    for options, words in (
        (("--scale-demand", "x"), "--scale-demand"),
        (("--scale-demand", "nobody=2"), "nobody"),
        (("--scale-demand", f"{client}=2", "--scale-demand", f"{client}=3"), "twice"),
        (("--without", "nowhere"), "--without"),
    ):
        bad = command("next", folder, "--from", plan, *options, code=1)
        assert words in bad.err


def test_a_plan_of_a_changed_instance_carries_it(command, tmp_path):
    save_instance(priced(4), tmp_path / "mine")
    plan = tmp_path / "plan.json"
    gone = priced(4).sites[0]
    outcome = command("solve", tmp_path / "mine", "--replicas", 3, "--voters", 2,
                  "--without", gone, "-o", plan)  # fmt: skip
    assert outcome.code == 0
    assert gone not in placement.io.load_plan(plan).problem.instance.sites
    assert command("check", plan).code == 0


def test_rules_of_the_plan_hold_until_they_are_lifted(command, tmp_path):
    """A pinned plan has nothing to gain, and the output says why."""
    save_instance(priced(4), tmp_path / "mine")
    folder, plan = tmp_path / "mine", tmp_path / "plan.json"
    best = placement.solve(placement.Problem(priced(4), replicas=2, voters=1))
    worse = [site for site in priced(4).sites if site not in best.replicas][:2]
    pinned = ("--pin", ",".join(worse), "--leader", worse[0])
    assert command("solve", folder, "--replicas", 2, "--voters", 1, *pinned, "-o", plan).code == 0
    asked = ("next", folder, "--from", plan, "--moves")
    held = command(*asked)
    assert f"pinned: {worse[0]}, {worse[1]}" in held.out
    assert [row["changes"] for row in command(*asked, "--json").document["rows"]] == [0]
    for lifted in ("pins,leader", "all"):
        rows = command(*asked, "--lift", lifted, "--json").document["rows"]
        assert rows[-1]["mean_latency"] == pytest.approx(best.mean_latency)
        assert rows[-1]["gain"] > 0
    dear = command(*asked, "--lift", "all", "--move-price", "1e6", "--json").document["rows"]
    assert [row["gain"] for row in dear] == [0]
    assert "no such rule" in command(*asked, "--lift", "pin").err
    assert "--moves as well" in command(*asked[:-1], "--move-price", 3).err
    for name in LIFTED:
        assert f"{name}," in " ".join(command("next", "--help").out.split())


def test_sites_by_name_say_what_runs_and_not_that_they_must_stay():
    instance = priced(4)
    best = placement.solve(placement.Problem(instance, replicas=2, voters=2))
    names = [site for site in instance.sites if site not in best.replicas][:2]
    named = placement.Problem(instance, replicas=names, voters=names)
    plan = placement.solve(named)
    table = next_replicas(plan)
    assert table[table["change"] == "best"]["mean_latency"].iloc[0] == best.mean_latency
    assert counted(named).rules.replicas_max == 2
    assert (table["change"] == "add").sum() == len(instance.sites) - 2


def test_a_row_without_a_plan_has_no_leader(command, tmp_path):
    """Without the only site of its region the plan does not survive the loss of one."""
    instance = priced(4)
    regions = ("a", "b", *("c" for _ in instance.sites[2:]))
    save_instance(instance.replace(domains={"region": regions}), tmp_path / "world")
    plan = tmp_path / "plan.json"
    asked = ("--replicas", 4, "--voters", 3, "--survive", "region", "-o", plan)
    assert command("solve", tmp_path / "world", *asked).code == 0
    shown = command("next", tmp_path / "world", "--from", plan).out
    lines = [line for line in shown.splitlines() if "infeasi" in line]
    assert lines
    assert all(line.split()[-1] == "–" for line in lines)


DOCS = Path(__file__).resolve().parents[2] / "docs"


def commands(page):
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(r"^    placement (.+world27.+)$", text, flags=re.MULTILINE), text


def without_seconds(table):
    """Rows of a table as words; the second to last number column, seconds, differs by run."""
    return [re.sub(r"\d+\.\d{2,3}(?=\s+\S[^.]*$)", "s", line).split() for line in table if line]


def test_the_tables_are_what_is_printed(command):
    shown, text = commands("compare-and-sweep.md")
    assert [line.split()[0] for line in shown] == ["compare", "compare"]
    for line in shown:
        outcome = command(*shlex.split(line), code=0)
        after = text.split(line, 1)[1].lstrip("\n").split("\n\n", 1)[0]
        rows = [line[4:] for line in after.splitlines()]
        printed = outcome.out.splitlines()
        start = next(i for i, line in enumerate(printed) if line.split()[:1] == rows[0].split()[:1])
        assert without_seconds(rows) == without_seconds(printed[start : start + len(rows)])


def test_the_conflict_is_what_is_printed(command):
    shown, text = commands("infeasible.md")
    outcome = command(*shlex.split(shown[0]), code=2)
    first = text.split("\n> ", 1)[1].split("\n\n", 1)[0]
    quoted = first.replace("\n> ", " ")
    assert quoted in " ".join(outcome.out.split())


def test_the_proof_is_what_is_printed(command, tmp_path):
    (_, line), text = commands("infeasible.md")
    solve, file = line.split(" > ")
    (tmp_path / file).write_text(command(*shlex.split(solve)).out)
    outcome = command("check", tmp_path / file, code=0)
    after = text.split(f"    placement check {file}\n", 1)[1].split("\n\n", 2)[1]
    assert [line[4:] for line in after.splitlines()] == outcome.out.splitlines()
