"""Percentiles in plan files, in reports and on the command line."""

import dataclasses
import json

import numpy as np
import pytest

import placement
from placement.errors import InputError, UnsupportedError
from placement.io import load_plan, save_instance, save_plan
from placement.io.leader_plan_document import Reference
from placement.measures.question import MeasureQuestion, percentile_question
from placement.report import report_html
from placement.tail import Distributions
from placement.testing import random_instance
from tests.tail.worlds import drawn


def question(kind, percent=95):
    instance = random_instance(4, sites=5, clients=3)
    if kind == "family":
        given = Distributions.parametric(instance, variation=0.2, bins=700)
    elif kind == "percentiles":
        middle = instance.client_rtt[..., np.newaxis], instance.site_rtt[..., np.newaxis]
        factors = np.array([0.9, 1.0, 1.3, 1.9])
        given = Distributions.from_percentiles(
            instance, (10, 50, 90, 99), middle[0] * factors, middle[1] * factors, bins=1500
        )
    else:
        given = drawn(instance, 4)
    return placement.Problem(
        instance,
        replicas=list(instance.sites[:4]),
        voters=3,
        objective=percentile_question(percent, given),
    )


@pytest.mark.parametrize("kind", ["family", "percentiles", "histograms"])
def test_comes_back_to_the_last_bit(kind, tmp_path):
    plan = placement.solve(question(kind), "exact")
    path = save_plan(plan, tmp_path / "p.json")
    written = json.loads(path.read_text())
    assert written["problem"]["objective"]["distributions"][0]["form"] == kind
    assert written["objective"] == plan.objective
    assert {row["percent"] for row in written["tail"]["percentiles"]} >= {50, 95, 99}
    back = load_plan(path)
    assert (back.objective, back.status, back.notes) == (plan.objective, plan.status, plan.notes)
    (old,), (new,) = (one.problem.objective.distributions for one in (plan, back))
    for table in ("client_site", "site_site"):
        assert np.array_equal(getattr(old, table), getattr(new, table))
    assert (old.width, old.bins) == (new.width, new.bins)
    again = save_plan(back, tmp_path / "q.json")
    assert again.read_bytes() == path.read_bytes()


def test_a_family_of_other_rtts_is_written_bin_by_bin(tmp_path):
    """Distributions belong to names; the RTTs behind them may have changed since."""
    problem = question("family")
    world = problem.instance
    moved = problem.replace(instance=world.replace(client_rtt=world.client_rtt + 5))
    plan = placement.solve(moved, "exact")
    path = save_plan(plan, tmp_path / "p.json")
    form = json.loads(path.read_text())["problem"]["objective"]["distributions"][0]["form"]
    assert form == "histograms"
    assert load_plan(path).objective == plan.objective


def test_what_was_changed_since_is_not_believed(tmp_path):
    path = save_plan(placement.solve(question("family"), "exact"), tmp_path / "p.json")
    document = json.loads(path.read_text())

    def changed(change):
        other = json.loads(path.read_text())
        change(other, other["problem"]["objective"])
        (tmp_path / "q.json").write_text(json.dumps(other))
        return tmp_path / "q.json"

    def set_value(other, _):
        other["objective"] = document["objective"] - 1

    def spread(_, objective):
        objective["distributions"][0]["variation"] = 0.4

    for change in (set_value, spread):
        with pytest.raises(InputError, match="objective: not the value of this configuration"):
            load_plan(changed(change))
    for key, value, message in (
        ("form", "guess", "unknown form"),
        ("family", "cauchy", "unknown family"),
        ("bins", 0, "out of range"),
        ("width", -1, "bin width"),
    ):

        def put(_, objective, key=key, value=value):
            objective["distributions"][0][key] = value

        with pytest.raises(InputError, match=message):
            load_plan(changed(put))
    with pytest.raises(InputError, match="p0"):
        load_plan(changed(lambda _, objective: objective.update(minimise="p0")))


@pytest.mark.parametrize(
    "pair",
    [None, [0], [0, [2.0]], [58, [0.1, 0.1, 0.1]], [True, [1.0]], [0, [-0.5, 1.5]], ["a", []]],
)
def test_broken_histograms_are_refused(pair, tmp_path):
    path = save_plan(placement.solve(question("histograms"), "exact"), tmp_path / "p.json")
    document = json.loads(path.read_text())
    document["problem"]["objective"]["distributions"][0]["client_site"][1][2] = pair
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"not a histogram|no distribution at"):
        load_plan(path)


