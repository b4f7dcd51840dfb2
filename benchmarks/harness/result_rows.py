"""Files of results of suites: one JSON object per line, added as cells finish.

A line of kind ``run`` opens a run: it names the suite, the machine, the versions and the commit.
The lines of kind ``row`` after it, each with that run's ``id``, are the cells. With each row the
file is written whole beside itself, synced, and renamed: it never has a part of a line. A lock
beside the file keeps a second run out.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from placement.errors import InputError, refused
from placement.io.formats.document import parse_json
from placement.io.formats.files import check_file, read_input, write_file

FORMAT = "replica-placement benchmark results"
VERSION = 1

CONTRADICTION = 1e-6
"""Relative excess of a proven bound over another method's value that rounding cannot explain."""


@dataclass(frozen=True, slots=True)
class Results:
    """Content of a file of results.

    Attributes
    ----------
    runs
        Lines of kind ``run``, oldest first.
    rows
        Lines of kind ``row``; of rows with the same key the last counts.
    source
        Path, for messages.
    """

    runs: tuple[Mapping[str, Any], ...]
    rows: tuple[Mapping[str, Any], ...]
    source: str = ""

    @property
    def reference(self) -> str:
        """The method whose time is the unit; empty without a run."""
        return str(self.runs[-1].get("reference", "")) if self.runs else ""


def read_results(path: str | os.PathLike[str]) -> Results:
    """Read a file of results; an empty file is an empty result.

    Raises
    ------
    InputError
        When the file cannot be read, or a line is not what this program wrote; the message names
        the line.
    """
    source = os.fspath(path)
    runs: list[Mapping[str, Any]] = []
    rows: dict[str, Mapping[str, Any]] = {}
    for number, line in enumerate(read_input(path).split(b"\n"), start=1):
        if not line.strip():
            continue
        where = f"{source}, row {number}"
        try:
            value: Any = parse_json(line.decode(), where)
        except UnicodeDecodeError:
            raise InputError("not text", source=where, expected="UTF-8") from None
        kind = value.get("kind") if isinstance(value, dict) else None
        if kind == "run":
            if value.get("format") != FORMAT:
                words = "not a file of benchmark results"
                raise refused(where, "format", words, value.get("format"), repr(FORMAT))
            if value.get("version") != VERSION:
                words = "written by another version of this program"
                raise refused(where, "version", words, value.get("version"), str(VERSION))
            runs.append(value)
        elif kind == "row":
            key = value.get("key")
            if not isinstance(key, str) or not isinstance(value.get("cell"), dict):
                raise InputError(
                    "a row without its cell", source=where, expected="the keys 'key' and 'cell'"
                )
            rows.pop(key, None)  # the last one counts, and stands where it was written
            rows[key] = value
        else:
            raise refused(where, "kind", "not a line of results", kind, "'run' or 'row'")
    return Results(tuple(runs), tuple(rows.values()), source)


def best_known(rows: Sequence[Mapping[str, Any]]) -> dict[str, tuple[float, float]]:
    """Return, per group, the best proven lower bound and the best value of any method.

    Returns
    -------
    dict
        Group -> (bound, value); −∞ and +∞ if unknown. All rows of a group answer the
        same question, so the largest bound of one method holds for the values of all.
    """
    found: dict[str, tuple[float, float]] = {}
    for row in rows:
        known, least = found.get(row["group"], (-math.inf, math.inf))
        bound, value = row.get("bound"), row.get("objective")
        found[row["group"]] = (
            known if bound is None else max(known, bound),
            least if value is None else min(least, value),
        )
    return found


def row_gap(row: Mapping[str, Any], known: Mapping[str, tuple[float, float]]) -> float | None:
    """Return a row's relative gap to the best bound that any method proved for its question.

    (value − bound)/value, at least 0; None when the row has no value or no method proved a bound.
    """
    value, (bound, _) = row.get("objective"), known[row["group"]]
    if value is None or math.isinf(bound):
        return None
    if value == 0:
        return 0.0 if bound >= 0 else None
    return float(max(0.0, (value - bound) / abs(value)))


