"""Tables of RTTs, demand and operations as people have them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement import InputError, Instance, Problem
from placement.cli.output import frame_csv
from placement.io import assemble, load_instance, read_counts, read_rtt
from placement.io.demand_tables import order_intervals, read_demand
from placement.io.formats import column_reader
from placement.io.rtt_table import RttTable
from placement.model.operations import RELAYED_STRONG_READ, Operation
from tests.cli.command import Run
from tests.expected import refused
from tests.feeds.test_import_verb import imported as run_import

# Rows wait for columns; every number is another one, so that a transposed table would show.
RTT = {("a", "a"): 0.5, ("a", "b"): 10.0, ("b", "a"): 12.0, ("b", "b"): 0.7}
SQUARE = "from,a,b\na,0.5,10\nb,12,0.7\n"
LONG = "src,dst,rtt\nb,a,12\na,b,10\na,a,0.5\nb,b,0.7\n"
LATENCIES = {
    "metadata": {"percentile": "p_50", "timeframe": "1Y", "unit": "milliseconds"},
    "data": {"a": {"a": 0.5, "b": 10.0}, "b": {"a": 12.0, "b": 0.7}},
}
AVERAGES = [
    {"region": start, "averages": [{"regionTo": end, "average": ms} for end, ms in row.items()]}
    for start, row in {"a": {"a": 0.5, "b": 10}, "b": {"a": 12, "b": 0.7}}.items()
]


def _parquet(path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    start, end = zip(*RTT, strict=True)
    pq.write_table(pa.table({"src": start, "dst": end, "rtt": list(RTT.values())}), path)


def _write(folder: Path, layout: str) -> Path:
    name = {"square": "rtt.csv", "long": "rtt.csv", "tsv": "rtt.tsv", "parquet": "rtt.parquet"}
    path = folder / name.get(layout, "rtt.json")
    if layout == "square":
        path.write_text(SQUARE)
    elif layout == "long":
        path.write_text(LONG)
    elif layout == "tsv":
        path.write_text(SQUARE.replace(",", "\t"))
    elif layout == "parquet":
        _parquet(path)
    else:
        path.write_text(json.dumps(LATENCIES if layout == "latencies" else AVERAGES))
    return path


def write(folder: Path, text: str, name: str = "counts.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


LAYOUTS = ("square", "long", "tsv", "parquet", "latencies", "averages")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_is_recognised_and_gives_the_same_world(tmp_path: Path, layout: str) -> None:
    table = read_rtt(_write(tmp_path, layout))
    for start, row in zip(table.sources, table.values, strict=True):
        for end, value in zip(table.destinations, row, strict=True):
            assert value == RTT[start, end]
    world = assemble(table, mix="ycsb-a").replace(name="w")
    place = {site: i for i, site in enumerate(world.sites)}
    for (start, end), value in RTT.items():
        assert world.client_rtt[place[start], place[end]] == value
        assert world.site_rtt[place[start], place[end]] == (0 if start == end else value)
    assert world.clients == world.sites
    assert len(world.provenance) == 3
    assert "rtt." in world.provenance[0]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_serves_clients_too(tmp_path: Path, layout: str) -> None:
    (tmp_path / "sites").mkdir()
    sites = tmp_path / "sites" / "site.csv"
    sites.write_text("x,b,a\nb,,5\na,6,9\n")
    world = assemble(read_rtt(sites), client_rtt=read_rtt(_write(tmp_path, layout)), mix="ycsb-a")
    assert world.sites == ("b", "a")
    assert world.site_rtt.tolist() == [[0, 5], [6, 0]]
    for c, client in enumerate(world.clients):
        assert world.client_rtt[c].tolist() == [RTT[client, "b"], RTT[client, "a"]]
    assert "The measured RTTs of sites to themselves were replaced by 0." in world.provenance


@given(
    values=st.lists(st.lists(st.floats(0, 1e9), min_size=3, max_size=3), min_size=3, max_size=3),
    order=st.permutations([(i, j) for i in range(3) for j in range(3)]),
)
def test_square_and_long_agree(
    tmp_path_factory: pytest.TempPathFactory,
    values: list[list[float]],
    order: list[tuple[int, int]],
) -> None:
    folder = tmp_path_factory.mktemp("t")
    names = "xyz"
    rows = "\n".join(f"{names[i]}," + ",".join(map(repr, row)) for i, row in enumerate(values))
    (folder / "square.csv").write_text("," + ",".join(names) + "\n" + rows + "\n")
    long = "\n".join(f"{values[i][j]!r},{names[j]},{names[i]}" for i, j in order)
    (folder / "long.csv").write_text("ms,to,from\n" + long + "\n")
    square = read_rtt(folder / "square.csv")
    pairs = read_rtt(folder / "long.csv", columns={"src": "from", "dst": "to", "rtt": "ms"})
    wanted = ("z", "x", "y")
    one, _ = square.between(wanted, wanted)
    other, _ = pairs.between(wanted, wanted)
    assert one.tobytes() == other.tobytes()
    assert one[1, 2] == values[0][1]


def test_long_tables_with_intervals_become_scenarios(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("when,src,dst,rtt\nt2,a,b,1\nt2,b,a,2\nt1,b,a,4\nt1,a,b,3\n")
    columns = {"interval": "when"}
    table = read_rtt(tmp_path / "r.csv", columns=columns)
    assert table.intervals == ("t2", "t1")  # as they first appear
    (tmp_path / "n.csv").write_text("interval,client,strong_read\nt1,b,1\nt1,a,2\nt2,a,3\nt2,b,4\n")
    world = assemble(table, counts=read_counts(tmp_path / "n.csv"), intra_site=0.25)
    assert world.intervals == ("t1", "t2")  # the demand says what is oldest
    assert world.site_rtt.tolist() == [[[0, 3], [4, 0]], [[0, 1], [2, 0]]]
    assert world.client_rtt[1].tolist() == [[0.25, 1], [2, 0.25]]
    assert world.counts[:, :, 0].tolist() == [[2, 1], [3, 4]]
    assumed = assemble(table, mix="ycsb-b")
    assert assumed.intervals == ("t2", "t1")
    assert assumed.counts.shape == (2, 2, 5)
    (tmp_path / "n.csv").write_text("interval,client,strong_read\nt1,b,1\nt1,a,2\n")
    with pytest.raises(InputError, match=r"r\.csv: interval: .*different intervals: got 't2'"):
        assemble(table, counts=read_counts(tmp_path / "n.csv"))
    with pytest.raises(InputError, match=r"a → b, expected once \(first in row 2\)|given twice"):
        read_rtt(tmp_path / "r.csv", "long")


def test_missing_pairs_are_counted_and_named(tmp_path: Path) -> None:
    table = read_rtt(write(tmp_path, "src,dst,rtt\na,b,1\nb,c,2\nc,a,3\n", "r.csv"))
    with pytest.raises(InputError) as caught:
        assemble(table, mix="cache")
    text = str(caught.value)
    assert "r.csv: rtt: 3 of 6 pairs have no RTT" in text
    assert "a → c, b → a, c → b" in text
    assert "fill='transpose'" in text
    world = assemble(table, mix="cache", fill="transpose")
    assert world.site_rtt.tolist() == [[0, 1, 3], [1, 0, 2], [3, 2, 0]]
    assert any(
        "3 missing RTTs of r.csv were taken from the opposite direction: a → c, b → a, c → b."
        in sentence
        for sentence in world.provenance
    )


def test_filling_leaves_what_was_measured_alone(tmp_path: Path) -> None:
    world = assemble(
        read_rtt(write(tmp_path, "x,a,b,c\na,,1,2\nb,9,,3\nc,8,,\n", "r.csv")),
        mix="cache",
        fill="transpose",
    )
    assert world.site_rtt.tolist() == [[0, 1, 2], [9, 0, 3], [8, 3, 0]]


def test_a_pair_missing_both_ways_is_refused_even_when_filling(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("x,a,b,c\na,,1,\nb,1,,2\nc,,,\n")
    with pytest.raises(InputError, match="2 of 6 pairs have no RTT: got 'a → c, c → a'"):
        assemble(read_rtt(tmp_path / "r.csv"), mix="cache", fill="transpose")


def test_a_name_on_one_side_only_is_a_site_with_missing_pairs(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("src,dst,rtt\na,b,1\n")
    with pytest.raises(InputError, match="1 of 2 pairs have no RTT: got 'b → a'"):
        assemble(read_rtt(tmp_path / "r.csv"), mix="cache")


@pytest.mark.parametrize(
    ("table", "old", "new", "says"),
    [
        ("rtt.csv", "lyon,paris", "lyonn,paris", "as destination: got 'lyonn'.*mean 'lyon'"),
        ("rtt.csv", "lyon", "lyonn", "region: unknown site: got 'lyon'.*mean 'lyonn'"),
        ("counts.csv", "lyon", "lyonn", "unknown client: got 'lyonn'.*mean 'lyon'"),
        ("sites.csv", "lyon", "lyonn", "region: unknown site: got 'lyonn'.*mean 'lyon'"),
    ],
)  # fmt: skip
def test_a_name_of_one_table_alone_is_told_with_the_nearest(
    table: str, old: str, new: str, says: str, tmp_path: Path
) -> None:
    names = ("paris", "lyon", "rome")
    pairs = [f"{a},{b},9" for a in names for b in names if a != b]
    texts = {
        "rtt.csv": "\n".join(["src,dst,rtt", *pairs]),
        "counts.csv": "client,weak_read\n" + "".join(f"{name},1\n" for name in names),
        "sites.csv": "region,latitude,longitude,country\n"
        + "".join(f"{name},{k}.5,{k}.25,C{k}\n" for k, name in enumerate(names)),
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text.replace(old, new) if name == table else text)
    demand, rtt = read_counts(tmp_path / "counts.csv"), read_rtt(tmp_path / "rtt.csv")
    sites = None if "as destination" in says else tmp_path / "sites.csv"
    with pytest.raises(InputError, match=says):
        assemble(rtt, counts=demand, sites=sites)
    (tmp_path / table).write_text(texts[table])
    demand, rtt = read_counts(tmp_path / "counts.csv"), read_rtt(tmp_path / "rtt.csv")
    whole = assemble(rtt, counts=demand, sites=tmp_path / "sites.csv")
    assert whole.levels == ("site", "country")  # coordinates are no failure domains
    with pytest.raises(InputError, match="unknown failure-domain level: got 'latitude'"):
        Problem(whole, replicas=2, survive="latitude")


def test_clients_need_an_rtt_to_every_candidate(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text(SQUARE)
    (tmp_path / "c.csv").write_text("client,a,b\nx,1,\n")
    with pytest.raises(InputError, match=r"c\.csv: rtt: 1 of 2 pairs.*x → b"):
        assemble(read_rtt(tmp_path / "r.csv"), client_rtt=read_rtt(tmp_path / "c.csv"), mix="cache")
    (tmp_path / "c.csv").write_text("client,a,d\nx,1,2\n")
    with pytest.raises(InputError, match=r"c\.csv: destination: unknown site: got 'd'"):
        assemble(read_rtt(tmp_path / "r.csv"), client_rtt=read_rtt(tmp_path / "c.csv"), mix="cache")


def test_the_diagonal_goes_to_the_client_side(tmp_path: Path) -> None:
    world = assemble(
        read_rtt(write(tmp_path, "x,a,b,c\na,,1,2\nb,3,0.4,5\nc,6,7,\n", "r.csv")),
        mix="cache",
        intra_site=0.9,
    )
    assert np.diagonal(world.client_rtt).tolist() == [0.9, 0.4, 0.9]
    assert not np.diagonal(world.site_rtt).any()
    assert "within 2 sites no value was given, and 0.9 ms is assumed" in world.provenance[1]


def test_a_table_of_sites_picks_orders_and_labels(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("x,a,b,c\na,,1,2\nb,3,,5\nc,6,7,\n")
    (tmp_path / "s.csv").write_text("name,country,lat,lon\nc,C,1,2\na,,,\n")
    world = assemble(read_rtt(tmp_path / "r.csv"), mix="cache", sites=tmp_path / "s.csv")
    assert world.sites == ("c", "a")
    assert world.site_rtt.tolist() == [[0, 6], [2, 0]]
    assert dict(world.domains) == {"country": ("C", None)}
    assert "1 measured sites are no candidates: b." in world.provenance
    (tmp_path / "s.csv").write_text("name,country\nc,C\nd,D\n")
    with pytest.raises(InputError, match=r"s\.csv, row 3: name: unknown site: got 'd'"):
        assemble(read_rtt(tmp_path / "r.csv"), mix="cache", sites=tmp_path / "s.csv")


def test_demand_wide_long_or_assumed(tmp_path: Path) -> None:
    rtt = read_rtt(write(tmp_path, SQUARE, "r.csv"))
    (tmp_path / "wide.csv").write_text("client,strong_read,weak_read\nb,1,2\na,3,4\n")
    wide = assemble(rtt, counts=read_counts(tmp_path / "wide.csv"))
    (tmp_path / "long.csv").write_text(
        "operation,client,count\nweak_read,b,2\nstrong_read,a,3\nstrong_read,b,1\nweak_read,a,4\n"
    )
    long = assemble(rtt, counts=read_counts(tmp_path / "long.csv"))

    def by_name(world: Instance) -> dict[tuple[str, str], float]:
        return {
            (client, operation.name): world.counts[0, c, o]
            for c, client in enumerate(world.clients)
            for o, operation in enumerate(world.operations)
        }

    expected = {("a", "strong_read"): 3, ("a", "weak_read"): 4, ("b", "strong_read"): 1,
                ("b", "weak_read"): 2}  # fmt: skip
    assert by_name(wide) == by_name(long) == expected
    (tmp_path / "long.csv").write_text("client,operation,count\na,weak_read,2\n")
    sparse = assemble(rtt, counts=read_counts(tmp_path / "long.csv"))
    assert by_name(sparse) == {("a", "weak_read"): 2, ("b", "weak_read"): 0}
    assumed = assemble(rtt, mix="ledger")
    assert assumed.counts[0].tolist() == [[0, 50, 450, 350, 150]] * 2
    assert "assumed, not measured" in assumed.provenance[-1]


BAD_COUNTS = [
    ("client,weak_read\na,1\n", "1 of 2 clients missing: got 'b'"),
    ("client,weak_read\na,1\nb,2\nc,3\n", "unknown client: got 'c'"),
    ("client,weak_read\na,1\nb,-2\n", "row 3: weak_read: negative: got '-2'"),
    ("client,weak_read\na,1\nb,inf\n", "row 3: weak_read: infinite: got 'inf'"),
    ("client,odd\na,1\nb,2\n", "unknown operation: got 'odd'"),
    ("client\na\n", "no column of counts"),
    ("client,weak_read\n", "no rows: expected a row per count"),
    ("interval,client,weak_read\n", "no rows"),
    ("client,operation,count\n", "no rows: expected a row per count"),
    (
        "client,operation,count\na,weak_read,1\na,weak_read,1\n",
        "row 3: client, operation: a row given twice",
    ),
    ("client,operation,count\nz,weak_read,1\n", "unknown client: got 'z'"),
    ("client,operation,count\na,weak_read,\n", "row 2: count: missing value"),
    ("client,weak_read\na,0\nb,0\n", None),
]


@pytest.mark.parametrize(("text", "message"), BAD_COUNTS)
def test_bad_demand(tmp_path: Path, text: str, message: str | None) -> None:
    (tmp_path / "r.csv").write_text(SQUARE)
    (tmp_path / "n.csv").write_text(text)
    rtt = read_rtt(tmp_path / "r.csv")
    if message is None:  # nobody asks for anything: a world, though there is nothing to optimise
        assert not assemble(rtt, counts=read_counts(tmp_path / "n.csv")).counts.any()
        return
    with refused(message, "n.csv"):
        assemble(rtt, counts=read_counts(tmp_path / "n.csv"))


def test_demand_is_needed_exactly_once(tmp_path: Path) -> None:
    rtt = read_rtt(write(tmp_path, SQUARE, "r.csv"))
    with pytest.raises(InputError, match="no demand is given"):
        assemble(rtt)
    (tmp_path / "n.csv").write_text("client,weak_read\na,1\nb,1\n")
    with pytest.raises(InputError, match="demand is given twice"):
        assemble(rtt, counts=read_counts(tmp_path / "n.csv"), mix="cache")
    with pytest.raises(InputError, match="unknown operation mix: got 'cash'"):
        assemble(rtt, mix="cash")


BAD_RTTS = [
    ("x,a,b\na,0,1\nb,-2,0\n", "row 3: a: negative: got '-2', expected a finite number of"),
    ("x,a,b\na,0,nan\nb,2,0\n", "row 2: b: not a number: got 'nan'"),
    ("x,a,b\na,0,inf\nb,2,0\n", "row 2: b: infinite: got 'inf'"),
    ("x,a,b\na,0,1 km\nb,2,0\n", "row 2: rtt: an unknown unit: got '1 km'"),
    ("x,a,b\na,0,1\na,2,0\n", "row 3: x: duplicate row: got 'a', expected once (first in row 2)"),
    ("x,a,a \na,0,1\n", "header: duplicate column: got 'a'"),
    ("x,a,b\na,0,1\n,2,0\n", "row 3: x: no name"),
    ("x,a,b\na,0\n", "row 2: a row of another length: got 2, expected 3 cells"),
    ("x,a,b\n", "no rows"),
    ("x\na\n", "an unknown format: got 'x"),
    ("", "empty: expected a table with a header"),
    ("src,dst,rtt\na,b,1\na,b,2\n", "row 3: dst: a pair given twice: got 'a → b'"),
    ("src,dst,rtt\na,b,\n", "row 2: rtt: missing value"),
    ("src,dst,rtt\na,,1\n", "row 2: dst: no name"),
    ("src,dst,rtt\n", "no rows"),
]


def test_wrong_column_names_are_suggested(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("src,dst,rtt_ms\na,b,1\n")
    with pytest.raises(InputError, match=r"--columns rtt: no such column: .*'rtt_ms'"):
        read_rtt(tmp_path / "r.csv", columns={"src": "src", "dst": "dst", "rtt": "rtt"})
    with pytest.raises(InputError, match=r"r\.csv: --columns dst: no such column"):
        read_rtt(tmp_path / "r.csv", columns={"src": "src", "dst": "to", "rtt": "rtt"})
    with pytest.raises(InputError, match="unknown format: got 'round'"):
        read_rtt(tmp_path / "r.csv", "round")


BAD_JSON: list[tuple[Any, str]] = [
    ("[", "not JSON"),
    ("7", "not an answer of cloudping.co"),
    ('{"data": []}', "not an answer of cloudping.co"),
    ("[]", "not an answer of cloudping.co"),
    ("[7]", "not an answer of cloudping.co"),
    ('[{"region": "a", "averages": [7]}]', "no RTTs"),
    ('[{"region": "a", "averages": [{"regionTo": "b", "average": -1}]}]',
     "[0].averages[0]: average: negative: got -1"),
    ('[{"region": "a", "averages": [{"regionTo": "b", "average": "x"}]}]',
     "[0].averages[0]: average: not a number: got 'x'"),
    ('[{"region": "a", "averages": [{"regionTo": "b", "average": 1}, '
     '{"regionTo": "b", "average": 1}]}]', "a pair given twice: got 'a → b'"),
    ('{"data": {"a": 7}}', "not an answer of cloudping.co"),
    ('{"data": {"a": {"b": [[1]]}}}', "a.b: rtt: not a number: got [1]"),
    ('{"data": {"a": {"b": true}}}', "a.b: rtt: not a number: got True"),
    ('{"data": {"a": {"b": NaN}}}', "not JSON: got 'NaN'"),
    ('{"data": {"a": {" ": 1}}}', "a. : to: no name"),
    ('{"metadata": {"unit": "seconds"}, "data": {"a": {"b": 1}}}',
     "metadata.unit: unsupported unit: got 'seconds', expected milliseconds"),
]  # fmt: skip


def test_cloudping_says_what_it_measured(tmp_path: Path) -> None:
    latencies = read_rtt(_write(tmp_path, "latencies"), "cloudping")
    assert "percentile p_50, time frame 1Y" in latencies.provenance[0]
    (tmp_path / "gap.json").write_text('{"data": {"a": {"b": null, "a": 1}, "b": {"a": 2}}}')
    gap = read_rtt(tmp_path / "gap.json", "cloudping")
    with pytest.raises(InputError, match="1 of 2 pairs have no RTT: got 'a → b'"):
        assemble(gap, mix="cache")


def test_other_units_can_be_scaled(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("x,a,b\na,0.001,0.01\nb,0.012,0.001\n")
    table = read_rtt(tmp_path / "r.csv", "square").scaled(1000)
    assert table.values.tolist() == [[1, 10], [12, 1]]
    assert "multiplied by 1000" in table.provenance[-1]
    assert table.scaled(1) is table
    for factor in (0, -1, math.inf, math.nan):
        with pytest.raises(InputError, match="scale"):
            table.scaled(factor)


class TestLayoutsOfPublishedTables:
    """Layouts in which clouds publish their latencies, with drawn numbers."""

    SITES = ("Dallas", "Frankfurt", "Osaka", "Sao Paulo")

    def drawn(self, seed: int) -> np.ndarray:
        return np.random.default_rng(seed).integers(2, 300, (4, 4)) / 2.0

    def test_square_and_long_forms_of_one_measurement_agree(self, tmp_path: Path) -> None:
        values = self.drawn(1)
        square, long = tmp_path / "square.csv", tmp_path / "percentiles.csv"
        lines = [",".join([a, *map(str, row)]) for a, row in zip(self.SITES, values, strict=True)]
        square.write_text("\n".join([",".join(("site", *self.SITES)), *lines]))
        rows = [
            f"{a},{b},{values[i, j] + 3},{values[i, j] - 1},{values[i, j]},{values[i, j] + 9}"
            for i, a in enumerate(self.SITES)
            for j, b in enumerate(self.SITES)
        ]
        long.write_text("\n".join(["src,dst,rtt_mean_ms,rtt_p10_ms,rtt_p50_ms,rtt_p90_ms", *rows]))
        one, _ = (read := read_rtt(square)).between(read.sources, read.sources)
        other, _ = read_rtt(long, columns={"rtt": "rtt_p50_ms"}).between(read.sources, read.sources)
        assert read.sources == self.SITES
        assert np.array_equal(one, values)
        assert np.array_equal(other, values)

    def test_a_series_of_weeks_becomes_scenarios(self, tmp_path: Path) -> None:
        weeks = [f"2023-{3 + week // 4:02d}-{1 + week % 4 * 7:02d}" for week in range(30)]
        rows = [
            f"{week},{a},{b},{self.drawn(number)[i, j]},Table {number}"
            for number, week in enumerate(weeks)
            for i, a in enumerate(self.SITES)
            for j, b in enumerate(self.SITES)
            if i != j
        ]
        path = tmp_path / "weekly.csv"
        path.write_text("\n".join(["window_end,src,dst,rtt_avg_ms,window", *rows]))
        table: RttTable = read_rtt(path, columns={"rtt": "rtt_avg_ms", "interval": "window_end"})
        assert table.intervals == tuple(weeks)
        pair = ("Dallas", "Frankfurt")
        values, _ = table.between(pair, pair, diagonal=False)
        assert values.shape == (30, 2, 2)
        assert [week[0, 1] for week in values] == [self.drawn(n)[0, 1] for n in range(30)]

    def test_a_matrix_with_an_empty_diagonal(self, tmp_path: Path) -> None:
        path = tmp_path / "empty.csv"
        path.write_text("site,a,b,c\na,,3.0,8.0\nb,4.0,,7.0\nc,9.0,6.0,\n")
        world = assemble(read_rtt(path), mix="social")
        assert np.diagonal(world.client_rtt).tolist() == [1.0] * 3
        assert (world.client_rtt[0, 1], world.client_rtt[1, 0]) == (3.0, 4.0)


GOOD = {
    "square": "site,a,b\na,0,1.5\nb,2.5,0\n",
    "long": "src,dst,rtt\na,a,0\na,b,1.5\nb,a,2.5\nb,b,0\n",
    "percentiles": "src,dst,p10,p50,p99\na,a,0,0,0\na,b,1,2,3\nb,a,2,3,4\nb,b,0,0,0\n",
}


@pytest.mark.parametrize("kind", GOOD)
def test_cells_of_a_good_table_are_not_looked_at_one_by_one(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.csv"
    path.write_text(GOOD[kind])
    expected = read_rtt(path, kind).values

    def refuse(*_: object) -> float:
        raise AssertionError("a single cell")

    monkeypatch.setattr("placement.io.formats.column_reader.quantity_cell", refuse)
    assert read_rtt(path, kind).values.tolist() == expected.tolist()
    assert expected.shape == (2, 2)


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        *(("auto", *one) for one in BAD_RTTS),
        *(("cloudping", *one) for one in BAD_JSON),
        ("long", "src,dst,rtt\na,b,1\na,b,2\nb,a,3\n", "row 3: dst: a pair given twice"),
        ("long", "src,dst,rtt\na,b,1\nb,a,x\na,a,y\n", "row 3: rtt: not a number"),
        ("square", "site,a,b\na,,1\na,2,\nb,x,0\n", "row 3: site: duplicate row"),
        ("square", "site,a,b\na,,1\nb,x,0\nc,y,0\n", "row 3: a: not a number"),
        ("percentiles", "src,dst,p10,p50\na,b,2,1\nb,a,2,1\n", "row 2: p50: below"),
        ("percentiles", "src,dst,p10,p50\na,b,1,2\na,b,1,2\n", "row 3: dst: a pair given twice"),
    ],
)
def test_bad_rtts(kind: str, text: str, message: str, tmp_path: Path) -> None:
    """Of a column, the first row that is wrong is named."""
    with refused(message, "r.data"):
        read_rtt(write(tmp_path, text, "r.data"), kind)


EXPECTED = "a finite number >= 0"


@pytest.fixture(params=["pandas", "pandas, wide", "whole rows"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """All ways to read a good table."""
    monkeypatch.setattr(column_reader, "_SMALL", 2**30 if request.param == "whole rows" else 0)
    if request.param == "pandas, wide":
        monkeypatch.setattr(column_reader, "_WIDE", 0)
    monkeypatch.setattr(column_reader, "_MEDIUM", 2**30)
    return str(request.param)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("site,a\nx,1\ny,True\n", "row 3: a: not a number: got 'True'"),
        ("site,a\nx,True\n", "row 2: a: not a number: got 'True'"),
        ("site,a\nx,1\ny,1_0\n", "row 3: a: not a number: got '1_0'"),
        ("site,a\nx,1\ny,\n", "row 3: a: missing value"),
        ("site,a\nx,1\ny,nan\n", "row 3: a: not a number: got 'nan'"),
        ("site,a\nx,1\ny,inf\n", "row 3: a: infinite"),
        ("site,a\nx,1\ny,1e999\n", "row 3: a: infinite"),
        ("site,a\nx,1\ny,-1\n", "row 3: a: negative"),
        ("site,a\nx,1\ny,2e18\n", "row 3: a: too large"),
        ("site,a\nx,1\nx,2\n", r"row 3: site: duplicate site: got 'x'.*first in row 2"),
        ("site,a\nx,1\n,2\n", "row 3: site: no name"),
        ("site,a\nx,1\ny,2,3\n", "row 3: a row of another length"),
        ("site,a\nx,1\ny\n", "row 3: a row of another length"),
        ("site,a,a\nx,1,2\n", "duplicate column"),
        ("site,a,\nx,1,2\n", "column 3 has no name"),
        ("site,a\n", "no rows"),
        ("site\nx\n", "no columns of numbers"),
        ("site,a\nx\0y,1\n", "row 2.*(not a name|NUL)"),
        ("interval,site,a\n1,x,1\n1,y,2\n2,x,3\n", "missing row: got 'y'.*interval '2'"),
        ("interval,site,a\n1,x,1\n1,x,2\n", "row 3: site: duplicate site in interval '1'"),
    ],
)
def test_trouble_is_named(tmp_path: Path, way: str, text: str, message: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(InputError, match=message):
        column_reader.read_matrix(tmp_path / "t.csv", "site", EXPECTED)


def test_names_are_kept_as_they_are(tmp_path: Path, way: str) -> None:
    text = 'site,a\n01,1\n1,2\n" x ",3\nNA,4\n"a,b",5\nnan,6\nTrue,7\n1.0,8\n'
    (tmp_path / "t.csv").write_text(text)
    found = column_reader.read_matrix(tmp_path / "t.csv", "site", EXPECTED)
    assert found.rows == ("01", "1", " x ", "NA", "a,b", "nan", "True", "1.0")
    assert found.values[:, 0].tolist() == [1, 2, 3, 4, 5, 6, 7, 8]


SCRAMBLED = (
    "interval,client,strong_read\n"
    "2026-11-20T06:30,a,3\n2026-11-20T06:30,b,4\n"
    "2026-11-19T20:00,a,1\n2026-11-19T20:00,b,2\n"
    "2026-11-20T01:15,b,9\n2026-11-20T01:15,a,8\n"
)
TWO_SITES = "x,a,b\na,0,7\nb,8,0\n"


def test_import_sorts_and_says_so(command: Run, tmp_path: Path) -> None:
    rtt, counts = write(tmp_path, TWO_SITES, "rtt.csv"), write(tmp_path, SCRAMBLED)
    done = command("import", rtt, "--counts", counts, "-o", tmp_path / "mine", code=0)
    assert "counts.csv: sorted 3 intervals by time" in done.err
    made = load_instance(tmp_path / "mine")
    assert made.intervals[0] == "2026-11-19T20:00"
    assert made.counts[:, :, 0].tolist() == [[1, 2], [8, 9], [3, 4]]
    assert "Demand of counts.csv: sorted 3 intervals by time." in made.provenance


def test_a_manifest_by_hand_without_intervals(tmp_path: Path) -> None:
    write(tmp_path, TWO_SITES.replace("x,", "site,"), "site_rtt.csv")
    write(tmp_path, TWO_SITES.replace("x,", "client,"), "client_rtt.csv")
    write(tmp_path, SCRAMBLED)
    names = "".join(f'{name} = "{name}.csv"\n' for name in ("site_rtt", "client_rtt", "counts"))
    head = 'format = "replica-placement instance"\nversion = 1\n[tables]\n'
    made = load_instance(write(tmp_path, head + names, "instance.toml"))
    assert made.intervals == ("2026-11-19T20:00", "2026-11-20T01:15", "2026-11-20T06:30")
    assert made.counts[0, :, 0].tolist() == [1, 2]


def test_silent_intervals_count(tmp_path: Path) -> None:
    demand = read_demand(write(tmp_path, "interval,client,weak_read\n4,a,4\n1,a,1\n2,a,2\n"))
    assert demand.intervals == ("1", "2", "3", "4")
    assert demand.counts[0, :, 0, 0].tolist() == [1, 2, 0, 4]
    assert demand.notes == (
        "sorted 3 intervals by number",
        "1 interval has no rows: no operations are counted there",
    )


@pytest.mark.parametrize(
    ("labels", "order"),
    [
        (["1.5", "0.25", "10"], ["0.25", "1.5", "10"]),
        (["night", "day"], ["night", "day"]),
        (["3", "day", "1"], ["3", "day", "1"]),
        (["9" * 5000, "1"], ["9" * 5000, "1"]),
        (
            ["2026-03-29T03:30+02:00", "2026-03-29T01:30+01:00", "2026-03-29T03:00+02:00"],
            ["2026-03-29T01:30+01:00", "2026-03-29T03:00+02:00", "2026-03-29T03:30+02:00"],
        ),
        (["2026-03-01T00:00:00.5", "2026-03-01T00:00:00.2"],
         ["2026-03-01T00:00:00.2", "2026-03-01T00:00:00.5"]),
    ],
)  # fmt: skip
def test_orders(labels: list[str], order: list[str]) -> None:
    found = order_intervals(labels, "f")
    assert list(found.labels) == order
    assert [found.labels[i] for i in found.place] == labels


def test_wide_long_and_databases(tmp_path: Path) -> None:
    wide = read_demand(write(tmp_path, "who,weak_read,own\na,1,2\nb,3,4\n"))
    assert (wide.clients, wide.operations) == (("a", "b"), ("weak_read", "own"))
    assert wide.counts.tolist() == [[[[1, 2], [3, 4]]]]
    long = read_demand(
        write(tmp_path, "client,operation,count\nb,own,4\na,own,2\n"),
        clients=("a", "b", "c"),
        operations=("weak_read", "own"),
    )
    assert long.sparse
    assert long.counts.tolist() == [[[[0, 2], [0, 4], [0, 0]]]]
    # in a table of databases, as the generator writes it, rows of zeros are left out
    fleet = read_demand(write(tmp_path, "database,interval,client,own\nx,1,a,1\ny,1,b,2\n"))
    assert fleet.databases == ("x", "y")
    assert fleet.sparse
    np.testing.assert_array_equal(fleet.counts[:, 0, :, 0], [[1, 0], [0, 2]])
    several = write(tmp_path, "database,interval,client,own\nx,1,a,1\ny,1,b,2\n")
    with pytest.raises(InputError, match="database: demand of several databases: got 'x, y'"):
        read_counts(several)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("interval,client,own\n1,a,1\n1,b,1\n2,b,1\n",
         "client: missing row: got 'a'.*interval '2'"),
        ("interval,client,own\n1,a,1\n1,a,2\n", r"row 3: interval, client: a row given twice: got "
         r"'1, a', expected once \(first in row 2\)"),
        ("client,operation,count\na,own,1\n\na,own,1\n",
         r"row 4: client, operation: a row given twice.*first in row 2"),
        ("interval,client,own\n1,a,1\n01,a,2\n",
         r"row 3: interval: two names for one interval: got '1, 01'.*row 2"),
        ("interval,client,own\n2026-03-02T00:00,a,1\n2026-03-02T01:00Z,a,2\n",
         "row 3: interval: times with and without a time zone"),
        ("interval,client,own\n1,a,1\n2,a,1\n9999999999,a,1\n", "9,999,999,999 intervals between"),
        ("client\na\n", "no column of counts"),
        ("client,count\na,1\n", "operation: no such column"),
        ("client,operation\na,1\n", "count: no such column"),
    ],
)  # fmt: skip
def test_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read_demand(write(tmp_path, text))
    assert "counts.csv" in str(caught.value)


def test_known_names_and_intervals(tmp_path: Path) -> None:
    path = write(tmp_path, "interval,client,own\nz,a,1\nx,a,2\n")
    demand = read_demand(path, intervals=("x", "y", "z"))
    assert demand.intervals == ("x", "y", "z")
    assert demand.counts[0, :, 0, 0].tolist() == [2, 0, 1]
    assert demand.notes == ()
    with pytest.raises(InputError, match="row 2: interval: no such interval: got 'z'"):
        read_demand(path, intervals=("x", "y"))
    with pytest.raises(InputError, match=r"client: missing row \(2 in all\): got 'b'"):
        read_demand(path, clients=("a", "b"))
    with pytest.raises(InputError, match="own: a column that is no operation"):
        read_demand(path, operations=("weak_read",))


def imported(folder: Path, counts: str, *options: str) -> int:
    tables = write(folder, TWO_SITES, "rtt.csv"), "--counts", write(folder, counts)
    return run_import(*tables, "-o", folder / "mine", *options)


def test_operations_are_defined_on_the_command_line(tmp_path: Path) -> None:
    counts = "client,audit,relayed_strong_read,weak_read\na,1,2,3\nb,4,5,6\n"
    code = imported(tmp_path, counts, "--operation", "audit:near=1,relay=0.3", "--operation",
                    "at: noon:quorum=2")  # fmt: skip
    assert code == 0
    audit, relayed, weak = load_instance(tmp_path / "mine").operations
    assert audit == Operation("audit", near=1, relay=0.3)
    assert relayed == RELAYED_STRONG_READ
    assert weak.name == "weak_read"


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("audit", "--operation: not NAME=OPERATION, or NAME:near=1,relay=0.3: got 'audit'"),
        ("audit:", "not NAME:ROUND_TRIPS=NUMBER"),
        ("audit:far=1", "got 'far=1', expected NAME:.* a name of near, relay"),
        ("audit:near=many", "not a number: got 'many'"),
        ("audit:near=1,near=1", "given twice"),
        ("audit:near=-1", "out of range: got '-1'"),
        ("audit:near=nan", "out of range: got 'nan'"),
        (":near=1", "not a name"),
    ],
)
def test_bad_operations(tmp_path: Path, option: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        imported(tmp_path, "client,audit\na,1\nb,2\n", "--operation", option)


def test_an_operation_that_is_not_defined(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"unknown operation: got 'audit'.*--operation"):
        imported(tmp_path, "client,audit\na,1\nb,2\n")


def test_csv_for_people_holds_no_formula_and_no_invisible_characters() -> None:
    names = ["=cmd|'/c calc'!A1", "+1", "-2", "@sum", " =1", "\u202eevil", "a\tb", "plain"]
    table = pd.DataFrame(
        {"site": names, "ms": [-1.5] * len(names), "=h": [("=a", "b")] * len(names)}
    )
    lines = frame_csv(table).splitlines()
    assert lines[0] == "site,ms,'=h"
    cells = [line.split(",")[0] for line in lines[1:]]
    assert cells == [
        "'=cmd|'/c calc'!A1",
        "'+1",
        "'-2",
        "'@sum",
        "' =1",
        "\\u202eevil",
        "a\\tb",
        "plain",
    ]
    assert {line.split(",")[1] for line in lines[1:]} == {"-1.5"}  # numbers stay numbers
    assert all(line.endswith("'=a; b") for line in lines[1:])
