"""``placement protocols``: what operations wait for under each commit protocol."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from placement.cli import argument_parser as types
from placement.cli import dispatch as exits
from placement.cli.argument_parser import Subparsers
from placement.cli.options import add_output
from placement.cli.page import print_page
from placement.cli.plan_output import print_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from placement.model.protocols import Path, ProtocolFamily

__all__ = ["add_parser", "run"]

_VOTERS = 5


def add_parser(verbs: Subparsers) -> None:
    """Add the verb."""
    parser = verbs.add_parser(
        "protocols",
        help="list the commit protocols, or describe one",
        description="List the commit protocols that --protocol takes, or describe one: the waits "
        "of each kind of operation, its parameters, assumptions, the methods that prove plans, and "
        "its source.",
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="a protocol, with its parameters")
    parser.add_argument(
        "--voters",
        type=types.whole(1, types.LARGEST_SIZE),
        default=_VOTERS,
        metavar="N",
        help=f"number of voters for the numbers of answers (default {_VOTERS})",
    )
    add_output(parser, plan=False)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the list or the description."""
    from placement.model.protocols import FAMILIES, Protocol

    if args.name is None:
        if args.json:
            rows = [{"name": one.name, "summary": one.summary} for one in FAMILIES.values()]
            print_json({"protocols": rows})
        else:
            print_page(_list(FAMILIES))
        return exits.FOUND
    given: dict[str, float | str] = {}
    bare = args.name.strip() in FAMILIES
    if bare:  # a description needs no value for parameters that a user must give
        given = {
            key: "LEVEL" if one.kind == "level" else 2
            for key, one in FAMILIES[args.name.strip()].parameters.items()
            if one.required
        }
    protocol = Protocol(args.name, given)
    paths = protocol.paths(args.voters)
    if args.json:
        print_json(_document(protocol.family, str(protocol), paths, args.voters))
    else:
        print_page(_description(protocol.family, str(protocol), paths, args.voters))
    return exits.FOUND


def _list(families: Mapping[str, ProtocolFamily]) -> str:
    from placement.text import escape, wrap

    width = max(map(len, families)) + 2
    lines = []
    for one in families.values():
        named = f" ({', '.join(one.parameters)})" if one.parameters else ""
        lines.append(wrap(f"{one.name:<{width}}{escape(one.summary)}{named}", indent=" " * width))
    return (
        "\n".join(lines)
        + "\n\n"
        + wrap(
            "Names in parentheses are parameters. placement protocols NAME: its formulas, "
            "assumptions, methods and source. "
            "placement solve … --protocol NAME:PARAMETER=VALUE,… asks under it."
        )
    )


def _proven_by(paths: Mapping[str, Path]) -> str:
    """Name the methods that prove plans under the paths of a protocol."""
    from placement.model.waits import Wait

    waits = [Wait(wait) for path in paths.values() for wait in path.waits]
    if any(wait.origin != "leader" for wait in waits):
        return "exact (by its enumeration of sets), exhaustive"
    return "exact, milp, cp-sat, exhaustive"


def _document(
    family: ProtocolFamily, asked: str, paths: Mapping[str, Path], voters: int
) -> dict[str, object]:
    return {
        "name": family.name,
        "protocol": asked,
        "voters": voters,
        "summary": family.summary,
        "source": family.source,
        "proven_by": _proven_by(paths),
        "assumptions": [*_ASSUMED, *family.assumptions],
        "parameters": {
            key: {"default": one.default, "meaning": one.meaning, "required": one.required}
            for key, one in family.all_parameters.items()
        },
        "paths": _paths_document(paths),
    }


def _paths_document(paths: Mapping[str, Path]) -> dict[str, object]:
    return {
        kind: {
            "near": path.trips[0],
            "relay": path.trips[1],
            "direct": path.trips[2],
            "waits": list(path.waits),
            "constant": path.constant,
        }
        for kind, path in paths.items()
    }


_ASSUMED = (
    "No contention but for the shares given.",
    "All members are asked at once, and servers take no time.",
    "The nearest replica by RTT is the one contacted.",
    "Numbers of answers count the one that waits when it is a member.",
)


def _description(family: ProtocolFamily, asked: str, paths: Mapping[str, Path], voters: int) -> str:
    from placement.text import escape, wrap

    facts = [(asked, family.summary), ("source", family.source)]
    facts += [(kind, str(path)) for kind, path in paths.items()]
    for key, one in family.all_parameters.items():
        usual = one.default if isinstance(one.default, str) else f"{one.default or 0:g}"
        default = "must be given" if one.default is None else f"default {usual}"
        if one.default is None and not one.required:
            default = "no default"
        facts.append((f":{key}=", f"{one.meaning} ({default})"))
    facts.append(("proven by", _proven_by(paths)))
    facts.append(("assumed", " ".join((*_ASSUMED, *family.assumptions))))
    width = max(len(word) for word, _ in facts) + 2
    lines = [wrap(f"{word:<{width}}{escape(text)}", indent=" " * width) for word, text in facts]
    return "\n".join([lines[0], f"{'voters':<{width}}{voters}", *lines[1:]])
