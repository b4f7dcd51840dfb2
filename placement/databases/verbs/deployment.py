"""``placement db``: read, lint, evaluate and compare what a database runs."""

from __future__ import annotations

import argparse
import dataclasses
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from placement.cli import exit_codes as exits
from placement.cli import options as types
from placement.cli.dispatch import add_parts
from placement.cli.options import Parser, Subparsers, Switch, add_verb, settings_from
from placement.cli.output import check_target, print_json, print_notes, show_result
from placement.cli.problem_options import diversity_from, instance_from, names
from placement.errors import InputError, UnsupportedError, require
from placement.io.formats.document import encode_json, encode_text
from placement.io.formats.files import read_text, write_file
from placement.question import KEYS
from placement.text.plans import failures_table, values_text
from placement.text.text_tables import escape, facts, laid_out, page_width, table, wrap

if TYPE_CHECKING:
    from collections.abc import Sequence

    from placement.databases.deployment import Deployment
    from placement.databases.deployment_value import DeploymentValue
    from placement.databases.findings import Finding
    from placement.databases.servers import ServerMove
    from placement.databases.system import Reading
    from placement.plan import Plan
    from placement.quorumstore import QuorumPlan


def add_parser(verbs: Subparsers) -> None:
    """Add the verb and its parts."""
    parts = add_parts(verbs, "db")
    read = add_verb(parts, "read", _read)
    lint = add_verb(parts, "lint", _lint)
    for part in (read, lint):
        part.add_argument(
            "system", metavar="SYSTEM", help="system (placement db export --list shows the names)"
        )
        part.add_argument("files", nargs="+", metavar="FILE", help="output of the database")
        part.ask("instance", option=True)
        _add_names(part)
    read.add_output("write the deployment as JSON")
    goal = "keep a quorum after the loss of any one domain of LEVEL"
    lint.add("", Switch("--survive", "LEVEL", f"goal: {goal}, for example country"))
    lint.add_output()
    evaluate = add_verb(parts, "evaluate", _evaluate)
    evaluate.add("", Switch("deployment", "FILE", "a file that db read wrote, or a plan file"))
    evaluate.ask("instance", option=True)
    tables = [key.name for key in KEYS.values() if key.kind == "table"]  # as rules on domains are
    evaluate.ask("constraints", only=(*tables, "survive", "forbid", "no_vote"), title="rules")
    losses = Switch("--losses", "LEVEL", "domains that are lost (default site)", default="site")
    evaluate.add("rules", losses)
    evaluate.ask("method", only=("time_limit",))
    evaluate.add_output()
    diff = add_verb(parts, "diff", _diff)
    diff.add_argument("before", metavar="BEFORE", help="a deployment or a plan")
    diff.add_argument("after", metavar="AFTER", help="a deployment or a plan")
    diff.add_output()
    export = add_verb(parts, "export", _export)
    export.add("",
        Switch("system", "SYSTEM", "system (--list shows the names)", nargs="?"),
        Switch("plan", "PLAN", "a plan file, or a file that db read wrote", nargs="?"),
        Switch("--list", "", "show what each system can express, and how the output was "
            "validated"),
        Switch("--from", "FILE", "the deployment or plan that runs now: the text then has the "
            "steps from it"),
        Switch("--instance", "INSTANCE", "for a deployment: the instance of its sites (a plan "
            "contains its instance)"),
    )  # fmt: skip
    _add_names(export)
    export.add_output("write the text to a file", tables=False)


# --- read and lint ---------------------------------------------------------------------------


def _read(args: argparse.Namespace) -> int:
    """Read a configuration into a deployment file, which the other parts take.

    Exit code 2: the configuration is broken (see lint).
    """
    from placement.databases.deployment import deployment_document
    from placement.databases.findings import broken

    check_target(args)
    reading, _ = _reading(args)
    document = deployment_document(reading.deployment)
    if args.output is not None:
        write_file(args.output, encode_json(document), force=args.force)
    said = f"\n\nWritten to {args.output}" if args.output is not None else ""
    show_result(
        args,
        lambda: {**document, "findings": list(map(dataclasses.asdict, reading.findings))},
        lambda: _deployment_text(reading.deployment, reading.findings) + said,
    )
    return exits.INFEASIBLE if broken(reading.findings) else exits.FOUND


