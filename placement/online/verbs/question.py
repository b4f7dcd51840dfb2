"""Options of the verbs ``online``, and the installed methods that they compare."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any

from placement.cli import argument_types as types
from placement.cli.options import add_instance
from placement.cli.table_output import add_table_output
from placement.errors import UnsupportedError
from placement.support.entry_points import entry_points

__all__ = ["GROUP", "add_question", "add_values", "installed"]

GROUP = "placement.online"
"""Entry points of the parts that the verbs compare: ``selection.bound``, ``reads.optimum``, …"""


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
    add_instance(parser, waits=False)
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
    group.add_argument(
        "--seed", type=types.seed, default=0, metavar="N", help="seed of random draws"
    )
    group.add_argument(
        "--progress",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="show the progress on stderr (default: if stderr is a terminal)",
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
