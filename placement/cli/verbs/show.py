"""``placement show``: what an instance holds, or a plan that was written earlier."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from placement.cli import argument_parser as types
from placement.cli import dispatch as exits
from placement.cli.argument_parser import Subparsers
from placement.cli.option_groups.price_options import add_prices
from placement.cli.options import add_instance, add_output, add_work, instance_from
from placement.cli.page import print_page
from placement.cli.plan_output import exit_code, print_json

if TYPE_CHECKING:
    from placement.model.instance import Instance

__all__ = ["add_parser", "run"]


def add_parser(verbs: Subparsers) -> None:
    """Add the verb."""
    parser = verbs.add_parser(
        "show",
        help="show an instance, or a plan from its file",
        description="Show an instance (a data set or a path), or a plan that solve, evaluate "
        "or contingency wrote; a plan is checked again, with the exit code of its own verb.",
    )
    add_instance(parser)
    add_prices(parser)
    parser.add_argument(
        "--clients",
        type=types.whole(),
        default=20,
        metavar="N",
        help="most clients to list (default 20)",
    )
    add_work(parser)
    add_output(parser, plan=False)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the instance or the plan."""
    if _is_plan(args.instance):
        return _show_plan(args)
    instance = instance_from(args)
    if args.json:
        print_json(_document(instance))
    else:
        from placement.text import instance_text

        print_page(instance_text(instance, most=max(0, args.clients)))
    return exits.FOUND


def _show_plan(args: argparse.Namespace) -> int:
    from placement.io.leader_plan_document import plan_document
    from placement.io.plan_file import load_any_plan
    from placement.io.quorum_plan_document import quorum_plan_document
    from placement.plan import Plan
    from placement.text.quorum_plans import quorum_plan_text

    plan = load_any_plan(args.instance, work=args.work)
    if isinstance(plan, Plan):
        text, document = str(plan), plan_document(plan) if args.json else {}
    else:
        text, document = quorum_plan_text(plan), quorum_plan_document(plan)
    if args.json:
        print_json(document)
    else:
        print_page(text)
    return exit_code(plan.status)


def _is_plan(source: str) -> bool:
    path = Path(source)
    if path.suffix.lower() != ".json" or not path.is_file():
        return False
    from placement.io.formats.document import read_document
    from placement.io.leader_plan_document import FORMAT

    return read_document(path).values.get("format") == FORMAT


def _document(instance: Instance) -> dict[str, object]:
    """Return the instance or plan as a document without matrices."""
    issued = instance.counts.sum(axis=(0, 2))
    by_operation = instance.counts.sum(axis=(0, 1))
    return {
        "name": instance.name,
        "fingerprint": instance.fingerprint,
        "sites": [
            {
                "site": site,
                "domains": {level: labels[s] for level, labels in instance.domains.items()},
            }
            for s, site in enumerate(instance.sites)
        ],
        "clients": [
            {"client": client, "operations": float(issued[c])}
            for c, client in enumerate(instance.clients)
        ],
        "operations": [
            {
                "operation": operation.name,
                "coefficients": list(operation.coefficients),
                **({"waits": list(map(str, operation.waits))} if operation.waits else {}),
                **({"constant": operation.constant} if operation.constant else {}),
                "operations": float(by_operation[o]),
            }
            for o, operation in enumerate(instance.operations)
        ],
        "intervals": list(instance.intervals),
        "client_rtt_ms": {
            "least": float(instance.client_rtt.min()),
            "most": float(instance.client_rtt.max()),
        },
        "provenance": list(instance.provenance),
    }
