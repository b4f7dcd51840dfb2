"""Output of verbs: plans printed and written."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from placement.cli import exit_codes as exits
from placement.text import escape

if TYPE_CHECKING:
    from placement.plan import Plan
    from placement.status import Status

__all__ = ["check_target", "exit_code", "print_json", "print_notes", "show_plan"]


def print_json(document: object) -> None:
    """Print one JSON document; in ASCII, so that any pipe carries it."""
    json.dump(document, sys.stdout, allow_nan=False, indent=1)
    print()


def print_notes(source: str, notes: Iterable[str]) -> None:
    """Print what a reader did with a file on stderr, one line per note."""
    for note in notes:
        print(escape(f"{source}: {note}"), file=sys.stderr)


def exit_code(status: Status) -> int:
    """Return the exit code for the status of a plan."""
    from placement.status import Status

    return {
        Status.OPTIMAL: exits.FOUND,
        Status.FEASIBLE: exits.FOUND,
        Status.INFEASIBLE: exits.INFEASIBLE,
        Status.VIOLATING: exits.INFEASIBLE,
        Status.UNKNOWN: exits.NOTHING,
    }[status]


def check_target(args: argparse.Namespace) -> None:
    """Refuse an output file that could not be written, before any work is done for it."""
    if args.output is not None:
        from placement.io.formats.files import check_file

        check_file(args.output, force=args.force)


def show_plan(plan: Plan, args: argparse.Namespace) -> int:
    """Write the plan where it was asked for, print it, and return the exit code.

    A plan without a configuration is printed but not written: the user should not find a file where
    a decision was expected.
    """
    written = _save(plan, args)
    if args.json:
        from placement.cli.options import reference_from
        from placement.io.plan_file import plan_document

        reference = reference_from(args)
        print_json(plan_document(plan, reference=reference, embed=reference is None))
    else:
        print(plan)
        if written:
            print(f"\n{written}")
    return exit_code(plan.status)


def _save(plan: Plan, args: argparse.Namespace) -> str:
    """Write the plan where it was asked for, and return a line that says what was done."""
    if args.output is None:
        return ""
    if not plan.found:
        return f"Nothing was written to {args.output}"
    from placement.cli.options import reference_from
    from placement.io.plan_file import save_plan

    reference = None if args.embed else reference_from(args)
    save_plan(plan, args.output, reference=reference, force=args.force)
    return f"Written to {args.output}"
