"""``placement datasets``: what is bundled."""

from __future__ import annotations

import argparse

from placement.cli import dispatch as exits
from placement.cli.argument_parser import Subparsers
from placement.cli.options import add_output
from placement.cli.plan_output import print_json

__all__ = ["add_parser", "run"]


def add_parser(verbs: Subparsers) -> None:
    """Add the verb."""
    parser = verbs.add_parser(
        "datasets",
        help="list the bundled data sets and operation mixes",
        description="List the bundled data sets and the operation mixes of their workloads.",
    )
    add_output(parser, plan=False)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the lists."""
    from placement import datasets
    from placement.text import wrap
    from placement.workloads.fleets import MIXES

    if args.json:
        print_json(
            {
                "datasets": [
                    {"name": name, "description": datasets.describe(name)}
                    for name in datasets.names()
                ],
                "mixes": {name: list(shares) for name, shares in MIXES.items()},
            }
        )
        return exits.FOUND
    for name in datasets.names():
        print(wrap(f"{name:<13}{datasets.describe(name)}", indent=" " * 13))
    print()
    print(wrap("Operation mixes (--mix): " + ", ".join(MIXES), indent="  "))
    return exits.FOUND
