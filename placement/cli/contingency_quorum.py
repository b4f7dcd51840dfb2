"""``placement contingency quorum``: leaderless stores, one key or a table of keys."""

from __future__ import annotations

import argparse
import csv
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placement.cli import exits
from placement.cli.output import exit_code, print_json
from placement.cli.parsing import Subparsers
from placement.errors import InputError, UnsupportedError

if TYPE_CHECKING:
    from placement.checks import FloatArray
    from placement.quorumstore import Goal, QuorumPlan, QuorumProblem, StoreRules
    from placement.quorumstore.problem import CountArray

__all__ = ["GROUP", "add_parser", "run"]

GROUP = "placement.quorumstores"
"""Entry points that solve quorum stores: place, keys, front, envelope."""

_MOST_LOSSES = 8


def add_parser(parts: Subparsers) -> None:
    """Add the part."""
    parser = parts.add_parser(
        "quorum",
        help="replica sites, N, R and W of the keys of a leaderless store",
        description="Choose replica sites, N, R and W so that a percentile of read and write "
        "latency is smallest: normally (BA, basic availability) or in the worst case over the loss "
        "of any one site (N-1C). Proven optima by enumeration.",
    )
    parser.add_argument(
        "store",
        metavar="RTTS",
        help="a CSV of RTTs in ms (a header, then a site and its RTT to each site per row), or a "
        "bundled data set, whose site RTTs are taken",
    )
    parser.add_argument(
        "--local-rtt",
        type=float,
        default=0.5,
        metavar="MS",
        help="least RTT within a site (default 0.5)",
    )
    group = parser.add_argument_group("demand: one key, or a table of keys")
    for side in ("reads", "writes"):
        group.add_argument(
            f"--{side}",
            action="append",
            default=[],
            metavar="SITE=N",
            help=f"{side} entering at a site, a whole number (repeatable)",
        )
    group.add_argument(
        "--keys",
        metavar="FILE",
        help="CSV or Parquet with columns key, reads:<site>, writes:<site>; needs -o, is streamed, "
        "and goes on where an interrupted run stopped",
    )
    group = parser.add_argument_group("rules")
    model = group.add_mutually_exclusive_group()
    model.add_argument("--normal", action="store_true", help="BA: latency with nothing lost")
    model.add_argument("--worst", action="store_true", help="N-1C: the worst loss (default)")
    group.add_argument(
        "--redirect",
        choices=("keep", "closest", "hop"),
        default="hop",
        help="clients of a lost site keep their latency, are at the closest survivor, or reach it "
        "by an extra hop (default)",
    )
    group.add_argument(
        "--p", type=float, default=0.9, metavar="P", help="share within the threshold (default 0.9)"
    )
    group.add_argument("--p-reads", type=float, metavar="P", help="of reads, in place of --p")
    group.add_argument("--p-writes", type=float, metavar="P", help="of writes, in place of --p")
    group.add_argument("--n-max", type=int, default=5, metavar="N", help="largest N (default 5)")
    for option, text in (("--n", "N"), ("--r", "R"), ("--w", "W")):
        group.add_argument(option, type=int, metavar=text, help=f"fix {text}")
    group.add_argument(
        "--failures", type=int, default=1, metavar="F", help="sites lost at once (default 1)"
    )
    group.add_argument(
        "--regions", metavar="LEVEL", help="level of the data set that makes the regions"
    )
    group.add_argument("--lose-region", action="store_true", help="a whole region is lost")
    group.add_argument(
        "--distinct-regions", action="store_true", help="no two replicas in one region"
    )
    group = parser.add_argument_group("goal")
    group.add_argument(
        "--target",
        choices=("threshold", "reads", "writes"),
        default="threshold",
        help="max(T_r, T_w) (default), or one of them; ties by the other",
    )
    for side in ("read", "write"):
        group.add_argument(
            f"--{side}-limit", type=float, default=math.inf, metavar="MS",
            help=f"largest {side} threshold allowed",
        )  # fmt: skip
    what = group.add_mutually_exclusive_group()
    what.add_argument("--pareto", action="store_true", help="the front of read and write threshold")
    what.add_argument(
        "--envelope", action="store_true", help="all optima: their number and their ranges"
    )
    group = parser.add_argument_group("method and output")
    group.add_argument(
        "--method",
        choices=("auto", "enumeration", "cp-sat", "milp", "assignment", "radius"),
        default="auto",
        help="for one key (default auto)",
    )
    group.add_argument("--time-limit", type=float, default=math.inf, metavar="S")
    group.add_argument("--processes", type=int, default=1, metavar="N", help="for --keys")
    group.add_argument("--batch", type=int, default=500, metavar="N", help="keys per unit of work")
    group.add_argument("--json", action="store_true", help="one JSON document on stdout")
    group.add_argument("-o", "--output", metavar="FILE", help="table of configurations (--keys)")
    group.add_argument("--force", action="store_true", help="replace an existing file")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Solve one key or a table of them."""
    problem = _problem(args)
    if args.keys is not None:
        return _table(problem, args)
    if args.output is not None:
        raise InputError("only tables are written", field="-o", expected="--keys as well")
    if args.pareto:
        return _front(problem, args)
    if args.envelope:
        return _envelope(problem, args)
    plan: QuorumPlan = _solver("place")(problem, _method(args.method), time_limit=args.time_limit)
    if args.json:
        print_json(_document(plan))
    else:
        print(_text(plan))
    return exit_code(plan.status)


def _solver(name: str) -> Callable[..., Any]:
    """Return an entry point; this package imports no solver of its own."""
    from importlib.metadata import entry_points

    for entry in entry_points(group=GROUP):
        if entry.name == name:
            found: Callable[..., Any] = entry.load()
            return found
    raise UnsupportedError(f"nothing is installed that solves quorum stores ({GROUP}: {name})")


def _method(name: str) -> object:
    """Return the member of the solver's own choice of methods."""
    import inspect

    return type(inspect.signature(_solver("place")).parameters["method"].default)(name)


