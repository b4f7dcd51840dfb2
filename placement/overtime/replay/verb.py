"""``placement replay``: what each strategy would have paid, interval by interval."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from placement.cli import argument_types as types
from placement.cli import exit_codes as exits
from placement.cli.argument_parser import Subparsers
from placement.cli.options import (
    add_constraints,
    add_file,
    add_instance,
    add_json,
    instance_from,
    problem_from,
)
from placement.cli.page import print_page
from placement.cli.percentile_options import add_percentile, apply_percentile
from placement.cli.plan_output import print_json, print_notes
from placement.cli.table_output import check_table_targets, csv_text, records
from placement.errors import InputError
from placement.overtime.move_options import add_moves, read_moves

if TYPE_CHECKING:
    import pandas as pd

    from placement.model.instance import Instance
    from placement.overtime.replay import Deployments, Replay, ReplayProgress, Trace
    from placement.overtime.replay.leader_ranking import LeaderRanking
    from placement.problem import Problem

__all__ = ["add_parser", "run"]

_DAY = date(2026, 3, 18)
_SUFFIXES = (".csv", ".parquet")
_ALL_LINES = 48
_MOST_CELLS = 1_000_000_000
"""Counts of a generated fleet, 8 bytes each."""


def add_parser(verbs: Subparsers) -> None:
    """Add the verb."""
    parser = verbs.add_parser(
        "replay",
        help="replay demand over time: strategies against the oracle",
        description="Replay demand interval by interval: every strategy sets the leader (tier 1), "
        "the voters too (tier 2), or everything (tier 3) from what was seen before, and pays for "
        "what then came. The first interval is not counted: strategies only learn from it. An "
        "interval counts half of the one after it unless --decay or --half-life says otherwise.",
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
        help="tiers: 1, 2, 3 (default 1,2; with prices or limits of moves 3, the only one that "
        "takes them)",
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

    _check_targets(args)
    moves = read_moves(args)
    tiers = _tiers(("1,2" if moves is None else "3") if args.tiers is None else args.tiers)
    names = STRATEGIES if args.strategies is None else tuple(_parts(args.strategies))
    instance = instance_from(args)
    args.decay = _decay(args)
    trace, wishes = _trace(args, instance)
    # A problem wants demand, in its last interval too where the decay leaves no other; the demand
    # that is replayed is the trace's.
    problem = problem_from(args, instance.replace(counts=np.ones_like(instance.counts)))
    problem = apply_percentile(problem, args)
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


def _check_targets(args: argparse.Namespace) -> None:
    check_table_targets(args, _SUFFIXES)


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
        from placement.overtime.replay.read_tables import read_trace

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
        from placement.overtime.replay.read_tables import read_deployments

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
    from placement.overtime.replay.leader_ranking import leader_rankings
    from placement.overtime.replay.summaries import gains, summary

    strategies, moving = summary(result), gains(result)
    tier = next((tier for tier in result.tiers if tier < 3 and not result.objective), None)
    ranking = () if tier is None else leader_rankings(problem, trace, held, wanted, tier=tier)
    written = []
    if args.output is not None:
        _write(result.to_frame(), args)
        written.append(f"Written to {args.output}")
    if args.plot is not None:
        from placement.overtime.replay.plots import plot_overheads
        from placement.report.plots import save_figure

        shown = wanted if wanted in result.databases else result.databases[0]
        save_figure(plot_overheads(result, shown), args.plot, force=args.force)
        written.append(f"Drawn in {args.plot}")
    if args.json:
        moves = read_moves(args)
        document = _document(problem, result, strategies, moving, wanted, ranking)
        print_json({**document, "moves": None if moves is None else moves.given})
    else:
        print_page(_text(args, problem, trace, result, strategies, moving, wanted, tier, ranking))
        if written:
            print("\n" + "\n".join(written))


def _write(table: pd.DataFrame, args: argparse.Namespace) -> None:
    from placement.io.formats.files import write_file

    if Path(args.output).suffix.lower() == ".csv":
        data = csv_text(table).encode("utf-8")
    else:
        import io

        try:
            import pyarrow  # noqa: F401 - only to say what is missing
        except ImportError as error:
            from placement.errors import MissingDependencyError

            raise MissingDependencyError(
                "Parquet needs pyarrow: pip install 'replica-placement[parquet]'"
            ) from error
        sink = io.BytesIO()
        table.to_parquet(sink, index=False)
        data = sink.getvalue()
    write_file(args.output, data, force=args.force)


def _document(
    problem: Problem,
    result: Replay,
    strategies: pd.DataFrame,
    moving: pd.DataFrame,
    wanted: str,
    ranking: tuple[LeaderRanking, ...],
) -> dict[str, object]:
    from placement.problem import describe

    return {
        "problem": describe(problem),
        "instance": problem.instance.name,
        "complete": result.complete,
        "databases": len(result.databases),
        "intervals": [result.intervals[0], result.intervals[-1]],
        "decay": problem.decay if problem.decay < float("inf") else None,
        "objective": result.objective or None,
        "method": result.method or None,
        "proven_share": result.proven if result.method else None,
        "strategies": records(strategies),
        "gains": records(moving),
        "ranking": {
            "database": wanted,
            "intervals": [
                {
                    "interval": each.interval,
                    "leaders": list(each.leaders),
                    "overheads": [value if value < float("inf") else None
                                  for value in each.overheads],
                }
                for each in ranking
            ],
        },
    }  # fmt: skip


def _text(
    args: argparse.Namespace,
    problem: Problem,
    trace: Trace,
    result: Replay,
    strategies: pd.DataFrame,
    moving: pd.DataFrame,
    wanted: str,
    tier: int | None,
    ranking: tuple[LeaderRanking, ...],
) -> str:
    from placement.problem import describe
    from placement.text import escape, wrap

    count = len(result.databases)
    sections = [
        wrap(
            f"{escape(describe(problem))}; on {escape(problem.instance.name)}. "
            f"{count:,} database{'' if count == 1 else 's'}, {len(result.intervals):,} intervals "
            f"replayed, {escape(result.intervals[0])} to {escape(result.intervals[-1])}."
        )
    ]
    moves = read_moves(args)
    if moves is not None:
        given = ", ".join(f"{name} {value}" for name, value in moves.given.items())
        sections.append(wrap(f"'optimized' weighs moves from interval to interval: {given}."))
    if not result.complete:
        sections.append(
            f"Stopped: the first {count:,} of {len(trace):,} databases are done, and shown."
        )
    if tier is not None:
        sections.append(_ranking(args, wanted, tier, ranking))
    sections.append("Strategies, per cent above the oracle of the same tier\n" + _table(strategies))
    if len(moving):
        sections.append("What choosing a leader is worth, per cent\n" + _gains(moving))
    if result.method:
        sections.append(
            wrap(
                f"{'All tiers were' if result.objective else 'Tier 3 was'} planned by "
                f"{escape(result.method)}; "
                f"{100 * result.proven:.1f} % of the oracle's plans are proven optimal."
            )
        )
    return "\n\n".join(sections)


def _ranking(
    args: argparse.Namespace, wanted: str, tier: int, ranking: tuple[LeaderRanking, ...]
) -> str:
    from placement.overtime.replay.leader_ranking import ranking_text
    from placement.text import escape, page_width, wrap

    lines = ranking_text(ranking, top=args.top).split("\n")
    title = f"Leaders of {escape(wanted)} after each interval (tier {tier})"
    if len(lines) > _ALL_LINES:
        first = [each.leaders[:1] for each in ranking]
        lines = [line for i, line in enumerate(lines) if i == 0 or first[i] != first[i - 1]]
        title += ", where the best one changes"
        if len(lines) > _ALL_LINES:
            lines = [*lines[:_ALL_LINES], f"… and {len(lines) - _ALL_LINES} more changes"]
    room = page_width() - 2
    return "\n".join([title, *("  " + wrap(escape(line), room, indent="    ") for line in lines)])


def _table(strategies: pd.DataFrame) -> str:
    from placement.cli.table_output import cell
    from placement.text import table, wrap

    latency = "value" if "value" in strategies else "mean_latency"
    shown = "value ms" if latency == "value" else "mean ms"
    numbers = [latency, "overhead_mean", "overhead_median", "overhead_p95", "moves"]
    head = ["tier", "strategy", "databases", shown, "mean %", "median %", "p95 %", "moves"]
    words = "moves: mean number of leader changes; a dash: undefined, or no leader to name"
    if (strategies["tier"] == 3).any():
        numbers.append("copies")
        head.append("copies")
        words += "; copies: mean number of replicas copied to a new site"
    rows = [
        [str(row["tier"]), str(row["strategy"]), str(row["databases"])]
        + [cell(row[name], 3 if name == latency else 2) for name in numbers]
        for row in strategies.to_dict("records")
    ]
    return table(head, rows, right=range(2, len(head))) + "\n\n" + wrap(words)


def _gains(moving: pd.DataFrame) -> str:
    from placement.cli.table_output import cell
    from placement.text import table

    meaning = {
        "static": "best constant leader, against the worst",
        "static_average": "best constant leader, against leaders spread evenly",
        "static_given": "best constant leader, against leaders as given",
        "dynamic": "moving, the future known, against the best constant",
        "realised": "moving as optimized does, against the best constant",
    }
    statistics: list[Callable[[pd.Series[float]], float]] = [
        lambda values: float(values.min()),
        lambda values: float(values.median()),
        lambda values: float(values.mean()),
        lambda values: float(values.max()),
    ]
    rows = []
    for tier, part in moving.groupby("tier"):
        for name, words in meaning.items():
            seen = part[name].dropna()
            if len(seen):
                rows.append([str(tier), words, *(cell(each(seen)) for each in statistics)])
    return table(["tier", "gain", "least", "median", "mean", "most"], rows, right=[2, 3, 4, 5])
