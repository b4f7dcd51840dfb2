"""Common parts of verbs that answer with a table: options, files, pictures, exit codes."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from placement.cli import dispatch as exits
from placement.cli.options import add_file, add_json
from placement.cli.page import print_page
from placement.cli.plan_output import print_json
from placement.errors import InputError
from placement.text.text_tables import spreadsheet_text

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = [
    "add_table_output",
    "cell",
    "check_table",
    "check_table_targets",
    "csv_text",
    "exit_code_of",
    "records",
    "show_table",
    "write_table",
]

_SUFFIXES = (".csv", ".json")


def add_table_output(
    parser: argparse.ArgumentParser, *, plot: bool = True, suffixes: Sequence[str] = _SUFFIXES
) -> None:
    """Add ``--json``, ``--csv``, ``-o``, ``--force`` and, for tables with a picture, ``--plot``.

    `suffixes` are those of the files that the verb writes.
    """
    group = parser.add_argument_group("output")
    shape = group.add_mutually_exclusive_group()
    add_json(shape)
    shape.add_argument("--csv", action="store_true", help="the whole table as CSV on stdout")
    add_file(group, "write the table: " + " or ".join(suffixes))
    if plot:
        group.add_argument("--plot", metavar="FILE", help="draw the table: .png, .svg or .pdf")
    else:
        parser.set_defaults(plot=None)


def check_table_targets(args: argparse.Namespace, suffixes: tuple[str, ...] = _SUFFIXES) -> None:
    """Refuse output files that cannot be written, before the table is computed.

    `suffixes` are those that the table may have, in lower case.
    """
    if args.output is not None:
        check_table(args.output, "--output", suffixes, force=args.force)
    if args.plot is not None:
        from placement.report.plots import check_picture

        check_picture(args.plot, force=args.force)


def check_table(path: str, option: str, suffixes: tuple[str, ...], *, force: bool) -> None:
    """Refuse a table that could not be written, or whose format is unknown."""
    from placement.io.formats.files import check_file

    if Path(path).suffix.lower() not in suffixes:
        raise InputError(
            "unknown table format",
            field=option,
            value=path,
            expected="a name that ends in " + " or ".join(suffixes),
        )
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
        data = csv_text(table).encode("utf-8")
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


def csv_text(table: pd.DataFrame) -> str:
    """Return the table as CSV: lists of sites joined by ``;``, what does not exist empty.

    Text is safe to open with a spreadsheet program: no formula, no invisible characters.
    """
    flat = table.copy()
    for name in flat.columns:
        values = flat[name].tolist()
        if any(isinstance(value, tuple) for value in values):
            values = ["; ".join(value) for value in values]
        if any(isinstance(value, str) for value in values):
            flat[name] = [
                spreadsheet_text(value) if isinstance(value, str) else value for value in values
            ]
    flat.columns = [spreadsheet_text(str(name)) for name in flat.columns]
    return str(flat.to_csv(index=False, lineterminator="\n"))


def cell(value: object, digits: int = 2) -> str:
    """Show one number of a table; ``–`` for one that does not exist."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "–"
    return f"{value:,.{digits}f}" if isinstance(value, float) else str(value)


def show_table(
    table: pd.DataFrame,
    args: argparse.Namespace,
    *,
    document: Mapping[str, object],
    text: str,
    parquet: tuple[pd.DataFrame, Mapping[str, str]] | None = None,
    draw: Callable[[], Figure] | None = None,
) -> None:
    """Print the table the way that was asked for, and write it where it was asked for.

    `parquet` is as in :func:`write_table`; `draw` makes the picture where it is not that of the
    page of the table.
    """
    written: list[str] = []
    if args.plot is not None:
        from placement.report.plots import plot_table, save_figure

        save_figure(plot_table(table) if draw is None else draw(), args.plot, force=args.force)
        written.append(f"Drawn in {args.plot}")
    if args.output is not None:
        write_table(args.output, table, document, force=args.force, parquet=parquet)
        written.append(f"Written to {args.output}")
    if args.json:
        print_json(dict(document))
    elif args.csv:
        sys.stdout.write(csv_text(table))
    else:
        print_page("\n".join([text, *(["", *written] if written else [])]))


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
        ("unknown", exits.NOTHING),
        ("failed", exits.SOLVER),
        ("not run", exits.INTERRUPTED),
    ):
        if status in found:
            return code
    return exits.BAD_INPUT
