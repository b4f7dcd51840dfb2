"""Tables of a file of results, as text or Markdown."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.harness.doc_pages import markdown_table
from benchmarks.harness.result_files import read_json, read_rows
from benchmarks.harness.result_rows import (
    Results,
    best_known,
    contradictions,
    families,
    row_gap,
    time_ratio,
)
from placement.errors import InputError
from placement.text import escape, wrap

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

    Parameters
    ----------
    path
        A file of results.
    part
        Name of a table, such as ``fleets`` or ``latency.rows``, or the beginning of names; all
        tables unless given.

    Raises
    ------
    InputError
        If no table has such a name.
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


def _shared_table(groups: Sequence[tuple[str, Sequence[Mapping[str, Any]]]], reference: str) -> str:
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


def _solved(results: Results) -> list[Mapping[str, Any]]:
    return [row for row in results.rows if row["cell"].get("kind") == "solve"]


def _ratio_head(reference: str) -> str:
    return f"× {reference or 'reference'}"


def _captions(results: Results) -> list[str]:
    captions = {
        name: caption for run in results.runs for name, caption in run.get("captions", {}).items()
    }
    return [wrap(f"{name}: {caption}", _COLUMNS) for name, caption in captions.items()]


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


def method_rows(rows: Sequence[Mapping[str, Any]], reference: str = "") -> list[dict[str, str]]:
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


def _unanswered(rows: Sequence[Mapping[str, Any]]) -> list[str]:
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