# --- the question ----------------------------------------------------------------------------


def _problem(args: argparse.Namespace) -> QuorumProblem:
    import numpy as np

    from placement.quorumstore import QuorumProblem

    sites, rtt, regions = _store(args)
    rtt = rtt.copy()
    np.fill_diagonal(rtt, np.maximum(np.diagonal(rtt), args.local_rtt))
    given = {"reads": args.reads, "writes": args.writes}
    demand = {side: _counts(values, sites, side) for side, values in given.items()}
    if args.keys is not None:
        if args.reads or args.writes or args.pareto or args.envelope:
            raise InputError(
                "one key and a table of keys were given",
                field="--keys",
                value=args.keys,
                expected="no --reads, --writes, --pareto, --envelope",
            )
        demand["reads"] = np.ones(len(sites), dtype=np.int64)  # not used: the table has its own
    return QuorumProblem(
        rtt,
        demand["reads"],
        demand["writes"],
        sites=sites,
        regions=regions,
        rules=_rules(args),
        goal=_goal(args),
    )


def _store(
    args: argparse.Namespace,
) -> tuple[tuple[str, ...], FloatArray, tuple[str, ...]]:
    import numpy as np

    from placement import datasets

    if args.store in datasets.names():
        instance = datasets.load(args.store)
        if instance.site_rtt.ndim != 2:
            raise InputError("RTTs vary by interval", field="RTTS", value=args.store)
        regions: tuple[str, ...] = ()
        if args.regions is not None:
            regions = tuple(str(label or "") for label in instance.labels(args.regions))
        return instance.sites, np.array(instance.site_rtt), regions
    if args.regions is not None:
        raise InputError(
            "a table of RTTs has no levels",
            field="--regions",
            value=args.regions,
            expected="a bundled data set",
        )
    path = Path(args.store)
    if not path.is_file():
        raise InputError(
            "no such file or data set",
            field="RTTS",
            value=args.store,
            expected="a CSV, or one of " + ", ".join(datasets.names()),
        )
    with path.open(newline="", encoding="utf-8") as stream:
        rows = [row for row in csv.reader(stream) if row]
    sites = tuple(row[0] for row in rows[1:])
    if not rows or tuple(rows[0][1:]) != sites:
        raise InputError(
            "rows and columns name different sites",
            source=args.store,
            expected="a header 'site,a,b,…' and then one row per site in the same order",
        )
    table = np.zeros((len(sites), len(sites)))
    for i, row in enumerate(rows[1:]):
        if len(row) != len(sites) + 1:
            raise InputError(
                "wrong number of cells", source=f"{args.store}, row {i + 2}", value=len(row)
            )
        for j, cell in enumerate(row[1:]):
            try:
                table[i, j] = float(cell) if cell or i != j else 0.0
            except ValueError:
                raise InputError(
                    "not an RTT",
                    source=f"{args.store}, row {i + 2}",
                    field=sites[j],
                    value=cell,
                    expected="milliseconds",
                ) from None
    return sites, table, ()


def _counts(values: list[str], sites: tuple[str, ...], side: str) -> CountArray:
    import numpy as np

    counts = np.zeros(len(sites), dtype=np.int64)
    for text in values:
        site, equals, number = text.rpartition("=")
        if not equals or site not in sites or not number.isdecimal():
            raise InputError(
                "not a count",
                field=f"--{side}",
                value=text,
                expected="SITE=N with a whole number and a site of " + ", ".join(sites),
            )
        counts[sites.index(site)] += int(number)
    return counts


def _rules(args: argparse.Namespace) -> StoreRules:
    from placement.quorumstore import Loss, Redirect, StoreRules

    return StoreRules(
        not args.normal,
        redirect=Redirect(args.redirect),
        read_fraction=args.p if args.p_reads is None else args.p_reads,
        write_fraction=args.p if args.p_writes is None else args.p_writes,
        max_replicas=args.n_max,
        replicas=args.n,
        read_quorum=args.r,
        write_quorum=args.w,
        failures=args.failures,
        loss=Loss.REGION if args.lose_region else Loss.SITE,
        distinct_regions=args.distinct_regions,
    )


