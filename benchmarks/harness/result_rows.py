"""Files of results of suites, one JSON object per line; their tables; what two differ in.

A line of kind ``run`` opens a run: it names the suite, the machine, the versions and the commit.
The lines of kind ``row``, each with that run's ``id``, are the cells. With each row the file is
written whole beside itself, synced, and renamed: it never has a part of a line.

Seconds of two runs are never compared: machines differ, and so does one machine from hour to hour.
The time of a method on a question is taken as a multiple of the reference method's time on the same
question in the same run; the reference's, as one of the calibration loop that every cell times in
its own process. Between two runs that multiple changes by a factor. A method is called slower when
its factor exceeds the threshold for its questions as a whole: the lower end of the
distribution-free confidence interval of the median factor (order statistics of a binomial law,
95 %) lies above it. That needs six questions at least.

What is not a time needs no statistics: a proof that is gone, a larger gap, a worse value, a cell
that no longer answers, a bound that is wrong.
"""

from __future__ import annotations

import math
import os
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from benchmarks.harness.results import markdown_table, read_json, read_rows
from benchmarks.peers import CAPTIONS
from placement.errors import InputError, refused
from placement.io.formats.document import Document, parse_json
from placement.io.formats.files import read_input
from placement.text.text_tables import escape, table, wrap

Row = Mapping[str, Any]

FORMAT = "replica-placement benchmark results"
VERSION = 1

CONTRADICTION = 1e-6
"""Relative excess of a proven bound over another method's value that rounding cannot explain."""


@dataclass(frozen=True, slots=True)
class Results:
    """Lines of kind ``run``, oldest first, and of kind ``row``, of a file of results.

    Of rows with the same key the last counts; `source` is the path, for messages.
    """

    runs: tuple[Row, ...]
    rows: tuple[Row, ...]
    source: str = ""

    @property
    def reference(self) -> str:
        """The method whose time is the unit; empty without a run."""
        return str(self.runs[-1].get("reference", "")) if self.runs else ""


def _check_row(row: Document) -> None:
    """Refuse a row that the tables cannot show."""
    for name in ("key", "group", "outcome"):
        row.text(name)
    row.need(row.has("cell"), "cell", "missing key")
    cell, done = row.table("cell"), row.values["outcome"] == "ok"
    row.text("label", "")
    if cell.values.get("kind") == "solve":
        cell.text("method")
        cell.text("failures")
        row.text("status", None if done else "")
    for name in ("seconds", "objective", "bound", "run"):
        if row.values.get(name) is not None or (done and name == "seconds"):
            row.number(name)


def read_results(path: str | os.PathLike[str]) -> Results:
    """Read a file of results; an empty file is an empty result.

    InputError names the line that is not what this program wrote.
    """
    source = os.fspath(path)
    runs: list[Row] = []
    rows: dict[str, Row] = {}
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
            machine = Document(where, "", value).table("machine").values
            runs.append({**value, "machine": machine})
        elif kind == "row":
            _check_row(Document(where, "", value))
            key = value["key"]
            rows.pop(key, None)  # the last one counts, and stands where it was written
            rows[key] = {"label": key, "objective": None, **value}
        else:
            raise refused(where, "kind", "not a line of results", kind, "'run' or 'row'")
    return Results(tuple(runs), tuple(rows.values()), source)


def best_known(rows: Sequence[Row]) -> dict[str, tuple[float, float]]:
    """Return, per group, the best proven lower bound and value; −∞ and +∞ if unknown.

    All rows of a group answer the same question, so the largest bound of one method holds for all.
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


def row_gap(row: Row, known: Mapping[str, tuple[float, float]]) -> float | None:
    """Return a row's relative gap to the best bound that any method proved for its question.

    (value − bound)/value, at least 0; None when the row has no value or no method proved a bound.
    """
    value, (bound, _) = row.get("objective"), known[row["group"]]
    if value is None or math.isinf(bound):
        return None
    if value == 0:
        return 0.0 if bound >= 0 else None
    return float(max(0.0, (value - bound) / abs(value)))


def families(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    """Split solved cells into titled families of questions that were put to the same methods.

    Within a family a median over all questions compares like with like; over a whole file it would
    hold a method that got the hard questions only against one that got them all.
    """
    asked: dict[str, list[str]] = {}
    for row in rows:
        asked.setdefault(row["group"], []).append(row["cell"]["method"])
    found: dict[tuple[str, frozenset[str]], list[Row]] = {}
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


def in_units(rows: Sequence[Row], reference: str) -> Iterator[tuple[Row, float]]:
    """Yield answered rows, and their time in units of the reference's on that question and run."""
    answered = [row for row in rows if row["outcome"] == "ok" and "seconds" in row]
    unit = {
        (row["group"], row.get("run")): float(row["seconds"])
        for row in answered
        if row["cell"].get("method") == reference
    }
    for row in answered:
        if base := unit.get((row["group"], row.get("run"))):
            yield row, row["seconds"] / base


