"""Write tables and documents of results, each file whole or not at all."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks.harness.machine import ROOT
from placement.io.formats.files import write_file

__all__ = ["RESULTS", "save_csv", "save_json", "save_text"]

RESULTS = ROOT / "benchmarks" / "results"
"""Folder of the committed results."""


def save_text(path: Path, text: str) -> None:
    """Write text, in place of a file that is there; the folder is made.

    Parameters
    ----------
    path
        The file.
    text
        The content.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, text.encode(), force=True)


def save_json(path: Path, document: Mapping[str, object], indent: int = 1) -> None:
    """Write a document as JSON.

    Parameters
    ----------
    path
        The file.
    document
        The content.
    indent
        Spaces per level.
    """
    save_text(path, json.dumps(document, indent=indent, ensure_ascii=False) + "\n")


def save_csv(
    path: Path, heads: Sequence[str], rows: Iterable[Iterable[object]], end: str = "\n"
) -> None:
    r"""Write a table as CSV.

    Parameters
    ----------
    path
        The file.
    heads
        Names of the columns.
    rows
        Cells in the order of `heads`.
    end
        End of a line; some older files have "\r\n".
    """
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator=end)
    writer.writerow(heads)
    writer.writerows(rows)
    save_text(path, stream.getvalue())
