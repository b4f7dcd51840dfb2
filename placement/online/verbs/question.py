"""Options of the verbs ``online``, and the installed methods that they compare."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from placement.cli import argument_types as types
from placement.cli import exit_codes as exits
from placement.cli.options import add_instance
from placement.cli.progress_line import ProgressLine
from placement.cli.table_output import add_table_output, show_table
from placement.entry_points import entry_points
from placement.errors import UnsupportedError

__all__ = ["GROUP", "Rows", "add_question", "add_values", "collect", "installed", "show_rows"]

GROUP = "placement.online"
"""Entry points of the parts that the verbs compare: ``selection.bound``, ``reads.optimum``, …"""

Rows = list[dict[str, object]]


def installed(name: str) -> Any:
    """Return the object of an entry point of :data:`GROUP`.

    Raises
    ------
    UnsupportedError
        When no installed distribution has it, or it cannot be imported.
    """
    entry = entry_points(GROUP).get(name)
    if entry is None:
        raise UnsupportedError(
            f"no installed package has the entry point {name!r} of the group {GROUP!r}"
        )
    try:
        return entry.load()
    except (ImportError, AttributeError) as error:
        raise UnsupportedError(f"{name!r} ({entry.value}) cannot be imported: {error}") from error


def add_question(parser: argparse.ArgumentParser, *, leader: bool) -> None:
    """Add the instance, and the options that say where the replicas are."""
    add_instance(parser)
    group = parser.add_argument_group("replicas: --plan, or their sites by name")
    group.add_argument(
        "--plan", metavar="FILE", help="a plan for this instance: its replicas and its leader"
    )
    group.add_argument(
        "--replicas", action="append", type=types.names, metavar="SITES", help="replica sites"
    )
    if leader:
        group.add_argument("--leader", metavar="SITE", help="site of the leaseholder")
    group = parser.add_argument_group("run")
    group.add_argument("--seed", type=types.seed, default=0, metavar="N", help="of random draws")
    group.add_argument(
        "--progress",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="a line on stderr (default: when that is a terminal)",
    )
    add_table_output(parser, plot=False)


def add_values(
    parser: argparse.ArgumentParser,
    title: str,
    *options: tuple[str, Callable[[str], object], object, str, str],
) -> argparse._ArgumentGroup:
    """Add a group of options with one value each, and name their defaults in the help.

    Parameters
    ----------
    parser
        Parser of the part.
    title
        Title of the group.
    options
        Option, type, default, name of the value, text of the help. The help names the default
        unless it is None or infinite.

    Returns
    -------
    argparse._ArgumentGroup
        The group, for options of another kind.
    """
    group = parser.add_argument_group(title)
    for option, kind, default, metavar, text in options:
        named = default is not None and default != math.inf
        shown = f"{default:g}" if isinstance(default, float) else default
        group.add_argument(
            option, type=kind, default=default, metavar=metavar,
            help=f"{text} (default {shown})" if named else text,
        )  # fmt: skip
    return group


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
        Parsed, with the options of :func:`add_question`.
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
