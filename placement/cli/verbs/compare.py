"""``placement compare``: methods, protocols, numbers of replicas, and fronts."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from placement.cli import exit_codes as exits
from placement.cli import options as types
from placement.cli.dispatch import add_parts
from placement.cli.options import (
    PROGRESS,
    Parser,
    Subparsers,
    Switch,
    add_verb,
    limits_from,
    settings_from,
)
from placement.cli.output import (
    Columns,
    Row,
    add_table_output,
    cell,
    check_table_targets,
    exit_code_of,
    page_of,
    progress_of,
    records,
    show_table,
)
from placement.cli.problem_options import instance_from, question_from, question_of_sizes
from placement.errors import require

if TYPE_CHECKING:
    import pandas as pd

    from placement.problem import Problem


def add_parser(verbs: Subparsers) -> None:
    """Add the verb and its parts."""
    parts = add_parts(verbs, "compare")
    parser = add_verb(parts, "methods", _run_methods)
    parser.add("methods",
        Switch("--methods", "NAMES", "methods, separated by commas (default: all; placement show "
            "methods lists them)", types.names, several=True),
    )  # fmt: skip
    own = {"set": "METHOD.NAME=VALUE: setting of one method, or a key"}
    _add_question(parser, "method", leave=("method",), title="limits", helps=own)
    parser.set_defaults(time_limit=TIME_LIMIT)
    parser = add_verb(parts, "protocols", _run_protocols)
    parser.add("protocols",
        Switch("--protocols", "NAMES", "protocols, for example raft,leases,epaxos:multi=2 "
            "(placement show protocols)", types.names, several=True, required=True),
        Switch("--same-sites", "", "all protocols on the best sites of the first one"),
    )  # fmt: skip
    _add_question(parser, "protocol", leave=("set",))
    parser.set_defaults(time_limit=TIME_LIMIT)
    limit = {"time_limit": "most seconds of each solve (default: no limit)"}
    parser = add_verb(parts, "sizes", _run_sizes)
    _add_question(parser, helps=limit)
    parser.set_defaults(of=None)
    parser = add_verb(parts, "fronts", _run_fronts)
    _add_question(parser, helps=limit)
    parser.add("frontier",
        Switch("--points", "N", "largest number of solves of the frontier per number of voters "
            "(default: all)", types.whole(1)),
        Switch("--of", "MEASURE", "two measures in place of the mean latency and the cost, such as "
            "cost 'p99(writes)'", nargs=2),
    )  # fmt: skip


_PLAN = ("mean_latency", "status", "leader", "voter_sites", "replica_sites")
"""Columns of a plan of a front of measures."""

_COMPLETE = "Every point is proven, and none is missing."

TIME_LIMIT = 60.0
"""Seconds of each method by default: some prove a question in minutes that another does at once."""


def _add_question(
    parser: Parser,
    each: str = "",
    *,
    title: str = "method",
    helps: Mapping[str, str] | None = None,
    leave: Sequence[str] = (),
) -> None:
    """Add the question, its method with a limit for `each`, and where the table goes."""
    parser.ask("instance", "question", "constraints", "prices", "measures", "tail")
    limit = {"time_limit": f"most seconds of each {each} (default {TIME_LIMIT:g})"} if each else {}
    parser.ask("method", leave=leave, title=title, helps={**limit, **(helps or {})})
    parser.add(title, PROGRESS)
    add_table_output(parser)


def _run_methods(args: argparse.Namespace) -> int:
    """Run several methods and show gap, bound and seconds.

    The gap of each is measured against the best bound that any of them proved; a method that
    refuses the question has a row with the reason.
    """
    from placement.analysis.compare_methods import compare
    from placement.io.formats.document import finite

    check_table_targets(args)
    settings: dict[str, dict[str, object]] = {}
    for name, value in settings_from(args, "METHOD.NAME=VALUE").items():
        method, _, setting = name.partition(".")
        settings.setdefault(method, {})[setting] = value
    problem = question_from(args, instance_from(args))
    names = None
    if args.methods:
        names = [part.strip() for text in args.methods for part in text.split(",") if part.strip()]
    with _reporting(args, problem) as how:
        table = compare(problem, names, **how, settings=settings)
    about = {name: table.attrs[name] for name in ("problem", "operations")}
    about["best_bound"] = finite(table.attrs["best_bound"])
    return _show(args, table, about, "methods", _methods_text(table))


@contextmanager
def _reporting(args: argparse.Namespace, problem: Problem) -> Iterator[dict[str, Any]]:
    """Give the limits of each search, and the listener to reports whose last argument is one."""
    with progress_of(args, problem) as line:
        listen = None if line is None else lambda *told: line(told[-1])
        yield {**limits_from(args), "progress": listen}


def _show(
    args: argparse.Namespace, table: pd.DataFrame, about: dict[str, Any], rows: str, text: str
) -> int:
    """Show a table; in its document `rows` names the rows. Return the exit code."""
    show_table(table, args, document={**about, rows: records(table)}, text=text)
    return exit_code_of(table.get("status", ()), list(table.get("reason", ())))


def _methods_text(table: pd.DataFrame) -> str:
    # With money in the objective a bound is on more than latency, and no mean; one on a percentile
    # or another measure is in its unit already.
    own = table.attrs["kind"] == "measures"
    unit = str(table.attrs["unit"])
    money = not own and bool((table["objective"] > table["score"]).any())
    scale = 1.0 if money or own else table.attrs["operations"]
    bound = "bound, objective" if money else f"bound {unit}".strip()

    def gap(row: Row) -> str:
        shown = cell(100 * row["gap"], 2)
        return shown if shown == "–" else f"{shown} %"

    columns: Columns = [("method", "method", 0), ("status", "status", 0)]
    columns += [
        *_minimised_column(table, "objective", 3 if not unit else 1),
        ("mean ms", "mean_latency", 3),
        ("gap", gap, 2),
        (bound, lambda row: row["bound"] / scale, 3),
        ("seconds", "seconds", 3),
        ("leader", "leader", 0),
    ]
    said = "gap: to the best bound that any method proved; bound: the method's own"
    why = _reasons(table, lambda row: row["method"])
    return page_of(table, columns, said, *why, head=str(table.attrs["problem"]))


def _minimised_column(table: pd.DataFrame, key: str, decimals: int) -> Columns:
    """Return the column of the minimised value; none for the mean latency, which has its own."""
    name, unit = str(table.attrs["minimised"]), str(table.attrs["unit"])
    return [(f"{name} {unit}".strip(), key, decimals)] if name else []


def _reasons(table: pd.DataFrame, name: Callable[[Row], object]) -> list[str]:
    """Return a note for each row that says why it has no plan."""
    found = [row for row in table.to_dict("records") if row["reason"]]
    return [f"  {name(row)}: {row['reason']}" for row in found]


def _run_protocols(args: argparse.Namespace) -> int:
    """Solve one question under several commit protocols.

    Each is solved on its own best sites, and scored on the best sites of the first.
    """
    from placement.analysis.compare_methods import compare_protocols

    check_table_targets(args)
    problem = question_from(args, instance_from(args))
    with _reporting(args, problem) as how:
        how |= {"same_sites": args.same_sites, "method": args.method}
        table = compare_protocols(problem, protocol_names(args.protocols), **how)
    about = {str(key): value for key, value in table.attrs.items()}
    return _show(args, table, about, "protocols", _protocols_text(table))


def protocol_names(given: Sequence[str]) -> list[str]:
    """Split lists of protocols at commas; a parameter stays with its protocol.

    Examples
    --------
    >>> protocol_names(["raft,atlas:f=1,slow=0.1", "pqr"])
    ['raft', 'atlas:f=1,slow=0.1', 'pqr']
    """
    found: list[str] = []
    for part in (part.strip() for text in given for part in text.split(",")):
        key, equals, _ = part.partition("=")
        if found and equals and ":" not in key:
            found[-1] += f",{part}"
        elif part:
            found.append(part)
    return found


def _protocols_text(table: pd.DataFrame) -> str:
    first, same = table.attrs["first"], table.attrs["same_sites"]
    columns: Columns = [
        ("protocol", "protocol", 0),
        ("status", "status", 0),
        ("mean ms", "mean_latency", 3),
        ("reads", "reads", 3),
        ("writes", "writes", 3),
        *([] if same else [("elsewhere", "on_first", 3)]),
        ("seconds", "seconds", 3),
        ("leader", lambda row: row["replicas"] and (row["leader"] or "none"), 0),
    ]
    what = "all" if same else "elsewhere: mean ms"
    said = [] if first is None else [f"{what} on the replicas that are best under {first}"]
    why = _reasons(table, lambda row: row["protocol"])
    return page_of(table, columns, *said, *why, head=str(table.attrs["problem"]))


def _run_sizes(args: argparse.Namespace) -> int:
    """Solve for many numbers of replicas and voters, and show the gain of one more replica.

    Numbers are given as in --replicas 3..9 --voters 1,3,5.
    """
    from placement.analysis.sweep import sweep

    check_table_targets(args)
    problem, sizes, voters = question_of_sizes(args, instance_from(args))
    with _reporting(args, problem) as how:
        how |= {"method": args.method, "settings": settings_from(args)}
        table = sweep(problem, replicas=sizes, voters=voters, **how)
    about = {"objective": table.attrs["objective"], "method": args.method}
    return _show(args, table, about, "cells", _sweep_text(table))


def _sweep_text(table: pd.DataFrame) -> str:
    objective, unit = str(table.attrs["objective"]), str(table.attrs["unit"])
    columns: Columns = [
        ("replicas", "replicas", 0),
        ("voters", "voters", 0),
        ("status", "status", 0),
        ("mean ms", "mean_latency", 3),
        *_minimised_column(table, "value", 3),
        (f"gain {unit}".strip(), "gain", 3),
        ("gain %", "gain_percent", 1),
        ("gap %", lambda row: 100 * row["gap"], 2),
        ("seconds", "seconds", 2),
        *([("cost", "cost", 2)] if table["cost"].notna().any() else []),
        ("leader", "leader", 0),
    ]
    saved = "value" if table.attrs["minimised"] else "latency"
    said = f"gain: {saved} saved by the last replica, against one fewer and as many voters"
    why = _reasons(table, lambda row: f"{row['replicas']}/{cell(row['voters'])}")
    aim = [f"minimised: {objective}"] if objective else []
    return page_of(table, columns, *aim, said, *why)


def _run_fronts(args: argparse.Namespace) -> int:
    """Find the plans that no other plan beats in both latency and cost.

    Numbers of replicas are given as in --replicas 3..7; the changes between the plans are named.
    Needs prices, of the instance or by --prices.
    """
    from placement.analysis.pareto_frontier import pareto
    from placement.problem import describe

    check_table_targets(args)
    problem, sizes, voters = question_of_sizes(args, instance_from(args))
    if args.of is not None:
        return _of_measures(problem, sizes, voters, args)
    with _reporting(args, problem) as how:
        how |= {"method": args.method, "settings": settings_from(args), "points": args.points}
        table = pareto(problem, replicas=sizes, voters=voters, **how)
    attrs = {str(name): value for name, value in table.attrs.items()}
    said = describe(problem.replace(cost_weight=0.0, budget=None))
    parts = [f"latency against cost for {said} or fewer; on {problem.instance.name}"]
    parts.append(f"cost in {table.attrs['currency']} per month")
    if table.attrs["prices"]:
        parts.append(f"prices: {table.attrs['prices']}")
    about = {"question": "; ".join(parts), **attrs, "method": args.method}
    return _show_front(args, table, about, _pareto_text(table))


def _show_front(
    args: argparse.Namespace, table: pd.DataFrame, about: dict[str, Any], text: str
) -> int:
    """Show the points of a front as :func:`_show` does; a front may have none."""
    code = _show(args, table, about, "points", text)
    nothing = exits.INFEASIBLE if about["complete"] else exits.NOTHING
    return nothing if table.empty else code


def _of_measures(
    problem: Problem, sizes: Sequence[int], voters: Sequence[int] | None, args: argparse.Namespace
) -> int:
    """Find the front of two measures for a range of replicas, write, print."""
    import pandas as pd

    from placement.analysis.sweep import plan_columns
    from placement.measures import read_measure
    from placement.measures.limits import measure_front
    from placement.measures.question import value_of_plan
    from placement.methods.options import Options
    from placement.problem import describe

    one, other = (read_measure(text) for text in args.of)
    words = "one number of voters goes with --of"
    require(voters is None or len(voters) == 1, "--voters", words, voters, "one")
    require(args.plot is None, "--plot", "does not go with --of", args.plot, "none")
    problem = problem.replace(replicas=(min(sizes), max(sizes)))
    options = Options(**limits_from(args), settings=settings_from(args))
    front, complete = measure_front(
        problem, one, other, args.method, points=args.points, options=options
    )
    heads = [str(one), str(other)]
    rows = []
    for plan in front:
        values = {str(each): value_of_plan(plan, each) for each in (one, other)}
        rows.append({**values, **{name: plan_columns(plan)[name] for name in _PLAN}})
    found = pd.DataFrame(rows)
    columns: Columns = [(head, head, 3) for head in heads]
    columns += [("mean ms", "mean_latency", 3), ("leader", "leader", 0)]
    columns.append(("replicas", lambda row: ", ".join(row["replica_sites"]), 0))
    text = page_of(found, columns, _COMPLETE if complete else "Not complete.")
    asked = f"{one} against {other} for {describe(problem)}; on {problem.instance.name}"
    about = {"question": asked, "complete": complete, "method": args.method}
    return _show_front(args, found, about, text)


def _pareto_text(table: pd.DataFrame) -> str:
    points = table.to_dict("records")
    columns: Columns = [
        ("", "number", 0),
        (f"cost {table.attrs['currency']}", lambda row: float(row["cost"]), 2),
        ("mean ms", "mean_latency", 3),
        *_minimised_column(table, "value", 3),
        *((name, name, 0) for name in ("status", "replicas", "voters", "leader")),
    ]
    notes = []
    if points:
        notes.append("The sites of the first point, and what changes from point to point:")
        for number, row in enumerate(points, 1):
            notes.append(f"  {number}: {row['change'] or ', '.join(row['replica_sites'])}")
        notes.append("")
    sure = "Not complete: some points are not proven or not found; more time may find them."
    notes.append(_COMPLETE if table.attrs["complete"] else sure)
    if table.attrs["prices"]:
        notes.append(f"Prices: {table.attrs['prices']}")
    return page_of(table.assign(number=range(1, len(points) + 1)), columns, *notes)
