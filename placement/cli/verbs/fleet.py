"""``placement fleet``: plans of many databases that share the capacity of the sites."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placement.cli import exit_codes as exits
from placement.cli import options as types
from placement.cli.options import PROGRESS, Subparsers, Switch, add_verb
from placement.cli.output import (
    ProgressLine,
    add_table_output,
    check_table_targets,
    progress_of,
    show_table,
)
from placement.cli.problem_options import instance_from, problem_from
from placement.errors import located, require
from placement.support.entry_points import Group
from placement.support.status import Termination, relative_gap
from placement.text.plans import values_text
from placement.text.text_tables import facts, number_text, section, sentences

if TYPE_CHECKING:
    import pandas as pd

    from placement.fleet import FleetPlan, FleetProblem, NoFleetPlan
    from placement.model.configuration import Configuration
    from placement.model.instance import Instance
    from placement.support.checks import FloatArray
    from placement.workloads import Timeline

_SUFFIXES = (".csv", ".json", ".parquet")

SEARCHES: Group[Callable[..., Any]] = Group(
    "placement.fleets",
    "search for fleets",
    lambda found: found if callable(found) else None,
    "a function",
)
"""``search`` finds the plan of a fleet."""

_ROUNDING = 1e-12
"""Gap that sums of doubles leave where value and bound are the same."""

_SHOWN = 8
"""Databases, limits and reasons that the text shows."""


def add_parser(verbs: Subparsers) -> None:
    """Add the verb."""
    parser = add_verb(verbs, "fleet", run)
    parser.ask("instance", leave=("wait",))
    parser.add("databases",
        Switch("--demand", "FILE", "a table: database, client, and operation and count, or a "
            "column per operation; counts of several rows are added (.csv, .tsv, .parquet, or "
            "a folder of Parquet files)"),
        Switch("--fleet", "N", "generate N databases", types.whole(1)),
        one=True, required=True,
    )  # fmt: skip
    parser.add("databases",
        Switch("--fleet-seed", "N", "seed of --fleet (default 0)", types.seed, 0),
        Switch("--fleet-hour", "H", "with --fleet: the demand of this hour (UTC) of a working "
            "day, by the clock of each client's time zone (default: the whole day)",
            types.whole(0, 23)),
        Switch("--databases", "FILE", "a table: database, and any of storage_gb, written_gb "
            "(to each other replica), leader_operations, copies"),
        Switch("--deployments", "FILE", "present replicas, for limits on moves: database, "
            "site, role (replica, voter, leader)"),
    )  # fmt: skip
    parser.add("shared limits",
        Switch("--limits", "FILE", "a table: site, and any of storage_gb, leader_operations, "
            "egress_gb; empty: no limit"),
        Switch("--most-moves", "N", "most new replicas in all", types.number()),
        Switch("--most-moved-gb", "GB", "most GB of new replicas in all", types.number()),
        Switch("--apart", "NAMES", "databases that must not share a site; may be repeated",
            types.names, several=True, default=()),
        Switch("--headroom", "PART", "part of every limit of --limits that the plan leaves "
            "free, such as 0.2 (default 0)", types.number(0, 0.99), 0.0),
    )  # fmt: skip
    parser.ask("question", "constraints", "prices")
    meant = {
        "gap": "stop when the relative gap of the whole fleet is at most G (default 0.001)",
        "seed": "seed of the rounding to a plan (default 0)",
    }
    parser.ask("method", only=("time_limit", *meant), helps=meant, title="search")
    parser.add("search",
        Switch("--processes", "N", "processes that search (default 1)", types.threads, 1),
        Switch("--dask", "ADDRESS", "scheduler of a Dask cluster whose workers search in place "
            "of processes of this machine, for example tcp://10.0.0.5:8786"),
        Switch("--checkpoint", "FOLDER", "keep what the search has found in this folder; the "
            "same command goes on from there after the search was stopped or killed, and ends "
            "with the same plan"),
        PROGRESS,
    )  # fmt: skip
    add_table_output(parser, plot=False, suffixes=_SUFFIXES)
    parser.needs(fleet_seed="fleet")
    parser.set_defaults(gap=0.001)


def run(args: argparse.Namespace) -> int:
    """Plan many databases that share the capacity of the sites.

    Every database has its own replicas, voters and leader. All of them share the storage, the
    leader operations and the outgoing traffic of each site, and a number of moves. The gap is
    proven for the whole fleet.
    """
    check_table_targets(args, _SUFFIXES)
    fleet = _fleet(args)
    from placement.fleet import FleetSearch, NoFleetPlan

    solve: Callable[[FleetProblem, FleetSearch], FleetPlan | NoFleetPlan] = SEARCHES.load("search")
    with progress_of(args) as line:
        search = FleetSearch(
            gap=args.gap,
            seconds=math.inf if args.time_limit is None else args.time_limit,
            processes=args.processes,
            dask=args.dask,
            checkpoint=args.checkpoint,
            seed=args.seed,
            listen=None if line is None else partial(_tell, line),
        )
        found = solve(fleet, search)
    if isinstance(found, NoFleetPlan):
        return _none(found, args)
    from placement.fleet.fleet_tables import fleet_document, fleet_frame

    frame, document = fleet_frame(found), fleet_document(found)
    _show(args, fleet, document, frame, _text(found, document), frame)
    return exits.FOUND


def _show(
    args: argparse.Namespace,
    fleet: FleetProblem,
    told: dict[str, object],
    table: pd.DataFrame,
    text: str,
    plans: pd.DataFrame,
) -> None:
    """Print and write a plan, or why there is none; JSON and Parquet hold the question too."""
    from placement.fleet.fleet_tables import fleet_about
    from placement.io.fleet_plan_file import wide_frame, with_question

    suffix, parquet = Path(args.output or "").suffix.lower(), None
    document = with_question(told, fleet) if args.json or suffix in _SUFFIXES[1:] else told
    if suffix == ".parquet":
        parquet = wide_frame(plans, document), fleet_about(document)
    show_table(table, args, document=document, text=text, parquet=parquet)


def _tell(line: ProgressLine, number: int, seconds: float, value: float, bound: float) -> None:
    gap = f"gap {100 * relative_gap(value, bound):.3f} %"
    line.show(f"round {number}  relaxation {value:.6g}  bound {bound:.6g}  {gap}  {seconds:.1f} s")


def _fleet(args: argparse.Namespace) -> FleetProblem:
    """Put the fleet together from the instance, the tables and the options."""
    import numpy as np

    from placement.fleet import FleetMember, FleetProblem, SharedLimits
    from placement.fleet.fleet_tables import MemberRow, read_members, read_site_limits

    instance = instance_from(args)
    counts = _demand(args, instance)
    together = np.zeros((len(instance.clients), len(instance.operations)))
    for issued in counts.values():
        together += issued
    asked = problem_from(args, instance.replace(counts=together, intervals=()))
    rows: dict[str, MemberRow] = {}
    if args.databases is not None:
        rows = read_members(args.databases, tuple(counts))
    elif args.fleet is not None:
        from placement.workloads import database_sizes

        sizes = database_sizes(len(counts), seed=args.fleet_seed).tolist()
        rows = {name: MemberRow(gb) for name, gb in zip(counts, sizes, strict=True)}
    present = _present(args, instance, tuple(counts))
    members = []
    for number, (name, issued) in enumerate(counts.items()):
        own = instance.replace(counts=issued, intervals=())
        row = asdict(rows.get(name, MemberRow()))
        with located(f"database {name!r}"):
            problem = asked.replace(instance=own)
        here = None if present is None else present[number]
        members.append(FleetMember(name, problem, present=here, **row))
    limits = {} if args.limits is None else read_site_limits(args.limits, instance.sites)
    return FleetProblem(
        members,
        SharedLimits(
            **limits,
            most_moves=args.most_moves,
            most_moved_gb=args.most_moved_gb,
            apart=[[part.strip() for part in one.split(",")] for one in args.apart],
            headroom=args.headroom,
        ),
    )


def _demand(args: argparse.Namespace, instance: Instance) -> dict[str, FloatArray]:
    """Return the operations of each database, read or generated, each (clients, operations)."""
    if args.fleet_hour is not None:
        from datetime import UTC, datetime

        from placement.workloads import Timeline

        words = "the demand of a table has no hour"
        require(args.fleet is not None, "--fleet-hour", words, args.fleet_hour, "--fleet N")
        hour = Timeline(datetime(2026, 3, 18, args.fleet_hour, tzinfo=UTC), 1, 60)
        return _expected_demand(args, instance, hour)
    if args.demand is None:
        from datetime import date

        from placement.overtime.replay.generated_fleets import fleet_trace
        from placement.workloads import Timeline

        # one day in six intervals: only the sum counts here
        timeline = Timeline.of_day(date(2026, 3, 18), 6, 240)
        trace = fleet_trace(instance, args.fleet, timeline, seed=args.fleet_seed)[0]
        drawn = dict(zip(trace.databases, trace.counts.sum(axis=1), strict=True))
        if all(issued.any() for issued in drawn.values()):
            return drawn
        # the smallest of a large fleet may draw nothing in a day, and have to be somewhere too
        expected = _expected_demand(args, instance, timeline)
        return {name: issued if issued.any() else expected[name] for name, issued in drawn.items()}
    from placement.io.demand_tables import read_database_demand

    counts = read_database_demand(
        args.demand,
        clients=instance.clients,
        operations=[operation.name for operation in instance.operations],
    )
    empty = next((name for name, issued in counts.items() if not issued.any()), None)
    words, wanted = "a database without operations", "at least one operation of each database"
    require(empty is None, "database", words, empty, wanted, source=args.demand)
    return counts


def _expected_demand(
    args: argparse.Namespace, instance: Instance, timeline: Timeline
) -> dict[str, FloatArray]:
    """Return the operations that generated databases expect in an interval, on average."""
    import numpy as np

    from placement.overtime.replay.generated_fleets import client_ground
    from placement.workloads import expected_demand, fleet

    ground = client_ground(instance)
    drawn = fleet(ground.clients, args.fleet, seed=args.fleet_seed)
    issued = np.zeros((len(drawn), len(instance.clients), len(instance.operations)))
    demand = expected_demand(drawn, ground.clients, timeline)
    for city, client in enumerate(ground.owner.tolist()):
        issued[:, client] += demand[:, city]
    return {one.name: counts for one, counts in zip(drawn, issued, strict=True)}


def _present(
    args: argparse.Namespace, instance: Instance, databases: Sequence[str]
) -> list[Configuration] | None:
    """Return the present configuration of each database; None: nothing is known."""
    if args.deployments is None:
        return None
    import numpy as np

    from placement.overtime.replay.deployments import read_deployments

    today = read_deployments(args.deployments, instance, databases)
    everywhere = np.ones(len(instance.sites), dtype=np.bool_)
    return [today.start(number, everywhere) for number in range(len(databases))]


def _none(found: NoFleetPlan, args: argparse.Namespace) -> int:
    """Say why there is no plan, and write the prices that prove it where a file is asked for."""
    import pandas as pd

    from placement.fleet.fleet_tables import no_plan_document

    proof = "infeasible, proven" if found.proven else "nothing found, and nothing proven"
    if not found.proven and math.isfinite(found.bound):
        proof = f"nothing found; no plan is below {found.bound:,.6g} ms·operations"
    more = len(found.reasons) - _SHOWN
    reasons = [*found.reasons[:_SHOWN], *([f"… and {more} more"] if more > 0 else [])]
    proof += _kept_free(found.fleet)
    rows = [(each.name, each.short_by, each.limit, each.price) for each in found.short]
    members = [(member.name, member.copies) for member in found.fleet.members]
    plans = pd.DataFrame(members, columns=["database", "copies"])
    short = pd.DataFrame(rows, columns=["limit", "short_by", "of", "price"])
    text = "\n\n".join([f"Answer       {proof}", *sentences("Why", reasons)])
    _show(args, found.fleet, no_plan_document(found), short, text, plans)
    return exits.INFEASIBLE if found.proven else exits.NOTHING


def _kept_free(fleet: FleetProblem) -> str:
    headroom = fleet.limits.headroom
    return f", {100 * headroom:.3g} % of each left free" if headroom else ""


def _text(plan: FleetPlan, document: Mapping[str, Any]) -> str:
    """Return the answer, the fullest limits, and the databases that pay most for sharing."""
    from placement.fleet.fleet_tables import limits_table, payers_table
    from placement.io.formats.document import Document

    shared = 100 * (plan.value / plan.value_alone - 1) if plan.value_alone else 0.0
    answer = f"feasible, gap {100 * plan.gap:.3g} % for the whole fleet"
    if plan.gap <= _ROUNDING:
        answer = "optimal, proven"
        if plan.whole_bound > plan.bound:
            answer += " by an integer program over all configurations"
    answer += f"; by {plan.method} in {plan.seconds:.3g} s"
    if plan.termination is not Termination.FINISHED:
        answer += f", stopped: {plan.termination}"
    head = facts(
        [
            ("Question", f"{plan.fleet.databases:,} databases on {len(plan.fleet.sites)} sites, "
                         f"{len(plan.rows.names)} shared limits{_kept_free(plan.fleet)}"),
            ("Answer", answer),
            ("Mean latency", f"{number_text(plan.mean_latency, 3)} ms per operation; "
                             f"{shared:.2f} % above each database alone"),
        ]
    )  # fmt: skip
    told = Document("", "", document)
    tables = (limits_table(told, _SHOWN), payers_table(told, _SHOWN))
    return "\n\n".join(
        [head, *(section(one.title, values_text(one)) for one in tables if one.rows)]
    )
