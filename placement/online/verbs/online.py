"""The verb ``online``, what its parts share: options, installed methods, replica sites of a plan.

The parts are the entry points ``online.PART``: ``selection``, ``reads``, ``dynamic``.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from placement.cli import argument_parser as types
from placement.cli.argument_parser import Subparsers
from placement.cli.dispatch import add_parts
from placement.cli.options import add_instance, instance_from, names
from placement.cli.table_output import add_table_output
from placement.errors import InputError, UnsupportedError
from placement.support.entry_points import entry_points

if TYPE_CHECKING:
    from placement.model.instance import Instance
    from placement.support.checks import FloatArray, IntArray

__all__ = [
    "GROUP",
    "ReplicaSites",
    "add_parser",
    "add_question",
    "add_values",
    "client_rtt",
    "installed",
    "replicas_of",
    "run",
    "site_rtt",
]

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


@dataclass(frozen=True)
class ReplicaSites:
    """Replica sites of the question.

    Attributes
    ----------
    instance
        The sites, RTTs and demand.
    sites
        Indices of the replica sites.
    leader
        Position of the leader in `sites`; None without a leader.
    """

    instance: Instance
    sites: IntArray
    leader: int | None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the replica sites."""
        return tuple(self.instance.sites[site] for site in self.sites)


def replicas_of(args: argparse.Namespace) -> ReplicaSites:
    """Load the instance, and the replicas from the plan or by name.

    Raises
    ------
    InputError
        For a plan of another instance, a plan without a configuration, both or neither of
        ``--plan`` and ``--replicas``, an unknown site, or a leader that holds no replica.
    """
    instance = instance_from(args)
    chosen: tuple[str, ...] = ()
    leader: str | None = getattr(args, "leader", None)
    if args.plan is not None and args.replicas:
        raise InputError(
            "the replicas are given twice", field="--replicas", value=args.replicas[0],
            expected="--plan or --replicas",
        )  # fmt: skip
    if args.plan is not None:
        from placement.io.plan_file import load_plan

        plan = load_plan(args.plan, instance)
        if plan.configuration is None:
            raise InputError(
                "a plan without a configuration",
                source=args.plan,
                field="status",
                value=str(plan.status),
                expected="a plan with replicas",
            )
        chosen = plan.replicas
        leader = plan.leader if leader is None else leader
    elif args.replicas:
        chosen = names(args.replicas, instance.sites)
    else:
        raise InputError("no replicas", field="--plan", expected="--plan FILE or --replicas SITES")
    sites = instance.site_indices(chosen, "--replicas")
    if leader is not None and leader not in chosen:
        raise InputError(
            "the leader holds no replica", field="--leader", value=leader,
            expected="one of " + ", ".join(map(repr, chosen)),
        )  # fmt: skip
    return ReplicaSites(instance, sites, None if leader is None else chosen.index(leader))


def client_rtt(instance: Instance) -> FloatArray:
    """Return the RTTs of clients to sites, the mean over intervals; shape (clients, sites)."""
    table = instance.client_rtt
    return table.mean(axis=0) if table.ndim == 3 else table


def site_rtt(instance: Instance, sites: IntArray) -> FloatArray:
    """Return the RTTs between some sites, the mean over intervals; shape (sites, sites)."""
    table = instance.site_rtt
    mean: FloatArray = table.mean(axis=0) if table.ndim == 3 else table
    return mean[sites][:, sites]


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
