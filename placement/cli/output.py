"""Output of verbs: pages for people, progress, plans, tables, comparisons."""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias

from placement.cli import exit_codes as exits
from placement.cli.options import PLOT, Parser, question_of
from placement.errors import require
from placement.text.plans import plan_text, values_text
from placement.text.text_tables import (
    csv_text,
    escape,
    keep_table,
    makes_csv,
    section,
    use_page_width,
    wrap,
)

if TYPE_CHECKING:
    import pandas as pd

    from placement.methods.options import Progress
    from placement.plan import Plan
    from placement.problem import Problem
    from placement.report.plots import Picture
    from placement.text.text_tables import ValueTable

# --- pages: as wide as the terminal, with colours where it shows them ------------------------

_BOLD, _RED, _GREEN, _YELLOW = "1", "31", "32", "33"
_COLOURS = {
    "optimal": _GREEN,
    "proved": _GREEN,
    "feasible": _YELLOW,
    "unknown": _YELLOW,
    "refused": _YELLOW,
    "nothing found": _YELLOW,
    "warning": _YELLOW,
    "infeasible": _RED,
    "failed": _RED,
    "not proved": _RED,
    "evaluated, but it breaks constraints": _RED,
    "error": _RED,
}

_TITLE = re.compile(r"(?:(?<=\n\n)|(?<=\A\n))\S[^\n]*(?=\n  )")
"""First line of a section: after a blank line, before an indented one."""
_WORD = re.compile(
    r"^(?P<before>(?:Answer +|.*?  )?)"
    rf"(?P<word>{'|'.join(sorted(_COLOURS, key=len, reverse=True))})"
    r"(?=[:;,]| \(|  |$)",
    re.MULTILINE,
)
"""First status of a line: the verdict of a plan, a cell of a table, the label of a message."""


def use_terminal_width() -> AbstractContextManager[None]:
    """Lay text out as wide as the terminal or ``COLUMNS``; elsewhere 80 columns, whole tables."""
    columns = shutil.get_terminal_size((80, 24)).columns
    return use_page_width(columns, whole=not sys.stdout.isatty())


