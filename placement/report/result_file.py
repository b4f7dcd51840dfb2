"""Files of benchmark results: one JSON object per line, appended as cells finish.

A line of kind ``run`` opens a run: it names the suite, the machine, the versions and the commit.
The lines of kind ``row`` after it, each with that run's ``id``, are the cells. A line is written
whole, or is torn if the machine stops while it is written. A torn line is the last one, and has no
end of line or is no JSON. The reader drops it and says so.
"""

from __future__ import annotations

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
from placement.io.formats.files import check_input, read_input

FORMAT = "replica-placement benchmark results"
VERSION = 1

SUFFIXES = (".jsonl", ".ndjson")
"""File names that are read as benchmark results."""

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
    dropped
        Bytes of a torn last line that were left out; 0 when there was none.
    source
        Path, for messages.
    """

    runs: tuple[Mapping[str, Any], ...]
    rows: tuple[Mapping[str, Any], ...]
    dropped: int = 0
    source: str = ""


def intact(data: bytes) -> int:
    """Return how many bytes of `data` are whole lines; the bytes after them are a torn line.

    A last line with its end but without its content (zeros, or half of it, after a power failure)
    is torn too.
    """
    end = data.rfind(b"\n") + 1
    start = data.rfind(b"\n", 0, max(end - 1, 0)) + 1
    last = data[start:end]
    if last.strip() and not _is_object(last):
        return start
    return end


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (json.JSONDecodeError, UnicodeDecodeError):
        return False
    except (ValueError, RecursionError):  # whole, and refused when it is read
        return True


def read_results(path: str | os.PathLike[str]) -> Results:
    """Read a file of results; an empty file is an empty result.

    Raises
    ------
    InputError
        When the file cannot be read, or a line other than the last is not what this program wrote;
        the message names the line.
    """
    source = os.fspath(path)
    data = read_input(path)
    whole = intact(data)
    runs: list[Mapping[str, Any]] = []
    rows: dict[str, Mapping[str, Any]] = {}
    for number, line in enumerate(data[:whole].split(b"\n"), start=1):
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
    return Results(tuple(runs), tuple(rows.values()), len(data) - whole, source)


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
        bound, value = found.get(row.get("group", ""), (-math.inf, math.inf))
        if isinstance(row.get("bound"), (int, float)):
            bound = max(bound, float(row["bound"]))
        if isinstance(row.get("objective"), (int, float)):
            value = min(value, float(row["objective"]))
        found[row.get("group", "")] = (bound, value)
    return found


def row_gap(row: Mapping[str, Any], known: Mapping[str, tuple[float, float]]) -> float | None:
    """Return a row's relative gap to the best bound that any method proved for its question.

    (value − bound)/value, at least 0; None when the row has no value or no method proved a bound.
    """
    value = row.get("objective")
    bound, _ = known.get(row.get("group", ""), (-math.inf, math.inf))
    if not isinstance(value, (int, float)) or math.isinf(bound):
        return None
    if value == 0:
        return 0.0 if bound >= 0 else None
    return max(0.0, (float(value) - bound) / abs(float(value)))


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


def looks_like_results(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is meant to be results: by its name, or by its first line."""
    if Path(path).suffix.lower() in SUFFIXES:
        return True
    try:
        check_input(path)  # opening a pipe would wait for a writer
        with Path(path).open("rb") as file:
            value = parse_json(file.readline(1 << 20).decode(), os.fspath(path))
    except (OSError, UnicodeDecodeError, InputError):
        return False
    return isinstance(value, dict) and value.get("kind") in ("run", "row")