def _reading(args: argparse.Namespace) -> tuple[Reading, tuple[Finding, ...]]:
    """Return the deployment, and the findings of all rules."""
    from placement.databases.findings import lint_deployment
    from placement.databases.localities import load_localities
    from placement.databases.system import load_system, read_deployment

    instance = instance_from(args)
    system = load_system(args.system)
    localities = load_localities(args.localities, instance.sites)
    request = system.request(localities, args.database or "", settings_from(args))
    reading = read_deployment(system, [(path, read_text(path)) for path in args.files], request)
    if args.part != "lint":
        return reading, reading.findings
    found = lint_deployment(reading.deployment, instance, request.localities, survive=args.survive)
    return reading, (*reading.findings, *found)


def _lint(args: argparse.Namespace) -> int:
    """Find errors and weaknesses of a configuration.

    They are constraints that cannot be met, preferences that are never met, losses that stop
    writes, and more. Exit code 2: something is broken; 3: whether --survive is met is not known,
    because the database chooses the place of some replicas.
    """
    from placement.databases.deployment import deployment_document
    from placement.databases.findings import GOAL_OPEN, broken

    reading, findings = _reading(args)
    bad = broken(findings)
    show_result(
        args,
        lambda: {
            "broken": bad,
            "findings": list(map(dataclasses.asdict, findings)),
            "deployment": deployment_document(reading.deployment),
        },
        lambda: _deployment_text(reading.deployment, findings, "Nothing found."),
    )
    if bad:
        return exits.INFEASIBLE
    unknown = any(finding.rule == GOAL_OPEN for finding in findings)
    return exits.NOTHING if unknown else exits.FOUND


def _findings_text(findings: Sequence[Finding]) -> str:
    order = {"error": 0, "warning": 1, "note": 2}
    lines = []
    findings = sorted(findings, key=lambda one: order[one.severity])
    for finding in findings:
        lines.append(f"{finding.severity}: {finding.rule}")
        for words in (finding.evidence, f"Remedy: {finding.remedy}"):
            lines.append("  " + wrap(escape(words), page_width() - 2, indent="  "))
    rows = [[one.severity, one.rule, one.evidence, one.remedy] for one in findings]
    return laid_out(["severity", "rule", "evidence", "remedy"], rows, "\n".join(lines))


def _deployment_text(deployment: Deployment, findings: Sequence[Finding], nothing: str = "") -> str:
    rows = [[escape(one.site), str(one.voters), str(one.non_voters)] for one in deployment.held]
    # replicas whose place or role is open
    either = deployment.free_voters - deployment.open_of("voter")
    others = deployment.free_non_voters - deployment.open_of("non-voter")
    left = either + others
    for pool in deployment.open:
        left -= pool.replicas if pool.role == "either" else 0
        counts = {
            "voter": (str(pool.replicas), "0"),
            "non-voter": ("0", str(pool.replicas)),
            "either": (f"0-{min(either, pool.replicas)}", f"0-{min(others, pool.replicas)}"),
        }
        rows.append([escape(pool.place) or "(no place)", *counts[pool.role]])
    if left and deployment.open_of("either"):
        rows.append(["(no place)", f"0-{min(either, left)}", f"0-{min(others, left)}"])
    elif left:
        rows.append(["(no place)", str(either), str(others)])
    title = f"{deployment.system} {deployment.name}".strip()
    lines = [
        f"{escape(title)}: {deployment.replicas} replicas, {deployment.voters} voters",
        table(["Site", "Voters", "Non-voters"], rows),
    ]
    if deployment.read is None:
        lines.append(f"Leaders, in this order: {escape(deployment.order)}")
        lines.append(f"Commit: {deployment.quorum} of {deployment.voters} votes")
        lines += [
            f"At {escape(one.site)}: {count} {role}"
            for one in deployment.held
            for role, count in one.special
        ]
        if deployment.least is not None:
            lines.append(
                f"After losses a commit waits for fewer votes, at least {deployment.least}"
            )
    else:
        lines.append(
            f"No leader; a read waits for {deployment.read} of {deployment.voters} replicas, "
            f"a write for {deployment.quorum}"
        )
    if found := _findings_text(findings) if findings else nothing:
        lines += ["", found]
    return "\n".join(lines)


# --- evaluate --------------------------------------------------------------------------------


