"""The verb ``online``; its parts are the entry points ``online.PART``."""

from __future__ import annotations

import argparse

from placement.cli.argument_parser import Subparsers
from placement.cli.verb_registry import add_parts

__all__ = ["add_parser", "run"]


def add_parser(verbs: Subparsers) -> None:
    """Add the verb and its parts."""
    parser = verbs.add_parser(
        "online",
        help="compare decisions at run time: replica of a read, leader or majority, hot copies",
        description="Compare the rules that databases use at run time with the best possible, on "
        "the sites, RTTs and demand of an instance: 'selection' (C3 and other rules that choose "
        "the replica of a read), 'reads' (leaseholder or majority), 'dynamic' (extra copies of "
        "hot objects).",
    )
    parts = parser.add_subparsers(dest="part", metavar="PART", required=True)
    add_parts(parts, "online")


def run(args: argparse.Namespace) -> int:
    """Run the part that was named."""
    code: int = args.run(args)
    return code
