"""Options that the verbs of databases share, and the objects they become."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from placement.cli import argument_parser as types
from placement.cli.options import settings_from

if TYPE_CHECKING:
    from placement.databases.system import DatabaseSystem, Request, Texts
    from placement.model.instance import Instance

__all__ = ["add_names", "request_from", "texts_from"]


def add_names(parser: argparse.ArgumentParser) -> None:
    """Add the names of places, the name of the database and the settings of the system."""
    group = parser.add_argument_group("names")
    group.add_argument(
        "--localities",
        metavar="FILE",
        help="table with the columns locality (name in the database), site (name in the instance) "
        "and what a system needs (nodes, host, zone, cloud); or a JSON object of names "
        "(default: the names are the same)",
    )
    group.add_argument(
        "--database",
        type=types.text,
        metavar="NAME",
        help="database, keyspace or cluster to read or write (default: the only one)",
    )
    group.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of the system (placement export --list)",
    )


def request_from(args: argparse.Namespace, system: DatabaseSystem, instance: Instance) -> Request:
    """Return the request of the options."""
    from placement.databases.localities import load_localities

    localities = load_localities(args.localities, instance.sites)
    return system.request(localities, args.database or "", settings_from(args))


def texts_from(paths: list[str]) -> Texts:
    """Return names and contents of files."""
    from placement.io.formats.document import read_text

    return [(path, read_text(path)) for path in paths]