def shows_colours(stream: TextIO) -> bool:
    """Return whether a stream is a terminal with colours, and the user did not set ``NO_COLOR``."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not stream.isatty():
        return False
    return sys.platform != "win32" or "WT_SESSION" in os.environ


def paint(text: str) -> str:
    r"""Return a page with titles in bold and statuses in their colours.

    The width of the page stays: escape sequences take no columns.

    Examples
    --------
    >>> paint("proved: it is\n\nReplicas\n  ams  leader")
    '\x1b[32mproved\x1b[0m: it is\n\n\x1b[1mReplicas\x1b[0m\n  ams  leader'
    """
    text = _TITLE.sub(lambda found: _painted(found[0], _BOLD), text)
    return _WORD.sub(
        lambda found: found["before"] + _painted(found["word"], _COLOURS[found["word"]]), text
    )


def print_page(text: str) -> None:
    """Print text for people on stdout, in colours where it shows them; not beside ``--csv``."""
    if not makes_csv():
        print(paint(text) if shows_colours(sys.stdout) else text)


def print_label(label: str, message: str) -> None:
    """Print ``label: message`` on stderr, the label in its colour where the terminal shows it."""
    shown = _painted(label, f"{_BOLD};{_COLOURS[label]}") if shows_colours(sys.stderr) else label
    print(f"{shown}: {message}", file=sys.stderr)


def _painted(text: str, style: str) -> str:
    return f"\x1b[{style}m{text}\x1b[0m"


# --- progress on stderr ----------------------------------------------------------------------


class ProgressLine:
    """Shows reports, rewriting one line on a terminal and writing a line each elsewhere.

    `in_ms` turns objective and bound into ms, or into another `unit`; `every` is the least
    number of seconds between two updates; tests have a `clock`.
    """

    def __init__(
        self,
        stream: TextIO,
        *,
        in_ms: Callable[[float], float],
        unit: str = "ms",
        every: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = stream
        self._terminal = stream.isatty()
        self._in_ms = in_ms
        self._unit = unit
        self._every = every if every is not None else (0.1 if self._terminal else 1.0)
        self._clock = clock
        self._last = -math.inf
        self._width = 0

    def __call__(self, progress: Progress) -> None:
        """Show a report, unless the last one was a moment ago."""
        if self._due():
            self.show(self.text(progress))

    def count(self, text: str, done: int, total: int) -> None:
        """Show a text that counts to a total, unless the last one was a moment ago."""
        if done == total or self._due():
            self.show(text)

    def _due(self) -> bool:
        now = self._clock()
        due = now - self._last >= self._every
        self._last = now if due else self._last
        return due

    def show(self, text: str) -> None:
        """Show a text in place of the last one."""
        if self._terminal:
            blank = " " * max(0, self._width - len(text))
            self._stream.write(f"\r{text}{blank}")
            self._width = len(text)
        else:
            self._stream.write(text + "\n")
        self._stream.flush()

    def text(self, progress: Progress) -> str:
        """Return the line: incumbent, bound, gap, seconds, work done."""
        from placement.support.status import relative_gap

        gap = relative_gap(progress.incumbent, progress.bound)
        parts = [
            f"best {self._value(progress.incumbent)}",
            f"bound {self._value(progress.bound)}",
            "gap –" if math.isinf(gap) else f"gap {100 * gap:.2f} %",
            f"{progress.seconds:.1f} s",
        ]
        if progress.done is not None:
            total = f"/{progress.total:,}" if progress.total is not None else ""
            parts.append(f"{progress.done:,}{total} done")
        return "  ".join(parts)

    def _value(self, value: float) -> str:
        return f"{self._in_ms(value):,.3f} {self._unit}" if math.isfinite(value) else "–"

    def close(self) -> None:
        """Wipe the line, so that the results begin on an empty line."""
        if self._terminal and self._width:
            self._stream.write("\r" + " " * self._width + "\r")
            self._stream.flush()
            self._width = 0


@contextmanager
def progress_of(
    args: argparse.Namespace, problem: Problem | None = None
) -> Iterator[ProgressLine | None]:
    """Give the progress line that the options ask for, and wipe it at the end."""
    wanted: bool = sys.stderr.isatty() if args.progress is None else args.progress
    if not wanted:
        yield None
        return
    line = ProgressLine(sys.stderr, in_ms=float)
    if problem is not None:
        goal = problem.objective
        in_ms, unit = partial(goal.in_ms, problem), goal.unit(problem)
        line = ProgressLine(sys.stderr, in_ms=in_ms, unit=unit)
    try:
        yield line
    finally:
        line.close()


# --- plans -----------------------------------------------------------------------------------


def print_json(document: object) -> None:
    """Print one JSON document; in ASCII, so that any pipe carries it."""
    json.dump(document, sys.stdout, allow_nan=False, indent=1)
    print()


def show_result(
    args: argparse.Namespace,
    document: Callable[[], object],
    text: Callable[[], str],
    *,
    written: Sequence[str] = (),
) -> None:
    """Print a result as it was asked for: one JSON document, or a page, or its tables as CSV.

    A page ends with the lines about files that were `written`.
    """
    if args.json:
        print_json(document())
    else:
        print_page("\n".join([text(), *(["", *written] if written else [])]))


def print_notes(source: str, notes: Iterable[str]) -> None:
    """Print the notes of the reader of a file on stderr, one line per note."""
    for note in notes:
        print(escape(f"{source}: {note}"), file=sys.stderr)


def check_target(args: argparse.Namespace) -> None:
    """Refuse an output file that could not be written, before any work is done for it."""
    if args.output is not None:
        from placement.io.formats.files import check_file

        check_file(args.output, force=args.force)
    else:
        require(not vars(args).get("embed"), "--embed", "does nothing without -o FILE")


def show_plan(plan: Plan, args: argparse.Namespace) -> int:
    """Write the plan to the requested files, print the plan, and return the exit code.

    A plan without a configuration is printed but not written: the user should not find a file where
    a decision was expected.
    """
    from placement.cli.problem_options import present_configuration, reference_from, tiered_bill
    from placement.evaluation.bill import bill_of, bill_tables

    today = tiered = moves = None
    if plan.bill is not None and vars(args).get("today") is not None:
        instance = plan.problem.instance
        today = bill_of(instance, present_configuration(instance, args.today))
    if plan.found and vars(args).get("tiers") is not None:
        tiered = tiered_bill(plan, args.tiers)
    written = _save(plan, args)
    if plan.problem.current is not None:
        from placement.overtime.moves import move_steps

        moves = move_steps.plan_moves(plan)

    def document() -> object:
        from placement.io.plan_file import bill_document, plan_document

        reference = reference_from(args)
        found = plan_document(plan, reference=reference, embed=reference is None)
        for name, bill in (("bill_today", today), ("bill_tiers", tiered)):
            found |= {} if bill is None else {name: bill_document(bill)}
        return found | ({} if moves is None else {"move": move_steps.moves_document(moves)})

    def text() -> str:
        parts = [plan_text(plan, today)]
        if moves is not None:
            said = wrap(escape(move_steps.moves_sentence(moves)))
            parts += [*_sections(move_steps.move_tables(moves)), said]
        if tiered is not None:
            parts.append("With volume tiers\n" + "\n\n".join(_sections(bill_tables(tiered))))
        return "\n\n".join(parts)

    show_result(args, document, text, written=written)
    return exit_code_of([plan.status])


def _sections(tables: Iterable[ValueTable]) -> list[str]:
    return [section(one.title, values_text(one)) for one in tables]


def _save(plan: Plan, args: argparse.Namespace) -> list[str]:
    """Write the plan to the requested file, and return the line that names it."""
    if args.output is None:
        return []
    if not plan.found:
        return [f"Nothing was written to {args.output}"]
    from placement.cli.problem_options import reference_from
    from placement.io.plan_file import save_plan

    reference = None if args.embed else reference_from(args)
    asked = {}
    if vars(args).get("asked") is not None:
        asked = {
            key.name: value
            for key, value in question_of(args).given()
            if key.group in ("today", "tail") and not key.field and key.name != "percentile"
        }
    save_plan(plan, args.output, reference=reference, asked=asked, force=args.force)
    return [f"Written to {args.output}"]


# --- tables: options, files, pictures, exit codes --------------------------------------------

_SUFFIXES = (".csv", ".json")

Row: TypeAlias = Mapping[Any, Any]
"""Row of a table, by column."""

Columns: TypeAlias = "list[tuple[str, str | Callable[[Row], Any], int]]"
"""Columns for people: header; column of the table, or a function of its row; digits."""


def add_table_output(
    parser: Parser, *, plot: bool = True, suffixes: Sequence[str] = _SUFFIXES
) -> None:
    """Add ``--json``, ``--csv``, ``-o``, ``--force``, and ``--plot`` for tables with a picture."""
    parser.add_output("write the table: " + " or ".join(suffixes))
    parser.add("output", *([PLOT] if plot else []))
    parser.set_defaults(plot=None)


def check_table_targets(args: argparse.Namespace, suffixes: tuple[str, ...] = _SUFFIXES) -> None:
    """Refuse output files that cannot be written, before the table is computed.

    `suffixes` are the endings of files for the table, in lower case.
    """
    if args.output is not None:
        check_table(args.output, "--output", suffixes, force=args.force)
    if args.plot is not None:
        from placement.report.plots import check_picture

        check_picture(args.plot, force=args.force)


def check_table(path: str, option: str, suffixes: tuple[str, ...], *, force: bool) -> None:
    """Refuse a table that could not be written, or whose format is unknown."""
    from placement.io.formats.files import check_file

    known, expected = Path(path).suffix.lower() in suffixes, " or ".join(suffixes)
    require(known, option, "unknown table format", path, f"a name that ends in {expected}")
    check_file(path, force=force)


def write_table(
    path: str,
    table: pd.DataFrame,
    document: Mapping[str, object],
    *,
    force: bool,
    parquet: tuple[pd.DataFrame, Mapping[str, str]] | None = None,
) -> None:
    """Write a table in the format of the file name: JSON (the document), Parquet or CSV.

    `parquet` is the table of a Parquet file, with the texts that it keeps beside it, where they are
    not the table alone.
    """
    from placement.io.formats.document import encode_json
    from placement.io.formats.files import write_file
    from placement.io.formats.tables import frame_parquet

    suffix = Path(path).suffix.lower()
    if suffix == ".json":
        data = encode_json(dict(document))
    elif suffix == ".parquet":
        data = frame_parquet(*(parquet or (table, {})))
    else:
        data = frame_csv(table).encode("utf-8")
    write_file(path, data, force=force)


def records(table: pd.DataFrame) -> list[dict[str, object]]:
    """Rows as plain JSON values: no NaN, no infinity (both null), lists for tuples."""
    return [
        {str(name): _plain(value) for name, value in row.items()}
        for row in table.to_dict("records")
    ]


def _plain(value: object) -> object:
    if isinstance(value, (tuple, list)):
        return list(map(str, value))
    if hasattr(value, "item"):  # a NumPy scalar
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def frame_csv(table: pd.DataFrame) -> str:
    """Return a frame as CSV; see :func:`placement.text.text_tables.csv_text`."""
    whole = table.astype(object).where(table.notna(), None)
    return csv_text(list(table.columns), whole.itertuples(index=False, name=None))


def cell(value: object, digits: int = 2) -> str:
    """Show one number of a table; ``–`` for one that does not exist."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "–"
    return f"{value:,.{digits}f}" if isinstance(value, float) else str(value)


