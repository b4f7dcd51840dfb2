"""``placement methods``: who can solve what."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from placement.cli import dispatch as exits
from placement.cli.argument_parser import Subparsers
from placement.cli.options import add_output
from placement.cli.page import print_page
from placement.cli.plan_output import print_json
from placement.errors import UnsupportedError

if TYPE_CHECKING:
    from placement.methods.registry import Method

__all__ = ["add_parser", "run"]


def add_parser(verbs: Subparsers) -> None:
    """Add the verb."""
    parser = verbs.add_parser(
        "methods",
        help="list the methods, or describe one",
        description="List the registered methods, or describe one with its settings.",
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="a method")
    add_output(parser, plan=False)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the list or the description."""
    from placement.methods.registry import available, load_method

    if args.name is not None:
        method = load_method(args.name)
        if args.json:
            print_json(_document(method))
        else:
            print_page(_description(method))
        return exits.FOUND
    found: list[Method] = []
    broken: dict[str, str] = {}
    for name in available():
        try:
            found.append(load_method(name))
        except UnsupportedError as error:  # a broken method must not hide the others
            broken[name] = str(error)
    if args.json:
        print_json({"methods": [_document(method) for method in found], "broken": broken})
    else:
        print_page(_list(found, broken))
    return exits.FOUND


def _list(found: list[Method], broken: dict[str, str]) -> str:
    from placement.text import escape, table, wrap

    rows = [
        [method.name, "exact" if method.exact else "heuristic", method.summary] for method in found
    ]
    lines = [table(["method", "kind", "summary"], rows)]
    lines.extend(
        wrap(f"{name} cannot be used: {escape(reason)}", indent="  ")
        for name, reason in broken.items()
    )
    return "\n".join(lines)


def _document(method: Method) -> dict[str, object]:
    return {
        "name": method.name,
        "summary": method.summary,
        "exact": method.exact,
        "objectives": list(method.objectives),
        "complexity": method.complexity,
        "reference": method.reference,
        "settings": {
            name: {
                "default": setting.default,
                "meaning": setting.meaning,
                "choices": list(setting.choices),
                "minimum": setting.minimum,
            }
            for name, setting in method.settings.items()
        },
    }


def _description(method: Method) -> str:
    from placement.text import escape, wrap

    kind = "can prove optimality" if method.exact else "heuristic: no proof of its own"
    facts = [
        (method.name, f"{method.summary} ({kind})"),
        ("minimises", ", ".join(f"{objective} latency" for objective in method.objectives)),
    ]
    facts.extend(
        (word, text)
        for word, text in (("complexity", method.complexity), ("reference", method.reference))
        if text
    )
    for name, setting in method.settings.items():
        extra = f", one of {', '.join(setting.choices)}" if setting.choices else ""
        if setting.minimum is not None:
            extra += f", >= {setting.minimum:g}"
        facts.append((f"--set {name}", f"{setting.meaning} (default {setting.default}{extra})"))
    width = max(len(word) for word, _ in facts) + 2
    return "\n".join(
        wrap(f"{word:<{width}}{escape(text)}", indent=" " * width) for word, text in facts
    )