def _goal(args: argparse.Namespace) -> Goal:
    from placement.quorumstore import Goal, Target

    return Goal(Target(args.target), read_bound=args.read_limit, write_bound=args.write_limit)


# --- the answers -----------------------------------------------------------------------------


def _table(problem: QuorumProblem, args: argparse.Namespace) -> int:
    from placement.status import Termination

    if args.output is None:
        raise InputError("where to?", field="--keys", expected="-o FILE as well")

    def progress(state: Any) -> None:
        print(
            f"{state.keys:,} keys, {state.solved:,} solved, {state.seconds:.0f} s", file=sys.stderr
        )

    summary = _solver("keys")(
        problem,
        args.keys,
        args.output,
        batch=args.batch,
        processes=args.processes,
        progress=progress,
        force=args.force,
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
    if args.json:
        print_json(document)
    elif done:
        print(
            f"{summary.keys:,} keys, {summary.solved:,} solved in {summary.seconds:.1f} s; "
            f"written to {summary.target}"
        )
    else:
        print(f"interrupted after {summary.keys:,} keys; the same command goes on from there")
    return exits.FOUND if done else exits.INTERRUPTED


def _front(problem: QuorumProblem, args: argparse.Namespace) -> int:
    from placement.text import table

    points = _solver("front")(problem)
    if args.json:
        print_json(
            [
                {
                    "read_threshold_ms": point.read_threshold,
                    "write_threshold_ms": point.write_threshold,
                    **_configuration(point.plan),
                }
                for point in points
            ]
        )
    elif points:
        rows = [
            [
                f"{point.read_threshold:.2f}",
                f"{point.write_threshold:.2f}",
                _quorums(point.plan),
                ", ".join(point.plan.replicas),
            ]
            for point in points
        ]
        print(table(["read ms", "write ms", "N-R-W", "replicas"], rows, right=(0, 1)))
    else:
        print("No configuration obeys rules and limits.")
    return exits.FOUND if points else exits.INFEASIBLE


def _envelope(problem: QuorumProblem, args: argparse.Namespace) -> int:
    found = _solver("envelope")(problem)
    if found is None:
        if args.json:
            print_json(None)
        else:
            print("No configuration obeys rules and limits.")
        return exits.INFEASIBLE
    ranges = {"normal": found.normal, "failure": found.failure, "mean": found.mean}
    if args.json:
        print_json(
            {
                "value": found.value,
                "optima": found.count,
                **{name: {"best": r.best, "worst": r.worst} for name, r in ranges.items()},
            }
        )
    else:
        print(f"{found.count:,} optimal configurations with the value {found.value:.2f} ms")
        for name, label in (
            ("normal", "threshold in normal operation"),
            ("failure", "threshold after the worst loss"),
            ("mean", "mean latency"),
        ):
            print(f"  {label}: {ranges[name].best:.2f} to {ranges[name].worst:.2f} ms")
    return exits.FOUND


def _configuration(plan: QuorumPlan) -> dict[str, object]:
    return {
        "replicas": list(plan.replicas),
        "n": len(plan.replicas),
        "r": plan.read_quorum,
        "w": plan.write_quorum,
    }


def _quorums(plan: QuorumPlan) -> str:
    return f"{len(plan.replicas)}-{plan.read_quorum}-{plan.write_quorum}"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _document(plan: QuorumPlan) -> dict[str, object]:
    document: dict[str, object] = {
        "status": str(plan.status),
        "termination": str(plan.termination),
        "method": plan.method,
        "seconds": plan.seconds,
        "value_ms": _finite(plan.value),
        "bound_ms": _finite(plan.bound),
        "reasons": list(plan.reasons),
    }
    if plan.configuration is not None:
        document |= _configuration(plan)
        document["mean_ms"] = plan.mean_latency
        document["losses"] = [
            {
                "lost": list(effect.lost),
                "read_ms": _finite(effect.read_threshold),
                "write_ms": _finite(effect.write_threshold),
            }
            for effect in plan.losses
        ]
    return document


def _text(plan: QuorumPlan) -> str:
    from placement.text import number_text, table, wrap

    model = "N-1C" if plan.problem.rules.contingency else "BA"
    if plan.configuration is None:
        reasons = [wrap(f"  {reason}", indent="    ") for reason in plan.reasons]
        return "\n".join([f"{plan.status}: no configuration ({model}, {plan.method})", *reasons])
    worst_first = sorted(plan.losses[1:], key=lambda effect: -effect.threshold)[:_MOST_LOSSES]
    rows = [
        [
            "+".join(effect.lost) or "(nothing)",
            number_text(effect.read_threshold),
            number_text(effect.write_threshold),
        ]
        for effect in (plan.normal, *worst_first)
    ]
    return "\n".join(
        [
            f"{plan.status} ({model}, {plan.method}): {plan.value:.2f} ms",
            f"Replicas  {', '.join(plan.replicas)}",
            f"N-R-W     {_quorums(plan)}",
            f"Mean      {plan.mean_latency:.2f} ms in normal operation",
            "",
            "Thresholds, worst losses first",
            table(["lost", "read ms", "write ms"], rows, right=(1, 2), indent="  "),
        ]
    )
