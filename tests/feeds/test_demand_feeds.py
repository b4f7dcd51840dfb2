"""Demand as databases and dashboards export it."""

from __future__ import annotations

from pathlib import Path

import pytest

from placement import InputError
from placement.io.assemble_instance import counts_of
from placement.io.feeds.demand_columns import DemandRequest, is_standard, read_demand_feed

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
    table = counts_of(feed).table
    found = {}
    intervals = table.intervals or ("",)
    values = table.values if table.intervals else table.values[None]
    for i, interval in enumerate(intervals):
        for j, client in enumerate(table.rows):
            for k, operation in enumerate(table.columns):
                if values[i, j, k]:
                    found[interval, client, operation] = float(values[i, j, k])
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
    with pytest.raises(InputError) as caught:
        sums(path, DemandRequest())
    assert words in str(caught.value)
    assert "d.csv" in str(caught.value)


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