def _evaluate(args: argparse.Namespace) -> int:
    """Show latency, losses and cost of a deployment, and the gap to the proven best.

    The best one has as many replicas and voters, at most as many of them at one site as now, and
    obeys the rules below. Exit code 2: the deployment breaks a rule.
    """
    from placement.databases.deployment import check_sites, load_deployment
    from placement.databases.deployment_value import evaluate_deployment

    instance = instance_from(args)
    deployment, _ = load_deployment(args.deployment)
    check_sites(deployment, instance.sites, args.deployment)
    value = evaluate_deployment(
        deployment,
        instance,
        survive=args.survive,
        diversity=diversity_from(args, instance),
        forbidden=names(args.forbid, instance.sites),
        non_voters=names(args.no_vote, instance.sites),
        level=args.losses,
        time_limit=args.time_limit,
    )
    show_result(args, lambda: _value_document(value), lambda: _value_text(value))
    return exits.INFEASIBLE if value.reasons else exits.FOUND


def _value_document(value: DeploymentValue) -> dict[str, object]:
    from placement.io.plan_file import failures_document

    def side(plan: Plan) -> dict[str, object]:
        return {
            "status": plan.status.value,
            "leader": plan.leader,
            "voters": list(plan.voters),
            "replicas": list(plan.replicas),
            "mean_latency_ms": plan.mean_latency if plan.found else None,
            "cost": plan.cost if plan.found and plan.problem.instance.prices else None,
            "reasons": list(plan.reasons),
        }

    best = value.best
    rate = best.problem.demand.operations
    return {
        "deployment": {**side(value.plan), "reasons": list(value.reasons)},
        "leaders": [{"leader": name, "mean_latency_ms": ms} for name, ms in value.leaders],
        "best": {
            **side(best),
            "bound_ms": best.bound / rate if math.isfinite(best.bound) else None,
        },
        "above_best": value.excess if math.isfinite(value.excess) else None,
        "moves": [{"change": words, "mean_latency_ms": ms} for words, ms in value.moves],
        "losses": failures_document(value.losses),
        "most_replicas_at_one_site": value.copies,
        "open": list(value.open),
    }


def _value_text(value: DeploymentValue) -> str:
    from placement.problem import describe

    plan, best = value.plan, value.best
    rows = [
        ("Rules", describe(best.problem)),
        ("Leader", str(plan.leader)),
        ("Mean latency", "at most " * value.is_limit + f"{plan.mean_latency:.2f} ms"),
    ]
    if len(value.leaders) > 1:
        rows[1] = ("Leader", f"{plan.leader}, the worst of those that may lead")
        others = ", ".join(f"{name} ({ms:.2f} ms)" for name, ms in value.leaders[1:])
        rows.append(("Or led by", others))
    if plan.problem.instance.prices is not None:
        rows.append(("Cost", f"{plan.cost:,.2f} {plan.problem.instance.prices.currency}"))
    if best.found:
        known = "proven optimal" if best.status.value == "optimal" else f"gap {best.gap:.2%}"
        rows.append(("Best", f"{best.mean_latency:.2f} ms ({known}), led by {best.leader}"))
        rows.append(("Best sites", ", ".join(best.replicas)))
        rows.append(("Above best", f"{value.excess:.1%}"))
    else:
        rows.append(("Best", f"none: {best.status.value}"))
    for count, (words, ms) in enumerate(value.moves, 1):
        gain = 1 - ms / plan.mean_latency
        rows.append((f"Change {count}", f"{words}: {ms:.2f} ms, {gain:.1%} less than now"))
    rows += [("Open", words) for words in value.open]
    rows += [("Breaks", reason) for reason in value.reasons]
    text = facts(rows, header=("what", "value"))
    lost = values_text(failures_table(value.losses))
    return f"{text}\n\nWhen {value.losses.describe()}\n{lost}"


# --- diff ------------------------------------------------------------------------------------


