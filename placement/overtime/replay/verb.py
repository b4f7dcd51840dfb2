"""``placement replay``: the latency of each strategy, interval by interval."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING

from placement.cli import argument_parser as types
from placement.cli import dispatch as exits
from placement.cli.argument_parser import Subparsers
from placement.cli.option_groups.percentile_options import add_percentile, apply_measures
from placement.cli.options import (
    add_constraints,
    add_file,
    add_instance,
    add_json,
    instance_from,
    problem_from,
)
from placement.cli.page import print_page
from placement.cli.plan_output import print_json, print_notes
from placement.cli.table_output import check_table_targets, write_table
from placement.errors import InputError
from placement.overtime.move_options import add_moves, read_moves

if TYPE_CHECKING:
    from placement.model.instance import Instance
    from placement.overtime.replay import Deployments, Replay, ReplayProgress, Trace
    from placement.problem import Problem

__all__ = ["add_parser", "run"]

_DAY = date(2026, 3, 18)
_SUFFIXES = (".csv", ".parquet")
_MOST_CELLS = 1_000_000_000
"""Counts of a generated fleet, 8 bytes each."""


def add_parser(verbs: Subparsers) -> None:
    """Add the verb."""
    parser = verbs.add_parser(
        "replay",
        help="replay demand over time: strategies against the oracle",
        description="Replay demand interval by interval. From the demand of the intervals before, "
        "every strategy sets the leader (tier 1), leader and voters (tier 2), or everything "
        "(tier 3). It then pays the latency of the interval itself. The first interval is not "
        "counted: strategies only learn from it. An interval counts half of the one after it "
        "unless --decay or --half-life says otherwise.",
    )
    add_instance(parser, waits=False)
    group = parser.add_argument_group("demand (default: the instance's own, as one database)")
    source = group.add_mutually_exclusive_group()
    source.add_argument(
        "--demand",
        metavar="FILE",
        help="a table: database, interval, client, and operation and count, or a column per "
        "operation (.csv, .tsv, .parquet)",
    )
    source.add_argument("--fleet", type=types.whole(1), metavar="N", help="generate N databases")
    group.add_argument(
        "--fleet-seed", type=types.seed, default=0, metavar="N", help="seed of --fleet (default 0)"
    )
    group.add_argument(
        "--days", type=types.whole(1, 3660), default=1, help="days of --fleet (default 1)"
    )
    group.add_argument(
        "--minutes",
        type=types.whole(1, 1440),
        default=30,
        help="minutes of one interval of --fleet (default 30)",
    )
    group.add_argument(
        "--merge", type=types.whole(1), metavar="K", help="make one interval of every K"
    )
    add_constraints(parser)
    add_percentile(parser)
    add_moves(parser, "moves (of the strategy 'optimized', from interval to interval)")
    group = parser.add_argument_group("replay")
    group.add_argument(
        "--deployments",
        metavar="FILE",
        help="present configurations: database, site, role (replica, voter, leader); default: "
        "the sites of --replicas and --voters, or, for numbers, the plan for the first interval",
    )
    group.add_argument(
        "--leader-shares",
        action="append",
        default=[],
        metavar="SITE=SHARE",
        help="share of the groups that a voter leads today, once per voter: adds the strategy "
        "'given' beside 'average' (also: a column share in the file of --deployments)",
    )
    group.add_argument(
        "--tiers",
        type=types.names,
        metavar="LIST",
        help="tiers: 1, 2, 3 (default 1,2; with prices or limits of moves only 3)",
    )
    group.add_argument(
        "--strategies", type=types.names, metavar="LIST", help="strategies (default: all)"
    )
    group.add_argument(
        "--half-life",
        type=types.number(above=True, infinite=True),
        metavar="X",
        help="intervals after which demand counts half (instead of --decay)",
    )
    group.add_argument(
        "--method",
        default="exact",
        metavar="NAME",
        help="method that computes the plans (default exact)",
    )
    group.add_argument(
        "--progress",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="show the progress on stderr (default: if stderr is a terminal)",
    )
    group = parser.add_argument_group("output")
    group.add_argument(
        "--database", metavar="NAME", help="database to show in detail (default: the busiest)"
    )
    group.add_argument(
        "--top", type=types.whole(1), default=3, metavar="K", help="leaders shown (default 3)"
    )
    add_json(group)
    add_file(group, "write every row of the result: .csv or .parquet")
    group.add_argument("--plot", metavar="FILE", help="draw the result: .png, .svg or .pdf")
    parser.set_defaults(run=run, decay=None)


def run(args: argparse.Namespace) -> int:
    """Replay, write, print."""
    import numpy as np

    from placement.overtime.replay import STRATEGIES, replay

    check_table_targets(args, _SUFFIXES)
    moves = read_moves(args)
    tiers = _tiers(("1,2" if moves is None else "3") if args.tiers is None else args.tiers)
    names = STRATEGIES if args.strategies is None else tuple(_parts(args.strategies))
    instance = instance_from(args)
    args.decay = _decay(args)
    trace, wishes = _trace(args, instance)
    # A problem wants demand, in its last interval too where the decay leaves no other; the demand
    # that is replayed is the trace's.
    problem = problem_from(args, instance.replace(counts=np.ones_like(instance.counts)))
    problem = apply_measures(problem, args)
    wanted = _database(args, trace)
    with _Line(args) as line:
        held = _deployments(args, problem, trace, wishes, line)
        asked = problem
        if moves is not None:  # each database starts from its own; a question has one
            asked = problem.replace(current=held.start(0, problem.rules.may_lead), moves=moves)
        result = replay(
            asked,
            trace,
            held,
            tiers=tiers,
            strategies=names,
            method=args.method,
            progress=line.replayed if line.wanted else None,
        )
    _show(args, problem, trace, held, result, wanted)
    return exits.FOUND


# --- what was asked --------------------------------------------------------------------------


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _tiers(text: str) -> tuple[int, ...]:
    parts = _parts(text)
    if not parts or any(part not in ("1", "2", "3") for part in parts):
        raise InputError("no such tiers", field="--tiers", value=text, expected="some of 1,2,3")
    return tuple(sorted({int(part) for part in parts}))


def _decay(args: argparse.Namespace) -> float:
    """τ of Eq. 2: as given, from the half-life, or the paper's 2."""
    from placement.overtime.replay import Decay

    if args.half_life is None:
        return 2.0 if args.decay is None else float(args.decay)
    if args.decay is not None:
        raise InputError("given twice", field="--half-life", expected="--decay or --half-life")
    return Decay.of_half_life(args.half_life).factor