def time_ratio(rows: Sequence[Row], method: str, reference: str) -> float | None:
    """Return the median of a method's time over the reference's; None without any pair."""
    found = [x for row, x in in_units(rows, reference) if row["cell"].get("method") == method]
    return statistics.median(found) if found else None


def contradictions(rows: Sequence[Row]) -> tuple[str, ...]:
    """Return the groups in which a proven bound lies above another method's value, in words."""
    return tuple(
        f"{group}: the bound {bound:.12g} is above the value {value:.12g}"
        for group, (bound, value) in best_known(rows).items()
        if math.isfinite(bound)
        and math.isfinite(value)
        and bound > value + CONTRADICTION * abs(value) + 1e-9
    )


# --- tables -------------------------------------------------------------------------------------


_COLUMNS = 100
"""Columns of text: a page of results must not depend on the terminal that writes it."""


def report_text(results: Results) -> str:
    """Return the report of a run: the tables of its page, everything that failed."""
    if not results.rows:
        return "No cell has a row yet."
    return "\n\n".join([page_text(results, every=True), *_unanswered(results.rows)])


def page_text(results: Results, *, every: bool = False) -> str:
    """Return the tables of a page as Markdown: the machine, then gap and time by method.

    A group of questions that only one method answered compares nothing and has no table, except
    with `every`. More than two groups share one table, with a column for the gap in each.
    """
    reference = results.reference
    compared = [
        (title, rows)
        for title, rows in families(_solved(results))
        if every or len({row["cell"]["method"] for row in rows}) > 1
    ]
    parts = [_machines(results)]
    if len(compared) > 2 and not every:
        parts.append(_shared_table(compared, reference))
    else:
        for title, rows in compared:
            lines = method_rows(rows, reference)
            kept = [head for head in lines[0] if any(line[head] for line in lines)]
            kept.remove("answered")
            cells = ([escape(line[head]).replace("|", "\\|") for head in kept] for line in lines)
            parts += [f"{title}:", markdown_table(kept, cells, rule=" --- ")]
    parts.extend(f"**Contradiction:** {line}" for line in contradictions(results.rows))
    parts.extend(_captions(results))
    return "\n\n".join(parts)


def rows_text(path: Path, part: str = "") -> str:
    """Return all rows of a CSV, or of the tables of a JSON document, as text.

    `part` is the beginning of names of tables, such as ``fleets``; InputError if there is none.
    """
    rows = {"": read_rows(path)} if path.suffix == ".csv" else dict(_row_lists(read_json(path)))
    found = {name: table for name, table in rows.items() if name.startswith(part) and table}
    if not found:
        raise InputError(
            "no such table", source=str(path), value=part, expected=", ".join(rows) or "rows"
        )
    texts = ((name, pd.DataFrame(table).to_string(index=False)) for name, table in found.items())
    return "\n\n".join(f"{name}\n{text}".strip("\n") for name, text in texts)


def _row_lists(found: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, list[Any]]]:
    """Yield the lists of rows in a document with their dotted names."""
    for name, value in found.items():
        if isinstance(value, Mapping):
            yield from _row_lists(value, f"{prefix}{name}.")
        elif isinstance(value, list) and value and isinstance(value[0], Mapping):
            yield f"{prefix}{name}", value


def _shared_table(groups: Sequence[tuple[str, Sequence[Row]]], reference: str) -> str:
    """Return one line per method: the gap in each group of questions, then proofs and times."""
    every = [row for _, rows in groups for row in rows]
    heads = (title.removeprefix("Failure constraint: ").split(" put")[0] for title, _ in groups)
    gaps = [
        {
            line["method"]: dict.fromkeys(
                line[f"{which} gap"].removesuffix(" %") for which in ("median", "worst")
            )
            for line in method_rows(rows, reference)
        }
        for _, rows in groups
    ]
    lines = []
    for line in method_rows(every, reference):
        method, ratio = line["method"], _ratio_head(reference)
        shown = ("–".join(found.get(method, ("–",))) for found in gaps)
        proven = f"{line['proven']}/{line['cells']}"
        lines.append((method, *shown, proven, line["median time"], line[ratio]))
    names = ("method", *heads, "proven", "median time", _ratio_head(reference))
    return markdown_table(names, lines, rule=" --- ")


def _solved(results: Results) -> list[Row]:
    return [row for row in results.rows if row["cell"].get("kind") == "solve"]


def _ratio_head(reference: str) -> str:
    return f"× {reference or 'reference'}"


