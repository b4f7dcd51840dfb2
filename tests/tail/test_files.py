"""Percentiles in tables, in plan files, in reports and on the command line."""

import csv
import dataclasses
import json

import numpy as np
import pytest

import placement
from placement import Instance
from placement.errors import InputError, PlacementWarning, UnitsWarning, UnsupportedError
from placement.io import load_plan, read_rtt, save_instance, save_plan
from placement.io.plan_file import Reference
from placement.io.rtt_distributions import read_distributions
from placement.measures.question import MeasureQuestion, percentile_question
from placement.report import report_html
from placement.tail import Distributions
from placement.tail.histograms import of_percentiles, of_weights
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
    shown = command("show", path, code=0)
    assert f"{plan.objective:g} ms" in shown.out
    command("check", path, code=0)
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
    made = command(
        "compare", world, *ASK, "--percentile", 95, "--spread", 0.2, "--methods",
        "exhaustive,exact", "-o", tmp_path / "c.json", "--plot", tmp_path / "c.svg",
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
    outcome = command("solve", world, *ASK, *asked, code=1)
    assert "methods that support it: exact, exhaustive" in " ".join(outcome.err.split())


def test_the_default_method_proves_a_percentile(command, world):
    outcome = command("solve", world, *ASK, "--percentile", 99, "--spread", 0.1, code=0)
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
        (["--percentile", "99", "--spread", "1", "--bin-width", "1e-320"], "bin width: out of ran"),
        (["--maximise", "within 1e308 ms", "--spread", "1"], "deadline: out of range: got 1e+308"),
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
    outcome = command("solve", world, *ASK, *options, code=1)
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


@pytest.fixture
def instance():
    """Two sites with a client in each of them, and one elsewhere."""
    between = np.array([[0.0, 20.0], [22.0, 0.0]])
    return Instance(
        sites=("fra", "dub"),
        clients=("fra", "dub", "phone"),
        client_rtt=np.vstack([between + np.eye(2), [[40.0, 60.0]]]),
        site_rtt=between,
        counts=np.ones((3, 5)),
    )


def write(path, text):
    path.write_text(text.replace(" ", ""))
    return path


def histograms(tmp_path):
    return write(
        tmp_path / "d.csv",
        """src,dst,rtt,count
fra,dub,20,3\nfra,dub,30,1\ndub,fra,22,1\nphone,fra,40,1\nphone,dub,60,2\nphone,dub,70,2
fra,fra,1,1\ndub,dub,2,1
""",
    )


def test_histograms(instance, tmp_path):
    made = read_distributions(histograms(tmp_path), instance, width=10)
    assert made.site_site[0, 1] == pytest.approx([0, 0, 0.75, 0.25, 0, 0, 0, 0])
    assert made.client_site[0, 1] == pytest.approx(made.site_site[0, 1])  # one row for both
    assert made.client_site[2, 1][6:] == pytest.approx([0.5, 0.5])
    assert made.site_site[0, 0][0] == 1
    assert made.overflow == 0
    assert made.recipe is None


def test_samples(instance, tmp_path):
    rows = ["src,dst,rtt"]
    rows += [
        f"{a},{b},{ms}" for a, b in (("fra", "dub"), ("dub", "fra")) for ms in (19, 21, 21, 25)
    ]
    rows += [f"phone,{b},{ms}" for b in ("fra", "dub") for ms in (50, 51)]
    rows += ["fra,fra,1", "dub,dub,1", "elsewhere,fra,7"]
    path = tmp_path / "d.csv"
    path.write_text("\n".join(rows) + "\n")
    made = read_distributions(path, instance)
    expected = of_weights([19, 21, 21, 25], [1, 1, 1, 1], width=1, bins=made.bins)
    assert made.site_site[1, 0] == pytest.approx(expected)
    assert made.client_site[2, 0][50] == 0.5


def test_percentiles_in_csv_and_parquet(instance, tmp_path):
    pytest.importorskip("pyarrow")
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = ["src", "dst", "p99", "rtt_p10_ms", "p50"]
    rows = [
        ("fra", "dub", 30.0, 18.0, 20.0),
        ("dub", "fra", 33.0, 20.0, 22.0),
        ("phone", "fra", 90.0, 30.0, 40.0),
        ("phone", "dub", 90.0, 50.0, 60.0),
        ("fra", "fra", 2.0, 1.0, 1.0),
        ("dub", "dub", 2.0, 1.0, 1.0),
    ]
    with (tmp_path / "d.csv").open("w", newline="") as sink:
        csv.writer(sink).writerows([names, *rows])
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    pq.write_table(pa.table(columns), tmp_path / "d.parquet")
    made = [read_distributions(tmp_path / f"d.{kind}", instance) for kind in ("csv", "parquet")]
    for one in made:
        told = of_percentiles({10: 18, 50: 20, 99: 30}, width=1, bins=one.bins)
        assert one.site_site[0, 1] == pytest.approx(told)
        assert one.recipe.percents == (10, 50, 99)
    assert np.array_equal(made[0].client_site, made[1].client_site)


def test_clients_in_a_file_of_their_own_of_another_kind(instance, tmp_path):
    sites = write(tmp_path / "s.csv", "src,dst,p50,p99\nfra,dub,20,30\ndub,fra,22,33\n")
    rtts = {"fra": (1, 26), "dub": (27, 1), "phone": (44, 60)}
    rows = [f"{c},fra,{a}\n{c},dub,{b}" for c, (a, b) in rtts.items()]
    clients = write(tmp_path / "c.csv", "\n".join(["src,dst,rtt", *rows]) + "\n")
    made = read_distributions(sites, instance, clients=clients, horizon=99)
    assert made.bins == 100
    assert made.recipe is None
    assert made.client_site[0, 1][26] == 1
    assert made.site_site[0, 1] == pytest.approx(
        of_percentiles({50: 20, 99: 30}, width=1, bins=100)
    )


def test_a_site_to_itself_may_be_missing_with_a_warning(instance, tmp_path):
    path = write(
        tmp_path / "d.csv",
        "src,dst,p50,p99\nfra,dub,20,30\ndub,fra,22,33\nphone,fra,40,50\nphone,dub,60,70\n",
    )
    with pytest.warns(PlacementWarning, match="no distribution from fra, dub to itself"):
        made = read_distributions(path, instance)
    assert made.client_site[0, 0][1] == 1  # the instance's millisecond


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", r"d.csv: header: no column for the src"),
        ("src,dst,p50,p99\n", "d.csv: no rows"),
        ("src,dst\nfra,dub\n", r"d.csv: header: no column for the rtt"),
        ("src,dst,p50\nfra,dub,1\n", "d.csv: header: one percentile only"),
        ("src,dst,p50,rtt_p50_ms\nfra,dub,1,1\n", "header: a percentile given twice"),
        ("src,dst,p0,p50\nfra,dub,1,1\n", "header: not a percentile: got 'p0'"),
        ("src,dst,p50,p99\nfra,dub,20,19\n", r"d.csv, row 2: p99: below the percentile before it"),
        ("src,dst,p50,p99\nfra,dub,x,19\n", r"d.csv, row 2: p50: not a number: got 'x'"),
        ("src,dst,p50,p99\nfra,dub,-1,19\n", r"d.csv, row 2: p50: negative"),
        ("src,dst,p50,p99\nfra,dub,,19\n", r"d.csv, row 2: p50: missing value"),
        ("src,dst,p50,p99\nfra,dub,1,2\nfra,dub,1,2\n", r"row 3: dst: a pair given twice.*row 2"),
        ("src,dst,rtt,count\nfra,dub,1,-2\n", r"d.csv, row 2: count: negative"),
        ("src,dst,rtt,share\nfra,dub,1,0\n", "a histogram without weight: fra → dub"),
        ("src,dst,rtt\nfra,,1\n", r"d.csv, row 2: dst: no name"),
        ("src,dst,rtt\nfra,dub,inf\n", r"d.csv, row 2: rtt: infinite"),
        ("src,dst,rtt\nfra,dub,1\n", r"src, dst: 1 of 4 pairs have no distribution: got 'dub"),
    ],
)
def test_errors_name_file_row_and_field(instance, tmp_path, text, message):
    path = tmp_path / "d.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_distributions(path, instance)


def test_seconds_instead_of_milliseconds_are_noticed(instance, tmp_path):
    path = tmp_path / "d.csv"
    pairs = [(a, b) for a in ("fra", "dub", "phone") for b in ("fra", "dub")]
    path.write_text("src,dst,rtt\n" + "".join(f"{a},{b},0.04\n" for a, b in pairs))
    with pytest.raises(UnitsWarning, match="are they milliseconds"):
        read_distributions(path, instance)


def test_import_takes_means_from_the_table_or_from_the_percentiles(tmp_path):
    text = "src,dst,p25,p75,mean\na,b,10,30,21\nb,a,10,30,22\na,a,1,1,1\nb,b,1,1,1\n"
    (tmp_path / "with.csv").write_text(text)
    table = read_rtt(tmp_path / "with.csv")
    assert table.values.tolist() == [[21, 1], [1, 22]]  # columns b, a
    assert "column 'mean'" in table.provenance[0]
    (tmp_path / "without.csv").write_text(text.replace(",mean", ",note"))
    table = read_rtt(tmp_path / "without.csv", "percentiles")
    assert table.values[0, 0] == pytest.approx(23.301196, abs=1e-6)  # worked by hand in `shapes`
    assert "means of the percentiles" in table.provenance[0]