def _trace(args: argparse.Namespace, instance: Instance) -> tuple[Trace, tuple[str | None, ...]]:
    """Return the demand and the leaders preferred, if a fleet brings them."""
    from placement.overtime.replay import Trace

    wishes: tuple[str | None, ...] = ()
    if args.demand is not None:
        from placement.overtime.replay.deployments import read_trace

        trace, notes = read_trace(args.demand, instance)
        print_notes(args.demand, notes)
    elif args.fleet is not None:
        from placement.overtime.replay.generated_fleets import fleet_trace
        from placement.workloads import Timeline

        intervals = args.days * 24 * 60 // args.minutes
        cells = args.fleet * intervals * len(instance.clients) * len(instance.operations)
        if not intervals > 0 or cells > _MOST_CELLS:
            raise InputError(
                "no interval" if intervals == 0 else "too much demand to hold in memory",
                field="--fleet, --days, --minutes",
                value=(args.fleet, args.days, args.minutes),
                expected=f"1 to {_MOST_CELLS:,} counts: databases × intervals × clients × "
                "operations",
            )
        timeline = Timeline.of_day(_DAY, intervals, args.minutes)
        trace, wishes = fleet_trace(instance, args.fleet, timeline, seed=args.fleet_seed)
    else:
        trace = Trace.of_instance(instance)
    if args.merge is not None:
        if instance.varying_rtt:
            raise InputError(
                "RTTs that vary by interval cannot be merged", field="--merge", value=args.merge
            )
        trace = trace.merged(args.merge)
    return trace, wishes


