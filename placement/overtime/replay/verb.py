"""``placement lab replay``: the latency of each strategy, interval by interval."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from datetime import date
from functools import partial
from typing import TYPE_CHECKING

from placement.cli import exit_codes as exits
from placement.cli import options as types
from placement.cli.options import PLOT, PROGRESS, Subparsers, Switch, add_verb
from placement.cli.output import (
    check_table_targets,
    print_notes,
    progress_of,
    show_result,
    table_files,
)
from placement.cli.problem_options import apply_measures, instance_from, problem_from, read_moves
from placement.errors import require

if TYPE_CHECKING:
    from placement.model.instance import Instance
    from placement.overtime.replay import Deployments, Trace
    from placement.overtime.replay.run_replay import ReplayProgress
    from placement.problem import Problem
    from placement.report.plots import Picture

_DAY = date(2026, 3, 18)
_SUFFIXES = (".csv", ".parquet")
_MOST_CELLS = 1_000_000_000
"""Counts of a generated fleet, 8 bytes each."""


def add_parser(verbs: Subparsers) -> None:
    """Add the verb."""
    parser = add_verb(verbs, "replay", run)
    demand = "demand (default: the instance's own, as one database)"
    parser.ask("instance", leave=("wait",))
    parser.add(demand,
        Switch("--demand", "FILE", "a table: database, interval, client, and operation and "
            "count, or a column per operation (.csv, .tsv, .parquet)"),
        Switch("--fleet", "N", "generate N databases", types.whole(1)),
        one=True,
    )  # fmt: skip
    parser.add(demand,
        Switch("--fleet-seed", "N", "seed of --fleet (default 0)", types.seed, 0),
        Switch("--days", "", "days of --fleet (default 1)", types.whole(1, 3660), 1),
        Switch("--minutes", "", "minutes of one interval of --fleet (default 30)",
            types.whole(1, 1440), 30),
        Switch("--merge", "K", "make one interval of every K", types.whole(1)),
    )  # fmt: skip
    parser.ask("question", "constraints", "prices", "tail")
    parser.ask("moves", title="moves (of the strategy 'optimized', from interval to interval)")
    parser.add("replay",
        Switch("--deployments", "FILE", "present configurations: database, site, role "
            "(replica, voter, leader); default: the sites of --replicas and --voters, or, for "
            "numbers, the plan for the first interval"),
        Switch("--leader-shares", "SITE=SHARE", "share of the groups that a voter leads today, "
            "once per voter: adds the strategy 'given' beside 'average' (also: a column share "
            "in the file of --deployments)", several=True, default=()),
        Switch("--tiers", "LIST", "tiers: 1, 2, 3 (default 1,2; with prices or limits of moves "
            "only 3)", types.names),
        Switch("--strategies", "LIST", "strategies (default: all)", types.names),
        Switch("--half-life", "X", "intervals after which demand counts half (instead of "
            "--decay)", types.number(above=True, infinite=True)),
        PROGRESS,
    )  # fmt: skip
    parser.ask("method", only=("method",))
    parser.add_output("write every row of the result: .csv or .parquet")
    parser.add("output", PLOT,
        Switch("--database", "NAME", "database to show in detail (default: the busiest)"),
        Switch("--top", "K", "leaders shown (default 3)", types.whole(1), 3),
    )  # fmt: skip
    parser.needs(fleet_seed="fleet", days="fleet")
    parser.set_defaults(decay=None)


def run(args: argparse.Namespace) -> int:
    """Replay demand interval by interval: strategies against the oracle.

    From the demand of the intervals before, every strategy sets the leader (tier 1), leader and
    voters (tier 2), or everything (tier 3). It then pays the latency of the interval itself. The
    first interval is not counted: strategies only learn from it. An interval counts half of the
    one after it unless --decay or --half-life says otherwise.
    """
    import numpy as np

    from placement.overtime.replay import STRATEGIES, Decay, replay
    from placement.overtime.replay.replay_report import replay_document, replay_text

    check_table_targets(args, _SUFFIXES)
    moves = read_moves(args)
    tiers = _tiers(("1,2" if moves is None else "3") if args.tiers is None else args.tiers)
    names = STRATEGIES if args.strategies is None else tuple(_parts(args.strategies))
    instance = instance_from(args)
    if args.half_life is not None:
        once, expected = args.decay is None, "--decay or --half-life"
        require(once, "--half-life", "given twice", expected=expected)
        args.decay = Decay.of_half_life(args.half_life).factor
    args.decay = 2.0 if args.decay is None else float(args.decay)  # the paper's, of Eq. 2
    trace, wishes = _trace(args, instance)
    # A problem wants demand, in its last interval too where the decay leaves no other; the demand
    # that is replayed is the trace's.
    problem = problem_from(args, instance.replace(counts=np.ones_like(instance.counts)))
    problem = apply_measures(problem, args)
    wanted = trace.databases[int(trace.counts.sum(axis=(1, 2, 3)).argmax())]
    if args.database is not None:
        (wanted,) = trace.of([args.database]).databases
    with progress_of(args) as line:

        def planned(done: int, total: int) -> None:
            if line is not None:
                line.count(f"planned the start of {done:,}/{total:,} databases", done, total)

        def replayed(at: ReplayProgress) -> None:
            if line is not None:
                plans = f", {at.plans:,} plans" if at.plans else ""
                done = f"replayed {at.done:,}/{at.total:,} databases{plans}"
                line.count(done, at.done, at.total)

        held = _deployments(args, problem, trace, wishes, planned)
        asked = problem
        if moves is not None:  # each database starts from its own; a question has one
            asked = problem.replace(current=held.start(0, problem.rules.may_lead), moves=moves)
        how = {"tiers": tiers, "strategies": names, "method": args.method}
        result = replay(asked, trace, held, **how, progress=replayed)

    def draw() -> Picture:
        from placement.overtime.replay.plots import plot_overheads

        return plot_overheads(result, wanted if wanted in result.databases else result.databases[0])

    about = problem, trace, held, result, wanted, moves
    told = partial(replay_document, *about), partial(replay_text, *about, top=args.top)
    show_result(args, *told, written=table_files(args, result.to_frame, {}, draw=draw))
    return exits.FOUND


# --- what was asked --------------------------------------------------------------------------


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _tiers(text: str) -> tuple[int, ...]:
    parts = _parts(text)
    known = parts and {*parts} <= {"1", "2", "3"}
    require(known, "--tiers", "no such tiers", text, "some of 1,2,3")
    return tuple(sorted({int(part) for part in parts}))


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
        require(
            intervals > 0 and cells <= _MOST_CELLS,
            "--fleet, --days, --minutes",
            "no interval" if intervals == 0 else "too much demand to hold in memory",
            (args.fleet, args.days, args.minutes),
            (f"1 to {_MOST_CELLS:,} counts: databases × intervals × clients × operations"),
        )
        timeline = Timeline.of_day(_DAY, intervals, args.minutes)
        trace, wishes = fleet_trace(instance, args.fleet, timeline, seed=args.fleet_seed)
    else:
        trace = Trace.of_instance(instance)
    if args.merge is not None:
        words = "RTTs that vary by interval cannot be merged"
        require(not instance.varying_rtt, "--merge", words, args.merge)
        trace = trace.merged(args.merge)
    return trace, wishes


def _deployments(
    args: argparse.Namespace,
    problem: Problem,
    trace: Trace,
    wishes: tuple[str | None, ...],
    progress: Callable[[int, int], None],
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
        held = Deployments.solved(problem, trace, method=args.method, progress=progress)
    held = held.preferring(instance, wishes) if wishes else held
    if args.leader_shares:
        held = held.leading(instance, leader_shares(args.leader_shares))
    return held


def leader_shares(given: Sequence[str]) -> dict[str, float]:
    """Read the option ``--leader-shares``: SITE=SHARE, once per site; InputError otherwise."""
    return types.read_named_numbers(given, "--leader-shares", "SITE=SHARE", most=1.0)