def families(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[Mapping[str, Any]]]]:
    """Split solved cells into families of questions that were put to the same methods.

    Within a family a median over all questions compares like with like; over a whole file it would
    hold a method that got the hard questions only against one that got them all.

    Returns
    -------
    list
        (title, rows), in the order of the file; the title names the failure constraint and how many
        questions there are.
    """
    asked: dict[str, list[str]] = {}
    for row in rows:
        asked.setdefault(row["group"], []).append(row["cell"]["method"])
    found: dict[tuple[str, frozenset[str]], list[Mapping[str, Any]]] = {}
    for row in rows:
        key = (str(row["cell"]["failures"]), frozenset(asked[row["group"]]))
        found.setdefault(key, []).append(row)
    return [
        (
            f"Failure constraint: {failures}; {count} question{'' if count == 1 else 's'}"
            f" put to {len(methods)} method{'' if len(methods) == 1 else 's'}",
            mine,
        )
        for (failures, methods), mine in found.items()
        for count in (len({row["group"] for row in mine}),)
    ]


def time_ratio(rows: Sequence[Mapping[str, Any]], method: str, reference: str) -> float | None:
    """Return the median of a method's time over the reference's, question by question.

    Only questions that both answered count, and only pairs of the same run; None without any.
    """
    times = {
        (row["group"], row.get("run"), row["cell"]["method"]): float(row["seconds"])
        for row in rows
        if row["outcome"] == "ok"
    }
    ratios = [
        seconds / times[group, run, reference]
        for (group, run, who), seconds in times.items()
        if who == method and times.get((group, run, reference), 0.0) > 0
    ]
    return statistics.median(ratios) if ratios else None


def contradictions(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the groups in which a proven bound lies above another method's value, in words."""
    return tuple(
        f"{group}: the bound {bound:.12g} is above the value {value:.12g}"
        for group, (bound, value) in best_known(rows).items()
        if math.isfinite(bound)
        and math.isfinite(value)
        and bound > value + CONTRADICTION * abs(value) + 1e-9
    )


class ResultsFile:
    """A file of results, to which this process alone adds.

    Parameters
    ----------
    path
        Its folder is made when absent. A regular file, or nothing.
    fresh
        Begin again: the rows that stand there are neither read nor kept. They stay on the disk
        until the first new row is safe.

    Raises
    ------
    InputError
        When another process has it open, when it holds no results, or when the path is that of a
        folder, a pipe or a device.
    OSError
        When its folder takes no files.
    """

    def __init__(self, path: str | os.PathLike[str], *, fresh: bool = False) -> None:
        given = Path(path)
        given.parent.mkdir(parents=True, exist_ok=True)
        self.path = check_file(given, force=True, regular=True)
        self._beside = self.path.with_name(f".{self.path.name[:100]}.lock.tmp")
        self._lock = _locked(self._beside, self.path)
        self._lines = b""
        self.earlier = Results((), ())
        try:
            if not fresh and self.path.exists():
                self.earlier = read_results(self.path)
                self._lines = self.path.read_bytes()
        except BaseException:
            self.close()
            raise

    @property
    def keys(self) -> frozenset[str]:
        """Keys of the cells that have a row already."""
        return frozenset(str(row["key"]) for row in self.earlier.rows)

    @property
    def answered(self) -> frozenset[str]:
        """Keys of the cells that were answered, or refused by the method."""
        final = ("ok", "refused")
        return frozenset(str(row["key"]) for row in self.earlier.rows if row["outcome"] in final)

    def start(self, head: Mapping[str, object]) -> int:
        """Begin a run, whose head is written with its first row, and return its number."""
        number = 1 + max((int(run.get("id", 0)) for run in self.earlier.runs), default=0)
        about = {"kind": "run", "format": FORMAT, "version": VERSION, "id": number}
        self._lines += _line({**about, **head})
        return number

    def add(self, row: Mapping[str, object]) -> None:
        """Add one row; when this returns, it is on the disk.

        Raises
        ------
        OSError
            When it cannot be written; the file stays as it was.
        """
        lines = self._lines + _line({"kind": "row", **row})
        write_file(self.path, lines, force=True)
        self._lines = lines

    def close(self) -> None:
        """Release the lock."""
        self._beside.unlink(missing_ok=True)
        os.close(self._lock)

    def __enter__(self) -> ResultsFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _locked(beside: Path, path: Path) -> int:
    """Open the file beside a path once it is locked: the run that had it may have removed it."""
    while True:
        handle = os.open(beside, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(handle), beside.stat()):
                return handle
        except FileNotFoundError:  # removed between the two steps: make it again
            pass
        except BlockingIOError:
            os.close(handle)
            raise InputError(
                "another run is writing to it", source=str(path), expected="one run at a time"
            ) from None
        os.close(handle)


def _line(value: Mapping[str, object]) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode() + b"\n"
