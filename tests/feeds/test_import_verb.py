"""``placement import`` with what people have: RTTs, merged clients, demand, Prometheus."""

from __future__ import annotations

import contextlib
import http.server
import json
import socket
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement import InputError, Instance, Problem
from placement.cli import main
from placement.cli.options import Parser
from placement.cli.verbs import import_
from placement.io import load_instance
from placement.io.demand_tables import DemandRequest, is_standard, read_demand_feed
from placement.io.feeds.registry import RttReading
from placement.io.merge_clients import merge_clients
from placement.model.configuration import Configuration
from placement.model.operations import Operation
from placement.plan import objective_value
from placement.prometheus.metrics_server import (
    PRESETS,
    PrometheusRequest,
    PrometheusServer,
    matchers,
    quoted,
    read_operations,
    read_rtts,
    window_of,
)
from tests.expected import refused


def imported(*arguments: object) -> int:
    parser = Parser()
    import_.add_parser(parser.add_subparsers())
    return import_.run(parser.parse_args(["import", *map(str, arguments)]))


def mesh(folder: Path) -> list[Path]:
    """Return the files of fping -C from three hosts."""
    names = {"10.0.0.1": (0, 92, 220), "10.0.0.2": (93, 0, 160), "10.0.0.3": (221, 161, 0)}
    files = []
    for name, row in names.items():
        path = folder / f"{name}.txt"
        lines = [
            f"{end} : {ms - 1} {ms} {ms + 5}" for end, ms in zip(names, row, strict=True) if ms
        ]
        path.write_text("\n".join(lines))
        files.append(path)
    return files


HOSTS = "10.0.0.1=frankfurt,10.0.0.2=virginia,10.0.0.3=tokyo"


def test_a_mesh_of_fping_becomes_an_instance_and_distributions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "samples.csv"
    code = imported(
        *mesh(tmp_path), "--mix", "social", "-o", tmp_path / "mine", "--site-of", HOSTS,
        "--distributions", table,
    )  # fmt: skip
    assert code == 0
    out = capsys.readouterr().out
    assert "10.0.0.1.txt: format fping (recognised by its content); " in out
    assert "6 samples of 2 pairs; the RTT is the median" in out
    world = load_instance(tmp_path / "mine")
    assert world.sites == ("virginia", "tokyo", "frankfurt") or set(world.sites) == {
        "frankfurt", "virginia", "tokyo",
    }  # fmt: skip
    place = {name: i for i, name in enumerate(world.sites)}
    assert world.site_rtt[place["frankfurt"], place["tokyo"]] == 220
    from placement.io.rtt_distributions import read_distributions

    with pytest.warns(match="no distribution from"):
        told = read_distributions(table, world)
    assert told.sites == world.sites


def test_a_pair_that_two_files_measure_differently_is_refused(tmp_path: Path) -> None:
    first = tmp_path / "a.csv"
    first.write_text("from,to,ms\na,b,10\nb,a,10\n")
    second = tmp_path / "b.csv"
    second.write_text("from,to,ms\na,b,11\n")
    with pytest.raises(InputError, match=r"b\.csv: a → b: a pair measured twice.*got 11\.0"):
        imported(first, second, "--mix", "social", "-o", tmp_path / "mine")
    with pytest.raises(InputError, match="--site-of: host: no such host: got 'c'"):
        imported(first, "--mix", "social", "-o", tmp_path / "mine", "--site-of", "c=d")