def test_a_subclass_may_mean_something_else(tmp_path):
    @dataclasses.dataclass(frozen=True)
    class Other(MeasureQuestion):
        pass

    problem = question("family")
    other = Other(problem.objective.distributions)
    plan = placement.solve(problem.replace(objective=other), "exact")
    with pytest.raises(UnsupportedError, match="cannot hold"):
        save_plan(plan, tmp_path / "p.json")


def test_show_check_and_report(command, tmp_path):
    problem = question("family", percent=99)
    plan = placement.solve(problem, "exact")
    save_instance(problem.instance, tmp_path / "world")
    path = save_plan(plan, tmp_path / "p.json", reference=Reference(str(tmp_path / "world")))
    shown = command("show", path)
    assert shown.code == 0
    assert f"{plan.objective:g} ms" in shown.out
    checked = command("check", path)
    assert checked.code == 0
    document = command("check", path, "--json").document
    assert document["proved"] is True
    page = report_html(path)
    assert "Latency of all operations" in page
    assert "p99" in page
    assert command("report", path, "-o", tmp_path / "p.html").code == 0


def test_a_plan_beyond_the_horizon_is_kept_as_what_it_is(tmp_path):
    instance = random_instance(2)
    short = Distributions.parametric(instance, variation=0.5, bins=40)
    problem = placement.Problem(
        instance,
        replicas=list(instance.sites[:3]),
        voters=3,
        objective=percentile_question(99, short),
    )
    sites = instance.sites[:3]
    plan = placement.evaluate(problem, leader=sites[0], voters=sites, replicas=sites)
    back = load_plan(save_plan(plan, tmp_path / "p.json"))
    assert back.status == "violating"
    assert "beyond the horizon" in str(back)
    assert "beyond the horizon" in report_html(tmp_path / "p.json")


def test_a_fine_grid_is_shown_as_fine():
    instance = random_instance(4, sites=4, clients=3, scale=0.01)
    fine = Distributions.parametric(instance, variation=0.1, width=0.002, bins=3000)
    problem = placement.Problem(instance, replicas=list(instance.sites), voters=3)
    plan = placement.solve(problem.replace(objective=percentile_question(99, fine)), "exact")
    assert f"p99          {plan.objective:.3f} ms" in str(plan)


ASK = ("--replicas", "4", "--voters", "3")


@pytest.fixture
def world(tmp_path):
    save_instance(random_instance(3, sites=5, clients=3), tmp_path / "world")
    return tmp_path / "world"


@pytest.fixture
def table(tmp_path):
    """Percentiles of every pair of that world, as rows."""
    instance = random_instance(3, sites=5, clients=3)
    lines = ["src,dst,p10,p50,p90,p99,mean"]
    for names, rtt in (
        (instance.clients, instance.client_rtt),
        (instance.sites, instance.site_rtt),
    ):
        for i, a in enumerate(names):
            for j, b in enumerate(instance.sites):
                if a != b:
                    x = rtt[i, j]
                    lines.append(f"{a},{b},{0.9 * x},{x},{1.2 * x},{1.7 * x},{1.03 * x}")
    path = tmp_path / "percentiles.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_solve_and_evaluate_agree(command, world, table, tmp_path):
    plan = tmp_path / "plan.json"
    solved = command(
        "solve", world, *ASK, "--percentile", 99, "--distributions", table, "-o", plan,
    )  # fmt: skip
    assert solved.code == 0
    assert "p99" in solved.out
    found = load_plan(plan)
    same = command(
        "check", "configuration", world, "--leader", found.leader, "--voters",
        ",".join(found.voters), "--replicas", ",".join(found.replicas),
        "--percentile", 99, "--distributions", table, "--json",
    )  # fmt: skip
    assert same.document["objective"] == found.objective
    assert same.document["problem"]["objective"]["kind"] == "measures"


def test_compare_shows_the_percentile_and_who_refuses(command, world):
    outcome = command(
        "compare", world, *ASK, "--percentile", 95, "--spread", 0.2,
        "--methods", "exhaustive,exact,kq,tier2",
    )  # fmt: skip
    assert outcome.code == 0
    assert "p95 ms" in outcome.out
    (exhaustive,) = (row for row in outcome.out.splitlines() if row.startswith("exhaustive"))
    value, mean, gap = exhaustive.split()[2:5]
    assert float(value) > float(mean)
    assert gap == "0.00"
    assert exhaustive.split()[6] == f"{float(value):.3f}"  # a bound in ms, not per operation
    assert "kq: it takes no measures" in " ".join(outcome.out.split())
    document = command(
        "compare", world, *ASK, "--percentile", 95, "--spread", 0.2, "--family", "gamma",
        "--methods", "exact", "--json",
    ).document  # fmt: skip
    (row,) = document["methods"]
    assert row["objective"] < 1000 < row["score"]


