"""``placement show``: an instance or a plan; data sets, formats, methods and protocols."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from placement.cli import exit_codes as exits
from placement.cli import options as types
from placement.cli.dispatch import add_parts
from placement.cli.options import WORK_LIMIT, Subparsers, Switch, add_verb
from placement.cli.output import exit_code_of, show_result
from placement.cli.problem_options import instance_from
from placement.errors import UnsupportedError
from placement.text.plans import instance_text
from placement.text.text_tables import escape, facts, table, wrap

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from placement.methods.registry import Method
    from placement.model.instance import Instance
    from placement.model.protocols import Path as CommitPath
    from placement.model.protocols import ProtocolFamily


def add_parser(verbs: Subparsers) -> None:
    """Add the verb and its parts."""
    parts = add_parts(verbs, "show")
    parser = add_verb(parts, "instance", _run_instance)
    parser.ask("instance", "prices")
    clients = Switch("--clients", "N", "most clients to list (default 20)", types.whole(), 20)
    parser.add("", clients, WORK_LIMIT)
    parser.add_output()
    for part, (shows, name) in _LISTS.items():
        parser = add_verb(parts, part, shows)
        if name:
            parser.add_argument("name", nargs="?", metavar="NAME", help=name)
        if part == "protocols":
            said = f"number of voters for the numbers of answers (default {_VOTERS})"
            parser.add("", Switch("--voters", "N", said, types.whole(1), _VOTERS))
        parser.add_output()


def _run_instance(args: argparse.Namespace) -> int:
    """Show an instance (a data set or a path), or a plan from its file.

    A plan is checked again, with the exit code of its own verb.
    """
    if _is_plan(args.instance):
        from placement.io.plan_file import load_any_plan, plan_document, quorum_plan_document
        from placement.plan import Plan
        from placement.text.plans import quorum_plan_text

        plan = load_any_plan(args.instance, work=args.work)
        if isinstance(plan, Plan):
            show_result(args, lambda: plan_document(plan), lambda: str(plan))
        else:
            show_result(args, lambda: quorum_plan_document(plan), lambda: quorum_plan_text(plan))
        return exit_code_of([plan.status])
    instance, most = instance_from(args), max(0, args.clients)
    show_result(
        args, lambda: _instance_document(instance), lambda: instance_text(instance, most=most)
    )
    return exits.FOUND


def _is_plan(source: str) -> bool:
    path = Path(source)
    if path.suffix.lower() != ".json" or not path.is_file():
        return False
    from placement.io.formats.document import read_document
    from placement.io.plan_file import FORMAT

    return read_document(path).values.get("format") == FORMAT


def _instance_document(instance: Instance) -> dict[str, object]:
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


def _run_datasets(args: argparse.Namespace) -> int:
    """List the bundled data sets, and the operation mixes of their workloads."""
    from placement import datasets
    from placement.workloads.fleets import MIXES

    rows = [(name, datasets.describe(name)) for name in datasets.names()]
    document = {
        "datasets": [{"name": name, "description": words} for name, words in rows],
        "mixes": {name: list(shares) for name, shares in MIXES.items()},
    }
    return _show_list(
        args, document, rows, "data set", f"Operation mixes (--mix): {', '.join(MIXES)}"
    )


def _show_list(
    args: argparse.Namespace,
    document: Mapping[str, object],
    rows: Sequence[tuple[str, str]],
    head: str,
    note: str = "",
) -> int:
    """Print names with what they mean, and a note below them."""

    def text() -> str:
        below = f"\n\n{wrap(note, indent='  ')}" if note else ""
        return facts(rows, header=(head, "meaning")) + below

    show_result(args, lambda: document, text)
    return exits.FOUND


def _run_formats(args: argparse.Namespace) -> int:
    """List the formats of RTTs that import reads."""
    from placement.io.feeds.registry import FEEDS

    found = list(map(FEEDS.load, FEEDS.names()))
    told = [{"name": one.name, "title": one.title, "notes": one.notes} for one in found]
    rows = [(one.name, f"{one.title}: {one.notes}") for one in found]
    return _show_list(args, {"formats": told}, rows, "format")


def _run_methods(args: argparse.Namespace) -> int:
    """List the registered methods, or describe one with its settings."""
    from placement.methods.registry import available, load_method

    if args.name is not None:
        method = load_method(args.name)
        kind = "can prove optimality" if method.exact else "heuristic: no proof of its own"
        rows = [
            (method.name, f"{method.summary} ({kind})"),
            ("minimises", ", ".join(f"{objective} latency" for objective in method.objectives)),
        ]
        more = {"complexity": method.complexity, "reference": method.reference}
        rows += [(word, text) for word, text in more.items() if text]
        for name, setting in method.settings.items():
            extra = f", one of {', '.join(setting.choices)}" if setting.choices else ""
            if setting.minimum is not None:
                extra += f", >= {setting.minimum:g}"
            rows.append((f"--set {name}", f"{setting.meaning} (default {setting.default}{extra})"))
        return _show_list(args, _methods_document(method), rows, "what")
    found: list[Method] = []
    broken: dict[str, str] = {}
    for name in available():
        try:
            found.append(load_method(name))
        except UnsupportedError as error:  # a broken method must not hide the others
            broken[name] = str(error)
    show_result(
        args,
        lambda: {"methods": list(map(_methods_document, found)), "broken": broken},
        lambda: _methods_list(found, broken),
    )
    return exits.FOUND


def _methods_list(found: list[Method], broken: dict[str, str]) -> str:
    rows = [[one.name, "exact" if one.exact else "heuristic", one.summary] for one in found]
    lines = [f"{name} cannot be used: {escape(reason)}" for name, reason in broken.items()]
    listed = table(["method", "kind", "summary"], rows)
    return "\n".join([listed, *(wrap(line, indent="  ") for line in lines)])


def _methods_document(method: Method) -> dict[str, object]:
    return {
        "name": method.name,
        "summary": method.summary,
        "exact": method.exact,
        "objectives": list(method.objectives),
        "complexity": method.complexity,
        "reference": method.reference,
        "settings": {name: asdict(setting) for name, setting in method.settings.items()},
    }


_VOTERS = 5


def _run_protocols(args: argparse.Namespace) -> int:
    """List the commit protocols that --protocol takes, or describe one.

    A description has the waits of each kind of operation, the parameters, assumptions, the methods
    that prove plans, and the source.
    """
    from placement.model.protocols import Protocol, families

    if args.name is None:
        told = [{"name": one.name, "summary": one.summary} for one in families().values()]
        rows = [
            (one.name, one.summary + (f" ({', '.join(one.parameters)})" if one.parameters else ""))
            for one in families().values()
        ]
        return _show_list(args, {"protocols": told}, rows, "protocol", _ASK_PROTOCOLS)
    given: dict[str, float | str] = {}
    bare = args.name.strip() in families()
    if bare:  # a description needs no value for parameters that a user must give
        given = {
            key: "LEVEL" if one.kind == "level" else 2
            for key, one in families()[args.name.strip()].parameters.items()
            if one.required
        }
    protocol = Protocol(args.name, given)
    asked = protocol.family, str(protocol), protocol.paths(args.voters), args.voters
    return _show_list(args, _protocols_document(*asked), _protocols_description(*asked), "what")


_ASK_PROTOCOLS = (
    "Names in parentheses are parameters. placement show protocols NAME: its formulas, "
    "assumptions, methods and source. placement solve … --protocol NAME:PARAMETER=VALUE,… asks "
    "under it."
)


def _proven_by(paths: Mapping[str, CommitPath]) -> str:
    """Name the methods that prove plans under the paths of a protocol."""
    from placement.model.operations import Wait

    waits = [Wait(wait) for path in paths.values() for wait in path.waits]
    if any(wait.origin != "leader" for wait in waits):
        return "exact (by its enumeration of sets), exhaustive"
    return "exact, milp, cp-sat, exhaustive"


def _protocols_document(
    family: ProtocolFamily, asked: str, paths: Mapping[str, CommitPath], voters: int
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
        "paths": {
            kind: {
                "near": path.trips[0],
                "relay": path.trips[1],
                "direct": path.trips[2],
                "waits": list(path.waits),
                "constant": path.constant,
            }
            for kind, path in paths.items()
        },
    }


_ASSUMED = (
    "No contention but for the shares given.",
    "All members are asked at once, and servers take no time.",
    "The nearest replica by RTT is the one contacted.",
    "Numbers of answers count the one that waits when it is a member.",
)


def _protocols_description(
    family: ProtocolFamily, asked: str, paths: Mapping[str, CommitPath], voters: int
) -> list[tuple[str, str]]:
    rows = [(asked, family.summary), ("voters", str(voters)), ("source", family.source)]
    rows += [(kind, str(path)) for kind, path in paths.items()]
    for key, one in family.all_parameters.items():
        usual = one.default if isinstance(one.default, str) else f"{one.default or 0:g}"
        default = "must be given" if one.default is None else f"default {usual}"
        if one.default is None and not one.required:
            default = "no default"
        rows.append((f":{key}=", f"{one.meaning} ({default})"))
    rows.append(("proven by", _proven_by(paths)))
    rows.append(("assumed", " ".join((*_ASSUMED, *family.assumptions))))
    return rows


_LISTS = {
    "datasets": (_run_datasets, ""),
    "formats": (_run_formats, ""),
    "methods": (_run_methods, "a method"),
    "protocols": (_run_protocols, "a protocol, with its parameters"),
}
"""Part -> what runs it, and its argument; empty: none."""
