"""Output of verbs: plans printed and written."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from placement.cli import dispatch as exits
from placement.cli.page import print_page
from placement.text import escape, plan_text, values_text

if TYPE_CHECKING:
    from placement.evaluation.bill import MonthlyBill
    from placement.overtime.moves.move_steps import PlanMoves
    from placement.plan import Plan
    from placement.support.status import Status

__all__ = ["check_target", "exit_code", "print_json", "print_notes", "show_plan"]


def print_json(document: object) -> None:
    """Print one JSON document; in ASCII, so that any pipe carries it."""
    json.dump(document, sys.stdout, allow_nan=False, indent=1)
    print()


def print_notes(source: str, notes: Iterable[str]) -> None:
    """Print the notes of the reader of a file on stderr, one line per note."""
    for note in notes:
        print(escape(f"{source}: {note}"), file=sys.stderr)


def exit_code(status: Status) -> int:
    """Return the exit code for the status of a plan."""
    from placement.support.status import Status

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
    """Write the plan to the requested files, print the plan, and return the exit code.

    A plan without a configuration is printed but not written: the user should not find a file where
    a decision was expected.
    """
    today, tiered, written = _bill_today(plan, args), _tiered(plan, args), _save(plan, args)
    if args.json:
        from placement.cli.options import reference_from
        from placement.io.leader_plan_document import bill_document, plan_document

        reference = reference_from(args)
        document = plan_document(plan, reference=reference, embed=reference is None)
        if today is not None:
            document = {**document, "bill_today": bill_document(today)}
        if tiered is not None:
            document = {**document, "bill_tiers": bill_document(tiered)}
        moves = _moves(plan)
        if moves is not None:
            from placement.overtime.moves.move_steps import moves_document

            document = {**document, "move": moves_document(moves)}
        print_json(document)
    else:
        print_page(plan_text(plan, today))
        moves = _moves(plan)
        if moves is not None:
            print_page(f"\n{_moves_text(moves)}")
        if tiered is not None:
            from placement.evaluation.bill import bill_tables
            from placement.text.text_tables import section

            tables = "\n\n".join(
                section(one.title, values_text(one)) for one in bill_tables(tiered)
            )
            print_page(f"\nWith volume tiers\n{tables}")
        if written:
            print(f"\n{written}")
    return exit_code(plan.status)


def _moves(plan: Plan) -> PlanMoves | None:
    """Return the way from the present configuration of the question to the plan."""
    if plan.problem.current is None:
        return None
    from placement.overtime.moves.move_steps import plan_moves

    return plan_moves(plan)


def _moves_text(moves: PlanMoves) -> str:
    from placement.overtime.moves.move_steps import move_tables, moves_sentence
    from placement.text import wrap
    from placement.text.text_tables import section

    tables = [section(one.title, values_text(one)) for one in move_tables(moves)]
    return "\n\n".join([*tables, wrap(escape(moves_sentence(moves)))])


def _tiered(plan: Plan, args: argparse.Namespace) -> MonthlyBill | None:
    """Return the bill with the tiers of ``--tiers``."""
    if getattr(args, "tiers", None) is None or not plan.found:
        return None
    from placement.cli.option_groups.price_options import tiered_bill

    return tiered_bill(plan, args.tiers)


def _bill_today(plan: Plan, args: argparse.Namespace) -> MonthlyBill | None:
    """Return the bill of the configuration of ``--from`` at the prices of the plan."""
    if getattr(args, "present", None) is None or plan.bill is None:
        return None
    from placement.cli.option_groups.price_options import present_configuration
    from placement.evaluation.bill import bill_of

    instance = plan.problem.instance
    return bill_of(instance, present_configuration(instance, args.present))


def _save(plan: Plan, args: argparse.Namespace) -> str:
    """Write the plan to the requested files, and return a line that names them."""
    if args.output is None:
        return ""
    if not plan.found:
        return f"Nothing was written to {args.output}"
    from placement.cli.options import reference_from
    from placement.io.plan_file import save_plan

    reference = None if args.embed else reference_from(args)
    save_plan(plan, args.output, reference=reference, force=args.force)
    return f"Written to {args.output}"