def _captions(results: Results) -> list[str]:
    methods = sorted({row["cell"].get("method", "") for row in results.rows} & CAPTIONS.keys())
    return [wrap(f"{name}: {CAPTIONS[name]}", _COLUMNS) for name in methods]


def _machines(results: Results) -> str:
    """Return the machines of the runs: each once, with the days on which it ran."""
    days: dict[str, list[str]] = {}
    for run in results.runs:
        one = {**run["machine"], "load": None}
        jobs = f", {run['jobs']} at once" if run.get("jobs", 1) != 1 else ""
        days.setdefault(f"{one.get('cpu')}, {one.get('cores')} cores{jobs}", []).append(
            str(run.get("started"))[:10]
        )
    return "\n".join(
        wrap(f"{name}, {' to '.join(dict.fromkeys((found[0], found[-1])))}.")
        for name, found in days.items()
    )


def method_rows(rows: Sequence[Row], reference: str = "") -> list[dict[str, str]]:
    """Return one line of the table per method, by heads.

    Gap is to the best bound that any method proved for the question; `best` counts the questions
    on which the method's value is the best of all (to 1e-9), `proven` those whose optimum it
    proved itself (a proof that there is no plan counts). `× reference` is the median of the time
    in units of the reference's on the same question, over the questions that both answered.
    """
    known = best_known(tuple(rows))
    lines = []
    for method in dict.fromkeys(row["cell"]["method"] for row in rows):
        mine = [row for row in rows if row["cell"]["method"] == method]
        ok = [row for row in mine if row["outcome"] == "ok"]
        gaps = [gap for row in ok if (gap := row_gap(row, known)) is not None]
        times = [float(row["seconds"]) for row in ok]
        best = sum(
            row["objective"] is not None and row["objective"] <= known[row["group"]][1] * (1 + 1e-9)
            for row in ok
        )
        ratio = time_ratio(rows, method, reference)
        other = Counter(row["outcome"] for row in mine if row["outcome"] != "ok")
        lines.append(
            {
                "method": method,
                "cells": str(len(mine)),
                "answered": str(len(ok)),
                "proven": str(sum(row["status"] in ("optimal", "infeasible") for row in ok)),
                "best": str(best),
                "median gap": _percent(statistics.median(gaps)) if gaps else "–",
                "worst gap": _percent(max(gaps)) if gaps else "–",
                "median time": _time(statistics.median(times)) if times else "–",
                "worst time": _time(max(times)) if times else "–",
                _ratio_head(reference): "–" if ratio is None else f"{ratio:.3g}",
                "not answered": ", ".join(f"{count} {name}" for name, count in other.items()),
            }
        )
    return lines


def _unanswered(rows: Sequence[Row]) -> list[str]:
    """List every cell that failed; refusals are told once per method and reason."""
    seen: Counter[tuple[str, str, str]] = Counter()
    for row in (row for row in rows if row["outcome"] != "ok"):
        who = row["cell"].get("method", row["label"])
        where = "" if row["outcome"] in ("refused", "missing") else f" on {row['group']}"
        seen[row["outcome"], f"{who}{where}", row.get("reason", "")] += 1
    lines = [
        wrap(
            f"{outcome}: {escape(who)}: {escape(reason)}"
            + (f" ({count} cells)" if count > 1 else "")
        )
        for (outcome, who, reason), count in seen.items()
    ]
    return ["\n".join(lines)] if lines else []


def _percent(value: float) -> str:
    return "0 %" if value < 1e-9 else f"{100 * value:.2g} %"


def _time(seconds: float) -> str:
    return f"{1000 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


# --- comparison of two files ----------------------------------------------------------------------


_VALUE, _GAP = 1e-9, 1e-6
_LEAST_SECONDS = 2e-4
"""Below this a timing is mostly that of the clock and the dispatch; such cells are not judged."""

_PROVEN = ("optimal", "infeasible")


class Change(NamedTuple):
    """Difference between two files of results: of a cell or method, from what to what."""

    what: str
    kind: str
    text: str
    worse: bool


class Difference(NamedTuple):
    """All differences between two files of results, worse ones first, and what was compared.

    `compared` counts the cells that both files answer, `timed` those whose times were compared;
    `reference` is the unit of time.
    """

    changes: tuple[Change, ...]
    compared: int
    timed: int
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]
    reference: str

    @property
    def worse(self) -> tuple[Change, ...]:
        """Return the changes for the worse."""
        return tuple(change for change in self.changes if change.worse)


