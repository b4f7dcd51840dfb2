"""Read and write tables and documents of results; a file is written whole or not at all."""

from __future__ import annotations

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
    """Return the rows of a CSV that a report needs.

    Raises
    ------
    InputError
        When there is no such file, or it holds no row.
    """
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