def test_hosts_of_one_site_become_their_median(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("from,to,ms\na1,b,10\na2,b,20\nb,a1,30\nb,a2,50\n")
    code = imported(
        path, "--mix", "social", "-o", tmp_path / "mine", "--site-of", "a1=a,a2=a", "--json"
    )
    assert code == 0
    world = load_instance(tmp_path / "mine")
    assert world.sites == ("a", "b")
    assert world.site_rtt.tolist() == [[0, 15], [40, 0]]


def test_seconds_are_recognised_and_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "r.csv"
    path.write_text("from,to,rtt\na,b,0.19\nb,a,0.2\n")
    words = r"r\.csv: rtt: RTTs that look like s, .*got 0\.2, expected --unit s, or --unit ms"
    with pytest.raises(InputError, match=words):
        imported(path, "--mix", "social", "-o", tmp_path / "mine")
    imported(path, "--mix", "social", "-o", tmp_path / "told", "--unit", "s")
    assert load_instance(tmp_path / "told").site_rtt[0, 1] == 190

    class Terminal:
        def isatty(self) -> bool:
            return True

        def readline(self) -> str:
            return "\n"

    monkeypatch.setattr("sys.stdin", Terminal())
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    imported(path, "--mix", "social", "-o", tmp_path / "asked")
    assert load_instance(tmp_path / "asked").site_rtt[0, 1] == 190
    assert "RTTs look like s: the largest is 0.2." in capsys.readouterr().err


def test_columns_and_an_export_of_demand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "r.csv").write_text("wann,von,nach,wert\n1,a,b,12\n1,b,a,13\n")
    (tmp_path / "d.csv").write_text("region,statement,calls\na,SELECT,10 k\nb,audit,5\n")
    code = imported(
        tmp_path / "r.csv", "--columns", "src=von,dst=nach,rtt=wert",
        "--counts", tmp_path / "d.csv", "--operation", "SELECT=strong_read",
        "--operation", "audit:near=1,quorum=2", "-o", tmp_path / "mine", "--json",
    )  # fmt: skip
    assert code == 0
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert document["notes"] == [
        "r.csv: format long; columns: src is 'von', dst is 'nach', rtt is 'wert'"
    ]
    assert "operations: SELECT is strong_read" in captured.err
    world = load_instance(tmp_path / "mine")
    assert [o.name for o in world.operations] == ["strong_read", "audit"]
    assert world.counts[0].tolist() == [[10_000, 0], [0, 5]]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--columns", "src"), "--columns: not ROLE=COLUMN: got 'src'"),
        (("--columns", "src=nope"), "--columns src: no such column: got 'nope'"),
        (("--site-of", "a"), "--site-of: not HOST=SITE: got 'a'"),
        (("--distributions", "d.csv"), "--distributions: no distributions in the RTTs"),
        (("--format", "fping"), "no RTTs"),
        (("--format", "consul"), "row 1: not JSON"),
    ],
)
def test_bad_options(tmp_path: Path, options: tuple[str, ...], words: str) -> None:
    path = tmp_path / "r.csv"
    path.write_text("from,to,ms\na,b,10\nb,a,10\n")
    with refused(words):
        imported(path, "--mix", "social", "-o", tmp_path / "mine", *options)


def written(folder: Path, files: dict[str, str]) -> list[Path]:
    for name, text in files.items():
        (folder / name).write_text(text)
    return [folder / name for name in files]


def test_tables_of_one_source_are_put_together(tmp_path: Path) -> None:
    files = {
        "fra.csv": "Region,Latency (ms)\niad,91\nnrt,220\n",
        "iad.csv": "Region,Latency (ms)\nfra,92\nnrt,160\n",
        "nrt.csv": "Region,Latency (ms)\nfra,221\niad,161\n",
    }
    assert imported(*written(tmp_path, files), "--mix", "social", "-o", tmp_path / "mine") == 0
    world = load_instance(tmp_path / "mine")
    assert world.sites == ("fra", "iad", "nrt")
    assert world.site_rtt.tolist() == [[0, 91, 220], [92, 0, 160], [221, 161, 0]]


def test_one_way_delays_of_several_files_become_round_trips(tmp_path: Path) -> None:
    files = {"fra.csv": "To,OWD (ms)\niad,45\n", "iad.csv": "To,OWD (ms)\nfra,46\n"}
    paths = written(tmp_path, files)
    with pytest.raises(InputError, match=r"fra\.csv: header: one-way delays.*--one-way"):
        imported(*paths, "--mix", "social", "-o", tmp_path / "mine")
    imported(*paths, "--one-way", "--mix", "social", "-o", tmp_path / "mine")
    assert load_instance(tmp_path / "mine").site_rtt.tolist() == [[0, 91], [91, 0]]
    imported(
        paths[0], "--one-way", "--fill", "transpose", "--mix", "social", "-o", tmp_path / "one"
    )
    assert load_instance(tmp_path / "one").site_rtt.tolist() == [[0, 90], [90, 0]]
    imported(*paths, "--scale", "2", "--mix", "social", "-o", tmp_path / "twice")
    assert load_instance(tmp_path / "twice").site_rtt.tolist() == [[0, 90], [92, 0]]