def page_of(table: pd.DataFrame, columns: Columns, *notes: str, head: str = "") -> str:
    """Return columns of a table below a `head`; notes that begin with a blank are indented."""
    parts = [*([_laid(head), ""] if head else []), columns_text(table, columns)]
    return "\n".join([*parts, *(["", *map(_laid, notes)] if notes else [])])


def _laid(note: str) -> str:
    return wrap(escape(note.lstrip()), indent="  " if note.startswith(" ") else "")


def columns_text(table: pd.DataFrame, columns: Columns) -> str:
    """Return columns of a table for people, numbers to the right; empty text is shown as –."""
    from placement.text.text_tables import table as text_table

    def value(row: Row, key: str | Callable[[Row], Any]) -> Any:
        found = row.get(key) if isinstance(key, str) else key(row)
        return None if isinstance(found, str) and not found else found

    found = [[value(row, key) for _, key, _ in columns] for row in table.to_dict("records")]
    right = [k for k in range(len(columns)) if not any(isinstance(row[k], str) for row in found)]
    rows = [
        [cell(one, digits) for one, (_, _, digits) in zip(row, columns, strict=True)]
        for row in found
    ]
    return text_table([head for head, _, _ in columns], rows, right=right)


def show_table(
    table: pd.DataFrame,
    args: argparse.Namespace,
    *,
    document: Mapping[str, object],
    text: str,
    parquet: tuple[pd.DataFrame, Mapping[str, str]] | None = None,
    draw: Callable[[], Picture] | None = None,
) -> None:
    """Print the table the way that was asked for, and write it where it was asked for.

    `parquet` is as in :func:`write_table`; `draw` makes the picture where it is not that of the
    page of the table.
    """
    written = table_files(args, lambda: table, document, parquet=parquet, draw=draw)
    if args.csv:  # whole, in place of what its text laid out
        keep_table(frame_csv(table))
    else:
        show_result(args, lambda: dict(document), lambda: text, written=written)


