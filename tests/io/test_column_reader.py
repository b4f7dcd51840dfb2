"""Columns read whole are those that are read cell by cell, and trouble is named with its row."""

from __future__ import annotations

from pathlib import Path

import pandas  # noqa: F401 - with pandas loaded, tables above _SMALL are read by it
import pytest

from placement.errors import InputError
from placement.io.formats import column_reader
from placement.io.labelled_arrays import read_matrix

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
        read_matrix(tmp_path / "t.csv", "site", EXPECTED)


def test_names_are_kept_as_they_are(tmp_path: Path, way: str) -> None:
    text = 'site,a\n01,1\n1,2\n" x ",3\nNA,4\n"a,b",5\nnan,6\nTrue,7\n1.0,8\n'
    (tmp_path / "t.csv").write_text(text)
    found = read_matrix(tmp_path / "t.csv", "site", EXPECTED)
    assert found.rows == ("01", "1", " x ", "NA", "a,b", "nan", "True", "1.0")
    assert found.values[:, 0].tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
