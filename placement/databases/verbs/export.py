"""``placement db export``: a plan as the statements or the documents of a database."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from placement.cli import argument_parser as types
from placement.cli import exit_codes as exits
from placement.cli.argument_parser import Subparsers
from placement.cli.options import Switch, add_file, add_json, add_options, settings_from
from placement.cli.output import check_target, print_json, print_notes
from placement.errors import InputError

if TYPE_CHECKING:
    from placement.databases.system import DatabaseSystem
    from placement.plan import Plan
    from placement.quorumstore import QuorumPlan


def add_names(parser: argparse.ArgumentParser) -> None:
    """Add the names of places, the name of the database and the settings of the system."""
    group = parser.add_argument_group("names")
    add_options(group,
        Switch("--localities", "FILE", "table with the columns locality (name in the "
            "database), site (name in the instance) and what a system needs (nodes, host, "
            "zone, cloud); or a JSON object of names (default: the names are the same)"),
        Switch("--database", "NAME", "database, keyspace or cluster to read or write (default: "
            "the only one)", types.text),
        Switch("--set", "NAME=VALUE", "a setting of the system (placement db export --list)",
            several=True, default=()),
    )  # fmt: skip


def add_parser(verbs: Subparsers) -> None:
    """Add the verb."""
    parser = verbs.add_parser(
        "export",
        help="write a plan as statements or documents of a database",
        description="Write a plan, or a deployment that was read, as the statements, commands or "
        "documents of a database. A placement that the database cannot express is refused, with "
        "the reason. The text was checked as --list says; try it on a test cluster first.",
    )
    parser.add_argument(
        "system", nargs="?", metavar="SYSTEM", help="system (--list shows the names)"
    )
    parser.add_argument(
        "plan", nargs="?", metavar="PLAN", help="a plan file, or a file that db read wrote"
    )
    add_options(parser,
        Switch("--list", "", "show what each system can express, and how the output was "
            "validated"),
    )  # fmt: skip
    parser.add_argument(
        "--from", dest="present", metavar="FILE",
        help="the deployment or plan that runs now: the text then has the steps from it",
    )  # fmt: skip
    add_options(parser,
        Switch("--instance", "INSTANCE", "for a deployment: the instance of its sites (a plan "
            "contains its instance)"),
    )  # fmt: skip
    add_names(parser)
    group = parser.add_argument_group("output")
    add_json(group, tables=False)
    add_file(group, "write the text to a file")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the text, or list the systems."""
    if args.list:
        return _list(args)
    for field in ("system", "plan"):
        if getattr(args, field) is None:
            raise InputError("missing", field=field.upper(), expected="SYSTEM PLAN, or --list")
    from placement.databases.deployment import check_sites, load_deployment
    from placement.databases.localities import load_localities, localities_template
    from placement.databases.system import load_system, write_deployment
    from placement.io.formats.document import encode_text
    from placement.io.formats.files import write_file

    check_target(args)
    system = load_system(args.system)
    deployment, plan = load_deployment(args.plan)
    sites = _sites(args, plan)
    check_sites(deployment, sites, args.plan)
    present = None
    if args.present is not None:
        present, _ = load_deployment(args.present)
        check_sites(present, sites, args.present)
    if args.localities is not None and not Path(args.localities).exists():
        write_file(args.localities, encode_text(localities_template(deployment.sites)))
        words = "there was no such table: a template was written"
        expected = "the names that the database has for these sites; then run the command again"
        raise InputError(words, source=args.localities, expected=expected)
    localities = load_localities(args.localities, sites)
    name = args.database or deployment.name or (present.name if present is not None else "")
    request = system.request(localities, name, settings_from(args))
    script = write_deployment(system, deployment, request, present)
    called = [row for row in localities.rows if localities.derived and row.site in deployment.sites]
    notes = script.notes
    if called:
        words = ", ".join(f"{row.site} is {row.name}" for row in called)
        note = f"regions are called as the programs of their provider call them ({words})"
        notes = (*notes, f"{note}; other names: --localities FILE")
    if args.output is not None:
        write_file(args.output, encode_text(script.text), force=args.force)
    if args.json:
        print_json(
            {"system": system.name, "text": script.text, "notes": list(notes),
             "validated": system.validated}
        )  # fmt: skip
        return exits.FOUND
    if args.output is None:
        sys.stdout.write(script.text)
    else:
        print(f"Written to {args.output}")
    print_notes(system.title, notes)
    return exits.FOUND


def _sites(args: argparse.Namespace, plan: Plan | QuorumPlan | None) -> tuple[str, ...]:
    """Return the sites that a deployment may name."""
    from placement.api import load
    from placement.plan import Plan

    if args.instance is not None:
        return load(args.instance).sites
    if plan is None:
        words = "a deployment does not hold its instance"
        raise InputError(words, field="--instance", expected="the instance whose sites it names")
    return plan.problem.instance.sites if isinstance(plan, Plan) else plan.problem.sites


def _list(args: argparse.Namespace) -> int:
    from placement.databases.system import available, load_system

    systems = [load_system(name) for name in available()]
    if args.json:
        print_json([_document(system) for system in systems])
        return exits.FOUND
    from placement.text import page_width, wrap

    blocks = []
    for system in systems:
        rows = [
            ("reads", system.inputs),
            ("says", system.says),
            ("cannot say", system.cannot),
            ("validated by", system.validated),
        ]
        for name, one in system.settings.items():
            rows.append((f"--set {name}=", f"{one.meaning} (default {one.default!r})"))
        lines = (wrap(f"{what}: {words}", page_width() - 2, indent="    ") for what, words in rows)
        blocks.append("\n  ".join([f"{system.name} ({system.title})", *lines]))
    print("\n\n".join(blocks))
    return exits.FOUND


def _document(system: DatabaseSystem) -> dict[str, object]:
    settings = {
        name: {"default": one.default, "meaning": one.meaning}
        for name, one in system.settings.items()
    }
    return {
        "name": system.name,
        "title": system.title,
        "reads": system.inputs,
        "says": system.says,
        "cannot": system.cannot,
        "validated": system.validated,
        "settings": settings,
    }