def _diff(args: argparse.Namespace) -> int:
    """Compare two deployments or plans, and list the steps between them in a safe order."""
    from placement.databases.deployment import load_deployment
    from placement.databases.servers import path_between

    before, after = (load_deployment(path)[0] for path in (args.before, args.after))
    words = before.differences(after)
    steps: Sequence[ServerMove] = ()
    why = ""
    try:
        steps = path_between(before, after).steps
    except UnsupportedError as error:
        why = str(error)

    def document() -> dict[str, object]:
        rows = [
            {
                "step": step.kind,
                "site": None if step.replica is None else step.replica.site,
                "leader": step.leader.site,
                "voters": len(step.voting),
                "commit": step.commit,
                "text": step.text,
                "broken": list(step.broken),
            }
            for step in steps
        ]
        same = {"same": not words, "differences": list(words)}
        return {**same, "steps": rows, "no_steps": why or None}

    def text() -> str:
        lines = [*map(escape, words or ("The same roles.",))]
        if steps:
            numbered = [(f"{i:>3}.", step.text) for i, step in enumerate(steps, 1)]
            lines += ["", "Steps, in a safe order", facts(numbered, header=("step", "change"))]
        elif why:
            lines += ["", f"No steps: {escape(why)}"]
        return "\n".join(lines)

    show_result(args, document, text)
    return exits.FOUND


def _add_names(parser: Parser) -> None:
    """Add the names of places, the name of the database and the settings of the system."""
    parser.add("names",
        Switch("--localities", "FILE", "table with the columns locality (name in the "
            "database), site (name in the instance) and what a system needs (nodes, host, "
            "zone, cloud); or a JSON object of names (default: the names are the same)"),
        Switch("--database", "NAME", "database, keyspace or cluster to read or write (default: "
            "the only one)", types.text),
        Switch("--set", "NAME=VALUE", "a setting of the system (placement db export --list)",
            several=True, default=()),
    )  # fmt: skip


def _export(args: argparse.Namespace) -> int:
    """Write a plan, or a deployment that was read, as statements or documents of a database.

    A placement that the database cannot express is refused, with the reason. The text was checked
    as --list says; try it on a test cluster first.
    """
    if args.list:
        return _list_systems(args)
    for field in ("system", "plan"):
        there, expected = getattr(args, field) is not None, "SYSTEM PLAN, or --list"
        require(there, field.upper(), "missing", expected=expected)
    from placement.databases.deployment import check_sites, load_deployment
    from placement.databases.localities import load_localities, localities_template
    from placement.databases.system import load_system, write_deployment

    check_target(args)
    system = load_system(args.system)
    deployment, plan = load_deployment(args.plan)
    sites = _sites_of(args, plan)
    check_sites(deployment, sites, args.plan)
    present, running = None, vars(args)["from"]
    if running is not None:
        present, _ = load_deployment(running)
        check_sites(present, sites, running)
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
        document = {"system": system.name, "text": script.text, "notes": list(notes)}
        print_json({**document, "validated": system.validated})
        return exits.FOUND
    if args.output is None:
        sys.stdout.write(script.text)
    else:
        print(f"Written to {args.output}")
    print_notes(system.title, notes)
    return exits.FOUND


def _sites_of(args: argparse.Namespace, plan: Plan | QuorumPlan | None) -> tuple[str, ...]:
    """Return the sites that a deployment may name."""
    from placement.api import load
    from placement.plan import Plan

    if args.instance is not None:
        return load(args.instance).sites
    if plan is None:
        words = "a deployment does not hold its instance"
        raise InputError(words, field="--instance", expected="the instance whose sites it names")
    return plan.problem.instance.sites if isinstance(plan, Plan) else plan.problem.sites


def _list_systems(args: argparse.Namespace) -> int:
    from placement.databases.system import available, load_system

    told: list[dict[str, object]] = []
    blocks = []
    for system in map(load_system, available()):
        about = {"reads": system.inputs, "says": system.says, "cannot": system.cannot,
                 "validated": system.validated}  # fmt: skip
        settings = {
            name: {"default": one.default, "meaning": one.meaning}
            for name, one in system.settings.items()
        }
        head = {"name": system.name, "title": system.title}
        told.append({**head, **about, "settings": settings})
        rows = [*zip(("reads", "says", "cannot say", "validated by"), about.values(), strict=True)]
        for name, one in system.settings.items():
            rows.append((f"--set {name}=", f"{one.meaning} (default {one.default!r})"))
        lines = (wrap(f"{what}: {words}", page_width() - 2, indent="    ") for what, words in rows)
        blocks.append("\n  ".join([f"{system.name} ({system.title})", *lines]))
    if args.json:
        print_json(told)
    else:
        print("\n\n".join(blocks))
    return exits.FOUND
