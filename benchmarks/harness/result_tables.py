"""Tables of a file of results, as text or Markdown."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.harness.doc_pages import markdown_table
from benchmarks.harness.machine import sentence
from placement.report.result_file import (
    Results,
    best_known,
    contradictions,
    families,
    row_gap,
    time_ratio,
)
from placement.text import escape, table, wrap

__all__ = ["method_rows", "report_text"]

_COLUMNS = 100
"""Columns of text: a page of results must not depend on the terminal that writes it."""

_HEAD = (
    "method",
    "cells",
    "answered",
    "proven",
    "best",
    "median gap",
    "worst gap",
    "median time",
    "worst time",
    "× reference",
    "not answered",
)


def report_text(results: Results, *, markdown: bool = False) -> str:
    """Return the report of a run: the machine, gap and time by method, everything that failed."""
    if not results.rows:
        return "No cell has a row yet."
    parts = [_head(results)]
    solved = [row for row in results.rows if row["cell"].get("kind") == "solve"]
    reference = str(results.runs[-1].get("reference", "")) if results.runs else ""
    for title, rows in families(solved):
        parts.append(f"{'### ' if markdown else ''}{title}")
        head = [name.replace("reference", reference or "reference") for name in _HEAD]
        parts.append(_table(head, method_rows(rows, reference), markdown=markdown))
    scripts = [row for row in results.rows if row["cell"].get("kind") == "script"]
    if scripts:
        lines = [
            (row["label"], row["outcome"], f"{row['wall_seconds']:.1f} s", row.get("reason", ""))
            for row in scripts
        ]
        parts.append(_table(("script", "outcome", "time", "reason"), lines, markdown=markdown))
    parts.extend(
        f"CONTRADICTION  {line}" if not markdown else f"**Contradiction:** {line}"
        for line in contradictions(results.rows)
    )
    parts.extend(_unanswered(results.rows, markdown=markdown))
    captions = {
        name: caption for run in results.runs for name, caption in run.get("captions", {}).items()
    }
    parts.extend(wrap(f"{name}: {caption}", _COLUMNS) for name, caption in captions.items())
    return "\n\n".join(parts)


def _head(results: Results) -> str:
    lines = []
    for run in results.runs:
        jobs = f", {run['jobs']} at once" if run.get("jobs", 1) != 1 else ""
        lines.append(
            wrap(
                f"{run.get('suite')} of {run.get('started')}{jobs}: {sentence(run['machine'])}",
                _COLUMNS,
            )
        )
    return "\n".join(lines)


def method_rows(rows: Sequence[Mapping[str, Any]], reference: str = "") -> list[tuple[str, ...]]:
    """Return one line of the table per method.

    Gap is to the best bound that any method proved for the question; `best` counts the questions
    on which the method's value is the best of all (to 1e-9), `proven` those whose optimum it
    proved itself (a proof that there is no plan counts). `× reference` is the median of the time
    in units of the reference's on the same question, over the questions that both answered.
    """
    known = best_known(tuple(rows))
    by_method: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        by_method[row["cell"]["method"]].append(row)
    lines: list[tuple[str, ...]] = []
    for method, mine in by_method.items():
        ok = [row for row in mine if row["outcome"] == "ok"]
        gaps = [gap for row in ok if (gap := row_gap(row, known)) is not None]
        times = [float(row["seconds"]) for row in ok]
        proven = sum(row["status"] in ("optimal", "infeasible") for row in ok)
        best = sum(
            row["objective"] is not None and row["objective"] <= known[row["group"]][1] * (1 + 1e-9)
            for row in ok
        )
        other = Counter(row["outcome"] for row in mine if row["outcome"] != "ok")
        lines.append(
            (
                method,
                str(len(mine)),
                str(len(ok)),
                str(proven),
                str(best),
                _percent(statistics.median(gaps)) if gaps else "–",
                _percent(max(gaps)) if gaps else "–",
                _time(statistics.median(times)) if times else "–",
                _time(max(times)) if times else "–",
                f"{ratio:.3g}"
                if (ratio := time_ratio(rows, method, reference)) is not None
                else "–",
                ", ".join(f"{count} {name}" for name, count in other.items()),
            )
        )
    return lines


def _unanswered(rows: Sequence[Mapping[str, Any]], *, markdown: bool) -> list[str]:
    """List every cell that failed; refusals are told once per method and reason."""
    seen: dict[tuple[str, str, str], int] = {}
    for row in rows:
        if row["outcome"] == "ok":
            continue
        who = row["cell"].get("method", row["label"])
        where = "" if row["outcome"] in ("refused", "missing") else f" on {row['group']}"
        key = (row["outcome"], f"{who}{where}", row.get("reason", ""))
        seen[key] = seen.get(key, 0) + 1
    lines = [
        f"{'- ' if markdown else ''}{outcome}: {escape(who)}: {escape(reason)}"
        + (f" ({count} cells)" if count > 1 else "")
        for (outcome, who, reason), count in seen.items()
    ]
    return ["\n".join(lines if markdown else map(wrap, lines))] if lines else []


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], *, markdown: bool) -> str:
    if not markdown:
        words = ("method", "not answered", "script", "outcome", "reason")
        numbers = [i for i, name in enumerate(head) if name not in words]
        return table(head, rows, right=numbers, width=130)
    cells = ([escape(cell).replace("|", "\\|") for cell in row] for row in rows)
    return markdown_table(head, cells, rule=" --- ")


def _percent(value: float) -> str:
    return "0 %" if value < 1e-9 else f"{100 * value:.2g} %"


def _time(seconds: float) -> str:
    return f"{1000 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"
