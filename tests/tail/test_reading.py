"""Tables of distributions: three layouts, what is missing, what is wrong, and the importer."""

import csv

import numpy as np
import pytest

import placement
from placement import Instance
from placement.errors import InputError, PlacementWarning, UnitsWarning
from placement.io import read_rtt
from placement.io.feeds.rtt_tables import read_pairs
from placement.io.rtt_distributions import read_distributions
from placement.measures.question import percentile_question
from placement.tail import Distributions
from placement.tail.histograms import of_percentiles, of_weights


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
        (
            "src,dst,rtt\nfra,dub,1\n",
            r"src, dst: 1 of 4 pairs have no distribution: got 'dub",
        ),
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


def test_published_percentiles_come_back(tmp_path):
    """A table as the clouds publish it, drawn: every percentile of every pair, to a bin's width."""
    path, rng = tmp_path / "percentiles.csv", np.random.default_rng(3)
    lines = ["src,dst,rtt_mean_ms," + ",".join(f"rtt_p{p}_ms" for p in (10, 25, 50, 75, 90, 99))]
    for a in "abcdefghij":
        for b in "abcdefghij":
            drawn = rng.uniform(3, 250) + rng.lognormal(1, 0.8, 500)
            cells = [drawn.mean(), *np.percentile(drawn, [10, 25, 50, 75, 90, 99])]
            lines.append(",".join([a, b, *(f"{cell:.2f}" for cell in cells)]))
    path.write_text("\n".join(lines))
    pairs = read_pairs(path)
    assert pairs.percents == (10, 25, 50, 75, 90, 99)
    table = read_rtt(path)
    names = table.sources
    between = table.values.copy()
    np.fill_diagonal(between, 0)
    instance = Instance(
        sites=names,
        clients=names,
        client_rtt=table.values,
        site_rtt=between,
        counts=np.ones((len(names), 5)),
    )
    made = read_distributions(path, instance)
    for i, a in enumerate(names):
        for j, b in enumerate(names):
            reached = np.cumsum(made.client_site[i, j])
            for percent, value in zip(pairs.percents, pairs.pairs[a, b][0], strict=True):
                place = np.searchsorted(reached, percent / 100 - 1e-9)
                assert place <= value + 0.5 + 1e-6
    problem = placement.Problem(
        instance, replicas=list(names[:5]), voters=3, objective=percentile_question(99, made)
    )
    assert placement.solve(problem, "exact").status == "optimal"
    assert isinstance(made, Distributions)