def table_files(
    args: argparse.Namespace,
    table: Callable[[], pd.DataFrame],
    document: Mapping[str, object],
    *,
    parquet: tuple[pd.DataFrame, Mapping[str, str]] | None = None,
    draw: Callable[[], Picture] | None = None,
) -> list[str]:
    """Draw and write a table where that was asked for; return the lines that name the files."""
    written: list[str] = []
    if args.output is not None:
        write_table(args.output, table(), document, force=args.force, parquet=parquet)
        written.append(f"Written to {args.output}")
    if args.plot is not None:
        from placement.report.plots import plot_table, save_figure

        save_figure(plot_table(table()) if draw is None else draw(), args.plot, force=args.force)
        written.append(f"Drawn in {args.plot}")
    return written


def exit_code_of(statuses: Iterable[str], reasons: Sequence[str] = ()) -> int:
    """Exit code of a table: 0 when any row has a plan.

    Otherwise 2 when something was proven infeasible, 3 when time ran out, 4 when a method failed,
    1 when all refused; always 4 when one method refutes another.
    """
    found = set(statuses)
    if any(reason.startswith("WRONG") for reason in reasons):
        return exits.SOLVER
    for status, code in (
        ("optimal", exits.FOUND),
        ("feasible", exits.FOUND),
        ("infeasible", exits.INFEASIBLE),
        ("violating", exits.INFEASIBLE),
        ("unknown", exits.NOTHING),
        ("failed", exits.SOLVER),
        ("not run", exits.INTERRUPTED),
    ):
        if status in found:
            return code
    return exits.BAD_INPUT


# --- comparisons: one row for each step ------------------------------------------------------

Rows = list[dict[str, object]]


def collect(
    args: argparse.Namespace, steps: Sequence[tuple[str, Callable[[], Mapping[str, object]]]]
) -> tuple[Rows, bool]:
    """Run the steps of a comparison, one row each with its seconds, and a line of progress.

    Also return whether Ctrl-C ended the comparison: the steps that did not finish then have the
    status "not run".
    """
    rows: Rows = []
    interrupted = False
    with progress_of(args) as line:
        for number, (name, step) in enumerate(steps, start=1):
            if not interrupted:
                if line is not None:
                    line.show(f"{name}  {number}/{len(steps)}")
                began = time.perf_counter()
                try:
                    row = {"method": name, **step()}
                    rows.append({**row, "seconds": time.perf_counter() - began})
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

    The rows are those of :func:`collect`; `columns` are the keys that are shown after method and
    status, with their headers. Other keys are in the JSON document and the CSV only, as are
    `more`. `facts` are lines below the table.
    """
    import pandas as pd

    frame = pd.DataFrame(rows)
    shown: Columns = [(key, key, 0) for key in ("method", "status")]
    shown += [(header, key, 2) for key, header in columns.items()]
    document = {
        "question": question,
        "columns": dict(columns),
        "rows": records(frame.astype(object).where(frame.notna(), None)),
        "facts": list(facts),
        **(more or {}),
    }
    show_table(frame, args, document=document, text=page_of(frame, shown, *facts, head=question))
    return exits.INTERRUPTED if interrupted else exits.FOUND