def _database(args: argparse.Namespace, trace: Trace) -> str:
    if args.database is not None:
        return trace.of([args.database]).databases[0]
    return trace.databases[int(trace.counts.sum(axis=(1, 2, 3)).argmax())]


def _deployments(
    args: argparse.Namespace,
    problem: Problem,
    trace: Trace,
    wishes: tuple[str | None, ...],
    line: _Line,
) -> Deployments:
    from placement.overtime.replay import Deployments

    instance = problem.instance
    if args.deployments is not None:
        from placement.overtime.replay.deployments import read_deployments

        return read_deployments(args.deployments, instance, trace.databases)
    named = [
        tuple(value) if isinstance(value, tuple) and isinstance(value[0], str) else None
        for value in (problem.replicas, problem.voters)
    ]
    if named[0] is not None and named[1] is not None:
        held = Deployments.same(instance, len(trace), named[0], named[1])
    else:
        held = Deployments.solved(
            problem,
            trace,
            method=args.method,
            progress=line.deployed if line.wanted else None,
        )
    held = held.preferring(instance, wishes) if wishes else held
    if args.leader_shares:
        held = held.leading(instance, leader_shares(args.leader_shares))
    return held


def leader_shares(given: Sequence[str]) -> dict[str, float]:
    """Read the option ``--leader-shares``: SITE=SHARE, once per site; InputError otherwise."""
    return types.read_named_numbers(given, "--leader-shares", "SITE=SHARE", most=1.0)


class _Line:
    """Progress line on stderr."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.wanted: bool = sys.stderr.isatty() if args.progress is None else args.progress
        self._last = 0.0

    def __enter__(self) -> _Line:
        return self

    def __exit__(self, *_: object) -> None:
        if self.wanted and sys.stderr.isatty():
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def deployed(self, done: int, total: int) -> None:
        self._write(f"planned the start of {done:,}/{total:,} databases", done == total)

    def replayed(self, at: ReplayProgress) -> None:
        plans = f", {at.plans:,} plans" if at.plans else ""
        self._write(f"replayed {at.done:,}/{at.total:,} databases{plans}", at.done == at.total)

    def _write(self, text: str, last: bool) -> None:
        import time

        terminal = sys.stderr.isatty()
        now = time.monotonic()
        if not last and now - self._last < (0.1 if terminal else 1.0):
            return
        self._last = now
        sys.stderr.write(f"\r{text}\x1b[K" if terminal else f"{text}\n")
        sys.stderr.flush()


# --- what is shown ---------------------------------------------------------------------------


def _show(
    args: argparse.Namespace,
    problem: Problem,
    trace: Trace,
    held: Deployments,
    result: Replay,
    wanted: str,
) -> None:
    from placement.overtime.replay.replay_report import ReplayReport

    report = ReplayReport.of(problem, trace, held, result, wanted, moves=read_moves(args))
    written = []
    if args.output is not None:
        write_table(args.output, result.to_frame(), {}, force=args.force)
        written.append(f"Written to {args.output}")
    if args.plot is not None:
        from placement.overtime.replay.plots import plot_overheads
        from placement.report.plots import save_figure

        shown = wanted if wanted in result.databases else result.databases[0]
        save_figure(plot_overheads(result, shown), args.plot, force=args.force)
        written.append(f"Drawn in {args.plot}")
    if args.json:
        print_json(report.document())
    else:
        print_page(report.text(top=args.top))
        if written:
            print("\n" + "\n".join(written))
