"""Tables and documents of results, written whole or not at all; and the folders of data.

Measured latencies and the p-median files of the OR-Library and of TSPLIB are no part of the
project. A program adds the option of each folder that it reads. Without the option the argument is
None, and the parts that need the folder are left out.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from benchmarks.harness.machine import ROOT
from placement.errors import InputError
from placement.io.formats.files import write_file

if TYPE_CHECKING:
    import pandas as pd

Row: TypeAlias = dict[str, Any]
"""Row of a table of results: name of the column -> cell, a text where it was read from a CSV."""

RESULTS = ROOT / "benchmarks" / "results"
"""Folder of the committed results."""


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a CSV; no rows when there is no such file."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def existing_rows(path: Path) -> list[Row]:
    """Return the rows of a CSV that a report needs; InputError without a row."""
    rows = read_rows(path)
    if not rows:
        raise InputError("no results to report", source=str(path), expected="a run of the study")
    return rows


def read_frame(path: Path) -> pd.DataFrame:
    """Return the table of :func:`existing_rows` with numbers as numbers."""
    import pandas as pd

    existing_rows(path)
    return pd.read_csv(path)


def rows_of(frame: pd.DataFrame) -> list[Row]:
    """Return the rows of a table."""
    return [{str(name): cell for name, cell in row.items()} for row in frame.to_dict("records")]


def read_json(path: Path) -> dict[str, Any]:
    """Return a document of JSON; an empty one when there is no such file."""
    if not path.exists():
        return {}
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


def save_text(path: Path, text: str) -> None:
    """Write text, in place of a file that is there; the folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, text.encode(), force=True)


def save_json(path: Path, document: Mapping[str, object], indent: int = 1) -> None:
    """Write a document as JSON, with `indent` spaces per level."""
    save_text(path, json.dumps(document, indent=indent, ensure_ascii=False) + "\n")


def save_csv(path: Path, heads: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
    """Write a table as CSV: names of the columns, and cells in their order."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(heads)
    writer.writerows(rows)
    save_text(path, stream.getvalue())


def save_rows(path: Path, rows: Sequence[Row]) -> None:
    """Write rows as CSV under the names of columns."""
    heads = list(rows[0]) if rows else []
    save_csv(path, heads, ([row[head] for head in heads] for row in rows))


# --- folders of data, which the user names -------------------------------------------------------


_HELP = {
    "baseline": "checkout of an older build, kernels in place",
    "latency": "folder of measured latencies (CSV); without it the measured networks are left out",
    "results": "folder for the files of results (default: benchmarks/results)",
    "pmed": "folder of pmed1.txt to pmed40.txt and optima.txt; without it they are left out",
    "tsplib": "folder of points of TSPLIB (rl1304.tsp, …); without it they are left out",
}


def add_folder(parser: argparse.ArgumentParser, name: str, default: Path | None = None) -> None:
    """Add the option ``--NAME DIR`` of :data:`_HELP`; its value is a ``Path``, or the default.

    It is checked before the program begins: a wrong folder costs no measurement. Where there is a
    default, the folder is made when the first file is written.
    """

    def named(text: str) -> Path:
        path = Path(text)
        if path.exists() and not path.is_dir():
            raise argparse.ArgumentTypeError(f"{text} is a file: expected a folder")
        if default is None and not path.exists():
            raise argparse.ArgumentTypeError(f"no such folder: {text}")
        return path

    parser.add_argument(f"--{name}", type=named, default=default, metavar="DIR", help=_HELP[name])


def measured_file(here: Path | None, name: str) -> Path:
    """Return a file of the folder of measured latencies; InputError where there is none."""
    if here is None or not (here / name).is_file():
        raise InputError(
            "no such file among the measured latencies",
            source=str(here / name) if here else name,
            expected="--latency DIR, a folder that has it",
        )
    return here / name
