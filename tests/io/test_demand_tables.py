"""Demand from tables: one reader for import and replay."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from placement.errors import InputError
from placement.io import load_instance, read_counts
from placement.io.demand_tables import read_demand
from placement.io.interval_order import order_intervals

SCRAMBLED = (
    "interval,client,strong_read\n"
    "2026-11-20T06:30,a,3\n2026-11-20T06:30,b,4\n"
    "2026-11-19T20:00,a,1\n2026-11-19T20:00,b,2\n"
    "2026-11-20T01:15,b,9\n2026-11-20T01:15,a,8\n"
)
SQUARE = "x,a,b\na,0,7\nb,8,0\n"


def write(folder: Path, text: str, name: str = "counts.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_import_sorts_and_says_so(tmp_path: Path) -> None:
    write(tmp_path, SQUARE, "rtt.csv")
    counts = write(tmp_path, SCRAMBLED)
    done = subprocess.run(
        [sys.executable, "-m", "placement", "import", tmp_path / "rtt.csv", "--counts", counts,
         "-o", tmp_path / "mine"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "counts.csv: sorted 3 intervals by time" in done.stderr
    made = load_instance(tmp_path / "mine")
    assert made.intervals[0] == "2026-11-19T20:00"
    assert made.counts[:, :, 0].tolist() == [[1, 2], [8, 9], [3, 4]]
    assert "Demand of counts.csv: sorted 3 intervals by time." in made.provenance


def test_a_manifest_by_hand_without_intervals(tmp_path: Path) -> None:
    write(tmp_path, SQUARE.replace("x,", "site,"), "site_rtt.csv")
    write(tmp_path, SQUARE.replace("x,", "client,"), "client_rtt.csv")
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
