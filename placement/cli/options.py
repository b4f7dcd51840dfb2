"""Options that several verbs share, and the objects they become."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict

from placement.cli import argument_parser as types
from placement.cli.option_groups.diversity_options import (
    add_diversity,
    diversity_from,
    kept_diversity_from,
)
from placement.cli.option_groups.price_options import add_prices, apply_prices, has_prices
from placement.cli.option_groups.vote_options import add_votes, without_vote
from placement.errors import InputError
from placement.support.work import WORK

if TYPE_CHECKING:
    from placement.io.leader_plan_document import Reference
    from placement.model.instance import Instance
    from placement.problem import Problem

__all__ = [
    "DEFAULT_METHOD",
    "add_constraints",
    "add_file",
    "add_gone",
    "add_instance",
    "add_json",
    "add_limits",
    "add_method",
    "add_output",
    "add_progress",
    "add_sites",
    "add_work",
    "count_or_names",
    "instance_from",
    "limits_from",
    "names",
    "problem_from",
    "reference_from",
    "settings_from",
]

DEFAULT_METHOD = "exact"

_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")
_MOST = types.LARGEST_SIZE
_RANGE = re.compile(r"(\d+)\s*\.\.\s*(\d+)")


# --- adding them -----------------------------------------------------------------------------


def add_instance(
    parser: argparse.ArgumentParser, *, option: bool = False, waits: bool = True
) -> None:
    """Add the instance: a data set or a path.

    Parameters
    ----------
    parser
        Of the verb.
    option
        Whether it is an option ``--instance`` that must be given, instead of the first argument.
    waits
        Whether ``--wait`` is offered: for verbs that compute waits.
    """
    group = parser.add_argument_group("instance")
    meaning = "a bundled data set (placement datasets), or a path"
    if option:
        group.add_argument("--instance", required=True, metavar="INSTANCE", help=meaning)
    else:
        group.add_argument("instance", metavar="INSTANCE", help=meaning)
    group.add_argument("--mix", help="operation mix of a data set's workload")
    group.add_argument(
        "--workload-seed",
        type=types.seed,
        default=0,
        metavar="N",
        help="seed of a data set's workload (default 0)",
    )
    group.add_argument(
        "--scale-demand",
        action="append",
        default=[],
        metavar="CLIENT=F",
        help="multiply the demand of a client by F; may be repeated",
    )
    add_sites(group, "--without", "sites to leave out; the clients there stay")
    parser.set_defaults(wait=[])
    if waits:
        group.add_argument(
            "--wait",
            action="append",
            metavar="OPERATION=WAIT",
            help="wait of an operation in place of its votes, for example 'single_group=leader: "
            "quorum of voters + 1 of voters outside region'; may be repeated (placement protocols)",
        )


def add_constraints(parser: argparse.ArgumentParser, *, configuration: bool = False) -> None:
    """Add the options for the constraints of a plan.

    Parameters
    ----------
    parser
        Of the verb.
    configuration
        Whether leader, voters and replicas are a configuration to score (``evaluate``) instead of
        constraints.
    """
    parser.epilog = (
        "Sites are given by name; lists are separated by commas, and an option may be repeated. A "
        "name that contains a comma is taken whole when it stands alone in its option."
    )
    if configuration:
        group = parser.add_argument_group("configuration")
        group.add_argument("--leader", required=True, metavar="SITE", help="the leader")
        add_sites(group, "--voters", "all voters", required=True)
        add_sites(group, "--replicas", "all replicas", required=True)
        group = parser.add_argument_group("constraints to check")
    else:
        group = parser.add_argument_group("question")
        add_sites(
            group,
            "--replicas",
            "number, range or list of sites",
            metavar="N|LO..HI|SITES",
            required=True,
        )
        add_sites(
            group,
            "--voters",
            "number or list of sites (default: every replica votes)",
            metavar="N|SITES",
        )
        group = parser.add_argument_group("constraints")
        group.add_argument("--leader", metavar="SITE", help="the site that must lead")
    add_votes(group)
    add_sites(
        group,
        "--witnesses",
        "voters that hold no replica: number or list of sites (default: 0)",
        metavar="W|SITES",
    )
    for option, text in (
        ("--leaders", "candidate leaders"),
        ("--pin", "sites that must hold a replica"),
        ("--pin-voter", "sites that must vote"),
        ("--forbid", "sites that may not hold a replica"),
        ("--no-vote", "sites that may hold a replica but not vote"),
    ):
        add_sites(group, option, text)
    group.add_argument(
        "--survive",
        metavar="LEVEL",
        help="keep a quorum after the loss of any one domain of LEVEL, for example country",
    )
    add_diversity(group)
    group.add_argument(
        "--keep-diversity",
        metavar="PLAN",
        help="keep the diversity of the present plan: at every level at most as many voters "
        "per domain, and replicas in at least as many domains",
    )
    group.add_argument(
        "--protocol",
        metavar="NAME[:PARAMETER=VALUE,…]",
        help="commit protocol, for example epaxos:slow=0.05 (placement protocols lists them)",
    )
    group.add_argument(
        "--decay",
        type=types.number(1, infinite=True),
        default=1.0,
        metavar="T",
        help="decay of older intervals, T >= 1",
    )
    group.add_argument(
        "--budget", type=types.number(), metavar="X", help="largest cost of the replicas"
    )
    group.add_argument(
        "--cost-weight",
        type=types.number(),
        default=0.0,
        metavar="W",
        help="weight of the cost in the objective, in ms·operations per unit of money (default 0)",
    )
    add_prices(parser)


def add_sites(
    group: argparse._ActionsContainer,
    option: str,
    meaning: str,
    *,
    metavar: str = "SITES",
    required: bool = False,
) -> None:
    """Add an option whose value is a list of sites, and which may be repeated."""
    group.add_argument(
        option,
        action="append",
        type=types.names,
        metavar=metavar,
        help=meaning,
        required=required,
    )


def add_method(parser: argparse.ArgumentParser) -> None:
    """Add the method and its limits."""
    group = parser.add_argument_group("method")
    group.add_argument(
        "--method",
        default=DEFAULT_METHOD,
        metavar="NAME",
        help=f"method to use (default {DEFAULT_METHOD}); placement methods lists all",
    )
    add_limits(group)
    group.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="setting of the method (placement methods NAME lists them)",
    )


def add_limits(group: argparse._ArgumentGroup, *, each: tuple[str, float] | None = None) -> None:
    """Add limits, seed and threads, and whether to show progress.

    Parameters
    ----------
    group
        Where to.
    each
        What has the time limit for itself, in words, and its default.
    """
    group.add_argument(
        "--time-limit",
        type=types.seconds,
        default=None if each is None else each[1],
        metavar="S",
        help="time limit in seconds (default: no limit)"
        if each is None
        else f"most seconds of {each[0]} (default {each[1]:g})",
    )
    group.add_argument(
        "--gap",
        type=types.fraction,
        default=0.0,
        metavar="G",
        help="stop when the relative gap is at most G (default 0: prove the optimum)",
    )
    group.add_argument(
        "--seed",
        type=types.seed,
        default=0,
        metavar="N",
        help="seed of the method's random choices (default 0)",
    )
    group.add_argument(
        "--threads", type=types.threads, default=1, metavar="N", help="threads (default 1)"
    )
    add_progress(group)


class _Gone(argparse.Action):
    """Refuses an option that is gone; `const` says what took its place."""

    def __call__(self, *given: object) -> None:
        raise InputError(
            "this option is gone", field=self.option_strings[0], expected=str(self.const)
        )


def add_gone(parser: argparse.ArgumentParser, instead: Mapping[str, str]) -> None:
    """Refuse options that are gone with the name of what took their place."""
    for option, place in instead.items():
        parser.add_argument(option, action=_Gone, nargs="?", const=place, help=argparse.SUPPRESS)


def add_work(parser: argparse.ArgumentParser) -> None:
    """Add the limit of the work that a file may ask for."""
    parser.add_argument(
        "--work",
        type=types.whole(1, 10**15),
        default=WORK,
        metavar="STEPS",
        help="most steps for what the file asks for (default 1,000,000,000, two to four minutes); "
        "a plan or certificate that needs more ends with exit code 1",
    )


def add_progress(parser: argparse._ActionsContainer) -> None:
    """Add ``--progress``."""
    parser.add_argument(
        "--progress",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="show the progress on stderr (default: if stderr is a terminal)",
    )


def add_json(parser: argparse._ActionsContainer) -> None:
    """Add ``--json``."""
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def add_file(parser: argparse._ActionsContainer, meaning: str) -> None:
    """Add ``--output`` and ``--force``."""
    parser.add_argument("-o", "--output", metavar="FILE", help=meaning)
    parser.add_argument("--force", action="store_true", help="replace existing files")


def add_output(parser: argparse.ArgumentParser, *, plan: bool) -> None:
    """Add ``--json`` and, for verbs that make a plan, where to write it."""
    group = parser.add_argument_group("output")
    add_json(group)
    if plan:
        add_file(group, "write the plan as JSON")
        group.add_argument(
            "--embed",
            action="store_true",
            help="store the instance in the plan file, in place of a reference to it",
        )


# --- reading them ----------------------------------------------------------------------------


def instance_from(args: argparse.Namespace) -> Instance:
    """Load the instance of :func:`add_instance` with the changes of its options."""
    from placement.api import load

    source: str = args.instance
    instance = load(source, mix=args.mix, seed=args.workload_seed)
    if not _changed(args):
        return instance
    from placement.model.changed_instance import scale_demand, with_waits, without_sites

    if args.wait:
        instance = with_waits(instance, _waits(args.wait))
    factors = types.read_named_numbers(args.scale_demand, "--scale-demand", "CLIENT=F")
    gone = names(args.without, instance.sites)
    try:
        if factors:
            instance = scale_demand(instance, factors)
        if gone:
            instance = without_sites(instance, gone)
    except InputError as error:
        raise error.at("--without" if error.field == "sites" else "--scale-demand") from None
    return apply_prices(instance, args) if has_prices(args) else instance


def _changed(args: argparse.Namespace) -> bool:
    return bool(args.scale_demand or args.without or args.wait or has_prices(args))


def _waits(given: Sequence[str]) -> dict[str, list[str]]:
    """Read ``--wait``: the waits of each operation."""
    found: dict[str, list[str]] = {}
    for text in given:
        name, equals, wait = text.partition("=")
        if not equals or not name.strip():
            raise InputError("not a wait", field="--wait", value=text, expected="OPERATION=WAIT")
        found.setdefault(name.strip(), []).append(wait.strip())
    return found


def reference_from(args: argparse.Namespace) -> Reference | None:
    """Return where the instance came from; None for one that the options changed."""
    from placement.io.leader_plan_document import Reference

    if _changed(args):
        return None
    return Reference(args.instance, args.mix, args.workload_seed)


def names(values: Iterable[str] | None, known: Sequence[str]) -> tuple[str, ...]:
    """Split lists of names at commas, except a value that is itself a name.

    Examples
    --------
    >>> names(["Paris, Rome", "Washington, DC"], ["Paris", "Rome", "Washington, DC"])
    ('Paris', 'Rome', 'Washington, DC')
    """
    found: list[str] = []
    for value in values or ():
        if value in known:
            found.append(value)
        else:
            found.extend(part.strip() for part in value.split(",") if part.strip())
    return tuple(found)


def count_or_names(
    values: Sequence[str], known: Sequence[str], option: str = ""
) -> int | tuple[int, int] | tuple[str, ...]:
    """Read ``5``, ``3..7`` or a list of names; one number with a comma is a list.

    Examples
    --------
    >>> count_or_names(["5"], []), count_or_names(["3..7"], []), count_or_names(["a,b"], [])
    (5, (3, 7), ('a', 'b'))
    """
    if len(values) == 1:
        text = values[0].strip()
        if _NUMBER.fullmatch(text):
            # a fraction goes on as it is: the problem then says what it expects
            if "." in text:
                return types.read_number(text, option, -_MOST, _MOST)  # type: ignore[return-value]  # refused there
            return types.read_whole(text, option, -_MOST, _MOST)
        span = _RANGE.fullmatch(text)
        if span:
            low, high = (types.read_whole(end, option, 0, _MOST) for end in span.groups())
            return low, high
    return names(values, known)


def problem_from(
    args: argparse.Namespace, instance: Instance, *, configuration: bool = False
) -> Problem:
    """Build the question from the options of :func:`add_constraints`.

    Parameters
    ----------
    args
        Parsed.
    instance
        Sites, clients, RTTs and demand.
    configuration
        Whether leader, voters and replicas are a configuration to hold against the question: then
        only their numbers are part of it.
    """
    from placement.problem import ALL_REPLICAS, Problem

    known = instance.sites
    replicas: int | tuple[int, int] | tuple[str, ...]
    voters: int | str | tuple[int, int] | tuple[str, ...]
    if configuration:
        replicas, voters = len(names(args.replicas, known)), len(names(args.voters, known))
    else:
        replicas = count_or_names(args.replicas, known, "--replicas")
        given = args.voters
        voters = count_or_names(given, known, "--voters") if given else ALL_REPLICAS
    if isinstance(voters, tuple) and not all(isinstance(voter, str) for voter in voters):
        raise InputError(
            "a range is not supported here",
            field="--voters",
            value=args.voters[0],
            expected="a number, or sites by name",
        )
    witnesses = 0 if not args.witnesses else count_or_names(args.witnesses, known, "--witnesses")
    if isinstance(witnesses, tuple) and not all(isinstance(name, str) for name in witnesses):
        raise InputError(
            "a range is not supported here",
            field="--witnesses",
            value=args.witnesses[0],
            expected="a number, or sites by name",
        )
    return Problem(
        instance,
        replicas=replicas,
        voters=voters,  # type: ignore[arg-type]  # no range, checked above
        leader=None if configuration else args.leader,
        quorum=args.quorum,
        witnesses=witnesses,  # type: ignore[arg-type]  # no range, checked above
        leaders=names(args.leaders, known) if args.leaders else None,
        pinned=names(args.pin, known),
        pinned_voters=names(args.pin_voter, known),
        forbidden=names(args.forbid, known),
        non_voters=(*names(args.no_vote, known), *without_vote(args)),
        diversity=(*diversity_from(args), *kept_diversity_from(args, instance)),
        survive=args.survive,
        decay=args.decay,
        budget=args.budget,
        cost_weight=args.cost_weight,
        protocol=args.protocol,
    )


class Limits(TypedDict):
    """Limits of a method, as keyword arguments of :func:`placement.solve`."""

    time_limit: float | None
    gap_limit: float
    seed: int
    threads: int


def limits_from(args: argparse.Namespace) -> Limits:
    """Read the limits, the seed and the threads of :func:`add_limits`."""
    return Limits(
        time_limit=args.time_limit, gap_limit=args.gap, seed=args.seed, threads=args.threads
    )


def settings_from(args: argparse.Namespace) -> dict[str, object]:
    """Read ``--set``; the method checks and converts the values."""
    settings: dict[str, object] = {}
    for text in args.set:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise InputError("not a setting", field="--set", value=text, expected="NAME=VALUE")
        if name.strip() in settings:
            raise InputError("set twice", field="--set", value=name.strip(), expected="once")
        settings[name.strip()] = value
    return settings