def compare(
    before: Results, after: Results, *, reference: str | None = None, threshold: float = 1.25
) -> Difference:
    """Compare two files of results; InputError when they have no cell in common.

    The unit of time is the reference method's, by default that of the later run's suite. A change
    of time below the threshold, a factor > 1, is noise.
    """
    if reference is None:
        reference = after.reference
    old, new = ({row["key"]: row for row in found.rows} for found in (before, after))
    common = [key for key in old if key in new]
    if not common:
        raise InputError(
            "no cell in common",
            source=f"{before.source}, {after.source}",
            expected="two runs of the same suite under the same limits",
        )
    known = best_known(before.rows), best_known(after.rows)
    changes = [change for key in common for change in _quality(old[key], new[key], known)]
    units = _times(before, reference), _times(after, reference)
    factors: defaultdict[str, list[float]] = defaultdict(list)
    for key in common:
        if key in units[0] and key in units[1]:
            factors[new[key]["cell"]["method"]].append(units[1][key] / units[0][key])
    changes.extend(_methods(factors, threshold))
    earlier = set(contradictions(before.rows))
    changes.extend(
        Change(line, "contradiction", "a proven bound above a value", line not in earlier)
        for line in contradictions(after.rows)
    )
    return Difference(
        tuple(sorted(changes, key=lambda change: (not change.worse, change.kind, change.what))),
        len(common),
        sum(map(len, factors.values())),
        tuple(old[key]["label"] for key in old if key not in new),
        tuple(new[key]["label"] for key in new if key not in old),
        reference,
    )


def _quality(
    old: Row,
    new: Row,
    known: tuple[Mapping[str, tuple[float, float]], Mapping[str, tuple[float, float]]],
) -> Iterator[Change]:
    label = new["label"]
    if old["outcome"] != new["outcome"]:
        why = f" ({new['reason']})" if new.get("reason") else ""
        text = f"{old['outcome']} → {new['outcome']}{why}"
        yield Change(label, "outcome", text, old["outcome"] == "ok")
    elif new["outcome"] == "ok" and "status" in new:
        proven = old["status"] in _PROVEN
        if proven != (new["status"] in _PROVEN):
            yield Change(label, "proof", f"{old['status']} → {new['status']}", proven)
        a, b = old["objective"], new["objective"]
        if (a is None) != (b is None):
            text = "a plan → none" if b is None else "none → a plan"
            yield Change(label, "value", text, b is None)
        elif a is not None and abs(b - a) > _VALUE * abs(a):
            yield Change(label, "value", f"{a:.9g} → {b:.9g}", b > a)
        x, y = row_gap(old, known[0]), row_gap(new, known[1])
        if x is not None and y is not None and abs(y - x) > _GAP:
            yield Change(label, "gap", f"{100 * x:.3g} % → {100 * y:.3g} %", y > x)


def _times(results: Results, reference: str) -> dict[str, float]:
    """Key -> time in units of the reference in the same run; the reference's in calibrations."""
    found = {}
    for row, ratio in in_units(results.rows, reference):
        base = row.get("calibration_seconds", 0.0)
        if row["seconds"] >= _LEAST_SECONDS and row["cell"].get("method") != reference:
            found[row["key"]] = ratio
        elif row["seconds"] >= _LEAST_SECONDS and base > 0:
            found[row["key"]] = row["seconds"] / base
    return found


def _methods(factors: Mapping[str, Sequence[float]], threshold: float) -> Iterator[Change]:
    from scipy.stats import quantile_test

    for method, values in factors.items():
        low, high = quantile_test(values, p=0.5).confidence_interval(0.95)  # below six: not numbers
        if low > threshold or high < 1 / threshold:
            slower = bool(low > threshold)
            yield Change(
                f"all questions · {method}",
                "slower" if slower else "faster",
                f"×{statistics.median(values):.2f} in the median of {len(values)} questions "
                f"(95 %: ×{low:.2f} to ×{high:.2f})",
                slower,
            )


def diff_text(difference: Difference) -> str:
    """Return the difference as text, worse things first."""
    parts = [
        f"{difference.compared} cells in both files, {difference.timed} timed against "
        f"{difference.reference or 'no reference'}; {len(difference.worse)} worse, "
        f"{len(difference.changes) - len(difference.worse)} better"
    ]
    for title, worse in (("Worse", True), ("Better", False)):
        rows = [
            (change.kind, escape(change.what), change.text)
            for change in difference.changes
            if change.worse is worse
        ]
        if rows:
            parts.append(f"{title}\n" + table(("what", "where", "change"), rows, width=160))
    for title, labels in (
        ("Only in the first", difference.only_before),
        ("Only in the second", difference.only_after),
    ):
        if labels:
            shown = "\n".join(f"  {escape(label)}" for label in labels[:20])
            more = f"\n  and {len(labels) - 20} more" if len(labels) > 20 else ""
            parts.append(f"{title}: {len(labels)} cells\n{shown}{more}")
    return "\n\n".join(parts)