def test_a_column_that_no_row_names_is_no_site(tmp_path: Path) -> None:
    (path,) = written(tmp_path, {"r.csv": "Region,Stars\nfra,3\niad,4\n"})
    with pytest.raises(InputError, match=r"r\.csv: header: no column is a row too.*got 'Stars'"):
        imported(path, "--fill", "transpose", "--mix", "social", "-o", tmp_path / "mine")
    rows = written(tmp_path, {"a.csv": "x,iad\nfra,91\n", "b.csv": "x,fra\niad,92\n"})
    imported(*rows, "--mix", "social", "-o", tmp_path / "mine")
    assert load_instance(tmp_path / "mine").site_rtt.tolist() == [[0, 91], [92, 0]]


def test_ping_hosts_have_names_and_addresses(tmp_path: Path) -> None:
    text = "PING iad(iad.example (2001:db8::2)) 56 data bytes\n64 bytes from x: time=91 ms\n"
    (path,) = written(tmp_path, {"fra.txt": text})
    for host in ("iad", "2001:db8::2"):
        imported(
            path, "--site-of", f"{host}=virginia", "--fill", "transpose", "--mix", "social",
            "-o", tmp_path / "mine", "--force",
        )  # fmt: skip
        assert load_instance(tmp_path / "mine").sites == ("fra", "virginia")


def test_coordinates_and_numbers_are_no_failure_domains(tmp_path: Path) -> None:
    files = {
        "r.csv": "from,to,ms\nfra,iad,91\niad,fra,92\n",
        "s.csv": "region;latitude;Longitude;country;rack;population;geo\n"
        "fra;50.1;8.6;DE;1;7;50.1,8.6\niad;39.0;-77.5;US;2;8;39.0,-77.5\n",
    }
    rtt, sites = written(tmp_path, files)
    with pytest.warns(match=r"s\.csv: population, geo: numbers are no failure domains"):
        imported(rtt, "--sites", sites, "--mix", "social", "-o", tmp_path / "mine")
    world = load_instance(tmp_path / "mine")
    assert set(world.domains) == {"country", "rack"}
    assert world.site_coordinates is not None
    assert world.site_coordinates.tolist() == [[50.1, 8.6], [39.0, -77.5]]


def test_demand_as_psql_prints_it(tmp_path: Path) -> None:
    files = {
        "r.csv": "from,to,ms\nfra,iad,91\niad,fra,92\n",
        "d.txt": " region | statement | calls \n--------+-----------+-------\n"
        " fra    | SELECT    |   100\n iad    | SELECT    |    50\n(2 rows)\n",
        "x.txt": "-[ RECORD 1 ]----\nregion    | fra\nstatement | SELECT\ncalls     | 100\n"
        "-[ RECORD 2 ]----\nregion    | iad\nstatement | SELECT\ncalls     | 50\n",
        "words.csv": "client,wort,n\nfra,SELECT,100\n",
    }
    rtt, *demands, words = written(tmp_path, files)
    for demand in demands:
        imported(rtt, "--counts", demand, "-o", tmp_path / "mine", "--force")
        assert load_instance(tmp_path / "mine").counts[0].tolist() == [[100], [50]]
    with pytest.raises(InputError, match="got 'SELECT', expected --count-columns operation=wort"):
        imported(rtt, "--counts", words, "-o", tmp_path / "mine", "--force")


