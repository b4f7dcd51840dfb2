"""Comparisons of rules or methods: one row for each step, a line of progress, Ctrl-C."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from placement.cli import dispatch as exits
from placement.cli.progress_line import ProgressLine
from placement.cli.table_output import show_table

__all__ = ["Rows", "collect", "show_rows"]

Rows = list[dict[str, object]]


@contextmanager
def _line(args: argparse.Namespace) -> Iterator[Callable[[str], None]]:
    wanted: bool = sys.stderr.isatty() if args.progress is None else args.progress
    if not wanted:
        yield lambda text: None
        return
    line = ProgressLine(sys.stderr, in_ms=float, every=0.0)
    try:
        yield line.show
    finally:
        line.close()


def collect(
    args: argparse.Namespace, steps: Sequence[tuple[str, Callable[[], Mapping[str, object]]]]
) -> tuple[Rows, bool]:
    """Run the steps of a comparison, one row each, with a line of progress.

    Returns
    -------
    The rows, and whether Ctrl-C ended the comparison: the steps that did not finish then have
    the status "not run".
    """
    rows: Rows = []
    interrupted = False
    with _line(args) as show:
        for number, (name, step) in enumerate(steps, start=1):
            if not interrupted:
                show(f"{name}  {number}/{len(steps)}")
                try:
                    rows.append({"method": name, **step()})
                    continue
                except KeyboardInterrupt:
                    interrupted = True
            rows.append({"method": name, "status": "not run"})
    return rows, interrupted


def show_rows(
    args: argparse.Namespace,
    rows: Rows,
    columns: Mapping[str, str],
    *,
    question: str,
    facts: Sequence[str] = (),
    interrupted: bool = False,
    more: Mapping[str, object] | None = None,
) -> int:
    """Print and write a comparison; return the exit code.

    Parameters
    ----------
    args
        Parsed, with the options of :func:`placement.cli.table_output.add_table_output` and
        ``--progress``.
    rows
        Of :func:`collect`; keys that are no column are in the JSON document and the CSV only.
    columns
        Key of each column that is shown after method and status, with its header.
    question
        In words.
    facts
        Lines below the table.
    interrupted
        Whether Ctrl-C ended the comparison.
    more
        Further keys of the JSON document.
    """
    import pandas as pd

    from placement.cli.table_output import cell, records
    from placement.text import escape, table, wrap

    frame = pd.DataFrame(rows)
    shown = [
        [
            str(row["method"]),
            str(row["status"]),
            *(cell(row.get(key)) for key in columns),
        ]
        for row in rows
    ]
    header = ["method", "status", *columns.values()]
    text = "\n".join(
        [
            wrap(escape(question)),
            "",
            table(header, shown, right=range(2, len(header))),
            *(["", *(wrap(escape(fact)) for fact in facts)] if facts else []),
        ]
    )
    document = {
        "question": question,
        "columns": dict(columns),
        "rows": records(frame.astype(object).where(frame.notna(), None)),
        "facts": list(facts),
        **(more or {}),
    }
    show_table(frame, args, document=document, text=text)
    return exits.INTERRUPTED if interrupted else exits.FOUND
