"""``placement lab quorum``: leaderless stores, one key or a table of keys."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placement.cli import exit_codes as exits
from placement.cli import options as types
from placement.cli.options import Parser, Subparsers, Switch, add_verb
from placement.cli.output import check_target, exit_code_of, show_result
from placement.errors import LimitError, UnsupportedError, require
from placement.support.entry_points import Group
from placement.support.status import OPTIMALITY_TOLERANCE, Termination
from placement.text.plans import quorum_plan_text
from placement.text.text_tables import escape, number_text, table

if TYPE_CHECKING:
    from placement.quorumstore import QuorumPlan, QuorumProblem
    from placement.quorumstore.problem import CountArray
    from placement.support.checks import FloatArray

PARTS: Group[Callable[..., Any]] = Group(
    "placement.quorumstore",
    "method for quorum stores",
    lambda found: found if callable(found) else None,
    "a function",
)
"""``place`` solves a key, ``keys`` a table of keys, ``envelope`` finds all optima of a key;
``heuristics`` returns functions from a problem to a plan, by name."""

_EXACT = ("enumeration", "cp-sat", "milp")

_COLUMNS = {
    "value": "value",
    "gap_percent": "gap %",
    "bound": "bound",
    "seconds": "seconds",
    "quorums": "N-R-W",
}

_INSTANCE = "a bundled data set, or the folder of an instance"

_MOST_REQUESTS = 10**15
"""Most requests of a site that one option may add."""


def add_parser(parts: Subparsers) -> None:
    """Add the part."""
    parser = add_verb(parts, "quorum", run)
    _add_question(parser)
    parser.add("what is shown",
        Switch("--envelope", "", "show the number of optimal configurations, and the ranges of "
            "their figures"),
        Switch("--compare", "", "run all methods; show gap to the best proven bound, seconds, "
            "configuration"),
        one=True,
    )  # fmt: skip
    parser.add("method",
        Switch("--method", "", "method for one key (default auto)",
            default="auto", choices=("auto", *_EXACT)),
        Switch("--time-limit", "S", "time limit in seconds (default: no limit)",
            types.seconds, math.inf),
        Switch("--processes", "N", "processes of --keys", types.threads, 1),
        Switch("--batch", "N", "keys per unit of work", types.whole(1), 500),
    )  # fmt: skip
    parser.add_output("write the plan, or the table of --keys or --compare")
    parser.needs(processes="keys", batch="keys")
    parser.set_defaults(csv=False, plot=None, progress=None)


def run(args: argparse.Namespace) -> int:
    """Choose replica sites, N, R and W for the keys of a leaderless store.

    The goal is the smallest percentile of read and write latency, normally (BA, basic availability)
    or in the worst case over the loss of any one site (N-1C). Optimality is proven.
    """
    problem = _problem(args)
    if args.keys is not None:
        return _table(problem, args)
    output = args.output or ""
    words = "a range of optima is no plan"
    require(not (output and args.envelope), "-o", words, expected="one key, or --keys")
    if args.compare:
        return _compare(problem, args)
    table, words = output.lower().endswith((".csv", ".parquet")), "only tables are written as such"
    require(not table, "-o", words, expected="--keys, or .json")
    check_target(args)
    if args.envelope:
        return _envelope(problem, args)
    from placement.io.plan_file import quorum_plan_document, save_plan

    plan: QuorumPlan = PARTS.load("place")(problem, args.method, time_limit=args.time_limit)
    written = [] if args.output is None else [f"Nothing was written to {args.output}"]
    if written and plan.configuration is not None:
        written = [f"Written to {save_plan(plan, args.output, force=args.force)}"]
    about = partial(quorum_plan_document, plan), partial(quorum_plan_text, plan)
    show_result(args, *about, written=written)
    return exit_code_of([plan.status])


def _table(problem: QuorumProblem, args: argparse.Namespace) -> int:
    words, expected = "an output file is required", "-o FILE together with --keys"
    require(args.output is not None, "--keys", words, expected=expected)

    def progress(state: Any) -> None:
        print(
            f"{state.keys:,} keys, {state.solved:,} solved, {state.seconds:.0f} s", file=sys.stderr
        )

    limits = {"batch": args.batch, "processes": args.processes}
    summary = PARTS.load("keys")(
        problem, args.keys, args.output, progress=progress, force=args.force, **limits
    )
    done = summary.termination is Termination.FINISHED
    document = {
        "target": str(summary.target) if done else None,
        "keys": summary.keys,
        "solved": summary.solved,
        "resumed": summary.resumed,
        "seconds": summary.seconds,
        "termination": str(summary.termination),
    }
    said = f"interrupted after {summary.keys:,} keys; the same command goes on from there"
    if done:
        said = f"{summary.keys:,} keys, {summary.solved:,} solved in {summary.seconds:.1f} s; "
        said += f"written to {escape(str(summary.target))}"
    show_result(args, lambda: document, lambda: said)
    return exits.FOUND if done else exits.INTERRUPTED


def _envelope(problem: QuorumProblem, args: argparse.Namespace) -> int:
    found = PARTS.load("envelope")(problem)
    if found is None:
        show_result(args, lambda: None, lambda: "No configuration obeys rules and limits.")
        return exits.INFEASIBLE
    document, rows = {"value": found.value, "optima": found.count}, []
    for name, words, ends in (
        ("normal", "threshold in normal operation", found.normal),
        ("failure", "threshold after the worst loss", found.failure),
        ("mean", "mean latency", found.mean),
    ):
        document[name] = {"best": ends.best, "worst": ends.worst}
        rows.append([words, number_text(ends.best), number_text(ends.worst)])
    said = f"{found.count:,} optimal configurations with the value {found.value:.2f} ms\n"
    text = said + table(["ms", "best", "worst"], rows, right=(1, 2), indent="  ")
    show_result(args, lambda: document, lambda: text)
    return exits.FOUND


# --- methods side by side ---------------------------------------------------------------------


def _compare(problem: QuorumProblem, args: argparse.Namespace) -> int:
    """Run all methods on a key, print and write the table; return the exit code."""
    from placement.cli.output import check_table_targets, collect, show_rows

    check_table_targets(args)
    exact = partial(PARTS.load("place"), time_limit=args.time_limit, certificate=False)
    runs: dict[str, Callable[[QuorumProblem], QuorumPlan]] = {
        method: partial(exact, method=method) for method in _EXACT
    }
    if "heuristics" in PARTS.names():
        runs |= PARTS.load("heuristics")(args.time_limit)
    rows, interrupted = collect(args, [(name, _step(problem, run)) for name, run in runs.items()])
    bounds = [float(str(row["bound"])) for row in rows if "bound" in row]
    values = [float(str(row["value"])) for row in rows if "value" in row]
    best, least = max(bounds, default=-math.inf), min(values, default=math.inf)
    for row in rows:
        if "bound" in row and float(str(row["bound"])) > least * (1 + OPTIMALITY_TOLERANCE):
            row["reason"] = f"WRONG: the bound is above the value {least:g} of another method"
        if "value" in row:
            value = float(str(row["value"]))
            row["gap"] = 1 - best / value if value else 0.0
            row["gap_percent"] = max(0.0, 100 * float(str(row["gap"])))
    asked = f"{problem.total_reads:,} reads and {problem.total_writes:,} writes at "
    asked += f"{len(problem.sites)} sites; value: {problem.goal.target.value} ms, "
    asked += "with losses" if problem.rules.contingency else "in normal operation"
    facts = ["Gap: to the best bound that any method proved; bound: the method's own"]
    facts += [f"{row['method']}: {row['reason']}" for row in rows if row.get("reason")]
    code = show_rows(args, rows, _COLUMNS, question=asked, facts=facts, interrupted=interrupted)
    if code != exits.FOUND:
        return code
    return exit_code_of(
        [str(row["status"]) for row in rows], [str(row.get("reason", "")) for row in rows]
    )


def _step(
    problem: QuorumProblem, run: Callable[[QuorumProblem], QuorumPlan]
) -> Callable[[], dict[str, object]]:
    def step() -> dict[str, object]:
        try:
            plan = run(problem)
        except (LimitError, UnsupportedError) as error:
            return {"status": "refused", "reason": str(error)}
        row: dict[str, object] = {
            "status": str(plan.status),
            "bound": plan.bound,
            "reason": "; ".join((*plan.reasons, *plan.notes)),
        }
        if plan.configuration is not None:
            row |= {
                "value": plan.value,
                "quorums": f"{len(plan.replicas)}-{plan.read_quorum}-{plan.write_quorum}",
                "replicas": ", ".join(plan.replicas),
            }
        return row

    return step


# --- question ---------------------------------------------------------------------------------


def _add_question(parser: Parser) -> None:
    """Add the options that make the problem."""
    parser.add("",
        Switch("store", "RTTS", "a table of RTTs in ms (square with names in the first row and "
            "column, or long with src, dst, rtt), or an instance folder or bundled data set, whose "
            "site RTTs are used"),
        Switch("--local-rtt", "MS", "least RTT within a site (default 0.5)", types.number(), 0.5),
    )  # fmt: skip
    entering = "entering at a site, a whole number (repeatable)"
    parser.add("demand: one key, or a table of keys",
        Switch("--reads", "SITE=N", f"reads {entering}", several=True, default=()),
        Switch("--writes", "SITE=N", f"writes {entering}", several=True, default=()),
        Switch("--own-demand", "", "the counts of the instance: requests of each client enter "
            "at its closest site"),
        Switch("--keys", "FILE", "CSV or Parquet with columns key, reads:<site>, "
            "writes:<site>; needs -o; the table is streamed, and an interrupted run is "
            "continued"),
    )  # fmt: skip
    parser.add("rules",
        Switch("--normal", "", "BA: latency with nothing lost"),
        Switch("--worst", "", "N-1C: the worst loss (default)"),
        one=True,
    )  # fmt: skip
    parser.add("rules",
        Switch("--redirect", "", "clients of a lost site keep their latency, are at the "
            "closest survivor, or reach it by an extra hop (default)",
            default="hop", choices=("keep", "closest", "hop")),
        Switch("--p", "P", "share within the threshold (default 0.9)",
            types.number(0, 1, above=True), 0.9),
        Switch("--p-reads", "P", "share of reads within the threshold, in place of --p",
            types.number(0, 1, above=True)),
        Switch("--p-writes", "P", "share of writes within the threshold, in place of --p",
            types.number(0, 1, above=True)),
        Switch("--n-max", "N", "largest N (default 5)", types.whole(1), 5),
        *(Switch(f"--{size.lower()}", size, f"fix {size}", types.whole(1)) for size in "NRW"),
        Switch("--failures", "F", "sites lost at once (default 1)", types.whole(), 1),
        Switch("--regions", "LEVEL", "level whose failure domains are the regions"),
        Switch("--lose-region", "", "lose one whole region at a time"),
        Switch("--distinct-regions", "", "no two replicas in one region"),
    )  # fmt: skip
    limit = "threshold allowed"
    parser.add("goal",
        Switch("--target", "", "max(T_r, T_w) (default), or one of them, ties by the other",
            choices=("threshold", "reads", "writes")),
        Switch("--weighted", "A,B", "A * T_r + B * T_w, in place of --target", types.two_numbers),
        Switch("--mix", "A,B", "A * normal + B * worst loss, in place of the worst loss alone "
            "(0,1); A,0 with limits: the best normal latency with limits on the worst case",
            types.two_numbers),
        Switch("--read-limit", "MS", f"largest read {limit}", types.number(), math.inf),
        Switch("--write-limit", "MS", f"largest write {limit}", types.number(), math.inf),
    )  # fmt: skip


def _problem(args: argparse.Namespace) -> QuorumProblem:
    """Return the problem; of a table of keys, a template."""
    import numpy as np

    from placement.quorumstore import QuorumProblem

    sites, rtt, regions = _store(args)
    rtt = rtt.copy()
    np.fill_diagonal(rtt, np.maximum(np.diagonal(rtt), args.local_rtt))
    given = {"reads": args.reads, "writes": args.writes}
    demand = {side: _counts(values, sites, side) for side, values in given.items()}
    if args.own_demand:
        demand = _own_demand(args)
    if args.keys is not None:
        one = args.reads or args.writes or args.own_demand or args.envelope or args.compare
        expected = "no --reads, --writes, --own-demand, --envelope, --compare"
        words = "one key and a table of keys were given"
        require(not one, "--keys", words, args.keys, expected)
        demand["reads"] = np.ones(len(sites), dtype=np.int64)  # not used: the table has its own
    from placement.quorumstore import Goal, LossScope, Redirect, StoreRules, Target

    weighted, mix = args.weighted, args.mix
    twice, words = weighted is not None and args.target is not None, "two goals were given"
    require(not twice, "--weighted", words, weighted, "no --target")
    bare, words = mix is not None and args.normal, "--mix needs losses, and --normal has none"
    require(not bare, "--mix", words, mix, "--worst, or no --mix")
    target = Target(args.target or "threshold") if weighted is None else Target.WEIGHTED
    read_weight, write_weight = weighted or (1.0, 1.0)
    normal_weight, worst_weight = mix or (0.0, 1.0)
    return QuorumProblem(
        rtt,
        demand["reads"],
        demand["writes"],
        sites=sites,
        regions=regions,
        rules=StoreRules(
            not args.normal,
            redirect=Redirect(args.redirect),
            read_fraction=args.p if args.p_reads is None else args.p_reads,
            write_fraction=args.p if args.p_writes is None else args.p_writes,
            max_replicas=args.n_max,
            replicas=args.n,
            read_quorum=args.r,
            write_quorum=args.w,
            failures=args.failures,
            loss=LossScope.REGION if args.lose_region else LossScope.SITE,
            distinct_regions=args.distinct_regions,
        ),
        goal=Goal(
            target,
            read_weight=read_weight,
            write_weight=write_weight,
            normal_weight=normal_weight,
            worst_weight=worst_weight,
            read_bound=args.read_limit,
            write_bound=args.write_limit,
        ),
    )


def _own_demand(args: argparse.Namespace) -> dict[str, CountArray]:
    """Return the reads and writes of the instance itself."""
    from placement import load
    from placement.quorumstore.problem import site_requests

    words, twice = "the demand is given twice", args.reads or args.writes
    require(not twice, "--own-demand", words, expected="no --reads and no --writes")
    words, known = "a table of RTTs has no demand", _is_instance(args.store)
    require(known, "--own-demand", words, args.store, _INSTANCE)
    reads, writes = site_requests(load(args.store))
    return {"reads": reads, "writes": writes}


def _is_instance(store: str) -> bool:
    from placement import datasets

    return store in datasets.names() or Path(store).is_dir()


def _store(args: argparse.Namespace) -> tuple[tuple[str, ...], FloatArray, tuple[str, ...]]:
    import numpy as np

    from placement import datasets, load

    if _is_instance(args.store):
        instance = load(args.store)
        require(instance.site_rtt.ndim == 2, "RTTS", "RTTs vary by interval", args.store)
        regions: tuple[str, ...] = ()
        if args.regions is not None:
            regions = tuple(str(label or "") for label in instance.labels(args.regions))
        return instance.sites, np.array(instance.site_rtt), regions
    words = "a table of RTTs has no levels"
    require(args.regions is None, "--regions", words, args.regions, _INSTANCE)
    from placement.io.feeds.rtt_tables import read_rtt

    known = "a table of RTTs, or one of " + ", ".join(datasets.names())
    require(Path(args.store).is_file(), "RTTS", "no such file or data set", args.store, known)
    found = read_rtt(args.store)
    sites = tuple(dict.fromkeys((*found.sources, *found.destinations)))
    table, _ = found.between(sites, sites, diagonal=False)
    own = np.arange(len(sites))
    table[own, own] = np.nan_to_num(table[own, own])
    return sites, table, ()


def _counts(values: list[str], sites: tuple[str, ...], side: str) -> CountArray:
    import numpy as np

    counts = np.zeros(len(sites), dtype=np.int64)
    for text in values:
        site, equals, number = text.rpartition("=")
        good = equals and site in sites and number.isdecimal()
        expected = "SITE=N with a whole number and a site of " + ", ".join(sites)
        require(good, f"--{side}", "not a count", text, expected)
        counts[sites.index(site)] += types.read_whole(number, f"--{side}", 0, _MOST_REQUESTS)
    return counts