def test_pairs_of_0_ms_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An RTT of 0 between two places was taken without a word."""
    (tmp_path / "r.csv").write_text("from,to,ms\na,b,0.0\nb,a,3\n")
    (tmp_path / "c.csv").write_text("from,to,ms\nx,a,0\nx,b,4\na,a,0\na,b,1\n")
    folder = tmp_path / "mine"
    told = (tmp_path / "r.csv", "--client-rtt", tmp_path / "c.csv", "--mix", "social", "-o", folder)
    assert imported(*told) == 0
    assert "2 of 0 ms, such as a → b (one building, or below the re" in capsys.readouterr().out
    assert imported(*told, "--force", "--json") == 0
    zero = json.loads(capsys.readouterr().out)["quality"]["zero"]
    assert zero == [["a", "b"], ["x", "a"]]


def test_tables_of_distributions_are_refused_with_the_options_of_the_verb(tmp_path: Path) -> None:
    """The message of ``solve --distributions`` named --columns as if solve had it."""
    from placement.io.feeds.rtt_tables import read_pairs

    table = tmp_path / "d.csv"
    table.write_text("src,dst,wert\na,b,1\n")
    with pytest.raises(InputError, match=r"rtt=wert \(placement import has these options, and its"):
        read_pairs(table)


def test_the_errors_of_all_files_are_told_at_once(tmp_path: Path) -> None:
    """Cells, places and names of four files, names of tables with bad cells too; no file."""
    texts = {
        "rtt.csv": "src,dst,rtt\na,b,x\nb,a,-3\n",
        "more.csv": "src,dst,rtt\na,c,nine\nc,a,9\n",
        "counts.csv": "client,strong_read,audit\na,q,1\nd,1,-1\n",
        "sites.csv": "site,lat,lon\na,100,2\nb,1,east\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    rtt, more, counts, sites = (tmp_path / name for name in texts)
    with pytest.raises(InputError) as caught:
        imported(rtt, more, "--counts", counts, "--sites", sites, "-o", tmp_path / "new")
    told = [str(error).removeprefix(f"{tmp_path}/") for error in caught.value.errors]
    assert [one[: one.index(": got")] for one in told] == [
        "rtt.csv, row 2: rtt: not a number",
        "rtt.csv, row 3: rtt: negative",
        "more.csv, row 2: rtt: not a number",
        "counts.csv, row 2: strong_read: not a number",
        "counts.csv, row 3: audit: negative",
        "sites.csv, row 2: lat: coordinate out of range",
        "sites.csv, row 3: lon: not a number",
        "counts.csv: operation: unknown operation",
        "counts.csv: client: unknown client",
    ]
    assert str(caught.value).startswith("9 errors:\n  ")
    assert not (tmp_path / "new").exists()


def test_names_that_one_table_has_alone_are_told_together(tmp_path: Path) -> None:
    (tmp_path / "rtt.csv").write_text("site,Paris,Rome\nParis,,9\nRome,9,\n")
    (tmp_path / "sites.csv").write_text("site\nPariss\nRome\nMadrid\n")
    (tmp_path / "counts.csv").write_text("client,strong_reads\nParis,1\nRoma,2\n")
    call = [tmp_path / "rtt.csv", "--sites", tmp_path / "sites.csv", "-o", tmp_path / "new"]
    with pytest.raises(InputError) as caught:
        imported(*call, "--counts", tmp_path / "counts.csv")
    told = " ".join(map(str, caught.value.errors)).replace(f"{tmp_path}/", "")
    for words in (
        "sites.csv, row 2: site: unknown site: got 'Pariss'", "(did you mean 'Paris'?)",
        "sites.csv, row 4: site: unknown site: got 'Madrid'",
        "counts.csv: operation: unknown operation: got 'strong_reads'",
        "counts.csv: client: unknown client: got 'Roma'", "(did you mean 'Rome'?)",
    ):  # fmt: skip
        assert words in told
    with pytest.raises(InputError, match=r"(?s)3 errors:.*no demand is given.*Pariss.*Madrid"):
        imported(*call)


def world(seed: int, relayed: bool, intervals: int = 1) -> Instance:
    """Twenty clients around six places: three are one client, the others differ by some ms."""
    rng = np.random.default_rng(seed)
    places = rng.integers(5, 150, (6, 5)).astype(float)
    rtt = places[rng.integers(0, 6, 20)] + rng.integers(0, 6, (intervals, 20, 5))
    rtt[:, :3] = rtt[:, :1]
    between = rng.integers(5, 150, (5, 5)).astype(float)
    np.fill_diagonal(between, 0)
    kinds = (
        Operation("read", near=1, relay=float(relayed)),
        Operation("write", direct=1.5, quorum=1),
    )
    return Instance(
        tuple("abcde"), tuple(f"c{i}" for i in range(20)), rtt if intervals > 1 else rtt[0],
        between, rng.integers(0, 50, (intervals, 20, 2)), kinds,
    )  # fmt: skip


@pytest.mark.parametrize("intervals", [1, 2])
@pytest.mark.parametrize("relayed", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_no_plan_changes_by_more_than_the_bound(seed: int, relayed: bool, intervals: int) -> None:
    full = world(seed, relayed, intervals)
    found = merge_clients(full, 6.0)
    merged = found.instance
    assert len(merged.clients) < found.before == 20
    assert merged.counts.sum() == full.counts.sum()
    assert found.bound <= 6.0 * 1.5
    total = full.counts.sum()
    for sites in combinations(range(5), 3):
        for leader in sites:
            plan = Configuration.of(leader, sites, sites)
            means = [
                objective_value(Problem(one, replicas=3, voters=3), plan) / total
                for one in (full, merged)
            ]
            assert abs(means[0] - means[1]) <= found.bound * (1 + 1e-9)


def test_clients_with_the_same_rtts_cost_nothing() -> None:
    full = world(1, relayed=True)
    found = merge_clients(full, 0.0)
    assert found.bound == 0.0
    assert len(set(found.groups[:3].tolist())) == 1
    assert found.instance.provenance[-1].startswith("20 clients were merged into")


def test_clients_that_use_other_replicas_stay_apart_where_reads_are_relayed() -> None:
    rtt = np.array([[10.0, 11.0], [11.0, 10.0]])
    for relayed, left in ((False, 1), (True, 2)):
        kinds = (Operation("read", near=1, relay=float(relayed)),)
        one = Instance(("a", "b"), ("x", "y"), rtt, [[0, 90.0], [90, 0]], [[1.0], [1]], kinds)
        assert len(merge_clients(one, 5.0).instance.clients) == left


def test_the_verb_prints_the_bound_and_keeps_it(
    tmp_path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sites.csv").write_text("site,a,b\na,0,80\nb,80,0\n")
    (tmp_path / "clients.csv").write_text("client,a,b\nx,10,90\ny,11,91\nz,95,12\n")
    (tmp_path / "counts.csv").write_text("client,strong_read\nx,5\ny,1\nz,4\n")
    asked = [
        *("import", str(tmp_path / "sites.csv"), "--client-rtt", str(tmp_path / "clients.csv")),
        *("--counts", str(tmp_path / "counts.csv"), "-o", str(tmp_path / "mine")),
    ]
    assert main([*asked, "--merge-clients", "2"]) == 0
    said = "3 clients were merged into 2: the mean latency of any plan differs by at most 0.1 ms"
    assert said in capsys.readouterr().out
    merged = load_instance(tmp_path / "mine")
    assert merged.clients == ("x", "z")
    assert merged.counts[
        0, :, [o.name for o in merged.operations].index("strong_read")
    ].tolist() == [6, 4]
    assert said in merged.provenance[-1]
    assert main([*asked, "--force", "--merge-clients", "-1"]) == 1


def test_what_the_bound_does_not_cover_is_refused() -> None:
    with pytest.raises(InputError, match="--merge-clients"):
        merge_clients(world(0, relayed=False), float("nan"))
    own = world(0, relayed=False).replace(protocol="leases")
    with pytest.raises(InputError, match="no bound is known"):
        merge_clients(own, 1.0)


GRAFANA_WIDE = """\
"Time","{region=""frankfurt"", op=""select""}","{op=""insert"", region=""tokyo""}"
2026-11-01 10:00:00,"1.20 K",35 req/s
2026-11-01 11:00:00,22.5,
"""
GRAFANA_LONG = """\
"Series";"Time";"Value"
"frankfurt";"2026-11-01T10:00:00Z";120
"frankfurt";"2026-11-01T11:00:00Z";80
"tokyo";"2026-11-01T11:00:00Z";7
"""
SQL = """\
gateway_region,query_type,calls
frankfurt,point_select,"22,462"
frankfurt,point_select,"1,000"
tokyo,insert,"3,100"
"""


def sums(
    path: Path, request: DemandRequest
) -> tuple[dict[tuple[str, str, str], float], tuple[str, ...]]:
    feed = read_demand_feed(path, request)
    found = {}
    for i, interval in enumerate(feed.intervals or ("",)):
        for j, client in enumerate(feed.clients):
            for k, operation in enumerate(feed.operations):
                if feed.counts[0, i, j, k]:
                    found[interval, client, operation] = float(feed.counts[0, i, j, k])
    return found, feed.notes


def test_an_export_of_sql_with_a_map_of_operations(tmp_path: Path) -> None:
    path = tmp_path / "statements.csv"
    path.write_text(SQL)
    maps = {"point_select": "strong_read", "insert": "single_group"}
    found, notes = sums(path, DemandRequest(operations=maps))
    assert found == {
        ("", "frankfurt", "strong_read"): 23462.0,
        ("", "tokyo", "single_group"): 3100.0,
    }
    assert (
        "columns: client is 'gateway_region', operation is 'query_type', count is 'calls'" in notes
    )
    assert "column 'calls': the comma is the separator of thousands" in notes
    with pytest.raises(InputError, match="no such operation in the demand: got 'delete'"):
        sums(path, DemandRequest(operations={"delete": "single_group"}))


def test_statements_of_sql_are_operations_without_a_map(tmp_path: Path) -> None:
    """The table that psql prints, and a long table of the usual columns."""
    psql = (
        "  region   | stmt_type | calls\n-----------+-----------+-------\n paris     | SELECT    |"
    )
    psql += "  1200\n london    | Update    |   40\n london    | INSERT    |    2\n(3 rows)\n"
    (tmp_path / "psql.txt").write_text(psql)
    found, notes = sums(tmp_path / "psql.txt", DemandRequest())
    assert found == {("", "paris", "strong_read"): 1200.0, ("", "london", "single_group"): 42.0}
    assert "operations: INSERT is single_group, SELECT is strong_read" in " ".join(notes)
    (tmp_path / "long.csv").write_text("client,operation,count\nparis,SELECT,1200\n")
    assert not is_standard(tmp_path / "long.csv", DemandRequest())
    weak = DemandRequest(operations={"SELECT": "weak_read"})
    assert sums(tmp_path / "long.csv", weak)[0] == {("", "paris", "weak_read"): 1200.0}


def test_a_column_per_operation_under_other_names(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text("dc,selects,updates\nfra,10,2\ntyo,5,1\n")
    maps = {"selects": "strong_read", "updates": "single_group"}
    found, _ = sums(path, DemandRequest(operations=maps, clients={"fra": "frankfurt"}))
    assert found["", "frankfurt", "strong_read"] == 10
    assert found["", "tyo", "single_group"] == 1


def test_grafana_wide_reads_labels(tmp_path: Path) -> None:
    path = tmp_path / "g.csv"
    path.write_text(GRAFANA_WIDE)
    maps = {"select": "strong_read", "insert": "single_group"}
    found, notes = sums(path, DemandRequest(operations=maps))
    assert found == {
        ("2026-11-01 10:00:00", "frankfurt", "strong_read"): 1200.0,
        ("2026-11-01 11:00:00", "frankfurt", "strong_read"): 22.5,
        ("2026-11-01 10:00:00", "tokyo", "single_group"): 35.0,
    }
    assert "1 cells without a value count as 0 operations" in notes


def test_grafana_long_needs_an_operation(tmp_path: Path) -> None:
    path = tmp_path / "g.csv"
    path.write_text(GRAFANA_LONG)
    with pytest.raises(
        InputError, match=r"row 2: series: a series without a label for the operation.*\*=strong"
    ):
        sums(path, DemandRequest())
    found, _ = sums(path, DemandRequest(operations={"*": "strong_read"}))
    assert len(found) == 3
    assert found["2026-11-01T11:00:00Z", "tokyo", "strong_read"] == 7.0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "region,site,calls,op\na,a,1,x\n",
            "several columns may be the client: got 'region, site'",
        ),
        ("a,b\n1,2\n", "header: no column for the client"),
        ("region,op,calls\na,x,-1\n", "row 2: calls: negative: got '-1'"),
        ("region,op,calls\na,x,12 apples\n", "row 2: calls: a word after the number"),
        ("region,op,calls\na,,12\n", "row 2: op: no name"),
        ('Time,"{op=""x""}"\n1,2\n', "a series without a label for the client"),
        ('Time,"{op=x}"\n1,2\n', "series: not labels"),
        ("region,op,calls\n", "no rows"),
    ],
)
def test_errors_name_the_place(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text(text)
    with refused(words, "d.csv"):
        sums(path, DemandRequest())


def test_tables_of_the_package_take_the_fast_reader(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    for text, standard in (
        ("client,operation,count\na,strong_read,3\n", True),
        ("client,strong_read\na,many\n", True),
        ("client,operation,count\na,strong_read,3 k\n", False),
        ("region,strong_read\na,3\n", False),
        ("Time,a\n1,3\n", False),
    ):
        path.write_text(text)
        assert is_standard(path, DemandRequest()) is standard, text


Answer = Callable[[str], tuple[int, object]]


@pytest.fixture
def serve() -> Iterator[Callable[[Answer], PrometheusServer]]:
    """Start servers that answer queries as a function says; all are stopped at the end."""
    running: list[http.server.ThreadingHTTPServer] = []

    def start(answer: Answer) -> PrometheusServer:
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                status, value = answer(urllib.parse.parse_qs(body)["query"][0])
                data = value if isinstance(value, bytes) else json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: object) -> None:
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        running.append(server)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return PrometheusServer(f"http://127.0.0.1:{server.server_port}/", timeout=5)

    yield start
    for server in running:
        server.shutdown()
        server.server_close()


def vector(*samples: tuple[dict[str, str], object]) -> dict[str, object]:
    result = [{"metric": labels, "value": [0, value]} for labels, value in samples]
    return {"status": "success", "data": {"resultType": "vector", "result": result}}


def etcd(query: str) -> tuple[int, object]:
    if "etcd_server_id" in query:
        ids = {"a1": "virginia", "b2": "tokyo", "c3": "frankfurt"}
        return 200, vector(*(({"region": r, "server_id": i}, "1") for i, r in ids.items()))
    if "count_over_time" in query:
        return 200, vector(({"region": "virginia"}, "240"), ({"region": "tokyo"}, "120"))
    if "grpc_server_handled_total" in query:
        reads = 'grpc_method="Range"' in query
        return 200, vector(
            *(({"region": r}, "300" if reads else "20") for r in ("virginia", "tokyo"))
        )
    rtts = [("virginia", "b2", "0.24"), ("tokyo", "a1", "0.243"), ("virginia", "c3", "NaN")]
    rtts.append(("virginia", "dead", "0.1"))
    return 200, vector(*(({"region": r, "To": to}, value) for r, to, value in rtts))


def test_the_bias_of_etcd_is_corrected_and_gaps_are_named(
    serve: Callable[[Answer], PrometheusServer],
) -> None:
    server, request = serve(etcd), PrometheusRequest(window="6h")
    reading: RttReading = read_rtts(server, PRESETS["etcd"], request)
    table = reading.table
    assert table.values[table.sources.index("virginia"), table.destinations.index("tokyo")] == 160
    assert table.values[table.sources.index("tokyo"), table.destinations.index("virginia")] == 162
    notes = " | ".join(reading.notes)
    assert "divided by the known bias 1.5" in notes
    assert "peers of no known region were left out: dead" in notes
    assert "pairs without a value: virginia → frankfurt" in notes
    assert "gaps in the window: tokyo (50% of the samples)" in notes
    assert "frankfurt" in table.destinations  # a missing pair, which --fill may take from the other
    counts = read_operations(server, PRESETS["etcd"], request)
    assert counts.operations == ("strong_read", "single_group")
    assert counts.counts.tolist() == [[[[300, 20], [300, 20]]]]
    raw = read_rtts(server, PRESETS["etcd"], PrometheusRequest(bias=1.0))
    assert raw.table.values[0, 0] == 240


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (400, {"status": "error", "error": "parse error: unexpected"}, "parse error: unexpected"),
        (503, b"<html>", "503"),
        (200, b"<html>", "an answer that is no JSON"),
        (200, b"[" * 100_000, "an answer that is no JSON"),
        (200, {"status": "success", "data": {"resultType": "matrix", "result": []}}, "matrix"),
        (200, {"data": {"resultType": "vector", "result": [{"metric": 1}]}}, "no sample"),
        (200, {"data": {"resultType": "vector", "result": [{"metric": {}, "value": [0, "x"]}]}},
         "no sample"),
        (200, vector(), "no samples of blackbox_exporter in the window"),
        (200, vector(({}, "1")), "a series without the label region"),
        (200, vector(({"region": "a", "instance": "b"}, "NaN")),
         "has an RTT: got 'a → b', expected two"),
    ],
)  # fmt: skip
def test_bad_answers(
    status: int, body: object, words: str, serve: Callable[[Answer], PrometheusServer]
) -> None:
    with refused(words, "127.0.0.1:"):
        read_rtts(serve(lambda _: (status, body)), PRESETS["blackbox"], PrometheusRequest())


@pytest.mark.parametrize(
    "head", [b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 503 No\r\n\r\n", b"HTTP/1.1 200 O"]
)
def test_one_deadline_for_the_whole_answer(head: bytes) -> None:
    """Each byte comes in time; the whole does not, wherever the server is slow."""
    done = threading.Event()

    def trickle(server: socket.socket) -> None:
        link, _ = server.accept()
        with link, contextlib.suppress(ConnectionError):
            link.recv(65536)
            for byte in head + json.dumps(vector()).encode():
                link.sendall(bytes([byte]))
                if done.wait(0.02):
                    return

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=trickle, args=(server,), daemon=True).start()
        try:
            with pytest.raises(InputError, match=r"no answer \(not whole after 0.2 s\)"):
                PrometheusServer(f"http://127.0.0.1:{server.getsockname()[1]}", 0.2).query("up")
        finally:
            done.set()


def test_a_server_that_is_not_there() -> None:
    with pytest.raises(InputError, match=r"127\.0\.0\.1:9: query: Prometheus: no answer"):
        PrometheusServer("http://127.0.0.1:9", timeout=5).query("up")


@pytest.mark.parametrize(
    "url", ["ftp://x", "http://", "http://a b", "http://user:secret@x", "http://x?y", "http://x:y"]
)
def test_bad_urls(url: str) -> None:
    with pytest.raises(InputError, match="not the URL") as caught:
        PrometheusServer(url)
    assert "secret" not in str(caught.value)


@given(st.text(max_size=40))
def test_values_of_matchers_stay_inside_their_quotes(value: str) -> None:
    text = quoted(value)
    inside = text[1:-1].replace("\\\\", "").replace('\\"', "")
    assert (text[0], text[-1]) == ('"', '"')
    assert '"' not in inside
    assert "\n" not in inside
    assert matchers([f"job={value}"], "--match") == "job=" + text or value[:1] in ("~", "=")


@pytest.mark.parametrize("text", ["job", "=x", "a b=c", '"=x', "jo{b}=x"])
def test_bad_matchers(text: str) -> None:
    with pytest.raises(InputError, match="--match"):
        matchers([text], "--match")


@pytest.mark.parametrize("text", ["", "1", "d", "1d]", "-1d", "0d", "1 d", "1w) or (up"])
def test_bad_windows(text: str) -> None:
    with pytest.raises(InputError, match="not a duration"):
        window_of(text, "--window")


def test_quantiles_of_buckets_are_refused(serve: Callable[[Answer], PrometheusServer]) -> None:
    query = "histogram_quantile(0.5, rate(x_bucket[5m]))"
    request = PrometheusRequest(rtt_query=query)
    with pytest.raises(InputError, match=r"--rtt-query: a quantile of default buckets is no RTT"):
        read_rtts(serve(lambda _: (200, vector())), PRESETS["custom"], request)
    with pytest.raises(InputError, match="no expression for RTTs"):
        read_rtts(serve(lambda _: (200, vector())), PRESETS["custom"], PrometheusRequest())
    with pytest.raises(InputError, match=r"no operations are known.*--ops-query"):
        read_operations(serve(etcd), PRESETS["custom"], PrometheusRequest())