def test_a_comparison_by_percentile_is_drawn_and_reported(command, world, tmp_path):
    pytest.importorskip("matplotlib")
    made = command(
        "compare", world, *ASK, "--percentile", 95, "--spread", 0.2, "--methods",
        "exhaustive,exact", "-o", tmp_path / "c.json", "--plot", tmp_path / "c.png",
    )  # fmt: skip
    assert made.code == 0
    (value, _) = (
        row["objective"] for row in json.loads((tmp_path / "c.json").read_text())["methods"]
    )
    assert command("report", tmp_path / "c.json", "-o", tmp_path / "c.html").code == 0
    page = (tmp_path / "c.html").read_text()
    assert "Objective" in page
    assert f"{value:.0f}" in page


def test_a_method_that_cannot_is_refused_with_those_that_can(command, world):
    asked = ("--percentile", 99, "--spread", 0.1, "--method", "kq")
    outcome = command("solve", world, *ASK, *asked)
    assert outcome.code == 1
    assert "methods that support it: exact, exhaustive" in " ".join(outcome.err.split())


def test_the_default_method_proves_a_percentile(command, world):
    outcome = command("solve", world, *ASK, "--percentile", 99, "--spread", 0.1)
    assert outcome.code == 0
    assert "optimal, proven; by exact" in outcome.out
    assert "solved by" not in outcome.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--spread", "0.1"], "--spread: does nothing without --percentile"),
        (["--horizon", "9"], "--rtt-horizon: does nothing without --percentile"),
        (["--percentile", "99"], "--percentile: needs the distributions of RTTs"),
        (["--percentile", "99", "--family", "gamma"], "--family: does nothing without --spread"),
        (["--percentile", "0", "--spread", "1"], "percentile: out of range"),
        (["--percentile", "101", "--spread", "1"], "percentile: out of range"),
        (["--percentile", "nan", "--spread", "1"], "percentile: out of range"),
        (["--percentile", "99", "--spread", "-1"], "--spread: out of range"),
        (["--percentile", "99", "--spread", "nan"], "--spread: out of range"),
        (["--percentile", "99", "--spread", "1", "--bin-width", "0"], "--bin-width: out of range"),
        (["--percentile", "99", "--spread", "1", "--bin-width", "1e-9"], "bin width: too fine"),
        (["--percentile", "99", "--spread", "1", "--horizon", "-1"], "horizon: out of range"),
        (
            ["--percentile", "99", "--spread", "1", "--distributions", "x.csv"],
            "--spread: does not go with --distributions",
        ),
        (["--percentile", "99", "--distributions", "x.csv"], "x.csv: no such file"),
        (["--percentile", "99", "--family", "cauchy", "--spread", "1"], "invalid choice: 'cauchy'"),
    ],
)
def test_bad_options(command, world, options, message):
    outcome = command("solve", world, *ASK, *options)
    assert outcome.code == 1
    assert message in outcome.err
    assert outcome.out == ""


def test_a_horizon_that_is_too_short(command, world):
    outcome = command(
        "solve", world, *ASK, "--percentile", 99, "--spread", 0.5, "--horizon", 20,
    )  # fmt: skip
    assert outcome.code == 2
    assert "within the horizon of the distributions" in " ".join(outcome.out.split())


def test_import_percentiles_and_ask(command, table, tmp_path):
    """An instance from the same file: its RTTs are the means, its distributions the percentiles."""
    made = command("import", table, "--mix", "oltp", "--sites", _sites(tmp_path),
                     "-o", tmp_path / "made", "--json")  # fmt: skip
    assert made.code == 0
    assert "column 'mean'" in json.dumps(made.document["provenance"])
    outcome = command(
        "solve", tmp_path / "made", "--replicas", 3, "--voters", 3, "--percentile", 99,
        "--distributions", table, "--method", "exhaustive",
    )  # fmt: skip
    assert outcome.code == 0
    assert "optimal (proved by exhaustive; no certificate)" in outcome.out
    assert "no distribution from site-0" in outcome.err


def _sites(folder):
    """The sites alone: the table has clients beside them."""
    path = folder / "sites.csv"
    path.write_text("site\n" + "".join(f"site-{i}\n" for i in range(5)))
    return path
